//! Drawings of the distribution of a value over the devices.
//!
//! The last two dimensions make a table of blocks; each cell lists the devices that hold it. Leading dimensions make one table for
//! each of their blocks. Uneven blocks are drawn with their ranges, empty ones are listed below, partial sums and copies are named.
//! A table that is too wide continues below itself.

use crate::mesh::Mesh;
use crate::types::{ArrayType, Type};
use spmdc_abi::AxisSet;
use std::fmt::Write;
use std::ops::Range;

/// The characters that lines are drawn with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// `┌─┬─┐`
    Unicode,
    /// `+-+-+`
    Ascii,
}

/// The lines of a table: corners and joints by row, then the bars.
struct Pen {
    top: [char; 3],
    middle: [char; 3],
    bottom: [char; 3],
    across: char,
    down: char,
}

const UNICODE: Pen =
    Pen {
        top: ['┌', '┬', '┐'], middle: ['├', '┼', '┤'], bottom: ['└', '┴', '┘'], across: '─', down: '│'
    };
const ASCII: Pen = Pen { top: ['+'; 3], middle: ['+'; 3], bottom: ['+'; 3], across: '-', down: '|' };

/// The drawing and its remarks, each line with a line break; no wider than `width` unless a single block is.
pub fn draw(ty: &Type, mesh: &Mesh, style: Style, width: usize) -> String {
    let mut text = blocks(ty, mesh, style, width);
    for remark in remarks(ty, mesh) {
        text.push_str(&remark);
        text.push('\n');
    }
    text
}

/// The drawing of the split dimensions; empty if none is split.
pub fn draw_split(ty: &Type, mesh: &Mesh, style: Style, width: usize) -> String {
    let is_split = |&dim: &usize| mesh.size_of(&ty.sharding.dims[dim].axes) > 1;
    let split: Vec<usize> = (0..ty.rank()).filter(is_split).collect();
    let shape: Vec<usize> = split.iter().map(|&dim| ty.shape()[dim]).collect();
    let mut ty = Type { array: ArrayType::new(ty.dtype(), &shape), ..ty.clone() };
    ty.sharding.dims = split.iter().map(|&dim| ty.sharding.dims[dim].clone()).collect();
    if split.is_empty() { String::new() } else { blocks(&ty, mesh, style, width) }
}

/// The copies and parts of sums that the devices hold, in words.
pub fn remarks(ty: &Type, mesh: &Mesh) -> Vec<String> {
    let devices = mesh.device_count();
    let unreduced = several(ty.sharding.unreduced, mesh);
    let used = ty.sharding.used_axes().union(unreduced).union(ty.varying);
    let copied = several(mesh.all().minus(used), mesh);
    let mut remarks = Vec::new();
    if !unreduced.is_empty() {
        let axes = mesh.display_set(unreduced);
        remarks
            .push(format!("unreduced over {axes}: devices along {axes} hold partial values, the value is their sum"));
    }
    let reduced = several(ty.sharding.reduced, mesh);
    if !reduced.is_empty() {
        let axes = mesh.display_set(reduced);
        remarks.push(format!("reduced over {axes}: its gradient is unreduced"));
    }
    if !ty.varying.is_empty() {
        remarks.push(format!("each device's own block along {}", mesh.display_set(ty.varying)));
    }
    match (mesh.size_of_set(copied), mesh.display_set(copied)) {
        (1, _) => {}
        (copies, _) if copies == devices => remarks.push(format!("replicated: all {devices} devices hold it whole")),
        (copies, axes) => {
            remarks.push(format!("replicated over {axes}: groups of {copies} devices hold the same block"));
        }
    }
    remarks
}

/// The axes that have more than one device.
fn several(axes: AxisSet, mesh: &Mesh) -> AxisSet {
    axes.iter().filter(|&axis| mesh.axes[axis].size > 1).collect()
}

fn blocks(ty: &Type, mesh: &Mesh, style: Style, width: usize) -> String {
    let pen = if style == Style::Unicode { &UNICODE } else { &ASCII };
    let (tables, idle) = tables(ty, mesh);
    let mut text = String::new();
    for table in &tables {
        if let Some(head) = &table.head {
            let _ = writeln!(text, "{head}");
        }
        folded(&mut text, table, pen, width);
    }
    text.extend(idle.map(|idle| idle + "\n"));
    text
}

/// The tables of the blocks of a value, one for each block of its leading dimensions, and a remark on devices that hold nothing.
pub fn tables(ty: &Type, mesh: &Mesh) -> (Vec<BlockTable>, Option<String>) {
    let blocks: Vec<usize> = ty.sharding.dims.iter().map(|dim| mesh.size_of(&dim.axes)).collect();
    // The block of each dimension that a device holds.
    let place = |device: usize| -> Vec<usize> {
        let coordinates = mesh.coordinates(device);
        ty.sharding.dims.iter().map(|dim| mesh.position(&dim.axes, &coordinates)).collect()
    };
    // The devices of a mesh with a name have the numbers that the program gives.
    let named = mesh.named.first().filter(|_| !mesh.is_several());
    let number = |position: usize| named.map_or(position, |named| named.devices[position]);
    let mut devices: Vec<(usize, Vec<usize>)> =
        (0..mesh.device_count()).map(|position| (number(position), place(position))).collect();
    devices.sort_unstable();
    let range = |dim: usize, block: usize| ty.sharding.dims[dim].range(ty.shape()[dim], block, mesh);
    // Blocks with elements; a dimension of size 0 has one empty block.
    let filled =
        |dim: usize| (0..blocks[dim]).filter(|&block| block == 0 || !range(dim, block).is_empty()).collect::<Vec<_>>();

    let rank = ty.rank();
    let leading = rank.saturating_sub(2);
    let mut tables = Vec::new();
    let mut heads: Vec<Vec<usize>> = vec![Vec::new()];
    for dim in 0..leading {
        heads = heads
            .iter()
            .flat_map(|head| filled(dim).into_iter().map(|block| [head.as_slice(), &[block]].concat()))
            .collect();
    }
    for head in heads {
        let ranges: Vec<String> = head.iter().enumerate().map(|(dim, &block)| show(&range(dim, block))).collect();
        let rows = if rank >= 2 { filled(leading) } else { vec![0] };
        let columns = if rank >= 1 { filled(rank - 1) } else { vec![0] };
        let cell = |row: usize, column: usize| {
            let mut wanted = head.clone();
            if rank >= 2 {
                wanted.push(row);
            }
            if rank >= 1 {
                wanted.push(column);
            }
            let holders = devices.iter().filter(|(_, place)| *place == wanted).map(|(device, _)| *device);
            list(&holders.collect::<Vec<_>>())
        };
        let cells: Vec<Vec<String>> =
            rows.iter().map(|&row| columns.iter().map(|&column| cell(row, column)).collect()).collect();
        let side: Vec<String> =
            rows.iter().map(|&row| if rank >= 2 { show(&range(leading, row)) } else { String::new() }).collect();
        let above: Vec<String> = columns
            .iter()
            .map(|&column| if rank >= 1 { show(&range(rank - 1, column)) } else { String::new() })
            .collect();
        let head = (leading > 0).then(|| format!("[{}]", ranges.join(", ")));
        tables.push(BlockTable { head, side, above, cells });
    }

    let idle: Vec<usize> = devices
        .iter()
        .filter(|(_, place)| place.iter().enumerate().any(|(dim, &block)| block > 0 && range(dim, block).is_empty()))
        .map(|(device, _)| *device)
        .collect();
    let idle = (!idle.is_empty()).then(|| format!("devices {} hold nothing", list(&idle)));
    (tables, idle)
}

fn show(range: &Range<usize>) -> String {
    format!("{}:{}", range.start, range.end)
}

/// `0,4` or, for three and more in steps of one, `0-3`.
fn list(devices: &[usize]) -> String {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for &device in devices {
        match runs.last_mut() {
            Some(run) if run.end == device => run.end += 1,
            _ => runs.push(device..device + 1),
        }
    }
    let parts = runs.iter().flat_map(|run| match run.len() {
        1 | 2 => run.clone().map(|device| device.to_string()).collect::<Vec<_>>(),
        _ => vec![format!("{}-{}", run.start, run.end - 1)],
    });
    parts.collect::<Vec<_>>().join(",")
}

/// A table of the blocks of the last two dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockTable {
    /// The indices of the leading dimensions, if there are any: `[0:4]`.
    pub head: Option<String>,
    /// The indices to the left of each row; empty texts if there is one dimension.
    pub side: Vec<String>,
    /// The indices above each column.
    pub above: Vec<String>,
    /// The devices that hold each block: `0,4` or `0-3`.
    pub cells: Vec<Vec<String>>,
}

/// The table, in pieces of columns no wider than `width`.
fn folded(text: &mut String, whole: &BlockTable, pen: &Pen, width: usize) {
    let BlockTable { side, above, cells, head: _ } = whole;
    let margin = side.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    let width_of = |column: usize| {
        let cells = cells.iter().map(|row| row[column].chars().count());
        cells.chain([above[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..above.len()).map(width_of).collect();
    let room = width.saturating_sub(if margin == 0 { 1 } else { margin + 2 });
    let mut from = 0;
    while from < above.len() {
        let mut to = from + 1;
        while to < above.len() && widths[from..=to].iter().map(|width| width + 3).sum::<usize>() <= room {
            to += 1;
        }
        let cells: Vec<&[String]> = cells.iter().map(|row| &row[from..to]).collect();
        table(text, (side, margin), &above[from..to], &cells, &widths[from..to], pen);
        from = to;
    }
}

fn table(
    text: &mut String,
    (side, margin): (&[String], usize),
    above: &[String],
    cells: &[&[String]],
    widths: &[usize],
    pen: &Pen,
) {
    let indent = if margin == 0 { String::new() } else { " ".repeat(margin + 1) };
    if above.iter().any(|label| !label.is_empty()) {
        let labels: Vec<String> = above.iter().zip(widths).map(|(label, width)| format!(" {label:^width$} ")).collect();
        let _ = writeln!(text, "{}", format!("{indent} {}", labels.join(" ")).trim_end());
    }
    let line = |ends: &[char; 3]| {
        let bars: Vec<String> = widths.iter().map(|width| pen.across.to_string().repeat(width + 2)).collect();
        format!("{indent}{}{}{}", ends[0], bars.join(&ends[1].to_string()), ends[2])
    };
    let _ = writeln!(text, "{}", line(&pen.top));
    for (number, (label, row)) in side.iter().zip(cells).enumerate() {
        if number > 0 {
            let _ = writeln!(text, "{}", line(&pen.middle));
        }
        let padded: Vec<String> = row.iter().zip(widths).map(|(cell, width)| format!(" {cell:^width$} ")).collect();
        let down = pen.down.to_string();
        let head = if margin == 0 { String::new() } else { format!("{label:>margin$} ") };
        let _ = writeln!(text, "{head}{down}{}{down}", padded.join(&down));
    }
    let _ = writeln!(text, "{}", line(&pen.bottom));
}
