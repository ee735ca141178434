//! The generator of random bits, which programs and generated arguments share: JAX's partitionable Threefry.
//!
//! Element `i` (in row-major order of the whole array) depends on the key and on `i` alone. So every device computes its own block,
//! and the bits are the same on every mesh.
//!
//! ```
//! use spmdc_abi::threefry;
//! let key = threefry::key(42);
//! assert_eq!(threefry::bits32(key, 0), 2098992034);
//! ```

/// A key of the generator: two 32-bit words.
pub type Key = [u32; 2];

/// The rotations of the four rounds of a group; the second row is for every other group.
pub const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
/// The number of groups of rounds.
pub const GROUPS: usize = 5;
/// The third word of the key schedule is the exclusive or of the key and this constant.
pub const PARITY: u32 = 0x1bd1_1bda;

/// The key of a seed: its two halves. A language literal is an `i32`, so a negative seed in that range has a high half of 0.
pub fn key(seed: i64) -> Key {
    let high = if i32::try_from(seed).is_ok() { 0 } else { (seed >> 32) as u32 };
    [high, seed as u32]
}

/// The words of a number of 64 bits, the upper half first.
#[inline(always)]
pub fn words(bits: u64) -> [u32; 2] {
    [(bits >> 32) as u32, bits as u32]
}

/// The Threefry-2x32 block cipher with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
#[inline(always)]
pub fn threefry2x32(key: Key, counter: [u32; 2]) -> [u32; 2] {
    let schedule = [key[0], key[1], key[0] ^ key[1] ^ PARITY];
    let mut x = [counter[0].wrapping_add(schedule[0]), counter[1].wrapping_add(schedule[1])];
    for group in 0..GROUPS {
        for rotation in ROTATIONS[group % 2] {
            x[0] = x[0].wrapping_add(x[1]);
            x[1] = x[1].rotate_left(rotation) ^ x[0];
        }
        x[0] = x[0].wrapping_add(schedule[(group + 1) % 3]);
        x[1] = x[1].wrapping_add(schedule[(group + 2) % 3]).wrapping_add(group as u32 + 1);
    }
    x
}

/// Two keys made of one.
pub fn split(key: Key) -> [Key; 2] {
    [0, 1].map(|counter| threefry2x32(key, [0, counter]))
}

/// The 64 random bits of an index under a key.
#[inline(always)]
pub fn bits64(key: Key, index: u64) -> u64 {
    let [high, low] = threefry2x32(key, words(index));
    u64::from(high) << 32 | u64::from(low)
}

/// The 32 random bits of an index under a key; narrower types take their low bits.
#[inline(always)]
pub fn bits32(key: Key, index: u64) -> u32 {
    let [high, low] = threefry2x32(key, words(index));
    high ^ low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threefry_gives_the_published_words() {
        assert_eq!(threefry2x32([0, 0], [0, 0]), [0x6b200159, 0x99ba4efe]);
        assert_eq!(threefry2x32([u32::MAX; 2], [u32::MAX; 2]), [0x1cb996fc, 0xbb002be7]);
        let pi = threefry2x32([0x13198a2e, 0x03707344], [0x243f6a88, 0x85a308d3]);
        assert_eq!(pi, [0xc4923a9c, 0x483df7a0]);
    }

    #[test]
    fn keys_and_bits_are_those_of_jax() {
        assert_eq!([key(42), key(-1), key((1 << 40) + 5)], [[0, 42], [0, u32::MAX], [256, 5]]);
        let bits: Vec<u32> = (0..6).map(|i| bits32(key(42), i)).collect();
        assert_eq!(bits, [2098992034, 2919706841, 2646866425, 2409546199, 1935504149, 2516274904]);
    }
}
