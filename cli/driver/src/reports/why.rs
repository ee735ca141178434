//! The source of a layout, the cause of a collective, and the edit that avoids it.

use std::fmt::Write as _;

use spmdc_check::sources::SourceSet;
use spmdc_compiler::pipeline::{Compilation, Options};
use spmdc_compiler::report::why::{self, Forced, HostEffect, Tried, ValueLayout};
use spmdc_grammar::span::Span;
use spmdc_runtime::errors::suggest;
use spmdc_runtime::errors::trap::{RunCode, RunError};

use crate::sources::SourceTexts;
use crate::table::{grouped, indented, width};

/// The report on a line, from 1, and on its values or only that called `name`. `set` and `options` are those of the compilation. An unknown
/// name is an E0702.
pub fn why(
    compilation: &Compilation,
    (set, options): (&SourceSet, &Options),
    (line, name): (usize, Option<&str>),
    texts: &SourceTexts,
) -> Result<String, RunError> {
    let has_hosts = options.hosts.is_some();
    let on_line = |span: Span| span != Span::default() && span.file.0 == 0 && texts.line_column(span).0 == line;
    let found: Vec<(&Compilation, Vec<ValueLayout>)> =
        compilation.of_meshes().into_iter().map(|of_mesh| (of_mesh, why::layouts(of_mesh, name, &on_line))).collect();
    if let (Some(name), true) = (name, found.iter().all(|(_, layouts)| layouts.is_empty())) {
        let here: Vec<ValueLayout> =
            found.iter().flat_map(|(of_mesh, _)| why::layouts(of_mesh, None, &on_line)).collect();
        let names: Vec<String> = found.iter().flat_map(|(of_mesh, _)| why::names(of_mesh)).collect();
        return Err(unknown(name, line, &names, &here));
    }
    let mut text = String::new();
    for (at, (of_mesh, layouts)) in found.iter().enumerate() {
        let (forced, tried) = why::forced(of_mesh, set, options, &on_line);
        if layouts.is_empty() && forced.is_empty() {
            continue;
        }
        if let Some(part) = compilation.parts.get(at) {
            let _ = writeln!(text, "on {}", part.mesh.describe());
        }
        let mut shown = ShownChains::default();
        layouts.iter().for_each(|layout| show_layout(&mut text, layout, "", texts, &mut shown));
        forced.iter().for_each(|forced| show_forced(&mut text, forced, (tried, has_hosts), texts, &mut shown));
        if let Some(HostEffect { received, otherwise }) = why::effect_of_hosts(of_mesh, set, options, at) {
            let (received, otherwise) = (grouped(received), grouped(otherwise));
            let sentence = format!(
                "as bytes between hosts are dearer, the program is laid out so that a host receives {received} bytes from others in \
                 all collectives together, and not {otherwise}"
            );
            add(&mut text, &sentence, "", "  ");
        }
    }
    if text.is_empty() {
        return Ok(format!("line {line} names no value and needs no collective\n"));
    }
    Ok(text)
}

/// The error for an unknown name; it lists the values of the line, `here`.
fn unknown(name: &str, line: usize, names: &[String], here: &[ValueLayout]) -> RunError {
    let error = RunError::new(RunCode::E0702, format!("line {line} does not define a value `{name}`"));
    let mut help = if names.iter().any(|known| known == name) {
        format!("`{name}` is defined on another line")
    } else {
        let near = suggest::nearest(name, names.iter().map(String::as_str));
        near.map_or(String::new(), |near| format!("did you mean `{near}`?"))
    };
    if !help.is_empty() {
        help.push_str("; ");
    }
    let listed: Vec<&str> = here.iter().map(|layout| layout.value.as_str()).collect();
    match listed.as_slice() {
        [] => help.push_str("this line defines no values"),
        listed => {
            let _ = write!(help, "this line defines {}", listed.join(", "));
        }
    }
    error.with_help(help)
}

/// The chains that have been shown, with their values: each suffix of their steps.
#[derive(Default)]
struct ShownChains<'a>(Vec<(&'a [(String, Span)], &'a str)>);

fn show_layout<'a>(
    text: &mut String,
    layout: &'a ValueLayout,
    indent: &str,
    texts: &SourceTexts,
    shown: &mut ShownChains<'a>,
) {
    let place = texts.place(layout.span).map_or(String::new(), |place| format!(", {place}"));
    add(text, &format!("{}{place}", layout.value), indent, &format!("{indent}  "));
    if layout.axes.is_empty() {
        let _ = writeln!(text, "{indent}  replicated: nothing splits it");
    }
    for way in &layout.axes {
        let _ = writeln!(text, "{indent}  {} splits dimension {}", way.axis, way.dim);
        let others = format!("{indent}{:<12}", "");
        for (at, (step, span)) in way.steps.iter().enumerate() {
            let rest = &way.steps[at..];
            // A reference is as long as one step, so a single step is written out.
            let known = shown.0.iter().find(|(known, _)| rest.len() > 1 && *known == rest);
            if let Some((_, value)) = known {
                add(text, &format!("as shown for {value}"), &others, &others);
                break;
            }
            let place = texts.place(*span).unwrap_or_default();
            add(text, step, &format!("{indent}    {place:<7} "), &others);
            shown.0.push((rest, layout.value.as_str()));
        }
    }
}

fn show_forced<'a>(
    text: &mut String,
    forced: &'a Forced,
    (tried, has_hosts): (Tried, bool),
    texts: &SourceTexts,
    shown: &mut ShownChains<'a>,
) {
    let collective = &forced.collective;
    let trips = match collective.trips {
        Some(1) => String::new(),
        Some(trips) => format!(", {} times", grouped(trips)),
        None => ", in every trip of a loop".to_string(),
    };
    let place = texts.place(collective.span).unwrap_or_default();
    let (kind, axes, bytes) = (collective.kind.name(), collective.axes.join(", "), grouped(collective.bytes));
    let crossing = match (has_hosts, collective.crossing) {
        (false, _) => String::new(),
        (true, 0) => ", inside each host".to_string(),
        (true, crossing) => format!(", {} bytes to a host from others", grouped(crossing)),
    };
    add(text, &format!("{kind} over {axes}, {place}: {bytes} bytes per device{crossing}{trips}"), "", "  ");
    if !collective.reason.is_empty() {
        add(text, &collective.reason, "  ", "  ");
    }
    forced.layouts.iter().for_each(|layout| show_layout(text, layout, "  ", texts, shown));
    let sentence = match &forced.edit {
        Some(edit) => {
            let work = edit.flops_after as f64 / edit.flops_before.max(1) as f64;
            let (before, after) = (edit.collectives_before, edit.collectives_after);
            let fewer = if after == before {
                String::new()
            } else {
                format!(", in {} collectives instead of {}", grouped(after), grouped(before))
            };
            let more = if work < 1.1 { String::new() } else { format!(", but does {work:.1} times the operations") };
            format!(
                "to avoid it, write `{}` instead of `{}` at {}: in all collectives together a device then receives {} bytes instead \
                 of {}{fewer}{more}",
                edit.to,
                edit.from,
                texts.place(edit.span).unwrap_or_default(),
                grouped(edit.bytes_after),
                grouped(edit.bytes_before)
            )
        }
        None => "no change of one annotation avoids it and communicates less by 1% or more".to_string(),
    };
    add(text, &sentence, "  ", "  ");
    if let Some(advice) = &forced.deferral {
        add(text, &format!("to combine the sum once after the loop, {advice}"), "  ", "  ");
    }
    if tried.is_part() {
        let Tried { compiled, possible } = tried;
        let sentence = format!("the search ended early: {compiled} of {possible} changes were tried");
        add(text, &sentence, "  ", "  ");
    }
}

/// Adds lines that fit the terminal.
fn add(text: &mut String, words: &str, first: &str, others: &str) {
    text.push_str(&indented(words, first, others, width()));
}
