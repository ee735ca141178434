//! Products, attention, transforms, selections and sums at indices of random shapes, on one device and split over several: the results are the
//! evaluator's, and any number of workers gives the same bits.
//!
//! `SHAPES=10000` tries more, `SHAPE=17` one of them.

use spmdc_abi::DType;
use spmdc_kernel::machine::Machine;
use spmdc_tests::compare::{Tolerance, difference, difference_of_bits};
use spmdc_tests::engine::{self, Loaded};
use spmdc_tests::random::{Draw, Mesh};

/// Numbers of workers; the first one does all the work.
const WORKERS: [usize; 3] = [1, 2, 5];

/// Maximum multiplications of a product: the evaluator takes about a nanosecond for each.
const MOST_STEPS: usize = 3_000_000;

/// A program, and the element type whose tolerance its results have.
struct ShapedProgram {
    text: String,
    sums: DType,
}

/// An array parameter of a program, split by chance.
fn param(draw: &mut Draw, mesh: &Mesh, name: &str, dtype: &str, shape: &[usize]) -> String {
    let split = mesh.sharding(draw, shape.len());
    let dims = shape.iter().zip(split).map(|(size, axes)| format!("{size}@{axes}"));
    format!("{name}: {dtype}[{}]", dims.collect::<Vec<_>>().join(", "))
}

/// A size: mostly small, with odd ones and those about blocks and vectors.
fn size(draw: &mut Draw) -> usize {
    match draw.below(10) {
        0..4 => 1 + draw.below(9),
        4..8 => 1 + draw.below(70),
        _ => 1 + draw.below(300),
    }
}

/// `einsum` with batch, free and contracted letters in any order.
fn product(draw: &mut Draw, mesh: &Mesh) -> ShapedProgram {
    const OPERANDS: [(&str, &str, DType); 14] = [
        ("f32", "", DType::F32),
        ("f32", "", DType::F32),
        ("f64", "", DType::F64),
        ("bf16", "", DType::Bf16),
        ("bf16", "", DType::Bf16),
        ("f16", "", DType::F16),
        ("i8", "i32", DType::I32),
        ("u8", "i32", DType::I32),
        ("i16", "i32", DType::I32),
        ("bool", "i32", DType::I32),
        ("i8", "", DType::I32),
        ("i32", "", DType::I32),
        ("u32", "", DType::I32),
        ("i64", "", DType::I64),
    ];
    let (dtype, converted, sums) = draw.pick(&OPERANDS);
    let counts = [draw.below(2), 1 + draw.below(2), 1 + draw.below(2), 1 + draw.below(2)];
    let mut letters = "abcdefgh".chars().map(|letter| (letter, size(draw))).collect::<Vec<_>>();
    let total = |letters: &[(char, usize)]| letters.iter().map(|(_, size)| size).product::<usize>();
    let used = counts.iter().sum::<usize>();
    letters.truncate(used);
    while total(&letters) > MOST_STEPS {
        let largest = letters.iter_mut().max_by_key(|(_, size)| *size).expect("a product has letters");
        largest.1 = largest.1.div_ceil(2);
    }
    let mut rest = letters.as_slice();
    let [batch, rows, columns, contracted] = counts.map(|count| {
        let (taken, left) = rest.split_at(count);
        rest = left;
        taken.to_vec()
    });
    let mut order = |roles: [&[(char, usize)]; 3]| draw.shuffled(&roles.concat());
    let operands = [order([&batch, &rows, &contracted]), order([&batch, &columns, &contracted])];
    let result = order([&batch, &rows, &columns]);
    let word = |labels: &[(char, usize)]| labels.iter().map(|(letter, _)| *letter).collect::<String>();
    let [x, y] = [("x", &operands[0]), ("y", &operands[1])].map(|(name, labels)| {
        param(draw, mesh, name, dtype, &labels.iter().map(|(_, size)| *size).collect::<Vec<_>>())
    });
    let convert = |name: &str| if converted.is_empty() { name.to_string() } else { format!("{converted}({name})") };
    let spec = format!("{},{}->{}", word(&operands[0]), word(&operands[1]), word(&result));
    let product = format!("einsum(\"{spec}\", {}, {})", convert("x"), convert("y"));
    // Narrow operands that several products read.
    let result = match draw.below(4) {
        0 => format!("({product}, {})", product.replace(&convert("y"), &convert("y * y"))),
        1 if sums.is_float() => format!("relu({product} * 0.5)"),
        _ => product,
    };
    ShapedProgram { text: format!("fn main({x}, {y}) {{ {result} }}\n"), sums }
}

/// Attention, and by chance its gradients.
fn attention(draw: &mut Draw, mesh: &Mesh) -> ShapedProgram {
    let (dtype, sums) =
        draw.pick(&[("f32", DType::F32), ("f32", DType::F32), ("f64", DType::F64), ("bf16", DType::Bf16)]);
    let (batch, queries, keys) = (1 + draw.below(3), 1 + draw.below(70), 1 + draw.below(70));
    let (groups, heads, width) = (1 + draw.below(3), 1 + draw.below(3), 1 + draw.below(20));
    let keys = if draw.chance(50) { queries } else { keys };
    let shapes = [[batch, queries, groups * heads, width], [batch, keys, groups, width], [batch, keys, groups, width]];
    let [q, k, v] = [0, 1, 2].map(|at| param(draw, mesh, ["q", "k", "v"][at], dtype, &shapes[at]));
    let causal = if draw.chance(50) { ", causal=true" } else { "" };
    let call = format!("attention(q, k, v{causal})");
    // Gradients of narrow floats are rounded at every step.
    let result = match sums != DType::Bf16 && draw.chance(50) {
        true => format!("grad(|q, k, v| sum(sin({call})), argnums=(0, 1, 2))(q, k, v)"),
        false => call,
    };
    ShapedProgram { text: format!("fn main({q}, {k}, {v}) {{ {result} }}\n"), sums }
}

/// A transform along any dimension, or two.
fn transform(draw: &mut Draw, mesh: &Mesh) -> ShapedProgram {
    let (dtype, sums) =
        draw.pick(&[("f32", DType::F32), ("f64", DType::F64), ("c64", DType::F32), ("c128", DType::F64)]);
    let shape = [1 + draw.below(12), size(draw), 1 + draw.below(70)];
    let is_complex = dtype.starts_with('c');
    let axis = draw.below(3);
    let name = match is_complex {
        true => draw.pick(&["fft", "ifft", "fft2"]),
        false => draw.pick(&["fft", "ifft", "rfft", "fft2", "rfft2"]),
    };
    let along = match (name.ends_with('2'), axis) {
        (true, 0) => "axes=(0, 1)".to_string(),
        (true, 1) => "axes=(0, 2)".to_string(),
        (true, _) => "axes=(-2, -1)".to_string(),
        (false, axis) => format!("axis={axis}"),
    };
    let x = param(draw, mesh, "x", dtype, &shape);
    ShapedProgram { text: format!("fn main({x}) {{\n  let y = {name}(x, {along});\n  (real(y), imag(y))\n}}\n"), sums }
}

/// The largest elements of lines, and sorted lines: with many equal ones, if they are integers.
fn selection(draw: &mut Draw, mesh: &Mesh) -> ShapedProgram {
    let (dtype, sums) =
        draw.pick(&[("f32", DType::F32), ("f64", DType::F64), ("bf16", DType::Bf16), ("i32", DType::I32)]);
    let shape = [1 + draw.below(20), 1 + draw.below(600)];
    let axis = draw.below(2);
    let x = param(draw, mesh, "x", dtype, &shape);
    let call = match draw.below(4) {
        0 => format!("sort(x, axis={axis})"),
        1 => format!("argsort(x, axis={axis})"),
        _ => format!("top_k(x, {}, axis={axis})", 1 + draw.below(shape[axis])),
    };
    ShapedProgram { text: format!("fn main({x}) {{ {call} }}\n"), sums }
}

/// Sums, maxima and minima of rows at indices, some of them out of range.
fn segments(draw: &mut Draw, mesh: &Mesh) -> ShapedProgram {
    let (dtype, sums) =
        draw.pick(&[("f32", DType::F32), ("f64", DType::F64), ("bf16", DType::Bf16), ("i32", DType::I32)]);
    let (rows, width, targets) = (1 + draw.below(500), 1 + draw.below(40), 1 + draw.below(60));
    let x = param(draw, mesh, "x", dtype, &[rows, width]);
    let i = param(draw, mesh, "i", "i32", &[rows]);
    let u = param(draw, mesh, "u", dtype, &[targets, width]);
    let index = format!("(i * 37 + 11 * arange({rows})) % {}", targets + draw.below(2));
    match draw.below(2) {
        0 => {
            let name = draw.pick(&["segment_sum", "segment_max", "segment_min"]);
            let call = format!("{name}(x, {index}, num_segments={targets})");
            // Empty segments of maxima have infinities.
            ShapedProgram { text: format!("fn main({x}, {i}) {{ {call} }}\n"), sums }
        }
        _ => {
            let text =
                format!("fn main({u}, {x}, {i}) {{\n  let mut t = u;\n  t[({index}) % {targets}] += x;\n  t\n}}\n");
            ShapedProgram { text, sums }
        }
    }
}

fn program(draw: &mut Draw) -> (ShapedProgram, Machine) {
    let mesh = Mesh::random(draw, false);
    let make = draw.pick(&[product, product, product, attention, transform, selection, segments]
        as &[fn(&mut Draw, &Mesh) -> ShapedProgram; 7]);
    let made = make(draw, &mesh);
    let machine = Machine { native_bf16: draw.chance(50), ..draw.machine() };
    (ShapedProgram { text: mesh.text() + &made.text, ..made }, machine)
}

#[test]
fn results_are_the_evaluators_for_any_number_of_workers() {
    for number in crate::numbers("SHAPE", "SHAPES", 40) {
        let (ShapedProgram { text, sums }, machine) = program(&mut Draw::new("shapes", number));
        let compilation = engine::compiled_on(machine, "shapes.spmd", &text, "", None)
            .unwrap_or_else(|failures| panic!("SHAPE={number}: {failures:?}\n{text}"));
        let inputs = engine::inputs(&compilation, &[], &spmdc_tests::root()).unwrap();
        let expected = engine::evaluated(&text, &compilation.stages[0], &inputs).unwrap();
        let loaded = Loaded::new(&compilation).unwrap();
        let [first, others @ ..] = WORKERS.map(|workers| loaded.run(&inputs, Some(workers)).unwrap().results);
        for (at, (expected, actual)) in expected.iter().zip(&first).enumerate() {
            let tolerance = if expected.dtype.is_float() { Tolerance::sum_of_ones(sums) } else { Tolerance::Exact };
            let difference = difference(expected, actual, tolerance);
            assert!(difference.is_none(), "SHAPE={number}: result {at}: {difference:?}\n{text}");
        }
        for (one, other) in others.iter().flat_map(|results| first.iter().zip(results)) {
            let difference = difference_of_bits(one, other);
            assert!(difference.is_none(), "SHAPE={number} depends on workers: {difference:?}\n{text}");
        }
    }
}
