//! `fftshift` and `ifftshift`: rolls by half of each dimension.

use super::roll::Roll;
use super::{Call, shape};
use crate::ops::call::args::Args;
use crate::ops::call::build::CallBuilder;
use crate::ops::call::signature::{Signature, signatures};
use crate::ops::call::term::Term;
use spmdc_grammar::diagnostic::Diagnostic;

/// The calls of `fftshift` and `ifftshift`; they emit rolls.
pub struct Shifts;

impl Call for Shifts {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// Spectra with the frequency 0 in the middle: rolled by half of their size along all dimensions, or those given.
        fftshift(x: Array, axes: Ints = None), Any, "(x: f32[4, 6]) { fftshift(x) }";
        /// The inverse of fftshift.
        ifftshift(x: Array, axes: Ints = None), Any, "(x: f32[4, 6]) { ifftshift(x) }";
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
