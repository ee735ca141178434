//! Fills memory with the random bits of consecutive counters, by the widest instructions of the processor.
//!
//! The code generator has vectors of 128 bits. The cipher takes a hundred instructions per element, so kernels call this function for
//! a tile of elements, and read the tile. The bits are integers, so they are the same for every width of vectors.
#![warn(missing_docs)]

#[cfg(target_arch = "x86_64")]
mod x86;

use spmdc_abi::DType;
use spmdc_abi::threefry::{Key, threefry2x32, words};

/// Elements are written in whole groups of this number.
pub const GROUP: usize = 16;

/// The name of [`fill`] in objects.
pub const SYMBOL: &str = "spmd_random_bits";

/// The element of this type for the two words of the generator, in the low bytes; None for types without one.
#[inline(always)]
pub fn element(dtype: DType, words: [u32; 2]) -> Option<u64> {
    let [high, low] = words;
    Some(match BitsForm::of(dtype)? {
        BitsForm::U8 => u64::from((high ^ low) as u8),
        BitsForm::U16 => u64::from((high ^ low) as u16),
        BitsForm::U32 => u64::from(high ^ low),
        BitsForm::U64 => as_u64(words),
        BitsForm::Key => as_key(words),
    })
}

#[inline(always)]
fn as_u64([high, low]: [u32; 2]) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// The first word of a key comes first in memory.
#[inline(always)]
fn as_key([high, low]: [u32; 2]) -> u64 {
    u64::from(low) << 32 | u64::from(high)
}

/// The form of elements in memory: the last argument of [`fill`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum BitsForm {
    /// The low 8 bits of both words' exclusive or.
    U8,
    /// Its low 16 bits.
    U16,
    /// The exclusive or of both words.
    U32,
    /// The first word in the upper half.
    U64,
    /// The first word in the lower half.
    Key,
}

impl BitsForm {
    /// The form of the elements of this type; None if random bits never have it.
    pub fn of(dtype: DType) -> Option<BitsForm> {
        match dtype {
            DType::U8 => Some(BitsForm::U8),
            DType::U16 => Some(BitsForm::U16),
            DType::U32 => Some(BitsForm::U32),
            DType::U64 => Some(BitsForm::U64),
            DType::Key => Some(BitsForm::Key),
            DType::Bool
            | DType::I8
            | DType::I16
            | DType::I32
            | DType::I64
            | DType::F8e4m3
            | DType::F8e5m2
            | DType::F16
            | DType::Bf16
            | DType::F32
            | DType::F64 => None,
        }
    }
}

/// Writes the elements of the counters `first`, `first + 1`, ... to `to`: `count` of them, rounded up to a multiple of [`GROUP`].
/// `key` has the first word of the key in its upper half.
///
/// # Safety
/// `to` has room for that many elements of the form.
pub unsafe extern "C" fn fill(to: *mut u8, key: u64, first: u64, count: u64, form: BitsForm) {
    let filling = Filling { to, key: words(key), first, count: count.next_multiple_of(GROUP as u64), form };
    // Detection reads a number in memory, which is set at the first call.
    #[cfg(target_arch = "x86_64")]
    {
        if has_avx512() {
            // SAFETY: the processor has the features, and there is room by the contract of this function.
            return unsafe { x86::avx512::fill(filling) };
        }
        if std::is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            return unsafe { x86::avx2::fill(filling) };
        }
        // SAFETY: every x86-64 has the features, and there is room by the contract of this function.
        unsafe { x86::sse2::fill(filling) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: there is room by the contract of this function.
    unsafe {
        fill_elements(filling)
    }
}

#[derive(Clone, Copy)]
struct Filling {
    to: *mut u8,
    key: Key,
    first: u64,
    /// A multiple of [`GROUP`].
    count: u64,
    form: BitsForm,
}

#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    std::is_x86_feature_detected!("avx512f")
        && std::is_x86_feature_detected!("avx512bw")
        && std::is_x86_feature_detected!("avx512dq")
        && std::is_x86_feature_detected!("avx512vl")
}

/// # Safety
/// There is room for `count` elements.
#[inline(always)]
unsafe fn fill_elements(filling: Filling) {
    // SAFETY: each of these writes elements of its form, for which there is room.
    unsafe {
        match filling.form {
            BitsForm::U8 => fill_with(filling, |[high, low]| (high ^ low) as u8),
            BitsForm::U16 => fill_with(filling, |[high, low]| (high ^ low) as u16),
            BitsForm::U32 => fill_with(filling, |[high, low]| high ^ low),
            BitsForm::U64 => fill_with(filling, as_u64),
            BitsForm::Key => fill_with(filling, as_key),
        }
    }
}

/// # Safety
/// There is room for `count` elements of type `T`.
#[inline(always)]
unsafe fn fill_with<T>(filling: Filling, element: impl Fn([u32; 2]) -> T) {
    let Filling { to, key, first, count, form: _ } = filling;
    let to = to.cast::<T>();
    for i in 0..count {
        let element = element(threefry2x32(key, words(first.wrapping_add(i))));
        // SAFETY: the index is less than the count. Room for elements of generated code need not be aligned for `T`.
        unsafe { to.add(i as usize).write_unaligned(element) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMS: [(DType, BitsForm); 5] = [
        (DType::U8, BitsForm::U8),
        (DType::U16, BitsForm::U16),
        (DType::U32, BitsForm::U32),
        (DType::U64, BitsForm::U64),
        (DType::Key, BitsForm::Key),
    ];

    type Level = unsafe fn(Filling);

    /// The functions that this processor can run.
    fn levels() -> Vec<(&'static str, Level)> {
        let mut levels: Vec<(&str, Level)> = vec![("any", fill_elements)];
        #[cfg(target_arch = "x86_64")]
        {
            levels.push(("sse2", x86::sse2::fill));
            if std::is_x86_feature_detected!("avx2") {
                levels.push(("avx2", x86::avx2::fill));
            }
            if has_avx512() {
                levels.push(("avx512", x86::avx512::fill));
            }
        }
        levels
    }

    #[test]
    fn every_level_gives_the_bits_of_the_definition() {
        let key = [0x1234_5678, 0x9abc_def0];
        for (dtype, form) in FORMS {
            let size = dtype.size();
            assert_eq!(BitsForm::of(dtype), Some(form));
            // Some pass the end of the lower word, or the end of the counters.
            for first in [0, 5, (1 << 32) - 7, (1 << 40) + 3, u64::MAX - 40, u64::MAX] {
                // Whole blocks of four vectors of every width, and single ones.
                let count = 7 * GROUP;
                let expected: Vec<u8> = (0..count as u64)
                    .flat_map(|i| {
                        let words = threefry2x32(key, words(first.wrapping_add(i)));
                        element(dtype, words).map(u64::to_le_bytes).unwrap_or_default()[..size].to_vec()
                    })
                    .collect();
                for (name, level) in levels() {
                    let mut found = vec![0; count * size];
                    let filling = Filling { to: found.as_mut_ptr(), key, first, count: count as u64, form };
                    // SAFETY: there is room for the elements, and the processor has the features of the level.
                    unsafe { level(filling) };
                    assert_eq!(found, expected, "{name} {form:?} {first}");
                }
            }
        }
        assert_eq!(BitsForm::of(DType::F32), None);
    }

    #[test]
    fn whole_groups_are_written_and_no_more() {
        let mut found = [0u32; 3 * GROUP];
        // SAFETY: two groups hold 17 elements.
        unsafe { fill(found.as_mut_ptr().cast(), 42, 0, 17, BitsForm::U32) };
        assert_eq!(found[..3], [2098992034, 2919706841, 2646866425]);
        assert!(found[..2 * GROUP].iter().all(|&bits| bits != 0) && found[2 * GROUP..] == [0; GROUP]);
    }
}
