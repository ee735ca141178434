//! The known bounds of the factors of partial sums.

use spmdc_ir::program::partial_sums::FactorBounds;
use spmdc_layout::types::DType;
use spmdc_ops::constant::Constant;

#[test]
fn a_factor_makes_nothing_larger() {
    let of = |value: f64| {
        let known = FactorBounds::of(&Constant::float(DType::F32, value).into(), &[]);
        (known.shrinks, known.divides)
    };
    assert_eq!([1.0, -1.0].map(of), [(true, true); 2]);
    assert_eq!([0.5, -1e-40].map(of), [(true, false); 2]);
    assert_eq!([2.0, -1.5].map(of), [(false, true); 2]);
    assert_eq!([0.0, -0.0, f64::INFINITY, f64::NAN].map(of), [(false, false); 4]);
}
