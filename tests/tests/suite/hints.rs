//! Names of other libraries: what the language has instead, in words that name only what it has.

use spmdc_check::sources::{NoSources, SourceSet};
use spmdc_check::{CheckOptions, check};
use spmdc_functions::is_builtin;
use spmdc_grammar::{elsewhere, habits};

/// Functions and other names in advice that are not shipped: those of the reader.
const OWN: &[&str] = &[
    "a", "b", "c", "e", "f", "fwd", "bwd", "fn", "g", "i", "l", "m", "n", "s", "u", "v", "w", "x", "y", "manual",
    "main", "P",
];

/// The pieces of a text between backticks.
fn snippets(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The words of a snippet that are called, apart from methods and members; a snippet of one word is that word.
fn called(snippet: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    if snippet.chars().all(is_word) {
        return vec![snippet];
    }
    let ends = snippet.match_indices('(').map(|(at, _)| at);
    let words = ends.map(|end| {
        let start = snippet[..end].rfind(|c| !is_word(c)).map_or(0, |at| at + 1);
        if snippet[..start].ends_with('.') { "" } else { &snippet[start..end] }
    });
    words.filter(|word| !word.is_empty()).collect()
}

fn help_of(text: &str) -> Option<String> {
    let (set, mut diagnostics) = SourceSet::load("hint.spmd", text, &NoSources);
    if diagnostics.is_empty() {
        diagnostics = check(&set, &CheckOptions::default()).err().unwrap_or_default();
    }
    diagnostics.first().and_then(|diagnostic| diagnostic.help.clone())
}

#[test]
fn advice_names_what_there_is() {
    let mut wrong = Vec::new();
    let mut seen = Vec::new();
    for (names, help) in elsewhere::FUNCTIONS {
        for name in *names {
            if is_builtin(name) || habits::of_word(name).is_some() || seen.contains(name) || elsewhere::is_unknown(name)
            {
                wrong.push(format!("`{name}` is a function of the language, or has another answer"));
            }
            seen.push(name);
        }
        for word in snippets(help).flat_map(called) {
            let is_type = ["f32", "u32", "bf16"].contains(&word);
            if !is_builtin(word) && !OWN.contains(&word) && !is_type {
                wrong.push(format!("`{word}` in {help:?}"));
            }
        }
    }
    wrong.extend(
        elsewhere::UNKNOWN.iter().filter(|name| is_builtin(name)).map(|name| format!("`{name}` is a function")),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn names_of_other_libraries_are_answered() {
    // The body of a function, and a part of the answer; None if there is none.
    let answers: [(&str, Option<&str>); 23] = [
        ("fmod(x, 2)", Some("a - b * trunc(a / b)")),
        ("cond(b, x, y)", Some("if c { a } else { b }")),
        ("switch(1, x)", Some("if i == 0")),
        ("scan(x, y)", Some("collect")),
        ("fori_loop(0, 4, x, y)", Some("for i in 0..n")),
        ("while_loop(x, y)", Some("while c(x)")),
        ("jit(x)", Some("remove it")),
        ("pmap(x)", Some("vmap(f)(x)")),
        ("shard_map(x)", Some("manual(X) fn")),
        ("with_sharding_constraint(x)", Some("reshard(x, P(X, _))")),
        ("device_put(x)", Some("transfer(x, m)")),
        ("dropout(x, 0.5)", Some("import \"std/nn.spmd\" as nn;` has `nn.dropout`")),
        ("embedding(x, y)", Some("`nn.embedding`")),
        ("skewness(x)", Some("`stats.skewness`")),
        ("expit(x)", Some("sigmoid")),
        ("rint(x)", Some("`round`")),
        ("x.fmin(y)", Some("minimum(a, b)")),
        ("tridiagonal(x)", None),
        ("expn(x)", None),
        ("zeros(4, 8)", Some("zeros(f32[4, 8])")),
        ("ones(2, 3, 4)", Some("ones(f32[2, 3, 4])")),
        ("all_to_all(x, x, split_axis=0, concat=0)", Some("`split`")),
        ("sum(x, dimension=0)", Some("`axis`")),
    ];
    for (body, answer) in answers {
        let help = help_of(&format!("fn main(x: f32[4], y: f32[4], b: bool) {{ {body}\n }}"));
        match (&help, answer) {
            (Some(help), Some(answer)) => assert!(help.contains(answer), "{body}: {help}"),
            (None, None) => {}
            _ => panic!("{body}: {help:?}"),
        }
    }
}

#[test]
fn a_side_that_decides_ends_a_condition() {
    // `x.shape[-2]` of a vector is an error, which nothing asks for.
    let text = "fn square(x) { x.ndim >= 2 && x.shape[-1] == x.shape[-2] }
        fn main(x: f32[4], y: f32[4, 4]) { print(\"{} {}\", square(x), x.ndim == 1 || x.shape[-2] == 4, square(y)); }";
    assert_eq!(help_of(text), None);
    let det = help_of("fn main(x: f32[4]) { det(x) }");
    assert!(det.is_none_or(|help| !help.contains("-2")), "the error is about matrices");
}
