//! Layouts that a search has found, as edits of the source.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use spmdc_abi::words::{bytes, counted};
use spmdc_compiler::report::estimate::RunTime;
use spmdc_compiler::search::{Price, ProposedEdit, ProposedLayout, SearchResult, SiteKind, SourceEdit};
use spmdc_grammar::span::Span;
use spmdc_runtime::errors::trap::RunError;

use super::timeline::duration;
use crate::errors::CommandError;
use crate::sources::SourceTexts;
use crate::table::{ColumnAlign, Table, grouped, indented, width};

/// The result of a search, as tables.
pub fn show(
    result: &SearchResult,
    limit: Option<u64>,
    (is_written, explains): (bool, bool),
    ascii: bool,
    texts: &SourceTexts,
) -> String {
    let columns = [
        ("", ColumnAlign::Left),
        ("time", ColumnAlign::Right),
        ("received", ColumnAlign::Right),
        ("collectives", ColumnAlign::Right),
        ("operations", ColumnAlign::Right),
        ("memory", ColumnAlign::Right),
    ];
    let mut table = Table::new(&columns);
    let mut row = |name: String, price: &Price| {
        let Price { time, received, collectives, operations, memory } = *price;
        let beyond = limit.filter(|&limit| memory > limit);
        let remark = beyond.map_or(String::new(), |limit| format!("beyond the limit of {}", bytes(limit)));
        let numbers = [grouped(collectives), grouped(operations), bytes(memory)];
        table.row([name, duration(time.total()), bytes(received)].into_iter().chain(numbers).collect(), &remark);
    };
    row("as it is".to_string(), &result.before);
    for (at, layout) in result.layouts.iter().enumerate() {
        row(if at == 0 { "best found".to_string() } else { format!("alternative {at}") }, &layout.price);
    }
    let legend = "estimated time of a run, and the costs of one device:";
    let mut text = shapes(result, ascii);
    let _ = write!(text, "{}{}", indented(legend, "", "", width()), table.render(width(), ascii));
    for (at, layout) in result.layouts.iter().enumerate() {
        let ProposedLayout { edits, price, .. } = layout;
        let title = match at {
            0 if edits.is_empty() => "the program is best as it is".to_string(),
            0 if is_written => "written:".to_string(),
            0 => "annotations to write:".to_string(),
            _ if edits.is_empty() => format!("alternative {at}: no annotation"),
            _ => format!("alternative {at}:"),
        };
        let _ = write!(text, "\n{title}\n");
        for each in edits {
            let place = texts.place(each.edit.span).unwrap_or_default();
            let (from, to) = &each.shown;
            let _ = writeln!(text, "  {place}  {from}  ->  {to}");
            if at == 0 {
                let effect = match &each.without {
                    Some(without) => effect(price, without),
                    None => "the others need it".to_string(),
                };
                let _ = writeln!(text, "      {}: {effect}", described(each));
            }
        }
        if explains && at > 0 {
            text.push_str(&differences(&result.layouts[0], layout, texts));
        }
    }
    let _ = write!(text, "\n{}", extent(result));
    text
}

/// The meshes that were compared, if any.
fn shapes(result: &SearchResult, ascii: bool) -> String {
    if result.shapes.is_empty() {
        return String::new();
    }
    let columns = [
        ("mesh", ColumnAlign::Left),
        ("time", ColumnAlign::Right),
        ("received", ColumnAlign::Right),
        ("memory", ColumnAlign::Right),
    ];
    let mut table = Table::new(&columns);
    for (axes, price) in &result.shapes {
        let axes: Vec<String> = axes.iter().map(|(name, size)| format!("{name}={size}")).collect();
        let Price { time, received, memory, .. } = *price;
        table.row(vec![axes.join(","), duration(time.total()), bytes(received), bytes(memory)], "");
    }
    let legend = "meshes, each with the best layout that was found on it:";
    format!("{}{}\n", indented(legend, "", "", width()), table.render(width(), ascii))
}

/// Where and by how much an alternative communicates more or less than the best layout.
fn differences(best: &ProposedLayout, other: &ProposedLayout, texts: &SourceTexts) -> String {
    let mut moved: BTreeMap<(Span, &str), [u64; 2]> = BTreeMap::new();
    for (side, layout) in [best, other].into_iter().enumerate() {
        for each in &layout.collectives {
            let received = moved.entry((each.span, each.kind.name())).or_default();
            received[side] = received[side].saturating_add(each.received.saturating_mul(each.assumed_trips));
        }
    }
    let time = |layout: &ProposedLayout| {
        let RunTime { work, communication } = layout.price.time;
        format!("{} of work and {} of communication", duration(work), duration(communication))
    };
    let mut text = format!("    it takes {}; the best {}\n", time(other), time(best));
    for ((span, kind), [of_best, of_other]) in moved.into_iter().filter(|(_, [a, b])| a != b) {
        let place = texts.place(span).unwrap_or_default();
        let _ = writeln!(text, "    {kind} at {place}: {} received, the best {}", bytes(of_other), bytes(of_best));
    }
    text
}

/// The place of an edit, in words.
fn described(edit: &ProposedEdit) -> String {
    match edit.kind {
        SiteKind::Parameter => format!("parameter `{}`", edit.name),
        SiteKind::Result => edit.name.clone(),
        SiteKind::Named => format!("`{}`", edit.name),
    }
}

/// The difference that an annotation makes.
fn effect(price: &Price, without: &Price) -> String {
    let difference = |with: u64, without: u64| match with.cmp(&without) {
        std::cmp::Ordering::Less => format!("{} less", bytes(without - with)),
        std::cmp::Ordering::Equal => "the same".to_string(),
        std::cmp::Ordering::Greater => format!("{} more", bytes(with - without)),
    };
    let (own, others) = (price.time.total(), without.time.total());
    let time = match own <= others {
        true => format!("{} less", duration(others - own)),
        false => format!("{} more", duration(own - others)),
    };
    let (received, memory) = (difference(price.received, without.received), difference(price.memory, without.memory));
    format!("time {time}, received {received}, memory {memory}")
}

/// The extent of the search, and what was left out.
fn extent(result: &SearchResult) -> String {
    let (open, kept) = result.places;
    let mut text = format!("{} about {}", counted(result.decisions, "decision"), counted(open, "place"));
    if kept > 0 {
        let _ = write!(text, ", and {} of the program kept", counted(kept, "annotation"));
    }
    let _ = write!(text, "; {} compiled", counted(result.priced, "candidate"));
    let end = match (result.is_exhaustive && !result.is_cut, result.is_cut) {
        (true, _) => ", which are all",
        (false, true) => "; the bound of the search was reached, so a better one may exist",
        (false, false) => "; no single change makes the best one better",
    };
    text.push_str(end);
    text.push('\n');
    indented(&text, "", "", width())
}

#[derive(Serialize)]
struct PriceJson {
    nanoseconds: f64,
    communication: f64,
    received: u64,
    collectives: u64,
    operations: u64,
    memory: u64,
}

impl PriceJson {
    fn of(price: &Price) -> PriceJson {
        let Price { time, received, collectives, operations, memory } = *price;
        let (nanoseconds, communication) = (time.total(), time.communication);
        PriceJson { nanoseconds, communication, received, collectives, operations, memory }
    }
}

#[derive(Serialize)]
struct EditJson {
    line: usize,
    column: usize,
    from: String,
    to: String,
    place: String,
    without: Option<PriceJson>,
}

#[derive(Serialize)]
struct LayoutJson {
    price: PriceJson,
    edits: Vec<EditJson>,
}

#[derive(Serialize)]
struct AxisJson {
    name: String,
    size: usize,
}

fn mesh_json(mesh: &[(String, usize)]) -> Vec<AxisJson> {
    mesh.iter().map(|(name, size)| AxisJson { name: name.clone(), size: *size }).collect()
}

#[derive(Serialize)]
struct ShapeJson {
    mesh: Vec<AxisJson>,
    price: PriceJson,
}

#[derive(Serialize)]
struct SearchJson {
    mesh: Vec<AxisJson>,
    shapes: Vec<ShapeJson>,
    before: PriceJson,
    layouts: Vec<LayoutJson>,
    places: usize,
    kept: usize,
    decisions: usize,
    candidates: usize,
    exhaustive: bool,
    cut: bool,
}

/// The result of a search as a JSON object with a line break.
pub fn json(result: &SearchResult, texts: &SourceTexts) -> Result<String, CommandError> {
    let edit = |each: &ProposedEdit| {
        let (line, column) = texts.line_column(each.edit.span);
        let SourceEdit { from, to, .. } = each.edit.clone();
        EditJson { line, column, from, to, place: each.name.clone(), without: each.without.as_ref().map(PriceJson::of) }
    };
    let layout = |each: &ProposedLayout| LayoutJson {
        price: PriceJson::of(&each.price),
        edits: each.edits.iter().map(edit).collect(),
    };
    let shapes =
        result.shapes.iter().map(|(mesh, price)| ShapeJson { mesh: mesh_json(mesh), price: PriceJson::of(price) });
    let object = SearchJson {
        mesh: mesh_json(&result.mesh),
        shapes: shapes.collect(),
        before: PriceJson::of(&result.before),
        layouts: result.layouts.iter().map(layout).collect(),
        places: result.places.0,
        kept: result.places.1,
        decisions: result.decisions,
        candidates: result.priced,
        exhaustive: result.is_exhaustive,
        cut: result.is_cut,
    };
    let text = serde_json::to_string(&object).map_err(|error| RunError::internal(error.to_string()))?;
    Ok(format!("{text}\n"))
}
