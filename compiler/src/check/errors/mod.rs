//! What the checker has to say, one constructor for each message, grouped by area, so that wording is reviewed together.

pub mod calls;
pub mod control;
pub mod indices;
pub mod items;
pub mod manual;
pub mod names;
pub mod shardings;
pub mod sizes;
pub mod types;

/// The candidate that is nearest to a misspelt name, if one is near enough to be meant.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // One letter in three may differ, so of a name of one or two letters only the case.
    let limit = name.chars().count() / 3;
    let mut best: Option<(usize, &str)> = None;
    // Nobody misspells a name as long as this, and to compare takes the product of the lengths.
    let is_comparable = |candidate: &&str| name.len() <= 100 && candidate.len() <= 100;
    for candidate in candidates.into_iter().filter(is_comparable) {
        let distance = edit_distance(name, candidate);
        // A short name is not explained by replacing all of it.
        let plausible = distance <= limit && distance < name.chars().count().max(candidate.chars().count());
        if plausible && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// How many letters must be put in, taken out, replaced or swapped with their neighbour; letter case counts half a step less.
fn edit_distance(from: &str, to: &str) -> usize {
    let from: Vec<char> = from.to_lowercase().chars().collect();
    let to: Vec<char> = to.to_lowercase().chars().collect();
    let width = to.len() + 1;
    let mut table = vec![0; (from.len() + 1) * width];
    for i in 0..=from.len() {
        for j in 0..=to.len() {
            table[i * width + j] = if i == 0 || j == 0 {
                i + j
            } else {
                let same = usize::from(from[i - 1] != to[j - 1]);
                let mut best = (table[(i - 1) * width + j] + 1)
                    .min(table[i * width + j - 1] + 1)
                    .min(table[(i - 1) * width + j - 1] + same);
                if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                    best = best.min(table[(i - 2) * width + j - 2] + 1);
                }
                best
            };
        }
    }
    table[from.len() * width + to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let names = ["sum", "softmax", "weights", "x"];
        assert_eq!(nearest("sotfmax", names), Some("softmax"));
        assert_eq!(nearest("weigth", names), Some("weights"));
        assert_eq!(nearest("Sum", names), Some("sum"));
        assert_eq!(nearest("X", names), Some("x"));
        assert_eq!(nearest("q", names), None);
        assert_eq!(nearest("xs", names), None);
        assert_eq!(nearest("len", ["log", "n"]), None);
        assert_eq!(nearest("gradient", names), None);
    }
}
