//! Decides which nests run by strips, and the size of the strips.

use super::loops::{Combine, Elem, Inst, Store};
use super::nest::{Nest, Strips};
use spmdc_abi::DType;

/// Maximum stack bytes of partial results; a larger frame would need its pages probed.
pub const ROOM: u32 = 2048;

/// Maximum bytes that are fast in any order.
const NEAR: u64 = 128 * 1024;

/// Minimum distance, in bytes, of rows that are far apart: closer rows share pages and prefetched lines.
const FAR_APART: u64 = 512;

impl Strips {
    /// The strips of a nest whose results are adjacent along `columns`, the dimension of the bundles; `long_body` if a point has
    /// many instructions.
    pub fn choose(nest: &Nest, columns: usize, long_body: bool) -> Option<Strips> {
        let row = nest.dims.iter().rposition(|dim| dim.reduced)?;
        // A scan whose initial value depends on a loop would need that value beside its partial results.
        let begins_anew = |combine: Combine| combine.operand().is_none_or(|first| nest.levels[first.0 as usize] == 0);
        if nest.dims[columns].reduced || !nest.stores.iter().all(|store| store.combine.is_some_and(begins_anew)) {
            return None;
        }
        let mut loads = nest.order.iter().filter_map(|elem| nest.insts[elem.0 as usize].load());
        let is_far = loads.any(|(access, dtype)| {
            let stride = |dim: usize| Nest::stride(&access.address, dim).unsigned_abs();
            let size = dtype.size() as u64;
            let moves = |dim: &usize| stride(*dim) != 0;
            let elements: u64 = (0..nest.dims.len()).filter(moves).map(|dim| nest.dims[dim].length.max).product();
            stride(columns) == 1 && stride(row) * size >= FAR_APART && elements * size > NEAR
        });
        // Bits of neighbouring columns come in tiles, those of a column do not.
        let draws = |elem: &Elem| {
            let Inst::RandomBits { at, .. } = &nest.insts[elem.0 as usize] else { return false };
            Nest::stride(at, columns) == 1 && Nest::stride(at, row) != 0
        };
        let is_far = is_far || nest.order.iter().any(draws);
        let (long, wide) = (nest.dims[row].length.max >= 16, nest.dims[columns].length.max >= 128);
        let room: u32 = nest.stores.iter().map(|store| value_bytes(store) + position_bytes(store)).sum();
        let columns = ROOM / room.max(1) / 32 * 32;
        (is_far && long && wide && columns > 0).then_some(Strips { columns, rows: if long_body { 1 } else { 4 } })
    }
}

/// Bytes of a partial result. Bools are as wide as the compared values.
pub fn value_bytes(store: &Store) -> u32 {
    if store.dtype == DType::Bool { 8 } else { store.dtype.size().max(4) as u32 }
}

/// Bytes of the position stored with a partial result: 4 for argmax and argmin, otherwise 0.
pub fn position_bytes(store: &Store) -> u32 {
    if store.combine.is_some_and(Combine::is_position) { 4 } else { 0 }
}
