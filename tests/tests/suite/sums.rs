//! Products that are summed over devices: the bits are those of separate products and a reduction, for any number of workers and in several
//! processes.
//!
//! `SUMS=1000` tries more, `SUM=17` one of them.

use spmdc_tests::compare::{difference_of_bits, numbers};
use spmdc_tests::engine::{self, Loaded};
use spmdc_tests::random::Draw;

/// Numbers of workers: with the last one, every device has its own, so that products come before the reduction.
const WORKERS: [usize; 4] = [1, 2, 3, 24];

/// A gradient of weights, whose last result is its error relative to a sum in f64.
fn program(draw: &mut Draw) -> String {
    let dtype = draw.pick(&["f32", "f32", "f64"]);
    let (m, n) = (230 + draw.below(100), 290 + draw.below(100));
    let (x, y) = (2 + draw.below(10), 1 + draw.below(2));
    // The last blocks are shorter than the others, or empty.
    let most = draw.pick(&[20, 20 * x, 100 * x]);
    let rows = 150 + draw.below(most);
    let batch = draw.pick(&["", "", "2, "]);
    let (left, right) = if draw.chance(50) { ("x", "d") } else { ("tanh(x)", "d * 0.5") };
    let product = format!("einsum(\"{0}ki,{0}kj->{0}ij\", {left}, {right})", if batch.is_empty() { "" } else { "b" });
    let split = draw.pick(&["", "@Y"]);
    let wide = product.replace(left, &format!("f64({left})")).replace(right, &format!("f64({right})"));
    format!(
        "mesh (X = {x}, Y = {y});\nfn main(x: {dtype}[{batch}{rows}@X, {m}], d: {dtype}[{batch}{rows}@X, {n}{split}]) {{\n  \
         let g: {dtype}[{batch}{m}, {n}{split}] = {product};\n  (g, max(abs(f64(g) - {wide})) / {rows}.0)\n}}\n"
    )
}

#[test]
fn sums_of_products_have_the_bits_of_products_and_a_reduction() {
    for number in crate::numbers("SUM", "SUMS", 12) {
        let text = program(&mut Draw::new("sums", number));
        let compilation =
            engine::compiled_quickly("sums.spmd", &text, "").unwrap_or_else(|failures| panic!("{text}{failures:?}"));
        let has_sum = |program: &spmdc_abi::Program| format!("{:?}", program.body).contains("product: Some");
        assert!(compilation.program.as_ref().is_some_and(has_sum), "SUM={number} has no sum of products:\n{text}");
        let inputs = engine::inputs(&compilation, &[], &spmdc_tests::root()).unwrap();
        let loaded = Loaded::new(&compilation).unwrap();
        let expected = loaded.run(&inputs, Some(WORKERS[0])).unwrap().results;
        let error = numbers(&expected[1])[0];
        let most = if text.contains("f64[") { 1e-14 } else { 1e-5 };
        assert!(error <= most, "SUM={number} has an error of {error}:\n{text}");
        let devices: usize =
            compilation.program.iter().flat_map(|program| &program.mesh).map(|axis| axis.size).product();
        let of_workers = WORKERS[1..].iter().map(|&workers| loaded.run(&inputs, Some(workers)).unwrap().results);
        let in_processes = devices
            .is_multiple_of(2)
            .then(|| loaded.run_in_processes(&inputs, (2, &engine::options(None))).unwrap().results);
        for results in of_workers.chain(in_processes) {
            for (one, other) in expected.iter().zip(&results) {
                let difference = difference_of_bits(one, other);
                assert!(difference.is_none(), "SUM={number}: {difference:?}\n{text}");
            }
        }
    }
}
