//! Stable sorts of lines along a dimension: `sort argsort lexsort top_k`.
//!
//! Every dimension passes. A device sorts the lines of its own block, by a function of the runtime. If the dimension is split,
//! `distribute_sorts` replaces the sort by two statements. `SortBlocks` sorts each block, and
//! `MergeSorted` takes from the sorted blocks of all devices exactly the elements of the device's block of the
//! result.
//!
//! NaNs are equal to each other and larger than all numbers; -0 and 0 are equal: the order of `jax.lax.sort`. For `jax.lax.top_k` -0 is less than 0.

use crate::cast::Cast;
use crate::gather::Gather;
use crate::iota::Iota;
use crate::reshape::reshape;
use spmdc_abi::{LibraryFunction, SortLines};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::array::{Array, Trap};
use spmdc_ir::call::Call;
use spmdc_ir::call::arg::{Arg, as_int};
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::lower::calls::{CallArray, LibraryCalls};
use spmdc_ir::lower::work::Lowering;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::{Func, Stmt, Value};
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::derivative::{Derivative, Tangents};
use spmdc_ir::rules::{
    Combines, Definitions, Effect, Elements, Infer, Library, Linear, Lowered, Manual, NamedAxes, NestLowering,
    Placement, Properties, Reads, Rules, Semantics, Typing,
};
use spmdc_ir::shape;
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_kernel::number;
use spmdc_layout::cost;
use spmdc_layout::factors::{FactorKind, Factors};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::sharding::block_range;
use spmdc_layout::types::{ArrayType, DType};
use std::cmp::Ordering;

/// Lines along a dimension in the order of keys.
#[derive(Clone, Debug, PartialEq)]
pub struct LineOrder {
    /// The number of operands that are keys; the first decides first. The others follow the keys.
    pub keys: usize,
    /// The dimension of the lines.
    pub axis: usize,
    /// Whether the largest comes first. Equal elements stay in their order.
    pub descending: bool,
    /// Whether -0 is less than 0, not equal to it.
    pub signed_zeros: bool,
}

/// `sort_together(x, y, keys=1, axis=0)`: one result for each operand, in the order of the keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Sort(pub LineOrder);

impl LineOrder {
    /// E0206 or E0205 unless the operands have one shape with this dimension; E0215 for keys without an order.
    pub fn check(&self, args: &[&ArrayType]) -> Result<(), Mismatch> {
        let Some(first) = args.first().filter(|_| (1..=args.len()).contains(&self.keys)) else {
            return Err(Mismatch::new(Code::E0205, "a sort requires a key"));
        };
        if self.axis >= first.rank() {
            return Err(Mismatch::new(Code::E0206, format!("a sort cannot run along axis {} of {first}", self.axis)));
        }
        if let Some(other) = args.iter().find(|other| other.shape != first.shape) {
            return Err(Mismatch::new(
                Code::E0205,
                format!("arrays sorted together must have the same shape; found {first} and {other}"),
            ));
        }
        if let Some(key) = args[..self.keys].iter().find(|key| key.dtype == DType::Key) {
            return Err(Mismatch::new(Code::E0215, format!("{} has no order", key.dtype.name())));
        }
        if i32::try_from(first.shape[self.axis]).is_err() {
            return Err(Mismatch::new(
                Code::E0205,
                format!("a sort handles at most 2^31 - 1 elements along its axis; found {first}"),
            ));
        }
        Ok(())
    }

    /// The order of two elements of the operands.
    pub fn compare(&self, args: &[&Array], a: usize, b: usize) -> Ordering {
        let keys = args[..self.keys].iter().map(|key| self.compare_keys(key.dtype(), key.bits[a], key.bits[b]));
        let order = keys.fold(Ordering::Equal, Ordering::then);
        if self.descending { order.reverse() } else { order }
    }

    /// The order of two elements of a key: NaN is the largest.
    fn compare_keys(&self, dtype: DType, a: u64, b: u64) -> Ordering {
        if !dtype.is_float() {
            return number::to_int(dtype, a).cmp(&number::to_int(dtype, b));
        }
        let (a, b) = (number::to_float(dtype, a), number::to_float(dtype, b));
        let order = a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()));
        let are_zeros = self.signed_zeros && a == 0.0 && b == 0.0;
        if are_zeros { a.total_cmp(&b) } else { order }
    }

    /// The operands with each line sorted in `parts` blocks.
    pub fn sorted(&self, args: &[&Array], parts: usize) -> Vec<Array> {
        let mut results: Vec<Array> = args.iter().map(|&array| array.clone()).collect();
        let size = args[0].shape()[self.axis];
        let (firsts, stride) = shape::lines(args[0].shape(), self.axis);
        for first in firsts {
            for part in 0..parts {
                let block = block_range(size, parts, part);
                let mut order: Vec<usize> = block.clone().map(|at| first + at * stride).collect();
                order.sort_by(|&a, &b| self.compare(args, a, b));
                for (at, from) in block.zip(order) {
                    for (result, array) in results.iter_mut().zip(args) {
                        result.bits[first + at * stride] = array.bits[from];
                    }
                }
            }
        }
        results
    }

    /// The text of its attributes in a dump.
    pub fn print(&self) -> String {
        let descending = if self.descending { ", descending=true" } else { "" };
        let signed_zeros = if self.signed_zeros { ", signed_zeros=true" } else { "" };
        format!("keys={}, axis={}{descending}{signed_zeros}", self.keys, self.axis)
    }

    /// Reads the attributes as [`LineOrder::print`] writes them.
    pub fn read(args: &mut Args<'_>) -> Result<LineOrder, Diagnostic> {
        let (keys, axis) = (args.int("keys")?, args.int("axis")?);
        let descending = args.optional_bool("descending")?.unwrap_or(false);
        let signed_zeros = args.optional_bool("signed_zeros")?.unwrap_or(false);
        let number = |number: i64| {
            usize::try_from(number)
                .map_err(|_| Diagnostic::error(Code::E0227, args.span, "a sort requires keys and an axis"))
        };
        Ok(LineOrder { keys: number(keys)?, axis: number(axis)?, descending, signed_zeros })
    }

    /// The order as a function of the runtime takes it.
    pub fn lines(&self) -> SortLines {
        SortLines { keys: self.keys, descending: self.descending, signed_zeros: self.signed_zeros }
    }

    /// The scratch memory for sorting lines of up to `len` elements.
    pub fn scratch(&self, lowering: &mut Lowering<'_>, results: &[Value], len: usize) -> CallArray {
        let dtypes: Vec<DType> = results.iter().map(|&result| lowering.ty(result).dtype()).collect();
        let contiguous = lowering.call_array(results[0], &[self.axis]).dims[0].stride == 1;
        let (dtype, elements) = self.lines().scratch(&dtypes, contiguous, len as u64);
        lowering.call_scratch(results[0], &[self.axis], dtype, elements as usize)
    }

    /// Sorts the lines of each device's block.
    pub fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) {
        let axis = [self.axis];
        let len = lowering.ty(stmt.args[0]).block_shape(lowering.mesh)[self.axis];
        let arrays = |values: &[Value]| values.iter().map(|&value| lowering.call_array(value, &axis)).collect();
        let (operands, mut results): (_, Vec<CallArray>) = (arrays(&stmt.args), arrays(&stmt.results));
        let batch = lowering.call_batch(stmt.results[0], &axis);
        results.push(self.scratch(lowering, &stmt.results, len));
        lowering.library(LibraryCalls {
            function: LibraryFunction::Sort(self.lines()),
            operands,
            results,
            batch,
            owners: None,
            cost: cost::of_sort(len, stmt.args.len()),
            checks: Vec::new(),
        });
    }
}

/// The comparisons of a sort of lines.
pub fn comparisons(args: &[&ArrayType], axis: usize) -> u64 {
    let len = args[0].shape[axis].max(2) as f64;
    (args[0].len() as f64 * len.log2().ceil()) as u64
}

impl Semantics for Sort {
    fn name(&self) -> &'static str {
        "sort_together"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        let mut rule = Factors::new();
        let dims: Vec<Vec<usize>> = args[0].shape.iter().map(|&size| vec![rule.add(size, FactorKind::Pass)]).collect();
        rule.operands = vec![dims.clone(); args.len()];
        rule.results = vec![dims; results.len()];
        rule
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        Ok(self.0.sorted(args, 1))
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        format!("sort_together({}, {})", args.join(", "), self.0.print())
    }

    fn flops(&self, args: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        comparisons(args, self.0.axis)
    }
}

impl Infer for Sort {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        self.0.check(args)?;
        Ok(args.iter().map(|&array| array.clone()).collect())
    }
}

/// The properties of sorts.
pub fn properties(elements: Elements<'static>) -> Properties<'static> {
    Properties {
        effect: Effect::None,
        manual: Manual::Local,
        placement: Placement::Follows,
        linear: Linear::No,
        combines: Combines::Nothing,
        elements,
        keeps_alignment: false,
    }
}

impl Rules for Sort {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Tangents(self)
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::shifted(Sort(LineOrder { axis: self.0.axis + 1, ..self.0.clone() }))
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Library(self)
    }

    fn properties(&self) -> Properties<'_> {
        properties(Elements::Ordered(self.0.axis))
    }

    fn stablehlo(&self) -> Exported<'_> {
        Exported::Written(self)
    }

    fn named_axes(&mut self) -> Vec<NamedAxes<'_>> {
        Vec::new()
    }
}

impl WritesStablehlo for Sort {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], _: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        let LineOrder { keys, axis, descending, signed_zeros } = self.0;
        Ok(hlo.sort(args, axis, (keys, descending, signed_zeros)))
    }
}

impl Tangents for Sort {
    /// The elements of the tangents in the order of the keys.
    fn tangents(
        &self,
        build: &mut CallBuilder,
        stmt: &Stmt,
        given: &[Option<Value>],
    ) -> Result<Vec<Option<Value>>, Diagnostic> {
        let axis = self.0.axis;
        let mut keys = stmt.args[..self.0.keys].to_vec();
        keys.push(places(build, stmt.args[0], axis)?);
        let order = build.emit(self.clone(), &keys)?[self.0.keys];
        let order = build.emit1(Cast { to: DType::I64 }, &[order])?;
        let rank = build.ty(order).rank();
        let batch: Vec<(usize, usize)> = (0..rank).filter(|&dim| dim != axis).map(|dim| (dim, dim)).collect();
        let mut found = Vec::new();
        for tangent in given {
            found.push(match tangent {
                Some(tangent) => Some(build.emit1(Gather::new(vec![axis], batch.clone(), 0), &[*tangent, order])?),
                None => None,
            });
        }
        Ok(found)
    }
}

impl NestLowering for Sort {
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        self.0.lower(lowering, stmt);
        Ok(())
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Buffer
    }
}

impl Library for Sort {
    fn streams(&self, _: usize, _: &Stmt, _: &Stmt, _: &Func, _: &Mesh) -> bool {
        false
    }

    fn computes<'a>(&self, _: usize, _: &Stmt, _: &'a Func, _: &Mesh, _: Definitions<'a, '_>) -> Vec<Value> {
        Vec::new()
    }
}

/// Emits a sort of operands of one shape.
pub fn sort_together(build: &mut CallBuilder, operands: &[Value], order: LineOrder) -> Result<Vec<Value>, Diagnostic> {
    build.emit(Sort(order), operands)
}

/// The index of each element along a dimension, i32.
pub fn places(build: &mut CallBuilder, like: Value, axis: usize) -> Result<Value, Diagnostic> {
    let ty = ArrayType::new(DType::I32, build.ty(like).shape());
    build.emit1(Iota { ty, axis }, &[])
}

/// The results of a call as a term.
pub fn term(results: &[Value]) -> Term {
    Term::of_results(results)
}

impl Call for Sort {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The elements in ascending or descending order; equal elements keep theirs, and NaN is the largest. Without an axis, of the flattened array.
        sort(a: Array, axis: Of("int or None") = -1, [named] stable: Bool = true, [named] descending: Bool = false), NumbersAndBools, Refused(ORDER), "(x: f32[4, 6]) { sort(x, axis=1) }";
        /// The indices of the elements in ascending or descending order; without an axis, in the flattened array.
        argsort(a: Array, axis: Of("int or None") = -1, [named] stable: Bool = true, [named] descending: Bool = false), NumbersAndBools, Refused(ORDER), "(x: f32[4, 6]) { argsort(x, axis=1) }";
        /// Arrays in the order of the first ones.
        sort_together([rest] operands: Array, [named] keys: Int = 1, [named] axis: Int = 0, [named] descending: Bool = false, [named] signed_zeros: Bool = false)
        in_dumps "" "write `sort`, `argsort` or `lexsort`";
    };

    fn call(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        if name == "sort_together" {
            let order = LineOrder::read(args)?;
            let operands = args.arrays(build, "operands")?;
            return Ok(term(&sort_together(build, &operands, order)?));
        }
        let value = args.array(build, "a")?;
        let axis = match args.take("axis") {
            None => Some(-1),
            Some(Arg { term: Term::Nothing, .. }) => None,
            Some(arg) => Some(as_int(&arg, "axis")?),
        };
        // All sorts are stable.
        args.optional_bool("stable")?;
        let descending = args.optional_bool("descending")?.unwrap_or(false);
        let (value, axis) = line(build, value, axis, args)?;
        let order = LineOrder { keys: 1, axis, descending, signed_zeros: false };
        if name == "sort" {
            return Ok(Term::Array(sort_together(build, &[value], order)?[0]));
        }
        let places = places(build, value, axis)?;
        Ok(Term::Array(sort_together(build, &[value, places], order)?[1]))
    }
}

/// The array and the dimension of its lines; without an axis the flattened array.
fn line(
    build: &mut CallBuilder,
    value: Value,
    axis: Option<i64>,
    args: &Args<'_>,
) -> Result<(Value, usize), Diagnostic> {
    let Some(axis) = axis else {
        let len = build.ty(value).array.len();
        return Ok((reshape(build, value, &[len])?, 0));
    };
    let axis = shape::axis(axis, build.ty(value).rank(), args.span)?;
    Ok((value, axis))
}
