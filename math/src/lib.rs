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
//! A function is written against the traits of `value`, which know the widths; one family is one file. A function of one number is a
//! type with a [`Description`] there and a line in the table of [`MathFn`]: code generation, calls, documentation and tests follow from
//! these.

#![warn(missing_docs)]

#[cfg(test)]
mod accuracy;
mod angle;
mod erf;
mod exp;
mod gamma;
mod hyperbolic;
mod inverse_trig;
mod lanes;
mod log;
mod logaddexp;
mod pair;
mod pow;
mod roots;
mod rounding;
mod scalar;
mod trig;
mod value;
mod xla;
pub mod xla_coefficients;

use std::cell::RefCell;

pub use lanes::Lanes;
pub use scalar::SingleLane;
use value::{Double, Single, Value32, Value64};

/// The properties of a function of one number, apart from its computation.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// The name in the language.
    pub name: &'static str,
    /// A call on numbers from its domain: the parameters and the body of a function of the language.
    pub example: &'static str,
    /// Whether most machines have an instruction for it.
    pub is_instruction: bool,
    /// The values at 0, -0, infinity and -infinity, as in annex F of C99 if it has the function.
    pub ends: [f64; 4],
    /// The relation between `f(-x)` and `f(x)`, if there is one.
    pub symmetry: Option<Symmetry>,
    /// The interval from which most arguments are drawn when errors are measured.
    pub interval: (f64, f64),
    /// Arguments at which the function or its computation changes.
    pub edges: &'static [f64],
    /// The function in C, the reference when errors are measured: an expression of `x`, a number of some type `T`. `F(sin)` is the C
    /// library's function for `T`, and `C(0.5)` a constant of it.
    pub reference: &'static str,
}

/// The symmetry of a function's graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symmetry {
    /// `f(-x) = f(x)`
    Even,
    /// `f(-x) = -f(x)`
    Odd,
}

/// The properties and the computation of a function of one number.
trait MathFunction {
    /// Its properties.
    const DESCRIPTION: Description;

    /// For a function whose terms cancel around some zeros: their size there and 0 elsewhere, in C as [`Description::reference`]. In
    /// double precision errors count in places of a number of this size, if the result is smaller.
    const TERMS: Option<&'static str> = None;

    /// Whether only the prelude and dumps call it: it equals another library's function, and has no error bound.
    const IS_INTERNAL: bool = false;

    /// `f(x)` in single precision.
    fn single<X: Single>(x: X) -> X;

    /// `f(x)` in double precision.
    fn double<X: Double>(x: X) -> X;
}

/// Declares the enum of the functions of one number: for each a sentence, and the type that describes and computes it.
macro_rules! functions {
    ($(#[doc = $doc:literal] $variant:ident($ty:ty),)*) => {
        /// A function of one number.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum MathFn {
            $(#[doc = $doc] $variant,)*
        }

        impl MathFn {
            /// Every function, in order.
            pub const ALL: &[MathFn] = &[$(MathFn::$variant,)*];

            /// The properties of the function.
            pub const fn description(self) -> &'static Description {
                match self { $(MathFn::$variant => &<$ty as MathFunction>::DESCRIPTION,)* }
            }

            /// The size of terms that cancel around zeros of the function, as an expression of C; None if its zeros cost no digits.
            pub const fn terms(self) -> Option<&'static str> {
                match self { $(MathFn::$variant => <$ty as MathFunction>::TERMS,)* }
            }

            /// Whether only the prelude and dumps call it, because it equals another library's function instead of being accurate.
            pub const fn is_internal(self) -> bool {
                match self { $(MathFn::$variant => <$ty as MathFunction>::IS_INTERNAL,)* }
            }

            /// One sentence on the function.
            pub const fn doc(self) -> &'static str {
                match self { $(MathFn::$variant => $doc,)* }
            }

            /// The function for C, in single precision.
            pub fn c_f32(self) -> extern "C" fn(f32) -> f32 {
                match self {
                    $(MathFn::$variant => {
                        extern "C" fn function(x: f32) -> f32 {
                            eval_f32(MathFn::$variant, x)
                        }
                        function
                    })*
                }
            }

            /// The function for C, in double precision.
            pub fn c_f64(self) -> extern "C" fn(f64) -> f64 {
                match self {
                    $(MathFn::$variant => {
                        extern "C" fn function(x: f64) -> f64 {
                            eval_f64(MathFn::$variant, x)
                        }
                        function
                    })*
                }
            }
        }

        /// `f(x)` in single precision.
        pub fn unary_f32<L: Lanes>(l: &mut L, f: MathFn, x: L::F32) -> L::F32 {
            let builder = RefCell::new(l);
            let x = Value32::new(&builder, x);
            let y = match f { $(MathFn::$variant => <$ty as MathFunction>::single(x),)* };
            y.raw
        }

        /// `f(x)` in double precision.
        pub fn unary_f64<L: Lanes>(l: &mut L, f: MathFn, x: L::F64) -> L::F64 {
            let builder = RefCell::new(l);
            let x = Value64::new(&builder, x);
            let y = match f { $(MathFn::$variant => <$ty as MathFunction>::double(x),)* };
            y.raw
        }
    };
}

functions! {
    /// The square root.
    Sqrt(roots::Sqrt),
    /// 1 / sqrt(x).
    Rsqrt(roots::Rsqrt),
    /// The cube root.
    Cbrt(roots::Cbrt),
    /// e raised to the power x.
    Exp(exp::Exp),
    /// 2 raised to the power x.
    Exp2(exp::Exp2),
    /// exp(x) - 1, accurate for x close to 0.
    Expm1(exp::Expm1),
    /// 1 / (1 + exp(-x)), without intermediate overflow.
    Sigmoid(exp::Sigmoid),
    /// The natural logarithm.
    Log(log::Log),
    /// The logarithm to base 2.
    Log2(log::Log2),
    /// The logarithm to base 10.
    Log10(log::Log10),
    /// log(1 + x), accurate for x close to 0.
    Log1p(log::Log1p),
    /// The sine of an angle in radians.
    Sin(trig::Sin),
    /// The cosine of an angle in radians.
    Cos(trig::Cos),
    /// The tangent of an angle in radians.
    Tan(trig::Tan),
    /// The angle whose sine is x.
    Asin(inverse_trig::Asin),
    /// The angle whose cosine is x.
    Acos(inverse_trig::Acos),
    /// The angle whose tangent is x.
    Atan(inverse_trig::Atan),
    /// Degrees converted to radians.
    Deg2Rad(angle::Deg2Rad),
    /// Radians converted to degrees.
    Rad2Deg(angle::Rad2Deg),
    /// The hyperbolic sine.
    Sinh(hyperbolic::Sinh),
    /// The hyperbolic cosine.
    Cosh(hyperbolic::Cosh),
    /// The hyperbolic tangent.
    Tanh(hyperbolic::Tanh),
    /// The inverse of sinh.
    Asinh(hyperbolic::Asinh),
    /// The inverse of cosh.
    Acosh(hyperbolic::Acosh),
    /// The inverse of tanh.
    Atanh(hyperbolic::Atanh),
    /// The error function.
    Erf(erf::Erf),
    /// 1 - erf(x), accurate for large x.
    Erfc(erf::Erfc),
    /// The inverse of erf.
    ErfInv(erf::ErfInv),
    /// The logarithm of the magnitude of the gamma function.
    Lgamma(gamma::Lgamma),
    /// The derivative of lgamma; NaN at its poles.
    Digamma(gamma::Digamma),
    /// The largest integer that is not above x.
    Floor(rounding::RoundDown),
    /// The smallest integer that is not below x.
    Ceil(rounding::RoundUp),
    /// The nearest integer, or the nearest number with the given number of decimals; ties round to even.
    Round(rounding::RoundToEven),
    /// The integer part, rounded towards 0.
    Trunc(rounding::RoundToZero),
    /// The natural logarithm, as XLA computes it.
    XlaLog(xla::XlaLog),
    /// log(1 + x), as XLA computes it.
    XlaLog1p(xla::XlaLog1p),
    /// The error function, as XLA computes it.
    XlaErf(xla::XlaErf),
    /// The inverse of erf, as XLA computes it.
    XlaErfInv(xla::XlaErfInv),
}

impl MathFn {
    /// The name in the language.
    pub const fn name(self) -> &'static str {
        self.description().name
    }

    /// The functions that programs can call.
    pub fn of_programs() -> impl Iterator<Item = MathFn> + Clone {
        MathFn::ALL.iter().copied().filter(|f| !f.is_internal())
    }

    /// The function of this name.
    pub fn from_name(name: &str) -> Option<MathFn> {
        MathFn::ALL.iter().copied().find(|f| f.name() == name)
    }
}

/// A function of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MathFn2 {
    /// `x` to the power of `y`.
    Pow,
    /// The angle of the point with the ordinate `x` and the abscissa `y`.
    Atan2,
    /// `sqrt(x * x + y * y)`, without overflow in between.
    Hypot,
    /// `log(exp(x) + exp(y))`, without overflow in between.
    Logaddexp,
}

impl MathFn2 {
    /// Every function, in order.
    pub const ALL: &[MathFn2] = &[MathFn2::Pow, MathFn2::Atan2, MathFn2::Hypot, MathFn2::Logaddexp];

    /// The name in the language.
    pub fn name(self) -> &'static str {
        match self {
            MathFn2::Pow => "pow",
            MathFn2::Atan2 => "atan2",
            MathFn2::Hypot => "hypot",
            MathFn2::Logaddexp => "logaddexp",
        }
    }

    /// The function of this name.
    pub fn from_name(name: &str) -> Option<MathFn2> {
        MathFn2::ALL.iter().copied().find(|f| f.name() == name)
    }
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
