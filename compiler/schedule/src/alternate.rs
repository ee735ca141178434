//! Lets the trips of a loop take turns with two or three places for its carried values, where one place would need a copy in each trip.
//!
//! ```text
//! for i in 0..5 { v = step(u); copy v -> u }
//! for h in 0..2 { v = step(u); w = step(v); copy w -> u }  v = step(u); copy v -> u
//! ```
//!
//! A step that reads other elements than it writes, such as a stencil, cannot write in place. The next value then has a separate place, and
//! the end of the trip copies the whole array. Two trips in one body need no copy: `w` is in the place of `u`, which is not read any more.
//! Values that shift from trip to trip, such as the last two states of a wave, take three places. A remaining trip, and a loop with an
//! unknown trip count, copy once after the last trip.

use crate::order::{Carry, Limit, Schedule, Task, copy, copy_all, new_value};
use crate::plan_memory::places::PlannedPlaces;
use spmdc_ir::lower::builder::KernelBuilder;
use spmdc_ir::lower::work::{Lowering, Temporaries, Work};
use spmdc_ir::program::origin::Origin;
use spmdc_ir::program::{Module, Value};
use spmdc_kernel::loops::Elem;
use spmdc_kernel::scalar::{BinaryOp, CompareOp};
use spmdc_layout::types::{ArrayType, DType, Type};
use std::collections::BTreeMap;

/// Maximum number of tasks of a body that is repeated, including the tasks of loops inside it.
const MAX_TASKS: usize = 400;
/// The most trips that take turns.
const MAX_TURNS: usize = 3;

/// The schedule in which trips take turns where that avoids copies; None if there are none to avoid. The memory of the program grows at
/// most by the places of some scalars.
pub fn alternate(module: &Module, schedule: &Schedule) -> Option<Schedule> {
    // Most programs have nothing to avoid: they pay for no plan.
    if schedule.tasks.iter().all(|task| task.blocks().is_empty()) {
        return None;
    }
    // Less is copied sooner than its steps are written down twice.
    let few = module.mesh.machine.private_bytes as u64;
    let plain = Repeated::new(module, schedule, &[]);
    let bytes = |&(_, to): &(Value, Value)| plain.schedule.types[to.0 as usize].block_bytes(&module.mesh) as u64;
    if plain.ends.iter().all(|ends| ends.iter().map(bytes).sum::<u64>() <= few) {
        return None;
    }
    let before = PlannedPlaces::of(module, &plain.schedule);
    let mut copied: Vec<u64> = plain.ends.iter().map(|ends| before.copied(ends)).collect();
    let mut turns = vec![1; copied.len()];
    for tried in 2..=MAX_TURNS {
        let wanted = turns.iter().zip(&copied);
        let wanted: Vec<usize> = wanted.map(|(&turns, &bytes)| if bytes <= few { turns } else { tried }).collect();
        if wanted == turns {
            continue;
        }
        let trial = Repeated::new(module, schedule, &wanted);
        let places = PlannedPlaces::of(module, &trial.schedule);
        for (at, ends) in trial.ends.iter().enumerate() {
            let bytes = places.copied(ends) / wanted[at] as u64;
            if bytes < copied[at] {
                (turns[at], copied[at]) = (wanted[at], bytes);
            }
        }
    }
    if turns.iter().all(|&turns| turns == 1) {
        return None;
    }
    debug_assert!(turns.iter().all(|turns| (1..=MAX_TURNS).contains(turns)), "few trips take turns");
    let schedule = Repeated::new(module, schedule, &turns).schedule;
    let after = PlannedPlaces::of(module, &schedule);
    (after.bytes() <= before.bytes() + before.bytes() / 64 + 4096).then_some(schedule)
}

/// A schedule whose loops have several trips in a body.
struct Repeated<'a> {
    module: &'a Module,
    schedule: Schedule,
    /// For each loop of the first schedule, outer ones first, the copies at the end of its body.
    ends: Vec<Vec<(Value, Value)>>,
    /// For each of them, the number of trips in a body; 1 after the end of the list.
    turns: &'a [usize],
}

/// A loop whose trips are repeated.
struct RepeatedLoop<'a> {
    /// The body without the copies at its end.
    core: &'a [Task],
    /// The condition of a `while`, which is evaluated between two trips.
    test: Option<(&'a [Task], Value)>,
    carries: &'a [Carry],
    /// Values inside that every trip shares: the stacks.
    shared: &'a [Value],
    origin: &'a Origin,
}

impl<'a> Repeated<'a> {
    fn new(module: &'a Module, schedule: &Schedule, turns: &'a [usize]) -> Repeated<'a> {
        let Schedule { tasks, types, constants } = schedule.clone();
        let schedule = Schedule { tasks: Vec::new(), types, constants };
        let mut repeated = Repeated { module, schedule, ends: Vec::new(), turns };
        repeated.schedule.tasks = repeated.list(tasks);
        debug_assert!(turns.is_empty() || turns.len() == repeated.ends.len(), "each loop has its number of turns");
        repeated
    }

    fn list(&mut self, tasks: Vec<Task>) -> Vec<Task> {
        let mut done = Vec::new();
        tasks.into_iter().for_each(|task| self.task(task, &mut done));
        done
    }

    fn task(&mut self, task: Task, done: &mut Vec<Task>) {
        match task {
            Task::Work(_) => done.push(task),
            Task::If { flag, results, then, otherwise, origin } => {
                let (then, otherwise) = (self.list(then), self.list(otherwise));
                done.push(Task::If { flag, results, then, otherwise, origin });
            }
            Task::For { counter, start, end, carries, stacked, body, copies, origin } => {
                let at = self.enter();
                let body = self.list(body);
                let core = &body[..body.len() - copies];
                let trips = RepeatedLoop { core, test: None, carries: &carries, shared: &stacked, origin: &origin };
                let turns = self.turns_of(at, core);
                let made = match (start, end) {
                    _ if turns == 1 => None,
                    (Limit::Const(start), Limit::Const(end)) if end - start < turns as i64 => None,
                    (Limit::Const(start), Limit::Const(end)) => {
                        Some(self.repeated_for(&trips, counter, start..end, turns))
                    }
                    _ => self.repeated_between(&trips, counter, (start, end), turns),
                };
                if let Some(made) = made {
                    return self.leave(at, made, done);
                }
                let made = Task::For { counter, start, end, carries, stacked, body, copies, origin };
                self.leave(at, vec![made], done);
            }
            Task::While { carries, cond, flag, body, copies, origin } => {
                let at = self.enter();
                let (cond, body) = (self.list(cond), self.list(body));
                let core = &body[..body.len() - copies];
                let turns = self.turns_of(at, core);
                // The condition is evaluated once more than before.
                if turns > 1 && !prints(&cond) {
                    let trips = RepeatedLoop {
                        core,
                        test: Some((&cond, flag)),
                        carries: &carries,
                        shared: &[],
                        origin: &origin,
                    };
                    let (body, copies) = self.repeated_while(&trips, turns);
                    return self.leave(at, vec![Task::While { carries, cond, flag, body, copies, origin }], done);
                }
                self.leave(at, vec![Task::While { carries, cond, flag, body, copies, origin }], done);
            }
        }
    }

    /// Gives a loop its number.
    fn enter(&mut self) -> usize {
        self.ends.push(Vec::new());
        self.ends.len() - 1
    }

    /// Keeps the copies of a loop, and its replacement.
    fn leave(&mut self, at: usize, made: Vec<Task>, done: &mut Vec<Task>) {
        let body = made.iter().find_map(|task| match task {
            Task::For { body, copies, .. } | Task::While { body, copies, .. } => Some(&body[body.len() - copies..]),
            Task::Work(_) | Task::If { .. } => None,
        });
        let pair = |task: &Task| match task {
            Task::Work(Work::Copy { from, to, .. }) => Some((*from, *to)),
            Task::Work(_) | Task::For { .. } | Task::While { .. } | Task::If { .. } => None,
        };
        debug_assert!(body.is_some(), "a loop stays one");
        self.ends[at] = body.into_iter().flatten().filter_map(pair).collect();
        done.extend(made);
    }

    fn turns_of(&self, at: usize, core: &[Task]) -> usize {
        match count(core) <= MAX_TASKS {
            true => self.turns.get(at).copied().unwrap_or(1),
            false => 1,
        }
    }

    /// A loop whose body has several trips, and the trips that are left over.
    fn repeated_for(
        &mut self,
        trips: &RepeatedLoop<'_>,
        counter: Value,
        range: std::ops::Range<i64>,
        turns: usize,
    ) -> Vec<Task> {
        debug_assert!(turns > 1 && range.end - range.start >= turns as i64, "there is a round");
        let rounds = (range.end - range.start) / turns as i64;
        let mut made = vec![self.rounds(trips, counter, Limit::Const(range.start), Limit::Const(rounds), turns)];
        let mut values = trips.params();
        let left = range.start + rounds * turns as i64..range.end;
        for at in left.clone() {
            let names = self.renamed(trips, &values, true);
            self.count(trips, counter, &names, &[(Limit::Const(at), 1)], &mut made);
            values = self.trip(trips, &names, &mut made);
        }
        if !left.is_empty() {
            self.end(trips, &values, &mut made);
        }
        made
    }

    /// The same for a loop with an unknown trip count. None if a bound is not an i32, or differs between devices.
    fn repeated_between(
        &mut self,
        trips: &RepeatedLoop<'_>,
        counter: Value,
        (start, end): (Limit, Limit),
        turns: usize,
    ) -> Option<Vec<Task>> {
        let is_plain = |limit: Limit| match limit {
            Limit::Const(number) => i32::try_from(number).is_ok(),
            Limit::Value(value) => {
                let ty = &self.schedule.types[value.0 as usize];
                ty.dtype() == DType::I32 && ty.varying.is_empty()
            }
        };
        if ![start, end].into_iter().all(is_plain) {
            return None;
        }
        let [rounds, left] = [DType::I64; 2].map(|dtype| self.scalar(dtype));
        let mut made = Vec::new();
        self.compute(trips, &[start, end], &[rounds, left], &mut made, &|kernel, limits| {
            let zero = kernel.constant(DType::I64, 0);
            let several = kernel.constant(DType::I64, turns as u64);
            let trips = kernel.binary(BinaryOp::Sub, DType::I64, limits[1], limits[0]);
            let trips = kernel.binary(BinaryOp::Maximum, DType::I64, trips, zero);
            // Numbers of 33 bits are divided exactly.
            let divisor = kernel.cast(DType::I64, DType::F64, several);
            let wide = kernel.cast(DType::I64, DType::F64, trips);
            let quotient = kernel.binary(BinaryOp::Div, DType::F64, wide, divisor);
            let rounds = kernel.cast(DType::F64, DType::I64, quotient);
            let whole = kernel.binary(BinaryOp::Mul, DType::I64, rounds, several);
            vec![rounds, kernel.binary(BinaryOp::Sub, DType::I64, trips, whole)]
        });
        made.push(self.rounds(trips, counter, start, Limit::Value(rounds), turns));
        let bounds = [(start, 1), (Limit::Value(rounds), turns as i64)];
        let values = self.left(trips, counter, &bounds, (left, 0), turns, trips.params(), &mut made);
        self.end(trips, &values, &mut made);
        Some(made)
    }

    /// The trips that are left over, from the given one on, each if there is one. Returns the carried values behind.
    #[allow(clippy::too_many_arguments)]
    fn left(
        &mut self,
        trips: &RepeatedLoop<'_>,
        counter: Value,
        bounds: &[(Limit, i64)],
        (left, at): (Value, usize),
        turns: usize,
        values: Vec<Value>,
        tasks: &mut Vec<Task>,
    ) -> Vec<Value> {
        if at + 1 == turns {
            return values;
        }
        let flag = self.scalar(DType::Bool);
        self.compute(trips, &[Limit::Value(left)], &[flag], tasks, &|kernel, numbers| {
            let at = kernel.constant(DType::I64, at as u64);
            vec![kernel.compare(CompareOp::Gt, DType::I64, numbers[0], at)]
        });
        let mut then = Vec::new();
        let names = self.renamed(trips, &values, true);
        let all = [bounds, &[(Limit::Const(at as i64), 1)]].concat();
        self.count(trips, counter, &names, &all, &mut then);
        let next = self.trip(trips, &names, &mut then);
        let next = self.left(trips, counter, bounds, (left, at + 1), turns, next, &mut then);
        self.choice(trips, flag, (then, next), values, tasks)
    }

    /// A loop of rounds, each of several trips.
    fn rounds(&mut self, trips: &RepeatedLoop<'_>, counter: Value, start: Limit, rounds: Limit, turns: usize) -> Task {
        let mut body = Vec::new();
        let round = self.new_like(counter);
        let mut values = trips.params();
        for turn in 0..turns {
            let names = self.renamed(trips, &values, turn > 0);
            let terms = [(start, 1), (Limit::Value(round), turns as i64), (Limit::Const(turn as i64), 1)];
            self.count(trips, counter, &names, &terms, &mut body);
            values = self.trip(trips, &names, &mut body);
        }
        let copies = self.end(trips, &values, &mut body);
        Task::For {
            counter: round,
            start: Limit::Const(0),
            end: rounds,
            carries: trips.carries_to(&values),
            stacked: trips.shared.to_vec(),
            body,
            copies,
            origin: trips.origin.clone(),
        }
    }

    /// The body of a `while` that has several trips, and its number of copies at the end.
    fn repeated_while(&mut self, trips: &RepeatedLoop<'_>, turns: usize) -> (Vec<Task>, usize) {
        let mut body = Vec::new();
        let values = self.turn(trips, &trips.params(), 0, turns, &mut body);
        let copies = self.end(trips, &values, &mut body);
        (body, copies)
    }

    /// One trip of a `while` and, if its condition still holds, the following ones. Returns the carried values behind.
    fn turn(
        &mut self,
        trips: &RepeatedLoop<'_>,
        values: &[Value],
        turn: usize,
        turns: usize,
        tasks: &mut Vec<Task>,
    ) -> Vec<Value> {
        let names = self.renamed(trips, values, turn > 0);
        let values = self.trip(trips, &names, tasks);
        let (Some((cond, flag)), true) = (trips.test, turn + 1 < turns) else { return values };
        let names = self.names_of(cond, &[], trips.carries.iter().map(|carry| carry.param).zip(values.iter().copied()));
        tasks.extend(cond.iter().map(|task| renamed(task, &names)));
        let mut then = Vec::new();
        let next = self.turn(trips, &values, turn + 1, turns, &mut then);
        self.choice(trips, find(&names, flag), (then, next), values, tasks)
    }

    /// Adds a branch that ends with the carried values of further trips, or with the current ones. Returns the values after it.
    fn choice(
        &mut self,
        trips: &RepeatedLoop<'_>,
        flag: Value,
        (mut then, next): (Vec<Task>, Vec<Value>),
        values: Vec<Value>,
        tasks: &mut Vec<Task>,
    ) -> Vec<Value> {
        let results: Vec<Value> = trips.carries.iter().map(|carry| self.new_like(carry.param)).collect();
        debug_assert_eq!(next.len(), results.len(), "a trip gives what the loop carries");
        debug_assert_eq!(values.len(), results.len(), "a trip takes what the loop carries");
        let mut otherwise = Vec::new();
        for (at, &result) in results.iter().enumerate() {
            copy(next[at], result, trips.origin, &mut then);
            copy(values[at], result, trips.origin, &mut otherwise);
        }
        tasks.push(Task::If { flag, results: results.clone(), then, otherwise, origin: trips.origin.clone() });
        results
    }

    /// The names of a trip that starts with these carried values; the names of the first trip remain.
    fn renamed(&mut self, trips: &RepeatedLoop<'_>, values: &[Value], is_copy: bool) -> BTreeMap<Value, Value> {
        let params = trips.carries.iter().map(|carry| carry.param).zip(values.iter().copied());
        match is_copy {
            true => self.names_of(trips.core, trips.shared, params),
            false => params.collect(),
        }
    }

    /// New names for the values that these tasks define, in addition to the given names.
    fn names_of(
        &mut self,
        tasks: &[Task],
        shared: &[Value],
        given: impl Iterator<Item = (Value, Value)>,
    ) -> BTreeMap<Value, Value> {
        let mut names: BTreeMap<Value, Value> = given.collect();
        let ty = |value: Value| &self.schedule.types[value.0 as usize].array;
        debug_assert!(names.iter().all(|(&from, &to)| ty(from) == ty(to)), "another name has the same type");
        let mut defined = Vec::new();
        define(tasks, &mut defined);
        for value in defined {
            if !shared.contains(&value) && !names.contains_key(&value) {
                names.insert(value, self.new_like(value));
            }
        }
        names
    }

    /// Adds a trip. Returns the carried values after it.
    fn trip(&mut self, trips: &RepeatedLoop<'_>, names: &BTreeMap<Value, Value>, tasks: &mut Vec<Task>) -> Vec<Value> {
        tasks.extend(trips.core.iter().map(|task| renamed(task, names)));
        trips.carries.iter().map(|carry| find(names, carry.next)).collect()
    }

    /// Copies the values after the last trip into the carried values.
    fn end(&mut self, trips: &RepeatedLoop<'_>, values: &[Value], tasks: &mut Vec<Task>) -> usize {
        copy_all(&trips.carries_to(values), &mut self.schedule.types, trips.origin, tasks)
    }

    /// Computes the counter of a trip that reads it: the sum of these numbers, each times a factor.
    fn count(
        &mut self,
        trips: &RepeatedLoop<'_>,
        counter: Value,
        names: &BTreeMap<Value, Value>,
        terms: &[(Limit, i64)],
        tasks: &mut Vec<Task>,
    ) {
        if !reads(trips.core, counter) {
            return;
        }
        let numbers: Vec<Limit> = terms.iter().map(|term| term.0).collect();
        self.compute(trips, &numbers, &[find(names, counter)], tasks, &|kernel, numbers| {
            let mut sum = kernel.constant(DType::I64, 0);
            for (&number, &(_, factor)) in numbers.iter().zip(terms) {
                let factor = kernel.constant(DType::I64, factor as u64);
                let product = kernel.binary(BinaryOp::Mul, DType::I64, number, factor);
                sum = kernel.binary(BinaryOp::Add, DType::I64, sum, product);
            }
            vec![kernel.cast(DType::I64, DType::I32, sum)]
        });
    }

    /// Computes scalars from integers, which `emit` has as i64.
    fn compute(
        &mut self,
        trips: &RepeatedLoop<'_>,
        from: &[Limit],
        to: &[Value],
        tasks: &mut Vec<Task>,
        emit: &dyn Fn(&mut KernelBuilder<'_>, &[Elem]) -> Vec<Elem>,
    ) {
        let func = &self.module.func;
        let inlined = vec![None; func.values.len()];
        // The values have other names here: a lowering knows those of the function and its own.
        let temporaries = Temporaries::starting_at(func.values.len() as u32);
        let mut lowering = Lowering {
            func,
            mesh: &self.module.mesh,
            inlined: &inlined,
            work: Vec::new(),
            temporaries: &temporaries,
            is_last_use: false,
            origin: trips.origin.clone(),
        };
        let mut names = BTreeMap::new();
        let mut named = |lowering: &mut Lowering<'_>, value: Value| {
            let name = lowering.temporary(self.schedule.types[value.0 as usize].clone());
            names.insert(name, value);
            name
        };
        let operands: Vec<(Value, DType)> = from
            .iter()
            .filter_map(|limit| match *limit {
                Limit::Const(_) => None,
                Limit::Value(value) => {
                    Some((named(&mut lowering, value), self.schedule.types[value.0 as usize].dtype()))
                }
            })
            .collect();
        let results: Vec<Value> = to.iter().map(|&value| named(&mut lowering, value)).collect();
        let mut kernel = lowering.kernel();
        let mut operands = operands.into_iter();
        let mut numbers = Vec::new();
        for limit in from {
            numbers.push(match *limit {
                Limit::Const(number) => kernel.constant(DType::I64, number as u64),
                Limit::Value(_) => {
                    let (name, dtype) = operands.next().expect("each value has a name");
                    let number = kernel.operand(name, &[]);
                    if dtype == DType::I64 { number } else { kernel.cast(dtype, DType::I64, number) }
                }
            });
        }
        let computed = emit(&mut kernel, &numbers);
        debug_assert_eq!(computed.len(), to.len(), "each scalar is computed");
        results.iter().zip(computed).for_each(|(&result, elem)| kernel.store(result, &[], elem));
        lowering.run(kernel);
        for mut work in std::mem::take(&mut lowering.work) {
            work.rename(&|value| find(&names, value));
            tasks.push(Task::Work(work));
        }
    }

    /// A new scalar, equal on all devices.
    fn scalar(&mut self, dtype: DType) -> Value {
        new_value(&mut self.schedule.types, Type::replicated(ArrayType::scalar(dtype)))
    }

    fn new_like(&mut self, value: Value) -> Value {
        let ty = self.schedule.types[value.0 as usize].clone();
        new_value(&mut self.schedule.types, ty)
    }
}

impl RepeatedLoop<'_> {
    fn params(&self) -> Vec<Value> {
        self.carries.iter().map(|carry| carry.param).collect()
    }

    fn carries_to(&self, values: &[Value]) -> Vec<Carry> {
        let pairs = self.carries.iter().zip(values);
        pairs.map(|(carry, &next)| Carry { param: carry.param, next }).collect()
    }
}

fn find(names: &BTreeMap<Value, Value>, value: Value) -> Value {
    names.get(&value).copied().unwrap_or(value)
}

fn count(tasks: &[Task]) -> usize {
    tasks.iter().map(|task| 1 + task.blocks().into_iter().map(count).sum::<usize>()).sum()
}

fn prints(tasks: &[Task]) -> bool {
    let is_print = |task: &Task| matches!(task, Task::Work(Work::Print { .. }));
    tasks.iter().any(|task| is_print(task) || task.blocks().into_iter().any(prints))
}

/// The values that the tasks define.
fn define(tasks: &[Task], found: &mut Vec<Value>) {
    for task in tasks {
        match task {
            Task::Work(work) => found.extend(work.writes()),
            Task::For { counter, .. } => found.push(*counter),
            Task::While { .. } | Task::If { .. } => {}
        }
        task.blocks().into_iter().for_each(|tasks| define(tasks, found));
    }
}

fn reads(tasks: &[Task], value: Value) -> bool {
    tasks.iter().any(|task| {
        let own = match task {
            Task::Work(work) => work.reads().contains(&value),
            Task::For { start, end, .. } => [start, end].into_iter().any(|&limit| limit == Limit::Value(value)),
            Task::While { flag, .. } | Task::If { flag, .. } => *flag == value,
        };
        own || task.blocks().into_iter().any(|tasks| reads(tasks, value))
    })
}

fn renamed(task: &Task, names: &BTreeMap<Value, Value>) -> Task {
    let mut task = task.clone();
    rename(&mut task, names);
    task
}

fn rename(task: &mut Task, names: &BTreeMap<Value, Value>) {
    let name = |value: &mut Value| *value = find(names, *value);
    let all = |tasks: &mut Vec<Task>| tasks.iter_mut().for_each(|task| rename(task, names));
    let carried = |carries: &mut Vec<Carry>| {
        carries.iter_mut().flat_map(|carry| [&mut carry.param, &mut carry.next]).for_each(name);
    };
    match task {
        Task::Work(work) => work.rename(&|value| find(names, value)),
        Task::For { counter, start, end, carries, stacked, body, .. } => {
            name(counter);
            for limit in [start, end] {
                if let Limit::Value(value) = limit {
                    name(value);
                }
            }
            carried(carries);
            stacked.iter_mut().for_each(name);
            all(body);
        }
        Task::While { carries, cond, flag, body, .. } => {
            carried(carries);
            all(cond);
            name(flag);
            all(body);
        }
        Task::If { flag, results, then, otherwise, .. } => {
            name(flag);
            results.iter_mut().for_each(name);
            all(then);
            all(otherwise);
        }
    }
}
