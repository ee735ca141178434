//! The transpose of a dynamic slice: its elements among zeros.

use crate::derivative::gradient_zeros;
use crate::dynamic_slice::DynamicSlice;
use crate::region::Places;
use crate::slice::SliceRange;
use crate::update::Update;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::derivative::{LinearMap, Linearity};

impl LinearMap for DynamicSlice {
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
        let place = |(dim, &size): (usize, &usize)| match self.cut(dim) {
            Some(at) => Places::Dynamic(self.dims[at].1),
            None => Places::Range(SliceRange::all(size)),
        };
        let at = build.ty(zeros).shape().iter().enumerate().map(place).collect();
        let args: Vec<Value> = [zeros, cotangent].into_iter().chain(stmt.args[1..].iter().copied()).collect();
        build.emit1(Update::replacing(at), &args)
    }
}
