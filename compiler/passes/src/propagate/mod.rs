//! Decides every sharding on `auto` axes from the shardings that the program gives.
//!
//! ```text
//! fn main(x: f32[8@X,16], w) -> f32 {                       fn main(x: f32[8@X,16], w: f32[16,4]) -> f32 {
//!   let h = x @ w;        // h: f32[8@?,4@?]        =>        let h = x @ w;        // h: f32[8@X,4]
//! ```
//!
//! The known shardings are the closed dimensions of parameters, of annotations (`pin`) and of `reshard`, and all `explicit` axes, which the
//! types already have. From there axes spread along the factors of the ops (`step.rs`), forward and backward, to a fixed point: first
//! through ops that only move elements, then through all factors that pass, then through all factors. Finally reshapes whose blocks do not
//! fit move the axes to another dimension. Separate edges link the values of one data flow (the carried values of a loop, the results of
//! branches).
//!
//! Axes are only ever added, in program order, so the result is deterministic. Where order alone decides, other [`Choices`] lay out the
//! program differently, and the pipeline takes the layout with the least communication. The same holds for axes that are cut into parts
//! (`refine.rs`). Afterwards no dimension is open; the operands of an op may still disagree.

pub mod alike;
mod provenance;
pub mod refine;
pub mod step;

pub use provenance::{Link, Provenance};

use refine::Cuts;
use spmdc_grammar::span::Span;
use spmdc_ir::op::Op;
use spmdc_ir::program::control::Control;
use spmdc_ir::program::{Block, Func, Module, Stage, Stmt, StmtKind, Value};
use spmdc_ir::rules::Placement;
use spmdc_layout::cost::SMALL_IN_LOOP;
use spmdc_layout::factors::{FactorKind, Factors};
use spmdc_layout::mesh::{AxisKind, Mesh};
use spmdc_layout::projection::Projection;
use spmdc_layout::sharding::Sharding;
use spmdc_layout::types::{AxisSet, Type};
use spmdc_ops::reshard::Reshard;
pub use step::{ANNOTATION, Choices};
use step::{Cause, OpNode, Slot, SlotDim};

/// The result of propagation.
pub struct Propagated {
    /// The module at stage `propagated`.
    pub module: Module,
    /// The source of each axis.
    pub provenance: Provenance,
    /// The choices that would have changed the result.
    pub open: Choices,
    /// The positions at which axes could be cut so that a reshape passes on their parts.
    pub cuts: Vec<Cuts>,
}

/// Decides all shardings. The layouts in `fixed` are already decided, whatever the program says of these values.
pub fn propagate(mut module: Module, chosen: Choices, fixed: &[(Value, Sharding)]) -> Propagated {
    debug_assert!(module.stage < Stage::Propagated, "layouts are decided once");
    copy_per_use(&mut module.func);
    let mut graph = SlotGraph::new(&module, chosen);
    for (value, sharding) in fixed {
        graph.fix(*value, sharding);
    }
    graph.settle(&module.mesh);
    graph.open.small_whole = graph.small.iter().any(|&slot| graph.slots[slot].is_split_further());
    let cuts = graph.cuts(&module.mesh);
    for (index, info) in module.func.infos_mut().enumerate() {
        let Some(slot) = graph.slot_of[index] else { continue };
        for (dim, decided) in info.ty.sharding.dims.iter_mut().zip(&graph.slots[slot].dims) {
            dim.axes = decided.axes.clone();
            dim.open = false;
        }
    }
    even_borders(&mut module);
    let Func { body, values, .. } = &mut module.func;
    body.walk_mut(&mut |stmt| {
        let result = stmt.results.first().copied();
        if let (Some(op), Some(result)) = (stmt.as_op_mut::<Reshard>(), result) {
            op.to = values[result.0 as usize].ty.sharding.clone();
        }
    });
    module.stage = Stage::Propagated;
    Propagated { module, provenance: Provenance::new(graph.slots, graph.slot_of), open: graph.open, cuts }
}

/// A connection along which axes spread.
enum PropagationEdge {
    Op(OpNode),
    /// An operand or result of a `manual` region, outside and inside: outside, each dimension is split over `manual` first.
    Border {
        slots: [usize; 2],
        manual: Vec<Vec<u8>>,
        span: Span,
    },
}

impl PropagationEdge {
    fn slots(&self) -> &[usize] {
        match self {
            PropagationEdge::Op(node) => &node.slots,
            PropagationEdge::Border { slots, .. } => slots,
        }
    }
}

struct SlotGraph {
    /// The axes along which the compiler decides outside of functions that turn them.
    auto: AxisSet,
    slots: Vec<Slot>,
    /// For each value that the program defines; values that must get equal layouts share a slot.
    slot_of: Vec<Option<usize>>,
    edges: Vec<PropagationEdge>,
    chosen: Choices,
    open: Choices,
    /// The number of loops around the present statement; None if one of them has an unknown trip count.
    loops: Option<u32>,
    /// The slots of small values in loops.
    small: Vec<usize>,
    /// The number of changes so far.
    changes: usize,
    /// For each slot, the number of the last change of an edge at it.
    changed: Vec<usize>,
    /// For each edge, the number of changes before its last step without effect.
    settled: Vec<Option<usize>>,
}

impl SlotGraph {
    fn new(module: &Module, chosen: Choices) -> SlotGraph {
        let func = &module.func;
        let (slots, slot_of, edges) = (Vec::new(), vec![None; func.values.len()], Vec::new());
        let (changes, changed, settled) = (0, Vec::new(), Vec::new());
        let (open, small) = (Choices::NONE, Vec::new());
        let auto = module.mesh.of_kind(AxisKind::Auto);
        let mut graph =
            SlotGraph { auto, slots, slot_of, edges, chosen, open, loops: Some(0), small, changes, changed, settled };
        for &param in &func.body.params {
            graph.define(func, param, AxisSet::EMPTY);
            let slot = graph.slot(param);
            pin(&mut graph.slots[slot], func.ty(param));
        }
        graph.block(func, &func.body, AxisSet::EMPTY);
        let mut uses = vec![0; func.values.len()];
        func.body.each_use(&mut |value| uses[value.0 as usize] += 1);
        graph.pin_operands(func, &func.body, &uses);
        graph
    }

    fn slot(&self, value: Value) -> usize {
        self.slot_of[value.0 as usize].expect("values are defined before they are used")
    }

    /// Gives a value, which is in a region over the axes `manual`, a separate slot.
    fn define(&mut self, func: &Func, value: Value, manual: AxisSet) {
        let ty = func.ty(value);
        let auto = self.auto.either(func.info(value).origin.turned).minus(manual);
        let dims = ty.shape().iter().zip(&ty.sharding.dims);
        let dims = dims.map(|(&size, dim)| SlotDim { size, axes: dim.axes.clone(), first: 0, pinned: false }).collect();
        let bytes = ty.array.len() * ty.dtype().size();
        let is_small = self.loops > Some(0) && bytes <= SMALL_IN_LOOP && ty.rank() > 0;
        let stays_whole = is_small && self.chosen.small_whole;
        let allowed = if stays_whole { AxisSet::EMPTY } else { auto.minus(ty.sharding.unreduced) };
        self.small.extend(is_small.then_some(self.slots.len()));
        debug_assert!(self.slot_of[value.0 as usize].is_none(), "{value} is defined twice");
        self.slots.push(Slot { dims, bytes, allowed, causes: Vec::new() });
        self.slot_of[value.0 as usize] = Some(self.slots.len() - 1);
    }

    /// Fixes the layout of a value, unless no statement computes it any more.
    fn fix(&mut self, value: Value, sharding: &Sharding) {
        let Some(slot) = self.slot_of.get(value.0 as usize).copied().flatten() else { return };
        debug_assert_eq!(self.slots[slot].dims.len(), sharding.dims.len(), "{value} is fixed in every dimension");
        for (dim, sharding) in self.slots[slot].dims.iter_mut().zip(&sharding.dims) {
            (dim.axes, dim.pinned) = (sharding.axes.clone(), true);
        }
    }

    /// Gives `value` the layout of `other`, always.
    fn share(&mut self, value: Value, other: Value) {
        self.slot_of[value.0 as usize] = Some(self.slot(other));
    }

    fn block(&mut self, func: &Func, block: &Block, manual: AxisSet) {
        for stmt in &block.stmts {
            self.stmt(func, stmt, manual);
        }
    }

    fn stmt(&mut self, func: &Func, stmt: &Stmt, manual: AxisSet) {
        match &stmt.kind {
            StmtKind::Control(Control::For(op)) => {
                let carries = &stmt.args[op.bounds()..];
                let body = &op.body;
                debug_assert_eq!(body.params.len(), carries.len() + 1, "a body takes its counter and what it carries");
                // Barriers are not counted where the trip count is unknown.
                let inside = self.loops.filter(|_| op.trips().is_some()).map(|loops| loops + 1);
                let loops = std::mem::replace(&mut self.loops, inside);
                body.params.iter().for_each(|&param| self.define(func, param, manual));
                self.block(func, body, manual);
                self.loops = loops;
                for (i, &carry) in carries.iter().enumerate() {
                    let param = body.params[i + 1];
                    self.share(stmt.results[i], param);
                    self.flow(func, &[carry, body.results[i]], param, false, stmt);
                }
                for i in carries.len()..stmt.results.len() {
                    self.define(func, stmt.results[i], manual);
                    let stacked = self.slot(stmt.results[i]);
                    if let Some(trips) = self.slots[stacked].dims.first_mut() {
                        trips.pinned = true;
                    }
                    self.flow(func, &[body.results[i]], stmt.results[i], true, stmt);
                }
            }
            StmtKind::Control(Control::While(op)) => {
                let (cond, body) = (&op.cond, &op.body);
                let loops = std::mem::take(&mut self.loops);
                body.params.iter().for_each(|&param| self.define(func, param, manual));
                for (i, &param) in body.params.iter().enumerate() {
                    self.share(cond.params[i], param);
                    self.share(stmt.results[i], param);
                }
                self.block(func, cond, manual);
                self.block(func, body, manual);
                self.loops = loops;
                for (i, &param) in body.params.iter().enumerate() {
                    self.flow(func, &[stmt.args[i], body.results[i]], param, false, stmt);
                }
            }
            StmtKind::Control(Control::Branch(op)) => {
                op.sides().into_iter().for_each(|block| self.block(func, block, manual));
                for (i, &result) in stmt.results.iter().enumerate() {
                    self.define(func, result, manual);
                    let sources = op.sides().map(|block| block.results[i]);
                    self.flow(func, &sources, result, false, stmt);
                }
            }
            StmtKind::Control(Control::Manual(op)) => {
                let body = &op.body;
                let inside = manual.union(op.axes);
                // The compiler does not change the layouts of `manual` code.
                let loops = std::mem::take(&mut self.loops);
                for ((&param, &arg), input) in body.params.iter().zip(&stmt.args).zip(&op.inputs) {
                    self.define(func, param, inside);
                    self.border(arg, param, input, stmt.origin.span);
                }
                self.block(func, body, inside);
                for ((&result, &local), output) in stmt.results.iter().zip(&body.results).zip(&op.outputs) {
                    self.define(func, result, inside);
                    let slot = self.slot(result);
                    for (dim, manual) in self.slots[slot].dims.iter_mut().zip(&output.dims) {
                        if !dim.axes.starts_with(&manual.axes) {
                            dim.axes = manual.axes.clone();
                        }
                        dim.first = manual.axes.len();
                    }
                    self.border(result, local, output, stmt.origin.span);
                }
                self.loops = loops;
            }
            StmtKind::Op(op) => {
                stmt.results.iter().for_each(|&result| self.define(func, result, manual));
                if let Placement::Requested(_) = op.rules().properties().placement {
                    let slot = self.slot(stmt.results[0]);
                    pin(&mut self.slots[slot], func.ty(stmt.results[0]));
                }
                self.op(func, op, stmt);
            }
        }
    }

    /// The edge of an ordinary op.
    fn op(&mut self, func: &Func, op: &Op, stmt: &Stmt) {
        let projection = Projection::new(func.factors(op, stmt));
        let slots = stmt.args.iter().chain(&stmt.results).map(|&value| self.slot(value)).collect();
        let (span, op) = (stmt.origin.span, stmt.name());
        self.edges.push(PropagationEdge::Op(OpNode { projection, slots, span, op }));
    }

    /// Data flows from each of `sources` into `target`, which may have one dimension more in front.
    fn flow(&mut self, func: &Func, sources: &[Value], target: Value, stacked: bool, stmt: &Stmt) {
        let shape = func.ty(target).shape();
        let mut rule = Factors::new();
        let whole = |dim| if stacked && dim == 0 { FactorKind::Whole } else { FactorKind::Pass };
        let dims: Vec<Vec<usize>> =
            shape.iter().enumerate().map(|(dim, &size)| vec![rule.add(size, whole(dim))]).collect();
        rule.operands = vec![dims[usize::from(stacked)..].to_vec(); sources.len()];
        rule.results.push(dims);
        let slots = sources.iter().chain([&target]).map(|&value| self.slot(value)).collect();
        let (span, op) = (stmt.origin.span, stmt.name());
        self.edges.push(PropagationEdge::Op(OpNode { projection: Projection::new(rule), slots, span, op }));
    }

    fn border(&mut self, outside: Value, inside: Value, manual: &Sharding, span: Span) {
        let manual = manual.dims.iter().map(|dim| dim.axes.clone()).collect();
        self.edges.push(PropagationEdge::Border {
            slots: [outside, inside].map(|value| self.slot(value)),
            manual,
            span,
        });
    }

    /// An annotation applies to its operand: if the operand has no other use, it gets the annotated layout at once.
    fn pin_operands(&mut self, func: &Func, block: &Block, uses: &[u32]) {
        let mut plain = vec![false; func.values.len()];
        for stmt in &block.stmts {
            let placement = stmt.op().map(|op| op.rules().properties().placement);
            if let Some(Placement::Requested(to)) = placement
                && plain[stmt.args[0].0 as usize]
                && uses[stmt.args[0].0 as usize] == 1
                && to.unreduced.is_empty()
            {
                let (operand, result) = (self.slot(stmt.args[0]), self.slot(stmt.results[0]));
                let cause = Cause { from: result, span: stmt.origin.span, op: ANNOTATION };
                let (operand, result) = self.two(operand, result);
                // Axes that types decide stay unchanged.
                let decided = |slot: &Slot| -> Vec<Vec<u8>> {
                    let fixed = |axis: &&u8| !slot.allowed.contains(**axis as usize);
                    slot.dims.iter().map(|dim| dim.axes.iter().filter(fixed).copied().collect()).collect()
                };
                if decided(operand) == decided(result) {
                    operand.dims.clone_from(&result.dims);
                    operand.causes.extend(result.dims.iter().flat_map(|dim| &dim.axes).map(|&axis| (axis, cause)));
                }
            }
            if let Some(Placement::Follows | Placement::Out(_)) = placement {
                stmt.results.iter().for_each(|result| plain[result.0 as usize] = true);
            }
            stmt.blocks().for_each(|block| self.pin_operands(func, block, uses));
        }
    }

    /// Two different slots, the first of them mutable.
    fn two(&mut self, a: usize, b: usize) -> (&mut Slot, &Slot) {
        let (low, high) = self.slots.split_at_mut(a.max(b));
        if a < b { (&mut low[a], &high[0]) } else { (&mut high[0], &low[b]) }
    }

    fn settle(&mut self, mesh: &Mesh) {
        self.changed = vec![0; self.slots.len()];
        for stage in [step::PropagationStage::Carry, step::PropagationStage::Pass, step::PropagationStage::All] {
            self.settled = vec![None; self.edges.len()];
            self.settle_stage(mesh, stage);
        }
        // One edge at a time: the axes that one gives may already be all that another needs.
        for edge in 0..self.edges.len() {
            if let PropagationEdge::Op(node) = &self.edges[edge]
                && (node.exchange(&mut self.slots, mesh)
                    || node.pass_on(&mut self.slots, mesh, self.chosen, &mut self.open))
            {
                self.note(edge);
                self.settle_stage(mesh, step::PropagationStage::All);
            }
        }
    }

    fn settle_stage(&mut self, mesh: &Mesh, stage: step::PropagationStage) {
        loop {
            let before = self.changes;
            let edges = 0..self.edges.len();
            edges.clone().chain(edges.rev()).for_each(|edge| self.step(edge, mesh, stage));
            if self.changes == before {
                break;
            }
        }
    }

    /// Runs one step, unless no slot of the edge has changed since its last step had no effect.
    fn step(&mut self, edge: usize, mesh: &Mesh, stage: step::PropagationStage) {
        let same = |settled| self.edges[edge].slots().iter().all(|&slot| self.changed[slot] <= settled);
        if self.settled[edge].is_some_and(same) {
            return;
        }
        let slots = &mut self.slots;
        let changed = match &self.edges[edge] {
            PropagationEdge::Op(node) => node.step(slots, mesh, stage, self.chosen, &mut self.open),
            PropagationEdge::Border { slots: border, manual, span } => cross(slots, *border, manual, *span, mesh),
        };
        match changed {
            true => self.note(edge),
            false => self.settled[edge] = Some(self.changes),
        }
    }

    /// Records a change by an edge.
    fn note(&mut self, edge: usize) {
        self.changes += 1;
        self.edges[edge].slots().iter().for_each(|&slot| self.changed[slot] = self.changes);
    }
}

/// Pins the dimensions that the type closes.
fn pin(slot: &mut Slot, ty: &Type) {
    for (dim, sharding) in slot.dims.iter_mut().zip(&ty.sharding.dims) {
        dim.pinned = !sharding.open;
    }
}

/// Passes axes across the border of a `manual` region where the manual axes come first.
fn cross(slots: &mut [Slot], [outside, inside]: [usize; 2], manual: &[Vec<u8>], span: Span, mesh: &Mesh) -> bool {
    let mut changed = false;
    let cause = |from| Cause { from, span, op: "manual" };
    for (dim, manual) in manual.iter().enumerate() {
        let local = slots[inside].dims[dim].size;
        // Blocks of blocks are blocks of the whole array only if they are even.
        let even = |axes: &[u8]| manual.is_empty() || local.is_multiple_of(mesh.size_of(axes));
        let given: AxisSet = manual.iter().map(|&axis| axis as usize).collect();
        let mut wanted = manual.clone();
        wanted.extend(&slots[inside].dims[dim].axes);
        if even(&slots[inside].dims[dim].axes) {
            changed |= slots[outside].extend(dim, &wanted, given, cause(inside), mesh);
        }
        if let Some(rest) = slots[outside].dims[dim].axes.strip_prefix(manual.as_slice()) {
            let rest = rest.to_vec();
            if even(&rest) {
                changed |= slots[inside].extend(dim, &rest, AxisSet::EMPTY, cause(outside), mesh);
            }
        }
    }
    changed
}

/// Removes axes at the borders of `manual` regions where blocks of blocks would not be blocks of the whole array.
fn even_borders(module: &mut Module) {
    let Module { mesh, func, .. } = module;
    let mut uneven = Vec::new();
    func.body.walk(&mut |stmt| {
        let Some(Control::Manual(op)) = stmt.control() else { return };
        let body = &op.body;
        let borders = op.inputs.iter().zip(body.params.iter().map(|param| (param, param)));
        let outputs = op.outputs.iter().zip(body.results.iter().zip(&stmt.results));
        for (manual, (inside, changed)) in borders.chain(outputs) {
            for (dim, manual) in manual.dims.iter().enumerate() {
                let axes = &func.ty(*changed).sharding.dims[dim].axes;
                // Seen from outside, the manual axes come first.
                let kept = if inside == changed { 0 } else { manual.axes.len() };
                let more = axes.get(kept..).expect("a result's axes begin with those of the region");
                if !manual.axes.is_empty() && !func.ty(*inside).shape()[dim].is_multiple_of(mesh.size_of(more)) {
                    uneven.push((*changed, dim, kept));
                }
            }
        }
    });
    for (value, dim, kept) in uneven {
        func.info_mut(value).ty.sharding.dims[dim].axes.truncate(kept);
    }
}

/// Copies statements without operands for each use, so that each use can choose its layout.
fn copy_per_use(func: &mut Func) {
    // A copy of a large literal is no cheaper than moving it, and every device has the whole literal anyway.
    let mut makers: Vec<Option<Stmt>> = vec![None; func.values.len()];
    func.body.walk(&mut |stmt| {
        let is_free = |op: &Op| {
            let properties = op.rules().properties();
            !properties.has_effect() && properties.elements.literal().is_none()
        };
        if let ([result], []) = (stmt.results.as_slice(), stmt.args.as_slice())
            && stmt.op().is_some_and(is_free)
            && func.ty(*result).rank() > 0
        {
            makers[result.0 as usize] = Some(stmt.clone());
        }
    });
    if makers.iter().all(Option::is_none) {
        return;
    }
    let mut used = vec![false; makers.len()];
    let mut copies: Vec<Vec<Stmt>> = vec![Vec::new(); makers.len()];
    let mut body = std::mem::take(&mut func.body);
    body.each_use_mut(&mut |value| {
        let index = value.0 as usize;
        let Some(maker) = makers.get(index).and_then(Option::as_ref) else { return };
        if std::mem::replace(&mut used[index], true) {
            let (ty, origin) = (func.ty(*value).clone(), func.info(*value).origin.clone());
            let copy = func.new_value(ty, origin);
            copies[index].push(maker.making(vec![copy]));
            *value = copy;
        }
    });
    place(&mut body, &mut copies);
    func.body = body;
}

/// Puts the copies after their originals.
fn place(block: &mut Block, copies: &mut [Vec<Stmt>]) {
    let mut stmts = Vec::new();
    for mut stmt in std::mem::take(&mut block.stmts) {
        stmt.blocks_mut().for_each(|inner| place(inner, copies));
        let made = stmt.results.first().and_then(|result| copies.get_mut(result.0 as usize)).map(std::mem::take);
        stmts.push(stmt);
        stmts.extend(made.into_iter().flatten());
    }
    block.stmts = stmts;
}
