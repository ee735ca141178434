//! How far a value of a random program may be off: sums may be taken in another order, and what is computed of them follows.

use super::slopes::Slopes;
use spmdc_abi::{DType, Width};

/// The known bounds of the elements of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Precision {
    /// A bound of the error; none for exact values.
    pub error: f64,
    /// In a loop: how much of the error that the carried value has when a trip begins is added to it.
    pub follows: f64,
    /// A bound of the magnitude of floats.
    pub size: f64,
    /// How it depends on the parameters of the functions around it of which derivatives are taken.
    pub slopes: Slopes,
}

/// The distance between numbers around one, twice for f32 and f64 since their functions are right within an ULP.
pub fn unit(dtype: DType) -> f64 {
    let Some(format) = dtype.format() else { return 0.0 };
    let place = (-f64::from(format.mantissa)).exp2();
    if dtype.is_narrow() { place } else { 2.0 * place }
}

/// Whether a sum of this size is far from the largest number of its type.
pub fn fits(dtype: DType, size: f64) -> bool {
    dtype.format().is_none_or(|format| size < 0.9 * dtype.widen(format.largest()))
}

impl Precision {
    pub fn exact(size: f64) -> Precision {
        Precision { error: 0.0, follows: 0.0, size, slopes: Slopes::default() }
    }

    /// The carried value of a loop, in its body.
    pub fn carried(dtype: DType, size: f64, slopes: Slopes) -> Precision {
        match dtype.is_float() {
            true => Precision { follows: 1.0, slopes, ..Precision::exact(size) },
            false => Precision::exact(size),
        }
    }

    pub fn is_exact(&self) -> bool {
        self.error == 0.0 && self.follows == 0.0
    }

    /// Of a function of operands, for each of which is said how much of its error comes through. Exact operands give the same bits
    /// anywhere; on others each rounding may go the other way.
    pub fn of(dtype: DType, size: f64, roundings: f64, operands: &[(f64, Precision)]) -> Precision {
        if !dtype.is_float() {
            return Precision::exact(size);
        }
        let slopes = Precision::sloped((roundings + 4.0) * unit(dtype), operands);
        if operands.iter().all(|(_, operand)| operand.is_exact()) {
            return Precision { slopes, ..Precision::exact(size) };
        }
        let sum = |of: fn(&Precision) -> f64| operands.iter().map(|(slope, operand)| slope * of(operand)).sum::<f64>();
        let error = sum(|operand| operand.error) + roundings * unit(dtype) * (1.0 + size);
        Precision { error, follows: sum(|operand| operand.follows), size, slopes }
    }

    fn sloped(rounding: f64, operands: &[(f64, Precision)]) -> Slopes {
        let operands = operands.iter().map(|(slope, operand)| (*slope, operand.error, operand.slopes));
        Slopes::of(rounding, &operands.collect::<Vec<_>>())
    }

    /// Of a mean or a sum of products, which is never exact for floats. Narrow floats are summed in f32 and rounded once.
    pub fn summed(dtype: DType, terms: usize, size: f64, operands: &[(f64, Precision)]) -> Precision {
        if !dtype.is_float() {
            return Precision::exact(size);
        }
        let accumulated = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
        // Roundings add up like steps of a random walk.
        let summing = unit(accumulated) * (4.0 + 2.0 * (terms as f64).sqrt());
        let own = summing * size + 2.0 * unit(dtype) * (1.0 + size);
        let known = Precision::of(dtype, size, 0.0, operands);
        let slopes = Precision::sloped(summing + 4.0 * unit(dtype), operands);
        Precision { error: known.error + own, slopes, ..known }
    }

    /// The derivative of this along such directions, whose magnitudes add up to `total` for a cotangent.
    pub fn along(self, dtype: DType, direction: Precision, total: f64) -> Precision {
        let (size, error, slopes) =
            self.slopes.along(total * direction.size, total * direction.error, direction.slopes);
        Precision { error: error + unit(dtype) * (1.0 + size), follows: 0.0, size, slopes }
    }

    /// Where no derivative is taken by what it depends on.
    pub fn outside(self) -> Precision {
        Precision { slopes: Slopes::default(), ..self }
    }

    /// The worse of two.
    pub fn or(self, other: Precision) -> Precision {
        Precision {
            error: self.error.max(other.error),
            follows: self.follows.max(other.follows),
            size: self.size.max(other.size),
            slopes: self.slopes.or(other.slopes),
        }
    }

    /// After a loop whose body computes this from its carried value, which has such slopes when a trip begins.
    pub fn after(self, trips: usize, start: Precision, carried: Slopes) -> Precision {
        let error = (0..trips).fold(start.error, |error, _| self.follows * error + self.error);
        let slopes = carried.repeated(self.slopes, trips);
        Precision { error, follows: 0.0, size: self.size.max(start.size), slopes }
    }

    /// Whether a comparison within the error still says something, and nothing overflows.
    pub fn is_useful(&self, dtype: DType) -> bool {
        let units = match dtype.width() {
            Width::W8 => 2.0,
            Width::W16 => 32.0,
            Width::W32 | Width::W64 => 4096.0,
        };
        let most = units * unit(dtype);
        let is_small = self.size <= 1000.0 && fits(dtype, self.size);
        !dtype.is_float() || self.error <= most && self.follows <= 8.0 && is_small
    }
}
