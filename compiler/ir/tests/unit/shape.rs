//! Common shapes, and axes.

use spmdc_grammar::codes::Code;
use spmdc_grammar::span::Span;
use spmdc_ir::shape::{axes, axis, broadcast};

#[test]
fn shapes_broadcast_from_the_end() {
    assert_eq!(broadcast(&[&[2, 1, 3], &[5, 1], &[]]).unwrap(), [2, 5, 3]);
    assert_eq!(broadcast(&[&[0], &[1]]).unwrap(), [0]);
    let error = broadcast(&[&[3], &[4]]).unwrap_err();
    assert_eq!(error.code, Code::E0204);
    assert!(error.message.contains("[3] and [4]"));
}

#[test]
fn axes_count_from_both_ends_and_occur_once() {
    let span = Span::default();
    assert_eq!(axes(&[0, -1], 3, span).unwrap(), [0, 2]);
    assert_eq!(axes(&[1, -1], 2, span).unwrap_err().code, Code::E0206);
    assert!(axis(2, 2, span).unwrap_err().message.contains("axis 2 is out of range for an array with 2 dimensions"));
}
