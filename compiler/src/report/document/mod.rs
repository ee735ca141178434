//! All that is known of a compiled program, as the data of the page of `spmdc report`.

mod lifetimes;
mod lines;
mod moves;

use super::named::shown_values;
use super::plan::{PlanReport, plan};
use super::timeline::{Timeline, timeline};
use crate::pipeline::Compilation;
use lifetimes::{HeldBuffer, held_buffers};
use lines::{LineCost, line_costs};
use moves::{MessagePhase, phases};
use serde::Serialize;
use spmdc_grammar::span::Span;
use spmdc_ir::program::{Module, Stage, Value};
use spmdc_ir::rules::SentMessages;
use spmdc_layout::draw::remarks;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::Type;
use std::collections::BTreeMap;

/// Maximum number of devices whose blocks and messages are listed one by one.
const MOST_DEVICES: usize = 256;

/// Maximum number of times in which a mesh works that are listed.
const MOST_SPANS: usize = 4_000;

/// A source position: the number of the file, the line and the column, from 1; zeros if it is unknown.
pub type Place = (usize, usize, usize);

/// The indices of a part of an array, from the first to the end, in each dimension.
type BlockRange = Vec<[usize; 2]>;

/// A program, compiled to its end.
#[derive(Debug, Serialize)]
pub struct ProgramDocument {
    entry: String,
    meshes: Vec<MeshDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeline: Option<TimelineDocument>,
}

/// The program of one mesh.
#[derive(Debug, Serialize)]
struct MeshDocument {
    name: String,
    axes: Vec<AxisDocument>,
    /// The number of each device, by its position.
    devices: Vec<usize>,
    memory_per_device: u64,
    memory_in_all: u64,
    operations: u64,
    values: Vec<ValueDocument>,
    collectives: Vec<CollectiveDocument>,
    buffers: Vec<HeldBuffer>,
    /// The position of each statement of the schedule to which `buffers` refer.
    moments: Vec<Place>,
    lines: Vec<LineCost>,
}

#[derive(Debug, Serialize)]
struct AxisDocument {
    name: String,
    size: usize,
    explicit: bool,
}

/// A parameter, a named value or a result.
#[derive(Debug, Serialize)]
struct ValueDocument {
    name: String,
    r#type: String,
    shape: Vec<usize>,
    /// Bytes of the largest block.
    bytes: u64,
    place: Place,
    /// The blocks with elements; empty if there are too many devices.
    blocks: Vec<BlockDocument>,
    remarks: Vec<String>,
}

/// A block, as ranges of indices, and the positions of the devices that hold it.
#[derive(Debug, Serialize)]
struct BlockDocument {
    range: BlockRange,
    devices: Vec<usize>,
}

#[derive(Debug, Serialize)]
struct CollectiveDocument {
    kind: &'static str,
    axes: Vec<String>,
    place: Place,
    bytes: u64,
    received: u64,
    trips: Option<u64>,
    reason: String,
    from: String,
    to: String,
    /// Whether messages have the indices of the sender's value in a `manual` function, not those of the whole array.
    is_local: bool,
    /// Empty if its messages depend on values or go to another mesh, or if there are too many of them.
    phases: Vec<MessagePhase>,
}

#[derive(Debug, Serialize)]
struct TimelineDocument {
    total_ns: f64,
    meshes: Vec<TimedMesh>,
}

#[derive(Debug, Serialize)]
struct TimedMesh {
    name: String,
    devices: usize,
    busy_ns: f64,
    /// The beginning and the end of each work, and the trip of the loop, from 0.
    spans: Vec<(f64, f64, Option<u64>)>,
}

/// The document of a program that was compiled to its end; None if it was not. `place` gives the position of a span.
pub fn document(compilation: &Compilation, place: &dyn Fn(Span) -> Place) -> Option<ProgramDocument> {
    let entry = compilation.program.as_ref()?.entry.clone();
    let meshes = compilation.of_meshes().into_iter().map(|of_mesh| mesh_document(of_mesh, place));
    let program = compilation.program.as_ref()?;
    Some(ProgramDocument {
        entry,
        meshes: meshes.collect::<Option<Vec<_>>>()?,
        timeline: timeline(program, compilation.hosts).map(timeline_document),
    })
}

fn mesh_document(compilation: &Compilation, place: &dyn Fn(Span) -> Place) -> Option<MeshDocument> {
    let (program, optimized) = (compilation.program.as_ref()?, compilation.stage(Stage::Optimized)?);
    let PlanReport { peak_bytes_per_device, process_bytes, flops_per_device, .. } = plan(optimized, program);
    let layouts = compilation.stage(Stage::Propagated)?;
    let mesh = &optimized.mesh;
    let count = mesh.device_count();
    let named = mesh.named.first().filter(|_| !mesh.is_several());
    let axes = layouts.mesh.whole().axes.into_iter();
    let explicit = layouts.mesh.whole().of_kind(spmdc_layout::mesh::AxisKind::Explicit);
    let (buffers, moments) = held_buffers(compilation, program, optimized, place);
    Some(MeshDocument {
        name: named.map_or(String::new(), |named| named.name.clone()),
        axes: axes
            .enumerate()
            .map(|(at, axis)| AxisDocument { name: axis.name, size: axis.size, explicit: explicit.contains(at) })
            .collect(),
        devices: (0..count).map(|position| named.map_or(position, |named| named.devices[position])).collect(),
        memory_per_device: peak_bytes_per_device,
        memory_in_all: process_bytes,
        operations: flops_per_device,
        values: shown_values(layouts).into_iter().map(|named| value_document(layouts, named, place)).collect(),
        collectives: collectives(optimized, place),
        buffers,
        moments,
        lines: line_costs(compilation, program, optimized, place),
    })
}

fn value_document(module: &Module, (name, value): (String, Value), place: &dyn Fn(Span) -> Place) -> ValueDocument {
    let (ty, mesh) = (module.func.ty_in_program(value), &module.mesh);
    ValueDocument {
        name,
        r#type: ty.display(mesh),
        shape: ty.shape().to_vec(),
        bytes: if ty.array.is_stream { 0 } else { ty.block_bytes(mesh) as u64 },
        place: place(module.func.info(value).named),
        blocks: if ty.array.is_stream { Vec::new() } else { blocks(&ty, mesh) },
        remarks: if ty.array.is_stream { vec!["stays in its file".to_string()] } else { remarks(&ty, mesh) },
    }
}

/// The part of an array that each device holds, by its position.
fn block_of_each(ty: &Type, mesh: &Mesh) -> Vec<BlockRange> {
    let block = |device: usize| {
        let coordinates = mesh.coordinates(device);
        let dims = ty.sharding.dims.iter().zip(ty.shape());
        let ranges = dims.map(|(dim, &size)| dim.range(size, mesh.position(&dim.axes, &coordinates), mesh));
        ranges.map(|range| [range.start, range.end.max(range.start)]).collect()
    };
    (0..mesh.device_count()).map(block).collect()
}

/// Whether a part has no elements.
fn is_empty(range: &[[usize; 2]]) -> bool {
    range.iter().any(|[start, end]| start >= end)
}

fn blocks(ty: &Type, mesh: &Mesh) -> Vec<BlockDocument> {
    if mesh.device_count() > MOST_DEVICES {
        return Vec::new();
    }
    let mut blocks: BTreeMap<BlockRange, Vec<usize>> = BTreeMap::new();
    for (device, range) in block_of_each(ty, mesh).into_iter().enumerate().filter(|(_, range)| !is_empty(range)) {
        blocks.entry(range).or_default().push(device);
    }
    blocks.into_iter().map(|(range, devices)| BlockDocument { range, devices }).collect()
}

fn collectives(module: &Module, place: &dyn Fn(Span) -> Place) -> Vec<CollectiveDocument> {
    let mesh = &module.mesh;
    let mut documents = Vec::new();
    crate::totals::each_collective(module, &mut |stmt, collective| {
        let ty = |value: Option<&Value>| value.map(|&value| module.func.ty(value));
        let (from, to) = (ty(stmt.args.first()), ty(stmt.results.first()));
        let shown = |ty: Option<&Type>| ty.map_or(String::new(), |ty| ty.display(mesh));
        let exchange = stmt.op().and_then(|op| op.exchange()).filter(|_| mesh.device_count() <= MOST_DEVICES);
        let (args, results) = (module.func.types(&stmt.args), module.func.types(&stmt.results));
        let messages = exchange.map(|exchange| exchange.messages(&args, mesh));
        documents.push(CollectiveDocument {
            kind: collective.kind.name(),
            axes: collective.axes.clone(),
            place: place(collective.span),
            bytes: collective.bytes,
            received: collective.received,
            trips: collective.trips,
            reason: collective.reason.clone(),
            from: shown(from),
            to: shown(to),
            is_local: matches!(messages, Some(SentMessages::Group(_))),
            phases: messages.map_or(Vec::new(), |messages| phases(&messages, &args, &results, mesh)),
        });
    });
    documents
}

/// Thousandths of a nanosecond are enough of an estimate.
fn rounded(nanoseconds: f64) -> f64 {
    (nanoseconds * 1e3).round() / 1e3
}

fn timeline_document(timeline: Timeline) -> TimelineDocument {
    let meshes = timeline.meshes.into_iter().map(|mesh| TimedMesh {
        name: mesh.mesh,
        devices: mesh.devices,
        busy_ns: rounded(mesh.busy),
        spans: mesh
            .spans
            .iter()
            .take(MOST_SPANS)
            .map(|span| (rounded(span.begin), rounded(span.end), span.trip))
            .collect(),
    });
    TimelineDocument { total_ns: rounded(timeline.total), meshes: meshes.collect() }
}
