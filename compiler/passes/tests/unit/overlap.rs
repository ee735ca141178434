//! Tests of `overlap`: the statements before a collective.

use crate::testing::compiled;
use spmdc_ir::program::{Block, Stage};

/// The statements of a function on X = 4 that are products, collectives or prints.
fn order(body: &str) -> String {
    let source = format!(
        "mesh (X = 4);\nfn main(x: f32[64, 64@X], w: f32[64@X, 64], y: f32[64, 64], n: i32[64, 64], z: f32[512, 512]) {{ {body} }}"
    );
    let compilation = compiled(&source);
    fn names(block: &Block) -> Vec<&'static str> {
        let mut found = Vec::new();
        for stmt in &block.stmts {
            match stmt.name() {
                name @ ("einsum" | "all_reduce" | "all_gather" | "print" | "reduce_scatter") => found.push(name),
                "for" => {
                    found.push("for");
                    found.extend(stmt.blocks().flat_map(names));
                }
                _ => {}
            }
        }
        found
    }
    names(&compilation.stage(Stage::Optimized).unwrap().func.body).join(" ")
}

#[test]
fn work_that_does_not_need_a_sum_comes_before_it() {
    assert_eq!(order("let a = x @ w; let b = y @ y; tanh(a) * b"), "einsum einsum all_reduce");
    // Even though a user comes first.
    assert_eq!(order("let a = tanh(x @ w); let b = y @ y; a * b"), "einsum einsum all_reduce");
    assert_eq!(order("let a = tanh(x @ w); let b = a @ y; a * b"), "einsum all_reduce einsum");
    assert_eq!(
        order("for i in 0..3 { print(\"{}\", i); } let a = tanh(x @ w); a * (y @ y)"),
        "for print einsum einsum all_reduce"
    );
}

#[test]
fn what_is_printed_stays_in_order() {
    assert_eq!(
        order("let a = x @ w; print(\"{}\", a); print(\"b\"); a * (y @ y)"),
        "einsum einsum all_reduce print print"
    );
    // A division may stop the program, after the print.
    assert_eq!(
        order("let a = x @ w; print(\"{}\", a[0, 0]); a * (f32(n // n) @ y)").split(' ').next_back(),
        Some("einsum")
    );
}

#[test]
fn little_memory_is_held_for_it() {
    assert_eq!(order("let a = tanh(x @ w); a[0, 0] * (z @ z)"), "einsum all_reduce einsum");
}
