//! Moves the split of a transformed dimension to another one, as a device transforms whole lines.
//!
//! ```text
//! let (r, i): (f32[8@X, 16], f32[8@X, 16]) = fft_lines(x, y, axis=0);   // x, y: f32[8@X, 16]
//! =>
//! let v1: f32[8, 16@X] = reshard(x, P(_, X));                           // all-to-all
//! let v2: f32[8, 16@X] = reshard(y, P(_, X));
//! let (v3, v4): (f32[8, 16@X], f32[8, 16@X]) = fft_lines(v1, v2, axis=0);
//! let r: f32[8@X, 16] = reshard(v3, P(X, _));                           // and back
//! let i: f32[8@X, 16] = reshard(v4, P(X, _));
//! ```
//!
//! A device sends and receives its own block twice. The other dimension is the one with the smallest blocks.
//!
//! If no dimension can be cut, as in a vector, or if that receives fewer bytes, the dimension stays split, and lines are transformed as
//! matrices (`four_step.rs`). If their size has no useful factors, or there are few devices, every device gets the whole lines and keeps
//! its part of the result.
//!
//! Consider a value computed from a transform element by element, or by slices, flips and joins of its lines, as for real numbers, and then
//! transformed again. It is computed in the layout of the lines, or in the order of the first transform's result. In `ifft(k * fft(x,
//! axis=0), axis=0)`, neither the spectrum nor its product is moved back.
//!
//! It comes after `insert_reshards`, which has given operands and results the same blocks, and before `partition`, which makes collectives
//! of the requests. In between, `dce` removes values that are not used any more.

mod four_step;

use four_step::{FourStep, LineMatrix};
use spmdc_abi::Transform;
use spmdc_fft_ops::fft::Fft;
use spmdc_ir::op::Op;
use spmdc_ir::program::build::Builder;
use spmdc_ir::program::local::window_of;
use spmdc_ir::program::origin::Origin;
use spmdc_ir::program::{Block, Func, Module, Stage, Stmt, StmtKind, Value};
use spmdc_ir::rules::{Effect, Elements, Typing};
use spmdc_layout::factors::{Factor, FactorKind};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::projection::{Assignment, Projection};
use spmdc_layout::reshard::plan;
use spmdc_layout::sharding::{DimSharding, Sharding};
use spmdc_layout::types::{DType, Type};
use spmdc_layout::window::DimMap;
use spmdc_ops::broadcast::Broadcast;
use spmdc_ops::iota::Iota;
use spmdc_ops::reshard::Reshard;
use std::collections::BTreeMap;

/// Maximum number of elementwise statements that are repeated in another layout for one operand.
const MAX_REPEATED: usize = 64;

/// An operand of a repeated statement is moved if the array that is computed from it has this many times its elements.
const TIMES_SMALLER: usize = 4;

/// Maximum number of operands that are moved to the order in which a transform leaves its results, to compute with these.
const MAX_TURNED: usize = 2;

/// Gives every transform along a split dimension whole lines, or steps that have them.
pub fn distribute_transforms(mut module: Module) -> Module {
    debug_assert_eq!(module.stage, Stage::Propagated, "the layouts of all arrays are known");
    let mut body = std::mem::take(&mut module.func.body);
    rewrite(&mut body, &mut module.func, &module.mesh);
    module.func.body = body;
    module
}

fn rewrite(block: &mut Block, func: &mut Func, mesh: &Mesh) {
    let mut open = OpenTransforms {
        func,
        mesh,
        stmts: Vec::new(),
        made: BTreeMap::new(),
        elsewhere: BTreeMap::new(),
        turned: BTreeMap::new(),
        left: 0,
        others: 0,
    };
    for mut stmt in std::mem::take(&mut block.stmts) {
        stmt.blocks_mut().for_each(|inner| rewrite(inner, open.func, mesh));
        match split_axis(&stmt, open.func, mesh) {
            Some(axis) => open.transform(&stmt, axis),
            None => open.push(stmt),
        }
    }
    block.stmts = open.stmts;
}

/// The statements of a block so far.
struct OpenTransforms<'a> {
    func: &'a mut Func,
    mesh: &'a Mesh,
    stmts: Vec<Stmt>,
    /// For each result of an op in this block, its statement.
    made: BTreeMap<Value, usize>,
    /// Values that exist in other layouts.
    elsewhere: BTreeMap<Value, Vec<Value>>,
    /// Values that exist in the order in which a transform leaves them.
    turned: BTreeMap<Value, Vec<(LineMatrix, Value)>>,
    /// The number of statements that may still be repeated.
    left: usize,
    /// The number of operands that may still be moved to such an order.
    others: usize,
}

/// The transformed dimension, if it is split.
fn split_axis(stmt: &Stmt, func: &Func, mesh: &Mesh) -> Option<usize> {
    let op = stmt.as_op::<Fft>()?;
    let parts = mesh.size_of(&func.ty(stmt.args[0]).sharding.dims[op.axis].axes);
    (parts > 1).then_some(op.axis)
}

/// The layout with whole lines along a dimension: the axes that split it split another one instead, whose blocks get the smallest. Without
/// such a dimension, nothing does.
fn whole_lines(ty: &Type, axis: usize, mesh: &Mesh) -> Sharding {
    let mut to = ty.sharding.clone();
    let moved = std::mem::take(&mut to.dims[axis]).axes;
    let parts = mesh.size_of(&moved);
    let smaller = |dim: usize| -> Option<(usize, usize)> {
        let own = mesh.size_of(&to.dims[dim].axes);
        let (before, after) = (ty.shape()[dim].div_ceil(own), ty.shape()[dim].div_ceil(own * parts));
        // The part of the block that remains, in thousandths; equally small parts go to the first dimension.
        (dim != axis && after < before).then(|| (after * 1000 / before, dim))
    };
    if let Some((_, dim)) = (0..ty.rank()).filter_map(smaller).min() {
        let axes = to.dims[dim].axes.iter().chain(&moved).copied().collect();
        to.dims[dim] = DimSharding { axes, ..DimSharding::default() };
    }
    to
}

/// Whether elements are computed one by one, or only go to other places, from which they can be taken where lines are whole.
fn carries(elements: Elements<'_>) -> bool {
    match elements {
        Elements::Window(_) | Elements::Framed(_) | Elements::Repeated | Elements::Moved => true,
        Elements::Literal(_)
        | Elements::Counted
        | Elements::Drawn
        | Elements::Rows
        | Elements::Chosen(_)
        | Elements::Ordered(_)
        | Elements::Elementwise
        | Elements::Negated
        | Elements::Transferred(_)
        | Elements::Other => elements.are_elementwise() || elements.are_made_anywhere(),
    }
}

/// Whether all indices of lines are numbers of this type, or wrap around in it.
fn is_exact(dtype: DType, cut: &LineMatrix) -> bool {
    let most = (cut.rows * cut.columns) as f64;
    dtype.format().is_none_or(|format| most <= f64::from(format.mantissa).exp2())
}

impl OpenTransforms<'_> {
    fn push(&mut self, stmt: Stmt) {
        self.made.extend(stmt.results.iter().map(|&result| (result, self.stmts.len())));
        self.stmts.push(stmt);
    }

    /// Adds a statement whose results, in other layouts, are these of another statement.
    fn define(&mut self, op: impl Into<Op>, args: &[Value], results: &[Value], origin: &Origin) {
        let mut build = Builder::new(self.func, self.mesh);
        build.define(op, args, results, origin);
        for stmt in build.finish() {
            self.push(stmt);
        }
    }

    /// Replaces a transform along a split dimension.
    fn transform(&mut self, stmt: &Stmt, axis: usize) {
        let &Fft { transform, .. } = stmt.as_op::<Fft>().expect("the statement is a transform");
        if let Transform::Complex { inverse } = transform
            && self.transform_back(stmt, axis, inverse)
        {
            return;
        }
        let ty = self.func.ty(stmt.args[0]).clone();
        let layout = whole_lines(&ty, axis, self.mesh);
        let moved = |from: &Sharding, to: &Sharding| plan(&ty.array, from, to, self.mesh).cost;
        let whole = stmt.args.len() as f64 * moved(&ty.sharding, &layout)
            + stmt.results.len() as f64 * moved(&layout, &ty.sharding);
        let cut = LineMatrix::cheapest(transform, stmt.args.len(), &ty, axis, self.mesh);
        match cut.filter(|(_, cost)| *cost < whole) {
            Some((cut, _)) if !self.are_repeated(&stmt.args, &layout, &stmt.origin) => {
                self.in_four_steps(stmt, transform, cut);
            }
            Some(_) | None => self.with_whole_lines(stmt, axis, layout),
        }
    }

    fn in_four_steps(&mut self, stmt: &Stmt, transform: Transform, cut: LineMatrix) {
        let why = format!(
            "a transform along the split dimension {} exchanges its lines as matrices of {} x {}",
            cut.axis, cut.rows, cut.columns
        );
        let ty = self.func.ty(stmt.args[0]).clone();
        let origin = stmt.origin.because(why);
        let turned = self.with_steps(&ty, &cut, &origin, |steps| steps.transform(transform, &stmt.args, &stmt.results));
        for (&result, plane) in stmt.results.iter().zip(turned.into_iter().flatten()) {
            self.turned.entry(result).or_default().push((cut.clone(), plane));
        }
    }

    /// Transforms a value computed from a transform, in the order in which this transform leaves it; false if the operands are not in this
    /// order.
    fn transform_back(&mut self, stmt: &Stmt, axis: usize, inverse: bool) -> bool {
        let ty = self.func.ty(stmt.args[0]).clone();
        let fits = |cut: &&LineMatrix| {
            let lies_so = cut.axis == axis && cut.axes == ty.sharding.dims[axis].axes;
            lies_so && cut.rows * cut.columns == ty.shape()[axis]
        };
        let mut cuts: Vec<LineMatrix> = Vec::new();
        for cut in self.turned.values().flatten().map(|(cut, _)| cut).filter(fits) {
            if !cuts.contains(cut) {
                cuts.push(cut.clone());
            }
        }
        let origin = stmt.origin.because(format!(
            "a transform along the split dimension {axis} begins with the order in which another one leaves its lines"
        ));
        for cut in cuts {
            let before = (self.stmts.len(), self.turned.clone());
            (self.left, self.others) = (MAX_REPEATED, MAX_TURNED);
            let args = stmt.args.iter().map(|&arg| self.in_turned_order(arg, &cut, &ty, &origin));
            if let Some(args) = args.collect::<Option<Vec<(Value, bool)>>>()
                && args.iter().any(|(_, follows)| *follows)
            {
                let planes: Vec<Value> = args.into_iter().map(|(plane, _)| plane).collect();
                let make = |steps: &mut FourStep<'_>| steps.transform_back(inverse, &planes, &stmt.results);
                self.with_steps(&ty, &cut, &origin, make);
                return true;
            }
            self.forget(before.0);
            self.turned = before.1;
        }
        false
    }

    /// The value in turned order, and whether it follows from a transform that left its results so: if it is there already, or follows element by
    /// element from values that are. Other operands are moved.
    fn in_turned_order(
        &mut self,
        value: Value,
        cut: &LineMatrix,
        line: &Type,
        origin: &Origin,
    ) -> Option<(Value, bool)> {
        let ty = self.func.ty(value).clone();
        if ty.sharding != line.sharding || ty.shape() != line.shape() {
            return None;
        }
        let known = self.turned.get(&value).into_iter().flatten();
        if let Some((_, there)) = known.into_iter().find(|(own, _)| own == cut) {
            return Some((*there, true));
        }
        let stmt = self.stmts[*self.made.get(&value)?].clone();
        let (op, [_]) = (stmt.op()?.clone(), &stmt.results[..]) else { return None };
        let properties = op.rules().properties();
        let is_plain = properties.effect == Effect::None && properties.group().is_none();
        if !is_plain || self.left == 0 {
            return None;
        }
        self.left -= 1;
        if let Some(op) = op.as_op::<Iota>() {
            let make = |steps: &mut FourStep<'_>| steps.turned_indices(op.axis, op.ty.dtype);
            return is_exact(op.ty.dtype, cut).then(|| (self.with_steps(line, cut, &stmt.origin, make), false));
        }
        if matches!(properties.elements, Elements::Repeated) {
            let make = |steps: &mut FourStep<'_>| {
                let op = Broadcast { shape: steps.turned_shape() };
                steps.turned_result(op, &stmt.args, ty.dtype())
            };
            let is_number = self.func.ty(stmt.args[0]).rank() == 0;
            return is_number.then(|| (self.with_steps(line, cut, &stmt.origin, make), false));
        }
        if !properties.elements.are_elementwise() {
            return None;
        }
        let (mut args, mut follows) = (Vec::new(), false);
        for &arg in &stmt.args {
            let own = self.func.ty(arg);
            let is_alike = own.sharding == line.sharding && own.shape() == line.shape();
            let there = match own.rank() {
                0 => Some((arg, false)),
                _ => self.in_turned_order(arg, cut, line, origin),
            };
            if there.is_none() && !is_alike {
                return None;
            }
            follows |= there.is_some_and(|(_, follows)| follows);
            args.push((arg, there.map(|(there, _)| there)));
        }
        let moved = args.iter().filter(|(_, there)| there.is_none()).count();
        if moved > self.others || !follows && moved > 0 {
            return None;
        }
        self.others -= moved;
        let args: Vec<Value> = args
            .into_iter()
            .map(|(arg, there)| there.unwrap_or_else(|| self.with_steps(line, cut, origin, |steps| steps.turned(arg))))
            .collect();
        let make = |steps: &mut FourStep<'_>| steps.turned_result(op, &args, ty.dtype());
        let there = self.with_steps(line, cut, &stmt.origin, make);
        if follows {
            self.turned.entry(value).or_default().push((cut.clone(), there));
        }
        Some((there, follows))
    }

    /// Adds the statements of steps.
    fn with_steps<R>(
        &mut self,
        line: &Type,
        cut: &LineMatrix,
        origin: &Origin,
        make: impl FnOnce(&mut FourStep<'_>) -> R,
    ) -> R {
        let mut steps = FourStep::new(self.func, self.mesh, line.clone(), cut.clone(), origin.clone());
        let made = make(&mut steps);
        for stmt in steps.finish() {
            self.push(stmt);
        }
        made
    }

    /// Whether all values are in another layout, or are computed again there.
    fn are_repeated(&mut self, values: &[Value], layout: &Sharding, origin: &Origin) -> bool {
        self.left = MAX_REPEATED;
        let before = (self.stmts.len(), self.elsewhere.clone());
        let are = values.iter().all(|&value| self.repeated(value, layout, origin).is_some());
        self.forget(before.0);
        self.elsewhere = before.1;
        are
    }

    /// Leaves out statements that were begun in vain.
    fn forget(&mut self, stmts: usize) {
        self.stmts.truncate(stmts);
        self.made.retain(|_, at| *at < stmts);
    }

    fn with_whole_lines(&mut self, stmt: &Stmt, axis: usize, layout: Sharding) {
        let StmtKind::Op(op) = &stmt.kind else { unreachable!("a transform is an op") };
        let ty = self.func.ty(stmt.args[0]);
        let meanwhile = match layout.used_axes() == ty.sharding.used_axes() {
            true => "another dimension is split meanwhile",
            false => "there is no other dimension to split",
        };
        let why = format!("a transform along the split dimension {axis} needs whole lines: {meanwhile}");
        let origin = stmt.origin.because(why);
        debug_assert!(layout.dims[axis].axes.is_empty(), "lines are whole");
        let args: Vec<Value> = stmt.args.iter().map(|&arg| self.moved(arg, &layout, &origin)).collect();
        let made: Vec<Value> = stmt.results.iter().map(|&result| self.value_like(result, &layout)).collect();
        self.define(op.clone(), &args, &made, &stmt.origin);
        for (&made, &result) in made.iter().zip(&stmt.results) {
            let back = self.func.ty(result).sharding.clone();
            self.define(Reshard::request(back), &[made], &[result], &origin);
            self.elsewhere.entry(result).or_default().push(made);
        }
    }

    /// A new value of the same element type and shape, in another layout.
    fn value_like(&mut self, value: Value, layout: &Sharding) -> Value {
        let ty = Type { sharding: layout.clone(), ..self.func.ty(value).clone() };
        let origin = self.func.info(value).origin.clone();
        self.func.new_value(ty, origin)
    }

    /// The value in another layout: as it is there, computed again there, or moved there.
    fn moved(&mut self, value: Value, layout: &Sharding, origin: &Origin) -> Value {
        self.left = MAX_REPEATED;
        let before = (self.stmts.len(), self.elsewhere.clone());
        if let Some(there) = self.repeated(value, layout, origin) {
            return there;
        }
        self.forget(before.0);
        self.elsewhere = before.1;
        self.request(value, layout, origin)
    }

    fn request(&mut self, value: Value, layout: &Sharding, origin: &Origin) -> Value {
        let there = self.value_like(value, layout);
        debug_assert!(!self.func.ty(value).sharding.is_aligned(), "a request moves no blocks of another dimension");
        self.define(Reshard::request(layout.clone()), &[value], &[there], origin);
        self.elsewhere.entry(value).or_default().push(there);
        there
    }

    /// An operand of a repeated statement that makes `of`: repeated too, or moved if every device has it, or if it is small. Where it is aligned
    /// with another array, only a window moves it.
    fn operand(&mut self, value: Value, of: Value, layout: &Sharding, origin: &Origin) -> Option<Value> {
        let own = self.func.ty(value);
        if own.sharding.is_aligned() {
            return self.repeated(value, layout, origin);
        }
        let is_small = own.array.len() * TIMES_SMALLER <= self.func.ty(of).array.len();
        let is_there = own.sharding.used_axes().is_empty() && own.sharding.unreduced.is_empty();
        let repeated = self.repeated(value, layout, origin);
        repeated.or_else(|| (is_small || is_there).then(|| self.request(value, layout, origin)))
    }

    /// The value in another layout, if it is there already, or follows from values that are: element by element, or by slices, flips and joins
    /// of lines, as the half of a spectrum does.
    fn repeated(&mut self, value: Value, layout: &Sharding, origin: &Origin) -> Option<Value> {
        if self.func.ty(value).sharding == *layout {
            return Some(value);
        }
        let known = self.elsewhere.get(&value).into_iter().flatten();
        if let Some(&there) = known.into_iter().find(|there| self.func.ty(**there).sharding == *layout) {
            return Some(there);
        }
        let stmt = self.stmts[*self.made.get(&value)?].clone();
        let (op, [_]) = (stmt.op()?.clone(), &stmt.results[..]) else { return None };
        if layout.is_aligned() {
            return None;
        }
        if op.as_op::<Reshard>().is_some() {
            let is_whole = self.func.ty(stmt.args[0]).sharding.unreduced.is_empty();
            return if is_whole { self.operand(stmt.args[0], value, layout, origin) } else { None };
        }
        // Such a window only gives blocks other sizes.
        if window_of(self.func, &stmt).is_some_and(|map| map.dims.iter().all(DimMap::is_identity)) {
            return self.operand(stmt.args[0], value, layout, origin);
        }
        let projection = Projection::new(self.func.factors(&op, &stmt));
        let rule = &projection.rule;
        let properties = op.rules().properties();
        let is_plain = properties.effect == Effect::None && properties.group().is_none();
        let infers = matches!(op.rules().typing(), Typing::ByFactors(_));
        let can_move = carries(properties.elements) || !rule.parts.is_empty();
        if !can_move || !is_plain || !infers || self.left == 0 {
            return None;
        }
        self.left -= 1;
        let axes = projection.factors_of(&rule.results[0], |dim| &layout.dims[dim].axes, self.mesh);
        let assignment: Assignment = axes.into_iter().map(|axes| axes.unwrap_or_default().to_vec()).collect();
        // Along lines that are whole, elements may go to other places.
        let stays = |(axes, factor): (&Vec<u8>, &Factor)| axes.is_empty() || factor.kind == FactorKind::Pass;
        let is_made =
            projection.dims_of(&rule.results[0], &assignment).iter().eq(layout.dims.iter().map(|dim| &dim.axes))
                && projection.is_valid(&assignment, self.mesh)
                && assignment.iter().zip(&rule.factors).all(stays);
        if !is_made {
            return None;
        }
        let mut args = Vec::new();
        for (&arg, dims) in stmt.args.iter().zip(&rule.operands) {
            let needed = Sharding::closed(projection.dims_of(dims, &assignment));
            args.push(self.operand(arg, value, &needed, origin)?);
        }
        let there = self.value_like(value, layout);
        self.define(op, &args, &[there], &stmt.origin);
        self.elsewhere.entry(value).or_default().push(there);
        Some(there)
    }
}
