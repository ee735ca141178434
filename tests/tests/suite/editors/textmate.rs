//! The TextMate grammar of the extension for VS Code: it is the generated one, and its tokens have the classes of the lexer.

use super::trees::{self, Place};
use crate::format::all_programs;
use spmdc_grammar::classify::{ClassifiedToken, TokenClass, classified};
use spmdc_grammar::parse;
use spmdc_grammar::span::FileId;
use spmdc_tests::random::whole::program;
use spmdc_tests::{root, textmate};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

const FILE: &str = "grammar/editors/vscode/syntaxes/spmd.tmLanguage.json";

#[test]
fn the_grammar_is_generated() {
    let written = fs::read_to_string(root().join(FILE)).unwrap_or_default();
    assert!(written == textmate::grammar().unwrap(), "cargo run -p spmdc-tests --bin textmate > {FILE}");
}

/// The beginnings of the scopes of a token. Words and element types are names in the positions of names.
fn scopes(class: TokenClass, is_name: bool) -> &'static [&'static str] {
    match class {
        TokenClass::Keyword | TokenClass::Name | TokenClass::ElementType if is_name => &["variable", "entity"],
        TokenClass::Keyword => &["keyword.control", "keyword.other", "storage", "constant.language"],
        // The header of a dump, and letters of suffixes.
        TokenClass::Name => &["variable", "entity", "keyword.other"],
        TokenClass::ElementType => &["support.type"],
        TokenClass::Number => &["constant.numeric"],
        TokenClass::String => &["string"],
        TokenClass::Comment => &["comment.line.double-slash"],
        TokenClass::DocComment => &["comment.line.documentation"],
        TokenClass::Operator => &["keyword.operator"],
        // `P(` begins with its letter.
        TokenClass::Open => &["punctuation", "support.type.sharding"],
        TokenClass::Punctuation => &["punctuation", "constant.language"],
        TokenClass::Close | TokenClass::Comma | TokenClass::Dot => &["punctuation"],
        TokenClass::Malformed => &[],
    }
}

fn is_name(places: &BTreeSet<Place>, token: &ClassifiedToken) -> bool {
    ["name", "identifier", "binding_identifier"].iter().any(|kind| places.contains(&(*kind, token.start, token.end)))
}

/// The tokens of texts by VS Code's own library; None without it.
fn tokens(texts: &[String]) -> Option<Vec<Vec<(usize, usize, String)>>> {
    let folder = root().join("grammar/editors/vscode");
    if !folder.join("node_modules/vscode-textmate").exists() {
        return None;
    }
    let mut node = Command::new("node");
    node.args(["tokens.mjs", "-"]).current_dir(&folder).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut node = node.spawn().ok()?;
    let input = serde_json::to_vec(texts).unwrap();
    node.stdin.take().unwrap().write_all(&input).unwrap();
    let output = node.wait_with_output().unwrap();
    assert!(output.status.success(), "tokens.mjs");
    let lines = String::from_utf8(output.stdout).unwrap();
    Some(lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

#[test]
fn tokens_have_the_classes_of_the_lexer() {
    let programs =
        all_programs().into_iter().filter(|(name, _)| name != "tests/cases/errors/several_syntax_errors.spmd");
    let random = crate::numbers("EDITOR_PROGRAM", "EDITOR_PROGRAMS", 20).map(|number| program(number).unwrap().0);
    let texts: Vec<String> = programs.map(|(_, text)| text).chain(random).collect();
    let Some(found) = tokens(&texts) else {
        println!("skipped: no Node.js, or `npm install` has not run in grammar/editors/vscode");
        return;
    };
    assert_eq!(found.len(), texts.len());
    let mut wrong = Vec::new();
    for (text, found) in texts.iter().zip(&found) {
        let places = trees::of_compiler(&parse(text, FileId::default()).0);
        for token in classified(text) {
            let scope = found.iter().find(|(start, end, _)| (*start..*end).contains(&token.start));
            let scope = scope.map_or("", |(_, _, scope)| scope);
            let expected = scopes(token.class, is_name(&places, &token));
            if !expected.iter().any(|start| scope.starts_with(start)) {
                let line = text[..token.start].rfind('\n').map_or(0, |newline| newline + 1);
                let line = text[line..].lines().next().unwrap_or_default();
                wrong.push(format!("`{}` is {scope:?}, {:?}: {line}", &text[token.start..token.end], token.class));
            }
        }
    }
    assert!(wrong.is_empty(), "{} tokens:\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
}
