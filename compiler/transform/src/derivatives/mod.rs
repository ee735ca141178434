//! Derivatives of programs, statement by statement, by the rules of the ops.
//!
//! They are taken while a program is checked: the statements of a function have been emitted, and the statements of its derivative follow.
//! So a derivative can be differentiated again, and all passes see an ordinary program. Each statement has the source position of its
//! origin.
//!
//! | file | does |
//! |---|---|
//! | `forward` | tangents, in addition to the values: `jvp` |
//! | `reverse` | cotangents, from the last statement to the first: `grad`, `vjp` |
//! | `loops`, `branches`, `regions` | the reverse of control flow |
//! | `cotangents` | the cotangents that a reverse has found |
//! | `sparse` | their sums where most elements are zero |
//! | `repeat` | statements emitted again, on other values |
//! | `residuals` | the residuals of a block, and the values that its reverse recomputes |
//! | `units` | functions that are differentiated as one: `checkpoint`, `custom_vjp` |

mod branches;
mod cotangents;
mod forward;
mod loops;
mod regions;
mod repeat;
mod residuals;
mod reverse;
mod sparse;
mod units;

pub use forward::push_forward;
pub use repeat::repeated;
pub use reverse::{pull_back, pullback};

use spmdc_collective_ops::all_reduce::summed_over;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::scoped::Scoped;
use spmdc_ir::program::control::Control;
use spmdc_ir::program::origin::{DerivedFrom, Lineage};
use spmdc_ir::program::walk::{defined_values, free_values};
use spmdc_ir::program::{Block, Stmt, StmtKind, Value};
use spmdc_ir::rules::derivative::{Derivative, PartialDerivative, is_differentiable};
use spmdc_kernel::scalar::UnaryOp;
use spmdc_layout::types::{AxisSet, Type};
use spmdc_ops::arithmetic::Arithmetic;
use spmdc_ops::collective::cast::cast_to;
use spmdc_ops::derivative::{conformed, zeros};
use std::collections::BTreeSet;

/// Adds the values that depend on some others by statements that change them, those inside blocks included.
fn dependent(build: &CallBuilder, stmts: &[Stmt], found: &mut BTreeSet<Value>) {
    let changes = |value: Value| is_differentiable(build.ty(value).dtype());
    let copy = |found: &mut BTreeSet<Value>, from: Value, to: Value| {
        if found.contains(&build.resolved(from)) && changes(to) {
            found.insert(to);
        }
    };
    for stmt in stmts {
        match &stmt.kind {
            StmtKind::Op(op) => {
                let is_zero = matches!(op.rules().derivative(), Derivative::Zero);
                if !is_zero && stmt.args.iter().any(|arg| found.contains(&build.resolved(*arg))) {
                    found.extend(stmt.results.iter().copied().filter(|&result| changes(result)));
                }
            }
            StmtKind::Control(control) => {
                let (params, inits) = carried(control, stmt);
                loop {
                    let before = found.len();
                    params.iter().zip(inits).for_each(|(&param, &init)| copy(found, init, param));
                    for block in control.blocks() {
                        dependent(build, &block.stmts, found);
                        if is_returned(control, block) {
                            block.results.iter().zip(&stmt.results).for_each(|(&from, &to)| copy(found, from, to));
                        }
                    }
                    if matches!(control, Control::For(_) | Control::While(_)) {
                        params.iter().zip(&stmt.results).for_each(|(&param, &result)| {
                            copy(found, result, param);
                            copy(found, param, result);
                        });
                    }
                    if found.len() == before {
                        break;
                    }
                }
            }
        }
    }
}

/// Adds the values from which some others are computed, those inside blocks included.
fn needed_for(build: &CallBuilder, stmts: &[Stmt], needed: &mut BTreeSet<Value>) {
    for stmt in stmts.iter().rev() {
        match &stmt.kind {
            StmtKind::Op(op) => {
                let is_zero = matches!(op.rules().derivative(), Derivative::Zero);
                if !is_zero && stmt.results.iter().any(|result| needed.contains(result)) {
                    needed.extend(stmt.args.iter().map(|&arg| build.resolved(arg)));
                }
            }
            StmtKind::Control(control) => {
                let (params, inits) = carried(control, stmt);
                let is_loop = matches!(control, Control::For(_) | Control::While(_));
                loop {
                    let before = needed.len();
                    for block in control.blocks().filter(|block| is_returned(control, block)) {
                        for (at, (&from, to)) in block.results.iter().zip(&stmt.results).enumerate() {
                            if needed.contains(to) || (is_loop && params.get(at).is_some_and(|to| needed.contains(to)))
                            {
                                needed.insert(build.resolved(from));
                            }
                        }
                        needed_for(build, &block.stmts, needed);
                    }
                    if needed.len() == before {
                        break;
                    }
                }
                for (at, (param, &init)) in params.iter().zip(inits).enumerate() {
                    if needed.contains(param) || (is_loop && needed.contains(&stmt.results[at])) {
                        needed.insert(build.resolved(init));
                    }
                }
            }
        }
    }
}

/// The parameters of the block of control flow that take operands, and these operands.
fn carried<'s>(control: &'s Control, stmt: &'s Stmt) -> (&'s [Value], &'s [Value]) {
    match control {
        Control::For(op) => (&op.body.params[1..], &stmt.args[op.bounds()..]),
        Control::While(op) => (&op.body.params, &stmt.args),
        Control::Manual(region) => (&region.body.params, &stmt.args),
        Control::Branch(_) => (&[], &[]),
    }
}

/// Whether the results of a block are the results of its statement; the results of a condition are not.
fn is_returned(control: &Control, block: &Block) -> bool {
    match control {
        Control::While(op) => !std::ptr::eq(&op.cond, block),
        Control::For(_) | Control::Branch(_) | Control::Manual(_) => true,
    }
}

/// The values from outside a block that it uses, by their own names.
fn captured(build: &CallBuilder, block: &Block) -> Vec<Value> {
    let defined = defined_values(block);
    let mut found = Vec::new();
    for value in free_values(block) {
        // Another name may be that of a value of the block.
        let is_inner = build.aliases().first(value, |name| defined.contains(&name)).is_some();
        let value = build.resolved(value);
        if !found.contains(&value) && !is_inner {
            found.push(value);
        }
    }
    found
}

fn missing(stmt: &Stmt) -> Diagnostic {
    let message = format!("`{}` has no derivative", stmt.name());
    Diagnostic::error(Code::E0220, stmt.origin.span, message)
        .help("`stop_gradient(x)` treats its argument as a constant")
}

/// The axes along which each device has a part of a cotangent of this type, where it should have all of it.
fn parts(cotangent: &Type, wanted: &Type, manual: AxisSet) -> AxisSet {
    let all = cotangent.varying.union(cotangent.sharding.unreduced.intersect(manual));
    all.minus(wanted.varying).minus(wanted.sharding.unreduced)
}

/// The sum of a cotangent over the axes along which each device has a part of it, where its value was made.
fn total(build: &mut CallBuilder, cotangent: Value, value: Value) -> Result<Value, Diagnostic> {
    let turned = build.info(value).origin.turned;
    build.turned_to(turned, |build| total_here(build, cotangent, value))
}

fn total_here(build: &mut CallBuilder, cotangent: Value, value: Value) -> Result<Value, Diagnostic> {
    let wanted = build.gradient_type(value);
    let axes = parts(build.ty(cotangent), &wanted, build.manual());
    if axes.is_empty() {
        return Ok(cotangent);
    }
    build.set_lineage(Lineage { of: Some(value), ..build.lineage() });
    let sum = summed_over(build, cotangent, axes)?;
    build.info_mut(sum).derived_from = Some(DerivedFrom::DerivativeOf(value));
    cast_to(build, sum, &wanted)
}

/// A partial derivative times a tangent or cotangent; None if it is zero.
fn product(build: &mut CallBuilder, partial: PartialDerivative, of: Value) -> Result<Option<Value>, Diagnostic> {
    Ok(match partial {
        PartialDerivative::Zero => None,
        PartialDerivative::One => Some(of),
        PartialDerivative::MinusOne => Some(Arithmetic(build).unary(UnaryOp::Neg, of)?),
        PartialDerivative::Array(partial) => Some(Arithmetic(build).mul(of, partial)?),
        PartialDerivative::Double(half) => {
            let twice = Arithmetic(build).scaled(2.0, of)?;
            Some(Arithmetic(build).mul(twice, half)?)
        }
        PartialDerivative::Where(condition) => {
            let mut terms = Arithmetic(build);
            let zero = terms.number(of, 0.0)?;
            Some(terms.select(condition, of, zero)?)
        }
    })
}
