//! `take(x, i, axis=0)` and `take_along_axis(x, i, axis=0)`: both become a `gather`.

use crate::indexing::places::{Indices, OutOfBounds, indices};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::requires;
use spmdc_grammar::span::Span;
use spmdc_ir::call::Call;
use spmdc_ir::call::arg::{as_string, complete};
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::program::Value;
use spmdc_ir::program::streams::refused;
use spmdc_ir::shape;
use spmdc_kernel::number;
use spmdc_layout::types::DType;
use spmdc_ops::constant::Constant;
use spmdc_ops::elementwise::Select;
use spmdc_ops::gather::Gather;
use spmdc_ops::reshape::reshape;
use spmdc_ops::reshard::{Reshard, explicit_out};
use spmdc_ops::{promote, read_rows};

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
        ), Any, Planes(x, fill_value), "(x: f32[6, 4], i: i32[8]) { take(x, i % 6, axis=0) }";
        /// For each position of the indices, the element of `x` that differs from it along one axis only.
        take_along_axis(
            x: Array, indices: Array, axis: Int = -1, [named] mode: String = "raise", [named] fill_value: Array = None,
            [named] out: Sharding = None,
        ), Any, Planes(x, fill_value), "(x: f32[4, 6], i: i32[4, 8]) { take_along_axis(x, i % 6, axis=1) }";
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
