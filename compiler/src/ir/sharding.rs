//! Shardings: a small immutable value with an algebra, free of the IR.
//!
//! A dimension lists the axes that split it, major to minor; `open` means that propagation may append more. An axis occurs at
//! most once over all dimensions and the unreduced set. Blocks are flat over several axes: `ceil(size / n)` elements each, with
//! trailing blocks perhaps shorter or empty.

use crate::ir::mesh::Mesh;
use crate::ir::types::AxisSet;
use spmdc_runtime::abi::ReduceOp;

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DimSharding {
    /// Major to minor.
    pub axes: Vec<u8>,
    pub open: bool,
}

impl DimSharding {
    pub fn closed(axes: Vec<u8>) -> DimSharding {
        DimSharding { axes, open: false }
    }

    /// What stands behind `@`: `X`, `(X,Y)`, `_`, `?`, `(X,?)`.
    pub fn display(&self, mesh: &Mesh) -> String {
        let mut names: Vec<&str> = self.axes.iter().map(|&axis| mesh.name(axis)).collect();
        if self.open {
            names.push("?");
        }
        match names.as_slice() {
            [] => "_".to_string(),
            [name] => name.to_string(),
            _ => format!("({})", names.join(",")),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sharding {
    pub dims: Vec<DimSharding>,
    /// Along these axes every device holds a partial value, to be combined by `combine`.
    pub unreduced: AxisSet,
    /// `Sum` in everything that the user can write; others live between a reduction and its collective.
    pub combine: ReduceOp,
}

impl Sharding {
    pub fn replicated(rank: usize) -> Sharding {
        Sharding::closed(vec![Vec::new(); rank])
    }

    pub fn open(rank: usize) -> Sharding {
        let dims = vec![DimSharding { axes: Vec::new(), open: true }; rank];
        Sharding { dims, unreduced: AxisSet::EMPTY, combine: ReduceOp::Sum }
    }

    pub fn closed(dims: Vec<Vec<u8>>) -> Sharding {
        let dims = dims.into_iter().map(DimSharding::closed).collect();
        Sharding { dims, unreduced: AxisSet::EMPTY, combine: ReduceOp::Sum }
    }

    pub fn with_unreduced(mut self, axes: AxisSet, combine: ReduceOp) -> Sharding {
        self.unreduced = axes;
        self.combine = if axes.is_empty() { ReduceOp::Sum } else { combine };
        self
    }

    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// The axes that split some dimension.
    pub fn used_axes(&self) -> AxisSet {
        self.dims.iter().flat_map(|dim| &dim.axes).map(|&axis| axis as usize).collect()
    }

    pub fn is_replicated(&self) -> bool {
        self.unreduced.is_empty() && self.dims.iter().all(|dim| dim.axes.is_empty())
    }

    pub fn is_closed(&self) -> bool {
        self.dims.iter().all(|dim| !dim.open)
    }

    /// The same layout with nothing left open.
    pub fn close(&self) -> Sharding {
        let mut closed = self.clone();
        closed.dims.iter_mut().for_each(|dim| dim.open = false);
        closed
    }

    /// An axis that occurs more than once, which no valid sharding has.
    pub fn repeated_axis(&self) -> Option<u8> {
        let mut seen = self.unreduced;
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
        format!("P({})", parts.join(","))
    }

    pub(crate) fn display_unreduced(&self, mesh: &Mesh) -> String {
        if self.unreduced.is_empty() {
            return String::new();
        }
        format!("{{{}:{}}}", self.unreduced_keyword("U"), mesh.display_set(self.unreduced))
    }

    /// `U` for sums; `Umax` and so on for what only dumps contain.
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
pub fn block_range(size: usize, blocks: usize, position: usize) -> std::ops::Range<usize> {
    let block = size.div_ceil(blocks.max(1));
    (position * block).min(size)..((position + 1) * block).min(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailing_blocks_are_short_or_empty() {
        let lengths = |size, blocks| (0..blocks).map(|t| block_range(size, blocks, t).len()).collect::<Vec<_>>();
        assert_eq!(lengths(10, 4), [3, 3, 3, 1]);
        assert_eq!(lengths(9, 4), [3, 3, 3, 0]);
        assert_eq!(lengths(10, 8), [2, 2, 2, 2, 2, 0, 0, 0]);
        assert_eq!(lengths(0, 3), [0, 0, 0]);
    }
}
