//! The axes of charts: ranges of numbers, with marks at round numbers.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

/// The largest absolute value that an axis shows, so that no difference overflows.
const LARGEST: f64 = 1e300;

/// The smallest length of an axis.
const SHORTEST: f64 = 1e-290;

/// The smallest length of an axis, relative to its largest absolute value: marks then differ by many units in the last place.
const RELATIVE: f64 = 1e-6;

/// An axis from left to right or from bottom to top.
#[derive(Clone, Copy, Debug)]
pub struct ChartAxis {
    from: f64,
    to: f64,
    /// Whether marks are whole numbers, as indices are.
    whole: bool,
}

impl ChartAxis {
    /// The indices of so many elements, each in the middle of an interval of length 1. Those of rows run downwards.
    pub fn of_cells(count: usize, downwards: bool) -> ChartAxis {
        let (first, last) = (-0.5, count as f64 - 0.5);
        let (from, to) = if downwards { (last, first) } else { (first, last) };
        ChartAxis { from, to, whole: true }
    }

    /// The indices of so many elements, from the first to the last one.
    pub fn of_indices(count: usize) -> ChartAxis {
        match count {
            0 | 1 => ChartAxis::of_cells(1, false),
            _ => ChartAxis { from: 0.0, to: (count - 1) as f64, whole: true },
        }
    }

    /// The range of the finite values, with this part of its length on both sides. There must be such a value.
    pub fn of_values<'a>(values: impl IntoIterator<Item = &'a f64>, margin: f64) -> ChartAxis {
        let finite = values.into_iter().filter(|value| value.is_finite());
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        finite.for_each(|value| (low, high) = (low.min(*value), high.max(*value)));
        debug_assert!(low <= high, "there is a finite value");
        let (low, high) = (low.clamp(-LARGEST, LARGEST), high.clamp(-LARGEST, LARGEST));
        let middle = low / 2.0 + high / 2.0;
        let half = (high - low) / 2.0 * (1.0 + 2.0 * margin);
        // All values are the same: the axis shows a tenth of the value on both sides.
        let half = if low == high { if low == 0.0 { 1.0 } else { low.abs() * 0.1 } } else { half };
        let half = half.max(middle.abs() * RELATIVE).max(SHORTEST);
        ChartAxis { from: middle - half, to: middle + half, whole: false }
    }

    /// The position of a value between both ends, from 0 to 1.
    pub fn position(&self, value: f64) -> f64 {
        ((value.clamp(-LARGEST, LARGEST) - self.from) / (self.to - self.from)).clamp(0.0, 1.0)
    }

    /// The distance of the marks, of which there are at most `count`: 1, 2 or 5 times a power of 10.
    fn step(&self, count: usize) -> f64 {
        let least = (self.to - self.from).abs() / count.max(1) as f64;
        let power = 10f64.powf(least.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= least * 0.999);
        let step = step.unwrap_or(10.0 * power);
        if self.whole { step.max(1.0) } else { step }
    }

    /// At most so many marks, in ascending order.
    pub fn marks(&self, count: usize) -> Vec<f64> {
        if count == 0 {
            return Vec::new();
        }
        let (low, high) = (self.from.min(self.to), self.from.max(self.to));
        let step = self.step(count);
        let (first, last) = ((low / step - 1e-9).ceil(), (high / step + 1e-9).floor());
        let marks = (last - first).max(-1.0) as usize + 1;
        // The product of a power of 10 and an integer has at most two roundings.
        (0..marks.min(count + 1)).map(|index| (first + index as f64) * step).collect()
    }

    /// The text of a mark, with the digits by which it differs from the next one.
    pub fn label(&self, value: f64, count: usize) -> String {
        let step = self.step(count);
        let largest = self.from.abs().max(self.to.abs());
        let digits = (-(step.log10() + 1e-9).floor()).max(0.0) as usize;
        if largest < 1e6 && digits <= 6 {
            let text = format!("{value:.digits$}");
            return if text.trim_start_matches(['-', '0', '.']).is_empty() { "0".to_string() } else { text };
        }
        if (value / step).abs() < 0.5 {
            return "0".to_string();
        }
        let digits = (value.abs().log10().floor() - (step.log10() + 1e-9).floor()).clamp(0.0, 17.0) as usize;
        let text = format!("{value:.digits$e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let digits = if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
        format!("{digits}e{exponent}")
    }
}

impl Ranged for ChartAxis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (start, end): (i32, i32)) -> i32 {
        start + (self.position(*value) * f64::from(end - start)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        // Without marks between those with a label.
        self.marks(hint.bold_points())
    }

    fn range(&self) -> Range<f64> {
        self.from..self.to
    }
}

impl ValueFormatter<f64> for ChartAxis {
    fn format(value: &f64) -> String {
        value.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &ChartAxis, count: usize) -> Vec<String> {
        axis.marks(count).iter().map(|&mark| axis.label(mark, count)).collect()
    }

    #[test]
    fn marks_are_round_numbers() {
        assert_eq!(
            labels(&ChartAxis::of_values(&[0.0, 1.0], 0.0), 5),
            ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"].map(|text| { if text == "0.0" { "0" } else { text } })
        );
        assert_eq!(labels(&ChartAxis::of_values(&[-3e-9, 4e-9], 0.0), 4), ["-2e-9", "0", "2e-9", "4e-9"]);
        assert_eq!(labels(&ChartAxis::of_values(&[1e7, 3e7], 0.0), 4), ["1e7", "1.5e7", "2e7", "2.5e7", "3e7"]);
        assert_eq!(labels(&ChartAxis::of_indices(3), 8), ["0", "1", "2"]);
        assert_eq!(labels(&ChartAxis::of_cells(1, true), 8), ["0"]);
        assert_eq!(labels(&ChartAxis::of_indices(1_000_001), 4), ["0", "5e5", "1e6"]);
    }

    #[test]
    fn every_range_has_few_marks_that_differ() {
        let extreme = [
            [f64::MIN, f64::MAX],
            [0.0, 0.0],
            [5e-324, 1e-323],
            [1.0, 1.0 + f64::EPSILON],
            [-1e300, -1e300],
            [1e17, 1e17 + 64.0],
            [f64::NAN, 7.0],
        ];
        for values in extreme {
            for margin in [0.0, 0.05] {
                let axis = ChartAxis::of_values(&values, margin);
                let found = labels(&axis, 5);
                assert!((1..=6).contains(&found.len()), "{values:?}: {found:?}");
                assert!(found.windows(2).all(|pair| pair[0] != pair[1]), "{values:?}: {found:?}");
                let finite = values.into_iter().filter(|value| value.is_finite());
                finite.for_each(|value| assert!((0.0..=1.0).contains(&axis.position(value))));
            }
        }
    }
}
