//! Reductions of windows: values and errors.

use crate::testing::{self, floats, int, ints};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::term::Term;

fn of(x: &[f64], computation: &str, named: &[(&str, Term)]) -> Result<Vec<f64>, Diagnostic> {
    let array = floats(&[x.len()], x);
    let init = named.iter().find(|(name, _)| *name == "init").map_or(Term::Nothing, |(_, term)| term.clone());
    let terms = |mut x: Vec<Term>| {
        x.extend([init, Term::Str(computation.into())]);
        x
    };
    let named: Vec<(&str, Term)> = named.iter().filter(|(name, _)| *name != "init").cloned().collect();
    testing::run("reduce_window", &[array], terms, &named).map(|array| array.floats())
}

#[test]
fn windows_are_reduced() {
    let x = [1.0, 2.0, 3.0, 4.0, 5.0];
    assert_eq!(of(&x, "add", &[("window_dimensions", int(2))]).unwrap(), [3.0, 5.0, 7.0, 9.0]);
    let same = ("padding", Term::Str("same".into()));
    assert_eq!(of(&x, "max", &[("window_dimensions", int(3)), same.clone()]).unwrap(), [2.0, 3.0, 4.0, 5.0, 5.0]);
    let strided = [("window_dimensions", int(2)), ("window_strides", int(2)), ("window_dilation", int(2))];
    assert_eq!(of(&x, "mul", &strided).unwrap(), [3.0, 15.0]);
    let dilated = [("window_dimensions", int(2)), ("base_dilation", int(2)), ("init", int(10))];
    assert_eq!(of(&x[..3], "add", &dilated).unwrap(), [11.0, 12.0, 12.0, 13.0]);
    let pairs = Term::Tuple(vec![ints(&[-1, 2])]);
    assert_eq!(
        of(&x, "min", &[("window_dimensions", int(2)), ("padding", pairs)]).unwrap(),
        [2.0, 3.0, 4.0, 5.0, f64::INFINITY]
    );
    assert_eq!(of(&x, "add", &[("window_dimensions", int(6))]).unwrap(), [] as [f64; 0]);
}

#[test]
fn wrong_windows_are_refused() {
    let code = |computation, named: &[(&str, Term)]| of(&[1.0, 2.0], computation, named).unwrap_err().code;
    assert_eq!(code("sum", &[("window_dimensions", int(2))]), Code::E0225);
    assert_eq!(code("or", &[("window_dimensions", int(2))]), Code::E0215);
    assert_eq!(code("add", &[("window_dimensions", int(0))]), Code::E0225);
    assert_eq!(code("add", &[("window_dimensions", ints(&[2, 2]))]), Code::E0205);
}
