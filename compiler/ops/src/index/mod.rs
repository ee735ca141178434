//! Elements at indices that are known at run time only.
//!
//! A dynamic index goes through `check_index(i, n)`, an op with an effect: it returns a valid i64 or stops the program. `index(x, i, dims=(0,))`
//! then takes the element; it is pointwise. If the dimension is split, the device with the element contributes it to a sum, and the others
//! contribute the identity element.

mod derivative;

use crate::batching::BatchForms;
use crate::cast::convert;
use crate::check_indices::{CheckIndices, counted_from_start};
use crate::constant::Constant;
use crate::elementwise::{Binary, Compare, Select};
use crate::gather::Gather;
use spmdc_abi::{counted_index, out_of_bounds};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::must_be;
use spmdc_ir::array::{Array, Trap};
use spmdc_ir::call::Call;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::lower::builder::KernelBuilder;
use spmdc_ir::lower::work::Lowering;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::batching::{Batch, Batched, BatchedOperand, Batching, shifted};
use spmdc_ir::rules::derivative::Derivative;
use spmdc_ir::rules::{
    ChosenRegion, Combines, Effect, Elements, Infer, Linear, Lowered, Manual, NamedAxes, NestLowering, Placement,
    Point, Properties, Reads, Rules, Semantics, Typing,
};
use spmdc_ir::shape;
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_kernel::loops::{Affine, Elem};
use spmdc_kernel::number;
use spmdc_kernel::scalar::{BinaryOp, CompareOp};
use spmdc_layout::factors::{FactorKind, Factors};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{ArrayType, DType};

/// `check_index(i, n)`: the index as i64, counted from the front; stops the program if it is invalid. `check_index(i, n, 4)` checks
/// four elements from there on.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckIndex {
    /// The size of the indexed dimension.
    pub extent: usize,
    /// The number of elements taken from the index on, at least 1; all of them must exist.
    pub len: usize,
}

impl Semantics for CheckIndex {
    fn name(&self) -> &'static str {
        "check_index"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, _: &[&ArrayType], _: &[&ArrayType]) -> Factors {
        Factors { operands: vec![Vec::new()], results: vec![Vec::new()], ..Factors::new() }
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let index = number::to_int(args[0].dtype(), args[0].bits[0]);
        let (extent, len) = (self.extent as i128, self.len as i128);
        match counted_index(index, extent, len) {
            Some(place) => Ok(vec![Array::scalar(DType::I64, place as u64)]),
            None => Err(Trap { code: Code::E0801, message: out_of_bounds(index, extent, len) }),
        }
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        match self.len {
            1 => format!("check_index({}, {})", args[0], self.extent),
            len => format!("check_index({}, {}, {len})", args[0], self.extent),
        }
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }
}

impl Infer for CheckIndex {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        if args[0].rank() != 0 || !args[0].dtype.is_integer() {
            return Err(Mismatch::new(Code::E0203, must_be("an index", "an integer", args[0])));
        }
        Ok(vec![ArrayType::scalar(DType::I64)])
    }
}

impl Rules for CheckIndex {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Zero
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::stops(0, 0, Batching::Rule(self))
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Nest(self)
    }

    fn properties(&self) -> Properties<'_> {
        Properties {
            effect: Effect::Check,
            manual: Manual::Local,
            placement: Placement::Follows,
            linear: Linear::No,
            combines: Combines::Nothing,
            elements: Elements::Other,
            keeps_alignment: false,
        }
    }

    fn stablehlo(&self) -> Exported<'_> {
        Exported::Written(self)
    }

    fn named_axes(&mut self) -> Vec<NamedAxes<'_>> {
        Vec::new()
    }
}

impl WritesStablehlo for CheckIndex {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], _: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        Ok(vec![counted_from_start(hlo, &args[0], self.extent)])
    }
}

impl Batched for CheckIndex {
    fn batched(
        &self,
        build: &mut CallBuilder,
        _: &Stmt,
        batch: &Batch,
        operands: &[BatchedOperand],
    ) -> Result<Vec<Value>, Diagnostic> {
        let index = batch.mapped(build, operands[0])?;
        if self.len == 1 {
            return build.emit(CheckIndices { extent: self.extent }, &[index]);
        }
        // A region can begin at so many places. Those that count from the end are counted from the start before.
        let places = beginnings(self.extent, self.len);
        let index = convert(build, DType::I64, (&Term::Array(index), build.span()))?;
        let number = |number: usize| Constant::scalar(DType::I64, number as u64);
        let (zero, extent, none) =
            (build.emit1(number(0), &[])?, build.emit1(number(self.extent), &[])?, build.emit1(number(places), &[])?);
        let is_negative = build.emit1(Compare(CompareOp::Lt), &[index, zero])?;
        let counted = build.emit1(Binary(BinaryOp::Add), &[index, extent])?;
        let is_outside = build.emit1(Compare(CompareOp::Lt), &[counted, zero])?;
        let counted = build.emit1(Select, &[is_outside, none, counted])?;
        let place = build.emit1(Select, &[is_negative, counted, index])?;
        build.emit(CheckIndices { extent: places }, &[place])
    }
}

impl NestLowering for CheckIndex {
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        lowering.check_index(stmt.args[0], (self.extent as i64, self.len as i64), stmt.results[0]);
        Ok(())
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Buffer
    }
}

impl Call for CheckIndex {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// A dynamic index that is valid, or the end of the program.
        check_index(index: Array, extent: Int, len: Int = 1) in_dumps "" "write x[i]: every index is checked";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let index = args.array(build, "index")?;
        let extent = args.int("extent")?;
        let extent = usize::try_from(extent)
            .map_err(|_| Diagnostic::error(Code::E0227, args.span, "the extent of an index must be at least 0"))?;
        let len = args.optional_int("len")?.unwrap_or(1);
        let len = usize::try_from(len).ok().filter(|&len| len > 0);
        let len =
            len.ok_or_else(|| Diagnostic::error(Code::E0227, args.span, "the length of an index must be at least 1"))?;
        Ok(Term::Array(build.emit1(CheckIndex { extent, len }, &[index])?))
    }
}

/// `index(x, i, j, dims=(0, 2))`: the elements at indices i and j of dimensions 0 and 2, which vanish. The operands after x are
/// checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    /// The indexed dimensions, in order.
    pub dims: Vec<usize>,
}

/// The number of indices at which a region of `len` can begin in a dimension of `size`.
pub fn beginnings(size: usize, len: usize) -> usize {
    (size + 1).saturating_sub(len)
}

/// A checked index below `places`, limited as in [`KernelBuilder::dynamic_index`].
pub fn checked(index: &Array, places: usize) -> usize {
    index.bits[0].min(places.saturating_sub(1) as u64) as usize
}

/// Checks that operands have the type that `check_index` returns.
pub fn are_checked(args: &[&ArrayType]) -> Result<(), Mismatch> {
    match args.iter().find(|ty| ty.rank() != 0 || ty.dtype != DType::I64) {
        Some(ty) => Err(Mismatch::new(Code::E0203, must_be("a checked index", "a scalar i64", ty))),
        None => Ok(()),
    }
}

impl Index {
    /// Whether an indexed dimension is empty; then the check before has stopped the program.
    fn has_no_place(&self, shape: &[usize]) -> bool {
        self.dims.iter().any(|&dim| shape[dim] == 0)
    }
}

impl Semantics for Index {
    fn name(&self) -> &'static str {
        "index"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], _: &[&ArrayType]) -> Factors {
        let mut rule = Factors::new();
        let (mut operand, mut result) = (Vec::new(), Vec::new());
        let found = FactorKind::one_has(args[0].dtype);
        for (dim, &size) in args[0].shape.iter().enumerate() {
            let indexed = self.dims.contains(&dim);
            let factor = rule.add(size, if indexed { found } else { FactorKind::Pass });
            operand.push(vec![factor]);
            if !indexed {
                result.push(vec![factor]);
            }
        }
        rule.operands.push(operand);
        rule.operands.resize(args.len(), Vec::new());
        rule.results.push(result);
        rule
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let types: Vec<&ArrayType> = args.iter().map(|array| &array.ty).collect();
        let ty = self.infer(&types).expect("the checker has typed the index").swap_remove(0);
        if self.has_no_place(args[0].shape()) {
            return Ok(vec![Array::from_fn(ty, |_| 0)]);
        }
        Ok(vec![Array::from_fn(ty, |index| {
            let mut kept = index.iter().copied();
            let own = (0..args[0].ty.rank()).map(|dim| match self.dims.iter().position(|&indexed| indexed == dim) {
                Some(at) => checked(args[1 + at], args[0].shape()[dim]),
                None => kept.next().expect("the result has every dimension that is not indexed"),
            });
            let own: Vec<usize> = own.collect();
            args[0].get(&own)
        })])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        format!("index({}, dims={})", args.join(", "), shape::tuple(&self.dims))
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }
}

impl Infer for Index {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        are_checked(&args[1..])?;
        let ordered = self.dims.windows(2).all(|pair| pair[0] < pair[1]);
        if self.dims.len() + 1 != args.len() || !ordered || self.dims.iter().any(|&dim| dim >= args[0].rank()) {
            let message =
                format!("{} indices do not match the dimensions {:?} of {}", args.len() - 1, self.dims, args[0]);
            return Err(Mismatch::new(Code::E0206, message));
        }
        let kept = args[0].shape.iter().enumerate().filter(|(dim, _)| !self.dims.contains(dim));
        let shape: Vec<usize> = kept.map(|(_, &size)| size).collect();
        Ok(vec![ArrayType::of(args[0].dtype, shape)])
    }
}

impl Rules for Index {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Linear(self)
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::Rule(self)
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Point(self)
    }

    fn properties(&self) -> Properties<'_> {
        Properties {
            effect: Effect::None,
            manual: Manual::Local,
            placement: Placement::Follows,
            linear: Linear::Places(&[0]),
            combines: Combines::Places(self.dims.clone()),
            elements: Elements::Chosen(self),
            keeps_alignment: true,
        }
    }

    fn stablehlo(&self) -> Exported<'_> {
        Exported::Written(self)
    }

    fn named_axes(&mut self) -> Vec<NamedAxes<'_>> {
        Vec::new()
    }
}

impl WritesStablehlo for Index {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], results: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        if self.has_no_place(&args[0].ty.shape) {
            return Ok(vec![hlo.splat(results[0].dtype(), 0, &results[0].shape)]);
        }
        let given: Vec<(usize, HloValue)> = self.dims.iter().copied().zip(args[1..].iter().cloned()).collect();
        let starts = hlo.starts(args[0].ty.rank(), &given);
        let size = |(dim, &size): (usize, &usize)| if self.dims.contains(&dim) { 1 } else { size };
        let sizes: Vec<usize> = args[0].ty.shape.iter().enumerate().map(size).collect();
        let region = hlo.dynamic_slice(&args[0], &starts, &sizes);
        Ok(vec![hlo.reshape(&region, &results[0].shape)])
    }
}

impl ChosenRegion for Index {
    fn region(&self) -> Vec<(usize, usize)> {
        self.dims.iter().map(|&dim| (dim, 1)).collect()
    }
}

impl Batched for Index {
    fn batched(
        &self,
        build: &mut CallBuilder,
        _: &Stmt,
        batch: &Batch,
        operands: &[BatchedOperand],
    ) -> Result<Vec<Value>, Diagnostic> {
        let args: Vec<Value> = operands.iter().map(|operand| operand.value()).collect();
        if !operands[1..].iter().any(|place| place.is_mapped()) {
            return build.emit(Index { dims: shifted(&self.dims) }, &args);
        }
        let gather = Gather::new(self.dims.clone(), Vec::new(), 0);
        build.emit(gather.in_batch(batch, operands[0].is_mapped(), true), &args)
    }
}

impl Point for Index {
    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem {
        let ty = kernel.context.ty(stmt.args[0]);
        if self.has_no_place(ty.shape()) {
            return kernel.constant(ty.dtype(), 0);
        }
        let mut kept = index.iter().cloned();
        let mut own = Vec::new();
        let mut tests = Vec::new();
        for dim in 0..ty.rank() {
            own.push(match self.dims.iter().position(|&indexed| indexed == dim) {
                Some(at) => {
                    let place = kernel.dynamic_index(stmt.args[1 + at], ty.shape()[dim]);
                    kernel.index_in_block(ty, dim, &place, &mut tests)
                }
                None => kept.next().expect("the result has every dimension that is not indexed"),
            });
        }
        kernel.operand_if(stmt.args[0], &own, &tests)
    }

    fn reads(&self, operand: usize, _: &[&ArrayType]) -> Reads {
        if operand == 0 { Reads::Once } else { Reads::Buffer }
    }
}

impl Call for Index {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// Elements at dynamic places.
        index(x: Array, [rest] places: Array, [named] dims: Ints = None) in_dumps "" "write x[i]";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let dims = args.optional_ints("dims")?;
        let value = args.array(build, "x")?;
        let rank = build.ty(value).rank();
        let Some(dims) = dims else {
            return Err(Diagnostic::error(
                Code::E0227,
                args.span,
                "`index` requires `dims=`; write x[i] to index an array",
            ));
        };
        let dims = shape::axes(&dims, rank, args.span)?;
        let mut operands = vec![value];
        for arg in args.rest("places") {
            operands.push(build.materialize(&arg.term, Some(DType::I64), arg.span)?);
        }
        Ok(Term::Array(build.emit1(Index { dims }, &operands)?))
    }
}
