//! `patches(x, dims=.., at=..)`: all windows of some dimensions of an array, materialised side by side; window reductions and convolutions
//! read their operand through it.
//!
//! ```text
//! let w: f32[6, 3] = patches(x, dims=[(0, 6, 3, 1, 1, 1)], at=1);        // x: f32[8]; w[i, k] = x[i + k]
//! ```
//!
//! A dimension with windows keeps its position and has one element for each window; the elements of the windows have separate dimensions,
//! before dimension `at` of the operand. Window `i` begins at element `i * stride`, and its elements have a distance of `dilation`. The op
//! is pointwise and usually fused into the reduction that reads it.
//!
//! Factors: dimensions without windows pass; dimensions with windows are of kind *window*. If such a dimension is split, `ghosted` gives
//! every device all elements that its windows read, and `blocks` is the number of devices. Each block of the windows then only reads the
//! same block of the operand.

use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_ir::array::{Array, Trap};
use spmdc_ir::call::Call;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::{Term, whole_number};
use spmdc_ir::lower::builder::KernelBuilder;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::derivative::{Derivative, LinearMap, Linearity};
use spmdc_ir::rules::{
    Combines, Effect, Elements, Infer, Linear, Lowered, Manual, NamedAxes, Placement, Point, Properties, Reads, Rules,
    Semantics, Typing,
};
use spmdc_ir::shape;
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_kernel::loops::{Affine, Elem};
use spmdc_layout::factors::{FactorKind, Factors};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::patch::PatchDim;
use spmdc_layout::types::ArrayType;
use spmdc_ops::arithmetic::Arithmetic;
use spmdc_ops::broadcast::filled;
use spmdc_ops::pad::Pad;
use spmdc_ops::region::Places;
use spmdc_ops::reshape::reshape;
use spmdc_ops::slice::{SliceRange, slice_dim};
use spmdc_ops::update::Update;

/// `patches(x, dims=[(dim, len, size, stride, dilation, blocks)], at=1)`: the windows of some dimensions.
#[derive(Clone, Debug, PartialEq)]
pub struct Patches {
    /// The dimensions with windows, in ascending order.
    pub dims: Vec<PatchDim>,
    /// The dimension of the operand before which the dimensions of the windows' elements are inserted; its rank for the end.
    pub at: usize,
}

impl Patches {
    fn along(&self, dim: usize) -> Option<&PatchDim> {
        self.dims.iter().find(|patch| patch.dim == dim)
    }

    /// The dimension of the result that corresponds to a dimension of the operand.
    pub fn result_dim(&self, dim: usize) -> usize {
        if dim < self.at { dim } else { dim + self.dims.len() }
    }

    /// For an index of the result, the index of the window and of the element within it, or the index itself, of each dimension of
    /// the operand.
    fn split<'a, T>(&self, index: &'a [T]) -> impl Iterator<Item = (&'a T, Option<(&PatchDim, &'a T)>)> {
        (0..index.len() - self.dims.len()).map(|dim| {
            let element = self.dims.iter().position(|patch| patch.dim == dim);
            (&index[self.result_dim(dim)], element.map(|at| (&self.dims[at], &index[self.at + at])))
        })
    }
}

impl Semantics for Patches {
    fn name(&self) -> &'static str {
        "patches"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        let mut rule = Factors::new();
        let mut result = vec![Vec::new(); results[0].rank()];
        let mut operand = Vec::new();
        for (dim, &size) in args[0].shape.iter().enumerate() {
            let factor = match self.along(dim) {
                Some(patch) => rule.add(patch.len, FactorKind::Window),
                None => rule.add(size, FactorKind::Pass),
            };
            operand.push(vec![factor]);
            result[self.result_dim(dim)] = vec![factor];
        }
        for (at, patch) in self.dims.iter().enumerate() {
            result[self.at + at] = vec![rule.add(patch.size, FactorKind::Whole)];
        }
        rule.operands.push(operand);
        rule.results.push(result);
        rule
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let x = args[0];
        let ty = self.infer(&[&x.ty]).expect("the windows have been typed").swap_remove(0);
        Ok(vec![Array::from_fn(ty, |index| {
            let places = self.split(index).zip(x.shape()).map(|((&at, element), &extent)| match element {
                Some((patch, &element)) => patch.place(extent, at, element),
                None => at,
            });
            x.get(&places.collect::<Vec<usize>>())
        })])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        format!("patches({}, dims={}, at={})", args[0], display(&self.dims), self.at)
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }
}

impl Infer for Patches {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        let ty = args[0];
        let ascending = self.dims.windows(2).all(|pair| pair[0].dim < pair[1].dim);
        let fits = |patch: &PatchDim| ty.shape.get(patch.dim).is_some_and(|&extent| patch.fits(extent));
        if !ascending || self.at > ty.rank() || !self.dims.iter().all(fits) {
            let message = format!("the windows {} reach beyond the ends of {ty}", display(&self.dims));
            return Err(Mismatch::new(Code::E0205, message));
        }
        let size = |dim: usize| self.along(dim).map_or(ty.shape[dim], |patch| patch.len);
        let mut sizes: Vec<usize> = (0..self.at).map(size).collect();
        sizes.extend(self.dims.iter().map(|patch| patch.size));
        sizes.extend((self.at..ty.rank()).map(size));
        Ok(vec![ArrayType::new(ty.dtype, &sizes)])
    }
}

impl Rules for Patches {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Linear(self)
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        let dims = self.dims.iter().map(|patch| PatchDim { dim: patch.dim + 1, ..*patch }).collect();
        Batching::shifted(Patches { dims, at: self.at + 1 })
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Point(self)
    }

    fn properties(&self) -> Properties<'_> {
        Properties {
            effect: Effect::None,
            manual: Manual::Local,
            placement: Placement::Follows,
            // Windows repeat elements, so sums are combined before.
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

impl WritesStablehlo for Patches {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], _: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        // The elements of the windows come last, one dimension after the other, and then move to their place.
        let mut x = args[0].clone();
        let rank = x.ty.rank();
        for patch in &self.dims {
            let mut parts = Vec::new();
            for element in 0..patch.size {
                let first = element * patch.dilation;
                // Without windows there may be no elements, either.
                let range = match patch.len {
                    0 => (0, 0, 1),
                    len => (first, first + (len - 1) * patch.stride + 1, patch.stride),
                };
                parts.push(hlo.slice_dim(&x, patch.dim, range));
            }
            x = hlo.stack(&parts, x.ty.rank());
        }
        let order = (0..self.at).chain(rank..x.ty.rank()).chain(self.at..rank);
        Ok(vec![hlo.transpose(&x, &order.collect::<Vec<usize>>())])
    }
}

/// Maximum number of elements of windows along all dimensions together that are added one by one.
const MAX_TERMS: usize = 256;

impl LinearMap for Patches {
    fn linearity(&self, _: &Stmt) -> Linearity {
        Linearity::Together(vec![0])
    }

    /// Each element of the windows is added where it was taken, one dimension after the other.
    fn transposed(
        &self,
        build: &mut CallBuilder,
        stmt: &Stmt,
        _: usize,
        cotangent: Value,
    ) -> Result<Value, Diagnostic> {
        let extents = build.ty(stmt.args[0]).shape().to_vec();
        if self.dims.iter().map(|patch| patch.size).sum::<usize>() > MAX_TERMS {
            let message = format!("windows with more than {MAX_TERMS} elements have no derivative yet");
            return Err(Diagnostic::error(Code::E0220, build.span(), message));
        }
        let mut all = cotangent;
        for (position, patch) in self.dims.iter().enumerate().rev() {
            let elements = self.at + position;
            let dim = if patch.dim < self.at { patch.dim } else { patch.dim + position };
            let mut kept = build.ty(all).shape().to_vec();
            kept.remove(elements);
            let mut target = kept.clone();
            target[dim] = extents[patch.dim];
            let mut sum: Option<Value> = None;
            // A dimension without patches may be shorter than a patch.
            let elements_of_patch = if patch.len == 0 { 0 } else { patch.size };
            for element in 0..elements_of_patch {
                let one = slice_dim(build, all, elements, SliceRange { start: element, step: 1, len: 1 })?;
                let one = reshape(build, one, &kept)?;
                // The stride of a single patch may be longer than the dimension.
                let step = if patch.len > 1 { patch.stride as i64 } else { 1 };
                let range = SliceRange { start: element * patch.dilation, step, len: patch.len };
                let placed = placed(build, one, &target, dim, range)?;
                sum = Some(match sum {
                    Some(sum) => Arithmetic(build).add(sum, placed)?,
                    None => placed,
                });
            }
            all = match sum {
                Some(sum) => sum,
                None => filled(build, build.ty(all).dtype(), 0, &target)?,
            };
        }
        Ok(all)
    }
}

/// An array at these indices of a dimension of zeros of this shape.
fn placed(
    build: &mut CallBuilder,
    value: Value,
    shape: &[usize],
    dim: usize,
    range: SliceRange,
) -> Result<Value, Diagnostic> {
    if range.step == 1 {
        let mut widths = vec![(0, 0); shape.len()];
        widths[dim] = (range.start, shape[dim] - range.start - range.len);
        return build.emit1(Pad { widths, value: 0 }, &[value]);
    }
    let zeros = filled(build, build.ty(value).dtype(), 0, shape)?;
    let mut at: Vec<Places> = shape.iter().map(|&size| Places::Range(SliceRange::all(size))).collect();
    at[dim] = Places::Range(range);
    build.emit1(Update::replacing(at), &[zeros, value])
}

impl Point for Patches {
    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem {
        // A device has one block of the windows, and the same block of the operand: both begin at index 0.
        let places = self.split(index).map(|(at, element)| match element {
            Some((patch, element)) => at.times(patch.stride as i64).plus(&element.times(patch.dilation as i64)),
            None => at.clone(),
        });
        let places: Vec<Affine> = places.collect();
        kernel.operand(stmt.args[0], &places)
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        if self.dims.iter().all(PatchDim::is_disjoint) { Reads::Once } else { Reads::Buffer }
    }
}

/// `[(1, 6, 3, 1, 1, 1)]`: dimension, number of windows, size, stride, dilation and blocks of each dimension with windows.
pub fn display(dims: &[PatchDim]) -> String {
    let dim = |patch: &PatchDim| {
        let PatchDim { dim, len, size, stride, dilation, blocks } = patch;
        format!("({dim}, {len}, {size}, {stride}, {dilation}, {blocks})")
    };
    format!("[{}]", dims.iter().map(dim).collect::<Vec<_>>().join(", "))
}

/// Reads the text of [`display`].
pub fn read(term: &Term, span: Span) -> Result<Vec<PatchDim>, Diagnostic> {
    let malformed = || {
        let message = "`dims` of `patches` must be a list of (dimension, number, size, stride, dilation, blocks)";
        Diagnostic::error(Code::E0227, span, message)
    };
    let dim = |term: &Term| {
        let number = |term: &Term| whole_number(term).and_then(|number| usize::try_from(number).ok());
        let numbers: Option<Vec<usize>> = term.sequence().and_then(|parts| parts.iter().map(number).collect());
        let Some([dim, len, size, stride, dilation, blocks]) = numbers.as_deref() else { return Err(malformed()) };
        let patch =
            PatchDim { dim: *dim, len: *len, size: *size, stride: *stride, dilation: *dilation, blocks: *blocks };
        if patch.is_sound() { Ok(patch) } else { Err(malformed()) }
    };
    term.sequence().ok_or_else(malformed)?.iter().map(dim).collect()
}

/// All windows along some dimensions, each given with the size, the stride and the dilation of its windows; their elements come before
/// dimension `at`.
pub fn patches(
    build: &mut CallBuilder,
    value: Value,
    dims: &[(usize, (usize, usize, usize))],
    at: usize,
) -> Result<Value, Diagnostic> {
    let shape = build.ty(value).shape();
    let dims = dims.iter().map(|&(dim, window)| PatchDim::all(dim, shape[dim], window)).collect();
    build.emit1(Patches { dims, at }, &[value])
}

impl Call for Patches {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The windows of some dimensions, side by side.
        patches(x: Array, [named] dims: Of("windows") = None, [named] at: Int = None)
        in_dumps "" "write `reduce_window` or `conv`";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let dims = args.required("dims")?;
        let dims = read(&dims.term, dims.span)?;
        let value = args.array(build, "x")?;
        let at = shape::axis(args.int("at")?, build.ty(value).rank() + 1, args.span)?;
        Ok(Term::Array(build.emit1(Patches { dims, at }, &[value])?))
    }
}
