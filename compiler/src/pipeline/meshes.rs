//! The compilation of a program with several meshes: one program for each of them.

use super::one_mesh::{PipelineRun, Reached};
use super::options::{Compilation, MeshCompilation, Options};
use super::passes::TIDY;
use super::several::{MeshCode, joined};
use crate::hosts::all_devices;
use crate::report::timeline::timeline;
use spmdc_abi::{Layout, Program, Site};
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_inspect::verify::Contract;
use spmdc_ir::program::{Module, Stage};
use spmdc_kernel::loops::Kernel;
use spmdc_passes::project::ahead::{LoopCuts, loop_cuts};
use spmdc_passes::project::drawings::{drawings, has_drawings, with_drawings};
use spmdc_passes::project::{Projected, project};
use std::collections::BTreeMap;
use std::time::Duration;

/// The largest multiple of its distance by which a mesh works ahead. Each transfer holds one value, so two meshes that follow each
/// other can be at most two trips apart.
const FURTHEST: u64 = 2;

/// Maximum share of the time of a plan that another one may need to be chosen instead, as it needs more memory.
const GAIN: f64 = 0.98;

/// From a module at `typed` or `differentiated` to the program of all meshes.
pub fn compile_meshes(
    module: Module,
    options: &Options,
    site: &dyn Fn(Span) -> Site,
) -> Result<Compilation, Vec<Diagnostic>> {
    debug_assert!(module.stage <= Stage::Differentiated, "later stages have one mesh");
    let (mut run, mut out) = (PipelineRun::new(options), Compilation::default());
    let mut m = module;
    if m.stage == Stage::Typed {
        if run.keep(&m, &mut out)? == Reached::Stop {
            return Ok(run.finish(out));
        }
        m = run.run(TIDY, m);
        m.stage = Stage::Differentiated;
    }
    if run.keep(&m, &mut out)? == Reached::Stop {
        return Ok(run.finish(out));
    }
    run.start();
    let mut projected = project(&m)?;
    run.time("project");
    if let Some(hosts) = options.hosts {
        let all = all_devices(&m.mesh);
        projected.parts.iter_mut().try_for_each(|part| hosts.place(&mut part.module.mesh, &all))?;
    }
    let MeshCompilations { parts, program, timings, doubtful } = chosen(&m, &projected, options, site)?;
    (out.parts, out.timings, out.doubtful) = (parts, timings, doubtful);
    if let Some((program, kernels)) = program {
        (out.program, out.kernels) = (Some(program), kernels);
    }
    Ok(run.finish(out))
}

/// The compilations of all meshes.
struct MeshCompilations {
    parts: Vec<MeshCompilation>,
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
) -> Result<MeshCompilations, Vec<Diagnostic>> {
    let modules: Vec<&Module> = projected.parts.iter().map(|part| &part.module).collect();
    let cuts = loop_cuts(&modules);
    let mut best = compiled(whole, projected, (&cuts, 0), options, site)?;
    if cuts.is_empty() {
        return Ok(best);
    }
    let complete = Options { stop_after: None, ..options.clone() };
    let time = |compiled: &MeshCompilations| Some(timeline(&compiled.program.as_ref()?.0, options.hosts)?.total);
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

/// Whether all sends of a transfer have one layout, and all receives: after a loop is cut, its transfers are in several loops.
fn has_one_layout_each(program: &Program) -> bool {
    program.mesh_programs.iter().all(|part| {
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
) -> Result<MeshCompilations, Vec<Diagnostic>> {
    let (mut timings, mut doubtful) = (Vec::new(), false);
    // A program that prints layouts of others is compiled when these have them.
    let mut order: Vec<usize> = (0..projected.parts.len()).collect();
    order.sort_by_key(|&at| has_drawings(&projected.parts[at].module));
    let mut drawn = BTreeMap::new();
    let mut compiled = Vec::new();
    for at in order {
        let part = &projected.parts[at];
        let named = part.module.mesh.named.first().cloned().expect("the mesh of a part has a name");
        let run = PipelineRun::new(options);
        run.checker.check("project", &part.module, Contract::Stage);
        let module = cuts.applied(at, factor, part.module.clone());
        run.checker.check("work_ahead", &module, Contract::Stage);
        let compilation = run.compile(with_drawings(module, &drawn), site)?;
        drawn.extend(compilation.stages.last().map(drawings).unwrap_or_default());
        timings.extend(&compilation.timings);
        doubtful |= compilation.doubtful;
        compiled.push((at, named, compilation));
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
        parts.push(MeshCompilation { mesh, compilation });
    }
    let is_complete = programs.len() == parts.len();
    let program = is_complete.then(|| joined(whole, programs, &projected.channels, site));
    Ok(MeshCompilations { parts, program, timings, doubtful })
}
