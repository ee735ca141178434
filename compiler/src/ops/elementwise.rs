//! Elementwise operations, with NumPy broadcasting.

/// One operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnaryOp {
    Neg,
    /// Bitwise for integers, logical for bool.
    Not,
    Abs,
    Sign,
    Square,
    Reciprocal,
    Sqrt,
    Rsqrt,
    Cbrt,
    Exp,
    Exp2,
    Expm1,
    Log,
    Log2,
    Log10,
    Log1p,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Tanh,
    Asinh,
    Acosh,
    Atanh,
    Erf,
    Erfc,
    ErfInv,
    Floor,
    Ceil,
    Round,
    Trunc,
    /// These three give bool.
    IsNan,
    IsInf,
    IsFinite,
}

/// Two operands of one type, and a result of that type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    /// Floats only; `/` of integers converts first, as in NumPy.
    Div,
    /// Rounds down; integers stop the program where the divisor is zero.
    FloorDiv,
    /// Has the sign of the divisor; integers stop the program where the divisor is zero.
    Rem,
    Pow,
    /// NaN wins.
    Minimum,
    /// NaN wins.
    Maximum,
    Atan2,
    Hypot,
    Logaddexp,
    /// Bitwise for integers, logical for bool.
    And,
    Or,
    Xor,
    /// Shifts by the width or more give 0, or the sign for `Shr` of signed integers.
    Shl,
    Shr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CompareOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}
