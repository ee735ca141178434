//! Plans memory: gives every value a place, and turns the schedule into the program that the runtime executes.
//!
//! # Arenas
//! A buffer is in an arena that exists once per combination of coordinates along some axes. These are the axes along which devices hold
//! different data (split, partial, or varying), and the axes along which the conditions around its writes vary. Devices that only differ
//! along other axes share it, and divide the work of filling it. Buffers of up to 16 KiB exist once per device instead.
//!
//! # Places
//! - Parameters have separate places that no other value ever uses, because a program runs several times over the same arguments. A stream
//!   has no place.
//! - The constant arrays of a program, which are written when it is loaded, also have separate places.
//! - Values with the same bytes under another name (reshapes, the inside of a `manual` region, the result of a loop) share one place.
//! - A copy vanishes where source and target can be one: the next value of a carried variable is computed in the loop's buffer if
//!   the old value is not needed any more. A kernel writes in place of an operand whose lifetime ends with it, if it reads the
//!   operand only at the index that it writes.
//! - All other buffers are placed by best fit: at the offset that leaves the smallest hole among the buffers that live at the same
//!   time.
//!
//! # Barriers
//! `sync.rs` decides where devices that share an arena, or read each other's blocks in a collective, need a barrier. It is between a write
//! and any later read, and between a read and any later write. If a barrier follows work for which no other device waits, it is posted
//! before this work and awaited after it. A print is a barrier of all devices. Where devices may diverge (at a condition that varies along
//! an axis, inside `manual`), every barrier that would be needed inside comes before, and no buffer written inside is shared along that
//! axis.
//!
//! # Panels
//! `panels.rs` finds kernels that run panel by panel, so that the rows between them stay in the cache. `group_panels.rs` finds kernels
//! between which devices combine values of each row.

mod group_panels;
pub(crate) mod holes;
pub(crate) mod lifetimes;
pub(crate) mod panels;
pub(crate) mod places;
mod replay;
mod steps;
pub(crate) mod storage;
mod streams;
mod sync;
#[cfg(test)]
mod tests;
pub(crate) mod time;

use crate::alternate::alternate;
use crate::order::{Schedule, Task};
use group_panels::Surroundings;
use lifetimes::Lifetimes;
use replay::{MemoryPlan, replay};
use spmdc_abi::mesh::DeviceMesh;
use spmdc_abi::{ABI_VERSION, Binding, BufferInfo, ConstantData, MeshAxis, Plane, Program, Site};
use spmdc_grammar::span::Span;
use spmdc_ir::lower::work::{Work, layout_of};
use spmdc_ir::program::{Module, Value, shown_type, whole_name};
use spmdc_kernel::loops::Kernel;
use std::collections::BTreeMap;
use steps::StepEmitter;
use storage::Storage;

/// A program with places for all its values, and its kernels.
pub struct Planned {
    /// The program for the runtime, without file names and compile time.
    pub program: Program,
    /// The kernels that the program calls, by number.
    pub kernels: Vec<Kernel>,
    /// Whether the plan was replayed only in part, though a replay was requested.
    pub doubtful: bool,
    /// For each value of the module, the number of its buffer; None for values that are not in memory.
    pub buffer_of: Vec<Option<usize>>,
}

/// Plans the memory of a schedule. With `verify`, the plan is replayed, up to that many runs of neighbouring elements; the error is
/// the first fault of the plan.
pub fn plan_memory(
    module: &Module,
    schedule: &Schedule,
    site: &dyn Fn(Span) -> Site,
    verify: Option<u64>,
) -> Result<Planned, String> {
    let (func, mesh) = (&module.func, &module.mesh);
    let alternated = alternate(module, schedule);
    let schedule = alternated.as_ref().unwrap_or(schedule);
    let lifetimes = Lifetimes::new(func, schedule, mesh);
    let storage = Storage::new(schedule, &lifetimes, mesh);
    debug_assert_eq!(storage.buffer_of.len(), schedule.types.len(), "every value has an entry");
    debug_assert_eq!(storage.places.len(), storage.buffers.len(), "every buffer has a place");
    let mut emitter = StepEmitter::new(schedule, &storage, mesh, site);
    let body = emitter.program();
    let mut kernels = emitter.kernels;
    let panel = mesh.machine.panel_bytes;
    let axes: Vec<MeshAxis> =
        mesh.axes.iter().map(|axis| MeshAxis { name: axis.name.clone(), size: axis.size }).collect();
    let body = match DeviceMesh::new(&axes) {
        Ok(devices) => Surroundings { kernels: &kernels, arenas: &storage.arenas, mesh: devices, panel }.group(body),
        // The runtime refuses it.
        Err(_) => body,
    };
    let body = panels::group(body, &kernels, &mesh.machine);
    streams::mark(&body, &mut kernels, mesh.device_count() as u64, mesh.machine.streamed_bytes);
    let binding = |(name, plane): (&String, Option<Plane>), value: Value| Binding {
        name: whole_name(name, plane),
        second_name: None,
        ty: shown_type(func.ty(value), plane, mesh),
        plane,
        layout: layout_of(func.ty(value)),
        place: (!func.ty(value).array.is_stream).then(|| storage.place(value)),
    };
    let params = func
        .params
        .iter()
        .zip(&func.body.params)
        .map(|(param, &value)| binding((&param.name, param.plane), value))
        .collect();
    let results = func
        .results
        .iter()
        .zip(&func.body.results)
        .map(|(info, &value)| binding((&info.name, info.plane), value))
        .collect();
    let constants = schedule.constants.iter();
    let constants = constants.map(|(value, bytes)| ConstantData { place: storage.place(*value), bytes: bytes.clone() });
    let program = Program {
        abi_version: ABI_VERSION,
        entry: func.name.clone(),
        files: Vec::new(),
        mesh: axes,
        arenas: storage.arenas.clone(),
        buffers: buffer_infos(module, schedule, &storage, site),
        params,
        results,
        constants: constants.collect(),
        body,
        kernels: (0..kernels.len()).map(|kernel| format!("kernel{kernel}")).collect(),
        fingerprint: 0,
        compile_ms: 0.0,
        mesh_programs: Vec::new(),
        devices: Vec::new(),
        channels: Vec::new(),
    };
    debug_assert_eq!(program.params.len(), func.body.params.len(), "every parameter is bound");
    debug_assert_eq!(program.results.len(), func.body.results.len(), "every result is bound");
    debug_assert!(
        schedule
            .constants
            .iter()
            .all(|(value, bytes)| storage.buffer(*value).is_some_and(|buffer| bytes.len() as u64 <= buffer.bytes)),
        "a constant is longer than its buffer"
    );
    let doubtful = match verify {
        None => false,
        Some(most) => !replay(
            &MemoryPlan {
                func,
                schedule,
                lifetimes: &lifetimes,
                storage: &storage,
                program: &program,
                kernels: &kernels,
            },
            most,
        )?,
    };
    let mut buffer_of = storage.buffer_of;
    buffer_of.truncate(func.values.len());
    Ok(Planned { program, kernels, doubtful, buffer_of })
}

/// Notes the scratch memory of tiles, each with the position of the first product.
fn note_scratch(tasks: &[Task], site: &dyn Fn(Span) -> Site, scratch: &mut BTreeMap<Value, Site>) {
    for task in tasks {
        if let Task::Work(Work::Tiles { tiles, origin }) = task {
            scratch.insert(tiles.scratch, site(origin.span));
        }
        task.blocks().into_iter().for_each(|inner| note_scratch(inner, site, scratch));
    }
}

/// A description of every buffer, named after the first of its values that has a name in the source, or else after an op.
fn buffer_infos(
    module: &Module,
    schedule: &Schedule,
    storage: &Storage,
    site: &dyn Fn(Span) -> Site,
) -> Vec<BufferInfo> {
    let func = &module.func;
    let mut names: Vec<Option<String>> = func.values.iter().map(|info| info.name.clone()).collect();
    for (param, &value) in func.params.iter().zip(&func.body.params) {
        names[value.0 as usize] = Some(param.name.clone());
    }
    let mut ops = vec![None; func.values.len()];
    func.body.walk(&mut |stmt| {
        stmt.results.iter().for_each(|result| ops[result.0 as usize] = Some(stmt.name()));
    });
    let mut scratch = BTreeMap::new();
    note_scratch(&schedule.tasks, site, &mut scratch);
    let infos = storage.buffers.iter().zip(&storage.places).map(|(buffer, &place)| {
        let named = |value: &&Value| names.get(value.0 as usize).is_some_and(Option::is_some);
        let made = |value: &&Value| ops.get(value.0 as usize).is_some_and(Option::is_some);
        let values = || buffer.values.iter();
        let shown = values().find(named).or_else(|| values().find(made)).or_else(|| buffer.values.first());
        let of_tiles = buffer.values.first().and_then(|value| Some((*value, *scratch.get(value)?)));
        if let Some((value, site)) = of_tiles {
            let ty = schedule.types[value.0 as usize].display(&module.mesh);
            return BufferInfo { name: "tiles".to_string(), ty, place, bytes: buffer.bytes, site };
        }
        let (name, ty, place_in_source) = match shown {
            None => (String::new(), String::new(), Site::default()),
            Some(value) => {
                let index = value.0 as usize;
                let op = || ops.get(index).copied().flatten().map(str::to_string);
                let name = names.get(index).cloned().flatten().or_else(op);
                let origin = func.values.get(index).map(|info| site(info.origin.span));
                (
                    name.unwrap_or_else(|| "temporary".to_string()),
                    schedule.types[index].display(&module.mesh),
                    origin.unwrap_or_default(),
                )
            }
        };
        BufferInfo { name, ty, place, bytes: buffer.bytes, site: place_in_source }
    });
    infos.collect()
}
