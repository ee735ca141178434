//! What a partitioned program costs in all: its collectives, its operations, and by the cost model both together.

use spmdc_abi::CollectiveKind;
use spmdc_grammar::span::Span;
use spmdc_ir::cost::{Trips, collective as of_collective, operations, reported_trips};
use spmdc_ir::layout::mesh::Mesh;
use spmdc_ir::layout::types::{AxisSet, DType};
use spmdc_ir::ops::Op;
use spmdc_ir::program::origin::ASKED;
use spmdc_ir::program::{Block, Func, Module, Stmt};
use spmdc_ir::reshard::Traffic;

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
    /// How often it is taken to happen where that is not known.
    pub assumed_trips: u64,
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

/// All collectives, in program order.
pub fn collectives(module: &Module) -> Vec<Collective> {
    let mut found = Vec::new();
    each_stmt(&module.func.body, Trips::ONCE, &mut |stmt, trips| {
        found.extend(collective(&module.func, &module.mesh, stmt, trips));
    });
    found
}

/// What devices exchange in a statement, if several take part.
fn collective(func: &Func, mesh: &Mesh, stmt: &Stmt, trips: Trips) -> Option<Collective> {
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
        trips: trips.known,
        assumed_trips: trips.assumed,
        span: stmt.origin.span,
        reason: stmt.origin.reason.clone(),
        asked: stmt.op.rules().group().is_some() || stmt.origin.reason == ASKED,
        gathers_all: kind == CollectiveKind::AllGather
            && stmt.results.iter().all(|&result| func.ty(result).distinct_axes().is_empty()),
    })
}

/// Operations of one device, as they are reported.
pub fn flops_per_device(module: &Module) -> u64 {
    flops(module, |trips| reported_trips(trips.known))
}

fn flops(module: &Module, often: impl Fn(Trips) -> u64) -> u64 {
    let mut sum = 0u64;
    each_stmt(&module.func.body, Trips::ONCE, &mut |stmt, trips| {
        let values = || stmt.args.iter().chain(&stmt.results);
        let split = values().fold(AxisSet::EMPTY, |set, &value| set.union(module.func.ty(value).sharding.used_axes()));
        let own = module.func.flops(stmt).div_ceil(module.mesh.size_of_set(split) as u64);
        sum = sum.saturating_add(own.saturating_mul(often(trips)));
    });
    sum
}

/// Bytes that count for the whole program: what the device receives which receives most, the price of each collective, and the
/// operations of a device.
pub fn cost(partitioned: &Module) -> f64 {
    let moved = collectives(partitioned).into_iter();
    let moved: f64 = moved.map(|each| of_collective(each.received) as f64 * each.assumed_trips as f64).sum();
    moved + operations(flops(partitioned, |trips| trips.assumed), 1)
}

/// Every statement, with how often it runs.
fn each_stmt(block: &Block, trips: Trips, visit: &mut dyn FnMut(&Stmt, Trips)) {
    for stmt in &block.stmts {
        visit(stmt, trips);
        let inside = match &stmt.op {
            Op::For(op) => trips.within(op.trips()),
            Op::While(_) => trips.within(None),
            _ => trips,
        };
        stmt.blocks.iter().for_each(|inner| each_stmt(inner, inside, visit));
    }
}
