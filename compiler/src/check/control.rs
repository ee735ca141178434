//! `for`, `while` and `if`: blocks in the IR, with the variables that they assign as carried values and results.
//!
//! A loop's body is expanded once its carried types are known. They are the types before the loop, except that a literal
//! (`let mut total = 0.0`) takes the type that a trip gives it, and that inside `manual` a value varies if any trip makes it vary. So the
//! body is tried, and tried again with better types, until a trip keeps them.

use super::Checker;
use super::assigned::Assigned;
use super::errors::control as errors;
use super::scopes::Binding;
use super::sizes::whole_number;
use super::term::Term;
use super::trees;
use crate::ir::origin::Origin;
use crate::ir::types::{ArrayType, AxisSet, DType, Type};
use crate::ir::{Block as IrBlock, Stmt as IrStmt, Value};
use crate::ops::Op;
use crate::ops::control::{Branch, ForLoop, WhileLoop};
use spmdc_grammar::ast::{Block, Expr, Pattern};
use spmdc_grammar::span::Span;

/// A variable that a loop assigns to.
struct Carried {
    name: String,
    /// Before the loop.
    term: Term,
    /// In a dump: the type that it is carried in.
    declared: Option<Type>,
}

/// One array of a carried variable.
#[derive(Clone)]
struct Leaf {
    /// Which carried variable it belongs to, and where in it: for messages.
    path: String,
    initial: Term,
    /// The element type that a literal has taken so far.
    dtype: Option<DType>,
    varying: AxisSet,
    /// A function, a string or the like: it passes through loops that do not change it.
    is_static: bool,
}

enum LoopKind<'e> {
    For { pattern: &'e Pattern, range: Option<(i64, i64)>, bounds: Vec<Value>, collect: bool },
    While { cond: &'e Expr },
}

/// What one trial of a loop's body gave.
enum Trial {
    Done(Term),
    /// Try again: a leaf's type has changed.
    Again,
}

/// Where the function under construction was before a trial.
struct Mark {
    values: usize,
    blocks: usize,
    stmts: usize,
    diagnostics: usize,
    conditions: usize,
}

impl Checker<'_> {
    pub(super) fn for_loop(
        &mut self,
        pattern: &Pattern,
        bounds: (&Expr, &Expr),
        collect: bool,
        body: &Block,
        span: Span,
    ) -> Term {
        let (start, end) = (self.expr(bounds.0), self.expr(bounds.1));
        if matches!(start, Term::Poison) || matches!(end, Term::Poison) {
            return self.poison_assigned(&[body]);
        }
        let kind = match (whole_number(&start), whole_number(&end)) {
            (Some(start), Some(end)) => {
                let limit = i128::from(i32::MAX);
                if start.abs() > limit || end.abs() > limit {
                    self.report(errors::loop_range(start, end, span));
                    return self.poison_assigned(&[body]);
                }
                LoopKind::For { pattern, range: Some((start as i64, end as i64)), bounds: Vec::new(), collect }
            }
            _ => {
                if collect {
                    self.report(errors::collect_bounds(bounds.0.span.to(bounds.1.span)));
                    return self.poison_assigned(&[body]);
                }
                let start = self.loop_bound(&start, bounds.0.span);
                let end = self.loop_bound(&end, bounds.1.span);
                match (start, end) {
                    (Some(start), Some(end)) => {
                        LoopKind::For { pattern, range: None, bounds: vec![start, end], collect }
                    }
                    _ => return self.poison_assigned(&[body]),
                }
            }
        };
        self.carried_loop(&kind, body, span)
    }

    pub(super) fn while_loop(&mut self, cond: &Expr, body: &Block, span: Span) -> Term {
        self.carried_loop(&LoopKind::While { cond }, body, span)
    }

    /// A dynamic bound: an i32 scalar.
    fn loop_bound(&mut self, term: &Term, span: Span) -> Option<Value> {
        let wanted = ArrayType::scalar(DType::I32);
        let value = match term {
            Term::Array(value) => *value,
            Term::Int(_) => {
                self.build.span = span;
                return match self.build.materialize(term, Some(DType::I32), span) {
                    Ok(value) => Some(value),
                    Err(diagnostic) => {
                        self.report(diagnostic);
                        None
                    }
                };
            }
            other => {
                self.report(errors::loop_bound(other.describe(), span));
                return None;
            }
        };
        let ty = self.build.ty(value);
        if ty.array == wanted {
            return Some(value);
        }
        if !ty.is_scalar() || !ty.dtype().is_integer() {
            let found = self.display_term(term);
            self.report(errors::loop_bound(&format!("`{found}`"), span));
            return None;
        }
        match self.cast_to(value, DType::I32, span) {
            Term::Array(value) => Some(value),
            _ => None,
        }
    }

    pub(super) fn cast_to(&mut self, value: Value, dtype: DType, span: Span) -> Term {
        let target = super::term::TypeTerm { array: ArrayType::scalar(dtype), sharding: None, varying: AxisSet::EMPTY };
        self.call_builtin("cast", vec![(None, Term::Array(value), span), (None, Term::Type(target), span)], span)
    }

    fn carried_loop(&mut self, kind: &LoopKind, body: &Block, span: Span) -> Term {
        let carried = self.carried_variables(&[body]);
        let mut leaves = Vec::new();
        for variable in &carried {
            let mut found = Vec::new();
            trees::leaves(&variable.term, &variable.name, &mut found);
            for (path, leaf) in found {
                leaves.push(Leaf {
                    path,
                    initial: leaf.clone(),
                    dtype: None,
                    varying: AxisSet::EMPTY,
                    is_static: !trees::is_number(leaf),
                });
            }
        }
        // Every round gives at least one leaf another element type or more varying axes.
        let rounds = 2 + leaves.len() * (2 + self.build.mesh.axes.len());
        let mark = self.mark();
        let mut varies = AxisSet::EMPTY;
        for round in 0..rounds {
            let is_last = round + 1 == rounds;
            match self.try_loop(kind, body, &carried, &mut leaves, &mut varies, span, is_last) {
                Trial::Done(term) => return term,
                Trial::Again => self.roll_back(&mark, &carried),
            }
        }
        Term::Poison
    }

    fn mark(&mut self) -> Mark {
        Mark {
            values: self.build.func.values.len(),
            blocks: self.build.blocks.len(),
            stmts: self.build.innermost().stmts.len(),
            diagnostics: self.diagnostics.len(),
            conditions: self.build.conditions.len(),
        }
    }

    fn roll_back(&mut self, mark: &Mark, carried: &[Carried]) {
        self.build.blocks.truncate(mark.blocks);
        self.build.innermost().stmts.truncate(mark.stmts);
        self.build.func.values.truncate(mark.values);
        self.build.conditions.truncate(mark.conditions);
        self.diagnostics.truncate(mark.diagnostics);
        for variable in carried {
            self.set_variable(&variable.name, variable.term.clone());
        }
    }

    /// `varies` are the axes along which the loop's condition is known to vary.
    #[allow(clippy::too_many_arguments)]
    fn try_loop(
        &mut self,
        kind: &LoopKind,
        body: &Block,
        carried: &[Carried],
        leaves: &mut [Leaf],
        varies: &mut AxisSet,
        span: Span,
        is_last: bool,
    ) -> Trial {
        let mark = self.mark();
        let Some(inits) = self.initial_values(leaves, span) else {
            self.poison(carried);
            return Trial::Done(Term::Poison);
        };
        let is_array: Vec<bool> = leaves.iter().map(|leaf| !leaf.is_static).collect();
        let mut param_types: Vec<Type> = inits.iter().map(|&value| self.build.carried_type(value)).collect();
        for (ty, variable) in param_types.iter_mut().zip(carried) {
            // In a dump every carried variable is one array.
            if let Some(declared) = &variable.declared {
                ty.clone_from(declared);
            }
        }

        // `while`: the condition's own block. Devices leave the loop when it fails, so it stands under itself.
        let mut blocks = Vec::new();
        let condition_place = match kind {
            LoopKind::While { cond } => cond.span,
            LoopKind::For { .. } => span,
        };
        self.build.conditions.push((*varies, condition_place));
        let mut condition_varies = AxisSet::EMPTY;
        if let LoopKind::While { cond } = kind {
            let params = self.open_block(&param_types, span);
            self.set_leaves(carried, leaves, &is_array, &params);
            let term = self.expr(cond);
            let Some(flag) = self.condition(&term, cond.span) else {
                self.abandon(&mark, carried);
                return Trial::Done(Term::Poison);
            };
            condition_varies = self.build.ty(flag).varying;
            blocks.push(self.close_block(params, vec![flag]));
        }
        if let LoopKind::For { bounds, .. } = kind {
            condition_varies =
                bounds.iter().fold(condition_varies, |set, &bound| set.union(self.build.ty(bound).varying));
        }
        if !condition_varies.is_subset_of(*varies) {
            *varies = varies.union(condition_varies);
            for leaf in leaves.iter_mut().filter(|leaf| !leaf.is_static) {
                leaf.varying = leaf.varying.union(*varies);
            }
            if !is_last {
                return Trial::Again;
            }
        }

        // The body.
        let mut types = param_types.clone();
        if let LoopKind::For { .. } = kind {
            let counter = self.build.replicated(ArrayType::scalar(DType::I32));
            types.insert(0, Type { varying: condition_varies, ..counter });
        }
        let params = self.open_block(&types, span);
        let carries = if matches!(kind, LoopKind::For { .. }) { &params[1..] } else { &params[..] };
        self.set_leaves(carried, leaves, &is_array, carries);
        self.push_scope();
        if let LoopKind::For { pattern, .. } = kind {
            self.bind_pattern(pattern, Term::Array(params[0]), false);
        }
        let value = self.block(body);
        self.pop_scope();

        // What a trip makes of the carried variables.
        let mut results = Vec::new();
        let mut again = false;
        let mut failed = Vec::new();
        let mut at = 0;
        for variable in carried {
            let after = self.local(&variable.name).map_or(Term::Poison, |binding| binding.term.clone());
            let mut found = Vec::new();
            trees::leaves(&after, &variable.name, &mut found);
            let has_form = trees::same_form(&variable.term, &after);
            if !has_form && !matches!(after, Term::Poison) {
                let (before, now) = (self.display_term(&variable.term), self.display_term(&after));
                self.report(errors::carried_type(&variable.name, &before, &now, span));
            }
            let count = leaf_count(&variable.term);
            let found = found.into_iter().map(|(_, leaf)| leaf.clone());
            let found: Vec<Term> = if has_form { found.collect() } else { vec![Term::Poison; count] };
            for next in found.into_iter().take(count) {
                let leaf = &mut leaves[at];
                at += 1;
                if leaf.is_static {
                    if !same_static(&leaf.initial, &next) && !matches!(next, Term::Poison) {
                        let (path, kind) = (leaf.path.clone(), leaf.initial.describe());
                        self.report(errors::carried_kind(&path, kind, span));
                    }
                    continue;
                }
                let wanted = &param_types[results.len()];
                match self.next_value(leaf, &next, wanted, span) {
                    Next::Value(value) => results.push(value),
                    Next::Again => {
                        again = true;
                        results.push(carries[results.len()]);
                    }
                    Next::Failed => {
                        failed.push(variable.name.clone());
                        results.push(carries[results.len()]);
                    }
                }
            }
        }
        if again && !is_last {
            return Trial::Again;
        }

        // `collect`
        let mut collected = None;
        if let LoopKind::For { collect: true, .. } = kind {
            collected = self.collected(&value, body, &mut results);
        }
        blocks.push(self.close_block(params, results));
        self.build.conditions.truncate(mark.conditions);
        let term = self.emit_loop(kind, inits, blocks, &param_types, collected, carried, leaves, span);
        for name in failed {
            self.set_variable(&name, Term::Poison);
        }
        Trial::Done(term)
    }

    /// Adds the values that a trip of a `collect` gives to the block's results.
    fn collected(&mut self, value: &Term, body: &Block, results: &mut Vec<Value>) -> Option<Term> {
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
            results.push(self.value(leaf, span)?);
        }
        if leaves.is_empty() {
            self.report(errors::collect_kind("nothing", span));
            return None;
        }
        Some(value.clone())
    }

    #[allow(clippy::too_many_arguments)]
    fn emit_loop(
        &mut self,
        kind: &LoopKind,
        inits: Vec<Value>,
        blocks: Vec<IrBlock>,
        param_types: &[Type],
        collected: Option<Term>,
        carried: &[Carried],
        leaves: &[Leaf],
        span: Span,
    ) -> Term {
        let origin = Origin::at(span);
        let mut results: Vec<Value> =
            param_types.iter().map(|ty| self.build.func.new_value(ty.clone(), origin.clone())).collect();
        let (op, args): (Op, Vec<Value>) = match kind {
            LoopKind::While { .. } => (WhileLoop.into(), inits),
            LoopKind::For { range, bounds, .. } => {
                let last = blocks.last();
                let extra = last.map(|block| block.results[param_types.len()..].to_vec()).unwrap_or_default();
                let trips = range.map_or(0, |(start, end)| (end - start).max(0)) as usize;
                for value in &extra {
                    let ty = self.build.stacked_type(*value, trips);
                    results.push(self.build.func.new_value(ty, origin.clone()));
                }
                let args = bounds.iter().copied().chain(inits).collect();
                (ForLoop { range: *range, collected: extra.len() }.into(), args)
            }
        };
        let stmt = IrStmt { op, args, results: results.clone(), blocks, origin };
        self.build.innermost().stmts.push(stmt);
        let is_array: Vec<bool> = leaves.iter().map(|leaf| !leaf.is_static).collect();
        self.set_leaves(carried, leaves, &is_array, &results[..param_types.len()]);
        for variable in carried {
            let term = self.local(&variable.name).map(|binding| binding.term.clone());
            if let Some(term) = term {
                self.name_values(&variable.name, &term);
            }
        }
        match (kind, collected) {
            (LoopKind::For { collect: true, .. }, Some(form)) => {
                trees::rebuild(&form, &mut results[param_types.len()..].iter().map(|&value| Term::Array(value)))
            }
            (LoopKind::For { collect: true, .. }, None) => Term::Poison,
            _ => Term::Tuple(Vec::new()),
        }
    }

    /// The arrays that enter the loop. Literals become constants of the type that they have taken.
    fn initial_values(&mut self, leaves: &[Leaf], span: Span) -> Option<Vec<Value>> {
        let mut values = Vec::new();
        for leaf in leaves.iter().filter(|leaf| !leaf.is_static) {
            self.build.span = span;
            let value = match self.build.materialize(&leaf.initial, leaf.dtype, span) {
                Ok(value) => value,
                Err(diagnostic) => {
                    self.report(diagnostic);
                    return None;
                }
            };
            match self.build.vary(value, leaf.varying) {
                Ok(value) => values.push(value),
                Err(diagnostic) => {
                    self.report(diagnostic);
                    return None;
                }
            }
        }
        Some(values)
    }

    /// What goes into the next trip for one leaf.
    fn next_value(&mut self, leaf: &mut Leaf, next: &Term, wanted: &Type, span: Span) -> Next {
        if matches!(next, Term::Poison) {
            return Next::Failed;
        }
        if !trees::is_number(next) {
            self.report(errors::carried_kind(&leaf.path, next.describe(), span));
            return Next::Failed;
        }
        let is_literal = !matches!(leaf.initial, Term::Array(_));
        let weak = match next {
            Term::Int(_) => wanted.dtype() != DType::Bool,
            Term::Float(_) => wanted.dtype().is_float(),
            Term::Array(_) => false,
            _ => true,
        };
        self.build.span = span;
        let value = match self.build.materialize(next, weak.then_some(wanted.dtype()), span) {
            Ok(value) => value,
            Err(diagnostic) => {
                self.report(diagnostic);
                return Next::Failed;
            }
        };
        let ty = self.build.ty(value).clone();
        if ty.array != wanted.array {
            if is_literal && ty.shape() == wanted.shape() && leaf.dtype != Some(ty.dtype()) && leaf.dtype.is_none() {
                leaf.dtype = Some(ty.dtype());
                return Next::Again;
            }
            self.report(errors::carried_type(&leaf.path, &wanted.array.to_string(), &ty.array.to_string(), span));
            return Next::Failed;
        }
        if !ty.varying.is_subset_of(leaf.varying.union(wanted.varying)) {
            leaf.varying = leaf.varying.union(wanted.varying).union(ty.varying);
            return Next::Again;
        }
        if self.exact.is_none() && self.build.explicit_part(&ty) != self.build.explicit_part(wanted) {
            let (before, after) = (self.build.display_closed(wanted), self.build.display_closed(&ty));
            self.report(errors::carried_type(&leaf.path, &before, &after, span));
            return Next::Failed;
        }
        match self.build.vary(value, wanted.varying) {
            Ok(value) => Next::Value(value),
            Err(diagnostic) => {
                self.report(diagnostic);
                Next::Failed
            }
        }
    }

    fn open_block(&mut self, types: &[Type], span: Span) -> Vec<Value> {
        let params: Vec<Value> =
            types.iter().map(|ty| self.build.func.new_value(ty.clone(), Origin::at(span))).collect();
        self.build.blocks.push(IrBlock { params: params.clone(), ..IrBlock::default() });
        params
    }

    fn close_block(&mut self, params: Vec<Value>, results: Vec<Value>) -> IrBlock {
        let stmts = self.build.blocks.pop().map(|block| block.stmts).unwrap_or_default();
        IrBlock { params, stmts, results }
    }

    /// Gives the carried variables the values of their leaves.
    fn set_leaves(&mut self, carried: &[Carried], leaves: &[Leaf], is_array: &[bool], values: &[Value]) {
        let mut values = values.iter();
        let mut terms = leaves.iter().zip(is_array).map(|(leaf, is_array)| match is_array {
            true => values.next().map_or(Term::Poison, |&value| Term::Array(value)),
            false => leaf.initial.clone(),
        });
        let new: Vec<(String, Term)> = carried
            .iter()
            .map(|variable| (variable.name.clone(), trees::rebuild(&variable.term, &mut terms)))
            .collect();
        for (name, term) in new {
            self.set_variable(&name, term);
        }
    }

    fn set_variable(&mut self, name: &str, term: Term) {
        if let Some(binding) = self.local_mut(name) {
            binding.term = term;
        }
    }

    fn poison(&mut self, carried: &[Carried]) {
        carried.iter().for_each(|variable| self.set_variable(&variable.name, Term::Poison));
    }

    fn abandon(&mut self, mark: &Mark, carried: &[Carried]) {
        self.build.blocks.truncate(mark.blocks);
        self.build.conditions.truncate(mark.conditions);
        self.poison(carried);
    }

    /// After a mistake that leaves nothing to expand: what the blocks assign is unknown.
    fn poison_assigned(&mut self, blocks: &[&Block]) -> Term {
        let carried = self.carried_variables(blocks);
        self.poison(&carried);
        Term::Poison
    }

    /// The mutable variables around that the blocks assign to.
    fn carried_variables(&self, blocks: &[&Block]) -> Vec<Carried> {
        let mut assigned = Assigned { scopes: Vec::new(), names: Vec::new() };
        blocks.iter().for_each(|block| assigned.block(block));
        let mutable = |name: &String| {
            let Binding { term, mutable, declared, .. } = self.local(name)?;
            mutable.then(|| Carried { name: name.clone(), term: term.clone(), declared: declared.clone() })
        };
        assigned.names.iter().filter_map(mutable).collect()
    }

    /// A condition: one bool.
    fn condition(&mut self, term: &Term, span: Span) -> Option<Value> {
        if matches!(term, Term::Poison) {
            return None;
        }
        let found = self.display_term(term);
        if !trees::is_number(term) {
            self.report(errors::condition(term.describe(), false, span));
            return None;
        }
        let value = self.value(term, span)?;
        let ty = self.build.ty(value);
        if ty.array != ArrayType::scalar(DType::Bool) {
            let is_array = ty.rank() > 0;
            self.report(errors::condition(&found, is_array, span));
            return None;
        }
        Some(value)
    }
}

/// What becomes of a leaf at the end of a trip.
enum Next {
    Value(Value),
    Again,
    Failed,
}

/// One branch of an `if`, expanded.
struct Expanded {
    block: IrBlock,
    value: Term,
    /// The assigned variables' terms at its end.
    finals: Vec<Term>,
}

impl Checker<'_> {
    pub(super) fn branch(&mut self, cond: &Expr, then: &Block, otherwise: Option<&Expr>, span: Span) -> Term {
        let term = self.expr(cond);
        // A condition that is known now chooses now; the other branch is not part of this program.
        if let Term::Bool(chosen) = term {
            return match (chosen, otherwise) {
                (true, _) => self.block(then),
                (false, Some(otherwise)) => self.expr(otherwise),
                (false, None) => Term::Tuple(Vec::new()),
            };
        }
        let mut assigned = Assigned { scopes: Vec::new(), names: Vec::new() };
        assigned.block(then);
        if let Some(otherwise) = otherwise {
            assigned.expr(otherwise);
        }
        let variables: Vec<Carried> = assigned
            .names
            .iter()
            .filter_map(|name| {
                let Binding { term, mutable, .. } = self.local(name)?;
                mutable.then(|| Carried { name: name.clone(), term: term.clone(), declared: None })
            })
            .collect();
        let Some(flag) = self.condition(&term, cond.span) else {
            // The branches are looked at all the same.
            self.expand_branch(&variables, AxisSet::EMPTY, cond.span, |checker| checker.block(then));
            if let Some(otherwise) = otherwise {
                self.expand_branch(&variables, AxisSet::EMPTY, cond.span, |checker| checker.expr(otherwise));
            }
            self.poison(&variables);
            return Term::Poison;
        };
        let varies = self.build.ty(flag).varying;
        let mut first = self.expand_branch(&variables, varies, cond.span, |checker| checker.block(then));
        let mut second = self.expand_branch(&variables, varies, cond.span, |checker| match otherwise {
            Some(otherwise) => checker.expr(otherwise),
            None => Term::Tuple(Vec::new()),
        });
        if otherwise.is_none() {
            let has_value = !matches!(&first.value, Term::Tuple(parts) if parts.is_empty());
            if has_value && !matches!(first.value, Term::Poison) && then.value.is_some() {
                self.report(errors::no_else(span));
            }
            first.value = Term::Tuple(Vec::new());
        }
        self.join(flag, varies, &variables, &mut first, &mut second, span)
    }

    fn expand_branch(
        &mut self,
        variables: &[Carried],
        varies: AxisSet,
        cond: Span,
        expand: impl FnOnce(&mut Self) -> Term,
    ) -> Expanded {
        self.build.conditions.push((varies, cond));
        self.build.blocks.push(IrBlock::default());
        let value = expand(self);
        let block = self.build.blocks.pop().unwrap_or_default();
        self.build.conditions.pop();
        let finals = variables
            .iter()
            .map(|variable| self.local(&variable.name).map_or(Term::Poison, |binding| binding.term.clone()))
            .collect();
        for variable in variables {
            self.set_variable(&variable.name, variable.term.clone());
        }
        Expanded { block, value, finals }
    }

    /// The `if` statement, and what it makes of its value and of the variables.
    fn join(
        &mut self,
        flag: Value,
        varies: AxisSet,
        variables: &[Carried],
        first: &mut Expanded,
        second: &mut Expanded,
        span: Span,
    ) -> Term {
        let mut results = Vec::new();
        let mut types = Vec::new();
        let (left, right) = (first.value.clone(), second.value.clone());
        let value = self.join_terms("its value", &left, &right, varies, (first, second), &mut types, span);
        let mut finals = Vec::new();
        for (position, variable) in variables.iter().enumerate() {
            let (left, right) = (first.finals[position].clone(), second.finals[position].clone());
            let what = format!("`{}`", variable.name);
            finals.push(self.join_terms(&what, &left, &right, varies, (first, second), &mut types, span));
        }
        let origin = Origin::at(span);
        for ty in types {
            results.push(self.build.func.new_value(ty, origin.clone()));
        }
        let has_effect = |block: &IrBlock| !block.stmts.is_empty();
        if !results.is_empty() || self.exact.is_some() || has_effect(&first.block) || has_effect(&second.block) {
            let blocks = vec![std::mem::take(&mut first.block), std::mem::take(&mut second.block)];
            let stmt = IrStmt { op: Branch.into(), args: vec![flag], results: results.clone(), blocks, origin };
            self.build.innermost().stmts.push(stmt);
        }
        let fill = |term: Joined| term.into_term(&results);
        let value = fill(value);
        for (variable, term) in variables.iter().zip(finals) {
            let term = fill(term);
            self.name_values(&variable.name, &term);
            self.set_variable(&variable.name, term);
        }
        value
    }

    #[allow(clippy::too_many_arguments)]
    fn join_terms(
        &mut self,
        what: &str,
        left: &Term,
        right: &Term,
        varies: AxisSet,
        branches: (&mut Expanded, &mut Expanded),
        types: &mut Vec<Type>,
        span: Span,
    ) -> Joined {
        if matches!(left, Term::Poison) || matches!(right, Term::Poison) {
            return Joined::Same(Term::Poison);
        }
        if !trees::same_form(left, right) {
            let (left, right) = (self.display_term(left), self.display_term(right));
            return Joined::Same(self.report(errors::branch_types(what, &left, &right, span)));
        }
        let (mut lefts, mut rights) = (Vec::new(), Vec::new());
        trees::leaves(left, "", &mut lefts);
        trees::leaves(right, "", &mut rights);
        let mut leaves = Vec::new();
        for ((path, left), (_, right)) in lefts.iter().zip(&rights) {
            let what = if path.is_empty() { what.to_string() } else { format!("{what}{path}") };
            let (first, second) = (&mut *branches.0, &mut *branches.1);
            leaves.push(self.join_leaf(&what, left, right, varies, (first, second), types, span));
        }
        Joined::Tree(left.clone(), leaves)
    }

    #[allow(clippy::too_many_arguments)]
    fn join_leaf(
        &mut self,
        what: &str,
        left: &Term,
        right: &Term,
        varies: AxisSet,
        branches: (&mut Expanded, &mut Expanded),
        types: &mut Vec<Type>,
        span: Span,
    ) -> JoinedLeaf {
        let is_given = self.exact.is_some() && matches!(left, Term::Array(_));
        if same_static(left, right) && !is_given {
            return JoinedLeaf::Same(left.clone());
        }
        if matches!(left, Term::Poison) || matches!(right, Term::Poison) {
            return JoinedLeaf::Same(Term::Poison);
        }
        if !trees::is_number(left) || !trees::is_number(right) {
            let (left, right) = (self.display_term(left), self.display_term(right));
            return JoinedLeaf::Same(self.report(errors::branch_types(what, &left, &right, span)));
        }
        let dtype = self.common_dtype(left, right);
        let (first, second) = branches;
        let left_value = self.value_in(&mut first.block, left, dtype, span);
        let right_value = self.value_in(&mut second.block, right, dtype, span);
        let (Some(left_value), Some(right_value)) = (left_value, right_value) else {
            return JoinedLeaf::Same(Term::Poison);
        };
        let (left_ty, right_ty) = (self.build.ty(left_value).clone(), self.build.ty(right_value).clone());
        let same_layout =
            self.exact.is_some() || self.build.explicit_part(&left_ty) == self.build.explicit_part(&right_ty);
        if left_ty.array != right_ty.array || !same_layout {
            let (left, right) = (self.build.display_closed(&left_ty), self.build.display_closed(&right_ty));
            return JoinedLeaf::Same(self.report(errors::branch_types(what, &left, &right, span)));
        }
        let varying = left_ty.varying.union(right_ty.varying).union(varies);
        let left_value = self.varying_in(&mut first.block, left_value, varying);
        let right_value = self.varying_in(&mut second.block, right_value, varying);
        let (Some(left_value), Some(right_value)) = (left_value, right_value) else {
            return JoinedLeaf::Same(Term::Poison);
        };
        first.block.results.push(left_value);
        second.block.results.push(right_value);
        types.push(self.build.carried_type(left_value));
        JoinedLeaf::Result(types.len() - 1)
    }

    /// The value, marked inside a finished block as varying.
    fn varying_in(&mut self, block: &mut IrBlock, value: Value, axes: AxisSet) -> Option<Value> {
        // A dump has the marks that it needs.
        if self.exact.is_some() {
            return Some(value);
        }
        self.build.blocks.push(std::mem::take(block));
        let value = self.build.vary(value, axes);
        *block = self.build.blocks.pop().unwrap_or_default();
        value.map_err(|diagnostic| self.report(diagnostic)).ok()
    }

    /// The type that literals take in a branch: that of the other branch.
    fn common_dtype(&self, left: &Term, right: &Term) -> Option<DType> {
        let dtype = |term: &Term| match term {
            Term::Array(value) => Some(self.build.ty(*value).dtype()),
            _ => None,
        };
        let suits = |term: &Term, dtype: DType| match term {
            Term::Int(_) => dtype != DType::Bool,
            Term::Float(_) => dtype.is_float(),
            Term::Bool(_) => dtype == DType::Bool,
            _ => true,
        };
        match (dtype(left), dtype(right)) {
            (Some(dtype), None) => suits(right, dtype).then_some(dtype),
            (None, Some(dtype)) => suits(left, dtype).then_some(dtype),
            (Some(_), Some(_)) => None,
            (None, None) => left.default_dtype().max(right.default_dtype()),
        }
    }

    fn value_in(&mut self, block: &mut IrBlock, term: &Term, dtype: Option<DType>, span: Span) -> Option<Value> {
        if let Term::Array(value) = term {
            return Some(*value);
        }
        self.build.blocks.push(std::mem::take(block));
        self.build.span = span;
        let value = self.build.materialize(term, dtype, span);
        *block = self.build.blocks.pop().unwrap_or_default();
        match value {
            Ok(value) => Some(value),
            Err(diagnostic) => {
                self.report(diagnostic);
                None
            }
        }
    }
}

/// A term whose changing leaves are results of an `if` that is not there yet.
enum Joined {
    Same(Term),
    Tree(Term, Vec<JoinedLeaf>),
}

enum JoinedLeaf {
    Same(Term),
    /// The position of the result.
    Result(usize),
}

impl Joined {
    fn into_term(self, results: &[Value]) -> Term {
        match self {
            Joined::Same(term) => term,
            Joined::Tree(form, leaves) => {
                let mut terms = leaves.into_iter().map(|leaf| match leaf {
                    JoinedLeaf::Same(term) => term,
                    JoinedLeaf::Result(at) => Term::Array(results[at]),
                });
                trees::rebuild(&form, &mut terms)
            }
        }
    }
}

/// Whether two leaves are the same thing without any computation.
fn same_static(left: &Term, right: &Term) -> bool {
    match (left, right) {
        (Term::Array(left), Term::Array(right)) => left == right,
        (Term::Int(left), Term::Int(right)) => left == right,
        (Term::Float(left), Term::Float(right)) => left.to_bits() == right.to_bits(),
        (Term::Bool(left), Term::Bool(right)) => left == right,
        (Term::Str(left), Term::Str(right)) => left == right,
        (Term::Axis(left), Term::Axis(right)) => left == right,
        (Term::Module(left), Term::Module(right)) => left == right,
        (Term::Nothing, Term::Nothing) => true,
        (Term::Function(left), Term::Function(right)) => std::rc::Rc::ptr_eq(left, right),
        _ => false,
    }
}

fn leaf_count(term: &Term) -> usize {
    let mut leaves = Vec::new();
    trees::leaves(term, "", &mut leaves);
    leaves.len()
}
