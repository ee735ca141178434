//! The file of `--trace`, in the format of Chrome's trace viewer, which Perfetto reads: a track for each device, and on it a span for each
//! statement.
//!
//! If there are several processes, each writes a file with its number before the extension: `run.json` becomes `run.0.json`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::data::outputs::Outputs;
use crate::errors::trap::{RunCode, RunError};
use crate::io::{check_writable, resolve, write_file};
use crate::text::json::JsonObject;
use crate::text::trace::{Trace, TraceSpan, TraceTrack};
use spmdc_abi::Program;

/// The file that `--trace` names, for one process.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TraceFile {
    path: PathBuf,
}

impl TraceFile {
    /// For a process, by its number and the number of processes. The file must be writable, and different from all other outputs.
    pub fn plan(name: &str, (rank, count): (usize, usize), outputs: &Outputs) -> Result<TraceFile, RunError> {
        let whole = Path::new(name);
        let path = if count == 1 { whole.to_path_buf() } else { numbered(whole, rank) };
        if let Some(other) = outputs.paths().find(|other| resolve(other) == resolve(&path)) {
            return Err(RunError::new(RunCode::E0702, format!("`{}` would be written twice", other.display())));
        }
        check_writable(&path)?;
        Ok(TraceFile { path })
    }

    /// Writes the record of a run of this program.
    pub fn write(&self, trace: &Trace, program: &Program) -> Result<(), RunError> {
        write_file(&self.path, |out| write_json(trace, program, out))
    }
}

/// `run.json` of process 2 is `run.2.json`.
fn numbered(path: &Path, rank: usize) -> PathBuf {
    let ending = path.extension().map(|ending| ending.to_string_lossy().into_owned());
    path.with_extension(match ending {
        Some(ending) => format!("{rank}.{ending}"),
        None => rank.to_string(),
    })
}

fn write_json(trace: &Trace, program: &Program, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"dropped_spans\":{}}},", trace.dropped())?;
    let name = |name: &str| JsonObject::new().text("name", name);
    write!(out, "\"traceEvents\":[\n{}", named(trace, "process_name", 0, name(&program.entry)))?;
    for track in &trace.tracks {
        let number = track.number;
        for event in [
            named(trace, "thread_name", number, name(&track.name)),
            named(trace, "thread_sort_index", number, JsonObject::new().field("sort_index", number)),
        ] {
            write!(out, ",\n{event}")?;
        }
        for span in &track.spans {
            write!(out, ",\n{}", shown(trace, track, span, &program.files))?;
        }
    }
    out.write_all(b"\n]}\n")
}

/// The beginning of an event, which is a span (`X`) or the name of a process or track (`M`), and belongs to a process and a track.
fn event(kind: &str, name: &str) -> JsonObject {
    JsonObject::new().text("ph", kind).text("name", name)
}

/// An event that names or orders a track, or names the process.
fn named(trace: &Trace, what: &str, track: usize, args: JsonObject) -> String {
    event("M", what).field("pid", trace.process).field("tid", track).field("args", args.end()).end()
}

/// A span as an event.
fn shown(trace: &Trace, track: &TraceTrack, span: &TraceSpan, files: &[String]) -> String {
    let microseconds = |nanoseconds: u64| nanoseconds as f64 / 1e3;
    let mut args = JsonObject::new();
    if let Some(site) = span.site {
        if let Some(file) = files.get(usize::from(site.file)) {
            args = args.text("file", file);
        }
        args = args.field("line", site.line).field("column", site.column);
    }
    event("X", &span.name)
        .text("cat", span.activity.name())
        .field("pid", trace.process)
        .field("tid", track.number)
        .float("ts", microseconds(span.begin_ns))
        .float("dur", microseconds(span.end_ns - span.begin_ns))
        .field("args", args.end())
        .end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_has_a_file() {
        let name = |path: &str| numbered(Path::new(path), 2).display().to_string();
        assert_eq!((name("a/run.json"), name("run")), ("a/run.2.json".to_string(), "run.2".to_string()));
    }
}
