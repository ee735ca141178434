//! Comparing arrays: integers and bools exactly, floats within a tolerance that fits how they were computed.

use spmdc_abi::{DType, Kind, Width};
use spmdc_runtime::data::array::HostArray;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// Equal values; NaN equals NaN, and zeros of either sign are equal.
    Exact,
    /// `|a - b| <= relative * max(|a|, |b|, scale)`, where the scale is the largest magnitude of the expected array
    /// times `relative` once more, or that magnitude itself for sums, whose terms may cancel.
    Relative { relative: f64, of_largest: bool },
    /// `|a - b|` is this at most.
    Within(f64),
    /// `|a - b| <= relative * max(|a|, |b|, largest, 1)`: sums whose terms are around one may cancel entirely.
    SumOfOnes { relative: f64 },
}

impl Tolerance {
    pub const ELEMENTWISE: Tolerance = Tolerance::Relative { relative: 2e-6, of_largest: false };
    pub const REDUCTION: Tolerance = Tolerance::Relative { relative: 1e-5, of_largest: true };
    /// As `REDUCTION`, in f64.
    pub const DOUBLE: Tolerance = Tolerance::Relative { relative: 1e-12, of_largest: true };

    /// The tolerances that the header of a golden program may name.
    pub const NAMED: [(&str, Tolerance); 4] = [
        ("exact", Tolerance::Exact),
        ("elementwise", Tolerance::ELEMENTWISE),
        ("reduction", Tolerance::REDUCTION),
        ("double", Tolerance::DOUBLE),
    ];

    /// The tolerance for sums of numbers around one, in another order.
    pub fn sum_of_ones(dtype: DType) -> Tolerance {
        let tolerance = Tolerance::reassociated(dtype);
        let Tolerance::Relative { relative, .. } = tolerance else { return tolerance };
        Tolerance::SumOfOnes { relative: 2.0 * relative }
    }

    /// The tolerance for an element type when sums may be computed in another order.
    pub fn reassociated(dtype: DType) -> Tolerance {
        let Some(format) = dtype.format() else { return Tolerance::Exact };
        let place = (-f64::from(format.mantissa)).exp2();
        let relative = match dtype.width() {
            Width::W64 => 1e-12,
            Width::W32 => 1e-5,
            // A few last places; of so few bits that a few places are all there is, one.
            Width::W16 => 4.0 * place,
            Width::W8 => place,
        };
        Tolerance::Relative { relative, of_largest: true }
    }
}

/// The elements as numbers; 64-bit integers beyond 2^53 are compared as bits before this.
pub fn numbers(array: &HostArray) -> Vec<f64> {
    let size = array.dtype.size();
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |word, &byte| word << 8 | u64::from(byte));
    let number = |bytes: &[u8]| {
        let bits = word(bytes);
        match (array.dtype.kind(), array.dtype.width()) {
            (Kind::Bool | Kind::Unsigned | Kind::Key, _) => bits as f64,
            (Kind::Signed, Width::W8) => f64::from(bits as i8),
            (Kind::Signed, Width::W16) => f64::from(bits as i16),
            (Kind::Signed, Width::W32) => f64::from(bits as i32),
            (Kind::Signed, Width::W64) => bits as i64 as f64,
            (Kind::Float, _) => array.dtype.widen(bits),
        }
    };
    array.bytes.chunks_exact(size).map(number).collect()
}

/// Why two arrays differ; None if they agree.
pub fn difference(expected: &HostArray, actual: &HostArray, tolerance: Tolerance) -> Option<String> {
    if (expected.dtype, &expected.shape) != (actual.dtype, &actual.shape) {
        return Some(format!(
            "expected {}{:?}, found {}{:?}",
            expected.dtype.name(),
            expected.shape,
            actual.dtype.name(),
            actual.shape
        ));
    }
    if expected.bytes == actual.bytes {
        return None;
    }
    let (want, have) = (numbers(expected), numbers(actual));
    let largest = want.iter().filter(|x| x.is_finite()).fold(0.0f64, |largest, x| largest.max(x.abs()));
    let agree = |a: f64, b: f64| {
        if a == b || (a.is_nan() && b.is_nan()) {
            return true;
        }
        // No number is within a part of infinity.
        if a.is_infinite() || b.is_infinite() {
            return false;
        }
        match tolerance {
            Tolerance::Exact => false,
            Tolerance::Relative { relative, of_largest } => {
                let scale = if of_largest { largest } else { relative * largest };
                (a - b).abs() <= relative * a.abs().max(b.abs()).max(scale)
            }
            Tolerance::Within(error) => (a - b).abs() <= error,
            Tolerance::SumOfOnes { relative } => (a - b).abs() <= relative * largest.max(1.0),
        }
    };
    let exact_words = expected.dtype.is_integer() && expected.dtype.size() == 8;
    let at = (0..want.len()).find(|&i| {
        let word = i * 8..i * 8 + 8;
        if exact_words { expected.bytes[word.clone()] != actual.bytes[word] } else { !agree(want[i], have[i]) }
    })?;
    let bad = (0..want.len()).filter(|&i| !agree(want[i], have[i])).count();
    Some(format!("element {at} of {:?}: expected {:?}, found {:?} ({bad} differ)", expected.shape, want[at], have[at]))
}

/// As [`difference`], where the sign of zero counts, too: arrays that two back ends computed.
pub fn difference_of_bits(expected: &HostArray, actual: &HostArray) -> Option<String> {
    difference(expected, actual, Tolerance::Exact).or_else(|| {
        let (want, have) = (numbers(expected), numbers(actual));
        let at = (0..want.len()).find(|&i| !want[i].is_nan() && want[i].to_bits() != have[i].to_bits())?;
        Some(format!("element {at} of {:?}: expected {:?}, found {:?}", expected.shape, want[at], have[at]))
    })
}
