//! Convolutions: values, groups, padding and errors.

use crate::testing::{self, floats, int};
use spmdc_functions::conv::transposed_padding;
use spmdc_grammar::codes::Code;
use spmdc_ir::call::term::Term;
use spmdc_layout::types::DType;
use spmdc_window_ops::windowed::Padding;

#[test]
fn vectors_are_convolved_as_in_numpy() {
    let convolved = |mode: &str| {
        let (a, v) = (floats(&[3], &[1.0, 2.0, 3.0]), floats(&[2], &[0.5, 1.0]));
        testing::run("convolve", &[v, a], |x| x, &[("mode", Term::Str(mode.into()))]).unwrap().floats()
    };
    assert_eq!(convolved("full"), [0.5, 2.0, 3.5, 3.0]);
    assert_eq!(convolved("same"), [0.5, 2.0, 3.5]);
    assert_eq!(convolved("valid"), [2.0, 3.5]);
}

#[test]
fn groups_have_their_own_channels() {
    let x = floats(&[1, 3, 2], &[1.0, 10.0, 2.0, 20.0, 3.0, 30.0]);
    let w = floats(&[2, 1, 2], &[1.0, 1.0, 1.0, 2.0]);
    let named = [("groups", int(2)), ("padding", Term::Str("VALID".into()))];
    let y = testing::run("conv", &[x, w], |x| x, &named).unwrap();
    assert_eq!((y.shape(), y.floats()), (&[1, 2, 2][..], vec![3.0, 50.0, 5.0, 80.0]));
}

#[test]
fn channels_must_fit() {
    let code = |x: &[usize], w: &[usize], named: &[(&str, Term)]| {
        let mut build = testing::builder();
        let [x, w] = [x, w].map(|shape| Term::Array(testing::parameter(&mut build, DType::F32, shape)));
        testing::call(&mut build, "conv", &[x, w], named).unwrap_err().code
    };
    assert_eq!(code(&[1, 4, 3], &[3, 2, 5], &[]), Code::E0205);
    assert_eq!(code(&[1, 4, 4], &[3, 2, 5], &[("groups", int(2))]), Code::E0205);
    assert_eq!(code(&[4, 4], &[3, 2], &[]), Code::E0205);
    assert_eq!(code(&[1, 4, 2], &[3, 2, 5], &[("input_dilation", int(2))]), Code::E0225);
}

/// As `_conv_transpose_padding` of jax.lax.
#[test]
fn transposed_padding_is_that_of_jax() {
    let same = |span, stride| transposed_padding(&Padding::Same { lower: false }, 0, span, stride);
    assert_eq!((same(3, 1), same(3, 2), same(2, 4), same(4, 2)), ((1, 1), (2, 1), (1, 3), (2, 2)));
    let valid = |span, stride| transposed_padding(&Padding::Valid, 0, span, stride);
    assert_eq!((valid(3, 2), valid(2, 4)), ((2, 2), (1, 3)));
}
