//! Reading dumps: a program whose first line is `stage partitioned;` or similar.
//!
//! A dump is read by the same checker, but its types are stated, not inferred. A `let` has the exact layout of its value, no statement is
//! added, and no layout is ambiguous. So reading the output of `print.rs` results in the same module.

use crate::Checker;
use crate::errors::{self, types as errors_of_types};
use crate::types::declared::{ArrayTy, Ty};
use crate::types::sizes::Bindings;
use spmdc_abi::ReduceOp;
use spmdc_grammar::ast::Ident;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences;
use spmdc_grammar::span::Span;
use spmdc_ir::call::errors::nearest;
use spmdc_ir::call::term::Term;
use spmdc_ir::program::{Block, Stage, StmtKind, Value};
use spmdc_layout::factors::FactorKind;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::sharding::{DimSharding, Sharding};
use spmdc_layout::types::Type;
use spmdc_ops::combined::Combined;
use spmdc_ops::reshard::Reshard;

/// The stage that a header names. `ast` is the source itself.
pub fn of_header(header: Option<&Ident>) -> Result<Option<Stage>, Diagnostic> {
    let Some(name) = header else { return Ok(None) };
    if name.name == "ast" {
        return Ok(None);
    }
    match Stage::ALL.into_iter().find(|stage| stage.name() == name.name) {
        Some(stage) => Ok(Some(stage)),
        None => {
            let names: Vec<&str> = Stage::ALL.iter().map(|stage| stage.name()).collect();
            let error = Diagnostic::error(Code::E0002, name.span, sentences::unknown("stage", &name.name));
            Err(match nearest(&name.name, names.iter().copied()) {
                Some(near) => error.help(format!("did you mean `{near}`?")),
                None => error.help(format!("the stages are ast, {}", names.join(", "))),
            })
        }
    }
}

impl Checker<'_> {
    /// The layout of a value of this type at the stage of the dump; None in a program.
    pub(crate) fn exact_layout(&self, ty: &ArrayTy) -> Option<Sharding> {
        let stage = self.exact?;
        // The mesh as it is outside of functions that turn it.
        let auto = self.build.mesh().auto_where(self.build.turned().either(ty.turned));
        let is_closed = stage >= Stage::Propagated || auto.is_empty();
        let open = DimSharding { axes: Vec::new(), open: true, alignment: None };
        let unknown = || Sharding { dims: vec![open; ty.dims.len()], ..Sharding::replicated(0) };
        let layout = ty.layout().unwrap_or_else(unknown);
        Some(if is_closed { layout.close() } else { layout })
    }

    /// Gives the values that a `let` has just defined, those from `first` on, their declared types.
    pub(crate) fn declare(&mut self, term: &Term, ty: &Ty, first: usize, span: Span) {
        match (term, ty) {
            (Term::Array(value), Ty::Array(array)) => {
                let Some(wanted) = self.exact_type(array) else { return };
                let found = self.build.ty(*value).clone();
                if found.array != wanted.array {
                    let (wanted, found) = (wanted.array.to_string(), found.array.to_string());
                    self.report(errors_of_types::mismatch("this variable", &wanted, &found, span));
                } else if value.0 as usize >= first {
                    let combine = self.combine_of(*value);
                    let sharding = wanted.sharding.clone();
                    let unreduced = sharding.unreduced;
                    let info = self.build.info_mut(*value);
                    info.ty = Type { sharding: sharding.with_unreduced(unreduced, combine), ..wanted };
                    self.combine_in_step(*value, combine);
                }
            }
            (Term::Tuple(terms), Ty::Tuple(tys)) if terms.len() == tys.len() => {
                terms.iter().zip(tys).for_each(|(term, ty)| self.declare(term, ty, first, span));
            }
            (Term::Poison, _) | (_, Ty::Poison) => {}
            (term, ty) => {
                let (wanted, found) = (self.display_ty(ty, &Bindings::new()), self.display_term(term));
                self.report(errors_of_types::mismatch("this variable", &wanted, &found, span));
            }
        }
    }

    /// The declared type in a dump.
    pub(crate) fn exact_type(&mut self, ty: &ArrayTy) -> Option<Type> {
        self.exact?;
        let array = self.array_type(ty, &Bindings::new())?;
        let sharding = self.exact_layout(ty)?;
        Some(Type { array, sharding, varying: ty.varying })
    }

    /// Sets the combining operation of a step that leaves some values partial, from its operand.
    fn combine_in_step(&mut self, value: Value, combine: ReduceOp) {
        let mut stmts = self.build.innermost().stmts.iter_mut().rev();
        let stmt = stmts.find(|stmt| stmt.results.contains(&value));
        let Some(stmt) = stmt else { return };
        let at = stmt.results.iter().position(|&result| result == value).expect("the statement has this result");
        let to = match stmt.as_op_mut::<Reshard>() {
            Some(op) => Some(&mut op.to),
            None => stmt.as_op_mut::<Combined>().map(|op| &mut op.to[at]),
        };
        if let Some(to) = to {
            *to = to.clone().with_unreduced(to.unreduced, combine);
        }
    }

    /// The operation that combines partial values is not written: it follows from the op, or from partial operands.
    fn combine_of(&self, value: Value) -> ReduceOp {
        let blocks = self.build.blocks().last();
        let stmt = blocks.and_then(|block: &Block| block.stmts.iter().rev().find(|stmt| stmt.results.contains(&value)));
        let Some(stmt) = stmt else { return ReduceOp::Sum };
        let operand =
            stmt.args.iter().map(|&arg| &self.build.ty(arg).sharding).find(|layout| !layout.unreduced.is_empty());
        if let Some(operand) = operand {
            return operand.combine;
        }
        match &stmt.kind {
            StmtKind::Control(_) => ReduceOp::Sum,
            StmtKind::Op(op) => {
                let types = |values: &[Value]| values.iter().map(|&value| self.build.ty(value).array.clone()).collect();
                let (args, results): (Vec<_>, Vec<_>) = (types(&stmt.args), types(&stmt.results));
                let rule = op.rules().factors(&args.iter().collect::<Vec<_>>(), &results.iter().collect::<Vec<_>>());
                let reduce = rule.factors.iter().find_map(|factor| match factor.kind {
                    FactorKind::Reduce(op) => Some(op),
                    FactorKind::Pass | FactorKind::Window | FactorKind::Whole => None,
                });
                reduce.unwrap_or(ReduceOp::Sum)
            }
        }
    }

    /// Refuses `--mesh` for a dump: its blocks fit its own mesh only.
    pub(crate) fn refuse_other_mesh(&mut self, own: &Mesh, given: &Mesh) {
        if own != given {
            let message = "--mesh: a dump can only run on the mesh that it was made for";
            let error =
                errors::items::mesh(Span::default(), message).help("remove --mesh, or dump the program for this mesh");
            self.report(error.of_command());
        }
    }
}
