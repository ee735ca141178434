//! The elements that work uses for a row of a matrix, as affine functions of the matrix and the row.

use spmdc_abi::Scalar;

/// A number that may depend on the device: a constant times numbers that differ.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Count {
    pub fixed: i64,
    varying: Vec<Scalar>,
}

impl Count {
    pub fn of(scalar: &Scalar) -> Count {
        match scalar {
            Scalar::Const(fixed) => Count { fixed: *fixed, varying: Vec::new() },
            Scalar::Mul(a, b) => Count::of(a).times(&Count::of(b)),
            Scalar::BlockLen(_)
            | Scalar::BlockStart(_)
            | Scalar::Coordinate(_)
            | Scalar::Table { .. }
            | Scalar::Add(..)
            | Scalar::Min(..)
            | Scalar::Max(..) => Count { fixed: 1, varying: vec![scalar.clone()] },
        }
    }

    pub fn product<'a>(all: impl IntoIterator<Item = &'a Scalar>) -> Count {
        all.into_iter()
            .fold(Count { fixed: 1, varying: Vec::new() }, |product, scalar| product.times(&Count::of(scalar)))
    }

    fn times(&self, other: &Count) -> Count {
        debug_assert!(self.fixed >= 0 && other.fixed >= 0, "a number of matrices or rows");
        let varying = self.varying.iter().chain(&other.varying).cloned().collect();
        Count { fixed: self.fixed * other.fixed, varying }
    }

    pub fn is_one(&self) -> bool {
        self.fixed == 1 && self.varying.is_empty()
    }

    /// The number, if it is the same on all devices.
    pub fn known(&self) -> Option<i64> {
        self.varying.is_empty().then_some(self.fixed)
    }
}

/// Dimensions of the matrices, outermost first: the extent of each, and its stride in an array.
pub(super) type MatrixDims = Vec<(Count, i64)>;

/// The dimensions with neighbours merged, without those of one index: equal for arrays whose matrices are at equal places.
pub(super) fn merged(dims: impl IntoIterator<Item = (Count, i64)>) -> MatrixDims {
    let mut merged: MatrixDims = Vec::new();
    for (count, stride) in dims {
        if count.is_one() {
            continue;
        }
        match merged.last_mut() {
            Some((outer, outer_stride)) if count.known().is_some_and(|len| *outer_stride == stride * len) => {
                *outer = outer.times(&count);
                *outer_stride = stride;
            }
            Some(_) | None => merged.push((count, stride)),
        }
    }
    merged
}

/// The rows of an array: those of all matrices, each of `len` neighbouring elements.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ArrayRows {
    /// By [`merged`].
    pub matrices: MatrixDims,
    /// Elements from one row of a matrix to the next.
    pub stride: i64,
    /// Elements of a row.
    pub len: i64,
}

/// Dimensions within a row: the extent and the stride of each.
pub(super) type InnerDims = [(i64, i64)];

/// The elements from the first one of a row up to the last one that these dimensions reach, from `start` on. None if they reach before it.
pub(super) fn reach(start: i64, inner: &InnerDims) -> Option<i64> {
    debug_assert!(inner.iter().all(|(extent, _)| *extent >= 0), "an extent is negative");
    let mut last = start;
    for &(extent, stride) in inner {
        if stride < 0 {
            return None;
        }
        last = last.checked_add((extent - 1).max(0).checked_mul(stride)?)?;
    }
    (start >= 0).then_some(last + 1)
}

/// Whether these dimensions reach each of the first elements of a row once, and no others.
pub(super) fn is_dense(start: i64, inner: &InnerDims) -> bool {
    let points: Option<i64> = inner.iter().try_fold(1i64, |points, (extent, _)| points.checked_mul(*extent));
    let mut dims: Vec<(i64, i64)> = inner.iter().copied().filter(|(extent, _)| *extent != 1).collect();
    dims.sort_by_key(|(_, stride)| *stride);
    let mut next = 1;
    let is_nested = dims.iter().all(|&(extent, stride)| {
        let fits = stride == next;
        next *= extent;
        fits
    });
    start == 0 && is_nested && points.is_some_and(|points| points > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(len: i64) -> Count {
        Count::of(&Scalar::Const(len))
    }

    #[test]
    fn equal_places_have_equal_dimensions() {
        assert_eq!(merged([(fixed(2), 24), (fixed(1), 7), (fixed(3), 8)]), [(fixed(6), 8)]);
        assert_eq!(merged([(fixed(2), 32), (fixed(3), 8)]).len(), 2);
        assert_eq!(merged([(fixed(1), 32)]), []);
        // The grouped heads of a key have one place.
        assert_eq!(merged([(fixed(4), 64), (fixed(2), 0)]), [(fixed(4), 64), (fixed(2), 0)]);
    }

    #[test]
    fn rows_have_neighbouring_elements() {
        assert!(is_dense(0, &[(4, 8), (8, 1)]) && is_dense(0, &[]) && is_dense(0, &[(1, 100)]));
        assert!(!is_dense(0, &[(4, 16), (8, 1)]) && !is_dense(1, &[(8, 1)]) && !is_dense(0, &[(8, 2)]));
        assert_eq!((reach(2, &[(4, 8), (8, 1)]), reach(0, &[(4, -1)]), reach(-1, &[])), (Some(34), None, None));
    }
}
