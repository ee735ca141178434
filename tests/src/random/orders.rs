//! Random calls of functions about the order of elements.

use super::call::Call;
use super::{Draw, all, numbers};
use spmdc_abi::DType;

/// A random call of a function that sorts or selects.
pub(super) fn orders(name: &str, draw: &mut Draw) -> Option<Call> {
    let rank = draw.rank(1, 3);
    let shape = draw.shape(rank);
    let axis = draw.axis(rank);
    let size = shape[axis.rem_euclid(rank as i64) as usize];
    let some: Vec<usize> = shape.iter().map(|&size| size.max(1)).collect();
    Some(match name {
        "sort" | "argsort" => {
            let axis = match draw.below(5) {
                0 => String::new(),
                1 => ", axis=None".to_string(),
                _ => format!(", axis={axis}"),
            };
            let descending = draw.pick(&["", "", ", descending=true"]);
            let of = draw.pick(&["a", "a", "trunc(a)"]);
            Call::new(&[(draw.pick(&all()), &shape)], format!("{name}({of}{axis}{descending})"))
        }
        "lexsort" => {
            let types = [draw.pick(&numbers()), draw.pick(&all())];
            Call::new(&[(types[0], &shape), (types[1], &shape)], format!("lexsort((a, i8(b)), axis={axis})"))
        }
        "top_k" => {
            let k = draw.below(size + 1);
            let mut call = Call::new(&[(draw.pick(&all()), &shape)], draw.pick(&["v", "i"]));
            // Zeros of both signs among others.
            let of = draw.pick(&["a", "trunc(a)"]);
            call.before = format!("let (v, i) = top_k({of}, {k}, axis={axis});");
            call
        }
        "quantile" | "percentile" => {
            let scale = if name == "percentile" { 100.0 } else { 1.0 };
            let [first, second] = [draw.below(9), draw.below(9)].map(|eighths| eighths as f64 / 8.0 * scale);
            let q = if draw.chance(50) { first.to_string() } else { format!("[{first}, {second}]") };
            let method = draw.pick(&["linear", "lower", "higher", "nearest", "midpoint"]);
            let axis = if draw.chance(70) { format!(", axis={axis}") } else { String::new() };
            let dtype = draw.pick(&numbers());
            if draw.chance(30) {
                // Fractions that are known when the program runs.
                let count = draw.below(4);
                let q = if draw.chance(30) { "f32(b[0]) / 8" } else { "f32(b[1:]) / 8" };
                let params: &[(DType, &[usize])] = &[(dtype, &some), (DType::U8, &[count + 1])];
                return Some(Call::new(params, format!("{name}(a, {q}{axis}, method=\"{method}\")")));
            }
            Call::new(&[(dtype, &some)], format!("{name}(a, {q}{axis}, method=\"{method}\")"))
        }
        "median" => {
            let axis = draw.pick(&["", ", axis=0", ", axis=-1, keepdims=true"]);
            Call::new(&[(draw.pick(&numbers()), &some)], format!("median(a{axis})"))
        }
        "nonzero" | "unique" => {
            let size = draw.below(12);
            let fill = draw.pick(&["", ", fill_value=7"]);
            let call = format!("{name}(i16(a), size={size}{fill})");
            let expr = if name == "nonzero" { format!("stack({call})") } else { call };
            Call::new(&[(draw.pick(&numbers()), &some)], expr)
        }
        _ => return None,
    })
}
