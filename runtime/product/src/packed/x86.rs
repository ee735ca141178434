//! Kernels for processors with vectors of 256 or 512 bits.

use std::arch::x86_64::*;
use std::mem::transmute;

use super::blocks::multiply;
use super::kernel::{FloatLane, PanelKernel};
use super::lines::multiply_lines;
use super::transpose::{
    interleave_bytes, interleave_words, transpose_4_long, transpose_8, transpose_8_long, transpose_16,
};
use super::{LaneFormat, PackedKernel, PackedProduct};

/// A kernel: its name, format, lanes and terms of a lane; its vectors and their operations; and the rows of its tiles. Its features come
/// twice: for the compiler, and for the check of the processor.
macro_rules! kernel {
    (
        $constant:ident: $name:literal, $kernel:ident, $format:ident, [$lane:ty; $lanes:literal], $group:literal,
        $vector:ty: $splat:ident, $load:ident, $store:ident, $add:ident, |$sums:ident, $a:ident, $b:ident| $product:expr,
        $transpose:ident, ($rows:literal, $few:literal), $features:literal, [$($feature:tt),+], $run:ident
        $(, lines of ($vectors:literal, $lines:literal))?
    ) => {
        struct $kernel;

        impl PanelKernel for $kernel {
            type Lane = $lane;
            type Vector = $vector;
            const FORMAT: LaneFormat = LaneFormat::$format;
            const GROUP: usize = $group;
            const LANES: usize = $lanes;
            const TRANSPOSES: bool = true;

            #[inline(always)]
            unsafe fn fetch(from: *const $lane) {
                // SAFETY: all processors have the instruction.
                unsafe { _mm_prefetch::<_MM_HINT_T1>(from.cast()) }
            }

            #[inline(always)]
            unsafe fn transpose(from: *const u8, stride: isize, len: usize, to: *mut $lane, step: usize) {
                // SAFETY: as promised by the caller; the processor has the instructions of the kernel.
                unsafe { $transpose(from, stride, len, to.cast(), step) }
            }

            #[inline(always)]
            unsafe fn interleave(rows: *const u8, stride: isize, len: usize, to: *mut $lane) {
                let row = |at: isize| rows.wrapping_offset(at * stride);
                debug_assert!(len.is_multiple_of(16), "{len} bytes are not interleaved");
                // SAFETY: as promised by the caller.
                unsafe {
                    match $group {
                        4 => interleave_bytes([row(0), row(1), row(2), row(3)], len, to.cast()),
                        _ => interleave_words([row(0), row(1)], len, to.cast()),
                    }
                }
            }

            #[inline(always)]
            unsafe fn splat(lane: $lane) -> $vector {
                // SAFETY: the processor has the instructions of the kernel.
                unsafe { $splat(lane) }
            }

            #[inline(always)]
            unsafe fn load(from: *const $lane) -> $vector {
                // SAFETY: as promised by the caller.
                unsafe { $load(from.cast()) }
            }

            #[inline(always)]
            unsafe fn store(to: *mut $lane, vector: $vector) {
                // SAFETY: as promised by the caller.
                unsafe { $store(to.cast(), vector) }
            }

            #[inline(always)]
            unsafe fn add(a: $vector, b: $vector) -> $vector {
                // SAFETY: the processor has the instructions of the kernel.
                unsafe { $add(a, b) }
            }

            #[inline(always)]
            unsafe fn multiply_add($sums: $vector, $a: $vector, $b: $vector) -> $vector {
                // SAFETY: the processor has the instructions of the kernel.
                unsafe { $product }
            }
        }

        /// # Safety
        /// As for [`PackedKernel::run`].
        #[target_feature(enable = $features)]
        unsafe fn $run(product: &PackedProduct) {
            // SAFETY: as promised by the caller.
            unsafe {
                $(if product.lines {
                    return multiply_lines::<$kernel, { $vectors }, { $lines }>(product);
                })?
                multiply::<$kernel, $rows, $few, { 2 * $lanes }>(product)
            }
        }

        pub(super) const $constant: PackedKernel = PackedKernel {
            name: $name,
            format: LaneFormat::$format,
            is_available: || $(is_x86_feature_detected!($feature))&&+,
            multiply: $run,
        };
    };
}

kernel!(
    BYTES_512: "bytes avx512vnni", Bytes512, Bytes, [i32; 16], 4,
    __m512i: _mm512_set1_epi32, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_add_epi32,
    |sums, a, b| _mm512_dpbusd_epi32(sums, a, b),
    transpose_16, (12, 4), "avx512f,avx512bw,avx512vl,avx512vnni", ["avx512f", "avx512bw", "avx512vl", "avx512vnni"], bytes_512
);

kernel!(
    BYTES_256: "bytes avxvnni", Bytes256, Bytes, [i32; 8], 4,
    __m256i: _mm256_set1_epi32, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_add_epi32,
    |sums, a, b| _mm256_dpbusd_avx_epi32(sums, a, b),
    transpose_8, (6, 2), "avx2,avxvnni", ["avx2", "avxvnni"], bytes_256
);

kernel!(
    WORDS_512: "words avx512vnni", Words512, Words, [i32; 16], 2,
    __m512i: _mm512_set1_epi32, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_add_epi32,
    |sums, a, b| _mm512_dpwssd_epi32(sums, a, b),
    transpose_16, (12, 4), "avx512f,avx512bw,avx512vl,avx512vnni", ["avx512f", "avx512bw", "avx512vl", "avx512vnni"], words_512
);

kernel!(
    WORDS_256: "words avxvnni", Words256, Words, [i32; 8], 2,
    __m256i: _mm256_set1_epi32, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_add_epi32,
    |sums, a, b| _mm256_dpwssd_avx_epi32(sums, a, b),
    transpose_8, (6, 2), "avx2,avxvnni", ["avx2", "avxvnni"], words_256
);

kernel!(
    WORDS_MADD_512: "words avx512bw", WordsMadd512, Words, [i32; 16], 2,
    __m512i: _mm512_set1_epi32, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_add_epi32,
    |sums, a, b| _mm512_add_epi32(sums, _mm512_madd_epi16(a, b)),
    transpose_16, (12, 4), "avx512f,avx512bw,avx512vl", ["avx512f", "avx512bw", "avx512vl"], words_madd_512
);

kernel!(
    WORDS_MADD_256: "words avx2", WordsMadd256, Words, [i32; 8], 2,
    __m256i: _mm256_set1_epi32, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_add_epi32,
    |sums, a, b| _mm256_add_epi32(sums, _mm256_madd_epi16(a, b)),
    transpose_8, (6, 2), "avx2", ["avx2"], words_madd_256
);

kernel!(
    INTS_512: "ints avx512f", Ints512, Ints, [i32; 16], 1,
    __m512i: _mm512_set1_epi32, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_add_epi32,
    |sums, a, b| _mm512_add_epi32(sums, _mm512_mullo_epi32(a, b)),
    transpose_16, (12, 4), "avx512f,avx512bw,avx512vl", ["avx512f", "avx512bw", "avx512vl"], ints_512
);

kernel!(
    INTS_256: "ints avx2", Ints256, Ints, [i32; 8], 1,
    __m256i: _mm256_set1_epi32, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_add_epi32,
    |sums, a, b| _mm256_add_epi32(sums, _mm256_mullo_epi32(a, b)),
    transpose_8, (6, 2), "avx2", ["avx2"], ints_256
);

kernel!(
    LONGS_512: "longs avx512dq", Longs512, Longs, [i64; 8], 1,
    __m512i: _mm512_set1_epi64, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_add_epi64,
    |sums, a, b| _mm512_add_epi64(sums, _mm512_mullo_epi64(a, b)),
    transpose_8_long, (12, 4), "avx512f,avx512dq,avx512vl", ["avx512f", "avx512dq", "avx512vl"], longs_512
);

kernel!(
    LONGS_256: "longs avx2", Longs256, Longs, [i64; 4], 1,
    __m256i: _mm256_set1_epi64x, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_add_epi64,
    |sums, a, b| {
        // Without a product of 64 bits: that of the low halves, and those of a low and a high half times 2^32.
        let crossed = _mm256_mullo_epi32(a, _mm256_shuffle_epi32::<0b1011_0001>(b));
        let high = _mm256_add_epi32(_mm256_slli_epi64::<32>(crossed), crossed);
        let high = _mm256_and_si256(high, _mm256_set1_epi64x(0xffff_ffff_0000_0000_u64 as i64));
        _mm256_add_epi64(sums, _mm256_add_epi64(_mm256_mul_epu32(a, b), high))
    },
    transpose_4_long, (6, 2), "avx2", ["avx2"], longs_256
);

/// A vector with copies of a lane.
#[inline]
#[target_feature(enable = "avx512f")]
fn splat_512(lane: FloatLane) -> __m512 {
    _mm512_set1_ps(lane.sum())
}

/// A vector with copies of a lane.
#[inline]
#[target_feature(enable = "avx")]
fn splat_256(lane: FloatLane) -> __m256 {
    _mm256_set1_ps(lane.sum())
}

/// The terms in the lower halves of lanes, as f32.
#[inline]
#[target_feature(enable = "avx2")]
fn earlier_terms(pairs: __m256) -> __m256 {
    _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_castps_si256(pairs)))
}

/// The terms in the upper halves of lanes, as f32.
#[inline]
#[target_feature(enable = "avx2")]
fn later_terms(pairs: __m256) -> __m256 {
    _mm256_and_ps(pairs, _mm256_castsi256_ps(_mm256_set1_epi32(0xffff_0000_u32 as i32)))
}

kernel!(
    FLOATS_512: "floats avx512bf16", Floats512, Floats, [FloatLane; 16], 2,
    __m512: splat_512, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_add_ps,
    |sums, a, b| {
        // Both types are 512 bits, for which the instruction has its own meaning.
        _mm512_dpbf16_ps(sums, transmute::<__m512, __m512bh>(a), transmute::<__m512, __m512bh>(b))
    },
    transpose_16, (12, 4), "avx512f,avx512bw,avx512vl,avx512bf16", ["avx512f", "avx512bw", "avx512vl", "avx512bf16"], floats_512
);

kernel!(
    FLOATS_256: "floats avx2", Floats256, Floats, [FloatLane; 8], 2,
    __m256: splat_256, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_add_ps,
    |sums, a, b| {
        let sums = _mm256_fmadd_ps(later_terms(a), later_terms(b), sums);
        _mm256_fmadd_ps(earlier_terms(a), earlier_terms(b), sums)
    },
    transpose_8, (4, 2), "avx2,fma", ["avx2", "fma"], floats_256
);

kernel!(
    SINGLES_512: "singles avx512f", Singles512, Singles, [f32; 16], 1,
    __m512: _mm512_set1_ps, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_add_ps,
    |sums, a, b| _mm512_fmadd_ps(a, b, sums),
    transpose_16, (12, 4), "avx512f,avx512bw,avx512vl", ["avx512f", "avx512bw", "avx512vl"], singles_512, lines of (1, 4)
);

kernel!(
    SINGLES_256: "singles avx2", Singles256, Singles, [f32; 8], 1,
    __m256: _mm256_set1_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_add_ps,
    |sums, a, b| _mm256_fmadd_ps(a, b, sums),
    transpose_8, (6, 2), "avx2,fma", ["avx2", "fma"], singles_256, lines of (2, 2)
);

kernel!(
    DOUBLES_512: "doubles avx512f", Doubles512, Doubles, [f64; 8], 1,
    __m512d: _mm512_set1_pd, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_add_pd,
    |sums, a, b| _mm512_fmadd_pd(a, b, sums),
    transpose_8_long, (12, 4), "avx512f,avx512bw,avx512vl", ["avx512f", "avx512bw", "avx512vl"], doubles_512, lines of (1, 4)
);

kernel!(
    DOUBLES_256: "doubles avx2", Doubles256, Doubles, [f64; 4], 1,
    __m256d: _mm256_set1_pd, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_add_pd,
    |sums, a, b| _mm256_fmadd_pd(a, b, sums),
    transpose_4_long, (6, 2), "avx2,fma", ["avx2", "fma"], doubles_256, lines of (2, 2)
);
