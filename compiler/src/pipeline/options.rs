//! The input and the result of a compilation.

use super::memory::MemoryLimit;
use crate::hosts::HostOptions;
use spmdc_abi::Program;
use spmdc_check::CheckOptions;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::program::{Module, Stage, Value};
use spmdc_kernel::loops::Kernel;
use spmdc_layout::cost::Room;
use spmdc_layout::mesh::NamedMesh;
use spmdc_layout::reshard::Plans;
use spmdc_layout::sharding::Sharding;
use spmdc_passes::propagate::Provenance;
use std::time::Duration;

/// The input of a compilation, and its last stage.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The entry function, the mesh and the constants that the user sets.
    pub check: CheckOptions,
    /// The last stage; None to compile to the end.
    pub stop_after: Option<Stage>,
    /// The pass after which the program is kept in [`Compilation::after`], one of [`pass_names`](super::pass_names).
    pub after: Option<&'static str>,
    /// Some to check the contract of each stage, as in debug builds, and to replay the memory plan, up to this many runs of
    /// neighbouring elements.
    pub verify: Option<u64>,
    /// Known plans from one layout to another, shared by compilations with the same value.
    pub plans: Plans,
    /// The hosts of the devices; None if nothing is known of them.
    pub hosts: Option<HostOptions>,
    /// The memory limit of each process; None without a limit.
    pub memory: Option<MemoryLimit>,
    /// Whether memory may be traded against bytes that devices receive. It is not where a program would need more than `memory` else.
    pub room: Room,
    /// Layouts that the caller has decided, by the numbers of values at the stage `differentiated`. Others are decided in the order of the
    /// program, without a comparison of layouts of the whole program. None to compare them.
    pub fixed: Option<Vec<(Value, Sharding)>>,
}

/// The result of a compilation.
#[derive(Debug, Default)]
pub struct Compilation {
    /// The program after each stage that it went through.
    pub stages: Vec<Module>,
    /// The program after the last run of the pass [`Options::after`].
    pub after: Option<Module>,
    /// The source of the axes of each value; empty for a dump read after propagation.
    pub provenance: Provenance,
    /// The program for the runtime; None if the compiler stopped before.
    pub program: Option<Program>,
    /// The loop nests of the program, by number.
    pub kernels: Vec<Kernel>,
    /// For each value of the optimized module, the number of its buffer in the program; None for values that are not in memory.
    pub buffer_of: Vec<Option<usize>>,
    /// The hosts that it was compiled for.
    pub hosts: Option<HostOptions>,
    /// Warnings of the checker.
    pub warnings: Vec<Diagnostic>,
    /// Whether a requested replay of the memory plan is incomplete because the plan is too large or nested too deep.
    pub doubtful: bool,
    /// The compilations of the programs of several meshes, from the stage `differentiated` on; empty for a program with one mesh.
    pub parts: Vec<MeshCompilation>,
    /// The time of each pass and each other part of the compiler, in order.
    pub timings: Vec<(&'static str, Duration)>,
}

/// The compilation of the program of one of several meshes.
#[derive(Debug)]
pub struct MeshCompilation {
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
