//! The origin of a statement: its source position, its reason, and its role in derivatives.

use super::value::Value;
use spmdc_grammar::span::Span;
use spmdc_layout::types::AxisSet;

/// The source position of a statement; if a pass inserted it, also the reason, in words for the user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The source position; for a statement of a derivative, the position of the differentiated statement.
    pub span: Span,
    /// Empty for the user's own statements; otherwise such as "the product sums over a dimension that is split over Y".
    pub reason: String,
    /// Whether derivatives made it or went through it.
    pub lineage: Lineage,
    /// The axes along which an `auto` or `explicit` function has turned the rule of the mesh into the other one.
    pub turned: AxisSet,
    /// The innermost function around it that derivatives treat as one. It means nothing after checking.
    pub unit: Option<UnitId>,
}

/// The identity of a function that derivatives treat as one, in the [`UnitTree`](super::units::UnitTree) of a program under construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnitId(pub(super) u32);

/// The role of a statement in derivatives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lineage {
    /// The kind of value that it computes.
    pub part: DerivativePart,
    /// The value whose tangent or gradient, or a part of it, it computes, if that is one value.
    pub of: Option<Value>,
    /// 0 for the program's own statements, 1 for statements of a reverse, 2 for statements of the reverse of a function that contains a
    /// reverse, ...
    pub order: u8,
    /// Whether a reverse has been taken through it.
    pub is_reversed: bool,
    /// Whether it is a gradient by a value that is the same on devices whose results differ: the sum of theirs, in a `manual` function.
    pub is_summed: bool,
}

/// The kind of value that a statement computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DerivativePart {
    /// A value of the program, also where a reverse computes it again.
    #[default]
    Value,
    /// A tangent.
    Tangent,
    /// A gradient.
    Gradient,
}

/// The value from which derivatives made another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DerivedFrom {
    /// It is the tangent of this value, or its gradient as far as that is known where it is computed.
    DerivativeOf(Value),
    /// It is this value again: kept, or computed once more.
    CopyOf(Value),
}

impl DerivedFrom {
    /// The same relation to another value.
    pub fn mapped(self, to: impl FnOnce(Value) -> Value) -> DerivedFrom {
        match self {
            DerivedFrom::DerivativeOf(of) => DerivedFrom::DerivativeOf(to(of)),
            DerivedFrom::CopyOf(of) => DerivedFrom::CopyOf(to(of)),
        }
    }
}

/// The reason of communication that the program itself requests.
pub const ASKED: &str = "the program asks for this layout";

impl DerivativePart {
    /// Its name in messages; None for a value.
    pub fn name(self) -> Option<&'static str> {
        match self {
            DerivativePart::Value => None,
            DerivativePart::Tangent => Some("tangent"),
            DerivativePart::Gradient => Some("gradient"),
        }
    }
}

impl Lineage {
    /// That of a statement which computes values anew, inside derivatives of this one.
    pub fn within(self, outer: Lineage) -> Lineage {
        Lineage { order: self.order.max(outer.order), is_reversed: false, ..self }
    }
}

impl Origin {
    /// The origin of the user's own statement at this position.
    pub fn at(span: Span) -> Origin {
        Origin { span, ..Origin::default() }
    }

    /// The origin of a statement that a pass inserts at the same position, for this reason.
    pub fn because(&self, reason: impl Into<String>) -> Origin {
        Origin { reason: reason.into(), ..*self }
    }
}
