//! Computes in the shape it comes from what lies between a reshape and the one back.
//!
//! ```text
//! reshape(2 * exp(reshape(x, (2, 4, 16))), (8, 16))      =>      2 * exp(x)
//! ```
//!
//! Of `x: f32[8@Y,16]`, Y = 4, every device has two rows. No layout of `f32[2,4,16]` says so without parts of axes, so the first
//! reshape would exchange or gather blocks, though nothing here depends on the shape. Written without the detour, layouts pass
//! from `x` to the result and back, which is why this stands before propagation.
//!
//! What lies between are ops that go element by element. Other operands are numbers, come by a reshape from the same shape as `x`
//! does, or concern only the last dimensions that both shapes have in common, as a bias does. Nothing is computed twice: where a
//! value is needed in the other shape as well, all stays.
//!
//! Statements of the detour stay for now, as reports are asked for values by name; `dce` takes them away behind propagation. On
//! explicit axes types are decided already, so there nothing is done.

use crate::ir::mesh::{AxisKind, Mesh};
use crate::ir::types::{ArrayType, Type};
use crate::ir::typing::unknown_layout;
use crate::ir::{Block, Func, Module, Stmt, Value};
use crate::ops::Op;
use std::collections::BTreeMap;

/// Longer detours stay as they are.
const MAX_DETOUR: usize = 64;

/// Takes element-by-element ops out of reshapes that lead back.
pub fn commute_reshapes(mut module: Module) -> Module {
    if module.mesh.device_count() == 1 || !module.mesh.of_kind(AxisKind::Explicit).is_empty() {
        return module;
    }
    let mut uses = vec![0; module.func.values.len()];
    module.func.body.each_use(&mut |value| uses[value.0 as usize] += 1);
    let mut body = std::mem::take(&mut module.func.body);
    straighten(&mut body, &mut module.func, &uses, &module.mesh);
    module.func.body = body;
    module
}

fn straighten(block: &mut Block, func: &mut Func, uses: &[usize], mesh: &Mesh) {
    // The reshapes and element-by-element statements of this block so far, by what they give.
    let mut makers: BTreeMap<Value, Stmt> = BTreeMap::new();
    let mut stmts = Vec::with_capacity(block.stmts.len());
    for mut stmt in std::mem::take(&mut block.stmts) {
        stmt.blocks.iter_mut().for_each(|inner| straighten(inner, func, uses, mesh));
        let direct = match &stmt.op {
            Op::Reshape(op) if !op.trivial => detour(&makers, func, uses, stmt.args[0], &op.shape),
            _ => None,
        };
        let known = stmts.len();
        match direct {
            Some(direct) => stmts.extend(direct.stmts(func, &stmt, mesh)),
            None => stmts.push(stmt),
        }
        for stmt in &stmts[known..] {
            if matches!(stmt.op, Op::Reshape(_)) || is_elementwise(stmt) {
                makers.insert(stmt.results[0], stmt.clone());
            }
        }
    }
    block.stmts = stmts;
}

fn is_elementwise(stmt: &Stmt) -> bool {
    matches!(stmt.op, Op::Unary(_) | Op::Binary(_) | Op::Compare(_) | Op::Select(_) | Op::Cast(_))
        && !stmt.op.rules().has_effect()
}

/// What is computed between reshapes from a shape and a reshape of `last` back to it, if that can be done without them.
fn detour(makers: &BTreeMap<Value, Stmt>, func: &Func, uses: &[usize], last: Value, shape: &[usize]) -> Option<Detour> {
    let between = func.ty(last).shape();
    let mut search = Search { makers, func, shape, between, found: Detour::default() };
    if between == shape || !search.follow(last) || search.found.stmts.is_empty() {
        return None;
    }
    let found = search.found;
    // The reshape back is a use of the last value.
    let mut inside = BTreeMap::from([(last, 1)]);
    found.stmts.iter().flat_map(|stmt| &stmt.args).for_each(|&arg| *inside.entry(arg).or_insert(0) += 1);
    let stays = |stmt: &Stmt| uses.get(stmt.results[0].0 as usize) == inside.get(&stmt.results[0]);
    found.stmts.iter().all(stays).then_some(found)
}

#[derive(Default)]
struct Detour {
    /// First to last.
    stmts: Vec<Stmt>,
    /// Of values in between, what they are in the shape around.
    around: BTreeMap<Value, Value>,
}

struct Search<'a> {
    makers: &'a BTreeMap<Value, Stmt>,
    func: &'a Func,
    shape: &'a [usize],
    between: &'a [usize],
    found: Detour,
}

impl Search<'_> {
    /// Whether a value in between can be computed in the shape around.
    fn follow(&mut self, value: Value) -> bool {
        let found = &self.found;
        if found.around.contains_key(&value) || found.stmts.iter().any(|stmt| stmt.results[0] == value) {
            return true;
        }
        let ty = self.func.ty(value);
        let Some(maker) = self.makers.get(&value) else { return false };
        if ty.shape() != self.between || !ty.varying.is_empty() || found.stmts.len() == MAX_DETOUR {
            return false;
        }
        if let Op::Reshape(_) = maker.op {
            self.found.around.insert(value, maker.args[0]);
            return self.func.ty(maker.args[0]).shape() == self.shape;
        }
        let follows = maker.args.iter().all(|&arg| self.is_alike(arg) || self.follow(arg));
        self.found.stmts.push(maker.clone());
        follows
    }

    /// Whether an operand means the same beside either shape: a number, or along last dimensions only that both have.
    fn is_alike(&self, value: Value) -> bool {
        let last = self.shape.iter().rev().zip(self.between.iter().rev());
        self.func.ty(value).rank() <= last.take_while(|(a, b)| a == b).count()
    }
}

impl Detour {
    /// The statements in the shape around; the last of them gives what the reshape back gave.
    fn stmts(mut self, func: &mut Func, back: &Stmt, mesh: &Mesh) -> Vec<Stmt> {
        let shape = func.ty(back.results[0]).shape().to_vec();
        let count = self.stmts.len();
        for (i, stmt) in self.stmts.iter_mut().enumerate() {
            stmt.args.iter_mut().for_each(|arg| *arg = self.around.get(arg).copied().unwrap_or(*arg));
            let between = stmt.results[0];
            stmt.results[0] = if i + 1 == count {
                back.results[0]
            } else {
                let array = ArrayType::new(func.ty(between).dtype(), &shape);
                let ty = Type { sharding: unknown_layout(shape.len(), mesh), array, ..func.ty(between).clone() };
                func.new_value(ty, stmt.origin.clone())
            };
            self.around.insert(between, stmt.results[0]);
        }
        self.stmts
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::ir::print::module;
    use crate::passes::dce::dce;
    use crate::passes::testing::typed;

    /// How many reshapes are left of a function on Y = 4.
    fn reshapes(body: &str) -> usize {
        let declared = "x: f32[8, 16], y: f32[8, 16], b: f32[16], c: f32[2, 4, 16]";
        let text = format!("mesh (Y = 4);\nfn main({declared}) {{ let r = reshape(x, (2, 4, 16)); {body} }}");
        module(&dce(super::commute_reshapes(typed(&text)))).matches("reshape(").count()
    }

    #[test]
    fn detours_vanish() {
        assert_eq!(reshapes("reshape(2 * exp(r), (8, 16))"), 0);
        assert_eq!(reshapes("let e = exp(r); reshape(where(e > b, e * e, 0), (8, 16))"), 0);
        assert_eq!(reshapes("reshape(r + reshape(y, (2, 4, 16)), (8, 16))"), 0);
        assert_eq!(reshapes("reshape(sin(reshape(reshape(exp(r), (8, 16)), (32, 4))), (8, 16))"), 0);
    }

    #[test]
    fn what_needs_the_shape_stays() {
        // Another shape, operands that have one of their own, and a value that is needed in between.
        assert_eq!(reshapes("reshape(exp(r), (4, 32))"), 2);
        assert_eq!(reshapes("reshape(exp(r) + c, (8, 16))"), 2);
        assert_eq!(reshapes("reshape(exp(r) + c[:, :, :1], (8, 16))"), 2);
        assert_eq!(reshapes("let e = exp(r); (reshape(2 * e, (8, 16)), sum(e, axis=1))"), 2);
    }
}
