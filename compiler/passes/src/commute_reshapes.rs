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
//! An assignment to a region leads back to the shape of the region: `u[0, :] += 1` takes a row `f32[1,16]` as `f32[16]`, adds to it, and
//! puts it back as a row. Computed as a row it can stay on the device that has it, which no layout of `f32[16]` says. Between shapes
//! that differ in dimensions of size 1 only, all other operands are reshaped too.
//!
//! Statements of the detour stay for now, as reports are asked for values by name; `dce` takes them away behind propagation. On
//! explicit axes types are decided already, so there shapes differ in dimensions of size 1 only: these are on all devices, and all other
//! dimensions keep their axes.

use crate::contract;
use spmdc_ir::layout::mesh::{AxisKind, Mesh};
use spmdc_ir::ops::Op;
use spmdc_ir::ops::reshape::Reshape;
use spmdc_ir::program::build::statement;
use spmdc_ir::program::origin::Origin;
use spmdc_ir::program::typing::result_types;
use spmdc_ir::program::{Block, Func, Module, Stmt, Value};
use std::collections::BTreeMap;

/// Longer detours stay as they are.
const MAX_DETOUR: usize = 64;

/// Takes element-by-element ops out of reshapes that lead back.
pub fn commute_reshapes(mut module: Module) -> Module {
    if module.mesh.device_count() == 1 {
        return module;
    }
    let signature = contract::signature(&module);
    let mut uses = vec![0; module.func.values.len()];
    module.func.body.each_use(&mut |value| uses[value.0 as usize] += 1);
    let mut body = std::mem::take(&mut module.func.body);
    straighten(&mut body, &mut module.func, &uses, &module.mesh);
    module.func.body = body;
    debug_assert_eq!(signature, contract::signature(&module), "the program takes and gives other arrays");
    module
}

fn straighten(block: &mut Block, func: &mut Func, uses: &[usize], mesh: &Mesh) {
    // The reshapes and element-by-element statements of this block so far, by what they give.
    let mut makers: BTreeMap<Value, Stmt> = BTreeMap::new();
    let is_explicit = !mesh.of_kind(AxisKind::Explicit).is_empty();
    let mut stmts = Vec::with_capacity(block.stmts.len());
    for mut stmt in std::mem::take(&mut block.stmts) {
        stmt.blocks_mut().for_each(|inner| straighten(inner, func, uses, mesh));
        let known = stmts.len();
        let back = match stmt.op() {
            Some(Op::Reshape(op)) => Some((stmt.args[0], op.shape.clone())),
            Some(Op::Update(op)) => Some((stmt.args[1], op.region())),
            _ => None,
        };
        let direct = back.and_then(|(last, shape)| {
            let keeps_axes = Reshape::new(func.ty(last).shape(), &shape).trivial;
            let direct = detour(&makers, func, uses, last, &shape).filter(|_| !is_explicit || keeps_axes)?;
            Some((direct, last, shape))
        });
        let shorter = direct.and_then(|(direct, last, shape)| {
            let is_assigned = matches!(stmt.op(), Some(Op::Update(_)));
            let result = if is_assigned { in_shape(func, last, &shape, mesh)? } else { stmt.results[0] };
            let mut shorter = direct.stmts(func, (result, &shape), mesh)?;
            if is_assigned {
                let mut stmt = stmt.clone();
                stmt.args[1] = result;
                shorter.push(stmt);
            }
            Some(shorter)
        });
        match shorter {
            Some(shorter) => stmts.extend(shorter),
            None => stmts.push(stmt),
        }
        for stmt in &stmts[known..] {
            if matches!(stmt.op(), Some(Op::Reshape(_))) || is_elementwise(stmt) {
                makers.insert(stmt.results[0], stmt.clone());
            }
        }
    }
    block.stmts = stmts;
}

fn is_elementwise(stmt: &Stmt) -> bool {
    stmt.op().is_some_and(|op| op.rules().properties().elements.are_elementwise())
}

/// What is computed between reshapes from a shape and a reshape of `last` back to it, if that can be done without them.
fn detour(
    makers: &BTreeMap<Value, Stmt>,
    func: &Func,
    uses: &[usize],
    last: Value,
    shape: &[usize],
) -> Option<ReshapeDetour> {
    let between = func.ty(last).shape();
    let mut search = DetourSearch {
        makers,
        func,
        shape,
        between,
        leads: BTreeMap::new(),
        followed: 0,
        found: ReshapeDetour::default(),
    };
    if between == shape || !search.leads(last) || !search.follow(last) || search.found.stmts.is_empty() {
        return None;
    }
    let found = search.found;
    debug_assert!(found.stmts.len() <= MAX_DETOUR, "a detour of {} statements", found.stmts.len());
    debug_assert!(found.stmts.iter().all(is_elementwise), "only element-by-element statements change their shape");
    // The reshape back is a use of the last value.
    let mut inside = BTreeMap::from([(last, 1)]);
    found.stmts.iter().flat_map(|stmt| &stmt.args).for_each(|&arg| *inside.entry(arg).or_insert(0) += 1);
    let stays = |stmt: &Stmt| uses.get(stmt.results[0].0 as usize) == inside.get(&stmt.results[0]);
    found.stmts.iter().all(stays).then_some(found)
}

/// A new value with the type of another one's reshape to this shape.
fn in_shape(func: &mut Func, value: Value, shape: &[usize], mesh: &Mesh) -> Option<Value> {
    let info = func.info(value);
    let op = Reshape::new(info.ty.shape(), shape).into();
    let ty = result_types(&op, &[&info.ty], &[], mesh).ok()?.pop()?;
    let origin = info.origin.clone();
    Some(func.new_value(ty, origin))
}

#[derive(Default)]
struct ReshapeDetour {
    /// First to last.
    stmts: Vec<Stmt>,
    /// Of values in between, what they are in the shape around.
    around: BTreeMap<Value, Value>,
    /// Values that are to be reshaped, and what for.
    others: Vec<(Value, Origin)>,
}

struct DetourSearch<'a> {
    makers: &'a BTreeMap<Value, Stmt>,
    func: &'a Func,
    shape: &'a [usize],
    between: &'a [usize],
    /// Whether values lead to a reshape from the shape around, as far as that is known.
    leads: BTreeMap<Value, bool>,
    /// How many values have been followed.
    followed: usize,
    found: ReshapeDetour,
}

impl DetourSearch<'_> {
    /// Whether a value in between can be computed in the shape around.
    fn follow(&mut self, value: Value) -> bool {
        let found = &self.found;
        if found.around.contains_key(&value) || found.stmts.iter().any(|stmt| stmt.results[0] == value) {
            return true;
        }
        let ty = self.func.ty(value);
        let Some(maker) = self.makers.get(&value) else { return false };
        if ty.shape() != self.between || !ty.varying.is_empty() || self.followed == MAX_DETOUR {
            return false;
        }
        self.followed += 1;
        if let Some(Op::Reshape(_)) = maker.op() {
            self.found.around.insert(value, maker.args[0]);
            return self.func.ty(maker.args[0]).shape() == self.shape;
        }
        let mut follows = true;
        for &arg in &maker.args {
            let stays = !self.leads(arg) && (self.is_alike(arg) || self.stands_apart(arg, &maker.origin));
            follows = follows && (stays || self.follow(arg));
        }
        self.found.stmts.push(maker.clone());
        follows
    }

    fn leads(&mut self, value: Value) -> bool {
        if let Some(&known) = self.leads.get(&value) {
            return known;
        }
        if self.leads.len() == 2 * MAX_DETOUR {
            return false;
        }
        // Until more is known; also what bounds the depth of the search.
        self.leads.insert(value, false);
        let leads = self.makers.get(&value).is_some_and(|maker| match maker.op() {
            Some(Op::Reshape(_)) => self.func.ty(maker.args[0]).shape() == self.shape,
            _ => maker.args.iter().any(|&arg| self.leads(arg)),
        });
        self.leads.insert(value, leads);
        leads
    }

    /// Whether an operand means the same beside either shape: a number, or along last dimensions only that both have.
    fn is_alike(&self, value: Value) -> bool {
        let last = self.shape.iter().rev().zip(self.between.iter().rev());
        self.func.ty(value).rank() <= last.take_while(|(a, b)| a == b).count()
    }

    /// Whether an operand is made by no op that could be computed in the shape around, and reshaping it moves nothing.
    fn stands_apart(&mut self, value: Value, origin: &Origin) -> bool {
        let ty = self.func.ty(value);
        let apart = !self.makers.get(&value).is_some_and(is_elementwise)
            && ty.shape() == self.between
            && ty.varying.is_empty()
            && Reshape::new(self.between, self.shape).trivial;
        if apart && !self.found.others.iter().any(|(other, _)| *other == value) {
            self.found.others.push((value, origin.clone()));
        }
        apart
    }
}

impl ReshapeDetour {
    /// The statements in the shape around, if they have types there; the last of them gives `last`.
    fn stmts(mut self, func: &mut Func, (last, shape): (Value, &[usize]), mesh: &Mesh) -> Option<Vec<Stmt>> {
        let mut made = Vec::new();
        for (other, origin) in std::mem::take(&mut self.others) {
            let reshape = Reshape::new(func.ty(other).shape(), shape);
            let reshaped = in_shape(func, other, shape, mesh)?;
            made.push(statement(func, mesh, (reshape, &[other]), &[reshaped], &origin));
            self.around.insert(other, reshaped);
        }
        let count = self.stmts.len();
        for (i, mut stmt) in self.stmts.into_iter().enumerate() {
            stmt.args.iter_mut().for_each(|arg| *arg = self.around.get(arg).copied().unwrap_or(*arg));
            let between = stmt.results[0];
            stmt.results[0] = if i + 1 == count { last } else { in_shape(func, between, shape, mesh)? };
            self.around.insert(between, stmt.results[0]);
            made.push(stmt);
        }
        debug_assert!(made.last().is_some_and(|stmt| stmt.results[0] == last), "a detour ends in what it makes");
        Some(made)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::dce::dce;
    use crate::testing::typed;
    use spmdc_ir::print::module;

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
    fn assignments_lead_back_to_the_shape_of_their_region() {
        let body = |place: &str, new: &str| format!("let mut u = x; u[{place}] = {new}; u");
        assert_eq!(reshapes(&body("0, :", "x[1, :] * 2 + b")), 0);
        assert_eq!(reshapes(&body("3, 5", "x[3, 5] + 1")), 0);
        assert_eq!(reshapes(&body(":, -1", "x[:, 0] - y[:, 1]")), 0);
        // An operand that has only the shape between is reshaped instead of the other.
        assert_eq!(reshapes(&body(":, 5", "x[:, 0] * c[0, 0, :8]")), 2);
        assert_eq!(reshapes(&body("0, :", "b * 2")), 0);
        assert_eq!(reshapes(&body("0, 3:11", "x[:, 0] + 1")), 1);
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
