//! Kernels for any processor, whose vectors are arrays.

use super::blocks::multiply;
use super::kernel::{FloatLane, PanelKernel, PanelLane};
use super::{LaneFormat, PackedKernel, PackedProduct};

/// Lanes of 32 or 64 bits in arrays.
macro_rules! portable {
    (
        $kernel:ident, $lane:ty, $lanes:literal, $format:ident, $group:literal, $rows:literal, $constant:ident, $run:ident, $name:literal,
        |$a:ident, $b:ident| $sum:expr, |$sums:ident, $left:ident, $right:ident| $product:expr
    ) => {
        struct $kernel;

        impl PanelKernel for $kernel {
            type Lane = $lane;
            type Vector = [$lane; $lanes];
            const FORMAT: LaneFormat = LaneFormat::$format;
            const GROUP: usize = $group;
            const LANES: usize = $lanes;
            const TRANSPOSES: bool = false;

            #[inline(always)]
            unsafe fn fetch(_: *const $lane) {}

            #[inline(always)]
            unsafe fn transpose(_: *const u8, _: isize, _: usize, _: *mut $lane, _: usize) {}

            #[inline(always)]
            unsafe fn interleave(_: *const u8, _: isize, _: usize, _: *mut $lane) {}

            #[inline(always)]
            unsafe fn splat(lane: $lane) -> [$lane; $lanes] {
                [lane; $lanes]
            }

            #[inline(always)]
            unsafe fn load(from: *const $lane) -> [$lane; $lanes] {
                // SAFETY: as promised by the caller.
                unsafe { from.cast::<[$lane; $lanes]>().read_unaligned() }
            }

            #[inline(always)]
            unsafe fn store(to: *mut $lane, vector: [$lane; $lanes]) {
                // SAFETY: as promised by the caller.
                unsafe { to.cast::<[$lane; $lanes]>().write_unaligned(vector) }
            }

            #[inline(always)]
            unsafe fn add(a: [$lane; $lanes], b: [$lane; $lanes]) -> [$lane; $lanes] {
                std::array::from_fn(|at| {
                    let ($a, $b) = (a[at], b[at]);
                    $sum
                })
            }

            #[inline(always)]
            unsafe fn multiply_add(sums: [$lane; $lanes], a: [$lane; $lanes], b: [$lane; $lanes]) -> [$lane; $lanes] {
                std::array::from_fn(|at| {
                    let ($sums, $left, $right) = (sums[at], a[at], b[at]);
                    $product
                })
            }
        }

        /// # Safety
        /// As for [`PackedKernel::run`].
        unsafe fn $run(product: &PackedProduct) {
            // SAFETY: as promised by the caller.
            unsafe { multiply::<$kernel, $rows, 1, { 2 * $lanes }>(product) }
        }

        pub(super) const $constant: PackedKernel =
            PackedKernel { name: $name, format: LaneFormat::$format, is_available: || true, multiply: $run };
    };
}

portable!(PortableInts, i32, 4, Ints, 1, 4, INTS, ints, "ints", |a, b| a.wrapping_add(b), |sum, a, b| sum
    .wrapping_add(a.wrapping_mul(b)));

portable!(PortableLongs, i64, 2, Longs, 1, 4, LONGS, longs, "longs", |a, b| a.wrapping_add(b), |sum, a, b| sum
    .wrapping_add(a.wrapping_mul(b)));

portable!(PortableFloats, FloatLane, 4, Floats, 2, 4, FLOATS, floats, "floats", |a, b| a.plus(b), |sum, a, b| {
    let ([a, later_a], [b, later_b]) = (a.terms(), b.terms());
    FloatLane((sum.sum() + later_a * later_b + a * b).to_bits())
});
