//! The page of `spmdc report`: one HTML file, which needs no other.
//!
//! The data of the report is JSON in the page, and a script draws it. Nothing is fetched, and no text of a program is read as HTML.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use spmdc_compiler::pipeline::Compilation;
use spmdc_compiler::report::document::{ProgramDocument, document};
use spmdc_layout::cost::{of_copy, of_product};
use spmdc_runtime::errors::trap::RunError;

use crate::errors::{CommandError, absent};
use crate::sources::SourceTexts;

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");

/// Much work, from which the costs of one operation and of one byte follow.
const MUCH: u64 = 1_000_000_000;

#[derive(Serialize)]
struct Report<'r> {
    files: Vec<File<'r>>,
    program: ProgramDocument,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<&'r MeasuredRun>,
    roofs: Roofs,
}

#[derive(Serialize)]
struct File<'r> {
    name: &'r str,
    text: &'r str,
}

/// The limits of one core by the cost model.
#[derive(Serialize)]
struct Roofs {
    operations_per_ns: f64,
    bytes_per_ns: f64,
}

/// The times of a run, from its trace.
#[derive(Debug, Serialize)]
pub struct MeasuredRun {
    /// From the first beginning to the last end, in nanoseconds.
    ns: f64,
    lines: Vec<MeasuredLine>,
}

/// The nanoseconds that the slowest device spent on a line: all of them, and those of computation.
#[derive(Debug, Serialize)]
struct MeasuredLine {
    file: usize,
    line: u64,
    ns: f64,
    compute_ns: f64,
}

/// The nanoseconds of a line on each device, by process and thread: all of them, and those of computation.
type DeviceTimes = BTreeMap<(u64, u64), [f64; 2]>;

impl MeasuredRun {
    /// The times in the text of a trace of `--trace`. A text of another form is an internal error.
    pub fn of_trace(trace: &str, texts: &SourceTexts) -> Result<MeasuredRun, CommandError> {
        let malformed = |why: &dyn std::fmt::Display| RunError::internal(format!("malformed trace: {why}"));
        let trace: Value = serde_json::from_str(trace).map_err(|error| malformed(&error))?;
        let events = trace["traceEvents"].as_array().ok_or_else(|| malformed(&"it has no events"))?;
        let numbers: BTreeMap<&str, usize> =
            texts.iter().enumerate().map(|(number, file)| (file.name.as_str(), number)).collect();
        let mut lines: BTreeMap<(usize, u64), DeviceTimes> = BTreeMap::new();
        let (mut begin, mut end) = (f64::INFINITY, f64::NEG_INFINITY);
        for event in events.iter().filter(|event| event["ph"] == "X") {
            let microseconds = |name: &str| event[name].as_f64().unwrap_or(0.0);
            let (start, duration) = (microseconds("ts"), microseconds("dur"));
            (begin, end) = (begin.min(start), end.max(start + duration));
            let file = event["args"]["file"].as_str().and_then(|file| numbers.get(file));
            let (Some(&file), Some(line)) = (file, event["args"]["line"].as_u64()) else { continue };
            let device = (event["pid"].as_u64().unwrap_or(0), event["tid"].as_u64().unwrap_or(0));
            let [all, compute] = lines.entry((file, line)).or_default().entry(device).or_default();
            *all += duration * 1e3;
            if event["cat"] == "compute" {
                *compute += duration * 1e3;
            }
        }
        let slowest = |devices: &DeviceTimes, at: usize| devices.values().map(|times| times[at]).fold(0.0, f64::max);
        let lines = lines.into_iter().map(|((file, line), devices)| MeasuredLine {
            file,
            line,
            ns: slowest(&devices, 0),
            compute_ns: slowest(&devices, 1),
        });
        Ok(MeasuredRun { ns: ((end - begin) * 1e3).max(0.0), lines: lines.collect() })
    }
}

/// The page of a program that was compiled to its end, and of a run if it was measured.
pub fn page(
    title: &str,
    compilation: &Compilation,
    run: Option<&MeasuredRun>,
    texts: &SourceTexts,
) -> Result<String, CommandError> {
    let program = document(compilation, &|span| {
        let (line, column) = texts.line_column(span);
        (usize::from(span.file.0), line, column)
    });
    let report = Report {
        files: texts.iter().map(|file| File { name: &file.name, text: &file.text }).collect(),
        program: program.ok_or_else(|| absent("program"))?,
        run,
        roofs: Roofs {
            operations_per_ns: 2.0 * MUCH as f64 / of_product(MUCH as f64),
            bytes_per_ns: MUCH as f64 / of_copy(MUCH),
        },
    };
    let data = serde_json::to_string(&report).map_err(|error| RunError::internal(error.to_string()))?;
    // The end of a script element would end it inside of a string, too.
    let data = data.replace('<', "\\u003c");
    let parts = [("{style}", STYLE), ("{script}", SCRIPT), ("{data}", data.as_str())];
    let mut text = PAGE.replace("{title}", &escaped(title));
    for (name, content) in parts {
        text = text.replacen(name, content, 1);
    }
    Ok(text)
}

/// A text in HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
