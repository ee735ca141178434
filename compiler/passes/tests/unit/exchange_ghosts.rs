//! Tests of `exchange_ghosts`: which windows need a copy.

use crate::testing::parsed;
use spmdc_compiler::pipeline::{Options, compile};
use spmdc_ir::program::Stage;

/// The names of the statements of a partitioned program.
fn statements(source: &str) -> Vec<&'static str> {
    let options = Options { stop_after: Some(Stage::Partitioned), ..Options::default() };
    let compilation = compile(&parsed(source), &options).unwrap();
    let module = compilation.stage(Stage::Partitioned).unwrap();
    module.func.body.stmts.iter().map(|stmt| stmt.name()).collect()
}

#[test]
fn padding_is_a_part_of_the_blocks() {
    let source = "mesh (Y = 4); fn main(x: f32[32@Y]) { reduce_window(x, 0, \"add\", 3, padding=\"SAME\") }";
    assert_eq!(statements(source), ["ghosted", "patches", "sum"]);
}

#[test]
fn windows_of_equal_blocks_need_no_copy() {
    let source = "mesh (Y = 4); fn main(x: f32[32@Y]) { reduce_window(x, 0, \"add\", 2, window_strides=2) }";
    assert_eq!(statements(source), ["patches", "sum"]);
}
