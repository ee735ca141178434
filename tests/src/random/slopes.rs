//! Bounds for derivatives of a value of a random function, and for their errors.
//!
//! Directions have no element above one, so `first` bounds the sum of the magnitudes of an element's partial derivatives. A cotangent whose
//! magnitudes add up to `n` then gives cotangents that are `n * first` at most: one bound serves both modes. A chain of operations
//! multiplies and adds these bounds as it does the derivatives.

/// Above every bound that says anything: derivatives of the third order and their errors are not followed further.
const UNKNOWN: f64 = 1e30;

/// The known bounds of the derivatives of a value by the parameters of the functions around it; zeros if it does not depend on these.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Slopes {
    pub first: f64,
    pub second: f64,
    pub third: f64,
    /// Bounds of the errors of the first and the second derivative.
    pub first_error: f64,
    pub second_error: f64,
}

/// How statements of differentiated functions are drawn.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Differentiated {
    /// So many functions of which derivatives are taken are around the statement.
    pub depth: usize,
    /// The reverse of one of them is taken.
    pub reversed: bool,
    /// Kinks and steps are left out altogether.
    pub smooth: bool,
}

impl Slopes {
    /// Those of a parameter of a function, whose argument has these.
    pub fn of_parameter(self) -> Slopes {
        Slopes { first: self.first + 1.0, ..self }
    }

    pub fn is_none(&self) -> bool {
        self.first == 0.0
    }

    /// Of a function of operands: for each its slope, the error of its value, and its own slopes. `rounding` is the relative error of one
    /// operation. The partial derivatives of higher order are at most a few times powers of the slopes.
    pub fn of(rounding: f64, operands: &[(f64, f64, Slopes)]) -> Slopes {
        let sum = |of: &dyn Fn(&(f64, f64, Slopes)) -> f64| operands.iter().map(of).sum::<f64>();
        let [first, second] = [sum(&|(_, _, s)| s.first), sum(&|(_, _, s)| s.second)];
        if first == 0.0 {
            return Slopes::default();
        }
        let error = sum(&|(_, error, _)| *error);
        let steepest = operands.iter().fold(1.0f64, |most, (slope, _, _)| most.max(*slope));
        let (bend, twist) = (2.0 * steepest.powi(2), 6.0 * steepest.powi(3));
        let own_first = sum(&|(slope, _, s)| slope * s.first);
        let own_second = sum(&|(slope, _, s)| slope * s.second) + bend * first.powi(2);
        let first_error = sum(&|(slope, _, s)| slope * s.first_error) + bend * error * first + rounding * own_first;
        let of_errors = sum(&|(_, _, s)| s.first_error);
        let second_error = sum(&|(slope, _, s)| slope * s.second_error)
            + twist * error * first.powi(2)
            + 2.0 * bend * first * of_errors
            + bend * error * second
            + rounding * own_second;
        Slopes {
            first: own_first,
            second: own_second,
            third: sum(&|(slope, _, s)| slope * s.third) + 3.0 * bend * first * second + twist * first.powi(3),
            first_error,
            second_error,
        }
    }

    /// With so large an error of each derivative in addition.
    pub fn rounded(self, relative: f64) -> Slopes {
        Slopes {
            first_error: self.first_error + relative * self.first,
            second_error: self.second_error + relative * self.second,
            ..self
        }
    }

    /// The larger of each.
    pub fn or(self, other: Slopes) -> Slopes {
        Slopes {
            first: self.first.max(other.first),
            second: self.second.max(other.second),
            third: self.third.max(other.third),
            first_error: self.first_error.max(other.first_error),
            second_error: self.second_error.max(other.second_error),
        }
    }

    /// After a loop whose carried value has these slopes at the start of each trip, and the slopes of `after` at its end. A bound of order
    /// `k` is of weight `k` in all others, so each trip scales it by the same power at most.
    pub fn repeated(self, after: Slopes, trips: usize) -> Slopes {
        if self.is_none() {
            return after;
        }
        let ratio = |before: f64, after: f64, order: i32| (after / before.max(1e-300)).powf(1.0 / f64::from(order));
        let ratios = [
            ratio(self.first, after.first, 1),
            ratio(self.second, after.second, 2),
            ratio(self.third, after.third, 3),
            ratio(self.first_error, after.first_error, 1),
            ratio(self.second_error, after.second_error, 2),
        ];
        let grown = ratios.into_iter().fold(1.0, f64::max).powi(trips as i32);
        Slopes {
            first: self.first * grown,
            second: self.second * grown.powi(2),
            third: self.third * grown.powi(3),
            first_error: self.first_error * grown,
            second_error: self.second_error * grown.powi(2),
        }
    }

    /// The size, the error and the slopes of the derivative along directions up to `size`, which have an error and slopes themselves.
    pub fn along(self, size: f64, error: f64, direction: Slopes) -> (f64, f64, Slopes) {
        let slopes = Slopes {
            first: self.second * size + self.first * direction.first,
            second: self.third * size + 2.0 * self.second * direction.first + self.first * direction.second,
            third: UNKNOWN,
            first_error: self.second_error * size
                + self.second * error
                + self.first_error * direction.first
                + self.first * direction.first_error,
            second_error: UNKNOWN,
        };
        (self.first * size, self.first_error * size + self.first * error, slopes)
    }
}
