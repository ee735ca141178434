//! Memory, FLOPs and collectives before the program runs.

use std::fmt::Write as _;

use spmdc_abi::words::{bytes, counted};
use spmdc_compiler::pipeline::Compilation;
use spmdc_compiler::report::json::{plan_json, timeline_json};
use spmdc_compiler::report::kept::{CheckpointTrial, KeptCosts, KeptValue, costs as kept_costs, kept, kept_bytes};
use spmdc_compiler::report::plan::{Collective, Holding, PlanReport, RowsRead, TiledSteps, plan as costs};
use spmdc_compiler::report::timeline::timeline;
use spmdc_ir::program::Stage;
use spmdc_layout::cost::reported_trips;
use spmdc_runtime::errors::trap::RunError;

use super::meshes::{axes, each_mesh};
use crate::errors::{CommandError, absent};
use crate::sources::SourceTexts;
use crate::table::{ColumnAlign, Table, grouped, indented, width};

/// Maximum number of buffers listed, largest first.
const BUFFERS_SHOWN: usize = 12;

/// Maximum number of functions and loops for which the savings of `checkpoint` are shown.
const TRIALS_SHOWN: usize = 3;

/// The costs of a compiled program as a JSON object with a line break: of several meshes the timeline, and the costs of each.
pub fn json(
    compilation: &Compilation,
    trials: &[CheckpointTrial],
    texts: &SourceTexts,
) -> Result<String, CommandError> {
    let failed = |error: serde_json::Error| RunError::internal(error.to_string());
    let mut objects = Vec::new();
    for compilation in compilation.of_meshes() {
        let module = compilation.stage(Stage::Optimized).ok_or_else(|| absent("partitioned program"))?;
        let program = compilation.program.as_ref().ok_or_else(|| absent("program"))?;
        let plan = costs(module, program);
        let json = plan_json(&program.entry, &plan, &kept(compilation), trials, &|span| texts.line_column(span));
        objects.push(json.map_err(failed)?);
    }
    Ok(match (compilation.parts.as_slice(), objects.as_slice()) {
        ([], [only]) => format!("{only}\n"),
        (parts, _) => {
            let names = parts.iter().map(|part| &part.mesh.name);
            let objects = names.zip(&objects).map(|(name, plan)| format!("{{\"mesh\":\"{name}\",\"plan\":{plan}}}"));
            let program = compilation.program.as_ref().ok_or_else(|| absent("program"))?;
            let timeline = timeline_json(timeline(program, compilation.hosts).as_ref()).map_err(failed)?;
            format!("{{\"timeline\":{timeline},\"meshes\":[{}]}}\n", objects.collect::<Vec<_>>().join(","))
        }
    })
}

/// The costs of a compiled program, as tables, and of those programs in which more is checkpointed: of several meshes the timeline, then the
/// costs of each.
pub fn show(
    compilation: &Compilation,
    trials: &[CheckpointTrial],
    ascii: bool,
    texts: &SourceTexts,
) -> Result<String, CommandError> {
    let costs = each_mesh(compilation, |of_mesh| of_one_mesh(of_mesh, trials, ascii, texts))?;
    // A program may name several meshes and use one.
    if compilation.parts.len() < 2 {
        return Ok(costs);
    }
    let program = compilation.program.as_ref().ok_or_else(|| absent("program"))?;
    let timeline = super::timeline::show(timeline(program, compilation.hosts).as_ref(), program, ascii);
    Ok(format!("{timeline}\n{costs}"))
}

/// The costs of the program of one mesh.
fn of_one_mesh(
    compilation: &Compilation,
    trials: &[CheckpointTrial],
    ascii: bool,
    texts: &SourceTexts,
) -> Result<String, CommandError> {
    let module = compilation.stage(Stage::Optimized).ok_or_else(|| absent("partitioned program"))?;
    let program = compilation.program.as_ref().ok_or_else(|| absent("program"))?;
    let plan = costs(module, program);
    let mesh = axes(&module.mesh);
    let mut text = match mesh.as_slice() {
        [] => format!("`{}` on one device\n", program.entry),
        _ => {
            let devices = counted(program.device_count(), "device");
            format!("`{}` on the mesh ({}), {devices}\n", program.entry, mesh.join(", "))
        }
    };
    let PlanReport { peak_bytes_per_device, process_bytes, flops_per_device, .. } = plan;
    let _ = writeln!(text, "memory: {} per device, {} in all", bytes(peak_bytes_per_device), bytes(process_bytes));
    if let Some(hosts) = plan.hosts {
        let messages = bytes(plan.message_bytes);
        let _ = writeln!(text, "hosts: {hosts}, with about {messages} each for messages to and from the others");
    }
    let _ = writeln!(text, "operations: {} per device", grouped(flops_per_device));
    if plan.native_bf16 > 0 {
        let products = counted(plan.native_bf16, "product");
        let _ = writeln!(text, "native bf16: {products}, in which subnormal numbers count as zeros");
    }
    let legend = "buffers, largest first, by the value in them, or by the operation that makes it; bytes are those of one device:";
    let _ = write!(
        text,
        "\n{}{}",
        indented(legend, "", "", width()),
        buffers(&plan.buffers, plan.hosts.unwrap_or(1), ascii)
    );
    if !plan.tiles.is_empty() {
        let legend = "products and loop nests that run tile by tile, so that the arrays between them are not stored; numbers are those of \
                      one device:";
        let _ = write!(text, "\n{}{}", indented(legend, "", "", width()), tiles(&plan.tiles, ascii));
    }
    if !plan.reads.is_empty() {
        let legend =
            "rows read of streams, which stay in their files; bytes are those that one device reads each time:";
        let _ = write!(text, "\n{}{}", indented(legend, "", "", width()), reads(&plan.reads, ascii, texts));
    }
    let values = kept(compilation);
    if !values.is_empty() {
        let legend =
            "values that reverses keep; bytes are those of one device, of all trips of the loops that collect them:";
        let _ = write!(text, "\n{}{}", indented(legend, "", "", width()), kept_values(&values, ascii, texts));
    }
    if let (Some(before), false) = (kept_costs(compilation), trials.is_empty()) {
        trials.iter().take(TRIALS_SHOWN).for_each(|trial| text.push_str(&saving(trial, before, texts)));
    }
    if plan.collectives.is_empty() {
        text.push_str("\nno collectives\n");
    } else {
        let by_a_host = match plan.hosts {
            Some(_) => "; by a host is the maximum bytes received by any host from others",
            None => "",
        };
        let legend = format!(
            "collectives; operand and bytes are those of one device, received is the maximum bytes received by any device, each \
             time{by_a_host}:"
        );
        let legend = indented(&legend, "", "", width());
        let _ = write!(text, "\n{legend}{}", collectives(&plan.collectives, plan.hosts, ascii, texts));
    }
    Ok(text)
}

fn tiles(all: &[TiledSteps], ascii: bool) -> String {
    let columns = ["steps", "matrices", "rows", "rows of a tile", "bytes not stored", "scratch bytes", "line"];
    let mut table = Table::new(&columns.map(|name| (name, ColumnAlign::Right))).giving_way(&["steps", "scratch bytes"]);
    for tiles in all {
        let &TiledSteps { steps, matrices, rows, tile, unstored_bytes, scratch_bytes, line } = tiles;
        let numbers = [steps as u64, matrices.max(0) as u64, rows.max(0) as u64, tile, unstored_bytes, scratch_bytes];
        let cells = numbers.into_iter().map(grouped).chain([line.to_string()]);
        table.row(cells.collect(), "");
    }
    table.render(width(), ascii)
}

fn buffers(holdings: &[Holding], hosts: usize, ascii: bool) -> String {
    let columns = [
        ("value", ColumnAlign::Left),
        ("type", ColumnAlign::Left),
        ("bytes", ColumnAlign::Right),
        ("held", ColumnAlign::Left),
    ];
    let mut table = Table::new(&[&columns[..], &[("line", ColumnAlign::Right)]].concat()).giving_way(&["line", "held"]);
    for holding in holdings.iter().take(BUFFERS_SHOWN) {
        let Holding { name, ty, bytes, line, .. } = holding;
        table.row(vec![name.clone(), ty.clone(), grouped(*bytes), holding.held(hosts), line.to_string()], "");
    }
    let mut text = table.render(width(), ascii);
    if holdings.len() > BUFFERS_SHOWN {
        let _ = writeln!(text, "and {} smaller ones", holdings.len() - BUFFERS_SHOWN);
    }
    text
}

/// The values that reverses keep, and the sum of their bytes.
fn kept_values(values: &[KeptValue], ascii: bool, texts: &SourceTexts) -> String {
    use ColumnAlign::{Left, Right};
    let columns = [("value", Left), ("type", Left), ("bytes", Right), ("trips", Right), ("line", Left)];
    let mut table = Table::new(&columns).giving_way(&["line", "trips"]);
    for KeptValue { name, ty, bytes, trips, span } in values.iter().take(BUFFERS_SHOWN) {
        let place = texts.place(*span).unwrap_or_default();
        table.row(vec![name.clone(), ty.clone(), grouped(*bytes), grouped(*trips), place], "");
    }
    let mut text = table.render(width(), ascii);
    if values.len() > BUFFERS_SHOWN {
        let _ = writeln!(text, "and {} smaller ones", values.len() - BUFFERS_SHOWN);
    }
    let _ = writeln!(text, "total: {} kept", bytes(kept_bytes(values)));
    text
}

/// The savings and the cost of `checkpoint` for a function or loop.
fn saving(trial: &CheckpointTrial, before: KeptCosts, texts: &SourceTexts) -> String {
    let place = texts.place(trial.span).unwrap_or_default();
    let of = match &trial.function {
        Some(name) => format!("`{name}` ({place})"),
        None => format!("the body of the loop ({place})"),
    };
    let KeptCosts { kept, peak, flops } = trial.costs;
    let more = match (flops.checked_sub(before.flops), before.flops.saturating_sub(flops)) {
        (Some(more), _) => format!("{} more", grouped(more)),
        (None, fewer) => format!("{} fewer", grouped(fewer)),
    };
    let sentence = format!(
        "`checkpoint` of {of} would keep {} instead of {}, in {} of memory instead of {}, with {more} operations",
        bytes(kept),
        bytes(before.kept),
        bytes(peak),
        bytes(before.peak)
    );
    indented(&sentence, "", "  ", width())
}

/// The rows that are read of streams.
fn reads(list: &[RowsRead], ascii: bool, texts: &SourceTexts) -> String {
    use ColumnAlign::{Left, Right};
    let columns = [("stream", Left), ("rows", Left), ("bytes", Right), ("times", Right), ("line", Left)];
    let mut table = Table::new(&columns).giving_way(&["line"]);
    for RowsRead { stream, ty, bytes, trips, span } in list {
        let times = trips.map_or("unknown".to_string(), grouped);
        let place = texts.place(*span).unwrap_or_default();
        table.row(vec![stream.clone(), ty.clone(), grouped(*bytes), times, place], "");
    }
    table.render(width(), ascii)
}

fn collectives(list: &[Collective], hosts: Option<usize>, ascii: bool, texts: &SourceTexts) -> String {
    use ColumnAlign::{Left, Right};
    let mut columns = vec![
        ("collective", Left),
        ("over", Left),
        ("devices", Right),
        ("operand", Left),
        ("bytes", Right),
        ("received", Right),
    ];
    columns.extend(hosts.map(|_| ("by a host", Right)));
    columns.extend([("times", Right), ("line", Left)]);
    let mut table = Table::new(&columns).giving_way(&["devices", "operand", "line", "over"]);
    for collective in list {
        let shape: Vec<String> = collective.local_shape.iter().map(usize::to_string).collect();
        let dtype = collective.dtype.name();
        let mut cells = vec![
            collective.kind.name().to_string(),
            collective.axes.join(", "),
            collective.group_size.to_string(),
            if shape.is_empty() { dtype.to_string() } else { format!("{dtype}[{}]", shape.join(",")) },
            grouped(collective.bytes),
            grouped(collective.received),
        ];
        cells.extend(hosts.map(|_| grouped(collective.crossing)));
        cells.extend([
            collective.trips.map_or("unknown".to_string(), grouped),
            texts.place(collective.span).unwrap_or_default(),
        ]);
        table.row(cells, &collective.reason);
    }
    let mut text = table.render(width(), ascii);
    let Total { received, crossing, times, is_known } = total(list);
    let (at_least, noun) =
        (if is_known { "" } else { "at least " }, if times == 1 { "collective" } else { "collectives" });
    let by_a_host = hosts.map_or(String::new(), |_| format!(", {at_least}{} by a host", bytes(crossing)));
    let _ = writeln!(
        text,
        "total: {at_least}{} received{by_a_host} in {at_least}{} {noun}",
        bytes(received),
        grouped(times)
    );
    text
}

/// The totals of all collectives of a run.
pub struct Total {
    /// Sum of the maximum bytes received by any device in each collective.
    pub received: u64,
    /// Sum of the maximum bytes received by any host from others in each collective.
    pub crossing: u64,
    /// The number of collectives that run.
    pub times: u64,
    /// Whether the trip counts of all loops are known; others count once.
    pub is_known: bool,
}

/// The totals of these collectives.
pub fn total(list: &[Collective]) -> Total {
    let trips = |collective: &Collective| reported_trips(collective.trips);
    let sum = |of: fn(&Collective) -> u64| {
        list.iter().fold(0, |sum: u64, each| sum.saturating_add(trips(each).saturating_mul(of(each))))
    };
    Total {
        received: sum(|each| each.received),
        crossing: sum(|each| each.crossing),
        times: list.iter().fold(0, |sum: u64, each| sum.saturating_add(trips(each))),
        is_known: list.iter().all(|collective| collective.trips.is_some()),
    }
}
