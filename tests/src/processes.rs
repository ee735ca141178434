//! Programs in several processes: they give the bits, the text and the errors that they give in one.
//!
//! The processes are threads here, each with a session and memory of its own, which send each other messages through queues.

use crate::engine::{Failure, Loaded, Outcome, options};
use spmdc_runtime::data::array::HostArray;
use spmdc_runtime::run::report::RunOptions;

/// The numbers of processes for this many devices: two if they divide them, and another one in turn.
fn numbers_of_processes(devices: usize, number: usize) -> Vec<usize> {
    let others: Vec<usize> = [3, 4, 6, 8, 12].into_iter().filter(|count| devices.is_multiple_of(*count)).collect();
    let other = (!others.is_empty()).then(|| others[number % others.len()]);
    [2].into_iter().filter(|_| devices.is_multiple_of(2)).chain(other).collect()
}

/// Compares runs in several processes with what one process gave: in two where two divide the devices, and in three, four, six, eight or
/// twelve in turn, by `number`. An error says what differs.
pub fn same_in_processes(
    loaded: &Loaded,
    inputs: &[HostArray],
    expected: Result<&Outcome, &Failure>,
    number: usize,
) -> Result<(), String> {
    for (at, count) in numbers_of_processes(loaded.devices(), number).into_iter().enumerate() {
        // Every other time all devices of a process are on one thread.
        let workers = (number + at).is_multiple_of(2).then_some(1);
        // Reductions of small arrays in two rounds, too, for three of four programs.
        let two_rounds_from = if number % 8 < 6 { 0 } else { RunOptions::default().two_rounds_from };
        // In small portions for two of five programs.
        let portion = if number % 5 < 2 { 24 } else { RunOptions::default().portion };
        let options = RunOptions { two_rounds_from, portion, ..options(workers) };
        let found = loaded.run_in_processes(inputs, (count, &options));
        match (expected, found) {
            (Ok(expected), Ok(found)) => {
                if let Some(index) = (0..found.results.len()).find(|&at| found.results[at] != expected.results[at]) {
                    return Err(format!("in {count} processes result {index} has other bits"));
                }
                if found.printed != expected.printed {
                    let (expected, found) = (&expected.printed, found.printed);
                    return Err(format!("in {count} processes it prints {found:?} instead of {expected:?}"));
                }
            }
            (Err(expected), Err(found)) if *expected == found => {}
            (expected, found) => {
                return Err(format!("in {count} processes {:?} instead of {:?}", found.err(), expected.err()));
            }
        }
    }
    Ok(())
}
