//! Random bits in a nest: which of them come from the runtime, a tile at a time, and the instructions of all others.
//!
//! ```text
//! for tile in (0..n).step_by(512) {
//!     bits = the random bits of the counters of this tile        a call of the runtime, which has the widest vectors
//!     for i in tile..tile + 512 { y[i] = f(bits[i - tile]) }
//! }
//! ```
//!
//! A tile needs consecutive counters along the loop that is cut into bundles, under one key. It is small enough for the first-level
//! cache, so the bits of an array are never in memory. Elements in any other arrangement are computed by instructions. Bits are
//! integers: they are the same in both ways.

use super::loops::{Affine, Elem, Inst};
use super::nest::{Cut, Nest, Tiles};
use crate::scalar::BinaryOp;
use spmdc_abi::DType;
use spmdc_abi::threefry::{GROUPS, PARITY, ROTATIONS};
use spmdc_threefry::GROUP;
pub use spmdc_threefry::element;

/// Number of dependent instructions of an element that no tile has: two for each of 20 rounds and more for the keys between them.
pub(super) const CHAIN: usize = 70;

/// Maximum and minimum number of elements of a tile. Below the minimum, calls cost more than they save.
const MOST: u32 = 512;
const LEAST: u32 = 64;

/// Maximum bytes of the tiles of a kernel: a part of the first-level cache.
const ROOM: u32 = 8192;

impl Nest {
    /// Whether an instruction computes random bits for which a cut along a dimension, into bundles of neighbours, can use tiles.
    pub(super) fn draws_along(&self, elem: Elem, dim: usize) -> bool {
        let Inst::RandomBits { key, at, .. } = &self.insts[elem.0 as usize] else { return false };
        let is_known_before = |elem: Elem| self.levels[elem.0 as usize] <= dim;
        Nest::stride(at, dim) == 1
            && self.levels[elem.0 as usize] == dim + 1
            && self.dims[dim].length.max >= GROUP as u64
            && is_known_before(*key)
            && at.dynamic.iter().all(|&(index, _)| is_known_before(index))
    }

    /// Whether random bits are computed by instructions inside all loops, if a dimension is cut.
    pub(super) fn draws_inside(&self, dim: usize) -> bool {
        self.order.iter().any(|&elem| {
            matches!(self.insts[elem.0 as usize], Inst::RandomBits { .. })
                && self.levels[elem.0 as usize] == self.dims.len()
                && !self.draws_along(elem, dim)
        })
    }

    /// Chooses tiles for the cut, and replaces all other random bits by their instructions.
    pub(super) fn place_draws(&mut self) {
        let all = self.order.iter().copied();
        let all = all.filter(|elem| matches!(self.insts[elem.0 as usize], Inst::RandomBits { .. }));
        let all: Vec<Elem> = all.collect();
        if all.is_empty() {
            return;
        }
        self.tiles = self.choose_tiles(&all);
        for elem in all {
            if !self.tiles.as_ref().is_some_and(|tiles| tiles.draws.contains(&elem)) {
                self.expand(elem);
            }
        }
        self.guards.resize(self.insts.len(), None);
        self.sort();
        self.place();
    }

    fn choose_tiles(&self, all: &[Elem]) -> Option<Tiles> {
        let Some(Cut { dim, rows: None, strips, .. }) = self.cut else { return None };
        let mut bytes = 0;
        let mut draws = Vec::new();
        for &elem in all.iter().filter(|elem| self.draws_along(**elem, dim)) {
            let more = bytes + self.dtype(elem).size() as u32;
            if more * LEAST <= ROOM {
                bytes = more;
                draws.push(elem);
            }
        }
        if draws.is_empty() {
            return None;
        }
        // A power of two is a multiple of every number of lanes.
        let points = 1 << (ROOM / bytes).min(MOST).ilog2();
        match strips {
            // The columns of a strip are a tile, one row at a time.
            Some(strips) if strips.rows > 1 || strips.columns * bytes > ROOM => None,
            Some(strips) => Some(Tiles { draws, points: strips.columns }),
            None => Some(Tiles { draws, points }),
        }
    }

    /// Replaces an instruction for random bits by instructions that compute them.
    fn expand(&mut self, elem: Elem) {
        let Inst::RandomBits { dtype, key, at } = self.insts[elem.0 as usize].clone() else { return };
        let is_narrow = self.bounds(&at).is_some_and(|(least, most)| least >= 0 && most <= i64::from(u32::MAX));
        let mut constants: Vec<(Inst, Elem)> = Vec::new();
        let insts = &mut self.insts;
        let mut add = |inst: Inst| {
            if let Some((_, known)) = constants.iter().find(|(other, _)| *other == inst) {
                return *known;
            }
            insts.push(inst.clone());
            let elem = Elem(insts.len() as u32 - 1);
            if matches!(inst, Inst::Const { .. }) {
                constants.push((inst, elem));
            }
            elem
        };
        let counter = counter(&mut add, at, is_narrow);
        let words = cipher(&mut add, key, counter);
        let bits = element_of(&mut add, dtype, words);
        // The last instruction takes the place of the one that it replaces, of which others know the number.
        let last = self.insts.pop().expect("the instructions have been added");
        debug_assert_eq!(bits.0 as usize, self.insts.len(), "the element is the last instruction");
        self.insts[elem.0 as usize] = last;
        debug_assert_eq!(self.dtype(elem), dtype, "the type stays");
    }
}

/// The words of a counter.
fn counter(add: &mut dyn FnMut(Inst) -> Elem, at: Affine, is_narrow: bool) -> [Elem; 2] {
    let low = add(Inst::Index { affine: at.clone(), dtype: DType::U32 });
    if is_narrow {
        return [add(Inst::Const { dtype: DType::U32, bits: 0 }), low];
    }
    let wide = add(Inst::Index { affine: at, dtype: DType::U64 });
    let half = add(Inst::Const { dtype: DType::U64, bits: 32 });
    let upper = add(binary(BinaryOp::Shr, DType::U64, wide, half));
    [add(Inst::Cast { from: DType::U64, to: DType::U32, arg: upper }), low]
}

fn binary(op: BinaryOp, dtype: DType, lhs: Elem, rhs: Elem) -> Inst {
    Inst::Binary { op, dtype, lhs, rhs, site: None }
}

/// [`threefry2x32`](spmdc_abi::threefry::threefry2x32) as instructions: the two words, for a key and the two words of a counter.
pub fn cipher(add: &mut dyn FnMut(Inst) -> Elem, key: Elem, counter: [Elem; 2]) -> [Elem; 2] {
    let constant =
        |add: &mut dyn FnMut(Inst) -> Elem, dtype: DType, bits: u32| add(Inst::Const { dtype, bits: u64::from(bits) });
    let both = add(Inst::Cast { from: DType::Key, to: DType::U64, arg: key });
    let half = constant(add, DType::U64, 32);
    let upper = add(binary(BinaryOp::Shr, DType::U64, both, half));
    let first = add(Inst::Cast { from: DType::U64, to: DType::U32, arg: upper });
    let second = add(Inst::Cast { from: DType::U64, to: DType::U32, arg: both });
    let word = |add: &mut dyn FnMut(Inst) -> Elem, op, x, y| add(binary(op, DType::U32, x, y));
    let mixed = word(add, BinaryOp::Xor, first, second);
    let mut x = [word(add, BinaryOp::Add, counter[0], first), word(add, BinaryOp::Add, counter[1], second)];
    let parity = constant(add, DType::U32, PARITY);
    let schedule = [first, second, word(add, BinaryOp::Xor, mixed, parity)];
    for group in 0..GROUPS {
        for rotation in ROTATIONS[group % 2] {
            let (by, rest) = (constant(add, DType::U32, rotation), constant(add, DType::U32, 32 - rotation));
            x[0] = word(add, BinaryOp::Add, x[0], x[1]);
            let (up, down) = (word(add, BinaryOp::Shl, x[1], by), word(add, BinaryOp::Shr, x[1], rest));
            let rotated = word(add, BinaryOp::Or, up, down);
            x[1] = word(add, BinaryOp::Xor, rotated, x[0]);
        }
        let number = constant(add, DType::U32, group as u32 + 1);
        x[0] = word(add, BinaryOp::Add, x[0], schedule[(group + 1) % 3]);
        let added = word(add, BinaryOp::Add, schedule[(group + 2) % 3], number);
        x[1] = word(add, BinaryOp::Add, x[1], added);
    }
    x
}

/// The instructions of [`element`].
pub fn element_of(add: &mut dyn FnMut(Inst) -> Elem, dtype: DType, [high, low]: [Elem; 2]) -> Elem {
    if dtype.size() < 8 {
        let mixed = add(binary(BinaryOp::Xor, DType::U32, high, low));
        return if dtype == DType::U32 { mixed } else { add(Inst::Cast { from: DType::U32, to: dtype, arg: mixed }) };
    }
    let [high, low] = [high, low].map(|word| add(Inst::Cast { from: DType::U32, to: DType::U64, arg: word }));
    let half = add(Inst::Const { dtype: DType::U64, bits: 32 });
    let upper = add(binary(BinaryOp::Shl, DType::U64, high, half));
    let both = add(binary(BinaryOp::Or, DType::U64, upper, low));
    if dtype == DType::U64 { both } else { add(Inst::Cast { from: DType::U64, to: dtype, arg: both }) }
}
