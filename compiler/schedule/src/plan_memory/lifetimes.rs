//! Lifetimes: the times at which each value must be kept in memory.
//!
//! Tasks are numbered in order; a unit of work at position `p` reads at time `2p` and is done at `2p + 1`. A value lives from the time `2p`
//! of its first write to the time `2q` of its last read, both included. Two values whose lifetimes overlap at only one time `2p` are thus
//! the input and the output of one unit of work, which may write in place. An unread value still lives until its write is done: the write
//! must not destroy another value that is needed later.
//!
//! Small values that other devices read live until the next collective, whose barrier orders these reads anyway: no device waits
//! only to overwrite a few bytes.
//!
//! Loops: a value from outside that is read inside lives until the loop ends. A carried value lives from its initial copy to its last use
//! in the body, then again from the copy at the end of the body. So the next value can be computed in the same place in between. Branches:
//! a result lives from the copy in each branch, but not through the other branch before that. A value that only the second branch still
//! needs does not live through the rest of the first, so both can change it in place.

use crate::order::{Limit, Schedule, Task};
use spmdc_ir::lower::work::Work;
use spmdc_ir::program::{Func, Value};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::AxisSet;
use std::collections::BTreeSet;

/// A time later than all others.
pub const FOREVER: u32 = u32::MAX;

/// The first and the last time of an interval, both included.
pub type Interval = (u32, u32);

/// The lifetimes of all values. Values with the same bytes under several names form one class, with one lifetime.
pub struct Lifetimes<'a> {
    /// The unit of work at each position, if any.
    pub work: Vec<Option<&'a Work>>,
    /// For each value, the number of its class.
    pub class_of: Vec<usize>,
    /// For each class, the intervals in which it lives, sorted and disjoint.
    pub intervals: Vec<Vec<Interval>>,
    /// For each class, the manual axes along which the conditions around its writes vary.
    pub control: Vec<AxisSet>,
    /// For each class, whether it is a parameter or a constant of the program, which is kept from run to run.
    pub fixed: Vec<bool>,
}

#[derive(Clone, Copy)]
struct Event {
    position: u32,
    /// The innermost loop around it.
    scope: Option<usize>,
    /// The innermost branch around it.
    branch: Option<usize>,
}

struct LoopTimes {
    head: u32,
    /// The end of a `while`'s condition.
    tested: Option<u32>,
    end: u32,
    outer: Option<usize>,
}

/// The sides of an `if` are the positions between these.
struct BranchTimes {
    head: u32,
    then: u32,
    otherwise: u32,
    /// The innermost loop around it.
    scope: Option<usize>,
    outer: Option<usize>,
}

/// The rule by which the lifetime of a class follows from its reads and writes.
#[derive(Clone, Copy)]
enum Role {
    Plain,
    Param,
    /// Carried by a loop.
    Carry(usize),
    /// Live throughout a loop: counters, stacks.
    Whole(usize),
    /// The result of a branch: where its sides end.
    Branch {
        then: u32,
        otherwise: u32,
    },
}

#[derive(Default)]
struct Record {
    role: Option<Role>,
    reads: Vec<Event>,
    writes: Vec<Event>,
    control: AxisSet,
}

struct Walker<'a> {
    schedule: &'a Schedule,
    mesh: &'a Mesh,
    work: Vec<Option<&'a Work>>,
    loops: Vec<LoopTimes>,
    /// In the order of their heads.
    branches: Vec<BranchTimes>,
    class_of: Vec<usize>,
    records: Vec<Record>,
    scope: Option<usize>,
    /// The innermost branch around the present task.
    branch: Option<usize>,
    control: AxisSet,
}

impl<'a> Lifetimes<'a> {
    pub fn new(func: &Func, schedule: &'a Schedule, mesh: &'a Mesh) -> Lifetimes<'a> {
        let class_of = name_classes(schedule);
        let mut records: Vec<Record> = Vec::new();
        records.resize_with(class_of.iter().max().map_or(0, |last| last + 1), Record::default);
        let mut walker = Walker {
            schedule,
            mesh,
            work: vec![None],
            loops: Vec::new(),
            branches: Vec::new(),
            class_of,
            records,
            scope: None,
            branch: None,
            control: AxisSet::EMPTY,
        };
        let constants = schedule.constants.iter().map(|(value, _)| *value);
        let in_memory = func.body.params.iter().copied().filter(|&param| !func.ty(param).array.is_stream);
        for param in in_memory.chain(constants) {
            let record = walker.record(param);
            record.role = Some(Role::Param);
            record.writes.push(Event { position: 0, scope: None, branch: None });
        }
        walker.tasks(&schedule.tasks);
        let end = walker.next();
        for &result in &func.body.results {
            walker.record(result).reads.push(Event { position: end, scope: None, branch: None });
        }
        let results: Vec<usize> = func.body.results.iter().map(|&result| walker.class(result)).collect();
        let intervals = walker.records.iter().enumerate().map(|(class, record)| {
            let mut intervals = walker.intervals(record);
            if results.contains(&class)
                && let Some(last) = intervals.last_mut()
            {
                last.1 = FOREVER;
            }
            intervals
        });
        let intervals: Vec<Vec<Interval>> = intervals.collect();
        debug_assert_eq!(walker.class_of.len(), schedule.types.len(), "every value has a class");
        debug_assert!(walker.class_of.iter().all(|&class| class < intervals.len()), "every class has a lifetime");
        let control = walker.records.iter().map(|record| record.control).collect();
        let fixed = walker.records.iter().map(|record| matches!(record.role, Some(Role::Param))).collect();
        Lifetimes { work: walker.work, class_of: walker.class_of, intervals, control, fixed }
    }
}

/// The class of each value: values that are aliases of one buffer have the same number.
pub(crate) fn name_classes(schedule: &Schedule) -> Vec<usize> {
    fn visit(tasks: &[Task], root: &mut Vec<usize>) {
        for task in tasks {
            match task {
                Task::Work(Work::Alias { from, to }) => {
                    let (from, to) = (find(root, from.0 as usize), find(root, to.0 as usize));
                    root[from.max(to)] = from.min(to);
                }
                Task::Work(_) => {}
                Task::For { body, .. } => visit(body, root),
                Task::While { cond, body, .. } => {
                    visit(cond, root);
                    visit(body, root);
                }
                Task::If { then, otherwise, .. } => {
                    visit(then, root);
                    visit(otherwise, root);
                }
            }
        }
    }
    let mut root: Vec<usize> = (0..schedule.types.len()).collect();
    visit(&schedule.tasks, &mut root);
    let mut numbers = vec![None; root.len()];
    let mut count = 0;
    (0..root.len())
        .map(|value| {
            let root = find(&mut root, value);
            *numbers[root].get_or_insert_with(|| {
                count += 1;
                count - 1
            })
        })
        .collect()
}

/// The smallest member of a class, by the links in `root`: the find of a disjoint-set forest with path halving (Tarjan and van
/// Leeuwen, 1984).
pub fn find(root: &mut [usize], mut member: usize) -> usize {
    while root[member] != member {
        debug_assert!(root[member] < member, "links lead to smaller numbers");
        root[member] = root[root[member]];
        member = root[member];
    }
    member
}

impl<'a> Walker<'a> {
    fn next(&self) -> u32 {
        self.work.len() as u32
    }

    fn class(&self, value: Value) -> usize {
        self.class_of[value.0 as usize]
    }

    fn record(&mut self, value: Value) -> &mut Record {
        let class = self.class(value);
        &mut self.records[class]
    }

    fn read(&mut self, value: Value) {
        let event = Event { position: self.next() - 1, scope: self.scope, branch: self.branch };
        self.record(value).reads.push(event);
    }

    fn write(&mut self, value: Value) {
        let event = Event { position: self.next() - 1, scope: self.scope, branch: self.branch };
        let control = self.control;
        let record = self.record(value);
        record.writes.push(event);
        record.control = record.control.union(control);
    }

    /// A position without work: the beginning or end of a loop or branch.
    fn mark(&mut self) -> u32 {
        self.work.push(None);
        self.next() - 1
    }

    fn varying(&self, value: Value) -> AxisSet {
        self.schedule.types[value.0 as usize].varying
    }

    fn tasks(&mut self, tasks: &'a [Task]) {
        let mut taken = Vec::new();
        let mut follows = false;
        for task in tasks {
            self.task(task);
            let collective = match task {
                Task::Work(work) => work.is_collective().then_some(work),
                Task::For { .. } | Task::While { .. } | Task::If { .. } => None,
            };
            if let Some(work) = collective {
                // Consecutive collectives share one barrier.
                if !follows {
                    taken.drain(..).for_each(|value| self.read(value));
                }
                let plain = |value: &Value| self.is_small(*value) && self.records[self.class(*value)].role.is_none();
                taken.extend(work.reads().into_iter().filter(plain));
            }
            follows = collective.is_some();
        }
        taken.into_iter().for_each(|value| self.read(value));
    }

    fn is_small(&self, value: Value) -> bool {
        self.schedule.types[value.0 as usize].block_bytes(self.mesh) <= self.mesh.machine.private_bytes
    }

    fn task(&mut self, task: &'a Task) {
        let control = self.control;
        match task {
            Task::Work(Work::Alias { .. }) => {}
            Task::Work(work) => {
                self.work.push(Some(work));
                work.reads().into_iter().for_each(|value| self.read(value));
                work.writes().into_iter().for_each(|value| self.write(value));
            }
            Task::For { counter, start, end, carries, stacked, body, .. } => {
                let head = self.mark();
                for limit in [start, end] {
                    if let Limit::Value(value) = limit {
                        self.read(*value);
                        self.control = self.control.union(self.varying(*value));
                    }
                }
                let this = self.enter(head);
                self.write(*counter);
                self.record(*counter).role = Some(Role::Whole(this));
                stacked.iter().for_each(|&stack| self.record(stack).role = Some(Role::Whole(this)));
                carries.iter().for_each(|carry| self.record(carry.param).role = Some(Role::Carry(this)));
                self.tasks(body);
                self.leave(this);
            }
            Task::While { carries, cond, flag, body, .. } => {
                self.control = self.control.union(self.varying(*flag));
                let head = self.mark();
                let this = self.enter(head);
                carries.iter().for_each(|carry| self.record(carry.param).role = Some(Role::Carry(this)));
                self.tasks(cond);
                let tested = self.mark();
                self.read(*flag);
                self.loops[this].tested = Some(tested);
                self.tasks(body);
                self.leave(this);
            }
            Task::If { flag, results, then, otherwise, .. } => {
                let head = self.mark();
                self.read(*flag);
                self.control = self.control.union(self.varying(*flag));
                let (scope, outer, this) = (self.scope, self.branch, self.branches.len());
                self.branches.push(BranchTimes { head, then: FOREVER, otherwise: FOREVER, scope, outer });
                self.branch = Some(this);
                self.tasks(then);
                let then = self.mark();
                self.tasks(otherwise);
                let otherwise = self.mark();
                self.branches[this] = BranchTimes { head, then, otherwise, scope, outer };
                self.branch = outer;
                for &result in results {
                    self.record(result).role = Some(Role::Branch { then, otherwise });
                }
            }
        }
        self.control = control;
    }

    fn enter(&mut self, head: u32) -> usize {
        self.loops.push(LoopTimes { head, tested: None, end: FOREVER, outer: self.scope });
        self.scope = Some(self.loops.len() - 1);
        self.loops.len() - 1
    }

    fn leave(&mut self, this: usize) {
        self.loops[this].end = self.mark();
        self.scope = self.loops[this].outer;
    }

    fn is_inside(&self, mut scope: Option<usize>, of: usize) -> bool {
        while let Some(at) = scope {
            if at == of {
                return true;
            }
            scope = self.loops[at].outer;
        }
        false
    }

    /// The time until which this event keeps a value that belongs to a trip of `home`: the end of the outermost loop between.
    fn until(&self, event: Event, home: Option<usize>) -> u32 {
        let mut until = 2 * event.position;
        let mut scope = event.scope;
        while scope != home {
            let Some(at) = scope else { break };
            until = 2 * self.loops[at].end + 1;
            scope = self.loops[at].outer;
        }
        until
    }

    fn intervals(&self, record: &Record) -> Vec<Interval> {
        let last = |home| {
            let written = record.writes.iter().map(|&event| self.until(event, home).max(2 * event.position + 1));
            written.chain(record.reads.iter().map(|&event| self.until(event, home))).max()
        };
        // A value without elements may never be written, and still has a place.
        let events = || record.writes.iter().chain(&record.reads);
        let Some(home) = events().next().map(|event| event.scope) else { return Vec::new() };
        let first = events().map(|event| 2 * event.position).min().expect("there are events");
        let intervals = match record.role.unwrap_or(Role::Plain) {
            Role::Param => vec![(0, FOREVER)],
            Role::Plain => {
                vec![(first, last(home).unwrap_or(first))]
            }
            Role::Whole(this) => {
                let LoopTimes { head, end, outer, .. } = self.loops[this];
                vec![(2 * head, (2 * end + 1).max(last(outer).unwrap_or(0)))]
            }
            Role::Carry(this) => {
                let LoopTimes { head, tested, end, outer } = self.loops[this];
                let inside = |event: &&Event| self.is_inside(event.scope, this);
                let used = record.reads.iter().filter(inside).map(|&event| self.until(event, Some(this))).max();
                let mut used = used.unwrap_or(0).max(2 * tested.unwrap_or(head));
                let again = record.writes.iter().filter(inside).map(|event| 2 * event.position).min();
                let after = record.reads.iter().filter(|event| !self.is_inside(event.scope, this));
                let after = after.map(|&event| self.until(event, outer)).max().unwrap_or(0);
                // Trips that are left over write behind the loop.
                let left = record.writes.iter().filter(|event| !self.is_inside(event.scope, this));
                let after = left.map(|event| 2 * event.position + 1).max().unwrap_or(0).max(after);
                if again.is_none() {
                    used = 2 * end + 1;
                }
                vec![(first, used), (again.unwrap_or(2 * end), (2 * end + 1).max(after))]
            }
            Role::Branch { then, otherwise } => {
                let in_then =
                    record.writes.iter().map(|event| 2 * event.position).filter(|&time| time < 2 * then).min();
                let in_else =
                    record.writes.iter().map(|event| 2 * event.position).filter(|&time| time > 2 * then).min();
                let mut intervals = Vec::new();
                intervals.extend(in_then.map(|time| (time, 2 * then + 1)));
                let end = (2 * otherwise + 1).max(last(home).unwrap_or(0));
                intervals.push((in_else.unwrap_or(2 * otherwise), end));
                intervals
            }
        };
        self.without_other_sides(join(intervals), record)
    }

    /// The lifetime without the times in the first side of an `if` at which only the second side still needs the value.
    fn without_other_sides(&self, mut intervals: Vec<Interval>, record: &Record) -> Vec<Interval> {
        for branch in self.branches_around(&record.reads) {
            let BranchTimes { head, then, otherwise, scope, .. } = self.branches[branch];
            let is_needed_last_in_second =
                |&(first, last): &Interval| first <= 2 * head && (2 * then + 2..2 * otherwise).contains(&last);
            let Some(at) = intervals.iter().position(is_needed_last_in_second) else { continue };
            let is_inside = |event: &&Event| head < event.position && event.position < otherwise;
            if record.writes.iter().any(|event| is_inside(&event)) {
                continue;
            }
            let in_first = record.reads.iter().filter(|event| is_inside(event) && event.position < then);
            let used = in_first.map(|&event| self.until(event, scope)).max().unwrap_or(2 * head);
            debug_assert!(used <= 2 * then + 1, "a loop around the branch keeps the value beyond it");
            let last = std::mem::replace(&mut intervals[at].1, used);
            intervals.insert(at + 1, (2 * then + 2, last));
        }
        intervals
    }

    /// The branches in which these events are, outer ones first.
    fn branches_around(&self, events: &[Event]) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        for event in events {
            let mut around = event.branch;
            while let Some(branch) = around.filter(|&branch| found.insert(branch)) {
                around = self.branches[branch].outer;
            }
        }
        found
    }
}

/// The intervals sorted, with overlapping ones joined.
pub fn join(mut intervals: Vec<Interval>) -> Vec<Interval> {
    debug_assert!(intervals.iter().all(|interval| interval.0 <= interval.1), "an interval ends before it begins");
    intervals.sort_unstable();
    let mut joined: Vec<Interval> = Vec::new();
    for interval in intervals {
        match joined.last_mut() {
            Some(last) if interval.0 <= last.1 => last.1 = last.1.max(interval.1),
            _ => joined.push(interval),
        }
    }
    debug_assert!(joined.windows(2).all(|pair| pair[0].1 < pair[1].0), "joined intervals are disjoint");
    joined
}

/// The common times of two sorted lists of intervals.
pub fn common(a: &[Interval], b: &[Interval]) -> Vec<Interval> {
    debug_assert!(a.is_sorted() && b.is_sorted(), "intervals are sorted");
    let (mut i, mut j) = (0, 0);
    let mut common = Vec::new();
    while i < a.len() && j < b.len() {
        let both = (a[i].0.max(b[j].0), a[i].1.min(b[j].1));
        if both.0 <= both.1 {
            common.push(both);
        }
        if a[i].1 < b[j].1 { i += 1 } else { j += 1 }
    }
    common
}
