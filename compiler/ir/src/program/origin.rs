//! The origin of a statement: its source position and its reason.

use spmdc_grammar::span::Span;

/// The source position of a statement; if a pass inserted it, also the reason, in words for the user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The source position.
    pub span: Span,
    /// Empty for the user's own statements; otherwise such as "the product sums over a dimension that is split over Y".
    pub reason: String,
}

/// The reason of communication that the program itself requests.
pub const ASKED: &str = "the program asks for this layout";

impl Origin {
    /// The origin of the user's own statement at this position.
    pub fn at(span: Span) -> Origin {
        Origin { span, reason: String::new() }
    }

    /// The origin of a statement that a pass inserts at the same position, for this reason.
    pub fn because(&self, reason: impl Into<String>) -> Origin {
        Origin { span: self.span, reason: reason.into() }
    }
}
