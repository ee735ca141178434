//! The passes from module to module, in order.
//!
//! [`TIDY`], [`BEFORE_LAYOUT`], the choice of layouts (`layouts`, by the pass `propagate`), [`PARTITION`], [`OPTIMIZE`].

use super::contract::ContractChecker;
use spmdc_inspect::verify::Contract;
use spmdc_ir::program::Module;
use spmdc_layout::cost::Room;
use spmdc_layout::reshard::Plans;
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
use spmdc_passes::keep_sums::keep_sums;
use spmdc_passes::local_argmax::local_argmax;
use spmdc_passes::order_cuts::order_cuts;
use spmdc_passes::orient_products::orient_products;
use spmdc_passes::overlap::overlap;
use spmdc_passes::partition::partition;
use spmdc_passes::revise_regions::revise_regions;
use spmdc_passes::share_halos::share_halos;
use spmdc_passes::simplify::simplify;
use spmdc_passes::sink::sink;
use spmdc_passes::unroll_loops::unroll_loops;
use std::time::{Duration, Instant};

/// A pass whose result keeps the contract of its stage.
macro_rules! pass {
    ($pass:ident) => {
        Pass { name: stringify!($pass), run: |module, _| $pass(module), contract: Contract::Stage }
    };
    ($pass:ident, $($resource:ident),+) => {
        Pass { name: stringify!($pass), run: |module, given| $pass(module, $(given.$resource),+), contract: Contract::Stage }
    };
}

/// A pass on the way to the next stage: its result may already have collectives, and need others.
macro_rules! between {
    ($($pass:tt)+) => {
        Pass { contract: Contract::Between, ..pass!($($pass)+) }
    };
}

/// No expression is computed twice or without a use. Of a program with several meshes, before each gets a module.
pub const TIDY: &[Pass] = &[pass!(simplify), pass!(cse), pass!(dce)];

/// Removes forms that propagation should not see: partial sums of derivatives, pairs of reshapes, and whole sums between partial ones.
pub const BEFORE_LAYOUT: &[Pass] = &[pass!(erase_reduced), pass!(commute_reshapes), pass!(keep_sums)];

/// From `propagated` to `partitioned`.
pub const PARTITION: &[Pass] = &[
    // Fewer elements to move, whatever the layouts of operands become.
    pass!(local_argmax),
    pass!(dce),
    pass!(revise_regions),
    pass!(order_cuts),
    // The operands of every op agree with its factor rule.
    pass!(choose_alignments),
    pass!(insert_reshards, plans, room),
    // Every op becomes steps that are local, with collectives between them. Loops of stencils come before the halos of one step.
    between!(deepen_halos, room),
    between!(distribute_factorizations),
    between!(distribute_sorts),
    between!(distribute_transforms),
    between!(exchange_ghosts),
    between!(dce),
    between!(exchange_halos),
    between!(dce),
    between!(distribute_scans),
    // All communication is explicit.
    pass!(partition, plans),
    pass!(orient_products),
    pass!(hoist, room),
    pass!(cse),
    pass!(share_halos),
];

/// From `partitioned` to `optimized`.
pub const OPTIMIZE: &[Pass] = &[
    pass!(inline_loops),
    pass!(unroll_loops),
    pass!(simplify),
    pass!(cse),
    pass!(dce),
    pass!(sink),
    // The order of statements is decided last.
    pass!(combine_collectives),
    pass!(overlap),
];

/// The pass between [`BEFORE_LAYOUT`] and [`PARTITION`].
pub const PROPAGATE: &str = "propagate";

/// A pass from module to module.
pub struct Pass {
    /// The name of its function and its file.
    pub name: &'static str,
    run: fn(Module, Resources) -> Module,
    contract: Contract,
}

/// The inputs of passes besides the module.
#[derive(Clone, Copy)]
pub struct Resources<'a> {
    /// Known plans from one layout to another.
    pub plans: &'a Plans,
    /// Whether memory may be traded against communication.
    pub room: Room,
}

/// The name of each pass once, in the order in which they run first.
pub fn pass_names() -> Vec<&'static str> {
    let names_of = |list: &'static [Pass]| list.iter().map(|pass| pass.name);
    let before = names_of(TIDY).chain(names_of(BEFORE_LAYOUT)).chain([PROPAGATE]);
    let mut names = Vec::new();
    for name in before.chain(names_of(PARTITION)).chain(names_of(OPTIMIZE)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The record of a run of passes.
#[derive(Debug, Default)]
pub struct PassLog {
    /// The time of each pass, in order.
    pub timings: Vec<(&'static str, Duration)>,
    /// The pass after which the module is kept.
    pub after: Option<&'static str>,
    /// The module after the last run of that pass.
    pub kept: Option<Module>,
}

impl PassLog {
    /// An empty record that keeps the module after this pass.
    pub fn after(after: Option<&'static str>) -> PassLog {
        PassLog { after, ..PassLog::default() }
    }

    /// Keeps the module if it is the module after the pass `after`.
    pub fn passed(&mut self, name: &'static str, module: &Module) {
        if self.after == Some(name) {
            self.kept = Some(module.clone());
        }
    }
}

/// The module after these passes. The checker holds each result to the contract of the pass and to the signature of the program.
pub fn run(
    passes: &[Pass],
    mut module: Module,
    resources: Resources,
    checker: &ContractChecker,
    log: &mut PassLog,
) -> Module {
    for pass in passes {
        let (started, signature) = (Instant::now(), checker.signature(&module));
        module = (pass.run)(module, resources);
        log.timings.push((pass.name, started.elapsed()));
        checker.same_signature(pass.name, signature, &module);
        checker.check(pass.name, &module, pass.contract);
        log.passed(pass.name, &module);
    }
    module
}
