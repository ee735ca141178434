//! A random call of each function and operator of the language.

use super::call::Call;
use super::orders::orders;
use super::{
    Array, Draw, all, axes, batching, composed, derivatives, draws, floats, gathers, ints, matrices, numbers, of_size,
    spectral, windows,
};
use spmdc_abi::DType;
use spmdc_math::MathFn;
use spmdc_ops::promote::join;

/// Calls without a function's name.
pub const SYNTAX: &[&str] = &[
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "@",
    "**",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "|",
    "^",
    "&",
    "<<",
    ">>",
    "&&",
    "||",
    "neg",
    "!",
    "x[..]",
    "x[i]",
    "x[array]",
    "x[..] = v",
    "x[i] = v",
    "x[..] += v",
    "x[array] = v",
    "x[array] += v",
    "x[mask] = v",
    "x[mask] += v",
    "T",
    "constant",
];

/// A call of the function or operator; None if nothing is known of the name.
pub fn call(name: &str, draw: &mut Draw) -> Option<Call> {
    elementwise(name, draw)
        .or_else(|| operators(name, draw))
        .or_else(|| reductions(name, draw))
        .or_else(|| orders(name, draw))
        .or_else(|| composed::call(name, draw))
        .or_else(|| products(name, draw))
        .or_else(|| indexing(name, draw))
        .or_else(|| gathers::call(name, draw))
        .or_else(|| matrices::call(name, draw))
        .or_else(|| spectral::call(name, draw))
        .or_else(|| derivatives::call(name, draw))
        .or_else(|| batching::call(name, draw))
        .or_else(|| shapes(name, draw))
        .or_else(|| joins(name, draw))
        .or_else(|| makers(name, draw))
        .or_else(|| draws::call(name, draw))
        .or_else(|| windows::call(name, draw).map(|(params, expr)| Call { params, expr, before: String::new() }))
}

fn elementwise(name: &str, draw: &mut Draw) -> Option<Call> {
    let rank = draw.rank(0, 3);
    let shape = draw.shape(rank);
    Some(match name {
        "abs" | "sign" | "square" | "floor" | "ceil" | "round" | "trunc" | "isnan" | "isinf" | "isfinite"
        | "signbit" | "relu" => Call::new(&[(draw.pick(&numbers()), &shape)], format!("{name}(a)")),
        "popcount" | "clz" => Call::new(&[(draw.pick(&ints()), &shape)], format!("{name}(a)")),
        "reciprocal" | "silu" | "softplus" | "sinc" | "logit" | "elu" | "leaky_relu" => {
            Call::new(&[(draw.pick(&floats()), &shape)], format!("{name}(a)"))
        }
        _ if MathFn::from_name(name).is_some_and(|f| !f.is_internal()) => {
            Call::new(&[(draw.pick(&floats()), &shape)], format!("{name}(a)"))
        }
        "gelu" => {
            let form = draw.pick(&["", ", approximate=false"]);
            Call::new(&[(draw.pick(&floats()), &shape)], format!("gelu(a{form})"))
        }
        "minimum" | "maximum" | "pow" => {
            let dtype = draw.pick(&numbers());
            Call::new(&[(dtype, &shape), (dtype, &draw.broadcasts(&shape))], format!("{name}(a, b)"))
        }
        "gcd" | "lcm" => {
            let dtype = draw.pick(&ints());
            Call::new(&[(dtype, &shape), (dtype, &draw.broadcasts(&shape))], format!("{name}(a, b)"))
        }
        "nan_to_num" => {
            let dtype = draw.pick(&numbers());
            let expr =
                draw.pick(&["nan_to_num(a)", "nan_to_num(a / b)", "nan_to_num(a / b, nan=3, posinf=b, neginf=5)"]);
            let params: &[(DType, &[usize])] = &[(dtype, &shape), (dtype, &draw.broadcasts(&shape))];
            Call::new(&params[..if expr.contains('b') { 2 } else { 1 }], expr)
        }
        "isclose" | "heaviside" => {
            let dtype = draw.pick(&numbers());
            let form = if name == "isclose" { draw.pick(&["", ", rtol=0.5", ", equal_nan=true"]) } else { "" };
            Call::new(&[(dtype, &shape), (dtype, &draw.broadcasts(&shape))], format!("{name}(a, b{form})"))
        }
        "divmod" => {
            let dtype = draw.pick(&numbers());
            let mut call = Call::new(&[(dtype, &shape), (dtype, &draw.broadcasts(&shape))], draw.pick(&["q", "r"]));
            call.before = "let (q, r) = divmod(a, b * b + 1);".to_string();
            call
        }
        "atan2" | "hypot" | "logaddexp" | "copysign" | "nextafter" => {
            let dtype = draw.pick(&floats());
            Call::new(&[(dtype, &draw.broadcasts(&shape)), (dtype, &shape)], format!("{name}(a, b)"))
        }
        "fma" => {
            let dtype = draw.pick(&floats());
            let (second, third) = (draw.broadcasts(&shape), draw.broadcasts(&shape));
            Call::new(&[(dtype, &shape), (dtype, &second), (dtype, &third)], "fma(a, b, c)")
        }
        "where" => {
            let dtype = draw.pick(&all());
            let (mask, other) = (draw.broadcasts(&shape), draw.broadcasts(&shape));
            Call::new(&[(DType::Bool, &mask), (dtype, &shape), (dtype, &other)], "where(a, b, c)")
        }
        "clip" => {
            let dtype = draw.pick(&numbers());
            let (low, high) = (draw.broadcasts(&shape), draw.broadcasts(&shape));
            Call::new(&[(dtype, &shape), (dtype, &low), (dtype, &high)], "clip(a, b, c)")
        }
        "cast" => {
            let (from, to) = (draw.pick(&all()), draw.pick(&all()));
            let expr = if draw.chance(50) { format!("cast(a, {})", to.name()) } else { format!("{}(a)", to.name()) };
            Call::new(&[(from, &shape)], expr)
        }
        "bitcast" => {
            let from = draw.pick(&numbers());
            let (to, from_name) = (draw.pick(&of_size(from.size())).name(), from.name());
            let expr = match draw.below(4) {
                0 => format!("bitcast(-a, {to})"),
                1 => format!("bitcast(bitcast(a, {to}), {from_name})"),
                2 => format!("where(a == 1, bitcast(a, {to}), bitcast(a * 3, {to}))"),
                _ => format!("bitcast(a, {to})"),
            };
            Call::new(&[(from, &shape)], expr)
        }
        "print" => {
            let mut call = Call::new(&[(draw.pick(&all()), &shape)], "a");
            call.before = format!("print(\"a = {}\", a, a);", draw.pick(&["{}", "{:.4}", "{:8.3}", "{:e}", "{:?}"]));
            call
        }
        "assert" => {
            let mut call = Call::new(&[(draw.pick(&all()), &shape)], "a");
            let text = draw.pick(&["", ", \"a = {}\", a", ", \"a\", a"]);
            call.before = format!("assert(all(a == a || a != a){text});");
            call
        }
        "show" => {
            let dtype = draw.pick(&[&numbers()[..], &[DType::Bool]].concat());
            let mut call = Call::new(&[(dtype, &shape[..shape.len().min(2)])], "a");
            call.before = draw.pick(&["show(a);", "print(\"{:p} {}\", a, a);"]).to_string();
            call
        }
        "show_sharding" => {
            let mut call = Call::new(&[(draw.pick(&all()), &shape)], "a");
            call.before = "show_sharding(a);".to_string();
            call
        }
        _ => return None,
    })
}

fn operators(name: &str, draw: &mut Draw) -> Option<Call> {
    let rank = draw.rank(0, 3);
    let shape = draw.shape(rank);
    let other = draw.broadcasts(&shape);
    Some(match name {
        "+" | "-" | "*" | "==" | "!=" | "<" | "<=" | ">" | ">=" => {
            let dtype = draw.pick(&numbers());
            // Mixed operand types promote, where they do.
            let mixed = draw.pick(&numbers());
            let second = if draw.chance(25) && join(dtype, mixed).is_some() { mixed } else { dtype };
            Call::new(&[(dtype, &shape), (second, &other)], format!("a {name} b"))
        }
        // Integers stop at a division by zero, so the divisor is positive.
        "/" | "//" | "%" => {
            let dtype = draw.pick(&numbers());
            Call::new(&[(dtype, &shape), (dtype, &other)], format!("a {name} (b * b + 1)"))
        }
        "**" => {
            let dtype = draw.pick(&numbers());
            let exponent = draw.pick(&["b", "2", "3"]);
            let params: &[(DType, &[usize])] = &[(dtype, &shape), (dtype, &other)];
            Call::new(&params[..if exponent == "b" { 2 } else { 1 }], format!("a ** {exponent}"))
        }
        "|" | "^" | "&" => {
            let dtype = draw.pick(&[ints(), vec![DType::Bool]].concat());
            Call::new(&[(dtype, &shape), (dtype, &other)], format!("a {name} b"))
        }
        "<<" | ">>" => {
            let dtype = draw.pick(&ints());
            Call::new(&[(dtype, &shape), (dtype, &other)], format!("a {name} b"))
        }
        "&&" | "||" => Call::new(&[(DType::Bool, &shape), (DType::Bool, &other)], format!("a {name} b")),
        "neg" => Call::new(&[(draw.pick(&numbers()), &shape)], "-a"),
        "!" => Call::new(&[(draw.pick(&[ints(), vec![DType::Bool]].concat()), &shape)], "!a"),
        "T" => Call::new(&[(draw.pick(&all()), &shape)], "a.T"),
        "constant" => {
            let len = 1 + draw.below(6);
            let list: Vec<String> = (0..len).map(|_| draw.between(-9, 9).to_string()).collect();
            Call::new(
                &[(draw.pick(&[DType::F32, DType::I32, DType::I64]), &[len])],
                format!("a + [{}]", list.join(", ")),
            )
        }
        _ => return None,
    })
}

fn reductions(name: &str, draw: &mut Draw) -> Option<Call> {
    let rank = draw.rank(0, 3);
    let shape = draw.shape(rank);
    let axes = axes(draw, rank);
    Some(match name {
        "sum" | "prod" | "max" | "min" | "count_nonzero" => {
            Call::new(&[(draw.pick(&numbers()), &shape)], format!("{name}(a{axes})"))
        }
        "all" | "any" => Call::new(&[(DType::Bool, &shape)], format!("{name}(a{axes})")),
        "mean" | "var" | "std" | "logsumexp" | "norm" => {
            Call::new(&[(draw.pick(&floats()), &shape)], format!("{name}(a{axes})"))
        }
        "ptp" => Call::new(&[(draw.pick(&numbers()), &shape)], format!("ptp(a{axes})")),
        "nansum" | "nanmean" | "nanmax" | "nanmin" | "nanvar" | "nanstd" if draw.chance(30) => {
            Call::new(&[(draw.pick(&numbers()), &shape)], format!("{name}(a{axes})"))
        }
        "nansum" | "nanmean" | "nanmax" | "nanmin" | "nanvar" | "nanstd" => {
            Call::new(&[(draw.pick(&floats()), &shape)], format!("{name}(where(a > 1, 0.0 / 0.0, a){axes})"))
        }
        "average" if rank == 0 || draw.chance(30) => {
            Call::new(&[(draw.pick(&floats()), &shape)], format!("average(a{axes})"))
        }
        "average" => {
            let (dtype, dim) = (draw.pick(&floats()), draw.below(rank));
            let weights = if draw.chance(50) { vec![shape[dim]] } else { shape.clone() };
            Call::new(&[(dtype, &shape), (dtype, &weights)], format!("average(a, axis={dim}, weights=b * b + 1)"))
        }
        "layer_norm" | "rms_norm" => {
            let shape = if rank == 0 { draw.shape(1) } else { shape };
            let (dtype, axis) = (draw.pick(&floats()), draw.axis(shape.len()));
            let own = [shape[(axis + shape.len() as i64) as usize % shape.len()]];
            let form = match (name, draw.below(3)) {
                (_, 0) => "",
                ("rms_norm", _) | (_, 1) => ", b",
                _ => ", b, b",
            };
            let params: &[(DType, &[usize])] = &[(dtype, &shape), (dtype, &own)];
            Call::new(&params[..if form.is_empty() { 1 } else { 2 }], format!("{name}(a{form}, axis={axis}, eps=0.5)"))
        }
        "argmax" | "argmin" => {
            let axis = if rank > 0 && draw.chance(80) { format!(", axis={}", draw.axis(rank)) } else { String::new() };
            let keep = if draw.chance(30) { ", keepdims=true" } else { "" };
            Call::new(&[(draw.pick(&numbers()), &shape)], format!("{name}(a{axis}{keep})"))
        }
        "cumsum" | "cumprod" | "cummax" | "cummin" => {
            let shape = if rank == 0 { draw.shape(1) } else { shape };
            let axis = if draw.chance(80) { format!(", axis={}", draw.axis(shape.len())) } else { String::new() };
            let reverse = if draw.chance(40) { ", reverse=true" } else { "" };
            Call::new(&[(draw.pick(&numbers()), &shape)], format!("{name}(a{axis}{reverse})"))
        }
        "logcumsumexp" | "associative_scan" => {
            let shape = if rank == 0 { draw.shape(1) } else { shape };
            let dtype = if name == "logcumsumexp" { draw.pick(&floats()) } else { draw.pick(&numbers()) };
            let axis = if draw.chance(80) { format!(", axis={}", draw.axis(shape.len())) } else { String::new() };
            let named = if draw.chance(40) { format!("{axis}, reverse=true") } else { axis };
            match (name, draw.below(4)) {
                ("logcumsumexp", _) => Call::new(&[(dtype, &shape)], format!("logcumsumexp(a{named})")),
                // Affine functions: which comes first matters.
                (_, 0) => {
                    let composed = "|p, q| (q.0 * p.0, q.0 * p.1 + q.1)";
                    let expr = format!("associative_scan({composed}, (a, b){named}).1");
                    Call::new(&[(dtype, &shape), (dtype, &shape)], expr)
                }
                (_, kind) => {
                    let function = ["maximum", "|p, q| p + q", "|p, q| where(q > 0, q, p)"][kind - 1];
                    Call::new(&[(dtype, &shape)], format!("associative_scan({function}, a{named})"))
                }
            }
        }
        "softmax" | "log_softmax" => {
            let shape = if rank == 0 { draw.shape(1) } else { shape };
            let axis = draw.axis(shape.len());
            Call::new(&[(draw.pick(&floats()), &shape)], format!("{name}(a, axis={axis})"))
        }
        _ => return None,
    })
}

fn products(name: &str, draw: &mut Draw) -> Option<Call> {
    let dtype = draw.pick(&numbers());
    // A size for each letter.
    let sizes: Vec<usize> = draw.shape(26);
    let shape = |letters: &str| letters.bytes().map(|letter| sizes[usize::from(letter - b'a')]).collect::<Vec<usize>>();
    let letters = |operands: &str, expr: String| {
        let shapes: Vec<Vec<usize>> = operands.split(',').map(shape).collect();
        Call::new(&shapes.iter().map(|shape| (dtype, shape.as_slice())).collect::<Vec<_>>(), expr)
    };
    Some(match name {
        "@" | "matmul" => {
            let operands = draw.pick(&["nk,km", "bnk,bkm", "nk,bkm", "bnk,km", "nk,k", "k,km", "k,bkm", "k,k"]);
            letters(operands, if name == "@" { "a @ b" } else { "matmul(a, b)" }.to_string())
        }
        "dot" => letters(draw.pick(&["nk,km", "k,k", "nk,k", ",nm", "nk,mkl"]), "dot(a, b)".to_string()),
        "outer" => letters("n,m", "outer(a, b)".to_string()),
        "vdot" => letters(draw.pick(&["nk,nk", "n,n", ",", "nmk,nmk"]), "vdot(a, b)".to_string()),
        "kron" => letters(draw.pick(&["nk,ml", "n,m", "nk,m", "n,mk", ",nk"]), "kron(a, b)".to_string()),
        "matrix_power" => {
            let n = draw.below(4);
            letters(draw.pick(&["nn", "knn"]), format!("matrix_power(a, {n})"))
        }
        "cross" => {
            let (n, m, k) = (draw.size(), 2 + draw.below(2), 2 + draw.below(2));
            let (a, b) = if draw.chance(50) { (vec![n, m], vec![n, k]) } else { (vec![m], vec![n, k]) };
            Call::new(&[(dtype, &a), (dtype, &b)], "cross(a, b)")
        }
        "attention" => {
            let (dtype, kv) = (draw.pick(&floats()), 1 + draw.below(2));
            let (batch, len, from, depth) = (draw.size(), draw.size(), 1 + draw.size(), 1 + draw.below(5));
            let (q, k) = ([batch, len, kv * (1 + draw.below(3)), depth], [batch, from, kv, depth]);
            let skip = usize::from(draw.chance(30));
            let form = draw.pick(&["", ", causal=true", ", mask=iota(i32[S], axis=0) > 1"]);
            let form = form.replace('S', &from.to_string());
            Call::new(
                &[(dtype, &q[skip..]), (dtype, &k[skip..]), (dtype, &k[skip..])],
                format!("attention(a, b, c{form})"),
            )
        }
        "tensordot" => {
            let (operands, axes) =
                draw.pick(&[("nk,km", "1"), ("nmk,mk", "2"), ("nkm,mn", "((0, 2), (1, 0))"), ("n,m", "0")]);
            letters(operands, format!("tensordot(a, b, axes={axes})"))
        }
        "einsum" => {
            let spec = draw.pick(&[
                "ij->ji",
                "ij->i",
                "ii->i",
                "ii",
                "iij->ij",
                "iji->j",
                "iii->i",
                "iijj->j",
                "ii,ij->j",
                "bij,bjk->bik",
                "bij,bjk->kb",
                "ij,kj->ik",
                "ij,ij->",
                "i,j->ij",
                "bqhd,bkhd->bhqk",
                "ij,jk,kl->il",
                "ji,jk->ik",
                "bi,bj->bij",
                "ijk,kji->j",
            ]);
            let operands = spec.split("->").next().unwrap_or_default();
            let names = &"a, b, c"[..3 * operands.split(',').count() - 2];
            letters(operands, format!("einsum(\"{spec}\", {names})"))
        }
        "trace" => {
            let (operand, args) = draw.pick(&[
                ("nn", ""),
                ("nm", ""),
                ("nm", ", offset=1"),
                ("nm", ", offset=-1"),
                ("nmn", ", axis1=0, axis2=2"),
                ("nmk", ", axis1=2, axis2=1"),
            ]);
            letters(operand, format!("trace(a{args})"))
        }
        "diag" => {
            let (operand, args) = draw.pick(&[("n", ""), ("nn", ""), ("nm", ""), ("nm", ", k=1"), ("nm", ", k=-1")]);
            letters(operand, format!("diag(a{args})"))
        }
        _ => return None,
    })
}

/// One entry of an index for a dimension of this size, and how many elements it takes; None if the dimension vanishes.
fn entry(draw: &mut Draw, size: usize) -> (String, Option<usize>) {
    let n = size as i64;
    if size > 0 && draw.chance(20) {
        return (draw.between(-n, n - 1).to_string(), None);
    }
    if draw.chance(20) {
        return (":".to_string(), Some(size));
    }
    let step: i64 = draw.pick(&[1, 1, 1, 2, 3, -1, -2]);
    let bound = |draw: &mut Draw| if draw.chance(40) { None } else { Some(draw.between(-n - 1, n + 1)) };
    let (start, stop) = (bound(draw), bound(draw));
    let text = |bound: Option<i64>| bound.map_or(String::new(), |bound| bound.to_string());
    let step_text = if step == 1 { String::new() } else { format!(":{step}") };
    let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
    let place = |bound: Option<i64>, default: i64| match bound {
        None => default,
        Some(at) => (if at < 0 { at + n } else { at }).clamp(low, high),
    };
    let (first, last) =
        if step > 0 { (place(start, 0), place(stop, n)) } else { (place(start, n - 1), place(stop, -1)) };
    let distance = if step > 0 { last - first } else { first - last };
    let len = (distance.max(0) as usize).div_ceil(step.unsigned_abs() as usize);
    (format!("{}:{}{step_text}", text(start), text(stop)), Some(len))
}

fn indexing(name: &str, draw: &mut Draw) -> Option<Call> {
    let rank = draw.rank(1, 3);
    let dtype = draw.pick(&all());
    let (text, region, shape): (String, Vec<usize>, Vec<usize>) = match name {
        "x[..]" | "x[..] = v" | "x[..] += v" => {
            let shape = draw.shape(rank);
            let entries: Vec<(String, Option<usize>)> = shape.iter().map(|&size| entry(draw, size)).collect();
            let kept = entries.iter().filter_map(|(_, len)| *len).collect();
            let texts: Vec<String> = entries.into_iter().map(|(text, _)| text).collect();
            (texts.join(", "), kept, shape)
        }
        "x[i]" | "x[i] = v" => {
            // A dynamic place must exist: the generated integers go up to six.
            let shape: Vec<usize> = (0..rank).map(|_| 7 + draw.below(3)).collect();
            let dim = draw.below(rank);
            let mut texts = vec![":".to_string(); rank];
            texts[dim] = draw.pick(&["i", "-1 - i", "6 - i"]).to_string();
            let mut kept = shape.clone();
            kept.remove(dim);
            (texts.join(", "), kept, shape)
        }
        _ => return None,
    };
    let index: &[(DType, &[usize])] = &[(DType::I32, &[])];
    let dynamic = name.starts_with("x[i]");
    let text = text.replace('i', "b");
    let mut params: Vec<(DType, &[usize])> = vec![(dtype, &shape)];
    if dynamic {
        params.extend(index);
    }
    if !name.contains('=') {
        return Some(Call::new(&params, format!("a[{text}]")));
    }
    let value = if draw.chance(25) { Vec::new() } else { draw.broadcasts(&region) };
    let value_name = if dynamic { "c" } else { "b" };
    let dtype = if name.contains('+') { draw.pick(&numbers()) } else { dtype };
    params[0].0 = dtype;
    params.push((dtype, &value));
    let mut call = Call::new(&params, "u");
    let operator = if name.contains('+') { "+=" } else { "=" };
    call.before = format!("let mut u = a; u[{text}] {operator} {value_name};");
    Some(call)
}

/// A way to write `len` elements as a shape.
pub(super) fn factored(draw: &mut Draw, len: usize) -> Vec<usize> {
    let (mut rest, mut shape) = (len.max(1), Vec::new());
    while rest > 1 && shape.len() < 3 {
        let divisors: Vec<usize> = (1..=rest).filter(|d| rest.is_multiple_of(*d)).collect();
        let size = draw.pick(&divisors);
        shape.push(size);
        rest /= size;
    }
    shape.push(rest);
    if len == 0 {
        shape.push(0);
    }
    draw.shuffled(&shape)
}

fn tuple(values: impl IntoIterator<Item = i64>) -> String {
    let values: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
    match values.as_slice() {
        [one] => format!("({one},)"),
        more => format!("({})", more.join(", ")),
    }
}

pub(super) fn sizes(shape: &[usize]) -> String {
    tuple(shape.iter().map(|&size| size as i64))
}

/// An array continued beyond its ends in some way, and the type that it has then.
pub(super) fn padded(draw: &mut Draw, name: &str, array: &Array) -> (String, Array) {
    let mut result = array.clone();
    let widths = result.shape.iter_mut().map(|size| {
        let (before, after) = (draw.below(4), draw.below(4));
        *size += before + after;
        format!("({before}, {after})")
    });
    let widths: Vec<String> = widths.collect();
    // A scalar has no dimension to be padded.
    let widths = match widths.as_slice() {
        [] => draw.below(4).to_string(),
        widths => format!("({},)", widths.join(", ")),
    };
    let is_bool = array.dtype == DType::Bool;
    let how = draw.pick(&["", "constant_values=1", "edge", "reflect", "symmetric", "wrap"]);
    let how = match how {
        "" if is_bool => ", constant_values=false".to_string(),
        "" => String::new(),
        "constant_values=1" if is_bool => ", constant_values=true".to_string(),
        "constant_values=1" => format!(", {how}"),
        mode => format!(", mode=\"{mode}\""),
    };
    (format!("pad({name}, {widths}{how})"), result)
}

fn shapes(name: &str, draw: &mut Draw) -> Option<Call> {
    let dtype = draw.pick(&all());
    let rank = draw.rank(1, 3);
    let shape = draw.shape(rank);
    let dims: Vec<i64> = (0..rank as i64).collect();
    let len: usize = shape.iter().product();
    Some(match name {
        // A dimension in two, or two in one: mostly in blocks that are not even.
        "reshape" if draw.chance(40) => {
            let (major, minor, at) = (1 + draw.below(25), 1 + draw.below(4), draw.below(rank));
            let (mut merged, mut cut) = (shape.clone(), shape);
            merged[at] = major * minor;
            cut.splice(at..=at, [major, minor]);
            let (from, to) = if draw.chance(50) { (merged, cut) } else { (cut, merged) };
            Call::new(&[(dtype, &from)], format!("reshape(a, {})", sizes(&to)))
        }
        "reshape" => Call::new(&[(dtype, &shape)], format!("reshape(a, {})", sizes(&factored(draw, len)))),
        "ravel" => Call::new(&[(dtype, &shape)], "ravel(a)"),
        "squeeze" => {
            let mut shape = shape;
            let at = draw.below(rank + 1);
            shape.insert(at, 1);
            let axis = if draw.chance(60) { format!(", axis={at}") } else { String::new() };
            Call::new(&[(dtype, &shape)], format!("squeeze(a{axis})"))
        }
        "expand_dims" => Call::new(&[(dtype, &shape)], format!("expand_dims(a, {})", draw.axis(rank + 1))),
        "broadcast_to" => {
            let from = draw.broadcasts(&shape);
            Call::new(&[(dtype, &from)], format!("broadcast_to(a, {})", sizes(&shape)))
        }
        "transpose" => {
            let order = if draw.chance(70) { format!(", {}", tuple(draw.shuffled(&dims))) } else { String::new() };
            Call::new(&[(dtype, &shape)], format!("transpose(a{order})"))
        }
        "swapaxes" | "moveaxis" => {
            let (from, to) = (draw.axis(rank), draw.axis(rank));
            Call::new(&[(dtype, &shape)], format!("{name}(a, {from}, {to})"))
        }
        "flip" => {
            let axis = if draw.chance(70) { format!(", axis={}", draw.axis(rank)) } else { String::new() };
            Call::new(&[(dtype, &shape)], format!("flip(a{axis})"))
        }
        "roll" => {
            let axis = if draw.chance(80) { format!(", axis={}", draw.axis(rank)) } else { String::new() };
            Call::new(&[(dtype, &shape)], format!("roll(a, {}{axis})", draw.between(-12, 12)))
        }
        "dynamic_slice" | "dynamic_update_slice" => {
            let shape: Vec<usize> = (0..rank).map(|_| draw.below(9)).collect();
            let lens: Vec<usize> = shape.iter().map(|&size| draw.below(size + 1)).collect();
            let starts: Vec<String> = (0..rank)
                .map(|_| match draw.below(4) {
                    0 => draw.between(-9, 9).to_string(),
                    1 => "b - 4".to_string(),
                    _ => "b".to_string(),
                })
                .collect();
            let starts = if rank == 1 { format!("({},)", starts[0]) } else { format!("({})", starts.join(", ")) };
            let place = (draw.pick(&ints()), &[][..]);
            if name == "dynamic_slice" {
                let lens = tuple(lens.iter().map(|&len| len as i64));
                Call::new(&[(dtype, &shape), place], format!("dynamic_slice(a, {starts}, {lens})"))
            } else {
                Call::new(&[(dtype, &shape), place, (dtype, &lens)], format!("dynamic_update_slice(a, c, {starts})"))
            }
        }
        "pad" => {
            let (expr, _) = padded(draw, "a", &Array::new(dtype, &shape));
            Call::new(&[(dtype, &shape)], expr)
        }
        "tile" => {
            let reps: Vec<i64> = (0..rank).map(|_| draw.between(0, 3)).collect();
            Call::new(&[(dtype, &shape)], format!("tile(a, {})", tuple(reps)))
        }
        "repeat" => {
            let axis = if draw.chance(70) { format!(", axis={}", draw.axis(rank)) } else { String::new() };
            Call::new(&[(dtype, &shape)], format!("repeat(a, {}{axis})", draw.between(0, 3)))
        }
        "tril" | "triu" => {
            let shape = if rank == 1 { draw.shape(2) } else { shape };
            let k = draw.between(-3, 3);
            Call::new(&[(draw.pick(&numbers()), &shape)], format!("{name}(a, k={k})"))
        }
        "diff" => {
            let (axis, n) = (draw.axis(rank), draw.below(4));
            let form = draw.pick(&["", "", ", prepend=a", ", append=a"]);
            Call::new(&[(dtype, &shape)], format!("diff(a, n={n}, axis={axis}{form})"))
        }
        "rot90" => {
            let shape = if rank == 1 { draw.shape(2) } else { shape };
            let dims: Vec<i64> = (0..shape.len() as i64).collect();
            let plane = draw.shuffled(&dims);
            Call::new(&[(dtype, &shape)], format!("rot90(a, {}, ({}, {}))", draw.between(-4, 5), plane[0], plane[1]))
        }
        "meshgrid" => {
            let (n, m) = ([draw.size()], [draw.size()]);
            let form = draw.pick(&["", ", sparse=true", ", indexing=\"ij\""]);
            let mut call = Call::new(&[(dtype, &n), (dtype, &m)], draw.pick(&["x", "y"]));
            call.before = format!("let (x, y) = meshgrid(a, b{form});");
            call
        }
        "reshard" => Call::new(&[(dtype, &shape)], "reshard(a, P())"),
        _ => return None,
    })
}

fn joins(name: &str, draw: &mut Draw) -> Option<Call> {
    let dtype = draw.pick(&all());
    let rank = draw.rank(1, 3);
    let shape = draw.shape(rank);
    Some(match name {
        "concatenate" => {
            let axis = draw.below(rank);
            let mut others = [shape.clone(), shape.clone()];
            others.iter_mut().for_each(|other| other[axis] = draw.size());
            let params: [(DType, &[usize]); 3] = [(dtype, &shape), (dtype, &others[0]), (dtype, &others[1])];
            let count = 1 + draw.below(3);
            Call::new(&params[..count], format!("concatenate([{}], axis={axis})", &"a, b, c"[..3 * count - 2]))
        }
        "hstack" | "vstack" => {
            let mut other = shape.clone();
            let axis = usize::from(name == "hstack" && rank > 1);
            if name == "hstack" || rank > 1 {
                other[axis] = draw.size();
            }
            Call::new(&[(dtype, &shape), (dtype, &other)], format!("{name}([a, b, a])"))
        }
        "stack" => {
            let axis = draw.axis(rank + 1);
            Call::new(&[(dtype, &shape), (dtype, &shape)], format!("stack([a, b], axis={axis})"))
        }
        "split" => {
            let axis = draw.below(rank);
            let parts = 1 + draw.below(3);
            let mut shape = shape;
            let points = draw.chance(40);
            if !points {
                shape[axis] = parts * draw.size();
            }
            let at = draw.below(shape[axis] + 1);
            let (sections, count) = if points { (format!("({at},)"), 2) } else { (parts.to_string(), parts) };
            let mut call = Call::new(&[(dtype, &shape)], "s");
            let names = ["s", "s1", "s2"][..count].join(", ");
            let pattern = if count == 1 { format!("({names},)") } else { format!("({names})") };
            call.before = format!("let {pattern} = split(a, {sections}, axis={axis});");
            let used = draw.pick(&["s", "s1", "s2"][..count]);
            call.expr = used.to_string();
            call
        }
        _ => return None,
    })
}

fn makers(name: &str, draw: &mut Draw) -> Option<Call> {
    let dtype = draw.pick(&numbers());
    let rank = draw.rank(0, 3);
    let shape = draw.shape(rank);
    let ty = Array::new(dtype, &shape).text(&[]);
    let (n, m) = (draw.size(), draw.size());
    Some(match name {
        "zeros" | "ones" => Call::new(&[], format!("{name}({ty})")),
        "full" => Call::new(&[(dtype, &[])], format!("full({ty}, a)")),
        "zeros_like" | "ones_like" => Call::new(&[(dtype, &shape)], format!("{name}(a)")),
        "full_like" => Call::new(&[(dtype, &shape)], "full_like(a, 5)"),
        "iota" => {
            let shape = if rank == 0 { draw.shape(1) } else { shape };
            let ty = Array::new(dtype, &shape).text(&[]);
            Call::new(&[], format!("iota({ty}, axis={})", draw.below(shape.len())))
        }
        "arange" => {
            let (start, step) = (draw.between(-5, 5), draw.between(1, 3));
            let (stop, far) = (start + draw.between(0, 12), draw.between(200, 3000));
            let dtype = draw.pick(&numbers()).name();
            let call = match draw.below(3) {
                0 => format!("arange({n})"),
                1 => format!("arange({start}, {stop}, {step})"),
                // Numbers that are far apart in narrow floats, and wrap around in narrow integers.
                _ => format!("arange({}, {far}, {step}, dtype={dtype})", start.abs()),
            };
            Call::new(&[], call)
        }
        "linspace" => {
            let end = if draw.chance(30) { ", endpoint=false" } else { "" };
            Call::new(&[], format!("linspace(-1.0, 2.5, {n}{end})"))
        }
        "logspace" => {
            let end = if draw.chance(30) { ", endpoint=false" } else { "" };
            Call::new(&[], format!("logspace(-1.0, 1.5, {n}{end}, base={})", draw.pick(&["10", "2.5"])))
        }
        "eye" => {
            let k = draw.between(-2, 2);
            Call::new(&[], if draw.chance(50) { format!("eye({n})") } else { format!("eye({n}, {m}, k={k})") })
        }
        "one_hot" => {
            Call::new(&[(draw.pick(&[DType::I32, DType::I64, DType::U8]), &shape)], format!("one_hot(a, {m})"))
        }
        _ => return None,
    })
}
