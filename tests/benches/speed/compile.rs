//! How long compiling takes, part by part.

use std::fs;
use std::path::Path;
use std::time::Instant;

use spmdc_check::sources::{NoSources, SourceSet};
use spmdc_compiler::backends::DEFAULT;
use spmdc_compiler::pipeline::{Options, compile};
use spmdc_compiler::report::named::named_values;
use spmdc_kernel::backend::{Cpu, Entry};
use spmdc_runtime::run::start::encode;

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

/// Statements of which each needs the one before.
fn dependent(count: usize) -> String {
    let lines: String = (0..count).map(|i| format!("  let v{} = v{i} + 1.5;\n", i + 1)).collect();
    format!("fn main(x: f32[4]) {{\n  let v0 = x;\n{lines}  v{count}\n}}\n")
}

/// The gradient of as many layers by their common weights.
fn gradient(layers: usize) -> String {
    let lines: String = (0..layers).map(|i| format!("  let h{} = tanh(h{i} @ w);\n", i + 1)).collect();
    format!(
        "fn f(x, w) {{\n  let h0 = x;\n{lines}  sum(h{layers})\n}}\n\
         fn main(x: f32[4, 4], w: f32[4, 4]) {{ grad(f, argnums=1)(x, w) }}\n"
    )
}

/// The text of a program with so many statements or layers.
type LongProgram = fn(usize) -> String;

/// The time of a statement in a long program from the text to the end of `check`, and to its code: as long as one of a short program.
pub fn long_programs() {
    let programs: [(&str, LongProgram, [usize; 4]); 2] = [
        ("dependent statements", dependent, [10_000, 20_000, 40_000, 80_000]),
        ("gradient of layers", gradient, [400, 800, 1600, 3200]),
    ];
    for (name, program, counts) in programs {
        println!("\n{name:<24}{:>20}{:>20}", "us each, check", "us each, code");
        for count in counts {
            let text = program(count);
            let start = Instant::now();
            let (set, _) = SourceSet::load("bench.spmd", &text, &NoSources);
            let compilation = compile(&set, &Options::default()).expect("the program is right");
            let named = compilation.stages.last().map_or(0, |module| named_values(&module.func).len());
            let checked = start.elapsed();
            drop(DEFAULT.load(&compilation.kernels).expect("there is code"));
            let each =
                [checked, start.elapsed()].map(|time| format!("{:>20.1}", time.as_secs_f64() * 1e6 / count as f64));
            println!("{:<24}{}", format!("{count}, {named} named"), each.concat());
        }
    }
}
