//! The names of the fields of structs, and which of them are the same field.
//!
//! Types of structs are not distinguished by their names: two structs are of one type if their fields are. So a field has all places at
//! which its name is written in types, literals, patterns and uses. Tools that rename it need all of them.

use spmdc_grammar::ast::Ident;
use spmdc_grammar::span::Span;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Deref;

/// The name of a field. Names are equal if their texts are.
#[derive(Clone, Debug)]
pub struct FieldName {
    name: String,
    /// Where the program writes it: in the literal or the type from which the struct is.
    pub place: Span,
}

impl FieldName {
    /// The field that a name in the program stands for.
    pub fn new(ident: &Ident) -> FieldName {
        FieldName { name: ident.name.clone(), place: ident.span }
    }
}

impl Deref for FieldName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.name
    }
}

impl PartialEq for FieldName {
    fn eq(&self, other: &FieldName) -> bool {
        self.name == other.name
    }
}

impl PartialEq<String> for FieldName {
    fn eq(&self, other: &String) -> bool {
        self.name == *other
    }
}

impl fmt::Display for FieldName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Pairs of places at which the program names the same field. The name of an attribute, as in `x.shape`, is a pair with itself.
#[derive(Clone, Debug, Default)]
pub struct FieldLinks {
    /// The pairs.
    pub pairs: BTreeSet<(Span, Span)>,
}

impl FieldLinks {
    /// Records that both places name the same field.
    pub fn link(&mut self, one: Span, other: Span) {
        self.pairs.insert((one, other));
    }
}
