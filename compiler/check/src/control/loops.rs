//! `for` and `while`: the body becomes a block, and the variables that it assigns to are carried from trip to trip.
//!
//! The body is expanded once its carried types are known. They are the types before the loop, except that a literal
//! (`let mut total = 0.0`) takes the type that a trip gives it, and that inside `manual` a value varies if any trip makes it vary.
//! So the body is tried repeatedly with refined types until a trip keeps them.

use crate::Checker;
use crate::control::carried::{Carried, same_static};
use crate::errors::control as errors;
use crate::types::layouts::{FlowLeaf, choose};
use spmdc_grammar::ast::{BlockNode, Expr, InfixOp, PatternNode};
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_ir::call::build::BuilderMark;
use spmdc_ir::call::scoped::Scoped;
use spmdc_ir::call::term::{StaticScalar, Term, whole_number};
use spmdc_ir::call::trees;
use spmdc_ir::program::control::{Control, ForLoop, WhileLoop};
use spmdc_ir::program::{Block as IrBlock, Stmt as IrStmt, Value};
use spmdc_layout::cost;
use spmdc_layout::sharding::Sharding;
use spmdc_layout::types::{ArrayType, AxisSet, DType, Type};
use spmdc_ops::cast::cast;

/// A loop under construction.
struct Loop<'e> {
    kind: CarriedKind<'e>,
    body: &'e BlockNode,
    span: Span,
    carried: Vec<Carried>,
    /// The leaves of all carried variables, in order.
    leaves: Vec<CarriedLeaf>,
    /// The axes along which its condition is known to vary.
    varies: AxisSet,
    /// The leaves that have another layout after a trip.
    differing: Vec<Differing>,
}

enum CarriedKind<'e> {
    For { pattern: &'e PatternNode, range: Option<(i64, i64)>, bounds: Vec<Value>, stride: Stride, collect: bool },
    While { cond: &'e Expr },
}

/// The value of the loop's variable in trip `i`.
enum Stride {
    /// `i`
    One,
    /// `start + i * step`, because the loop counts its trips from 0.
    By { start: Term, step: i64 },
}

/// One leaf of a carried variable.
struct CarriedLeaf {
    /// The variable, and the path within it.
    variable: String,
    path: String,
    initial: Term,
    /// The element type that a literal has taken so far.
    dtype: Option<DType>,
    varying: AxisSet,
    /// The layout in which the loop carries it, if it differs from the layout before the loop.
    layout: Option<Sharding>,
    /// Whether it is a function, a string or the like, which passes through loops that do not change it.
    is_static: bool,
}

/// A leaf with different layouts before and after a trip, on explicit axes.
struct Differing {
    leaf: usize,
    before: (Type, Span),
    after: (Type, Span),
}

/// The reason why a trial of a loop's body failed.
enum TrialError {
    /// A leaf's type has changed: try again.
    Again,
    /// An error, which has been reported.
    Failed,
}

/// The state of the function under construction before a trial.
struct BodyTrial {
    build: BuilderMark,
    diagnostics: usize,
}

/// The results of a trip.
struct FilledBody {
    results: Vec<Value>,
    collected: Option<Term>,
    failed: Vec<String>,
}

/// The blocks of a loop whose trips keep the types of its carried values.
struct LoopBlocks {
    /// The condition of a `while`; empty for other loops.
    cond: IrBlock,
    body: IrBlock,
    /// The values of all trips, if the loop collects them.
    collected: Option<Term>,
    /// Variables with an error in them.
    failed: Vec<String>,
}

/// The carried variables after a trip.
struct TripEnd {
    /// The next value of each leaf that is an array.
    next: Vec<Value>,
    /// Variables with an error in them.
    failed: Vec<String>,
}

/// A leaf at the end of a trip.
enum NextLeaf {
    Value(Value),
    /// A value in another layout than before.
    Differs(Value),
    Again,
    Failed,
}

impl CarriedLeaf {
    fn name(&self) -> String {
        format!("{}{}", self.variable, self.path)
    }
}

impl Checker<'_> {
    pub(crate) fn for_loop(
        &mut self,
        pattern: &PatternNode,
        bounds: (&Expr, &Expr, Option<&Expr>),
        collect: bool,
        body: &BlockNode,
        span: Span,
    ) -> Term {
        let (start, end) = (self.expr(bounds.0), self.expr(bounds.1));
        let step = bounds.2.map_or(Some(1), |step| self.loop_step(step));
        let (Some(step), false, false) = (step, matches!(start, Term::Poison), matches!(end, Term::Poison)) else {
            return self.poison_assigned(body);
        };
        let kind = match (whole_number(&start), whole_number(&end)) {
            (Some(start), Some(end)) => {
                let limit = i128::from(i32::MAX);
                if start.abs() > limit || end.abs() > limit {
                    self.report(errors::loop_range(start, end, span));
                    return self.poison_assigned(body);
                }
                let (range, stride) = match step {
                    1 => ((start as i64, end as i64), Stride::One),
                    step => {
                        let distance = if step > 0 { end - start } else { start - end };
                        let trips = (distance.max(0) as u64).div_ceil(step.unsigned_abs());
                        ((0, trips as i64), Stride::By { start: Term::Int(start), step })
                    }
                };
                CarriedKind::For { pattern, range: Some(range), bounds: Vec::new(), stride, collect }
            }
            _ => {
                if collect {
                    self.report(errors::collect_bounds(bounds.0.span.to(bounds.1.span)));
                    return self.poison_assigned(body);
                }
                let start = self.loop_bound(&start, bounds.0.span);
                let end = self.loop_bound(&end, bounds.1.span);
                let (Some(start), Some(end)) = (start, end) else { return self.poison_assigned(body) };
                let counted = match step {
                    1 => Ok((vec![start, end], Stride::One)),
                    step => self.counted(start, end, step, span),
                };
                match counted {
                    Ok((bounds, stride)) => CarriedKind::For { pattern, range: None, bounds, stride, collect },
                    Err(diagnostic) => {
                        self.report(diagnostic);
                        return self.poison_assigned(body);
                    }
                }
            }
        };
        self.carried_loop(kind, body, span)
    }

    /// The step: a constant that is not zero.
    fn loop_step(&mut self, step: &Expr) -> Option<i64> {
        let term = self.expr(step);
        match whole_number(&term).and_then(|step| i32::try_from(step).ok()) {
            _ if matches!(term, Term::Poison) => None,
            Some(step) if step != 0 => Some(i64::from(step)),
            _ => {
                self.report(errors::loop_step(&self.display_term(&term), step.span));
                None
            }
        }
    }

    /// The trips of a loop between dynamic bounds: `max(0, ceil((end - start) / step))`, in 64 bits.
    fn counted(&mut self, start: Value, end: Value, step: i64, span: Span) -> Result<(Vec<Value>, Stride), Diagnostic> {
        self.build.set_span(span);
        let mut wide = |value: Value| cast(&mut self.build, value, DType::I64).map(Term::Array);
        let (first, last) = if step > 0 { (wide(start)?, wide(end)?) } else { (wide(end)?, wide(start)?) };
        let size = i128::from(step.abs());
        let distance = self.binary_terms(InfixOp::Sub, span, (last, span), (first, span));
        let padded = self.binary_terms(InfixOp::Add, span, (distance, span), (Term::Int(size - 1), span));
        let trips = self.binary_terms(InfixOp::FloorDiv, span, (padded, span), (Term::Int(size), span));
        let trips = self.call_builtin("maximum", vec![(None, trips, span), (None, Term::Int(0), span)], span);
        let trips = self.build.materialize(&trips, None, span)?;
        let trips = cast(&mut self.build, trips, DType::I32)?;
        let zero = self.build.materialize(&Term::Int(0), Some(DType::I32), span)?;
        Ok((vec![zero, trips], Stride::By { start: Term::Array(start), step }))
    }

    pub(crate) fn while_loop(&mut self, cond: &Expr, body: &BlockNode, span: Span) -> Term {
        self.carried_loop(CarriedKind::While { cond }, body, span)
    }

    /// A dynamic bound: an i32 scalar.
    fn loop_bound(&mut self, term: &Term, span: Span) -> Option<Value> {
        self.build.set_span(span);
        let value = if let Term::Array(value) = term {
            let ty = self.build.ty(*value);
            if !ty.is_scalar() || !ty.dtype().is_integer() {
                let found = self.display_term(term);
                self.report(errors::loop_bound(&format!("`{found}`"), span));
                return None;
            }
            cast(&mut self.build, *value, DType::I32)
        } else if let Term::Int(_) = term {
            self.build.materialize(term, Some(DType::I32), span)
        } else {
            self.report(errors::loop_bound(term.describe(), span));
            return None;
        };
        value.map_err(|diagnostic| self.report(diagnostic)).ok()
    }

    fn poison_assigned(&mut self, body: &BlockNode) -> Term {
        let carried = self.carried_variables(&[body], &[]);
        self.poison(&carried);
        Term::Poison
    }

    fn carried_loop(&mut self, kind: CarriedKind, body: &BlockNode, span: Span) -> Term {
        let carried = self.carried_variables(&[body], &[]);
        let mut leaves = Vec::new();
        for variable in &carried {
            let mut found = Vec::new();
            trees::leaves(&variable.term, "", &mut found);
            leaves.extend(found.into_iter().map(|(path, leaf)| CarriedLeaf {
                variable: variable.name.clone(),
                path,
                initial: leaf.clone(),
                dtype: None,
                varying: AxisSet::EMPTY,
                layout: None,
                is_static: !trees::is_number(leaf),
            }));
        }
        let mut state = Loop { kind, body, span, carried, leaves, varies: AxisSet::EMPTY, differing: Vec::new() };
        let trial = BodyTrial { build: self.build.mark(), diagnostics: self.diagnostics.len() };
        let Some(term) = self.settled(&mut state, &trial) else { return Term::Poison };
        if state.differing.is_empty() {
            return term;
        }
        let differing = std::mem::take(&mut state.differing);
        let errors: Vec<Diagnostic> =
            differing.iter().map(|leaf| self.layout_error(&mut state, &trial, leaf, &differing)).collect();
        // The trials of other layouts are over: further errors are those of the original loop.
        let term = self.settled(&mut state, &trial).unwrap_or(Term::Poison);
        errors.into_iter().for_each(|error| {
            self.report(error);
        });
        term
    }

    /// Expands the loop until a trip keeps the types of its carried values.
    fn settled(&mut self, state: &mut Loop, trial: &BodyTrial) -> Option<Term> {
        // Every round gives at least one leaf another element type or more varying axes, which bounds their number.
        let rounds = 2 + state.leaves.len() * (2 + self.build.mesh().axes.len());
        for _ in 0..rounds {
            self.roll_back(trial, &state.carried);
            match self.try_loop(state) {
                Ok(term) => return Some(term),
                Err(TrialError::Again) => {}
                Err(TrialError::Failed) => {
                    self.build.leave(&trial.build);
                    break;
                }
            }
        }
        self.poison(&state.carried);
        None
    }

    /// The error for a carried variable with another layout after a trip, and the possible edits: reshard it in each trip, or, if
    /// the trips keep that layout, reshard it before the loop.
    fn layout_error(
        &mut self,
        state: &mut Loop,
        trial: &BodyTrial,
        differing: &Differing,
        all: &[Differing],
    ) -> Diagnostic {
        let (before, after) = (&differing.before.0, &differing.after.0);
        let layouts = [before, after].map(|ty| self.build.explicit_part(ty));
        let mistakes = self.diagnostics.len();
        state.leaves[differing.leaf].layout = Some(layouts[1].clone());
        let is_kept = self.settled(state, trial).is_some()
            && self.diagnostics.len() <= mistakes
            && state
                .differing
                .iter()
                .all(|other| other.leaf != differing.leaf && all.iter().any(|known| known.leaf == other.leaf));
        let leaf = &mut state.leaves[differing.leaf];
        leaf.layout = None;
        let part = FlowLeaf { variable: Some(&leaf.variable), path: &leaf.path };
        let trips = match &state.kind {
            CarriedKind::For { range, .. } => {
                cost::repeated_trips(range.map(|(start, end)| (end - start).max(0) as u64))
            }
            CarriedKind::While { .. } => cost::repeated_trips(None),
        };
        let back = self.at_end(state.body, part, &self.written(&layouts[0]));
        let mut ways = vec![self.way(back, "at the end of the body", after, &layouts[0], Some(trips as f64))];
        if is_kept {
            let there = self.in_front(part, &self.written(&layouts[1]));
            ways.push(self.way(there, "in front of the loop", before, &layouts[1], None));
        }
        let shown = [before, after].map(|ty| self.build.display_closed(ty));
        let error = errors::carried_type(&leaf.name(), &shown[0], &shown[1], state.span);
        let error = self.build.with_types(error, [(before, differing.before.1), (after, differing.after.1)]);
        choose(error, ways.into_iter().flatten().collect())
    }

    fn roll_back(&mut self, trial: &BodyTrial, carried: &[Carried]) {
        self.build.roll_back(&trial.build);
        self.diagnostics.truncate(trial.diagnostics);
        for variable in carried {
            self.set_variable(&variable.name, variable.term.clone());
        }
    }

    fn try_loop(&mut self, state: &mut Loop) -> Result<Term, TrialError> {
        state.differing.clear();
        let inits = self.initial_values(state)?;
        let mut types: Vec<Type> = inits.iter().map(|&value| self.build.carried_type(value)).collect();
        for (ty, variable) in types.iter_mut().zip(&state.carried) {
            // In a dump every carried variable is one array.
            if let Some((declared, _)) = &variable.declared {
                ty.clone_from(declared);
            }
        }
        let arrays = state.leaves.iter().filter(|leaf| !leaf.is_static);
        for (ty, leaf) in types.iter_mut().zip(arrays) {
            if let Some(layout) = &leaf.layout {
                ty.sharding.clone_from(layout);
            }
        }
        let place = if let CarriedKind::While { cond } = &state.kind { cond.span } else { state.span };
        let blocks = self.under(state.varies, place, |checker| checker.loop_blocks(state, &types))?;
        let LoopBlocks { cond, body, collected, failed } = blocks;
        let term = self.emit_loop(state, inits, (cond, body), &types, collected);
        for name in failed {
            self.set_variable(&name, Term::Poison);
        }
        Ok(term)
    }

    /// The blocks of a loop, under its condition.
    fn loop_blocks(&mut self, state: &mut Loop, types: &[Type]) -> Result<LoopBlocks, TrialError> {
        let (cond, varies) = match &state.kind {
            CarriedKind::While { cond } => {
                let (block, flag) = self.condition_block(cond, state, types)?;
                (block, self.build.ty(flag).varying)
            }
            CarriedKind::For { bounds, .. } => {
                let varying = bounds.iter().map(|&bound| self.build.ty(bound).varying);
                (IrBlock::default(), varying.fold(AxisSet::EMPTY, AxisSet::union))
            }
        };
        if !varies.is_subset_of(state.varies) {
            state.varies = state.varies.union(varies);
            let all = state.varies;
            let arrays = state.leaves.iter_mut().filter(|leaf| !leaf.is_static);
            arrays.for_each(|leaf| leaf.varying = leaf.varying.union(all));
            return Err(TrialError::Again);
        }

        let counters = usize::from(matches!(state.kind, CarriedKind::For { .. }));
        let mut param_types = types.to_vec();
        if counters == 1 {
            let counter = self.build.replicated(ArrayType::scalar(DType::I32));
            param_types.insert(0, Type { varying: varies, ..counter });
        }
        let params = self.new_params(&param_types, state.span);
        let start = IrBlock { params: params.clone(), ..IrBlock::default() };
        let (body, filled) = self.in_block(start, |checker| checker.fill_body(state, types, &params));
        let FilledBody { results, collected, failed } = filled?;
        Ok(LoopBlocks { cond, body: IrBlock { results, ..body }, collected, failed })
    }

    /// The statements of a trip: its results, the collected values, and the variables with an error in them.
    fn fill_body(&mut self, state: &mut Loop, types: &[Type], params: &[Value]) -> Result<FilledBody, TrialError> {
        let counters = usize::from(matches!(state.kind, CarriedKind::For { .. }));
        self.turn_as_declared(state, &params[counters..]);
        self.set_leaves(state, &params[counters..]);
        let is_checkpoint = self.recomputed.contains(&state.span);
        let (value, trip) = self.recomputed_if(is_checkpoint, |checker| checker.fill_trip(state, types, params))?;
        let mut results = trip.next;
        let mut collected = None;
        if let CarriedKind::For { collect: true, .. } = &state.kind {
            collected = self.collected(&value, state.body, &mut results);
        }
        Ok(FilledBody { results, collected, failed: trip.failed })
    }

    /// The statements of a trip alone: its value, and the values that it carries on.
    fn fill_trip(&mut self, state: &mut Loop, types: &[Type], params: &[Value]) -> Result<(Term, TripEnd), TrialError> {
        let counters = usize::from(matches!(state.kind, CarriedKind::For { .. }));
        self.push_scope();
        if let CarriedKind::For { pattern, stride, .. } = &state.kind {
            let counter = self.counter(params[0], stride, state.span);
            self.bind_pattern(pattern, counter, false);
        }
        let value = self.block(state.body);
        self.pop_scope();
        let collects = matches!(state.kind, CarriedKind::For { collect: true, .. });
        if let Some(last) = &state.body.value
            && !collects
            && trees::is_something(&value)
            && !self.value_acts
        {
            self.report(errors::dropped_in_loop(last.span, counters == 1));
        }
        let trip = self.trip(state, types, &params[counters..])?;
        Ok((value, trip))
    }

    /// The value of the loop's variable in a trip.
    fn counter(&mut self, trip: Value, stride: &Stride, span: Span) -> Term {
        let trip = Term::Array(trip);
        match stride {
            Stride::One => trip,
            Stride::By { start, step } => {
                let steps = self.binary_terms(InfixOp::Mul, span, (trip, span), (Term::Int(i128::from(*step)), span));
                self.binary_terms(InfixOp::Add, span, (steps, span), (start.clone(), span))
            }
        }
    }

    /// The block of the condition. Devices leave the loop when it fails, so the block itself is under the condition.
    fn condition_block(&mut self, cond: &Expr, state: &Loop, types: &[Type]) -> Result<(IrBlock, Value), TrialError> {
        let params = self.new_params(types, state.span);
        let start = IrBlock { params: params.clone(), ..IrBlock::default() };
        let (block, flag) = self.in_block(start, |checker| {
            checker.set_leaves(state, &params);
            let term = checker.expr(cond);
            checker.condition(&term, cond.span).ok_or(TrialError::Failed)
        });
        let flag = flag?;
        Ok((IrBlock { results: vec![flag], ..block }, flag))
    }

    /// Compares the carried variables after the body with those before it.
    fn trip(&mut self, state: &mut Loop, types: &[Type], params: &[Value]) -> Result<TripEnd, TrialError> {
        let span = state.span;
        let mut trip = TripEnd { next: Vec::new(), failed: Vec::new() };
        let mut again = false;
        let mut leaves = state.leaves.iter_mut().enumerate();
        for variable in &state.carried {
            let after = self.local(&variable.name).map_or(Term::Poison, |binding| binding.term.clone());
            let has_form = trees::same_form(&variable.term, &after);
            if !has_form && !matches!(after, Term::Poison) {
                let (before, now) = (self.display_term(&variable.term), self.display_term(&after));
                self.report(errors::carried_type(&variable.name, &before, &now, span));
            }
            trees::link_fields(&variable.term, &after, &mut self.build.fields);
            let (mut old, mut new) = (Vec::new(), Vec::new());
            trees::leaves(&variable.term, "", &mut old);
            trees::leaves(&after, "", &mut new);
            for (position, (number, leaf)) in leaves.by_ref().take(old.len()).enumerate() {
                let next = if has_form { new[position].1.clone() } else { Term::Poison };
                if leaf.is_static {
                    if !same_static(&leaf.initial, &next) && !matches!(next, Term::Poison) {
                        self.report(errors::carried_kind(&leaf.name(), leaf.initial.describe(), span));
                    }
                    continue;
                }
                let at = trip.next.len();
                match self.next_value(leaf, &next, &types[at], span) {
                    NextLeaf::Value(value) => trip.next.push(value),
                    NextLeaf::Differs(value) => {
                        let origin = |value: Value| self.build.info(value).origin.span;
                        let initial = if let Term::Array(initial) = leaf.initial { origin(initial) } else { span };
                        state.differing.push(Differing {
                            leaf: number,
                            before: (types[at].clone(), initial),
                            after: (self.build.ty(value).clone(), origin(value)),
                        });
                        trip.failed.push(variable.name.clone());
                        trip.next.push(params[at]);
                    }
                    NextLeaf::Again => {
                        again = true;
                        trip.next.push(params[at]);
                    }
                    NextLeaf::Failed => {
                        trip.failed.push(variable.name.clone());
                        trip.next.push(params[at]);
                    }
                }
            }
        }
        if again { Err(TrialError::Again) } else { Ok(trip) }
    }

    /// Adds the values that a trip of a `collect` gives to the block's results.
    fn collected(&mut self, value: &Term, body: &BlockNode, results: &mut Vec<Value>) -> Option<Term> {
        let span = body.value.as_ref().map_or(body.span, |value| value.span);
        let mut leaves = Vec::new();
        trees::leaves(value, "", &mut leaves);
        for (_, leaf) in &leaves {
            if !trees::is_number(leaf) {
                if !matches!(leaf, Term::Poison) {
                    self.report(errors::collect_kind(leaf.describe(), span));
                }
                return None;
            }
            let value = self.value(leaf, span)?;
            results.push(self.in_memory(value, "a collected value", span)?);
        }
        if leaves.is_empty() {
            self.report(errors::collect_kind("nothing", span));
            return None;
        }
        Some(value.clone())
    }

    fn emit_loop(
        &mut self,
        state: &Loop,
        inits: Vec<Value>,
        (cond, body): (IrBlock, IrBlock),
        types: &[Type],
        collected: Option<Term>,
    ) -> Term {
        let origin = self.build.origin_at(state.span);
        let mut results: Vec<Value> = types.iter().map(|ty| self.build.new_value(ty.clone(), origin.clone())).collect();
        let (control, args) = match &state.kind {
            CarriedKind::While { .. } => (Control::While(WhileLoop { cond, body }), inits),
            CarriedKind::For { range, bounds, .. } => {
                let extra = body.results[types.len()..].to_vec();
                let trips = range.map_or(0, |(start, end)| (end - start).max(0)) as usize;
                for value in &extra {
                    let ty = self.build.stacked_type(*value, trips);
                    results.push(self.build.new_value(ty, origin.clone()));
                }
                let args = bounds.iter().copied().chain(inits).collect();
                (Control::For(ForLoop { range: *range, collected: extra.len(), body }), args)
            }
        };
        let stmt = IrStmt::of_control(control, args, results.clone(), origin);
        self.build.innermost().stmts.push(stmt);
        self.turn_as_declared(state, &results[..types.len()]);
        self.set_leaves(state, &results[..types.len()]);
        for variable in &state.carried {
            let binding = self.local(&variable.name).map(|binding| (binding.span, binding.term.clone()));
            if let Some((place, term)) = binding {
                self.name_values(&variable.name, place, &term);
            }
        }
        match (&state.kind, collected) {
            (CarriedKind::For { collect: true, .. }, Some(form)) => {
                trees::rebuild(&form, &mut results[types.len()..].iter().map(|&value| Term::Array(value)))
            }
            (CarriedKind::For { collect: true, .. }, None) => Term::Poison,
            (CarriedKind::For { collect: false, .. } | CarriedKind::While { .. }, _) => Term::Tuple(Vec::new()),
        }
    }

    /// The arrays that enter the loop. Literals become constants of the type that they have taken.
    fn initial_values(&mut self, state: &Loop) -> Result<Vec<Value>, TrialError> {
        let mut values = Vec::new();
        for leaf in state.leaves.iter().filter(|leaf| !leaf.is_static) {
            self.build.set_span(state.span);
            let value = self.build.materialize(&leaf.initial, leaf.dtype, state.span);
            let value = value.and_then(|value| self.build.vary(value, leaf.varying));
            match value.and_then(|value| self.build.in_memory(value, "a variable that a loop carries", state.span)) {
                Ok(value) => values.push(value),
                Err(diagnostic) => {
                    self.report(diagnostic);
                    return Err(TrialError::Failed);
                }
            }
        }
        Ok(values)
    }

    /// The next value of one leaf.
    fn next_value(&mut self, leaf: &mut CarriedLeaf, next: &Term, wanted: &Type, span: Span) -> NextLeaf {
        if matches!(next, Term::Poison) {
            return NextLeaf::Failed;
        }
        if !trees::is_number(next) {
            self.report(errors::carried_kind(&leaf.name(), next.describe(), span));
            return NextLeaf::Failed;
        }
        let is_literal = !matches!(leaf.initial, Term::Array(_));
        let weak = match next.static_scalar() {
            Some(StaticScalar::Int(_)) => wanted.dtype() != DType::Bool,
            Some(StaticScalar::Float(_)) => wanted.dtype().is_float(),
            Some(StaticScalar::Bool(_)) => true,
            None => !matches!(next, Term::Array(_)),
        };
        self.build.set_span(span);
        let value = match self.build.materialize(next, weak.then_some(wanted.dtype()), span) {
            Ok(value) => value,
            Err(diagnostic) => {
                self.report(diagnostic);
                return NextLeaf::Failed;
            }
        };
        let ty = self.build.ty(value).clone();
        if ty.array != wanted.array {
            if is_literal && ty.shape() == wanted.shape() && leaf.dtype != Some(ty.dtype()) && leaf.dtype.is_none() {
                leaf.dtype = Some(ty.dtype());
                return NextLeaf::Again;
            }
            self.report(errors::carried_type(&leaf.name(), &wanted.array.to_string(), &ty.array.to_string(), span));
            return NextLeaf::Failed;
        }
        if !ty.varying.is_subset_of(leaf.varying.union(wanted.varying)) {
            leaf.varying = leaf.varying.union(wanted.varying).union(ty.varying);
            return NextLeaf::Again;
        }
        if self.exact.is_none() && self.build.explicit_part(&ty) != self.build.explicit_part(wanted) {
            return NextLeaf::Differs(value);
        }
        match self.build.vary(value, wanted.varying) {
            Ok(value) => NextLeaf::Value(value),
            Err(diagnostic) => {
                self.report(diagnostic);
                NextLeaf::Failed
            }
        }
    }

    /// Gives the carried values of a loop in a dump the axes that the function around turns.
    fn turn_as_declared(&mut self, state: &Loop, values: &[Value]) {
        for (&value, variable) in values.iter().zip(&state.carried) {
            if let Some((_, turned)) = variable.declared {
                self.build.info_mut(value).origin.turned = turned;
            }
        }
    }

    /// The parameters of a block.
    fn new_params(&mut self, types: &[Type], span: Span) -> Vec<Value> {
        let origin = self.build.origin_at(span);
        types.iter().map(|ty| self.build.new_value(ty.clone(), origin.clone())).collect()
    }

    /// Gives the carried variables the values of their leaves.
    fn set_leaves(&mut self, state: &Loop, values: &[Value]) {
        let mut values = values.iter();
        let mut terms = state.leaves.iter().map(|leaf| match leaf.is_static {
            false => values.next().map_or(Term::Poison, |&value| Term::Array(value)),
            true => leaf.initial.clone(),
        });
        for variable in &state.carried {
            let term = trees::rebuild(&variable.term, &mut terms);
            self.set_variable(&variable.name, term);
        }
    }
}
