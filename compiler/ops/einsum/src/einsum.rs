//! Sums of products over shared dimensions: `einsum`, and `@`, `matmul`, `dot`, `outer`, `tensordot` in its terms.
//!
//! The operation has two operands and a letter for each dimension, as `einsum("ik,kj->ij", a, b)`. A letter is a factor: letters of
//! the result pass through, the others are of kind *reduce*, so a split contracted dimension leaves partial sums. Calls reduce the
//! general notation to this form (`contract`): diagonals, sums over a single operand's letters, and one product at a time.
//!
//! Products run as matrix products of the library, with strides for any order of the dimensions. Small and thin matrices, and products with a
//! vector, run as loop nests. A product of 32 bits reads narrower integers itself, and bf16 if the machine has `native_bf16`, if nothing but
//! such products needs them widened. A large operand that would have to be gathered is read block by block from the devices that hold it
//! (`ring`). The calls convert types under 32 bits: narrow floats accumulate in f32.

use crate::ring;
use spmdc_abi::{GemmRing, ReduceOp, Scalar, product_elements};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::array::{Array, Trap, indices};
use spmdc_ir::lower::work::{Lowering, Product, ProductDim};
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::op::Op;
use spmdc_ir::program::{Func, Stmt, Value};
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::derivative::Derivative;
use spmdc_ir::rules::{
    Combines, Definitions, Effect, Elements, Infer, Library, Linear, Lowered, Manual, NamedAxes, NestLowering,
    Placement, Properties, Reads, Rules, Semantics, Typing, Users,
};
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_kernel::loops::{Affine, Combine};
use spmdc_kernel::number;
use spmdc_kernel::scalar::BinaryOp;
use spmdc_layout::factors::{FactorKind, Factors};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::reshard::step::ReshardStep;
use spmdc_layout::sharding::Sharding;
use spmdc_layout::types::{ArrayType, DType, Type};
use spmdc_ops::cast::Cast;
use spmdc_ops::reshard::Reshard;
use std::collections::BTreeMap;

const SIZES: &str = "typing refuses operands that disagree on a size";

const LABEL: &str = "every letter is one of an operand's";

/// Maximum number of terms of each element of a small product.
const MAX_TERMS: usize = 16;

/// Maximum number of multiplications of each matrix of a small product.
const MAX_STEPS: usize = 4096;

/// Maximum number of multiplications of each matrix of a small product of integers, whose kernels copy both operands.
const MAX_INTEGER_STEPS: usize = 32_768;

/// Maximum number of terms, and of rows or columns, of a thin product. For integers either is enough.
const MAX_THIN: usize = 4;

/// A product of two operands. Each operand has each of its letters once; letters that are not in the result are in both operands.
#[derive(Clone, Debug, PartialEq)]
pub struct Einsum {
    /// The letters of the first operand's dimensions, in order.
    pub lhs: String,
    /// The letters of the second operand's dimensions, in order.
    pub rhs: String,
    /// The letters of the result's dimensions, in order.
    pub result: String,
    /// The user's `out=` on explicit axes, if the operands alone may leave a choice.
    pub out: Option<Sharding>,
}

/// The letters by their role in a product.
struct LetterRoles {
    /// In both operands and the result.
    batch: Vec<char>,
    /// In the first operand and the result.
    rows: Vec<char>,
    /// In the second operand and the result.
    columns: Vec<char>,
    /// In both operands, but not in the result.
    contracted: Vec<char>,
}

impl Einsum {
    fn parts(&self) -> LetterRoles {
        let (lhs, rhs, result) = (&self.lhs, &self.rhs, &self.result);
        LetterRoles {
            batch: lhs.chars().filter(|&c| rhs.contains(c) && result.contains(c)).collect(),
            rows: lhs.chars().filter(|&c| !rhs.contains(c)).collect(),
            columns: rhs.chars().filter(|&c| !lhs.contains(c)).collect(),
            contracted: lhs.chars().filter(|&c| rhs.contains(c) && !result.contains(c)).collect(),
        }
    }

    /// The size of every letter; an error for a letter with two sizes.
    fn sizes(&self, args: &[&ArrayType]) -> Result<BTreeMap<char, usize>, Mismatch> {
        let mut sizes = BTreeMap::new();
        for (labels, ty) in [(&self.lhs, args[0]), (&self.rhs, args[1])] {
            if labels.chars().count() != ty.rank() {
                return Err(Mismatch::new(
                    Code::E0216,
                    format!("the labels `{labels}` do not match the dimensions of {ty}"),
                ));
            }
            for (label, &size) in labels.chars().zip(&ty.shape) {
                if *sizes.entry(label).or_insert(size) != size {
                    let (a, b) = (args[0], args[1]);
                    let message = format!("the dimensions labelled {label} of {a} and {b} have different sizes");
                    return Err(Mismatch::new(Code::E0205, message));
                }
            }
        }
        Ok(sizes)
    }

    /// Whether the library computes it: a matrix product, whose result has more than one dimension, that is neither small nor thin.
    pub(crate) fn is_library_product(&self, args: &[&ArrayType]) -> bool {
        let sizes = self.sizes(args).expect(SIZES);
        let total = |labels: &[char]| labels.iter().map(|label| sizes[label]).product::<usize>();
        let parts = self.parts();
        let (rows, columns, terms) = (total(&parts.rows), total(&parts.columns), total(&parts.contracted));
        // A call of the library takes longer than a small matrix, and a loop nest computes many of them side by side.
        let sums_last = |labels: &str| labels.chars().next_back().is_some_and(|last| parts.contracted.contains(&last));
        // Neighbouring terms are not lanes of one vector.
        let most = if sums_last(&self.lhs) && sums_last(&self.rhs) { MAX_STEPS / 4 } else { MAX_STEPS };
        let steps = rows.saturating_mul(columns).saturating_mul(terms);
        let dtype = args[0].dtype;
        let (is_small, is_thin) = match dtype.is_float() {
            true => (terms <= MAX_TERMS && steps <= most, terms.max(rows.min(columns)) <= MAX_THIN),
            false => (steps <= MAX_INTEGER_STEPS, terms.min(rows.min(columns)) <= MAX_THIN),
        };
        product_elements(dtype, [dtype; 2]).is_some() && rows > 1 && columns > 1 && !is_small && !is_thin
    }
}

pub(crate) fn position(labels: &str, label: char) -> Option<usize> {
    labels.chars().position(|other| other == label)
}

impl Semantics for Einsum {
    fn name(&self) -> &'static str {
        "einsum"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        let labelled = |labels: &str, ty: &ArrayType| labels.chars().zip(ty.shape.iter().copied()).collect::<Vec<_>>();
        let operands = [labelled(&self.lhs, args[0]), labelled(&self.rhs, args[1])];
        Factors::labelled(&operands, &labelled(&self.result, results[0]), |label| {
            if self.result.contains(label) { FactorKind::Pass } else { FactorKind::Reduce(ReduceOp::Sum) }
        })
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let dtype = args[0].dtype();
        let sizes = self.sizes(&[&args[0].ty, &args[1].ty]).expect(SIZES);
        let contracted = self.parts().contracted;
        let summed: Vec<usize> = contracted.iter().map(|label| sizes[label]).collect();
        let shape: Vec<usize> = self.result.chars().map(|label| sizes[&label]).collect();
        let results: Vec<char> = self.result.chars().collect();
        // The stride of an operand along each of these letters, in elements; 0 for letters that it lacks.
        let steps = |labels: &str, along: &[char]| -> Vec<usize> {
            let stride = |&label: &char| match position(labels, label) {
                Some(at) => labels.chars().skip(at + 1).map(|inner| sizes[&inner]).product(),
                None => 0,
            };
            along.iter().map(stride).collect()
        };
        let [lhs, rhs] = [&self.lhs, &self.rhs].map(|labels| steps(labels, &results));
        let [lhs_inner, rhs_inner] = [&self.lhs, &self.rhs].map(|labels| steps(labels, &contracted));
        let at =
            |index: &[usize], steps: &[usize]| -> usize { index.iter().zip(steps).map(|(i, step)| i * step).sum() };
        let inner: Vec<[usize; 2]> =
            indices(&summed).map(|index| [at(&index, &lhs_inner), at(&index, &rhs_inner)]).collect();
        let ty = ArrayType::new(dtype, &shape);
        let starts = |kept: &[usize]| (at(kept, &lhs), at(kept, &rhs));
        if dtype.is_float() {
            // Each element takes part in many products, and is converted once.
            let [left, right] = [0, 1]
                .map(|arg| args[arg].bits.iter().map(|&bits| number::to_float(dtype, bits)).collect::<Vec<f64>>());
            return Ok(vec![Array::from_fn(ty, |kept| {
                let (a, b) = starts(kept);
                let sum: f64 = inner.iter().map(|&[i, j]| left[a + i] * right[b + j]).sum();
                // An empty sum is +0.
                number::from_float(dtype, sum + 0.0)
            })]);
        }
        Ok(vec![Array::from_fn(ty, |kept| {
            let (a, b) = starts(kept);
            let [left, right] = [0, 1].map(|arg| move |at: usize| number::to_int(dtype, args[arg].bits[at]));
            let terms = inner.iter().map(|&[i, j]| left(a + i).wrapping_mul(right(b + j)));
            number::from_int(dtype, terms.fold(0i128, i128::wrapping_add))
        })])
    }

    fn print(&self, args: &[String], mesh: &Mesh) -> String {
        let out = self.out.as_ref().map_or(String::new(), |out| format!(", out={}", out.display(mesh)));
        format!("einsum(\"{},{}->{}\", {}, {}{out})", self.lhs, self.rhs, self.result, args[0], args[1])
    }

    fn flops(&self, args: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        2 * self.sizes(args).expect(SIZES).values().map(|&size| size as u64).product::<u64>()
    }
}

impl Infer for Einsum {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        let dtype = args[0].dtype;
        if dtype != args[1].dtype {
            let message =
                format!("the element types of the product differ: {} and {}", dtype.name(), args[1].dtype.name());
            return Err(Mismatch::new(Code::E0203, message));
        }
        if dtype.size() < 4 || dtype == DType::Key {
            return Err(Mismatch::new(Code::E0215, format!("sums of products are not defined for {}", dtype.name())));
        }
        for labels in [&self.lhs, &self.rhs, &self.result] {
            let once = labels.chars().enumerate().all(|(at, label)| position(labels, label) == Some(at));
            if !once {
                return Err(Mismatch::new(Code::E0216, format!("a label of `{labels}` occurs twice")));
            }
        }
        let sizes = self.sizes(args)?;
        let in_result = |label: char| self.result.contains(label);
        let alone = |label: &char| !in_result(*label) && (!self.lhs.contains(*label) || !self.rhs.contains(*label));
        if let Some(label) = sizes.keys().find(|label| alone(label)) {
            return Err(Mismatch::new(
                Code::E0216,
                format!("the label {label} is missing from the result, but is in one operand only"),
            ));
        }
        let shape = self.result.chars().map(|label| {
            let missing = || Mismatch::new(Code::E0216, format!("the label {label} of the result is in no operand"));
            sizes.get(&label).copied().ok_or_else(missing)
        });
        Ok(vec![ArrayType::of(dtype, shape.collect::<Result<_, _>>()?)])
    }
}

impl Rules for Einsum {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Linear(self)
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::Rule(self)
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Library(self)
    }

    fn properties(&self) -> Properties<'_> {
        Properties {
            effect: Effect::None,
            manual: Manual::Local,
            placement: Placement::Out(self.out.as_ref()),
            linear: Linear::Contraction,
            combines: Combines::Elements(ReduceOp::Sum),
            elements: Elements::Other,
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

impl WritesStablehlo for Einsum {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], _: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        let LetterRoles { batch, rows, columns, contracted } = self.parts();
        let places = |labels: &str, of: &[char]| -> Vec<usize> {
            of.iter().filter_map(|&label| position(labels, label)).collect()
        };
        let [of_batch, of_contracted] = [&batch, &contracted].map(|of| [places(&self.lhs, of), places(&self.rhs, of)]);
        let product =
            hlo.dot_general([&args[0], &args[1]], [&of_batch[0], &of_batch[1]], [&of_contracted[0], &of_contracted[1]]);
        // The order of the product's dimensions, in which each letter of the result is found.
        let others =
            |labels: &str, of: &[char]| -> Vec<char> { labels.chars().filter(|label| of.contains(label)).collect() };
        let made: String =
            batch.iter().copied().chain(others(&self.lhs, &rows)).chain(others(&self.rhs, &columns)).collect();
        let order: Vec<usize> = self.result.chars().filter_map(|label| position(&made, label)).collect();
        Ok(vec![hlo.transpose(&product, &order)])
    }
}

impl NestLowering for Einsum {
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        let args = [&lowering.ty(stmt.args[0]).array, &lowering.ty(stmt.args[1]).array];
        if self.is_library_product(&args) {
            let product = self.product(lowering, stmt);
            lowering.product(product);
        } else {
            self.loops(lowering, stmt);
        }
        Ok(())
    }

    fn reads(&self, operand: usize, args: &[&ArrayType]) -> Reads {
        if self.is_library_product(args) {
            return Reads::Buffer;
        }
        let labels = if operand == 0 { &self.lhs } else { &self.rhs };
        let repeated = self.result.chars().any(|label| !labels.contains(label));
        if repeated { Reads::Often } else { Reads::Once }
    }
}

impl Library for Einsum {
    fn streams(&self, operand: usize, gather: &Stmt, stmt: &Stmt, func: &Func, mesh: &Mesh) -> bool {
        streams(self, operand, gather, stmt, func, mesh)
    }

    /// Operands that are widened to 32 bits: the product reads the narrow ones.
    fn computes<'a>(
        &self,
        operand: usize,
        stmt: &Stmt,
        func: &'a Func,
        mesh: &Mesh,
        definition: Definitions<'a, '_>,
    ) -> Vec<Value> {
        let args = [0, 1].map(|at| &func.ty(stmt.args[at]).array);
        let narrow = narrow_operands(stmt, func, mesh, &|value| definition(value, Users::Several));
        if narrow[operand].is_some() && self.is_library_product(&args) { vec![stmt.args[operand]] } else { Vec::new() }
    }
}

/// A dimension of a product while neighbours are merged: the number of elements of the largest block, and the dimension of the
/// product.
#[derive(Clone, Debug)]
struct Dim {
    max: usize,
    dim: ProductDim,
}

impl Dim {
    /// Merges two dimensions if the outer one continues the inner one in every array that has them.
    fn merged(outer: &Dim, inner: &Dim) -> Option<Dim> {
        let Scalar::Const(len) = inner.dim.extent else { return None };
        let continues = |outer: i64, inner: i64| outer == inner * len;
        let (o, i) = (&outer.dim, &inner.dim);
        let fits = inner.max as i64 == len && continues(o.a, i.a) && continues(o.b, i.b) && continues(o.c, i.c);
        let extent = if let Scalar::Const(count) = &o.extent {
            Scalar::Const(count * len)
        } else {
            Scalar::Mul(Box::new(o.extent.clone()), Box::new(Scalar::Const(len)))
        };
        fits.then(|| Dim { max: outer.max * inner.max, dim: ProductDim { extent, ..i.clone() } })
    }
}

/// Sorts dimensions from outer to inner by the stride that `stride` returns and merges neighbours where possible; returns the
/// largest, and the others.
fn largest(mut dims: Vec<Dim>, stride: impl Fn(&ProductDim) -> i64) -> (ProductDim, Vec<ProductDim>) {
    dims.sort_by_key(|dim| -stride(&dim.dim));
    let mut merged: Vec<Dim> = Vec::new();
    for dim in dims {
        match merged.last().and_then(|outer| Dim::merged(outer, &dim)) {
            Some(both) => {
                merged.pop();
                merged.push(both);
            }
            None => merged.push(dim),
        }
    }
    let at = (0..merged.len()).max_by_key(|&at| (merged[at].max, at));
    let one = ProductDim { extent: Scalar::Const(1), a: 0, b: 0, c: 0 };
    let main = at.map_or(one, |at| merged.remove(at).dim);
    (main, merged.into_iter().map(|dim| dim.dim).collect())
}

impl Einsum {
    fn product(&self, lowering: &Lowering<'_>, stmt: &Stmt) -> Product {
        let context = lowering.kernel().context;
        let inlined = |value: Value| lowering.inlined[value.0 as usize];
        let narrow = narrow_operands(stmt, lowering.func, context.mesh, &inlined);
        let mut operands = [0, 1].map(|at| narrow[at].unwrap_or(stmt.args[at]));
        // The blocks of an operand that is read in place.
        let gathered = (0..2).find_map(|at| {
            let (gather, stmt) = lowering.inlined[operands[at].0 as usize]?;
            gather.as_op::<Reshard>()?;
            Some((at, gather, stmt.args[0]))
        });
        if let Some((at, _, blocks)) = gathered {
            operands[at] = blocks;
        }
        let ([a, b], c) = (operands, stmt.results[0]);
        let types: [&Type; 3] = [a, b, c].map(|value| context.ty(value));
        let strides = types.map(|ty| context.strides(ty));
        let labels = [&self.lhs, &self.rhs, &self.result];
        let stride = |array: usize, label: char| position(labels[array], label).map_or(0, |dim| strides[array][dim]);
        let dim = |label: char| {
            // A contracted letter is split by the same axes in both operands, and a kept one in the result, too.
            let first = gathered.map_or(0, |(at, ..)| at);
            let place = |array: usize| Some((array, position(labels[array], label)?));
            let (array, at) = place(first).or_else(|| place(1 - first)).expect(LABEL);
            let extent = context.block_len(types[array], at);
            let max = types[array].block_shape(context.mesh)[at];
            let [a, b, c] = [0, 1, 2].map(|array| stride(array, label));
            Dim { max, dim: ProductDim { extent, a, b, c } }
        };
        let dims = |labels: &[char]| labels.iter().map(|&label| dim(label)).collect::<Vec<Dim>>();
        let parts = self.parts();
        let (m, more_rows) = largest(dims(&parts.rows), |dim| dim.a);
        let (n, more_columns) = largest(dims(&parts.columns), |dim| dim.b);
        let (k, contracted) = largest(dims(&parts.contracted), |dim| dim.a);
        // Batch dimensions, the merged ones outermost.
        let mut loops = Vec::new();
        if !parts.batch.is_empty() {
            let (main, rest) = largest(dims(&parts.batch), |dim| dim.c);
            loops.push(main);
            loops.extend(rest);
        }
        loops.extend(more_rows);
        loops.extend(more_columns);
        let ring = gathered.and_then(|(at, gather, _)| {
            let (from, whole) = (types[at], context.ty(stmt.args[at]));
            let cut = ring::gathered(from, whole)?;
            let label = labels[at].chars().nth(cut)?;
            let Some(Reshard { step: ReshardStep::Collective(kind), .. }) = gather.as_op::<Reshard>() else {
                return None;
            };
            Some(Box::new(GemmRing {
                kind: *kind,
                bytes: from.block_bytes(context.mesh) as u64,
                is_b: at == 1,
                axes: from.sharding.dims[cut].axes.clone(),
                start: context.block_start(from, cut),
                other: stride(1 - at, label),
                c: stride(2, label),
            }))
        });
        let operands = [types[0].dtype(), types[1].dtype()];
        Product { dtype: types[2].dtype(), operands, a, b, c, m, n, k, loops, contracted, ring }
    }

    /// One loop nest: the result's dimensions are outer loops, the contracted ones inner loops.
    fn loops(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) {
        let mut kernel = lowering.kernel();
        let mut index: BTreeMap<char, Affine> = BTreeMap::new();
        let contracted = self.parts().contracted;
        for (label, reduced) in
            self.result.chars().map(|label| (label, false)).chain(contracted.into_iter().map(|label| (label, true)))
        {
            let (operand, at) = match position(&self.lhs, label) {
                Some(at) => (0, at),
                None => (1, position(&self.rhs, label).expect(LABEL)),
            };
            let ty = kernel.context.ty(stmt.args[operand]);
            let (extent, max) = (kernel.context.block_len(ty, at), ty.block_shape(kernel.context.mesh)[at]);
            let dim = kernel.dim(extent, max, reduced);
            index.insert(label, dim);
        }
        let at = |labels: &str| labels.chars().map(|label| index[&label].clone()).collect::<Vec<Affine>>();
        let dtype = kernel.context.ty(stmt.results[0]).dtype();
        let lhs = kernel.operand(stmt.args[0], &at(&self.lhs));
        let rhs = kernel.operand(stmt.args[1], &at(&self.rhs));
        let product = kernel.binary(BinaryOp::Mul, dtype, lhs, rhs);
        kernel.store_combined(stmt.results[0], &at(&self.result), dtype, product, Combine::Reduce(ReduceOp::Sum));
        lowering.run(kernel);
    }
}

/// The narrow values from which the operands of a product are made, where the product reads them instead: integers, each by itself, and
/// both operands of bf16 if the mesh's machine multiplies them.
fn narrow_operands<'a>(
    stmt: &Stmt,
    func: &'a Func,
    mesh: &Mesh,
    definition: &dyn Fn(Value) -> Option<(&'a Op, &'a Stmt)>,
) -> [Option<Value>; 2] {
    let wide = func.ty(stmt.args[0]).dtype();
    let narrow = [0, 1].map(|at| {
        let (_, cast) = definition(stmt.args[at]).filter(|(op, _)| op.is::<Cast>())?;
        let narrow = func.ty(cast.args[0]);
        let is_read = product_elements(wide, [narrow.dtype(); 2]).is_some();
        let is_narrow = narrow.dtype().size() < wide.size() && !narrow.array.is_stream;
        (is_read && is_narrow).then_some(cast.args[0])
    });
    let reads = !wide.is_float() || mesh.machine.native_bf16 && narrow.iter().all(Option::is_some);
    if reads { narrow } else { [None; 2] }
}

/// Whether the product reads the blocks of this operand, which `gather` would join.
fn streams(op: &Einsum, operand: usize, gather: &Stmt, stmt: &Stmt, func: &Func, mesh: &Mesh) -> bool {
    let args = [0, 1].map(|at| &func.ty(stmt.args[at]).array);
    let (from, to) = (func.ty(gather.args[0]), func.ty(stmt.args[operand]));
    let Some(dim) = ring::gathered(from, to) else { return false };
    let aligned = stmt.args.iter().chain(&stmt.results).any(|&value| func.ty(value).sharding.is_aligned());
    stmt.args[0] != stmt.args[1]
        && !aligned
        && op.is_library_product(&args)
        && to.block_bytes(mesh) >= mesh.machine.ring_bytes
        && from.block_shape(mesh)[dim] >= mesh.machine.ring_block
}
