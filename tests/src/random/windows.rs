//! Random windows: window reductions and pools.

use super::{Array, Draw, floats, numbers};
use spmdc_abi::DType;

/// Parameters `a`, `b`, ... and a call of a function of windows; None if the name is of another one.
pub fn call(name: &str, draw: &mut Draw) -> Option<(Vec<Array>, String)> {
    Some(match name {
        "reduce_window" => reduce_window(draw),
        "max_pool" => pool(draw, name, &numbers()),
        "avg_pool" => pool(draw, name, &floats()),
        _ => return None,
    })
}

fn with(params: &[(DType, &[usize])], expr: String) -> (Vec<Array>, String) {
    (params.iter().map(|&(dtype, shape)| Array::new(dtype, shape)).collect(), expr)
}

/// One number for each dimension, as a tuple.
fn sizes(numbers: &[usize]) -> String {
    let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
    format!("({},)", numbers.join(", "))
}

/// One number for each dimension, mostly one.
fn counts(draw: &mut Draw, rank: usize, most: usize) -> Vec<usize> {
    (0..rank).map(|_| if draw.chance(50) { 1 } else { 1 + draw.below(most) }).collect()
}

/// `, padding=...`: a name, or pairs; mostly of padding, sometimes of elements that are left out.
fn padding(draw: &mut Draw, rank: usize) -> String {
    let text = draw.pick(&["", "\"SAME\"", "\"same_lower\"", "\"VALID\"", "2", "pairs", "pairs", "pairs"]);
    let pair = |draw: &mut Draw| {
        let low = if draw.chance(15) { -1 } else { 0 };
        format!("({}, {})", draw.between(low, 3), draw.between(low, 3))
    };
    match text {
        "" => String::new(),
        "pairs" => {
            let pairs: Vec<String> = (0..rank).map(|_| pair(draw)).collect();
            format!(", padding=({},)", pairs.join(", "))
        }
        text => format!(", padding={text}"),
    }
}

fn reduce_window(draw: &mut Draw) -> (Vec<Array>, String) {
    let rank = draw.rank(1, 3);
    let shape: Vec<usize> = (0..rank).map(|_| 2 + draw.below(11)).collect();
    let computation = draw.pick(&["add", "mul", "max", "min", "and", "or"]);
    let dtype = if matches!(computation, "and" | "or") { DType::Bool } else { draw.pick(&numbers()) };
    let init = match (dtype, draw.pick(&["None", "identity", "other"])) {
        (_, "None") => "None",
        (DType::Bool, _) => draw.pick(&["true", "false"]),
        (_, "identity") if computation == "add" => "0",
        (_, _) => draw.pick(&["0", "1"]),
    };
    let windows = counts(draw, rank, 4);
    let mut expr = format!("reduce_window(a, {init}, \"{computation}\", {}", sizes(&windows));
    if draw.chance(50) {
        expr += &format!(", window_strides={}", sizes(&counts(draw, rank, 3)));
    }
    expr += &padding(draw, rank);
    if draw.chance(25) {
        expr += &format!(", base_dilation={}", sizes(&counts(draw, rank, 3)));
    }
    if draw.chance(35) {
        expr += &format!(", window_dilation={}", sizes(&counts(draw, rank, 3)));
    }
    with(&[(dtype, &shape)], expr + ")")
}

fn pool(draw: &mut Draw, name: &str, dtypes: &[DType]) -> (Vec<Array>, String) {
    let (dtype, rank) = (draw.pick(dtypes), draw.rank(1, 2));
    let mut shape = vec![1 + draw.below(3)];
    shape.extend((0..rank).map(|_| 2 + draw.below(11)));
    shape.push(1 + draw.below(5));
    let mut expr = format!("{name}(a, {}", sizes(&(0..rank).map(|_| 1 + draw.below(3)).collect::<Vec<_>>()));
    if draw.chance(60) {
        expr += &format!(", strides={}", sizes(&counts(draw, rank, 3)));
    }
    expr += draw.pick(&["", ", padding=\"SAME\"", ", padding=1"]);
    if name == "avg_pool" && draw.chance(50) {
        // Windows of padding alone have no mean: there is none where padding is no wider than a window.
        expr = expr.replace(", padding=1", "") + ", count_include_pad=false";
    }
    with(&[(dtype, &shape)], expr + ")")
}
