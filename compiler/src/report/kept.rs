//! The residuals of derivatives: the values in memory that the forward statements compute and the reverse reads.
//!
//! They are found in the compiled program. So values that are recomputed where they are used do not count, and neither do arguments, which
//! exist anyway. The savings of `checkpoint` are measured: the program is compiled again as if a function or the body of a loop were a
//! `checkpoint`, and both plans are compared.

use super::plan::peak_bytes_per_device;
use crate::pipeline::{Compilation, Options, compile};
use crate::totals::flops_per_device;
use spmdc_check::sources::SourceSet;
use spmdc_grammar::ast::ItemKind;
use spmdc_grammar::span::Span;
use spmdc_ir::program::control::Control;
use spmdc_ir::program::{Module, Stage, Stmt, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of functions and loops that are tried.
const MAX_TRIALS: usize = 8;

/// Maximum number of statements that are compiled in all trials, so that long programs have fewer: the trial of a longer one takes as long as
/// its compilation.
const MAX_STATEMENTS: usize = 4096;

/// A function or loop is shown if `checkpoint` of it saves at least one part in this many of the kept bytes and of all memory.
const LEAST_GAIN: u64 = 100;

/// A value that a reverse keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptValue {
    /// Its name in the source, or the text of its expression in quotes, or else the op that makes it.
    pub name: String,
    /// Its type, with its sharding; the type of one trip if a loop collects it.
    pub ty: String,
    /// Bytes of one device, of all trips together.
    pub bytes: u64,
    /// The number of trips of the loops that collect it.
    pub trips: u64,
    /// The source position of the forward statement.
    pub span: Span,
}

/// The plan of a program in which one more function or loop is one of `checkpoint`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointTrial {
    /// The name of the function; None for the body of a loop.
    pub function: Option<String>,
    /// The source position of the function's name, or of the loop.
    pub span: Span,
    /// The residuals and the memory of this program.
    pub costs: KeptCosts,
}

/// The costs that `checkpoint` changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptCosts {
    /// Bytes of one device that the kept values occupy.
    pub kept: u64,
    /// Bytes of all memory of one device.
    pub peak: u64,
    /// Operations of one device.
    pub flops: u64,
}

/// The values that reverses keep, largest first.
pub fn kept(compilation: &Compilation) -> Vec<KeptValue> {
    let Some(module) = compilation.stage(Stage::Optimized) else { return Vec::new() };
    let finder = KeptFinder::new(module, &compilation.buffer_of);
    let mut values: Vec<KeptValue> = finder.found().into_values().map(|value| finder.described(value)).collect();
    values.sort_by_key(|value| std::cmp::Reverse(value.bytes));
    values
}

/// Bytes of one device that kept values occupy.
pub fn kept_bytes(values: &[KeptValue]) -> u64 {
    values.iter().map(|value| value.bytes).sum()
}

struct KeptFinder<'m> {
    module: &'m Module,
    buffer_of: &'m [Option<usize>],
    /// The statement that makes each value.
    made: Vec<Option<&'m Stmt>>,
    /// The buffers of arguments.
    given: BTreeSet<usize>,
}

impl<'m> KeptFinder<'m> {
    fn new(module: &'m Module, buffer_of: &'m [Option<usize>]) -> KeptFinder<'m> {
        let func = &module.func;
        let mut made = vec![None; func.values.len()];
        func.body.walk(&mut |stmt| stmt.results.iter().for_each(|result| made[result.0 as usize] = Some(stmt)));
        let buffer = |value: &Value| buffer_of.get(value.0 as usize).copied().flatten();
        let given = func.body.params.iter().filter_map(buffer).collect();
        KeptFinder { module, buffer_of, made, given }
    }

    /// The kept values, by their buffers.
    fn found(&self) -> BTreeMap<usize, Value> {
        let mut found = BTreeMap::new();
        let mut seen = BTreeSet::new();
        self.module.func.body.walk(&mut |stmt| {
            let order = stmt.origin.lineage.order;
            if order > 0 {
                stmt.args.iter().for_each(|&arg| self.read(arg, order, &mut seen, &mut found));
            }
        });
        found
    }

    /// Adds the memory that the reverse of an order reads for a value.
    fn read(&self, value: Value, order: u8, seen: &mut BTreeSet<(Value, u8)>, found: &mut BTreeMap<usize, Value>) {
        let Some(stmt) = self.made[value.0 as usize] else { return };
        if !seen.insert((value, order)) {
            return;
        }
        let Some(buffer) = self.buffer_of.get(value.0 as usize).copied().flatten() else {
            stmt.args.iter().for_each(|&arg| self.read(arg, order, seen, found));
            return;
        };
        let lineage = stmt.origin.lineage;
        let is_literal = stmt.op().is_some_and(|op| op.rules().properties().elements.literal().is_some());
        if !lineage.is_reversed || lineage.order >= order || is_literal || self.given.contains(&buffer) {
            return;
        }
        let (func, mesh) = (&self.module.func, &self.module.mesh);
        let bytes = |value: &Value| func.ty(*value).block_bytes(mesh);
        let is_better = |known: &Value| {
            (bytes(&value), func.info(value).name.is_some()) > (bytes(known), func.info(*known).name.is_some())
        };
        match found.get(&buffer) {
            Some(known) if !is_better(known) => {}
            Some(_) | None => {
                found.insert(buffer, value);
            }
        }
    }

    /// The user's view of a residual: for one that loops collect, the value of a trip.
    fn described(&self, value: Value) -> KeptValue {
        let (func, mesh) = (&self.module.func, &self.module.mesh);
        let bytes = func.ty(value).block_bytes(mesh) as u64;
        let (mut own, mut trips) = (value, 1u64);
        let mut carried = None;
        let mut span = func.info(value).origin.span;
        while let Some(stmt) = self.made[own.0 as usize]
            && let Some(Control::For(op)) = stmt.control()
            && let Some(at) = stmt.results.iter().position(|&result| result == own)
            && at + op.collected >= stmt.results.len()
        {
            trips = trips.saturating_mul(op.trips().unwrap_or(1));
            own = op.body.results[at];
            span = func.info(own).origin.span;
            // What a trip begins with has the name of the variable.
            let variable = op.body.params[1..].iter().position(|&param| param == own);
            carried = variable.map(|at| (stmt.results[at], op.body.results[at]));
            if carried.is_some() {
                span = stmt.origin.span;
            }
        }
        let (result, next) = carried.unzip();
        let named = [Some(own), result, next].into_iter().flatten().find_map(|value| func.info(value).name.clone());
        let quote = || func.quotes.get(&span).and_then(|quote| Some(quote.split_once(": ")?.1.to_string()));
        let op = || self.made[own.0 as usize].map(|stmt| stmt.name().to_string());
        let name = named.or_else(quote).or_else(op).unwrap_or_default();
        KeptValue { name, ty: func.ty(own).display(mesh), bytes, trips, span }
    }
}

/// The costs of a compiled program that `checkpoint` changes; None if it was not compiled to the end.
pub fn costs(compilation: &Compilation) -> Option<KeptCosts> {
    let (module, program) = (compilation.stage(Stage::Optimized)?, compilation.program.as_ref()?);
    let kept = kept_bytes(&kept(compilation));
    Some(KeptCosts { kept, peak: peak_bytes_per_device(program), flops: flops_per_device(module) })
}

/// The functions and loops whose `checkpoint` would keep less, the one that keeps least first.
pub fn checkpoints(compilation: &Compilation, set: &SourceSet, options: &Options) -> Vec<CheckpointTrial> {
    let values = kept(compilation);
    let (Some(module), Some(before)) = (compilation.stage(Stage::Optimized), costs(compilation)) else {
        return Vec::new();
    };
    if values.is_empty() {
        return Vec::new();
    }
    let mut statements = 0;
    module.func.body.walk(&mut |_| statements += 1);
    let most = (MAX_STATEMENTS / statements.max(1)).clamp(1, MAX_TRIALS);
    let mut found: Vec<CheckpointTrial> = Vec::new();
    for (function, span, body) in candidates(module, set, &values).into_iter().take(most) {
        let mut options = Options { stop_after: None, verify: None, ..options.clone() };
        options.check.recomputed.push(body);
        let Some(costs) = compile(set, &options).ok().as_ref().and_then(costs) else { continue };
        let saves = |before: u64, after: u64| before.saturating_sub(after) >= before.div_ceil(LEAST_GAIN);
        let is_new = found.iter().all(|other| other.costs != costs);
        if is_new && saves(before.kept, costs.kept) && saves(before.peak, costs.peak) {
            found.push(CheckpointTrial { function, span, costs });
        }
    }
    found.sort_by_key(|trial| (trial.costs.kept, trial.costs.flops));
    found
}

/// The functions and loops around kept values: the name of a function, the position to show, and the position that the checker knows.
/// Innermost functions come first.
fn candidates(module: &Module, set: &SourceSet, values: &[KeptValue]) -> Vec<(Option<String>, Span, Span)> {
    let holds =
        |outer: Span, inner: Span| outer.file == inner.file && outer.start <= inner.start && inner.end <= outer.end;
    let around = |span: Span| values.iter().filter(|value| holds(span, value.span)).count();
    let mut found = Vec::new();
    for file in &set.files {
        for item in &file.program.items {
            if let ItemKind::Fn(function) = &item.kind
                && (around(function.body.span) > 0 || !file.is_shipped)
                && function.name.name != module.func.name
            {
                found.push((Some(function.name.name.clone()), function.name.span, function.body.span));
            }
        }
    }
    module.func.body.walk(&mut |stmt| {
        let span = stmt.origin.span;
        if let Some(Control::For(op)) = stmt.control()
            && stmt.origin.lineage.is_reversed
            && op.collected > 0
            && found.iter().all(|(_, _, known)| *known != span)
        {
            found.push((None, span, span));
        }
    });
    found.sort_by_key(|(_, _, body)| (std::cmp::Reverse(around(*body).min(1)), body.end - body.start));
    found
}
