//! The progress of a long run: how far the outermost loop with known trips is, and the last printed line.
//!
//! On a terminal it is a bar, which disappears at the end; elsewhere a line is written now and then. Device 0 stores its trip; a thread
//! reads it ten times a second.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::errors::trap::RunError;
use crate::run::report::RunReport;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The time between two looks at the loop.
const LOOK: Duration = Duration::from_millis(100);
/// The time after which a bar appears without the option.
const PATIENCE: Duration = Duration::from_secs(1);
/// The time between two lines without a terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// The trips of the loop that runs.
#[derive(Debug, Default)]
pub(crate) struct LoopProgress {
    done: AtomicU64,
    /// 0 before the first loop.
    total: AtomicU64,
}

impl LoopProgress {
    /// Stores that these many trips are done, of all.
    pub fn set(&self, done: u64, total: u64) {
        debug_assert!(done <= total, "more trips are done than there are");
        self.done.store(done, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    fn get(&self) -> (u64, u64) {
        let total = self.total.load(Ordering::Relaxed);
        // The two are not stored at once.
        (self.done.load(Ordering::Relaxed).min(total), total)
    }
}

/// The end of a run.
pub(crate) type RunResult = Result<RunReport, RunError>;

/// The component of progress: see [`shown`].
pub(crate) type ShowFn =
    fn(bool, &LoopProgress, &mut dyn Write, &mut dyn FnMut(&mut dyn Write) -> RunResult) -> RunResult;

/// Runs `run` once and shows its progress: always if `is_asked`, otherwise on a terminal if it takes long. `run` gets the output to print to.
pub(crate) fn shown(
    is_asked: bool,
    progress: &LoopProgress,
    out: &mut dyn Write,
    run: &mut dyn FnMut(&mut dyn Write) -> RunResult,
) -> RunResult {
    let is_terminal = io::stderr().is_terminal();
    if !is_asked && !is_terminal {
        return run(out);
    }
    let display = Display::new(is_asked, is_terminal);
    let is_over = AtomicBool::new(false);
    let result = thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            while !is_over.load(Ordering::Acquire) {
                display.look(progress);
                thread::park_timeout(LOOK);
            }
        });
        let result = run(&mut ShownOutput { out, display: &display });
        is_over.store(true, Ordering::Release);
        watcher.thread().unpark();
        result
    });
    display.end(progress);
    result
}

/// The displayed progress, and the time of its display.
struct Display {
    is_asked: bool,
    begin: Instant,
    /// None without a terminal.
    bar: Option<ProgressBar>,
    state: Mutex<DisplayState>,
}

struct DisplayState {
    /// The last printed line.
    last: Arc<str>,
    /// When a line was written last.
    line: Instant,
}

impl Display {
    fn new(is_asked: bool, is_terminal: bool) -> Display {
        let style = ProgressStyle::with_template("{wide_bar} {pos}/{len}, {per_sec}, {eta} left {msg}");
        let bar = is_terminal.then(|| {
            let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
            bar.set_style(style.expect("the template is well-formed"));
            bar
        });
        let begin = Instant::now();
        Display { is_asked, begin, bar, state: Mutex::new(DisplayState { last: Arc::from(""), line: begin }) }
    }

    fn look(&self, progress: &LoopProgress) {
        let (done, total) = progress.get();
        debug_assert!(done <= total, "{done} of {total} trips");
        if total == 0 || !self.is_asked && self.begin.elapsed() < PATIENCE {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match &self.bar {
            Some(bar) => {
                bar.set_length(total);
                bar.set_position(done);
                bar.set_message(state.last.to_string());
            }
            None if state.line.elapsed() >= BETWEEN_LINES => {
                state.line = Instant::now();
                self.line(done, total, &state.last);
            }
            None => {}
        }
    }

    /// One line of text for logs.
    fn line(&self, done: u64, total: u64, last: &str) {
        let seconds = self.begin.elapsed().as_secs_f64();
        let separator = if last.is_empty() { "" } else { ": " };
        // A progress line that cannot be written is no reason to stop.
        let _ = writeln!(io::stderr(), "{done} of {total} trips in {seconds:.1} s{separator}{last}");
    }

    fn end(&self, progress: &LoopProgress) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        let (done, total) = progress.get();
        if self.is_asked && total > 0 {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            self.line(done, total, &state.last);
        }
    }
}

/// Output that remembers its last line, and does not write into the bar.
struct ShownOutput<'a> {
    out: &'a mut dyn Write,
    display: &'a Display,
}

impl Write for ShownOutput<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        if let Some(line) = text.lines().rfind(|line| !line.trim().is_empty()) {
            self.display.state.lock().unwrap_or_else(PoisonError::into_inner).last = Arc::from(line);
        }
        match &self.display.bar {
            Some(bar) => bar.suspend(|| self.out.write(bytes)),
            None => self.out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
