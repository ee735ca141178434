//! Values that a block takes from outside.

use spmdc_ir::program::control::{Branch, Control};
use spmdc_ir::program::origin::Origin;
use spmdc_ir::program::walk::free_values;
use spmdc_ir::program::{Block, Stmt, Value};

#[test]
fn values_from_outside_are_found_through_inner_blocks() {
    let [a, b, c] = [Value(0), Value(1), Value(2)];
    let inner = Block { results: vec![b], ..Block::default() };
    let branch = Control::Branch(Branch { then: inner.clone(), otherwise: inner });
    let stmt = Stmt::of_control(branch, vec![a], vec![c], Origin::default());
    let block = Block { params: vec![a], stmts: vec![stmt], results: vec![c] };
    assert_eq!(free_values(&block), [b]);
}
