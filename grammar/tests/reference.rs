//! Every program in the reference of the syntax parses, and comes back from its printed form.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use spmdc_grammar::span::{FileId, line_column};
use spmdc_grammar::strip_spans::strip_spans;
use spmdc_grammar::{parse, print};

/// The `spmd` blocks of a page, each with its first line.
fn programs(page: &str) -> Vec<(usize, &str)> {
    let mut programs = Vec::new();
    let mut rest = page;
    while let Some(at) = rest.find("```spmd\n") {
        let start = page.len() - rest.len() + at + "```spmd\n".len();
        let length = page[start..].find("```").unwrap();
        programs.push((line_column(page, start).0, &page[start..start + length]));
        rest = &page[start + length + 3..];
    }
    programs
}

#[test]
fn examples_parse() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/language/syntax.md");
    let page = fs::read_to_string(path).unwrap();
    let programs = programs(&page);
    assert!(programs.len() > 5);
    for (line, program) in programs {
        let (mut tree, diagnostics) = parse(program, FileId::default());
        assert!(diagnostics.is_empty(), "syntax.md:{line}: {diagnostics:#?}");
        let text = print(&tree);
        let (mut again, diagnostics) = parse(&text, FileId::default());
        assert!(diagnostics.is_empty(), "syntax.md:{line}: {text}\n{diagnostics:#?}");
        strip_spans(&mut tree);
        strip_spans(&mut again);
        assert_eq!(tree.items, again.items, "syntax.md:{line}: {text}");
    }
}
