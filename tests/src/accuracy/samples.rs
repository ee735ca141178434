//! Arguments for functions that have too many to try them all.
//!
//! Every sample depends on its number only, so that a sweep can be repeated and divided. Some are spread over all numbers, and some over
//! the interval where the function is interesting. Others are near the points where it, or its computation, changes: limits of the range,
//! zeros, and points where one formula replaces another.

use spmdc_abi::DType;
use spmdc_kernel::number;
use spmdc_math::{Description, MathFn, MathFn2};
use std::f64::consts::{FRAC_PI_2, SQRT_2};

/// A random number that depends on `i` and `stream` only.
pub fn random(i: u64, stream: u64) -> u64 {
    let mut z = i.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(stream.wrapping_mul(0xd1b5_4a32_d192_ed03));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// From 0 to 1.
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 * (0.5 / (1u64 << 52) as f64)
}

/// The nearest number of a type.
pub fn rounded(dtype: DType, x: f64) -> f64 {
    number::to_float(dtype, number::from_float(dtype, x))
}

/// The number of a type with these bits.
pub fn of_bits(dtype: DType, bits: u64) -> f64 {
    number::to_float(dtype, bits)
}

/// A number with any bits of the type.
fn any(dtype: DType, bits: u64) -> f64 {
    number::to_float(dtype, bits >> (64 - 8 * dtype.size()))
}

/// `x` times two to a power that may be out of range.
fn scaled(x: f64, power: i32) -> f64 {
    x * 2.0_f64.powi(power / 2) * 2.0_f64.powi(power - power / 2)
}

/// The exponents of the smallest subnormal number of a type and of its largest number.
pub fn exponents(dtype: DType) -> (i32, i32) {
    let format = dtype.format().expect("a float type");
    let smallest = 1 - format.bias() as i32 - format.mantissa as i32;
    (smallest, dtype.widen(format.largest()).log2().floor().min(1023.0) as i32)
}

/// A number so close to `x` that they share a random number of digits.
fn near(x: f64, bits: u64) -> f64 {
    let distance = scaled(2.0 * unit(bits << 8) - 1.0, -((bits % 54) as i32));
    x + x * distance
}

/// The i-th argument for a function of one number.
pub fn one(f: MathFn, dtype: DType, i: u64) -> f64 {
    let (low, high) = f.description().interval;
    let (kind, bits) = (random(i, 0), random(i, 1));
    if matches!(f, MathFn::Sin | MathFn::Cos | MathFn::Tan) && kind >> 32 & 7 == 0 {
        // Next to a multiple of a right angle, where the reduction is hardest.
        let multiple = (unit(bits) * scaled(1.0, (kind >> 40) as i32 % 40)).round();
        return rounded(dtype, multiple * FRAC_PI_2);
    }
    let sign = if bits & 1 == 1 { -1.0 } else { 1.0 };
    let x = match kind % 16 {
        0 | 1 => any(dtype, bits),
        2 => sign * scaled(unit(bits), exponents(dtype).0 + (kind >> 8) as i32 % 64),
        3 | 4 => sign * scaled(1.0 + unit(bits), (kind >> 8) as i32 % 72 - 60),
        5..=8 => {
            let edges = f.description().edges;
            near(edges[(kind >> 8) as usize % edges.len()], bits)
        }
        _ => low + (high - low) * unit(bits),
    };
    rounded(dtype, x)
}

/// The i-th pair of arguments.
pub fn two(f: MathFn2, dtype: DType, i: u64) -> (f64, f64) {
    let (kind, a, b) = (random(i, 0), random(i, 1), random(i, 2));
    let (smallest, largest) = exponents(dtype);
    let signed = |x: f64, bits: u64| if bits & 1 == 1 { -x } else { x };
    let (x, y) = match kind % 16 {
        0 => (any(dtype, a), any(dtype, b)),
        1 => {
            let specials = specials();
            let special = specials[(kind >> 8) as usize % specials.len()];
            if kind >> 7 & 1 == 0 { (special, any(dtype, b)) } else { (any(dtype, a), special) }
        }
        // Both at one end of the range.
        2 => {
            let span = (kind >> 8) as i32 % 64;
            let power = if kind >> 7 & 1 == 0 { smallest + span } else { largest - span };
            (signed(scaled(1.0 + unit(a), power), a), signed(scaled(1.0 + unit(b), power), b))
        }
        // Any magnitudes between 2^-30 and 2^30.
        3..=5 => {
            let power = |bits: u64| (bits & 63) as i32 - 32;
            let [x, y] =
                [(a, kind >> 8), (b, kind >> 16)].map(|(bits, p)| signed(scaled(1.0 + unit(bits), power(p)), bits));
            (x, y)
        }
        _ => match f {
            MathFn2::Pow => power(dtype, kind >> 4, a, b),
            MathFn2::Logaddexp => exponentials(kind >> 4, a, b),
            // One magnitude, where both arguments matter.
            MathFn2::Atan2 | MathFn2::Hypot => {
                let x = signed(80.0 * unit(a), a);
                let ratio = [1.0, SQRT_2 - 1.0, SQRT_2 + 1.0, 2.0 * unit(kind)][(kind >> 4) as usize % 4];
                (x, signed(near(x * ratio, b), kind >> 6))
            }
        },
    };
    (rounded(dtype, x), rounded(dtype, y))
}

/// Most random powers overflow: here the exponent is chosen for the result.
fn power(dtype: DType, kind: u64, a: u64, b: u64) -> (f64, f64) {
    let (smallest, largest) = exponents(dtype);
    let base = match kind % 4 {
        0 => 3.0 * unit(a),
        1 => scaled(1.0 + unit(a), (a % 128) as i32 - 64),
        _ => near(1.0, a),
    };
    let base = rounded(dtype, base);
    let result = match kind >> 2 & 3 {
        0 => near([f64::from(smallest - 1), f64::from(largest + 1), f64::from(smallest)][(kind >> 8) as usize % 3], b),
        1 => near(1.0, b) - 1.0,
        _ => f64::from(smallest) + f64::from(largest - smallest) * unit(b),
    };
    let exponent = result / base.log2();
    // A negative base has powers with integer exponents only.
    if kind >> 4 & 3 == 0 { (-base, exponent.round()) } else { (base, exponent) }
}

/// Half of these cancel, as `exp(x) + exp(y)` is close to one.
fn exponentials(kind: u64, a: u64, b: u64) -> (f64, f64) {
    let x = 80.0 * unit(a) - 40.0;
    match kind % 4 {
        0 => (x, x + 80.0 * unit(b) - 40.0),
        1 => (x, near(x, b)),
        _ => {
            let x = -scaled(1.0 + unit(a), (kind >> 8) as i32 % 12 - 6);
            (x, near((-x.exp_m1()).ln(), b))
        }
    }
}

/// The arguments that C's annex F names, limits of the formats, and a few ordinary numbers; of either sign.
pub fn specials() -> Vec<f64> {
    let mut x = vec![0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 1e-300, 1e300, f64::INFINITY, f64::NAN];
    for dtype in [DType::F16, DType::Bf16, DType::F32, DType::F64] {
        let (smallest, largest) = exponents(dtype);
        let digits = dtype.format().expect("a float type").mantissa as i32 + 1;
        let place = scaled(1.0, 1 - digits);
        let tiny = scaled(1.0, smallest);
        let normal = scaled(1.0, smallest + digits - 1);
        x.extend([tiny, 2.0 * tiny, normal - tiny, normal, scaled(2.0 - place, largest), scaled(1.0, largest)]);
        x.extend([1.0 - place / 2.0, 1.0 + place, scaled(1.0, digits), scaled(1.0, digits) - 1.0]);
    }
    x.extend(x.clone().iter().map(|x| -x));
    x
}

/// Additional arguments for a function of one number: the special arguments, and the points where it changes with their neighbours.
pub fn specials_of(f: MathFn, dtype: DType) -> Vec<f64> {
    let (mut x, Description { interval: (low, high), edges, .. }) = (specials(), f.description());
    for &edge in edges.iter().chain([low, high]) {
        let edge = rounded(dtype, edge);
        let (mut above, mut below) = (edge, edge);
        for _ in 0..8 {
            x.extend([above, below, -above, -below]);
            (above, below) = (neighbour(dtype, above, 1), neighbour(dtype, below, -1));
        }
    }
    x.into_iter().map(|x| rounded(dtype, x)).collect()
}

/// Pairs that a function of two numbers once was too far off for.
pub fn hard_pairs_of(f: MathFn2) -> &'static [(f64, f64)] {
    match f {
        // The logarithm is larger than the result, though neither is much smaller than the larger argument.
        MathFn2::Logaddexp => &[(-3.737740625725553e1, -3.433233678595235e-17), (-6.3457745e-1, -7.553619e-1)],
        MathFn2::Pow | MathFn2::Atan2 | MathFn2::Hypot => &[],
    }
}

/// The number whose bits are one more or less.
fn neighbour(dtype: DType, x: f64, step: i64) -> f64 {
    let bits = number::from_float(dtype, x);
    number::to_float(dtype, bits.wrapping_add_signed(step) & (u64::MAX >> (64 - 8 * dtype.size())))
}
