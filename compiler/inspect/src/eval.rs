//! The reference evaluator: the semantics of a program, computed on whole arrays without regard to speed.
//!
//! It runs modules of every stage: in the global view layouts do not matter, and data movement is the identity. In a `manual`
//! region a value has one array for each *lane*: each combination of coordinates along the region's axes. Lanes run each statement
//! together; under a condition only those lanes run for which it holds. Typing ensures that a collective finds all lanes of its
//! group at the same statement.

use spmdc_grammar::codes::Code;
use spmdc_grammar::span::Span;
use spmdc_ir::array::{Array, Trap, indices};
use spmdc_ir::op::Op;
use spmdc_ir::program::control::{Control, ForLoop, ManualRegion, WhileLoop};
use spmdc_ir::program::{Block, Func, Module, Stmt, StmtKind, Value};
use spmdc_ir::rules::group::GroupCollective;
use spmdc_kernel::number;
use spmdc_kernel::scalar::BinaryOp;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::sharding::{Sharding, block_range};
use spmdc_layout::types::{ArrayType, AxisSet, DType};
use spmdc_ops::print::Print;
use std::rc::Rc;

/// The output of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EvalOutput {
    /// The results of the function, whole, in order.
    pub results: Vec<Array>,
    /// The printed lines, in order.
    pub printed: Vec<Printed>,
}

/// A printed line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Printed {
    /// The text, with `{}` for the values.
    pub text: String,
    /// The values for each `{}`; inside `manual`, one for each lane that prints.
    pub values: Vec<Vec<Array>>,
}

/// A trap and the source position of the statement that it stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvalStopped {
    /// The error.
    pub trap: Trap,
    /// The source position of the statement; the default if the arguments do not fit.
    pub span: Span,
}

/// Runs a module on whole arguments, one for each parameter.
pub fn evaluate(module: &Module, args: &[Array]) -> Result<EvalOutput, EvalStopped> {
    let func = &module.func;
    let fits = args.len() == func.body.params.len()
        && args.iter().zip(&func.body.params).all(|(arg, &param)| {
            // A stream is in memory here.
            let ty = &func.ty(param).array;
            (arg.dtype(), arg.shape()) == (ty.dtype, ty.shape.as_slice())
        });
    if !fits {
        let types: Vec<String> = func.body.params.iter().map(|&param| func.ty(param).array.to_string()).collect();
        let message = format!("the arguments must be ({})", types.join(", "));
        return Err(EvalStopped { trap: Trap { code: Code::E0701, message }, span: Span::default() });
    }
    let mut evaluator = Evaluator {
        func,
        mesh: &module.mesh,
        values: vec![Vec::new(); func.values.len()],
        lanes: RegionLanes { axes: AxisSet::EMPTY, count: 1 },
        printed: Vec::new(),
    };
    for (arg, &param) in args.iter().zip(&func.body.params) {
        evaluator.values[param.0 as usize] = vec![Some(Rc::new(arg.clone()))];
    }
    evaluator.block(&func.body, &[0])?;
    let results = func.body.results.iter().map(|&result| (*evaluator.get(result, 0)).clone()).collect();
    Ok(EvalOutput { results, printed: evaluator.printed })
}

/// The coordinates along a region's axes, numbered row-major in mesh order.
#[derive(Clone, Copy)]
struct RegionLanes {
    axes: AxisSet,
    count: usize,
}

impl RegionLanes {
    /// The coordinate of a lane along an axis of the region.
    fn coordinate(self, mesh: &Mesh, lane: usize, axis: usize) -> usize {
        let minor: usize = self.axes.iter().filter(|&other| other > axis).map(|other| mesh.axes[other].size).product();
        lane / minor % mesh.axes[axis].size
    }

    /// The position of a lane along some axes, major to minor.
    fn position(self, mesh: &Mesh, lane: usize, axes: &[u8]) -> usize {
        axes.iter().fold(0, |position, &axis| {
            let axis = usize::from(axis);
            position * mesh.axes[axis].size + self.coordinate(mesh, lane, axis)
        })
    }

    fn is_first(self, mesh: &Mesh, lane: usize, axes: AxisSet) -> bool {
        axes.iter().all(|axis| self.coordinate(mesh, lane, axis) == 0)
    }
}

struct Evaluator<'m> {
    func: &'m Func,
    mesh: &'m Mesh,
    /// By value and lane; None if a value is not defined yet, or not on this lane.
    values: Vec<Vec<Option<Rc<Array>>>>,
    lanes: RegionLanes,
    printed: Vec<Printed>,
}

impl Evaluator<'_> {
    /// The value on a lane. A value from outside a region is the same on all lanes.
    fn get(&self, value: Value, lane: usize) -> Rc<Array> {
        let held = &self.values[value.0 as usize];
        let found = held.get(lane).or_else(|| held.first()).and_then(Option::as_ref);
        Rc::clone(found.unwrap_or_else(|| panic!("{value} is used on lane {lane}, where it is not defined")))
    }

    fn set(&mut self, value: Value, lane: usize, array: Rc<Array>) {
        let held = &mut self.values[value.0 as usize];
        held.resize(self.lanes.count, None);
        held[lane] = Some(array);
    }

    fn assign(&mut self, to: &[Value], from: &[Value], active: &[usize]) {
        for &lane in active {
            let arrays: Vec<Rc<Array>> = from.iter().map(|&value| self.get(value, lane)).collect();
            to.iter().zip(arrays).for_each(|(&value, array)| self.set(value, lane, array));
        }
    }

    fn flag(&self, value: Value, lane: usize) -> bool {
        self.get(value, lane).bits[0] != 0
    }

    fn block(&mut self, block: &Block, active: &[usize]) -> Result<(), EvalStopped> {
        block.stmts.iter().try_for_each(|stmt| self.stmt(stmt, active))
    }

    fn stmt(&mut self, stmt: &Stmt, active: &[usize]) -> Result<(), EvalStopped> {
        match &stmt.kind {
            StmtKind::Op(op) => self.op(op, stmt, active),
            StmtKind::Control(Control::For(op)) => self.for_loop(op, stmt, active),
            StmtKind::Control(Control::While(op)) => self.while_loop(op, stmt, active),
            StmtKind::Control(Control::Branch(op)) => {
                let (then, otherwise): (Vec<usize>, Vec<usize>) =
                    active.iter().partition(|&&lane| self.flag(stmt.args[0], lane));
                for (block, lanes) in op.sides().into_iter().zip([then, otherwise]) {
                    if !lanes.is_empty() {
                        self.block(block, &lanes)?;
                        self.assign(&stmt.results, &block.results, &lanes);
                    }
                }
                Ok(())
            }
            StmtKind::Control(Control::Manual(op)) => self.manual(op, stmt),
        }
    }

    fn op(&mut self, op: &Op, stmt: &Stmt, active: &[usize]) -> Result<(), EvalStopped> {
        if let Some(op) = op.as_op::<Print>() {
            let values = stmt.args.iter().map(|&arg| self.shown(arg, active)).collect();
            self.printed.push(Printed { text: op.text.clone(), values });
            return Ok(());
        }
        match op.rules().properties().group() {
            Some(group) => {
                self.group(group, stmt, active);
                Ok(())
            }
            None => self.local(op, stmt, active),
        }
    }

    /// Evaluates each lane separately; lanes with the same operands are evaluated once.
    fn local(&mut self, op: &Op, stmt: &Stmt, active: &[usize]) -> Result<(), EvalStopped> {
        type Known = (Vec<Rc<Array>>, Vec<Rc<Array>>);
        let mut last: Option<Known> = None;
        for &lane in active {
            let args: Vec<Rc<Array>> = stmt.args.iter().map(|&arg| self.get(arg, lane)).collect();
            let same = |known: &Vec<Rc<Array>>| known.iter().zip(&args).all(|(a, b)| Rc::ptr_eq(a, b));
            let results = match &last {
                Some((known, results)) if same(known) => results.clone(),
                _ => {
                    let refs: Vec<&Array> = args.iter().map(Rc::as_ref).collect();
                    let results = op.rules().eval(&refs);
                    let results = results.map_err(|trap| EvalStopped { trap, span: stmt.origin.span })?;
                    results.into_iter().map(Rc::new).collect()
                }
            };
            for (&result, array) in stmt.results.iter().zip(&results) {
                self.set(result, lane, Rc::clone(array));
            }
            last = Some((args, results));
        }
        Ok(())
    }

    fn group(&mut self, group: &dyn GroupCollective, stmt: &Stmt, active: &[usize]) {
        let axes: AxisSet = group.axes().iter().map(|&axis| usize::from(axis)).collect();
        let leaders = active.iter().copied().filter(|&lane| self.lanes.is_first(self.mesh, lane, axes));
        for leader in leaders.collect::<Vec<usize>>() {
            let same = |lane: usize| {
                self.lanes.axes.minus(axes).iter().all(|axis| {
                    let coordinate = |lane| self.lanes.coordinate(self.mesh, lane, axis);
                    coordinate(lane) == coordinate(leader)
                })
            };
            let mut members: Vec<usize> = active.iter().copied().filter(|&lane| same(lane)).collect();
            members.sort_by_key(|&lane| self.lanes.position(self.mesh, lane, group.axes()));
            let args: Vec<Vec<Rc<Array>>> =
                members.iter().map(|&lane| stmt.args.iter().map(|&arg| self.get(arg, lane)).collect()).collect();
            let refs: Vec<Vec<&Array>> = args.iter().map(|args| args.iter().map(Rc::as_ref).collect()).collect();
            let results = group.eval_group(&refs);
            for (&lane, result) in members.iter().zip(results) {
                self.set(stmt.results[0], lane, Rc::new(result));
            }
        }
    }

    fn for_loop(&mut self, op: &ForLoop, stmt: &Stmt, active: &[usize]) -> Result<(), EvalStopped> {
        let (bounds, inits) = stmt.args.split_at(op.bounds());
        let body = &op.body;
        let bound = |at: usize, lane: usize| number::to_int(DType::I32, self.get(bounds[at], lane).bits[0]) as i64;
        let ranges: Vec<(usize, i64, i64)> = active
            .iter()
            .map(|&lane| match op.range {
                Some((start, end)) => (lane, start, end),
                None => (lane, bound(0, lane), bound(1, lane)),
            })
            .collect();
        let (finals, collected) = stmt.results.split_at(inits.len());
        let (next, values) = body.results.split_at(inits.len());
        self.assign(finals, inits, active);
        let mut stacks: Vec<Vec<Vec<u64>>> = vec![vec![Vec::new(); self.lanes.count]; collected.len()];
        let mut trip = 0;
        loop {
            let running: Vec<(usize, i64)> = ranges
                .iter()
                .filter(|(_, start, end)| start + trip < *end)
                .map(|(lane, start, _)| (*lane, start + trip))
                .collect();
            if running.is_empty() {
                break;
            }
            let lanes: Vec<usize> = running.iter().map(|(lane, _)| *lane).collect();
            for (lane, counter) in running {
                let bits = number::from_int(DType::I32, i128::from(counter));
                self.set(body.params[0], lane, Rc::new(Array::scalar(DType::I32, bits)));
            }
            self.assign(&body.params[1..], finals, &lanes);
            self.block(body, &lanes)?;
            self.assign(finals, next, &lanes);
            for (stack, &value) in stacks.iter_mut().zip(values) {
                for &lane in &lanes {
                    stack[lane].extend(&self.get(value, lane).bits);
                }
            }
            trip += 1;
        }
        for (stack, &result) in stacks.into_iter().zip(collected) {
            for (lane, bits) in stack.into_iter().enumerate().filter(|(lane, _)| active.contains(lane)) {
                let array = Array::new(self.func.ty(result).array.clone(), bits);
                self.set(result, lane, Rc::new(array));
            }
        }
        Ok(())
    }

    fn while_loop(&mut self, op: &WhileLoop, stmt: &Stmt, active: &[usize]) -> Result<(), EvalStopped> {
        let (cond, body) = (&op.cond, &op.body);
        self.assign(&stmt.results, &stmt.args, active);
        let mut running = active.to_vec();
        loop {
            self.assign(&cond.params, &stmt.results, &running);
            self.block(cond, &running)?;
            running.retain(|&lane| self.flag(cond.results[0], lane));
            if running.is_empty() {
                return Ok(());
            }
            self.assign(&body.params, &stmt.results, &running);
            self.block(body, &running)?;
            self.assign(&stmt.results, &body.results, &running);
        }
    }

    fn manual(&mut self, op: &ManualRegion, stmt: &Stmt) -> Result<(), EvalStopped> {
        let outer = self.lanes;
        let operands: Vec<Rc<Array>> = stmt.args.iter().map(|&arg| self.get(arg, 0)).collect();
        self.lanes = RegionLanes { axes: op.axes, count: self.mesh.size_of_set(op.axes) };
        let active: Vec<usize> = (0..self.lanes.count).collect();
        let block = &op.body;
        for ((operand, layout), &param) in operands.iter().zip(&op.inputs).zip(&block.params) {
            if layout.is_replicated() {
                active.iter().for_each(|&lane| self.set(param, lane, Rc::clone(operand)));
                continue;
            }
            for &lane in &active {
                let part = self.part(operand, layout, lane);
                self.set(param, lane, Rc::new(part));
            }
        }
        self.block(block, &active)?;
        let mut joined = Vec::new();
        for ((&local, layout), &result) in block.results.iter().zip(&op.outputs).zip(&stmt.results) {
            let parts: Vec<Rc<Array>> = active.iter().map(|&lane| self.get(local, lane)).collect();
            let whole = self.join(&parts, layout, self.func.ty(result).array.clone());
            joined.push(whole.map_err(|trap| EvalStopped { trap, span: stmt.origin.span })?);
        }
        self.lanes = outer;
        for (&result, array) in stmt.results.iter().zip(joined) {
            self.set(result, 0, Rc::new(array));
        }
        Ok(())
    }

    /// The start of a lane's part of an array, by dimension.
    fn starts(&self, shape: &[usize], layout: &Sharding, lane: usize) -> Vec<usize> {
        let dims = shape.iter().zip(&layout.dims);
        dims.map(|(&size, dim)| {
            let blocks = self.mesh.size_of(&dim.axes);
            block_range(size, blocks, self.lanes.position(self.mesh, lane, &dim.axes)).start
        })
        .collect()
    }

    fn part(&self, array: &Array, layout: &Sharding, lane: usize) -> Array {
        let dims = array.shape().iter().zip(&layout.dims);
        let local: Vec<usize> = dims.map(|(size, dim)| size / self.mesh.size_of(&dim.axes)).collect();
        let ty = ArrayType::new(array.dtype(), &local);
        // A whole value as partial sums: the first device has it, the others have zeros.
        if !self.lanes.is_first(self.mesh, lane, layout.unreduced) {
            return Array::filled(ty, 0);
        }
        let starts = self.starts(array.shape(), layout, lane);
        Array::from_fn(ty, |index| {
            let place: Vec<usize> = index.iter().zip(&starts).map(|(i, start)| i + start).collect();
            array.get(&place)
        })
    }

    fn join(&self, parts: &[Rc<Array>], layout: &Sharding, ty: ArrayType) -> Result<Array, Trap> {
        let mut whole = Array::filled(ty, 0);
        let mut is_filled = vec![false; whole.bits.len()];
        let others = self.lanes.axes.minus(layout.used_axes()).minus(layout.unreduced);
        for (lane, part) in parts.iter().enumerate() {
            let starts = self.starts(whole.shape(), layout, lane);
            let is_first = self.lanes.is_first(self.mesh, lane, others);
            for (index, &bits) in indices(part.shape()).zip(&part.bits) {
                let place = index.iter().zip(&starts).map(|(i, start)| i + start);
                let position = place.zip(whole.shape()).fold(0, |position, (i, size)| position * size + i);
                if !is_first {
                    if whole.bits[position] != bits && layout.unreduced.is_empty() {
                        let message = "devices disagree on a result that is typed the same on all".to_string();
                        return Err(Trap { code: Code::E0999, message });
                    }
                } else if is_filled[position] {
                    let sum = number::eval_binary(BinaryOp::Add, whole.dtype(), whole.bits[position], bits);
                    whole.bits[position] = sum.expect("partial values can be added");
                } else {
                    whole.bits[position] = bits;
                    is_filled[position] = true;
                }
            }
        }
        Ok(whole)
    }

    /// The arrays that `print` shows of a value: one, or one for each coordinate along the axes on which it varies.
    fn shown(&self, value: Value, active: &[usize]) -> Vec<Array> {
        let others = self.lanes.axes.minus(self.func.ty(value).varying);
        let first = active.iter().copied().filter(|&lane| self.lanes.is_first(self.mesh, lane, others));
        first.map(|lane| (*self.get(value, lane)).clone()).collect()
    }
}
