//! Makes stencils exchange halos for several steps at once.
//!
//! ```text
//! for i in 0..67 { u = f(u); }                    // f reads neighbours at a distance of 1
//! =>
//! for r in 0..4 {
//!   g = ghosted(u, 16 elements on each side);     // an exchange
//!   h = f(g); g = f(h); h = f(g); ..              // 15 steps; each is valid in a block one element smaller on each side
//!   u = f(g);                                     // the last step computes the block alone
//! }
//! for i in 64..67 { u = f(u); }
//! ```
//!
//! Neighbours compute the elements of each other's margins, too, so the bits are the same. There are fewer exchanges, and between two of
//! them no device waits. The steps of a device run panel by panel (`panels`), and an array that exceeds the caches is read once for all of
//! them. The blocks with their margins have separate dimensions for the coordinates of devices, so the windows on them are slices.
//!
//! The pass only changes loops whose trips compute all carried values from windows on them, element by element. The arrays must exceed the
//! caches and have equal blocks.

use spmdc_ir::op::Op;
use spmdc_ir::program::build::Builder;
use spmdc_ir::program::control::{Control, ForLoop};
use spmdc_ir::program::local::window_of;
use spmdc_ir::program::origin::Origin;
use spmdc_ir::program::{Block, Func, Module, Stage, Stmt, StmtKind, Value};
use spmdc_ir::rules::Elements;
use spmdc_kernel::scalar::{BinaryOp, CompareOp};
use spmdc_layout::cost::Room;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::patch::PatchDim;
use spmdc_layout::sharding::{DimSharding, Sharding};
use spmdc_layout::types::{ArrayType, DType, Type};
use spmdc_layout::window::{DimMap, WindowMap};
use spmdc_ops::broadcast::Broadcast;
use spmdc_ops::constant::Constant;
use spmdc_ops::elementwise::{Binary, Compare, Select};
use spmdc_ops::iota::Iota;
use spmdc_ops::region::Places;
use spmdc_ops::reshape::Reshape;
use spmdc_ops::slice::{Slice, SliceRange};
use spmdc_ops::update::Update;
use spmdc_window_ops::ghosted::Ghosted;
use std::collections::{BTreeMap, BTreeSet};

/// The greatest numbers of steps between two exchanges, the first that fits first.
const DEPTHS: [usize; 4] = [20, 16, 8, 4];
/// The least number: margins are copied, too.
const LEAST_DEPTH: usize = 4;
/// The least number of cache lines of a row whose margins are whole lines.
const LEAST_ALIGNED: usize = 64;

/// Changes the loops of stencils. If memory is limited ([`Room::Scarce`]), changes none: blocks with margins are additional arrays.
pub fn deepen_halos(mut module: Module, room: Room) -> Module {
    debug_assert_eq!(module.stage, Stage::Propagated, "the layouts of all arrays are known");
    if room == Room::Scarce {
        return module;
    }
    let mut body = std::mem::take(&mut module.func.body);
    let replaced = (0..module.func.values.len() as u32).map(Value).collect();
    Deepener { func: &mut module.func, mesh: &module.mesh, replaced }.block(&mut body);
    module.func.body = body;
    module
}

struct Deepener<'a> {
    func: &'a mut Func,
    mesh: &'a Mesh,
    /// The replacement of each value of the module; itself if it stays.
    replaced: Vec<Value>,
}

/// For each dimension the distance from an element of the carried arrays to the element of a value at the same place.
type Offset = Vec<i64>;

/// A loop whose trips are stencils.
struct Stencil<'a> {
    op: &'a ForLoop,
    /// The statement of each value of the body.
    defined: BTreeMap<Value, &'a Stmt>,
    /// The arrays that the trips read and do not change, of the type of the carried ones.
    fixed: BTreeSet<Value>,
    /// The type of the carried arrays.
    ty: Type,
    /// For each dimension the greatest distance of an element that a step reads.
    radius: Vec<usize>,
    /// Whether the array wraps around: elements beyond an end are elements of the other end.
    wraps: Vec<bool>,
    /// Whether a step changes only a part of the dimension.
    is_partial: Vec<bool>,
}

/// A dimension of the carried arrays, and of the blocks with margins.
#[derive(Clone)]
struct DeepDim {
    size: usize,
    /// The number of blocks, and the axes along which they are split.
    blocks: usize,
    axes: Vec<u8>,
    /// The number of elements of a block without its margins.
    block: usize,
    /// The elements at each end of a block that no step computes: at least the elements that a step reads without computing them.
    edge: usize,
    /// The elements of a margin, with its edge.
    margin: usize,
    wraps: bool,
}

impl DeepDim {
    fn is_split(&self) -> bool {
        !self.axes.is_empty()
    }

    /// The elements of a block with its margins.
    fn room(&self) -> usize {
        self.block + 2 * self.margin
    }

    /// The first element that a step computes, and the number of them. The last step computes the elements of the block.
    fn computed(&self, is_last: bool) -> (usize, usize) {
        if is_last { (self.margin, self.block) } else { (self.edge, self.room() - 2 * self.edge) }
    }
}

impl Deepener<'_> {
    fn block(&mut self, block: &mut Block) {
        let mut stmts = Vec::with_capacity(block.stmts.len());
        for mut stmt in std::mem::take(&mut block.stmts) {
            stmt.args.iter_mut().for_each(|arg| *arg = self.replaced[arg.0 as usize]);
            stmt.blocks_mut().for_each(|inner| self.block(inner));
            let deepened = match &stmt.kind {
                StmtKind::Control(Control::For(op)) => self.deepened(&stmt, op),
                StmtKind::Control(Control::While(_) | Control::Branch(_) | Control::Manual(_)) | StmtKind::Op(_) => {
                    None
                }
            };
            match deepened {
                Some(made) => stmts.extend(made),
                None => stmts.push(stmt),
            }
        }
        block.stmts = stmts;
        block.results.iter_mut().for_each(|result| *result = self.replaced[result.0 as usize]);
    }

    /// The statements in place of a loop; None if it stays.
    fn deepened(&mut self, stmt: &Stmt, op: &ForLoop) -> Option<Vec<Stmt>> {
        let trips = op.trips()? as usize;
        let stencil = Stencil::of(self.func, op)?;
        let bytes = stencil.ty.block_bytes(self.mesh).saturating_mul(self.mesh.device_count());
        if (bytes as u64) < self.mesh.machine.streamed_bytes {
            return None;
        }
        let (depth, dims) = DEPTHS.into_iter().find_map(|most| {
            // As many trips in each round, and few that are left over.
            let depth = trips / trips.div_ceil(most).max(1);
            if depth < LEAST_DEPTH {
                return None;
            }
            let dims = stencil.dims(depth, self.mesh)?;
            let elements = |of: fn(&DeepDim) -> usize| dims.iter().map(of).fold(1, usize::saturating_mul);
            let allowed = elements(|dim| dim.block).saturating_mul(self.mesh.machine.most_repeated) / 100;
            let rows = (depth * stencil.radius[0]).saturating_mul(stencil.row_bytes(&dims)) as u64;
            let fits = dims.iter().all(|dim| dim.margin <= dim.block / 2) && rows <= self.mesh.machine.lagging_bytes;
            (elements(DeepDim::room) <= allowed && fits).then_some((depth, dims))
        })?;
        if dims.iter().all(|dim| dim.margin == 0) {
            return None;
        }
        let origin = stmt.origin.because("steps of a stencil exchange their halos together");
        let mut steps = StencilSteps { func: self.func, mesh: self.mesh, stencil: &stencil, dims, depth, origin };
        let (made, results) = steps.made(stmt, trips)?;
        for (&result, &value) in stmt.results.iter().zip(&results) {
            if result != value {
                self.replaced[result.0 as usize] = value;
            }
        }
        Some(made)
    }
}

impl<'a> Stencil<'a> {
    fn of(func: &Func, op: &'a ForLoop) -> Option<Stencil<'a>> {
        let params = &op.body.params[1..];
        if op.collected > 0 || op.range.is_none() || params.is_empty() {
            return None;
        }
        let ty = func.ty(params[0]).clone();
        let is_plain = ty.sharding.unreduced.is_empty()
            && ty.varying.is_empty()
            && ty.rank() > 0
            && ty.sharding.dims.iter().all(|dim| dim.alignment.is_none());
        if !is_plain || params.iter().any(|&param| *func.ty(param) != ty) {
            return None;
        }
        let defined = op.body.stmts.iter().flat_map(|stmt| stmt.results.iter().map(move |&result| (result, stmt)));
        let rank = ty.rank();
        let mut found = Stencil {
            op,
            defined: defined.collect(),
            fixed: BTreeSet::new(),
            ty,
            radius: vec![0; rank],
            wraps: vec![false; rank],
            is_partial: vec![false; rank],
        };
        let mut seen = BTreeSet::new();
        for &result in &op.body.results {
            found.visit(func, result, vec![0; rank], &mut seen)?;
        }
        // Every statement is one of those that have been seen.
        let is_seen = |stmt: &Stmt| stmt.results.iter().all(|result| seen.iter().any(|(value, _)| value == result));
        let mixed = found.wraps.iter().zip(&found.is_partial).any(|(wraps, partial)| *wraps && *partial);
        (!mixed && op.body.stmts.iter().all(is_seen)).then_some(found)
    }

    /// Follows a value at an offset to the carried arrays. None if it is not an expression of their nearby elements.
    fn visit(&mut self, func: &Func, value: Value, offset: Offset, seen: &mut BTreeSet<(Value, Offset)>) -> Option<()> {
        if !seen.insert((value, offset.clone())) {
            return Some(());
        }
        let ty = func.ty(value);
        if ty.rank() == 0 {
            return self.visit_scalar(func, value, seen);
        }
        let Some(&stmt) = self.defined.get(&value) else {
            if *ty != self.ty {
                return None;
            }
            if !self.op.body.params.contains(&value) {
                self.fixed.insert(value);
            }
            for (radius, offset) in self.radius.iter_mut().zip(&offset) {
                *radius = (*radius).max(offset.unsigned_abs() as usize);
            }
            return Some(());
        };
        let op = stmt.op().filter(|_| stmt.results.len() == 1)?;
        if stmt.has_effect() || func.may_stop(stmt) || ty.rank() != self.ty.rank() {
            return None;
        }
        if let Some(map) = window_of(func, stmt).filter(|_| stmt.args.len() == 1) {
            let offset = self.through(&map, &offset)?;
            return self.visit(func, stmt.args[0], offset, seen);
        }
        if let Some(update) = op.as_op::<Update>() {
            let starts = starts(update)?;
            let whole = func.ty(stmt.args[0]);
            let changed = func.ty(stmt.args[1]);
            let region = update.region();
            if changed.rank() > 0 && changed.shape() != region {
                return None;
            }
            for (dim, &size) in region.iter().enumerate() {
                self.is_partial[dim] |= size < whole.shape()[dim];
            }
            let inner = offset.iter().zip(&starts).map(|(offset, start)| offset + start).collect();
            self.visit(func, stmt.args[0], offset, seen)?;
            return self.visit(func, stmt.args[1], inner, seen);
        }
        match op.rules().properties().elements {
            Elements::Elementwise | Elements::Negated => stmt.args.iter().try_for_each(|&arg| {
                let fits = func.ty(arg).rank() == 0 || func.ty(arg).shape() == ty.shape();
                if fits { self.visit(func, arg, offset.clone(), seen) } else { None }
            }),
            Elements::Repeated if func.ty(stmt.args[0]).rank() == 0 => self.visit(func, stmt.args[0], Vec::new(), seen),
            Elements::Repeated
            | Elements::Literal(_)
            | Elements::Counted
            | Elements::Drawn
            | Elements::Rows
            | Elements::Moved
            | Elements::Window(_)
            | Elements::Framed(_)
            | Elements::Chosen(_)
            | Elements::Ordered(_)
            | Elements::Transferred(_)
            | Elements::Other => None,
        }
    }

    /// Scalars are computed from scalars, in each step.
    fn visit_scalar(&mut self, func: &Func, value: Value, seen: &mut BTreeSet<(Value, Offset)>) -> Option<()> {
        let Some(&stmt) = self.defined.get(&value) else { return Some(()) };
        // Arrays never stop the program, so scalars do it in the same order.
        let is_pure = stmt.op().is_some_and(Op::is_pointwise) && !stmt.has_effect();
        if !is_pure || stmt.results.len() != 1 {
            return None;
        }
        stmt.args.iter().try_for_each(|&arg| {
            if func.ty(arg).rank() > 0 {
                return None;
            }
            self.visit(func, arg, Vec::new(), seen)
        })
    }

    /// The offset of the operand of a window.
    fn through(&mut self, map: &WindowMap, offset: &Offset) -> Option<Offset> {
        let mut through = Vec::new();
        for (at, (map, offset)) in map.dims.iter().zip(offset).enumerate() {
            let DimMap { size, before, start, step, len, after } = *map;
            if step != 1 || before + after > 0 {
                return None;
            }
            if start + len > size {
                if len != size {
                    return None;
                }
                self.wraps[at] = true;
            }
            through.push(offset - distance(map));
        }
        Some(through)
    }

    /// The number of arrays that a trip computes; it hands on the others as they are.
    fn computed(&self) -> usize {
        let Block { params, results, .. } = &self.op.body;
        results.iter().filter(|result| !params.contains(result)).count()
    }

    /// Bytes of one row of the blocks of all arrays: of the carried ones, of as many to compute them in, and of the fixed ones.
    fn row_bytes(&self, dims: &[DeepDim]) -> usize {
        let elements: usize = dims[1..].iter().map(DeepDim::room).product();
        (self.op.body.params[1..].len() + self.computed() + self.fixed.len()) * elements * self.ty.dtype().size()
    }

    /// The dimensions for this number of steps between two exchanges; None if blocks differ.
    fn dims(&self, depth: usize, mesh: &Mesh) -> Option<Vec<DeepDim>> {
        let rank = self.ty.rank();
        let line = (mesh.machine.line_bytes / self.ty.dtype().size()).max(1);
        let dims = self.ty.shape().iter().zip(&self.ty.sharding.dims).enumerate();
        let dims = dims.map(|(at, (&size, dim))| {
            let blocks = mesh.size_of(&dim.axes);
            let radius = self.radius[at];
            let block = size / blocks;
            // Rows of whole cache lines, of which steps compute whole lines, too.
            let is_aligned = at + 1 == rank && radius > 0 && block >= LEAST_ALIGNED * line;
            let edge = if is_aligned { radius.next_multiple_of(line) } else { radius };
            let margin = edge + (depth - 1) * radius;
            let margin = if is_aligned { margin.next_multiple_of(line) } else { margin };
            let wraps = self.wraps[at];
            let deep = DeepDim { size, blocks, axes: dim.axes.clone(), block, edge, margin, wraps };
            (block > 0 && block * blocks == size).then_some(deep)
        });
        dims.collect()
    }
}

/// The distance from an element of a window to its element of the operand; back if that is shorter, where the window wraps around.
fn distance(map: &DimMap) -> i64 {
    let is_back = map.start + map.len > map.size && 2 * map.start > map.size;
    map.start as i64 - if is_back { map.size as i64 } else { 0 }
}

/// The first index of a region along each dimension, if it is known.
fn starts(update: &Update) -> Option<Vec<i64>> {
    let start = |places: &Places| match places {
        Places::Range(range) if range.step == 1 => Some(range.start as i64),
        Places::Range(_) | Places::Dynamic(_) => None,
    };
    if update.adds { None } else { update.at.iter().map(start).collect() }
}

/// The statements of the steps between exchanges.
struct StencilSteps<'a, 'b> {
    func: &'a mut Func,
    mesh: &'a Mesh,
    stencil: &'a Stencil<'b>,
    dims: Vec<DeepDim>,
    depth: usize,
    origin: Origin,
}

/// The values of a step.
#[derive(Default)]
struct StencilStep {
    /// For each array that is read its blocks with margins, and for scalars their values in this step.
    arrays: BTreeMap<Value, Value>,
    /// The elements that the step computes, of each value at an offset.
    inside: BTreeMap<(Value, Offset), Value>,
    is_last: bool,
    stmts: Vec<Stmt>,
    /// The statements of scalars. They come before the statements of all steps, so that the kernels of the steps are adjacent.
    scalars: Vec<Stmt>,
}

impl StencilSteps<'_, '_> {
    /// The loop over exchanges and the remaining trips, and the last carried values.
    fn made(&mut self, stmt: &Stmt, trips: usize) -> Option<(Vec<Stmt>, Vec<Value>)> {
        let (first, end) = self.stencil.op.range?;
        let rounds = (trips / self.depth) as i64;
        let mut made = Vec::new();
        let mut fixed = StencilStep::default();
        for &value in &self.stencil.fixed {
            let blocks = self.ghosted(value, &mut fixed.stmts)?;
            fixed.arrays.insert(value, blocks);
        }
        made.append(&mut fixed.stmts);
        let spare = self.stencil.computed();
        let zero = self.emit(
            Constant::scalar(self.stencil.ty.dtype(), 0),
            &[],
            self.scalar(self.stencil.ty.dtype()),
            &mut made,
        );
        let ty = self.deep_type(DeepDim::room);
        let shape = ty.shape().to_vec();
        let spares: Vec<Value> =
            (0..spare).map(|_| self.emit(Broadcast { shape: shape.clone() }, &[zero], ty.clone(), &mut made)).collect();
        let init: Vec<Value> = stmt.args.iter().chain(&spares).copied().collect();
        let body = self.round(first, &fixed.arrays)?;
        let results: Vec<Value> = body.params[1..].iter().map(|&param| self.func.new_like(param)).collect();
        let rounds_of = ForLoop { range: Some((0, rounds)), collected: 0, body };
        let kind = StmtKind::Control(Control::For(rounds_of));
        made.push(Stmt { kind, args: init, results: results.clone(), ..stmt.clone() });
        let carries = stmt.results.len();
        let next = first + rounds * self.depth as i64;
        if next == end {
            return Some((made, results[..carries].to_vec()));
        }
        let left = ForLoop { range: Some((next, end)), ..self.stencil.op.clone() };
        let kind = StmtKind::Control(Control::For(left));
        made.push(Stmt { kind, args: results[..carries].to_vec(), ..stmt.clone() });
        Some((made, stmt.results.clone()))
    }

    /// The body of the loop over exchanges.
    fn round(&mut self, first: i64, fixed: &BTreeMap<Value, Value>) -> Option<Block> {
        let stencil = self.stencil;
        let params = &stencil.op.body.params;
        let counter = self.func.new_like(params[0]);
        let carried: Vec<Value> = params[1..].iter().map(|&param| self.func.new_like(param)).collect();
        let ty = self.deep_type(DeepDim::room);
        let computed = stencil.computed();
        let spares: Vec<Value> = (0..computed).map(|_| self.func.new_value(ty.clone(), self.origin.clone())).collect();
        let mut step = StencilStep { arrays: fixed.clone(), ..StencilStep::default() };
        for (&param, &value) in params[1..].iter().zip(&carried) {
            let blocks = self.ghosted(value, &mut step.stmts)?;
            step.arrays.insert(param, blocks);
        }
        let mut free = spares.clone();
        // The latest value in the memory of each spare array.
        let mut latest = spares.clone();
        let mut results = Vec::new();
        for number in 0..self.depth {
            step.is_last = number + 1 == self.depth;
            let trip = self.trip(counter, first, number, &mut step.scalars);
            step.arrays.insert(params[0], trip);
            let mut next = Vec::new();
            for &result in &stencil.op.body.results {
                let same = step.arrays.get(&result).copied().filter(|_| params.contains(&result));
                next.push(match same {
                    Some(same) if step.is_last => self.cropped(same, &mut step.stmts),
                    Some(same) => same,
                    None => {
                        let inside = self.inside(&mut step, result, vec![0; self.dims.len()])?;
                        if step.is_last {
                            self.whole(inside, &mut step.stmts)
                        } else {
                            let old = free.pop()?;
                            let placed = self.placed(old, inside, &mut step.stmts);
                            latest.iter_mut().filter(|latest| **latest == old).for_each(|latest| *latest = placed);
                            placed
                        }
                    }
                });
            }
            if step.is_last {
                results = next;
                break;
            }
            // The arrays that no value lies in any more are free for the next step.
            for &param in &params[1..] {
                let old = step.arrays[&param];
                if !next.contains(&old) && !free.contains(&old) {
                    free.push(old);
                }
            }
            let StencilStep { stmts, scalars, .. } = step;
            step = StencilStep { arrays: fixed.clone(), stmts, scalars, ..StencilStep::default() };
            step.arrays.extend(params[1..].iter().copied().zip(next));
        }
        debug_assert_eq!(results.len(), carried.len(), "a result for each carried array");
        results.extend(latest);
        let params = std::iter::once(counter).chain(carried).chain(spares).collect();
        let stmts = step.scalars.into_iter().chain(step.stmts).collect();
        Some(Block { params, stmts, results })
    }

    /// The number of the trip that is a step of a round.
    fn trip(&mut self, round: Value, first: i64, number: usize, stmts: &mut Vec<Stmt>) -> Value {
        let ty = self.func.ty(round).clone();
        let depth = self.number(self.depth as i64, stmts);
        let number = self.number(first + number as i64, stmts);
        let product = self.emit(Binary(BinaryOp::Mul), &[round, depth], ty.clone(), stmts);
        self.emit(Binary(BinaryOp::Add), &[product, number], ty, stmts)
    }

    /// The elements of a value that a step computes.
    fn inside(&mut self, step: &mut StencilStep, value: Value, offset: Offset) -> Option<Value> {
        if self.func.ty(value).rank() == 0 {
            return self.scalar_value(step, value);
        }
        if let Some(&known) = step.inside.get(&(value, offset.clone())) {
            return Some(known);
        }
        let stencil = self.stencil;
        let is_last = step.is_last;
        let inside = self.deep_type(|dim| dim.computed(is_last).1);
        let ty = Type { array: ArrayType { dtype: self.func.ty(value).dtype(), ..inside.array.clone() }, ..inside };
        let made = match stencil.defined.get(&value) {
            None => {
                let ranges = self.ranges(is_last, |start, at| (start as i64 - offset[at]) as usize);
                self.emit(Slice { ranges }, &[step.arrays[&value]], ty, &mut step.stmts)
            }
            Some(&stmt) => {
                let op = stmt.op()?;
                if let Some(map) = window_of(self.func, stmt).filter(|_| stmt.args.len() == 1) {
                    let through = self.through(&map, &offset);
                    self.inside(step, stmt.args[0], through)?
                } else if let Some(update) = op.as_op::<Update>() {
                    let starts = starts(update)?;
                    let inner = offset.iter().zip(&starts).map(|(offset, start)| offset + start).collect();
                    let old = self.inside(step, stmt.args[0], offset.clone())?;
                    let new = self.inside(step, stmt.args[1], inner)?;
                    let whole = self.func.ty(stmt.args[0]).shape().to_vec();
                    let bounds = starts.iter().zip(update.region()).zip(&offset);
                    let bounds: Vec<(i64, i64)> =
                        bounds.map(|((start, len), offset)| (start + offset, start + offset + len as i64)).collect();
                    match self.mask(&bounds, &whole, is_last, &mut step.stmts) {
                        Some(mask) => self.emit(Select, &[mask, new, old], ty, &mut step.stmts),
                        None => new,
                    }
                } else if let Elements::Repeated = op.rules().properties().elements {
                    let arg = self.inside(step, stmt.args[0], Vec::new())?;
                    let shape = ty.shape().to_vec();
                    self.emit(Broadcast { shape }, &[arg], ty, &mut step.stmts)
                } else {
                    let mut args = Vec::new();
                    for &arg in &stmt.args {
                        args.push(self.inside(step, arg, offset.clone())?);
                    }
                    let result = self.func.new_value(ty, stmt.origin.clone());
                    step.stmts.push(Stmt { args, results: vec![result], ..stmt.clone() });
                    result
                }
            }
        };
        step.inside.insert((value, offset), made);
        Some(made)
    }

    fn scalar_value(&mut self, step: &mut StencilStep, value: Value) -> Option<Value> {
        if let Some(&known) = step.arrays.get(&value) {
            return Some(known);
        }
        let Some(&stmt) = self.stencil.defined.get(&value) else { return Some(value) };
        let mut args = Vec::new();
        for &arg in &stmt.args {
            args.push(self.scalar_value(step, arg)?);
        }
        let result = self.func.new_like(value);
        step.scalars.push(Stmt { args, results: vec![result], ..stmt.clone() });
        step.arrays.insert(value, result);
        Some(result)
    }

    /// The offset of the operand of a window; the window is known to have one.
    fn through(&self, map: &WindowMap, offset: &Offset) -> Offset {
        map.dims.iter().zip(offset).map(|(map, offset)| offset - distance(map)).collect()
    }

    /// Whether an element is within bounds along each dimension; None if all elements are. Only the indices of a dimension are tested
    /// against its bounds.
    fn mask(&mut self, bounds: &[(i64, i64)], whole: &[usize], is_last: bool, stmts: &mut Vec<Stmt>) -> Option<Value> {
        let full = self.deep_type(|dim| dim.computed(is_last).1);
        let full = Type { array: ArrayType { dtype: DType::Bool, ..full.array }, ..full };
        let mut mask = None;
        let mut deep = 0;
        for (at, dim) in self.dims.clone().into_iter().enumerate() {
            let own = deep..deep + 1 + usize::from(dim.is_split());
            deep = own.end;
            if bounds[at] == (0, whole[at] as i64) {
                continue;
            }
            let holds = self.within(&dim, bounds[at], is_last, stmts);
            let mut shape = vec![1; full.rank()];
            shape[own.clone()].copy_from_slice(&full.shape()[own.clone()]);
            let mut sharding =
                Sharding { dims: vec![DimSharding::closed(Vec::new()); full.rank()], ..full.sharding.clone() };
            sharding.dims[own.clone()].clone_from_slice(&full.sharding.dims[own]);
            let array = ArrayType { shape: shape.clone(), ..full.array.clone() };
            let ty = Type { array, sharding, ..full.clone() };
            let placed = self.emit(Reshape { shape, trivial: true }, &[holds], ty, stmts);
            let shape = full.shape().to_vec();
            let wide = self.emit(Broadcast { shape }, &[placed], full.clone(), stmts);
            mask = Some(match mask {
                None => wide,
                Some(others) => self.emit(Binary(BinaryOp::And), &[others, wide], full.clone(), stmts),
            });
        }
        mask
    }

    /// For each element along a dimension that a step computes, block by block, whether its index in the whole array is within bounds.
    fn within(&mut self, dim: &DeepDim, bounds: (i64, i64), is_last: bool, stmts: &mut Vec<Stmt>) -> Value {
        let (start, len) = dim.computed(is_last);
        let (mut shape, mut dims) = (vec![len], vec![DimSharding::closed(Vec::new())]);
        if dim.is_split() {
            shape.insert(0, dim.blocks);
            dims.insert(0, DimSharding::closed(dim.axes.clone()));
        }
        let sharding = Sharding { dims, ..self.stencil.ty.sharding.clone() };
        let number = Type { array: ArrayType::new(DType::I32, &shape), sharding, ..self.stencil.ty.clone() };
        let flag = Type { array: ArrayType::new(DType::Bool, &shape), ..number.clone() };
        let along = shape.len() - 1;
        let mut index = self.emit(Iota { ty: number.array.clone(), axis: along }, &[], number.clone(), stmts);
        if dim.is_split() {
            let block = self.emit(Iota { ty: number.array.clone(), axis: 0 }, &[], number.clone(), stmts);
            let size = self.number(dim.block as i64, stmts);
            let first = self.emit(Binary(BinaryOp::Mul), &[block, size], number.clone(), stmts);
            index = self.emit(Binary(BinaryOp::Add), &[index, first], number.clone(), stmts);
        }
        let shift = dim.margin as i64 - start as i64;
        let [low, high] = [(CompareOp::Ge, bounds.0), (CompareOp::Lt, bounds.1)].map(|(op, bound)| {
            let bound = self.number(bound + shift, stmts);
            self.emit(Compare(op), &[index, bound], flag.clone(), stmts)
        });
        self.emit(Binary(BinaryOp::And), &[low, high], flag, stmts)
    }

    /// The blocks of an array with their margins.
    fn ghosted(&mut self, value: Value, stmts: &mut Vec<Stmt>) -> Option<Value> {
        let patches: Vec<PatchDim> = self
            .dims
            .iter()
            .enumerate()
            .filter(|(_, dim)| dim.margin > 0)
            .map(|(at, dim)| PatchDim {
                dim: at,
                len: dim.size,
                size: 2 * dim.margin + 1,
                stride: 1,
                dilation: 1,
                blocks: dim.blocks,
            })
            .collect();
        let map = |dim: &DeepDim| match (dim.margin, dim.wraps) {
            (0, _) => DimMap::identity(dim.size),
            (margin, false) => DimMap { before: margin, after: margin, ..DimMap::identity(dim.size) },
            (margin, true) => {
                DimMap { start: dim.size - margin, len: dim.size + 2 * margin, ..DimMap::identity(dim.size) }
            }
        };
        let map = WindowMap { dims: self.dims.iter().map(map).collect(), fill: 0 };
        let layout = self.stencil.ty.sharding.clone();
        let ghosted = Ghosted::new(&map, &patches, &layout, &layout, self.mesh)?;
        let ty = ghosted.result(&self.stencil.ty);
        let blocks = self.emit(ghosted, &[value], ty, stmts);
        let ty = self.deep_type(DeepDim::room);
        let shape = ty.shape().to_vec();
        Some(self.emit(Reshape { shape, trivial: false }, &[blocks], ty, stmts))
    }

    /// The blocks with margins in which a step has computed these elements.
    fn placed(&mut self, old: Value, inside: Value, stmts: &mut Vec<Stmt>) -> Value {
        let ranges = self.ranges(false, |start, _| start);
        let at = ranges.into_iter().map(|(range, _)| Places::Range(range)).collect();
        self.emit(Update::replacing(at), &[old, inside], self.deep_type(DeepDim::room), stmts)
    }

    /// The array of blocks without their margins.
    fn cropped(&mut self, blocks: Value, stmts: &mut Vec<Stmt>) -> Value {
        let ranges = self.ranges(true, |start, _| start);
        let ty = self.deep_type(|dim| dim.block);
        let own = self.emit(Slice { ranges }, &[blocks], ty, stmts);
        self.whole(own, stmts)
    }

    /// The array whose blocks these are.
    fn whole(&mut self, blocks: Value, stmts: &mut Vec<Stmt>) -> Value {
        let ty = self.stencil.ty.clone();
        let shape = ty.shape().to_vec();
        self.emit(Reshape { shape, trivial: false }, &[blocks], ty, stmts)
    }

    /// The ranges of the elements that a step computes, moved by a change of the first one along each dimension.
    fn ranges(&self, is_last: bool, moved: impl Fn(usize, usize) -> usize) -> Vec<(SliceRange, usize)> {
        let mut ranges = Vec::new();
        for (at, dim) in self.dims.iter().enumerate() {
            if dim.is_split() {
                ranges.push((SliceRange::all(dim.blocks), dim.blocks));
            }
            let (start, len) = dim.computed(is_last);
            ranges.push((SliceRange { start: moved(start, at), step: 1, len }, dim.room()));
        }
        ranges
    }

    /// The type of arrays with a dimension for the blocks of each split one.
    fn deep_type(&self, extent: impl Fn(&DeepDim) -> usize) -> Type {
        let (mut shape, mut dims) = (Vec::new(), Vec::new());
        for dim in &self.dims {
            if dim.is_split() {
                shape.push(dim.blocks);
                dims.push(DimSharding::closed(dim.axes.clone()));
            }
            shape.push(extent(dim));
            dims.push(DimSharding::closed(Vec::new()));
        }
        let sharding = Sharding { dims, ..self.stencil.ty.sharding.clone() };
        Type { array: ArrayType::new(self.stencil.ty.dtype(), &shape), sharding, ..self.stencil.ty.clone() }
    }

    fn scalar(&self, dtype: DType) -> Type {
        Type::replicated(ArrayType::scalar(dtype))
    }

    fn number(&mut self, number: i64, stmts: &mut Vec<Stmt>) -> Value {
        let bits = u64::from((number as i32).cast_unsigned());
        self.emit(Constant::scalar(DType::I32, bits), &[], self.scalar(DType::I32), stmts)
    }

    fn emit(&mut self, op: impl Into<Op>, args: &[Value], ty: Type, stmts: &mut Vec<Stmt>) -> Value {
        let mut builder = Builder::new(self.func, self.mesh);
        let result = builder.emit(op, args, ty, &self.origin);
        stmts.extend(builder.finish());
        result
    }
}
