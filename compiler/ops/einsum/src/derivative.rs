//! Derivatives and batches of products.

use crate::contract::product;
use crate::einsum::Einsum;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::errors::rank_too_large;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::batching::{Batch, Batched, BatchedOperand};
use spmdc_ir::rules::derivative::{LinearMap, Linearity};
use spmdc_layout::types::MAX_RANK;

impl Batched for Einsum {
    /// One letter more, which the mapped operands and the result have.
    fn batched(
        &self,
        build: &mut CallBuilder,
        _: &Stmt,
        batch: &Batch,
        operands: &[BatchedOperand],
    ) -> Result<Vec<Value>, Diagnostic> {
        let is_free = |letter: &char| [&self.lhs, &self.rhs].iter().all(|labels| !labels.contains(*letter));
        let letter = ('a'..='z').chain('A'..='Z').find(is_free);
        let letter = letter.ok_or_else(|| rank_too_large(MAX_RANK + 1, build.span()))?;
        let labels = |labels: &str, operand: BatchedOperand| match operand {
            BatchedOperand::Mapped(_) => format!("{letter}{labels}"),
            BatchedOperand::Same(_) => labels.to_string(),
        };
        let (lhs, rhs) = (labels(&self.lhs, operands[0]), labels(&self.rhs, operands[1]));
        let mut out = self.out.clone();
        out.iter_mut().for_each(|out| batch.add_to(out, 0));
        let einsum = Einsum { lhs, rhs, result: format!("{letter}{}", self.result), out };
        Ok(vec![product(build, einsum, [operands[0].value(), operands[1].value()])?])
    }
}

impl LinearMap for Einsum {
    fn linearity(&self, _: &Stmt) -> Linearity {
        Linearity::Apart(vec![0, 1])
    }

    fn transposed(
        &self,
        build: &mut CallBuilder,
        stmt: &Stmt,
        at: usize,
        cotangent: Value,
    ) -> Result<Value, Diagnostic> {
        let (own, other) = if at == 0 { (&self.lhs, &self.rhs) } else { (&self.rhs, &self.lhs) };
        let args = [cotangent, stmt.args[1 - at]];
        let mut op = Einsum { lhs: self.result.clone(), rhs: other.clone(), result: own.clone(), out: None };
        op.out = build.out_of_gradient(&op.clone().into(), &args, stmt.args[at]);
        product(build, op, args)
    }
}
