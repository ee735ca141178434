//! Where a statement comes from and why it is there.

use spmdc_grammar::span::Span;

/// The source of a statement; for one that a pass inserted, also the reason, in words for the user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The place in the source.
    pub span: Span,
    /// Empty for what the user wrote; else such as "the product sums over a dimension that is split over Y".
    pub reason: String,
}

/// The reason of communication that the program itself asks for.
pub const ASKED: &str = "the program asks for this layout";

impl Origin {
    /// What the user wrote at this place.
    pub fn at(span: Span) -> Origin {
        Origin { span, reason: String::new() }
    }

    /// A statement that a pass inserts at the same place, for this reason.
    pub fn because(&self, reason: impl Into<String>) -> Origin {
        Origin { span: self.span, reason: reason.into() }
    }
}
