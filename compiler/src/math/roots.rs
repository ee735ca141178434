//! Square and cube roots.

use super::value::{Mask, Real};

/// `1 / sqrt(x)`, in either width.
///
/// Both the root and the quotient are rounded, which could cost 1.5 ULP; the fused residues of both are put back.
/// `s = sqrt(x) + e`, `e ~ (s*s - x) / (2 s)`, so `1/sqrt(x) ~ y + y * (1 - s*y + (s*s - x) * y*y / 2)` with `y ~ 1/s`.
pub(super) fn rsqrt<X: Real>(x: X) -> X {
    // Small numbers are scaled up by an even power of two, so that the residue of the root does not underflow.
    let up = 4.0_f64.powi(X::FRACTION as i32 + 6);
    let small = x.less(X::TINY * up);
    let scaled = small.select(x * up, x);
    let root = scaled.sqrt();
    let first = x.constant(1.0) / root;
    let root_residue = root.fma(root, -scaled);
    let residue = (-root).fma(first, 1.0) + root_residue * (first * first) * 0.5;
    let better = first.fma(residue, first);
    // Zero, infinity and NaN have no residue: the first quotient is already right.
    let good = residue.abs().less(1.0).select(better, first);
    small.select(good * up.sqrt(), good)
}
