//! The compilation of a program with one mesh, or of the part of a program on one of its meshes.

use super::contract::ContractChecker;
use super::layouts::{Trials, cheapest};
use super::options::{Compilation, Options};
use super::passes::{BEFORE_LAYOUT, OPTIMIZE, PARTITION, PROPAGATE, Pass, PassLog, Resources, TIDY, run};
use spmdc_abi::Site;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_inspect::verify::Contract;
use spmdc_ir::program::{Module, Stage};
use spmdc_schedule::fuse::fuse;
use spmdc_schedule::order::schedule;
use spmdc_schedule::plan_memory::{Planned, plan_memory};
use spmdc_schedule::sums::join_sums;
use spmdc_schedule::tiles::tile;
use std::time::Instant;

/// A compilation that is going on.
pub struct PipelineRun<'a> {
    /// The options of the whole compilation.
    pub options: &'a Options,
    /// Checks the result of each pass.
    pub checker: ContractChecker,
    /// The record of the passes that have run.
    log: PassLog,
    started: Instant,
}

/// Where the passes from module to module ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Reached {
    /// At the stage after which the caller wants to stop.
    Stop,
    /// After the last stage.
    End,
}

impl<'a> PipelineRun<'a> {
    /// A compilation that begins now.
    pub fn new(options: &'a Options) -> PipelineRun<'a> {
        let checker = ContractChecker::new(options.verify.is_some());
        PipelineRun { options, checker, log: PassLog::after(options.after), started: Instant::now() }
    }

    /// From a module at any stage to its program.
    pub fn compile(mut self, module: Module, site: &dyn Fn(Span) -> Site) -> Result<Compilation, Vec<Diagnostic>> {
        let mut out = Compilation::default();
        if self.stages(module, &mut out)? == Reached::End {
            self.schedule(&mut out, site)?;
        }
        Ok(self.finish(out))
    }

    /// Adds the record of the passes.
    pub fn finish(self, out: Compilation) -> Compilation {
        let mut timings = self.log.timings;
        timings.extend(out.timings);
        Compilation { timings, after: self.log.kept.or(out.after), ..out }
    }

    /// Runs the passes from module to module, and keeps the module of each stage.
    fn stages(&mut self, mut m: Module, out: &mut Compilation) -> Result<Reached, Vec<Diagnostic>> {
        let mut partitioned = None;
        loop {
            // The stage `differentiated` differs little from `typed`: it is kept if the caller or a dump asks for it.
            let is_passed = m.stage == Stage::Differentiated
                && self.options.stop_after != Some(Stage::Differentiated)
                && !out.stages.is_empty();
            if !is_passed && self.keep(&m, out)? == Reached::Stop {
                return Ok(Reached::Stop);
            }
            m = match m.stage {
                Stage::Typed => {
                    let m = self.run(TIDY, m);
                    Module { stage: Stage::Differentiated, ..m }
                }
                Stage::Differentiated => {
                    let m = self.run(BEFORE_LAYOUT, m);
                    let started = Instant::now();
                    let trials = Trials {
                        resources: self.resources(),
                        checker: &self.checker,
                        after: self.options.after,
                        fixed: self.options.fixed.as_deref(),
                    };
                    let (m, provenance, compared) = cheapest(m, &trials).into_parts();
                    (out.provenance, partitioned) = (provenance, compared);
                    self.log.timings.push((PROPAGATE, started.elapsed()));
                    self.log.passed(PROPAGATE, &m);
                    m
                }
                Stage::Propagated => match partitioned.take() {
                    Some(known) => {
                        self.log.kept = known.log.kept.or(self.log.kept.take());
                        known.module
                    }
                    None => self.run(PARTITION, m),
                },
                Stage::Partitioned => {
                    let m = self.run(OPTIMIZE, m);
                    Module { stage: Stage::Optimized, ..m }
                }
                Stage::Optimized => return Ok(Reached::End),
            };
        }
    }

    /// From the optimized module to steps, buffers and kernels.
    fn schedule(&mut self, out: &mut Compilation, site: &dyn Fn(Span) -> Site) -> Result<(), Vec<Diagnostic>> {
        let module = out.stages.last().expect("the optimized program is kept");
        self.start();
        let fused = fuse(&module.func, &module.mesh);
        self.time("fuse");
        let schedule = schedule(module, &fused)?;
        self.time("schedule");
        let schedule = tile(schedule, &module.func, &module.mesh);
        self.time("tile");
        let schedule = join_sums(schedule, &module.func, &module.mesh);
        self.time("join_sums");
        let planned = plan_memory(module, &schedule, site, self.options.verify);
        let Planned { program, kernels, doubtful, buffer_of } = planned.map_err(|fault| {
            let message = format!("the memory plan is wrong: {fault}");
            vec![Diagnostic::error(Code::E0999, Span::default(), message)]
        })?;
        self.time("plan_memory");
        (out.program, out.kernels, out.doubtful, out.buffer_of) = (Some(program), kernels, doubtful, buffer_of);
        Ok(())
    }

    /// The module after these passes.
    pub fn run(&mut self, passes: &[Pass], m: Module) -> Module {
        run(passes, m, self.resources(), &self.checker, &mut self.log)
    }

    /// Starts the clock of a part that is not a pass.
    pub fn start(&mut self) {
        self.started = Instant::now();
    }

    /// Records the time since the start or the last record, as the time of a part that is not a pass.
    pub fn time(&mut self, part: &'static str) {
        let now = Instant::now();
        self.log.timings.push((part, now - self.started));
        self.started = now;
    }

    fn resources(&self) -> Resources<'a> {
        Resources { plans: &self.options.plans, room: self.options.room }
    }

    /// Keeps the module of a stage, and says whether the compiler stops there. An error if a pass broke a contract.
    pub fn keep(&self, module: &Module, out: &mut Compilation) -> Result<Reached, Vec<Diagnostic>> {
        if module.stage == Stage::Typed {
            self.checker.check("check", module, Contract::Stage);
        }
        self.checker.stage(module)?;
        out.stages.push(module.clone());
        Ok(if self.options.stop_after == Some(module.stage) { Reached::Stop } else { Reached::End })
    }
}
