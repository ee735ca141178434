//! Functions of the prelude, by their text.

use spmdc_grammar::ast::{FnItem, ItemKind};
use spmdc_grammar::span::FileId;

/// The file of the functions of the prelude while they are expanded: a file without a name.
pub const FILE: FileId = FileId(u16::MAX);

/// A function with the lines above it.
#[derive(Debug)]
pub struct Paragraph {
    /// The text of the function and of the comment above it.
    pub text: &'static str,
    /// The function.
    pub function: FnItem,
}

/// Finds the paragraph of a function, and reads it. The prelude is a part of the compiler, so an error in it is a defect.
pub fn paragraph(files: &[&'static str], name: &'static str) -> Paragraph {
    let paragraphs = files.iter().flat_map(|file| file.split("\n\n"));
    let head = format!("fn {name}(");
    let text = paragraphs.into_iter().find(|text| text.lines().any(|line| line.starts_with(&head)));
    let text = text.unwrap_or_else(|| panic!("the prelude has no `{name}`"));
    let (program, diagnostics) = spmdc_grammar::parse(text, FILE);
    assert!(diagnostics.is_empty(), "`{name}` of the prelude: {diagnostics:?}");
    let function = program.items.into_iter().find_map(|item| match item.kind {
        ItemKind::Fn(function) => Some(function),
        ItemKind::Mesh(_)
        | ItemKind::Test(_)
        | ItemKind::Const { .. }
        | ItemKind::Type { .. }
        | ItemKind::Import { .. } => None,
    });
    let function = function.unwrap_or_else(|| panic!("`{name}` of the prelude is not a function"));
    Paragraph { text, function }
}
