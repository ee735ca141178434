//! Random numbers: a million of each sampler are those of JAX, on several meshes, and samples have their distributions.

use spmdc_abi::threefry;
use spmdc_runtime::data::array::HostArray;
use spmdc_tests::{engine, root};
use std::fs;

/// Meshes of a million numbers: blocks of any size, and any order of the workers.
const MESHES: [&str; 2] = ["", "3x2"];

/// The lines of a file of `tests/golden`: a call, and what follows the last ` = `.
fn lines(name: &str) -> Vec<(String, String)> {
    let text = fs::read_to_string(root().join("tests/golden").join(name)).unwrap();
    let line = |line: &str| line.rsplit_once(" = ").map(|(call, rest)| (call.to_string(), rest.to_string()));
    text.lines().map(|text| line(text).unwrap()).collect()
}

fn drawn(call: &str, mesh: &str) -> HostArray {
    let text = format!("fn main() {{ {call} }}\n");
    let compilation =
        engine::compiled("draws.spmd", &text, mesh, None).unwrap_or_else(|failures| panic!("{call}: {failures:?}"));
    engine::run(&compilation, &[], None).unwrap_or_else(|failure| panic!("{call}: {failure:?}")).results.remove(0)
}

/// The 64-bit FNV-1a hash.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[test]
fn a_million_numbers_of_each_sampler_are_those_of_jax() {
    let mut wrong = Vec::new();
    for (call, expected) in lines("draws.txt") {
        for mesh in MESHES {
            let found = format!("{:#018x}", hash(&drawn(&call, mesh).bytes));
            if found != expected {
                wrong.push(format!("{call} on `{mesh}`: {found}, not {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn numbers(array: &HostArray) -> Vec<f64> {
    let elements = array.bytes.chunks_exact(array.dtype.size());
    elements
        .map(|bytes| {
            let bits = bytes.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte));
            if array.dtype.is_float() { array.dtype.widen(bits) } else { f64::from(bits as u32 as i32) }
        })
        .collect()
}

/// By the statistic of Kolmogorov and Smirnov, at the given points: in samples of the distribution it exceeds 2 / sqrt(n) once in a
/// thousand times.
#[test]
fn samples_have_their_distributions() {
    let mut wrong = Vec::new();
    for (call, points) in lines("distributions.txt") {
        let mut sample = numbers(&drawn(&call, "3x2"));
        assert!(sample.iter().all(|number| number.is_finite()), "{call}");
        sample.sort_unstable_by(f64::total_cmp);
        let count = sample.len() as f64;
        let distance = |point: &str| {
            let (x, p) = point.split_once(':').unwrap();
            let (x, p): (f64, f64) = (x.parse().unwrap(), p.parse().unwrap());
            // Samples are single precision.
            let below = sample.partition_point(|&number| number <= x + 1e-6 * x.abs()) as f64;
            (below / count - p).abs()
        };
        let largest = points.split(' ').map(distance).fold(0.0, f64::max);
        if largest > 2.0 / count.sqrt() {
            wrong.push(format!("{call}: {largest} apart"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Arrays of more than 2^32 elements count them by both words of the counter; what is drawn of them is a few numbers.
#[test]
fn indices_beyond_32_bits_have_bits_of_their_own() {
    let found = drawn("bits(key(42), u32[70000, 70000])[69999, 69996:]", "3x2");
    let last: u64 = 70_000 * 70_000;
    let expected = (last - 4..last).flat_map(|index| threefry::bits32(threefry::key(42), index).to_le_bytes());
    assert_eq!(found.bytes, expected.collect::<Vec<u8>>());
}
