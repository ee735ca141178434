//! What a program will cost, before it runs: memory, operations and communication of one device.

pub use crate::totals::{Collective, collectives, flops_per_device};
use spmdc_abi::Program;
use spmdc_ir::layout::mesh::Mesh;
use spmdc_ir::layout::types::AxisSet;
use spmdc_ir::program::Module;

/// Everything that `spmdc plan` shows.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanReport {
    /// Largest first.
    pub buffers: Vec<Holding>,
    /// What one device sees; memory that devices share counts for each of them.
    pub peak_bytes_per_device: u64,
    /// Of the whole process.
    pub process_bytes: u64,
    /// Loops with unknown bounds count as in [`reported_trips`](spmdc_ir::cost::reported_trips).
    pub flops_per_device: u64,
    /// In program order.
    pub collectives: Vec<Collective>,
}

/// A buffer and what lies in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Holding {
    /// The name of the value in the source, or of the op that makes it.
    pub name: String,
    /// The type of the value, with its sharding.
    pub ty: String,
    /// Bytes of one instance of the buffer.
    pub bytes: u64,
    /// How many times the process holds it, or a block of it.
    pub instances: usize,
    /// How many of these differ: 1 of a value that is whole everywhere.
    pub blocks: usize,
    /// Each of them is a part of a sum over some axis.
    pub is_partial: bool,
    /// The source line of the value, from 1; 0 if it has none.
    pub line: u32,
}

impl Holding {
    /// In words: `8 blocks`, `2 blocks, 4 copies each`, `whole, 8 copies`.
    pub fn held(&self) -> String {
        let copies = self.instances / self.blocks.max(1);
        match (self.blocks, copies) {
            (blocks, 0 | 1) if self.is_partial => format!("{blocks} partial sums"),
            (blocks, copies) if self.is_partial => format!("{blocks} partial sums, {copies} copies each"),
            (1, 0 | 1) => "whole, once for all".to_string(),
            (1, copies) => format!("whole, {copies} copies"),
            (blocks, 0 | 1) => format!("{blocks} blocks"),
            (blocks, copies) => format!("{blocks} blocks, {copies} copies each"),
        }
    }
}

/// The costs of a partitioned module and the program that was made of it.
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
    PlanReport {
        buffers,
        peak_bytes_per_device: peak_bytes_per_device(program),
        process_bytes: program.arenas.iter().map(|arena| arena.bytes * instances(arena.axes) as u64).sum(),
        flops_per_device: flops_per_device(module),
        collectives: collectives(module),
    }
}

/// How many different blocks, or parts of sums, a value of this type has: the product of the axes that the text names.
fn blocks(ty: &str, mesh: &Mesh) -> usize {
    let words = ty.split(|c: char| !c.is_alphanumeric() && c != '_');
    // The element type comes first, and an axis may be called like it.
    let names: Vec<&str> = words.skip(1).collect();
    // Parts of an axis have names of their own; all of them together have the name of the axis.
    let whole = mesh.whole().axes.into_iter().filter(|axis| mesh.axes.iter().all(|part| part.name != axis.name));
    let axes = mesh.axes.iter().cloned().chain(whole);
    axes.filter(|axis| names.contains(&axis.name.as_str())).map(|axis| axis.size).product()
}

/// What one device sees of all arenas.
pub fn peak_bytes_per_device(program: &Program) -> u64 {
    program.arenas.iter().map(|arena| arena.bytes).sum()
}
