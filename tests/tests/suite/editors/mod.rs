//! The grammars for editors in `grammar/editors`: they find the nodes and the tokens that the parser and the lexer of the compiler find.
//!
//! `EDITOR_PROGRAMS=10000` parses more random programs, `EDITOR_PROGRAM=17` one of them.

mod highlights;
mod textmate;
mod trees;

use crate::format::{all_programs, relaid};
use spmdc_grammar::ast::DTypeName;
use spmdc_grammar::classify::{KEYWORDS, classified};
use spmdc_grammar::parse;
use spmdc_grammar::span::FileId;
use spmdc_inspect::print;
use spmdc_tests::case::{files, on_page};
use spmdc_tests::random::Draw;
use spmdc_tests::random::whole::program;
use spmdc_tests::{engine, root};
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use syn::visit::Visit;
use tree_sitter::{Language, Node, Parser, Tree};
use tree_sitter_language::LanguageFn;

unsafe extern "C" {
    fn tree_sitter_spmd() -> *const ();
}

fn language() -> Language {
    // SAFETY: the function is the one of this grammar that the build script has compiled.
    let language = unsafe { LanguageFn::from_raw(tree_sitter_spmd) };
    Language::new(language)
}

fn parsed(text: &str) -> Tree {
    let mut parser = Parser::new();
    parser.set_language(&language()).unwrap();
    parser.parse(text, None).unwrap()
}

/// The position of the first node that is an error or is missing.
fn first_error(tree: &Tree) -> Option<String> {
    let mut cursor = tree.walk();
    let mut node = tree.root_node();
    if !node.has_error() {
        return None;
    }
    while !node.is_error() && !node.is_missing() {
        node = node.children(&mut cursor).find(|child| child.has_error() || child.is_missing())?;
    }
    Some(node.to_string())
}

/// The difference between the trees of an editor and of the compiler for a program without errors.
fn difference(text: &str) -> Option<String> {
    let (program, diagnostics) = parse(text, FileId::default());
    assert!(diagnostics.is_empty(), "{diagnostics:?}\n{text}");
    let tree = parsed(text);
    if let Some(error) = first_error(&tree) {
        return Some(error);
    }
    let (expected, found) = (trees::of_compiler(&program), trees::of_editor(tree.root_node()));
    let shown = |nodes: BTreeSet<&trees::Place>| -> Vec<String> {
        let text =
            nodes.into_iter().map(|(kind, start, end)| format!("{kind} `{}` at byte {start}", &text[*start..*end]));
        text.take(5).collect()
    };
    let missing = shown(expected.difference(&found).collect());
    let more = shown(found.difference(&expected).collect());
    (missing != more).then(|| format!("missing: {missing:#?}\nnot in the compiler's tree: {more:#?}"))
}

#[track_caller]
fn assert_same(name: &str, text: &str) {
    if let Some(difference) = difference(text) {
        panic!("{name}: {difference}\n{text}");
    }
}

/// The programs in the pages of the documentation, with the names of the pages.
fn programs_of_pages() -> Vec<(String, String)> {
    let pages = ["docs", "examples"].into_iter().flat_map(|folder| files(&root().join(folder), "md"));
    let programs = pages.flat_map(|page| {
        let programs = on_page(&page).unwrap();
        programs.into_iter().map(move |program| (page.display().to_string(), program))
    });
    programs.collect()
}

/// The strings in the tests of the parser, which are programs, parts of programs, and texts with errors.
fn strings_of_parser_tests() -> Vec<String> {
    struct Strings(Vec<String>);
    impl Visit<'_> for Strings {
        fn visit_lit_str(&mut self, literal: &syn::LitStr) {
            self.0.push(literal.value());
        }
    }
    let mut found = Strings(Vec::new());
    for file in files(&root().join("grammar/tests"), "rs") {
        found.visit_file(&syn::parse_file(&fs::read_to_string(file).unwrap()).unwrap());
    }
    found.0
}

/// Whether a `//` divides in the tree of an editor and begins a comment for the compiler. The compiler looks for the divisor in the rest of
/// the file, and a scanner cannot.
fn has_doubtful_division(text: &str) -> bool {
    let (program, _) = parse(text, FileId::default());
    let divisions: BTreeSet<usize> = operators(parsed(text).root_node(), "//");
    program.comments.iter().any(|comment| divisions.contains(&(comment.span.start as usize)))
}

/// The positions of the tokens of this kind.
fn operators(node: Node, kind: &str) -> BTreeSet<usize> {
    let mut cursor = node.walk();
    let inside = node.children(&mut cursor).flat_map(|child| operators(child, kind));
    inside.chain((node.kind() == kind).then_some(node.start_byte())).collect()
}

#[test]
fn programs_have_the_trees_of_the_compiler() {
    let mut draw = Draw::new("editors", 0);
    let mut programs = all_programs();
    programs.retain(|(name, _)| name != "tests/cases/errors/several_syntax_errors.spmd");
    assert!(programs.len() > 900, "{} programs", programs.len());
    for (name, text) in programs {
        assert_same(&name, &text);
        let other = relaid(&text, &mut draw);
        if parse(&other, FileId::default()).1.is_empty() && !has_doubtful_division(&other) {
            assert_same(&name, &other);
        }
    }
}

/// Texts and dumps.
#[test]
fn random_programs_have_the_trees_of_the_compiler() {
    for number in crate::numbers("EDITOR_PROGRAM", "EDITOR_PROGRAMS", 100) {
        let (text, _) = program(number).unwrap();
        assert_same(&format!("program {number}"), &text);
        if number % 10 == 0 {
            let compilation = engine::compiled_quickly("program.spmd", &text, "").unwrap();
            for module in &compilation.stages {
                assert_same(&format!("program {number}"), &print::module(module));
            }
        }
    }
}

/// Whether the grammar for editors accepts the text of this error: a limit, a name that depends on its place, an operator after a statement
/// that ends in a brace.
fn is_accepted(message: &str) -> bool {
    const ACCEPTED: [&str; 5] = [
        "`P` cannot be called",
        "`P(...)` has no argument",
        "a type can contain only one",
        "brackets are nested too deeply",
        "this expression has too many operators",
    ];
    let after_brace = message.strip_prefix("expected a statement, `}` or `;`, found `");
    ACCEPTED.iter().any(|start| message.starts_with(start))
        || after_brace.is_some_and(|found| found.starts_with(|c: char| "+*/%@<>=!&|^.".contains(c)))
}

/// Holds the tree of a text to that of the compiler, and otherwise to an error; None if the trees may differ.
#[track_caller]
fn assert_same_or_wrong(name: &str, text: &str) -> Option<bool> {
    let (_, diagnostics) = parse(text, FileId::default());
    if let Some(error) = diagnostics.first() {
        let is_found = first_error(&parsed(text)).is_some();
        assert!(is_found || is_accepted(&error.message), "{name}: no error, but `{}`\n{text}", error.message);
        return is_found.then_some(false);
    }
    if has_doubtful_division(text) {
        return None;
    }
    assert_same(name, text);
    Some(true)
}

#[test]
fn texts_with_errors_have_error_nodes() {
    let strings = strings_of_parser_tests();
    let bodies = strings.iter().map(|text| format!("const B = 2;\nfn f<H>(x, w, i, n, m, t, p) {{\n{text}\n}}\n"));
    let bodies = bodies.chain(strings.iter().cloned()).map(|text| ("a test of the parser".to_string(), text));
    let found: Vec<Option<bool>> =
        bodies.chain(programs_of_pages()).map(|(name, text)| assert_same_or_wrong(&name, &text)).collect();
    let count = |kind| found.iter().filter(|found| **found == kind).count();
    let (right, wrong, other) = (count(Some(true)), count(Some(false)), count(None));
    assert!(right > 800 && wrong > 800 && other < 20, "{right} right, {wrong} wrong, {other} others");
}

#[test]
fn damaged_programs_have_error_nodes() {
    let programs = all_programs();
    for number in crate::numbers("EDITOR_PROGRAM", "EDITOR_PROGRAMS", 500) {
        let mut draw = Draw::new("damage", number);
        let (_, text) = &programs[draw.below(programs.len())];
        let tokens = classified(text);
        let (at, from) = (&tokens[draw.below(tokens.len())], &tokens[draw.below(tokens.len())]);
        let (before, other) = (&text[..at.start], &text[from.start..from.end]);
        // Without a token, with another one in its place, and with one more.
        let text = match draw.below(3) {
            0 => format!("{before} {}", &text[at.end..]),
            1 => format!("{before}{other}\n{}", &text[at.end..]),
            _ => format!("{before}{other}\n{}", &text[at.start..]),
        };
        assert_same_or_wrong(&format!("damaged program {number}"), &text);
    }
}

/// Reserved words name fields only, contextual words anything.
#[test]
fn words_are_names_where_the_compiler_takes_them() {
    let element_types = DTypeName::ALL.iter().map(|(_, name)| *name);
    for word in KEYWORDS.iter().copied().chain(element_types).chain(["_", "test", "stage", "P"]) {
        let texts = [
            format!("fn f(p) {{ g(p.{word}, {word}=1) + p.{word} }}"),
            format!("fn f(p) {{ let q = {{ {word}: p }}; q }}"),
            format!("fn f(p) {{ let {{ {word}: q }} = p; q }}"),
            format!("fn f(p: {{ {word}: f32 }}) {{ p }}"),
            format!("fn f({word}) {{ let {word} = {word} + 1; {word}[0] = {word}; {word} }}"),
            format!("fn {word}() {{ g({word}) }}"),
            format!("const {word} = {word};"),
            format!("type {word}<{word}> = f32[{word}];"),
            format!("type T = {word};"),
            format!("type T = {word}.{word}<{word}>;"),
            format!("mesh {word} ({word} = 2);"),
            format!("mesh m = {word}[{word} = 0];"),
            format!("import \"a.spmd\" as {word};"),
            format!("fn f(x: f32[4@{word}] on {word}) {{ reshard(x, P({word}, unreduced={word})) }}"),
            format!("fn f() {{ for {word} in {word}..{word} step {word} {{ {word}; }} }}"),
        ];
        texts.iter().for_each(|text| {
            assert_same_or_wrong(word, text);
        });
    }
}

/// A random rest of a line after `//` makes the compiler and the grammar for editors divide, or read a comment.
#[test]
fn slashes_divide_where_they_divide_for_the_compiler() {
    // Without `=`: a scanner does not know whether it is in a list, where keywords may follow.
    const PARTS: [&str; 28] = [
        "n", "x", "2", ".0", "f(n)", "(n)", "(n, x)", "[n]", "[", "]", "(", ")", "{", "}", ",", ";", ":", "..", "+",
        "-", ">", "|", "//", "//=", "\"a\"", "if", "step", "f32[n]",
    ];
    for number in crate::numbers("EDITOR_PROGRAM", "EDITOR_PROGRAMS", 3000) {
        let mut draw = Draw::new("slashes", number);
        let space = |draw: &mut Draw| draw.pick(&["", " ", " ", " ", "  "]);
        let mut line = format!("{}{}", space(&mut draw), draw.pick(&["//", "//", "//", "//="]));
        for _ in 0..draw.below(6) {
            line += space(&mut draw);
            line += draw.pick(&PARTS);
        }
        let text = match draw.below(4) {
            0 => format!("fn f(x, n) {{\n  let y = n{line}\n  + x;\n  y\n}}"),
            1 => format!("fn f(x, n) {{\n  g(n, x{line}\n  )\n}}"),
            2 => format!("fn f(x, n) {{\n  for i in 0..n{line}\n  {{ x; }}\n}}"),
            _ => format!("fn f(x, n) {{\n  x[n]{line}\n}}"),
        };
        assert_same_or_wrong(&format!("line {number}"), &text);
    }
}

/// The command `tree-sitter` of the version that has made the parser makes it again.
#[test]
fn the_parser_is_generated() {
    const VERSION: &str = "tree-sitter 0.27.";
    let folder = root().join("grammar/editors/tree-sitter-spmd");
    let version = Command::new("tree-sitter").arg("--version").output();
    let version = version.map_or(String::new(), |output| String::from_utf8_lossy(&output.stdout).into_owned());
    if !version.starts_with(VERSION) {
        println!("skipped: {VERSION}* is not installed");
        return;
    }
    let made = tempfile::tempdir().unwrap();
    let output = Command::new("tree-sitter").current_dir(&folder).args(["generate", "-o"]).arg(made.path()).output();
    assert!(output.unwrap().status.success());
    for name in ["parser.c", "grammar.json", "node-types.json"] {
        let [committed, again] =
            [folder.join("src"), made.path().to_path_buf()].map(|folder| fs::read(folder.join(name)));
        assert!(committed.unwrap() == again.unwrap(), "run `tree-sitter generate` in {}: {name}", folder.display());
    }
}
