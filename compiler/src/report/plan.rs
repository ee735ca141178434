//! What a program will cost, before it runs: memory, operations and communication of one device.

use spmdc_abi::{CollectiveKind, Program};
use spmdc_grammar::span::Span;
use spmdc_ir::cost::reported_trips;
use spmdc_ir::layout::mesh::Mesh;
use spmdc_ir::layout::types::{AxisSet, DType};
use spmdc_ir::ops::Op;
use spmdc_ir::program::origin::ASKED;
use spmdc_ir::program::{Block, Func, Module, Stmt};
use spmdc_ir::reshard::Traffic;

/// Everything that `spmdc plan` shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Largest first.
    pub buffers: Vec<Holding>,
    /// What one device sees; memory that devices share counts for each of them.
    pub peak_bytes_per_device: u64,
    /// Of the whole process.
    pub process_bytes: u64,
    /// Loops with unknown bounds count as in [`reported_trips`].
    pub flops_per_device: u64,
    /// In program order.
    pub collectives: Vec<Collective>,
}

/// A buffer and what lies in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Holding {
    pub name: String,
    pub ty: String,
    pub bytes: u64,
    /// How many times the process holds it, or a block of it.
    pub instances: usize,
    /// How many of these differ: 1 of a value that is whole everywhere.
    pub blocks: usize,
    /// Each of them is a part of a sum over some axis.
    pub is_partial: bool,
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

/// A statement in which devices exchange data.
#[derive(Clone, Debug, PartialEq)]
pub struct Collective {
    pub kind: CollectiveKind,
    pub axes: Vec<String>,
    pub group_size: usize,
    pub dtype: DType,
    /// Of one device's operand, the largest.
    pub local_shape: Vec<usize>,
    pub bytes: u64,
    /// Bytes that reach the device that receives most.
    pub received: u64,
    /// Bytes that reach all devices.
    pub received_by_all: u64,
    /// How often it happens; None if that is not known before.
    pub trips: Option<u64>,
    pub span: Span,
    pub reason: String,
    /// The program asks for it: by `reshard`, `out=`, an annotation, or a collective of `manual` code.
    pub asked: bool,
    /// Every device has the whole array afterwards.
    pub gathers_all: bool,
}

impl Collective {
    /// Bytes of one device's operands over the whole run.
    pub fn total_bytes(&self) -> Option<u64> {
        self.trips.map(|trips| trips.saturating_mul(self.bytes))
    }
}

/// The costs of a partitioned module and the program that was made of it.
pub fn plan(module: &Module, program: &Program) -> Plan {
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
    Plan {
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

/// All collectives, in program order.
pub fn collectives(module: &Module) -> Vec<Collective> {
    let mut found = Vec::new();
    each_stmt(&module.func.body, Some(1), &mut |stmt, trips| {
        found.extend(collective(&module.func, &module.mesh, stmt, trips));
    });
    found
}

/// What devices exchange in a statement, if several take part.
fn collective(func: &Func, mesh: &Mesh, stmt: &Stmt, trips: Option<u64>) -> Option<Collective> {
    let (kind, group) = func.collective(stmt, mesh).filter(|&(_, group)| mesh.size_of_set(group) > 1)?;
    let operand = func.ty(*stmt.args.first()?);
    let axes: Vec<u8> = group.iter().map(|axis| axis as u8).collect();
    let group_size = mesh.size_of_set(group);
    let traffic = stmt.op.rules().traffic(&func.types(&stmt.args), &func.types(&stmt.results), mesh);
    let traffic = traffic.unwrap_or_else(|| Traffic::usual(kind, group_size, operand, mesh));
    Some(Collective {
        kind,
        axes: mesh.names(&axes).into_iter().map(str::to_string).collect(),
        group_size,
        dtype: operand.dtype(),
        bytes: traffic.operand.iter().product::<usize>() as u64 * operand.dtype().size() as u64,
        local_shape: traffic.operand,
        received: traffic.received,
        received_by_all: traffic.total,
        trips,
        span: stmt.origin.span,
        reason: stmt.origin.reason.clone(),
        asked: stmt.op.rules().group().is_some() || stmt.origin.reason == ASKED,
        gathers_all: kind == CollectiveKind::AllGather
            && stmt.results.iter().all(|&result| func.ty(result).distinct_axes().is_empty()),
    })
}

/// Operations of one device.
pub fn flops_per_device(module: &Module) -> u64 {
    let mut sum = 0u64;
    each_stmt(&module.func.body, Some(1), &mut |stmt, trips| {
        let values = || stmt.args.iter().chain(&stmt.results);
        let split = values().fold(AxisSet::EMPTY, |set, &value| set.union(module.func.ty(value).sharding.used_axes()));
        let own = module.func.flops(stmt).div_ceil(module.mesh.size_of_set(split) as u64);
        sum = sum.saturating_add(own.saturating_mul(reported_trips(trips)));
    });
    sum
}

/// Every statement, with how often it runs.
fn each_stmt(block: &Block, trips: Option<u64>, visit: &mut dyn FnMut(&Stmt, Option<u64>)) {
    for stmt in &block.stmts {
        visit(stmt, trips);
        let inside = match &stmt.op {
            Op::For(op) => trips.zip(op.trips()).map(|(outer, inner)| outer.saturating_mul(inner)),
            Op::While(_) => None,
            _ => trips,
        };
        stmt.blocks.iter().for_each(|inner| each_stmt(inner, inside, visit));
    }
}
