//! Elements at indices, by `take` and `take_along_axis`.

use crate::testing::{self, int, integers};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::array::Array;
use spmdc_ir::call::term::Term;
use spmdc_layout::types::DType;

fn x() -> Array {
    integers(&[2, 3], &[0, 1, 2, 3, 4, 5])
}

fn taken(name: &'static str, indices: Array, named: &[(&str, Term)]) -> Result<(Vec<usize>, Vec<i128>), Diagnostic> {
    let found = testing::run(name, &[x(), indices], |terms| terms, named)?;
    Ok((found.shape().to_vec(), found.ints()))
}

#[test]
fn modes_decide_about_indices_out_of_bounds() {
    let mode = |mode: &str| {
        let named = [("axis", int(1)), ("mode", Term::Str(mode.to_string()))];
        taken("take", integers(&[4], &[3, -1, -4, 1]), &named).unwrap().1[..4].to_vec()
    };
    assert_eq!(mode("clip"), [2, 0, 0, 1]);
    assert_eq!(mode("wrap"), [0, 2, 2, 1]);
    assert_eq!(mode("fill"), [i128::from(i32::MIN), 2, i128::from(i32::MIN), 1]);
    let (shape, elements) = taken("take", integers(&[2, 1], &[-1, 4]), &[]).unwrap();
    assert_eq!((shape, elements), (vec![2, 1], vec![5, 4]));
}

#[test]
fn other_dimensions_broadcast_along_an_axis() {
    let (shape, elements) = taken("take_along_axis", integers(&[1, 2], &[2, 0]), &[]).unwrap();
    assert_eq!((shape, elements), (vec![2, 2], vec![2, 0, 5, 3]));
    let error = taken("take_along_axis", integers(&[3, 2], &[0; 6]), &[]).unwrap_err();
    assert_eq!(error.code, Code::E0204);
    assert_eq!(taken("take_along_axis", integers(&[3], &[0; 3]), &[]).unwrap_err().code, Code::E0205);
}

#[test]
fn what_is_known_is_checked_at_compile_time() {
    let at = |index: i64| {
        let mut build = testing::builder();
        let x = Term::Array(testing::parameter(&mut build, DType::F32, &[4]));
        testing::call(&mut build, "take", &[x, int(index)], &[("axis", int(0))]).map(|_| testing::printed(&build))
    };
    assert_eq!(at(-1).unwrap()[1], "gather(a, b, dims=(0,), at=0)");
    assert_eq!(at(4).unwrap_err().code, Code::E0401);
}
