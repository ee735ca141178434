//! Indices from numbers, lists and arrays, converted to i64 and counted from the start of their dimension.
//!
//! By default a `check_indices` stops the program for an invalid index, which is checked against the whole dimension, before the device with
//! the element is known. Indices known at compile time are checked there.

use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::must_be;
use spmdc_grammar::span::Span;
use spmdc_ir::array::Array;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::errors::unknown_value;
use spmdc_ir::call::scoped::Scoped;
use spmdc_ir::call::term::{Operand, Term};
use spmdc_ir::program::Value;
use spmdc_kernel::scalar::{BinaryOp, CompareOp};
use spmdc_layout::types::{ArrayType, DType};
use spmdc_ops::cast::cast;
use spmdc_ops::check_indices::CheckIndices;
use spmdc_ops::constant::Constant;
use spmdc_ops::elementwise::{binary, compare};
use spmdc_ops::from_end::{as_i64, from_end};
use spmdc_ops::slice::SliceRange;

/// The meaning of an index that is out of bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutOfBounds {
    /// It stops the program. Negative indices count from the end.
    Raise,
    /// The nearest element; negative indices are 0.
    Clip,
    /// The nearest element. Negative indices count from the end.
    Nearest,
    /// Round the dimension.
    Wrap,
    /// No element: the result has a fill value. Negative indices count from the end.
    Fill,
}

impl OutOfBounds {
    /// The meaning that a call's `mode=` names.
    pub fn of_name(name: &str, span: Span) -> Result<OutOfBounds, Diagnostic> {
        let modes = [
            ("raise", OutOfBounds::Raise),
            ("clip", OutOfBounds::Clip),
            ("wrap", OutOfBounds::Wrap),
            ("fill", OutOfBounds::Fill),
        ];
        modes
            .into_iter()
            .find(|(known, _)| *known == name)
            .map(|(_, mode)| mode)
            .ok_or_else(|| unknown_value("mode", &modes.map(|(name, _)| name), &Term::Str(name.to_string()), span))
    }
}

/// Indices for a `gather`, and for [`OutOfBounds::Fill`] whether each of them is in bounds.
pub struct Indices {
    /// Of type i64, counted from the start of the dimension.
    pub places: Value,
    /// Bools of the same shape.
    pub exist: Option<Value>,
}

/// The indices of a dimension of size `extent`, from an integer, a list of integers, or an array.
pub fn indices(
    build: &mut CallBuilder,
    (term, span): Operand<'_>,
    extent: usize,
    mode: OutOfBounds,
) -> Result<Indices, Diagnostic> {
    if mode == OutOfBounds::Raise
        && let Some(places) = known(term, span)?
    {
        let place = |&index: &i128| {
            let index = index.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
            SliceRange::one(index, extent).map(|range| range.start as u64)
        };
        let bits: Result<Vec<u64>, spmdc_ir::mismatch::Mismatch> = places.ints().iter().map(place).collect();
        let bits = bits.map_err(|mismatch| {
            let error = Diagnostic::error(mismatch.code, span, mismatch.message);
            Diagnostic { help: mismatch.help, ..error }
        })?;
        let places = build.emit1(Constant { array: Array::new(places.ty, bits) }, &[])?;
        return Ok(Indices { places, exist: None });
    }
    let value = build.materialize(term, None, span)?;
    let ty = build.ty(value).array.clone();
    if !ty.dtype.is_integer() {
        if ty.dtype == DType::Bool && ty.rank() > 0 {
            return Err(no_static_size(span));
        }
        return Err(Diagnostic::error(Code::E0203, span, must_be("indices", "integers", &ty)));
    }
    build.at(span, build.lineage(), |build| in_bounds(build, value, (&ty, span), extent, mode))
}

/// The integers of a term that is known at compile time, as i64.
fn known(term: &Term, span: Span) -> Result<Option<Array>, Diagnostic> {
    if matches!(term, Term::Array(_)) || term.holds_array() {
        return Ok(None);
    }
    let literal = Constant::from_term(term, None, span);
    let is_integral = |array: &Array| array.dtype() == DType::I32 || array.bits.is_empty();
    if !matches!(term, Term::Int(_)) && !literal.is_ok_and(|literal| is_integral(&literal.array)) {
        return Ok(None);
    }
    Ok(Some(Constant::from_term(term, Some(DType::I64), span)?.array))
}

fn in_bounds(
    build: &mut CallBuilder,
    value: Value,
    (ty, span): (&ArrayType, Span),
    extent: usize,
    mode: OutOfBounds,
) -> Result<Indices, Diagnostic> {
    let op = |build: &mut CallBuilder, op: BinaryOp, value: Value, by: i128| {
        binary(build, op, (&Term::Array(value), span), (&Term::Int(by), span))
    };
    if mode == OutOfBounds::Raise {
        return Ok(Indices { places: build.emit1(CheckIndices { extent }, &[value])?, exist: None });
    }
    if extent == 0 && !ty.is_empty() && mode != OutOfBounds::Fill {
        let message = "cannot take elements of a dimension of size 0";
        return Err(Diagnostic::error(Code::E0401, span, message).help("mode=\"fill\" fills the result"));
    }
    let size = extent as i128;
    let mut places = value;
    // They become wide at the end, because they may be moved before.
    let fits = mode != OutOfBounds::Fill && size <= ty.dtype.integer_bounds().1;
    if !fits {
        places = as_i64(build, places, size, span)?;
    }
    if mode == OutOfBounds::Wrap {
        let places = op(build, BinaryOp::Rem, places, size)?;
        return Ok(Indices { places: cast(build, places, DType::I64)?, exist: None });
    }
    let mut exist = None;
    if matches!(mode, OutOfBounds::Fill | OutOfBounds::Nearest) {
        places = from_end(build, places, size, span)?;
    }
    if mode == OutOfBounds::Fill {
        let [first, behind] = [(CompareOp::Ge, 0), (CompareOp::Lt, size)]
            .map(|(op, bound)| compare(build, op, (&Term::Array(places), span), (&Term::Int(bound), span)));
        exist = Some(binary(build, BinaryOp::And, (&Term::Array(first?), span), (&Term::Array(behind?), span))?);
    }
    places = op(build, BinaryOp::Maximum, places, 0)?;
    places = op(build, BinaryOp::Minimum, places, size - 1)?;
    Ok(Indices { places: cast(build, places, DType::I64)?, exist })
}

/// E0207 for an index whose result would have a shape that depends on values.
pub fn no_static_size(span: Span) -> Diagnostic {
    let message = "boolean indexing is not supported: the result's shape would depend on run-time values";
    Diagnostic::error(Code::E0207, span, message).help(
        "`where(mask, x, 0)` keeps the shape of `x`, reductions take a mask, as in `sum(x, where=mask)`, and \
         `x[nonzero(mask, size=N)[0]]` selects the first N elements",
    )
}
