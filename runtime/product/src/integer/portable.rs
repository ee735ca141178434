//! Kernels for any processor, whose vectors are arrays.

use super::blocks::multiply;
use super::kernel::PanelKernel;
use super::{IntegerKernel, IntegerProduct, LaneFormat};

/// Lanes of 32 or 64 bits in arrays.
macro_rules! portable {
    ($kernel:ident, $lane:ty, $lanes:literal, $format:ident, $rows:literal, $constant:ident, $run:ident, $name:literal) => {
        struct $kernel;

        impl PanelKernel for $kernel {
            type Lane = $lane;
            type Vector = [$lane; $lanes];
            const FORMAT: LaneFormat = LaneFormat::$format;
            const GROUP: usize = 1;
            const LANES: usize = $lanes;

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
                std::array::from_fn(|at| a[at].wrapping_add(b[at]))
            }

            #[inline(always)]
            unsafe fn multiply_add(sums: [$lane; $lanes], a: [$lane; $lanes], b: [$lane; $lanes]) -> [$lane; $lanes] {
                std::array::from_fn(|at| sums[at].wrapping_add(a[at].wrapping_mul(b[at])))
            }
        }

        /// # Safety
        /// As for [`IntegerKernel::run`].
        unsafe fn $run(product: &IntegerProduct) {
            // SAFETY: as promised by the caller.
            unsafe { multiply::<$kernel, $rows, 1, { 2 * $lanes }>(product) }
        }

        pub(super) const $constant: IntegerKernel =
            IntegerKernel { name: $name, format: LaneFormat::$format, is_available: || true, multiply: $run };
    };
}

portable!(PortableInts, i32, 4, Ints, 4, INTS, ints, "ints");
portable!(PortableLongs, i64, 2, Longs, 4, LONGS, longs, "longs");
