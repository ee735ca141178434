//! The hosts of the devices of a program.

use spmdc_abi::{MeshProgram, Program};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_layout::cost::Levels;
use spmdc_layout::hosts::Hosts;
use spmdc_layout::mesh::{Axis, AxisKind, Mesh};
use std::collections::BTreeSet;

/// The hosts that share the devices of the program in the order of their numbers, an equal number each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostOptions {
    /// The number of hosts, or of processes.
    pub count: usize,
    /// The costs of communication inside a host and between hosts.
    pub levels: Levels,
    /// Whether it is an error if the devices cannot be divided; otherwise hosts are then unknown. For processes that a launcher has started
    /// the runtime reports more.
    pub refuses: bool,
}

impl HostOptions {
    /// Tells a mesh the hosts of its devices, which are some of all devices of the program, in ascending order.
    pub(crate) fn place(self, mesh: &mut Mesh, all: &[usize]) -> Result<(), Vec<Diagnostic>> {
        if self.count == 0 || !all.len().is_multiple_of(self.count) {
            if !self.refuses {
                return Ok(());
            }
            let (devices, count) = (all.len(), self.count);
            let plural = if devices == 1 { "" } else { "s" };
            let message = format!("{devices} device{plural} of the mesh cannot be divided equally among {count} hosts");
            let error = Diagnostic::error(Code::E0807, Span::default(), message);
            return Err(vec![error.help("choose another number of hosts, or another mesh").of_command()]);
        }
        let numbers: Vec<usize> = match mesh.named.first() {
            Some(named) => named.devices.clone(),
            None => (0..mesh.device_count()).collect(),
        };
        debug_assert_eq!(numbers.len(), mesh.device_count(), "a mesh of one name has all its axes");
        mesh.hosts = Some(self.of(&mesh.axes, &numbers, all));
        Ok(())
    }

    /// The hosts of the devices with these numbers on a mesh with these axes.
    fn of(self, axes: &[Axis], numbers: &[usize], all: &[usize]) -> Hosts {
        let each = all.len() / self.count;
        let of: Vec<usize> = numbers.iter().map(|number| all.partition_point(|other| other < number) / each).collect();
        let sizes: Vec<usize> = axes.iter().map(|axis| axis.size).collect();
        Hosts::new(&sizes, &of, self.count, self.levels)
    }

    /// The meshes of the parts of a compiled program, or its one mesh, with their hosts if its devices can be divided among them.
    pub(crate) fn on_parts(of: Option<HostOptions>, program: &Program) -> Vec<Mesh> {
        let all = program.device_numbers();
        let of = of.filter(|hosts| hosts.count > 0 && all.len().is_multiple_of(hosts.count));
        let mesh = |program: &Program, numbers: &[usize]| {
            let axes = program.mesh.iter().map(|axis| Axis::new(&axis.name, axis.size, AxisKind::Auto));
            let axes: Vec<Axis> = axes.collect();
            Mesh { hosts: of.map(|hosts| hosts.of(&axes, numbers, &all)), axes, ..Mesh::default() }
        };
        if program.mesh_programs.is_empty() {
            return vec![mesh(program, &all)];
        }
        let of_part = |part: &MeshProgram| {
            let numbers: Vec<usize> = part.devices.iter().map(|&device| device as usize).collect();
            mesh(&part.program, &numbers)
        };
        program.mesh_programs.iter().map(of_part).collect()
    }
}

/// The numbers of all devices of a program, in ascending order.
pub(crate) fn all_devices(mesh: &Mesh) -> Vec<usize> {
    let all: BTreeSet<usize> = match mesh.named.is_empty() {
        true => (0..mesh.device_count()).collect(),
        false => mesh.named.iter().flat_map(|named| named.devices.iter().copied()).collect(),
    };
    all.into_iter().collect()
}
