//! The transpose of a gather: a sum at its indices.

use crate::gather::Gather;
use crate::scatter::{Onto, Scatter};
use spmdc_abi::ReduceOp;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::derivative::{LinearMap, Linearity};

impl LinearMap for Gather {
    fn linearity(&self, _: &Stmt) -> Linearity {
        Linearity::Together(vec![0])
    }

    fn transposed(
        &self,
        build: &mut CallBuilder,
        stmt: &Stmt,
        _: usize,
        cotangent: Value,
    ) -> Result<Value, Diagnostic> {
        let shape = build.ty(stmt.args[0]).shape().to_vec();
        let places = Gather { out: None, ..self.clone() };
        let args: Vec<Value> = std::iter::once(cotangent).chain(stmt.args[1..].iter().copied()).collect();
        let mut scatter = Scatter { places, combine: Some(ReduceOp::Sum), onto: Onto::Identity(shape), out: None };
        scatter.out = build.out_of_gradient(&scatter.clone().into(), &args, stmt.args[0]);
        build.emit1(scatter, &args)
    }
}
