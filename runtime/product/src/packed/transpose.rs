//! Transposed blocks of memory, in registers. Columns are stored in order: each may continue into the place of the next one.

use std::arch::x86_64::*;

/// A vector for each of the first `len` rows of a block, and vectors of zeros.
macro_rules! rows {
    ($load:ident, $zero:ident, $from:ident, $stride:ident, $len:ident) => {{
        let mut rows = [$zero(); _];
        for (at, row) in rows.iter_mut().enumerate() {
            if at < $len {
                // SAFETY: as promised by the caller.
                *row = unsafe { $load($from.wrapping_offset(at as isize * $stride).cast()) };
            }
        }
        rows
    }};
}

/// # Safety
/// As for [`PanelKernel::transpose`](super::kernel::PanelKernel::transpose), for 16 lanes of 32 bits.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn transpose_16(from: *const u8, stride: isize, len: usize, to: *mut f32, step: usize) {
    let rows: [__m512; 16] = rows!(_mm512_loadu_ps, _mm512_setzero_ps, from, stride, len);
    // Lanes 4 i + j of rows 4 r to 4 r + 3, in `fours[4 * r + j]`.
    let mut fours = [_mm512_setzero_ps(); 16];
    for r in (0..16).step_by(4) {
        let [low, high] = [r, r + 2].map(|at| {
            [_mm512_unpacklo_ps(rows[at], rows[at + 1]), _mm512_unpackhi_ps(rows[at], rows[at + 1])]
                .map(|pair| _mm512_castps_pd(pair))
        });
        for half in 0..2 {
            fours[r + 2 * half] = _mm512_castpd_ps(_mm512_unpacklo_pd(low[half], high[half]));
            fours[r + 2 * half + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low[half], high[half]));
        }
    }
    let mut columns = [_mm512_setzero_ps(); 16];
    for j in 0..4 {
        // Columns j and j + 8, then j + 4 and j + 12, of rows 0 to 7 and 8 to 15.
        let [low, high] = [j, j + 8].map(|at| {
            [
                _mm512_shuffle_f32x4::<0b1000_1000>(fours[at], fours[at + 4]),
                _mm512_shuffle_f32x4::<0b1101_1101>(fours[at], fours[at + 4]),
            ]
        });
        for odd in 0..2 {
            columns[j + 4 * odd] = _mm512_shuffle_f32x4::<0b1000_1000>(low[odd], high[odd]);
            columns[j + 4 * odd + 8] = _mm512_shuffle_f32x4::<0b1101_1101>(low[odd], high[odd]);
        }
    }
    for (at, column) in columns.into_iter().enumerate() {
        // SAFETY: as promised by the caller.
        unsafe { _mm512_storeu_ps(to.add(at * step), column) };
    }
}

/// # Safety
/// As for [`PanelKernel::transpose`](super::kernel::PanelKernel::transpose), for 8 lanes of 32 bits.
#[inline]
#[target_feature(enable = "avx")]
pub(super) unsafe fn transpose_8(from: *const u8, stride: isize, len: usize, to: *mut f32, step: usize) {
    let rows: [__m256; 8] = rows!(_mm256_loadu_ps, _mm256_setzero_ps, from, stride, len);
    let mut fours = [_mm256_setzero_ps(); 8];
    for r in (0..8).step_by(4) {
        let [low, high] = [r, r + 2].map(|at| {
            [_mm256_unpacklo_ps(rows[at], rows[at + 1]), _mm256_unpackhi_ps(rows[at], rows[at + 1])]
                .map(|pair| _mm256_castps_pd(pair))
        });
        for half in 0..2 {
            fours[r + 2 * half] = _mm256_castpd_ps(_mm256_unpacklo_pd(low[half], high[half]));
            fours[r + 2 * half + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(low[half], high[half]));
        }
    }
    let mut columns = [_mm256_setzero_ps(); 8];
    for j in 0..4 {
        columns[j] = _mm256_permute2f128_ps::<0x20>(fours[j], fours[j + 4]);
        columns[j + 4] = _mm256_permute2f128_ps::<0x31>(fours[j], fours[j + 4]);
    }
    for (at, column) in columns.into_iter().enumerate() {
        // SAFETY: as promised by the caller.
        unsafe { _mm256_storeu_ps(to.add(at * step), column) };
    }
}

/// # Safety
/// As for [`PanelKernel::transpose`](super::kernel::PanelKernel::transpose), for 8 lanes of 64 bits.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn transpose_8_long(from: *const u8, stride: isize, len: usize, to: *mut f64, step: usize) {
    let rows: [__m512d; 8] = rows!(_mm512_loadu_pd, _mm512_setzero_pd, from, stride, len);
    // Lanes 2 i + j of rows 2 r and 2 r + 1, in `pairs[j][r]`.
    let even: [__m512d; 4] = std::array::from_fn(|r| _mm512_unpacklo_pd(rows[2 * r], rows[2 * r + 1]));
    let odd: [__m512d; 4] = std::array::from_fn(|r| _mm512_unpackhi_pd(rows[2 * r], rows[2 * r + 1]));
    let mut columns = [_mm512_setzero_pd(); 8];
    for (j, pairs) in [even, odd].into_iter().enumerate() {
        // Columns j and j + 4, then j + 2 and j + 6, of rows 0 to 3 and 4 to 7.
        let [low, high] = [0, 2].map(|at| {
            [
                _mm512_shuffle_f64x2::<0b1000_1000>(pairs[at], pairs[at + 1]),
                _mm512_shuffle_f64x2::<0b1101_1101>(pairs[at], pairs[at + 1]),
            ]
        });
        for half in 0..2 {
            columns[j + 2 * half] = _mm512_shuffle_f64x2::<0b1000_1000>(low[half], high[half]);
            columns[j + 2 * half + 4] = _mm512_shuffle_f64x2::<0b1101_1101>(low[half], high[half]);
        }
    }
    for (at, column) in columns.into_iter().enumerate() {
        // SAFETY: as promised by the caller.
        unsafe { _mm512_storeu_pd(to.add(at * step), column) };
    }
}

/// # Safety
/// As for [`PanelKernel::transpose`](super::kernel::PanelKernel::transpose), for 4 lanes of 64 bits.
#[inline]
#[target_feature(enable = "avx")]
pub(super) unsafe fn transpose_4_long(from: *const u8, stride: isize, len: usize, to: *mut f64, step: usize) {
    let rows: [__m256d; 4] = rows!(_mm256_loadu_pd, _mm256_setzero_pd, from, stride, len);
    let [low, high] =
        [0, 2].map(|r| [_mm256_unpacklo_pd(rows[r], rows[r + 1]), _mm256_unpackhi_pd(rows[r], rows[r + 1])]);
    let columns = [
        _mm256_permute2f128_pd::<0x20>(low[0], high[0]),
        _mm256_permute2f128_pd::<0x20>(low[1], high[1]),
        _mm256_permute2f128_pd::<0x31>(low[0], high[0]),
        _mm256_permute2f128_pd::<0x31>(low[1], high[1]),
    ];
    for (at, column) in columns.into_iter().enumerate() {
        // SAFETY: as promised by the caller.
        unsafe { _mm256_storeu_pd(to.add(at * step), column) };
    }
}

/// # Safety
/// As for [`PanelKernel::interleave`](super::kernel::PanelKernel::interleave).
#[inline]
#[target_feature(enable = "sse2")]
pub(super) unsafe fn interleave_bytes(rows: [*const u8; 4], len: usize, to: *mut u8) {
    for at in (0..len).step_by(16) {
        // SAFETY: as promised by the caller.
        let [a, b, c, d] = rows.map(|row| unsafe { _mm_loadu_si128(row.add(at).cast()) });
        let low = [_mm_unpacklo_epi8(a, b), _mm_unpacklo_epi8(c, d)];
        let high = [_mm_unpackhi_epi8(a, b), _mm_unpackhi_epi8(c, d)];
        for (half, [ab, cd]) in [low, high].into_iter().enumerate() {
            let to = to.wrapping_add(4 * at + 32 * half);
            // SAFETY: as promised by the caller.
            unsafe {
                _mm_storeu_si128(to.cast(), _mm_unpacklo_epi16(ab, cd));
                _mm_storeu_si128(to.add(16).cast(), _mm_unpackhi_epi16(ab, cd));
            }
        }
    }
}

/// # Safety
/// As for [`PanelKernel::interleave`](super::kernel::PanelKernel::interleave).
#[inline]
#[target_feature(enable = "sse2")]
pub(super) unsafe fn interleave_words(rows: [*const u8; 2], len: usize, to: *mut u8) {
    for at in (0..len).step_by(16) {
        // SAFETY: as promised by the caller.
        unsafe {
            let [a, b] = rows.map(|row| _mm_loadu_si128(row.add(at).cast()));
            let to = to.add(2 * at);
            _mm_storeu_si128(to.cast(), _mm_unpacklo_epi16(a, b));
            _mm_storeu_si128(to.add(16).cast(), _mm_unpackhi_epi16(a, b));
        }
    }
}
