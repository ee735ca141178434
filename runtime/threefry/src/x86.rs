//! The cipher on the vectors of x86-64, four of them at a time: each step needs the previous step of the same vector, so steps of the other
//! vectors run in between.

/// Defines a module for vectors of one width, whose function `fill` does as [`fill_elements`](super::fill_elements).
macro_rules! level {
    (
        $(#[$attribute:meta])* $name:ident, $features:literal, $vector:ident, $lanes:literal, $set:ident, $load:ident,
        $store:ident, $add:ident, $xor:ident, |$word:ident, $by:ident| $rotated:expr
    ) => {
        $(#[$attribute])*
        pub mod $name {
            use crate::{BitsForm, Filling, as_key, as_u64, fill_elements};
            use spmdc_abi::threefry::{PARITY, words};
            use std::arch::x86_64::*;

            const LANES: usize = $lanes;

            /// Number of vectors at a time.
            const MANY: usize = 4;

            /// # Safety
            /// The processor has the features; there is room for `count` elements.
            #[target_feature(enable = $features)]
            pub unsafe fn fill(filling: Filling) {
                let [_, low] = words(filling.first);
                if u64::from(low) + filling.count >= 1 << 32 {
                    // The upper word of the counters changes.
                    // SAFETY: as promised by the caller.
                    return unsafe { fill_elements(filling) };
                }
                let (mut at, count) = (0, filling.count as usize);
                while at + MANY * LANES <= count {
                    // SAFETY: these elements are among those of the filling.
                    unsafe { part::<MANY>(filling, at) };
                    at += MANY * LANES;
                }
                while at < count {
                    // SAFETY: as above; a group is a multiple of every vector.
                    unsafe { part::<1>(filling, at) };
                    at += LANES;
                }
            }

            /// The elements of some vectors of counters, from the one with the number `at` on.
            ///
            /// # Safety
            /// There is room for the elements.
            #[inline]
            #[target_feature(enable = $features)]
            unsafe fn part<const N: usize>(filling: Filling, at: usize) {
                let Filling { to, key, first, count: _, form } = filling;
                let [high, low] = words(first);
                let [a, b] = ciphers::<N>(key, high, low.wrapping_add(at as u32));
                // SAFETY: vectors of 32-bit words are written to arrays of them, and to the room for elements of 32 bits.
                unsafe {
                    if let BitsForm::U32 = form {
                        for vector in 0..N {
                            let to = to.cast::<u32>().add(at + vector * LANES);
                            $store(to.cast(), $xor(a[vector], b[vector]));
                        }
                        return;
                    }
                    let mut both = [[0u32; MANY * LANES]; 2];
                    for vector in 0..N {
                        $store(both[0].as_mut_ptr().add(vector * LANES).cast(), a[vector]);
                        $store(both[1].as_mut_ptr().add(vector * LANES).cast(), b[vector]);
                    }
                    let [high, low] = both;
                    for i in 0..N * LANES {
                        let (words, at) = ([high[i], low[i]], at + i);
                        match form {
                            BitsForm::U8 => to.add(at).write((words[0] ^ words[1]) as u8),
                            BitsForm::U16 => to.cast::<u16>().add(at).write_unaligned((words[0] ^ words[1]) as u16),
                            BitsForm::U32 => to.cast::<u32>().add(at).write_unaligned(words[0] ^ words[1]),
                            BitsForm::U64 => to.cast::<u64>().add(at).write_unaligned(as_u64(words)),
                            BitsForm::Key => to.cast::<u64>().add(at).write_unaligned(as_key(words)),
                        }
                    }
                }
            }

            /// The words of consecutive counters, whose upper words are the same.
            #[inline]
            #[target_feature(enable = $features)]
            fn ciphers<const N: usize>(key: [u32; 2], high: u32, low: u32) -> [[$vector; N]; 2] {
                let schedule = [key[0], key[1], key[0] ^ key[1] ^ PARITY];
                let splat = |word: u32| $set(word.cast_signed());
                let numbers: [u32; LANES] = std::array::from_fn(|lane| lane as u32);
                // SAFETY: the array is as long as the vector.
                let numbers = unsafe { $load(numbers.as_ptr().cast()) };
                let mut a = [splat(high.wrapping_add(schedule[0])); N];
                let mut b: [$vector; N] = std::array::from_fn(|vector| {
                    let first = low.wrapping_add((vector * LANES) as u32).wrapping_add(schedule[1]);
                    $add(numbers, splat(first))
                });
                // The rounds of `threefry2x32`, with the rotations as constants of the instructions.
                macro_rules! group {
                    ($number:literal, $rotations:tt) => {
                        group!(rounds $rotations);
                        let first = splat(schedule[$number % 3]);
                        let second = splat(schedule[($number + 1) % 3].wrapping_add($number));
                        for vector in 0..N {
                            a[vector] = $add(a[vector], first);
                            b[vector] = $add(b[vector], second);
                        }
                    };
                    (rounds [$rotation0:literal, $rotation1:literal, $rotation2:literal, $rotation3:literal]) => {
                        group!(round $rotation0);
                        group!(round $rotation1);
                        group!(round $rotation2);
                        group!(round $rotation3);
                    };
                    (round $rotation:literal) => {
                        for vector in 0..N {
                            a[vector] = $add(a[vector], b[vector]);
                        }
                        for vector in 0..N {
                            const $by: i32 = $rotation;
                            let $word = b[vector];
                            b[vector] = $xor($rotated, a[vector]);
                        }
                    };
                }
                group!(1, [13, 15, 26, 6]);
                group!(2, [17, 29, 16, 24]);
                group!(3, [13, 15, 26, 6]);
                group!(4, [17, 29, 16, 24]);
                group!(5, [13, 15, 26, 6]);
                [a, b]
            }
        }
    };
}

level!(
    /// Vectors of 512 bits, which rotate in one instruction.
    avx512, "avx512f,avx512bw,avx512dq,avx512vl", __m512i, 16, _mm512_set1_epi32, _mm512_loadu_si512,
    _mm512_storeu_si512, _mm512_add_epi32, _mm512_xor_si512, |word, BY| _mm512_rol_epi32::<BY>(word)
);
level!(
    /// Vectors of 256 bits.
    avx2, "avx2", __m256i, 8, _mm256_set1_epi32, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_add_epi32,
    _mm256_xor_si256, |word, BY| _mm256_or_si256(_mm256_slli_epi32::<BY>(word), _mm256_srli_epi32::<{ 32 - BY }>(word))
);
level!(
    /// Vectors of 128 bits, which every x86-64 has.
    sse2, "sse2", __m128i, 4, _mm_set1_epi32, _mm_loadu_si128, _mm_storeu_si128, _mm_add_epi32, _mm_xor_si128,
    |word, BY| _mm_or_si128(_mm_slli_epi32::<BY>(word), _mm_srli_epi32::<{ 32 - BY }>(word))
);
