//! The choice between layouts of the whole program.
//!
//! Where propagation could have chosen otherwise, the program is partitioned with each choice, and the cheapest layout stays.

use super::contract::ContractChecker;
use super::passes::{PARTITION, PROPAGATE, PassLog, Resources, run};
use crate::totals::{collectives, cost};
use spmdc_inspect::verify::Contract;
use spmdc_ir::program::{Module, Value};
use spmdc_layout::sharding::Sharding;
use spmdc_passes::propagate::refine::{Cuts, Refined, both};
use spmdc_passes::propagate::{Choices, Propagated, Provenance, propagate};
use std::cell::OnceCell;

/// Maximum number of ways to cut axes that are tried.
const MAX_REFINED: usize = 3;

/// The common inputs for trying all layouts of a program.
pub struct Trials<'a> {
    /// The inputs of passes besides the module.
    pub resources: Resources<'a>,
    /// Checks the result of each pass.
    pub checker: &'a ContractChecker,
    /// The pass after which the program is kept.
    pub after: Option<&'static str>,
    /// Layouts that the caller has decided.
    pub fixed: Option<&'a [(Value, Sharding)]>,
}

/// A layout of the whole program.
pub struct ProgramLayout<'a> {
    propagated: Propagated,
    trials: &'a Trials<'a>,
    /// The partitioned program, computed only if layouts are compared.
    partitioned: OnceCell<Partitioned>,
}

/// The program at `partitioned`.
pub struct Partitioned {
    /// The program.
    pub module: Module,
    /// Its estimated time, in seconds.
    cost: f64,
    /// The record of the passes.
    pub log: PassLog,
}

impl<'a> ProgramLayout<'a> {
    fn new(propagated: Propagated, trials: &'a Trials<'a>) -> ProgramLayout<'a> {
        trials.checker.check(PROPAGATE, &propagated.module, Contract::Stage);
        ProgramLayout { propagated, trials, partitioned: OnceCell::new() }
    }

    fn cost(&self) -> f64 {
        self.partitioned().cost
    }

    fn partitioned(&self) -> &Partitioned {
        self.partitioned.get_or_init(|| {
            let mut log = PassLog::after(self.trials.after);
            let Trials { resources, checker, .. } = *self.trials;
            let module = run(PARTITION, self.propagated.module.clone(), resources, checker, &mut log);
            let cost = cost(&module);
            Partitioned { module, cost, log }
        })
    }

    /// Whether a loop contains a barrier.
    fn repeats(&self) -> bool {
        collectives(&self.partitioned().module).iter().any(|step| step.trips != Some(1))
    }

    /// The program at `propagated`, the source of its axes, and the program at `partitioned` if layouts were compared.
    pub fn into_parts(self) -> (Module, Provenance, Option<Partitioned>) {
        let Propagated { module, provenance, .. } = self.propagated;
        (module, provenance, self.partitioned.into_inner())
    }
}

/// Layouts for all values. If propagation could have chosen otherwise, the program is also compiled with the other choice, and the cheaper
/// layout is kept. The order is: the order of the program, then each other choice together with the better ones before it, then axes in
/// parts, finally whole small values in loops.
///
/// Layouts that the caller has decided are kept, and then the order of the program decides the others.
pub fn cheapest<'a>(m: Module, trials: &'a Trials<'a>) -> ProgramLayout<'a> {
    if let Some(fixed) = trials.fixed {
        return ProgramLayout::new(propagate(m, Choices::NONE, fixed), trials);
    }
    let mut best = ProgramLayout::new(propagate(m.clone(), Choices::NONE, &[]), trials);
    let mut chosen = Choices::NONE;
    let (open, cuts) = (best.propagated.open, std::mem::take(&mut best.propagated.cuts));
    let later_first = Choices { later_first: open.later_first, ..Choices::NONE };
    let cuts_pass = Choices { cuts_pass: open.cuts_pass, ..Choices::NONE };
    let inside_hosts = Choices { inside_hosts: open.inside_hosts, ..Choices::NONE };
    for other in [later_first, cuts_pass, inside_hosts].into_iter().filter(|&other| other != Choices::NONE) {
        let other = chosen.and(other);
        let layout = ProgramLayout::new(propagate(m.clone(), other, &[]), trials);
        if layout.cost() < best.cost() {
            (best, chosen) = (layout, other);
        }
    }
    if !cuts.is_empty() {
        best = cheapest_in_parts(&m, best, chosen, cuts);
    }
    if open.small_whole && best.repeats() {
        let choices = Choices { small_whole: true, ..chosen };
        let layout = ProgramLayout::new(propagate(m, choices, &[]), trials);
        if layout.cost() < best.cost() {
            best = layout;
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
        let free = propagate(refined.module.clone(), chosen, &[]);
        let borders = refined.borders(&whole.propagated.module, &free.module);
        let mut propagated = propagate(refined.module.clone(), chosen, &borders);
        let known = vec![(whole.propagated.provenance.clone(), refined.wholes()), (free.provenance, refined.same())];
        propagated.provenance = propagated.provenance.behind(known);
        // Cuts of parts that a later reshape needs.
        cuts.extend(propagated.cuts.iter().map(|more| both(&next, &refined.of_wholes(more))));
        let layout = ProgramLayout::new(propagated, whole.trials);
        if layout.cost() < best.as_ref().unwrap_or(&whole).cost() {
            best = Some(layout);
        }
        tried.push(next);
    }
    best.unwrap_or(whole)
}
