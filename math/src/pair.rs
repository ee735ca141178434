//! Sums and products with their rounding errors: numbers of twice the precision, as far as the functions need them.
//!
//! A [`Pair`] represents `high + low`, where `low` is at most about half a place of `high`.

use super::value::{Operand, Real};

/// An unevaluated sum.
#[derive(Clone, Copy)]
pub(super) struct Pair<X> {
    pub(super) high: X,
    pub(super) low: X,
}

impl<X: Real> Pair<X> {
    /// `a + b` exactly, if `a` is zero or its exponent is not below that of `b`.
    #[inline(always)]
    pub(super) fn sum_of_ordered(a: X, b: X) -> Pair<X> {
        let high = a + b;
        Pair { high, low: (a - high) + b }
    }

    /// `a + b` exactly.
    #[inline(always)]
    pub(super) fn sum(a: X, b: X) -> Pair<X> {
        let high = a + b;
        let of_b = high - a;
        Pair { high, low: (a - (high - of_b)) + (b - of_b) }
    }

    /// `a * b` exactly, barring underflow.
    #[inline(always)]
    pub(super) fn product(a: X, b: impl Operand<X>) -> Pair<X> {
        let b = b.lift(a);
        let high = a * b;
        Pair { high, low: a.fma(b, -high) }
    }

    /// The same sum with the largest possible `high`.
    #[inline(always)]
    pub(super) fn normalized(self) -> Pair<X> {
        Pair::sum_of_ordered(self.high, self.low)
    }

    /// Adds a number that is small compared with `high`.
    #[inline(always)]
    pub(super) fn plus_small(self, small: X) -> Pair<X> {
        Pair { high: self.high, low: self.low + small }
    }

    /// The sum, rounded.
    #[inline(always)]
    pub(super) fn rounded(self) -> X {
        self.high + self.low
    }

    /// The product, to about twice the precision.
    #[inline(always)]
    pub(super) fn times(self, other: Pair<X>) -> Pair<X> {
        let product = Pair::product(self.high, other.high);
        product.plus_small(self.high.fma(other.low, self.low * other.high))
    }

    /// The square root, to about twice the precision.
    #[inline(always)]
    pub(super) fn sqrt(self) -> Pair<X> {
        let high = self.high.sqrt();
        let residue = (-high).fma(high, self.high) + self.low;
        // The root of zero has no residue.
        Pair { high, low: residue / (high + high).at_least(X::TINY) }
    }

    /// The quotient, to about twice the precision.
    #[inline(always)]
    pub(super) fn divided_by(self, divisor: Pair<X>) -> Pair<X> {
        let inverse = self.high.constant(1.0) / divisor.high;
        let high = self.high * inverse;
        let residue = (-high).fma(divisor.high, self.high) + (-high).fma(divisor.low, self.low);
        Pair { high, low: residue * inverse }
    }
}
