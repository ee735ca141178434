//! The memory of a program, as the runtime counts it before it allocates; `--memory-limit` bounds it.

use spmdc_abi::Program;
use spmdc_abi::mesh::DeviceMesh;

/// A bound of the memory of every process of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    /// Maximum bytes of a process.
    pub bytes: u64,
    /// The number of processes that share the devices in the order of their numbers, an equal number each.
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
        let mesh = |program: &Program| {
            DeviceMesh::new(&program.mesh).expect("the compiler makes meshes that the runtime takes")
        };
        let programs = program.programs();
        let meshes: Vec<DeviceMesh> = programs.iter().map(|program| mesh(program)).collect();
        (0..processes).all(|own| {
            let devices = |part: usize| {
                let numbers: Vec<u32> = match program.mesh_programs.get(part) {
                    Some(part) => part.devices.clone(),
                    None => all.iter().map(|&device| device as u32).collect(),
                };
                let here = numbers.into_iter().enumerate().filter(|(_, number)| process(*number) == own);
                here.map(|(place, _)| place).collect()
            };
            program.bytes_of_devices(&meshes, devices) <= u128::from(self.bytes)
        })
    }
}
