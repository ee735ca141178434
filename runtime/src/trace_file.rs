//! The file of `--trace`, in the format of Chrome's trace viewer, which Perfetto reads: a track for each device, and on it a span for each
//! statement.
//!
//! If there are several processes, each writes a file with its number before the extension: `run.json` becomes `run.0.json`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::io::{check_writable, resolve, write_file};
use crate::outputs::Outputs;
use crate::trace::{Trace, TraceSpan, TraceTrack};
use crate::trap::RunError;
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
            return Err(RunError::new("E0702", format!("`{}` would be written twice", other.display())));
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

/// An event of the file: a span, or the name of a process or track.
#[derive(Serialize)]
struct JsonEvent<'a> {
    ph: &'static str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cat: Option<&'static str>,
    pid: usize,
    tid: usize,
    /// Microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<f64>,
    /// Microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    args: JsonEventArgs<'a>,
}

#[derive(Default, Serialize)]
struct JsonEventArgs<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sort_index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u32>,
}

fn write_json(trace: &Trace, program: &Program, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"dropped_spans\":{}}},", trace.dropped())?;
    write!(out, "\"traceEvents\":[\n{}", event_text(&named(trace, "process_name", 0, Some(&program.entry), None))?)?;
    for track in &trace.tracks {
        let number = track.number;
        for event in [
            named(trace, "thread_name", number, Some(&track.name), None),
            named(trace, "thread_sort_index", number, None, Some(number)),
        ] {
            write!(out, ",\n{}", event_text(&event)?)?;
        }
        for span in &track.spans {
            write!(out, ",\n{}", event_text(&shown(trace, track, span, &program.files))?)?;
        }
    }
    out.write_all(b"\n]}\n")
}

fn event_text(event: &JsonEvent<'_>) -> io::Result<String> {
    serde_json::to_string(event).map_err(io::Error::other)
}

/// An event that names or orders a track, or names the process.
fn named<'a>(
    trace: &Trace,
    what: &'static str,
    track: usize,
    name: Option<&'a str>,
    sort_index: Option<usize>,
) -> JsonEvent<'a> {
    let args = JsonEventArgs { name, sort_index, ..JsonEventArgs::default() };
    JsonEvent { ph: "M", name: what, cat: None, pid: trace.process, tid: track, ts: None, dur: None, args }
}

/// A span as an event.
fn shown<'a>(trace: &Trace, track: &TraceTrack, span: &'a TraceSpan, files: &'a [String]) -> JsonEvent<'a> {
    let microseconds = |nanoseconds: u64| nanoseconds as f64 / 1e3;
    let args = JsonEventArgs {
        file: span.site.and_then(|site| files.get(usize::from(site.file))).map(String::as_str),
        line: span.site.map(|site| site.line),
        column: span.site.map(|site| site.column),
        ..JsonEventArgs::default()
    };
    JsonEvent {
        ph: "X",
        name: &span.name,
        cat: Some(span.activity.name()),
        pid: trace.process,
        tid: track.number,
        ts: Some(microseconds(span.begin_ns)),
        dur: Some(microseconds(span.end_ns - span.begin_ns)),
        args,
    }
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
