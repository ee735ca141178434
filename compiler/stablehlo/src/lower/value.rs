//! Values of functions, with what is known of how they were made.

use crate::tree::{Dense, DenseNumber, TensorType};
use spmdc_grammar::ast::Expr;
use std::collections::BTreeSet;

/// A value of a function.
#[derive(Clone)]
pub struct MlirValue {
    /// A name, or a literal.
    pub(super) expr: Expr,
    pub(super) ty: TensorType,
    /// The elements, if they are constant.
    pub(super) constant: Option<Dense>,
    /// A smaller array that becomes this one where NumPy broadcasts.
    pub(super) narrow: Option<ShapedExpr>,
    /// The way in which it was made.
    pub(super) form: ValueForm,
    /// The distances between its elements along each dimension, if it counts from 0.
    pub(super) counter: Option<Vec<i128>>,
    /// The reduction whose numbers it has for all elements along the reduced dimensions.
    pub(super) repeats: Option<Box<MlirReduction>>,
    /// The dimension along which it counts, if it is an `iota`.
    pub(super) counts_along: Option<usize>,
    /// The matrices whose Householder vectors it has, possibly with others where the factorization failed.
    pub(super) factored: Option<Box<MlirValue>>,
    /// The part of the number of the device that it is.
    pub(super) device: Option<DevicePart>,
    /// The least and the largest number that it may be, if it is a scalar integer.
    pub(super) range: Option<(i128, i128)>,
    /// The variable of the loop that it is.
    pub(super) trip: Option<String>,
    /// In code for each device: the axes along which it may differ.
    pub(super) varying: BTreeSet<String>,
    /// In code for each device: the call that gathers it from all devices, so that it is the same on them.
    pub(super) gathered: Option<Box<Expr>>,
}

/// A part of the number of a device: `number / stride % size`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DevicePart {
    pub(super) stride: usize,
    /// None without the remainder.
    pub(super) size: Option<usize>,
}

/// An expression with its shape.
#[derive(Clone)]
pub(super) struct ShapedExpr {
    pub(super) expr: Expr,
    pub(super) shape: Vec<usize>,
}

/// The way in which a value was made, as far as a later operation has a shorter form because of it.
#[derive(Clone)]
pub(super) enum ValueForm {
    Other,
    /// The elements of another array, in the same order.
    Reshaped(ShapedExpr),
    /// The start, stop and step of each dimension of another array.
    Sliced(ShapedExpr, Vec<(usize, usize, usize)>),
    Reduced(MlirReduction),
    /// An array minus its largest numbers along a dimension.
    Shifted(ShapedExpr, usize),
    /// The exponentials of these.
    Exponentials(ShapedExpr, usize),
    /// An element of a line.
    Element(ShapedExpr, usize),
    /// One element along some dimensions of another array, at these places.
    Row(ShapedExpr, Vec<Option<Expr>>),
    /// An array whose row at the counter of a loop was replaced.
    Stacked(StackedRow),
    /// 1 where this is true, and 0 elsewhere.
    Truth(Expr),
    /// One of the two random words of each element under a key.
    Drawn(Expr, usize),
}

/// An array whose row at the counter of a loop is replaced.
#[derive(Clone)]
pub(super) struct StackedRow {
    /// The array.
    pub(super) onto: Expr,
    pub(super) row: Expr,
    /// The variable of the loop.
    pub(super) trip: String,
}

/// A reduction of an array along some dimensions.
#[derive(Clone)]
pub(super) struct MlirReduction {
    /// The function of the language, or `log(sum(x))`.
    pub(super) function: &'static str,
    pub(super) of: ShapedExpr,
    pub(super) axes: Vec<usize>,
}

impl MlirReduction {
    /// The shape of the result if the reduced dimensions are kept, with one element.
    pub(super) fn kept_shape(&self) -> Vec<usize> {
        let size = |(dim, &size): (usize, &usize)| if self.axes.contains(&dim) { 1 } else { size };
        self.of.shape.iter().enumerate().map(size).collect()
    }

    /// Whether it reduces this value along one dimension by this function; that dimension.
    pub(super) fn axis_of(&self, function: &str, x: &Expr) -> Option<usize> {
        match self.axes.as_slice() {
            [axis] if self.function == function && self.of.expr.kind == x.kind => Some(*axis),
            _ => None,
        }
    }
}

impl MlirValue {
    /// As an expression with its shape.
    pub(super) fn shaped(&self) -> ShapedExpr {
        ShapedExpr { expr: self.expr.clone(), shape: self.ty.shape.clone() }
    }

    /// The array whose elements it has in another shape, or itself.
    pub(super) fn unshaped(&self) -> ShapedExpr {
        match &self.form {
            ValueForm::Reshaped(from) => from.clone(),
            ValueForm::Other
            | ValueForm::Sliced(..)
            | ValueForm::Reduced(_)
            | ValueForm::Shifted(..)
            | ValueForm::Exponentials(..)
            | ValueForm::Element(..)
            | ValueForm::Row(..)
            | ValueForm::Stacked(_)
            | ValueForm::Truth(_)
            | ValueForm::Drawn(..) => self.shaped(),
        }
    }

    pub(super) fn new(expr: Expr, ty: TensorType) -> MlirValue {
        MlirValue {
            expr,
            ty,
            constant: None,
            narrow: None,
            form: ValueForm::Other,
            counter: None,
            repeats: None,
            counts_along: None,
            factored: None,
            device: None,
            range: None,
            trip: None,
            varying: BTreeSet::new(),
            gathered: None,
        }
    }

    /// The real number that all elements are.
    pub(super) fn splat(&self) -> Option<&DenseNumber> {
        let dense = self.constant.as_ref().filter(|dense| dense.is_splat())?;
        match dense.elements.as_slice() {
            [number] => Some(number),
            [real, imaginary] => Some(real).filter(|_| imaginary.is_zero()),
            _ => None,
        }
    }

    /// Whether all elements are this integer, or the float of the same value.
    pub(super) fn is_number(&self, number: i128) -> bool {
        match self.splat() {
            Some(DenseNumber::Int(one)) => *one == number,
            Some(DenseNumber::Decimal(text)) => text.parse() == Ok(number as f64),
            Some(DenseNumber::Bits(0)) => number == 0,
            Some(DenseNumber::Bits(_)) | None => false,
        }
    }
}
