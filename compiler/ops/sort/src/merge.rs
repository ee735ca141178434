//! `merge_sorted(x, y, keys=1, axis=0, parts=4)`: the second step of a sort along a split dimension. Each device takes the elements
//! of its block of the result from the sorted blocks of all devices.
//!
//! ```text
//! let s: f32[16@Y] = sort(x);                                                       // x: f32[16@Y], Y = 4
//! =>
//! let b: f32[16@Y] = sort_blocks(x, keys=1, axis=0, parts=4);
//! let s: f32[16@Y] = merge_sorted(b, keys=1, axis=0, parts=4);
//! ```
//!
//! By binary searches in all sorted blocks, a device finds the elements of its block (Varman et al., "Merging multiple lists on
//! hierarchical-memory multiprocessors", 1991). So it receives these elements and no others, and no device holds more than its block. With
//! `places=(3, 4)` every device takes the elements at these places of the whole order: a median moves one or two elements.

use crate::blocks::{SortBlocks, check_blocks, parts};
use crate::select::SelectBlocks;
use spmdc_abi::{CollectiveKind, LibraryFunction, LibraryOwners, MergeLines, Scalar, TakenPlaces};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::array::{Array, Trap};
use spmdc_ir::call::Call;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::lower::calls::{CallArray, LibraryCalls};
use spmdc_ir::lower::work::Lowering;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::op::Op;
use spmdc_ir::program::Stmt;
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::derivative::Derivative;
use spmdc_ir::rules::{
    Elements, Exchange, Lowered, NamedAxes, PlacesResults, Properties, Rules, Semantics, SentMessages, Typing, one_each,
};
use spmdc_ir::shape;
use spmdc_ir::stablehlo::Exported;
use spmdc_layout::factors::Factors;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::reshard::Traffic;
use spmdc_layout::sharding::{DimSharding, block_range};
use spmdc_layout::types::{ArrayType, AxisSet, DType, Type};
use spmdc_layout::{cost, crossings};
use spmdc_ops::sort::{LineOrder, properties};

/// One result for each operand.
#[derive(Clone, Debug, PartialEq)]
pub struct MergeSorted {
    /// The order in which each block is sorted.
    pub order: LineOrder,
    /// The number of blocks along the dimension of the lines.
    pub parts: usize,
    /// The places of the whole order that every device takes; None if each takes the places of its own block.
    pub places: Option<Vec<usize>>,
}

impl MergeSorted {
    /// Whether this op makes the blocks that this one merges.
    pub fn is_of(&self, op: &Op) -> bool {
        let sorts = op.as_op::<SortBlocks>().is_some_and(|made| (&self.order, self.parts) == (&made.order, made.parts));
        let selects = |made: &SelectBlocks| made.pieces == 1 && (&self.order, self.parts) == (&made.order, made.parts);
        sorts || op.as_op::<SelectBlocks>().is_some_and(selects)
    }

    fn axes<'t>(&self, ty: &'t Type) -> &'t [u8] {
        &ty.sharding.dims[self.order.axis].axes
    }

    fn kind(&self) -> CollectiveKind {
        if self.places.is_some() { CollectiveKind::AllGather } else { CollectiveKind::AllToAll }
    }

    /// The part of a device's operand that takes part: all of it, or as many elements of each line as there are places.
    fn operand(&self, ty: &Type, mesh: &Mesh) -> Vec<usize> {
        let mut block = ty.block_shape(mesh);
        if let Some(places) = &self.places {
            block[self.order.axis] = block[self.order.axis].min(places.len());
        }
        block
    }
}

impl Semantics for MergeSorted {
    fn name(&self) -> &'static str {
        "merge_sorted"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::OfBlocks(self)
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        Factors::unrelated(args, results)
    }

    /// The elements of all blocks by the keys, then by the number of the block, then by the place in it.
    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let axis = self.order.axis;
        let size = args[0].shape()[axis];
        let mut shape = args[0].shape().to_vec();
        shape[axis] = self.places.as_ref().map_or(size, Vec::len);
        let ty = |array: &Array| ArrayType::new(array.dtype(), &shape);
        let mut results: Vec<Array> =
            args.iter().map(|&array| Array::new(ty(array), vec![0; shape.iter().product()])).collect();
        let (firsts, stride) = shape::lines(args[0].shape(), axis);
        for (first, to) in firsts.into_iter().zip(shape::lines(&shape, axis).0) {
            let blocks = (0..self.parts).flat_map(|part| block_range(size, self.parts, part));
            let mut order: Vec<usize> = blocks.map(|at| first + at * stride).collect();
            order.sort_by(|&a, &b| self.order.compare(args, a, b));
            for at in 0..shape[axis] {
                let from = order[self.places.as_ref().map_or(at, |places| places[at])];
                for (result, array) in results.iter_mut().zip(args) {
                    result.bits[to + at * stride] = array.bits[from];
                }
            }
        }
        Ok(results)
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        let places = self.places.as_ref().map_or_else(String::new, |at| format!(", places={}", shape::tuple(at)));
        format!("merge_sorted({}, {}, parts={}{places})", args.join(", "), self.order.print(), self.parts)
    }

    fn flops(&self, _: &[&ArrayType], results: &[&ArrayType]) -> u64 {
        one_each(results)
    }
}

impl PlacesResults for MergeSorted {
    fn place(&self, args: &[&Type], mesh: &Mesh) -> Result<Vec<Type>, Mismatch> {
        check_blocks(&self.order, self.parts, args, mesh)?;
        let axis = self.order.axis;
        let size = args[0].shape()[axis];
        if let Some(&place) = self.places.iter().flatten().find(|&&place| place >= size) {
            return Err(Mismatch::new(Code::E0205, format!("position {place} is out of range for {size} elements")));
        }
        let result = |ty: &&Type| {
            let mut ty = (*ty).clone();
            if let Some(places) = &self.places {
                ty.array.shape[axis] = places.len();
                ty.sharding.dims[axis] = DimSharding::default();
            }
            ty
        };
        Ok(args.iter().map(result).collect())
    }
}

impl Rules for MergeSorted {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Missing
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::Never
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Exchange(self)
    }

    fn properties(&self) -> Properties<'_> {
        properties(Elements::Other)
    }

    fn stablehlo(&self) -> Exported<'_> {
        Exported::AfterPartitioning
    }

    fn named_axes(&mut self) -> Vec<NamedAxes<'_>> {
        Vec::new()
    }
}

impl Exchange for MergeSorted {
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        let axis = [self.order.axis];
        let from = lowering.ty(stmt.args[0]).clone();
        let to = lowering.ty(stmt.results[0]).clone();
        let axes = self.axes(&from).to_vec();
        let arrays = |values: &[_]| values.iter().map(|&value| lowering.call_array(value, &axis)).collect();
        let (operands, mut results): (_, Vec<CallArray>) = (arrays(&stmt.args), arrays(&stmt.results));
        let batch = lowering.call_batch(stmt.results[0], &axis);
        let len = to.block_shape(lowering.mesh)[axis[0]];
        results.push(self.order.scratch(lowering, &stmt.results, len));
        results.push(lowering.call_scratch(stmt.results[0], &axis, DType::I64, MergeLines::SPLITS * self.parts));
        let taken = match &self.places {
            // The first ones, as of a selection, need no search for each.
            Some(places) if places.iter().copied().eq(0..places.len()) => TakenPlaces::From(Scalar::Const(0)),
            Some(places) => TakenPlaces::Places(places.iter().map(|&place| place as i64).collect()),
            None => TakenPlaces::From(lowering.kernel().context.block_start(&to, axis[0])),
        };
        let types = |values: &[_]| values.iter().map(|&value| lowering.ty(value)).collect::<Vec<&Type>>();
        let Traffic { bytes, .. } = self.traffic(&types(&stmt.args), &types(&stmt.results), lowering.mesh);
        lowering.library(LibraryCalls {
            function: LibraryFunction::Merge(MergeLines { order: self.order.lines(), taken }),
            operands,
            results,
            batch,
            owners: Some(LibraryOwners { axes, kind: self.kind(), bytes }),
            cost: cost::of_sort(len, stmt.args.len()),
            checks: Vec::new(),
        });
        Ok(())
    }

    fn collective(&self, args: &[&Type], _: &[&Type], _: &Mesh) -> (CollectiveKind, AxisSet) {
        let axes = args.first().map_or(&[][..], |ty| self.axes(ty));
        (self.kind(), axes.iter().map(|&axis| usize::from(axis)).collect())
    }

    /// In the worst case a device has no element of its own block.
    fn traffic(&self, args: &[&Type], results: &[&Type], mesh: &Mesh) -> Traffic {
        let received = results.iter().map(|ty| ty.block_bytes(mesh) as u64).sum::<u64>();
        let operand = self.operand(args[0], mesh);
        let sizes = args.iter().map(|ty| ty.dtype().size()).sum::<usize>();
        let bytes = (operand.iter().product::<usize>() * sizes) as u64;
        let group: AxisSet = self.axes(args[0]).iter().map(|&axis| usize::from(axis)).collect();
        let axes = (group, group.union(args[0].distinct_axes()));
        let crossing = crossings::of_group(CollectiveKind::AllToAll, axes, received, mesh);
        Traffic { operand, bytes, received, total: received * mesh.device_count() as u64, crossing }
    }

    fn messages(&self, _: &[&Type], _: &Mesh) -> SentMessages<'_> {
        SentMessages::OfValues
    }
}

impl Call for MergeSorted {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// Elements of the sorted order of all blocks, each of which is sorted.
        merge_sorted([rest] operands: Array, [named] keys: Int = 1, [named] axis: Int = 0, [named] descending: Bool = false, [named] signed_zeros: Bool = false, [named] parts: Int = 1, [named] places: Ints = None)
        in_dumps "" "write `sort`, or sort(x)[3]";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let order = LineOrder::read(args)?;
        let parts = parts(args)?;
        let places = args.optional_ints("places")?;
        let places = places.map(|places| places.into_iter().map(usize::try_from).collect::<Result<Vec<_>, _>>());
        let wrong = |_| Diagnostic::error(Code::E0227, args.span, "`places` must be at least 0");
        let places = places.transpose().map_err(wrong)?;
        let operands = args.arrays(build, "operands")?;
        Ok(spmdc_ops::sort::term(&build.emit(MergeSorted { order, parts, places }, &operands)?))
    }
}
