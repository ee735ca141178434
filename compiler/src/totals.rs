//! The total cost of a partitioned program: its collectives, its operations, and the cost of both under the cost model.

use spmdc_abi::CollectiveKind;
use spmdc_grammar::span::Span;
use spmdc_ir::program::control::Control;
use spmdc_ir::program::origin::{ASKED, Lineage};
use spmdc_ir::program::{Block, Func, Module, Stmt, StmtKind, Value};
use spmdc_layout::cost::{Trips, collective as of_collective, operations, reported_trips};
use spmdc_layout::crossings;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{AxisSet, DType};
use spmdc_ops::message::ReceiveMessage;
use spmdc_ops::message::SendMessage;

/// A statement in which devices exchange data.
#[derive(Clone, Debug, PartialEq)]
pub struct Collective {
    /// The kind of the collective.
    pub kind: CollectiveKind,
    /// The names of the axes along which the devices of a group differ.
    pub axes: Vec<String>,
    /// The number of devices in a group.
    pub group_size: usize,
    /// The element type of the operand.
    pub dtype: DType,
    /// The largest local shape of the operand on any device.
    pub local_shape: Vec<usize>,
    /// Bytes of that operand.
    pub bytes: u64,
    /// Maximum bytes received by any device.
    pub received: u64,
    /// Bytes received by all devices together.
    pub received_by_all: u64,
    /// Maximum bytes that any host receives from others; 0 if no hosts are known.
    pub crossing: u64,
    /// The trip count of the statement; None if it is unknown at compile time.
    pub trips: Option<u64>,
    /// The trip count, assumed where it is unknown.
    pub assumed_trips: u64,
    /// The source position of the statement that needs the collective.
    pub span: Span,
    /// The reason, in words; empty if there is none.
    pub reason: String,
    /// The role of this statement in derivatives.
    pub lineage: Lineage,
    /// Whether the program requests it: by `reshard`, `out=`, an annotation, or a collective of `manual` code.
    pub asked: bool,
    /// Whether every device has the whole array afterwards.
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
    each_collective(module, &mut |_, collective| found.push(collective));
    found
}

/// Visits all collectives with their statements, in program order.
pub fn each_collective(module: &Module, visit: &mut dyn FnMut(&Stmt, Collective)) {
    each_stmt(&module.func.body, Trips::ONCE, &mut |stmt, trips| {
        if let Some(found) = collective(&module.func, &module.mesh, stmt, trips) {
            visit(stmt, found);
        }
    });
}

/// The collective that a statement is, if its groups have several devices.
fn collective(func: &Func, mesh: &Mesh, stmt: &Stmt, trips: Trips) -> Option<Collective> {
    let op = stmt.op()?;
    if op.is::<SendMessage>() || op.is::<ReceiveMessage>() {
        return end_of_transfer(func, mesh, stmt, trips);
    }
    let (exchange, args, results) = (op.exchange()?, func.types(&stmt.args), func.types(&stmt.results));
    let (kind, group) = exchange.collective(&args, &results, mesh);
    if mesh.size_of_set(group) == 1 {
        return None;
    }
    let operand = func.ty(*stmt.args.first()?);
    let axes: Vec<u8> = group.iter().map(|axis| axis as u8).collect();
    let group_size = mesh.size_of_set(group);
    let traffic = exchange.traffic(&args, &results, mesh);
    Some(Collective {
        kind,
        axes: mesh.names(&axes).into_iter().map(str::to_string).collect(),
        group_size,
        dtype: operand.dtype(),
        bytes: traffic.bytes,
        local_shape: traffic.operand,
        received: traffic.received,
        received_by_all: traffic.total,
        crossing: traffic.crossing,
        trips: trips.known,
        assumed_trips: trips.assumed,
        span: stmt.origin.span,
        reason: match (func.derivative(&stmt.origin), stmt.origin.reason.is_empty()) {
            (Some(_), true) => format!("{} needs it", func.reason(&stmt.origin)),
            (Some(_), false) | (None, _) => func.reason(&stmt.origin),
        },
        lineage: stmt.origin.lineage,
        asked: op.rules().properties().group().is_some() || stmt.origin.reason == ASKED,
        gathers_all: kind == CollectiveKind::AllGather
            && stmt.results.iter().all(|&result| func.ty(result).distinct_axes().is_empty()),
    })
}

/// An end of a transfer: the sending end receives nothing, and the receiving end has no operand.
fn end_of_transfer(func: &Func, mesh: &Mesh, stmt: &Stmt, trips: Trips) -> Option<Collective> {
    let (value, arrives) = match stmt.args.first() {
        Some(&sent) => (sent, false),
        None => (*stmt.results.first()?, true),
    };
    let ty = func.ty(value);
    let (bytes, whole) = (ty.block_bytes(mesh) as u64, (ty.array.len() * ty.dtype().size()) as u64);
    let axes: Vec<u8> = (0..mesh.axes.len() as u8).collect();
    let local_shape = ty.block_shape(mesh);
    Some(Collective {
        kind: CollectiveKind::Transfer,
        axes: mesh.names(&axes).into_iter().map(str::to_string).collect(),
        group_size: mesh.device_count(),
        dtype: ty.dtype(),
        bytes: if arrives { 0 } else { bytes },
        local_shape,
        received: if arrives { bytes } else { 0 },
        received_by_all: if arrives { whole } else { 0 },
        // The other mesh may be on the same hosts, and is not known here.
        crossing: if arrives {
            crossings::different_blocks(ty.shape(), &ty.sharding.dims, mesh) * ty.dtype().size() as u64
        } else {
            0
        },
        trips: trips.known,
        assumed_trips: trips.assumed,
        span: stmt.origin.span,
        reason: String::new(),
        lineage: stmt.origin.lineage,
        asked: true,
        gathers_all: false,
    })
}

/// A statement that reads rows of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct RowsRead {
    /// The parameter.
    pub stream: String,
    /// The type of the rows, with their sharding.
    pub ty: String,
    /// Bytes that one device reads each time, at most.
    pub bytes: u64,
    /// The trip count of the statement; None if it is unknown at compile time.
    pub trips: Option<u64>,
    /// The source position of the statement.
    pub span: Span,
}

/// All reads of rows of streams, in program order.
pub fn reads(module: &Module) -> Vec<RowsRead> {
    let mut found = Vec::new();
    let (func, mesh) = (&module.func, &module.mesh);
    each_stmt(&func.body, Trips::ONCE, &mut |stmt, trips| {
        let (Some(_), [stream, ..], [rows]) = (stmt.op(), &stmt.args[..], &stmt.results[..]) else { return };
        if !func.ty(*stream).array.is_stream {
            return;
        }
        let param = func.stream_source(*stream).map(|(param, _)| &func.params[param]);
        found.push(RowsRead {
            stream: param.map_or(String::new(), |param| param.name.clone()),
            ty: func.ty(*rows).display(mesh),
            bytes: func.ty(*rows).block_bytes(mesh) as u64,
            trips: trips.known,
            span: stmt.origin.span,
        });
    });
    found
}

/// Operations of one device, with reported trip counts.
pub fn flops_per_device(module: &Module) -> u64 {
    flops(module, |trips| reported_trips(trips.known))
}

fn flops(module: &Module, often: impl Fn(Trips) -> u64) -> u64 {
    let mut sum = 0u64;
    each_stmt(&module.func.body, Trips::ONCE, &mut |stmt, trips| {
        sum = sum.saturating_add(own_flops(module, stmt).saturating_mul(often(trips)));
    });
    sum
}

/// Operations of one device in a statement, each time.
fn own_flops(module: &Module, stmt: &Stmt) -> u64 {
    let values = stmt.args.iter().chain(&stmt.results);
    let split = values.fold(AxisSet::EMPTY, |set, &value| set.union(module.func.ty(value).sharding.used_axes()));
    module.func.flops(stmt).div_ceil(module.mesh.size_of_set(split) as u64)
}

/// Operations of one device in each statement that has any, over the whole run with reported trip counts.
pub fn flops_by_span(module: &Module) -> Vec<(Span, u64)> {
    let mut found = Vec::new();
    each_stmt(&module.func.body, Trips::ONCE, &mut |stmt, trips| {
        let operations = own_flops(module, stmt).saturating_mul(reported_trips(trips.known));
        if operations > 0 {
            found.push((stmt.origin.span, operations));
        }
    });
    found
}

/// Bytes of a device's blocks of the stored operands and results of each op, over the whole run with reported trip counts.
pub fn bytes_by_span(module: &Module, is_stored: &dyn Fn(Value) -> bool) -> Vec<(Span, u64)> {
    let mut found = Vec::new();
    each_stmt(&module.func.body, Trips::ONCE, &mut |stmt, trips| {
        let values = stmt.args.iter().chain(&stmt.results).filter(|value| is_stored(**value));
        let bytes: u64 = values.map(|&value| module.func.ty(value).block_bytes(&module.mesh) as u64).sum();
        if stmt.op().is_some() && bytes > 0 {
            found.push((stmt.origin.span, bytes.saturating_mul(reported_trips(trips.known))));
        }
    });
    found
}

/// The cost of the whole program in bytes: the maximum bytes received by any device, the price of each collective, and the
/// operations of a device.
pub fn cost(partitioned: &Module) -> f64 {
    let moved = collectives(partitioned).into_iter();
    let price = |each: &Collective| {
        of_collective(each.received) as f64 + crossings::between(each.crossing as f64, &partitioned.mesh)
    };
    let moved: f64 = moved.map(|each| price(&each) * each.assumed_trips as f64).sum();
    moved + operations(flops(partitioned, |trips| trips.assumed), 1)
}

/// Visits every statement with its trip count.
fn each_stmt(block: &Block, trips: Trips, visit: &mut dyn FnMut(&Stmt, Trips)) {
    for stmt in &block.stmts {
        visit(stmt, trips);
        let inside = match &stmt.kind {
            StmtKind::Control(Control::For(op)) => trips.within(op.trips()),
            StmtKind::Control(Control::While(_)) => trips.within(None),
            StmtKind::Control(Control::Branch(_) | Control::Manual(_)) | StmtKind::Op(_) => trips,
        };
        stmt.blocks().for_each(|inner| each_stmt(inner, inside, visit));
    }
}
