//! The estimated time of a step of a schedule on the first device of its mesh, whose blocks are the largest.

use spmdc_abi::mesh::DeviceMesh;
use spmdc_abi::{
    AxisSet, CollectiveKind, ExchangeStep, GemmDim, GemmStep, KernelStep, Layout, LibraryStep, Place, Program,
    ReduceStep, Shards, Step, TileStep,
};
use spmdc_layout::cost::{of_barrier, of_copy, of_product};
use spmdc_layout::crossings;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::sharding::DimSharding;

/// The device whose time is estimated.
const DEVICE: usize = 0;

/// The schedule of one mesh.
#[derive(Clone, Copy)]
pub(super) struct TimedProgram<'a> {
    pub program: &'a Program,
    pub mesh: &'a DeviceMesh,
    /// The same mesh, with the hosts of its devices if they are known.
    pub layouts: &'a Mesh,
}

/// The dimensions of a layout.
pub(super) fn dims_of(layout: &Layout) -> Vec<DimSharding> {
    layout.dims.iter().map(|dim| DimSharding::closed(dim.axes.clone())).collect()
}

/// The sizes of a whole array.
pub(super) fn sizes_of(layout: &Layout) -> Vec<usize> {
    layout.dims.iter().map(|dim| dim.size).collect()
}

impl TimedProgram<'_> {
    /// Nanoseconds of a step without nested steps, including its messages between hosts; 0 for loops and branches.
    pub fn of_step(self, step: &Step) -> f64 {
        let levels = self.layouts.hosts.as_ref().map(|hosts| hosts.levels);
        self.inside(step) + levels.map_or(0.0, |levels| levels.time_between(self.crossing(step)))
    }

    /// Bytes that a host receives from others in a step, at most; 0 if no hosts are known. A product or a merge of sorted
    /// lines gets the blocks of all owners.
    fn crossing(self, step: &Step) -> u64 {
        let of_blocks = |axes: &[u8], place: Place, bytes: u64| {
            let group: AxisSet = axes.iter().map(|&axis| usize::from(axis)).collect();
            crossings::of_group(CollectiveKind::AllGather, (group, self.own_axes(place)), bytes, self.layouts)
        };
        match step {
            Step::Exchange(ExchangeStep { from, to, .. }) => {
                let (before, after) = (dims_of(&from.layout), dims_of(&to.layout));
                let moved = crossings::moved(&sizes_of(&to.layout), &before, &after, self.layouts);
                moved * to.layout.dtype.size() as u64
            }
            Step::Reduce(ReduceStep { from, to, reduce, .. }) => crossings::combined(
                (&sizes_of(&to.layout), to.layout.dtype.size()),
                (&dims_of(&from.layout), &dims_of(&to.layout)),
                (*reduce, AxisSet::EMPTY),
                self.layouts,
            ),
            Step::Permute(step) => {
                let group = step.axes.iter().map(|&axis| usize::from(axis)).collect();
                let split = (group, self.own_axes(step.from));
                crossings::of_group(CollectiveKind::CollectivePermute, split, step.bytes, self.layouts)
            }
            Step::Fetch(step) => step.bytes * crossings::beside_others(step.group, self.layouts),
            Step::Gemm(gemm) => gemm
                .ring
                .as_ref()
                .map_or(0, |ring| of_blocks(&ring.axes, if ring.is_b { gemm.b } else { gemm.a }, ring.bytes)),
            Step::Library(library) => match (&library.owners, library.operands.first()) {
                (Some(owners), Some(operand)) => of_blocks(&owners.axes, operand.place, owners.bytes),
                (None, _) | (_, None) => 0,
            },
            Step::GroupPanels(panels) => panels.steps.iter().map(|step| self.crossing(step)).sum(),
            Step::Kernel(_)
            | Step::Panels { .. }
            | Step::Tiles(_)
            | Step::Sync { .. }
            | Step::Await { .. }
            | Step::Copy { .. }
            | Step::Post { .. }
            | Step::CheckIndex { .. }
            | Step::Print { .. }
            | Step::For { .. }
            | Step::While { .. }
            | Step::If { .. } => 0,
        }
    }

    /// Nanoseconds of a step as if all devices were on one host.
    fn inside(self, step: &Step) -> f64 {
        match step {
            Step::Kernel(kernel) => self.of_kernel(kernel),
            Step::Panels { kernels, lags: _, panel: _ } => kernels.iter().map(|kernel| self.of_kernel(kernel)).sum(),
            // Without the barriers in between.
            Step::GroupPanels(panels) => {
                let kernels = panels.kernels().map(|kernel| self.of_kernel(kernel)).sum::<f64>();
                kernels + panels.reductions().map(|step| self.of_reduction(step)).sum::<f64>()
            }
            Step::Tiles(tiles) => self.of_tiles(tiles),
            Step::Gemm(gemm) => self.of_gemm(gemm),
            Step::Library(library) => self.of_library(library),
            Step::Exchange(step) => self.of_filling(&step.to, 1),
            Step::Reduce(step) => self.of_reduction(step),
            Step::Permute(step) => of_copy(step.bytes) / self.sharers(step.to) as f64,
            Step::Fetch(step) => of_copy(step.bytes),
            Step::Sync { group, .. } | Step::Await { group, .. } => of_barrier(self.mesh.count(group.iter())),
            Step::Copy { bytes, split, .. } => of_copy(*bytes) / self.shares(*split) as f64,
            Step::Post { .. }
            | Step::CheckIndex { .. }
            | Step::Print { .. }
            | Step::For { .. }
            | Step::While { .. }
            | Step::If { .. } => 0.0,
        }
    }

    /// Nanoseconds of a step's own work on the device, without copies from other devices; 0 for loops and branches.
    pub fn of_work(self, step: &Step) -> f64 {
        match step {
            Step::Exchange(_) | Step::Permute(_) | Step::Fetch(_) | Step::Sync { .. } | Step::Await { .. } => 0.0,
            Step::Reduce(step) => step.product.as_ref().map_or(0.0, |product| self.of_gemm(product)),
            Step::GroupPanels(panels) => {
                let kernels = panels.kernels().map(|kernel| self.of_kernel(kernel)).sum::<f64>();
                let products = panels.reductions().filter_map(|step| step.product.as_ref());
                kernels + products.map(|product| self.of_gemm(product)).sum::<f64>()
            }
            Step::Kernel(_)
            | Step::Panels { .. }
            | Step::Tiles(_)
            | Step::Gemm(_)
            | Step::Library(_)
            | Step::Copy { .. }
            | Step::Post { .. }
            | Step::CheckIndex { .. }
            | Step::Print { .. }
            | Step::For { .. }
            | Step::While { .. }
            | Step::If { .. } => self.inside(step),
        }
    }

    fn of_kernel(self, kernel: &KernelStep) -> f64 {
        let units = self.mesh.units(kernel, DEVICE);
        (units.end - units.start) as f64 * f64::from(kernel.cost)
    }

    fn of_reduction(self, step: &ReduceStep) -> f64 {
        let product = step.product.as_ref().map_or(0.0, |product| self.of_gemm(product));
        product + self.of_filling(&step.to, self.mesh.count(step.reduce.iter()))
    }

    fn of_gemm(self, gemm: &GemmStep) -> f64 {
        let extent = |dim: &GemmDim| self.mesh.resolve(&dim.extent, DEVICE).max(0) as f64;
        let dims = [&gemm.m, &gemm.n, &gemm.k].into_iter().chain(&gemm.loops).chain(&gemm.contracted);
        // The blocks of all owners, one after the other.
        let owners = gemm.ring.as_ref().map_or(1, |ring| self.mesh.count(ring.axes.iter().map(|&axis| axis as usize)));
        let all: f64 = dims.map(extent).product::<f64>() * owners as f64;
        of_product(all) / self.shares(gemm.split) as f64
    }

    fn of_tiles(self, tiles: &TileStep) -> f64 {
        let number = |scalar: &spmdc_abi::Scalar| self.mesh.resolve(scalar, DEVICE).max(0) as f64;
        let rows = tiles.matrices.iter().chain([&tiles.rows]).map(number).product::<f64>();
        rows * f64::from(tiles.cost) / self.shares(tiles.split) as f64
    }

    /// The number of devices of the process that divide work along these axes.
    fn shares(self, split: AxisSet) -> usize {
        self.mesh.rank(DEVICE, split).1
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
        self.shares(self.mesh.axes().minus(self.own_axes(place)))
    }

    /// The axes along which devices have separate memory at a place.
    fn own_axes(self, place: Place) -> AxisSet {
        self.program.arenas.get(place.arena as usize).map_or(AxisSet::EMPTY, |arena| arena.axes)
    }
}
