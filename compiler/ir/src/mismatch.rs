//! Errors about operands, before they have a source position.

use crate::program::choice::Choice;
use spmdc_grammar::codes::Code;
use spmdc_kernel::scalar::symbol_of;

/// An error about operands that an op does not take; the caller adds the source position.
#[derive(Clone, Debug, PartialEq)]
pub struct Mismatch {
    /// The error code of the diagnostic.
    pub code: Code,
    /// One sentence that says why the operands do not fit.
    pub message: String,
    /// A line that shows a way out; None if the message suffices.
    pub help: Option<String>,
    /// For an ambiguous layout: the layouts that the program can choose.
    pub choices: Vec<Choice>,
}

impl Mismatch {
    /// An error without help and without choices.
    pub fn new(code: Code, message: impl Into<String>) -> Mismatch {
        Mismatch { code, message: message.into(), help: None, choices: Vec::new() }
    }

    /// Sets the layouts that the program can choose from.
    pub fn choices(mut self, choices: Vec<Choice>) -> Mismatch {
        self.choices = choices;
        self
    }

    /// Sets the line that shows a way out.
    pub fn help(mut self, help: impl Into<String>) -> Mismatch {
        self.help = Some(help.into());
        self
    }
}

/// The name of a product in messages.
pub const PRODUCT: &str = "the product";

/// The name of an op in messages: as the program writes it.
pub fn called(op: &str) -> String {
    match op {
        "einsum" => PRODUCT.to_string(),
        "scatter" | "update" => "the assignment".to_string(),
        _ => format!("`{}`", symbol_of(op).unwrap_or(op)),
    }
}
