//! Layouts by search. Layouts that people write by hand are found. Where all candidates are tried, none is better than the best one found. A
//! program with the proposed annotations compiles, and has the results that it had.
//!
//! `SEARCHES=500` tries more random programs, `SEARCH=17` one of them.

use spmdc_compiler::search::{Price, ProposedLayout, SearchBounds, SearchRequest, edited};
use spmdc_grammar::format::format;
use spmdc_grammar::span::FileId;
use spmdc_tests::case::programs;
use spmdc_tests::compare::{Tolerance, difference};
use spmdc_tests::engine::{self, searched};
use spmdc_tests::random::Draw;
use spmdc_tests::root;
use std::fmt::Write as _;

/// Maximum share by which a found layout may be slower than the one written by hand.
const MOST_ABOVE_HAND: f64 = 1.02;

/// Times of which the greater is at most this many times the less are alike.
const ALIKE: f64 = 1.02;

/// Statements that are compiled in a search of a test.
const STATEMENTS: usize = 30_000;

const BOUNDS: SearchBounds = SearchBounds { statements: STATEMENTS, all: 64, time: None };

/// The program without the layouts of its types: `8@X` becomes `8`. A product has spaces around its `@`.
fn without_layouts(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('@') {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        let after = &after[1..];
        if before.ends_with(' ') {
            out.push('@');
            rest = after;
            continue;
        }
        let end = match after.strip_prefix('(') {
            Some(axes) => axes.find(')').map_or(after.len(), |end| end + 2),
            None => after.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(after.len()),
        };
        rest = &after[end..];
    }
    out + rest
}

/// The program with the edits of a layout, formatted.
fn written(text: &str, layout: &ProposedLayout) -> String {
    let text = edited(text, layout.edits.iter().map(|each| &each.edit));
    format(&text, FileId(0)).unwrap_or_else(|error| panic!("the edits are no program: {error:?}\n{text}"))
}

/// The number of bytes after `// memory:`.
fn memory_limit(text: &str) -> Option<u64> {
    let limit = text.lines().find_map(|line| line.strip_prefix("// memory: "))?;
    Some(spmdc_runtime::run::args::parse_bytes(limit).unwrap_or_else(|| panic!("`{limit}` is not a size")))
}

/// The cost of a program as it is written.
fn price(text: &str, memory: Option<u64>) -> Price {
    let nothing = SearchBounds { statements: 0, all: 0, time: Some(std::time::Duration::ZERO) };
    match searched(text, "", SearchRequest { memory, bounds: nothing }) {
        Ok(result) => result.before,
        Err(failures) => panic!("{failures:?}\n{text}"),
    }
}

#[test]
fn layouts_written_by_hand_are_found() {
    let mut found = String::new();
    for path in programs(&root().join("tests/shardings")) {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let memory = memory_limit(&text);
        let by_hand = price(&text, None);
        let open = without_layouts(&text);
        let result = searched(&open, "", SearchRequest { memory, bounds: BOUNDS });
        let result = result.unwrap_or_else(|failures| panic!("{name}: {failures:?}"));
        let best = result.layouts.first().unwrap_or_else(|| panic!("{name}: no layout was found"));
        let ratio = best.price.time.total() / by_hand.time.total();
        assert!(ratio <= MOST_ABOVE_HAND, "{name}: {:?} is {ratio} times the layout by hand, {by_hand:?}", best.price);
        assert!(memory.is_none_or(|limit| best.price.memory <= limit), "{name}: {:?} is beyond {memory:?}", best.price);
        assert_eq!(price(&written(&open, best), None), best.price, "{name}: the written program has other costs");
        let Price { received, memory, collectives, .. } = best.price;
        let _ = writeln!(
            found,
            "{name}: {received} bytes received in {collectives} collectives, {memory} bytes of memory; by hand {}, {}",
            by_hand.received, by_hand.memory
        );
        for each in &best.edits {
            let _ =
                writeln!(found, "  {}: {}", each.name, each.shown.1.split_whitespace().collect::<Vec<_>>().join(" "));
        }
    }
    insta::assert_snapshot!("layouts", found);
}

/// A program of a few operations on matrices, with the sizes of its parameters by chance.
fn small_program(draw: &mut Draw) -> String {
    const SIZES: [usize; 7] = [2, 3, 4, 6, 8, 12, 16];
    let mesh = draw.pick(&["X = 2, Y = 2", "X = 4", "X = 2, Y = 3", "X = 8"]);
    let mut size = || 16 * draw.pick(&SIZES);
    let (m, k, n) = (size(), size(), size());
    let mut program = format!("mesh ({mesh});\nfn main(x: f32[{m}, {k}], w: f32[{k}, {n}]) {{\n  let v0 = x @ w;\n");
    let mut rows_and_columns = (m, n);
    let count = 1 + draw.below(4);
    for at in 1..=count {
        let before = format!("v{}", at - 1);
        let (rows, columns) = rows_and_columns;
        let step = match draw.below(8) {
            0 => format!("tanh({before})"),
            1 => format!("softmax({before}, axis={})", draw.below(2)),
            2 => format!("{before} - mean({before}, axis=0)"),
            3 => {
                rows_and_columns = (columns, rows);
                format!("{before}.T")
            }
            4 => {
                rows_and_columns = (rows, rows);
                format!("{before} @ {before}.T")
            }
            5 if (rows, columns) == (m, n) => {
                rows_and_columns = (m, k);
                format!("{before} @ w.T")
            }
            6 => format!("cumsum({before}, axis={})", draw.below(2)),
            _ => format!("{before} * tanh(sum({before}, axis=1))[:, None]"),
        };
        let _ = writeln!(program, "  let v{at} = {step};");
    }
    let _ = writeln!(program, "  v{count}\n}}");
    program
}

#[test]
fn no_candidate_is_better_than_the_best_one_found() {
    let (mut compared, mut missed) = (0, 0);
    for number in crate::numbers("SEARCH", "SEARCHES", 12) {
        let text = small_program(&mut Draw::new("search", number));
        let of = |all: usize| {
            let bounds = SearchBounds { statements: usize::MAX, all, time: None };
            let result = searched(&text, "", SearchRequest { memory: None, bounds });
            result.unwrap_or_else(|failures| panic!("{number}: {failures:?}\n{text}"))
        };
        let all = of(MOST_TRIED);
        if !all.is_exhaustive {
            continue;
        }
        let (best, found) = (&all.layouts[0].price, of(0).layouts.swap_remove(0).price);
        let ratio = found.time.total() / best.time.total();
        assert!(ratio <= 1.1, "{number}: {found:?} is {ratio} times the best, {best:?}\n{text}");
        compared += 1;
        missed += usize::from(ratio > ALIKE);
    }
    assert!(20 * missed <= compared.max(20), "{missed} of {compared} searches missed the best layout");
}

/// Maximum number of candidates of a small program that are all tried.
const MOST_TRIED: usize = 3_000;

#[test]
fn proposed_programs_compile_and_compute_the_same() {
    for number in crate::numbers("SEARCH", "SEARCHES", 12) {
        let text = small_program(&mut Draw::new("search", number));
        let unlimited = searched(&text, "", SearchRequest { memory: None, bounds: BOUNDS });
        let unlimited = unlimited.unwrap_or_else(|failures| panic!("{number}: {failures:?}\n{text}"));
        // Less memory than the fastest layout needs.
        let limit = unlimited.layouts[0].price.memory * 3 / 4;
        let limited = searched(&text, "", SearchRequest { memory: Some(limit), bounds: BOUNDS });
        let limited = limited.ok().filter(|result| result.layouts[0].price.memory <= limit);
        let before = engine::compiled_quickly("before.spmd", &text, "").unwrap();
        let inputs = engine::inputs(&before, &["x=normal:1".into(), "w=normal:2".into()], &root()).unwrap();
        let expected = engine::run(&before, &inputs, Some(2)).unwrap();
        let limited = limited.iter().flat_map(|result| &result.layouts[..1]);
        for layout in unlimited.layouts.iter().chain(limited) {
            let text = written(&text, layout);
            let compiled = engine::compiled_quickly("after.spmd", &text, "");
            let compiled = compiled.unwrap_or_else(|failures| panic!("{number}: {failures:?}\n{text}"));
            let found = engine::run(&compiled, &inputs, Some(2)).unwrap();
            for (expected, found) in expected.results.iter().zip(&found.results) {
                let tolerance = Tolerance::reassociated(expected.dtype);
                let difference = difference(expected, found, tolerance);
                assert!(difference.is_none(), "{number}: {difference:?}\n{text}");
            }
        }
    }
}
