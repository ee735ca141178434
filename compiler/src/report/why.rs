//! Explains the layout of a value, the layouts that force a collective, and the change of an annotation that avoids it.
//!
//! Edits are found by trial. Every annotation of the program is changed in every way that one dimension allows, its axes move to other
//! dimensions, and each `let` without an annotation gets one that splits a dimension. The program is compiled with each change. The report
//! shows the edit with the least communication, and of these the one with the fewest operations, if it saves at least 1 percent. Each change
//! is compiled once for all collectives of a line, and the number of compiled changes is bounded.

use crate::pipeline::{Compilation, Options, compile};
use crate::report::deferral::deferrals;
use crate::totals::{Collective, collectives, flops_per_device};
use spmdc_check::sources::{NoSources, SourceSet};
use spmdc_grammar::ast::{
    BlockNode, DimAxes, Expr, ExprKind, Ident, ItemKind, PatternKind, ProgramNode, StmtNode, StmtNodeKind, TypeExpr,
    TypeExprKind,
};
use spmdc_grammar::print;
use spmdc_grammar::span::Span;
use spmdc_ir::mismatch::called;
use spmdc_ir::program::origin::{DerivedFrom, Lineage};
use spmdc_ir::program::{Module, Stage, Value};
use spmdc_layout::cost::{Levels, collective, reported_trips};
use spmdc_layout::types::{ArrayType, Type};
use spmdc_passes::propagate::ANNOTATION;
use std::collections::BTreeMap;

/// Maximum number of changes that are compiled for a line.
const MAX_TRIALS: usize = 256;

/// Maximum number of statements that are compiled in all trials of a line, so that long programs have fewer trials.
const MAX_STATEMENTS: usize = 16_384;

/// Minimum number of trials, whatever the length of the program.
const MIN_TRIALS: usize = 16;

/// An edit is shown if it saves at least one part in this many of the cost.
const LEAST_GAIN: u64 = 100;

/// A value, and the chain of each axis that splits it.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueLayout {
    /// The value and its type in quotes, such as "`h: f32[8@X,64@Y]`".
    pub value: String,
    /// The source position at which the program defines the value.
    pub span: Span,
    /// The axes that split it, with the statements from which it has each of them.
    pub axes: Vec<AxisChain>,
}

/// How a value came to be split over an axis, step by step.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisChain {
    /// The name of the axis.
    pub axis: String,
    /// The dimension that the axis splits.
    pub dim: usize,
    /// Each step back to an annotation, in words, with its source position.
    pub steps: Vec<(String, Span)>,
}

/// A collective, the layouts that force it, and an edit that avoids it.
#[derive(Clone, Debug, PartialEq)]
pub struct Forced {
    /// The collective.
    pub collective: Collective,
    /// The values of the statement that needs it.
    pub layouts: Vec<ValueLayout>,
    /// The cheapest change of one annotation that avoids the collective, if any.
    pub edit: Option<AnnotationEdit>,
    /// The edit that takes its sum once after a loop that only accumulates it, with both prices; None for others.
    pub deferral: Option<String>,
}

/// A change of one annotation, or a new one, with the costs of the program before and after it. The costs are the sum over all collectives
/// of the maximum bytes received by any device, the operations of one device, and the number of collectives that run.
#[derive(Clone, Debug, PartialEq)]
pub struct AnnotationEdit {
    /// The source position of the text to replace.
    pub span: Span,
    /// The text to replace.
    pub from: String,
    /// The text that replaces it.
    pub to: String,
    /// Bytes received before the change.
    pub bytes_before: u64,
    /// Bytes received after it.
    pub bytes_after: u64,
    /// Operations of one device before the change.
    pub flops_before: u64,
    /// Operations of one device after it.
    pub flops_after: u64,
    /// Collectives that run before the change.
    pub collectives_before: u64,
    /// Collectives that run after it.
    pub collectives_after: u64,
}

/// The number of changes that were compiled, and the number of possible ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    /// Changes that were compiled.
    pub compiled: usize,
    /// Possible changes.
    pub possible: usize,
}

impl Tried {
    /// Whether the search ended before all changes were tried.
    pub fn is_part(self) -> bool {
        self.compiled < self.possible
    }
}

/// The values of this name (all names if None) that the program defines on a line.
pub fn layouts(compilation: &Compilation, name: Option<&str>, on_line: &dyn Fn(Span) -> bool) -> Vec<ValueLayout> {
    let Some(module) = compilation.stage(Stage::Propagated) else { return Vec::new() };
    let func = &module.func;
    let mut found: Vec<ValueLayout> = Vec::new();
    let params =
        func.params.iter().zip(&func.body.params).map(|(param, &value)| (param.name.as_str(), [param.span; 2], value));
    // The function that computes what is assigned may be on other lines.
    let values =
        func.values.iter().enumerate().filter_map(|(index, info)| {
            Some((info.name.as_deref()?, [info.origin.span, info.named], Value(index as u32)))
        });
    let others = func.other_names.iter().map(|(place, name, value)| (name.as_str(), [*place; 2], *value));
    for (known, spans, value) in params.chain(values).chain(others) {
        if spans.into_iter().any(on_line) && name.is_none_or(|name| name == known) {
            let mut layout = layout(compilation, module, value, None);
            let own = name_of(module, value);
            if own.is_some_and(|own| own != known) {
                layout.value = format!("`{known}`, another name of {}", layout.value);
                layout.span = spans[0];
            }
            if !found.contains(&layout) {
                found.push(layout);
            }
        }
    }
    found
}

/// The names of values, for suggestions.
pub fn names(compilation: &Compilation) -> Vec<String> {
    let Some(module) = compilation.stage(Stage::Propagated) else { return Vec::new() };
    let params = module.func.params.iter().map(|param| param.name.clone());
    let others = module.func.other_names.iter().map(|(_, name, _)| name.clone());
    params.chain(module.func.values.iter().filter_map(|info| info.name.clone())).chain(others).collect()
}

/// The collectives of a line, and the number of changes that were tried to avoid them.
pub fn forced(
    compilation: &Compilation,
    set: &SourceSet,
    options: &Options,
    on_line: &dyn Fn(Span) -> bool,
) -> (Vec<Forced>, Tried) {
    let (Some(propagated), Some(partitioned)) =
        (compilation.stage(Stage::Propagated), compilation.stage(Stage::Partitioned))
    else {
        return (Vec::new(), Tried::default());
    };
    let before = ProgramCosts::of(partitioned);
    let found: Vec<&Collective> = before.collectives.iter().filter(|collective| on_line(collective.span)).collect();
    let Some(first) = found.first() else { return (Vec::new(), Tried::default()) };
    let (trials, tried) = trials(set, options, most_trials(partitioned), first.span);
    let deferrals = deferrals(partitioned);
    let forced = found.into_iter().map(|collective| Forced {
        collective: collective.clone(),
        layouts: around(compilation, propagated, collective),
        edit: cheapest_edit(&trials, &before, collective),
        deferral: deferrals.iter().find(|of| of.is_of(collective)).map(|of| of.advice(collective)),
    });
    (forced.collect(), tried)
}

/// Maximum number of changes to compile: the time of each trial grows with the program.
pub fn most_trials(partitioned: &Module) -> usize {
    let mut statements = 0;
    partitioned.func.body.walk(&mut |_| statements += 1);
    (MAX_STATEMENTS / statements.max(1)).clamp(MIN_TRIALS, MAX_TRIALS)
}

/// The values of the statement that needs a collective, if they are split over its axes.
fn around(compilation: &Compilation, module: &Module, collective: &Collective) -> Vec<ValueLayout> {
    let mut found: Vec<ValueLayout> = Vec::new();
    module.func.body.walk(&mut |stmt| {
        let Lineage { part, of, .. } = collective.lineage;
        let is_other = part != stmt.origin.lineage.part || (of.is_some() && of != stmt.origin.lineage.of);
        if stmt.origin.span != collective.span || is_other || stmt.is_control() {
            return;
        }
        for &value in stmt.args.iter().chain(&stmt.results) {
            let layout = layout(compilation, module, value, Some(&collective.axes));
            if !layout.axes.is_empty() && !found.contains(&layout) {
                found.push(layout);
            }
        }
    });
    found
}

fn layout(compilation: &Compilation, module: &Module, value: Value, only: Option<&[String]>) -> ValueLayout {
    let ty = module.func.ty(value);
    let mut axes = Vec::new();
    for (dim, sharding) in ty.sharding.dims.iter().enumerate() {
        for (name, parts) in module.mesh.wholes(&sharding.axes) {
            // A collective over a part of an axis also concerns the whole axis.
            let known = parts.iter().map(|&axis| module.mesh.name(axis)).chain([name]);
            let declared = parts.iter().filter_map(|&axis| module.mesh.axes[axis as usize].part.as_ref());
            let known: Vec<&str> = known.chain(declared.map(|part| part.of.as_str())).collect();
            if only.is_none_or(|only| only.iter().any(|axis| known.contains(&axis.as_str()))) {
                let steps = steps(compilation, module, value, parts[0]);
                axes.push(AxisChain { axis: name.to_string(), dim, steps });
            }
        }
    }
    ValueLayout { value: shown(module, value), span: module.func.info(value).origin.span, axes }
}

/// The name of a parameter or another value.
fn name_of(module: &Module, value: Value) -> Option<&str> {
    let func = &module.func;
    let param = func.params.iter().zip(&func.body.params).find(|(_, param)| **param == value);
    param.map(|(param, _)| param.name.as_str()).or(func.info(value).name.as_deref())
}

/// `h: f32[8@X,64@Y]`, or the op that makes the value if it has no name.
fn shown(module: &Module, value: Value) -> String {
    let func = &module.func;
    let ty: &Type = func.ty(value);
    let ty = ty.display(&module.mesh);
    if let Some((param, _)) = func.params.iter().zip(&func.body.params).find(|(_, param)| **param == value) {
        return format!("parameter `{}: {ty}`", param.name);
    }
    if let Some(name) = &func.info(value).name {
        return format!("`{name}: {ty}`");
    }
    if let Some(DerivedFrom::DerivativeOf(of)) = func.info(value).derived_from
        && let Some(name) = func.values.get(of.0 as usize).and_then(|of| of.name.as_ref())
        && let Some(part) = func.info(value).origin.lineage.part.name()
    {
        return format!("the {part} `{ty}` of `{name}`");
    }
    let mut made_by = None;
    func.body.walk(&mut |stmt| {
        if stmt.results.contains(&value) {
            made_by = Some(stmt.name());
        }
    });
    match made_by {
        // An annotation is a statement of its own.
        Some("pin" | "pin_gradient") if func.body.results.contains(&value) => format!("the result `{ty}`"),
        Some("pin" | "pin_gradient") => format!("the annotated `{ty}`"),
        Some(op) => format!("the `{ty}` made by {}", called(op)),
        None => format!("an `{ty}`"),
    }
}

fn steps(compilation: &Compilation, module: &Module, value: Value, axis: u8) -> Vec<(String, Span)> {
    let mut steps = Vec::new();
    let links = compilation.provenance.chain(value, axis);
    for (i, link) in links.iter().enumerate() {
        match (link.by, links.get(i + 1)) {
            // The annotated value comes next.
            (Some((ANNOTATION, _)), Some(_)) => {}
            (Some((op, span)), Some(next)) => {
                steps.push((format!("through {}, from {}", called(op), shown(module, next.value)), span));
            }
            _ => {
                let span = module.func.info(link.value).origin.span;
                steps.push((format!("written in the program: {}", shown(module, link.value)), span));
            }
        }
    }
    steps
}

/// The changes of a program because of hosts: bytes that a host receives from others in all collectives of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostEffect {
    /// In the program as it is.
    pub received: u64,
    /// In the program that would be chosen if bytes between hosts cost the same as others.
    pub otherwise: u64,
}

/// The changes of a mesh's program because of hosts, at this position of several programs; None without changes.
pub fn effect_of_hosts(
    compilation: &Compilation,
    set: &SourceSet,
    options: &Options,
    position: usize,
) -> Option<HostEffect> {
    let own = compilation.stage(Stage::Partitioned)?;
    let hosts = own.mesh.hosts.as_ref()?;
    let without = Options { hosts: None, stop_after: Some(Stage::Partitioned), ..options.clone() };
    let compiled = compile(set, &without).ok()?;
    let mut other = compiled.of_meshes().get(position)?.stage(Stage::Partitioned)?.clone();
    let sizes: Vec<usize> = other.mesh.axes.iter().map(|axis| axis.size).collect();
    other.mesh.hosts = Some(hosts.on(&sizes));
    let received = |module: &Module| ProgramCosts::of(module).sum(|each| each.crossing);
    let effect = HostEffect { received: received(own), otherwise: received(&other) };
    (effect.received != effect.otherwise).then_some(effect)
}

/// The communication and the operations of a program.
struct ProgramCosts {
    collectives: Vec<Collective>,
    flops: u64,
    /// The costs of bytes between hosts, if hosts are known.
    levels: Option<Levels>,
}

impl ProgramCosts {
    fn of(partitioned: &Module) -> ProgramCosts {
        let levels = partitioned.mesh.hosts.as_ref().map(|hosts| hosts.levels);
        ProgramCosts { collectives: collectives(partitioned), flops: flops_per_device(partitioned), levels }
    }

    /// The sum over all trips, with reported trip counts, so that the compared figures are the ones shown.
    fn sum(&self, of: impl Fn(&Collective) -> u64) -> u64 {
        self.collectives.iter().map(|each| of(each) * reported_trips(each.trips)).sum()
    }

    fn bytes(&self) -> u64 {
        self.sum(|each| each.received)
    }

    /// The number of collectives that run.
    fn executions(&self) -> u64 {
        self.sum(|_| 1)
    }

    /// Bytes received plus the price of each collective.
    fn cost(&self) -> u64 {
        let between = |each: &Collective| self.levels.map_or(0, |levels| levels.between(each.crossing as f64) as u64);
        self.sum(|each| collective(each.received) + between(each))
    }

    /// Bytes of the operands of collectives of the same kind and position.
    fn like(&self, target: &Collective) -> u64 {
        let alike = self.collectives.iter().filter(|c| (c.kind, c.span) == (target.kind, target.span));
        alike.map(|collective| collective.bytes).sum()
    }
}

/// A change of the program's text, and the cost of the changed program.
pub struct Trial {
    span: Span,
    from: String,
    to: String,
    traffic: ProgramCosts,
}

/// Compiles the program with each change, at most `most` changes.
pub fn trials(set: &SourceSet, options: &Options, most: usize, target: Span) -> (Vec<Trial>, Tried) {
    let options = Options { stop_after: Some(Stage::Partitioned), ..options.clone() };
    let root = set.file(SourceSet::ROOT);
    let Some(known) = CheckedTypes::new(set, &options) else { return (Vec::new(), Tried::default()) };
    let (candidates, possible) = candidates(&root.program, &known, target, most);
    let tried = Tried { compiled: candidates.len(), possible };
    let compiled = candidates.iter().filter_map(|candidate| {
        let mut changed = set.clone();
        let (span, from, to) = change(&mut changed.files[0].program, candidate, &known)?;
        let compilation = compile(&changed, &options).ok()?;
        Some(Trial { span, from, to, traffic: ProgramCosts::of(compilation.stage(Stage::Partitioned)?) })
    });
    (compiled.collect(), tried)
}

/// The change of one annotation that avoids this collective and communicates least.
fn cheapest_edit(trials: &[Trial], before: &ProgramCosts, target: &Collective) -> Option<AnnotationEdit> {
    let avoids = |trial: &&Trial| {
        let gain = before.cost().saturating_sub(trial.traffic.cost());
        trial.traffic.like(target) < before.like(target) && gain >= before.cost().div_ceil(LEAST_GAIN)
    };
    let best = trials.iter().filter(avoids).min_by_key(|trial| (trial.traffic.cost(), trial.traffic.flops))?;
    let after = &best.traffic;
    Some(AnnotationEdit {
        span: best.span,
        from: best.from.clone(),
        to: best.to.clone(),
        bytes_before: before.bytes(),
        bytes_after: after.bytes(),
        flops_before: before.flops,
        flops_after: after.flops,
        collectives_before: before.executions(),
        collectives_after: after.executions(),
    })
}

/// Facts that the checker has found about the program.
struct CheckedTypes {
    /// The names of the axes, in mesh order.
    axes: Vec<String>,
    /// By the position at which a `let` names a value: its type without a layout, if it is the same in all calls of the function.
    types: BTreeMap<Span, Option<TypeExpr>>,
}

impl CheckedTypes {
    fn new(set: &SourceSet, options: &Options) -> Option<CheckedTypes> {
        let options = Options { stop_after: Some(Stage::Typed), ..options.clone() };
        let compilation = compile(set, &options).ok()?;
        let module = compilation.stages.first()?;
        let axes = module.mesh.axes.iter().map(|axis| axis.name.clone()).collect();
        let mut arrays: BTreeMap<Span, Option<ArrayType>> = BTreeMap::new();
        for info in module.func.values.iter().filter(|info| info.name.is_some()) {
            let array = (info.ty.rank() > 0 && info.ty.varying.is_empty()).then(|| info.ty.array.clone());
            let first = arrays.entry(info.named).or_insert_with(|| array.clone());
            if *first != array {
                *first = None;
            }
        }
        let types = arrays.into_iter().map(|(span, array)| (span, array.and_then(|array| written(&array)))).collect();
        Some(CheckedTypes { axes, types })
    }
}

/// An array's type in the syntax of programs.
fn written(array: &ArrayType) -> Option<TypeExpr> {
    let (set, _) = SourceSet::load("type", &format!("fn f(x: {array}) {{ x }}"), &NoSources);
    let item = set.files.into_iter().next()?.program.items.into_iter().next()?;
    let ItemKind::Fn(function) = item.kind else { return None };
    function.params.into_iter().next()?.ty
}

/// A change: the annotation, or `let` without one, the dimension, and its new axes.
struct Candidate {
    position: usize,
    dim: usize,
    axes: Vec<String>,
}

/// Changes to the axes of one dimension: no axes, or an axis that the type does not use elsewhere; after these, axes that move there from
/// another dimension. Returns at most `most` of them, and the number of all: a quarter is reserved for new annotations, those near the
/// collective first.
fn candidates(program: &ProgramNode, known: &CheckedTypes, target: Span, most: usize) -> (Vec<Candidate>, usize) {
    let (mut found, mut moved, mut new) = (Vec::new(), Vec::new(), Vec::new());
    let mut position = 0;
    each_type(&mut program.clone(), &mut |ty, named| {
        let fresh = ty.is_none();
        let written = named.and_then(|(_, span)| known.types.get(&span).cloned().flatten());
        if let Some(TypeExpr { kind: TypeExprKind::Array { dims, .. }, .. }) = ty.clone().or(written) {
            let axes_of = |dim: usize| -> Vec<&str> {
                dims[dim].axes.iter().flat_map(|dim| &dim.axes).map(|axis| axis.name.as_str()).collect()
            };
            for dim in 0..dims.len() {
                let used: Vec<&str> = (0..dims.len()).filter(|&other| other != dim).flat_map(axes_of).collect();
                let is_new = |axis: &&String| !used.contains(&axis.as_str()) && axes_of(dim) != [axis.as_str()];
                let other = known.axes.iter().filter(is_new).map(|axis| vec![axis.clone()]);
                let used = used.iter().map(|axis| Candidate { position, dim, axes: vec![axis.to_string()] });
                moved.extend(used);
                let none = (!axes_of(dim).is_empty()).then(Vec::new);
                for axes in none.into_iter().chain(other) {
                    let candidate = Candidate { position, dim, axes };
                    match named.filter(|_| fresh) {
                        Some((_, span)) => new.push((span.start.abs_diff(target.start), candidate)),
                        None => found.push(candidate),
                    }
                }
            }
        }
        position += 1;
    });
    found.append(&mut moved);
    new.sort_by_key(|(distance, _)| *distance);
    let possible = found.len() + new.len();
    found.truncate(most - new.len().min(most / 4));
    let rest = most - found.len();
    found.extend(new.into_iter().take(rest).map(|(_, candidate)| candidate));
    (found, possible)
}

/// Gives a dimension of an annotation other axes, and takes these from its other dimensions; returns its position, its old text and its
/// new text.
fn change(program: &mut ProgramNode, candidate: &Candidate, known: &CheckedTypes) -> Option<(Span, String, String)> {
    let mut at = 0;
    let mut changed = None;
    each_type(program, &mut |ty, named| {
        if at == candidate.position {
            let before = ty.as_ref().map(|ty| (ty.span, print::type_expr(ty)));
            if ty.is_none() {
                *ty = named.and_then(|(_, span)| known.types.get(&span).cloned().flatten());
            }
            if let Some(ty) = ty {
                if let TypeExprKind::Array { dims, .. } = &mut ty.kind {
                    let span = dims[candidate.dim].size.span;
                    let axes = candidate.axes.iter().map(|axis| Ident { name: axis.clone(), span }).collect();
                    for other in dims.iter_mut() {
                        let moves = |axis: &Ident| candidate.axes.contains(&axis.name);
                        let Some(left) = other.axes.as_mut().filter(|other| other.axes.iter().any(moves)) else {
                            continue;
                        };
                        left.axes.retain(|axis| !moves(axis));
                        if left.axes.is_empty() && !left.open {
                            other.axes = None;
                        }
                    }
                    dims[candidate.dim].axes = Some(DimAxes { axes, open: false, alignment: None, span });
                }
                let after = print::type_expr(ty);
                changed = match (before, named) {
                    (Some((span, before)), _) => Some((span, before, after)),
                    (None, Some((name, span))) => Some((span, name.to_string(), format!("{name}: {after}"))),
                    (None, None) => None,
                };
            }
        }
        at += 1;
    });
    changed
}

/// Visits a type that may be annotated, with its name and source position if a `let` gives it one.
type Visit<'a> = &'a mut dyn FnMut(&mut Option<TypeExpr>, Option<(&str, Span)>);

/// Every type that annotates a parameter or a result or may annotate a `let`, in order.
fn each_type(program: &mut ProgramNode, visit: Visit<'_>) {
    for item in &mut program.items {
        if let ItemKind::Fn(function) = &mut item.kind {
            function.params.iter_mut().for_each(|param| visit(&mut param.ty, None));
            visit(&mut function.ret, None);
            each_in_block(&mut function.body, visit);
        }
    }
}

fn each_in_block(block: &mut BlockNode, visit: Visit<'_>) {
    for StmtNode { kind, .. } in &mut block.stmts {
        match kind {
            StmtNodeKind::Let { ty, value, pattern, mutable } => {
                let name = if let PatternKind::Name(name) = &pattern.kind { Some(name.as_str()) } else { None };
                let named = name.filter(|_| !*mutable).map(|name| (name, pattern.span));
                visit(ty, named);
                each_in_expr(value, visit);
            }
            StmtNodeKind::Assign { value, .. } => each_in_expr(value, visit),
            StmtNodeKind::Expr(value) => each_in_expr(value, visit),
        }
    }
    if let Some(value) = &mut block.value {
        each_in_expr(value, visit);
    }
}

/// Visits the blocks inside expressions; annotations occur nowhere else.
fn each_in_expr(expr: &mut Expr, visit: Visit<'_>) {
    if let ExprKind::Block(block) | ExprKind::For { body: block, .. } | ExprKind::While { body: block, .. } =
        &mut expr.kind
    {
        each_in_block(block, visit);
    } else if let ExprKind::If { then, otherwise, .. } = &mut expr.kind {
        each_in_block(then, visit);
        if let Some(otherwise) = otherwise {
            each_in_expr(otherwise, visit);
        }
    }
}
