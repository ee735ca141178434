//! Units of angles.

use std::f64::consts::PI;

use super::value::{Double, Single};
use super::{Description, MathFunction, Symmetry};

/// Radians in a degree.
const DEGREE: f64 = PI / 180.0;

/// Degrees in a radian.
const RADIAN: f64 = 180.0 / PI;

/// Degrees converted to radians.
pub(crate) struct Deg2Rad;

impl MathFunction for Deg2Rad {
    const DESCRIPTION: Description = Description {
        name: "deg2rad",
        example: "(x: f32[6]) { deg2rad(x * 90) }",
        is_instruction: false,
        ends: [0.0, -0.0, f64::INFINITY, -f64::INFINITY],
        symmetry: Some(Symmetry::Odd),
        interval: (-720.0, 720.0),
        edges: &[90.0, 180.0, RADIAN],
        reference: "x * (C(3.14159265358979323846264338327950288) / 180)",
    };

    fn single<X: Single>(x: X) -> X {
        (x.widen() * DEGREE).narrow()
    }

    fn double<X: Double>(x: X) -> X {
        x * DEGREE
    }
}

/// Radians converted to degrees.
pub(crate) struct Rad2Deg;

impl MathFunction for Rad2Deg {
    const DESCRIPTION: Description = Description {
        name: "rad2deg",
        example: "(x: f32[6]) { rad2deg(x) }",
        is_instruction: false,
        ends: [0.0, -0.0, f64::INFINITY, -f64::INFINITY],
        symmetry: Some(Symmetry::Odd),
        interval: (-12.0, 12.0),
        edges: &[1.0, PI, DEGREE],
        reference: "x * (180 / C(3.14159265358979323846264338327950288))",
    };

    fn single<X: Single>(x: X) -> X {
        (x.widen() * RADIAN).narrow()
    }

    fn double<X: Double>(x: X) -> X {
        x * RADIAN
    }
}
