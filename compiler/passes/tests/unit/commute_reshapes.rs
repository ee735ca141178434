//! Tests of `commute_reshapes`: which detours over another shape vanish.

use crate::testing::typed;
use spmdc_inspect::print::module;
use spmdc_passes::commute_reshapes::commute_reshapes;
use spmdc_passes::dce::dce;

/// The number of reshapes left in a function on Y = 4.
fn reshapes(body: &str) -> usize {
    let declared = "x: f32[8, 16], y: f32[8, 16], b: f32[16], c: f32[2, 4, 16]";
    let text = format!("mesh (Y = 4);\nfn main({declared}) {{ let r = reshape(x, (2, 4, 16)); {body} }}");
    module(&dce(commute_reshapes(typed(&text)))).matches("reshape(").count()
}

#[test]
fn detours_vanish() {
    assert_eq!(reshapes("reshape(2 * exp(r), (8, 16))"), 0);
    assert_eq!(reshapes("let e = exp(r); reshape(where(e > b, e * e, 0), (8, 16))"), 0);
    assert_eq!(reshapes("reshape(r + reshape(y, (2, 4, 16)), (8, 16))"), 0);
    assert_eq!(reshapes("reshape(sin(reshape(reshape(exp(r), (8, 16)), (32, 4))), (8, 16))"), 0);
}

#[test]
fn assignments_lead_back_to_the_shape_of_their_region() {
    let body = |place: &str, new: &str| format!("let mut u = x; u[{place}] = {new}; u");
    assert_eq!(reshapes(&body("0, :", "x[1, :] * 2 + b")), 0);
    assert_eq!(reshapes(&body("3, 5", "x[3, 5] + 1")), 0);
    assert_eq!(reshapes(&body(":, -1", "x[:, 0] - y[:, 1]")), 0);
    // An operand that has only the inner shape is reshaped instead of the other one.
    assert_eq!(reshapes(&body(":, 5", "x[:, 0] * c[0, 0, :8]")), 2);
    assert_eq!(reshapes(&body("0, :", "b * 2")), 0);
    assert_eq!(reshapes(&body("0, 3:11", "x[:, 0] + 1")), 1);
}

#[test]
fn what_needs_the_shape_stays() {
    // Another shape, operands with a shape of their own, and a value of the detour that is used elsewhere.
    assert_eq!(reshapes("reshape(exp(r), (4, 32))"), 2);
    assert_eq!(reshapes("reshape(exp(r) + c, (8, 16))"), 2);
    assert_eq!(reshapes("reshape(exp(r) + c[:, :, :1], (8, 16))"), 2);
    assert_eq!(reshapes("let e = exp(r); (reshape(2 * e, (8, 16)), sum(e, axis=1))"), 2);
}
