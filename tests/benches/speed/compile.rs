//! How long compiling takes, part by part.

use std::fs;
use std::path::Path;

use spmdc_check::sources::{NoSources, SourceSet};
use spmdc_compiler::backends::DEFAULT;
use spmdc_compiler::pipeline::{Options, compile};
use spmdc_kernel::backend::{Cpu, Entry};
use spmdc_runtime::start::encode;

use crate::measure::{Clock, fastest};

/// Thirty different operations in a row.
const THIRTY: &str = "
mesh (X = 2, Y = 4);
fn main(x: f32[64@X, 128], w: f32[128, 32@Y], b: f32[32@Y], t: i32[64@X]) {
  let h = x @ w + b;
  let a = tanh(h) * 0.5 + 0.5;
  let s = a / (1 + exp(-h));
  let c = s - mean(s, axis=1, keepdims=true);
  let v = mean(square(c), axis=1, keepdims=true);
  let n = c * rsqrt(v + 1e-5);
  let m = maximum(n, 0) - minimum(n, 0) * 0.1;
  let k = where(m > 0.5, log(m + 1), sqrt(abs(m)));
  let p = softmax(k @ w.T, axis=-1);
  let l = one_hot(t % 128, 128) * p;
  (sum(l), max(p, axis=0), argmax(p, axis=1))
}";

fn perceptron(layers: usize) -> String {
    let params: Vec<String> = (0..layers).map(|i| format!("w{i}: f32[64, 64@Y], b{i}: f32[64@Y]")).collect();
    let mut text = format!("mesh (X = 2, Y = 2);\nfn main(x: f32[32@X, 64], {}) {{\n", params.join(", "));
    for i in 0..layers {
        text += &format!("  let x = tanh(x @ w{i} + b{i});\n");
    }
    text + "  x\n}\n"
}

pub fn compile_times() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let kmeans = fs::read_to_string(root.join("examples/kmeans.spmd")).expect("the example is there");
    let columns = ["kernels", "parse", "passes", "code, JIT", "code, object"];
    println!("{:<24}{}", "compile time, ms", columns.map(|column| format!("{column:>14}")).concat());
    for (name, text) in [("k-means", kmeans), ("30 operations", THIRTY.into()), ("200 layers", perceptron(200))] {
        let read = || SourceSet::load("bench.spmd", text.as_str(), &NoSources).0;
        let set = read();
        let whole = || compile(&set, &Options::default()).expect("the program is right");
        let compilation = whole();
        let program = encode(compilation.program.as_ref().expect("it was compiled")).expect("it can be encoded");
        let kernels = &compilation.kernels;
        let times = fastest(
            Clock::Wall,
            [
                &mut || drop(read()),
                &mut || drop(whole()),
                &mut || drop(DEFAULT.load(kernels).expect("there is code")),
                &mut || drop(DEFAULT.object(&program, kernels, Cpu::FLOOR, Entry::Main).expect("there is code")),
            ],
        );
        let times = times.map(|seconds| format!("{:>14.3}", seconds * 1e3)).concat();
        println!("{name:<24}{:>14}{times}", kernels.len());
    }
}
