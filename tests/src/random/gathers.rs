//! Random calls of functions that take elements at indices from arrays.

use super::call::Call;
use super::{Draw, all, ints, numbers};
use spmdc_abi::DType;

/// The generated integers go up to six, so that an index is valid in a dimension of this size.
const LARGE: usize = 7;

/// A call of the function; None if nothing is known of the name.
pub fn call(name: &str, draw: &mut Draw) -> Option<Call> {
    let dtype = draw.pick(&all());
    Some(match name {
        "x[array]" => indexed(draw, dtype),
        "x[array] = v" => assigned(draw, dtype, "="),
        "x[array] += v" => {
            // Sums of floats depend on the order.
            let dtype = draw.pick(&[ints(), vec![DType::Bool]].concat());
            let operator = draw.pick(&["+=", "-=", "*=", "//=", "|="]);
            assigned(draw, dtype, if dtype == DType::Bool { "+=" } else { operator })
        }
        "x[mask] = v" => masked(draw, dtype, "="),
        "x[mask] += v" => {
            let dtype = draw.pick(&numbers());
            let operators = if dtype.is_float() { &["+=", "*=", "-="][..] } else { &["+=", "*=", "//=", "%=", "|="] };
            let operator = draw.pick(operators);
            masked(draw, dtype, operator)
        }
        "take" => take(draw, dtype),
        "segment_sum" | "segment_max" | "segment_min" | "bincount" => segments(name, draw),
        "select" => {
            let rank = draw.rank(0, 3);
            let shape = draw.shape(rank);
            let (test, other) = (draw.broadcasts(&shape), draw.broadcasts(&shape));
            Call::new(&[(DType::Bool, &test), (dtype, &shape), (dtype, &other)], "select([a, !a], [b, c], c)")
        }
        "searchsorted" | "digitize" | "interp" => sorted(name, draw),
        "histogram" => {
            let rank = draw.rank(1, 2);
            let shape: Vec<usize> = (0..rank).map(|_| 1 + draw.below(9)).collect();
            let range = draw.pick(&["", ", range=(0, 8)"]);
            let dtype = draw.pick(&[DType::F32, DType::I32, DType::F64]);
            if draw.chance(40) {
                // Whole weights, whose sums do not depend on the order.
                let expr =
                    draw.pick(&["histogram(a, sort(b), weights=round(a * 0 + 3))[0]", "histogram(a, bins=sort(b))[0]"]);
                return Some(Call::new(&[(dtype, &shape), (dtype, &[1 + draw.below(6)])], expr));
            }
            let expr = format!("histogram(a, bins={}{range})[0]", draw.pick(&[1, 4, 8]));
            Call::new(&[(dtype, &shape)], expr)
        }
        "take_along_axis" => take_along_axis(draw, dtype),
        _ => return None,
    })
}

/// Integers, as sums of floats depend on the order.
fn segments(name: &str, draw: &mut Draw) -> Call {
    let rank = draw.rank(1, 3);
    let shape = draw.shape(rank);
    let (dtype, of) = (draw.pick(&[ints(), vec![DType::Bool]].concat()), draw.pick(&ints()));
    let count = draw.below(9);
    if name == "bincount" {
        let weights = draw.pick(&["", ", b"]);
        return Call::new(&[(of, &shape), (dtype, &shape)], format!("bincount(a{weights}, length={count})"));
    }
    let expr = format!("{name}(a, b - 1, num_segments={count})");
    Call::new(&[(dtype, &shape), (of, &shape[..1])], expr)
}

fn sorted(name: &str, draw: &mut Draw) -> Call {
    let rank = draw.rank(0, 2);
    let (points, shape) = (1 + draw.below(17), draw.shape(rank));
    let dtype = draw.pick(&[ints(), vec![DType::F32, DType::F64, DType::Bf16]].concat());
    let expr = match name {
        "searchsorted" => format!("searchsorted(sort(a), b, side=\"{}\")", draw.pick(&["left", "right"])),
        "digitize" => format!("digitize(b, {}(sort(a)){})", draw.pick(&["", "-"]), draw.pick(&["", ", right=true"])),
        _ => {
            draw.pick(&["interp(b, cumsum(a * a + 1), a)", "interp(b, cumsum(ones_like(a)), a, period=32)"]).to_string()
        }
    };
    let dtype = if name == "interp" { draw.pick(&[DType::F32, DType::F64]) } else { dtype };
    Call::new(&[(dtype, &[points]), (dtype, &shape)], expr)
}

/// Arrays of indices that broadcast, mixed with slices, numbers and new dimensions.
fn indexed(draw: &mut Draw, dtype: DType) -> Call {
    let (entries, shape, places, of) = mixture(draw);
    let second = draw.broadcasts(&places);
    Call::new(&[(dtype, &shape), (of, &places), (of, &second)], format!("a[{entries}]"))
}

/// An assignment of a scalar, or of elements at the same indices of another array.
fn assigned(draw: &mut Draw, dtype: DType, operator: &str) -> Call {
    let (entries, shape, places, of) = mixture(draw);
    let entries = entries.replace('c', "b");
    let is_scalar = draw.chance(40);
    let other: &[usize] = if is_scalar { &[] } else { &shape };
    let mut call = Call::new(&[(dtype, &shape), (of, &places), (dtype, other)], "u");
    let value = if is_scalar { "c".to_string() } else { format!("c[{entries}]") };
    // No divisor is zero.
    let value = if operator == "//=" { format!("({value} | 1)") } else { value };
    call.before = format!("let mut u = a; u[{entries}] {operator} {value};");
    call
}

/// An assignment to the elements that a mask of some neighbouring dimensions chooses, of a number or a row.
fn masked(draw: &mut Draw, dtype: DType, operator: &str) -> Call {
    let rank = draw.rank(1, 3);
    let shape = draw.shape(rank);
    let first = draw.below(rank);
    let count = 1 + draw.below(rank - first);
    let mask = shape[first..first + count].to_vec();
    let (mut entries, mut rest) = (Vec::new(), Vec::new());
    for (dim, &size) in shape.iter().enumerate() {
        if dim == first {
            entries.push(draw.pick(&["b", "!b"]));
            rest.push(1);
        } else if !(first..first + count).contains(&dim) {
            let kind = if size > 0 { draw.below(4) } else { 3 };
            entries.push(["0", "-1", "::-1", ":"][kind]);
            if kind > 1 {
                rest.push(size);
            }
        }
    }
    // A number that slices separate from the mask moves the chosen elements to the front, so rows are for slices alone.
    let is_row = entries.iter().all(|entry| entry.contains(':') || entry.contains('b')) && draw.chance(60);
    let value: &[usize] = if is_row { &rest } else { &[] };
    let mut call = Call::new(&[(dtype, &shape), (DType::Bool, &mask), (dtype, value)], "u");
    // No divisor is zero.
    let value = if matches!(operator, "//=" | "%=") { "(c | 1)" } else { "c" };
    call.before = format!("let mut u = a; u[{}] {operator} {value};", entries.join(", "));
    call
}

/// An index with at least one array, the shape of the indexed array, the shape of the index arrays and their type.
fn mixture(draw: &mut Draw) -> (String, Vec<usize>, Vec<usize>, DType) {
    let rank = draw.rank(1, 3);
    let places = draw.rank(1, 2);
    let (places, of) = (draw.shape(places), draw.pick(&ints()));
    let array = draw.below(rank);
    let (mut entries, mut shape) = (Vec::new(), Vec::new());
    for dim in 0..rank {
        if draw.chance(10) {
            entries.push("None".to_string());
        }
        let kind = if dim == array { 0 } else { draw.below(6) };
        shape.push(if kind < 2 { LARGE + draw.below(3) } else { 1 + draw.size() });
        let signed = of.is_signed_integer();
        entries.push(match kind {
            0 | 1 if signed => draw.pick(&["b", "c", "-1 - b", "6 - c"]).to_string(),
            0 | 1 => draw.pick(&["b", "c"]).to_string(),
            2 => draw.pick(&["0", "-1"]).to_string(),
            3 => draw.pick(&["1:", ":-1", "::-1"]).to_string(),
            _ => ":".to_string(),
        });
    }
    (entries.join(", "), shape, places, of)
}

/// Indices along an axis, or into the flattened array.
fn take(draw: &mut Draw, dtype: DType) -> Call {
    let rank = draw.rank(1, 3);
    let mut shape = draw.shape(rank);
    let places = draw.rank(0, 2);
    let places = draw.shape(places);
    let axis = draw.axis(rank);
    let (axis, text) = if draw.chance(80) { (Some(axis), format!(", axis={axis}")) } else { (None, String::new()) };
    let mode = draw.pick(&["raise", "clip", "wrap", "fill"]);
    match axis {
        Some(axis) if mode == "raise" => shape[axis.rem_euclid(rank as i64) as usize] = LARGE,
        None if mode == "raise" => shape = vec![LARGE, 2],
        Some(_) | None => {}
    }
    let dtype = if mode == "fill" && dtype == DType::Key { DType::F32 } else { dtype };
    let fill = if mode == "fill" && draw.chance(50) { ", fill_value=1" } else { "" };
    let params = [(dtype, shape.as_slice()), (draw.pick(&ints()), places.as_slice())];
    Call::new(&params, format!("take(a, b{text}, mode=\"{mode}\"{fill})"))
}

/// Arrays that are equal but for one axis, or broadcast.
fn take_along_axis(draw: &mut Draw, dtype: DType) -> Call {
    let rank = draw.rank(1, 3);
    let mut shape = draw.shape(rank);
    let axis = draw.axis(rank);
    let dim = axis.rem_euclid(rank as i64) as usize;
    shape[dim] = LARGE;
    let mut places = shape.clone();
    for other in (0..rank).filter(|&other| other != dim) {
        match draw.below(6) {
            0 => places[other] = 1,
            1 => shape[other] = 1,
            _ => {}
        }
    }
    places[dim] = draw.size();
    let mode = match draw.below(6) {
        0 => ", mode=\"clip\"",
        1 => ", mode=\"wrap\"",
        2 if dtype != DType::Key => ", mode=\"fill\"",
        _ => "",
    };
    if !mode.is_empty() {
        // Some indices are out of bounds.
        shape[dim] = draw.size().max(1);
    }
    let params = [(dtype, shape.as_slice()), (draw.pick(&ints()), places.as_slice())];
    Call::new(&params, format!("take_along_axis(a, b, axis={axis}{mode})"))
}
