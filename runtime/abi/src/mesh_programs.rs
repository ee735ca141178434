//! Programs with several meshes: the program of each, and the transfers between them.

use crate::mesh::DeviceMesh;
use crate::sorted::distinct;
use crate::{AxisSet, Layout, LibraryFunction, LibraryStep, Program, Site, Step};
use serde::{Deserialize, Serialize};

/// The program of one of several meshes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeshProgram {
    /// The name of the mesh.
    pub name: String,
    /// The number of the device at each position of the mesh, row-major. Meshes may have devices in common.
    pub devices: Vec<u32>,
    /// Its steps, without nested parts. It calls the kernels of the whole program.
    pub program: Program,
    /// For each of its parameters, the corresponding parameter of the whole program. Several parts may have the same parameter.
    pub params: Vec<u32>,
    /// For each of its results, the corresponding result of the whole program.
    pub results: Vec<u32>,
}

/// A transfer between two parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Channel {
    /// The part that sends, by its index in [`Program::mesh_programs`].
    pub from: u32,
    /// The part that receives; another one.
    pub to: u32,
    /// The layout of the array on the devices that send.
    pub sent: Layout,
    /// Its layout on the devices that receive.
    pub received: Layout,
    /// The statement that moves the value.
    pub site: Site,
}

/// One end of a transfer between two meshes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// The transfer, by its index in [`Program::channels`](crate::Program::channels). The program of one mesh sends it, and the program of
    /// another one receives it the same number of times, with the values in the same order.
    pub channel: u32,
    /// The layout of the array on the devices of this end, as the channel has it.
    pub layout: Layout,
}

impl Program {
    /// The number of devices on which something happens: the product of the sizes of the mesh; of several meshes, the number of
    /// different devices.
    pub fn device_count(&self) -> usize {
        if self.mesh_programs.is_empty() {
            return self.mesh.iter().map(|axis| axis.size).product();
        }
        distinct(self.mesh_programs.iter().flat_map(|part| part.devices.iter().map(|&device| device as usize))).len()
    }

    /// The numbers of all devices that the program names, in ascending order: they are divided among processes.
    pub fn device_numbers(&self) -> Vec<usize> {
        match self.mesh_programs.is_empty() {
            true => (0..self.device_count()).collect(),
            false => self.devices.iter().map(|&device| device as usize).collect(),
        }
    }

    /// The programs that run side by side: the parts, or the program itself.
    pub fn programs(&self) -> Vec<&Program> {
        match self.mesh_programs.is_empty() {
            true => vec![self],
            false => self.mesh_programs.iter().map(|part| &part.program).collect(),
        }
    }

    /// Bytes that some devices use together: the instances of arenas that they see, the rows of streams that they read ahead, and the
    /// values of all transfers. `meshes` has the mesh of each of [`Program::programs`], and `own` gives these devices by their
    /// positions on one of the meshes.
    pub fn bytes_of_devices(&self, meshes: &[DeviceMesh], own: impl Fn(usize) -> Vec<usize>) -> u128 {
        let of_program = |(number, (program, mesh)): (usize, (&Program, &DeviceMesh))| -> u128 {
            let own = own(number);
            let copies = |axes: AxisSet| {
                let instances = own.iter().map(|&device| mesh.linear(device, axes.iter()));
                distinct(instances).len() as u128
            };
            let arenas = program.arenas.iter().map(|arena| u128::from(arena.bytes) * copies(arena.axes));
            let ahead = own.iter().map(|&device| u128::from(program.ahead_bytes(mesh, device)));
            arenas.chain(ahead).sum()
        };
        let in_transfer = |channel: &Channel| {
            let elements: u128 = channel.sent.dims.iter().map(|dim| dim.size as u128).product();
            elements * channel.sent.dtype.size() as u128
        };
        let programs = self.programs();
        debug_assert_eq!(programs.len(), meshes.len(), "each program has a mesh");
        let of_programs: u128 = programs.into_iter().zip(meshes).enumerate().map(of_program).sum();
        of_programs + self.channels.iter().map(in_transfer).sum::<u128>()
    }

    /// The ends of transfers in the steps, in their order.
    pub fn messages(&self) -> Vec<&Message> {
        fn message(step: &Step) -> Option<&Message> {
            if let Step::Library(step) = step { step.message() } else { None }
        }
        Step::walk(&self.body).filter_map(message).collect()
    }
}

impl LibraryStep {
    /// The end of a transfer that the step is.
    pub fn message(&self) -> Option<&Message> {
        match &self.function {
            LibraryFunction::Send(message) | LibraryFunction::Receive(message) => Some(message),
            LibraryFunction::Sort(_)
            | LibraryFunction::Merge(_)
            | LibraryFunction::Scatter(_)
            | LibraryFunction::Matrix(_)
            | LibraryFunction::Rows(_)
            | LibraryFunction::Select(_)
            | LibraryFunction::Fft(_) => None,
        }
    }
}
