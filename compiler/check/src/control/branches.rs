//! `if`: both branches are expanded, each in a separate block, and their values and assigned variables are joined leaf by leaf.

use crate::Checker;
use crate::control::carried::{Carried, same_static};
use crate::errors::control as errors;
use crate::types::layouts::{FlowLeaf, choose};
use spmdc_grammar::ast::{BlockNode, Expr};
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_ir::call::scoped::Scoped;
use spmdc_ir::call::term::{StaticScalar, Term};
use spmdc_ir::call::trees;
use spmdc_ir::program::control::{Branch, Control};
use spmdc_ir::program::{Block as IrBlock, Stmt as IrStmt, Value};
use spmdc_layout::types::{AxisSet, DType, Type};

/// An `if` in the source.
#[derive(Clone, Copy)]
struct If<'e> {
    then: &'e BlockNode,
    otherwise: Option<&'e Expr>,
    span: Span,
    /// The axes along which its condition varies.
    varies: AxisSet,
}

/// One branch of an `if`, expanded.
struct Expanded {
    block: IrBlock,
    value: Term,
    /// The assigned variables' terms at its end.
    finals: Vec<Term>,
}

impl Checker<'_> {
    /// An `if`, with its value and the assignments of its branches.
    pub(crate) fn branch(&mut self, cond: &Expr, then: &BlockNode, otherwise: Option<&Expr>, span: Span) -> Term {
        let term = self.expr(cond);
        // A condition known at compile time selects the branch; the other branch is not part of this program.
        if let Term::Bool(chosen) = term {
            return match (chosen, otherwise) {
                (true, Some(_)) => self.block(then),
                (true, None) => {
                    let value = self.block(then);
                    if then.value.is_some() && trees::is_something(&value) {
                        self.report(errors::no_else(span));
                    }
                    Term::Tuple(Vec::new())
                }
                (false, Some(otherwise)) => self.expr(otherwise),
                (false, None) => Term::Tuple(Vec::new()),
            };
        }
        let others: Vec<&Expr> = otherwise.into_iter().collect();
        let variables = self.carried_variables(&[then], &others);
        let Some(flag) = self.condition(&term, cond.span) else {
            // Expand the branches all the same, to report their errors.
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
            if then.value.is_some() && trees::is_something(&first.value) {
                self.report(errors::no_else(span));
            }
            first.value = Term::Tuple(Vec::new());
        }
        self.join(flag, If { then, otherwise, span, varies }, &variables, &mut first, &mut second)
    }

    fn expand_branch(
        &mut self,
        variables: &[Carried],
        varies: AxisSet,
        cond: Span,
        expand: impl FnOnce(&mut Self) -> Term,
    ) -> Expanded {
        let (block, value) = self.under(varies, cond, |checker| checker.in_block(IrBlock::default(), expand));
        let finals = variables
            .iter()
            .map(|variable| self.local(&variable.name).map_or(Term::Poison, |binding| binding.term.clone()))
            .collect();
        for variable in variables {
            self.set_variable(&variable.name, variable.term.clone());
        }
        Expanded { block, value, finals }
    }

    /// The `if` statement; joins its value and its variables.
    fn join(
        &mut self,
        flag: Value,
        written: If<'_>,
        variables: &[Carried],
        first: &mut Expanded,
        second: &mut Expanded,
    ) -> Term {
        let mut results = Vec::new();
        let mut types = Vec::new();
        let (left, right) = (first.value.clone(), second.value.clone());
        let value = self.join_terms(written, None, (&left, &right), (first, second), &mut types);
        let mut finals = Vec::new();
        for (position, variable) in variables.iter().enumerate() {
            let (left, right) = (first.finals[position].clone(), second.finals[position].clone());
            finals.push(self.join_terms(written, Some(&variable.name), (&left, &right), (first, second), &mut types));
        }
        let origin = self.build.origin_at(written.span);
        for ty in types {
            results.push(self.build.new_value(ty, origin.clone()));
        }
        let has_effect = |block: &IrBlock| !block.stmts.is_empty();
        if !results.is_empty() || self.exact.is_some() || has_effect(&first.block) || has_effect(&second.block) {
            let (then, otherwise) = (std::mem::take(&mut first.block), std::mem::take(&mut second.block));
            let branch = Control::Branch(Branch { then, otherwise });
            let stmt = IrStmt::of_control(branch, vec![flag], results.clone(), origin);
            self.build.innermost().stmts.push(stmt);
        }
        let fill = |term: Joined| term.into_term(&results);
        let value = fill(value);
        for (variable, term) in variables.iter().zip(finals) {
            let term = fill(term);
            let place = self.local(&variable.name).map_or(written.span, |binding| binding.span);
            self.name_values(&variable.name, place, &term);
            self.set_variable(&variable.name, term);
        }
        value
    }

    fn join_terms(
        &mut self,
        written: If<'_>,
        variable: Option<&str>,
        (left, right): (&Term, &Term),
        branches: (&mut Expanded, &mut Expanded),
        types: &mut Vec<Type>,
    ) -> Joined {
        if matches!(left, Term::Poison) || matches!(right, Term::Poison) {
            return Joined::Same(Term::Poison);
        }
        if !trees::same_form(left, right) {
            let (left, right) = (self.display_term(left), self.display_term(right));
            let what = FlowLeaf { variable, path: "" }.describe();
            return Joined::Same(self.report(errors::branch_types(&what, &left, &right, written.span)));
        }
        trees::link_fields(left, right, &mut self.build.fields);
        let (mut lefts, mut rights) = (Vec::new(), Vec::new());
        trees::leaves(left, "", &mut lefts);
        trees::leaves(right, "", &mut rights);
        let mut leaves = Vec::new();
        for ((path, left), (_, right)) in lefts.iter().zip(&rights) {
            let (first, second) = (&mut *branches.0, &mut *branches.1);
            leaves.push(self.join_leaf(written, FlowLeaf { variable, path }, (left, right), (first, second), types));
        }
        Joined::Tree(left.clone(), leaves)
    }

    fn join_leaf(
        &mut self,
        written: If<'_>,
        part: FlowLeaf<'_>,
        (left, right): (&Term, &Term),
        (first, second): (&mut Expanded, &mut Expanded),
        types: &mut Vec<Type>,
    ) -> JoinedLeaf {
        let span = written.span;
        let is_given = self.exact.is_some() && matches!(left, Term::Array(_));
        if same_static(left, right) && !is_given {
            return JoinedLeaf::Same(left.clone());
        }
        if matches!(left, Term::Poison) || matches!(right, Term::Poison) {
            return JoinedLeaf::Same(Term::Poison);
        }
        if !trees::is_number(left) || !trees::is_number(right) {
            let (left, right) = (self.display_term(left), self.display_term(right));
            return JoinedLeaf::Same(self.report(errors::branch_types(&part.describe(), &left, &right, span)));
        }
        let dtype = self.common_dtype(left, right);
        let left_value = self.value_in(&mut first.block, left, dtype, span);
        let right_value = self.value_in(&mut second.block, right, dtype, span);
        let (Some(left_value), Some(right_value)) = (left_value, right_value) else {
            return JoinedLeaf::Same(Term::Poison);
        };
        let in_memory = [left_value, right_value].map(|value| self.in_memory(value, "the value of an `if`", span));
        if in_memory.iter().any(Option::is_none) {
            return JoinedLeaf::Same(Term::Poison);
        }
        let (left_ty, right_ty) = (self.build.ty(left_value).clone(), self.build.ty(right_value).clone());
        let same_layout =
            self.exact.is_some() || self.build.explicit_part(&left_ty) == self.build.explicit_part(&right_ty);
        if left_ty.array != right_ty.array || !same_layout {
            let (left, right) = (self.build.display_closed(&left_ty), self.build.display_closed(&right_ty));
            let mut error = errors::branch_types(&part.describe(), &left, &right, span);
            if left_ty.array == right_ty.array {
                error = self.with_common_layouts(error, written, part, [left_value, right_value]);
            }
            return JoinedLeaf::Same(self.report(error));
        }
        let varying = left_ty.varying.union(right_ty.varying).union(written.varies);
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

    /// The possible edits if the branches differ in their layouts alone: one branch reshards its value to the layout of the other.
    fn with_common_layouts(
        &self,
        diagnostic: Diagnostic,
        written: If<'_>,
        part: FlowLeaf<'_>,
        values: [Value; 2],
    ) -> Diagnostic {
        let [first, second] = values.map(|value| self.build.ty(value));
        let [of_first, of_second] = [first, second].map(|ty| self.build.explicit_part(ty));
        let in_then = self.at_end(written.then, part, &self.written(&of_second));
        let in_else = self.at_end_of_else(written.then, written.otherwise, part, &self.written(&of_first));
        let ways = [
            self.way(in_then, "at the end of the first branch", first, &of_second, None),
            self.way(in_else, "at the end of the second branch", second, &of_first, None),
        ];
        let origins = values.map(|value| self.build.info(value).origin.span);
        let diagnostic = self.build.with_types(diagnostic, [first, second].into_iter().zip(origins));
        choose(diagnostic, ways.into_iter().flatten().collect())
    }

    /// The value, marked as varying inside a finished block.
    fn varying_in(&mut self, block: &mut IrBlock, value: Value, axes: AxisSet) -> Option<Value> {
        // A dump has all necessary marks.
        if self.exact.is_some() {
            return Some(value);
        }
        let value = self.build.resume_block(block, |build| build.vary(value, axes));
        value.map_err(|diagnostic| self.report(diagnostic)).ok()
    }

    /// The type of literals in a branch: the type of the other branch.
    fn common_dtype(&self, left: &Term, right: &Term) -> Option<DType> {
        let dtype =
            |term: &Term| if let Term::Array(value) = term { Some(self.build.ty(*value).dtype()) } else { None };
        let suits = |term: &Term, dtype: DType| match term.static_scalar() {
            Some(StaticScalar::Int(_)) => dtype != DType::Bool,
            Some(StaticScalar::Float(_)) => dtype.is_float(),
            Some(StaticScalar::Bool(_)) => dtype == DType::Bool,
            None => true,
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
        self.build.set_span(span);
        match self.build.resume_block(block, |build| build.materialize(term, dtype, span)) {
            Ok(value) => Some(value),
            Err(diagnostic) => {
                self.report(diagnostic);
                None
            }
        }
    }
}

/// A term whose changing leaves are results of an `if` that is not emitted yet.
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
