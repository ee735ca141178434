//! The contracts of modules: one for every module, and one for each stage.
//!
//! Always:
//! - every value is defined once, before its uses, in the block of the use or one around it; a `manual` block only sees its operands;
//! - element types, shapes and varying axes of results equal the types that the op infers from its operands;
//! - no layout uses an axis twice, an axis that the mesh does not have, or one that is manual there; layouts have their value's rank;
//! - the two sides of a carried value, of the results of branches, and of a region's border have one element type and shape;
//! - no collective of manual code is under a condition that varies over its axes.
//!
//! Before `partitioned` no statement depends on the blocks of devices. From `propagated` on no dimension is open. From `partitioned` on the
//! operands of every op agree with its factor rule, and its results have the layout that follows. Carried values, branches and regions have
//! one layout on both sides, and no request for a layout is left.

pub mod blocks;
mod patches;
pub mod windows;

use spmdc_fft_ops::fft::Fft;
use spmdc_grammar::span::Span;
use spmdc_ir::op::Op;
use spmdc_ir::program::control::{Branch, Control, ForLoop, ManualRegion, WhileLoop};
use spmdc_ir::program::local::window_of;
use spmdc_ir::program::typing::shapes;
use spmdc_ir::program::{Block, Func, Module, Stage, Stmt, StmtKind, Value};
use spmdc_ir::rules::Typing;
use spmdc_layout::blocks::is_summand;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::reshard::flow::{flow, is_free};
use spmdc_layout::reshard::step::ReshardStep;
use spmdc_layout::sharding::{DimSharding, Sharding};
use spmdc_layout::types::{AxisSet, Type};
use spmdc_linalg_ops::factorization::Factorization;
use spmdc_ops::combined::Combined;
use spmdc_ops::margins::Margins;
use spmdc_ops::reshard::Reshard;
use spmdc_ops::scan::BlockTotals;
use spmdc_ops::scan::Scan;
use spmdc_ops::sort::Sort;
use spmdc_ops::window::Window;
use spmdc_sort_ops::blocks::SortBlocks;
use spmdc_sort_ops::merge::MergeSorted;
use spmdc_sort_ops::select::SelectBlocks;
use spmdc_window_ops::ghosted::Ghosted;
use spmdc_window_ops::halo::Halo;
use spmdc_window_ops::patches::Patches;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A violation of a contract.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// The source position of the statement; the default if no statement is known.
    pub span: Span,
    /// The statement and the error, in words.
    pub text: String,
}

/// Checks for layouts that could not be stored: the part of [`verify`] that is cheap enough for every compilation.
pub fn verify_layouts(module: &Module) -> Result<(), Vec<Violation>> {
    let mut violations = Vec::new();
    let mut defined = |value: Value, place: &dyn Fn() -> String| {
        let ty = module.func.ty(value);
        if let Some(text) = layout_violation(value, ty, &module.mesh) {
            violations.push(Violation { span: Span::default(), text: format!("{}: {text}", place()) });
        }
    };
    module.func.body.params.iter().for_each(|&param| defined(param, &|| "the function".to_string()));
    module.func.body.walk(&mut |stmt| {
        let params = stmt.blocks().flat_map(|block| &block.params);
        let place = || describe(stmt, &module.func, &module.mesh);
        stmt.results.iter().chain(params).for_each(|&value| defined(value, &place));
    });
    if violations.is_empty() { Ok(()) } else { Err(violations) }
}

/// The error in the layout of a value, wherever it is used.
fn layout_violation(value: Value, ty: &Type, mesh: &Mesh) -> Option<String> {
    let axes = ty.distinct_axes();
    let what = if ty.sharding.rank() != ty.rank() {
        "a layout with another number of dimensions"
    } else if !axes.is_subset_of(mesh.all()) {
        "an axis that the mesh does not have"
    } else if ty.sharding.repeated_axis().is_some() {
        "an axis twice"
    } else {
        return None;
    };
    Some(format!("{value}: {} has {what}", ty.display(mesh)))
}

/// The contract of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contract {
    /// The contract of its stage.
    Stage,
    /// The contract between its stage and the next one: some passes have already inserted collectives, others will.
    Between,
}

/// All violations. A violation in a module that the compiler has made is a defect of the compiler; a module that was read may
/// contain any.
pub fn verify(module: &Module) -> Result<(), Vec<Violation>> {
    verify_change(module, Contract::Stage, None)
}

/// All violations of a contract in a module that a pass has made from `known`, which had none. A statement that is the same in both has the
/// right types and blocks in both, so these are not checked again: most passes change few statements.
pub fn verify_change(module: &Module, contract: Contract, known: Option<&Module>) -> Result<(), Vec<Violation>> {
    let mut verifier = Verifier {
        known: known.and_then(|known| KnownStmts::of(known, module)),
        func: &module.func,
        mesh: &module.mesh,
        stage: module.stage,
        visible: vec![false; module.func.values.len()],
        defined: vec![false; module.func.values.len()],
        halos: BTreeMap::new(),
        totals: BTreeMap::new(),
        sorted: BTreeMap::new(),
        manual: AxisSet::EMPTY,
        conditions: AxisSet::EMPTY,
        violations: Vec::new(),
        place: Location::Function,
        contract,
    };
    let func = &module.func;
    if func.params.len() != func.body.params.len() || func.results.len() != func.body.results.len() {
        verifier.violation("the numbers of parameters or results and of their values differ");
    }
    verifier.block(&func.body);
    if module.stage >= Stage::Partitioned {
        for &value in func.body.params.iter().chain(&func.body.results) {
            let layout = &func.ty(value).sharding;
            let how = match (layout.unreduced.is_empty(), layout.is_aligned()) {
                (true, false) => continue,
                (false, _) => "as partial sums",
                (true, true) => "in blocks of another dimension",
            };
            let text = format!("{} enters or leaves the program {how}", verifier.display(value));
            verifier.violation(text);
        }
    }
    if verifier.violations.is_empty() { Ok(()) } else { Err(verifier.violations) }
}

struct Verifier<'a> {
    func: &'a Func,
    mesh: &'a Mesh,
    stage: Stage,
    visible: Vec<bool>,
    defined: Vec<bool>,
    /// For each halo or margin, the statement that fetches it, and the index of the result.
    halos: BTreeMap<Value, (&'a Stmt, usize)>,
    /// For each value that holds totals of blocks, in any layout, the statement that computes them.
    totals: BTreeMap<Value, &'a Stmt>,
    /// For each value whose blocks are sorted, the statement that sorts them, and the index of the result.
    sorted: BTreeMap<Value, (&'a Stmt, usize)>,
    manual: AxisSet,
    conditions: AxisSet,
    violations: Vec<Violation>,
    place: Location<'a>,
    contract: Contract,
    /// The statements that were right before the last pass.
    known: Option<KnownStmts<'a>>,
}

/// The statements of a module without violations.
struct KnownStmts<'a> {
    func: &'a Func,
    /// For each value, the statement whose first result it is.
    makers: Vec<Option<&'a Stmt>>,
}

impl<'a> KnownStmts<'a> {
    /// None if types and blocks of the same statement could be right in one module and wrong in the other.
    fn of(known: &'a Module, module: &Module) -> Option<KnownStmts<'a>> {
        let has_blocks = |module: &Module| module.stage >= Stage::Partitioned;
        if known.mesh != module.mesh || has_blocks(known) != has_blocks(module) {
            return None;
        }
        let mut makers = vec![None; known.func.values.len()];
        known.func.body.walk(&mut |stmt| {
            if let Some(first) = stmt.results.first() {
                makers[first.0 as usize] = Some(stmt);
            }
        });
        Some(KnownStmts { func: &known.func, makers })
    }

    /// Whether it has this statement, with operands and results of the same types.
    fn has(&self, stmt: &Stmt, func: &Func) -> bool {
        let maker = stmt.results.first().and_then(|first| *self.makers.get(first.0 as usize)?);
        let has_type = |value: &Value| {
            let [known, now] = [self.func, func].map(|func| &func.values[value.0 as usize]);
            Arc::ptr_eq(known, now) || known.ty == now.ty
        };
        maker.is_some_and(|known| {
            known.args == stmt.args
                && known.results == stmt.results
                && known.kind == stmt.kind
                && stmt.args.iter().chain(&stmt.results).all(has_type)
        })
    }
}

/// The position of the check.
#[derive(Clone, Copy)]
enum Location<'a> {
    Function,
    Stmt(&'a Stmt),
    Results,
}

impl<'a> Verifier<'a> {
    fn violation(&mut self, text: impl Into<String>) {
        let (span, place) = match self.place {
            Location::Function => (Span::default(), "the function".to_string()),
            Location::Stmt(stmt) => (stmt.origin.span, describe(stmt, self.func, self.mesh)),
            Location::Results => (Span::default(), "the results of a block".to_string()),
        };
        self.violations.push(Violation { span, text: format!("{place}: {}", text.into()) });
    }

    fn expect(&mut self, holds: bool, text: impl FnOnce(&Self) -> String) {
        if !holds {
            let text = text(self);
            self.violation(text);
        }
    }

    fn display(&self, value: Value) -> String {
        format!("{value}: {}", self.func.ty(value).display(self.mesh))
    }

    /// Checks statements and results; values defined in the block are visible in it only.
    fn block(&mut self, block: &'a Block) {
        let outer = self.visible.clone();
        block.params.iter().for_each(|&param| self.define(param));
        for stmt in &block.stmts {
            self.place = Location::Stmt(stmt);
            stmt.args.iter().for_each(|&arg| self.used(arg));
            self.stmt(stmt);
            self.place = Location::Stmt(stmt);
            stmt.results.iter().for_each(|&result| self.made(result));
        }
        self.place = Location::Results;
        block.results.iter().for_each(|&result| self.used(result));
        self.visible = outer;
    }

    fn used(&mut self, value: Value) {
        let visible = self.visible.get(value.0 as usize).copied().unwrap_or(false);
        self.expect(visible, |_| format!("{value} is used where it is not defined"));
    }

    /// Streams are parameters: of the program, or of a region.
    fn made(&mut self, value: Value) {
        let is_stream = self.func.values.get(value.0 as usize).is_some_and(|info| info.ty.array.is_stream);
        self.expect(!is_stream, |_| format!("{value} is a stream and no parameter"));
        self.define(value);
    }

    fn define(&mut self, value: Value) {
        let at = value.0 as usize;
        if at >= self.defined.len() {
            self.violation(format!("unknown value {value}"));
            return;
        }
        if self.defined[at] {
            self.violation(format!("{value} is defined twice"));
        }
        self.defined[at] = true;
        self.visible[at] = true;
        self.layout(value);
    }

    fn layout(&mut self, value: Value) {
        let ty = self.func.ty(value);
        if let Some(text) = layout_violation(value, ty, self.mesh) {
            return self.violation(text);
        }
        // Until derivatives have been taken, types say what is unreduced and reduced along manual axes.
        let states = if self.stage < Stage::Propagated { AxisSet::EMPTY } else { ty.sharding.unreduced };
        let manual = self.manual;
        let auto = ty.sharding.used_axes().union(states).intersect(manual).is_empty();
        let is_erased = self.stage < Stage::Propagated || ty.sharding.reduced.is_empty();
        self.expect(is_erased, |it| format!("{} is reduced, which matters to derivatives alone", it.display(value)));
        self.expect(auto, |it| format!("the layout of {} names a manual axis", it.display(value)));
        let varies = ty.varying.is_subset_of(manual);
        self.expect(varies, |it| format!("{} varies over an axis that is not manual", it.display(value)));
        let decided = self.stage < Stage::Propagated || ty.sharding.is_closed();
        self.expect(decided, |it| format!("{} is still open", it.display(value)));
    }

    fn stmt(&mut self, stmt: &'a Stmt) {
        match &stmt.kind {
            StmtKind::Op(op) => self.ordinary(op, stmt),
            StmtKind::Control(Control::For(op)) => self.for_loop(op, stmt),
            StmtKind::Control(Control::While(op)) => self.while_loop(op, stmt),
            StmtKind::Control(Control::Branch(op)) => self.branch(op, stmt),
            StmtKind::Control(Control::Manual(op)) => self.region(op, stmt),
        }
    }

    fn for_loop(&mut self, op: &'a ForLoop, stmt: &'a Stmt) {
        let (bounds, inits) = stmt.args.split_at(op.bounds().min(stmt.args.len()));
        let body = &op.body;
        let carried = inits.len();
        let sizes = (body.params.len(), body.results.len(), stmt.results.len());
        if sizes != (carried + 1, carried + op.collected, carried + op.collected) {
            return self.violation("the numbers of carried and collected values differ");
        }
        let varies = bounds.iter().fold(AxisSet::EMPTY, |set, &bound| set.union(self.func.ty(bound).varying));
        self.carried(inits, &body.params[1..], &body.results[..carried], &stmt.results[..carried], varies);
        for (&value, &stack) in body.results[carried..].iter().zip(&stmt.results[carried..]) {
            let Some(trips) = op.trips() else {
                return self.violation("collects values over an unknown number of trips");
            };
            let mut shape = vec![trips as usize];
            shape.extend(self.func.ty(value).shape());
            let stacked = self.func.ty(stack).shape() == shape;
            self.expect(stacked, |_| format!("{stack} is no stack of {value}"));
            let lies_so = self.func.ty(stack).sharding == stacked_layout(&self.func.ty(value).sharding);
            self.expect(self.stage < Stage::Partitioned || lies_so, |it| {
                format!("{} and {} have different layouts", it.display(stack), it.display(value))
            });
        }
        self.under(varies, |verifier| verifier.block(body));
    }

    fn while_loop(&mut self, op: &'a WhileLoop, stmt: &'a Stmt) {
        let (cond, body) = (&op.cond, &op.body);
        let sizes = [cond.params.len(), body.params.len(), body.results.len(), stmt.results.len()];
        if sizes.iter().any(|&size| size != stmt.args.len()) || cond.results.len() != 1 {
            return self.violation("the numbers of carried values differ");
        }
        let varies = self.func.ty(cond.results[0]).varying;
        self.carried(&stmt.args, &body.params, &body.results, &stmt.results, varies);
        self.same_types(&cond.params, &body.params);
        self.under(varies, |verifier| verifier.block(cond));
        self.under(varies, |verifier| verifier.block(body));
    }

    fn branch(&mut self, op: &'a Branch, stmt: &'a Stmt) {
        if stmt.args.len() != 1 {
            return self.violation("requires exactly one condition");
        }
        let varies = self.func.ty(stmt.args[0]).varying;
        for block in op.sides() {
            if block.results.len() != stmt.results.len() {
                return self.violation("the branches return different numbers of results");
            }
            for (&value, &result) in block.results.iter().zip(&stmt.results) {
                self.flows(value, result);
                let varying = self.func.ty(result).varying;
                self.expect(varies.is_subset_of(varying), |_| format!("{result} does not vary as the condition does"));
            }
            self.under(varies, |verifier| verifier.block(block));
        }
    }

    fn under(&mut self, varies: AxisSet, body: impl FnOnce(&mut Self)) {
        let outer = self.conditions;
        self.conditions = outer.union(varies);
        body(self);
        self.conditions = outer;
    }

    fn carried(&mut self, inits: &[Value], params: &[Value], next: &[Value], results: &[Value], varies: AxisSet) {
        for (((&init, &param), &next), &result) in inits.iter().zip(params).zip(next).zip(results) {
            self.flows(init, param);
            self.flows(next, param);
            self.flows(param, result);
            let varying = self.func.ty(param).varying;
            self.expect(varies.is_subset_of(varying), |_| {
                format!("{param} does not vary as the loop's condition does")
            });
        }
    }

    fn same_types(&mut self, left: &[Value], right: &[Value]) {
        for (&left, &right) in left.iter().zip(right) {
            self.flows(left, right);
        }
    }

    /// Checks that a value can be passed on as another one.
    fn flows(&mut self, from: Value, to: Value) {
        if [from, to].iter().any(|value| value.0 as usize >= self.func.values.len()) {
            return self.violation(format!("unknown value {from} or {to}"));
        }
        let (source, target) = (self.func.ty(from), self.func.ty(to));
        let same = source.array == target.array
            && source.varying.is_subset_of(target.varying)
            && (self.stage < Stage::Partitioned || source.sharding == target.sharding);
        self.expect(same, |it| format!("{} is handed on as {}", it.display(from), it.display(to)));
    }

    fn region(&mut self, op: &'a ManualRegion, stmt: &'a Stmt) {
        let block = &op.body;
        let fits = block.params.len() == stmt.args.len()
            && op.inputs.len() == stmt.args.len()
            && block.results.len() == stmt.results.len()
            && op.outputs.len() == stmt.results.len();
        if !fits {
            return self.violation("the numbers of operands or results differ");
        }
        self.expect(self.manual.is_empty(), |_| "a region inside a region".to_string());
        let borders = stmt.args.iter().zip(&block.params).zip(&op.inputs);
        let borders = borders.chain(stmt.results.iter().zip(&block.results).zip(&op.outputs));
        for ((&outer, &inner), split) in borders {
            self.border(outer, inner, split);
        }
        for (&inner, split) in block.params.iter().zip(&op.inputs) {
            let ty = self.func.ty(inner);
            let summands = if self.stage < Stage::Propagated { ty.sharding.unreduced } else { AxisSet::EMPTY };
            let varies = split.used_axes().union(split.unreduced).is_subset_of(ty.varying.union(summands));
            self.expect(varies, |it| format!("{} does not vary as it is cut", it.display(inner)));
        }
        for (&inner, split) in block.results.iter().zip(&op.outputs) {
            let split = split.used_axes().union(split.unreduced);
            let varies = self.func.ty(inner).varying.is_subset_of(split);
            self.expect(varies, |it| format!("{} varies over an axis along which it is not joined", it.display(inner)));
        }
        // No value from outside is visible in it.
        let visible = std::mem::replace(&mut self.visible, vec![false; self.func.values.len()]);
        self.manual = op.axes;
        self.block(block);
        self.manual = AxisSet::EMPTY;
        self.visible = visible;
    }

    /// Checks shapes, and from `partitioned` on layouts, on both sides of a region's border.
    fn border(&mut self, outer: Value, inner: Value, split: &Sharding) {
        let (global, local) = (self.func.ty(outer), self.func.ty(inner));
        let shapes = global.dtype() == local.dtype()
            && global.array.is_stream == local.array.is_stream
            && global.rank() == local.rank()
            && split.rank() == local.rank()
            && global
                .shape()
                .iter()
                .zip(local.shape())
                .zip(&split.dims)
                .all(|((&global, &local), dim)| global == local * self.mesh.size_of(&dim.axes));
        if !shapes {
            return self.violation(format!("{} cannot be split into {}", self.display(outer), self.display(inner)));
        }
        let joined = global
            .sharding
            .dims
            .iter()
            .zip(split.dims.iter().zip(&local.sharding.dims))
            .all(|(global, (split, local))| global.axes.iter().eq(split.axes.iter().chain(&local.axes)));
        // No device holds a stream: a region sees a part of it.
        self.expect(self.stage < Stage::Partitioned || joined || global.array.is_stream, |it| {
            format!("{} and {}, inside of the function, have different layouts", it.display(outer), it.display(inner))
        });
    }

    fn ordinary(&mut self, op: &Op, stmt: &'a Stmt) {
        let properties = op.rules().properties();
        if stmt.args.iter().chain(&stmt.results).any(|value| value.0 as usize >= self.func.values.len()) {
            return;
        }
        let is_known = self.known.as_ref().is_some_and(|known| known.has(stmt, self.func));
        if !is_known && !self.has_inferred_types(op, stmt) {
            return;
        }
        if let Some(group) = properties.group() {
            let axes: AxisSet = group.axes().iter().map(|&axis| usize::from(axis)).collect();
            self.expect(axes.is_subset_of(self.manual), |_| "its axes are not manual here".to_string());
            let reached = !group.communicates() || axes.intersect(self.conditions).is_empty();
            self.expect(reached, |_| "a condition around it varies over its axes".to_string());
        }
        let of_blocks = speaks_of_blocks(op, stmt.args.len());
        let may_have = self.stage >= Stage::Partitioned || self.contract == Contract::Between;
        self.expect(may_have || !of_blocks, |_| "speaks of blocks that there are not yet".to_string());
        if let Some(scan) = op.as_op::<Scan>()
            && self.stage >= Stage::Partitioned
        {
            let layout = &self.func.ty(stmt.args[0]).sharding.dims[scan.axis];
            let parts = stmt.args.get(1).map_or(1, |&totals| self.func.ty(totals).shape()[scan.axis]);
            let knows = layout.alignment.is_none() && self.mesh.size_of(&layout.axes) == parts;
            self.expect(knows, |_| "does not know the totals of the blocks before".to_string());
            if let Some(totals) = stmt.args.get(1) {
                let is_its_own = self.totals.get(totals).is_some_and(|maker| {
                    maker
                        .as_op::<BlockTotals>()
                        .is_some_and(|made| made.is_for(scan, parts) && maker.args[0] == stmt.args[0])
                });
                self.expect(is_its_own, |it| format!("{} are not the totals of its blocks", it.display(*totals)));
            }
        }
        if op.as_op::<BlockTotals>().is_some() {
            self.totals.extend(stmt.results.iter().map(|&result| (result, stmt)));
        }
        if op.is::<Reshard>() || op.is::<Combined>() {
            let moved = stmt.args.iter().zip(&stmt.results);
            let known = moved.filter_map(|(arg, &result)| Some((result, *self.totals.get(arg)?)));
            let known: Vec<(Value, &Stmt)> = known.collect();
            self.totals.extend(known);
        }
        if op.is::<Halo>() || op.is::<Margins>() || op.is::<Ghosted>() {
            self.halos.extend(stmt.results.iter().enumerate().map(|(at, &result)| (result, (stmt, at))));
        }
        self.sort(op, stmt);
        if op.as_op::<Factorization>().is_some() {
            let ty = self.func.ty(stmt.args[0]);
            let is_whole = ty.sharding.dims[ty.rank() - 2..]
                .iter()
                .all(|dim| dim.alignment.is_none() && self.mesh.size_of(&dim.axes) == 1);
            self.expect(self.stage < Stage::Partitioned || is_whole, |_| "does not have whole matrices".to_string());
        }
        if let Some(transform) = op.as_op::<Fft>() {
            let layout = &self.func.ty(stmt.args[0]).sharding.dims[transform.axis];
            let is_whole = layout.alignment.is_none() && self.mesh.size_of(&layout.axes) == 1;
            self.expect(self.stage < Stage::Partitioned || is_whole, |_| "does not have whole lines".to_string());
        }
        if let Typing::OfBlocks(_) = op.rules().typing() {
            return;
        }
        if let Some(reshard) = op.as_op::<Reshard>() {
            let same = self.func.ty(stmt.results[0]).sharding == reshard.to;
            self.expect(same || self.stage < Stage::Partitioned, |_| "its result does not lie as it says".to_string());
            let is_made = self.stage < Stage::Partitioned
                || !matches!(reshard.step, ReshardStep::Request | ReshardStep::Pin | ReshardStep::PinGradient);
            self.expect(is_made, |_| "no step makes this layout".to_string());
            let (from, to) = (self.func.ty(stmt.args[0]), &reshard.to);
            let has = |it: &Self| {
                let (shape, from) = (from.shape(), &from.sharding);
                let moved = flow(shape, &from.dims, &to.dims, it.mesh, None);
                is_free(shape, &from.dims, &to.dims, moved, it.mesh) || is_summand(shape, from, to, it.mesh)
            };
            let is_local = reshard.step != ReshardStep::Slice || self.stage < Stage::Partitioned || has(self);
            self.expect(is_local, |_| "needs elements of other devices".to_string());
            return;
        }
        // What windows of several operands read depends on the statements that made these.
        if self.stage >= Stage::Partitioned && !(is_known && stmt.args.len() == 1) {
            match (window_of(self.func, stmt), op) {
                (Some(map), _) => self.window(op, stmt, &map),
                (None, op) if let Some(patches) = op.as_op::<Patches>() => self.patches(patches, stmt),
                (None, _) if is_known => {}
                (None, _) => {
                    if let Some(misfit) = blocks::misfit(self.func, self.mesh, (op, stmt)) {
                        self.violation(misfit);
                    }
                }
            }
        }
    }

    /// Checks that results have the types that the op infers, and that results of ops on blocks also have the inferred layouts. False if
    /// there is nothing to compare.
    fn has_inferred_types(&mut self, op: &Op, stmt: &Stmt) -> bool {
        let inferred = match shapes(op, &self.func.types(&stmt.args), self.mesh) {
            Ok(inferred) => inferred,
            Err(mismatch) => {
                self.violation(mismatch.message);
                return false;
            }
        };
        if inferred.len() != stmt.results.len() {
            self.violation(format!("returns {} results", inferred.len()));
            return false;
        }
        let is_of_blocks = matches!(op.rules().typing(), Typing::OfBlocks(_));
        for (wanted, &result) in inferred.iter().zip(&stmt.results) {
            let found = self.func.ty(result);
            let same = found.array == wanted.array && found.varying == wanted.varying;
            self.expect(same, |it| {
                format!(
                    "{} should be {}",
                    it.display(result),
                    Type { sharding: found.sharding.clone(), ..wanted.clone() }.display(it.mesh)
                )
            });
            let lies_so = !is_of_blocks || found.sharding == wanted.sharding;
            self.expect(lies_so, |_| "its results do not lie where they are made".to_string());
        }
        true
    }
}

impl<'a> Verifier<'a> {
    /// A sort works on whole lines, and a merge takes its elements from blocks that are sorted in the same order.
    fn sort(&mut self, op: &Op, stmt: &'a Stmt) {
        if let Some(Sort(order)) = op.as_op::<Sort>() {
            let layout = &self.func.ty(stmt.args[0]).sharding.dims[order.axis];
            let is_whole = layout.alignment.is_none() && self.mesh.size_of(&layout.axes) == 1;
            self.expect(self.stage < Stage::Partitioned || is_whole, |_| "does not have whole lines".to_string());
        }
        if op.is::<SortBlocks>() || op.is::<SelectBlocks>() {
            self.sorted.extend(stmt.results.iter().enumerate().map(|(at, &result)| (result, (stmt, at))));
        }
        if let Some(merge) = op.as_op::<MergeSorted>() {
            let first = self.sorted.get(&stmt.args[0]).map(|(maker, _)| *maker);
            let maker = first.filter(|maker| maker.op().is_some_and(|made| merge.is_of(made)));
            let is_result = |(at, arg): (usize, &Value)| {
                self.sorted
                    .get(arg)
                    .is_some_and(|&(of, number)| number == at && maker.is_some_and(|maker| std::ptr::eq(maker, of)))
            };
            let are_sorted = stmt.args.iter().enumerate().all(is_result);
            self.expect(are_sorted, |_| "merges blocks that are not sorted so".to_string());
        }
    }
}

/// The layout of a stack of values: each device has its part of every value.
fn stacked_layout(value: &Sharding) -> Sharding {
    let mut layout = value.clone();
    layout.dims.insert(0, DimSharding::default());
    layout
}

/// Whether an op is defined only for values with a block on every device.
fn speaks_of_blocks(op: &Op, operands: usize) -> bool {
    let halos = op.as_op::<Window>().is_some_and(|window| !window.halos.is_empty());
    let patches = op.as_op::<Patches>().is_some_and(|patches| patches::are_in_blocks(&patches.dims));
    let totals = op.is::<Scan>() && operands > 1;
    let is_step = op
        .as_op::<Reshard>()
        .is_some_and(|reshard| matches!(reshard.step, ReshardStep::Slice | ReshardStep::Collective(_)));
    halos || patches || totals || is_step || matches!(op.rules().typing(), Typing::OfBlocks(_))
}

/// A statement in one line.
fn describe(stmt: &Stmt, func: &Func, mesh: &Mesh) -> String {
    let is_known = |value: &Value| (value.0 as usize) < func.values.len();
    if !stmt.args.iter().chain(&stmt.results).all(is_known) {
        return stmt.name().to_string();
    }
    let args: Vec<String> = stmt.args.iter().map(Value::to_string).collect();
    let text = match &stmt.kind {
        StmtKind::Op(op) => op.rules().print(&args, mesh),
        StmtKind::Control(control) => format!("{}({})", control.name(), args.join(", ")),
    };
    let results: Vec<String> =
        stmt.results.iter().map(|&result| format!("{result}: {}", func.ty(result).display(mesh))).collect();
    if results.is_empty() { format!("`{text}`") } else { format!("`{} = {text}`", results.join(", ")) }
}
