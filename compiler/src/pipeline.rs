//! The whole compiler, in order.
//!
//! Each stage has a contract. `Watch` checks it after each pass in debug builds and under `--verify`, so that an error names the
//! pass; a program that was read as a dump is always checked. Callers that need the program in between (`dump`, reports, tests)
//! take it from [`Compilation::stages`]. A dump is a program at its stage: its compilation starts after that stage.

mod memory;
mod several;

pub use self::memory::MemoryLimit;
use self::several::{MeshCode, joined};
pub use crate::hosts::HostOptions;
use crate::hosts::all_devices;
use crate::report::timeline::timeline;
use crate::totals::{collectives, cost};
use spmdc_abi::{Layout, Program, Site};
pub use spmdc_check::CheckOptions;
use spmdc_check::check;
use spmdc_check::sources::SourceSet;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::{FileId, Lines, Span};
use spmdc_ir::cost::Room;
use spmdc_ir::layout::mesh::NamedMesh;
use spmdc_ir::program::{Module, Stage};
use spmdc_ir::reshard::Plans;
use spmdc_ir::verify::{Contract, Violation, verify, verify_change, verify_layouts};
use spmdc_kernel::loops::Kernel;
use spmdc_passes::choose_alignments::choose_alignments;
use spmdc_passes::combine_collectives::combine_collectives;
use spmdc_passes::commute_reshapes::commute_reshapes;
use spmdc_passes::cse::cse;
use spmdc_passes::dce::dce;
use spmdc_passes::deepen_halos::deepen_halos;
use spmdc_passes::distribute_factorizations::distribute_factorizations;
use spmdc_passes::distribute_scans::distribute_scans;
use spmdc_passes::distribute_sorts::distribute_sorts;
use spmdc_passes::distribute_transforms::distribute_transforms;
use spmdc_passes::erase_reduced::erase_reduced;
use spmdc_passes::exchange_ghosts::exchange_ghosts;
use spmdc_passes::exchange_halos::exchange_halos;
use spmdc_passes::hoist::hoist;
use spmdc_passes::inline_loops::inline_loops;
use spmdc_passes::insert_reshards::insert_reshards;
use spmdc_passes::local_argmax::local_argmax;
use spmdc_passes::order_cuts::order_cuts;
use spmdc_passes::orient_products::orient_products;
use spmdc_passes::overlap::overlap;
use spmdc_passes::partition::partition;
use spmdc_passes::project::ahead::{LoopCuts, loop_cuts};
use spmdc_passes::project::drawings::{drawings, has_drawings, with_drawings};
use spmdc_passes::project::{Projected, project};
use spmdc_passes::propagate::refine::{Cuts, Refined, both};
use spmdc_passes::propagate::{Choices, Propagated, Provenance, propagate};
use spmdc_passes::revise_regions::revise_regions;
use spmdc_passes::share_halos::share_halos;
use spmdc_passes::simplify::simplify;
use spmdc_passes::sink::sink;
use spmdc_passes::unroll_loops::unroll_loops;
use spmdc_schedule::fuse::fuse;
use spmdc_schedule::order::schedule;
use spmdc_schedule::plan_memory::{Planned, plan_memory};
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::time::{Duration, Instant};

/// The input of a compilation, and its last stage.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The entry function, the mesh and the constants that the user sets.
    pub check: CheckOptions,
    /// The last stage; None to compile to the end.
    pub stop_after: Option<Stage>,
    /// Some to check the contract of each stage, as in debug builds, and to replay the memory plan, up to this many runs of
    /// neighbouring elements.
    pub verify: Option<u64>,
    /// Known plans from one layout to another, shared by compilations with the same value.
    pub plans: Plans,
    /// The hosts of the devices; None if nothing is known of them.
    pub hosts: Option<HostOptions>,
    /// What each process may use at most; None if nothing bounds it.
    pub memory: Option<MemoryLimit>,
    /// Whether memory may be traded against bytes that devices receive. It is not where a program would need more than `memory` else.
    pub room: Room,
}

/// The result of a compilation.
#[derive(Debug, Default)]
pub struct Compilation {
    /// The program after each stage that it went through.
    pub stages: Vec<Module>,
    /// The source of the axes of each value; empty for a dump read after propagation.
    pub provenance: Provenance,
    /// The program for the runtime; None if the compiler stopped before.
    pub program: Option<Program>,
    /// The loop nests of the program, by number.
    pub kernels: Vec<Kernel>,
    /// For each value of the optimized module, the number of its buffer in the program; None for those that are not in memory.
    pub buffer_of: Vec<Option<usize>>,
    /// The hosts that it was compiled for.
    pub hosts: Option<HostOptions>,
    /// Warnings of the checker.
    pub warnings: Vec<Diagnostic>,
    /// Whether a requested replay of the memory plan is incomplete because the plan is too large or nested too deep.
    pub doubtful: bool,
    /// The compilations of the programs of several meshes, from the stage `differentiated` on; empty for a program with one mesh.
    pub parts: Vec<PartCompilation>,
    /// The time of each part, in order.
    pub timings: Vec<(&'static str, Duration)>,
}

/// The compilation of the program of one of several meshes.
#[derive(Debug)]
pub struct PartCompilation {
    /// The mesh.
    pub mesh: NamedMesh,
    /// Its modules and the rest.
    pub compilation: Compilation,
}

impl Compilation {
    /// The compilations of all meshes: of a program with one mesh, this one.
    pub fn of_meshes(&self) -> Vec<&Compilation> {
        match self.parts.is_empty() {
            true => vec![self],
            false => self.parts.iter().map(|part| &part.compilation).collect(),
        }
    }

    /// The program after a stage, or as it was read if that was at a later stage.
    pub fn stage(&self, stage: Stage) -> Option<&Module> {
        self.stages.iter().find(|module| module.stage >= stage)
    }
}

/// From sources to a schedule and loop nests, or everything that is wrong with the program.
pub fn compile(set: &SourceSet, options: &Options) -> Result<Compilation, Vec<Diagnostic>> {
    let compilation = compile_once(set, options)?;
    let is_too_large = |limit: MemoryLimit| compilation.program.as_ref().is_some_and(|program| !limit.holds(program));
    if options.room == Room::Ample
        && let Some(limit) = options.memory.filter(|limit| is_too_large(*limit))
    {
        let smaller = compile_once(set, &Options { room: Room::Scarce, ..options.clone() })?;
        if smaller.program.as_ref().is_some_and(|program| limit.holds(program)) {
            return Ok(smaller);
        }
    }
    Ok(compilation)
}

fn compile_once(set: &SourceSet, options: &Options) -> Result<Compilation, Vec<Diagnostic>> {
    let (started, watch) = (Instant::now(), Watch::new(options));
    let mut run = PipelineRun { options, started, watch, out: Compilation::default() };
    let (mut module, warnings) = check(set, &options.check)?;
    (run.out.warnings, run.out.hosts) = (warnings, options.hosts);
    if let (Some(hosts), false) = (options.hosts, module.mesh.is_several()) {
        let all = all_devices(&module.mesh);
        hosts.place(&mut module.mesh, &all)?;
    }
    if set.file(SourceSet::ROOT).program.stage.is_some() {
        verify(&module).map_err(|violations| untrue(&module, violations))?;
    }
    run.time("check");
    let lines: Vec<Lines> = set.files.iter().map(|file| Lines::new(&file.text)).collect();
    let site = |span: Span| site(set, &lines, span);
    match module.mesh.is_several() {
        true => run.several(module, &site)?,
        false => run.whole(module, &site)?,
    }
    if let Some(program) = &mut run.out.program {
        program.fingerprint = fingerprint(program, &run.out.kernels);
        program.files = set.files.iter().map(|file| file.name.clone()).collect();
        program.compile_ms = run.out.timings.iter().map(|(_, time)| time.as_secs_f64() * 1e3).sum();
    }
    Ok(run.out)
}

/// A hash of a program without files and times, the same on every 64-bit little-endian machine: FNV-1a. Processes of a job compare it.
fn fingerprint(program: &Program, kernels: &[Kernel]) -> u64 {
    struct Fnv(u64);
    impl Hasher for Fnv {
        fn write(&mut self, bytes: &[u8]) {
            let next = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            self.0 = bytes.iter().fold(self.0, next);
        }
        fn finish(&self) -> u64 {
            self.0
        }
    }
    impl Extend<u8> for Fnv {
        fn extend<T: IntoIterator<Item = u8>>(&mut self, bytes: T) {
            bytes.into_iter().for_each(|byte| self.write(&[byte]));
        }
    }
    debug_assert!(program.files.is_empty() && program.compile_ms == 0.0, "these are set later");
    let mut hash = postcard::to_extend(program, Fnv(0xcbf2_9ce4_8422_2325)).expect("every program can be encoded");
    kernels.hash(&mut hash);
    hash.finish()
}

struct PipelineRun<'a> {
    options: &'a Options,
    started: Instant,
    watch: Watch,
    out: Compilation,
}

/// Where the passes from module to module ended.
enum Reached {
    /// At the stage after which the caller wants to stop.
    Stop,
    /// After the last stage.
    End,
}

/// Records the time of a part.
fn time(started: &mut Instant, timings: &mut Vec<(&'static str, Duration)>, what: &'static str) {
    let now = Instant::now();
    timings.push((what, now - *started));
    *started = now;
}

impl PipelineRun<'_> {
    /// Compiles a program with one mesh.
    fn whole(&mut self, module: Module, site: &dyn Fn(Span) -> Site) -> Result<(), Vec<Diagnostic>> {
        match self.stages(module)? {
            Reached::Stop => {}
            Reached::End => {
                let module = self.out.stages.last().expect("the optimized program is kept");
                let fused = fuse(&module.func, &module.mesh);
                time(&mut self.started, &mut self.out.timings, "fuse");
                let schedule = schedule(module, &fused)?;
                time(&mut self.started, &mut self.out.timings, "schedule");
                let planned = plan_memory(module, &schedule, site, self.options.verify);
                let Planned { program, kernels, doubtful, buffer_of } = planned.map_err(|fault| {
                    let message = format!("the plan of memory is wrong: {fault}");
                    vec![Diagnostic::error(Code::E0999, Span::default(), message)]
                })?;
                self.time("plan_memory");
                (self.out.program, self.out.kernels, self.out.doubtful) = (Some(program), kernels, doubtful);
                self.out.buffer_of = buffer_of;
            }
        }
        Ok(())
    }

    /// Compiles a program with several meshes: one program for each of them.
    fn several(&mut self, module: Module, site: &dyn Fn(Span) -> Site) -> Result<(), Vec<Diagnostic>> {
        debug_assert!(module.stage <= Stage::Differentiated, "later stages have one mesh");
        let mut m = module;
        if m.stage == Stage::Typed {
            m = self.watch.pass("check", m);
            let stops = self.stops(&m)?;
            self.out.stages.push(m.clone());
            if stops {
                return Ok(());
            }
            m = self.watch.tidied(m);
            m.stage = Stage::Differentiated;
        }
        let stops = self.stops(&m)?;
        self.out.stages.push(m.clone());
        if stops {
            return Ok(());
        }
        let mut projected = project(&m)?;
        self.time("project");
        if let Some(hosts) = self.options.hosts {
            let all = all_devices(&m.mesh);
            projected.parts.iter_mut().try_for_each(|part| hosts.place(&mut part.module.mesh, &all))?;
        }
        let chosen = chosen(&m, &projected, self.options, site)?;
        self.out.timings.extend(chosen.timings);
        self.out.doubtful = chosen.doubtful;
        self.out.parts = chosen.parts;
        if let Some((program, kernels)) = chosen.program {
            (self.out.program, self.out.kernels) = (Some(program), kernels);
        }
        Ok(())
    }

    fn time(&mut self, what: &'static str) {
        time(&mut self.started, &mut self.out.timings, what);
    }

    /// Runs the passes from module to module, and keeps the module of each stage.
    fn stages(&mut self, mut m: Module) -> Result<Reached, Vec<Diagnostic>> {
        let mut compared = None;
        if m.stage <= Stage::Typed {
            m = self.watch.pass("check", m);
            if self.stops(&m)? {
                self.out.stages.push(m);
                return Ok(Reached::Stop);
            }
            self.out.stages.push(m.clone());
            m = self.watch.tidied(m);
            if self.options.stop_after == Some(Stage::Differentiated) {
                m.stage = Stage::Differentiated;
            }
        }
        if m.stage <= Stage::Differentiated {
            if m.stage == Stage::Differentiated {
                if self.stops(&m)? {
                    self.out.stages.push(m);
                    return Ok(Reached::Stop);
                }
                self.out.stages.push(m.clone());
            }
            m = self.watch.pass("erase_reduced", erase_reduced(m));
            m = self.watch.pass("commute_reshapes", commute_reshapes(m));
            self.time("simplify");
            let ProgramLayout { propagated, partitioned, .. } =
                cheapest(m, (&self.options.plans, self.options.room), &self.watch);
            (m, self.out.provenance) = (propagated.module, propagated.provenance);
            compared = partitioned.into_inner();
            self.time("propagate");
        }
        if m.stage <= Stage::Propagated {
            if self.stops(&m)? {
                self.out.stages.push(m);
                return Ok(Reached::Stop);
            }
            self.out.stages.push(m.clone());
            m = match compared {
                Some((partitioned, _)) => partitioned,
                None => {
                    let PipelineRun { watch, started, out, options } = self;
                    let plans = (&options.plans, options.room);
                    partitioned(m, plans, watch, &mut |what| time(started, &mut out.timings, what))
                }
            };
        }
        if m.stage <= Stage::Partitioned {
            if self.stops(&m)? {
                self.out.stages.push(m);
                return Ok(Reached::Stop);
            }
            self.out.stages.push(m.clone());
            m = self.watch.pass("inline_loops", inline_loops(m));
            m = self.watch.pass("unroll_loops", unroll_loops(m));
            m = self.watch.tidied(m);
            m = self.watch.pass("sink", sink(m));
            m = self.watch.pass("combine_collectives", combine_collectives(m));
            m = self.watch.pass("overlap", overlap(m));
            m.stage = Stage::Optimized;
            self.time("optimize");
        }
        let stops = self.stops(&m)?;
        self.out.stages.push(m);
        Ok(if stops { Reached::Stop } else { Reached::End })
    }

    /// Whether this stage is the last. An error if a pass broke a contract.
    fn stops(&mut self, module: &Module) -> Result<bool, Vec<Diagnostic>> {
        if let Err(violations) = verify_layouts(module) {
            self.watch.broke(None, violations);
        }
        if let Some(errors) = self.watch.take_errors() {
            return Err(errors);
        }
        Ok(self.options.stop_after == Some(module.stage))
    }
}

/// Checks the result of each pass against the contract of its stage.
pub struct Watch {
    /// Whether it checks after each pass; otherwise [`verify_layouts`] checks once for each stage.
    is_on: bool,
    /// The module that was checked last, and the contract that it keeps: many passes change nothing.
    checked: RefCell<Option<(Module, Contract)>>,
    broken: RefCell<Option<Broken>>,
}

/// A violated contract.
struct Broken {
    /// The first pass that violated it; None if only the layouts of the whole stage were checked.
    pass: Option<&'static str>,
    violations: Vec<Violation>,
}

impl Watch {
    /// Checks after each pass if these options or the build ask for it.
    pub fn new(options: &Options) -> Watch {
        Watch {
            is_on: cfg!(debug_assertions) || options.verify.is_some(),
            checked: RefCell::default(),
            broken: RefCell::default(),
        }
    }

    /// Checks the module that a pass has made, at its stage.
    pub fn pass(&self, pass: &'static str, module: Module) -> Module {
        self.check(pass, &module, Contract::Stage);
        module
    }

    /// Checks the module that a pass has made on the way to the next stage.
    fn pass_between(&self, pass: &'static str, module: Module) -> Module {
        self.check(pass, &module, Contract::Between);
        module
    }

    fn check(&self, pass: &'static str, module: &Module, contract: Contract) {
        if !self.is_on {
            return;
        }
        let mut checked = self.checked.borrow_mut();
        if checked.as_ref().is_some_and(|(known, by)| *by == contract && known == module) {
            return;
        }
        match verify_change(module, contract, checked.as_ref().map(|(known, _)| known)) {
            Ok(()) => *checked = Some((module.clone(), contract)),
            Err(violations) => self.broke(Some(pass), violations),
        }
    }

    fn broke(&self, pass: Option<&'static str>, violations: Vec<Violation>) {
        self.broken.borrow_mut().get_or_insert(Broken { pass, violations });
    }

    /// E0999 for each violation by the first pass that breaks a contract, taken out of the record; None if none does.
    pub fn take_errors(&self) -> Option<Vec<Diagnostic>> {
        self.broken.take().map(Broken::diagnostics)
    }

    /// Simplifies, and removes repeated and unused statements.
    fn tidied(&self, m: Module) -> Module {
        let m = self.pass("simplify", simplify(m));
        let m = self.pass("cse", cse(m));
        self.pass("dce", dce(m))
    }
}

impl Broken {
    fn diagnostics(self) -> Vec<Diagnostic> {
        let error = |violation: Violation| {
            let pass = self.pass.map_or("some pass".to_string(), |pass| format!("the pass `{pass}`"));
            let message = format!("{pass} breaks the contract of its stage: {}", violation.text);
            Diagnostic::error(Code::E0999, violation.span, message)
        };
        self.violations.into_iter().map(error).collect()
    }
}

/// E0109: the dump contains statements that no program has at its stage.
fn untrue(module: &Module, violations: Vec<Violation>) -> Vec<Diagnostic> {
    let error = |violation: Violation| {
        let message = format!("this dump is no program at stage `{}`: {}", module.stage.name(), violation.text);
        Diagnostic::error(Code::E0109, violation.span, message)
    };
    violations.into_iter().map(error).collect()
}

/// From `propagated` to `partitioned`; calls `after` after each part.
fn partitioned(
    mut m: Module,
    (plans, room): (&Plans, Room),
    watch: &Watch,
    after: &mut dyn FnMut(&'static str),
) -> Module {
    m = watch.pass("local_argmax", local_argmax(m));
    m = watch.pass("dce", dce(m));
    m = watch.pass("revise_regions", revise_regions(m));
    after("local_argmax");
    m = watch.pass("order_cuts", order_cuts(m));
    after("order_cuts");
    m = watch.pass("choose_alignments", choose_alignments(m));
    after("choose_alignments");
    m = watch.pass("insert_reshards", insert_reshards(m, plans, room));
    after("insert_reshards");
    m = watch.pass_between("deepen_halos", deepen_halos(m, room));
    m = watch.pass_between("distribute_factorizations", distribute_factorizations(m));
    m = watch.pass_between("distribute_sorts", distribute_sorts(m));
    m = watch.pass_between("distribute_transforms", distribute_transforms(m));
    m = watch.pass_between("exchange_ghosts", dce(exchange_ghosts(m)));
    m = watch.pass_between("exchange_halos", exchange_halos(m));
    m = watch.pass_between("dce", dce(m));
    after("exchange_halos");
    m = watch.pass_between("distribute_scans", distribute_scans(m));
    after("distribute_scans");
    m = watch.pass("partition", partition(m, plans));
    m = watch.pass("orient_products", orient_products(m));
    m = watch.pass("hoist", hoist(m, room));
    m = watch.pass("cse", cse(m));
    after("partition");
    m = watch.pass("share_halos", share_halos(m));
    after("share_halos");
    m
}

/// Maximum number of ways to cut axes that are tried.
const MAX_REFINED: usize = 3;

/// A way to lay out the whole program.
struct ProgramLayout<'a> {
    propagated: Propagated,
    plans: (&'a Plans, Room),
    watch: &'a Watch,
    /// The program at `partitioned` and its cost, computed only if layouts are compared.
    partitioned: OnceCell<(Module, f64)>,
}

impl<'a> ProgramLayout<'a> {
    fn new(mut propagated: Propagated, plans: (&'a Plans, Room), watch: &'a Watch) -> ProgramLayout<'a> {
        propagated.module = watch.pass("propagate", propagated.module);
        ProgramLayout { propagated, plans, watch, partitioned: OnceCell::new() }
    }

    fn cost(&self) -> f64 {
        self.laid_out().1
    }

    fn laid_out(&self) -> &(Module, f64) {
        self.partitioned.get_or_init(|| {
            let module = partitioned(self.propagated.module.clone(), self.plans, self.watch, &mut |_| {});
            let cost = cost(&module);
            (module, cost)
        })
    }

    /// Whether a loop contains a barrier.
    fn repeats(&self) -> bool {
        collectives(&self.laid_out().0).iter().any(|step| step.trips != Some(1))
    }
}

/// Layouts for all values. Where propagation could have chosen otherwise, the program is compiled with the other choice too, and
/// the cheaper layout stays: first the order of the program, then each other choice together with the better ones before it, then
/// axes in parts, finally whole small values in loops.
fn cheapest<'a>(m: Module, plans: (&'a Plans, Room), watch: &'a Watch) -> ProgramLayout<'a> {
    let mut best = ProgramLayout::new(propagate(m.clone(), Choices::NONE, None), plans, watch);
    let mut chosen = Choices::NONE;
    let (open, cuts) = (best.propagated.open, std::mem::take(&mut best.propagated.cuts));
    let later_first = Choices { later_first: open.later_first, ..Choices::NONE };
    let cuts_pass = Choices { cuts_pass: open.cuts_pass, ..Choices::NONE };
    let inside_hosts = Choices { inside_hosts: open.inside_hosts, ..Choices::NONE };
    for other in [later_first, cuts_pass, inside_hosts].into_iter().filter(|&other| other != Choices::NONE) {
        let other = chosen.and(other);
        let way = ProgramLayout::new(propagate(m.clone(), other, None), plans, watch);
        if way.cost() < best.cost() {
            (best, chosen) = (way, other);
        }
    }
    if !cuts.is_empty() {
        best = cheapest_in_parts(&m, best, chosen, cuts);
    }
    if open.small_whole && best.repeats() {
        let choices = Choices { small_whole: true, ..chosen };
        let way = ProgramLayout::new(propagate(m, choices, None), plans, watch);
        if way.cost() < best.cost() {
            best = way;
        }
    }
    best
}

/// As [`cheapest`], with axes cut at the positions at which reshapes cut the dimensions that they split; `whole` is the best layout
/// without cuts. Parameters and results are split over whole axes.
fn cheapest_in_parts<'a>(
    m: &Module,
    whole: ProgramLayout<'a>,
    chosen: Choices,
    mut cuts: Vec<Cuts>,
) -> ProgramLayout<'a> {
    if cuts.len() > 1 {
        // An axis that one reshape cuts may have to be cut for the next one, too.
        cuts.push(cuts.iter().fold(Cuts::new(), |all, more| both(&all, more)));
    }
    let mut best: Option<ProgramLayout<'a>> = None;
    let mut tried: Vec<Cuts> = Vec::new();
    while let Some(next) = cuts.pop() {
        if tried.len() == MAX_REFINED {
            break;
        }
        let Some(refined) = (!tried.contains(&next)).then(|| Refined::new(m, &next)).flatten() else { continue };
        let free = propagate(refined.module.clone(), chosen, None);
        let borders = refined.borders(&whole.propagated.module, &free.module);
        let mut propagated = propagate(refined.module.clone(), chosen, Some(&borders));
        let known = vec![(whole.propagated.provenance.clone(), refined.wholes()), (free.provenance, refined.same())];
        propagated.provenance = propagated.provenance.behind(known);
        // Cuts of parts that a later reshape needs.
        cuts.extend(propagated.cuts.iter().map(|more| both(&next, &refined.of_wholes(more))));
        let way = ProgramLayout::new(propagated, whole.plans, whole.watch);
        if way.cost() < best.as_ref().unwrap_or(&whole).cost() {
            best = Some(way);
        }
        tried.push(next);
    }
    best.unwrap_or(whole)
}

/// The largest multiple of its distance by which a mesh works ahead. Each transfer holds one value, so two meshes that follow each
/// other can be at most two trips apart.
const FURTHEST: u64 = 2;

/// Maximum share of the time of a plan that another one may need to be chosen instead, as it needs more memory.
const GAIN: f64 = 0.98;

/// The compilations of all meshes.
struct CompiledParts {
    parts: Vec<PartCompilation>,
    /// None if the compiler stopped before.
    program: Option<(Program, Vec<Kernel>)>,
    timings: Vec<(&'static str, Duration)>,
    doubtful: bool,
}

/// The programs of all meshes, which work ahead in loops as far as the simulated timeline gains from it, and as memory has room.
fn chosen(
    whole: &Module,
    projected: &Projected,
    options: &Options,
    site: &dyn Fn(Span) -> Site,
) -> Result<CompiledParts, Vec<Diagnostic>> {
    let modules: Vec<&Module> = projected.parts.iter().map(|part| &part.module).collect();
    let cuts = loop_cuts(&modules);
    let mut best = compiled(whole, projected, (&cuts, 0), options, site)?;
    if cuts.is_empty() {
        return Ok(best);
    }
    let complete = Options { stop_after: None, ..options.clone() };
    let time = |compiled: &CompiledParts| Some(timeline(&compiled.program.as_ref()?.0, options.hosts)?.total);
    let mut least = match options.stop_after {
        None => time(&best),
        Some(_) => time(&compiled(whole, projected, (&cuts, 0), &complete, site)?),
    };
    for factor in 1..=FURTHEST {
        let other = compiled(whole, projected, (&cuts, factor), &complete, site)?;
        let fits = |program: &Program| options.memory.is_none_or(|limit| limit.holds(program));
        if other.program.as_ref().is_some_and(|(program, _)| !has_one_layout_each(program) || !fits(program)) {
            continue;
        }
        // None if the meshes would wait for each other for ever.
        if let (Some(known), Some(found)) = (least, time(&other))
            && found < known * GAIN
        {
            least = Some(found);
            best = match options.stop_after {
                None => other,
                Some(_) => compiled(whole, projected, (&cuts, factor), options, site)?,
            };
        }
    }
    Ok(best)
}

/// Whether all sends of a transfer have one layout, and all receives: those of a loop that is cut stand in several loops.
fn has_one_layout_each(program: &Program) -> bool {
    program.parts.iter().all(|part| {
        let mut known: BTreeMap<u32, &Layout> = BTreeMap::new();
        let mut messages = part.program.messages().into_iter();
        messages.all(|message| *known.entry(message.channel).or_insert(&message.layout) == &message.layout)
    })
}

/// The programs of all meshes, which work ahead by this multiple of their distances.
fn compiled(
    whole: &Module,
    projected: &Projected,
    (cuts, factor): (&LoopCuts, u64),
    options: &Options,
    site: &dyn Fn(Span) -> Site,
) -> Result<CompiledParts, Vec<Diagnostic>> {
    let (mut timings, mut doubtful) = (Vec::new(), false);
    // A program that prints layouts of others is compiled when these have them.
    let mut order: Vec<usize> = (0..projected.parts.len()).collect();
    order.sort_by_key(|&at| has_drawings(&projected.parts[at].module));
    let mut drawn = BTreeMap::new();
    let mut compiled = Vec::new();
    for at in order {
        let part = &projected.parts[at];
        let named = part.module.mesh.named.first().cloned().expect("the mesh of a part has a name");
        let (started, watch) = (Instant::now(), Watch::new(options));
        let mut run = PipelineRun { options, started, watch, out: Compilation::default() };
        let module = run.watch.pass("project", part.module.clone());
        let module = run.watch.pass("work_ahead", cuts.applied(at, factor, module));
        run.whole(with_drawings(module, &drawn), site)?;
        drawn.extend(run.out.stages.last().map(drawings).unwrap_or_default());
        timings.append(&mut run.out.timings.clone());
        doubtful |= run.out.doubtful;
        compiled.push((at, named, run.out));
    }
    compiled.sort_by_key(|(at, ..)| *at);
    let (mut programs, mut parts) = (Vec::new(), Vec::new());
    for (at, mesh, mut compilation) in compiled {
        let part = &projected.parts[at];
        if let Some(program) = compilation.program.clone() {
            let kernels = std::mem::take(&mut compilation.kernels);
            let (params, results) = (part.params.clone(), part.results.clone());
            programs.push(MeshCode { mesh: mesh.clone(), program, kernels, params, results });
        }
        parts.push(PartCompilation { mesh, compilation });
    }
    let is_complete = programs.len() == parts.len();
    let program = is_complete.then(|| joined(whole, programs, &projected.channels, site));
    Ok(CompiledParts { parts, program, timings, doubtful })
}

/// The source position of a span, for the runtime.
fn site(set: &SourceSet, lines: &[Lines], span: Span) -> Site {
    let FileId(file) = span.file;
    match set.files.get(file as usize).zip(lines.get(file as usize)) {
        Some((source, lines)) if span != Span::default() => {
            let (line, column) = lines.line_column(&source.text, span.start as usize);
            Site { file, line: line as u32, column: column as u32 }
        }
        Some(_) | None => Site::default(),
    }
}
