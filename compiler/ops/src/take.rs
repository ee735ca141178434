//! `take(x, i, axis=0)` and `take_along_axis(x, i, axis=0)`, and the index arrays of `x[i, 1:]`: all become a `gather`.
//!
//! Indices are first converted to i64, counted from the start of the dimension, according to `mode`. By default a `check_indices` stops the
//! program for an invalid index, which is checked against the whole dimension, before the device with the element is known. Indices known
//! at compile time are checked there.

use crate::cast::cast;
use crate::check_indices::CheckIndices;
use crate::constant::Constant;
use crate::elementwise::{Select, binary, compare};
use crate::gather::Gather;
use crate::reshape::reshape;
use crate::reshard::{Reshard, explicit_out};
use crate::slice::SliceRange;
use crate::{masked, promote, read_rows};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::{must_be, requires};
use spmdc_grammar::span::Span;
use spmdc_ir::array::Array;
use spmdc_ir::call::Call;
use spmdc_ir::call::arg::as_string;
use spmdc_ir::call::arg::complete;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::errors::unknown_value;
use spmdc_ir::call::scoped::Scoped;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::{Operand, Term};
use spmdc_ir::program::Value;
use spmdc_ir::program::streams::refused;
use spmdc_ir::shape;
use spmdc_kernel::number;
use spmdc_kernel::scalar::{BinaryOp, CompareOp};
use spmdc_layout::types::{ArrayType, DType};

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
    fn of_name(name: &str, span: Span) -> Result<OutOfBounds, Diagnostic> {
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
            return Err(masked::no_static_size(span));
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
        if ty.dtype == DType::U64 {
            // Half of the u64 values are no i64.
            places = op(build, BinaryOp::Minimum, places, size)?;
        }
        places = cast(build, places, DType::I64)?;
    }
    if mode == OutOfBounds::Wrap {
        let places = op(build, BinaryOp::Rem, places, size)?;
        return Ok(Indices { places: cast(build, places, DType::I64)?, exist: None });
    }
    let mut exist = None;
    if matches!(mode, OutOfBounds::Fill | OutOfBounds::Nearest) {
        // All bits of the sign of a negative number, and with them the size.
        let sign = op(build, BinaryOp::Shr, places, 63)?;
        let more = op(build, BinaryOp::And, sign, size)?;
        places = binary(build, BinaryOp::Add, (&Term::Array(places), span), (&Term::Array(more), span))?;
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

/// The default fill value: NaN, the least signed integer, the largest unsigned one, true.
fn default_fill(dtype: DType, span: Span) -> Result<Constant, Diagnostic> {
    if dtype.is_float() {
        return Ok(Constant::float(dtype, f64::NAN));
    }
    if dtype.is_integer() {
        let (least, largest) = dtype.integer_bounds();
        return Ok(Constant::scalar(dtype, number::from_int(dtype, if least < 0 { least } else { largest })));
    }
    if dtype == DType::Bool {
        return Ok(Constant::scalar(dtype, 1));
    }
    Err(Diagnostic::error(Code::E0215, span, "random keys have no fill value"))
}

/// The common arguments of `take` and `take_along_axis`.
struct Taker {
    x: Value,
    axis: usize,
    mode: OutOfBounds,
    span: Span,
}

impl Taker {
    /// Reads `x`, `axis`, which is the axis of the flattened array if it is None, and `mode`.
    fn of_call(args: &mut Args<'_>, build: &mut CallBuilder, default: Option<i64>) -> Result<Taker, Diagnostic> {
        let mut x = args.array(build, "x")?;
        let is_stream = build.ty(x).array.is_stream;
        let axis = match args.optional_int("axis")?.or(default) {
            // The rows of a stream, which is never flattened.
            None if is_stream => 0,
            Some(axis) => shape::axis(axis, build.ty(x).rank(), args.span)?,
            None => {
                let len = build.ty(x).array.len();
                x = reshape(build, x, &[len])?;
                0
            }
        };
        let mode = args.take("mode");
        let mode = match &mode {
            Some(arg) => OutOfBounds::of_name(&as_string(arg, "mode")?, arg.span)?,
            None => OutOfBounds::Raise,
        };
        Ok(Taker { x, axis, mode, span: args.span })
    }

    /// The elements of `x` at these indices, in the layout of the call's `out=`; `behind` as for [`Taker::filled`].
    fn gathered(
        &self,
        args: &mut Args<'_>,
        build: &mut CallBuilder,
        mut op: Gather,
        (x, Indices { places, exist }): (Value, Indices),
        behind: usize,
    ) -> Result<Term, Diagnostic> {
        let rank = build.ty(x).rank() - op.dims.len() - op.batch.len() + build.ty(places).rank();
        let out = match args.optional_sharding("out")? {
            Some((out, span)) => Some(complete(out.sharding, rank, span)?),
            None => None,
        };
        op.out = out.as_ref().and_then(|out| explicit_out(build, out));
        let told = op.out.clone();
        let taken = build.emit1(op, &[x, places])?;
        let taken = self.filled(args, build, taken, exist, behind)?;
        Ok(Term::Array(match out {
            Some(out) if told.as_ref() != Some(&out) => build.emit1(Reshard::pin(out), &[taken])?,
            Some(_) | None => taken,
        }))
    }

    /// The elements, or the fill value for indices out of bounds. `behind` is the number of dimensions of the result that follow the
    /// dimensions of the indices.
    fn filled(
        &self,
        args: &mut Args<'_>,
        build: &mut CallBuilder,
        taken: Value,
        exist: Option<Value>,
        behind: usize,
    ) -> Result<Value, Diagnostic> {
        let given = args.take("fill_value");
        let Some(exist) = exist else {
            return match given {
                Some(arg) if self.mode != OutOfBounds::Fill => {
                    Err(Diagnostic::error(Code::E0201, arg.span, "`fill_value` has no effect without mode=\"fill\""))
                }
                Some(_) | None => Ok(taken),
            };
        };
        let dtype = build.ty(taken).dtype();
        let fill = match given {
            Some(arg) => {
                let fill = promote::to_dtype(build, (&arg.term, arg.span), dtype)?;
                if build.ty(fill).rank() > 0 {
                    return Err(Diagnostic::error(Code::E0205, arg.span, "`fill_value` must be a scalar"));
                }
                fill
            }
            None => build.emit1(default_fill(dtype, self.span)?, &[])?,
        };
        let mut dims = build.ty(exist).shape().to_vec();
        dims.resize(dims.len() + behind, 1);
        let exist = reshape(build, exist, &dims)?;
        build.emit1(Select, &[exist, taken, fill])
    }
}

/// `take` and `take_along_axis`.
pub struct Take;

impl Call for Take {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The elements at the given indices along an axis; without an axis, of the flattened array.
        take(
            x: Array, indices: Array, axis: Int = None, [named] mode: String = "raise", [named] fill_value: Array = None,
            [named] out: Sharding = None,
        ), Any, "(x: f32[6, 4], i: i32[8]) { take(x, i % 6, axis=0) }";
        /// For each position of the indices, the element of `x` that differs from it along one axis only.
        take_along_axis(
            x: Array, indices: Array, axis: Int = -1, [named] mode: String = "raise", [named] fill_value: Array = None,
            [named] out: Sharding = None,
        ), Any, "(x: f32[4, 6], i: i32[4, 8]) { take_along_axis(x, i % 6, axis=1) }";
    };

    fn call(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        if name == "take" { take(args, build) } else { take_along_axis(args, build) }
    }
}

fn take(args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
    let taker = Taker::of_call(args, build, None)?;
    let given = args.required("indices")?;
    let sizes = build.ty(taker.x).shape().to_vec();
    let Indices { places, exist } = indices(build, (&given.term, given.span), sizes[taker.axis], taker.mode)?;
    if build.ty(taker.x).array.is_stream {
        return take_rows(&taker, (args, build), Indices { places, exist });
    }
    let op = Gather::new(vec![taker.axis], Vec::new(), taker.axis);
    taker.gathered(args, build, op, (taker.x, Indices { places, exist }), sizes.len() - 1 - taker.axis)
}

/// `take` of the rows of a stream.
fn take_rows(
    taker: &Taker,
    (args, build): (&mut Args<'_>, &mut CallBuilder),
    Indices { places, exist }: Indices,
) -> Result<Term, Diagnostic> {
    let stream = build.ty(taker.x).array.clone();
    if taker.axis != 0 || stream.rank() == 0 {
        return Err(build.mismatch(refused("`take` along any axis but the first", &stream)));
    }
    let rank = stream.rank() - 1 + build.ty(places).rank();
    let out = match args.optional_sharding("out")? {
        Some((out, span)) => Some(complete(out.sharding, rank, span)?),
        None => None,
    };
    let rows = read_rows::rows(build, taker.x, (None, places), out)?;
    Ok(Term::Array(taker.filled(args, build, rows, exist, stream.rank() - 1)?))
}

fn take_along_axis(args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
    let mut taker = Taker::of_call(args, build, Some(-1))?;
    if taker.mode == OutOfBounds::Clip {
        // JAX counts from the end here, other than in `take`.
        taker.mode = OutOfBounds::Nearest;
    }
    let given = args.required("indices")?;
    let sizes = build.ty(taker.x).shape().to_vec();
    let Indices { places, exist } = indices(build, (&given.term, given.span), sizes[taker.axis], taker.mode)?;
    let of = build.ty(places).shape().to_vec();
    if of.len() != sizes.len() {
        let message = requires(
            format_args!("`{}`", args.function),
            format_args!("indices with {} dimensions", sizes.len()),
            of.len(),
        );
        return Err(Diagnostic::error(Code::E0205, given.span, message));
    }
    let others = || (0..sizes.len()).filter(|&dim| dim != taker.axis);
    if let Some(dim) = others().find(|&dim| sizes[dim] != of[dim] && sizes[dim] != 1 && of[dim] != 1) {
        let (x, of) = (shape::display(&sizes), shape::display(&of));
        let message = format!("the shapes {x} and {of} do not broadcast along dimension {dim}");
        return Err(Diagnostic::error(Code::E0204, given.span, message));
    }
    // A dimension of one element vanishes where the indices have more.
    let (mut kept, mut batch, mut axis) = (Vec::new(), Vec::new(), 0);
    for (dim, &size) in sizes.iter().enumerate() {
        if dim == taker.axis {
            axis = kept.len();
        } else if size == 1 && of[dim] != 1 {
            continue;
        } else {
            batch.push((kept.len(), dim));
        }
        kept.push(size);
    }
    let x = reshape(build, taker.x, &kept)?;
    taker.gathered(args, build, Gather::new(vec![axis], batch, 0), (x, Indices { places, exist }), 0)
}
