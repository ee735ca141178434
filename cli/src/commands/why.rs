//! `spmdc why PROG:LINE NAME`: where a layout comes from, what forces a collective, and the edit that spares it.

use std::fmt::Write as _;
use std::path::PathBuf;

use spmdc_compiler::pipeline::{self, Options};
use spmdc_compiler::report::why::{self, Forced, Layout};
use spmdc_grammar::span::Span;
use spmdc_runtime::suggest;
use spmdc_runtime::trap::RunError;

use crate::Stop;
use crate::options::WhyCommand;
use crate::sources::{SourceTexts, load};

/// What is known of a line and its values.
pub fn why(command: &WhyCommand, texts: &mut SourceTexts) -> Result<String, Stop> {
    let mut program = command.program.clone();
    let line = line_of(&mut program.program)?;
    let loaded = load(&program, texts)?;
    let options = Options { check: loaded.options, stop_after: None, ..Options::default() };
    let compilation = pipeline::compile(&loaded.set, &options).map_err(Stop::Program)?;
    let on_line = |span: Span| span != Span::default() && span.file.0 == 0 && texts.line_column(span).0 == line;
    let layouts = why::layouts(&compilation, command.name.as_deref(), &on_line);
    if let (Some(name), true) = (&command.name, layouts.is_empty()) {
        return Err(unknown(name, line, &why::names(&compilation)).into());
    }
    let forced = why::forced(&compilation, &loaded.set, &options, &on_line);
    if layouts.is_empty() && forced.is_empty() {
        return Ok(format!("line {line} names no value and needs no collective\n"));
    }
    let mut text = String::new();
    layouts.iter().for_each(|layout| show_layout(&mut text, layout, "", texts));
    forced.iter().for_each(|forced| show_forced(&mut text, forced, texts));
    Ok(text)
}

/// Takes the line off the end of `PROG:LINE`.
fn line_of(program: &mut PathBuf) -> Result<usize, RunError> {
    let text = program.to_string_lossy().into_owned();
    let split = text.rsplit_once(':').and_then(|(path, line)| Some((PathBuf::from(path), line.parse().ok()?)));
    let Some((path, line)) = split else {
        let error = RunError::new("E0702", format!("`{text}` names no line"));
        return Err(error.with_help("write the program and a line, such as prog.spmd:7"));
    };
    *program = path;
    Ok(line)
}

fn unknown(name: &str, line: usize, names: &[String]) -> RunError {
    let error = RunError::new("E0702", format!("line {line} defines no value `{name}`"));
    if names.iter().any(|known| known == name) {
        return error.with_help(format!("`{name}` is defined on another line"));
    }
    match suggest::nearest(name, names.iter().map(String::as_str)) {
        Some(near) => error.with_help(format!("did you mean `{near}`?")),
        None => error,
    }
}

fn show_layout(text: &mut String, layout: &Layout, indent: &str, texts: &SourceTexts) {
    let place = texts.place(layout.span).map_or(String::new(), |place| format!(", {place}"));
    let _ = writeln!(text, "{indent}{}{place}", layout.value);
    if layout.axes.is_empty() {
        let _ = writeln!(text, "{indent}  nothing splits it");
    }
    for way in &layout.axes {
        let _ = writeln!(text, "{indent}  {} splits dimension {}", way.axis, way.dim);
        for (step, span) in &way.steps {
            let place = texts.place(*span).unwrap_or_default();
            let _ = writeln!(text, "{indent}    {place:<8}{step}");
        }
    }
}

fn show_forced(text: &mut String, forced: &Forced, texts: &SourceTexts) {
    let collective = &forced.collective;
    let trips = match collective.trips {
        Some(1) => String::new(),
        Some(trips) => format!(", {trips} times"),
        None => ", in every trip of a loop".to_string(),
    };
    let place = texts.place(collective.span).unwrap_or_default();
    let (kind, axes) = (collective.kind.name(), collective.axes.join(", "));
    let _ = writeln!(text, "{kind} over {axes}, {place}: {} bytes per device{trips}", collective.bytes);
    if !collective.reason.is_empty() {
        let _ = writeln!(text, "  {}", collective.reason);
    }
    forced.layouts.iter().for_each(|layout| show_layout(text, layout, "  ", texts));
    let _ = match &forced.edit {
        Some(edit) => writeln!(
            text,
            "  to spare it, write at {} `{}` instead of `{}`: of all collectives a device then receives {} bytes, not {}",
            texts.place(edit.span).unwrap_or_default(),
            edit.to,
            edit.from,
            edit.bytes_after,
            edit.bytes_before
        ),
        None => writeln!(text, "  no change of one annotation spares it and communicates less"),
    };
}
