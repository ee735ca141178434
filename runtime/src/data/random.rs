//! Random numbers, bit-identical to JAX's partitionable Threefry.
//!
//! Element `i` (in row-major order of the whole array) depends on the key and on `i` alone. So every device computes its own block,
//! and the numbers are the same on every mesh.
//!
//! ```
//! use spmdc_runtime::data::random;
//! let key = random::key(42);
//! assert_eq!(random::bits32(key, 0), 2098992034);
//! assert_eq!(random::uniform_f32(key, 0), 0.48870957);
//! ```
//!
//! The polynomials are evaluated as in XLA, with one rounding per multiplication and addition (`fma`): the last bits of the numbers
//! depend on it.

// Coefficients are written as published.
#![allow(clippy::excessive_precision)]

use crate::data::array::{BlockSource, for_each_row};
use crate::errors::trap::RunError;
pub use spmdc_abi::threefry::{Key, bits32, bits64, key, split};
use spmdc_abi::{DType, FloatFormat, Width};
use spmdc_math::xla_coefficients::*;

// A uniform number is computed by filling the mantissa of a number in [1, 2) and subtracting one.

/// The uniform number in [0, 1) of an index under a key.
#[inline(always)]
pub fn uniform_f32(key: Key, index: u64) -> f32 {
    f32::from_bits(bits32(key, index) >> 9 | 0x3f80_0000) - 1.0
}

/// The uniform number in [0, 1) of an index under a key.
#[inline(always)]
pub fn uniform_f64(key: Key, index: u64) -> f64 {
    f64::from_bits(bits64(key, index) >> 12 | 0x3ff0_0000_0000_0000) - 1.0
}

/// The bits of the uniform number in [0, 1) of an index under a key, in a float type of less than 32 bits.
#[inline(always)]
fn uniform_narrow(format: FloatFormat, key: Key, index: u64) -> u64 {
    // As many random bits as the type has, but at least as many as the mantissa; JAX draws whole bytes.
    let drawn = if format.mantissa < 8 { 8 } else { 16 };
    let mantissa = (u64::from(bits32(key, index)) & ((1 << drawn) - 1)) >> (drawn - format.mantissa);
    format.narrow(format.widen(mantissa | format.one()) - 1.0)
}

// A normal number is the inverse error function of a uniform one in (-1, 1), times the square root of 2. The lower bound is the
// number after -1; the width, rounded, is 2 in every type.

/// The normal number of mean 0 and deviation 1 of an index under a key.
#[inline(always)]
pub fn normal_f32(key: Key, index: u64) -> f32 {
    let lowest = -1.0f32.next_down();
    let u = uniform_f32(key, index).mul_add(2.0, lowest).max(lowest);
    std::f32::consts::SQRT_2 * erf_inv_f32(u)
}

/// The normal number of mean 0 and deviation 1 of an index under a key.
#[inline(always)]
pub fn normal_f64(key: Key, index: u64) -> f64 {
    let lowest = -1.0f64.next_down();
    let u = uniform_f64(key, index).mul_add(2.0, lowest).max(lowest);
    std::f64::consts::SQRT_2 * erf_inv_f64(u)
}

/// The bits of the normal number of mean 0 and deviation 1 of an index under a key, in a float type of less than 32 bits: each step
/// is computed in f32 and rounded.
#[inline(always)]
fn normal_narrow(format: FloatFormat, key: Key, index: u64) -> u64 {
    let round = |x: f32| format.widen(format.narrow(x.into())) as f32;
    let lowest = -format.widen(format.one() - 1) as f32;
    let uniform = format.widen(uniform_narrow(format, key, index)) as f32;
    let u = round(uniform * 2.0 + lowest).max(lowest);
    format.narrow((round(std::f32::consts::SQRT_2) * round(erf_inv_f32(u))).into())
}

/// For each float type of a computation the polynomials, and the functions that are made of them. The coefficients are those of the
/// language's own functions; here they are computed by plain operations on numbers, of which the compiler makes vectors.
macro_rules! functions {
    ($float:ident: $horner:ident $log1p:ident, $log:path) => {
        /// A polynomial by Horner's rule with fused steps.
        #[inline(always)]
        fn $horner<const N: usize>(x: $float, coefficients: &[f64; N]) -> $float {
            let (mut sum, mut at) = (coefficients[0] as $float, 1);
            while at < N {
                sum = x.mul_add(sum, coefficients[at] as $float);
                at += 1;
            }
            sum
        }

        /// The logarithm of `1 + x` (Cephes library, `log1p`).
        #[inline(always)]
        fn $log1p(x: $float) -> $float {
            if x.abs() >= LOG1P_RATIONAL_BELOW as $float {
                return $log(1.0 + x);
            }
            let square = x * x;
            x + square.mul_add(-0.5, (x * square) * ($horner(x, &LOG1P_ABOVE) / $horner(x, &LOG1P_BELOW)))
        }
    };
}

functions!(f32: horner_f32 log1p_f32, log_f32);
functions!(f64: horner_f64 log1p_f64, f64::ln);

/// The inverse of the error function, after M. Giles, "Approximating the erfinv function".
#[inline(always)]
fn erf_inv_f32(x: f32) -> f32 {
    let w = -log1p_f32(-x * x);
    let factor =
        if w < 5.0 { horner_f32(w - 2.5, &ERF_INV_NEAR_F32) } else { horner_f32(w.sqrt() - 3.0, &ERF_INV_FAR_F32) };
    factor * x
}

#[inline(always)]
fn erf_inv_f64(x: f64) -> f64 {
    let w = -log1p_f64(-x * x);
    let factor = if w < 6.25 {
        horner_f64(w - 3.125, &ERF_INV_NEAR)
    } else if w < 16.0 {
        horner_f64(w.sqrt() - 3.25, &ERF_INV_MIDDLE)
    } else {
        horner_f64(w.sqrt() - 5.0, &ERF_INV_FAR)
    };
    factor * x
}

/// The natural logarithm of a positive normal number (Cephes library, `logf`).
#[inline(always)]
fn log_f32(x: f32) -> f32 {
    let bits = x.to_bits();
    let mut exponent = (bits >> 23) as f32 - 126.0;
    let mantissa = f32::from_bits(bits & 0x007f_ffff | 0x3f00_0000);
    let mut t = mantissa - 1.0;
    if mantissa < 0.707_106_77 {
        exponent -= 1.0;
        t += mantissa;
    }
    let square = t * t;
    let cube = square * t;
    let (high, middle) = (horner_f32(t, &LOG_HIGH_F32), horner_f32(t, &LOG_MIDDLE_F32));
    let series = high.mul_add(cube, middle).mul_add(cube, horner_f32(t, &LOG_LOW_F32));
    let series = series.mul_add(cube, -2.12194440e-4 * exponent);
    let sum = square.mul_add(-0.5, t) + series;
    exponent.mul_add(0.693359375, sum)
}

/// A distribution of random floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// In [0, 1).
    Uniform,
    /// Mean 0, deviation 1.
    Normal,
}

/// An array of random floats whose elements are computed block by block.
pub struct RandomSource {
    /// The key of the generator.
    pub key: Key,
    /// The distribution of the elements.
    pub distribution: Distribution,
    /// A float type.
    pub dtype: DType,
    /// The size of each dimension.
    pub shape: Vec<usize>,
}

impl BlockSource for RandomSource {
    fn dtype(&self) -> DType {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn read_block(&mut self, start: &[usize], len: &[usize], out: &mut [u8]) -> Result<(), RunError> {
        if !self.dtype.is_float() {
            return Err(RunError::internal(format!("random numbers of type {} are not supported", self.dtype.name())));
        }
        let size = self.dtype.size();
        for_each_row(&self.shape, start, len, |whole, packed, count| {
            let row = &mut out[packed * size..][..count * size];
            fill(self.key, self.distribution, self.dtype, whole as u64, row);
        });
        Ok(())
    }
}

/// Fills `out` with the elements from index `first` on, with the processor's fused instructions if it has them.
fn fill(key: Key, distribution: Distribution, dtype: DType, first: u64, out: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("fma") && std::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has the features that the function was compiled for.
        return unsafe { fill_fused(key, distribution, dtype, first, out) };
    }
    fill_portable(key, distribution, dtype, first, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "fma,avx2")]
fn fill_fused(key: Key, distribution: Distribution, dtype: DType, first: u64, out: &mut [u8]) {
    fill_portable(key, distribution, dtype, first, out);
}

#[inline(always)]
fn fill_portable(key: Key, distribution: Distribution, dtype: DType, first: u64, out: &mut [u8]) {
    macro_rules! each {
        ($draw:expr) => {{
            let draw = $draw;
            for (element, index) in out.chunks_exact_mut(dtype.size()).zip(first..) {
                element.copy_from_slice(&draw(key, index).to_ne_bytes());
            }
        }};
    }
    let Some(format) = dtype.format() else { return out.fill(0) };
    match (distribution, dtype.width()) {
        (Distribution::Uniform, Width::W8) => each!(|key, index| uniform_narrow(format, key, index) as u8),
        (Distribution::Uniform, Width::W16) => each!(|key, index| uniform_narrow(format, key, index) as u16),
        (Distribution::Uniform, Width::W32) => each!(uniform_f32),
        (Distribution::Uniform, Width::W64) => each!(uniform_f64),
        (Distribution::Normal, Width::W8) => each!(|key, index| normal_narrow(format, key, index) as u8),
        (Distribution::Normal, Width::W16) => each!(|key, index| normal_narrow(format, key, index) as u16),
        (Distribution::Normal, Width::W32) => each!(normal_f32),
        (Distribution::Normal, Width::W64) => each!(normal_f64),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn draw(distribution: Distribution, dtype: DType, start: usize, count: usize) -> Vec<u8> {
        let mut source = RandomSource { key: key(42), distribution, dtype, shape: vec![50_000] };
        let mut out = vec![0; count * dtype.size()];
        source.read_block(&[start], &[count], &mut out).unwrap();
        out
    }

    /// The 64-bit FNV-1a hashes of `jax.random.uniform(key(42), (50_000,), dtype)` and `normal`, made with JAX 0.10.2.
    #[test]
    fn many_numbers_are_those_of_jax() {
        let expected = [
            (Distribution::Uniform, DType::F8e4m3, 0xf1a84246725872d9),
            (Distribution::Uniform, DType::F8e5m2, 0x017cd63ad5eadfaf),
            (Distribution::Uniform, DType::F16, 0x567ab73ed44a839e),
            (Distribution::Uniform, DType::Bf16, 0x591343e9697380e2),
            (Distribution::Uniform, DType::F32, 0x2c463dce0d0669d7),
            (Distribution::Uniform, DType::F64, 0x21cc6d5bcb362e74),
            (Distribution::Normal, DType::F8e4m3, 0x09183edfa486aed2),
            (Distribution::Normal, DType::F8e5m2, 0xcc14dc443c19a65f),
            (Distribution::Normal, DType::F16, 0xf8a964e655731ab0),
            (Distribution::Normal, DType::Bf16, 0xe5bf67db3eb612fe),
            (Distribution::Normal, DType::F32, 0x1e20e36104656db4),
            (Distribution::Normal, DType::F64, 0x9324795c10ebe3f5),
        ];
        for (distribution, dtype, hash) in expected {
            let bytes = draw(distribution, dtype, 0, 50_000);
            let ours = bytes
                .iter()
                .fold(0xcbf2_9ce4_8422_2325u64, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
            assert_eq!(ours, hash, "{distribution:?} {dtype:?}");
        }
    }

    #[test]
    fn a_few_numbers_are_those_of_jax() {
        let uniform: Vec<f32> = (0..4).map(|i| uniform_f32(key(42), i)).collect();
        assert_eq!(uniform, [0.48870957, 0.6797972, 0.6162715, 0.5610161]);
        let normal: Vec<u32> = (0..4).map(|i| normal_f32(key(42), i).to_bits()).collect();
        assert_eq!(normal, [0xbce7df15, 0x3eef2be8, 0x3e976661, 0x3e1d3b24]);
        assert_eq!(FloatFormat::BF16.widen(uniform_narrow(FloatFormat::BF16, key(42), 3)), 0.8359375);
    }

    #[test]
    fn a_block_is_the_same_as_that_part_of_the_whole() {
        for distribution in [Distribution::Uniform, Distribution::Normal] {
            let whole = draw(distribution, DType::F64, 0, 100);
            assert_eq!(draw(distribution, DType::F64, 37, 5), whole[37 * 8..42 * 8]);
        }
    }
}
