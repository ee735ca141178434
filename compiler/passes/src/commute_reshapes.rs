//! Computes the ops between a reshape and its inverse in the original shape.
//!
//! ```text
//! reshape(2 * exp(reshape(x, (2, 4, 16))), (8, 16))      =>      2 * exp(x)
//! ```
//!
//! With `x: f32[8@Y,16]`, Y = 4, every device has two rows. No layout of `f32[2,4,16]` expresses this without parts of axes, so the
//! first reshape would exchange or gather blocks, though no op here depends on the shape. Without the detour, layouts propagate
//! from `x` to the result and back; the pass therefore runs before propagation.
//!
//! The ops in between are elementwise. Their other operands are scalars, reshapes from the shape of `x`, or arrays that have only
//! trailing dimensions common to both shapes, such as a bias. Nothing is computed twice: if a value is also needed in the other
//! shape, all statements stay.
//!
//! An assignment to a region is such a detour: `u[0, :] += 1` takes a row `f32[1,16]` as `f32[16]`, adds to it, and puts it back as
//! a row. Computed as a row it can stay on the device that has it, which no layout of `f32[16]` expresses. Between shapes that
//! differ only in dimensions of size 1, all other operands are reshaped too.
//!
//! The statements of the detour stay for now, because reports look up values by name; `dce` removes them after propagation. On
//! explicit axes types are already decided, so there the shapes may differ in dimensions of size 1 only: these are replicated, and
//! all other dimensions keep their axes.

use spmdc_ir::program::build::statement;
use spmdc_ir::program::origin::Origin;
use spmdc_ir::program::typing::result_types;
use spmdc_ir::program::{Block, Func, Module, Stmt, Value};
use spmdc_layout::mesh::{AxisKind, Mesh};
use spmdc_layout::types::AxisSet;
use spmdc_ops::reshape::Reshape;
use spmdc_ops::update::Update;
use std::collections::BTreeMap;

/// Maximum number of statements of a detour.
const MAX_DETOUR: usize = 64;

/// Computes elementwise ops between a reshape and its inverse in the original shape.
pub fn commute_reshapes(mut module: Module) -> Module {
    if module.mesh.device_count() == 1 {
        return module;
    }
    let mut uses = vec![0; module.func.values.len()];
    module.func.body.each_use(&mut |value| uses[value.0 as usize] += 1);
    let mut body = std::mem::take(&mut module.func.body);
    let is_explicit = !module.mesh.of_kind(AxisKind::Explicit).union(module.func.turned()).is_empty();
    straighten(&mut body, &mut module.func, &uses, (&module.mesh, is_explicit));
    module.func.body = body;
    module
}

/// Straightens a block; types decide layouts somewhere in the program if it `is_explicit`.
fn straighten(block: &mut Block, func: &mut Func, uses: &[usize], (mesh, is_explicit): (&Mesh, bool)) {
    // The reshapes and elementwise statements of this block so far, by their results.
    let mut makers: BTreeMap<Value, Stmt> = BTreeMap::new();
    let mut stmts = Vec::with_capacity(block.stmts.len());
    for mut stmt in std::mem::take(&mut block.stmts) {
        stmt.blocks_mut().for_each(|inner| straighten(inner, func, uses, (mesh, is_explicit)));
        let known = stmts.len();
        let reshaped = stmt.as_op::<Reshape>().map(|op| (stmt.args[0], op.shape.clone()));
        let back = reshaped.or_else(|| stmt.as_op::<Update>().map(|op| (stmt.args[1], op.region())));
        let direct = back.and_then(|(last, shape)| {
            let keeps_axes = Reshape::new(func.ty(last).shape(), &shape).trivial;
            let direct = detour(&makers, func, uses, last, &shape).filter(|_| !is_explicit || keeps_axes)?;
            Some((direct, last, shape))
        });
        let shorter = direct.and_then(|(direct, last, shape)| {
            let is_assigned = stmt.is::<Update>();
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
            if stmt.is::<Reshape>() || is_elementwise(stmt) {
                makers.insert(stmt.results[0], stmt.clone());
            }
        }
    }
    block.stmts = stmts;
}

fn is_elementwise(stmt: &Stmt) -> bool {
    stmt.op().is_some_and(|op| op.rules().properties().elements.are_elementwise())
}

/// The statements between reshapes from `shape` and a reshape of `last` back to it, if they can be computed in `shape`.
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
    // The reshape back uses the last value.
    let mut inside = BTreeMap::from([(last, 1)]);
    found.stmts.iter().flat_map(|stmt| &stmt.args).for_each(|&arg| *inside.entry(arg).or_insert(0) += 1);
    let stays = |stmt: &Stmt| uses.get(stmt.results[0].0 as usize) == inside.get(&stmt.results[0]);
    found.stmts.iter().all(stays).then_some(found)
}

/// A new value with the type of `value` reshaped to this shape.
fn in_shape(func: &mut Func, value: Value, shape: &[usize], mesh: &Mesh) -> Option<Value> {
    let info = func.info(value);
    let op = Reshape::new(info.ty.shape(), shape).into();
    let ty = result_types(&op, &[&info.ty], AxisSet::EMPTY, mesh).ok()?.pop()?;
    let origin = info.origin.clone();
    Some(func.new_value(ty, origin))
}

#[derive(Default)]
struct ReshapeDetour {
    /// The statements in program order.
    stmts: Vec<Stmt>,
    /// For each value of the detour, its counterpart in the outer shape.
    around: BTreeMap<Value, Value>,
    /// Values to reshape, with the origin of the statement that needs them.
    others: Vec<(Value, Origin)>,
}

struct DetourSearch<'a> {
    makers: &'a BTreeMap<Value, Stmt>,
    func: &'a Func,
    shape: &'a [usize],
    between: &'a [usize],
    /// Whether values depend on a reshape from the outer shape, as far as known.
    leads: BTreeMap<Value, bool>,
    /// The number of values followed.
    followed: usize,
    found: ReshapeDetour,
}

impl DetourSearch<'_> {
    /// Whether a value of the detour can be computed in the outer shape.
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
        if maker.as_op::<Reshape>().is_some() {
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
        // Assume false until known; this also bounds the depth of the search.
        self.leads.insert(value, false);
        let leads = self.makers.get(&value).is_some_and(|maker| match maker.is::<Reshape>() {
            true => self.func.ty(maker.args[0]).shape() == self.shape,
            false => maker.args.iter().any(|&arg| self.leads(arg)),
        });
        self.leads.insert(value, leads);
        leads
    }

    /// Whether an operand broadcasts in the same way against both shapes: a scalar, or an array of trailing dimensions that both have.
    fn is_alike(&self, value: Value) -> bool {
        let last = self.shape.iter().rev().zip(self.between.iter().rev());
        self.func.ty(value).rank() <= last.take_while(|(a, b)| a == b).count()
    }

    /// Whether no elementwise op makes this operand, and reshaping it moves no data.
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
    /// The statements in the outer shape, if they have types there; the last of them defines `last`.
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
