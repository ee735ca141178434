//! Computes new elements of a region on the device with the old ones, along split dimensions with an index known at run time.
//!
//! ```text
//! let v0: f32[32] = index(x, k, dims=(0,));                                            // x: f32[8@X,32]
//! let v1: f32[32] = v0 * v;
//! let u: f32[8@X,32] = update(x, v1, k, at=((), (0, 1, 32)));
//! =>
//! let u: f32[8@X,32] = revise(x, v, k, at=((), (0, 1, 32)), by=(("mul", 0, 1),));
//! ```
//!
//! Otherwise the old elements would be sent to all devices, and each would compute the new ones for the device that stores them. The pass
//! runs when layouts are known and before reshards are inserted. Elementwise statements whose results have no other use become steps; `dce`
//! removes them.

use crate::dce::dce;
use spmdc_ir::op::Op;
use spmdc_ir::program::build::{Builder, statement};
use spmdc_ir::program::origin::Origin;
use spmdc_ir::program::typing::result_types;
use spmdc_ir::program::{Block, Func, Module, Stage, Stmt, Value};
use spmdc_kernel::scalar::BinaryOp;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::AxisSet;
use spmdc_ops::cast::Cast;
use spmdc_ops::dynamic_slice::DynamicSlice;
use spmdc_ops::elementwise::Select;
use spmdc_ops::elementwise::{Binary, Compare, Unary};
use spmdc_ops::index::Index;
use spmdc_ops::region::Places;
use spmdc_ops::reshape::Reshape;
use spmdc_ops::revise::{Revise, ReviseOp, ReviseStep};
use spmdc_ops::slice::Slice;
use spmdc_ops::slice::SliceRange;
use spmdc_ops::update::Update;
use std::collections::BTreeMap;

/// Maximum number of steps.
const MAX_STEPS: usize = 64;

/// Replaces updates whose new elements are computed from the old elements.
pub fn revise_regions(mut module: Module) -> Module {
    debug_assert_eq!(module.stage, Stage::Propagated, "the layouts of all arrays are known");
    if module.mesh.device_count() == 1 {
        return module;
    }
    let mut applies = false;
    module.func.body.walk(&mut |stmt| {
        applies |= stmt.as_op::<Update>().is_some_and(|op| is_split_at_run_time(op, &module.func, stmt.args[0]));
    });
    if !applies {
        return module;
    }
    let mut uses = vec![0; module.func.values.len()];
    module.func.body.each_use(&mut |value| uses[value.0 as usize] += 1);
    let mut body = std::mem::take(&mut module.func.body);
    let is_changed = revise(&mut body, &mut module.func, &module.mesh, &uses);
    module.func.body = body;
    if is_changed { dce(module) } else { module }
}

fn revise(block: &mut Block, func: &mut Func, mesh: &Mesh, uses: &[usize]) -> bool {
    // The statements of this block that read regions or are steps, by their results.
    let mut makers: BTreeMap<Value, Stmt> = BTreeMap::new();
    let mut is_changed = false;
    let mut stmts = Vec::with_capacity(block.stmts.len());
    for mut stmt in std::mem::take(&mut block.stmts) {
        for inner in stmt.blocks_mut() {
            is_changed |= revise(inner, func, mesh, uses);
        }
        let found = stmt.op().and_then(|op| {
            let op = op.as_op::<Update>()?;
            let is_split = is_split_at_run_time(op, func, stmt.args[0]);
            is_split.then(|| Revision::of(op, &stmt, &makers, func))??.finish(uses)
        });
        if let Some(Revised { op, given, origin }) = found {
            let given = given.into_iter().map(|(value, shape)| in_shape(value, &shape, (func, mesh), &mut stmts));
            let given: Option<Vec<Value>> = given.collect();
            if let Some(given) = given {
                let args = [&stmt.args[..1], &given, &stmt.args[2..]].concat();
                stmt = statement(func, mesh, (op, &args), &stmt.results, &origin);
                is_changed = true;
            }
        }
        if stmt.op().is_some_and(|op| is_read(op) || step_op(op).is_some()) {
            makers.insert(stmt.results[0], stmt.clone());
        }
        stmts.push(stmt);
    }
    block.stmts = stmts;
    is_changed
}

/// The value in a shape that differs in dimensions of size 1 only.
fn in_shape(value: Value, shape: &[usize], (func, mesh): (&mut Func, &Mesh), stmts: &mut Vec<Stmt>) -> Option<Value> {
    let info = func.info(value);
    if info.ty.shape() == shape {
        return Some(value);
    }
    let op = Reshape::new(info.ty.shape(), shape);
    let mut ty = result_types(&op.clone().into(), &[&info.ty], AxisSet::EMPTY, mesh).ok()?.pop()?;
    ty.sharding = ty.sharding.close();
    let mut build = Builder::new(func, mesh);
    let origin = build.func.info(value).origin.clone();
    let result = build.emit(op, &[value], ty, &origin);
    stmts.extend(build.finish());
    Some(result)
}

/// Whether a dimension with an index known at run time is split.
fn is_split_at_run_time(op: &Update, func: &Func, x: Value) -> bool {
    let mut dims = op.at.iter().zip(&func.ty(x).sharding.dims);
    dims.any(|(places, dim)| matches!(places, Places::Dynamic(_)) && !dim.axes.is_empty())
}

/// Whether the op takes a region, or gives it in another shape.
fn is_read(op: &Op) -> bool {
    op.is::<Slice>() || op.is::<Index>() || op.is::<DynamicSlice>() || op.is::<Reshape>()
}

/// The step that an op is; None if it is not elementwise.
fn step_op(op: &Op) -> Option<ReviseOp> {
    if let Some(Unary(op)) = op.as_op::<Unary>() {
        return Some(ReviseOp::Unary(*op));
    }
    if let Some(Binary(op)) = op.as_op::<Binary>() {
        return Some(ReviseOp::Binary(*op));
    }
    if let Some(Compare(op)) = op.as_op::<Compare>() {
        return Some(ReviseOp::Compare(*op));
    }
    if let Some(op) = op.as_op::<Cast>() {
        return Some(ReviseOp::Cast(op.to));
    }
    op.is::<Select>().then_some(ReviseOp::Select)
}

/// The replacement of an update.
struct Revised {
    op: Revise,
    /// The new values, each with the shape in which it broadcasts to the region.
    given: Vec<(Value, Vec<usize>)>,
    /// The origin of the statement that may stop the program; without the origin of the update.
    origin: Origin,
}

/// An operand of a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ElementSource {
    /// The old element.
    Old,
    /// An operand, by its number.
    Given(usize),
    /// A step, by its number.
    Step(usize),
}

/// An update under examination.
struct Revision<'a> {
    op: &'a Update,
    stmt: &'a Stmt,
    makers: &'a BTreeMap<Value, Stmt>,
    func: &'a Func,
    /// The new elements, before they were given the shape of the region.
    new: Value,
    /// For each dimension of their shape, the dimension of the array.
    dims: Vec<usize>,
    /// The sources that values are.
    sources: BTreeMap<Value, ElementSource>,
    given: Vec<Value>,
    steps: Vec<(ReviseOp, Vec<ElementSource>)>,
    /// How often the update and its steps use a value.
    uses: BTreeMap<Value, usize>,
    /// Whether values are computed from the old elements.
    depends: BTreeMap<Value, bool>,
    /// The origin of the step that may stop the program.
    stops: Option<Origin>,
}

impl<'a> Revision<'a> {
    /// None if the new elements are broadcast to the region.
    fn of(op: &'a Update, stmt: &'a Stmt, makers: &'a BTreeMap<Value, Stmt>, func: &'a Func) -> Option<Revision<'a>> {
        let mut new = stmt.args[1];
        while let Some(stmt) = makers.get(&new)
            && let Some(_) = stmt.as_op::<Reshape>()
        {
            new = stmt.args[0];
        }
        // The dimensions from the last one back; those of size 1 may have been left out.
        let (region, shape) = (op.region(), func.ty(new).shape());
        let mut rest = region.len();
        let mut dims = Vec::new();
        for &size in shape.iter().rev() {
            rest = rest.checked_sub(1)?;
            while region[rest] != size {
                rest = rest.checked_sub(1).filter(|_| region[rest] == 1)?;
            }
            dims.push(rest);
        }
        dims.reverse();
        if region[..rest].iter().any(|&len| len != 1) {
            return None;
        }
        let (sources, uses, depends) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (given, steps) = (Vec::new(), Vec::new());
        Some(Revision { op, stmt, makers, func, new, dims, sources, given, steps, uses, depends, stops: None })
    }

    /// None if the new elements are not computed from the old ones, or if other statements need the old elements or values computed from
    /// them.
    fn finish(mut self, uses: &[usize]) -> Option<Revised> {
        let last = self.source(self.new)?;
        if matches!(last, ElementSource::Old | ElementSource::Given(_)) {
            return None;
        }
        if self.op.adds {
            self.steps.push((ReviseOp::Binary(BinaryOp::Add), vec![ElementSource::Old, last]));
        }
        let is_own = |(value, source): (&Value, &ElementSource)| {
            matches!(source, ElementSource::Given(_)) || self.uses.get(value) == Some(&uses[value.0 as usize])
        };
        if !self.sources.iter().all(is_own) {
            return None;
        }
        let number = |source: &ElementSource| match source {
            ElementSource::Old => 0,
            ElementSource::Given(at) => 1 + at,
            ElementSource::Step(at) => 1 + self.given.len() + at,
        };
        let step = |(op, args): &(ReviseOp, Vec<ElementSource>)| ReviseStep {
            op: *op,
            args: args.iter().map(number).collect(),
        };
        let by = self.steps.iter().map(step).collect();
        let given = self.given.iter().map(|&value| (value, self.beside_region(value))).collect();
        let origin = self.stops.as_ref().unwrap_or(&self.stmt.origin).clone();
        Some(Revised { op: Revise { at: self.op.at.clone(), by }, given, origin })
    }

    /// The shape in which a value that broadcasts to the new elements broadcasts to the region.
    fn beside_region(&self, value: Value) -> Vec<usize> {
        let shape = self.func.ty(value).shape();
        let dims = &self.dims[self.dims.len() - shape.len()..];
        let Some(&first) = dims.first() else { return Vec::new() };
        let mut beside = vec![1; self.op.at.len() - first];
        dims.iter().zip(shape).for_each(|(&dim, &size)| beside[dim - first] = size);
        beside
    }

    /// The source that a value is, which is used once more; None if there are too many steps.
    fn source(&mut self, value: Value) -> Option<ElementSource> {
        *self.uses.entry(value).or_default() += 1;
        if let Some(&known) = self.sources.get(&value) {
            return Some(known);
        }
        let source = if self.is_old(value) {
            ElementSource::Old
        } else {
            match self.step(value) {
                Some((op, args)) if self.depends(value, MAX_STEPS) => {
                    let args = args.iter().map(|&arg| self.source(arg)).collect::<Option<_>>()?;
                    if op.may_stop() {
                        let origin = self.func.info(value).origin.clone();
                        // A message names one place.
                        if self.stops.replace(origin).is_some() {
                            return None;
                        }
                    }
                    self.steps.push((op, args));
                    ElementSource::Step(self.steps.len() - 1)
                }
                _ => {
                    self.given.push(value);
                    ElementSource::Given(self.given.len() - 1)
                }
            }
        };
        self.sources.insert(value, source);
        (self.steps.len() < MAX_STEPS).then_some(source)
    }

    /// The step of a value that is computed for each element of the region.
    fn step(&self, value: Value) -> Option<(ReviseOp, &'a [Value])> {
        let stmt = self.makers.get(&value)?;
        let op = step_op(stmt.op()?)?;
        self.is_whole(value).then_some((op, stmt.args.as_slice()))
    }

    /// Whether a value is the old elements, or computed from them in at most this number of steps.
    fn depends(&mut self, value: Value, steps: usize) -> bool {
        if let Some(&known) = self.depends.get(&value) {
            return known;
        }
        let from = self.step(value).filter(|_| steps > 0).map_or(&[] as &[Value], |(_, args)| args);
        let depends = self.is_old(value) || from.iter().any(|&arg| self.depends(arg, steps - 1));
        self.depends.insert(value, depends);
        depends
    }

    /// Whether a value has the shape of the new elements.
    fn is_whole(&self, value: Value) -> bool {
        self.func.ty(value).shape() == self.func.ty(self.new).shape()
    }

    /// Whether a value is the elements that the update replaces.
    fn is_old(&self, value: Value) -> bool {
        let Some(read) = self.read(value) else { return false };
        let mut starts = self.stmt.args[2..].iter();
        let mut same = self.op.at.iter().zip(&read.places).all(|(replaced, place)| match (replaced, place) {
            (Places::Range(a), ReadPlace::Range(b)) => one_step(*a) == one_step(*b),
            (Places::Dynamic(len), ReadPlace::Dynamic(start, own)) => len == own && starts.next() == Some(start),
            (Places::Range(_), ReadPlace::Dynamic(..)) | (Places::Dynamic(_), ReadPlace::Range(_)) => false,
        });
        same &= self.is_whole(value);
        let shape = self.func.ty(value).shape();
        let dims = || read.dims.iter().zip(&self.dims).zip(shape);
        same && dims().all(|((dim, own), &size)| size == 1 || *dim == Some(*own))
    }

    /// The region of the updated array that equals a value; None if the value is not a region.
    fn read(&self, value: Value) -> Option<RegionRead> {
        let x = self.stmt.args[0];
        if value == x {
            let sizes = self.func.ty(x).shape();
            let places = sizes.iter().map(|&size| ReadPlace::Range(SliceRange::all(size))).collect();
            return Some(RegionRead { dims: (0..sizes.len()).map(Some).collect(), places });
        }
        let stmt = self.makers.get(&value)?;
        let op = stmt.op().filter(|op| is_read(op))?;
        let mut read = self.read(stmt.args[0])?;
        let from = self.func.ty(stmt.args[0]).shape();
        if let Some(op) = op.as_op::<Slice>() {
            for (at, &(range, _)) in op.ranges.iter().enumerate() {
                read.cut(at, range, from[at])?;
            }
        }
        if let Some(op) = op.as_op::<DynamicSlice>() {
            for (&(at, len), &start) in op.dims.iter().zip(&stmt.args[1..]) {
                read.take(at, start, len)?;
            }
        }
        if let Some(op) = op.as_op::<Index>() {
            for (&at, &start) in op.dims.iter().zip(&stmt.args[1..]) {
                read.take(at, start, 1)?;
            }
            let kept = read.dims.iter().enumerate().filter(|(at, _)| !op.dims.contains(at));
            read.dims = kept.map(|(_, dim)| *dim).collect();
        }
        if let Some(op) = op.as_op::<Reshape>() {
            let long = |shape: &[usize]| shape.iter().copied().filter(|&size| size != 1).collect::<Vec<_>>();
            if long(from) != long(&op.shape) {
                return None;
            }
            let mut kept = read.dims.iter().zip(from).filter(|(_, size)| **size != 1).map(|(dim, _)| *dim);
            read.dims = op.shape.iter().map(|&size| if size == 1 { None } else { kept.next().flatten() }).collect();
        }
        Some(read)
    }
}

/// A region of an array.
struct RegionRead {
    /// For each dimension of the region's value, the dimension of the array; None for dimensions that a reshape has added.
    dims: Vec<Option<usize>>,
    /// For each dimension of the array the indices.
    places: Vec<ReadPlace>,
}

enum ReadPlace {
    Range(SliceRange),
    /// So many indices from the one that a value gives.
    Dynamic(Value, usize),
}

impl RegionRead {
    /// Takes a range of a dimension of this size.
    fn cut(&mut self, at: usize, range: SliceRange, size: usize) -> Option<()> {
        if range == SliceRange::all(size) {
            return Some(());
        }
        let place = &mut self.places[self.dims[at]?];
        let ReadPlace::Range(of) = place else { return None };
        let (start, step) = (of.at(range.start), of.step * range.step);
        *of = SliceRange { start, step, len: range.len };
        Some(())
    }

    /// Takes elements from an index on that is known at run time.
    fn take(&mut self, at: usize, start: Value, len: usize) -> Option<()> {
        let place = &mut self.places[self.dims[at]?];
        let ReadPlace::Range(SliceRange { start: 0, step: 1, .. }) = place else { return None };
        *place = ReadPlace::Dynamic(start, len);
        Some(())
    }
}

/// The range with a step of 1 where it has one index.
fn one_step(range: SliceRange) -> SliceRange {
    SliceRange { step: if range.len == 1 { 1 } else { range.step }, ..range }
}
