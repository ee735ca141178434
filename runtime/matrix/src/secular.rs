//! Eigenvalues and eigenvectors of a diagonal matrix plus a matrix of rank one (Li, "Solving secular equations stably and efficiently",
//! 1993).

use crate::lanes::VectorLoop;

/// Terms that are added, or factors that are multiplied, side by side.
const LANES: usize = 8;
/// Steps after which the interval of a root has no numbers inside.
const STEPS: usize = 100;

/// The matrix `D + rho z zᵀ`, by its diagonal in ascending order, and z. No element of z is zero, and no two of D are equal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Secular<'a> {
    pub poles: &'a [f64],
    pub z: &'a [f64],
    /// Positive.
    pub rho: f64,
}

/// An eigenvalue: a pole, by its number, and the distance from it, which has few roundings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SecularRoot {
    pub pole: usize,
    pub distance: f64,
}

/// A sum of `z² / (d - x)`, and its derivative.
#[derive(Clone, Copy, Debug)]
struct PoleSum {
    sum: f64,
    slope: f64,
}

/// The smaller root in magnitude of `c x² - a x + b` if `a` is positive, otherwise the other one: the root of the interpolation between
/// poles.
fn between(a: f64, b: f64, c: f64) -> f64 {
    let root = (a * a - 4.0 * b * c).abs().sqrt();
    if a <= 0.0 { (a - root) / (2.0 * c) } else { 2.0 * b / (a + root) }
}

/// The other root: that of the interpolation beyond the last pole.
fn beyond(a: f64, b: f64, c: f64) -> f64 {
    let root = (a * a - 4.0 * b * c).abs().sqrt();
    if a >= 0.0 { (a + root) / (2.0 * c) } else { 2.0 * b / (a - root) }
}

/// Stands for [`Secular::root`].
pub(crate) struct RootOf;

impl VectorLoop<(&Secular<'_>, usize)> for RootOf {
    type Output = SecularRoot;

    #[inline(always)]
    fn run((secular, number): (&Secular<'_>, usize)) -> SecularRoot {
        secular.root(number)
    }
}

/// Stands for [`Secular::exact_z`].
pub(crate) struct ExactZ;

impl VectorLoop<(&Secular<'_>, usize, &[usize], &[f64])> for ExactZ {
    type Output = f64;

    #[inline(always)]
    fn run((secular, number, poles, distances): (&Secular<'_>, usize, &[usize], &[f64])) -> f64 {
        secular.exact_z(number, poles, distances)
    }
}

impl Secular<'_> {
    /// The eigenvalue above the pole with a number.
    #[inline(always)]
    fn root(&self, number: usize) -> SecularRoot {
        let count = self.poles.len();
        let weight = |at: usize| self.rho * self.z[at] * self.z[at];
        if count == 1 {
            return SecularRoot { pole: 0, distance: weight(0) };
        }
        let is_last = number == count - 1;
        // The poles of the interpolation, which are next to the root.
        let left = if is_last { number - 1 } else { number };
        let gap = self.poles[left + 1] - self.poles[left];
        let width = if is_last { (0..count).map(weight).sum::<f64>() } else { gap };
        let middle = self.sums(left, number, width / 2.0);
        let at_middle = 1.0 + self.rho * (middle[0].sum + middle[1].sum);
        let pole = if is_last || at_middle >= 0.0 { number } else { number + 1 };
        let (mut low, mut high) = match (is_last, at_middle >= 0.0) {
            (true, true) => (0.0, width / 2.0),
            (true, false) => (width / 2.0, width),
            (false, true) => (0.0, width / 2.0),
            (false, false) => (-width / 2.0, 0.0),
        };
        // The root of the two next terms, if the others are as in the middle.
        let [first, second] = [weight(left), weight(left + 1)];
        let (from_left, from_right) =
            if is_last { (gap + width / 2.0, width / 2.0) } else { (width / 2.0, -width / 2.0) };
        let others = at_middle + first / from_left + second / from_right;
        let start = if pole == left {
            between(others * gap + first + second, first * gap, others)
        } else if is_last {
            beyond(-others * gap + first + second, -second * gap, others)
        } else {
            between(-others * gap + first + second, -second * gap, others)
        };
        let mut x = if low < start && start < high { start } else { (low + high) / 2.0 };
        for _ in 0..STEPS {
            let [own, other] = self.sums(left, pole, x);
            let value = 1.0 + self.rho * (own.sum + other.sum);
            if value.abs() <= 4.0 * f64::EPSILON * (1.0 + self.rho * (own.sum.abs() + other.sum.abs())) {
                break;
            }
            if value < 0.0 {
                low = x
            } else {
                high = x
            }
            let [near, far] = [left, left + 1].map(|at| (self.poles[at] - self.poles[pole]) - x);
            let slopes = [self.rho * own.slope, self.rho * other.slope];
            let c = value - near * slopes[0] - far * slopes[1];
            let a = (near + far) * value - near * far * (slopes[0] + slopes[1]);
            let b = near * far * value;
            let step = if is_last { beyond(a, b, c) } else { between(a, b, c) };
            let newton = -value / (slopes[0] + slopes[1]);
            let mut next = x + if step.is_finite() && step * value < 0.0 { step } else { newton };
            if !(low < next && next < high) {
                next = low + (high - low) / 2.0;
            }
            if next == x || next <= low || next >= high {
                break;
            }
            x = next;
        }
        SecularRoot { pole, distance: x }
    }

    /// The sums over the poles up to `left`, and over the others, at a distance from a pole.
    #[inline(always)]
    fn sums(&self, left: usize, pole: usize, distance: f64) -> [PoleSum; 2] {
        let at = (self.poles[pole], distance);
        let (own, other) = self.poles.split_at(left + 1);
        let (weights, other_weights) = self.z.split_at(left + 1);
        [pole_sum(own, weights, at), pole_sum(other, other_weights, at)]
    }

    /// The element of a vector z for which the computed roots are the eigenvalues exactly, up to a factor that all elements have: so the
    /// eigenvectors are orthogonal however close the roots are. `poles` and `distances` have the roots.
    #[inline(always)]
    fn exact_z(&self, number: usize, poles: &[usize], distances: &[f64]) -> f64 {
        let (own, last) = (self.poles[number], self.poles.len() - 1);
        let distance = |at: usize| (self.poles[poles[at]] - own) + distances[at];
        let mut products = [1.0; LANES];
        for at in 0..number {
            products[at % LANES] *= distance(at) / (self.poles[at] - own);
        }
        for at in number..last {
            products[at % LANES] *= distance(at) / (self.poles[at + 1] - own);
        }
        let square = products.iter().product::<f64>() * distance(last);
        square.abs().sqrt().copysign(self.z[number])
    }
}

/// The sum over some poles at a distance from another one, the origin.
#[inline(always)]
fn pole_sum(poles: &[f64], z: &[f64], (origin, distance): (f64, f64)) -> PoleSum {
    let (mut sums, mut slopes) = ([0.0; LANES], [0.0; LANES]);
    let (own, weights) = (poles.chunks_exact(LANES), z.chunks_exact(LANES));
    let (rest, rest_weights) = (own.remainder(), weights.remainder());
    for (poles, z) in own.zip(weights) {
        for lane in 0..LANES {
            let reciprocal = 1.0 / ((poles[lane] - origin) - distance);
            let term = z[lane] * z[lane] * reciprocal;
            sums[lane] += term;
            slopes[lane] += term * reciprocal;
        }
    }
    for (lane, (pole, z)) in rest.iter().zip(rest_weights).enumerate() {
        let reciprocal = 1.0 / ((pole - origin) - distance);
        let term = z * z * reciprocal;
        sums[lane] += term;
        slopes[lane] += term * reciprocal;
    }
    PoleSum { sum: sums.iter().sum(), slope: slopes.iter().sum() }
}
