//! Random windows: window reductions, pools and convolutions.

use super::{Array, Draw, floats, ints, numbers};
use spmdc_abi::DType;

/// Parameters `a`, `b`, ... and a call of a function of windows; None if the name is of another one.
pub fn call(name: &str, draw: &mut Draw) -> Option<(Vec<Array>, String)> {
    Some(match name {
        "reduce_window" => reduce_window(draw),
        "max_pool" => pool(draw, name, &numbers()),
        "avg_pool" => pool(draw, name, &floats()),
        "conv" => conv(draw),
        "conv_transpose" => conv_transpose(draw),
        "convolve" => {
            let (dtype, n, m) = (draw.pick(&numbers()), 1 + draw.below(12), 1 + draw.below(6));
            let mode = draw.pick(&["", ", mode=\"full\"", ", mode=\"same\"", ", mode=\"valid\""]);
            with(&[(dtype, &[n]), (dtype, &[m])], format!("convolve(a, b{mode})"))
        }
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
    let computation = draw.pick(&["add", "mul", "max", "min", "and", "or", "sum of", "larger of"]);
    let dtype = match computation {
        "and" | "or" => DType::Bool,
        // Sums of floats depend on the order.
        "sum of" => draw.pick(&ints()),
        _ => draw.pick(&numbers()),
    };
    let init = match (dtype, draw.pick(&["None", "identity", "other"])) {
        (_, "None") => "None",
        (DType::Bool, _) => draw.pick(&["true", "false"]),
        (_, "identity") if computation == "add" => "0",
        (_, _) => draw.pick(&["0", "1"]),
    };
    let windows = counts(draw, rank, 4);
    let computation = match computation {
        "sum of" => "|p, q| p + q".to_string(),
        "larger of" => "|p, q| where(p > q, p, q)".to_string(),
        name => format!("\"{name}\""),
    };
    let mut expr = format!("reduce_window(a, {init}, {computation}, {}", sizes(&windows));
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

/// Images and a kernel that fits: batch, space, channels, and space, inputs, outputs.
fn images(draw: &mut Draw, groups: usize) -> (DType, Vec<usize>, Vec<usize>) {
    let (dtype, rank) = (draw.pick(&numbers()), draw.rank(1, 3));
    let most = if rank == 3 { 4 } else { 9 };
    let mut x = vec![1 + draw.below(3)];
    x.extend((0..rank).map(|_| 2 + draw.below(most)));
    let inputs = 1 + draw.below(3);
    x.push(inputs * groups);
    let mut w: Vec<usize> = (0..rank).map(|_| 1 + draw.below(3)).collect();
    w.extend([inputs, groups * (1 + draw.below(3))]);
    (dtype, x, w)
}

fn conv(draw: &mut Draw) -> (Vec<Array>, String) {
    let groups = draw.pick(&[1, 1, 2, 3]);
    let (dtype, x, w) = images(draw, groups);
    let rank = x.len() - 2;
    let mut expr = "conv(a, b".to_string();
    if draw.chance(50) {
        expr += &format!(", stride={}", sizes(&counts(draw, rank, 3)));
    }
    let padding = padding(draw, rank);
    if padding.contains("((") && draw.chance(40) {
        expr += &format!(", input_dilation={}", sizes(&counts(draw, rank, 3)));
    }
    expr += &padding;
    if draw.chance(35) {
        expr += &format!(", dilation={}", sizes(&counts(draw, rank, 3)));
    }
    if groups > 1 {
        expr += &format!(", groups={groups}");
    }
    with(&[(dtype, &x), (dtype, &w)], expr + ")")
}

fn conv_transpose(draw: &mut Draw) -> (Vec<Array>, String) {
    let (dtype, x, mut w) = images(draw, 1);
    let rank = x.len() - 2;
    let mut expr = "conv_transpose(a, b".to_string();
    if draw.chance(70) {
        expr += &format!(", stride={}", sizes(&counts(draw, rank, 3)));
    }
    expr += draw.pick(&["", ", padding=\"SAME\"", ", padding=\"VALID\"", ", padding=2"]);
    if draw.chance(25) {
        expr += &format!(", dilation={}", sizes(&counts(draw, rank, 2)));
    }
    if draw.chance(30) {
        w.swap(rank, rank + 1);
        expr += ", transpose_kernel=true";
    }
    with(&[(dtype, &x), (dtype, &w)], expr + ")")
}
