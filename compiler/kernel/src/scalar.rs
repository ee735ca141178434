//! The operations on scalars, which kernels and elementwise operations use. The exact result of each for each type is in
//! [`number`](crate::number).

use spmdc_abi::DType;
pub use spmdc_math::MathFn;
use spmdc_math::MathFn2;
use std::cmp::Ordering;

/// Declares an enum of operations with their names in messages and, where there is a function of that name, in calls.
macro_rules! operations {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }

        impl $name {
            /// All operations, in the order of their declaration.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The name in messages and calls.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }

            /// The operation of this name; None if there is none.
            pub fn from_name(name: &str) -> Option<$name> {
                $name::ALL.iter().copied().find(|op| op.name() == name)
            }
        }
    };
}

/// One operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnaryOp {
    /// `-x`; integers wrap
    Neg,
    /// Bitwise for integers, logical for bool.
    Not,
    /// `|x|`; the smallest signed integer gives itself.
    Abs,
    /// Zero and NaN give themselves.
    Sign,
    /// `x * x`
    Square,
    /// `x`, and zero where it is negative or -0. NaN gives itself.
    Relu,
    /// `1 / x`
    Reciprocal,
    /// A function of floats from the table of math functions.
    Math(MathFn),
    /// This and the next two take floats and give bool.
    IsNan,
    /// Whether it is an infinity of either sign.
    IsInf,
    /// Whether it is neither an infinity nor NaN.
    IsFinite,
    /// Whether the sign bit of a float is set, -0 included; a NaN has no sign, so false. Gives bool.
    Signbit,
    /// The number of ones among the bits of an integer.
    Popcount,
    /// The number of zeros above the highest one among the bits of an integer; of 0 its width.
    Clz,
}

impl UnaryOp {
    /// All operations: the ones before the math functions, the math functions in the order of their table, and the ones after them.
    pub fn all() -> impl Iterator<Item = UnaryOp> {
        let first = [
            UnaryOp::Neg,
            UnaryOp::Not,
            UnaryOp::Abs,
            UnaryOp::Sign,
            UnaryOp::Square,
            UnaryOp::Relu,
            UnaryOp::Reciprocal,
        ]
        .into_iter();
        let math = MathFn::ALL.iter().map(|&f| UnaryOp::Math(f));
        first.chain(math).chain([
            UnaryOp::IsNan,
            UnaryOp::IsInf,
            UnaryOp::IsFinite,
            UnaryOp::Signbit,
            UnaryOp::Popcount,
            UnaryOp::Clz,
        ])
    }

    /// The name in messages and calls.
    pub fn name(self) -> &'static str {
        match self {
            UnaryOp::Neg => "neg",
            UnaryOp::Not => "not",
            UnaryOp::Abs => "abs",
            UnaryOp::Sign => "sign",
            UnaryOp::Square => "square",
            UnaryOp::Relu => "relu",
            UnaryOp::Reciprocal => "reciprocal",
            UnaryOp::Math(f) => f.name(),
            UnaryOp::IsNan => "isnan",
            UnaryOp::IsInf => "isinf",
            UnaryOp::IsFinite => "isfinite",
            UnaryOp::Signbit => "signbit",
            UnaryOp::Popcount => "popcount",
            UnaryOp::Clz => "clz",
        }
    }

    /// The operation of this name; None if there is none.
    pub fn from_name(name: &str) -> Option<UnaryOp> {
        UnaryOp::all().find(|op| op.name() == name)
    }
}

operations! {
    /// Two operands of one type, and a result of that type.
    BinaryOp {
        /// `x + y`; of bools `x | y`
        Add "add",
        /// `x - y`; not defined for bools
        Sub "sub",
        /// `x * y`; of bools `x & y`
        Mul "mul",
        /// Floats only; `/` of integers converts first, as in NumPy.
        Div "div",
        /// Rounds down; integers stop the program if the divisor is zero. Floats: let `r = x fmod y`. The result is `(x - r) / y` (`x / y`
        /// if y is 0), minus 1 if `r` is not 0 and its sign differs from the sign of y, and rounded, half away from zero.
        FloorDiv "floor_divide",
        /// Has the sign of the divisor; integers stop the program if the divisor is zero. Floats: `r = x fmod y`, plus y if `r` is not 0
        /// and its sign differs from the sign of y.
        Rem "remainder",
        /// Integers by wrapping repeated squaring; a negative exponent gives the truncated quotient, 0 for 0.
        Pow "pow",
        /// NaN wins; -0 is less than +0.
        Minimum "minimum",
        /// NaN wins; -0 is less than +0.
        Maximum "maximum",
        /// The angle of the point with ordinate `x` and abscissa `y`, in radians from -pi to pi.
        Atan2 "atan2",
        /// `sqrt(x * x + y * y)`, without overflow in between.
        Hypot "hypot",
        /// `log(exp(x) + exp(y))`, without overflow in between.
        Logaddexp "logaddexp",
        /// The magnitude of x with the sign of y; positive if y is NaN, which has no sign.
        Copysign "copysign",
        /// The next number after x towards y in their type; y if both are equal, NaN if one is NaN.
        Nextafter "nextafter",
        /// The largest integer that divides both, which is not negative; of two zeros 0. It wraps where it does not fit.
        Gcd "gcd",
        /// Bitwise for integers, logical for bool.
        And "and",
        /// Bitwise for integers, logical for bool.
        Or "or",
        /// Bitwise for integers, logical for bool.
        Xor "xor",
        /// Shifts by the width or more, or by a negative number, give 0, or the sign for `Shr` of signed integers.
        Shl "shl",
        /// As `Shl`; signed integers keep their sign.
        Shr "shr",
    }
}

operations! {
    /// Two operands of one type, and a bool.
    CompareOp {
        /// `x == y`
        Eq "eq",
        /// `x != y`
        Ne "ne",
        /// `x < y`
        Lt "lt",
        /// `x <= y`
        Le "le",
        /// `x > y`
        Gt "gt",
        /// `x >= y`
        Ge "ge",
    }
}

/// An operation on one integer; other unary operations are defined for floats only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntegerOp {
    /// `-x`, wrapping.
    Neg,
    /// The complement of all bits.
    Not,
    /// `|x|`, wrapping.
    Abs,
    /// -1, 0 or 1.
    Sign,
    /// `x * x`, wrapping.
    Square,
    /// The larger of `x` and 0.
    Relu,
    /// The number of ones.
    Popcount,
    /// The number of leading zeros.
    Clz,
}

/// An operation on two bools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogicalOp {
    /// Whether both are true.
    And,
    /// Whether one of them is true.
    Or,
    /// Whether they differ.
    Xor,
}

impl UnaryOp {
    /// The operation on an integer; None if it is not defined for integers.
    pub fn of_integers(self) -> Option<IntegerOp> {
        let pairs = [
            (UnaryOp::Neg, IntegerOp::Neg),
            (UnaryOp::Not, IntegerOp::Not),
            (UnaryOp::Abs, IntegerOp::Abs),
            (UnaryOp::Sign, IntegerOp::Sign),
            (UnaryOp::Square, IntegerOp::Square),
            (UnaryOp::Relu, IntegerOp::Relu),
            (UnaryOp::Popcount, IntegerOp::Popcount),
            (UnaryOp::Clz, IntegerOp::Clz),
        ];
        pairs.into_iter().find(|(op, _)| *op == self).map(|(_, of_integers)| of_integers)
    }

    /// Whether integers are converted to floats first.
    pub fn is_inexact(self) -> bool {
        matches!(self, UnaryOp::Math(_) | UnaryOp::Reciprocal) && !self.is_rounding()
    }

    /// Integers are rounded already.
    pub fn is_rounding(self) -> bool {
        matches!(self, UnaryOp::Math(MathFn::Floor | MathFn::Ceil | MathFn::Round | MathFn::Trunc))
    }

    /// Whether it asks something of a float, so that its result is a bool.
    pub fn is_test(self) -> bool {
        matches!(self, UnaryOp::IsNan | UnaryOp::IsInf | UnaryOp::IsFinite | UnaryOp::Signbit)
    }

    /// The type of the result for an operand of type `dtype`: bool for `isnan`, `isinf`, `isfinite` and `signbit`, else `dtype`.
    pub fn result_dtype(self, dtype: DType) -> DType {
        if self.is_test() { DType::Bool } else { dtype }
    }
}

impl BinaryOp {
    /// The operation on bools; None if it is not defined for bools.
    pub fn of_bools(self) -> Option<LogicalOp> {
        if let BinaryOp::Add | BinaryOp::Or | BinaryOp::Maximum = self {
            return Some(LogicalOp::Or);
        }
        if let BinaryOp::Mul | BinaryOp::And | BinaryOp::Minimum = self {
            return Some(LogicalOp::And);
        }
        (self == BinaryOp::Xor).then_some(LogicalOp::Xor)
    }

    /// Whether integers are converted to floats first.
    pub fn is_inexact(self) -> bool {
        matches!(
            self,
            BinaryOp::Div
                | BinaryOp::Atan2
                | BinaryOp::Hypot
                | BinaryOp::Logaddexp
                | BinaryOp::Copysign
                | BinaryOp::Nextafter
        )
    }

    /// The function of two floats that it is, if it is one.
    pub fn math(self) -> Option<MathFn2> {
        match self {
            BinaryOp::Pow => Some(MathFn2::Pow),
            BinaryOp::Atan2 => Some(MathFn2::Atan2),
            BinaryOp::Hypot => Some(MathFn2::Hypot),
            BinaryOp::Logaddexp => Some(MathFn2::Logaddexp),
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::Div
            | BinaryOp::FloorDiv
            | BinaryOp::Rem
            | BinaryOp::Minimum
            | BinaryOp::Maximum
            | BinaryOp::Copysign
            | BinaryOp::Nextafter
            | BinaryOp::Gcd
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::Shl
            | BinaryOp::Shr => None,
        }
    }

    /// Whether bools are converted to integers first.
    pub fn is_of_numbers(self) -> bool {
        matches!(self, BinaryOp::FloorDiv | BinaryOp::Rem | BinaryOp::Pow | BinaryOp::Shl | BinaryOp::Shr)
    }

    /// The operator, if it is written as one.
    pub fn symbol(self) -> Option<&'static str> {
        Some(match self {
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::FloorDiv => "//",
            BinaryOp::Rem => "%",
            BinaryOp::Pow => "**",
            BinaryOp::And => "&",
            BinaryOp::Or => "|",
            BinaryOp::Xor => "^",
            BinaryOp::Shl => "<<",
            BinaryOp::Shr => ">>",
            BinaryOp::Minimum
            | BinaryOp::Maximum
            | BinaryOp::Atan2
            | BinaryOp::Hypot
            | BinaryOp::Logaddexp
            | BinaryOp::Copysign
            | BinaryOp::Nextafter
            | BinaryOp::Gcd => return None,
        })
    }

    /// How messages call it.
    pub fn title(self) -> &'static str {
        self.symbol().unwrap_or(self.name())
    }
}

impl CompareOp {
    /// The operator, as the language writes it.
    pub fn symbol(self) -> &'static str {
        match self {
            CompareOp::Eq => "==",
            CompareOp::Ne => "!=",
            CompareOp::Lt => "<",
            CompareOp::Le => "<=",
            CompareOp::Gt => ">",
            CompareOp::Ge => ">=",
        }
    }

    /// The comparison that the language writes with this symbol; None for any other symbol.
    pub fn from_symbol(symbol: &str) -> Option<CompareOp> {
        CompareOp::ALL.iter().copied().find(|op| op.symbol() == symbol)
    }

    /// Whether it holds for two values in this order; None where one of them is NaN.
    pub fn holds(self, order: Option<Ordering>) -> bool {
        match self {
            CompareOp::Eq => order == Some(Ordering::Equal),
            CompareOp::Ne => order != Some(Ordering::Equal),
            CompareOp::Lt => order == Some(Ordering::Less),
            CompareOp::Le => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            CompareOp::Gt => order == Some(Ordering::Greater),
            CompareOp::Ge => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        }
    }
}

/// The operator that an op of this name is written as.
pub fn symbol_of(name: &str) -> Option<&'static str> {
    let unary = || match name {
        "neg" => Some("-"),
        "not" => Some("!"),
        _ => None,
    };
    let binary = || BinaryOp::from_name(name).and_then(BinaryOp::symbol);
    CompareOp::from_name(name).map(CompareOp::symbol).or_else(binary).or_else(unary)
}
