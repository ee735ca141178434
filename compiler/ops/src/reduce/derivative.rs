//! The derivative of products and extremes.

use crate::arithmetic::Arithmetic;
use crate::products;
use crate::reduce::{Reduce, reduce, reduced_shape};
use crate::reshape::reshape;
use spmdc_abi::ReduceOp;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::derivative::Weights;
use spmdc_kernel::scalar::{BinaryOp, CompareOp};

impl Weights for Reduce {
    /// Of the largest elements, or the smallest ones, each has the same part. An element of a product has the product of all others.
    fn weights(&self, build: &mut CallBuilder, stmt: &Stmt) -> Result<Value, Diagnostic> {
        let (x, result) = (stmt.args[0], stmt.results[0]);
        if self.op == ReduceOp::Product {
            return products::of_others(build, x, &self.axes);
        }
        let kept = reduced_shape(build.ty(x).shape(), &self.axes, true);
        let result = reshape(build, result, &kept)?;
        let mut terms = Arithmetic(build);
        let is_chosen = terms.compare(CompareOp::Eq, x, result)?;
        let chosen = terms.indicator(is_chosen, x)?;
        let count = reduce(terms.0, ReduceOp::Sum, chosen, &self.axes, true)?;
        // No element is NaN.
        let one = terms.number(count, 1.0)?;
        let count = terms.binary(BinaryOp::Maximum, count, one)?;
        terms.div(chosen, count)
    }

    fn reduced(&self) -> (&[usize], bool) {
        (&self.axes, self.keepdims)
    }
}
