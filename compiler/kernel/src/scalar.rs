//! The operations on scalars: what kernels and elementwise operations compute with. What each of them gives for each type, to the bit,
//! is in [`number`].

use crate::number;
use spmdc_abi::DType;

/// Declares an enum of operations with their names in messages and, where there is a function of that name, in calls.
macro_rules! operations {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }

        impl $name {
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }

            pub fn from_name(name: &str) -> Option<$name> {
                $name::ALL.iter().copied().find(|op| op.name() == name)
            }
        }
    };
}

operations! {
    /// One operand.
    UnaryOp {
        Neg "neg",
        /// Bitwise for integers, logical for bool.
        Not "not",
        Abs "abs",
        /// Zero and NaN give themselves.
        Sign "sign",
        Square "square",
        Reciprocal "reciprocal",
        Sqrt "sqrt",
        Rsqrt "rsqrt",
        Cbrt "cbrt",
        Exp "exp",
        Exp2 "exp2",
        Expm1 "expm1",
        Log "log",
        Log2 "log2",
        Log10 "log10",
        Log1p "log1p",
        Sin "sin",
        Cos "cos",
        Tan "tan",
        Asin "asin",
        Acos "acos",
        Atan "atan",
        Sinh "sinh",
        Cosh "cosh",
        Tanh "tanh",
        Asinh "asinh",
        Acosh "acosh",
        Atanh "atanh",
        Erf "erf",
        Erfc "erfc",
        ErfInv "erf_inv",
        Floor "floor",
        Ceil "ceil",
        /// Half to even.
        Round "round",
        Trunc "trunc",
        /// This and the next two take floats and give bool.
        IsNan "isnan",
        IsInf "isinf",
        IsFinite "isfinite",
    }
}

operations! {
    /// Two operands of one type, and a result of that type.
    BinaryOp {
        Add "add",
        Sub "sub",
        Mul "mul",
        /// Floats only; `/` of integers converts first, as in NumPy.
        Div "div",
        /// Rounds down; integers stop the program where the divisor is zero. Floats: with `r = x fmod y`, round half away from
        /// zero `(x - r) / y` (`x / y` where y is 0), first less 1 if `r` is not 0 and its sign is not that of y.
        FloorDiv "floor_divide",
        /// Has the sign of the divisor; integers stop the program where the divisor is zero. Floats: `r = x fmod y`, plus y if
        /// `r` is not 0 and its sign is not that of y.
        Rem "remainder",
        /// Integers by wrapping repeated squaring; a negative exponent gives the truncated quotient, 0 for 0.
        Pow "pow",
        /// NaN wins; -0 is less than +0.
        Minimum "minimum",
        /// NaN wins; -0 is less than +0.
        Maximum "maximum",
        Atan2 "atan2",
        Hypot "hypot",
        Logaddexp "logaddexp",
        /// Bitwise for integers, logical for bool.
        And "and",
        Or "or",
        Xor "xor",
        /// Shifts by the width or more, or by a negative number, give 0, or the sign for `Shr` of signed integers.
        Shl "shl",
        Shr "shr",
    }
}

operations! {
    /// Two operands of one type, and a bool.
    CompareOp {
        Eq "eq",
        Ne "ne",
        Lt "lt",
        Le "le",
        Gt "gt",
        Ge "ge",
    }
}

impl UnaryOp {
    /// Whether integers are converted to floats first.
    pub fn is_inexact(self) -> bool {
        number::math_fn(self).is_some() && !self.is_rounding() || self == UnaryOp::Reciprocal
    }

    /// Integers are rounded already.
    pub fn is_rounding(self) -> bool {
        matches!(self, UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round | UnaryOp::Trunc)
    }

    pub fn result_dtype(self, dtype: DType) -> DType {
        if matches!(self, UnaryOp::IsNan | UnaryOp::IsInf | UnaryOp::IsFinite) { DType::Bool } else { dtype }
    }
}

impl BinaryOp {
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
            BinaryOp::Minimum | BinaryOp::Maximum | BinaryOp::Atan2 | BinaryOp::Hypot | BinaryOp::Logaddexp => {
                return None;
            }
        })
    }

    /// How messages call it.
    pub fn title(self) -> &'static str {
        self.symbol().unwrap_or(self.name())
    }
}

impl CompareOp {
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
