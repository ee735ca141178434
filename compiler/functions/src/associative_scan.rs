//! `associative_scan(f, elems)`: each element combines the elements up to and including it, by any associative function of the program.
//!
//! The scanned dimension is divided into as many chunks as it probably has blocks, each of them on one device. Each chunk is scanned
//! separately. The totals of all chunks are gathered and scanned on every device. Then each chunk is combined with the total of the
//! preceding ones (Blelloch, "Prefix sums and their applications", 1990). So a device receives the totals of the other chunks, and no
//! element.
//!
//! Within a chunk, neighbours are combined pairwise, and the pairs are scanned, which gives every second result. Each of the others
//! combines one of these with one more element. This applies the function to all pairs of a level at once, and to fewer than two pairs for
//! each element in all, as `jax.lax.associative_scan` does.
//!
//! ```text
//! x                 a     b     c     d     e
//! pairs                   ab          cd
//! their scan              ab          abcd
//! result            a     ab    abc   abcd  abcde
//! ```
//!
//! Arrays are kept with a dimension of chunks before the scanned one. The two are merged for the function, because it may count dimensions.
//! A reverse scan counts elements and chunks from the end, and moves none.

use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::must_return;
use spmdc_grammar::span::Span;
use spmdc_ir::call::arg::Arg;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::expand::{Expand, Expanded, Expander};
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::call::trees;
use spmdc_ir::program::Value;
use spmdc_ir::shape;
use spmdc_layout::mesh::AxisKind;
use spmdc_layout::sharding::DimSharding;
use spmdc_ops::broadcast::broadcast;
use spmdc_ops::concatenate::concatenate;
use spmdc_ops::reshape::reshape;
use spmdc_ops::reshard::Reshard;
use spmdc_ops::slice::{SliceRange, slice_dim};

/// Maximum number of values whose layouts are looked at, to find the annotation that decides the number of chunks.
const MAX_STEPS: usize = 100;

/// The arrays of a tree, in the order of its leaves.
type Leaves = Vec<Value>;

/// The common data of all parts of one scan.
struct ScanCall<'t> {
    function: Arg,
    /// A tree of the operand's form.
    form: &'t Term,
    /// The scanned dimension of the operand. The arrays inside have the chunks here, and their elements in the next dimension.
    axis: usize,
    reverse: bool,
    span: Span,
    /// The source position of the operand.
    place: Span,
}

impl ScanCall<'_> {
    /// `len` indices from `first` on, `step` apart, counted in the order of the scan, of a dimension of `size`.
    fn range(&self, size: usize, first: usize, step: usize, len: usize) -> SliceRange {
        debug_assert!(len > 0 && first + step * (len - 1) < size, "a range of a scan lies within the dimension");
        let start = if self.reverse { size - 1 - first - step * (len - 1) } else { first };
        SliceRange { start, step: if len == 1 { 1 } else { step as i64 }, len }
    }

    /// Two neighbours in the order of the scan.
    fn in_place(&self, before: Value, after: Value) -> [Value; 2] {
        if self.reverse { [after, before] } else { [before, after] }
    }
}

/// The function of the language.
pub struct AssociativeScan;

impl Expand for AssociativeScan {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// For each element, the elements up to and including it, combined by an associative function of arrays.
        associative_scan(f: Of("function"), elems: Of("array, tuple or struct"), reverse: Bool = false, axis: Int = 0), NumbersAndBools, Own,
            "(x: f32[4, 6]) { associative_scan(|a, b| a * b, x, axis=1) }";
    };

    fn expand(_: &str, args: &mut Args<'_>, checker: &mut dyn Expander) -> Expanded<Term> {
        scan(args, checker)
    }
}

fn scan(args: &mut Args<'_>, checker: &mut dyn Expander) -> Expanded<Term> {
    let span = args.span;
    let (function, elems) = (args.required("f")?, args.required("elems")?);
    let reverse = args.optional_bool("reverse")?.unwrap_or(false);
    let axis = args.optional_int("axis")?.unwrap_or(0);
    let mut found = Vec::new();
    trees::leaves(&elems.term, "", &mut found);
    let mut operands = Vec::new();
    for (_, leaf) in found {
        operands.push(checker.build_mut().materialize(leaf, None, elems.span)?);
    }
    let Some(&first) = operands.first() else {
        let message = "`associative_scan` requires at least one array";
        return Err(Some(Diagnostic::error(Code::E0201, elems.span, message)));
    };
    let mut axes = Vec::new();
    for &operand in &operands {
        axes.push(shape::axes(&[axis], checker.build().ty(operand).rank(), elems.span)?[0]);
    }
    let size = checker.build().ty(first).shape()[axes[0]];
    for (&operand, &axis) in operands.iter().zip(&axes) {
        if axis != axes[0] || checker.build().ty(operand).shape()[axis] != size {
            let [one, other] = [first, operand].map(|value| checker.display(&Term::Array(value)));
            let message = format!(
                "`associative_scan` cannot run along dimension {} of {one} and dimension {axis} of {other}",
                axes[0]
            );
            let help = "the scanned dimension must have the same position and size in all arrays of the tree";
            return Err(Some(Diagnostic::error(Code::E0205, elems.span, message).help(help)));
        }
    }
    let form = elems.term;
    let scan = ScanCall { function, form: &form, axis: axes[0], reverse, span, place: elems.span };
    let results = if size < 2 { operands } else { scan_chunks(checker, &scan, operands, size)? };
    Ok(trees::rebuild(&form, &mut results.into_iter().map(Term::Array)))
}

/// The number of blocks that this dimension of a value probably has: as annotated, there or where the value comes from. Without
/// annotation as many as all axes that may split it make, which is a multiple of every possible number.
fn expected_blocks(checker: &dyn Expander, value: Value, dim: usize) -> usize {
    let ty = checker.build().ty(value);
    let mut axes = annotated_axes(checker, value, dim, &mut 0);
    if axes.is_empty() && ty.sharding.dims[dim].open {
        let others = ty.sharding.dims.iter().flat_map(|dim| &dim.axes).map(|&axis| usize::from(axis)).collect();
        let possible = checker.build().mesh().of_kind(AxisKind::Auto).minus(checker.build().manual()).minus(others);
        axes = possible.iter().map(|axis| axis as u8).collect();
    }
    checker.build().mesh().size_of(&axes)
}

/// The axes in the layout of this dimension, or of the operands' dimensions that its elements come from.
fn annotated_axes(checker: &dyn Expander, value: Value, dim: usize, steps: &mut usize) -> Vec<u8> {
    let layout = &checker.build().ty(value).sharding.dims[dim];
    *steps += 1;
    if !layout.axes.is_empty() || !layout.open || *steps > MAX_STEPS {
        return layout.axes.clone();
    }
    let Some(stmt) = checker.made_by(value) else { return Vec::new() };
    let (Some(op), Some(at)) = (stmt.op(), stmt.results.iter().position(|&result| result == value)) else {
        return Vec::new();
    };
    let rule = checker.build().func().factors(op, stmt);
    // The major factor, which is the first that is split, also if dimensions are merged or cut.
    let Some(wanted) = rule.results[at][dim].first() else { return Vec::new() };
    for (&arg, dims) in stmt.args.iter().zip(&rule.operands) {
        for (from, _) in dims.iter().enumerate().filter(|(_, factors)| factors.first() == Some(wanted)) {
            let axes = annotated_axes(checker, arg, from, steps);
            if !axes.is_empty() {
                return axes;
            }
        }
    }
    Vec::new()
}

/// The scan of arrays with two elements or more.
fn scan_chunks(checker: &mut dyn Expander, scan: &ScanCall<'_>, operands: Leaves, size: usize) -> Expanded<Leaves> {
    let axis = scan.axis;
    let chunks = operands.iter().map(|&operand| expected_blocks(checker, operand, axis)).max().unwrap_or(1).max(1);
    let len = size.div_ceil(chunks);
    // The padding follows all elements, so that no result depends on it.
    let missing = chunks * len - size;
    let mut own = Vec::new();
    for &operand in &operands {
        let whole = extended(checker, scan, operand, missing)?;
        let mut shape = checker.build().ty(whole).shape().to_vec();
        shape.splice(axis..=axis, [chunks, len]);
        own.push(reshape(checker.build_mut(), whole, &shape)?);
    }
    let mut results = scan_level(checker, scan, own)?;
    if chunks > 1 {
        let before = totals_before(checker, scan, &results, chunks, len)?;
        let combined = combine(checker, scan, &before, &results)?;
        // Nothing comes before the first chunk.
        let first = if scan.reverse { chunks - 1 } else { 0 };
        let is_first = Term::List((0..chunks).map(|chunk| Term::Bool(chunk == first)).collect());
        let is_first = checker.build_mut().materialize(&is_first, None, scan.span)?;
        for (result, combined) in results.iter_mut().zip(combined) {
            let rank = checker.build().ty(combined).rank();
            let mut shape = vec![1; rank];
            shape[axis] = chunks;
            let mask = reshape(checker.build_mut(), is_first, &shape)?;
            let mask = laid_out_like(checker, scan, mask, combined)?;
            let terms = [mask, *result, combined].map(Term::Array);
            *result = shipped_array(checker, "where", terms.to_vec(), scan)?;
        }
    }
    let mut whole = Vec::new();
    for (result, operand) in results.into_iter().zip(operands) {
        let mut shape = checker.build().ty(result).shape().to_vec();
        shape.splice(axis..=axis + 1, [chunks * len]);
        let merged = reshape(checker.build_mut(), result, &shape)?;
        let range = scan.range(chunks * len, 0, 1, size);
        let result = slice_dim(checker.build_mut(), merged, axis, range)?;
        // A slice of one element is on no axis, and a single chunk may be put together from such.
        whole.push(laid_out_like(checker, scan, result, operand)?);
    }
    Ok(whole)
}

/// The operand with copies of its last element after it, in the order of the scan.
fn extended(checker: &mut dyn Expander, scan: &ScanCall<'_>, operand: Value, missing: usize) -> Expanded<Value> {
    if missing == 0 {
        return Ok(operand);
    }
    let width = |before: usize, after: usize| Term::Tuple(vec![Term::Int(before as i128), Term::Int(after as i128)]);
    let mut widths = vec![width(0, 0); checker.build().ty(operand).rank()];
    widths[scan.axis] = if scan.reverse { width(missing, 0) } else { width(0, missing) };
    let args = [Term::Array(operand), Term::Tuple(widths), Term::Str("edge".to_string())];
    shipped_array(checker, "pad", args.to_vec(), scan)
}

/// Scans each row along the dimension after the dimension of chunks.
fn scan_level(checker: &mut dyn Expander, scan: &ScanCall<'_>, rows: Leaves) -> Expanded<Leaves> {
    let dim = scan.axis + 1;
    let len = checker.build().ty(rows[0]).shape()[dim];
    if len < 2 {
        return Ok(rows);
    }
    let (pairs, singles) = (len / 2, (len - 1) / 2);
    let (first, second) = (part(checker, scan, &rows, 0, 2, pairs)?, part(checker, scan, &rows, 1, 2, pairs)?);
    let pairs_of = combine(checker, scan, &first, &second)?;
    let odd = scan_level(checker, scan, pairs_of)?;
    let mut even = part(checker, scan, &rows, 0, 1, 1)?;
    if singles > 0 {
        let (before, own) = (part(checker, scan, &odd, 0, 1, singles)?, part(checker, scan, &rows, 2, 2, singles)?);
        let rest = combine(checker, scan, &before, &own)?;
        even = joined(checker, scan, even, rest, dim)?;
    }
    let mut results = Vec::new();
    for (&even, &odd) in even.iter().zip(&odd) {
        let range = |first, len| scan.range(singles + 1, first, 1, len);
        let paired = slice_dim(checker.build_mut(), even, dim, range(0, pairs))?;
        let mut shape = checker.build().ty(odd).shape().to_vec();
        shape.insert(dim + 1, 1);
        let mut sides = Vec::new();
        for side in scan.in_place(paired, odd) {
            sides.push(reshape(checker.build_mut(), side, &shape)?);
        }
        let woven = concatenate(checker.build_mut(), &sides, dim + 1)?;
        shape.splice(dim..=dim + 1, [2 * pairs]);
        let woven = reshape(checker.build_mut(), woven, &shape)?;
        results.push(match singles + 1 > pairs {
            true => {
                let last = slice_dim(checker.build_mut(), even, dim, range(pairs, 1))?;
                concatenate(checker.build_mut(), &scan.in_place(woven, last), dim)?
            }
            false => woven,
        });
    }
    Ok(results)
}

/// For each chunk the total of those before it, as long as the chunk; for the first one any value.
fn totals_before(
    checker: &mut dyn Expander,
    scan: &ScanCall<'_>,
    chunks: &Leaves,
    count: usize,
    len: usize,
) -> Expanded<Leaves> {
    let axis = scan.axis;
    let mut totals = Vec::new();
    for chunk in part(checker, scan, chunks, len - 1, 1, 1)? {
        let everywhere = gathered(checker, chunk, axis)?;
        let mut shape = checker.build().ty(everywhere).shape().to_vec();
        shape.swap(axis, axis + 1);
        totals.push(reshape(checker.build_mut(), everywhere, &shape)?);
    }
    let first = part(checker, scan, &totals, 0, 1, 1)?;
    let others = part(checker, scan, &totals, 0, 1, count - 1)?;
    let scanned = scan_level(checker, scan, others)?;
    let before = joined(checker, scan, first, scanned, axis + 1)?;
    let mut results = Vec::new();
    for (before, &chunk) in before.into_iter().zip(chunks) {
        let before = gathered(checker, before, axis)?;
        let mut shape = checker.build().ty(before).shape().to_vec();
        shape.swap(axis, axis + 1);
        let before = reshape(checker.build_mut(), before, &shape)?;
        let before = laid_out_like(checker, scan, before, chunk)?;
        shape[axis + 1] = len;
        results.push(broadcast(checker.build_mut(), before, &shape)?);
    }
    debug_assert!(results.len() == chunks.len(), "each array has its totals");
    Ok(results)
}

/// The value, whole along the chunks and their elements on every device.
fn gathered(checker: &mut dyn Expander, value: Value, axis: usize) -> Expanded<Value> {
    let mut to = checker.build().explicit_part(checker.build().ty(value));
    to.dims[axis..=axis + 1].fill(DimSharding::default());
    Ok(checker.build_mut().emit1(Reshard::pin(to), &[value])?)
}

/// The value with the explicit axes of `like` along the scanned dimension, or the dimension of its chunks.
fn laid_out_like(checker: &mut dyn Expander, scan: &ScanCall<'_>, value: Value, like: Value) -> Expanded<Value> {
    let mut to = checker.build().explicit_part(checker.build().ty(value));
    let wanted = checker.build().explicit_part(checker.build().ty(like)).dims[scan.axis].clone();
    if to.dims[scan.axis].axes == wanted.axes {
        return Ok(value);
    }
    to.dims[scan.axis] = wanted;
    Ok(checker.build_mut().emit1(Reshard::request(to), &[value])?)
}

/// Elements of every array along the dimension after the dimension of chunks, counted in the order of the scan.
fn part(
    checker: &mut dyn Expander,
    scan: &ScanCall<'_>,
    rows: &Leaves,
    first: usize,
    step: usize,
    len: usize,
) -> Expanded<Leaves> {
    let dim = scan.axis + 1;
    let mut parts = Vec::new();
    for &row in rows {
        let range = scan.range(checker.build().ty(row).shape()[dim], first, step, len);
        parts.push(slice_dim(checker.build_mut(), row, dim, range)?);
    }
    Ok(parts)
}

fn joined(
    checker: &mut dyn Expander,
    scan: &ScanCall<'_>,
    before: Leaves,
    after: Leaves,
    dim: usize,
) -> Expanded<Leaves> {
    let mut joined = Vec::new();
    for (before, after) in before.into_iter().zip(after) {
        joined.push(concatenate(checker.build_mut(), &scan.in_place(before, after), dim)?);
    }
    Ok(joined)
}

/// The function's results for all elements of two trees, which must be arrays like its operands.
fn combine(checker: &mut dyn Expander, scan: &ScanCall<'_>, before: &Leaves, after: &Leaves) -> Expanded<Leaves> {
    let (axis, mut trees_of) = (scan.axis, Vec::new());
    let mut merged = Vec::new();
    for side in [before, after] {
        merged.clear();
        for &value in side {
            let mut shape = checker.build().ty(value).shape().to_vec();
            let both = shape[axis] * shape[axis + 1];
            shape.splice(axis..=axis + 1, [both]);
            merged.push(reshape(checker.build_mut(), value, &shape)?);
        }
        trees_of.push(trees::rebuild(scan.form, &mut merged.iter().copied().map(Term::Array)));
    }
    let given = trees_of.iter().map(|term| Arg { name: None, term: term.clone(), span: scan.place }).collect();
    let term = checker.call(&scan.function, given, scan.span);
    checker.build_mut().set_span(scan.span);
    if term.is_poisoned() {
        return Err(None);
    }
    let expected = &trees_of[1];
    let mut results = Vec::new();
    let mut leaves = Vec::new();
    trees::leaves(&term, "", &mut leaves);
    if trees::same_form(expected, &term) {
        trees::link_fields(expected, &term, &mut checker.build_mut().fields);
        for ((_, leaf), (&like, &inner)) in leaves.into_iter().zip(merged.iter().zip(after)) {
            let Term::Array(value) = leaf else { break };
            if checker.build().ty(*value).array != checker.build().ty(like).array {
                break;
            }
            let shape = checker.build().ty(inner).shape().to_vec();
            results.push(reshape(checker.build_mut(), *value, &shape)?);
        }
    }
    if results.len() < merged.len() {
        let (taken, given) = (checker.display(expected), checker.display(&term));
        let message =
            must_return("the function of `associative_scan`", format_args!("`{taken}`"), format_args!("`{given}`"));
        let error = Diagnostic::error(Code::E0203, scan.function.span, message);
        return Err(Some(error.help("it combines slices of the operands, and must return arrays of the same types")));
    }
    Ok(results)
}

/// The array that a shipped function gives.
fn shipped_array(checker: &mut dyn Expander, name: &str, args: Vec<Term>, scan: &ScanCall<'_>) -> Expanded<Value> {
    let args = args.into_iter().map(|term| Arg { name: None, term, span: scan.span }).collect();
    let Term::Array(value) = checker.call_shipped(name, args, scan.span) else { return Err(None) };
    Ok(value)
}
