//! The source text of statements that derivatives come from, for reports: passes know positions only.

use crate::program::sources::SourceSet;
use spmdc_grammar::span::{FileId, Lines, Span};
use spmdc_ir::program::Func;
use spmdc_ir::program::origin::Lineage;
use std::collections::BTreeMap;

/// Maximum number of characters of a quoted text.
const LONGEST: usize = 40;

/// Quotes the text at each statement that is part of a derivative, or through which one was taken.
pub(crate) fn quote(func: &mut Func, set: &SourceSet) {
    if func.values.iter().all(|info| info.derived_from.is_none()) {
        return;
    }
    let mut lines: BTreeMap<FileId, Lines> = BTreeMap::new();
    let mut quotes = BTreeMap::new();
    func.body.walk(&mut |stmt| {
        let span = stmt.origin.span;
        if stmt.origin.lineage == Lineage::default() || span == Span::default() || quotes.contains_key(&span) {
            return;
        }
        let file = set.file(span.file);
        let Some(text) = file.text.get(span.start as usize..span.end as usize) else { return };
        let lines = lines.entry(span.file).or_insert_with(|| Lines::new(&file.text));
        let (line, _) = lines.line_column(&file.text, span.start as usize);
        let place = if span.file == SourceSet::ROOT { String::new() } else { format!(" of {}", file.name) };
        quotes.insert(span, format!("line {line}{place}: `{}`", shortened(text)));
    });
    func.quotes = quotes;
}

/// A text on one line, without its middle if it is long.
fn shortened(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(LONGEST) {
        None => words,
        Some((end, _)) => format!("{}...", words[..end].trim_end()),
    }
}
