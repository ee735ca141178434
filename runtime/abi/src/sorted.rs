//! Sorted lists of numbers. A sort is compiled for each type of elements and each comparison, and collecting a `BTreeSet` sorts, too. So
//! executables would contain a dozen copies of code that runs once, when they load their program.

/// The different numbers, in ascending order.
pub fn distinct(numbers: impl IntoIterator<Item = usize>) -> Vec<usize> {
    let mut all: Vec<usize> = numbers.into_iter().collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The positions of these keys in ascending order of the keys, equal ones in their own order.
pub fn order(keys: &[u64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_unstable_by_key(|&at| (keys[at], at));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_sorted() {
        assert_eq!(distinct([3, 1, 3, 2, 1]), [1, 2, 3]);
        assert_eq!(order(&[5, 0, 5, u64::MAX, 1]), [1, 4, 0, 2, 3]);
    }
}
