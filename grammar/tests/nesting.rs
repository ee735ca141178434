//! Input that is far too deep is refused, and nothing that is accepted overflows a small stack in any walk of the tree.

#![allow(clippy::unwrap_used)]

use spmdc_grammar::codes::Code;
use spmdc_grammar::span::FileId;
use spmdc_grammar::strip_spans::strip_spans;
use spmdc_grammar::{parse, print};

/// Ways to nest, as the repeated text before, in the middle and after.
const SHAPES: [(&str, &str, &str); 30] = [
    ("fn f(x) { ", "(", "x"),
    ("fn f(x) { ", "[", "x"),
    ("fn f(x) { ", "{ ", "x"),
    ("fn f(x) { ", "g(", "x"),
    ("fn f(x) { ", "g(1, ", "x"),
    ("fn f(x) { ", "x[", "x"),
    ("fn f(x) { ", "{ w: ", "x"),
    ("fn f(x) { ", "{ g(); ", "x"),
    ("fn f(x) { ", "-", "x"),
    ("fn f(x) { ", "!", "x"),
    ("fn f(x) { ", "x + ", "x"),
    ("fn f(x) { ", "x - (", "x"),
    ("fn f(x) { ", "x ** ", "x"),
    ("fn f(x) { ", "x && ", "x"),
    ("fn f(x) { ", "|a| ", "x"),
    ("fn f(x) { ", "|a, b| ", "x"),
    ("fn f(x) { ", "|| ", "x"),
    ("fn f(x) { ", "|a: T<A, B>| ", "x"),
    ("fn f(x) { ", "if c { x } else ", "{ x }"),
    ("fn f(x) { ", "if {0} { x } else ", "{ x }"),
    ("fn f(x) { ", "if c { x } else { ", "x"),
    ("fn f(x) { ", "if c { ", "x"),
    ("fn f(x) { ", "for i in 0..n { ", "x"),
    ("fn f(x) { let y = ", "if ", "x"),
    ("fn f(x) { ", "while ", "x"),
    ("fn f(x: ", "(", "f32"),
    ("fn f(x: ", "{ w: ", "f32"),
    ("fn f(x: f32[", "(", "1"),
    ("fn f(x: f32[", "1 + ", "1"),
    ("fn f(", "(", "x"),
];

/// Expressions that continue to the right: `x.a.a.a`.
const TAILS: [&str; 6] = [".a", ".0", "()", "[0]", "(a)(b)", " + x"];

fn closing(text: &str) -> String {
    let mut closing = String::new();
    for character in text.chars() {
        match character {
            '(' => closing.insert(0, ')'),
            '[' => closing.insert(0, ']'),
            '{' => closing.insert(0, '}'),
            ')' | ']' | '}' => drop(closing.remove(0)),
            _ => {}
        }
    }
    closing
}

/// Each shape: whole, left open, and with a mistake inside.
fn programs(count: usize, with_mistakes: bool) -> Vec<String> {
    let mut programs = Vec::new();
    for (before, repeated, inner) in SHAPES {
        let open = format!("{before}{}", repeated.repeat(count));
        let rest = if before.starts_with("fn f(x) {") { String::new() } else { ") { x }".to_string() };
        // `closing` of the whole text closes what `before` opened too, apart from a parameter list.
        let mut close = closing(repeated).repeat(count);
        close += match before {
            "fn f(x) { let y = " => "; x }",
            "fn f(x) { " => " }",
            "fn f(x: f32[" => "]",
            _ => "",
        };
        programs.push(format!("{open}{inner}{close}{rest}"));
        if with_mistakes {
            programs.push(format!("{open}; ) {close}{rest}"));
            programs.push(open);
        }
    }
    for tail in TAILS {
        programs.push(format!("fn f(x) {{ x{} }}", tail.repeat(count)));
        if with_mistakes {
            programs.push(format!("fn f(x) {{ x{} y }}", tail.repeat(count)));
        }
    }
    programs
}

/// The size of the stack that a thread gets unless it asks for another.
fn on_small_stack(run: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap();
}

#[test]
fn what_is_too_deep_is_refused() {
    on_small_stack(|| {
        for program in programs(20_000, false).into_iter().chain(programs(2_000, true)) {
            let (_, diagnostics) = parse(&program, FileId::default());
            let start: String = program.chars().take(40).collect();
            assert!(!diagnostics.is_empty(), "{start}");
            assert!(diagnostics.len() <= 3, "{start} {diagnostics:?}");
        }
    });
}

#[test]
fn the_refusal_says_what_to_do() {
    let nested = format!("fn f(x) {{ {}x{} }}", "(".repeat(20_000), ")".repeat(20_000));
    let (_, diagnostics) = parse(&nested, FileId::default());
    assert_eq!(diagnostics.len(), 1);
    assert_eq!(diagnostics[0].code, Code::E0003);
    assert_eq!(diagnostics[0].message, "brackets are nested too deeply");
    let long = format!("fn f(x) {{ x{} }}", " + x".repeat(20_000));
    let (_, diagnostics) = parse(&long, FileId::default());
    assert_eq!(diagnostics.len(), 1);
    assert_eq!(diagnostics[0].code, Code::E0003);
    assert_eq!(diagnostics[0].message, "this expression has too many operators in a row");
}

#[test]
fn what_is_accepted_can_be_walked() {
    on_small_stack(|| {
        for count in [120, 165, 250, 500] {
            for program in programs(count, true) {
                // What is refused is an empty program.
                let (tree, _) = parse(&program, FileId::default());
                let mut copy = tree.clone();
                assert!(copy == tree);
                let text = print(&tree);
                assert!(!format!("{tree:?}").is_empty());
                let (mut again, diagnostics) = parse(&text, FileId::default());
                if !tree.items.is_empty() {
                    assert!(diagnostics.is_empty(), "{text}\n{diagnostics:?}");
                    strip_spans(&mut copy);
                    strip_spans(&mut again);
                    copy.comments.clear();
                    assert!(copy == again, "{text}");
                }
            }
        }
    });
}

#[test]
fn ordinary_depth_is_accepted() {
    let brackets = format!("fn f(x) {{ {}x{} }}", "(".repeat(150), ")".repeat(150));
    let calls = format!("fn f(x) {{ {}x{} }}", "g(".repeat(150), ")".repeat(150));
    let sum = format!("fn f(x) {{ x{} }}", " + x".repeat(512));
    let branches = format!("fn f(x) {{ {} {{ x }} }}", "if c { x } else ".repeat(150));
    let statements = format!("fn f(x) {{ {} x }}", "let y = x + x; if c { x = -x; } ".repeat(2_000));
    let list = format!("fn f(x) {{ [{}] }}", "x + 1, ".repeat(2_000));
    for program in [brackets, calls, sum, branches, statements, list] {
        let (_, diagnostics) = parse(&program, FileId::default());
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
    }
}
