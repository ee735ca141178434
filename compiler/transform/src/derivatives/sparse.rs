//! Sums of cotangents, of which many have other elements than zero at some places only.

use spmdc_abi::ReduceOp;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::program::Value;
use spmdc_ir::rules::{Elements, Placement};
use spmdc_ops::arithmetic::Arithmetic;
use spmdc_ops::pad::Pad;
use spmdc_ops::region::Places;
use spmdc_ops::scatter::{Onto, Scatter};
use spmdc_ops::slice::SliceRange;
use spmdc_ops::update::Update;

/// In a loop, a part of an array is added in place if the array has at least this multiple of its elements.
const FEW: usize = 4;

/// In a loop, at most this number of elements at indices from an array are added in place.
const FEW_INDICES: usize = 16;

/// A part of a cotangent that has other elements than zero at some places only.
struct AddedPlaces {
    op: Adding,
    /// The array to which it adds; None for zeros.
    onto: Option<Value>,
    /// The other operands: the addend, and the positions that are known at run time.
    args: Vec<Value>,
}

/// The op that adds at places of its first operand.
enum Adding {
    Region(Update),
    Elements(Scatter),
}

/// `sum + part`. A part that is an update of zeros is added in place; in a loop also one at static positions, or at a few indices from
/// arrays.
pub(super) fn accumulated(
    build: &mut CallBuilder,
    sum: Value,
    part: Value,
    in_loop: bool,
) -> Result<Value, Diagnostic> {
    let Some(AddedPlaces { op, onto, args }) = added_places(build, part, in_loop) else {
        return Arithmetic(build).add(sum, part);
    };
    let sum = match onto {
        None => sum,
        Some(onto) => accumulated(build, sum, onto, in_loop)?,
    };
    let args: Vec<Value> = std::iter::once(sum).chain(args).collect();
    match op {
        Adding::Region(op) => build.emit1(Update { adds: true, ..op }, &args),
        Adding::Elements(op) => build.emit1(Scatter { onto: Onto::Operand, ..op }, &args),
    }
}

/// Whether a value of the innermost block has other elements than zero at the places of updates only.
pub(super) fn is_sparse(build: &mut CallBuilder, value: Value, in_loop: bool) -> bool {
    match added_places(build, value, in_loop) {
        None => false,
        Some(AddedPlaces { onto: None, .. }) => true,
        Some(AddedPlaces { onto: Some(onto), .. }) => is_sparse(build, onto, in_loop),
    }
}

/// How a value of the innermost block was made by adding to some places of an array, or by replacing zeros.
fn added_places(build: &mut CallBuilder, value: Value, in_loop: bool) -> Option<AddedPlaces> {
    let stmt = build.innermost().stmts.iter().rev().find(|stmt| stmt.results.contains(&value))?;
    let args = stmt.args.clone();
    if let Some(op) = stmt.as_op::<Update>() {
        let op = op.clone();
        let onto = (!is_zero(build, args[0])).then_some(args[0]);
        return (op.adds || onto.is_none()).then(|| AddedPlaces {
            op: Adding::Region(op),
            onto,
            args: args[1..].to_vec(),
        });
    }
    if let Some(op) = stmt.as_op::<Scatter>().filter(|_| in_loop) {
        let op = op.clone();
        return added_elements(build, op, value, &args);
    }
    // The cotangent of a few elements: outside of loops, and of larger parts, sums of padded values are computed in one go.
    let Some(Pad { widths, value: 0 }) = stmt.as_op::<Pad>().filter(|_| in_loop) else { return None };
    let widths = widths.clone();
    let part = build.ty(args[0]).shape();
    let is_few = FEW * part.iter().product::<usize>() <= build.ty(value).array.len();
    let range = |(&(before, _), &len): (&(usize, usize), &usize)| SliceRange::between(before, before + len);
    let at = widths.iter().zip(part).map(range).map(Places::Range).collect();
    is_few.then_some(AddedPlaces { op: Adding::Region(Update { at, adds: true }), onto: None, args })
}

/// As [`added_places`], for sums at indices from arrays. Sums at many indices are made by themselves, so that each device adds its own.
fn added_elements(build: &CallBuilder, op: Scatter, value: Value, args: &[Value]) -> Option<AddedPlaces> {
    if op.combine != Some(ReduceOp::Sum) || op.out.is_some() {
        return None;
    }
    if op.onto == Onto::Operand {
        return Some(AddedPlaces { op: Adding::Elements(op), onto: Some(args[0]), args: args[1..].to_vec() });
    }
    let len = |value: Value| build.ty(value).array.len();
    let places = args[1..].iter().map(|&places| len(places)).max().unwrap_or(0);
    let is_few = places <= FEW_INDICES && FEW * len(args[0]) <= len(value);
    is_few.then(|| AddedPlaces { op: Adding::Elements(op), onto: None, args: args.to_vec() })
}

/// Whether a value of the innermost block is made of zeros.
fn is_zero(build: &mut CallBuilder, value: Value) -> bool {
    let Some(stmt) = build.innermost().stmts.iter().rev().find(|stmt| stmt.results.contains(&value)) else {
        return false;
    };
    let Some(properties) = stmt.op().map(|op| op.rules().properties()) else { return false };
    if let Some(literal) = properties.elements.literal() {
        return literal.bits.iter().all(|&bits| bits == 0);
    }
    let is_same =
        matches!(properties.elements, Elements::Repeated) || matches!(properties.placement, Placement::Requested(_));
    let of = stmt.args.first().copied();
    is_same && of.is_some_and(|of| is_zero(build, of))
}
