//! Random programs with one collective of `manual` code.

use super::{Array, Draw, Mesh, all, floats, numbers};
use spmdc_abi::DType;

pub const NAMES: &[&str] = &[
    "psum",
    "pmean",
    "pmax",
    "pmin",
    "all_gather",
    "psum_scatter",
    "all_to_all",
    "ppermute",
    "pshift",
    "pvary",
    "pcast",
    "axis_index",
    "axis_size",
];

/// A program on this mesh; the other axes are the compiler's.
pub fn program(name: &str, draw: &mut Draw, mesh: &Mesh) -> String {
    let (axis, n, _) = draw.pick(&mesh.axes);
    let (rows, columns) = (1 + draw.below(4), n * (1 + draw.below(3)));
    let dtype = match name {
        "pmean" => draw.pick(&floats()),
        "psum" | "pmax" | "pmin" | "psum_scatter" | "pcast" => draw.pick(&numbers()),
        "axis_index" | "axis_size" => DType::I32,
        _ => draw.pick(&all()),
    };
    let element = dtype.name();
    // Each device sees `rows x columns`.
    let split = format!("{element}[{}@{axis}, {columns}]", rows * n);
    let (result, body) = match name {
        "psum" | "pmean" | "pmax" | "pmin" => (format!("{element}[{rows}, {columns}]"), format!("{name}(x, {axis})")),
        "all_gather" => match draw.chance(50) {
            true => (format!("{element}[{}, {columns}]", rows * n), format!("all_gather(x, {axis}, axis=0)")),
            false => (format!("{element}[{rows}, {}]", columns * n), format!("all_gather(x, {axis}, axis=1)")),
        },
        "psum_scatter" => (format!("{element}[{rows}, {columns}@{axis}]"), format!("psum_scatter(x, {axis}, axis=1)")),
        "all_to_all" => {
            (format!("{element}[{}, {columns}@{axis}]", rows * n), format!("all_to_all(x, {axis}, split=1, concat=0)"))
        }
        "ppermute" => {
            let (from, to) = (draw.shuffled(&positions(n)), draw.shuffled(&positions(n)));
            let count = 1 + draw.below(n);
            let pairs: Vec<String> =
                from.iter().zip(&to).take(count).map(|(from, to)| format!("({from}, {to})")).collect();
            (split.clone(), format!("ppermute(x, {axis}, ({},))", pairs.join(", ")))
        }
        "pshift" => (split.clone(), format!("pshift(x, {axis}, {})", draw.between(-9, 9))),
        "pvary" => (split.clone(), format!("where(x == x, x, pvary(zeros({element}[{rows}, {columns}]), {axis}))")),
        "pcast" => {
            let (block, summand) =
                (format!("{element}[{rows}, {columns}]"), format!("pcast(x, {axis}, to=\"unreduced\")"));
            let forms = [
                (block.clone(), format!("psum({summand} * pcast(psum(x, {axis}), {axis}, to=\"reduced\"), {axis})")),
                (format!("{block}{{U:{axis}}}"), format!("{summand} + {summand}")),
                (
                    split.clone(),
                    format!("pcast(pcast(psum(x, {axis}), {axis}, to=\"reduced\"), {axis}, to=\"varying\")"),
                ),
            ];
            forms[draw.below(3)].clone()
        }
        "axis_index" | "axis_size" => (split.clone(), format!("x * 3 + {name}({axis})")),
        other => unreachable!("{other} is not in the list"),
    };
    let outside = Array::new(dtype, &[rows * n, columns]);
    let says_nothing = draw.chance(30);
    let outside = outside.text(&if says_nothing { Vec::new() } else { mesh.sharding(draw, 2) });
    format!(
        "{}manual({axis}) fn inside(x: {split}) -> {result} {{ {body} }}\nfn main(a: {outside}) {{ inside(a) }}\n",
        mesh.text()
    )
}

fn positions(n: usize) -> Vec<usize> {
    (0..n).collect()
}
