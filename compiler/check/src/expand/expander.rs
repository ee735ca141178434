//! The interface of the checker for higher-order functions, which `spmdc_functions` expands beside their signatures.

use crate::Checker;
use spmdc_grammar::span::Span;
use spmdc_ir::call::arg::Arg;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::expand::Expander;
use spmdc_ir::call::term::Term;
use spmdc_ir::program::{Stmt, Value};

impl Expander for Checker<'_> {
    fn build(&self) -> &CallBuilder {
        &self.build
    }

    fn build_mut(&mut self) -> &mut CallBuilder {
        &mut self.build
    }

    fn call(&mut self, function: &Arg, args: Vec<Arg>, span: Span) -> Term {
        self.call_term(&function.term, args, span, function.span)
    }

    fn call_shipped(&mut self, name: &str, args: Vec<Arg>, span: Span) -> Term {
        Checker::call_shipped(self, name, args, span)
    }

    fn made_by(&self, value: Value) -> Option<&Stmt> {
        Checker::made_by(self, value)
    }

    fn display(&self, term: &Term) -> String {
        self.display_term(term)
    }
}
