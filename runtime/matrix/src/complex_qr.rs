//! Eigenvalues and eigenvectors of complex matrices: reduction to a Hessenberg matrix by reflections (`gehrd`), QR steps with one shift
//! (`lahqr`), and substitution (`trevc`).

use faer::prelude::ReborrowMut;
use faer::{MatMut, c64};

/// Steps without an eigenvalue after which the iteration is given up.
const STEPS: usize = 300;
/// Magnitudes at which a vector is scaled down.
const LARGE: f64 = 1e100;
/// The distance from 1 to the next number.
const EPSILON: f64 = f64::EPSILON;

/// A matrix by its planes.
struct Planes<'a> {
    re: MatMut<'a, f64>,
    im: MatMut<'a, f64>,
}

impl Planes<'_> {
    fn rows(&self) -> usize {
        self.re.nrows()
    }

    fn get(&self, i: usize, j: usize) -> c64 {
        c64::new(self.re[(i, j)], self.im[(i, j)])
    }

    fn set(&mut self, i: usize, j: usize, value: c64) {
        (self.re[(i, j)], self.im[(i, j)]) = (value.re, value.im);
    }

    fn change(&mut self, i: usize, j: usize, by: c64) {
        self.set(i, j, self.get(i, j) - by);
    }

    fn scale(&mut self, i: usize, j: usize, by: c64) {
        self.set(i, j, self.get(i, j) * by);
    }
}

/// The magnitude of a number within a factor of √2.
fn about(x: c64) -> f64 {
    x.re.abs() + x.im.abs()
}

fn size(x: c64) -> f64 {
    x.re.hypot(x.im)
}

/// The quotient, without squares that overflow (Smith, "Algorithm 116: Complex division", 1962).
fn quotient(x: c64, y: c64) -> c64 {
    if y.re.abs() >= y.im.abs() {
        let ratio = y.im / y.re;
        let scale = y.re + y.im * ratio;
        c64::new((x.re + x.im * ratio) / scale, (x.im - x.re * ratio) / scale)
    } else {
        let ratio = y.re / y.im;
        let scale = y.re * ratio + y.im;
        c64::new((x.re * ratio + x.im) / scale, (x.im * ratio - x.re) / scale)
    }
}

fn root(x: c64) -> c64 {
    let half = ((x.re.abs() + size(x)) / 2.0).sqrt();
    if half == 0.0 {
        return c64::new(0.0, 0.0);
    }
    let other = x.im / (2.0 * half);
    if x.re >= 0.0 { c64::new(half, other) } else { c64::new(other.abs(), half.copysign(x.im)) }
}

/// The eigenvalues of a matrix, and vectors of any length. The scratch memory has two matrices and two vectors. False if the iteration does
/// not converge.
pub(crate) fn eigen(
    [re, im]: [MatMut<'_, f64>; 2],
    values: [&mut [f64]; 2],
    vectors: Option<[MatMut<'_, f64>; 2]>,
    scratch: &mut [f64],
) -> bool {
    let n = re.nrows();
    let mut h = Planes { re, im };
    let (first, scratch) = scratch.split_at_mut(n * n);
    let (second, scratch) = scratch.split_at_mut(n * n);
    let mut z = vectors.is_some().then(|| {
        let mut own = [first, second].map(|plane| MatMut::from_column_major_slice_mut(plane, n, n));
        own.iter_mut().for_each(|plane| plane.fill(0.0));
        let [re, im] = own;
        Planes { re, im }
    });
    if let Some(z) = &mut z {
        (0..n).for_each(|i| z.re[(i, i)] = 1.0);
    }
    hessenberg(&mut h, z.as_mut());
    if !triangular(&mut h, z.as_mut()) {
        return false;
    }
    let [re, im] = values;
    for (i, (re, im)) in re.iter_mut().zip(im).enumerate() {
        (*re, *im) = (h.re[(i, i)], h.im[(i, i)]);
    }
    if let (Some([mut re, mut im]), Some(z)) = (vectors, &z) {
        let mut own = Planes { re: re.rb_mut(), im: im.rb_mut() };
        let (x, y) = scratch.split_at_mut(n);
        for k in 0..n {
            vector(&h, z, k, [x, &mut y[..n]], &mut own);
        }
    }
    true
}

/// A reflection `1 - tau v vᴴ` that maps a vector to a vector whose only nonzero element is its first, which is real (`larfg`). Returns
/// this element, tau, and the divisor that turns the other elements into the elements of v, whose first element is 1.
fn reflection(alpha: c64, rest: f64) -> Option<(f64, c64, c64)> {
    if rest == 0.0 && alpha.im == 0.0 {
        return None;
    }
    let beta = -size(alpha).hypot(rest).copysign(alpha.re);
    let tau = c64::new((beta - alpha.re) / beta, -alpha.im / beta);
    Some((beta, tau, c64::new(alpha.re - beta, alpha.im)))
}

/// Makes the elements below the first subdiagonal zero, and this one real. The reflections are applied to `z` from the right.
fn hessenberg(h: &mut Planes<'_>, mut z: Option<&mut Planes<'_>>) {
    let n = h.rows();
    for k in 0..n.saturating_sub(1) {
        let rest = (k + 2..n).fold(0.0, |norm: f64, i| norm.hypot(size(h.get(i, k))));
        let Some((beta, tau, divisor)) = reflection(h.get(k + 1, k), rest) else { continue };
        // The vector takes the place of the elements that become zero.
        h.set(k + 1, k, c64::new(1.0, 0.0));
        for i in k + 2..n {
            h.set(i, k, quotient(h.get(i, k), divisor));
        }
        for j in k + 1..n {
            let product: c64 = (k + 1..n).map(|i| h.get(i, k).conj() * h.get(i, j)).sum();
            let factor = tau.conj() * product;
            (k + 1..n).for_each(|i| h.change(i, j, h.get(i, k) * factor));
        }
        for i in 0..n {
            let product: c64 = (k + 1..n).map(|j| h.get(i, j) * h.get(j, k)).sum();
            let factor = product * tau;
            (k + 1..n).for_each(|j| h.change(i, j, factor * h.get(j, k).conj()));
        }
        if let Some(z) = &mut z {
            for i in 0..n {
                let product: c64 = (k + 1..n).map(|j| z.get(i, j) * h.get(j, k)).sum();
                let factor = product * tau;
                (k + 1..n).for_each(|j| z.change(i, j, factor * h.get(j, k).conj()));
            }
        }
        h.set(k + 1, k, c64::new(beta, 0.0));
        (k + 2..n).for_each(|i| h.set(i, k, c64::new(0.0, 0.0)));
    }
}

/// Whether the element next to the diagonal in row `k` may be set to zero (Ahues and Tisseur, "A new deflation criterion for the QR
/// algorithm", 1997).
fn is_small(h: &Planes<'_>, k: usize, least: f64) -> bool {
    let (own, before) = (h.get(k, k), h.get(k - 1, k - 1));
    let (left, right) = (h.get(k, k - 1), h.get(k - 1, k));
    if about(left) <= least {
        return true;
    }
    let mut scale = about(before) + about(own);
    if scale == 0.0 {
        let around = [(k >= 2).then(|| h.re[(k - 1, k - 2)]), (k + 1 < h.rows()).then(|| h.re[(k + 1, k)])];
        scale = around.into_iter().flatten().map(f64::abs).sum();
    }
    if left.re.abs() > EPSILON * scale {
        return false;
    }
    let (most, less) = (about(left).max(about(right)), about(left).min(about(right)));
    let difference = about(before - own);
    let (high, low) = (about(own).max(difference), about(own).min(difference));
    let sum = high + most;
    less * (most / sum) <= least.max(EPSILON * (low * (high / sum)))
}

/// The shift for the block that ends at row `last`: its last eigenvalue (Wilkinson), or now and then another number.
fn shift(h: &Planes<'_>, first: usize, last: usize, step: usize) -> c64 {
    let own = h.get(last, last);
    if step > 0 && step.is_multiple_of(20) {
        return own + 0.75 * h.re[(last, last - 1)].abs();
    }
    if step > 0 && step.is_multiple_of(10) {
        return h.get(first, first) + 0.75 * h.re[(first + 1, first)].abs();
    }
    let u = root(h.get(last - 1, last)) * root(h.get(last, last - 1));
    if about(u) == 0.0 {
        return own;
    }
    let x = (h.get(last - 1, last - 1) - own) * 0.5;
    let scale = about(u).max(about(x));
    let (near, far) = (x / scale, u / scale);
    let mut y = root(near * near + far * far) * scale;
    if about(x) > 0.0 && x.re * y.re + x.im * y.im < 0.0 {
        y = -y;
    }
    own - u * quotient(u, x + y)
}

/// Makes a Hessenberg matrix with real elements below the diagonal upper triangular; `z` follows from the right.
fn triangular(h: &mut Planes<'_>, mut z: Option<&mut Planes<'_>>) -> bool {
    let n = h.rows();
    let least = f64::MIN_POSITIVE * (n as f64 / EPSILON);
    let mut end = n;
    while end > 0 {
        let last = end - 1;
        let mut is_found = false;
        for step in 0..STEPS {
            let first = (1..=last).rev().find(|&k| is_small(h, k, least)).unwrap_or(0);
            if first > 0 {
                h.set(first, first - 1, c64::new(0.0, 0.0));
            }
            if first == last {
                is_found = true;
                break;
            }
            qr_step(h, z.as_deref_mut(), first, last, shift(h, first, last, step));
        }
        if !is_found {
            return false;
        }
        end = last;
    }
    true
}

/// One QR step with a shift on the rows from `first` to `last`.
fn qr_step(h: &mut Planes<'_>, mut z: Option<&mut Planes<'_>>, first: usize, last: usize, shift: c64) {
    let n = h.rows();
    let begin = |h: &Planes<'_>, m: usize| {
        let (own, below) = (h.get(m, m) - shift, h.re[(m + 1, m)]);
        let scale = about(own) + below.abs();
        (own / scale, below / scale)
    };
    // The last row from which the step may begin: two small elements beside the diagonal follow each other.
    let start = (first + 1..last).rev().find(|&m| {
        let (own, below) = begin(h, m);
        let scale = about(own) * (about(h.get(m, m)) + about(h.get(m + 1, m + 1)));
        h.re[(m, m - 1)].abs() * below.abs() <= EPSILON * scale
    });
    let start = start.unwrap_or(first);
    for k in start..last {
        let (x, y) = if k == start {
            let (own, below) = begin(h, k);
            (own, c64::new(below, 0.0))
        } else {
            (h.get(k, k - 1), h.get(k + 1, k - 1))
        };
        let Some((beta, tau, divisor)) = reflection(x, size(y)) else { continue };
        let v = quotient(y, divisor);
        if k > start {
            h.set(k, k - 1, c64::new(beta, 0.0));
            h.set(k + 1, k - 1, c64::new(0.0, 0.0));
        }
        for j in k..n {
            let factor = tau.conj() * (h.get(k, j) + v.conj() * h.get(k + 1, j));
            h.change(k, j, factor);
            h.change(k + 1, j, factor * v);
        }
        let right = |own: &mut Planes<'_>, rows: usize| {
            for i in 0..rows {
                let factor = tau * (own.get(i, k) + v * own.get(i, k + 1));
                own.change(i, k, factor);
                own.change(i, k + 1, factor * v.conj());
            }
        };
        right(h, (k + 2).min(last) + 1);
        if let Some(z) = &mut z {
            right(z, n);
        }
        if k == start && start > first {
            // The element before the first row is not read again by the step: its row is scaled to keep it real.
            let unit = c64::new(1.0, 0.0) - tau;
            let unit = unit / size(unit);
            h.scale(start + 1, start, unit.conj());
            if start + 2 <= last {
                h.scale(start + 2, start + 1, unit);
            }
            for j in (start..=last).filter(|&j| j != start + 1) {
                turn(h, z.as_deref_mut(), j, unit);
            }
        }
    }
    let below = h.get(last, last - 1);
    if below.im != 0.0 {
        let length = size(below);
        h.set(last, last - 1, c64::new(length, 0.0));
        turn(h, z, last, (below / length).conj());
    }
}

/// Multiplies row `k` right of the diagonal by a number of magnitude 1, and its column above the diagonal by the conjugate.
fn turn(h: &mut Planes<'_>, z: Option<&mut Planes<'_>>, k: usize, unit: c64) {
    let n = h.rows();
    (k + 1..n).for_each(|j| h.scale(k, j, unit));
    (0..k).for_each(|i| h.scale(i, k, unit.conj()));
    if let Some(z) = z {
        (0..n).for_each(|i| z.scale(i, k, unit.conj()));
    }
}

/// The vector of eigenvalue `k` of `z t zᴴ`, for a triangular matrix, by substitution.
fn vector(t: &Planes<'_>, z: &Planes<'_>, k: usize, [re, im]: [&mut [f64]; 2], own: &mut Planes<'_>) {
    let value = t.get(k, k);
    let least = (EPSILON * about(value)).max(f64::MIN_POSITIVE / EPSILON);
    let n = t.rows();
    re.fill(0.0);
    im.fill(0.0);
    re[k] = 1.0;
    for i in 0..k {
        (re[i], im[i]) = (-t.re[(i, k)], -t.im[(i, k)]);
    }
    // Those of the other columns are subtracted as soon as they are known.
    for i in (0..k).rev() {
        let mut pivot = t.get(i, i) - value;
        if about(pivot) < least {
            pivot = c64::new(least, 0.0);
        }
        let mut x = quotient(c64::new(re[i], im[i]), pivot);
        let size = about(x);
        if size > LARGE {
            re[..=k].iter_mut().chain(&mut im[..=k]).for_each(|part| *part /= size);
            x /= size;
        }
        (re[i], im[i]) = (x.re, x.im);
        for row in 0..i {
            let part = x * t.get(row, i);
            re[row] -= part.re;
            im[row] -= part.im;
        }
    }
    for row in 0..n {
        let sum: c64 = (0..=k).map(|i| z.get(row, i) * c64::new(re[i], im[i])).sum();
        own.set(row, k, sum);
    }
}
