//! The padding of windows.

use crate::testing::{self, int, ints};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_ir::call::arg::Arg;
use spmdc_ir::call::term::Term;
use spmdc_window_ops::windowed::{Padding, WindowDim, padded};

fn padding(term: Term) -> Result<Padding, Diagnostic> {
    Padding::of(Some(Arg { name: None, term, span: Span::default() }), 2, Padding::Valid)
}

#[test]
fn padding_has_several_forms() {
    assert_eq!(padding(Term::Str("same".into())).unwrap(), Padding::Same { lower: false });
    assert_eq!(padding(int(2)).unwrap(), Padding::Pairs(vec![(2, 2), (2, 2)]));
    assert_eq!(padding(ints(&[1, 2])).unwrap(), Padding::Pairs(vec![(1, 1), (2, 2)]));
    let pairs = Term::Tuple(vec![ints(&[1, -2]), int(3)]);
    assert_eq!(padding(pairs).unwrap(), Padding::Pairs(vec![(1, -2), (3, 3)]));
    assert_eq!(padding(Term::Str("full".into())).unwrap_err().code, Code::E0225);
    assert_eq!(padding(ints(&[1, 2, 3])).unwrap_err().code, Code::E0205);
}

/// As `jax.lax.padtype_to_pads`.
#[test]
fn same_gives_a_window_for_each_stride() {
    let pair = |lower, extent, size, stride, dilation| {
        let window = WindowDim { size, stride, dilation, ..WindowDim::ONE };
        Padding::Same { lower }.pair(0, extent, &window)
    };
    assert_eq!((pair(false, 5, 2, 1, 1), pair(true, 5, 2, 1, 1)), ((0, 1), (1, 0)));
    assert_eq!((pair(false, 5, 3, 2, 1), pair(false, 6, 3, 2, 1)), ((1, 1), (0, 1)));
    assert_eq!((pair(false, 5, 3, 1, 2), pair(false, 5, 1, 3, 1), pair(false, 0, 3, 1, 1)), ((2, 2), (0, 0), (0, 0)));
}

#[test]
fn elements_are_left_out_by_negative_padding() {
    let shapes = |before, after| {
        let mut build = testing::builder();
        let x = testing::parameter(&mut build, spmdc_layout::types::DType::F32, &[5]);
        let window = WindowDim { padding: (before, after), ..WindowDim::ONE };
        padded(&mut build, x, &[window], 0).map(|value| (build.ty(value).shape()[0], testing::printed(&build)))
    };
    assert_eq!(shapes(-1, 2).unwrap(), (6, vec!["a[1:5]".to_string(), "pad(a, [(0, 2)], bits=0)".to_string()]));
    assert_eq!(shapes(-7, 4).unwrap().0, 2);
    assert_eq!(shapes(-7, 1).unwrap_err().code, Code::E0205);
}
