//! The cost of a program before it runs: memory, operations and communication of one device.

pub use crate::totals::{Collective, RowsRead, collectives, flops_per_device, reads};
use spmdc_abi::mesh::DeviceMesh;
use spmdc_abi::{DType, Program, Step};
use spmdc_ir::program::Module;
use spmdc_layout::hosts::Hosts;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::AxisSet;

/// Everything that `spmdc plan` shows.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanReport {
    /// The buffers, largest first.
    pub buffers: Vec<Holding>,
    /// Bytes of all memory that one device uses; memory that devices share counts for each of them.
    pub peak_bytes_per_device: u64,
    /// Bytes of memory of the whole process.
    pub process_bytes: u64,
    /// Operations of one device; loops with unknown bounds count as in [`reported_trips`](spmdc_layout::cost::reported_trips).
    pub flops_per_device: u64,
    /// The number of products of bf16 that the processor's instruction for them computes.
    pub native_bf16: usize,
    /// The work that runs tile by tile, in program order.
    pub tiles: Vec<TiledSteps>,
    /// The collectives, in program order.
    pub collectives: Vec<Collective>,
    /// The reads of rows of streams, in program order.
    pub reads: Vec<RowsRead>,
    /// The number of hosts, if they are known.
    pub hosts: Option<usize>,
    /// Bytes of memory of a host for messages to and from others, which collectives use one after the other. This is an estimate, because
    /// the bytes that a host sends are counted as the bytes that a host receives; 0 if no hosts are known.
    pub message_bytes: u64,
}

/// Products and kernels that run tile by tile: the arrays between them are not stored.
#[derive(Clone, Debug, PartialEq)]
pub struct TiledSteps {
    /// The number of products and kernels.
    pub steps: usize,
    /// The matrices of the first device, and their rows.
    pub matrices: i64,
    /// The rows of each matrix.
    pub rows: i64,
    /// The most rows of a tile.
    pub tile: u64,
    /// Bytes of one device's arrays that are not stored.
    pub unstored_bytes: u64,
    /// Bytes of one device's scratch memory: the tiles of all its threads.
    pub scratch_bytes: u64,
    /// The source line of the first product, from 1.
    pub line: u32,
}

/// A buffer and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Holding {
    /// The name of the value in the source, or of the op that makes it.
    pub name: String,
    /// The type of the value, with its sharding.
    pub ty: String,
    /// Bytes of one instance of the buffer.
    pub bytes: u64,
    /// The number of instances of the buffer in the process.
    pub instances: usize,
    /// The number of different instances: 1 for a replicated value.
    pub blocks: usize,
    /// Whether each instance holds a part of a sum over some axis.
    pub is_partial: bool,
    /// The source line of the value, from 1; 0 if it has none.
    pub line: u32,
}

impl Holding {
    /// In words: `8 blocks`, `2 blocks, 4 copies each`, `whole, 8 copies`. Each of several hosts has an array that a process has once.
    pub fn held(&self, hosts: usize) -> String {
        let copies = self.instances / self.blocks.max(1);
        match (self.blocks, copies) {
            (blocks, 0 | 1) if self.is_partial => format!("{blocks} partial sums"),
            (blocks, copies) if self.is_partial => format!("{blocks} partial sums, {copies} copies each"),
            (1, 0 | 1) if hosts > 1 => "whole, once on each host".to_string(),
            (1, 0 | 1) => "whole, once for all".to_string(),
            (1, copies) => format!("whole, {copies} copies"),
            (blocks, 0 | 1) => format!("{blocks} blocks"),
            (blocks, copies) => format!("{blocks} blocks, {copies} copies each"),
        }
    }
}

/// The costs of a partitioned module and the program compiled from it.
pub fn plan(module: &Module, program: &Program) -> PlanReport {
    let instances = |axes: AxisSet| module.mesh.size_of_set(axes);
    let mut buffers: Vec<Holding> = program
        .buffers
        .iter()
        .map(|buffer| Holding {
            name: buffer.name.clone(),
            ty: buffer.ty.clone(),
            bytes: buffer.bytes,
            instances: instances(program.arenas[buffer.place.arena as usize].axes),
            blocks: blocks(&buffer.ty, &module.mesh),
            is_partial: buffer.ty.contains("{U:"),
            line: buffer.site.line,
        })
        .collect();
    buffers.sort_by_key(|buffer| std::cmp::Reverse(buffer.bytes));
    let (collectives, hosts) = (collectives(module), module.mesh.hosts.as_ref().map(Hosts::count));
    let message_bytes = 2 * collectives.iter().map(|collective| collective.crossing).max().unwrap_or(0);
    PlanReport {
        buffers,
        peak_bytes_per_device: peak_bytes_per_device(program),
        process_bytes: program.arenas.iter().map(|arena| arena.bytes * instances(arena.axes) as u64).sum::<u64>()
            + ahead_bytes(program),
        flops_per_device: flops_per_device(module),
        native_bf16: native_bf16(program),
        tiles: tiles(program),
        collectives,
        reads: reads(module),
        hosts,
        message_bytes,
    }
}

/// The number of products that read bf16.
fn native_bf16(program: &Program) -> usize {
    let reads_bf16 = |step: &&Step| matches!(step, Step::Gemm(product) if product.operands == [DType::Bf16; 2]);
    Step::walk(&program.body).filter(reads_bf16).count()
}

/// The work that runs tile by tile.
fn tiles(program: &Program) -> Vec<TiledSteps> {
    let mesh = DeviceMesh::new(&program.mesh).expect("the compiler makes meshes that the runtime takes");
    let steps =
        Step::walk(&program.body).filter_map(|step| if let Step::Tiles(tiles) = step { Some(tiles) } else { None });
    let reported = steps.map(|tiles| TiledSteps {
        steps: tiles.members.len(),
        matrices: tiles.matrices.iter().map(|count| mesh.resolve(count, 0)).product(),
        rows: mesh.resolve(&tiles.rows, 0),
        tile: tiles.tile,
        unstored_bytes: tiles.unstored,
        scratch_bytes: tiles.slots * tiles.slot_bytes,
        line: tiles.site.line,
    });
    reported.collect()
}

/// The number of different blocks, or of parts of sums, of a value of this type: the product of the axes that the text names.
fn blocks(ty: &str, mesh: &Mesh) -> usize {
    let words = ty.split(|c: char| !c.is_alphanumeric() && c != '_');
    // The element type comes first, and an axis may have the same name.
    let names: Vec<&str> = words.skip(1).collect();
    // Parts of an axis have names of their own; all of them together have the name of the axis.
    let whole = mesh.whole().axes.into_iter().filter(|axis| mesh.axes.iter().all(|part| part.name != axis.name));
    let axes = mesh.axes.iter().cloned().chain(whole);
    axes.filter(|axis| names.contains(&axis.name.as_str())).map(|axis| axis.size).product()
}

/// Bytes of all memory that one device uses.
pub fn peak_bytes_per_device(program: &Program) -> u64 {
    let mesh = DeviceMesh::new(&program.mesh).expect("the compiler makes meshes that the runtime takes");
    program.bytes_per_device(&mesh)
}

/// Bytes of the rows of streams that all devices read ahead.
fn ahead_bytes(program: &Program) -> u64 {
    let mesh = DeviceMesh::new(&program.mesh).expect("the compiler makes meshes that the runtime takes");
    (0..mesh.devices()).map(|device| program.ahead_bytes(&mesh, device)).sum()
}
