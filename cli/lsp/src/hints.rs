//! Inlay hints: the layouts of variables, and the bytes that collectives move.

use std::collections::BTreeMap;

use lsp_types::{InlayHint, InlayHintKind, InlayHintLabel, InlayHintTooltip};
use spmdc_abi::words::bytes;
use spmdc_compiler::totals::Collective;

use crate::documents::ParsedFile;
use crate::state::ServerState;
use crate::symbols::Annotation;
use crate::values::{NamedValue, Seen};

/// Maximum characters of a hint.
const MAX_LABEL: usize = 60;

/// The hints of a range of lines.
pub fn hints(state: &ServerState, file: &ParsedFile, lines: lsp_types::Range) -> Vec<InlayHint> {
    let mut found = Vec::new();
    for seen in Seen::all(state, file) {
        layouts(&seen, file, &mut found);
        exchanges(&seen, file, &mut found);
    }
    found.retain(|hint| lines.start <= hint.position && hint.position <= lines.end);
    found.sort_by_key(|hint| hint.position);
    let text = |hint: &InlayHint| match &hint.label {
        InlayHintLabel::String(text) => text.clone(),
        InlayHintLabel::LabelParts(_) => String::new(),
    };
    found.dedup_by(|next, hint| next.position == hint.position && text(next) == text(hint));
    found
}

/// The layouts of variables without an annotation that has one, after their names or types.
fn layouts(seen: &Seen, file: &ParsedFile, found: &mut Vec<InlayHint>) {
    let mut by_place: BTreeMap<usize, Vec<NamedValue<'_>>> = BTreeMap::new();
    for (range, value) in seen.named() {
        by_place.entry(range.start).or_default().push(value);
    }
    for (start, values) in by_place {
        let Some(binding) = file.symbols.binding(start) else { continue };
        let place = match binding.annotation {
            Some(Annotation::Absent) => binding.range.end,
            Some(Annotation::WithoutLayout(span)) => span.end as usize,
            Some(Annotation::WithLayout) | None => continue,
        };
        let whole = types(&values);
        let label =
            if binding.annotation == Some(Annotation::Absent) { format!(": {whole}") } else { format!(" {whole}") };
        let label = match label.char_indices().nth(MAX_LABEL) {
            Some((end, _)) => format!("{}…", &label[..end]),
            None => label,
        };
        found.push(InlayHint {
            position: file.lines.position(&file.text, place),
            label: InlayHintLabel::String(label),
            kind: Some(InlayHintKind::TYPE),
            text_edits: None,
            tooltip: Some(InlayHintTooltip::String(whole)),
            padding_left: None,
            padding_right: None,
            data: None,
        });
    }
}

/// The types that a variable has, each once: `f32[8@X]`, `{ w: f32[2], b: f32 }`, `(f32, i32)`, `f32[8@X] or f32[4@X]`.
pub fn types(values: &[NamedValue<'_>]) -> String {
    let parts: Vec<(Vec<&str>, String)> =
        values.iter().map(|value| (value.path().split('.').skip(1).collect(), value.shown())).collect();
    let parts: Vec<Part<'_>> = parts.iter().map(|(path, shown)| (path.as_slice(), shown.as_str())).collect();
    tree(&parts)
}

/// A part of a value: its path and its type.
type Part<'p> = (&'p [&'p str], &'p str);

/// The type of a tree of these parts.
fn tree(parts: &[Part<'_>]) -> String {
    let mut leaves: Vec<&str> = Vec::new();
    let mut fields: Vec<(&str, Vec<Part<'_>>)> = Vec::new();
    for (path, shown) in parts {
        match path {
            [] if leaves.contains(shown) => {}
            [] => leaves.push(shown),
            [field, rest @ ..] => match fields.iter_mut().find(|(known, _)| known == field) {
                Some((_, own)) => own.push((rest, shown)),
                None => fields.push((field, vec![(rest, shown)])),
            },
        }
    }
    let is_tuple = fields.iter().all(|(field, _)| field.starts_with(|first: char| first.is_ascii_digit()));
    let mut alternatives: Vec<String> = leaves.into_iter().map(str::to_string).collect();
    if !fields.is_empty() && is_tuple {
        let parts: Vec<String> = fields.iter().map(|(_, own)| tree(own)).collect();
        alternatives.push(format!("({})", parts.join(", ")));
    } else if !fields.is_empty() {
        let parts: Vec<String> = fields.iter().map(|(field, own)| format!("{field}: {}", tree(own))).collect();
        alternatives.push(format!("{{ {} }}", parts.join(", ")));
    }
    alternatives.join(" or ")
}

/// The collectives of each line at its end.
fn exchanges(seen: &Seen, file: &ParsedFile, found: &mut Vec<InlayHint>) {
    let mut by_line: BTreeMap<usize, Vec<&Collective>> = BTreeMap::new();
    let of_file = seen.compiled.collectives.iter().filter(|collective| collective.span.file == seen.file);
    for collective in of_file {
        if let Some(range) = seen.present(collective.span) {
            by_line.entry(file.lines.line(range.start)).or_default().push(collective);
        }
    }
    for (line, collectives) in by_line {
        let end = file.lines.range(&file.text, line).end;
        let reasons: Vec<String> = collectives.iter().map(|collective| described(collective)).collect();
        found.push(InlayHint {
            position: file.lines.position(&file.text, end),
            label: InlayHintLabel::String(summary(&collectives)),
            kind: None,
            text_edits: None,
            tooltip: Some(InlayHintTooltip::String(reasons.join("\n"))),
            padding_left: Some(true),
            padding_right: None,
            data: None,
        });
    }
}

/// `all_reduce over Y: 1.0 KiB received`, `3 collectives: 2.0 KiB received, 10 times`.
fn summary(collectives: &[&Collective]) -> String {
    let received: u64 = collectives.iter().map(|collective| collective.received).sum();
    let head = match collectives {
        [one] => format!("{} over {}", one.kind.name(), one.axes.join(", ")),
        several => format!("{} collectives", several.len()),
    };
    let trips = collectives.first().map_or(Some(1), |collective| collective.trips);
    let is_common = collectives.iter().all(|collective| collective.trips == trips);
    format!("{head}: {} received{}", bytes(received), if is_common { times(trips) } else { String::new() })
}

fn times(trips: Option<u64>) -> String {
    match trips {
        Some(1) => String::new(),
        Some(trips) => format!(", {trips} times"),
        None => ", in every trip of a loop".to_string(),
    }
}

/// `all_reduce over Y: 512 bytes per device, 384 bytes received, 10 times: the reason`.
pub fn described(collective: &Collective) -> String {
    let Collective { kind, axes, bytes: operand, received, trips, reason, .. } = collective;
    let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    let (operand, received) = (bytes(*operand), bytes(*received));
    format!(
        "{} over {}: {operand} per device, {received} received{}{reason}",
        kind.name(),
        axes.join(", "),
        times(*trips)
    )
}
