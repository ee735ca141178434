//! The transpose of an index: its elements among zeros.

use crate::derivative::gradient_zeros;
use crate::index::Index;
use crate::region::Places;
use crate::reshape::reshape;
use crate::slice::SliceRange;
use crate::update::Update;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::derivative::{LinearMap, Linearity};

impl LinearMap for Index {
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
        let zeros = gradient_zeros(build, stmt.args[0])?;
        let shape = build.ty(zeros).shape().to_vec();
        let is_indexed = |dim: usize| self.dims.contains(&dim);
        let region: Vec<usize> =
            shape.iter().enumerate().map(|(dim, &size)| if is_indexed(dim) { 1 } else { size }).collect();
        let place = |(dim, &size): (usize, &usize)| match is_indexed(dim) {
            true => Places::Dynamic(1),
            false => Places::Range(SliceRange::all(size)),
        };
        let at = shape.iter().enumerate().map(place).collect();
        let cotangent = reshape(build, cotangent, &region)?;
        let args: Vec<Value> = [zeros, cotangent].into_iter().chain(stmt.args[1..].iter().copied()).collect();
        build.emit1(Update::replacing(at), &args)
    }
}
