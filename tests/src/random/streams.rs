//! Random reads of rows of a program's streams.

use super::Array;
use super::programs::{Variable, Writer};
use spmdc_abi::DType;

impl Writer {
    /// Rows of a stream: one, some from a place on, every so manieth, or those at indices.
    pub(super) fn rows(&mut self) {
        let Some(stream) = self.stream() else { return };
        let Variable { name, array: Array { dtype, shape }, precision } = stream;
        let (size, row) = (shape[0], &shape[1..]);
        let len = 1 + self.draw.below(size);
        let start = self.draw.below(size - len + 1);
        let (index, front) = match self.draw.below(5) {
            0 => (format!("[{}]", start as i64 - if self.draw.chance(50) { size as i64 } else { 0 }), vec![]),
            1 => (format!("[{start}:{}]", start + len), vec![len]),
            2 => {
                let step = 1 + self.draw.below(4);
                (format!("[{start}:{}:{step}]", start + len), vec![len.div_ceil(step)])
            }
            3 => match self.dynamic_range(size, len) {
                Some(range) => (format!("[{range}]"), vec![len]),
                None => return,
            },
            _ => {
                let Some(at) = self.any(|v| v.array.dtype == DType::I32 && v.array.shape.len() < 3) else { return };
                (format!("[abs({} % {size})]", at.name), at.array.shape)
            }
        };
        let array = Array::new(dtype, &[&front, row].concat());
        if array.shape.iter().product::<usize>() <= self.most {
            self.define(format!("{name}{index}"), array, precision);
        }
    }
}
