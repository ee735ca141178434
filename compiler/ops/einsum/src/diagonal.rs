//! Diagonals: `einsum("ii->i", x)`, `diag`, `trace`.
//!
//! Of the dimensions on the diagonal the first one passes: the diagonal is split like it. If another one is split, each device has
//! the part of the diagonal in its block, and zeros elsewhere, so that a sum over devices completes it. If the diagonal itself is
//! summed, as in `trace`, each device sums its part. All other dimensions pass through.

use spmdc_abi::{ReduceOp, Scalar};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::{must_be, undefined};
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
use spmdc_ir::rules::batching::{Batching, shifted};
use spmdc_ir::rules::derivative::{Derivative, LinearMap, Linearity};
use spmdc_ir::rules::{
    Combines, Effect, Elements, Infer, Linear, Lowered, Manual, NamedAxes, NestLowering, Placement, Point, Properties,
    Reads, Rules, Semantics, Typing,
};
use spmdc_ir::shape;
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_kernel::loops::{Affine, Combine, Elem};
use spmdc_kernel::scalar::{BinaryOp, CompareOp};
use spmdc_layout::blocks::table;
use spmdc_layout::factors::{FactorKind, Factors};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{ArrayType, DType, Type};
use spmdc_ops::arithmetic::Arithmetic;
use spmdc_ops::broadcast::broadcast;
use spmdc_ops::cast::cast;
use spmdc_ops::concatenate::concatenate;
use spmdc_ops::constant::Constant;
use spmdc_ops::elementwise::{Binary, Compare, Select};
use spmdc_ops::iota::Iota;
use spmdc_ops::reduce::{Reduce, accumulated, summed_in};
use spmdc_ops::reshape::reshape;
use spmdc_ops::slice::{SliceRange, slice};
use spmdc_ops::transpose::transpose;

/// Takes the elements whose indices agree in dimensions of the same number, and sums some of the remaining dimensions.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagonal {
    /// For each operand dimension, the dimension of the diagonal it runs along; numbered by first occurrence.
    pub dims: Vec<usize>,
    /// The summed dimensions, in order; the others are the result's.
    pub summed: Vec<usize>,
}

impl Diagonal {
    /// From labels, which may repeat; the `summed` ones are reduced.
    pub fn of_labels(labels: &[char], summed: impl Fn(&char) -> bool) -> (Diagonal, Vec<char>) {
        let mut distinct: Vec<char> = Vec::new();
        let dims = labels.iter().map(|label| match distinct.iter().position(|known| known == label) {
            Some(known) => known,
            None => {
                distinct.push(*label);
                distinct.len() - 1
            }
        });
        let dims = dims.collect();
        let (summed, kept): (Vec<usize>, Vec<usize>) = (0..distinct.len()).partition(|&dim| summed(&distinct[dim]));
        let kept = kept.into_iter().map(|dim| distinct[dim]).collect();
        (Diagonal { dims, summed }, kept)
    }

    /// The dimensions of the diagonal that the result has.
    fn kept(&self) -> Vec<usize> {
        let count = self.dims.iter().max().map_or(0, |last| last + 1);
        (0..count).filter(|dim| !self.summed.contains(dim)).collect()
    }

    /// The operand dimensions that run along one of the diagonal's.
    fn along(&self, dim: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.dims.len()).filter(move |&own| self.dims[own] == dim)
    }

    /// Whether an operand dimension has the split of a result dimension.
    fn leads(&self, own: usize) -> bool {
        !self.summed.contains(&self.dims[own]) && self.along(self.dims[own]).next() == Some(own)
    }

    /// The diagonal without the sum.
    fn whole(&self) -> Diagonal {
        Diagonal { dims: self.dims.clone(), summed: Vec::new() }
    }

    fn sum(&self) -> Reduce {
        Reduce::new(ReduceOp::Sum, &self.summed, false)
    }

    /// The element at indices of the result's block and of the summed dimensions; `part` has, for each summed operand dimension,
    /// the index in this device's block.
    fn element(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine], part: &[Option<Affine>]) -> Elem {
        let (ty, result) = (kernel.context.ty(stmt.args[0]), kernel.context.ty(stmt.results[0]));
        let kept = self.kept();
        let mut tests = Vec::new();
        let mut own = Vec::new();
        for (dim, part) in part.iter().enumerate() {
            if let Some(place) = part {
                own.push(place.clone());
                continue;
            }
            let at = kept
                .iter()
                .position(|&known| known == self.dims[dim])
                .expect("every dimension has its place in the result");
            if self.leads(dim) {
                own.push(index[at].clone());
                continue;
            }
            let place = kernel.global_index(result, at, &index[at]);
            own.push(kernel.index_in_block(ty, dim, &place, &mut tests));
        }
        kernel.operand_if(stmt.args[0], &own, &tests)
    }
}

/// A device's part of a diagonal: its length, the maximum length on any device, and its start in the device's block along each of these
/// dimensions.
pub fn own_part(ty: &Type, dims: &[usize], mesh: &Mesh) -> (Scalar, usize, Vec<Scalar>) {
    let axes: Vec<u8> = dims.iter().flat_map(|&dim| &ty.sharding.dims[dim].axes).copied().collect();
    let parts = (0..mesh.size_of(&axes)).map(|position| {
        let at = mesh.positions(&axes, position);
        let block = |&dim: &usize| {
            let layout = &ty.sharding.dims[dim];
            layout.range(ty.shape()[dim], mesh.position(&layout.axes, &at), mesh)
        };
        let blocks: Vec<std::ops::Range<usize>> = dims.iter().map(block).collect();
        let start = blocks.iter().map(|block| block.start).max().unwrap_or(0);
        let end = blocks.iter().map(|block| block.end).min().unwrap_or(0);
        let len = end.saturating_sub(start);
        let begin = |block: &std::ops::Range<usize>| if len == 0 { 0 } else { (start - block.start) as i64 };
        (len as i64, blocks.iter().map(begin).collect::<Vec<i64>>())
    });
    let parts: Vec<(i64, Vec<i64>)> = parts.collect();
    let max = parts.iter().map(|(len, _)| *len).max().unwrap_or(0) as usize;
    let begins = (0..dims.len()).map(|at| table(&axes, parts.iter().map(|(_, begins)| begins[at]).collect()));
    (table(&axes, parts.iter().map(|(len, _)| *len).collect()), max, begins.collect())
}

/// Takes a diagonal. The first of its dimensions that is known to be split leads.
pub fn take(build: &mut CallBuilder, value: Value, diagonal: Diagonal) -> Result<Value, Diagnostic> {
    let layout = build.ty(value).sharding.clone();
    let mut order: Vec<usize> = (0..diagonal.dims.len()).collect();
    if !build.is_exact() {
        for first in 0..order.len() {
            let is_split = |&dim: &usize| !layout.dims[dim].axes.is_empty();
            if diagonal.leads(first)
                && !is_split(&first)
                && let Some(split) = diagonal.along(diagonal.dims[first]).find(is_split)
            {
                order.swap(first, split);
            }
        }
    }
    let value = if order.is_sorted() { value } else { transpose(build, value, &order)? };
    build.emit1(diagonal, &[value])
}

impl Semantics for Diagonal {
    fn name(&self) -> &'static str {
        "einsum"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        let mut rule = Factors::new();
        let found = FactorKind::one_has(args[0].dtype);
        let dims: Vec<usize> = results[0].shape.iter().map(|&size| rule.add(size, FactorKind::Pass)).collect();
        let kept = self.kept();
        let operand = args[0].shape.iter().enumerate().map(|(own, &size)| {
            let at = kept.iter().position(|&dim| dim == self.dims[own]).filter(|_| self.leads(own));
            vec![at.map_or_else(|| rule.add(size, found), |at| dims[at])]
        });
        let operand = operand.collect();
        rule.operands.push(operand);
        rule.results.push(dims.into_iter().map(|factor| vec![factor]).collect());
        rule
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        if !self.summed.is_empty() {
            let diagonal = self.whole().eval(args)?;
            return self.sum().eval(&[&diagonal[0]]);
        }
        let mut shape = Vec::new();
        for (&dim, &size) in self.dims.iter().zip(args[0].shape()) {
            if dim == shape.len() {
                shape.push(size);
            }
        }
        let ty = ArrayType::new(args[0].dtype(), &shape);
        Ok(vec![Array::from_fn(ty, |index| {
            let own: Vec<usize> = self.dims.iter().map(|&dim| index[dim]).collect();
            args[0].get(&own)
        })])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        let letter = |dim: usize| char::from(b'a' + dim as u8);
        let operand: String = self.dims.iter().map(|&dim| letter(dim)).collect();
        let result: String = self.kept().into_iter().map(letter).collect();
        format!("einsum(\"{operand}->{result}\", {})", args[0])
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }
}

impl Infer for Diagonal {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        let ty = args[0];
        let mut sizes: Vec<usize> = Vec::new();
        for (&dim, &size) in self.dims.iter().zip(&ty.shape) {
            match sizes.get(dim) {
                None => sizes.push(size),
                Some(&known) if known == size => {}
                Some(known) => {
                    let message =
                        format!("the diagonal of {ty} runs along dimensions of different sizes: {known} and {size}");
                    return Err(Mismatch::new(Code::E0205, message));
                }
            }
        }
        let diagonal = ArrayType::of(ty.dtype, sizes);
        if self.summed.is_empty() { Ok(vec![diagonal]) } else { self.sum().infer(&[&diagonal]) }
    }
}

impl Rules for Diagonal {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Linear(self)
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::shifted(Diagonal {
            dims: [&[0], shifted(&self.dims).as_slice()].concat(),
            summed: shifted(&self.summed),
        })
    }

    fn lowered(&self) -> Lowered<'_> {
        match self.summed.is_empty() {
            true => Lowered::Point(self),
            false => Lowered::Nest(self),
        }
    }

    fn properties(&self) -> Properties<'_> {
        Properties {
            effect: Effect::None,
            manual: Manual::Local,
            placement: Placement::Follows,
            linear: Linear::No,
            combines: Combines::Diagonal,
            elements: Elements::Other,
            keeps_alignment: self.summed.is_empty(),
        }
    }

    fn stablehlo(&self) -> Exported<'_> {
        Exported::Written(self)
    }

    fn named_axes(&mut self) -> Vec<NamedAxes<'_>> {
        Vec::new()
    }
}

impl WritesStablehlo for Diagonal {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], _: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        let rank = args[0].ty.rank();
        let first = |dim: usize| self.dims.iter().position(|&other| other == self.dims[dim]).unwrap_or(dim);
        let repeated: Vec<usize> = (0..rank).filter(|&dim| first(dim) != dim).collect();
        let mut diagonal = args[0].clone();
        if !repeated.is_empty() {
            // Keys have no order, but their numbers do.
            let dtype = args[0].ty.dtype();
            let x = if dtype == DType::Key { hlo.bitcast(&args[0], DType::U64) } else { args[0].clone() };
            let mut mask: Option<HloValue> = None;
            for &dim in &repeated {
                let [own, other] = [dim, first(dim)].map(|dim| hlo.iota(DType::I32, &x.ty.shape, dim));
                let equal = hlo.compare("EQ", &own, &other);
                mask = Some(match mask {
                    None => equal,
                    Some(known) => hlo.binary("stablehlo.and", &known, &equal),
                });
            }
            // Each element is the largest beside the least number, also -0 and NaN.
            let least = hlo.identity(ReduceOp::Max, x.ty.dtype());
            let least = hlo.broadcast(&least, &x.ty.shape);
            let kept = mask.map_or(x.clone(), |mask| hlo.select(&mask, &x, &least));
            let elements = hlo.reduce(ReduceOp::Max, &kept, &repeated);
            diagonal = hlo.bitcast(&elements, dtype);
        }
        Ok(vec![if self.summed.is_empty() { diagonal } else { hlo.reduce(ReduceOp::Sum, &diagonal, &self.summed) }])
    }
}

impl LinearMap for Diagonal {
    fn linearity(&self, _: &Stmt) -> Linearity {
        Linearity::Together(vec![0])
    }

    /// The cotangent where the indices of the dimensions on the diagonal agree, and zeros elsewhere.
    fn transposed(
        &self,
        build: &mut CallBuilder,
        stmt: &Stmt,
        _: usize,
        cotangent: Value,
    ) -> Result<Value, Diagnostic> {
        let shape = build.ty(stmt.args[0]).shape().to_vec();
        let first = |own: usize| self.along(self.dims[own]).next().expect("a dimension runs along its own number");
        let size = |own: usize| if self.leads(own) { shape[own] } else { 1 };
        let spread: Vec<usize> = (0..shape.len()).map(size).collect();
        let mut result = reshape(build, cotangent, &spread)?;
        result = broadcast(build, result, &shape)?;
        for own in (0..shape.len()).filter(|&own| first(own) != own) {
            let mut index = |axis: usize| build.emit1(Iota { ty: ArrayType::new(DType::I32, &shape), axis }, &[]);
            let (a, b) = (index(own)?, index(first(own))?);
            let agrees = Arithmetic(build).compare(CompareOp::Eq, a, b)?;
            let zero = Arithmetic(build).number(result, 0.0)?;
            result = Arithmetic(build).select(agrees, result, zero)?;
        }
        Ok(result)
    }
}

impl Point for Diagonal {
    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem {
        self.element(kernel, stmt, index, &vec![None; self.dims.len()])
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Once
    }
}

impl NestLowering for Diagonal {
    /// The result's dimensions are outer loops, this device's part of the summed ones inner loops.
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        let mut kernel = lowering.kernel();
        let (ty, result) = (kernel.context.ty(stmt.args[0]), kernel.context.ty(stmt.results[0]));
        let index = kernel.block_dims(result, false);
        let mut part = vec![None; self.dims.len()];
        for &dim in &self.summed {
            let along: Vec<usize> = self.along(dim).collect();
            let (len, max, begins) = own_part(ty, &along, kernel.context.mesh);
            let place = kernel.dim(len, max, true);
            for (own, begin) in along.into_iter().zip(begins) {
                part[own] = Some(kernel.scalar_affine(begin).plus(&place));
            }
        }
        let elem = self.element(&mut kernel, stmt, &index, &part);
        kernel.store_combined(stmt.results[0], &index, ty.dtype(), elem, Combine::Reduce(ReduceOp::Sum));
        lowering.run(kernel);
        Ok(())
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Once
    }
}

/// `trace(x)` sums the diagonal of the first two dimensions, or of `axis1` and `axis2`, and `diagonal(x)` takes it; `diag(x)` takes the diagonal of a matrix,
/// or makes a matrix from a vector.
pub struct DiagonalCalls;

impl Call for DiagonalCalls {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The sum of a diagonal of two dimensions.
        trace(x: Array, offset: Of("int") = 0, axis1: Int = 0, axis2: Int = 1), NumbersAndBools, Planes(x), "(x: f32[4, 6]) { trace(x) }";
        /// A diagonal of two dimensions, which becomes the last dimension.
        diagonal(a: Array, offset: Of("int") = 0, axis1: Int = 0, axis2: Int = 1), Any, Planes(a), "(x: f32[4, 6]) { diagonal(x, offset=1) }";
        /// A diagonal of a matrix, or the matrix with a vector on a diagonal.
        diag(x: Array, k: Of("int") = 0), Any, Planes(x), "(x: f32[4, 6]) { diag(x) }";
    };

    fn call(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let value = args.array(build, if name == "diagonal" { "a" } else { "x" })?;
        let offset = args.take(if name == "diag" { "k" } else { "offset" });
        let offset = match offset.map(|arg| arg.term) {
            None => 0,
            Some(Term::Int(offset)) => offset as i64,
            Some(other) => {
                let message = must_be("the offset of a diagonal", "an integer", other.describe());
                return Err(Diagnostic::error(Code::E0210, args.span, message));
            }
        };
        let rank = build.ty(value).rank();
        match (name, rank) {
            ("diag", 1) => Ok(Term::Array(spread(build, value, offset)?)),
            ("diag", 2) => Ok(Term::Array(diagonal(build, value, offset, false)?)),
            ("diagonal", 2..) => {
                let value = in_front(build, value, args)?;
                let first = diagonal(build, value, offset, false)?;
                let last: Vec<usize> = (1..rank - 1).chain([0]).collect();
                Ok(Term::Array(if rank == 2 { first } else { transpose(build, first, &last)? }))
            }
            ("trace", 2..) => {
                let value = in_front(build, value, args)?;
                let dtype = accumulated(build.ty(value).dtype());
                let value = cast(build, value, summed_in(dtype))?;
                let trace = diagonal(build, value, offset, true)?;
                Ok(Term::Array(cast(build, trace, dtype)?))
            }
            _ => {
                let message = undefined(format_args!("`{name}`"), format_args!("an array with {rank} dimensions"));
                Err(Diagnostic::error(Code::E0205, args.span, message))
            }
        }
    }
}

/// The array with the dimensions `axis1` and `axis2` of a call in front.
fn in_front(build: &mut CallBuilder, value: Value, args: &mut Args<'_>) -> Result<Value, Diagnostic> {
    let rank = build.ty(value).rank();
    let given = [args.optional_int("axis1")?.unwrap_or(0), args.optional_int("axis2")?.unwrap_or(1)];
    let mut order = shape::axes(&given, rank, args.span)?;
    let others: Vec<usize> = (0..rank).filter(|dim| !order.contains(dim)).collect();
    order.extend(others);
    if order.is_sorted() { Ok(value) } else { transpose(build, value, &order) }
}

/// The diagonal along the first two dimensions, `offset` columns to the right, or its sum.
fn diagonal(build: &mut CallBuilder, value: Value, offset: i64, summed: bool) -> Result<Value, Diagnostic> {
    let sizes = build.ty(value).shape().to_vec();
    let (down, right) = (offset.saturating_neg().max(0) as usize, offset.max(0) as usize);
    let len = sizes[0].saturating_sub(down).min(sizes[1].saturating_sub(right));
    let mut ranges: Vec<SliceRange> = sizes.iter().map(|&size| SliceRange::all(size)).collect();
    ranges[0] = SliceRange { start: if len == 0 { 0 } else { down }, step: 1, len };
    ranges[1] = SliceRange { start: if len == 0 { 0 } else { right }, step: 1, len };
    let square = slice(build, value, &ranges)?;
    let mut dims: Vec<usize> = (0..sizes.len() - 1).collect();
    dims.insert(1, 0);
    take(build, square, Diagonal { dims, summed: if summed { vec![0] } else { Vec::new() } })
}

/// A square matrix with the vector on its diagonal, `offset` columns to the right.
fn spread(build: &mut CallBuilder, value: Value, offset: i64) -> Result<Value, Diagnostic> {
    let (len, dtype) = (build.ty(value).shape()[0], build.ty(value).dtype());
    let size = len + offset.unsigned_abs() as usize;
    let mut padded = value;
    if offset != 0 {
        let zero = build.emit1(Constant::float(dtype, 0.0), &[])?;
        let zeros = broadcast(build, zero, &[size - len])?;
        let parts = if offset > 0 { [zeros, value] } else { [value, zeros] };
        padded = concatenate(build, &parts, 0)?;
    }
    let mut place =
        |shape: &[usize], axis: usize| build.emit1(Iota { ty: ArrayType::new(DType::I32, shape), axis }, &[]);
    let (row, column) = (place(&[size, 1], 0)?, place(&[1, size], 1)?);
    let shift = build.emit1(Constant::scalar(DType::I32, offset as u64 & 0xffff_ffff), &[])?;
    let wanted = build.emit1(Binary(BinaryOp::Add), &[row, shift])?;
    let on = build.emit1(Compare(CompareOp::Eq), &[wanted, column])?;
    let zero = build.emit1(Constant::float(dtype, 0.0), &[])?;
    build.emit1(Select, &[on, padded, zero])
}
