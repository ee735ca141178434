//! Programs that are bound by memory where their arithmetic is not: beside plain loops with the same traffic.

use crate::limits::{Streams, Traffic};
use crate::measure::{Clock, Loaded, fastest, line, title};

/// A program of one result, and the plain loop that moves as many bytes.
struct Case {
    name: &'static str,
    /// With `N` for the number of elements.
    text: &'static str,
    traffic: Traffic,
    /// Bytes of each array of the loop, for each of the `N` elements.
    bytes: f64,
}

const fn case(name: &'static str, text: &'static str, traffic: Traffic, bytes: f64) -> Case {
    Case { name, text, traffic, bytes }
}

/// Measures cases in nanoseconds for each element.
fn table(what: &str, cases: &[Case], sizes: &[(usize, &str)], all_cores: bool) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    for &(n, place) in sizes {
        for threads in if all_cores && cores > 1 { vec![1, cores] } else { vec![1] } {
            let with = if threads == 1 { String::from("1 thread") } else { format!("{threads} threads") };
            title(&format!("{what}, {n} elements ({place}), {with}"), "ns/element");
            for case in cases {
                let side = (n as f64).sqrt() as usize;
                let constants = format!("const N = {n};\nconst S = {side};\n");
                let mut ours = Loaded::new(&(constants + case.text), Some(threads));
                let mut streams = Streams::new(case.traffic, (n as f64 * case.bytes) as usize, threads);
                let [ours, limit] = fastest(Clock::of(threads), [&mut || ours.run(), &mut || streams.walk()]);
                let each = |seconds: f64| seconds * 1e9 / n as f64;
                line(case.name, each(ours), each(limit), case.traffic.name(), ours / limit);
            }
        }
    }
}

/// In the second cache, and in memory.
const CACHE: (usize, &str) = (32 << 10, "cache");
const MEMORY: (usize, &str) = (16 << 20, "memory");

pub fn elementwise() {
    use Traffic::{Scale, Triad};
    let cases = [
        case("2*x", "fn main(x: f32[N]) { 2 * x }", Scale, 4.0),
        case("a*x+b", "fn main(a: f32, x: f32[N], b: f32) { a * x + b }", Scale, 4.0),
        case("x+y", "fn main(x: f32[N], y: f32[N]) { x + y }", Triad, 4.0),
        case("relu(x)", "fn main(x: f32[N]) { relu(x) }", Scale, 4.0),
        case("2*sin(x)+1", "fn main(x: f32[N]) { 2*sin(x)+1 }", Scale, 4.0),
        case("exp(-x)", "fn main(x: f32[N]) { exp(-x) }", Scale, 4.0),
        case("tanh(x)", "fn main(x: f32[N]) { tanh(x) }", Scale, 4.0),
        case("gelu(x)", "fn main(x: f32[N]) { gelu(x) }", Scale, 4.0),
        case("2*x+1, f64", "fn main(x: f64[N]) { 2 * x + 1 }", Scale, 8.0),
        case("2*x+1, bf16", "fn main(x: bf16[N]) { 2 * x + 1 }", Scale, 2.0),
        case("2*x+1, f16", "fn main(x: f16[N]) { 2 * x + 1 }", Scale, 2.0),
        case("2*x+1, i32", "fn main(x: i32[N]) { 2 * x + 1 }", Scale, 4.0),
        case("f32(x) / 255, u8", "fn main(x: u8[N]) { f32(x) / 255 }", Scale, 2.5),
    ];
    table("elementwise", &cases, &[CACHE], false);
    table("elementwise", &cases, &[MEMORY], true);
}

pub fn functions() {
    use Traffic::{Scale, Triad};
    let cases = [
        case("exp(x)", "fn main(x: f32[N]) { exp(x) }", Scale, 4.0),
        case("sin(x)", "fn main(x: f32[N]) { sin(x) }", Scale, 4.0),
        case("log(x)", "fn main(x: f32[N]) { log(x) }", Scale, 4.0),
        case("erf(x)", "fn main(x: f32[N]) { erf(x) }", Scale, 4.0),
        case("tanh(x)", "fn main(x: f32[N]) { tanh(x) }", Scale, 4.0),
        case("sigmoid(x)", "fn main(x: f32[N]) { sigmoid(x) }", Scale, 4.0),
        case("pow(x, y)", "fn main(x: f32[N], y: f32[N]) { pow(x, y) }", Triad, 4.0),
        case("f16(x)", "fn main(x: f32[N]) { f16(x) }", Scale, 3.0),
        case("f32(x), f16", "fn main(x: f16[N]) { f32(x) }", Scale, 3.0),
        case("bf16(x)", "fn main(x: f32[N]) { bf16(x) }", Scale, 3.0),
        case("i32(x)", "fn main(x: f32[N]) { i32(x) }", Scale, 4.0),
        case("f64(x)", "fn main(x: f32[N]) { f64(x) }", Scale, 6.0),
    ];
    table("functions", &cases, &[CACHE], false);
}

pub fn moves() {
    use Traffic::Scale;
    let cases = [
        case("x + row", "fn main(x: f32[S, S], r: f32[S]) { x + r }", Scale, 4.0),
        case("x + column", "fn main(x: f32[S, S], c: f32[S]) { x + c[:, None] }", Scale, 4.0),
        case("row * column", "fn main(r: f32[S], c: f32[S]) { c[:, None] * r }", Scale, 2.0),
        case("x.T", "fn main(x: f32[S, S]) { x.T }", Scale, 4.0),
        case("x + y.T", "fn main(x: f32[S, S], y: f32[S, S]) { x + y.T }", Traffic::Triad, 4.0),
        case("x.T, bf16", "fn main(x: bf16[S, S]) { x.T }", Scale, 2.0),
        case("x[:, ::2]", "fn main(x: f32[S, S]) { x[:, ::2] }", Scale, 3.0),
        case("x[::-1]", "fn main(x: f32[N]) { flip(x, axis=0) }", Scale, 4.0),
        case(
            "concatenate([x, y], axis=1)",
            "fn main(x: f32[S, S//2], y: f32[S, S//2]) { concatenate([x, y], axis=1) }",
            Scale,
            4.0,
        ),
        case("x[1:, :] - x[:-1, :]", "fn main(x: f32[S, S]) { x[1:, :] - x[:-1, :] }", Scale, 4.0),
        case("pad(x, 1)", "fn main(x: f32[S, S]) { pad(x, [(1, 1), (1, 1)]) }", Scale, 4.0),
        case("roll(x, 1, axis=1)", "fn main(x: f32[S, S]) { roll(x, 1, axis=1) }", Scale, 4.0),
    ];
    table("moves", &cases, &[(256 << 8, "cache"), MEMORY], false);
}

pub fn reductions() {
    use Traffic::{Read, Triad};
    let cases = [
        case("sum(x)", "fn main(x: f32[N]) { sum(x) }", Read, 4.0),
        case("sum(x*y)", "fn main(x: f32[N], y: f32[N]) { sum(x * y) }", Triad, 8.0 / 3.0),
        case("max(x)", "fn main(x: f32[N]) { max(x) }", Read, 4.0),
        case("sum(x), f64", "fn main(x: f64[N]) { sum(x) }", Read, 8.0),
        case("sum(x), bf16", "fn main(x: bf16[N]) { sum(x) }", Read, 2.0),
        case("sum(x, axis=1)", "fn main(x: f32[S, S]) { sum(x, axis=1) }", Read, 4.0),
        case("sum(x, axis=0)", "fn main(x: f32[S, S]) { sum(x, axis=0) }", Read, 4.0),
        case("max(x, axis=1)", "fn main(x: f32[S, S]) { max(x, axis=1) }", Read, 4.0),
        case("max(x, axis=0)", "fn main(x: f32[S, S]) { max(x, axis=0) }", Read, 4.0),
        case("argmax(x, axis=1)", "fn main(x: f32[S, S]) { argmax(x, axis=1) }", Read, 4.0),
        case("argmax(x, axis=0)", "fn main(x: f32[S, S]) { argmax(x, axis=0) }", Read, 4.0),
        case("sum(exp(x), axis=1)", "fn main(x: f32[S, S]) { sum(exp(x), axis=1) }", Read, 4.0),
        case("variance(x, axis=1)", "fn main(x: f32[S, S]) { var(x, axis=1) }", Read, 4.0),
        case("sum(x, axis=1) of [N/8, 8]", "fn main(x: f32[N//8, 8]) { sum(x, axis=1) }", Read, 4.0),
    ];
    table("reductions", &cases, &[(256 << 8, "cache")], false);
    table("reductions", &cases, &[MEMORY], true);
}

pub fn rows() {
    use Traffic::Scale;
    let layer_norm = "fn main(x: f32[S, S], g: f32[S], b: f32[S]) {
        let centred = x - mean(x, axis=-1, keepdims=true);
        centred * rsqrt(mean(square(centred), axis=-1, keepdims=true) + 1e-5) * g + b
    }";
    let cases = [
        case("softmax(x)", "fn main(x: f32[S, S]) { softmax(x, axis=-1) }", Scale, 4.0),
        case("log_softmax(x)", "fn main(x: f32[S, S]) { log_softmax(x, axis=-1) }", Scale, 4.0),
        case("softmax(x), axis 0", "fn main(x: f32[S, S]) { softmax(x, axis=0) }", Scale, 4.0),
        case("layer norm", layer_norm, Scale, 4.0),
    ];
    table("rows", &cases, &[(256 << 8, "cache")], false);
    table("rows", &cases, &[MEMORY], true);
}
