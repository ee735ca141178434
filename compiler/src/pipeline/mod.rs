//! The whole compiler, in order.
//!
//! `spmdc_check` makes a module at `typed`. The passes bring it to `optimized` (`passes` lists them, `one_mesh` runs them, `layouts`
//! chooses between layouts); a program with several meshes is first projected to one module for each (`meshes`). `spmdc_schedule` makes
//! kernels, buffers and steps of an optimized module. Each stage has a contract, which `contract` checks.
//!
//! Callers that need the program in between (`dump`, reports, tests) take it from [`Compilation::stages`]. A dump is a program at its
//! stage: its compilation starts after that stage.

mod contract;
mod layouts;
mod memory;
mod meshes;
mod one_mesh;
mod options;
mod passes;
mod several;

pub use self::contract::ContractChecker;
pub use self::memory::MemoryLimit;
pub use self::options::{Compilation, MeshCompilation, Options};
pub use self::passes::pass_names;
pub use crate::hosts::HostOptions;
pub use spmdc_check::CheckOptions;

use self::meshes::compile_meshes;
use self::one_mesh::PipelineRun;
use crate::hosts::all_devices;
use spmdc_abi::{Binding, Program, Site};
use spmdc_check::check;
use spmdc_check::sources::{SecondNames, SourceSet};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::{FileId, Lines, Span};
use spmdc_inspect::verify::{Violation, verify};
use spmdc_ir::program::Module;
use spmdc_kernel::loops::Kernel;
use spmdc_layout::cost::Room;
use std::hash::{Hash, Hasher};
use std::time::Instant;

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

/// From a module of one mesh at any stage to its program, whose steps have no source positions.
pub fn compile_module(module: Module, options: &Options) -> Result<Compilation, Vec<Diagnostic>> {
    debug_assert!(!module.mesh.is_several(), "a program with several meshes is projected first");
    PipelineRun::new(options).compile(module, &|_| Site::default())
}

fn compile_once(set: &SourceSet, options: &Options) -> Result<Compilation, Vec<Diagnostic>> {
    let started = Instant::now();
    let (mut module, warnings) = check(set, &options.check)?;
    if let (Some(hosts), false) = (options.hosts, module.mesh.is_several()) {
        let all = all_devices(&module.mesh);
        hosts.place(&mut module.mesh, &all)?;
    }
    if set.file(SourceSet::ROOT).program.stage.is_some() {
        verify(&module).map_err(|violations| untrue(&module, violations))?;
    }
    let checked = ("check", started.elapsed());
    let lines: Vec<Lines> = set.files.iter().map(|file| Lines::new(&file.text)).collect();
    let site = |span: Span| site(set, &lines, span);
    let mut out = match module.mesh.is_several() {
        true => compile_meshes(module, options, &site)?,
        false => PipelineRun::new(options).compile(module, &site)?,
    };
    (out.warnings, out.hosts) = (warnings, options.hosts);
    out.timings.insert(0, checked);
    if let Some(program) = &mut out.program {
        program.fingerprint = fingerprint(program, &out.kernels);
        program.files = set.files.iter().map(|file| file.name.clone()).collect();
        name_again(program, &set.second_names);
        program.compile_ms = out.timings.iter().map(|(_, time)| time.as_secs_f64() * 1e3).sum();
    }
    Ok(out)
}

/// E0109: the dump contains statements that no program has at its stage.
fn untrue(module: &Module, violations: Vec<Violation>) -> Vec<Diagnostic> {
    let error = |violation: Violation| {
        let message =
            format!("this dump violates the invariants of stage `{}`: {}", module.stage.name(), violation.text);
        Diagnostic::error(Code::E0109, violation.span, message)
    };
    violations.into_iter().map(error).collect()
}

/// Gives the parameters and results of `main` their second names.
fn name_again(program: &mut Program, names: &SecondNames) {
    if program.entry != "main" {
        return;
    }
    for (bindings, names) in [(&mut program.params, &names.params), (&mut program.results, &names.results)] {
        bindings.iter_mut().for_each(|binding| binding.second_name = names.get(&binding.name).cloned());
    }
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
    let is_named = |binding: &Binding| binding.second_name.is_some();
    let has_names = !program.files.is_empty() || program.params.iter().chain(&program.results).any(is_named);
    debug_assert!(!has_names && program.compile_ms == 0.0, "these are set later");
    let mut hash = postcard::to_extend(program, Fnv(0xcbf2_9ce4_8422_2325)).expect("every program can be encoded");
    kernels.hash(&mut hash);
    hash.finish()
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
