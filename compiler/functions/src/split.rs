//! `split(x, 3)` and `split(x, (2, 5))`: slices along one dimension, as a tuple; for a key, new keys. It is not an op.

use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::requires;
use spmdc_ir::call::Call;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::call::term::whole_number;
use spmdc_ir::shape;
use spmdc_layout::types::DType;
use spmdc_ops::keys;
use spmdc_ops::slice::{SliceRange, slice_dim};

/// The calls of `split`; they emit slices.
pub struct Split;

/// The borders of the parts: of equal parts for a number, otherwise the given borders, clipped as in NumPy.
fn borders(parts: &Term, size: usize, args: &Args<'_>) -> Result<Vec<usize>, Diagnostic> {
    let count = |term: &Term| match (whole_number(term), term) {
        (Some(value), _) => Ok(value),
        (None, other) => {
            let message = requires("`split`", "a number of parts or a tuple of indices", other.describe());
            Err(Diagnostic::error(Code::E0210, args.span, message))
        }
    };
    if let Some(given) = parts.sequence() {
        let mut borders = vec![0];
        for border in given {
            let border = count(border)?;
            let from_front = if border < 0 { border + size as i128 } else { border };
            borders.push(from_front.clamp(0, size as i128) as usize);
        }
        borders.push(size);
        return Ok(borders);
    }
    let parts = count(parts)?;
    let fits = usize::try_from(parts).ok().filter(|&parts| parts > 0 && size.is_multiple_of(parts));
    let Some(parts) = fits else {
        let message = format!("{size} elements cannot be split into {parts} equal parts");
        let help = "pass the indices to split at, as in split(x, (2, 5))";
        return Err(Diagnostic::error(Code::E0205, args.span, message).help(help));
    };
    Ok((0..=parts).map(|part| part * (size / parts)).collect())
}

impl Call for Split {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// Parts of equal size, or the parts between borders, as a tuple; for a key, an array of the given number of new keys, by default two.
        split(x: Array, indices_or_sections: Of("int or tuple of ints") = None, axis: Int = 0, [named] num: Of("int or tuple of ints") = None),
            Any, Planes(x), "(x: f32[4, 6]) { split(x, 3, axis=1) }";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let value = args.array(build, "x")?;
        let sizes = build.ty(value).shape().to_vec();
        if build.ty(value).dtype() == DType::Key && sizes.is_empty() {
            let num = args.take("num").or_else(|| args.take("indices_or_sections"));
            return Ok(Term::Array(keys::split(build, value, num.as_ref(), args.span)?));
        }
        if let Some(num) = args.take("num") {
            let message = format!("`num` applies to random keys only; found {}", build.ty(value).array);
            return Err(Diagnostic::error(Code::E0215, num.span, message));
        }
        let parts = args.required("indices_or_sections")?;
        let axis = shape::axis(args.optional_int("axis")?.unwrap_or(0), sizes.len(), args.span)?;
        let borders = borders(&parts.term, sizes[axis], args)?;
        let mut results = Vec::new();
        for ends in borders.windows(2) {
            results.push(Term::Array(slice_dim(build, value, axis, SliceRange::between(ends[0], ends[1]))?));
        }
        Ok(Term::Tuple(results))
    }
}
