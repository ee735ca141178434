//! `spmdc plan`: memory, FLOPs and collectives, before anything runs.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use spmdc_compiler::ir::Stage;
use spmdc_compiler::pipeline::Compilation;
use spmdc_compiler::report::plan::{Collective, Holding, Plan, plan as costs};

use super::bytes;
use crate::Stop;
use crate::options::PlanCommand;
use crate::render::Reporter;
use crate::sources::SourceTexts;

/// Only the largest buffers are listed.
const BUFFERS_SHOWN: usize = 12;

/// The costs of the program, as tables.
pub fn plan(command: &PlanCommand, ascii: bool, reporter: &Reporter, texts: &mut SourceTexts) -> Result<String, Stop> {
    let compilation = super::compile(&command.program, None, reporter, texts)?;
    show(&compilation, ascii, texts)
}

/// The same for a program that has been compiled.
pub fn show(compilation: &Compilation, ascii: bool, texts: &SourceTexts) -> Result<String, Stop> {
    let module = compilation.stage(Stage::Optimized).ok_or_else(|| super::absent("partitioned program"))?;
    let program = compilation.program.as_ref().ok_or_else(|| super::absent("program"))?;
    let plan = costs(module, program);
    let mesh: Vec<String> =
        module.mesh.whole().axes.iter().map(|axis| format!("{} = {}", axis.name, axis.size)).collect();
    let mut text = match mesh.as_slice() {
        [] => format!("`{}` on one device\n", program.entry),
        _ => format!("`{}` on the mesh ({}), {} devices\n", program.entry, mesh.join(", "), program.device_count()),
    };
    let Plan { peak_bytes_per_device, process_bytes, flops_per_device, .. } = plan;
    let _ = writeln!(text, "memory: {} per device, {} in all", bytes(peak_bytes_per_device), bytes(process_bytes));
    let _ = writeln!(text, "operations: {flops_per_device} per device");
    let _ = write!(text, "\nbuffers, largest first:\n{}", buffers(&plan.buffers, ascii));
    if plan.collectives.is_empty() {
        text.push_str("\nno collectives\n");
    } else {
        let _ = write!(text, "\ncollectives:\n{}", collectives(&plan.collectives, ascii, texts));
    }
    Ok(text)
}

fn table(titles: &[&str], ascii: bool) -> Table {
    let mut table = Table::new();
    table.load_style(if ascii { presets::ASCII_BORDERS_ONLY_CONDENSED } else { presets::UTF8_BORDERS_ONLY });
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(titles);
    table
}

fn right_aligned(table: &mut Table, columns: &[usize]) {
    for &column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

fn buffers(holdings: &[Holding], ascii: bool) -> String {
    let mut table = table(&["value", "type", "bytes", "copies", "line"], ascii);
    for Holding { name, ty, bytes, instances, line } in holdings.iter().take(BUFFERS_SHOWN) {
        table.add_row([name.clone(), ty.clone(), bytes.to_string(), instances.to_string(), line.to_string()]);
    }
    right_aligned(&mut table, &[2, 3, 4]);
    let mut text = format!("{table}\n");
    if holdings.len() > BUFFERS_SHOWN {
        let _ = writeln!(text, "and {} smaller ones", holdings.len() - BUFFERS_SHOWN);
    }
    text
}

fn collectives(list: &[Collective], ascii: bool, texts: &SourceTexts) -> String {
    let mut table =
        table(&["collective", "over", "devices", "operand", "bytes", "received", "times", "line", "why"], ascii);
    for collective in list {
        let shape: Vec<String> = collective.local_shape.iter().map(usize::to_string).collect();
        let dtype = collective.dtype.name();
        table.add_row([
            collective.kind.name().to_string(),
            collective.axes.join(", "),
            collective.group_size.to_string(),
            if shape.is_empty() { dtype.to_string() } else { format!("{dtype}[{}]", shape.join(",")) },
            collective.bytes.to_string(),
            collective.received.to_string(),
            collective.trips.map_or("unknown".to_string(), |trips| trips.to_string()),
            texts.place(collective.span).unwrap_or_default(),
            collective.reason.clone(),
        ]);
    }
    right_aligned(&mut table, &[2, 4, 5, 6, 7]);
    format!("{table}\n")
}
