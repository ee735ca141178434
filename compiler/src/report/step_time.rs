//! The estimated time of a step of a schedule on the first device of its mesh, whose blocks are the largest.

use spmdc_abi::mesh::DeviceMesh;
use spmdc_abi::{AxisSet, GemmDim, GemmStep, KernelStep, LibraryStep, Place, Program, Shards, Step};
use spmdc_ir::cost::{of_barrier, of_copy, of_product};

/// The device whose time is estimated.
const DEVICE: usize = 0;

/// The schedule of one mesh.
#[derive(Clone, Copy)]
pub(super) struct TimedProgram<'a> {
    pub program: &'a Program,
    pub mesh: &'a DeviceMesh,
}

impl TimedProgram<'_> {
    /// Nanoseconds of a step without other steps in it; 0 for loops and branches.
    pub fn of_step(self, step: &Step) -> f64 {
        match step {
            Step::Kernel(kernel) => self.of_kernel(kernel),
            Step::Panels { kernels, panel: _ } => kernels.iter().map(|kernel| self.of_kernel(kernel)).sum(),
            Step::Gemm(gemm) => self.of_gemm(gemm),
            Step::Library(library) => self.of_library(library),
            Step::Exchange(step) => self.of_filling(&step.to, 1),
            Step::Reduce(step) => self.of_filling(&step.to, self.mesh.count(step.reduce.iter())),
            Step::Permute(step) => of_copy(step.bytes) / self.sharers(step.to) as f64,
            Step::Fetch(step) => of_copy(step.bytes),
            Step::Sync { group, .. } | Step::Await { group, .. } => of_barrier(self.mesh.count(group.iter())),
            Step::Copy { bytes, split, .. } => of_copy(*bytes) / self.mesh.count(split.iter()) as f64,
            Step::Post { .. }
            | Step::CheckIndex { .. }
            | Step::Print { .. }
            | Step::For { .. }
            | Step::While { .. }
            | Step::If { .. } => 0.0,
        }
    }

    fn of_kernel(self, kernel: &KernelStep) -> f64 {
        let units = self.mesh.units(kernel, DEVICE);
        (units.end - units.start) as f64 * f64::from(kernel.cost)
    }

    fn of_gemm(self, gemm: &GemmStep) -> f64 {
        let extent = |dim: &GemmDim| self.mesh.resolve(&dim.extent, DEVICE).max(0) as f64;
        let dims = [&gemm.m, &gemm.n, &gemm.k].into_iter().chain(&gemm.loops).chain(&gemm.contracted);
        // The blocks of all owners, one after the other.
        let owners = gemm.ring.as_ref().map_or(1, |ring| self.mesh.count(ring.axes.iter().map(|&axis| axis as usize)));
        let all: f64 = dims.map(extent).product::<f64>() * owners as f64;
        of_product(all) / self.mesh.count(gemm.split.iter()) as f64
    }

    fn of_library(self, library: &LibraryStep) -> f64 {
        let resolve = |scalar: &spmdc_abi::Scalar| self.mesh.resolve(scalar, DEVICE);
        let share = library.share(self.mesh, DEVICE);
        let calls = (share.end - share.start) as f64 / library.parts(resolve).max(1) as f64;
        calls * f64::from(library.cost)
    }

    /// Nanoseconds of filling the device's part of a block from this many others.
    fn of_filling(self, to: &Shards, sources: usize) -> f64 {
        let elements: usize = self.mesh.stored_shape(&to.layout).iter().product();
        let bytes = elements * to.layout.dtype.size() * sources;
        of_copy(bytes as u64) / self.sharers(to.place) as f64
    }

    /// The number of devices that share the memory of a place.
    fn sharers(self, place: Place) -> usize {
        let own = self.program.arenas.get(place.arena as usize).map_or(AxisSet::EMPTY, |arena| arena.axes);
        self.mesh.count(self.mesh.axes().minus(own).iter())
    }
}
