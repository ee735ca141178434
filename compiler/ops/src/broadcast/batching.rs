//! Batches of arrays that are broadcast.

use crate::batching::BatchForms;
use crate::broadcast::{Broadcast, broadcast};
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::batching::{Batch, Batched, BatchedOperand};

impl Batched for Broadcast {
    fn batched(
        &self,
        build: &mut CallBuilder,
        _: &Stmt,
        batch: &Batch,
        operands: &[BatchedOperand],
    ) -> Result<Vec<Value>, Diagnostic> {
        let value = batch.aligned(build, operands[0], self.shape.len())?;
        let shape = [&[batch.size], self.shape.as_slice()].concat();
        Ok(vec![broadcast(build, value, &shape)?])
    }
}
