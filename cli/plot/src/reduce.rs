//! Reduces arrays to the resolution of a picture.

/// The parts of a line between elements that are not finite. An interval of indices, of which there are at most `most`, becomes its smallest
/// and its largest element, in their order.
pub fn line(values: &[f64], most: usize) -> Vec<Vec<(f64, f64)>> {
    let per = values.len().div_ceil(most.max(1)).max(1);
    let mut parts: Vec<Vec<(f64, f64)>> = vec![Vec::new()];
    for (number, interval) in values.chunks(per).enumerate() {
        let finite = || interval.iter().enumerate().filter(|(_, value)| value.is_finite());
        let ends = finite().min_by(|a, b| a.1.total_cmp(b.1)).zip(finite().max_by(|a, b| a.1.total_cmp(b.1)));
        let Some((low, high)) = ends else {
            parts.push(Vec::new());
            continue;
        };
        let mut ends = [low, high];
        ends.sort_by_key(|(index, _)| *index);
        let count = if ends[0].0 == ends[1].0 { 1 } else { 2 };
        let point = |(index, value): (usize, &f64)| ((number * per + index) as f64, *value);
        if let Some(part) = parts.last_mut() {
            part.extend(ends.into_iter().take(count).map(point));
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// The means of the finite elements of blocks, at most `most` along each dimension; NaN for a block without any. Returns the number of rows,
/// the number of columns and the means.
pub fn image(rows: usize, columns: usize, values: &[f64], most: usize) -> (usize, usize, Vec<f64>) {
    debug_assert_eq!(values.len(), rows * columns, "the array has all its elements");
    let blocks = |size: usize| size.min(most);
    let (down, across) = (blocks(rows), blocks(columns));
    let range = |block: usize, blocks: usize, size: usize| block * size / blocks..(block + 1) * size / blocks;
    let mut means = Vec::with_capacity(down * across);
    for block in 0..down {
        for column in 0..across {
            let (mut mean, mut count) = (0.0, 0.0);
            for row in range(block, down, rows) {
                let own = range(column, across, columns);
                let finite = values[row * columns + own.start..row * columns + own.end].iter();
                for value in finite.filter(|value| value.is_finite()) {
                    // A running mean does not overflow.
                    count += 1.0;
                    mean += value / count - mean / count;
                }
            }
            means.push(if count > 0.0 { mean } else { f64::NAN });
        }
    }
    (down, across, means)
}

/// At most `most` of the finite points: of those in one cell of a grid the first one, in the finest grid for which there are so few. The
/// positions are those on the axes, from 0 to 1.
pub fn points(
    points: impl Iterator<Item = (f64, f64)>,
    position: impl Fn((f64, f64)) -> (f64, f64),
    most: usize,
) -> Vec<(f64, f64)> {
    let mut kept: Vec<(f64, f64)> = points.filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
    let mut cells = 512_usize;
    while kept.len() > most && cells > 1 {
        let mut seen = vec![false; (cells + 1) * (cells + 1)];
        kept.retain(|point| {
            let (x, y) = position(*point);
            let cell = (x * cells as f64) as usize * (cells + 1) + (y * cells as f64) as usize;
            !std::mem::replace(&mut seen[cell], true)
        });
        cells = cells * 3 / 4;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_extremes_and_gaps() {
        let nan = f64::NAN;
        assert_eq!(line(&[1.0, nan, 3.0, 2.0], 9), [vec![(0.0, 1.0)], vec![(2.0, 3.0), (3.0, 2.0)]]);
        let long: Vec<f64> = (0..1000).map(|i| if i == 501 { 9.0 } else { 0.5 }).collect();
        let parts = line(&long, 10);
        assert!(parts[0].len() <= 20 && parts[0].contains(&(501.0, 9.0)), "{parts:?}");
        assert!(line(&[nan, f64::INFINITY], 9).is_empty());
    }

    #[test]
    fn blocks_of_images_have_their_means() {
        let (rows, columns, means) = image(4, 4, &(0..16).map(f64::from).collect::<Vec<_>>(), 2);
        assert_eq!((rows, columns, means), (2, 2, vec![2.5, 4.5, 10.5, 12.5]));
        let (rows, columns, means) = image(1, 3, &[1.0, f64::NAN, 3.0], 2);
        assert_eq!((rows, columns), (1, 2));
        assert_eq!(means, [1.0, 3.0]);
        assert_eq!(image(1, 2, &[f64::MAX, f64::MAX], 1).2, [f64::MAX]);
    }

    #[test]
    fn many_points_are_thinned() {
        let all = (0..100_000).map(|i| (f64::from(i % 317) / 316.0, f64::from(i / 317) / 315.0));
        let kept = points(all, |point| point, 5000);
        assert!((2000..=5000).contains(&kept.len()), "{}", kept.len());
        assert_eq!(points([(0.0, 1.0), (f64::NAN, 0.0)].into_iter(), |point| point, 9), [(0.0, 1.0)]);
    }
}
