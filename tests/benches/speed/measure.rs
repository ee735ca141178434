//! Times of actions, and tables of them.

use std::io;
use std::time::{Duration, Instant};

use spmdc_compiler::backends;
use spmdc_runtime::data::array::HostArray;
use spmdc_runtime::run::report::RunOptions;
use spmdc_runtime::run::session::Session;
use spmdc_tests::engine;

/// An action is repeated until it takes this long, so that the clock does not matter.
const BATCH: Duration = Duration::from_millis(2);

/// How long the actions of one line are measured, in turns.
const PATIENCE: Duration = Duration::from_millis(600);

/// The clock: the time of the day, or the processor time of the calling thread, which other load on the machine affects less.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    Wall,
    Thread,
}

impl Clock {
    /// For actions on so many threads.
    pub fn of(threads: usize) -> Clock {
        if threads == 1 && on_processor().is_some() { Clock::Thread } else { Clock::Wall }
    }
}

/// How long this thread has run, where the system says.
fn on_processor() -> Option<Duration> {
    #[cfg(target_os = "linux")]
    {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the call writes to `time` only.
        if unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) } == 0 {
            return Some(Duration::new(time.tv_sec as u64, time.tv_nsec as u32));
        }
    }
    None
}

/// The least seconds that each action takes. They take turns, so that all of them see the machine at its best and its worst.
pub fn fastest<const N: usize>(clock: Clock, mut actions: [&mut dyn FnMut(); N]) -> [f64; N] {
    let mut repeats = [1_u32; N];
    for (action, repeats) in actions.iter_mut().zip(&mut repeats) {
        action();
        loop {
            let time = batch(clock, &mut **action, *repeats);
            if time >= BATCH || *repeats >= 1 << 20 {
                break;
            }
            let missing = BATCH.as_secs_f64() / time.as_secs_f64().max(1e-9);
            *repeats = (f64::from(*repeats) * missing.clamp(1.5, 16.0)) as u32 + 1;
        }
    }
    let mut best = [f64::INFINITY; N];
    let begin = Instant::now();
    for round in 0.. {
        for at in 0..N {
            let time = batch(clock, &mut *actions[at], repeats[at]).as_secs_f64() / f64::from(repeats[at]);
            best[at] = best[at].min(time);
        }
        if round >= 4 && begin.elapsed() >= PATIENCE {
            break;
        }
    }
    best
}

fn batch(clock: Clock, action: &mut dyn FnMut(), repeats: u32) -> Duration {
    let (begin, used) = (Instant::now(), on_processor());
    (0..repeats).for_each(|_| action());
    match (clock, used, on_processor()) {
        (Clock::Thread, Some(before), Some(after)) => after.saturating_sub(before),
        _ => begin.elapsed(),
    }
}

/// A program that can be run.
pub struct Loaded {
    session: Session,
}

impl Loaded {
    /// Compiles a text for one device, with this many threads and generated arguments.
    pub fn new(text: &str, workers: Option<usize>) -> Loaded {
        let compilation = engine::compiled("bench.spmd", text, "", None).expect("the program is right");
        let program = compilation.program.clone().expect("it was compiled to the end");
        let code = backends::DEFAULT.load(&compilation.kernels).and_then(|code| code.into_kernels());
        let kernels = code.expect("there is code");
        let options = RunOptions { workers, ..RunOptions::default() };
        let mut session = Session::load(program, kernels, options).expect("it fits into memory");
        for index in 0..session.program().params.len() {
            let layout = session.program().params[index].layout.clone();
            let sizes: Vec<usize> = layout.dims.iter().map(|dim| dim.size).collect();
            let mut array = HostArray::zeros(layout.dtype, &sizes);
            engine::generate(&mut array, index as u64);
            session.write_param(index, &mut array).expect("the argument fits");
        }
        Loaded { session }
    }

    pub fn run(&mut self) {
        self.session.run(&mut io::sink()).expect("nothing can fail");
    }
}

/// One line: what, ours and the limit in the table's unit, how far apart they are.
pub fn line(name: &str, ours: f64, limit: f64, of: &str, ratio: f64) {
    println!("{name:<40}{ours:>11.3}{limit:>11.3}  {of:<10}{ratio:>7.2}");
}

pub fn title(title: &str, unit: &str) {
    println!("{title:<40}{unit:>11}{:>11}  {:<10}{:>7}", "limit", "", "ratio");
}
