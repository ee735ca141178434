//! Random calls of functions that are composed of others: entropies, choices, covariances, integrals.

use super::call::Call;
use super::{Draw, all, axes, floats, ints, numbers};
use spmdc_abi::DType;

/// Functions whose results may differ by the order of sums.
pub const SUMS: [&str; 6] = ["cov", "corrcoef", "trapezoid", "unwrap", "correlate", "map_coordinates"];

pub(super) fn call(name: &str, draw: &mut Draw) -> Option<Call> {
    elementwise(name, draw).or_else(|| statistics(name, draw))
}

fn elementwise(name: &str, draw: &mut Draw) -> Option<Call> {
    let rank = draw.rank(0, 3);
    let shape = draw.shape(rank);
    let other = draw.broadcasts(&shape);
    Some(match name {
        "xlogy" | "xlog1py" | "rel_entr" | "kl_div" => {
            let dtype = draw.pick(&floats());
            Call::new(&[(dtype, &shape), (dtype, &other)], format!("{name}(a, b)"))
        }
        "entr" | "i0" | "i0e" | "i1" | "i1e" | "erfcx" => {
            Call::new(&[(draw.pick(&floats()), &shape)], format!("{name}(a)"))
        }
        "gammainc" | "gammaincc" => {
            let dtype = draw.pick(&floats());
            let scale = draw.pick(&["", "99 * "]);
            Call::new(&[(dtype, &shape), (dtype, &other)], format!("{name}({scale}abs(a), {scale}abs(b))"))
        }
        "betainc" => {
            let dtype = draw.pick(&floats());
            let place = draw.broadcasts(&shape);
            let expr = "betainc(9 * abs(a), 9 * abs(b), sigmoid(c))";
            Call::new(&[(dtype, &shape), (dtype, &other), (dtype, &place)], expr)
        }
        "zeta" => {
            let dtype = draw.pick(&floats());
            Call::new(&[(dtype, &shape), (dtype, &other)], "zeta(1 + abs(a), abs(b))")
        }
        "polygamma" => {
            let dtype = draw.pick(&floats());
            Call::new(&[(DType::U8, &other), (dtype, &shape)], "polygamma(a % 4, abs(b))")
        }
        "clamp" => {
            let dtype = draw.pick(&numbers());
            let bound = draw.broadcasts(&shape);
            Call::new(&[(dtype, &other), (dtype, &shape), (dtype, &bound)], "clamp(a, b, c)")
        }
        "allclose" => {
            let dtype = draw.pick(&numbers());
            let form = draw.pick(&["", ", rtol=0.5", ", equal_nan=true"]);
            Call::new(&[(dtype, &shape), (dtype, &other)], format!("allclose(a, b{form})"))
        }
        "isin" => {
            let (dtype, form) = (draw.pick(&numbers()), draw.pick(&["", ", invert=true"]));
            let tests = [draw.pick(&[1, 5, 40]), 1 + draw.below(2)];
            Call::new(&[(dtype, &shape), (dtype, &tests)], format!("isin(a, b{form})"))
        }
        "select_n" => {
            let dtype = draw.pick(&all());
            let which = if draw.chance(50) { DType::Bool } else { draw.pick(&ints()) };
            let shapes = if draw.chance(30) { (Vec::new(), shape.clone()) } else { (shape.clone(), other) };
            let cases = if which == DType::Bool { "b, c" } else { "b, c, b" };
            Call::new(&[(which, &shapes.0), (dtype, &shapes.1), (dtype, &shape)], format!("select_n(a, {cases})"))
        }
        _ => return None,
    })
}

fn statistics(name: &str, draw: &mut Draw) -> Option<Call> {
    let rank = draw.rank(1, 3);
    let shape = draw.shape(rank);
    let some: Vec<usize> = shape.iter().map(|&size| size.max(1)).collect();
    let axis = draw.axis(rank);
    Some(match name {
        "nanmedian" => {
            let axes = axes(draw, rank);
            let hole = draw.pick(&["a", "where(a > 0, 0.0 / 0.0, a)"]);
            Call::new(&[(draw.pick(&floats()), &some)], format!("nanmedian({hole}{axes})"))
        }
        "cov" | "corrcoef" => {
            let dtype = draw.pick(&numbers());
            let (n, m) = (draw.below(4) + 1, draw.below(6) + 2);
            let turned = draw.chance(30);
            let own = if turned { [m, n] } else { [n, m] };
            let rowvar = if turned { ", rowvar=false" } else { "" };
            // Weights of observations are not zero.
            let weights = match (name, draw.below(3)) {
                ("cov", 0) => ", aweights=b * b + 1",
                ("cov", 1) => ", ddof=0",
                _ => "",
            };
            let params: &[(DType, &[usize])] = &[(dtype, &own), (dtype, &[m])];
            let count = if weights.contains('b') { 2 } else { 1 };
            Call::new(&params[..count], format!("{name}(a{rowvar}{weights})"))
        }
        "trapezoid" => {
            let dtype = draw.pick(&numbers());
            let size = some[axis.rem_euclid(rank as i64) as usize];
            match draw.below(3) {
                0 => Call::new(&[(dtype, &some)], format!("trapezoid(a, dx=0.5, axis={axis})")),
                1 => Call::new(&[(dtype, &some), (dtype, &[size])], format!("trapezoid(a, b, axis={axis})")),
                _ => Call::new(&[(dtype, &some), (dtype, &some)], format!("trapezoid(a, b, axis={axis})")),
            }
        }
        "unwrap" => {
            // In f32 and wider: a number that is rounded otherwise may be half a period off.
            let dtype = draw.pick(&ints());
            let period = draw.pick(&["", ", period=4"]);
            Call::new(&[(dtype, &shape)], format!("unwrap(a{period}, axis={axis})"))
        }
        "correlate" => {
            let (dtype, n, m) = (draw.pick(&numbers()), 1 + draw.below(12), 1 + draw.below(6));
            let mode = draw.pick(&["", ", mode=\"full\"", ", mode=\"same\"", ", mode=\"valid\""]);
            Call::new(&[(dtype, &[n]), (dtype, &[m])], format!("correlate(a, b{mode})"))
        }
        "map_coordinates" => {
            let (dtype, kind) = (draw.pick(&numbers()), draw.pick(&[DType::F32, DType::F64, DType::I32]));
            let mode = draw.pick(&["constant", "nearest", "wrap", "mirror", "reflect"]);
            let (rank, order, points) = (1 + draw.below(2), draw.below(2), draw.shape(1));
            let sizes: Vec<usize> = (0..rank).map(|_| 1 + draw.below(5)).collect();
            let places = if rank == 1 { "[b]" } else { "[b, 3 * c]" };
            let params: &[(DType, &[usize])] = &[(dtype, &sizes), (kind, &points), (kind, &points)];
            let expr = format!("map_coordinates(a, {places}, {order}, mode=\"{mode}\")");
            Call::new(&params[..1 + rank], expr)
        }
        "diagonal" => {
            let shape = draw.shape(rank + 1);
            let offset = draw.between(-3, 3);
            let dims: Vec<usize> = (0..=rank).collect();
            let planes = draw.shuffled(&dims);
            let expr = format!("diagonal(a, {offset}, axis1={}, axis2={})", planes[0], planes[1]);
            Call::new(&[(draw.pick(&all()), &shape)], expr)
        }
        _ => return None,
    })
}
