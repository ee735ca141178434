//! `spmdc run --explain`: the program with a note below each line at which devices exchange data, and the layouts of its values, in
//! words and drawings. For readers who see such a program for the first time.

use std::fmt::Write as _;

use spmdc_abi::CollectiveKind;
use spmdc_abi::words::bytes;
use spmdc_check::sources::SourceSet;
use spmdc_compiler::pipeline::Compilation;
use spmdc_compiler::report::named::shown_values;
use spmdc_compiler::report::plan::{Collective, plan};
use spmdc_driver::errors::{CommandError, absent};
use spmdc_driver::reports::meshes::{axes, each_mesh};
use spmdc_driver::reports::plan::{Total, total};
use spmdc_driver::sources::SourceTexts;
use spmdc_driver::table::{grouped, indented, width};
use spmdc_ir::program::{Module, Stage};
use spmdc_layout::draw::{Style, draw_split, remarks};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::Type;

/// Maximum number of lines of a program that is shown whole; of a longer one only the lines at which devices exchange data are
/// shown.
const LINES_SHOWN: usize = 24;

/// Maximum number of layouts that are drawn, the ones that most values have; `spmdc viz` draws the others.
const LAYOUTS_DRAWN: usize = 2;

/// Maximum number of values of one layout whose types are listed.
const VALUES_LISTED: usize = 8;

/// The overview, printed before the program runs.
pub fn overview(compilation: &Compilation, style: Style, texts: &SourceTexts) -> Result<String, CommandError> {
    each_mesh(compilation, |of_mesh| overview_of_mesh(of_mesh, style, texts))
}

fn overview_of_mesh(compilation: &Compilation, style: Style, texts: &SourceTexts) -> Result<String, CommandError> {
    let module = compilation.stage(Stage::Optimized).ok_or_else(|| absent("partitioned program"))?;
    let propagated = compilation.stage(Stage::Propagated).ok_or_else(|| absent("layouts"))?;
    let program = compilation.program.as_ref().ok_or_else(|| absent("program"))?;
    let plan = plan(module, program);
    let mut text = annotated(&plan.collectives, program.device_count(), style, texts);
    text.push('\n');
    text.push_str(&layouts(propagated, style));
    let memory = bytes(plan.peak_bytes_per_device);
    let sentence = match (total(&plan.collectives), program.device_count()) {
        (_, 1) => format!("The device needs {memory} of memory."),
        (Total { times: 0, .. }, _) => {
            format!("Each device needs {memory} of memory, and receives nothing from the others.")
        }
        (Total { received, times, is_known, .. }, _) => {
            let plural = if times == 1 { "collective" } else { "collectives" };
            let least = if is_known { "at most" } else { "for one trip of each loop of unknown length" };
            let (received, times) = (bytes(received), grouped(times));
            format!("Each device needs {memory} of memory, and receives {least} {received} in {times} {plural}.")
        }
    };
    text.push_str(&indented(&sentence, "", "", width()));
    Ok(text)
}

/// The program's lines, each followed by its collectives.
fn annotated(collectives: &[Collective], devices: usize, style: Style, texts: &SourceTexts) -> String {
    let Some(file) = texts.get(SourceSet::ROOT) else { return String::new() };
    let is_shown = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with("//!");
    let lines: Vec<(usize, &str)> = (1..).zip(file.text.lines()).filter(|(_, line)| is_shown(line)).collect();
    let notes = |number: usize| {
        let here =
            move |each: &&Collective| each.span.file == SourceSet::ROOT && texts.line_column(each.span).0 == number;
        collectives.iter().filter(here)
    };
    let (bar, end, dots) = if style == Style::Unicode { ('│', "╰", "⋮") } else { ('|', "`-", "...") };
    let margin = lines.last().map_or(1, |(number, _)| number.to_string().len()).max(2);
    let blank = " ".repeat(margin);
    let mut text = String::new();
    let mut is_cut = false;
    for &(number, line) in &lines {
        let is_noted = notes(number).next().is_some();
        if lines.len() > LINES_SHOWN && !is_noted {
            if !is_cut {
                let _ = writeln!(text, "{blank} {dots}");
            }
            is_cut = true;
            continue;
        }
        is_cut = false;
        let depth = line.len() - line.trim_start().len();
        let (first, others) = (format!("{number:>margin$} {bar} "), format!("{blank} {bar} {}", " ".repeat(depth + 4)));
        // The indentation of the code is kept: `fold` breaks at spaces.
        let first = first + &line[..depth];
        text.push_str(&indented(line.trim(), &first, &others, width()));
        let sentences: Vec<String> = notes(number).map(|note| words(note, devices)).collect();
        for alike in sentences.chunk_by(|one, other| one == other) {
            let (first, others) = (format!("{blank} {end} "), format!("{blank}   "));
            let count = if alike.len() > 1 { format!("{} x ", alike.len()) } else { String::new() };
            text.push_str(&indented(&format!("{count}{}", alike[0]), &first, &others, width()));
        }
    }
    for note in collectives.iter().filter(|each| each.span.file != SourceSet::ROOT) {
        let place = texts.place(note.span).unwrap_or_default();
        text.push_str(&indented(&format!("{place}: {}", words(note, devices)), "", &blank, width()));
    }
    text
}

/// A collective in a sentence.
fn words(collective: &Collective, devices: usize) -> String {
    let what = match collective.kind {
        CollectiveKind::AllReduce => "combine partial results",
        CollectiveKind::AllGather => "collect each other's blocks",
        CollectiveKind::ReduceScatter => "combine partial results, of which each keeps its block",
        CollectiveKind::AllToAll => "exchange parts of their blocks",
        CollectiveKind::CollectivePermute => "send elements to one another",
        CollectiveKind::Transfer => "send a value to other devices",
    };
    let who = match collective.axes.join(" and ") {
        _ if collective.group_size == devices => format!("all {devices} devices"),
        axes => format!("devices along {axes}"),
    };
    let received = match collective.received {
        1 => "1 byte".to_string(),
        received => format!("{} bytes", grouped(received)),
    };
    let often = match collective.trips {
        Some(1) => "once".to_string(),
        Some(trips) => format!("{} times", grouped(trips)),
        None => "in each trip".to_string(),
    };
    let why = if collective.reason.is_empty() { String::new() } else { format!(" because {}", reasons(collective)) };
    format!("{}: {who} {what}{why}; each receives {received}, {often}", collective.kind.name())
}

/// The reasons of a collective. One that combines several often has the same reason for all of them.
fn reasons(collective: &Collective) -> String {
    const SUMS: &str = " sums over ";
    let all: Vec<&str> = collective.reason.split("; ").collect();
    let parts: Option<Vec<(&str, &str)>> = all.iter().map(|reason| reason.split_once(SUMS)).collect();
    match parts.as_deref() {
        Some([(_, over), _, ..]) if parts.iter().flatten().all(|(_, other)| other == over) => {
            let subjects: Vec<&str> = parts.iter().flatten().map(|(subject, _)| *subject).collect();
            format!("{} sum over {over}", subjects.join(" and "))
        }
        _ => all.join(", and "),
    }
}

/// Values with the same layout, in program order.
struct SharedLayout<'a> {
    ty: &'a Type,
    values: Vec<String>,
    elements: usize,
}

fn layouts(module: &Module, style: Style) -> String {
    let mesh = &module.mesh;
    let count = mesh.device_count();
    if count == 1 {
        return "It runs on one device.\n".to_string();
    }
    let axes = axes(mesh);
    let mut intro = format!("{count} devices, the mesh ({}).", axes.join(", "));
    let (mut split, whole): (Vec<SharedLayout<'_>>, Vec<SharedLayout<'_>>) =
        grouped_by_layout(module).into_iter().partition(|layout| is_split(layout.ty, mesh));
    if !split.is_empty() {
        intro.push_str(" A box is a block of a value: its indices, and the number of the device that has it.");
    }
    let mut text = indented(&intro, "", "", width());
    split.sort_by_key(|layout| std::cmp::Reverse(layout.elements));
    for layout in split.iter().take(LAYOUTS_DRAWN) {
        text.push_str(&indented(&listed(&layout.values), "", "  ", width()));
        text.push_str(&draw_split(layout.ty, mesh, style, width()));
        remarks(layout.ty, mesh).iter().for_each(|remark| text.push_str(&indented(remark, "", "", width())));
    }
    for layout in &whole {
        let values = listed(&layout.values);
        let sentence = match layout.ty.distinct_axes().is_empty() {
            true => format!("Replicated, whole on each of the {count} devices: {values}"),
            false => format!("{values}; {}", remarks(layout.ty, mesh).join("; ")),
        };
        text.push_str(&indented(&sentence, "", "  ", width()));
    }
    match split.len().saturating_sub(LAYOUTS_DRAWN) {
        0 => {}
        1 => text.push_str("`spmdc viz` draws another layout.\n"),
        more => {
            let _ = writeln!(text, "`spmdc viz` draws {more} more layouts.");
        }
    }
    text
}

fn is_split(ty: &Type, mesh: &Mesh) -> bool {
    ty.sharding.dims.iter().any(|dim| mesh.size_of(&dim.axes) > 1)
}

/// Named values grouped by the blocks of their split dimensions, whatever their other dimensions.
fn grouped_by_layout(module: &Module) -> Vec<SharedLayout<'_>> {
    let mesh = &module.mesh;
    let blocks = |ty: &Type| -> Vec<(usize, Vec<u8>)> {
        let dims = ty.sharding.dims.iter().zip(ty.shape());
        let split = dims.filter(|(dim, _)| mesh.size_of(&dim.axes) > 1);
        split.map(|(dim, &size)| (size, dim.axes.clone())).collect()
    };
    let alike = |a: &Type, b: &Type| blocks(a) == blocks(b) && remarks(a, mesh) == remarks(b, mesh);
    let mut found: Vec<SharedLayout<'_>> = Vec::new();
    let mut seen = Vec::new();
    for (name, value) in shown_values(module) {
        let ty = module.func.ty(value);
        if seen.contains(&value) || ty.is_scalar() {
            continue;
        }
        seen.push(value);
        let shown = format!("{name}: {}", ty.display(mesh));
        match found.iter_mut().find(|layout| alike(layout.ty, ty)) {
            Some(layout) if layout.values.contains(&shown) => {}
            Some(layout) => {
                layout.values.push(shown);
                layout.elements += ty.array.len();
            }
            None => found.push(SharedLayout { ty, values: vec![shown], elements: ty.array.len() }),
        }
    }
    found
}

fn listed(values: &[String]) -> String {
    match values.len().saturating_sub(VALUES_LISTED) {
        0 => values.join("; "),
        more => format!("{}; and {more} more", values[..VALUES_LISTED].join("; ")),
    }
}
