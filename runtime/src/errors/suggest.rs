//! The known name nearest to a mistyped one.

/// The candidate with the least edit distance from `name`, if that is small: `suggest::nearest("--bnech", ["--bench"])`.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.chars().count() / 3).max(1);
    let rated = candidates.into_iter().map(|candidate| (distance(name, candidate), candidate));
    rated
        .filter(|&(distance, _)| distance <= limit)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// The number of characters to insert, remove, replace or swap with their neighbour (Damerau, "A technique for computer detection
/// and correction of spelling errors", 1964).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before_last = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                let swapped: &Vec<usize> = &before_last;
                least = least.min(swapped[j - 2] + 1);
            }
            row.push(least);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_near_names_are_suggested() {
        assert_eq!(nearest("--bnech", ["--arg", "--bench"]), Some("--bench"));
        assert_eq!(nearest("wieght", ["w", "weight"]), Some("weight"));
        assert_eq!(nearest("q", ["x", "loss"]), Some("x"));
        assert_eq!(nearest("loss", ["x", "gradient"]), None);
    }
}
