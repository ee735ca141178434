//! Replaces short loops that choose elements by their counter by the statements of their trips.
//!
//! ```text
//! for k in 0..3 { p = p * x + a[k]; }      =>      p = p * x + a[0]; p = p * x + a[1]; p = p * x + a[2];
//! ```
//!
//! A loop that runs from array to array reads and writes memory in every trip. The statements of all trips are fused into one kernel, the
//! places are constants, and their checks need no time. Only loops of pointwise statements whose checks are known to hold are replaced. Loops
//! without such places run in a kernel as they are. The pass runs after collectives are inserted, as `inline_loops`.

use spmdc_ir::array::Array;
use spmdc_ir::op::Op;
use spmdc_ir::program::build::Builder;
use spmdc_ir::program::control::{Control, ForLoop};
use spmdc_ir::program::{Block, Func, Module, Stage, Stmt, StmtKind, Value};
use spmdc_ir::rules::{Effect, Elements};
use spmdc_layout::cost::{UNROLLED_STATEMENTS, UNROLLED_TRIPS};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{ArrayType, DType, Type};
use spmdc_ops::constant::Constant;
use spmdc_ops::reshape::Reshape;
use spmdc_ops::slice::{Slice, SliceRange};
use std::collections::BTreeMap;

/// Known arrays of more elements are not followed.
const MAX_ELEMENTS: usize = 1024;

/// Unrolls each loop that the pass is made for, innermost loops first. The module stays at its stage.
pub fn unroll_loops(mut module: Module) -> Module {
    debug_assert_eq!(module.stage, Stage::Partitioned, "the collectives of loops are inserted");
    let mut body = std::mem::take(&mut module.func.body);
    let replaced = (0..module.func.values.len() as u32).map(Value).collect();
    Unroller { func: &mut module.func, mesh: &module.mesh, replaced, known: Known::new() }.block(&mut body);
    module.func.body = body;
    module
}

/// Values known at compile time.
type Known = BTreeMap<Value, Array>;

struct Unroller<'a> {
    func: &'a mut Func,
    mesh: &'a Mesh,
    /// The replacement of each value of the module; itself if it stays.
    replaced: Vec<Value>,
    known: Known,
}

impl Unroller<'_> {
    fn block(&mut self, block: &mut Block) {
        let mut stmts = Vec::with_capacity(block.stmts.len());
        for mut stmt in std::mem::take(&mut block.stmts) {
            stmt.args.iter_mut().for_each(|arg| *arg = self.replaced[arg.0 as usize]);
            stmt.blocks_mut().for_each(|inner| self.block(inner));
            match &stmt.kind {
                StmtKind::Control(Control::For(op)) if self.unrolls(op) => self.unroll(&stmt, op, &mut stmts),
                StmtKind::Control(Control::For(_) | Control::While(_) | Control::Branch(_) | Control::Manual(_)) => {
                    stmts.push(stmt);
                }
                StmtKind::Op(op) => {
                    let literal = op.rules().properties().elements.literal();
                    if let (Some(literal), &[result]) = (literal, stmt.results.as_slice())
                        && literal.ty.len() <= MAX_ELEMENTS
                    {
                        self.known.insert(result, literal.clone());
                    }
                    stmts.push(stmt);
                }
            }
        }
        block.stmts = stmts;
        block.results.iter_mut().for_each(|result| *result = self.replaced[result.0 as usize]);
    }

    /// Whether a loop is short and pointwise, and selects elements by its counter, all of which exist.
    fn unrolls(&self, op: &ForLoop) -> bool {
        let Some(trips) = op.trips().filter(|trips| (2..=UNROLLED_TRIPS).contains(trips)) else { return false };
        let is_check = |stmt: &Stmt| stmt.results.len() == 1 && is_check(stmt);
        let is_literal = |stmt: &Stmt| stmt.op().is_some_and(|op| op.rules().properties().elements.literal().is_some());
        let is_pointwise = |stmt: &Stmt| {
            let pointwise = |op: &Op| op.is_pointwise() && !op.rules().properties().has_effect();
            stmt.op().is_some_and(pointwise) && stmt.results.len() == 1
        };
        let of_arrays = |stmt: &&Stmt| self.func.ty(stmt.results[0]).rank() > 0 && !is_literal(stmt);
        let stmts = &op.body.stmts;
        op.collected == 0
            && stmts.iter().any(is_check)
            && stmts.iter().all(|stmt| is_check(stmt) || is_literal(stmt) || is_pointwise(stmt))
            && trips * stmts.iter().filter(of_arrays).count() as u64 <= UNROLLED_STATEMENTS
            && numbers(op).into_iter().flatten().all(|trip| self.has_places(&op.body, trip))
    }

    /// Whether every check in a trip holds.
    fn has_places(&self, body: &Block, trip: i32) -> bool {
        let mut known = Known::from([(body.params[0], number(trip))]);
        body.stmts.iter().all(|stmt| {
            let array = self.computed(stmt, &stmt.args, &known);
            let is_unknown_check = array.is_none() && is_check(stmt);
            known.extend(array.map(|array| (stmt.results[0], array)));
            !is_unknown_check
        })
    }

    /// The result of a statement, if its operands are known, of a trip or of the whole program, and it is a scalar, or an array that is
    /// known itself.
    fn computed(&self, stmt: &Stmt, args: &[Value], of_trip: &Known) -> Option<Array> {
        let op = stmt.op()?;
        let rules = op.rules();
        if let Some(literal) = rules.properties().elements.literal() {
            return (literal.ty.len() <= MAX_ELEMENTS).then(|| literal.clone());
        }
        let ty = self.func.ty(stmt.results[0]);
        if ty.rank() > 0 || !ty.distinct_axes().is_empty() || rules.properties().group().is_some() || args.is_empty() {
            return None;
        }
        let args: Vec<&Array> =
            args.iter().map(|arg| of_trip.get(arg).or_else(|| self.known.get(arg))).collect::<Option<_>>()?;
        rules.eval(&args).ok()?.pop()
    }

    fn unroll(&mut self, stmt: &Stmt, op: &ForLoop, stmts: &mut Vec<Stmt>) {
        let mut carries = stmt.args.clone();
        debug_assert_eq!((carries.len(), op.bounds()), (op.body.results.len(), 0), "only the carries are operands");
        for trip in numbers(op).into_iter().flatten() {
            let mut now: BTreeMap<Value, Value> =
                op.body.params[1..].iter().copied().zip(carries.iter().copied()).collect();
            let counter = self.func.new_like(op.body.params[0]);
            now.insert(op.body.params[0], counter);
            let known = number(trip);
            let mut builder = Builder::new(self.func, self.mesh);
            builder.define(Constant { array: known.clone() }, &[], &[counter], &stmt.origin);
            stmts.extend(builder.finish());
            self.known.insert(counter, known);
            for inner in &op.body.stmts {
                let args: Vec<Value> = inner.args.iter().map(|arg| *now.get(arg).unwrap_or(arg)).collect();
                let result = self.func.new_like(inner.results[0]);
                now.insert(inner.results[0], result);
                self.statement(inner, &args, result, stmts);
            }
            carries = op.body.results.iter().map(|result| *now.get(result).unwrap_or(result)).collect();
        }
        debug_assert_eq!(carries.len(), stmt.results.len(), "a carry is lost");
        for (&result, &last) in stmt.results.iter().zip(&carries) {
            debug_assert_eq!(self.func.ty(result), self.func.ty(last), "a carry keeps its type");
            self.replaced[result.0 as usize] = last;
        }
    }

    /// Adds a statement of a trip, with these operands and this result.
    fn statement(&mut self, stmt: &Stmt, args: &[Value], result: Value, stmts: &mut Vec<Stmt>) {
        let computed = self.computed(stmt, args, &Known::new());
        debug_assert!(computed.is_some() || !is_check(stmt), "all places of the loop are known");
        let window = if computed.is_none() { self.window(stmt, args) } else { None };
        let op = stmt.op().expect("the body has no blocks").clone();
        let mut builder = Builder::new(self.func, self.mesh);
        match (computed, window) {
            (Some(array), _) => {
                builder.define(Constant { array: array.clone() }, &[], &[result], &stmt.origin);
                self.known.insert(result, array);
            }
            (None, Some(slice)) => {
                let from = builder.func.ty(args[0]).clone();
                let shape = slice.ranges.iter().map(|(range, _)| range.len).collect::<Vec<_>>();
                let array = ArrayType::of(from.array.dtype, shape);
                let to = builder.func.ty(result).shape().to_vec();
                if array.shape == to {
                    builder.define(slice, &args[..1], &[result], &stmt.origin);
                } else {
                    let region = builder.emit(slice, &args[..1], Type { array, ..from }, &stmt.origin);
                    builder.define(Reshape { trivial: true, shape: to }, &[region], &[result], &stmt.origin);
                }
            }
            (None, None) => builder.define(op, args, &[result], &stmt.origin),
        }
        stmts.extend(builder.finish());
    }

    /// The static slice that a statement takes at known places of dimensions that are not split.
    fn window(&self, stmt: &Stmt, args: &[Value]) -> Option<Slice> {
        let Elements::Chosen(chosen) = stmt.op()?.rules().properties().elements else { return None };
        let dims = chosen.region();
        let ty = self.func.ty(args[0]);
        let mut ranges: Vec<(SliceRange, usize)> =
            ty.shape().iter().map(|&size| (SliceRange::all(size), size)).collect();
        for (&(dim, len), place) in dims.iter().zip(&args[1..]) {
            let start = usize::try_from(self.known.get(place)?.bits.first()?.cast_signed()).ok()?;
            let fits = start.checked_add(len).is_some_and(|end| end <= ty.shape()[dim]);
            if !fits || !ty.sharding.dims[dim].axes.is_empty() {
                return None;
            }
            ranges[dim].0 = SliceRange { start, step: 1, len };
        }
        Some(Slice { ranges })
    }
}

fn is_check(stmt: &Stmt) -> bool {
    stmt.op().is_some_and(|op| op.rules().properties().effect == Effect::Check)
}

/// The numbers of the trips.
fn numbers(op: &ForLoop) -> Option<impl Iterator<Item = i32>> {
    let (start, end) = op.range?;
    Some(i32::try_from(start).ok()?..i32::try_from(end).ok()?)
}

fn number(trip: i32) -> Array {
    Array::scalar(DType::I32, u64::from(trip.cast_unsigned()))
}
