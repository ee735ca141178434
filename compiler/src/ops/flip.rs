//! `flip(x, axis)`: dimensions in reverse. A flipped dimension is needed whole.

use super::factors::{FactorKind, Factors};
use super::{Call, Mismatch, Rules, shape};
use crate::check::args::Args;
use crate::check::term::Term;
use crate::codegen::builder::KernelBuilder;
use crate::codegen::loops::{Affine, Elem};
use crate::ir::Stmt;
use crate::ir::build::Builder;
use crate::ir::eval::{Array, Trap};
use crate::ir::mesh::Mesh;
use crate::ir::types::ArrayType;
use spmdc_grammar::diagnostic::Diagnostic;

#[derive(Clone, Debug, PartialEq)]
pub struct Flip {
    pub axes: Vec<usize>,
}

/// Dimensions that an op changes are whole on both sides; the others pass.
pub(super) fn whole_dims(from: &[usize], to: &[usize], changed: impl Fn(usize) -> bool) -> Factors {
    let mut rule = Factors::new();
    let (mut operand, mut result) = (Vec::new(), Vec::new());
    for (dim, (&before, &after)) in from.iter().zip(to).enumerate() {
        if changed(dim) {
            operand.push(vec![rule.add(before, FactorKind::Whole)]);
            result.push(vec![rule.add(after, FactorKind::Whole)]);
        } else {
            let factor = rule.add(before, FactorKind::Pass);
            operand.push(vec![factor]);
            result.push(vec![factor]);
        }
    }
    rule.operands.push(operand);
    rule.results.push(result);
    rule
}

impl Rules for Flip {
    fn name(&self) -> &'static str {
        "flip"
    }

    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        Ok(vec![args[0].clone()])
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        whole_dims(&args[0].shape, &results[0].shape, |dim| self.axes.contains(&dim))
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let sizes = args[0].shape();
        let strides = shape::strides(sizes);
        let place = |dim: usize, at: usize| if self.axes.contains(&dim) { sizes[dim] - 1 - at } else { at };
        let address =
            |index: Vec<usize>| index.iter().enumerate().map(|(dim, &at)| place(dim, at) * strides[dim]).sum::<usize>();
        let bits = shape::indices(sizes).map(|index| args[0].bits[address(index)]).collect();
        Ok(vec![Array::new(args[0].ty.clone(), bits)])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        format!("flip({}, axis={})", args[0], shape::tuple(&self.axes))
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }

    fn is_pointwise(&self) -> bool {
        true
    }

    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem {
        let sizes = kernel.context.ty(stmt.args[0]).shape().to_vec();
        let flipped = index.iter().enumerate().map(|(dim, index)| {
            if self.axes.contains(&dim) { index.times(-1).offset(sizes[dim] as i64 - 1) } else { index.clone() }
        });
        let flipped: Vec<Affine> = flipped.collect();
        kernel.operand(stmt.args[0], &flipped)
    }
}

impl Call for Flip {
    fn call(_: &str, args: &mut Args<'_>, build: &mut Builder) -> Result<Term, Diagnostic> {
        let value = args.array(build, "x")?;
        let rank = build.ty(value).rank();
        let axes = match args.optional_ints("axis")? {
            Some(given) => shape::axes(&given, rank, args.span)?,
            None => (0..rank).collect(),
        };
        Ok(Term::Array(build.emit1(Flip { axes }, &[value])?))
    }
}
