//! The mathematical functions of the language, each written once.
//!
//! A function is a straight line of exactly defined operations on bundles of lanes ([`Lanes`]). The reference evaluator
//! runs it on one lane ([`SingleLane`]); a code generator implements the same trait and records instructions instead; both
//! give the same bits. `docs/math.md` has the measured errors: at most 1 ULP in `f32` and 2 ULP in `f64`, subnormals,
//! infinities, NaN and signed zeros as in C99's annex F.
//!
//! ```
//! use spmdc_math::{MathFn, eval_f32};
//! assert_eq!(eval_f32(MathFn::Exp, 0.0), 1.0);
//! assert_eq!(eval_f32(MathFn::Log, -0.0), f32::NEG_INFINITY);
//! ```
//!
//! A function that needs to know the widths is written against the traits of `value`; one family is one file.

#![warn(missing_docs)]

#[cfg(test)]
mod accuracy;
mod erf;
mod exp;
mod hyperbolic;
mod inverse_trig;
mod lanes;
mod log;
mod logaddexp;
mod pair;
mod pow;
mod roots;
mod scalar;
mod trig;
mod value;

use std::cell::RefCell;

pub use lanes::Lanes;
pub use scalar::SingleLane;
use value::{Real, Value32, Value64};

/// Declares an enum of functions with their names in the language.
macro_rules! functions {
    ($(#[$doc:meta])* $name:ident { $($variant:ident $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $(#[doc = concat!("`", $text, "`")] $variant),*
        }

        impl $name {
            /// Every function, in order.
            pub const ALL: &[$name] = &[$($name::$variant),*];

            /// The name in the language.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $text),* }
            }

            /// The function with this name.
            pub fn from_name(name: &str) -> Option<$name> {
                match name { $($text => Some($name::$variant),)* _ => None }
            }
        }
    };
}

functions! {
    /// A function of one number.
    MathFn {
        Sqrt "sqrt", Rsqrt "rsqrt", Cbrt "cbrt",
        Exp "exp", Exp2 "exp2", Expm1 "expm1",
        Log "log", Log2 "log2", Log10 "log10", Log1p "log1p",
        Sin "sin", Cos "cos", Tan "tan",
        Asin "asin", Acos "acos", Atan "atan",
        Sinh "sinh", Cosh "cosh", Tanh "tanh",
        Asinh "asinh", Acosh "acosh", Atanh "atanh",
        Erf "erf", Erfc "erfc", ErfInv "erf_inv",
        Floor "floor", Ceil "ceil", Round "round", Trunc "trunc",
    }
}

functions! {
    /// A function of two numbers.
    MathFn2 { Pow "pow", Atan2 "atan2", Hypot "hypot", Logaddexp "logaddexp" }
}

/// Parts of functions that only unusual arguments reach, kept apart so that a code generator can jump around them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rare {
    /// `sin` of an argument too large for the usual reduction.
    Sin,
    /// `cos` of such an argument.
    Cos,
    /// `tan` of such an argument.
    Tan,
}

/// `f(x)` in single precision.
pub fn unary_f32<L: Lanes>(l: &mut L, f: MathFn, x: L::F32) -> L::F32 {
    let builder = RefCell::new(l);
    let x = Value32::new(&builder, x);
    let y = match f {
        MathFn::Sqrt => x.sqrt(),
        MathFn::Rsqrt => roots::rsqrt(x),
        MathFn::Cbrt => roots::cbrt_f32(x),
        MathFn::Exp => exp::exp_f32(x),
        MathFn::Exp2 => exp::exp2_f32(x),
        MathFn::Expm1 => exp::expm1_f32(x),
        MathFn::Log => log::log_f32(x),
        MathFn::Log2 => log::log2_f32(x),
        MathFn::Log10 => log::log10_f32(x),
        MathFn::Log1p => log::log1p_f32(x),
        MathFn::Sin => trig::sin_f32(x),
        MathFn::Cos => trig::cos_f32(x),
        MathFn::Tan => trig::tan_f32(x),
        MathFn::Asin => inverse_trig::asin_f32(x),
        MathFn::Acos => inverse_trig::acos_f32(x),
        MathFn::Atan => inverse_trig::atan_f32(x),
        MathFn::Sinh => hyperbolic::sinh_f32(x),
        MathFn::Cosh => hyperbolic::cosh_f32(x),
        MathFn::Tanh => hyperbolic::tanh_f32(x),
        MathFn::Asinh => hyperbolic::asinh_f32(x),
        MathFn::Acosh => hyperbolic::acosh_f32(x),
        MathFn::Atanh => hyperbolic::atanh_f32(x),
        MathFn::Erf => erf::erf_f32(x),
        MathFn::Erfc => erf::erfc_f32(x),
        MathFn::ErfInv => erf::erf_inv_f32(x),
        MathFn::Floor => x.floor(),
        MathFn::Ceil => x.ceil(),
        MathFn::Round => x.nearest(),
        MathFn::Trunc => x.trunc(),
    };
    y.raw
}

/// `f(x)` in double precision.
pub fn unary_f64<L: Lanes>(l: &mut L, f: MathFn, x: L::F64) -> L::F64 {
    let builder = RefCell::new(l);
    let x = Value64::new(&builder, x);
    let y = match f {
        MathFn::Sqrt => x.sqrt(),
        MathFn::Rsqrt => roots::rsqrt(x),
        MathFn::Cbrt => roots::cbrt_f64(x),
        MathFn::Exp => exp::exp_f64(x),
        MathFn::Exp2 => exp::exp2_f64(x),
        MathFn::Expm1 => exp::expm1_f64(x),
        MathFn::Log => log::log_f64(x),
        MathFn::Log2 => log::log2_f64(x),
        MathFn::Log10 => log::log10_f64(x),
        MathFn::Log1p => log::log1p_f64(x),
        MathFn::Sin => trig::sin_f64(x),
        MathFn::Cos => trig::cos_f64(x),
        MathFn::Tan => trig::tan_f64(x),
        MathFn::Asin => inverse_trig::asin_f64(x),
        MathFn::Acos => inverse_trig::acos_f64(x),
        MathFn::Atan => inverse_trig::atan_f64(x),
        MathFn::Sinh => hyperbolic::sinh_f64(x),
        MathFn::Cosh => hyperbolic::cosh_f64(x),
        MathFn::Tanh => hyperbolic::tanh_f64(x),
        MathFn::Asinh => hyperbolic::asinh_f64(x),
        MathFn::Acosh => hyperbolic::acosh_f64(x),
        MathFn::Atanh => hyperbolic::atanh_f64(x),
        MathFn::Erf => erf::erf_f64(x),
        MathFn::Erfc => erf::erfc_f64(x),
        MathFn::ErfInv => erf::erf_inv_f64(x),
        MathFn::Floor => x.floor(),
        MathFn::Ceil => x.ceil(),
        MathFn::Round => x.nearest(),
        MathFn::Trunc => x.trunc(),
    };
    y.raw
}

/// `f(x, y)` in single precision.
pub fn binary_f32<L: Lanes>(l: &mut L, f: MathFn2, x: L::F32, y: L::F32) -> L::F32 {
    let builder = RefCell::new(l);
    let (x, y) = (Value32::new(&builder, x), Value32::new(&builder, y));
    let z = match f {
        MathFn2::Pow => pow::pow_f32(x, y),
        MathFn2::Atan2 => inverse_trig::atan2_f32(x, y),
        MathFn2::Hypot => roots::hypot_f32(x, y),
        MathFn2::Logaddexp => logaddexp::logaddexp_f32(x, y),
    };
    z.raw
}

/// `f(x, y)` in double precision.
pub fn binary_f64<L: Lanes>(l: &mut L, f: MathFn2, x: L::F64, y: L::F64) -> L::F64 {
    let builder = RefCell::new(l);
    let (x, y) = (Value64::new(&builder, x), Value64::new(&builder, y));
    let z = match f {
        MathFn2::Pow => pow::pow_f64(x, y),
        MathFn2::Atan2 => inverse_trig::atan2_f64(x, y),
        MathFn2::Hypot => roots::hypot_f64(x, y),
        MathFn2::Logaddexp => logaddexp::logaddexp_f64(x, y),
    };
    z.raw
}

/// The rare part of a function in single precision; right for the arguments it was split off for.
pub fn rare_f32<L: Lanes>(l: &mut L, rare: Rare, x: L::F32) -> L::F32 {
    let builder = RefCell::new(l);
    let x = Value32::new(&builder, x);
    trig::rare_f32(rare, x).raw
}

/// The rare part of a function in double precision; right for the arguments it was split off for.
pub fn rare_f64<L: Lanes>(l: &mut L, rare: Rare, x: L::F64) -> L::F64 {
    let builder = RefCell::new(l);
    let x = Value64::new(&builder, x);
    trig::rare_f64(rare, x).raw
}

/// `f(x)`, on one number.
pub fn eval_f32(f: MathFn, x: f32) -> f32 {
    unary_f32(&mut SingleLane, f, x)
}

/// `f(x)`, on one number.
pub fn eval_f64(f: MathFn, x: f64) -> f64 {
    unary_f64(&mut SingleLane, f, x)
}

/// `f(x, y)`, on one pair of numbers.
pub fn eval2_f32(f: MathFn2, x: f32, y: f32) -> f32 {
    binary_f32(&mut SingleLane, f, x, y)
}

/// `f(x, y)`, on one pair of numbers.
pub fn eval2_f64(f: MathFn2, x: f64, y: f64) -> f64 {
    binary_f64(&mut SingleLane, f, x, y)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_language() {
        for &f in MathFn::ALL {
            assert_eq!(MathFn::from_name(f.name()), Some(f));
        }
        assert_eq!(MathFn2::from_name("atan2"), Some(MathFn2::Atan2));
    }
}
