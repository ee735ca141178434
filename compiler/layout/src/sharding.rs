//! Shardings: a small immutable value with an algebra, free of the IR.
//!
//! A dimension lists the axes that split it, major to minor; `open` means that propagation may append more. An axis occurs at
//! most once over all dimensions and the unreduced set. Blocks are flat over several axes: `ceil(size / n)` elements each, with
//! trailing blocks perhaps shorter or empty.

use crate::mesh::Mesh;
use spmdc_abi::AxisSet;
use spmdc_abi::ReduceOp;
use std::ops::Range;

/// The split of one dimension.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DimSharding {
    /// The axes that split it, major to minor.
    pub axes: Vec<u8>,
    /// Whether propagation may append axes.
    pub open: bool,
    /// Set if its blocks follow those of another dimension. Only values whose layout the compiler chooses have alignments.
    pub alignment: Option<Alignment>,
}

/// The blocks of a dimension of another array, which contains this array or is a part of it. Element `i` corresponds to index `start + i *
/// step` of a dimension of `size`, and is on the device of this index. Elements before its first index are on the first device, and
/// elements after its last one on the last device.
///
/// ```text
/// f32[30@Y/32+1], Y = 4      u[1:-1] of u: f32[32@Y] in u's blocks: 7, 8, 8 and 7 elements
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Alignment {
    /// The size of the other dimension.
    pub size: usize,
    /// The index of element 0 in the other dimension; negative if elements precede its first index.
    pub start: i64,
    /// The distance between neighbouring elements in the other dimension.
    pub step: usize,
}

impl Alignment {
    /// The first element of a dimension of `size` that is not before this block of the alignment.
    fn cut(&self, size: usize, blocks: usize, block: usize) -> usize {
        if block == 0 || block >= blocks {
            return if block == 0 { 0 } else { size };
        }
        let place = (block * self.size.div_ceil(blocks)) as i64;
        let distance = place - self.start;
        (-(-distance).div_euclid(self.step.max(1) as i64)).clamp(0, size as i64) as usize
    }
}

impl DimSharding {
    /// A closed dimension that these axes split, major to minor, in blocks of its own size.
    pub fn closed(axes: Vec<u8>) -> DimSharding {
        DimSharding { axes, open: false, alignment: None }
    }

    /// The layout of a dimension of `size` whose element `i` is on the device of element `start + i * step` of a dimension with this
    /// layout.
    pub fn part(&self, whole: usize, (start, step): (i64, usize), size: usize, mesh: &Mesh) -> DimSharding {
        let outer = self.alignment.unwrap_or(Alignment { size: whole, start: 0, step: 1 });
        let alignment = Alignment {
            size: outer.size,
            start: outer.start.saturating_add(start.saturating_mul(outer.step as i64)),
            step: outer.step.saturating_mul(step),
        };
        let plain = DimSharding::closed(self.axes.clone());
        let aligned = DimSharding { alignment: Some(alignment), ..plain.clone() };
        if aligned.has_blocks_of(&plain, size, mesh) { plain } else { aligned }
    }

    /// Whether both cut a dimension of this size into the same blocks.
    pub fn has_blocks_of(&self, other: &DimSharding, size: usize, mesh: &Mesh) -> bool {
        self.axes == other.axes
            && (self.alignment == other.alignment || self.blocks(size, mesh) == other.blocks(size, mesh))
    }

    /// The part of a dimension that the device at this position along the axes holds.
    pub fn range(&self, size: usize, position: usize, mesh: &Mesh) -> Range<usize> {
        let blocks = mesh.size_of(&self.axes);
        match &self.alignment {
            None => block_range(size, blocks, position),
            Some(alignment) => alignment.cut(size, blocks, position)..alignment.cut(size, blocks, position + 1),
        }
    }

    /// The blocks of a dimension, by position along the axes.
    pub fn blocks(&self, size: usize, mesh: &Mesh) -> Vec<Range<usize>> {
        (0..mesh.size_of(&self.axes)).map(|position| self.range(size, position, mesh)).collect()
    }

    /// The length of the largest block.
    pub fn block(&self, size: usize, mesh: &Mesh) -> usize {
        match self.alignment {
            None => size.div_ceil(mesh.size_of(&self.axes).max(1)),
            Some(_) => self.blocks(size, mesh).iter().map(Range::len).max().unwrap_or(0),
        }
    }

    /// The text after `@`: `X`, `(X,Y)`, `_`, `?`, `(X,?)`; with an alignment `X/32+1`, or `X/32+1:2` for a step of 2.
    pub fn display(&self, mesh: &Mesh) -> String {
        let mut names = mesh.names(&self.axes);
        if self.open {
            names.push("?");
        }
        let axes = match names.as_slice() {
            [] => "_".to_string(),
            [name] => name.to_string(),
            _ => format!("({})", names.join(",")),
        };
        match self.alignment {
            None => axes,
            Some(Alignment { size, start, step: 1 }) => format!("{axes}/{size}{start:+}"),
            Some(Alignment { size, start, step }) => format!("{axes}/{size}{start:+}:{step}"),
        }
    }
}

/// The distribution of a value over the devices: the split of each dimension, and the unreduced axes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sharding {
    /// One for each dimension of the value.
    pub dims: Vec<DimSharding>,
    /// Along these axes every device holds a partial value, to be combined by `combine`.
    pub unreduced: AxisSet,
    /// Along these axes every device holds the whole value, as along axes that nothing names, and its gradient is unreduced. It has no
    /// other meaning, so it is dropped after differentiation.
    pub reduced: AxisSet,
    /// `Sum` in all user code; others occur between a reduction and its collective.
    pub combine: ReduceOp,
}

impl Sharding {
    /// Closed dimensions that no axis splits.
    pub fn replicated(rank: usize) -> Sharding {
        Sharding::closed(vec![Vec::new(); rank])
    }

    /// Open dimensions without axes.
    pub fn open(rank: usize) -> Sharding {
        let dims = vec![DimSharding { open: true, ..DimSharding::default() }; rank];
        Sharding { dims, unreduced: AxisSet::EMPTY, reduced: AxisSet::EMPTY, combine: ReduceOp::Sum }
    }

    /// Closed dimensions, each split by these axes, major to minor.
    pub fn closed(dims: Vec<Vec<u8>>) -> Sharding {
        let dims = dims.into_iter().map(DimSharding::closed).collect();
        Sharding { dims, unreduced: AxisSet::EMPTY, reduced: AxisSet::EMPTY, combine: ReduceOp::Sum }
    }

    /// The same split with these unreduced axes; without any, `combine` is `Sum`.
    pub fn with_unreduced(mut self, axes: AxisSet, combine: ReduceOp) -> Sharding {
        self.unreduced = axes;
        self.combine = if axes.is_empty() { ReduceOp::Sum } else { combine };
        self
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// The axes that split some dimension.
    pub fn used_axes(&self) -> AxisSet {
        self.dims.iter().flat_map(|dim| &dim.axes).map(|&axis| axis as usize).collect()
    }

    /// The axes that it names: axes that split some dimension, and axes along which it is unreduced or reduced.
    pub fn named_axes(&self) -> AxisSet {
        self.used_axes().union(self.unreduced).union(self.reduced)
    }

    /// The layout of the gradients of values with this layout: whole and split ones keep it, partial sums have reduced ones and the
    /// reverse. The dual of the dual is the layout itself.
    pub fn dual(mut self) -> Sharding {
        std::mem::swap(&mut self.unreduced, &mut self.reduced);
        self
    }

    /// Whether it has neither splitting nor unreduced axes.
    pub fn is_replicated(&self) -> bool {
        self.unreduced.is_empty() && self.dims.iter().all(|dim| dim.axes.is_empty())
    }

    /// Whether no dimension is open.
    pub fn is_closed(&self) -> bool {
        self.dims.iter().all(|dim| !dim.open)
    }

    /// The same layout with all dimensions closed.
    pub fn close(&self) -> Sharding {
        let mut closed = self.clone();
        closed.dims.iter_mut().for_each(|dim| dim.open = false);
        closed
    }

    /// Whether some dimension has an alignment.
    pub fn is_aligned(&self) -> bool {
        self.dims.iter().any(|dim| dim.alignment.is_some())
    }

    /// The same axes, each dimension in blocks of its own size.
    pub fn without_alignment(&self) -> Sharding {
        let mut plain = self.clone();
        plain.dims.iter_mut().for_each(|dim| dim.alignment = None);
        plain
    }

    /// An axis that occurs more than once, which no valid sharding has.
    pub fn repeated_axis(&self) -> Option<u8> {
        if let Some(axis) = self.unreduced.intersect(self.reduced).iter().next() {
            return Some(axis as u8);
        }
        let mut seen = self.unreduced.union(self.reduced);
        for &axis in self.dims.iter().flat_map(|dim| &dim.axes) {
            if seen.contains(axis as usize) {
                return Some(axis);
            }
            seen = seen.union(AxisSet::of(axis as usize));
        }
        None
    }

    /// `P(X,_,(Y,Z))`, with all dimensions written.
    pub fn display(&self, mesh: &Mesh) -> String {
        let mut parts: Vec<String> = self.dims.iter().map(|dim| dim.display(mesh)).collect();
        if !self.unreduced.is_empty() {
            parts.push(format!("{}={}", self.unreduced_keyword("unreduced"), mesh.display_set(self.unreduced)));
        }
        if !self.reduced.is_empty() {
            parts.push(format!("reduced={}", mesh.display_set(self.reduced)));
        }
        format!("P({})", parts.join(","))
    }

    /// As [`Sharding::display`], with alignments in words: `P(_,Y), with element i of dimension 1 on the device of element i + 8 of 9`.
    pub fn in_words(&self, mesh: &Mesh) -> String {
        let mut text = self.without_alignment().display(mesh);
        for (dim, sharding) in self.dims.iter().enumerate() {
            let Some(Alignment { size, start, step }) = sharding.alignment else { continue };
            let scale = if step == 1 { String::new() } else { format!(" * {step}") };
            let offset = match start {
                0 => String::new(),
                start if start < 0 => format!(" - {}", start.unsigned_abs()),
                start => format!(" + {start}"),
            };
            let place = format!("i{scale}{offset}");
            text.push_str(&format!(", with element i of dimension {dim} on the device of element {place} of {size}"));
        }
        text
    }

    /// `{U:X}{R:Y}`, the part of a type in which nothing is split.
    pub fn display_whole(&self, mesh: &Mesh) -> String {
        let suffix = |letter: &str, axes: AxisSet| match axes.is_empty() {
            true => String::new(),
            false => format!("{{{letter}:{}}}", mesh.display_set(axes)),
        };
        suffix(&self.unreduced_keyword("U"), self.unreduced) + &suffix("R", self.reduced)
    }

    /// `U` for sums; `Umax` and so on for other operations, which only dumps contain.
    fn unreduced_keyword(&self, base: &str) -> String {
        let suffix = match self.combine {
            ReduceOp::Sum => "",
            ReduceOp::Product => "prod",
            ReduceOp::Max => "max",
            ReduceOp::Min => "min",
            ReduceOp::And => "all",
            ReduceOp::Or => "any",
        };
        format!("{base}{suffix}")
    }
}

/// The half-open range of a dimension that the block with linear coordinate `position` of `blocks` holds.
pub fn block_range(size: usize, blocks: usize, position: usize) -> Range<usize> {
    let block = size.div_ceil(blocks.max(1));
    (position * block).min(size)..((position + 1) * block).min(size)
}

/// Whether these blocks of a dimension of `major * minor` elements consist of whole groups of `minor` elements. For example, 46 elements in
/// four blocks of 12, 12, 12 and 10 are 23 pairs in blocks of 6, 6, 6 and 5.
pub fn blocks_hold_whole(major: usize, minor: usize, blocks: usize) -> bool {
    let blocks = blocks.max(1);
    (major * minor).div_ceil(blocks) == major.div_ceil(blocks) * minor
}
