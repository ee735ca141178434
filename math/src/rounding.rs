//! Rounding to whole numbers, an instruction of most machines each.

use super::value::{Double, Single};
use super::{Description, MathFunction, Symmetry};

/// The largest integer that is not above x.
pub(crate) struct RoundDown;

impl MathFunction for RoundDown {
    const DESCRIPTION: Description = Description {
        name: "floor",
        example: "(x: f32[6]) { floor(x / 4) }",
        is_instruction: true,
        ends: [0.0, -0.0, f64::INFINITY, -f64::INFINITY],
        symmetry: None,
        interval: (-100.0, 100.0),
        edges: &[0.5, 1.0, -2.5, 4503599627370496.0, 8388608.0],
        reference: "F(floor)(x)",
    };

    fn single<X: Single>(x: X) -> X {
        x.floor()
    }

    fn double<X: Double>(x: X) -> X {
        x.floor()
    }
}

/// The smallest integer that is not below x.
pub(crate) struct RoundUp;

impl MathFunction for RoundUp {
    const DESCRIPTION: Description = Description {
        name: "ceil",
        example: "(x: f32[6]) { ceil(x / 4) }",
        is_instruction: true,
        ends: [0.0, -0.0, f64::INFINITY, -f64::INFINITY],
        symmetry: None,
        interval: (-100.0, 100.0),
        edges: &[0.5, 1.0, -2.5, 4503599627370496.0, 8388608.0],
        reference: "F(ceil)(x)",
    };

    fn single<X: Single>(x: X) -> X {
        x.ceil()
    }

    fn double<X: Double>(x: X) -> X {
        x.ceil()
    }
}

/// The nearest integer, or the nearest number with the given number of decimals; ties round to even.
pub(crate) struct RoundToEven;

impl MathFunction for RoundToEven {
    const DESCRIPTION: Description = Description {
        name: "round",
        example: "(x: f32[6]) { round(x / 4) }",
        is_instruction: true,
        ends: [0.0, -0.0, f64::INFINITY, -f64::INFINITY],
        symmetry: Some(Symmetry::Odd),
        interval: (-100.0, 100.0),
        edges: &[0.5, 1.0, -2.5, 4503599627370496.0, 8388608.0],
        reference: "F(nearbyint)(x)",
    };

    fn single<X: Single>(x: X) -> X {
        x.nearest()
    }

    fn double<X: Double>(x: X) -> X {
        x.nearest()
    }
}

/// The integer part, rounded towards 0.
pub(crate) struct RoundToZero;

impl MathFunction for RoundToZero {
    const DESCRIPTION: Description = Description {
        name: "trunc",
        example: "(x: f32[6]) { trunc(x / 4) }",
        is_instruction: true,
        ends: [0.0, -0.0, f64::INFINITY, -f64::INFINITY],
        symmetry: Some(Symmetry::Odd),
        interval: (-100.0, 100.0),
        edges: &[0.5, 1.0, -2.5, 4503599627370496.0, 8388608.0],
        reference: "F(trunc)(x)",
    };

    fn single<X: Single>(x: X) -> X {
        x.trunc()
    }

    fn double<X: Double>(x: X) -> X {
        x.trunc()
    }
}
