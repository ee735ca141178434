//! Windows: results whose elements are elements of an operand at other indices. A slice, a roll, a flip and a pad are windows.
//!
//! Along one dimension a [`DimMap`] maps the indices of the result to indices of the operand. If operand and result are split, a
//! device has some elements of its result block in its own block of the operand, and lacks the rest: the missing elements are its
//! *halo*.
//!
//! ```text
//! roll(x, 1), x: f32[8@Y], Y = 4        result block 2:4 is x[1], x[2]; x[2] is held, x[1] is lacking
//! ```
//!
//! All of this follows from the two layouts, so the elements that move are known at compile time.

use crate::blocks::table;
use crate::mesh::Mesh;
use crate::sharding::{DimSharding, Sharding};
use crate::types::MAX_ELEMENTS;
use crate::types::{ArrayType, Type};
use spmdc_abi::{FetchDim, FetchRun, Scalar};
use std::ops::Range;

/// One dimension of a window: `before` places without an element, then `len` elements, then `after` places without one. Element `i`
/// is the operand's element at `start + i * step`, modulo its `size`. `step` is not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DimMap {
    /// The size of the operand.
    pub size: usize,
    /// The number of places without an element before the first element.
    pub before: usize,
    /// The index of the first element in the operand; below `size` if there are elements.
    pub start: usize,
    /// The distance between neighbouring elements in the operand; negative if they are in reverse.
    pub step: i64,
    /// The number of elements.
    pub len: usize,
    /// The number of places without an element after the last element.
    pub after: usize,
}

/// Elements at a distance of `step` that do not wrap around: their numbers, and the index of number 0 in the operand.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The numbers of the elements, counted from the first one of the window.
    pub numbers: Range<usize>,
    /// The index of number 0 in the operand; it may be outside of the operand.
    pub origin: i64,
}

impl DimMap {
    /// The window that maps every index of a dimension of `size` to itself.
    pub fn identity(size: usize) -> DimMap {
        DimMap { size, before: 0, start: 0, step: 1, len: size, after: 0 }
    }

    /// Whether it is the identity.
    pub fn is_identity(&self) -> bool {
        *self == DimMap::identity(self.size)
    }

    /// Whether this is a valid window: its elements wrap around at most once, forwards or backwards, and all numbers are within the
    /// bounds of sizes.
    pub fn is_sound(&self) -> bool {
        let sizes = [self.size, self.before, self.len, self.after];
        if self.step == 0 || sizes.into_iter().any(|size| size > MAX_ELEMENTS) {
            return false;
        }
        let Some(steps) = self.len.checked_sub(1) else { return true };
        let (size, way) = (self.size as i64, self.step.checked_mul(steps as i64));
        let last = way.and_then(|way| way.checked_add(self.start as i64));
        self.start < self.size && last.is_some_and(|last| (-size..2 * size).contains(&last))
    }

    /// The size of the result.
    pub fn result(&self) -> usize {
        self.before + self.len + self.after
    }

    /// The places of the result that have an element.
    pub fn body(&self) -> Range<usize> {
        self.before..self.before + self.len
    }

    /// The index in the operand of the element at an index of the result; None for a place without an element.
    pub fn place(&self, at: usize) -> Option<usize> {
        let number = at.checked_sub(self.before).filter(|&number| number < self.len)?;
        Some((self.start as i64 + number as i64 * self.step).rem_euclid(self.size.max(1) as i64) as usize)
    }

    /// The elements in as few runs as possible.
    pub fn runs(&self) -> Vec<Run> {
        let mut runs = Vec::new();
        let mut number = 0;
        while number < self.len {
            let place = (self.start as i64 + number as i64 * self.step).rem_euclid(self.size.max(1) as i64);
            let room = if self.step > 0 { self.size as i64 - 1 - place } else { place };
            let room = room as usize / self.step.unsigned_abs().max(1) as usize + 1;
            let end = (number + room).min(self.len);
            runs.push(Run { numbers: number..end, origin: place - number as i64 * self.step });
            number = end;
        }
        runs
    }

    /// The composition of this map with `inner`, which comes first; None if its elements would not form one run.
    fn after(&self, inner: &DimMap) -> Option<DimMap> {
        if self.is_identity() {
            return Some(*inner);
        }
        // `inner` only rotates its elements.
        if *inner == (DimMap { start: inner.start, ..DimMap::identity(inner.size) }) {
            let start = if self.len == 0 { self.start } else { inner.place(self.start)? };
            return Some(DimMap { start, ..*self }).filter(DimMap::is_sound);
        }
        if self.runs().len() > 1 || inner.runs().len() > 1 {
            return None;
        }
        // The elements whose operand is an element of `inner`, not padding.
        let numbers = self.numbers_in(&self.runs().into_iter().next()?, &inner.body());
        if numbers.is_empty() {
            return None;
        }
        let first = self.place(self.before + numbers.start).and_then(|place| inner.place(place))?;
        Some(DimMap {
            size: inner.size,
            before: self.before + numbers.start,
            start: first,
            step: if numbers.len() == 1 { 1 } else { self.step * inner.step },
            len: numbers.len(),
            after: self.after + self.len - numbers.end,
        })
    }

    /// The numbers within a run whose indices in the operand are in a range.
    fn numbers_in(&self, run: &Run, places: &Range<usize>) -> Range<usize> {
        let (low, high) = (places.start as i64 - run.origin, places.end as i64 - run.origin);
        let (first, end) = match self.step {
            step if step > 0 => (div_ceil(low, step), div_ceil(high, step)),
            step => ((-high).div_euclid(-step) + 1, (-low).div_euclid(-step) + 1),
        };
        let clamp = |number: i64| number.clamp(run.numbers.start as i64, run.numbers.end as i64) as usize;
        let (first, end) = (clamp(first), clamp(end));
        if places.is_empty() || first >= end { 0..0 } else { first..end }
    }

    /// The runs to fetch from each block of the operand for these places of the result; the first place is stored at `to`.
    pub(super) fn fetched(&self, places: &Range<usize>, blocks: &[Range<usize>], to: usize) -> Vec<FetchRun> {
        let mut found = Vec::new();
        for run in self.runs() {
            let numbers =
                overlap(&(run.numbers.start + self.before..run.numbers.end + self.before), &(places.start..places.end));
            if numbers.is_empty() {
                continue;
            }
            let part = Run { numbers: numbers.start - self.before..numbers.end - self.before, origin: run.origin };
            let place = |number: usize| (part.origin + number as i64 * self.step) as usize;
            let (first, last) = (place(part.numbers.start), place(part.numbers.end - 1));
            let (low, high) = (first.min(last), first.max(last));
            let owners = blocks.partition_point(|block| block.end <= low)..blocks.len();
            let mut parts: Vec<FetchRun> = Vec::new();
            for owner in owners.take_while(|&owner| blocks[owner].start <= high) {
                let numbers = self.numbers_in(&part, &blocks[owner]);
                if !numbers.is_empty() {
                    parts.push(FetchRun {
                        owner: owner as u32,
                        from: place(numbers.start) - blocks[owner].start,
                        step: self.step,
                        to: to + numbers.start + self.before - places.start,
                        len: numbers.len(),
                    });
                }
            }
            found.extend(parts);
        }
        found
    }
}

fn div_ceil(a: i64, b: i64) -> i64 {
    -(-a).div_euclid(b)
}

pub(super) fn overlap(a: &Range<usize>, b: &Range<usize>) -> Range<usize> {
    let start = a.start.max(b.start);
    start..a.end.min(b.end).max(start)
}

/// A window: a map for each dimension, and the bits of the padding.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowMap {
    /// One for each dimension.
    pub dims: Vec<DimMap>,
    /// The bits of the padding.
    pub fill: u64,
}

impl WindowMap {
    /// The shape of the result.
    pub fn result_shape(&self) -> Vec<usize> {
        self.dims.iter().map(DimMap::result).collect()
    }

    /// The composition of this window with `inner`, as one window on the operand of `inner`.
    pub fn after(&self, inner: &WindowMap) -> Option<WindowMap> {
        let fills = |map: &WindowMap| map.dims.iter().any(|dim| dim.before + dim.after > 0);
        if fills(self) && fills(inner) && self.fill != inner.fill {
            return None;
        }
        let fill = if fills(self) { self.fill } else { inner.fill };
        let dims = self.dims.iter().zip(&inner.dims).map(|(outer, inner)| outer.after(inner));
        Some(WindowMap { dims: dims.collect::<Option<_>>()?, fill })
    }

    /// Whether the op can run on blocks in place: dimensions that it cuts or moves are whole on both sides.
    pub fn is_local(&self, from: &Sharding, to: &Sharding) -> bool {
        let dims = self.dims.iter().zip(from.dims.iter().zip(&to.dims));
        dims.into_iter().all(
            |(map, (from, to))| {
                if map.is_identity() { from == to } else { from.axes.is_empty() && to.axes.is_empty() }
            },
        )
    }
}

/// One dimension of a device's block of the result. Ranges are indices into the whole result.
#[derive(Clone, Debug, PartialEq)]
pub struct Reach {
    /// The device's block of the result.
    pub block: Range<usize>,
    /// The part of the block that has elements.
    pub body: Range<usize>,
    /// The part of `body` whose elements are in the device's own block of the operand; a single run.
    pub held: Range<usize>,
    /// The index of the first of these elements in that block.
    pub from: usize,
}

impl Reach {
    fn new(map: &DimMap, own: &Range<usize>, block: Range<usize>) -> Reach {
        let body = overlap(&block, &map.body());
        let mut reach = Reach { held: body.end..body.end, from: 0, block, body };
        for run in map.runs() {
            let numbers = map.numbers_in(&run, own);
            let held = overlap(&(numbers.start + map.before..numbers.end + map.before), &reach.body);
            if held.len() > reach.held.len() {
                let place = run.origin + (held.start - map.before) as i64 * map.step;
                reach.from = place as usize - own.start;
                reach.held = held;
            }
        }
        reach
    }

    /// The number of elements that the device lacks.
    pub fn lacking(&self) -> usize {
        self.body.len() - self.held.len()
    }

    /// The missing elements before and after the held ones.
    pub fn lacks(&self) -> [Range<usize>; 2] {
        [self.body.start..self.held.start, self.held.end..self.body.end]
    }
}

/// One dimension of a window on all devices.
#[derive(Clone, Debug, PartialEq)]
pub struct DimReach {
    /// The window along this dimension.
    pub map: DimMap,
    /// The axes, major to minor, along which devices hold different parts of result or operand.
    pub axes: Vec<u8>,
    /// The elements of each position along these axes.
    pub positions: Vec<Reach>,
    /// The axes that split the operand.
    pub owners: Vec<u8>,
    /// The blocks of the operand, by position along `owners`.
    pub blocks: Vec<Range<usize>>,
    /// The axes that split the result, and its blocks.
    to: Vec<u8>,
    to_blocks: Vec<Range<usize>>,
}

impl DimReach {
    /// The window `map` from an operand's dimension that is split as `from` to a result's that is split as `to`.
    pub fn new(map: DimMap, from: &DimSharding, to: &DimSharding, mesh: &Mesh) -> DimReach {
        let blocks = from.blocks(map.size, mesh);
        let to_blocks = to.blocks(map.result(), mesh);
        let mut axes = to.axes.clone();
        axes.extend(from.axes.iter().filter(|axis| !to.axes.contains(axis)));
        let positions = (0..mesh.size_of(&axes)).map(|position| {
            let at = mesh.positions(&axes, position);
            let own = &blocks[mesh.position(&from.axes, &at)];
            Reach::new(&map, own, to_blocks[mesh.position(&to.axes, &at)].clone())
        });
        let mut reach = DimReach {
            positions: positions.collect(),
            map,
            axes,
            owners: from.axes.clone(),
            blocks,
            to: to.axes.clone(),
            to_blocks,
        };
        reach.settle();
        reach
    }

    /// A device that holds no elements lacks all of them, on the side on which the others lack elements.
    fn settle(&mut self) {
        let before = |reach: &Reach| !reach.held.is_empty() && reach.body.start < reach.held.start;
        let behind = |reach: &Reach| !reach.held.is_empty() && reach.held.end < reach.body.end;
        if self.positions.iter().any(behind) && !self.positions.iter().any(before) {
            for reach in self.positions.iter_mut().filter(|reach| reach.held.is_empty()) {
                reach.held = reach.body.start..reach.body.start;
            }
        }
    }

    /// Whether every device has the whole operand along this dimension.
    pub fn is_whole(&self) -> bool {
        self.blocks.len() == 1
    }

    /// Maximum number of elements that any device lacks.
    pub fn capacity(&self) -> usize {
        if self.is_whole() {
            return 0;
        }
        self.positions.iter().map(Reach::lacking).max().unwrap_or(0)
    }

    /// The average number of elements that a device lacks.
    pub fn average(&self) -> f64 {
        if self.is_whole() {
            return 0.0;
        }
        self.positions.iter().map(Reach::lacking).sum::<usize>() as f64 / self.positions.len() as f64
    }

    /// A number for each device.
    pub fn scalar(&self, number: impl Fn(&Reach) -> i64) -> Scalar {
        table(&self.axes, self.positions.iter().map(number).collect())
    }

    /// Whether some device lacks elements before its own.
    pub fn lacks_before(&self) -> bool {
        self.positions.iter().any(|reach| reach.body.start < reach.held.start)
    }

    /// Whether some device lacks elements after its own.
    pub fn lacks_behind(&self) -> bool {
        self.positions.iter().any(|reach| reach.held.end < reach.body.end)
    }

    fn fetch_dim(&self, to_len: usize, mesh: &Mesh, part: FetchedElements) -> FetchDim {
        // A whole dimension may be held in two runs.
        let is_held = part == FetchedElements::Held && self.owners == self.to && !self.is_whole();
        let (axes, runs) = match part {
            FetchedElements::Lacking => {
                let lacking = |reach: &Reach| {
                    let [before, behind] = reach.lacks();
                    let mut runs = self.map.fetched(&before, &self.blocks, 0);
                    runs.extend(self.map.fetched(&behind, &self.blocks, before.len()));
                    runs
                };
                (self.axes.clone(), self.positions.iter().map(lacking).collect())
            }
            FetchedElements::Held | FetchedElements::All => {
                // If only held elements are copied, operand and result have the same positions.
                let runs = self.to_blocks.iter().enumerate().map(|(position, block)| {
                    let body = overlap(block, &self.map.body());
                    let places = if is_held { self.positions[position].held.clone() } else { body };
                    self.map.fetched(&places, &self.blocks, places.start - block.start)
                });
                (self.to.clone(), runs.collect())
            }
        };
        let from_len = self.blocks.iter().map(Range::len).max().unwrap_or(0);
        debug_assert_eq!(self.blocks.len(), mesh.size_of(&self.owners));
        FetchDim { from_len, to_len, owners: self.owners.clone(), axes, runs }
    }
}

/// Which elements of a dimension are fetched.
#[derive(Clone, Copy, PartialEq)]
enum FetchedElements {
    Held,
    Lacking,
    All,
}

/// A window on all devices.
#[derive(Clone, Debug, PartialEq)]
pub struct Reaches {
    /// One for each dimension.
    pub dims: Vec<DimReach>,
    to: Sharding,
}

impl Reaches {
    /// None if a halo has no layout: an axis splits one dimension of the operand and another dimension of the result.
    pub fn new(dims: &[DimMap], from: &Sharding, to: &Sharding, mesh: &Mesh) -> Option<Reaches> {
        let pairs = dims.iter().zip(from.dims.iter().zip(&to.dims));
        let reaches: Vec<DimReach> = pairs.map(|(&map, (from, to))| DimReach::new(map, from, to, mesh)).collect();
        let fits = reaches.iter().enumerate().filter(|(_, reach)| reach.capacity() > 0).all(|(dim, reach)| {
            let others = to.dims.iter().enumerate().filter(|(other, _)| *other != dim);
            let mut taken = others.flat_map(|(_, other)| &other.axes);
            !taken.any(|axis| reach.axes.contains(axis))
        });
        fits.then(|| Reaches { dims: reaches, to: to.clone() })
    }

    /// The dimensions along which some device lacks elements.
    pub fn halos(&self) -> Vec<usize> {
        (0..self.dims.len()).filter(|&dim| self.dims[dim].capacity() > 0).collect()
    }

    /// The type of the halo along a dimension: there each device has as many elements as the maximum that any device lacks. Of
    /// earlier dimensions the halo has only the part that devices hold.
    pub fn halo_type(&self, dim: usize, result: &Type, mesh: &Mesh) -> Type {
        let reach = &self.dims[dim];
        let mut shape: Vec<usize> = self.dims.iter().map(|reach| reach.map.result()).collect();
        shape[dim] = reach.capacity() * mesh.size_of(&reach.axes);
        let mut sharding = self.to.clone();
        sharding.dims[dim] = DimSharding::closed(reach.axes.clone());
        Type { array: ArrayType::new(result.dtype(), &shape), sharding, varying: result.varying }
    }

    /// The fetches of the halo of a dimension.
    pub fn fetch(&self, halo: usize, mesh: &Mesh) -> Vec<FetchDim> {
        let dims = self.dims.iter().zip(&self.to.dims).enumerate();
        let dims = dims.map(|(dim, (reach, to))| {
            let stored = to.block(reach.map.result(), mesh);
            match dim.cmp(&halo) {
                std::cmp::Ordering::Less => reach.fetch_dim(stored, mesh, FetchedElements::Held),
                std::cmp::Ordering::Equal => reach.fetch_dim(reach.capacity(), mesh, FetchedElements::Lacking),
                std::cmp::Ordering::Greater => reach.fetch_dim(stored, mesh, FetchedElements::All),
            }
        });
        dims.collect()
    }

    /// The index in the operand of the element at an index of the halo of a dimension; None for padding.
    pub fn halo_place(&self, halo: usize, index: &[usize]) -> Option<Vec<usize>> {
        let places = index.iter().zip(&self.dims).enumerate().map(|(dim, (&at, reach))| {
            if dim != halo {
                return reach.map.place(at);
            }
            let capacity = reach.capacity();
            let [before, behind] = reach.positions[at / capacity].lacks();
            let lacking = before.chain(behind).nth(at % capacity)?;
            reach.map.place(lacking)
        });
        places.collect()
    }
}
