//! Arrays as small pictures of text: a vector is a line of braille dots, a matrix is shades of blocks.
//!
//! ```
//! use spmdc_runtime::{data::array::HostArray, text::picture};
//! let bytes = vec![0_u8, 1, 2, 3, 2, 1];
//! let array = HostArray { dtype: spmdc_abi::DType::U8, shape: vec![2, 3], bytes };
//! assert_eq!(picture::drawn(&array), "│  ░░▓▓│\n│██▓▓░░│\n0 │ ░▒▓█│ 3");
//! ```

use std::ops::RangeInclusive;

use crate::data::array::HostArray;
use crate::text::show::{self, brief_text};

/// The size of a line in characters, of 2x4 dots each.
const WIDTH: usize = 60;
const HEIGHT: usize = 8;
const ACROSS: usize = 2 * WIDTH;
const DOWN: usize = 4 * HEIGHT;

/// The maximum number of rows and columns of a matrix; of larger ones, means of blocks are drawn.
const MAX_ROWS: usize = 20;
const MAX_COLUMNS: usize = 60;

/// Up to this number of columns, a cell is two characters: about as wide as it is high.
const WIDE_COLUMNS: usize = MAX_COLUMNS / 2;

/// From the smallest to the largest element.
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];

/// The cell of a block without a finite element.
const NOT_FINITE: char = '?';

/// The bits of the dots of a braille character, by column and row.
const DOTS: [[u32; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

/// The array as a picture, without a newline at the end. Scalars and empty arrays are shown as `{}` shows them.
pub fn drawn(array: &HostArray) -> String {
    debug_assert!(array.shape.len() <= 2, "the compiler refuses pictures of other arrays");
    if array.shape.is_empty() || array.is_empty() {
        return show::format(array);
    }
    let values: Vec<f64> = array.numbers().collect();
    let (shape, values) = match array.shape.as_slice() {
        [rows, columns] => blocks(*rows, *columns, &values),
        _ => ((1, values.len()), values),
    };
    let Some(scale) = Scale::of(&values) else {
        return "no finite elements".to_string();
    };
    if array.shape.len() == 1 { line(&values, &scale) } else { shades(shape, &values, &scale) }
}

/// The range of the finite elements.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    fn of(values: &[f64]) -> Option<Scale> {
        let finite = || values.iter().copied().filter(|value| value.is_finite());
        Some(Scale { low: finite().reduce(f64::min)?, high: finite().reduce(f64::max)? })
    }

    /// The position of a value in the range, from 0 to 1; the middle if all are the same.
    fn position(&self, value: f64) -> f64 {
        // Halves do not overflow.
        let length = self.high / 2.0 - self.low / 2.0;
        if length > 0.0 { (value / 2.0 - self.low / 2.0) / length } else { 0.5 }
    }

    /// The row of the dots of a value.
    fn row(&self, value: f64) -> usize {
        ((1.0 - self.position(value)) * (DOWN - 1) as f64).round() as usize
    }
}

/// The line through the elements, with the largest and the smallest one to its left.
fn line(values: &[f64], scale: &Scale) -> String {
    let mut cells = [[0_u32; WIDTH]; HEIGHT];
    let mut set = |x: usize, rows: RangeInclusive<usize>| {
        rows.for_each(|y| cells[y / 4][x / 2] |= DOTS[x % 2][y % 4]);
    };
    let mut last: Option<RangeInclusive<usize>> = None;
    for x in 0..ACROSS {
        let rows = column(values, x, scale);
        if let Some(rows) = &rows {
            // A line has no gaps: it goes on from the rows of the column to the left.
            let (mut top, mut bottom) = (*rows.start(), *rows.end());
            if let Some(last) = &last {
                top = top.min(last.end() + 1);
                bottom = bottom.max(last.start().saturating_sub(1));
            }
            set(x, top..=bottom);
        }
        last = rows;
    }
    if (2..=ACROSS).contains(&values.len()) {
        // Elements without neighbours are dots.
        for (i, value) in values.iter().enumerate().filter(|(_, value)| value.is_finite()) {
            let row = scale.row(*value);
            set((i * (ACROSS - 1) + (values.len() - 1) / 2) / (values.len() - 1), row..=row);
        }
    }
    let (low, high) = (brief_text(scale.low), brief_text(scale.high));
    let width = low.len().max(high.len());
    let middle = scale.row(scale.low) / 4;
    let drawn = cells.iter().enumerate().map(|(row, cells)| {
        let is_constant = scale.low == scale.high;
        let label = match row {
            _ if is_constant && row == middle => &low,
            0 if !is_constant => &high,
            _ if !is_constant && row == HEIGHT - 1 => &low,
            _ => "",
        };
        let rule = if label.is_empty() { '│' } else { '┤' };
        let braille = |dots: &u32| if *dots == 0 { ' ' } else { char::from_u32(0x2800 + dots).unwrap_or(' ') };
        let text: String = cells.iter().map(braille).collect();
        format!("{label:>width$} {rule}{text}").trim_end().to_string()
    });
    drawn.collect::<Vec<_>>().join("\n")
}

/// The rows that the line has in a column of dots; None in a gap. A column is a range of many elements, or a point between two.
fn column(values: &[f64], x: usize, scale: &Scale) -> Option<RangeInclusive<usize>> {
    let len = values.len();
    if len > ACROSS {
        let own = Scale::of(&values[x * len / ACROSS..(x + 1) * len / ACROSS])?;
        return Some(scale.row(own.high)..=scale.row(own.low));
    }
    let at = x * (len - 1);
    let (before, part) = (at / (ACROSS - 1), (at % (ACROSS - 1)) as f64 / (ACROSS - 1) as f64);
    let value = match part > 0.0 {
        true => values[before] * (1.0 - part) + values[before + 1] * part,
        false => values[before],
    };
    // A vector of one element is one dot.
    let is_drawn = value.is_finite() && (len > 1 || x == 0);
    is_drawn.then(|| scale.row(value)..=scale.row(value))
}

/// The means of the finite elements of blocks, and their number in each dimension; NaN for a block without any.
fn blocks(rows: usize, columns: usize, values: &[f64]) -> ((usize, usize), Vec<f64>) {
    let (down, across) = (rows.min(MAX_ROWS), columns.min(MAX_COLUMNS));
    let mut means = Vec::with_capacity(down * across);
    for row in 0..down {
        for column in 0..across {
            let (mut mean, mut count) = (f64::NAN, 0.0);
            for y in row * rows / down..(row + 1) * rows / down {
                let own = column * columns / across..(column + 1) * columns / across;
                for value in values[y * columns..][own].iter().filter(|value| value.is_finite()) {
                    // A running mean does not overflow.
                    count += 1.0;
                    mean = if count > 1.0 { mean + (value / count - mean / count) } else { *value };
                }
            }
            means.push(mean);
        }
    }
    ((down, across), means)
}

/// A row of cells for each row of a matrix, and the shades of the smallest and the largest cell.
fn shades((rows, columns): (usize, usize), values: &[f64], scale: &Scale) -> String {
    debug_assert_eq!(values.len(), rows * columns, "the matrix has all its cells");
    let repeats = if columns > WIDE_COLUMNS { 1 } else { 2 };
    let shade = |value: &f64| match value.is_finite() {
        true => SHADES[((scale.position(*value) * SHADES.len() as f64) as usize).min(SHADES.len() - 1)],
        false => NOT_FINITE,
    };
    let row = |cells: &[f64]| {
        let cells: String = cells.iter().flat_map(|value| std::iter::repeat_n(shade(value), repeats)).collect();
        format!("│{cells}│")
    };
    let mut lines: Vec<String> = values.chunks(columns).map(row).collect();
    let legend: String = SHADES.iter().collect();
    let gaps = if values.iter().all(|value| value.is_finite()) { "" } else { ", ? is not finite" };
    lines.push(format!("{} │{legend}│ {}{gaps}", brief_text(scale.low), brief_text(scale.high)));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use spmdc_abi::DType;

    fn picture(shape: &[usize], values: &[f64]) -> String {
        let bytes = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        drawn(&HostArray { dtype: DType::F64, shape: shape.to_vec(), bytes })
    }

    fn dots(picture: &str) -> u32 {
        let braille = |c: char| u32::from(c).checked_sub(0x2800).filter(|dots| *dots < 0x100);
        picture.chars().filter_map(braille).map(u32::count_ones).sum()
    }

    #[test]
    fn a_line_goes_from_corner_to_corner() {
        let text = picture(&[2], &[0.0, 31.0]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.len(), lines[0].chars().count()), (HEIGHT, 4 + WIDTH));
        assert!(lines[0].starts_with("31 ┤ ") && lines[7].starts_with(" 0 ┤⣀"), "{text}");
        assert!(lines[1].starts_with("   │ "), "{text}");
        // One dot in each column.
        assert_eq!(dots(&text), ACROSS as u32);
    }

    #[test]
    fn steps_are_connected() {
        let text = picture(&[240], &[vec![0.0; 120], vec![1.0; 120]].concat());
        assert_eq!(dots(&text), (ACROSS + DOWN - 2) as u32, "{text}");
    }

    #[test]
    fn gaps_stay_and_lone_elements_are_dots() {
        let text = picture(&[5], &[1.0, f64::NAN, 2.0, f64::INFINITY, 3.0]);
        assert_eq!(dots(&text), 3, "{text}");
        assert_eq!(dots(&picture(&[1], &[7.0])), 1);
        assert_eq!(picture(&[2], &[f64::NAN; 2]), "no finite elements");
        assert_eq!(picture(&[1, 2], &[f64::NAN; 2]), "no finite elements");
    }

    #[test]
    fn equal_elements_have_one_label() {
        let text = picture(&[3], &[2.5; 3]);
        assert_eq!(text.matches("2.5").count(), 1, "{text}");
        assert_eq!(picture(&[1, 2], &[4.0; 2]), "│▒▒▒▒│\n4 │ ░▒▓█│ 4");
    }

    #[test]
    fn large_matrices_are_reduced() {
        let values: Vec<f64> = (0..100 * 300).map(|i| f64::from(i / 300)).collect();
        let text = picture(&[100, 300], &values);
        assert_eq!(text.lines().count(), MAX_ROWS + 1);
        assert!(text.lines().all(|line| line.chars().count() <= MAX_COLUMNS + 2), "{text}");
        assert!(text.ends_with("\n2 │ ░▒▓█│ 97"), "{text}");
        let text = picture(&[1, 3], &[0.0, f64::NAN, 1.0]);
        assert_eq!(text, "│  ??██│\n0 │ ░▒▓█│ 1, ? is not finite");
    }

    #[test]
    fn extremes_are_drawn() {
        let values = [f64::MIN, f64::MAX, 5e-324, -0.0];
        for shape in [&[4][..], &[2, 2], &[4, 1], &[1, 4]] {
            assert!(picture(shape, &values).contains("1.79769e+308"));
        }
        assert_eq!(
            (picture(&[0], &[]), picture(&[0, 3], &[]), picture(&[], &[1.5])),
            ("[]".into(), "[]".into(), "1.5".into())
        );
    }
}
