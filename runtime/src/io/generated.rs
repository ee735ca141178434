//! Generated arguments: every block is computed from the indices of its elements, so the whole array never exists in memory.

use crate::data::array::{BlockSource, for_each_row};
use crate::errors::trap::RunError;
use spmdc_abi::{DType, Kind, Width};

/// An array whose elements are computed from their indices.
pub struct GeneratedSource {
    /// The element type.
    pub dtype: DType,
    /// The size of each dimension.
    pub shape: Vec<usize>,
    /// The rule for the elements.
    pub pattern: GeneratedPattern,
}

/// The rule that computes elements from their indices.
pub enum GeneratedPattern {
    /// The bytes of one element.
    Constant(Vec<u8>),
    /// Each element is its row-major index in the whole array, converted to the type (integers wrap).
    Iota,
}

impl BlockSource for GeneratedSource {
    fn dtype(&self) -> DType {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn read_block(&mut self, start: &[usize], len: &[usize], out: &mut [u8]) -> Result<(), RunError> {
        let size = self.dtype.size();
        debug_assert_eq!(out.len(), len.iter().product::<usize>() * size, "there is room for the block");
        match &self.pattern {
            GeneratedPattern::Constant(element) if element.iter().all(|&byte| byte == 0) => out.fill(0),
            GeneratedPattern::Constant(element) => {
                out.chunks_exact_mut(size).for_each(|place| place.copy_from_slice(element))
            }
            GeneratedPattern::Iota => for_each_row(&self.shape, start, len, |whole, packed, count| {
                count_up(self.dtype, whole, &mut out[packed * size..][..count * size]);
            }),
        }
        Ok(())
    }
}

/// Fills the row with the indices from `first` on.
fn count_up(dtype: DType, first: usize, row: &mut [u8]) {
    macro_rules! each {
        ($convert:expr) => {
            for (place, index) in row.chunks_exact_mut(dtype.size()).zip(first..) {
                place.copy_from_slice(&$convert(index).to_ne_bytes());
            }
        };
    }
    match (dtype.kind(), dtype.width()) {
        (Kind::Bool, _) => each!(|index| u8::from(index != 0)),
        (Kind::Signed | Kind::Unsigned | Kind::Key, Width::W8) => each!(|index| index as u8),
        (Kind::Signed | Kind::Unsigned | Kind::Key, Width::W16) => each!(|index| index as u16),
        (Kind::Signed | Kind::Unsigned | Kind::Key, Width::W32) => each!(|index| index as u32),
        (Kind::Signed | Kind::Unsigned | Kind::Key, Width::W64) => each!(|index| index as u64),
        (Kind::Float, Width::W8) => each!(|index| dtype.narrow(index as f64) as u8),
        (Kind::Float, Width::W16) => each!(|index| dtype.narrow(index as f64) as u16),
        (Kind::Float, Width::W32) => each!(|index| index as f32),
        (Kind::Float, Width::W64) => each!(|index| index as f64),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn iota_counts_through_the_whole_array() {
        let mut source = GeneratedSource { dtype: DType::U8, shape: vec![30, 10], pattern: GeneratedPattern::Iota };
        let mut block = [0; 4];
        source.read_block(&[25, 5], &[2, 2], &mut block).unwrap();
        assert_eq!(block, [255, 0, 9, 10]);
    }

    #[test]
    fn a_constant_is_everywhere() {
        let element = 1.5f32.to_ne_bytes().to_vec();
        let mut source =
            GeneratedSource { dtype: DType::F32, shape: vec![4], pattern: GeneratedPattern::Constant(element) };
        let mut block = [0; 8];
        source.read_block(&[2], &[2], &mut block).unwrap();
        assert_eq!(block[..4], 1.5f32.to_ne_bytes());
        assert_eq!(block[..4], block[4..]);
    }
}
