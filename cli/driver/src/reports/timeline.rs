//! The timeline of a program with several meshes, as `spmdc plan` shows it.

use spmdc_abi::{Program, Site};
use spmdc_compiler::report::timeline::{MeshTimeline, OUTPUT, PipelinedLoop, Timeline};

use crate::table::{ColumnAlign, Table, grouped, indented, width};

/// Cells of a drawn time.
const CELLS: usize = 60;
/// The cells that a narrow terminal leaves for it.
const FEWEST_CELLS: usize = 15;
/// Columns of the table to the left of the drawn time.
const BESIDE: usize = 40;

/// The times at which each mesh works and waits, and the overlap of loops; `timeline` is none if it cannot be simulated.
pub fn show(timeline: Option<&Timeline>, program: &Program, ascii: bool) -> String {
    let Some(timeline) = timeline else {
        let why = "no timeline is shown: a loop or branch moves values between meshes that count its trips differently";
        return indented(why, "", "", width());
    };
    let whole = duration(timeline.total);
    let title = format!(
        "timeline, estimated: {whole} in all; each mesh works as soon as what it receives is there, and is idle until then:"
    );
    let mut text = indented(&title, "", "", width());
    text.push_str(&meshes(timeline, ascii));
    if timeline.meshes.iter().any(|mesh| mesh.mesh == OUTPUT) {
        let said = format!("`{OUTPUT}` is the first device of all, where it prints for all meshes");
        text.push_str(&indented(&said, "", "  ", width()));
    }
    for found in &timeline.loops {
        text.push_str(&indented(&rounds(found, program), "", "  ", width()));
    }
    if let Some(trips) = timeline.simulated_trips {
        let said = format!(
            "the first {} trips of each loop are simulated; further ones take as long as the later ones of these",
            grouped(trips)
        );
        text.push_str(&indented(&said, "", "  ", width()));
    }
    text
}

fn meshes(timeline: &Timeline, ascii: bool) -> String {
    use ColumnAlign::{Left, Right};
    let mut columns = vec![("mesh", Left), ("devices", Right), ("busy", Right), ("idle", Right)];
    // Only a part of the times is known if not all trips are simulated.
    let is_drawn = timeline.simulated_trips.is_none();
    columns.extend(is_drawn.then_some(("when it is busy", Left)));
    let mut table = Table::new(&columns).giving_way(&["devices"]);
    let cells = width().saturating_sub(BESIDE).clamp(FEWEST_CELLS, CELLS);
    for mesh in &timeline.meshes {
        let idle = format!("{:.0}%", 100.0 * timeline.idle_share(mesh));
        let mut row = vec![mesh.mesh.clone(), mesh.devices.to_string(), duration(mesh.busy), idle];
        row.extend(is_drawn.then(|| drawn(mesh, timeline.total, cells, ascii)));
        table.row(row, "");
    }
    table.render(width(), ascii)
}

/// The times in which a mesh works: a cell is filled if it works for half of it.
fn drawn(mesh: &MeshTimeline, total: f64, cells: usize, ascii: bool) -> String {
    let (filled, empty) = if ascii { ('#', '.') } else { ('█', '·') };
    let of_cell = |cell: usize| {
        let at = |cell: usize| total * cell as f64 / cells as f64;
        let (begin, end) = (at(cell), at(cell + 1));
        let busy: f64 = mesh.spans.iter().map(|span| (span.end.min(end) - span.begin.max(begin)).max(0.0)).sum();
        if busy > 0.5 * (end - begin) { filled } else { empty }
    };
    (0..cells).map(of_cell).collect()
}

fn rounds(found: &PipelinedLoop, program: &Program) -> String {
    format!(
        "the loop at {}: {} trips in {} rounds of `{}` ({}), instead of {} if one mesh worked at a time",
        place(found.site, program),
        grouped(found.trips),
        tenths(found.rounds()),
        found.slowest,
        duration(found.slowest_trip),
        tenths(found.rounds_in_turns())
    )
}

/// `1,234.5`.
fn tenths(number: f64) -> String {
    let tenths = (10.0 * number).round() as u64;
    format!("{}.{}", grouped(tenths / 10), tenths % 10)
}

/// `18:13`, with the file if that is not the program itself.
fn place(site: Site, program: &Program) -> String {
    match (site.file, program.files.get(usize::from(site.file))) {
        (1.., Some(file)) => format!("{file}:{}:{}", site.line, site.column),
        (0, _) | (1.., None) => format!("{}:{}", site.line, site.column),
    }
}

/// Nanoseconds as `850 ns`, `52.1 us`, `1.2 ms` or `3.4 s`.
pub(super) fn duration(nanoseconds: f64) -> String {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "us")];
    match units.iter().find(|(unit, _)| nanoseconds >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", nanoseconds / unit),
        None => format!("{nanoseconds:.0} ns"),
    }
}
