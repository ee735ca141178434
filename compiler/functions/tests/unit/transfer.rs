//! The operands of a transfer.

use crate::testing;
use spmdc_grammar::codes::Code;
use spmdc_ir::call::term::Term;

#[test]
fn a_mesh_is_needed() {
    let mut build = testing::builder();
    let error = testing::call(&mut build, "transfer", &[Term::Int(1), Term::Axis(0)], &[]).unwrap_err();
    assert_eq!(error.code, Code::E0210);
    assert!(error.message.contains("requires the name of a mesh"), "{}", error.message);
}
