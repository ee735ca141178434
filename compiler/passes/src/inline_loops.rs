//! Replaces loops of one trip by their body.
//!
//! ```text
//! for i in 3..4 { s = s + f32(i); }      =>      s = s + f32(3);
//! ```
//!
//! Sizes and constants of a program lead to such trip counts: one microbatch, one layer, `--set STEPS=1`. The statements of the body can then
//! be fused with those around the loop, and its collectives combined with others. The pass runs after collectives are inserted, so that
//! propagation, `why` and lints still see the loop.

use crate::contract;
use spmdc_ir::program::build::Builder;
use spmdc_ir::program::control::Control;
use spmdc_ir::program::{Block, Func, Module, Stage, Stmt, StmtKind, Value};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::DType;
use spmdc_ops::broadcast::Broadcast;
use spmdc_ops::constant::Constant;

/// Inlines each `for` that is known to run once, innermost loops first. The module stays at its stage.
pub fn inline_loops(mut module: Module) -> Module {
    debug_assert_eq!(module.stage, Stage::Partitioned, "the collectives of loops are inserted");
    let mut body = std::mem::take(&mut module.func.body);
    let replaced = (0..module.func.values.len() as u32).map(Value).collect();
    Inliner { func: &mut module.func, mesh: &module.mesh, replaced }.block(&mut body);
    debug_assert_eq!(contract::count(&body, |stmt| only_trip(stmt).is_some()), 0, "a loop of one trip stays");
    module.func.body = body;
    module
}

/// The index of the only trip of a loop that runs once; None for other statements.
fn only_trip(stmt: &Stmt) -> Option<i32> {
    match &stmt.kind {
        StmtKind::Control(Control::For(op)) if op.trips() == Some(1) => {
            let (start, _) = op.range?;
            i32::try_from(start).ok()
        }
        StmtKind::Control(Control::For(_) | Control::While(_) | Control::Branch(_) | Control::Manual(_))
        | StmtKind::Op(_) => None,
    }
}

struct Inliner<'a> {
    func: &'a mut Func,
    mesh: &'a Mesh,
    /// The replacement of each value; itself if it stays.
    replaced: Vec<Value>,
}

impl Inliner<'_> {
    fn now(&self, value: Value) -> Value {
        self.replaced[value.0 as usize]
    }

    fn block(&mut self, block: &mut Block) {
        let mut stmts = Vec::with_capacity(block.stmts.len());
        for mut stmt in std::mem::take(&mut block.stmts) {
            stmt.args.iter_mut().for_each(|arg| *arg = self.now(*arg));
            if let Some(trip) = only_trip(&stmt) {
                let body = stmt.blocks_mut().next().map(std::mem::take).expect("a loop has a body");
                self.inline(&stmt, body, trip, &mut stmts);
            } else {
                stmt.blocks_mut().for_each(|inner| self.block(inner));
                stmts.push(stmt);
            }
        }
        block.stmts = stmts;
        block.results.iter_mut().for_each(|result| *result = self.now(*result));
    }

    /// Adds the statements of the only trip of a loop.
    fn inline(&mut self, stmt: &Stmt, mut body: Block, trip: i32, stmts: &mut Vec<Stmt>) {
        let (carries, counter) = (body.params.len() - 1, body.params[0]);
        debug_assert_eq!((carries, body.results.len()), (stmt.args.len(), stmt.results.len()), "a carry is lost");
        for (&param, &arg) in body.params[1..].iter().zip(&stmt.args) {
            debug_assert_eq!(self.func.ty(param), self.func.ty(arg), "a carry has the type of its first value");
            self.replaced[param.0 as usize] = arg;
        }
        let mut builder = Builder::new(self.func, self.mesh);
        let bits = u64::from(trip.cast_unsigned());
        builder.define(Constant::scalar(DType::I32, bits), &[], &[counter], &stmt.origin);
        stmts.extend(builder.finish());
        self.block(&mut body);
        stmts.append(&mut body.stmts);
        let (last, rows) = body.results.split_at(carries);
        for (&result, &value) in stmt.results.iter().zip(last) {
            debug_assert_eq!(self.func.ty(result), self.func.ty(value), "a carry keeps its type");
            self.replaced[result.0 as usize] = value;
        }
        let mut builder = Builder::new(self.func, self.mesh);
        for (&result, &row) in stmt.results[carries..].iter().zip(rows) {
            let shape = builder.func.ty(result).shape().to_vec();
            builder.define(Broadcast { shape }, &[row], &[result], &stmt.origin);
        }
        stmts.extend(builder.finish());
    }
}
