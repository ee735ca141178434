//! Margins: the elements around the blocks of a value, for all windows that read them.
//!
//! A halo belongs to one window. Windows that shift the same value by several distances need overlapping halos; the margin on one
//! side of the blocks, along one dimension, contains all elements that any of them needs there.
//!
//! ```text
//! u[:-4] u[1:-3] .. u[4:]  around u[2:-2], u: f32[32@Y], Y = 4     margins of 2 elements before and after each block
//! ```
//!
//! A *span* is a range of positions from the first to the last needed one. Positions are indices into the operand, extended past both of
//! its ends for windows that wrap around: positions before a block have smaller numbers than the block. Along earlier dimensions a margin
//! has the positions inside the block, and along later ones all needed positions, corners included. So each element is in one margin.

use super::mesh::Mesh;
use super::sharding::{DimSharding, Sharding};
use super::window::{DimMap, overlap};
use crate::types::{ArrayType, Type};
use spmdc_abi::FetchDim;
use std::ops::Range;

/// The elements on one side of each block.
#[derive(Clone, Debug, PartialEq)]
pub struct Margin {
    /// The dimension along which it is before or after the block.
    pub dim: usize,
    /// Whether it is after the block; otherwise before it.
    pub behind: bool,
    /// For each dimension, the span for each position along the axes that split it.
    pub spans: Vec<Vec<Range<i64>>>,
}

impl Margin {
    /// Whether it can be a margin of an array of this shape.
    pub fn is_sound(&self, shape: &[usize]) -> bool {
        let sound = |span: &Range<i64>, size: usize| {
            let size = size as i64;
            span.start >= -2 * size && span.end <= 3 * size && (0..=size).contains(&(span.end - span.start))
        };
        let mut dims = self.spans.iter().zip(shape);
        let fits = self.spans.len() == shape.len() && self.dim < shape.len();
        fits && dims.all(|(spans, &size)| !spans.is_empty() && spans.iter().all(|span| sound(span, size)))
    }

    /// The number of elements of a dimension that each device stores: the length of the longest span.
    pub fn width(&self, dim: usize) -> usize {
        self.spans[dim].iter().map(length).max().unwrap_or(0)
    }

    /// The shape of all positions' spans one after another, each padded to the longest.
    pub fn shape(&self) -> Vec<usize> {
        self.spans.iter().enumerate().map(|(dim, spans)| self.width(dim) * spans.len()).collect()
    }

    /// The type of the margin of an operand; None if the operand is split differently.
    pub fn ty(&self, operand: &Type, mesh: &Mesh) -> Option<Type> {
        let mut dims = self.spans.iter().zip(&operand.sharding.dims);
        if !dims.all(|(spans, dim)| spans.len() == mesh.size_of(&dim.axes)) {
            return None;
        }
        let mut sharding = operand.sharding.clone();
        sharding.dims.iter_mut().for_each(|dim| *dim = DimSharding::closed(std::mem::take(&mut dim.axes)));
        let array = ArrayType::new(operand.dtype(), &self.shape());
        Some(Type { array, sharding, varying: operand.varying })
    }

    /// The fetches from the blocks of an operand of this shape and layout.
    pub fn fetch(&self, shape: &[usize], from: &Sharding, mesh: &Mesh) -> Vec<FetchDim> {
        let dims = self.spans.iter().zip(shape.iter().zip(&from.dims)).enumerate();
        let dims = dims.map(|(dim, (spans, (&size, from)))| {
            let blocks = from.blocks(size, mesh);
            let runs = spans.iter().map(|span| {
                let len = length(span);
                let start = span.start.rem_euclid(size.max(1) as i64) as usize;
                DimMap { size, before: 0, start, step: 1, len, after: 0 }.fetched(&(0..len), &blocks, 0)
            });
            FetchDim {
                from_len: blocks.iter().map(Range::len).max().unwrap_or(0),
                to_len: self.width(dim),
                owners: from.axes.clone(),
                axes: from.axes.clone(),
                runs: runs.collect(),
            }
        });
        dims.collect()
    }

    /// The index in the operand of the element at this index; None for padding.
    pub fn place(&self, index: &[usize], shape: &[usize]) -> Option<Vec<usize>> {
        let places = index.iter().zip(shape).enumerate().map(|(dim, (&at, &size))| {
            let width = self.width(dim).max(1);
            let span = self.spans[dim].get(at / width)?;
            let place = span.start + (at % width) as i64;
            (place < span.end).then(|| place.rem_euclid(size.max(1) as i64) as usize)
        });
        places.collect()
    }

    /// Whether both are on the same side of the blocks.
    pub fn is_beside(&self, other: &Margin) -> bool {
        self.dim == other.dim && self.behind == other.behind
    }

    /// Whether it contains all elements of `other`.
    pub fn covers(&self, other: &Margin) -> bool {
        let pairs = self.spans.iter().flatten().zip(other.spans.iter().flatten());
        let within =
            |(all, part): (&Range<i64>, &Range<i64>)| part.is_empty() || all.start <= part.start && part.end <= all.end;
        self.is_beside(other) && pairs.into_iter().all(within)
    }

    /// Extends it by the elements of `other`, and those between.
    fn join(&mut self, other: &Margin) {
        for (span, more) in self.spans.iter_mut().flatten().zip(other.spans.iter().flatten()) {
            *span = hull(span, more);
        }
    }
}

/// Whether `known` contain all elements of `wanted`.
pub fn cover(known: &[Margin], wanted: &[Margin]) -> bool {
    wanted.iter().all(|margin| known.iter().any(|known| known.covers(margin)))
}

/// Margins with the elements of both lists: one for each side.
pub fn joined(known: &[Margin], more: &[Margin]) -> Vec<Margin> {
    let mut all = known.to_vec();
    for margin in more {
        match all.iter_mut().find(|known| known.is_beside(margin)) {
            Some(known) => known.join(margin),
            None => all.push(margin.clone()),
        }
    }
    all
}

fn length(span: &Range<i64>) -> usize {
    (span.end - span.start).max(0) as usize
}

fn hull(a: &Range<i64>, b: &Range<i64>) -> Range<i64> {
    if a.is_empty() {
        return b.clone();
    }
    if b.is_empty() { a.clone() } else { a.start.min(b.start)..a.end.max(b.end) }
}

/// The positions of the elements of a window relative to the blocks of its operand.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    /// One for each dimension.
    pub dims: Vec<DimSpread>,
}

/// One dimension of a window, relative to the blocks of its operand.
#[derive(Clone, Debug, PartialEq)]
pub struct DimSpread {
    /// The window along this dimension.
    pub map: DimMap,
    /// The axes that split operand and result.
    pub axes: Vec<u8>,
    /// For each position along these axes, the elements of the device.
    pub positions: Vec<Stretch>,
}

/// The elements of one device: some before its block of the operand, then some in it, then some after it.
#[derive(Clone, Debug, PartialEq)]
pub struct Stretch {
    /// The block of the result; like `body` and `held`, a range of indices into the whole result.
    pub block: Range<usize>,
    /// The part of `block` that has elements.
    pub body: Range<usize>,
    /// The part of `body` whose elements are in the device's own block of the operand.
    pub held: Range<usize>,
    /// The device's own block of the operand.
    pub own: Range<usize>,
    /// The place of element 0, in the round of a wrapping window in which the elements are nearest to the block.
    pub origin: i64,
}

/// A part of the elements that a window reads along a dimension.
#[derive(Clone, Copy, PartialEq)]
enum SpanElements {
    Before,
    Own,
    Behind,
    All,
}

impl Spread {
    /// None for windows that share no margins: operand and result are split by different axes, or elements are in reverse along a
    /// split dimension.
    pub fn new(dims: &[DimMap], from: &Sharding, to: &Sharding, mesh: &Mesh) -> Option<Spread> {
        let dims = dims.iter().zip(from.dims.iter().zip(&to.dims));
        let dims = dims.map(|(&map, (from, to))| DimSpread::new(map, from, to, mesh));
        Some(Spread { dims: dims.collect::<Option<_>>()? })
    }

    /// The margins that it needs: one for each side on which some device lacks elements.
    pub fn margins(&self) -> Vec<Margin> {
        let sides = (0..self.dims.len()).flat_map(|dim| [(dim, false), (dim, true)]);
        sides.filter_map(|(dim, behind)| self.margin(dim, behind)).collect()
    }

    fn margin(&self, dim: usize, behind: bool) -> Option<Margin> {
        let spans = self.dims.iter().enumerate().map(|(other, spread)| {
            let part = match other.cmp(&dim) {
                std::cmp::Ordering::Less => SpanElements::Own,
                std::cmp::Ordering::Equal if behind => SpanElements::Behind,
                std::cmp::Ordering::Equal => SpanElements::Before,
                std::cmp::Ordering::Greater => SpanElements::All,
            };
            let spans: Vec<Range<i64>> = spread.positions.iter().map(|at| spread.span(at, part)).collect();
            spans.iter().any(|span| !span.is_empty()).then_some(spans)
        });
        Some(Margin { dim, behind, spans: spans.collect::<Option<_>>()? })
    }
}

impl DimSpread {
    fn new(map: DimMap, from: &DimSharding, to: &DimSharding, mesh: &Mesh) -> Option<DimSpread> {
        let is_whole = [from, to].iter().all(|dim| mesh.size_of(&dim.axes) == 1);
        if !is_whole && (from.axes != to.axes || (map.step < 1 && map.len > 1)) {
            return None;
        }
        let blocks = from.blocks(map.size, mesh).into_iter().zip(to.blocks(map.result(), mesh));
        let positions = blocks.map(|(own, block)| {
            let body = overlap(&block, &map.body());
            match is_whole {
                true => Some(Stretch { held: body.clone(), block, body, own, origin: map.start as i64 }),
                false => Stretch::new(&map, own, block, body),
            }
        });
        Some(DimSpread { map, axes: from.axes.clone(), positions: positions.collect::<Option<_>>()? })
    }

    /// Whether every device has the whole operand along this dimension.
    pub fn is_whole(&self) -> bool {
        self.positions.len() == 1
    }

    fn span(&self, at: &Stretch, part: SpanElements) -> Range<i64> {
        let places = match part {
            SpanElements::Before => at.body.start..at.held.start,
            SpanElements::Own => at.held.clone(),
            SpanElements::Behind => at.held.end..at.body.end,
            SpanElements::All => at.body.clone(),
        };
        if places.is_empty() {
            return 0..0;
        }
        if !self.is_whole() {
            return at.places(&self.map, &places);
        }
        match self.map.runs().as_slice() {
            [run] => {
                let place = |at: usize| run.origin + (at - self.map.before) as i64 * self.map.step;
                let (first, last) = (place(places.start), place(places.end - 1));
                first.min(last)..first.max(last) + 1
            }
            _ => 0..self.map.size as i64,
        }
    }

    /// Whether some device needs elements before its block.
    pub fn lacks_before(&self) -> bool {
        self.positions.iter().any(|at| at.body.start < at.held.start)
    }

    /// Whether some device needs elements after its block.
    pub fn lacks_behind(&self) -> bool {
        self.positions.iter().any(|at| at.held.end < at.body.end)
    }

    /// Whether some device has an element in its own block.
    pub fn holds(&self) -> bool {
        self.positions.iter().any(|at| !at.held.is_empty())
    }
}

impl Stretch {
    /// None if the elements wrap around more than once.
    fn new(map: &DimMap, own: Range<usize>, block: Range<usize>, body: Range<usize>) -> Option<Stretch> {
        let size = map.size as i64;
        let (low, high) = (own.start as i64, own.end as i64);
        let mut nearest: Option<((usize, i64), Stretch)> = None;
        for round in [0, size, -size] {
            let origin = map.start as i64 - round;
            // The first element at or after a border.
            let cut = |border: i64| {
                let number = -(origin - border).div_euclid(map.step.max(1));
                (number + map.before as i64).clamp(body.start as i64, body.end as i64) as usize
            };
            let held = cut(low)..cut(high).max(cut(low));
            let (block, body, own) = (block.clone(), body.clone(), own.clone());
            let stretch = Stretch { block, body, held, own, origin };
            let span = stretch.places(map, &stretch.body);
            if length(&span) > map.size {
                return None;
            }
            let distance = if stretch.held.is_empty() { (low - span.end).max(span.start - high) } else { 0 };
            let farness = (stretch.body.len() - stretch.held.len(), distance);
            if nearest.as_ref().is_none_or(|(least, _)| farness < *least) {
                nearest = Some((farness, stretch));
            }
        }
        nearest.map(|(_, stretch)| stretch)
    }

    /// The range from the first to the last place of some elements of the result.
    pub fn places(&self, map: &DimMap, elements: &Range<usize>) -> Range<i64> {
        if elements.is_empty() {
            return 0..0;
        }
        let place = |at: usize| self.origin + (at - map.before) as i64 * map.step.max(1);
        place(elements.start)..place(elements.end - 1) + 1
    }
}
