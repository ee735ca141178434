//! The record of a run: how long each device worked, waited and copied, for `--trace`.
//!
//! A device that records reads the clock once for each operation: the beginning of one is the end of the one before it, so the spans of
//! a device never overlap. Its memory is allocated when the program is loaded; spans that do not fit are counted and left out. The
//! file is in the format of Chrome's trace viewer, which Perfetto reads: one track for each device.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::run::shared::Outline;
use spmdc_abi::{BufferInfo, Site};

/// Maximum number of spans that the devices of a process record together: 6 MiB.
const SPANS: usize = 1 << 18;
/// Maximum number of spans that one device records.
const SPANS_OF_DEVICE: usize = 1 << 16;

/// Maximum time between two operations of one statement that are shown as one span, in nanoseconds: counting and jumps take less.
const GAP: u64 = 1000;

/// How a device spends a span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// It computes: kernels, products, functions of the runtime, and copies within the device.
    Compute,
    /// It waits: from its arrival at a barrier until it continues.
    Wait,
    /// It copies or combines data of other devices.
    Communicate,
    /// It reads rows of a stream.
    Input,
    /// It prints or saves.
    Output,
}

impl Activity {
    /// The name of the category in the file.
    pub fn name(self) -> &'static str {
        match self {
            Activity::Compute => "compute",
            Activity::Wait => "wait",
            Activity::Communicate => "communicate",
            Activity::Input => "input",
            Activity::Output => "output",
        }
    }
}

/// An operation and its time, in nanoseconds since the session was loaded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RecordedSpan {
    operation: u32,
    activity: Activity,
    begin: u64,
    end: u64,
}

/// The record of one device in a run.
#[derive(Debug)]
pub(crate) struct Recorder {
    /// The same for all devices.
    epoch: Instant,
    spans: Vec<RecordedSpan>,
    dropped: u64,
    /// The current operation, and the time of its start; none before the first one. Its activity is none if no span shows it.
    current: Option<(u32, Option<Activity>, u64)>,
}

impl Recorder {
    /// For one of this many devices.
    pub fn new(epoch: Instant, devices: usize) -> Recorder {
        let most = (SPANS / devices.max(1)).clamp(1, SPANS_OF_DEVICE);
        Recorder { epoch, spans: Vec::with_capacity(most), dropped: 0, current: None }
    }

    /// Forgets the run before.
    pub fn reset(&mut self) {
        self.spans.clear();
        (self.dropped, self.current) = (0, None);
    }

    /// An operation begins, and so the one before it ends.
    pub fn begin(&mut self, operation: usize, activity: Option<Activity>) {
        let now = self.now();
        if let Some((operation, Some(activity), begin)) = self.current {
            self.push(RecordedSpan { operation, activity, begin, end: now });
        }
        self.current = Some((operation as u32, activity, now));
    }

    /// The device continues at the current operation, at which it has waited.
    pub fn go_on(&mut self) {
        let now = self.now();
        if let Some((operation, _, begin)) = self.current.take() {
            self.push(RecordedSpan { operation, activity: Activity::Wait, begin, end: now });
        }
    }

    fn now(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    fn push(&mut self, span: RecordedSpan) {
        debug_assert!(span.begin <= span.end, "a span ends before it begins");
        debug_assert!(self.spans.last().is_none_or(|last| last.end <= span.begin), "the spans of a device overlap");
        // The vector never grows during a run.
        if self.spans.len() < self.spans.capacity() {
            self.spans.push(span);
        } else {
            self.dropped += 1;
        }
    }

    /// The spans for people: operations of one statement that follow each other are one span. Times count from `start` on.
    pub fn track(&self, number: usize, name: String, names: &StatementNames<'_>, start: u64) -> TraceTrack {
        let mut spans: Vec<TraceSpan> = Vec::new();
        let mut last: Option<RecordedSpan> = None;
        for &recorded in &self.spans {
            let (what, site) = names.of(recorded.operation as usize, recorded.activity);
            let (begin, end) = (recorded.begin.saturating_sub(start), recorded.end.saturating_sub(start));
            // A smaller number means that a loop has jumped back: each trip has its own spans.
            let goes_on = last.is_some_and(|last| {
                last.operation < recorded.operation
                    && last.activity == recorded.activity
                    && recorded.begin - last.end <= GAP
            });
            last = Some(recorded);
            match spans.last_mut() {
                Some(before) if goes_on && (&before.name, before.site) == (&what, site) => before.end_ns = end,
                Some(_) | None => {
                    spans.push(TraceSpan {
                        name: what,
                        activity: recorded.activity,
                        site,
                        begin_ns: begin,
                        end_ns: end,
                    });
                }
            }
        }
        TraceTrack { number, name, spans, dropped: self.dropped }
    }
}

/// The names and source positions of the operations of a part.
pub(crate) struct StatementNames<'a> {
    outline: &'a Outline,
    /// The names of values, by the statement that makes them.
    values: BTreeMap<Site, &'a str>,
}

impl<'a> StatementNames<'a> {
    pub fn new(outline: &'a Outline, buffers: &'a [BufferInfo]) -> StatementNames<'a> {
        let named = buffers.iter().filter(|buffer| buffer.site.line > 0);
        StatementNames { outline, values: named.map(|buffer| (buffer.site, buffer.name.as_str())).collect() }
    }

    /// The name of an operation, with the name of the value that it computes, and the position of its statement. Operations that the
    /// compiler has added belong to the previous statement.
    fn of(&self, operation: usize, activity: Activity) -> (String, Option<Site>) {
        let what = self.outline.what(operation);
        let known = (0..=operation).rev().map(|at| self.outline.site(at)).find(|site| site.line > 0);
        match known.and_then(|site| self.values.get(&site)) {
            Some(value) if activity == Activity::Compute && *value != what => (format!("{what} {value}"), known),
            Some(_) | None => (what.to_string(), known),
        }
    }
}

/// The record of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// The number of the process in its job; 0 for a program in one process.
    pub process: usize,
    /// The devices of this process, in the order of their numbers.
    pub tracks: Vec<TraceTrack>,
}

/// The record of one device.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceTrack {
    /// Distinguishes it from the other tracks: a device that is in several meshes has several.
    pub number: usize,
    /// The number of the device and its mesh.
    pub name: String,
    /// In order; they do not overlap.
    pub spans: Vec<TraceSpan>,
    /// The number of later spans that were left out, before spans of one statement were joined.
    pub dropped: u64,
}

/// A time that a device spent on a statement.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSpan {
    /// The operation, and the value that it makes.
    pub name: String,
    /// How the time was spent.
    pub activity: Activity,
    /// The statement; None for operations without one.
    pub site: Option<Site>,
    /// Nanoseconds from the beginning of the run.
    pub begin_ns: u64,
    /// Nanoseconds from the beginning of the run.
    pub end_ns: u64,
}

impl Trace {
    /// The number of spans that were left out, on all devices.
    pub fn dropped(&self) -> u64 {
        self.tracks.iter().map(|track| track.dropped).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorder() -> Recorder {
        Recorder::new(Instant::now(), SPANS / 4)
    }

    fn names() -> Outline {
        let mut outline = Outline::default();
        for (line, what) in [(3, "kernel"), (0, "copy"), (3, "kernel"), (4, "transfer")] {
            outline.push(Site { file: 0, line, column: 1 }, what);
        }
        outline
    }

    #[test]
    fn memory_is_bounded_and_what_does_not_fit_is_counted() {
        let mut recorder = recorder();
        let room = recorder.spans.capacity();
        assert!((4..SPANS_OF_DEVICE).contains(&room), "{room}");
        for _ in 0..room + 8 {
            recorder.begin(0, Some(Activity::Compute));
        }
        assert_eq!((recorder.spans.len(), recorder.spans.capacity(), recorder.dropped), (room, room, 7));
        recorder.reset();
        assert_eq!((recorder.spans.len(), recorder.dropped), (0, 0));
    }

    #[test]
    fn operations_of_a_statement_are_one_span_in_each_trip() {
        let (outline, buffers) = (names(), Vec::new());
        let mut recorder = recorder();
        let activities = [Activity::Compute, Activity::Compute, Activity::Compute, Activity::Communicate];
        let spans = (0..2).flat_map(|_| (0..4).zip(activities));
        recorder.spans = spans
            .zip(0..)
            .map(|((operation, activity), at)| RecordedSpan {
                operation,
                activity,
                begin: 100 + 10 * at,
                end: 110 + 10 * at,
            })
            .collect();
        let track = recorder.track(0, "device 0".to_string(), &StatementNames::new(&outline, &buffers), 100);
        let line = |span: &TraceSpan| span.site.map(|site| site.line);
        let shown = track.spans.iter().map(|span| (span.name.as_str(), line(span), span.begin_ns, span.end_ns));
        let shown: Vec<_> = shown.collect();
        assert_eq!(shown.len(), 8, "a copy between two kernels has a name of its own: {shown:?}");
        assert_eq!(shown[1], ("copy", Some(3), 10, 20));
        assert_eq!(shown[3], ("transfer", Some(4), 30, 40));
        recorder.spans.retain(|span| span.operation != 1);
        let track = recorder.track(0, "device 0".to_string(), &StatementNames::new(&outline, &buffers), 100);
        let shown: Vec<_> = track.spans.iter().map(|span| (span.name.as_str(), span.begin_ns, span.end_ns)).collect();
        assert_eq!(shown, [("kernel", 0, 30), ("transfer", 30, 40), ("kernel", 40, 70), ("transfer", 70, 80)]);
    }

    #[test]
    fn a_device_that_waits_has_a_span_for_it() {
        let mut recorder = recorder();
        recorder.begin(0, Some(Activity::Compute));
        recorder.begin(3, None);
        recorder.go_on();
        recorder.begin(3, Some(Activity::Communicate));
        recorder.begin(4, None);
        // A barrier that is complete at once is no wait.
        recorder.begin(5, None);
        let activities: Vec<Activity> = recorder.spans.iter().map(|span| span.activity).collect();
        assert_eq!(activities, [Activity::Compute, Activity::Wait, Activity::Communicate]);
        assert!(recorder.spans.windows(2).all(|pair| pair[0].end <= pair[1].begin));
    }
}
