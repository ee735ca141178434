//! The memory of a program with several meshes, as the runtime counts it before it allocates: what `--memory-limit` bounds.

use spmdc_abi::mesh::DeviceMesh;
use spmdc_abi::{AxisSet, Channel, Part, Program};
use std::collections::BTreeSet;

/// A bound of the memory of every process of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    /// Maximum bytes of a process.
    pub bytes: u64,
    /// The number of processes, to which the devices are dealt in the order of their numbers, equally many to each.
    pub processes: usize,
}

impl MemoryLimit {
    /// Whether every process has room for its devices' memory, and for the values of all transfers. Messages between processes come on top.
    pub(super) fn holds(self, program: &Program) -> bool {
        let all = program.device_numbers();
        // Jobs are not started with devices that cannot be dealt.
        let processes = if all.len().is_multiple_of(self.processes.max(1)) { self.processes.max(1) } else { 1 };
        let each = all.len() / processes;
        let process = |number: u32| all.partition_point(|&other| other < number as usize) / each;
        (0..processes).all(|own| self.needed(program, &|number| process(number) == own) <= u128::from(self.bytes))
    }

    /// Bytes of a process that has these devices.
    fn needed(self, program: &Program, has: &dyn Fn(u32) -> bool) -> u128 {
        let of_part = |part: &Part| -> u128 {
            let mesh = DeviceMesh::new(&part.program.mesh).expect("the compiler makes meshes that the runtime takes");
            let own: Vec<usize> = (0..mesh.devices()).filter(|&place| has(part.devices[place])).collect();
            let copies = |axes: AxisSet| {
                own.iter().map(|&place| mesh.linear(place, axes.iter())).collect::<BTreeSet<usize>>().len()
            };
            let arenas = part.program.arenas.iter();
            let arenas: u128 = arenas.map(|arena| u128::from(arena.bytes) * copies(arena.axes) as u128).sum();
            arenas + own.iter().map(|&place| u128::from(part.program.ahead_bytes(&mesh, place))).sum::<u128>()
        };
        let in_transfer = |channel: &Channel| {
            let elements: u128 = channel.sent.dims.iter().map(|dim| dim.size as u128).product();
            elements * channel.sent.dtype.size() as u128
        };
        program.parts.iter().map(of_part).sum::<u128>() + program.channels.iter().map(in_transfer).sum::<u128>()
    }
}
