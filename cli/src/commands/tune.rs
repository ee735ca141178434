//! `spmdc tune`: measures the cost of communication on this machine, and writes the machine file.

use std::fmt::Write as _;

use spmdc_driver::errors::CommandError;
use spmdc_layout::cost::{LevelSpeed, Levels};
use spmdc_runtime::processes::tune::{MeasuredLevel, measure};
use spmdc_runtime::run::args::RunArgs;

use crate::link;
use crate::machine;
use crate::options::TuneCommand;

/// Measures and writes. Of the processes that a launcher has started the first one writes.
pub fn tune(command: &TuneCommand) -> Result<(), CommandError> {
    let measured = measure(&RunArgs::default())?;
    if !measured.reports {
        return Ok(());
    }
    let (inside, between) = (level(measured.inside), measured.between.map(level));
    link::write(machine::text(inside, between).as_bytes(), &command.output)?;
    if link::is_standard_output(&command.output) {
        return Ok(());
    }
    let mut text = String::new();
    let _ = writeln!(text, "inside a process: {}, {} threads at once", shown(inside), measured.threads);
    let _ = match between {
        Some(between) => writeln!(text, "between processes: {}, {} processes", shown(between), measured.processes),
        None => {
            let default = shown(Levels::DEFAULT.between);
            writeln!(text, "between processes: {default}, assumed, as this process was started alone")
        }
    };
    let _ = writeln!(text, "`{}` is written", command.output.display());
    crate::print(&text)
}

fn level(measured: MeasuredLevel) -> LevelSpeed {
    LevelSpeed { bytes_per_second: measured.bytes_per_second, latency_nanos: measured.latency_nanos }
}

/// `2.0 GB/s and 10.0 us`.
fn shown(level: LevelSpeed) -> String {
    format!("{:.1} GB/s and {:.1} us", level.bytes_per_second as f64 * 1e-9, level.latency_nanos as f64 * 1e-3)
}
