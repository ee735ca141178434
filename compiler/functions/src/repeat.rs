//! `tile` and `repeat`: a new dimension is broadcast and merged with its neighbour.

use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::requires;
use spmdc_ir::call::Call;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::errors::too_large;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::program::Value;
use spmdc_ir::shape;
use spmdc_layout::mesh::AxisKind;
use spmdc_ops::concatenate::concatenate;
use spmdc_ops::pad::Pad;
use spmdc_ops::slice::{SliceRange, slice_dim};
use spmdc_ops::{broadcast, reshape};

/// `tile(x, (2, 1))` and `repeat(x, 3, axis=1)`, which are not ops.
pub struct Repeat;

/// `times` copies of a dimension: of the whole dimension (`outer`), or of each element.
fn copies(build: &mut CallBuilder, value: Value, dim: usize, times: usize, outer: bool) -> Result<Value, Diagnostic> {
    let sizes = build.ty(value).shape().to_vec();
    let len = sizes[dim].checked_mul(times).ok_or_else(|| too_large(build.span()))?;
    let explicit = build.mesh().of_kind(AxisKind::Explicit);
    let axes = build.ty(value).sharding.dims[dim].axes.iter().copied();
    let devices = build.mesh().size_of(&axes.filter(|axis| explicit.contains(usize::from(*axis))).collect::<Vec<_>>());
    // If the last block is shorter, blocks do not grow into blocks of the result: they are padded, which moves nothing, and the
    // result is cut to its size again.
    let filled = if outer { sizes[dim] } else { sizes[dim].next_multiple_of(devices) };
    let mut widths = vec![(0, 0); sizes.len()];
    widths[dim].1 = filled - sizes[dim];
    let value = if filled > sizes[dim] { build.emit1(Pad { widths, value: 0 }, &[value])? } else { value };
    let place = if outer { dim } else { dim + 1 };
    let mut merged = build.ty(value).shape().to_vec();
    let mut wider = merged.clone();
    wider.insert(place, 1);
    let value = reshape::reshape(build, value, &wider)?;
    wider[place] = times;
    let value = broadcast::broadcast(build, value, &wider)?;
    merged[dim] = filled * times;
    let value = reshape::reshape(build, value, &merged)?;
    slice_dim(build, value, dim, SliceRange::between(0, len))
}

/// Maximum number of counts: each becomes a statement.
const MAX_COUNTS: usize = 256;

/// Repeats each element of a dimension by its count; a single count applies to all.
fn repeated(
    build: &mut CallBuilder,
    value: Value,
    dim: usize,
    times: &[usize],
    args: &Args<'_>,
) -> Result<Value, Diagnostic> {
    let sizes = build.ty(value).shape().to_vec();
    if let [times] = *times {
        return copies(build, value, dim, times, false);
    }
    if times.len() != sizes[dim] {
        let message = requires(
            "`repeat`",
            "one count per element",
            format_args!("{} counts for a dimension of size {}", times.len(), sizes[dim]),
        );
        return Err(Diagnostic::error(Code::E0205, args.span, message).help("pass one count, or one for each element"));
    }
    if times.len() > MAX_COUNTS {
        let message = format!("`repeat` with more than {MAX_COUNTS} counts is not supported yet");
        return Err(Diagnostic::error(Code::E0901, args.span, message));
    }
    let mut parts = Vec::new();
    for (at, &times) in times.iter().enumerate() {
        let part = slice_dim(build, value, dim, SliceRange::between(at, at + 1))?;
        let mut wider = sizes.clone();
        wider[dim] = times;
        parts.push(broadcast::broadcast(build, part, &wider)?);
    }
    if parts.is_empty() { Ok(value) } else { concatenate(build, &parts, dim) }
}

impl Call for Repeat {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The array repeated along each dimension.
        tile(x: Array, reps: Ints), Any, Planes(x), "(x: f32[4, 6]) { tile(x, (1, 2)) }";
        /// Each element repeated; without an axis, in the flattened array.
        repeat(x: Array, repeats: Ints, axis: Int = None), Any, Planes(x), "(x: f32[4, 6]) { repeat(x, 2, axis=1) }";
    };

    fn call(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let mut value = args.array(build, "x")?;
        let given = args.ints(if name == "tile" { "reps" } else { "repeats" })?;
        let mut times = broadcast::sizes(&given, args)?;
        let mut sizes = build.ty(value).shape().to_vec();
        if name == "repeat" {
            let dim = match args.optional_int("axis")? {
                Some(axis) => shape::axis(axis, sizes.len(), args.span)?,
                None => {
                    value = reshape::reshape(build, value, &[sizes.iter().product()])?;
                    0
                }
            };
            return Ok(Term::Array(repeated(build, value, dim, &times, args)?));
        }
        let rank = sizes.len().max(times.len());
        sizes.splice(0..0, vec![1; rank - sizes.len()]);
        times.splice(0..0, vec![1; rank - times.len()]);
        value = reshape::reshape(build, value, &sizes)?;
        let explicit = build.mesh().of_kind(AxisKind::Explicit);
        for (dim, &times) in times.iter().enumerate().filter(|(_, times)| **times != 1) {
            let is_split = |axis: &u8| explicit.contains(usize::from(*axis));
            let own = &build.ty(value).sharding.dims[dim];
            value = match times {
                // Concatenated copies keep the axes of the dimension.
                2..=MAX_COUNTS if own.axes.iter().any(is_split) => concatenate(build, &vec![value; times], dim)?,
                _ => copies(build, value, dim, times, true)?,
            };
        }
        Ok(Term::Array(value))
    }
}
