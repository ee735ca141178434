//! The price of a candidate: the program is compiled with its layouts, up to the memory plan.

use super::sites::SiteKind;
use super::space::{Candidate, DecisionSpace, SiteGroup};
use crate::pipeline::{Compilation, Options, compile_module};
use crate::report::estimate::{RunTime, run_time};
use crate::report::plan::{flops_per_device, peak_bytes_per_device};
use crate::totals::{Collective, collectives};
use spmdc_ir::program::{Module, Stage};
use spmdc_layout::reshard::Plans;
use std::cmp::Ordering;
use std::sync::atomic::{AtomicUsize, Ordering as AtomicOrdering};
use std::time::Instant;

/// Maximum number of threads that price candidates.
const MAX_THREADS: usize = 16;

/// Estimated times that differ by less than this share are equal.
const SAME_TIME: f64 = 1e-6;

/// Estimated times of which the greater is at most this many times the less are alike: the estimate is not that exact.
const ALIKE: f64 = 1.02;

/// Parameters and results are annotated rather than named values, which takes a call in the program.
pub const EFFORT_OF_NAMED: usize = 3;

/// The costs of a program on one device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// The estimated time of a run.
    pub time: RunTime,
    /// Bytes received, at most, over the whole run; loops with unknown bounds have the assumed trip count.
    pub received: u64,
    /// Collectives that run.
    pub collectives: u64,
    /// Operations.
    pub operations: u64,
    /// Bytes of all memory that a device uses.
    pub memory: u64,
}

impl Price {
    /// The price of a complete compilation of a program with one mesh.
    pub fn of(compilation: &Compilation, options: &Options) -> Option<Price> {
        let program = compilation.program.as_ref().filter(|program| program.mesh_programs.is_empty())?;
        let module = compilation.stage(Stage::Optimized)?;
        let (moved, operations) = (collectives(module), flops_per_device(module));
        let sum = |of: fn(&Collective) -> u64| {
            moved.iter().fold(0_u64, |sum, each| sum.saturating_add(of(each).saturating_mul(each.assumed_trips)))
        };
        let memory = peak_bytes_per_device(program);
        let time = run_time(program, &moved, options.hosts);
        Some(Price { time, received: sum(|each| each.received), collectives: sum(|_| 1), operations, memory })
    }

    /// Bytes beyond a limit.
    pub fn excess(&self, limit: Option<u64>) -> u64 {
        limit.map_or(0, |limit| self.memory.saturating_sub(limit))
    }

    /// The order of prices: first by the memory beyond the limit, then by time, then by bytes received.
    pub fn order(&self, other: &Price, limit: Option<u64>) -> Ordering {
        let excess = self.excess(limit).cmp(&other.excess(limit));
        let (own, others) = (self.time.total(), other.time.total());
        let difference = own - others;
        let time = match difference.abs() <= SAME_TIME * own.max(others) {
            true => Ordering::Equal,
            false => difference.total_cmp(&0.0),
        };
        excess.then(time).then(self.received.cmp(&other.received))
    }
}

/// Prices candidates of one program.
pub struct Judge<'a> {
    module: &'a Module,
    options: &'a Options,
    /// Maximum bytes of a device.
    limit: Option<u64>,
    statements: usize,
    /// The names of the axes, by position.
    axes: Vec<String>,
    /// For each decision, the number of axes that an annotation there counts as by itself.
    efforts: Vec<usize>,
}

impl<'a> Judge<'a> {
    /// For a program at the stage `differentiated`, and the decisions about it.
    pub fn new(module: &'a Module, options: &'a Options, limit: Option<u64>, space: &DecisionSpace) -> Judge<'a> {
        let mut statements = 0;
        module.func.body.walk(&mut |_| statements += 1);
        let axes = module.mesh.axes.iter().map(|axis| axis.name.clone()).collect();
        let effort = |group: &SiteGroup| if group.kind == SiteKind::Named { EFFORT_OF_NAMED } else { 1 };
        let efforts = space.groups.iter().map(effort).collect();
        Judge { module, options, limit, statements, axes, efforts }
    }

    /// The names of the axes, by position.
    pub fn axes(&self) -> &[String] {
        &self.axes
    }

    /// The number of statements of the program.
    pub fn statements(&self) -> usize {
        self.statements
    }

    /// The order of two candidates; the one with fewer axes comes first among equals.
    pub fn order(&self, a: (&Candidate, &Price), b: (&Candidate, &Price)) -> Ordering {
        a.1.order(b.1, self.limit).then_with(|| self.axes_written(a.0).cmp(&self.axes_written(b.0)))
    }

    /// Whether another candidate is as good as the best one, as far as an estimate can tell.
    pub fn is_alike(&self, best: &Price, other: &Price) -> bool {
        best.excess(self.limit) == other.excess(self.limit) && other.time.total() <= best.time.total() * ALIKE
    }

    /// The order of candidates that take about the same time.
    pub fn order_of_alike(&self, a: (&Candidate, &Price), b: (&Candidate, &Price)) -> Ordering {
        let bytes = a.1.received.cmp(&b.1.received).then(a.1.memory.cmp(&b.1.memory));
        bytes.then_with(|| self.axes_written(a.0).cmp(&self.axes_written(b.0))).then_with(|| self.order(a, b))
    }

    fn axes_written(&self, candidate: &Candidate) -> usize {
        let decided = candidate.iter().zip(&self.efforts).filter_map(|(dims, effort)| Some((dims.as_ref()?, effort)));
        decided.map(|(dims, effort)| effort + dims.iter().map(Vec::len).sum::<usize>()).sum()
    }

    /// The price of each candidate; the inner None if the program cannot be compiled so, the outer None if the time was over.
    pub fn prices(
        &self,
        space: &DecisionSpace,
        candidates: &[Candidate],
        end: Option<Instant>,
    ) -> Vec<Option<Option<Price>>> {
        let mut prices = vec![None; candidates.len()];
        let next = AtomicUsize::new(0);
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = threads.min(MAX_THREADS).min(candidates.len());
        let (check, hosts, room) = (&self.options.check, self.options.hosts, self.options.room);
        let work = || {
            // Plans are not shared between threads.
            let mut options =
                Options { check: check.clone(), hosts, room, plans: Plans::default(), ..Options::default() };
            let mut done = Vec::new();
            loop {
                let at = next.fetch_add(1, AtomicOrdering::Relaxed);
                let Some(candidate) = candidates.get(at) else { return done };
                if end.is_some_and(|end| Instant::now() >= end) {
                    return done;
                }
                options.fixed = Some(space.fixed(candidate));
                let compilation = compile_module(self.module.clone(), &options);
                done.push((at, compilation.ok().and_then(|compilation| Price::of(&compilation, &options))));
            }
        };
        let done = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            workers
                .into_iter()
                .flat_map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect::<Vec<_>>()
        });
        done.into_iter().for_each(|(at, price)| prices[at] = Some(price));
        prices
    }
}
