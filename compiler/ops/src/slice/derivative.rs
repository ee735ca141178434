//! The transpose of a slice: its elements among zeros.

use crate::derivative::gradient_zeros;
use crate::flip::Flip;
use crate::pad::Pad;
use crate::region::Places;
use crate::slice::{Slice, SliceRange};
use crate::update::Update;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::derivative::{LinearMap, Linearity};

impl LinearMap for Slice {
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
        let (mut forward, mut reversed) = (Vec::new(), Vec::new());
        for (dim, &(range, _)) in self.ranges.iter().enumerate() {
            let SliceRange { start, step, len } = range;
            forward.push(if step > 0 || len == 0 {
                SliceRange { start, step: step.max(1), len }
            } else {
                reversed.push(dim);
                SliceRange { start: range.at(len - 1), step: -step, len }
            });
        }
        let cotangent =
            if reversed.is_empty() { cotangent } else { build.emit1(Flip { axes: reversed }, &[cotangent])? };
        if forward.iter().all(|range| range.step == 1 || range.len <= 1) {
            let width = |(range, &(_, size)): (&SliceRange, &(SliceRange, usize))| {
                let start = range.start.min(size - range.len);
                (start, size - start - range.len)
            };
            let widths = forward.iter().zip(&self.ranges).map(width).collect();
            return build.emit1(Pad { widths, value: 0 }, &[cotangent]);
        }
        let zeros = gradient_zeros(build, stmt.args[0])?;
        let at = forward.into_iter().map(Places::Range).collect();
        build.emit1(Update::replacing(at), &[zeros, cotangent])
    }
}
