//! Tiles: bundles of 4 by 4 points, for loops that read along one dimension and write along another.
//!
//! Lane `4 * r + c` of a tile is row `r`, column `c`. An access along the columns moves four rows of four neighbours; one along the rows
//! moves four columns, which are transposed in registers. The tiles form blocks as wide as a cache line on both sides, so that every line
//! is read or written completely at once. The lines of larger blocks would evict each other from the first-level cache if the rows of an
//! array are a power of two apart.

use super::kernel::Emitter;
use super::vector::{Bundle, Vector};
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{InstBuilder, Type, Value};
use spmdc_kernel::loops::Access;
use spmdc_kernel::nest::{Nest, SIDE};

/// Bytes of a cache line.
const LINE: u32 = 64;

impl Emitter<'_, '_> {
    /// The two innermost loops.
    pub fn tiles(&mut self, row: usize, column: usize) {
        let (row_from, row_to, _) = self.bounds(row);
        let (column_from, column_to, _) = self.bounds(column);
        let size = self.nest.stores.iter().map(|store| store.dtype.size() as u32).max().unwrap_or(1);
        let side = LINE / size;
        self.count(row_from, row_to, side, None, false, |e, first_row| {
            let last_row = e.at_most(first_row, side, row_to);
            e.count(column_from, column_to, side, None, false, |e, first_column| {
                let last_column = e.at_most(first_column, side, column_to);
                e.block(row, column, [first_row, last_row], [first_column, last_column]);
            });
        });
    }

    /// The end of the block that begins at `from`.
    fn at_most(&mut self, from: Value, side: u32, to: Value) -> Value {
        let end = self.builder.ins().iadd_imm_s(from, i64::from(side));
        self.builder.ins().smin(end, to)
    }

    /// Whole tiles, then the remaining columns to their right, then the remaining rows below.
    fn block(&mut self, row: usize, column: usize, rows: [Value; 2], columns: [Value; 2]) {
        let tile_rows = self.whole(rows[0], rows[1], SIDE as u32);
        let tile_columns = self.whole(columns[0], columns[1], SIDE as u32);
        self.lanes = (SIDE * SIDE) as u32;
        self.points(row, column, [rows[0], tile_rows], [columns[0], tile_columns], SIDE as u32);
        self.lanes = 1;
        self.points(row, column, [rows[0], tile_rows], [tile_columns, columns[1]], 1);
        self.points(row, column, [tile_rows, rows[1]], columns, 1);
    }

    fn points(&mut self, row: usize, column: usize, rows: [Value; 2], columns: [Value; 2], step: u32) {
        let (outer, inner) = if self.along_rows(row, column) {
            ((column, columns), (row, rows))
        } else {
            ((row, rows), (column, columns))
        };
        let ((outer, outer_range), (inner, inner_range)) = (outer, inner);
        self.count(outer_range[0], outer_range[1], step, None, false, |e, index| {
            e.indices[outer] = index;
            e.count(inner_range[0], inner_range[1], step, None, false, |e, index| {
                e.indices[inner] = index;
                e.instructions(row + 1);
                e.level(column + 1);
            });
        });
    }

    /// The direction in which a block is walked: accesses in the other direction use a part of many lines at a time, so they should
    /// be the fewer ones. In a tie they should be the writes, which no instruction waits for.
    fn along_rows(&self, row: usize, column: usize) -> bool {
        let loads = self.nest.order.iter().filter_map(|elem| self.nest.insts[elem.0 as usize].load());
        let accesses: Vec<&Access> =
            loads.map(|(access, _)| access).chain(self.nest.stores.iter().map(|store| &store.access)).collect();
        let along = |dim| accesses.iter().filter(|access| Nest::stride(&access.address, dim) == 1).count();
        along(row) >= along(column)
    }
}

impl Vector<'_, '_> {
    /// Sixteen lanes from four rows.
    pub fn join_rows(&mut self, rows: [Bundle; 4]) -> Bundle {
        let lane = rows[0].lane;
        let single = rows.map(|row| row.single());
        let parts = match lane.bits() {
            8 => {
                let (low, high) =
                    (self.unpack(I32, single[0], single[1], false), self.unpack(I32, single[2], single[3], false));
                vec![self.unpack(I64, low, high, false)]
            }
            16 => vec![self.unpack(I64, single[0], single[1], false), self.unpack(I64, single[2], single[3], false)],
            _ => rows.iter().flat_map(|row| row.parts().to_vec()).collect(),
        };
        self.as_lanes(lane, &parts)
    }

    /// The inverse of [`Vector::join_rows`].
    pub fn split_rows(&mut self, tile: Bundle) -> [Bundle; 4] {
        let (lane, parts) = (tile.lane, tile.parts().to_vec());
        std::array::from_fn(|row| match lane.bits() {
            8 => {
                let part = self.word_down(parts[0], row);
                self.as_lanes(lane, &[part])
            }
            16 => {
                let part = self.word_down(parts[row / 2], row % 2 * 2);
                self.as_lanes(lane, &[part])
            }
            32 => Bundle::new(lane, &parts[row..=row]),
            _ => Bundle::new(lane, &parts[2 * row..2 * row + 2]),
        })
    }

    /// Sixteen lanes from four columns.
    pub fn transpose(&mut self, columns: [Bundle; 4]) -> Bundle {
        let lane = columns[0].lane;
        let [a, b, c, d] = columns.map(|column| column.single());
        let parts = match lane.bits() {
            8 | 16 => {
                // Pairs of neighbours, then rows.
                let (ab, cd) = (self.unpack(lane, a, b, false), self.unpack(lane, c, d, false));
                let pair = Type::int(lane.bits() as u16 * 2).expect("pairs of narrow lanes");
                let low = self.unpack(pair, ab, cd, false);
                if lane.bits() == 8 { vec![low] } else { vec![low, self.unpack(pair, ab, cd, true)] }
            }
            32 => {
                let (ab, cd) = (self.unpack(I32, a, b, false), self.unpack(I32, c, d, false));
                let (ab_high, cd_high) = (self.unpack(I32, a, b, true), self.unpack(I32, c, d, true));
                let pairs = [(ab, cd, false), (ab, cd, true), (ab_high, cd_high, false), (ab_high, cd_high, true)];
                pairs.map(|(x, y, high)| self.unpack(I64, x, y, high)).to_vec()
            }
            _ => {
                let mut parts = Vec::with_capacity(8);
                for row in 0..4 {
                    for pair in columns.chunks(2) {
                        let (x, y) = (pair[0].parts()[row / 2], pair[1].parts()[row / 2]);
                        parts.push(self.unpack(I64, x, y, row % 2 == 1));
                    }
                }
                parts
            }
        };
        self.as_lanes(lane, &parts)
    }
}
