//! Which process has which devices.

use crate::errors::trap::RunError;
use spmdc_abi::Program;
use spmdc_abi::mesh::DeviceMesh;

/// The meshes of all parts with their devices divided among processes: an equal number of the program's devices each, in the order of their
/// numbers.
pub(crate) fn assigned(
    program: &Program,
    meshes: Vec<DeviceMesh>,
    processes: usize,
) -> Result<Vec<DeviceMesh>, RunError> {
    let all = program.device_numbers();
    if processes == 0 || !all.len().is_multiple_of(processes) {
        return Err(undealt(all.len(), processes));
    }
    let each = all.len() / processes;
    let process = |label: usize| all.partition_point(|&other| other < label) / each;
    let assignment = |(part, mesh): (usize, DeviceMesh)| {
        let of = (0..mesh.devices()).map(|place| process(label(program, part, place))).collect();
        mesh.dealt_to(processes, of)
    };
    Ok(meshes.into_iter().enumerate().map(assignment).collect())
}

/// The number, in the program, of the device at a place of the mesh of a part.
pub(crate) fn label(program: &Program, part: usize, place: usize) -> usize {
    program.mesh_programs.get(part).map_or(place, |part| part.devices[place] as usize)
}

/// The devices cannot be divided among this number of processes; such a job is not started.
fn undealt(devices: usize, processes: usize) -> RunError {
    RunError::internal(format!("{devices} devices cannot be divided equally among {processes} processes"))
}
