//! `read_rows(data, i, len=4)`: rows of a stream, a parameter that stays in its file. `data[i]`, `data[i : i + 4]` and `take(data, i)`
//! become it.
//!
//! No device holds a stream: the runtime reads the rows where they are needed, and each device reads its part. So any layout of the rows is
//! free, as for random numbers, and a row that is needed in two layouts is read twice. The type of a stream is an array type with a mark
//! ([`ArrayType::is_stream`]), and no other op takes it, which `program/typing.rs` ensures.

use crate::batching::BatchForms;
use crate::dynamic_slice::DynamicSlice;
use crate::elementwise::Binary;
use crate::gather::Gather;
use crate::index::are_checked;
use crate::iota::Iota;
use crate::reshape::reshape;
use crate::reshard::{Reshard, explicit_out};
use spmdc_abi::{LibraryFunction, Scalar, StreamRows};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::must_be;
use spmdc_ir::array::{Array, Trap};
use spmdc_ir::call::Call;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::lower::calls::{CallArray, LibraryCalls};
use spmdc_ir::lower::work::Lowering;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::batching::{Batch, Batched, BatchedOperand, Batching};
use spmdc_ir::rules::derivative::Derivative;
use spmdc_ir::rules::{
    Combines, Effect, Elements, Infer, Linear, Lowered, Manual, NamedAxes, NestLowering, Placement, Properties, Reads,
    Rules, Semantics, Typing,
};
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_kernel::scalar::BinaryOp;
use spmdc_layout::cost;
use spmdc_layout::factors::{FactorKind, Factors};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::sharding::{DimSharding, Sharding};
use spmdc_layout::types::{ArrayType, DType};

/// `read_rows(data, i, len=4)`: the rows of a stream from a checked index on; without `len` those at checked indices.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadRows {
    /// The number of rows from the index on; None: the index, an array of any rank, has the index of each row.
    pub len: Option<usize>,
    /// The layout on explicit axes, from the type of the stream or the user's `out=`.
    pub out: Option<Sharding>,
}

impl ReadRows {
    /// The number of dimensions before the dimensions of a row.
    fn indexed(&self, index: &ArrayType) -> usize {
        if self.len.is_some() { 1 } else { index.rank() }
    }

    /// Whether the operands have the types that the op takes, but for the mark of the stream.
    fn shape(&self, args: &[&ArrayType]) -> Result<Vec<usize>, Mismatch> {
        let [stream, index] = args else {
            return Err(Mismatch::new(Code::E0201, must_be("rows", "read at one index", args.len())));
        };
        if stream.rank() == 0 {
            return Err(Mismatch::new(Code::E0205, format!("`{stream}` has no rows")));
        }
        if index.dtype != DType::I64 {
            return Err(Mismatch::new(Code::E0203, must_be("checked indices", "i64", index)));
        }
        if let Some(len) = self.len {
            are_checked(&args[1..])?;
            if len > stream.shape[0] {
                return Err(Mismatch::new(Code::E0205, format!("`{stream}` has fewer than {len} rows")));
            }
            return Ok([&[len], &stream.shape[1..]].concat());
        }
        Ok([&index.shape, &stream.shape[1..]].concat())
    }
}

impl Semantics for ReadRows {
    fn name(&self) -> &'static str {
        "read_rows"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    /// The result does not share dimensions with the stream: a device reads its own part.
    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        let mut rule = Factors::new();
        let result: Vec<Vec<usize>> =
            results[0].shape.iter().map(|&size| vec![rule.add(size, FactorKind::Pass)]).collect();
        let whole = args[0].shape.iter().map(|&size| vec![rule.add(size, FactorKind::Whole)]).collect();
        rule.operands.push(whole);
        rule.operands.push(result[..args[1].rank()].to_vec());
        rule.results.push(result);
        rule
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        match self.len {
            Some(len) => DynamicSlice { dims: vec![(0, len)] }.eval(args),
            None => Gather::new(vec![0], Vec::new(), 0).eval(args),
        }
    }

    fn print(&self, args: &[String], mesh: &Mesh) -> String {
        let len = self.len.map_or(String::new(), |len| format!(", len={len}"));
        let out = self.out.as_ref().map_or(String::new(), |out| format!(", out={}", out.display(mesh)));
        format!("read_rows({}{len}{out})", args.join(", "))
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }
}

impl Infer for ReadRows {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        let shape = self.shape(args)?;
        if !args[0].is_stream {
            return Err(Mismatch::new(
                Code::E0203,
                must_be("rows", "read from a stream", format_args!("`{}`", args[0])),
            ));
        }
        Ok(vec![ArrayType::of(args[0].dtype, shape)])
    }
}

impl Rules for ReadRows {
    /// The contents of a file are not computed.
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Zero
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::Rule(self)
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Nest(self)
    }

    fn properties(&self) -> Properties<'_> {
        Properties {
            effect: Effect::None,
            manual: Manual::Local,
            placement: Placement::Out(self.out.as_ref()),
            linear: Linear::No,
            combines: Combines::Nothing,
            elements: Elements::Rows,
            keeps_alignment: false,
        }
    }

    fn stablehlo(&self) -> Exported<'_> {
        Exported::Written(self)
    }

    fn named_axes(&mut self) -> Vec<NamedAxes<'_>> {
        self.out.iter_mut().map(NamedAxes::Layout).collect()
    }
}

impl WritesStablehlo for ReadRows {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], results: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        match self.len {
            Some(len) => DynamicSlice { dims: vec![(0, len)] }.write(hlo, args, results),
            None => Gather::new(vec![0], Vec::new(), 0).write(hlo, args, results),
        }
    }
}

impl Batched for ReadRows {
    /// The rows of each element of the batch: those at an array of indices.
    fn batched(
        &self,
        build: &mut CallBuilder,
        _: &Stmt,
        batch: &Batch,
        operands: &[BatchedOperand],
    ) -> Result<Vec<Value>, Diagnostic> {
        let stream = operands[0].value();
        let mut places = batch.mapped(build, operands[1])?;
        if let Some(len) = self.len {
            let firsts = reshape(build, places, &[batch.size, 1])?;
            let steps = build.emit1(Iota { ty: ArrayType::new(DType::I64, &[len]), axis: 0 }, &[])?;
            places = build.emit1(Binary(BinaryOp::Add), &[firsts, steps])?;
        }
        let mut out = self.out.clone();
        out.iter_mut().for_each(|out| batch.add_to(out, 0));
        build.emit(ReadRows { len: None, out }, &[stream, places])
    }
}

impl NestLowering for ReadRows {
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        let (stream, index, result) = (stmt.args[0], stmt.args[1], stmt.results[0]);
        let Some((param, cut)) = lowering.func.stream_source(stream) else {
            let message = format!("`{}` is not a parameter of the program", lowering.ty(stream).display(lowering.mesh));
            return Err(Diagnostic::error(Code::E0999, stmt.origin.span, message));
        };
        let (ty, dims) = (lowering.ty(result), lowering.ty(index).rank());
        let indexed = self.indexed(&lowering.ty(index).array);
        debug_assert_eq!(ty.rank(), indexed + cut.len() - 1, "a row has the dimensions of the stream but the first");
        let kernel = lowering.kernel();
        let mut first: Vec<Scalar> = cut.into_iter().map(Scalar::BlockStart).collect();
        // The first index of the result is counted from that of the first row, or has an index of its own.
        let counted = if self.len.is_some() { 0..ty.rank() } else { dims..ty.rank() };
        for (at, dim) in (usize::from(self.len.is_none())..).zip(counted) {
            let own = kernel.context.block_start(ty, dim);
            let from = std::mem::replace(&mut first[at], Scalar::Const(0));
            first[at] = Scalar::Add(Box::new(from), Box::new(own));
        }
        let index = match self.len {
            Some(_) => CallArray { value: index, batch: Vec::new(), dims: Vec::new() },
            None => lowering.call_array(index, &(0..dims).collect::<Vec<_>>()),
        };
        let rows = lowering.call_array(result, &(0..ty.rank()).collect::<Vec<_>>());
        let step = StreamRows {
            param: u32::try_from(param).expect("a program has fewer parameters"),
            consecutive: self.len.is_some(),
            has_several: indexed > 0,
            first,
            last: (lowering.ty(stream).shape()[0] as u64).saturating_sub(self.len.unwrap_or(1) as u64),
        };
        lowering.library(LibraryCalls {
            function: LibraryFunction::Rows(step),
            operands: vec![index],
            results: vec![rows],
            batch: Vec::new(),
            owners: None,
            cost: cost::of_reading(ty.block_bytes(lowering.mesh)),
            checks: Vec::new(),
        });
        Ok(())
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Buffer
    }
}

/// The rows from a checked index on, or the rows at checked indices; in the layout `out`, or in the layout of the stream's type.
pub fn rows(
    build: &mut CallBuilder,
    stream: Value,
    (len, at): (Option<usize>, Value),
    out: Option<Sharding>,
) -> Result<Value, Diagnostic> {
    let rank = build.ty(at).rank();
    let out = out.or_else(|| build.layout_of_rows(stream).map(|layout| of_rows(layout, len.is_some(), rank)));
    let told = out.as_ref().and_then(|out| explicit_out(build, out));
    let read = build.emit1(ReadRows { len, out: told.clone() }, &[stream, at])?;
    match out {
        Some(out) if told.as_ref() != Some(&out) => build.emit1(Reshard::pin(out), &[read]),
        Some(_) | None => Ok(read),
    }
}

/// The layout of rows that are read from a stream with this layout in its type. The axes of its first dimension split the rows, of
/// several dimensions of indices the first.
fn of_rows(layout: &Sharding, are_consecutive: bool, rank: usize) -> Sharding {
    let (rows, row) = layout.dims.split_first().expect("a stream has rows");
    let mut dims = if are_consecutive { vec![rows.clone()] } else { vec![DimSharding::default(); rank] };
    if let (Some(first), false) = (dims.first_mut(), are_consecutive) {
        first.clone_from(rows);
    }
    dims.extend_from_slice(row);
    Sharding { dims, ..layout.clone() }
}

impl Call for ReadRows {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// Rows of a stream, from an index on or at indices.
        read_rows(stream: Array, rows: Array, [named] len: Int = None, [named] out: Sharding = None)
        in_dumps "" "write data[i], data[i : i + 4] or take(data, i)";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let len = args.optional_int("len")?.map(usize::try_from).transpose();
        let len =
            len.map_err(|_| Diagnostic::error(Code::E0218, args.span, "the number of rows must be at least 0"))?;
        let out = args.optional_sharding("out")?.map(|(out, _)| out.sharding);
        let stream = args.array(build, "stream")?;
        let rows = args.required("rows")?;
        let rows = build.materialize(&rows.term, Some(DType::I64), rows.span)?;
        Ok(Term::Array(build.emit1(ReadRows { len, out }, &[stream, rows])?))
    }
}
