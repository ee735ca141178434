//! `fftshift` and `ifftshift`: rolls by half of each dimension; and Fourier transforms along several dimensions.

use crate::complex;
use spmdc_fft_ops::fft::{half_spectrum, of_half_spectrum, spectrum};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::must_be;
use spmdc_ir::call::Call;
use spmdc_ir::call::arg::{Arg, as_bool, as_ints};
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::errors::unknown_value;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::call::trees::joined;
use spmdc_ir::program::Value;
use spmdc_ir::shape;
use spmdc_kernel::scalar::BinaryOp;
use spmdc_ops::concatenate::concatenate;
use spmdc_ops::constant::Constant;
use spmdc_ops::elementwise::Binary;
use spmdc_ops::roll::Roll;
use spmdc_ops::slice::{Slice, SliceRange};

/// The calls of `fftshift` and `ifftshift`; they emit rolls.
pub struct Shifts;

impl Call for Shifts {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// Spectra with the frequency 0 in the middle: rolled by half of their size along all dimensions or the given ones.
        fftshift(x: Array, axes: Ints = None), Any, Planes(x), "(x: f32[4, 6]) { fftshift(x) }";
        /// The inverse of fftshift.
        ifftshift(x: Array, axes: Ints = None), Any, Planes(x), "(x: f32[4, 6]) { ifftshift(x) }";
    };

    fn call(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let value = args.array(build, "x")?;
        let sizes = build.ty(value).shape().to_vec();
        let axes = match args.optional_ints("axes")? {
            Some(axes) => shape::axes(&axes, sizes.len(), args.span)?,
            None => (0..sizes.len()).collect(),
        };
        let mut shifts = vec![0; sizes.len()];
        for axis in axes {
            // Upward from half the size, and back: of odd sizes, one more than the half.
            shifts[axis] = if name == "fftshift" { sizes[axis] / 2 } else { sizes[axis].div_ceil(2) };
            shifts[axis] %= sizes[axis].max(1);
        }
        Ok(Term::Array(build.emit1(Roll { shifts }, &[value])?))
    }
}

/// `transforms(x, s, axes, norm, of_real, inverse)`: the Fourier transform along several dimensions, with numbers of points `s`. With
/// `of_real`, the transform of real numbers, or back to them, along the last one.
pub fn transforms(build: &mut CallBuilder, args: &[Arg]) -> Result<Term, Diagnostic> {
    let [x, s, axes, norm, of_real, inverse] = args else { panic!("the prelude gives all arguments") };
    let (of_real, inverse) = (as_bool(of_real, "of_real")?, as_bool(inverse, "inverse")?);
    let mut planes = Vec::new();
    let is_complex = matches!(x.term, Term::Complex(_)) || (of_real && inverse);
    for term in complex::planes(build, &x.term)?.iter().take(if is_complex { 2 } else { 1 }) {
        planes.push(build.materialize(term, None, x.span)?);
    }
    let sizes = build.ty(planes[0]).shape().to_vec();
    let lines = lines(build, &sizes, s, axes)?;
    let (&(last, points), others) = lines.split_last().expect("there is a dimension");
    let points = match points {
        Some(points) => points,
        None if of_real && inverse => 2 * (sizes[last] as i64 - 1),
        None => sizes[last] as i64,
    };
    let number = |&(axis, n): &(usize, Option<i64>)| n.unwrap_or(sizes[axis] as i64);
    for plane in &mut planes {
        for line in others {
            *plane = resized(build, *plane, number(line), line.0 as i64)?;
        }
        let kept = if of_real && inverse && points > 0 { points / 2 + 1 } else { points };
        *plane = resized(build, *plane, kept, last as i64)?;
    }
    // The inverse goes the other way, so it begins with the dimension along which the transform leaves whole lines.
    if !inverse {
        let first =
            if of_real { half_spectrum(build, planes[0], last)? } else { spectrum(build, &planes, last, false)? };
        planes = first.to_vec();
    }
    let mut order: Vec<usize> = others.iter().map(|line| line.0).collect();
    if !inverse {
        order.reverse();
    }
    for axis in order {
        planes = spectrum(build, &planes, axis, inverse)?.to_vec();
    }
    if inverse && of_real {
        let n = usize::try_from(points).expect("the dimension has been resized");
        planes = vec![of_half_spectrum(build, [planes[0], planes[1]], last, n)?];
    } else if inverse {
        planes = spectrum(build, &planes, last, true)?.to_vec();
    }
    let Term::Float(factor) = scale(norm, points * others.iter().map(number).product::<i64>(), inverse)? else {
        panic!("the factor of a transform is a number");
    };
    let dtype = build.ty(planes[0]).dtype();
    if factor != 1.0 {
        let factor = build.emit1(Constant::float(dtype, factor), &[])?;
        for plane in &mut planes {
            *plane = build.emit1(Binary(BinaryOp::Mul), &[*plane, factor])?;
        }
    }
    Ok(match planes[..] {
        [re, im] => joined(Term::Array(re), Term::Array(im)),
        _ => Term::Array(planes[0]),
    })
}

/// The dimensions of a transform, each with the number of its points if the call gives it.
fn lines(build: &CallBuilder, sizes: &[usize], s: &Arg, axes: &Arg) -> Result<Vec<(usize, Option<i64>)>, Diagnostic> {
    let refused = |message: String| Err(Diagnostic::error(Code::E0205, build.span(), message));
    let points = if let Term::Nothing = s.term { None } else { Some(as_ints(s, "s")?) };
    let axes = match (&axes.term, &points) {
        (Term::Nothing, None) => (0..sizes.len()).collect(),
        (Term::Nothing, Some(points)) if points.len() <= sizes.len() => {
            (sizes.len() - points.len()..sizes.len()).collect()
        }
        (Term::Nothing, Some(points)) => {
            return refused(format!(
                "`s` needs one size per axis: got {} sizes for {} axes",
                points.len(),
                sizes.len()
            ));
        }
        _ => shape::axes(&as_ints(axes, "axes")?, sizes.len(), build.span())?,
    };
    if axes.is_empty() {
        return refused(String::from("a Fourier transform requires at least one axis"));
    }
    match points {
        None => Ok(axes.into_iter().map(|axis| (axis, None)).collect()),
        Some(points) if points.len() == axes.len() => {
            Ok(axes.into_iter().zip(points).map(|(axis, n)| (axis, Some(n))).collect())
        }
        Some(points) => {
            refused(format!("`s` needs one size per axis: got {} sizes for {} axes", points.len(), axes.len()))
        }
    }
}

/// The factor of a transform of n points; E0210 for a norm that does not exist.
pub fn scale(norm: &Arg, n: i64, inverse: bool) -> Result<Term, Diagnostic> {
    let name = if let Term::Str(name) = &norm.term { name.as_str() } else { "" };
    let is_divided = match name {
        "" if matches!(norm.term, Term::Nothing) => inverse,
        "backward" => inverse,
        "forward" => !inverse,
        "ortho" => return Ok(Term::Float(1.0 / (n as f64).sqrt())),
        _ => return Err(unknown_value("norm", &["backward", "ortho", "forward"], &norm.term, norm.span)),
    };
    Ok(Term::Float(if is_divided { 1.0 / n as f64 } else { 1.0 }))
}

/// A value with this many elements along a dimension: the first ones, or all and zeros after them.
pub fn resized(build: &mut CallBuilder, value: Value, n: i64, axis: i64) -> Result<Value, Diagnostic> {
    let span = build.span();
    let sizes = build.ty(value).shape().to_vec();
    let axis = shape::axis(axis, sizes.len(), span)?;
    let Some(n) = usize::try_from(n).ok().filter(|&n| n > 0) else {
        return Err(Diagnostic::error(
            Code::E0225,
            span,
            must_be("the number of points of a transform", "at least 1", n),
        ));
    };
    if n <= sizes[axis] {
        let mut slice = Slice::identity(&build.ty(value).array);
        slice.ranges[axis].0 = SliceRange::between(0, n);
        return if n == sizes[axis] { Ok(value) } else { build.emit1(slice, &[value]) };
    }
    let mut rest = sizes.clone();
    rest[axis] = n - sizes[axis];
    let zeros = spmdc_ops::broadcast::filled(build, build.ty(value).dtype(), 0, &rest)?;
    concatenate(build, &[value, zeros], axis)
}
