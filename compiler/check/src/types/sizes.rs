//! Sizes: numbers, size parameters, and arithmetic over them.
//!
//! A type with size parameters is matched against values of known shape: `f32[N, 2 * M]` and `f32[8, 6]` give `N = 8`, `M = 3`.

use spmdc_grammar::ast::InfixOp;
use std::collections::BTreeMap;
use std::fmt;

/// A size as written: its names are constants (already numbers here) or size parameters of the function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Size {
    /// A number or constant.
    Number(i128),
    /// A size parameter, by name.
    Param(String),
    /// An operator of sizes (`+ - * / // %`) with its operands.
    Binary(InfixOp, Box<Size>, Box<Size>),
    /// An error that has been reported.
    Poison,
}

/// The known size parameters of a function.
pub type Bindings = BTreeMap<String, i128>;

/// The reason why a size has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SizeError {
    /// A quotient of these that is not whole.
    Inexact(i128, i128),
    /// The divisor is 0.
    DivisionByZero,
    /// The value does not fit in 128 bits, or the operator is not one of sizes.
    Overflow,
    /// This parameter is not known yet.
    Unbound(String),
    /// A part of the size is an error that has been reported.
    Poison,
}

impl Size {
    /// The value, if all parameters are bound.
    pub fn value(&self, bindings: &Bindings) -> Result<i128, SizeError> {
        match self {
            Size::Number(number) => Ok(*number),
            Size::Param(name) => bindings.get(name).copied().ok_or_else(|| SizeError::Unbound(name.clone())),
            Size::Binary(op, lhs, rhs) => arithmetic(*op, lhs.value(bindings)?, rhs.value(bindings)?),
            Size::Poison => Err(SizeError::Poison),
        }
    }

    /// Binds parameters such that this size is `actual`. False if it differs, or if nothing can be bound yet.
    pub fn learn(&self, actual: i128, bindings: &mut Bindings) -> bool {
        match self {
            Size::Number(number) => *number == actual,
            Size::Param(name) => match bindings.get(name) {
                Some(known) => *known == actual,
                None => {
                    bindings.insert(name.clone(), actual);
                    true
                }
            },
            Size::Poison => true,
            Size::Binary(op, lhs, rhs) => match (lhs.value(bindings), rhs.value(bindings)) {
                (Ok(lhs), Ok(rhs)) => arithmetic(*op, lhs, rhs) == Ok(actual),
                (Err(_), Ok(known)) => {
                    if *op == InfixOp::Add {
                        lhs.learn(actual - known, bindings)
                    } else if *op == InfixOp::Sub {
                        lhs.learn(actual + known, bindings)
                    } else if *op == InfixOp::Mul && known != 0 && actual % known == 0 {
                        lhs.learn(actual / known, bindings)
                    } else {
                        *op == InfixOp::Div && lhs.learn(actual * known, bindings)
                    }
                }
                (Ok(known), Err(_)) => {
                    if *op == InfixOp::Add {
                        rhs.learn(actual - known, bindings)
                    } else if *op == InfixOp::Sub {
                        rhs.learn(known - actual, bindings)
                    } else if *op == InfixOp::Mul && known != 0 && actual % known == 0 {
                        rhs.learn(actual / known, bindings)
                    } else if *op == InfixOp::Div && actual != 0 && known % actual == 0 {
                        rhs.learn(known / actual, bindings)
                    } else {
                        false
                    }
                }
                (Err(_), Err(_)) => false,
            },
        }
    }

    /// Whether this is a single parameter or number: these are matched before arithmetic.
    pub fn is_plain(&self) -> bool {
        matches!(self, Size::Number(_) | Size::Param(_) | Size::Poison)
    }
}

/// `+ - * /` and `// %` of sizes. A quotient that is not whole is an error.
pub fn arithmetic(op: InfixOp, lhs: i128, rhs: i128) -> Result<i128, SizeError> {
    let value = match op {
        InfixOp::Add => lhs.checked_add(rhs),
        InfixOp::Sub => lhs.checked_sub(rhs),
        InfixOp::Mul => lhs.checked_mul(rhs),
        InfixOp::Div | InfixOp::FloorDiv | InfixOp::Rem if rhs == 0 => return Err(SizeError::DivisionByZero),
        InfixOp::Div if lhs % rhs != 0 => return Err(SizeError::Inexact(lhs, rhs)),
        InfixOp::Div => Some(lhs / rhs),
        InfixOp::FloorDiv => Some(lhs.div_euclid(rhs) - i128::from(rhs < 0 && lhs.rem_euclid(rhs) != 0)),
        InfixOp::Rem => {
            let rest = lhs.rem_euclid(rhs);
            Some(if rest != 0 && rhs < 0 { rest + rhs } else { rest })
        }
        InfixOp::Or
        | InfixOp::And
        | InfixOp::Eq
        | InfixOp::Ne
        | InfixOp::Lt
        | InfixOp::Le
        | InfixOp::Gt
        | InfixOp::Ge
        | InfixOp::BitOr
        | InfixOp::BitXor
        | InfixOp::BitAnd
        | InfixOp::Shl
        | InfixOp::Shr
        | InfixOp::MatMul
        | InfixOp::Pow => None,
    };
    value.ok_or(SizeError::Overflow)
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Size::Number(number) => write!(f, "{number}"),
            Size::Param(name) => f.write_str(name),
            Size::Poison => f.write_str("?"),
            Size::Binary(op, lhs, rhs) => {
                let is_of_sizes = |op: &InfixOp| {
                    use InfixOp::{Add, Div, FloorDiv, Mul, Rem, Sub};
                    matches!(op, Add | Sub | Mul | Div | FloorDiv | Rem)
                };
                if !is_of_sizes(op) {
                    return write!(f, "{op:?}({lhs}, {rhs})");
                }
                let sign = op.symbol();
                let part = |size: &Size| if size.is_plain() { size.to_string() } else { format!("({size})") };
                write!(f, "{} {sign} {}", part(lhs), part(rhs))
            }
        }
    }
}
