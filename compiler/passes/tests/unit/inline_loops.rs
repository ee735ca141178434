//! Tests of `inline_loops`: a loop of one trip is its body.

use crate::testing::typed;
use spmdc_ir::program::Stage;
use spmdc_passes::inline_loops::inline_loops;

fn inlined(source: &str) -> String {
    let mut module = typed(source);
    module.stage = Stage::Partitioned;
    spmdc_inspect::print::module(&inline_loops(module))
}

#[test]
fn a_loop_of_one_trip_is_its_body() {
    let text = inlined(
        "fn main(x: f32[4]) -> (f32[4], f32[1, 4], i32) {
            let mut a = x;
            let mut n = 0;
            let rows = for i in 3..4 collect { for j in 0..1 { a = exp(a); n += i + j; } 2 * a };
            (a, rows, n)
        }",
    );
    assert!(!text.contains("for ") && text.contains("exp") && text.contains("broadcast_to"), "{text}");
}

#[test]
fn other_loops_stay() {
    let program = |range: &str| format!("fn main(x: f32[4]) {{ let mut a = x; for i in {range} {{ a = exp(a); }} a }}");
    assert!(inlined(&program("0..2")).contains("for "));
    assert!(inlined(&program("2..2")).contains("for "));
}
