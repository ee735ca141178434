//! Random calls of the functions that draw random numbers.

use super::call::Call;
use super::{Array, Draw, all, floats, ints};
use spmdc_abi::DType;

/// A call of the function; None if it draws no random numbers.
pub fn call(name: &str, draw: &mut Draw) -> Option<Call> {
    let rank = draw.rank(0, 3);
    let shape = draw.shape(rank);
    let key = format!("key({})", draw.between(-3, 1000));
    let any = |draw: &mut Draw| Array::new(draw.pick(&floats()), &shape).text(&[]);
    let wide = |draw: &mut Draw| Array::new(draw.pick(&[DType::F32, DType::F64]), &shape).text(&[]);
    let sizes = |shape: &[usize]| {
        let sizes: Vec<String> = shape.iter().map(|size| format!("{size},")).collect();
        format!("({})", sizes.join(" "))
    };
    let alone = |expr: String| Call::new(&[], expr);
    Some(match name {
        "key" => {
            let seeds = draw.pick(&ints());
            Call::new(&[(seeds, &shape)], "key_data(key(a))")
        }
        "fold_in" => {
            let numbers = draw.pick(&ints());
            let keys = if draw.chance(50) { shape.clone() } else { Vec::new() };
            Call::new(&[(DType::Key, &keys), (numbers, &shape)], "key_data(fold_in(a, b))")
        }
        "key_data" => Call::new(&[(DType::Key, &shape)], "key_data(a)"),
        "wrap_key_data" => {
            let words = [&shape[..], &[2]].concat();
            Call::new(&[(DType::U32, &words)], "wrap_key_data(a)")
        }
        "bits" => {
            let dtype = draw.pick(&[DType::U8, DType::U16, DType::U32, DType::U64]);
            alone(format!("bits({key}, {})", Array::new(dtype, &shape).text(&[])))
        }
        "uniform" => {
            let bounds = draw.pick(&["", ", -1, 3", ", minval=0.1", ", maxval=0.7"]);
            alone(format!("uniform({key}, {}{bounds})", any(draw)))
        }
        "normal" | "gumbel" | "exponential" => alone(format!("{name}({key}, {})", any(draw))),
        "laplace" | "logistic" | "cauchy" => alone(format!("{name}({key}, {})", wide(draw))),
        "truncated_normal" => {
            let bounds = draw.pick(&["-2, 2", "0, 0.5", "-9, -1"]);
            alone(format!("truncated_normal({key}, {bounds}, {})", wide(draw)))
        }
        "bernoulli" => match draw.chance(50) {
            true => alone(format!("bernoulli({key}, 0.3, {})", sizes(&shape))),
            false => {
                let dtype = draw.pick(&floats());
                Call::new(&[(dtype, &draw.broadcasts(&shape))], format!("bernoulli({key}, a / 8, {})", sizes(&shape)))
            }
        },
        "randint" => {
            let ty = Array::new(draw.pick(&ints()), &shape).text(&[]);
            match draw.chance(50) {
                true => alone(format!("randint({key}, {ty}, {}, {})", draw.between(-9, 3), draw.between(0, 100))),
                false => Call::new(&[(DType::I8, &draw.broadcasts(&shape))], format!("randint({key}, {ty}, a, 50)")),
            }
        }
        "permutation" => {
            let dtype = draw.pick(&all());
            let shape = if shape.is_empty() { vec![5] } else { shape.clone() };
            let axis = draw.below(shape.len());
            let independent = if draw.chance(30) { ", independent=true" } else { "" };
            Call::new(&[(dtype, &shape)], format!("permutation({key}, a, axis={axis}{independent})"))
        }
        "categorical" => {
            let shape = if shape.is_empty() { vec![5] } else { shape.clone() };
            let shape: Vec<usize> = shape.iter().map(|&size| size.max(1)).collect();
            let axis = draw.below(shape.len());
            Call::new(&[(DType::F32, &shape)], format!("categorical({key}, sin(a), axis={axis})"))
        }
        "choice" => {
            let (n, few) = (2 + draw.below(9), draw.chance(50));
            let p = draw.pick(&["", ", p=abs(sin(a)) + 0.1"]);
            let form = if few { ", (2,), replace=false" } else { ", (3, 2)" };
            Call::new(&[(DType::F32, &[n])], format!("choice({key}, a{form}{p})"))
        }
        "gamma" | "loggamma" | "chisquare" | "student_t" => {
            Call::new(&[(DType::F32, &shape)], format!("{name}({key}, abs(a) + 0.5)"))
        }
        "beta" => Call::new(&[(DType::F32, &shape)], format!("beta({key}, abs(a) + 0.5, 2)")),
        "poisson" => Call::new(&[(DType::F32, &shape)], format!("poisson({key}, abs(a) * 4)")),
        "binomial" => Call::new(&[(DType::F32, &shape)], format!("binomial({key}, 50, abs(sin(a)))")),
        "dirichlet" => {
            let shape = if shape.is_empty() { vec![4] } else { shape.clone() };
            Call::new(&[(DType::F32, &shape)], format!("dirichlet({key}, abs(a) + 0.5)"))
        }
        "multivariate_normal" => {
            let n = 1 + draw.below(4);
            Call::new(&[(DType::F32, &[n])], format!("multivariate_normal({key}, a, 2 * eye({n}), (3,))"))
        }
        _ => return None,
    })
}
