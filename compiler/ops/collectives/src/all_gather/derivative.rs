//! The transpose of `all_gather`.

use crate::all_gather::PAllGather;
use crate::all_reduce::summed_over;
use crate::reduce_scatter::PSumScatter;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::derivative::{LinearMap, Linearity};
use spmdc_kernel::scalar::BinaryOp;
use spmdc_layout::types::DType;
use spmdc_ops::cast::cast;
use spmdc_ops::collective::axis_index::AxisIndex;
use spmdc_ops::collective::axis_set;
use spmdc_ops::constant::Constant;
use spmdc_ops::dynamic_slice::DynamicSlice;
use spmdc_ops::elementwise::Binary;

impl LinearMap for PAllGather {
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
        let ty = build.ty(cotangent);
        if axis_set(&self.axes).is_subset_of(ty.varying.union(ty.sharding.unreduced)) {
            // Each device has a summand of the cotangent.
            let PAllGather { axes, dim, members } = self.clone();
            return build.emit1(PSumScatter { axes, dim, members }, &[cotangent]);
        }
        let cotangent = summed_over(build, cotangent, axis_set(&self.axes))?;
        // Each device has its own part of the cotangent, which all of them have.
        let size = build.ty(stmt.args[0]).shape()[self.dim];
        let position = build.emit1(AxisIndex { axes: self.axes.clone() }, &[])?;
        let position = cast(build, position, DType::I64)?;
        let size_value = build.emit1(Constant::scalar(DType::I64, size as u64), &[])?;
        let start = build.emit1(Binary(BinaryOp::Mul), &[position, size_value])?;
        build.emit1(DynamicSlice { dims: vec![(self.dim, size)] }, &[cotangent, start])
    }
}
