//! Matrix products: the `gemm` crate, or `packed_products`, one thread per call, over all batch and contracted dimensions of a step.
//!
//! The work is a list of *units*, one for each combination of the batch dimensions and each panel of rows or columns; a team takes them in
//! any order. Cutting into panels changes no bits. `packed_products` sum each element in an order that does not depend on rows and columns,
//! except that [`PreparedProduct::lines`] is decided before the cut. `gemm`, for floats on processors that `packed_products` has no kernels
//! for, has other orders for small and narrow products, which are therefore never cut (see [`panels`]).

pub(crate) mod sums;

use std::ops::Range;

use gemm_common::Parallelism;

use super::matrix_product::{GemmExtent, MatrixProduct, ProductFn};
use super::packed_products;
use crate::processes::reads::DeviceReads;
use crate::run::team::{Team, WORTH_SHARING};
use spmdc_abi::mesh::{DeviceMesh, share};
use spmdc_abi::{DType, GemmDim, GemmStep, product_elements};
use spmdc_product::packed;

/// Estimated nanoseconds of one multiplication and addition on a slow machine, by the elements of the product.
fn nanoseconds_per_step(elements: DType) -> f64 {
    match elements {
        DType::I8 => 0.01,
        DType::I16 | DType::Bf16 => 0.02,
        DType::F64 | DType::I32 => 0.06,
        DType::I64 => 0.2,
        DType::Bool
        | DType::U8
        | DType::U16
        | DType::U32
        | DType::U64
        | DType::F16
        | DType::F32
        | DType::F8e4m3
        | DType::F8e5m2
        | DType::Key => 0.03,
    }
}

/// A product of matrices. The arguments are the sizes; the result, its strides and whether it is accumulated into; and both operands, each
/// with its strides along the contraction and the other dimension. Two factors, conjugations, and the number of threads follow.
type Multiply<T> = unsafe fn(
    usize,
    usize,
    usize,
    *mut T,
    isize,
    isize,
    bool,
    *const T,
    isize,
    isize,
    *const T,
    isize,
    isize,
    T,
    T,
    bool,
    bool,
    bool,
    Parallelism,
);

/// Whether a product sums along the contraction. It has these rows, columns and terms before it is cut.
pub(crate) fn sums_lines(operands: [DType; 2], [m, n, k]: [&GemmExtent; 3]) -> bool {
    packed_products::multiplies_floats(operands) && packed::sums_lines([m.len, n.len, k.len], [k.a, k.b])
}

/// # Safety
/// As for [`PreparedProduct::run`].
pub(crate) unsafe fn product_f32(product: &MatrixProduct<'_>) {
    // SAFETY: as promised by the caller.
    unsafe {
        match packed_products::multiplies_floats(product.operands) {
            true => packed_products::product_f32(product),
            false => product.contract(gemm_f32::gemm::f32::get_gemm_fn(), 1.0),
        }
    }
}

/// # Safety
/// As for [`PreparedProduct::run`].
pub(crate) unsafe fn product_f64(product: &MatrixProduct<'_>) {
    // SAFETY: as promised by the caller.
    unsafe {
        match packed_products::multiplies_floats(product.operands) {
            true => packed_products::product_f64(product),
            false => product.contract(gemm_f64::gemm::f64::get_gemm_fn(), 1.0),
        }
    }
}

/// A step's product, or a device's share of it.
#[derive(Clone, Debug)]
pub(crate) struct PreparedProduct {
    operands: [DType; 2],
    /// Bytes of an element of `a`, `b` and `c`.
    sizes: [isize; 3],
    /// Estimated nanoseconds of one multiplication and addition.
    step_cost: f64,
    multiply: ProductFn,
    a: *const u8,
    b: *const u8,
    c: *mut u8,
    m: GemmExtent,
    n: GemmExtent,
    k: GemmExtent,
    loops: Box<[GemmExtent]>,
    contracted: Box<[GemmExtent]>,
    /// The number of units along the rows, or the columns, of each matrix.
    panels: usize,
    /// Units that a thread takes at a time; 0 if the product is too small for a team.
    chunk: i64,
    /// Whether the product is added to the present contents of the result.
    adds: bool,
    /// Whether sums are along the contraction. The devices that divide a product, and the units, have the same order of sums.
    lines: bool,
}

/// The rows and columns of a unit, with their offsets in each array in bytes.
#[derive(Clone, Copy, Debug)]
struct UnitExtents {
    a: isize,
    b: isize,
    c: isize,
    m: GemmExtent,
    n: GemmExtent,
}

// SAFETY: a product consists of data and pointers to the program's memory; `run` demands that threads run different units of it.
unsafe impl Sync for PreparedProduct {}

/// The device's share of a step, for a worker with a team of this many threads: one product, or one for each block of an operand
/// that is distributed over several devices. The step has been checked.
///
/// The devices along `split` make a share each, whatever their process: the bits of small and narrow products depend on their cut. In a
/// process that has some of these devices only, each makes several shares.
pub(crate) fn plan(
    reads: &mut DeviceReads<'_>,
    step: &GemmStep,
    device: usize,
    (team, multiply): (usize, ProductFn),
) -> Box<[PreparedProduct]> {
    let mesh = reads.mesh();
    let (rank, count) = mesh.rank(device, step.split);
    let ranks = mesh.count(step.split.iter());
    let mut products = Vec::new();
    for (owner, adds) in owners(mesh, step, device) {
        let own = if count == ranks { rank..rank + 1 } else { rank..ranks };
        for share in own.step_by(count) {
            products.push(part_of(reads, step, (device, owner, adds), (share, ranks), (team, multiply)));
        }
    }
    products.into()
}

/// The devices whose blocks a device reads, in order, and whether their products are added to the present result.
pub(crate) fn owners<'a>(
    mesh: &'a DeviceMesh,
    step: &'a GemmStep,
    device: usize,
) -> impl Iterator<Item = (usize, bool)> + 'a {
    let axes = step.ring.as_ref().map_or(&[][..], |ring| &ring.axes);
    let axes = move || axes.iter().map(|&axis| axis as usize);
    let count = mesh.count(axes());
    debug_assert!(device < mesh.devices(), "there is no device {device}");
    // Sums are added in the same order on all devices, so that their copies have the same bits. Otherwise each device begins with
    // its own block, so that no two devices read one block at the same time.
    let summed = step.ring.as_ref().is_some_and(|ring| ring.c == 0);
    let first = if summed { 0 } else { mesh.linear(device, axes()) };
    (0..count).map(move |i| (mesh.at(device, axes(), (first + i) % count), summed && i > 0))
}

/// The extent of a dimension in the product of a device with an owner's block.
pub(crate) fn extent(mesh: &DeviceMesh, step: &GemmStep, dim: &GemmDim, (device, owner): (usize, usize)) -> i64 {
    let of_owner = step.ring.as_ref().is_some_and(|ring| if ring.is_b { dim.b != 0 } else { dim.a != 0 });
    mesh.resolve(&dim.extent, if of_owner { owner } else { device })
}

/// The offsets of an owner's block in `a`, `b` and `c`, in elements.
pub(crate) fn offsets(mesh: &DeviceMesh, step: &GemmStep, owner: usize) -> [i64; 3] {
    let Some(ring) = &step.ring else { return [0; 3] };
    let start = mesh.resolve(&ring.start, owner);
    let other = start.saturating_mul(ring.other);
    [if ring.is_b { other } else { 0 }, if ring.is_b { 0 } else { other }, start.saturating_mul(ring.c)]
}

/// The bytes of an owner's operand that a product reads: the first one, and their number.
fn extent_of_reads(mesh: &DeviceMesh, step: &GemmStep, (device, owner): (usize, usize)) -> (i64, usize) {
    let is_b = step.ring.as_ref().is_some_and(|ring| ring.is_b);
    let [a, b, _] = offsets(mesh, step, owner);
    let (mut least, mut last) = if is_b { (b, b) } else { (a, a) };
    for dim in [&step.m, &step.n, &step.k].into_iter().chain(&step.loops).chain(&step.contracted) {
        let len = extent(mesh, step, dim, (device, owner));
        if len <= 0 {
            return (0, 0);
        }
        let reach = (len - 1) * if is_b { dim.b } else { dim.a };
        if reach < 0 { least += reach } else { last += reach }
    }
    debug_assert!(least <= last, "a block begins before it ends");
    let size = step.operands[usize::from(is_b)].size();
    (least * size as i64, (last - least + 1) as usize * size)
}

fn part_of(
    reads: &mut DeviceReads<'_>,
    step: &GemmStep,
    (device, owner, adds): (usize, usize, bool),
    share: (usize, usize),
    (team, multiply): (usize, ProductFn),
) -> PreparedProduct {
    let mesh = reads.mesh();
    let read = extent_of_reads(mesh, step, (device, owner));
    let extent = |dim: &GemmDim| GemmExtent::new(dim, extent(mesh, step, dim, (device, owner)));
    let [of_a, of_b] = step.operands;
    let sizes = [of_a, of_b, step.dtype].map(|dtype| dtype.size() as isize);
    let mut offsets = offsets(mesh, step, owner).map(|elements| elements as isize);
    offsets.iter_mut().zip(sizes).for_each(|(offset, size)| *offset *= size);
    let [a, b, c] = offsets;
    let is_b = step.ring.as_ref().is_some_and(|ring| ring.is_b);
    let mut product = PreparedProduct {
        operands: step.operands,
        sizes,
        step_cost: nanoseconds_per_step(product_elements(step.dtype, step.operands).unwrap_or(step.dtype)),
        multiply,
        a: (if is_b { reads.own(step.a, device) } else { reads.span(owner, step.a, read) }).wrapping_offset(a),
        b: (if is_b { reads.span(owner, step.b, read) } else { reads.own(step.b, device) }).wrapping_offset(b),
        c: reads.own(step.c, device).wrapping_offset(c),
        m: extent(&step.m),
        n: extent(&step.n),
        k: extent(&step.k),
        loops: step.loops.iter().map(extent).collect(),
        contracted: step.contracted.iter().map(extent).collect(),
        panels: 1,
        chunk: 0,
        adds,
        lines: false,
    };
    product.lines = sums_lines(product.operands, [&product.m, &product.n, &product.k]);
    product.take_share(share);
    product.divide(team);
    debug_assert!(product.panels > 0 && product.chunk >= 0, "a product is of units");
    product
}

impl PreparedProduct {
    /// Keeps one share of the work that the devices along `split` divide.
    fn take_share(&mut self, (rank, count): (usize, usize)) {
        if count == 1 {
            return;
        }
        // Cutting a batch dimension that divides well costs nothing; cutting rows or columns packs the other operand again.
        let fits = |len: usize| len.is_multiple_of(count) || len >= 4 * count;
        let [of_a, of_b, of_c] = self.sizes;
        if let Some(outer) = self.loops.iter_mut().find(|dim| dim.len >= count && fits(dim.len)) {
            let part = part(outer, rank, count, 1);
            self.a = self.a.wrapping_offset(part.start as isize * outer.a * of_a);
            self.b = self.b.wrapping_offset(part.start as isize * outer.b * of_b);
            self.c = self.c.wrapping_offset(part.start as isize * outer.c * of_c);
            outer.len = part.len();
        } else if self.m.len >= self.n.len {
            let part = part(&self.m, rank, count, 8);
            self.a = self.a.wrapping_offset(part.start as isize * self.m.a * of_a);
            self.c = self.c.wrapping_offset(part.start as isize * self.m.c * of_c);
            self.m.len = part.len();
        } else {
            let part = part(&self.n, rank, count, 8);
            self.b = self.b.wrapping_offset(part.start as isize * self.n.b * of_b);
            self.c = self.c.wrapping_offset(part.start as isize * self.n.c * of_c);
            self.n.len = part.len();
        }
    }

    /// Chooses the units for a team of this size.
    fn divide(&mut self, team: usize) {
        let matrices = self.matrices();
        let deep: usize = self.contracted.iter().map(|dim| dim.len).product();
        let steps = self.m.len as f64 * self.n.len as f64 * self.k.len as f64 * deep as f64;
        let cost = steps * self.step_cost;
        if team == 1 || cost * matrices as f64 <= WORTH_SHARING {
            return;
        }
        if matrices < 2 * team && cost > WORTH_SHARING {
            self.panels = self.most_panels(2 * team);
        }
        let units = (matrices * self.panels) as i64;
        let unit_cost = (cost / self.panels as f64).max(1.0);
        self.chunk = ((WORTH_SHARING / 2.0 / unit_cost) as i64).clamp(1, (units / (2 * team as i64)).max(1));
    }

    /// The number of panels into which each matrix is cut, at most so many.
    pub fn most_panels(&self, wanted: usize) -> usize {
        panels(self.operands, self.m.len.max(self.n.len), self.m.len.min(self.n.len), wanted)
    }

    /// The multiple at which rows or columns are cut: that of tiles.
    pub fn grain(&self) -> usize {
        match (packed_products::multiplies(self.operands), self.m.len >= self.n.len) {
            (true, true) => 12,
            (true, false) => 64,
            (false, _) => 8,
        }
    }

    /// Whether a team would help.
    pub fn wants_team(&self) -> bool {
        self.chunk > 0
    }

    /// The number of combinations of the batch dimensions.
    fn matrices(&self) -> usize {
        self.loops.iter().map(|dim| dim.len).product()
    }

    /// Computes the product; false if it panicked.
    ///
    /// # Safety
    /// The memory that the step may read or write must be memory that this thread and the team's threads may access in this way; no other
    /// thread may write it meanwhile.
    pub unsafe fn run(&self, team: Option<&mut Team>) -> bool {
        let units = (self.matrices() * self.panels) as i64;
        let work = move |begin: i64, end: i64| {
            // SAFETY: as promised by the caller; units write different elements.
            (begin..end).for_each(|unit| unsafe { self.unit(unit as usize) });
            0
        };
        match team {
            Some(team) if self.chunk > 0 => team.run(0, units, self.chunk, &work) == 0,
            _ => work(0, units) == 0,
        }
    }

    /// One panel of one matrix.
    ///
    /// # Safety
    /// As for `run`.
    unsafe fn unit(&self, unit: usize) {
        // SAFETY: as promised by the caller.
        unsafe {
            let extents = self.extents(unit);
            self.unit_into(&extents, self.c.wrapping_offset(extents.c), self.adds);
        }
    }

    /// The rows and columns of a unit.
    fn extents(&self, unit: usize) -> UnitExtents {
        debug_assert!(unit < self.matrices() * self.panels, "there is no unit {unit}");
        let mut index = unit / self.panels;
        let panel = unit % self.panels;
        let (mut a, mut b, mut c) = (0, 0, 0);
        for dim in self.loops.iter().rev() {
            let i = (index % dim.len) as isize;
            index /= dim.len;
            (a, b, c) = (a + i * dim.a, b + i * dim.b, c + i * dim.c);
        }
        let (mut m, mut n) = (self.m, self.n);
        if m.len >= n.len {
            let rows = part(&m, panel, self.panels, self.grain());
            (a, c) = (a + rows.start as isize * m.a, c + rows.start as isize * m.c);
            m.len = rows.len();
        } else {
            let columns = part(&n, panel, self.panels, self.grain());
            (b, c) = (b + columns.start as isize * n.b, c + columns.start as isize * n.c);
            n.len = columns.len();
        }
        let [of_a, of_b, of_c] = self.sizes;
        UnitExtents { a: a * of_a, b: b * of_b, c: c * of_c, m, n }
    }

    /// The product of a unit, whose first element is at `c`.
    ///
    /// # Safety
    /// As for `run`, with `c` as the result.
    unsafe fn unit_into(&self, unit: &UnitExtents, c: *mut u8, adds: bool) {
        let product = MatrixProduct {
            operands: self.operands,
            a: self.a.wrapping_offset(unit.a),
            b: self.b.wrapping_offset(unit.b),
            c,
            m: unit.m,
            n: unit.n,
            k: self.k,
            contracted: &self.contracted,
            adds,
            lines: self.lines,
        };
        // SAFETY: as promised by the caller. The product of an empty contraction still writes: zeros.
        unsafe { (self.multiply)(&product) }
    }
}

impl MatrixProduct<'_> {
    /// Sums the products over all contracted dimensions.
    ///
    /// # Safety
    /// As for [`PreparedProduct::run`]; the elements have the type `T`.
    unsafe fn contract<T: Copy>(&self, multiply: Multiply<T>, one: T) {
        let (m, n, to) = (self.m, self.n, self.c.cast::<T>());
        // The library's kernels write columns: a result with contiguous rows is computed as the transposed product.
        let swapped = n.c.abs() < m.c.abs();
        let (left, right) = (self.a.cast::<T>(), self.b.cast::<T>());
        let (rows, columns, left, right, left_k, right_k) = match swapped {
            true => (n, m, right, left, self.k.b, self.k.a),
            false => (m, n, left, right, self.k.a, self.k.b),
        };
        debug_assert!(rows.c >= 0 && columns.c >= 0 && left_k >= 0, "strides of products count forward");
        self.each_pass(|(a, b), depth, adds| {
            // SAFETY: as promised by the caller. With `read_dst` false the old contents are not read, so that a NaN among them
            // does no harm.
            unsafe {
                multiply(
                    rows.len,
                    columns.len,
                    depth,
                    to,
                    columns.c,
                    rows.c,
                    adds,
                    left.wrapping_offset(if swapped { b } else { a }),
                    left_k,
                    if swapped { rows.b } else { rows.a },
                    right.wrapping_offset(if swapped { a } else { b }),
                    if swapped { columns.a } else { columns.b },
                    right_k,
                    one,
                    one,
                    false,
                    false,
                    false,
                    Parallelism::None,
                );
            }
        });
    }
}

/// Part `rank` of `count` of a dimension, cut at multiples of `grain` if it is long enough.
fn part(dim: &GemmExtent, rank: usize, count: usize, grain: usize) -> Range<usize> {
    debug_assert!(rank < count && grain > 0, "part {rank} of {count} in grains of {grain}");
    let grain = if dim.len >= 2 * grain * count { grain } else { 1 };
    let cuts = share(dim.len.div_ceil(grain) as i64, rank, count);
    (cuts.start as usize * grain).min(dim.len)..(cuts.end as usize * grain).min(dim.len)
}

/// The maximum number of panels into which a matrix may be cut, given its operands, and its rows and columns: the larger number, then the
/// other.
///
/// The `gemm` crate has separate algorithms for products of at most 64 by 64 elements, and for those with one row or column, or of
/// 256 elements. A panel must not become one of these if the whole matrix is not; nor may it be so thin that packing dominates.
fn panels(operands: [DType; 2], long: usize, short: usize, wanted: usize) -> usize {
    let least = match short {
        _ if packed_products::multiplies(operands) => 32,
        0..=1 => return 1,
        2..=64 => 96,
        _ => 48,
    };
    (long / least).clamp(1, wanted)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn noise(len: usize, seed: usize) -> Vec<f32> {
        (0..len).map(|i| ((i * 7919 + seed * 104_729) % 1013) as f32 / 500.0 - 1.0).collect()
    }

    /// `c[l, m, n] = a[l, m, j, k] * b[j, k, n]`, summed over `j` and `k`, as row-major arrays.
    fn product([l, m, n, j, k]: [usize; 5], a: &[f32], b: &[f32], c: &mut [f32]) -> PreparedProduct {
        let extent =
            |len: usize, a: usize, b: usize, c: usize| GemmExtent { len, a: a as isize, b: b as isize, c: c as isize };
        assert!(a.len() >= l * m * j * k && b.len() >= j * k * n && c.len() >= l * m * n);
        PreparedProduct {
            operands: [DType::F32; 2],
            sizes: [4; 3],
            step_cost: nanoseconds_per_step(DType::F32),
            multiply: product_f32,
            a: a.as_ptr().cast(),
            b: b.as_ptr().cast(),
            c: c.as_mut_ptr().cast(),
            m: extent(m, j * k, 0, n),
            n: extent(n, 0, 1, 1),
            k: extent(k, 1, n, 0),
            loops: Box::new([extent(l, m * j * k, 0, m * n)]),
            contracted: Box::new([extent(j, k, k * n, 0)]),
            panels: 1,
            chunk: 0,
            adds: false,
            lines: false,
        }
    }

    #[test]
    fn products_match_the_definition() {
        for (l, m, n, j, k) in
            [(1, 1, 1, 1, 1), (2, 3, 5, 2, 4), (3, 70, 9, 1, 33), (2, 4, 4, 0, 3), (2, 4, 4, 2, 0), (0, 2, 2, 2, 2)]
        {
            let (a, b) = (noise(l * m * j * k, 1), noise(j * k * n, 2));
            let mut c = vec![f32::NAN; l * m * n];
            let product = product([l, m, n, j, k], &a, &b, &mut c);
            // SAFETY: the arrays have the sizes that the product was made for.
            assert!(unsafe { product.run(None) });
            for (at, value) in c.iter().enumerate() {
                let (row, column) = (at / n, at % n);
                let expected: f64 = (0..j * k).map(|i| a[row * j * k + i] as f64 * b[i * n + column] as f64).sum();
                assert!((*value as f64 - expected).abs() < 1e-4, "{value} instead of {expected}");
            }
        }
    }

    #[test]
    fn cutting_into_panels_changes_no_bits() {
        let mut team = Team::new(1, std::sync::Arc::new([])).unwrap();
        for (m, n, k) in
            [(200, 64, 1030), (97, 300, 700), (1000, 70, 5), (400, 2, 900), (130, 130, 2), (66, 65, 513), (500, 17, 1)]
        {
            let (a, b) = (noise(m * k, 3), noise(k * n, 4));
            let mut whole = vec![0.0; m * n];
            // SAFETY: the arrays have the sizes that the products were made for.
            unsafe { product([1, m, n, 1, k], &a, &b, &mut whole).run(None) };
            for wanted in 2..9 {
                let mut cut = vec![0.0; m * n];
                let mut product = product([1, m, n, 1, k], &a, &b, &mut cut);
                product.panels = product.most_panels(wanted);
                product.chunk = 1;
                // SAFETY: as above.
                unsafe { product.run(Some(&mut team)) };
                assert!(whole.iter().zip(&cut).all(|(a, b)| a.to_bits() == b.to_bits()), "{m} {n} {k} in {wanted}");
            }
        }
    }

    #[test]
    fn a_team_is_asked_only_for_long_products() {
        let (a, b, mut c) = (noise(512 * 512, 1), noise(512 * 512, 2), vec![0.0; 512 * 512]);
        let mut large = product([1, 512, 512, 1, 512], &a, &b, &mut c);
        large.divide(2);
        assert!(large.wants_team() && large.panels >= 2);
        let mut small = product([1, 8, 8, 1, 8], &a, &b, &mut c);
        small.divide(2);
        assert!(!small.wants_team());
    }
}
