//! `check_indices(i, n)`: an array of indices into a dimension of size `n`, as i64 counted from the start.
//!
//! It is elementwise, so it is fused into the op that uses the indices. Kernels check each element and continue, as for a division by zero.
//! The program stops at the end of the kernel, with the first failure in source order, and among these with the least index. A scalar index
//! goes through `check_index` instead, which all devices check in the same way before any element is taken.

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
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::Stmt;
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::derivative::Derivative;
use spmdc_ir::rules::{
    Combines, Effect, Elements, Infer, Linear, Lowered, Manual, NamedAxes, Placement, Point, Properties, Reads, Rules,
    Semantics, Typing, one_each,
};
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_kernel::loops::{Affine, Elem};
use spmdc_layout::factors::Factors;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{ArrayType, DType};

/// `check_indices(i, 8)`: indices into a dimension of 8 elements. Negative ones count from its end; any other index out of bounds
/// stops the program.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckIndices {
    /// The size of the indexed dimension.
    pub extent: usize,
}

impl Semantics for CheckIndices {
    fn name(&self) -> &'static str {
        "check_indices"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        Factors::elementwise(&[&args[0].shape], &results[0].shape)
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let extent = self.extent as i128;
        let counted = |&index: &i128| counted_index(index, extent, 1);
        let indices = args[0].ints();
        if let Some(index) = indices.iter().filter(|index| counted(index).is_none()).min() {
            return Err(Trap { code: Code::E0801, message: out_of_bounds(*index, extent, 1) });
        }
        let bits = indices.iter().filter_map(counted).map(|index| index as u64).collect();
        Ok(vec![Array::new(args[0].ty.with_dtype(DType::I64), bits)])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        format!("check_indices({}, {})", args[0], self.extent)
    }

    fn flops(&self, _: &[&ArrayType], results: &[&ArrayType]) -> u64 {
        one_each(results)
    }
}

impl Infer for CheckIndices {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        if !args[0].dtype.is_integer() {
            return Err(Mismatch::new(Code::E0203, must_be("indices", "integers", args[0])));
        }
        if i64::try_from(self.extent).is_err() {
            return Err(Mismatch::new(Code::E0218, "the size of a dimension does not fit into 64 bits"));
        }
        Ok(vec![args[0].with_dtype(DType::I64)])
    }
}

impl Rules for CheckIndices {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Zero
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::stops(0, 0, Batching::Elementwise)
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Point(self)
    }

    fn properties(&self) -> Properties<'_> {
        Properties {
            effect: Effect::Stops,
            manual: Manual::Local,
            placement: Placement::Follows,
            linear: Linear::No,
            combines: Combines::Nothing,
            elements: Elements::Elementwise,
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

impl WritesStablehlo for CheckIndices {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], _: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        Ok(vec![counted_from_start(hlo, &args[0], self.extent)])
    }
}

impl Point for CheckIndices {
    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem {
        let dtype = kernel.context.ty(stmt.args[0]).dtype();
        let arg = kernel.operand(stmt.args[0], index);
        kernel.check_index(dtype, arg, self.extent)
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Once
    }
}

impl Call for CheckIndices {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// An array of dynamic indices that are valid, or the end of the program.
        check_indices(indices: Array, extent: Int) in_dumps "" "write x[indices]: every index is checked";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let indices = args.array(build, "indices")?;
        let extent = args.int("extent")?;
        let extent = usize::try_from(extent)
            .map_err(|_| Diagnostic::error(Code::E0227, args.span, "the extent of an index must be at least 0"))?;
        Ok(Term::Array(build.emit1(CheckIndices { extent }, &[indices])?))
    }
}

/// Indices as i64 counted from the start, which is all that is left of their check: StableHLO moves invalid ones to the ends.
pub fn counted_from_start(hlo: &mut HloBuilder<'_>, indices: &HloValue, extent: usize) -> HloValue {
    let counted = hlo.convert(indices, DType::I64);
    if indices.ty.dtype().is_unsigned_integer() {
        return counted;
    }
    let zero = hlo.whole_like(&counted, 0);
    let is_from_end = hlo.compare("LT", &counted, &zero);
    let size = hlo.whole_like(&counted, extent as i64);
    let moved = hlo.binary("stablehlo.add", &counted, &size);
    hlo.select(&is_from_end, &moved, &counted)
}
