//! Products that are summed over the devices of a group.
//!
//! Each device has a whole matrix of partial sums. They are not computed one matrix after the other, but for some rows of all of them, so that
//! these rows stay in the cache; workers divide the rows. The values of an element are combined in pairs, and pairs of pairs, as a reduction
//! does it. A partial sum that ends a pair is added to its neighbour by the product itself, with the same bits.

use super::{PreparedProduct, UnitExtents, part, plan};
use crate::collectives::reduce::pairs;
use crate::library::matrix_product::{GemmExtent, ProductFn};
use crate::processes::reads::DeviceReads;
use spmdc_abi::mesh::share;
use spmdc_abi::{GemmStep, Place};
use std::ops::Range;

/// The result of a unit is about as large as a second-level cache.
const UNIT_BYTES: usize = 768 * 1024;

/// Minimum number of rows and of columns, and of elements of the contraction: for smaller products the `gemm` crate has algorithms that
/// round in another order if a product is added to its result.
const LEAST_SIDE: usize = 65;
const LEAST_DEPTH: usize = 3;
/// Maximum length of the contraction: the crate adds longer ones to the result part by part.
const MOST_DEPTH: usize = 512;

/// Adds rows of one array to those of another.
pub(crate) type AddFn = unsafe fn(*mut u8, *const u8, [GemmExtent; 2]);

/// The partial products of all devices of a group, for a worker's share of the units.
#[derive(Debug)]
pub(crate) struct PreparedSum {
    /// The product of each device, with the number of pairs that end with it.
    products: Box<[(PreparedProduct, u32)]>,
    /// The result.
    to: *mut u8,
    /// The memory of the sums that wait for their neighbours, which all units use.
    waiting: Box<[*mut u8]>,
    add: AddFn,
    units: Range<usize>,
}

/// The devices that take part in a sum.
pub(crate) struct Participants<'a> {
    /// The devices of the group, in order.
    pub group: &'a [usize],
    /// The worker's number among the workers of the group, and their number.
    pub share: (usize, usize),
}

/// The product of each device of the group and the result at `to`, for the first device of a worker in the group.
///
/// None if the sum could have other bits than the separate products, or if the waiting sums need more memory than the partial sums. This does
/// not depend on the device if blocks have the same shapes.
pub(crate) fn plan_sum(
    reads: &mut DeviceReads<'_>,
    step: &GemmStep,
    to: Place,
    (device, participants): (usize, &Participants<'_>),
    (multiply, add): (ProductFn, AddFn),
) -> Option<PreparedSum> {
    let &Participants { group, share: (rank, workers) } = participants;
    let alone: Vec<PreparedProduct> =
        group.iter().flat_map(|&member| plan(reads, step, member, (1, multiply)).into_iter()).collect();
    let first = alone.first()?;
    let (m, n, matrices) = (first.m, first.n, first.matrices());
    // Devices that have the same blocks compute a share each.
    let begin = |product: &PreparedProduct, member: usize| product.c as isize - reads.own(step.c, member) as isize;
    let begins = begin(first, *group.first()?);
    let fits = |product: &PreparedProduct| {
        let is_deep = product.k.len == 0 || (LEAST_DEPTH..=MOST_DEPTH).contains(&product.k.len);
        is_deep && (product.m.len, product.n.len, product.matrices()) == (m.len, n.len, matrices)
    };
    if alone.len() != group.len() || m.len.min(n.len) < LEAST_SIDE || !alone.iter().all(fits) {
        return None;
    }
    let ends = pairs(group.len());
    let (mut depth, mut deepest) = (0, 0);
    for ends in &ends {
        depth = depth + 1 - *ends as usize;
        deepest = deepest.max(depth);
    }
    debug_assert_eq!(depth, 1, "all values are combined into one");
    let size = step.dtype.size();
    let wanted = (m.len * n.len * size).div_ceil(UNIT_BYTES).max((2 * workers).div_ceil(matrices.max(1))).max(deepest);
    let panels = first.most_panels(wanted);
    // The first sum is in the result, and each of the others takes the place of a unit in the device's own partial sums.
    let cut = if m.len >= n.len { m } else { n };
    let longest = (0..panels).map(|panel| part(&cut, panel, panels, first.grain()).len()).max()?;
    if (deepest - 1) * longest > cut.len {
        return None;
    }
    let own = reads.own(step.c, device).wrapping_offset(begins);
    let waiting = (0..deepest - 1).map(|level| own.wrapping_offset((level * longest) as isize * cut.c * size as isize));
    let units = share((matrices * panels) as i64, rank, workers);
    debug_assert!(
        group.iter().zip(&alone).all(|(&member, product)| begin(product, member) == begins),
        "the shares of devices begin at the same element"
    );
    let products = alone.into_iter().zip(ends).map(|(product, ends)| (PreparedProduct { panels, ..product }, ends));
    Some(PreparedSum {
        products: products.collect(),
        to: reads.own(to, device).wrapping_offset(begins),
        waiting: waiting.collect(),
        add,
        units: units.start as usize..units.end as usize,
    })
}

impl PreparedSum {
    /// Computes the worker's units.
    ///
    /// # Safety
    /// As for [`PreparedProduct::run`]; no other thread may use the device's partial sums meanwhile.
    pub unsafe fn run(&self) {
        // SAFETY: as promised by the caller.
        self.units.clone().for_each(|unit| unsafe { self.unit(unit) });
    }

    /// # Safety
    /// As for `run`.
    unsafe fn unit(&self, unit: usize) {
        let mut depth = 0;
        for (product, ends) in &self.products {
            let extents = product.extents(unit);
            let adds = *ends > 0;
            if !adds {
                depth += 1;
            }
            let sum = self.sum(depth, &extents);
            // SAFETY: as promised by the caller.
            unsafe { product.unit_into(&extents, sum, adds) };
            for _ in 1..*ends {
                let dims = match extents.m.c.abs() < extents.n.c.abs() {
                    true => [extents.n, extents.m],
                    false => [extents.m, extents.n],
                };
                let (to, from) = (self.sum(depth - 1, &extents), self.sum(depth, &extents));
                // SAFETY: as above; waiting sums do not overlap.
                unsafe { (self.add)(to, from, dims) };
                depth -= 1;
            }
        }
        debug_assert_eq!(depth, 1, "all values are combined into one");
    }

    /// The sum of a unit at this depth, counted from 1.
    fn sum(&self, depth: usize, unit: &UnitExtents) -> *mut u8 {
        debug_assert!((1..=self.waiting.len() + 1).contains(&depth), "{depth} sums wait");
        if depth == 1 { self.to.wrapping_offset(unit.c) } else { self.waiting[depth - 2] }
    }
}

/// `to += from`, for elements of one type in the given outer and inner dimension of both.
///
/// # Safety
/// All elements must be in memory that this thread may access in this way, and the two arrays must not overlap.
pub(crate) unsafe fn add_rows<T: Copy + std::ops::AddAssign>(
    to: *mut u8,
    from: *const u8,
    [outer, inner]: [GemmExtent; 2],
) {
    #[inline(always)]
    unsafe fn rows<T: Copy + std::ops::AddAssign>(to: *mut T, from: *const T, outer: GemmExtent, inner: GemmExtent) {
        for row in 0..outer.len as isize {
            let (to, from) = (to.wrapping_offset(row * outer.c), from.wrapping_offset(row * outer.c));
            if inner.c == 1 {
                // SAFETY: as promised by the caller.
                let (to, from) = unsafe {
                    (std::slice::from_raw_parts_mut(to, inner.len), std::slice::from_raw_parts(from, inner.len))
                };
                to.iter_mut().zip(from).for_each(|(to, from)| *to += *from);
            } else {
                for column in 0..inner.len as isize {
                    // SAFETY: as promised by the caller.
                    unsafe { *to.wrapping_offset(column * inner.c) += *from.wrapping_offset(column * inner.c) };
                }
            }
        }
    }
    /// # Safety
    /// As for [`rows`], and the processor must have AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn with_avx2<T: Copy + std::ops::AddAssign>(
        to: *mut T,
        from: *const T,
        outer: GemmExtent,
        inner: GemmExtent,
    ) {
        // SAFETY: as promised by the caller.
        unsafe { rows(to, from, outer, inner) }
    }
    let (to, from) = (to.cast::<T>(), from.cast::<T>());
    // SAFETY: as promised by the caller; the feature is available.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            return with_avx2(to, from, outer, inner);
        }
        rows(to, from, outer, inner);
    }
}
