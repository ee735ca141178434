//! `roll(x, shift, axis)`: elements move round along dimensions, which are needed whole.

use super::factors::Factors;
use super::flip::whole_dims;
use super::regions::{Span, copy_box};
use super::{Call, Mismatch, Rules, reshape, shape};
use crate::check::args::Args;
use crate::check::term::Term;
use crate::codegen::lower::Lowering;
use crate::ir::Stmt;
use crate::ir::build::Builder;
use crate::ir::eval::{Array, Trap};
use crate::ir::mesh::Mesh;
use crate::ir::types::ArrayType;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;

#[derive(Clone, Debug, PartialEq)]
pub struct Roll {
    /// For each dimension how far its elements move, from 0 up to its size.
    pub shifts: Vec<usize>,
}

impl Rules for Roll {
    fn name(&self) -> &'static str {
        "roll"
    }

    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        Ok(vec![args[0].clone()])
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        whole_dims(&args[0].shape, &results[0].shape, |dim| self.shifts[dim] != 0)
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let sizes = args[0].shape();
        let strides = shape::strides(sizes);
        let mut bits = args[0].bits.clone();
        for (index, &from) in shape::indices(sizes).zip(&args[0].bits) {
            let dims = index.iter().zip(&self.shifts).zip(sizes.iter().zip(&strides));
            bits[dims.map(|((at, shift), (size, stride))| (at + shift) % size * stride).sum::<usize>()] = from;
        }
        Ok(vec![Array::new(args[0].ty.clone(), bits)])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        let axes: Vec<usize> = (0..self.shifts.len()).collect();
        format!("roll({}, {}, axis={})", args[0], shape::tuple(&self.shifts), shape::tuple(&axes))
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }

    /// Every rolled dimension falls into two parts; a box for each combination.
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        let sizes = lowering.ty(stmt.args[0]).shape().to_vec();
        let mut boxes: Vec<Vec<Option<Span>>> = vec![Vec::new()];
        for (&size, &shift) in sizes.iter().zip(&self.shifts) {
            let parts: Vec<Option<Span>> = if shift == 0 {
                vec![None]
            } else {
                vec![
                    Some(Span { len: size - shift, from: 0, to: shift }),
                    Some(Span { len: shift, from: size - shift, to: 0 }),
                ]
            };
            boxes =
                boxes.iter().flat_map(|spans| parts.iter().map(|part| [spans.as_slice(), &[*part]].concat())).collect();
        }
        for spans in boxes {
            copy_box(lowering, stmt, stmt.args[0], &spans);
        }
        Ok(())
    }
}

impl Call for Roll {
    fn call(_: &str, args: &mut Args<'_>, build: &mut Builder) -> Result<Term, Diagnostic> {
        let value = args.array(build, "x")?;
        let given = args.ints("shift")?;
        let sizes = build.ty(value).shape().to_vec();
        let Some(axes) = args.optional_ints("axis")? else {
            // Without an axis the elements move round in row-major order.
            let len = sizes.iter().product();
            let flat = reshape::reshape(build, value, &[len])?;
            let shift = given.iter().sum::<i64>().rem_euclid(len.max(1) as i64) as usize;
            let rolled = build.emit1(Roll { shifts: vec![shift] }, &[flat])?;
            return Ok(Term::Array(reshape::reshape(build, rolled, &sizes)?));
        };
        if axes.len() != given.len() && given.len() != 1 {
            let message = format!("`roll` was given {} shifts for {} dimensions", given.len(), axes.len());
            return Err(Diagnostic::error(Code::E0206, args.span, message));
        }
        let mut shifts = vec![0i64; sizes.len()];
        for (at, &axis) in axes.iter().enumerate() {
            let dim = shape::axis(axis, sizes.len(), args.span)?;
            shifts[dim] += given[at.min(given.len() - 1)];
        }
        let shifts = shifts.iter().zip(&sizes).map(|(shift, &size)| shift.rem_euclid(size.max(1) as i64) as usize);
        Ok(Term::Array(build.emit1(Roll { shifts: shifts.collect() }, &[value])?))
    }
}
