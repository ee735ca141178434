//! Tests of `report::why`: where layouts come from, and which edits save communication.

use crate::testing::{compiled, compiled_with_sources};
use spmdc_compiler::pipeline::Options;
use spmdc_compiler::report::why::{forced, layouts, most_trials, trials};
use spmdc_compiler::totals::collectives;
use spmdc_grammar::span::{Span, line_column};
use spmdc_ir::program::Stage;
use spmdc_layout::cost::reported_trips;

const PROGRAM: &str = "mesh (X = 2, Y = 4);
fn main(x: f32[8@X, 16], w1: f32[16, 64@Y], w2: f32[64@Y, 16]) -> f32[8@X, 16] {
  let h = maximum(x @ w1, 0);
  h @ w2
}
";

fn on(line: usize) -> impl Fn(Span) -> bool {
    move |span| line_column(PROGRAM, span.start as usize).0 == line
}

#[test]
fn a_layout_leads_back_to_annotations() {
    let compilation = compiled(PROGRAM);
    let found = layouts(&compilation, Some("h"), &on(3));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].value, "`h: f32[8@X,64@Y]`");
    let last = |axis: usize| found[0].axes[axis].steps.last().unwrap().0.clone();
    assert_eq!(last(0), "written in the program: parameter `x: f32[8@X,16]`");
    assert!(last(1).contains("`w1: f32[16,64@Y]`") || last(1).contains("`w2: f32[64@Y,16]`"), "{}", last(1));
}

#[test]
fn parts_of_axes_lead_back_as_well() {
    let text = "mesh (Y = 8);\nfn main(x: f32[16@Y, 4], y: f32[16, 4]) {
  let r = reshape(x + y, (2, 8, 4));\n  reshape(r - sum(r, axis=1, keepdims=true), (16, 4))\n}\n";
    let compilation = compiled(text);
    let found = layouts(&compilation, Some("r"), &|span| line_column(text, span.start as usize).0 == 3);
    assert_eq!(found[0].value, "`r: f32[2@Y_0,8@Y_1,4]`");
    let found = layouts(&compilation, Some("y"), &|_| true);
    assert_eq!((found[0].value.as_str(), found[0].axes[0].axis.as_str()), ("parameter `y: f32[16@Y,4]`", "Y"));
    let last = found[0].axes[0].steps.last().unwrap().0.clone();
    assert_eq!(last, "written in the program: parameter `x: f32[16@Y,4]`");
}

#[test]
fn what_is_annotated_is_said_in_one_step() {
    let text = "mesh (X = 2);\nfn main(x: f32[8, 4]) -> f32[8@X, 4] {\n  let y: f32[8@X, 4] = cos(x);\n  let z = sin(y);\n  z * 2\n}";
    let compilation = compiled(text);
    let steps = |name| layouts(&compilation, Some(name), &|_| true)[0].axes[0].steps.clone();
    let words = |name| steps(name).into_iter().map(|(words, _)| words).collect::<Vec<_>>();
    assert_eq!(words("y"), ["written in the program: `y: f32[8@X,4]`"]);
    assert_eq!(words("z").last().unwrap(), "written in the program: `y: f32[8@X,4]`");
    let text = text.replace("f32[8@X, 4] = cos", "f32[8, 4] = cos");
    let compilation = compiled(&text);
    let found = layouts(&compilation, Some("z"), &|_| true);
    let words: Vec<&str> = found[0].axes[0].steps.iter().map(|(words, _)| words.as_str()).collect();
    let expected = "through `*`, from the `f32[8@X,4]` made by `*`";
    assert_eq!(words, [expected, "written in the program: the result `f32[8@X,4]`"]);
}

#[test]
fn an_edit_is_tried_before_it_is_shown() {
    let (set, compilation) = compiled_with_sources(PROGRAM);
    let (found, tried) = forced(&compilation, &set, &Options::default(), &on(4));
    assert!(!tried.is_part(), "{tried:?}");
    assert_eq!(found.len(), 1);
    assert!(found[0].layouts.iter().any(|layout| layout.value.contains("w2")));
    // Both weights are split over Y: changing one of them is not enough, but a split result receives less.
    let edit = found[0].edit.clone().unwrap();
    assert_eq!((edit.to.as_str(), edit.bytes_before, edit.bytes_after), ("f32[8@X, 16@Y]", 384, 192));
    let (set, compilation) = compiled_with_sources(&PROGRAM.replace("w2: f32[64@Y, 16]", "w2: f32[64, 16]"));
    let edit = forced(&compilation, &set, &Options::default(), &on(4)).0[0].edit.clone().unwrap();
    assert_eq!((edit.bytes_before, edit.bytes_after), (384, 0));
    assert_eq!(edit.to, "f32[16, 64@_]");
}

#[test]
fn an_axis_may_move_to_another_dimension() {
    let text = "mesh (X = 4);\nfn main(x: f32[24@X, 8]) {\n  x - mean(x, axis=0)\n}\n";
    let (set, compilation) = compiled_with_sources(text);
    let edit = forced(&compilation, &set, &Options::default(), &|_| true).0[0].edit.clone().unwrap();
    // `f32[24@_, 8]` needs no communication either, but each device would have to do all of the work.
    assert_eq!((edit.to.as_str(), edit.bytes_before, edit.bytes_after), ("f32[24, 8@X]", 48, 0));
    assert!(edit.flops_after <= edit.flops_before, "{edit:?}");
}

#[test]
fn a_value_between_may_be_annotated() {
    // Queries of one are split as keys of the other: the best layout for one is not the best for both.
    let (heads, rows) = ("f32[2@X, 4@Y, 16, 4]", "f32[2@X, 4, 16@Y, 4]");
    let attention = |scores: &str, q: &str, k: &str| {
        let product = format!("let {scores} = einsum(\"bhqd,bhkd->bhqk\", {q}, {k}) / 2;");
        (product, format!("einsum(\"bhqk,bhkd->bhqd\", softmax({scores}, axis=-1), v)"))
    };
    let ((one, first), (other, second)) = (attention("a", "q", "k"), attention("b", "k", "q"));
    let fixed = "let q = reshard(x, P(X, _, Y, _)); let k = reshard(y, P(X, Y, _, _));";
    let text = format!(
        "mesh (X = 2, Y = 4);\nfn main(x: {rows}, y: {heads}, v: {heads}) -> ({rows}, {heads}) {{\n{fixed} {one}\n{other}\n({first}, {second})\n}}"
    );
    let (set, compilation) = compiled_with_sources(&text);
    let on_line = |span: Span| line_column(&text, span.start as usize).0 == 3;
    let edit = forced(&compilation, &set, &Options::default(), &on_line).0[0].edit.clone().unwrap();
    assert_eq!((edit.from.as_str(), edit.to.as_str()), ("q", "q: f32[2, 4@Y, 16, 4]"));
    assert_eq!((edit.bytes_before, edit.bytes_after), (1728, 640));
    // The edit applies to the program's text.
    let mut edited = text.clone();
    edited.replace_range(edit.span.start as usize..edit.span.end as usize, &edit.to);
    let compilation = compiled(&edited);
    let found = collectives(compilation.stage(Stage::Partitioned).unwrap());
    let received: u64 = found.iter().map(|each| each.received * reported_trips(each.trips)).sum();
    assert_eq!(received, edit.bytes_after);
}

#[test]
fn trials_have_a_bound() {
    // Many annotations, and many values in a loop.
    let params: Vec<String> = (0..12).map(|at| format!("p{at}: f32[4@X, 4, 4@Y]")).collect();
    let lets: Vec<String> = (0..12).map(|at| format!("let v{at} = s * p{at};")).collect();
    let body = format!("let mut s = p0; for i in 0..3 {{ {} s = flip(v0 + v5, axis=2); }}", lets.join(" "));
    let text = format!("mesh (X = 2, Y = 2);\nfn main({}) {{\n{body}\nsum(s, axis=0)\n}}", params.join(", "));
    let (set, compilation) = compiled_with_sources(&text);
    let options = Options::default();
    let (_, tried) = trials(&set, &options, 20, Span::default());
    // Changes of one annotation leave most plans between layouts unchanged.
    let known = options.plans.count();
    assert!((1..100).contains(&known), "{known} ways");
    trials(&set, &options, 20, Span::default());
    assert_eq!(options.plans.count(), known);
    // Either axis of each annotation may be removed or move to two dimensions, and each of three dimensions of each value may get either axis.
    assert_eq!((tried.compiled, tried.possible), (20, 12 * 2 + 12 * 4 + 12 * 6));
    assert!(tried.is_part());
    let mut module = compilation.stage(Stage::Partitioned).unwrap().clone();
    let first = module.func.body.stmts.iter().find(|stmt| !stmt.is_control()).unwrap().clone();
    let mut most = |statements: usize| {
        module.func.body.stmts = vec![first.clone(); statements];
        most_trials(&module)
    };
    assert_eq!([1, 64, 128, 1024, 100_000].map(&mut most), [256, 256, 128, 16, 16]);
}

#[test]
fn a_value_is_known_by_each_name_that_it_gets() {
    let text = "mesh (X = 2);\nfn twice(a) { a + a }\nfn main(x: f32[8@X, 4], n: i32) {
  let t = cos(x);\n  let mut slots = zeros(f32[8, 4]);\n  slots = t;\n  let (u, _) = (slots, n);\n  twice(u)\n}";
    let compilation = compiled(text);
    let on = |line: usize| move |span: Span| line_column(text, span.start as usize).0 == line;
    let found = |name, line| -> Vec<String> {
        layouts(&compilation, Some(name), &on(line)).into_iter().map(|layout| layout.value).collect()
    };
    assert_eq!(found("slots", 6), ["`slots`, another name of `t: f32[8@X,4]`"]);
    assert_eq!(found("u", 7), ["`u`, another name of `t: f32[8@X,4]`"]);
    assert_eq!(found("a", 2), ["`a`, another name of `t: f32[8@X,4]`"]);
    assert_eq!(found("t", 4), ["`t: f32[8@X,4]`"]);
    assert_eq!(found("t", 6), [""; 0]);
    assert_eq!(layouts(&compilation, Some("slots"), &on(6))[0].axes[0].axis, "X");
}
