//! The programs of several meshes as one.

use spmdc_abi::{ABI_VERSION, Binding, Channel, Layout, LayoutDim, MeshProgram, Place, Plane, Program, Site, Step};
use spmdc_grammar::span::Span;
use spmdc_ir::program::{Module, Value, shown_type, whole_name};
use spmdc_kernel::loops::Kernel;
use spmdc_layout::mesh::NamedMesh;
use spmdc_layout::types::Type;
use spmdc_passes::project::ChannelInfo;
use std::collections::BTreeSet;

/// The program of one mesh, and the parameters and results of the whole program that correspond to its own.
pub(super) struct MeshCode {
    pub mesh: NamedMesh,
    pub program: Program,
    pub kernels: Vec<Kernel>,
    pub params: Vec<usize>,
    pub results: Vec<usize>,
}

/// The whole program, of the programs of its meshes.
pub(super) fn joined(
    whole: &Module,
    programs: Vec<MeshCode>,
    channels: &[ChannelInfo],
    site: &dyn Fn(Span) -> Site,
) -> (Program, Vec<Kernel>) {
    let mut parts = Vec::new();
    let mut all_kernels = Vec::new();
    for MeshCode { mesh, mut program, mut kernels, params, results } in programs {
        // The kernels of all parts are in one table.
        let first = all_kernels.len() as u32;
        call_from(&mut program.body, first);
        program.kernels = (first..first + program.kernels.len() as u32).map(|at| format!("kernel{at}")).collect();
        all_kernels.append(&mut kernels);
        let numbers = |all: Vec<usize>| all.into_iter().map(|at| at as u32).collect();
        parts.push(MeshProgram {
            name: mesh.name,
            devices: mesh.devices.iter().map(|&device| device as u32).collect(),
            program,
            params: numbers(params),
            results: numbers(results),
        });
    }
    let func = &whole.func;
    let binding = |(name, plane): (&String, Option<Plane>), value: Value, found: Vec<(&Binding, &str)>| {
        let ty = func.ty(value);
        let shown = match found.as_slice() {
            [(own, mesh)] => format!("{} on {mesh}", own.ty),
            _ => {
                let plain = Type { array: ty.array.clone(), ..Type::replicated(ty.array.clone()) };
                shown_type(&plain, plane, &whole.mesh)
            }
        };
        let dims = ty.shape().iter().map(|&size| LayoutDim { size, axes: Vec::new() }).collect();
        Binding {
            name: whole_name(name, plane),
            second_name: None,
            ty: shown,
            plane,
            layout: Layout { dtype: ty.dtype(), dims },
            place: (!ty.array.is_stream).then_some(Place { arena: 0, offset: 0 }),
        }
    };
    let of = |at: usize, list: fn(&MeshProgram) -> (&Vec<u32>, &Vec<Binding>)| {
        let own = |part: &MeshProgram| list(part).0.iter().position(|&whole| whole as usize == at);
        parts.iter().filter_map(|part| Some((&list(part).1[own(part)?], part.name.as_str()))).collect::<Vec<_>>()
    };
    let params = func.params.iter().zip(&func.body.params).enumerate().map(|(at, (param, &value))| {
        binding((&param.name, param.plane), value, of(at, |part| (&part.params, &part.program.params)))
    });
    let params = params.collect();
    let results = func.results.iter().zip(&func.body.results).enumerate().map(|(at, (info, &value))| {
        binding((&info.name, info.plane), value, of(at, |part| (&part.results, &part.program.results)))
    });
    let results = results.collect();
    let layout = |part: usize, channel: usize| {
        let messages = parts[part].program.messages();
        let own = messages.iter().find(|message| message.channel as usize == channel);
        own.expect("each end of a transfer is in the program of its mesh").layout.clone()
    };
    let channel = |(number, info): (usize, &ChannelInfo)| Channel {
        from: info.from as u32,
        to: info.to as u32,
        sent: layout(info.from, number),
        received: layout(info.to, number),
        site: site(info.origin.span),
    };
    let channels = channels.iter().enumerate().map(channel).collect();
    let all: BTreeSet<u32> =
        whole.mesh.named.iter().flat_map(|mesh| &mesh.devices).map(|&device| device as u32).collect();
    let program = Program {
        abi_version: ABI_VERSION,
        entry: func.name.clone(),
        files: Vec::new(),
        mesh: Vec::new(),
        arenas: Vec::new(),
        buffers: Vec::new(),
        params,
        results,
        constants: Vec::new(),
        body: Vec::new(),
        kernels: (0..all_kernels.len()).map(|kernel| format!("kernel{kernel}")).collect(),
        fingerprint: 0,
        compile_ms: 0.0,
        mesh_programs: parts,
        devices: all.into_iter().collect(),
        channels,
    };
    (program, all_kernels)
}

/// Lets steps call the kernels of a table from this one on.
fn call_from(steps: &mut [Step], first: u32) {
    for step in steps {
        step.kernel_numbers_mut().into_iter().for_each(|number| *number += first);
        step.blocks_mut().for_each(|block| call_from(block, first));
    }
}
