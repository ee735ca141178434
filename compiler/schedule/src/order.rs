//! The schedule in terms of values: units of work under loops and branches. Buffers come later.
//!
//! ```text
//! for i in 0..3 { u = step(u) }     copy u0 -> u;  for { ..step..; copy v -> u };  alias u -> result
//! ```
//!
//! A carried value is in one place, the buffer of the body's parameter. Initial and next values are copied there, which costs nothing if
//! the planner can compute them in place. Otherwise `alternate` lets the trips take turns with two places. All other values are in SSA
//! form: the work of one statement writes each. Fused values do not occur.

use crate::last_uses::last_uses;
use crate::repeats::{PointwiseLoop, used};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::lower::peel::peel;
use spmdc_ir::lower::split::split_reduction;
use spmdc_ir::lower::unroll::unroll;
use spmdc_ir::lower::work::{Lowering, Temporaries, Work};
use spmdc_ir::op::Op;
use spmdc_ir::program::control::{Branch, Control, ForLoop, WhileLoop};
use spmdc_ir::program::origin::Origin;
use spmdc_ir::program::{Block, Func, Module, Stage, Stmt, StmtKind, Value};
use spmdc_ir::rules::{Copied, Lowered, Point};
use spmdc_kernel::loops::Affine;
use spmdc_kernel::scalar::BinaryOp;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{ArrayType, DType, Type};
use std::collections::BTreeSet;

/// One entry of the schedule.
// Tasks are built once and then only read.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    /// One unit of work, such as a kernel, a product or a collective.
    Work(Work),
    /// A loop with a counter.
    For {
        /// The scalar i32 that the body reads.
        counter: Value,
        /// The first value of the counter.
        start: Limit,
        /// The exclusive upper bound of the counter.
        end: Limit,
        /// The values carried from trip to trip.
        carries: Vec<Carry>,
        /// The stacked results, filled trip by trip.
        stacked: Vec<Value>,
        /// One trip, with the copies of the next values into the carried ones at its end.
        body: Vec<Task>,
        /// The number of these copies.
        copies: usize,
        /// The loop in the source.
        origin: Origin,
    },
    /// A loop with a condition.
    While {
        /// The values carried from trip to trip.
        carries: Vec<Carry>,
        /// The work that computes `flag`, before each trip.
        cond: Vec<Task>,
        /// The scalar bool that says whether there is another trip.
        flag: Value,
        /// One trip, with the copies of the next values into the carried ones at its end.
        body: Vec<Task>,
        /// The number of these copies.
        copies: usize,
        /// The loop in the source.
        origin: Origin,
    },
    /// A branch.
    If {
        /// The scalar bool that chooses.
        flag: Value,
        /// The results, written at the end of each branch.
        results: Vec<Value>,
        /// The work if `flag` is true, with the copies into `results` at its end.
        then: Vec<Task>,
        /// The work if `flag` is false, with the copies into `results` at its end.
        otherwise: Vec<Task>,
        /// The branch in the source.
        origin: Origin,
    },
}

impl Task {
    /// The lists of tasks inside it.
    pub fn blocks(&self) -> Vec<&[Task]> {
        match self {
            Task::Work(_) => Vec::new(),
            Task::For { body, .. } => vec![body],
            Task::While { cond, body, .. } => vec![cond, body],
            Task::If { then, otherwise, .. } => vec![then, otherwise],
        }
    }

    /// Replaces the lists of tasks inside it.
    pub fn map_blocks(mut self, map: &mut dyn FnMut(Vec<Task>) -> Vec<Task>) -> Task {
        let blocks = match &mut self {
            Task::Work(_) => Vec::new(),
            Task::For { body, .. } => vec![body],
            Task::While { cond, body, .. } => vec![cond, body],
            Task::If { then, otherwise, .. } => vec![then, otherwise],
        };
        blocks.into_iter().for_each(|block| *block = map(std::mem::take(block)));
        self
    }
}

/// A carried value of a loop; between trips it is in the buffer of `param`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carry {
    /// The parameter of the loop's body.
    pub param: Value,
    /// The value for the next trip, which the end of the body copies.
    pub next: Value,
}

/// A bound of the counter of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Known at compile time.
    Const(i64),
    /// A scalar integer that is computed before the loop.
    Value(Value),
}

impl Limit {
    /// The value of a limit that is computed.
    pub(crate) fn value(&self) -> Option<Value> {
        match self {
            Limit::Const(_) => None,
            Limit::Value(value) => Some(*value),
        }
    }
}

/// The work of a program, in order, before it has memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// The tasks, in the order in which every device runs them.
    pub tasks: Vec<Task>,
    /// The types of all values: first the function's values, then temporary ones.
    pub types: Vec<Type>,
    /// Values whose bytes are known at compile time.
    pub constants: Vec<(Value, Vec<u8>)>,
}

/// Orders the work of a partitioned program. `fused` says which values are computed where they are used.
pub fn schedule(module: &Module, fused: &[bool]) -> Result<Schedule, Vec<Diagnostic>> {
    let func = &module.func;
    debug_assert!(module.stage >= Stage::Partitioned, "all communication is explicit");
    debug_assert_eq!(fused.len(), func.values.len(), "every value is fused or not");
    let mut inlined = vec![None; func.values.len()];
    func.body.walk(&mut |stmt| {
        if let ([result], Some(op)) = (stmt.results.as_slice(), stmt.op())
            && fused[result.0 as usize]
        {
            inlined[result.0 as usize] = Some((op, stmt));
        }
    });
    let types = func.values.iter().map(|info| info.ty.clone()).collect();
    let mut scheduler = Scheduler {
        func,
        mesh: &module.mesh,
        inlined: &inlined,
        last_uses: last_uses(func, &inlined),
        used: used(func),
        types,
        constants: Vec::new(),
        stored: Vec::new(),
        errors: Vec::new(),
    };
    let tasks = scheduler.block(&func.body);
    debug_assert!(scheduler.stored.is_empty(), "a block was begun and not ended");
    debug_assert!(scheduler.types.len() >= func.values.len(), "values keep their numbers");
    match scheduler.errors.is_empty() {
        true => Ok(Schedule { tasks, types: scheduler.types, constants: scheduler.constants }),
        false => Err(scheduler.errors),
    }
}

struct Scheduler<'a> {
    func: &'a Func,
    mesh: &'a Mesh,
    inlined: &'a [Option<(&'a Op, &'a Stmt)>],
    /// For each value, whether the statement that gives it is the last that needs its first operand.
    last_uses: Vec<bool>,
    /// All values that the function uses.
    used: BTreeSet<Value>,
    types: Vec<Type>,
    constants: Vec<(Value, Vec<u8>)>,
    /// Fused values that a reader needs in memory: computed once for each block that is being scheduled.
    stored: Vec<Vec<Value>>,
    errors: Vec<Diagnostic>,
}

impl<'a> Scheduler<'a> {
    fn block(&mut self, block: &'a Block) -> Vec<Task> {
        let mut tasks = Vec::new();
        self.stored.push(Vec::new());
        block.stmts.iter().for_each(|stmt| self.stmt(stmt, &mut tasks));
        self.stored.pop();
        tasks
    }

    fn stmt(&mut self, stmt: &'a Stmt, tasks: &mut Vec<Task>) {
        match &stmt.kind {
            StmtKind::Op(op) => {
                let fused = stmt.results.first().is_some_and(|result| self.inlined[result.0 as usize].is_some());
                if !fused {
                    self.lower(op, stmt, tasks);
                }
            }
            StmtKind::Control(Control::For(op)) => self.for_loop(op, stmt, tasks),
            StmtKind::Control(Control::While(op)) => self.while_loop(op, stmt, tasks),
            StmtKind::Control(Control::Branch(op)) => self.branch(op, stmt, tasks),
            StmtKind::Control(Control::Manual(op)) => {
                let body = &op.body;
                debug_assert_eq!(stmt.args.len(), body.params.len(), "each parameter of a region is an argument");
                debug_assert_eq!(stmt.results.len(), body.results.len(), "each result of a region is one of its body");
                stmt.args.iter().zip(&body.params).for_each(|(&arg, &param)| alias(arg, param, tasks));
                tasks.extend(self.block(body));
                body.results.iter().zip(&stmt.results).for_each(|(&local, &result)| alias(local, result, tasks));
            }
        }
    }

    /// The work of one op.
    fn lower(&mut self, op: &Op, stmt: &Stmt, tasks: &mut Vec<Task>) {
        let lowered = op.rules().lowered();
        let in_memory = |value: Value| self.inlined[value.0 as usize].is_none();
        if let (Lowered::Alias(same), &[from], &[to]) = (&lowered, stmt.args.as_slice(), stmt.results.as_slice())
            && same.aliases(self.func.ty(from), self.func.ty(to), self.mesh)
            && in_memory(from)
        {
            return alias(from, to, tasks);
        }
        let is_last_use = stmt.results.first().is_some_and(|result| self.last_uses[result.0 as usize]);
        let emit = |lowering: &mut Lowering<'_>| match lowered {
            Lowered::Point(point) => evaluate(point, stmt, lowering),
            Lowered::Nest(nest) => nest.lower(lowering, stmt),
            Lowered::Reduction(reduction) => reduction.nest().lower(lowering, stmt),
            Lowered::Alias(alias) => match alias.copied() {
                Copied::Point(point) => evaluate(point, stmt, lowering),
                Copied::Nest(nest) => nest.lower(lowering, stmt),
            },
            Lowered::Library(library) => library.lower(lowering, stmt),
            Lowered::Exchange(exchange) => exchange.lower(lowering, stmt),
            Lowered::Request => {
                Err(Diagnostic::error(Code::E0999, stmt.origin.span, "a requested layout was never produced"))
            }
        };
        let work = self.work(&stmt.origin, |lowering| {
            lowering.is_last_use = is_last_use;
            emit(lowering)
        });
        match work {
            Ok(work) => {
                // Before any unit changes what they are computed from.
                work.iter().flat_map(Work::reads).for_each(|value| self.store_fused(value, tasks));
                for unit in work {
                    if let Work::Constant { to, bytes } = unit {
                        self.constants.push((to, bytes));
                        continue;
                    }
                    tasks.push(Task::Work(unit));
                }
            }
            Err(error) => self.errors.push(error),
        }
    }

    /// Computes a fused value into memory, for a reader that takes no expressions.
    fn store_fused(&mut self, value: Value, tasks: &mut Vec<Task>) {
        let Some(Some((op, stmt))) = self.inlined.get(value.0 as usize).copied() else { return };
        let Some(point) = op.rules().lowered().expression() else { return };
        if self.stored.iter().flatten().any(|&known| known == value) {
            return;
        }
        if let Some(block) = self.stored.last_mut() {
            block.push(value);
        }
        match self.work(&stmt.origin, |lowering| evaluate(point, stmt, lowering)) {
            Ok(work) => tasks.extend(work.into_iter().map(Task::Work)),
            Err(error) => self.errors.push(error),
        }
    }

    /// Makes a unit of work in a separate lowering, filled by `emit`.
    fn work(
        &mut self,
        origin: &Origin,
        emit: impl FnOnce(&mut Lowering<'_>) -> Result<(), Diagnostic>,
    ) -> Result<Vec<Work>, Diagnostic> {
        let temporaries = Temporaries::starting_at(self.types.len() as u32);
        let mut lowering = Lowering {
            func: self.func,
            mesh: self.mesh,
            inlined: self.inlined,
            work: Vec::new(),
            temporaries: &temporaries,
            is_last_use: false,
            origin: origin.clone(),
        };
        emit(&mut lowering)?;
        let mut work = Vec::new();
        for unit in std::mem::take(&mut lowering.work) {
            let Work::Kernel { kernel, buffers, origin, .. } = unit else {
                work.push(unit);
                continue;
            };
            debug_assert_eq!(kernel.buffers.len(), buffers.len(), "a kernel gets as many buffers as it names");
            for stage in split_reduction(&mut lowering, kernel, buffers, origin) {
                let Work::Kernel { kernel, buffers, origin, .. } = stage else {
                    work.push(stage);
                    continue;
                };
                work.extend(peel(unroll(kernel), &self.mesh.machine).into_iter().map(|(kernel, cutout)| {
                    let (buffers, origin) = (buffers.clone(), origin.clone());
                    Work::Kernel { kernel, buffers, cutout, origin }
                }));
            }
        }
        self.types.extend(temporaries.types());
        Ok(work)
    }

    fn for_loop(&mut self, op: &'a ForLoop, stmt: &'a Stmt, tasks: &mut Vec<Task>) {
        let bounds = op.bounds();
        let block = &op.body;
        let (counter, params) = (block.params[0], &block.params[1..]);
        debug_assert_eq!(stmt.args.len() - bounds, params.len(), "what a loop carries has a beginning");
        debug_assert_eq!(block.results.len(), stmt.results.len(), "a trip gives what the loop gives");
        if self.pointwise_loop(op, stmt, tasks) {
            return;
        }
        for (&init, &param) in stmt.args[bounds..].iter().zip(params) {
            copy(init, param, &stmt.origin, tasks);
        }
        let mut body = self.block(block);
        let stacked = stmt.results[params.len()..].to_vec();
        if let (Some((start, _)), false) = (op.range, stacked.is_empty()) {
            let values = block.results[params.len()..].iter().copied();
            let pairs: Vec<(Value, Value)> = values.zip(stacked.iter().copied()).collect();
            match self.stack((counter, start), &pairs, &stmt.origin) {
                Ok(work) => body.extend(work.into_iter().map(Task::Work)),
                Err(error) => self.errors.push(error),
            }
        }
        let carries = carried(params, &block.results[..params.len()]);
        let copies = copy_all(&carries, &mut self.types, &stmt.origin, &mut body);
        let (start, end) = match op.range {
            Some((start, end)) => (Limit::Const(start), Limit::Const(end)),
            None => (Limit::Value(stmt.args[0]), Limit::Value(stmt.args[1])),
        };
        tasks.push(Task::For { counter, start, end, carries, stacked, body, copies, origin: stmt.origin.clone() });
        params.iter().zip(&stmt.results).for_each(|(&param, &result)| alias(param, result, tasks));
    }

    /// Adds the kernels of a loop whose trips are pointwise; false for all other loops.
    fn pointwise_loop(&mut self, op: &'a ForLoop, stmt: &'a Stmt, tasks: &mut Vec<Task>) -> bool {
        let Some(pointwise) = PointwiseLoop::of(self.func, self.mesh, &self.used, op, stmt) else { return false };
        let work = self.work(&stmt.origin, |lowering| {
            pointwise.lower(lowering);
            Ok(())
        });
        match work {
            Ok(work) => tasks.extend(work.into_iter().map(Task::Work)),
            Err(error) => self.errors.push(error),
        }
        true
    }

    fn while_loop(&mut self, op: &'a WhileLoop, stmt: &'a Stmt, tasks: &mut Vec<Task>) {
        let (test, block) = (&op.cond, &op.body);
        debug_assert_eq!(stmt.args.len(), block.params.len(), "what a loop carries has a beginning");
        debug_assert_eq!(test.params.len(), block.params.len(), "the condition sees what the loop carries");
        for (&init, &param) in stmt.args.iter().zip(&block.params) {
            copy(init, param, &stmt.origin, tasks);
        }
        let mut cond = Vec::new();
        block.params.iter().zip(&test.params).for_each(|(&param, &seen)| alias(param, seen, &mut cond));
        cond.extend(self.block(test));
        let mut body = self.block(block);
        let carries = carried(&block.params, &block.results);
        let copies = copy_all(&carries, &mut self.types, &stmt.origin, &mut body);
        tasks.push(Task::While { carries, cond, flag: test.results[0], body, copies, origin: stmt.origin.clone() });
        block.params.iter().zip(&stmt.results).for_each(|(&param, &result)| alias(param, result, tasks));
    }

    fn branch(&mut self, op: &'a Branch, stmt: &'a Stmt, tasks: &mut Vec<Task>) {
        let [then, otherwise] = op.sides().map(|block| {
            debug_assert_eq!(block.results.len(), stmt.results.len(), "a side gives what the branch gives");
            let mut side = self.block(block);
            for (&value, &result) in block.results.iter().zip(&stmt.results) {
                copy(value, result, &stmt.origin, &mut side);
            }
            side
        });
        let results = stmt.results.clone();
        tasks.push(Task::If { flag: stmt.args[0], results, then, otherwise, origin: stmt.origin.clone() });
    }

    /// Writes values to the stacks at the index of the trip.
    fn stack(
        &mut self,
        (counter, start): (Value, i64),
        pairs: &[(Value, Value)],
        origin: &Origin,
    ) -> Result<Vec<Work>, Diagnostic> {
        self.work(origin, |lowering| {
            let varying = lowering.ty(counter).varying;
            let trip = lowering.temporary(Type { varying, ..Type::replicated(ArrayType::scalar(DType::I64)) });
            let mut kernel = lowering.kernel();
            let now = kernel.operand(counter, &[]);
            let now = kernel.cast(DType::I32, DType::I64, now);
            let first = kernel.constant(DType::I64, start as u64);
            let number = kernel.binary(BinaryOp::Sub, DType::I64, now, first);
            kernel.store(trip, &[], number);
            lowering.run(kernel);
            for &(value, stack) in pairs {
                let mut kernel = lowering.kernel();
                let index = kernel.block_dims(lowering.ty(value), false);
                let elem = kernel.operand(value, &index);
                let place = kernel.dynamic_index(trip, lowering.ty(stack).shape()[0]);
                let at: Vec<Affine> = std::iter::once(place).chain(index).collect();
                kernel.store(stack, &at, elem);
                lowering.run(kernel);
            }
            Ok(())
        })
    }
}

/// The loop nest that computes a pointwise op.
fn evaluate(point: &dyn Point, stmt: &Stmt, lowering: &mut Lowering<'_>) -> Result<(), Diagnostic> {
    let result = stmt.results[0];
    let mut kernel = lowering.kernel();
    let index = kernel.block_dims(lowering.ty(result), false);
    let elem = point.point(&mut kernel, stmt, &index);
    kernel.store(result, &index, elem);
    lowering.run(kernel);
    Ok(())
}

/// A value in addition to the existing ones.
pub fn new_value(types: &mut Vec<Type>, ty: Type) -> Value {
    debug_assert!(types.len() < u32::MAX as usize, "there is a number for each value");
    types.push(ty);
    Value(types.len() as u32 - 1)
}

fn carried(params: &[Value], next: &[Value]) -> Vec<Carry> {
    debug_assert_eq!(params.len(), next.len(), "a trip gives the next value of each parameter");
    params.iter().zip(next).map(|(&param, &next)| Carry { param, next }).collect()
}

/// Copies all next values into the carried ones, in parallel: no source is overwritten before it has been read. Returns the number of
/// copies.
pub fn copy_all(carries: &[Carry], types: &mut Vec<Type>, origin: &Origin, tasks: &mut Vec<Task>) -> usize {
    // Values may be aliases of carried values.
    let names = AliasNames::of(tasks);
    let pairs = carries.iter().map(|carry| (names.find(carry.next), carry.param));
    let mut waiting: Vec<(Value, Value)> = pairs.filter(|(from, to)| from != to).collect();
    let before = tasks.len();
    while !waiting.is_empty() {
        let ready = |&(_, to): &(Value, Value)| waiting.iter().all(|(from, _)| *from != to);
        if let Some(next) = waiting.iter().position(ready) {
            let (from, to) = waiting.remove(next);
            copy(from, to, origin, tasks);
            continue;
        }
        // Only cycles are left.
        let (_, to) = waiting[0];
        let saved = new_value(types, types[to.0 as usize].clone());
        copy(to, saved, origin, tasks);
        waiting.iter_mut().filter(|(from, _)| *from == to).for_each(|(from, _)| *from = saved);
        debug_assert!(waiting.iter().any(|(from, _)| *from == saved), "a cycle is cut where it is read");
    }
    tasks.len() - before
}

fn alias(from: Value, to: Value, tasks: &mut Vec<Task>) {
    tasks.push(Task::Work(Work::Alias { from, to }));
}

/// Copies the bytes of a value.
pub fn copy(from: Value, to: Value, origin: &Origin, tasks: &mut Vec<Task>) {
    tasks.push(Task::Work(Work::Copy { from, to, origin: origin.clone() }));
}

/// Aliases: pairs of values with the same bytes.
struct AliasNames(Vec<(Value, Value)>);

impl AliasNames {
    fn of(tasks: &[Task]) -> AliasNames {
        let aliases = tasks.iter().filter_map(|task| match task {
            Task::Work(Work::Alias { from, to }) => Some((*to, *from)),
            Task::Work(_) | Task::For { .. } | Task::While { .. } | Task::If { .. } => None,
        });
        AliasNames(aliases.collect())
    }

    fn find(&self, value: Value) -> Value {
        match self.0.iter().find(|(to, _)| *to == value) {
            Some(&(_, from)) => self.find(from),
            None => value,
        }
    }
}
