//! The calls of sorts: `sort argsort lexsort top_k`.

use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::Call;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::program::Value;
use spmdc_ir::shape;
use spmdc_ops::reshape::reshape;
use spmdc_ops::slice::{SliceRange, slice_dim};
use spmdc_ops::sort::{LineOrder, places, sort_together, term};

/// Maximum number of keys in the rows of one array.
const MAX_KEYS: usize = 100;

/// The calls of `lexsort`.
pub struct LexSort;

/// The calls of `top_k`.
pub struct TopK;

impl Call for LexSort {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The indices that sort by several keys: by the last key, then for equal elements by the previous one, and so on.
        lexsort(keys: Of("tuple of arrays, or array"), axis: Int = -1), NumbersAndBools, Refused(ORDER), "(a: i32[6], b: f32[6]) { lexsort((b, a)) }";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let given = args.required("keys")?;
        let mut keys = match given.term.sequence() {
            Some(items) => {
                let items = items.to_vec();
                items.iter().map(|item| build.materialize(item, None, given.span)).collect::<Result<Vec<Value>, _>>()?
            }
            None => {
                let all = build.materialize(&given.term, None, given.span)?;
                let ty = build.ty(all).array.clone();
                let Some((&count, rest)) = ty.shape.split_first() else {
                    return Err(Diagnostic::error(
                        Code::E0206,
                        given.span,
                        "`lexsort` requires keys with at least one dimension",
                    ));
                };
                if count > MAX_KEYS {
                    let message = format!("`lexsort` takes at most {MAX_KEYS} keys; found {count}");
                    return Err(Diagnostic::error(Code::E0201, given.span, message));
                }
                let mut key = |at: usize| {
                    let row = slice_dim(build, all, 0, SliceRange::between(at, at + 1))?;
                    reshape(build, row, rest)
                };
                (0..count).map(&mut key).collect::<Result<Vec<Value>, _>>()?
            }
        };
        keys.reverse();
        let Some(&first) = keys.first() else {
            return Err(Diagnostic::error(Code::E0201, given.span, "`lexsort` requires at least one key"));
        };
        let axis = shape::axis(args.optional_int("axis")?.unwrap_or(-1), build.ty(first).rank(), args.span)?;
        let order = LineOrder { keys: keys.len(), axis, descending: false, signed_zeros: false };
        keys.push(places(build, first, axis)?);
        let sorted = sort_together(build, &keys, order)?;
        Ok(Term::Array(sorted[sorted.len() - 1]))
    }
}

impl Call for TopK {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The k largest elements of each line, descending, and their indices; equal elements keep theirs, NaN is the largest, and -0 is below 0.
        top_k(operand: Array, k: Int, axis: Int = -1), NumbersAndBools, Refused(ORDER), "(x: f32[4, 6]) { top_k(x, 2) }";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let value = args.array(build, "operand")?;
        let k = args.int("k")?;
        let axis = shape::axis(args.optional_int("axis")?.unwrap_or(-1), build.ty(value).rank(), args.span)?;
        let size = build.ty(value).shape()[axis];
        let Some(k) = usize::try_from(k).ok().filter(|&k| k <= size) else {
            return Err(Diagnostic::error(
                Code::E0205,
                args.span,
                format!("`top_k` cannot select {k} of {size} elements"),
            ));
        };
        let places = places(build, value, axis)?;
        let order = LineOrder { keys: 1, axis, descending: true, signed_zeros: build.ty(value).dtype().is_float() };
        let sorted = sort_together(build, &[value, places], order)?;
        let taken = sorted.iter().map(|&result| slice_dim(build, result, axis, SliceRange::between(0, k)));
        let taken = taken.collect::<Result<Vec<Value>, _>>()?;
        Ok(term(&taken))
    }
}
