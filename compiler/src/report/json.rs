//! The JSON form of a dump, as the language's reference describes it.

use super::kept::{CheckpointTrial, KeptValue, kept_bytes};
use super::named::named_values;
use super::plan::{PlanReport, TiledSteps, peak_bytes_per_device};
use super::timeline::Timeline;
use crate::totals::{Collective, RowsRead, collectives, flops_per_device, reads};
use serde::Serialize;
use spmdc_abi::{Plane, Program};
use spmdc_grammar::span::Span;
use spmdc_ir::program::{Module, Value, shown_type, whole_name};
use spmdc_layout::types::Type;

/// A module and the program compiled from it, in the order of the output.
#[derive(Serialize)]
struct Summary<'m> {
    mesh: Vec<JsonAxis<'m>>,
    entry: &'m str,
    params: Vec<JsonBinding>,
    results: Vec<JsonBinding>,
    values: Vec<Named<'m>>,
    collectives: Vec<JsonCollective>,
    flops_per_device: u64,
    peak_bytes_per_device: u64,
    /// Only of programs with streams.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reads: Vec<JsonRead>,
}

/// A read of rows of a stream.
#[derive(Serialize)]
struct JsonRead {
    stream: String,
    r#type: String,
    bytes: u64,
    trips: Option<u64>,
    line: usize,
    column: usize,
}

#[derive(Serialize)]
struct JsonAxis<'m> {
    name: &'m str,
    size: usize,
    r#type: &'static str,
}

#[derive(Serialize)]
struct JsonBinding {
    name: String,
    r#type: String,
    local_shape: Vec<usize>,
}

#[derive(Serialize)]
struct Named<'m> {
    name: &'m str,
    r#type: String,
    line: usize,
}

#[derive(Serialize)]
struct JsonCollective {
    kind: &'static str,
    axes: Vec<String>,
    group_size: usize,
    dtype: &'static str,
    local_shape: Vec<usize>,
    bytes: u64,
    received: u64,
    /// Only where hosts are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    received_by_host: Option<u64>,
    trips: Option<u64>,
    line: usize,
    column: usize,
    reason: String,
}

/// One object for a partitioned module, without a line break; `place` gives the line and column of a span.
pub fn module_json(
    module: &Module,
    program: &Program,
    place: &dyn Fn(Span) -> (usize, usize),
) -> serde_json::Result<String> {
    let (func, mesh) = (&module.func, &module.mesh);
    let whole = mesh.whole();
    let axes = whole.axes.iter().map(|axis| JsonAxis { name: &axis.name, size: axis.size, r#type: axis.kind.name() });
    // Both planes of complex numbers are one array, of which the real one stands first.
    fn binding(module: &Module, name: &str, plane: Option<Plane>, value: Value) -> Option<JsonBinding> {
        if plane == Some(Plane::Imaginary) {
            return None;
        }
        let (ty, mesh) = (module.func.ty_in_program(value), &module.mesh);
        let (name, r#type) = (whole_name(name, plane), shown_type(&ty, plane, mesh));
        Some(JsonBinding { name, r#type, local_shape: ty.block_shape(mesh) })
    }
    let params = func.params.iter().zip(&func.body.params);
    let results = func.results.iter().zip(&func.body.results);
    let values = named_values(func).into_iter().map(|(name, value)| {
        let ty = func.ty_in_program(value);
        Named { name, r#type: plain(&ty).display(mesh), line: place(func.info(value).named).0 }
    });
    let collectives = collectives(module).into_iter().map(|collective| shown(collective, mesh.hosts.is_some(), place));
    serde_json::to_string(&Summary {
        mesh: axes.collect(),
        entry: &func.name,
        params: params.filter_map(|(param, &value)| binding(module, &param.name, param.plane, value)).collect(),
        results: results.filter_map(|(result, &value)| binding(module, &result.name, result.plane, value)).collect(),
        values: values.collect(),
        collectives: collectives.collect(),
        flops_per_device: flops_per_device(module),
        peak_bytes_per_device: peak_bytes_per_device(program),
        reads: reads(module).into_iter().map(|read| rows(read, place)).collect(),
    })
}

/// Rows read of a stream; `place` gives the line and column of a span.
fn rows(read: RowsRead, place: &dyn Fn(Span) -> (usize, usize)) -> JsonRead {
    let RowsRead { stream, ty, bytes, trips, span } = read;
    let (line, column) = place(span);
    JsonRead { stream, r#type: ty, bytes, trips, line, column }
}

/// A collective; `place` gives the line and column of a span.
fn shown(collective: Collective, has_hosts: bool, place: &dyn Fn(Span) -> (usize, usize)) -> JsonCollective {
    let (line, column) = place(collective.span);
    JsonCollective {
        kind: collective.kind.name(),
        axes: collective.axes,
        group_size: collective.group_size,
        dtype: collective.dtype.name(),
        local_shape: collective.local_shape,
        bytes: collective.bytes,
        received: collective.received,
        received_by_host: has_hosts.then_some(collective.crossing),
        trips: collective.trips,
        line,
        column,
        reason: collective.reason,
    }
}

#[derive(Serialize)]
struct JsonTiles {
    line: u32,
    steps: usize,
    matrices: i64,
    rows: i64,
    tile_rows: u64,
    unstored_bytes: u64,
    scratch_bytes: u64,
}

/// A plan, in the order of the output.
#[derive(Serialize)]
struct JsonPlan<'p> {
    entry: &'p str,
    peak_bytes_per_device: u64,
    process_bytes: u64,
    flops_per_device: u64,
    /// Only of programs with such products.
    #[serde(skip_serializing_if = "Option::is_none")]
    native_bf16_products: Option<usize>,
    buffers: Vec<JsonBuffer<'p>>,
    kept_bytes: u64,
    kept: Vec<JsonKept<'p>>,
    checkpoints: Vec<JsonCheckpoint<'p>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tiles: Vec<JsonTiles>,
    collectives: Vec<JsonCollective>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reads: Vec<JsonRead>,
    /// Only where hosts are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    hosts: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_bytes_per_host: Option<u64>,
}

#[derive(Serialize)]
struct JsonBuffer<'p> {
    name: &'p str,
    r#type: &'p str,
    bytes: u64,
    instances: usize,
    blocks: usize,
    line: u32,
}

#[derive(Serialize)]
struct JsonKept<'p> {
    name: &'p str,
    r#type: &'p str,
    bytes: u64,
    trips: u64,
    line: usize,
    column: usize,
}

#[derive(Serialize)]
struct JsonCheckpoint<'p> {
    function: Option<&'p str>,
    line: usize,
    column: usize,
    kept_bytes: u64,
    peak_bytes_per_device: u64,
    flops_per_device: u64,
}

fn tiles_json(tiles: &TiledSteps) -> JsonTiles {
    let &TiledSteps { steps, matrices, rows, tile, unstored_bytes, scratch_bytes, line } = tiles;
    JsonTiles { line, steps, matrices, rows, tile_rows: tile, unstored_bytes, scratch_bytes }
}

/// One object for a plan, without a line break; `place` gives the line and column of a span.
pub fn plan_json(
    entry: &str,
    plan: &PlanReport,
    kept: &[KeptValue],
    trials: &[CheckpointTrial],
    place: &dyn Fn(Span) -> (usize, usize),
) -> serde_json::Result<String> {
    let buffers = plan.buffers.iter().map(|buffer| JsonBuffer {
        name: &buffer.name,
        r#type: &buffer.ty,
        bytes: buffer.bytes,
        instances: buffer.instances,
        blocks: buffer.blocks,
        line: buffer.line,
    });
    let values = kept.iter().map(|value| {
        let (line, column) = place(value.span);
        JsonKept { name: &value.name, r#type: &value.ty, bytes: value.bytes, trips: value.trips, line, column }
    });
    let checkpoints = trials.iter().map(|trial| {
        let (line, column) = place(trial.span);
        JsonCheckpoint {
            function: trial.function.as_deref(),
            line,
            column,
            kept_bytes: trial.costs.kept,
            peak_bytes_per_device: trial.costs.peak,
            flops_per_device: trial.costs.flops,
        }
    });
    serde_json::to_string(&JsonPlan {
        entry,
        peak_bytes_per_device: plan.peak_bytes_per_device,
        process_bytes: plan.process_bytes,
        flops_per_device: plan.flops_per_device,
        native_bf16_products: (plan.native_bf16 > 0).then_some(plan.native_bf16),
        buffers: buffers.collect(),
        kept_bytes: kept_bytes(kept),
        kept: values.collect(),
        checkpoints: checkpoints.collect(),
        tiles: plan.tiles.iter().map(tiles_json).collect(),
        collectives: plan
            .collectives
            .iter()
            .cloned()
            .map(|collective| shown(collective, plan.hosts.is_some(), place))
            .collect(),
        reads: plan.reads.iter().cloned().map(|read| rows(read, place)).collect(),
        hosts: plan.hosts,
        message_bytes_per_host: plan.hosts.map(|_| plan.message_bytes),
    })
}

/// The timeline of several meshes, in the order of the output. Times are in nanoseconds.
#[derive(Serialize)]
struct JsonTimeline<'t> {
    total_ns: f64,
    simulated_trips: Option<u64>,
    meshes: Vec<JsonMeshTime<'t>>,
    loops: Vec<JsonPipelinedLoop<'t>>,
}

#[derive(Serialize)]
struct JsonMeshTime<'t> {
    mesh: &'t str,
    devices: usize,
    busy_ns: f64,
    idle_share: f64,
}

#[derive(Serialize)]
struct JsonPipelinedLoop<'t> {
    line: u32,
    column: u32,
    trips: u64,
    time_ns: f64,
    slowest_mesh: &'t str,
    slowest_trip_ns: f64,
    rounds: f64,
    rounds_in_turns: f64,
}

/// One object for the timeline of several meshes, without a line break; `null` if it could not be simulated.
pub fn timeline_json(timeline: Option<&Timeline>) -> serde_json::Result<String> {
    // Thousandths are enough of an estimate.
    let round = |number: f64| (number * 1e3).round() / 1e3;
    serde_json::to_string(&timeline.map(|timeline| {
        JsonTimeline {
            total_ns: round(timeline.total),
            simulated_trips: timeline.simulated_trips,
            meshes: timeline
                .meshes
                .iter()
                .map(|mesh| JsonMeshTime {
                    mesh: &mesh.mesh,
                    devices: mesh.devices,
                    busy_ns: round(mesh.busy),
                    idle_share: round(timeline.idle_share(mesh)),
                })
                .collect(),
            loops: timeline
                .loops
                .iter()
                .map(|found| JsonPipelinedLoop {
                    line: found.site.line,
                    column: found.site.column,
                    trips: found.trips,
                    time_ns: round(found.time),
                    slowest_mesh: &found.slowest,
                    slowest_trip_ns: round(found.slowest_trip),
                    rounds: round(found.rounds()),
                    rounds_in_turns: round(found.rounds_in_turns()),
                })
                .collect(),
        }
    }))
}

/// A type as programs write it, without alignments, which are internal to the compiler.
fn plain(ty: &Type) -> Type {
    Type { sharding: ty.sharding.without_alignment(), ..ty.clone() }
}
