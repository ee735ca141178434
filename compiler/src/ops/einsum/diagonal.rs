//! Diagonals: `einsum("ii->i", x)`, `diag`, `trace`.
//!
//! An axis of the mesh splits one dimension only, so those that are walked together are needed whole; the diagonal itself
//! passes: every device takes its part of it. All other dimensions pass through.

use crate::check::args::Args;
use crate::check::term::Term;
use crate::codegen::builder::KernelBuilder;
use crate::codegen::loops::{Affine, Elem};
use crate::ir::build::Builder;
use crate::ir::eval::{Array, Trap};
use crate::ir::mesh::Mesh;
use crate::ir::types::{ArrayType, DType};
use crate::ir::{Stmt, Value};
use crate::ops::broadcast::broadcast;
use crate::ops::concatenate::concatenate;
use crate::ops::constant::Constant;
use crate::ops::elementwise::{Binary, BinaryOp, Compare, CompareOp, Select};
use crate::ops::factors::{FactorKind, Factors};
use crate::ops::iota::Iota;
use crate::ops::reduce::reduce;
use crate::ops::slice::{Range, slice};
use crate::ops::transpose::transpose;
use crate::ops::{Call, Mismatch, Rules, shape};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_runtime::abi::ReduceOp;

/// Takes the elements where dimensions of one number have equal indices.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagonal {
    /// For each operand dimension, the result dimension it runs along; numbered by first occurrence.
    pub dims: Vec<usize>,
}

impl Diagonal {
    /// From labels, some of which occur more than once.
    pub fn of_labels(labels: &[char]) -> (Diagonal, Vec<char>) {
        let mut distinct: Vec<char> = Vec::new();
        let dims = labels.iter().map(|label| match distinct.iter().position(|known| known == label) {
            Some(known) => known,
            None => {
                distinct.push(*label);
                distinct.len() - 1
            }
        });
        (Diagonal { dims: dims.collect() }, distinct)
    }

    fn is_repeated(&self, result_dim: usize) -> bool {
        self.dims.iter().filter(|&&dim| dim == result_dim).count() > 1
    }
}

impl Rules for Diagonal {
    fn name(&self) -> &'static str {
        "einsum"
    }

    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        let ty = args[0];
        let mut sizes: Vec<usize> = Vec::new();
        for (&dim, &size) in self.dims.iter().zip(&ty.shape) {
            match sizes.get(dim) {
                None => sizes.push(size),
                Some(&known) if known == size => {}
                Some(known) => {
                    let message = format!("the diagonal of {ty} runs along dimensions of sizes {known} and {size}");
                    return Err(Mismatch::new(Code::E0205, message));
                }
            }
        }
        Ok(vec![ArrayType { dtype: ty.dtype, shape: sizes }])
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        let mut rule = Factors::new();
        let dims: Vec<usize> = results[0].shape.iter().map(|&size| rule.add(size, FactorKind::Pass)).collect();
        let operand = self.dims.iter().zip(&args[0].shape).map(|(&dim, &size)| {
            vec![if self.is_repeated(dim) { rule.add(size, FactorKind::Whole) } else { dims[dim] }]
        });
        let operand = operand.collect();
        rule.operands.push(operand);
        rule.results.push(dims.into_iter().map(|factor| vec![factor]).collect());
        rule
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let mut shape = Vec::new();
        for (&dim, &size) in self.dims.iter().zip(args[0].shape()) {
            if dim == shape.len() {
                shape.push(size);
            }
        }
        let ty = ArrayType::new(args[0].dtype(), &shape);
        Ok(vec![Array::from_fn(ty, |index| {
            let own: Vec<usize> = self.dims.iter().map(|&dim| index[dim]).collect();
            args[0].get(&own)
        })])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        let letter = |dim: usize| char::from(b'a' + dim as u8);
        let operand: String = self.dims.iter().map(|&dim| letter(dim)).collect();
        let result: String = (0..=self.dims.iter().copied().max().unwrap_or(0)).map(letter).collect();
        format!("einsum(\"{operand}->{result}\", {})", args[0])
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }

    fn is_pointwise(&self) -> bool {
        true
    }

    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem {
        let result = kernel.context.ty(stmt.results[0]);
        let own: Vec<Affine> = self
            .dims
            .iter()
            .map(|&dim| match self.is_repeated(dim) {
                true => kernel.global_index(result, dim, &index[dim]),
                false => index[dim].clone(),
            })
            .collect();
        kernel.operand(stmt.args[0], &own)
    }
}

/// `trace(x)` sums the diagonal of the first two dimensions, or of `axis1` and `axis2`; `diag(x)` takes that of a matrix, or makes a matrix of a vector.
pub struct DiagonalCalls;

impl Call for DiagonalCalls {
    fn call(name: &str, args: &mut Args<'_>, build: &mut Builder) -> Result<Term, Diagnostic> {
        let value = args.array(build, "x")?;
        let offset = args.take(if name == "diag" { "k" } else { "offset" });
        let offset = match offset.map(|arg| arg.term) {
            None => 0,
            Some(Term::Int(offset)) => offset as i64,
            Some(other) => {
                let message = format!("the offset of a diagonal is an integer, not {}", other.describe());
                return Err(Diagnostic::error(Code::E0210, args.span, message));
            }
        };
        let rank = build.ty(value).rank();
        match (name, rank) {
            ("diag", 1) => Ok(Term::Array(spread(build, value, offset)?)),
            ("diag", 2) => Ok(Term::Array(diagonal(build, value, offset)?)),
            ("trace", 2..) => {
                let given = [args.optional_int("axis1")?.unwrap_or(0), args.optional_int("axis2")?.unwrap_or(1)];
                let mut order = shape::axes(&given, rank, args.span)?;
                let others: Vec<usize> = (0..rank).filter(|dim| !order.contains(dim)).collect();
                order.extend(others);
                let value = if order.is_sorted() { value } else { transpose(build, value, &order)? };
                let diagonal = diagonal(build, value, offset)?;
                Ok(Term::Array(reduce(build, ReduceOp::Sum, diagonal, &[0], false)?))
            }
            _ => {
                let message = format!("`{name}` of an array with {rank} dimensions");
                Err(Diagnostic::error(Code::E0205, args.span, message))
            }
        }
    }
}

/// The diagonal along the first two dimensions, `offset` columns to the right.
fn diagonal(build: &mut Builder, value: Value, offset: i64) -> Result<Value, Diagnostic> {
    let sizes = build.ty(value).shape().to_vec();
    let (down, right) = (offset.saturating_neg().max(0) as usize, offset.max(0) as usize);
    let len = sizes[0].saturating_sub(down).min(sizes[1].saturating_sub(right));
    let mut ranges: Vec<Range> = sizes.iter().map(|&size| Range::all(size)).collect();
    ranges[0] = Range { start: if len == 0 { 0 } else { down }, step: 1, len };
    ranges[1] = Range { start: if len == 0 { 0 } else { right }, step: 1, len };
    let square = slice(build, value, &ranges)?;
    let mut dims: Vec<usize> = (0..sizes.len() - 1).collect();
    dims.insert(1, 0);
    build.emit1(Diagonal { dims }, &[square])
}

/// A square matrix with the vector on its diagonal, `offset` columns to the right.
fn spread(build: &mut Builder, value: Value, offset: i64) -> Result<Value, Diagnostic> {
    let (len, dtype) = (build.ty(value).shape()[0], build.ty(value).dtype());
    let size = len + offset.unsigned_abs() as usize;
    let mut padded = value;
    if offset != 0 {
        let zero = build.emit1(Constant::float(dtype, 0.0), &[])?;
        let zeros = broadcast(build, zero, &[size - len])?;
        let parts = if offset > 0 { [zeros, value] } else { [value, zeros] };
        padded = concatenate(build, &parts, 0)?;
    }
    let mut place =
        |shape: &[usize], axis: usize| build.emit1(Iota { ty: ArrayType::new(DType::I32, shape), axis }, &[]);
    let (row, column) = (place(&[size, 1], 0)?, place(&[1, size], 1)?);
    let shift = build.emit1(Constant::scalar(DType::I32, offset as u64 & 0xffff_ffff), &[])?;
    let wanted = build.emit1(Binary(BinaryOp::Add), &[row, shift])?;
    let on = build.emit1(Compare(CompareOp::Eq), &[wanted, column])?;
    let zero = build.emit1(Constant::float(dtype, 0.0), &[])?;
    build.emit1(Select, &[on, padded, zero])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::ops::testing::{self, floats, int, integers};

    #[test]
    fn diagonals_are_taken_and_made() {
        let x = floats(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let take = |k| testing::run("diag", std::slice::from_ref(&x), |x| x, &[("k", int(k))]).unwrap().floats();
        assert_eq!(take(0), [1.0, 5.0]);
        assert_eq!(take(1), [2.0, 6.0]);
        assert_eq!(take(-1), [4.0]);
        assert!(take(5).is_empty());
        let made = testing::run("diag", &[integers(&[2], &[7, 8])], |x| x, &[("k", int(1))]).unwrap();
        assert_eq!(made.ints(), [0, 7, 0, 0, 0, 8, 0, 0, 0]);
        let trace = testing::run("trace", &[floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0])], |x| x, &[]).unwrap();
        assert_eq!(trace.floats(), [5.0]);
    }

    #[test]
    fn dimensions_of_a_diagonal_agree() {
        let (op, labels) = Diagonal::of_labels(&['i', 'k', 'i']);
        assert_eq!((op.dims.as_slice(), labels.as_slice()), (&[0, 1, 0][..], &['i', 'k'][..]));
        assert_eq!(op.infer(&[&ArrayType::new(DType::F32, &[2, 3, 4])]).unwrap_err().code, Code::E0205);
        assert_eq!(op.print(&["v1".into()], &Mesh::default()), "einsum(\"aba->ab\", v1)");
        let (ty, result) = (ArrayType::new(DType::F32, &[2, 3, 2]), ArrayType::new(DType::F32, &[2, 3]));
        let rule = op.factors(&[&ty], &[&result]);
        assert_eq!(rule.operands[0][1], rule.results[0][1]);
        assert_eq!(rule.factors[rule.operands[0][0][0]].kind, FactorKind::Whole);
        assert_ne!(rule.operands[0][0], rule.operands[0][2]);
    }
}
