//! The statistics of a run: the object of `--stats json` and the lines of `--bench`.

use crate::run::report::RunReport;
use crate::text::json::{JsonObject, array};
use spmdc_abi::sorted::order;

/// One JSON object on one line.
///
/// `run_ms` has one time for each requested run, without the warm-up; counts and bytes of collectives are those of one run.
pub struct Stats {
    /// Milliseconds that the compiler took.
    pub compile_ms: f64,
    /// Milliseconds from the decoded program to its first step: arguments read, memory mapped, threads started.
    pub load_ms: f64,
    /// Milliseconds of each run.
    pub run_ms: Vec<f64>,
    /// Bytes of all arenas that one device uses.
    pub peak_bytes_per_device: u64,
    /// The collectives of one run, by kind.
    pub collectives: Vec<CollectiveStats>,
}

/// All executions of the collectives of one kind in one run.
pub struct CollectiveStats {
    /// The name of the kind.
    pub kind: &'static str,
    /// The number of executions.
    pub count: u64,
    /// Bytes of one device's operand, summed over the executions.
    pub bytes: u64,
}

impl Stats {
    /// The statistics of the timed runs, which made `reports`.
    pub fn new(compile_ms: f64, load_ms: f64, reports: &[RunReport]) -> Stats {
        let last = reports.last();
        let collectives = last.map(|report| report.collectives.as_slice()).unwrap_or_default();
        Stats {
            compile_ms: round(compile_ms),
            load_ms: round(load_ms),
            run_ms: reports.iter().map(|report| round(report.run_ms)).collect(),
            peak_bytes_per_device: last.map_or(0, |report| report.peak_bytes_per_device),
            collectives: collectives
                .iter()
                .map(|total| CollectiveStats { kind: total.kind.name(), count: total.count, bytes: total.bytes })
                .collect(),
        }
    }

    /// The statistics as one JSON object.
    pub fn to_json(&self) -> String {
        let collective = |it: &CollectiveStats| {
            JsonObject::new().text("kind", it.kind).field("count", it.count).field("bytes", it.bytes).end()
        };
        JsonObject::new()
            .float("compile_ms", self.compile_ms)
            .float("load_ms", self.load_ms)
            .field("run_ms", array(self.run_ms.iter().map(|ms| format!("{ms:?}"))))
            .field("peak_bytes_per_device", self.peak_bytes_per_device)
            .field("collectives", array(self.collectives.iter().map(collective)))
            .end()
    }

    /// `10 runs: min 1.204 ms, median 1.22 ms, mean 1.25 ms, max 1.602 ms`
    pub fn bench_line(&self) -> String {
        let mut times = self.run_ms.clone();
        // The bits of numbers that are not negative are in the order of the numbers.
        let bits: Vec<u64> = times.iter().map(|time| time.max(0.0).to_bits()).collect();
        times = order(&bits).into_iter().map(|at| times[at]).collect();
        let (Some(least), Some(most)) = (times.first(), times.last()) else {
            return "0 runs".to_string();
        };
        let middle = times.len() / 2;
        let median = if times.len() % 2 == 1 { times[middle] } else { (times[middle - 1] + times[middle]) / 2.0 };
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        let (median, mean) = (round(median), round(mean));
        let runs = if times.len() == 1 { "1 run".to_string() } else { format!("{} runs", times.len()) };
        format!("{runs}: min {least} ms, median {median} ms, mean {mean} ms, max {most} ms")
    }
}

/// Rounds to the microsecond; further digits are noise.
fn round(ms: f64) -> f64 {
    (ms * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::report::CollectiveTotal;
    use spmdc_abi::CollectiveKind;

    fn report(run_ms: f64) -> RunReport {
        let total = CollectiveTotal { kind: CollectiveKind::AllReduce, count: 3, bytes: 96 };
        RunReport { run_ms, collectives: vec![total], peak_bytes_per_device: 512 }
    }

    #[test]
    fn stats_are_one_json_object() {
        let stats = Stats::new(1.23456, 0.5, &[report(2.0), report(1.0)]);
        let expected = r#"{"compile_ms":1.235,"load_ms":0.5,"run_ms":[2.0,1.0],"peak_bytes_per_device":512,"collectives":[{"kind":"all_reduce","count":3,"bytes":96}]}"#;
        assert_eq!(stats.to_json(), expected);
    }

    #[test]
    fn a_bench_tells_the_spread() {
        let stats = Stats::new(0.0, 0.0, &[report(4.0), report(1.0), report(2.0), report(2.5)]);
        assert_eq!(stats.bench_line(), "4 runs: min 1 ms, median 2.25 ms, mean 2.375 ms, max 4 ms");
    }
}
