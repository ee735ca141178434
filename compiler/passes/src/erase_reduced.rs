//! Erases the states of values that say something about gradients alone, once derivatives have been taken.
//!
//! ```text
//! let a: f32[8]{R:X} = reshard(w, P(reduced=X));  x * a      =>      x * w
//! ```
//!
//! A reduced value is whole on every device, as one that nothing is said of. In `manual` regions a value that is unreduced along a manual axis is
//! one that varies along it: its devices have different parts. Casts between such states move nothing, and go.

use spmdc_ir::op::Op;
use spmdc_ir::program::control::Control;
use spmdc_ir::program::{Block, Func, Module, StmtKind, Value};
use spmdc_ir::rules::NamedAxes;
use spmdc_layout::reshard::step::ReshardStep;
use spmdc_layout::types::AxisSet;
use spmdc_ops::collective::cast::PCast;
use spmdc_ops::reshard::Reshard;
use std::collections::BTreeMap;

/// The program in which no type says reduced, and no value in a region is unreduced along a manual axis.
pub fn erase_reduced(mut module: Module) -> Module {
    let Module { func, .. } = &mut module;
    let mut body = std::mem::take(&mut func.body);
    // Other stages share what is known of values, so only what changes is touched.
    for value in (0..func.values.len() as u32).map(Value) {
        let reduced = func.ty(value).sharding.reduced;
        if !reduced.is_empty() {
            let info = func.info_mut(value);
            (info.was_reduced, info.ty.sharding.reduced) = (reduced, AxisSet::EMPTY);
        }
    }
    let mut erasure = Erasure { func, renamed: BTreeMap::new() };
    erasure.block(&mut body);
    let renamed = erasure.renamed;
    if !renamed.is_empty() {
        body.each_use_mut(&mut |value| *value = now(&renamed, *value));
    }
    func.body = body;
    debug_assert!(
        func.values.iter().all(|info| info.ty.sharding.reduced.is_empty()),
        "a type says that a value is reduced"
    );
    module
}

/// The value that replaces a value whose statement is removed.
fn now(renamed: &BTreeMap<Value, Value>, mut value: Value) -> Value {
    while let Some(&of) = renamed.get(&value) {
        value = of;
    }
    value
}

struct Erasure<'f> {
    func: &'f mut Func,
    /// The results of casts, each with the operand.
    renamed: BTreeMap<Value, Value>,
}

impl Erasure<'_> {
    fn block(&mut self, block: &mut Block) {
        block.stmts.retain_mut(|stmt| {
            match &mut stmt.kind {
                StmtKind::Op(op) => {
                    for axes in op.rules_mut().named_axes() {
                        if let NamedAxes::Layout(layout) = axes {
                            layout.reduced = AxisSet::EMPTY;
                        }
                    }
                }
                StmtKind::Control(control) => {
                    if let Control::Manual(region) = control {
                        for split in region.inputs.iter_mut().chain(&mut region.outputs) {
                            split.reduced = AxisSet::EMPTY;
                        }
                        self.varying_summands(&region.body, region.axes);
                    }
                    for inner in control.blocks_mut() {
                        self.block(inner);
                    }
                }
            }
            let is_request = |op: &Op| op.as_op::<Reshard>().is_some_and(|op| op.step == ReshardStep::Request);
            let is_cast = |op: &Op| op.is::<PCast>();
            let is_free = stmt.op().is_some_and(|op| is_request(op) || is_cast(op));
            let is_same = is_free && self.func.ty(stmt.args[0]) == self.func.ty(stmt.results[0]);
            debug_assert!(is_same || !stmt.op().is_some_and(is_cast), "a cast moves nothing");
            // A variable stays for reports.
            let is_shown = |&result: &Value| self.func.info(result).name.is_some();
            let goes = is_same && (stmt.op().is_some_and(is_cast) || !stmt.results.iter().any(is_shown));
            if goes {
                self.renamed.insert(stmt.results[0], stmt.args[0]);
            }
            !goes
        });
    }

    /// Makes values of a region that are summands along its axes such that vary.
    fn varying_summands(&mut self, body: &Block, axes: AxisSet) {
        let mut values: Vec<Value> = body.params.clone();
        body.walk(&mut |stmt| {
            values.extend(&stmt.results);
            values.extend(stmt.blocks().flat_map(|block| &block.params));
        });
        for value in values {
            let summands = self.func.ty(value).sharding.unreduced.intersect(axes);
            if summands.is_empty() {
                continue;
            }
            let ty = &mut self.func.info_mut(value).ty;
            ty.varying = ty.varying.union(summands);
            let rest = ty.sharding.unreduced.minus(summands);
            ty.sharding = ty.sharding.clone().with_unreduced(rest, ty.sharding.combine);
        }
    }
}
