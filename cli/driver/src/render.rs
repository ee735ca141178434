//! Renders diagnostics as text or JSON. All error output of the command passes through here.

use std::fmt;
use std::io::{self, Write};

use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, SourceCode, SourceSpan};
use spmdc_grammar::diagnostic::{Diagnostic, Severity};
use spmdc_grammar::span::{Span, line_column};
use spmdc_runtime::run::args::ErrorFormat;
use spmdc_runtime::run::start::{Failure, JsonMessage};

use crate::sources::{SourceText, SourceTexts};
use spmdc_compiler::sources::python_line;

/// Writes messages to standard error in the requested format.
pub struct Reporter {
    format: ErrorFormat,
    handler: GraphicalReportHandler,
}

impl Reporter {
    /// A reporter that draws with ASCII characters only, or with colours.
    pub fn new(format: ErrorFormat, ascii: bool, color: bool) -> Reporter {
        let theme = theme(ascii, color);
        // No links: `spmdc explain` prints the long text of a code.
        let handler = GraphicalReportHandler::new_themed(theme).with_links(false).with_width(100);
        Reporter { format, handler }
    }

    /// Writes diagnostics, one after the other.
    pub fn diagnostics(&self, diagnostics: &[Diagnostic], sources: &SourceTexts) {
        for (i, diagnostic) in diagnostics.iter().enumerate() {
            let gap = if i > 0 && self.format == ErrorFormat::Text { "\n" } else { "" };
            self.write(&format!("{gap}{}", self.render(diagnostic, sources)));
        }
    }

    /// Writes an error of the command line or of a run.
    pub fn failure(&self, failure: &Failure, sources: &SourceTexts) {
        self.write(&self.render_failure(failure, sources));
    }

    /// An error of the command line or of a run, with its source line if that is known.
    pub fn render_failure(&self, failure: &Failure, sources: &SourceTexts) -> String {
        let place = failure.error.site.zip(failure.file.as_ref());
        let file = place.and_then(|(site, name)| Some((site, sources.iter().find(|file| file.name == *name)?)));
        match (self.format, file) {
            (ErrorFormat::Text, Some((site, file))) => {
                let start = offset_of(&file.text, site.line, site.column);
                let label = LabeledSpan::new(None, start, 0);
                // An operation without regions ends with its location on the same line.
                let line = file.text[start..].lines().next().unwrap_or_default();
                let end = line.rfind("loc(").map(|end| start + end);
                let python = end.and_then(|end| python_line(&file.name, &file.text, end));
                let help = failure.error.help.iter().cloned().chain(python.as_deref().map(in_python));
                let help = Some(help.collect::<Vec<_>>().join("\n")).filter(|help| !help.is_empty());
                let shown = MietteDiagnostic {
                    code: failure.error.code.name(),
                    severity: miette::Severity::Error,
                    message: failure.error.message.clone(),
                    help,
                    labels: vec![label],
                    file: Some(file),
                    related: Vec::new(),
                };
                self.draw(&shown)
            }
            _ => failure.render(self.format),
        }
    }

    fn write(&self, text: &str) {
        // If standard error is closed, the error cannot be reported.
        let _ = io::stderr().write_all(text.as_bytes());
    }

    /// A diagnostic with its source lines, or as one line of JSON.
    pub fn render(&self, diagnostic: &Diagnostic, sources: &SourceTexts) -> String {
        match self.format {
            ErrorFormat::Text => self.draw(&shown(diagnostic, sources)),
            ErrorFormat::Json => json_line(diagnostic, sources),
        }
    }

    fn draw(&self, shown: &MietteDiagnostic) -> String {
        if shown.is_on_long_line() {
            return shown.without_source();
        }
        let mut text = String::new();
        match self.handler.render_report(&mut text, shown) {
            Ok(()) => text,
            Err(fmt::Error) => format!("error[{}]: {}\n", shown.code, shown.message),
        }
    }
}

fn theme(ascii: bool, color: bool) -> GraphicalTheme {
    match (ascii, color) {
        (false, true) => GraphicalTheme::unicode(),
        (false, false) => GraphicalTheme::unicode_nocolor(),
        (true, true) => GraphicalTheme::ascii(),
        (true, false) => GraphicalTheme::none(),
    }
}

/// The file of a diagnostic; an error in the command line may have none.
fn file_of<'a>(diagnostic: &Diagnostic, sources: &'a SourceTexts) -> Option<&'a SourceText> {
    let has_place = !diagnostic.of_command || diagnostic.span != Span::default();
    sources.get(diagnostic.span.file).filter(|_| has_place)
}

fn json_line(diagnostic: &Diagnostic, sources: &SourceTexts) -> String {
    let file = file_of(diagnostic, sources);
    let (line, column) = file.map(|file| line_column(&file.text, diagnostic.span.start as usize)).unzip();
    let help = help_text(diagnostic, file);
    let message = JsonMessage {
        code: diagnostic.code.name(),
        severity: severity_name(diagnostic.severity),
        message: &diagnostic.message,
        file: file.map(|file| file.name.as_str()),
        line: line.map(|line| line as u32),
        column: column.map(|column| column as u32),
        help: help.as_deref(),
    };
    message.to_line()
}

fn severity_name(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

/// The last line of the help of a JAX program: the line of Python.
fn in_python(line: &str) -> String {
    format!("the line of Python is {line}")
}

/// The help, and the edits as changed source lines, except edits that the help already spells out. Without either, a reference to
/// the page of the code. For a JAX program with locations, the line of Python.
fn help_text(diagnostic: &Diagnostic, file: Option<&SourceText>) -> Option<String> {
    let help = diagnostic.help.as_deref().unwrap_or_default();
    let width = diagnostic.further_edits().map(|edit| edit.replacement.chars().count()).max().unwrap_or(0);
    let mut lines: Vec<String> = help.lines().map(str::to_string).collect();
    match diagnostic.further_edits().count() {
        0 => {}
        1 => lines.push("write".to_string()),
        _ => lines.push("write one of".to_string()),
    }
    for edit in diagnostic.further_edits() {
        lines.push(format!("  {:<width$}  {}", edit.replacement, edit.note).trim_end().to_string());
    }
    if lines.is_empty() && diagnostic.severity == Severity::Error {
        lines.push(format!("see `spmdc explain {}`", diagnostic.code.name()));
    }
    let python = file.and_then(|file| python_line(&file.name, &file.text, diagnostic.span.end as usize));
    lines.extend(python.as_deref().map(in_python));
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// A diagnostic in miette's terms.
struct MietteDiagnostic<'a> {
    code: &'static str,
    severity: miette::Severity,
    message: String,
    help: Option<String>,
    labels: Vec<LabeledSpan>,
    file: Option<&'a SourceText>,
    /// Labels in other files.
    related: Vec<MietteDiagnostic<'a>>,
}

fn shown<'a>(diagnostic: &Diagnostic, sources: &'a SourceTexts) -> MietteDiagnostic<'a> {
    let span = diagnostic.span;
    let text = Some(diagnostic.label.clone()).filter(|label| !label.is_empty());
    let file = file_of(diagnostic, sources);
    let mut labels = vec![LabeledSpan::new_primary_with_span(text, range_of(span))];
    if file.is_none() {
        labels.clear();
    }
    let mut related = Vec::new();
    for label in &diagnostic.labels {
        if label.span.file == span.file {
            labels.push(LabeledSpan::new_with_span(Some(label.text.clone()), range_of(label.span)));
        } else {
            related.push(MietteDiagnostic {
                code: "",
                severity: miette::Severity::Advice,
                message: label.text.clone(),
                help: None,
                labels: vec![LabeledSpan::new_with_span(None, range_of(label.span))],
                file: sources.get(label.span.file),
                related: Vec::new(),
            });
        }
    }
    MietteDiagnostic {
        code: diagnostic.code.name(),
        severity: match diagnostic.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
        },
        message: diagnostic.message.clone(),
        help: help_text(diagnostic, file),
        labels,
        file,
        related,
    }
}

fn range_of(span: Span) -> SourceSpan {
    (span.start as usize, span.end.saturating_sub(span.start) as usize).into()
}

/// The byte offset of a one-based line and column (in characters).
fn offset_of(text: &str, line: u32, column: u32) -> usize {
    let line = (line as usize).saturating_sub(1);
    let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let within: usize = text[start..].chars().take((column as usize).saturating_sub(1)).map(char::len_utf8).sum();
    start + within
}

/// Maximum length of a line that is shown; columns are drawn one by one.
const MAX_LINE: usize = 4000;

impl MietteDiagnostic<'_> {
    fn is_on_long_line(&self) -> bool {
        let Some(file) = self.file else { return false };
        let line = |label: &LabeledSpan| {
            let at = label.offset().min(file.text.len());
            let start =
                file.text.as_bytes()[..at].iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
            let end = (label.offset() + label.len()).min(file.text.len());
            let rest = file.text.as_bytes()[end..].iter().position(|&byte| byte == b'\n');
            rest.map_or(file.text.len(), |rest| end + rest) - start
        };
        self.labels.iter().any(|label| line(label) > MAX_LINE)
            || self.related.iter().any(MietteDiagnostic::is_on_long_line)
    }

    /// The message and its source position.
    fn without_source(&self) -> String {
        let mut text = match miette::Diagnostic::code(self) {
            Some(code) => format!("{code}: {}\n", self.message),
            None => format!("{}\n", self.message),
        };
        if let (Some(file), Some(label)) = (self.file, self.labels.first()) {
            let (line, column) = line_column(&file.text, label.offset().min(file.text.len()));
            text += &format!("  at {}:{line}:{column}\n", file.name);
        }
        if let Some(help) = &self.help {
            text += &format!("  help: {help}\n");
        }
        text
    }
}

impl fmt::Debug for MietteDiagnostic<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for MietteDiagnostic<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for MietteDiagnostic<'_> {}

impl miette::Diagnostic for MietteDiagnostic<'_> {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let severity = match self.severity {
            miette::Severity::Error => "error",
            miette::Severity::Warning => "warning",
            miette::Severity::Advice => "note",
        };
        (!self.code.is_empty()).then(|| Box::new(format!("{severity}[{}]", self.code)) as Box<dyn fmt::Display>)
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(self.severity)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.file.map(|file| &file.named as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.labels.iter().cloned()))
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn miette::Diagnostic> + 'a>> {
        Some(Box::new(self.related.iter().map(|shown| shown as &dyn miette::Diagnostic)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;
    use spmdc_grammar::codes::Code;
    use spmdc_grammar::span::FileId;

    use super::*;

    const TEXT: &str = "fn main(a: f32[4@X]) -> f32[4] {\n  a @ b\n}\n";

    fn ambiguous() -> Diagnostic {
        Diagnostic::error(Code::E0301, Span::new(FileId(0), 35, 40), "the layout of this product is ambiguous")
            .here("both contracted dimensions are split over X")
            .label(Span::new(FileId(0), 8, 19), "`f32[4@X]` comes from here")
            .label(Span::new(FileId(1), 0, 5), "`b` is defined here")
            .edit(Span::new(FileId(0), 35, 40), "matmul(a, b, out=P(X))", "one all_reduce over X, 16 bytes per device")
            .edit(Span::new(FileId(0), 35, 40), "reshard(a, P(_))", "")
    }

    fn sources() -> SourceTexts {
        SourceTexts::of(&[("p.spmd", TEXT), ("b.spmd", "let b = 1;\n")])
    }

    #[test]
    fn a_diagnostic_shows_its_places_and_edits() {
        let text = Reporter::new(ErrorFormat::Text, true, false).render(&ambiguous(), &sources());
        for part in [
            "E0301",
            "the layout of this product is ambiguous",
            "p.spmd:2:3",
            "a @ b",
            "both contracted dimensions are split over X",
            "`f32[4@X]` comes from here",
            "b.spmd:1:1",
            "write one of",
            "matmul(a, b, out=P(X))  one all_reduce over X, 16 bytes per device",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        assert!(!text.contains('\u{1b}'), "colours in\n{text:?}");
    }

    #[test]
    fn json_is_one_object_a_line() {
        let line = Reporter::new(ErrorFormat::Json, true, false).render(&ambiguous(), &sources());
        assert_eq!(line.matches('\n').count(), 1);
        let object: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(object["code"], "E0301");
        assert_eq!(object["severity"], "error");
        assert_eq!((&object["file"], &object["line"], &object["column"]), (&json!("p.spmd"), &json!(2), &json!(3)));
        assert!(object["help"].as_str().unwrap().contains("matmul(a, b, out=P(X))"));
    }

    #[test]
    fn lines_and_columns_lead_back_to_bytes() {
        assert_eq!(offset_of("a\nbé = 1\n", 2, 4), 6);
        assert_eq!(offset_of("a\n", 9, 9), 2);
    }
}
