//! The derivative of a product with respect to each of its factors: the product of all others.
//!
//! Nothing is divided by a factor: the product of the preceding factors is multiplied by the product of the following ones. So zeros need
//! no special case. All statements are products and sums, so derivatives of any order are right even if several factors are zero. They are
//! computed in f64, so that intermediate products of narrower floats neither overflow nor underflow if the result is in range.

use crate::arithmetic::Arithmetic;
use crate::broadcast;
use crate::cast::cast;
use crate::constant::Constant;
use crate::elementwise::Select;
use crate::flip::Flip;
use crate::gather::Gather;
use crate::iota::Iota;
use crate::pad::Pad;
use crate::reduce::Reduce;
use crate::reshape::reshape;
use crate::scan::Scan;
use crate::slice::{SliceRange, slice_dim};
use crate::sort::{LineOrder, Sort};
use crate::transpose::transpose;
use spmdc_abi::ReduceOp;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::program::Value;
use spmdc_ir::shape;
use spmdc_kernel::scalar::{BinaryOp, CompareOp};
use spmdc_layout::types::{ArrayType, DType};

/// For each element the product of all other elements along these dimensions, in the type of the elements.
///
/// Along several dimensions it is the product of the others along the last one, and of the lines of all others along those before.
pub fn of_others(build: &mut CallBuilder, x: Value, axes: &[usize]) -> Result<Value, Diagnostic> {
    let (dtype, sizes) = (build.ty(x).dtype(), build.ty(x).shape().to_vec());
    debug_assert!(dtype.is_float(), "products of integers have no derivative");
    let along: Vec<usize> = axes.iter().copied().filter(|&axis| sizes[axis] != 1).collect();
    let mut lines = cast(build, x, DType::F64)?;
    let mut product: Option<Value> = None;
    for (position, &axis) in along.iter().enumerate().rev() {
        let others = of_others_along(build, lines, axis, sizes[axis])?;
        product = Some(match product {
            Some(product) => Arithmetic(build).mul(product, others)?,
            None => others,
        });
        if position > 0 {
            lines = build.emit1(Reduce::new(ReduceOp::Product, &[axis], true), &[lines])?;
        }
    }
    let product = match product {
        Some(product) => product,
        None => Arithmetic(build).number(lines, 1.0)?,
    };
    let product = cast(build, product, dtype)?;
    broadcast::broadcast(build, product, &sizes)
}

fn of_others_along(build: &mut CallBuilder, x: Value, axis: usize, size: usize) -> Result<Value, Diagnostic> {
    if size == 2 {
        return build.emit1(Flip { axes: vec![axis] }, &[x]);
    }
    let mut scan = |reverse| build.emit1(Scan { op: ReduceOp::Product, axis, reverse, exclusive: true }, &[x]);
    let (before, behind) = (scan(false)?, scan(true)?);
    Arithmetic(build).mul(before, behind)
}

/// The factors of the elements that a scatter updates.
pub struct ScatteredFactors<'s> {
    /// The places of the elements, from the second operand on.
    pub places: &'s Gather,
    /// The indices of the places.
    pub indices: &'s [Value],
    /// The shape of the array that is updated.
    pub target: &'s [usize],
}

impl ScatteredFactors<'_> {
    /// For each factor the product of all others of its element. `factors` has the shape of the gather of the places.
    ///
    /// The factors are sorted by their places. In a line of equal places, products of 2, 4, 8 and so on neighbours are combined
    /// (Hillis and Steele, "Data parallel algorithms", 1986).
    pub fn of_others(&self, build: &mut CallBuilder, factors: Value) -> Result<Value, Diagnostic> {
        let full = build.ty(factors).shape().to_vec();
        let rank = full.len() + self.places.dims.len() + self.places.batch.len() - self.target.len();
        let places = full[self.places.at..self.places.at + rank].to_vec();
        let (batch, own): (Vec<usize>, Vec<usize>) =
            (0..rank).partition(|dim| self.places.batch.iter().any(|(_, of)| of == dim));
        let count: usize = own.iter().map(|&dim| places[dim]).product();
        let dtype = build.ty(factors).dtype();
        if count < 2 {
            let one = Arithmetic(build).number(factors, 1.0)?;
            return broadcast::broadcast(build, one, &full);
        }
        // The dimensions of the indices: first those of the batch, then one for all others.
        let order: Vec<usize> = batch.iter().chain(&own).copied().collect();
        let lines: Vec<usize> = batch.iter().map(|&dim| places[dim]).chain([count]).collect();
        let numbers = self.numbers(build, &places)?;
        let numbers = transpose(build, numbers, &order)?;
        let numbers = reshape(build, numbers, &lines)?;
        let [numbers, sources] = sorted(build, numbers)?;
        let [_, ranks] = sorted(build, sources)?;
        let at = self.places.at;
        let whole: Vec<usize> = (0..at).chain(order.iter().map(|&dim| at + dim)).chain(at + rank..full.len()).collect();
        let joined = [&full[..at], lines.as_slice(), &full[at + rank..]].concat();
        let factors = cast(build, factors, DType::F64)?;
        let factors = transpose(build, factors, &whole)?;
        let factors = reshape(build, factors, &joined)?;
        let batched = (0..batch.len()).map(|dim| (at + dim, dim)).collect();
        let line = at + batch.len();
        let take = Gather::new(vec![line], batched, at);
        let factors = taken(build, &take, factors, sources)?;
        let behind = joined.len() - line - 1;
        let before = FactorLines { numbers, behind, axis: line, reverse: false }.products(build, factors)?;
        let after = FactorLines { numbers, behind, axis: line, reverse: true }.products(build, factors)?;
        let others = Arithmetic(build).mul(before, after)?;
        let others = taken(build, &take, others, ranks)?;
        let moved: Vec<usize> = whole.iter().map(|&dim| full[dim]).collect();
        let others = reshape(build, others, &moved)?;
        let mut back = vec![0; whole.len()];
        whole.iter().enumerate().for_each(|(to, &from)| back[from] = to);
        let others = transpose(build, others, &back)?;
        cast(build, others, dtype)
    }

    /// A number for each place, the same for equal places: the number of its element in row-major order, or the number of all elements for
    /// a place that does not exist.
    fn numbers(&self, build: &mut CallBuilder, places: &[usize]) -> Result<Value, Diagnostic> {
        let strides = shape::strides(self.target);
        let all: usize = self.target.iter().product();
        let int =
            |build: &mut CallBuilder, number: usize| build.emit1(Constant::scalar(DType::I64, number as u64), &[]);
        let mut number = int(build, 0)?;
        for (&dim, &index) in self.places.dims.iter().zip(self.indices) {
            let stride = int(build, strides[dim])?;
            let part = Arithmetic(build).mul(index, stride)?;
            number = Arithmetic(build).add(number, part)?;
        }
        let (is_one, none) = (exists(build, self.places, self.indices, self.target)?, int(build, all)?);
        let number = build.emit1(Select, &[is_one, number, none])?;
        broadcast::broadcast(build, number, places)
    }
}

/// Whether an array of the shape `target` has an element at each place of a gather, in the shape of the indices.
pub fn exists(
    build: &mut CallBuilder,
    places: &Gather,
    indices: &[Value],
    target: &[usize],
) -> Result<Value, Diagnostic> {
    let mut all: Option<Value> = None;
    for (&dim, &index) in places.dims.iter().zip(indices) {
        for (op, bound) in [(CompareOp::Ge, 0), (CompareOp::Lt, target[dim])] {
            let bound = build.emit1(Constant::scalar(DType::I64, bound as u64), &[])?;
            let holds = Arithmetic(build).compare(op, index, bound)?;
            all = Some(match all {
                Some(all) => Arithmetic(build).binary(BinaryOp::And, all, holds)?,
                None => holds,
            });
        }
    }
    Ok(all.expect("a gather has an indexed dimension"))
}

/// The elements at these places of a line.
fn taken(build: &mut CallBuilder, take: &Gather, x: Value, places: Value) -> Result<Value, Diagnostic> {
    let places = cast(build, places, DType::I64)?;
    build.emit1(take.clone(), &[x, places])
}

/// The numbers of each line in ascending order, and the place of each in the line before.
fn sorted(build: &mut CallBuilder, numbers: Value) -> Result<[Value; 2], Diagnostic> {
    let shape = build.ty(numbers).shape().to_vec();
    let axis = shape.len() - 1;
    let places = build.emit1(Iota { ty: ArrayType::new(DType::I32, &shape), axis }, &[])?;
    let order = LineOrder { keys: 1, axis, descending: false, signed_zeros: false };
    let results = build.emit(Sort(order), &[numbers, places])?;
    Ok([results[0], results[1]])
}

/// Lines of factors, in which the factors of one element are adjacent.
struct FactorLines {
    /// The number of the element of each factor.
    numbers: Value,
    /// The number of dimensions of the factors after the dimensions of the numbers.
    behind: usize,
    /// The dimension of the factors that corresponds to the lines.
    axis: usize,
    /// Whether products run from the last factor to the first.
    reverse: bool,
}

impl FactorLines {
    /// For each factor, the product of the preceding factors of its element.
    fn products(&self, build: &mut CallBuilder, factors: Value) -> Result<Value, Diagnostic> {
        let size = build.ty(factors).shape()[self.axis];
        let mut products = factors;
        let mut by = 1;
        while by < size {
            let earlier = self.earlier(build, products, by)?;
            products = Arithmetic(build).mul(products, earlier)?;
            by *= 2;
        }
        self.earlier(build, products, 1)
    }

    /// The values at this number of factors before, and 1 where these belong to another element.
    fn earlier(&self, build: &mut CallBuilder, values: Value, by: usize) -> Result<Value, Diagnostic> {
        let moved = self.moved(build, values, self.axis, by, DType::F64.narrow(1.0))?;
        let axis = build.ty(self.numbers).rank() - 1;
        // No element has this number.
        let other = self.moved(build, self.numbers, axis, by, u64::MAX)?;
        let is_same = Arithmetic(build).compare(CompareOp::Eq, self.numbers, other)?;
        let mut shape = build.ty(is_same).shape().to_vec();
        shape.extend(vec![1; self.behind]);
        let is_same = reshape(build, is_same, &shape)?;
        let one = Arithmetic(build).number(values, 1.0)?;
        Arithmetic(build).select(is_same, moved, one)
    }

    /// The values at this number of places before, after padding.
    fn moved(
        &self,
        build: &mut CallBuilder,
        values: Value,
        axis: usize,
        by: usize,
        fill: u64,
    ) -> Result<Value, Diagnostic> {
        let shape = build.ty(values).shape().to_vec();
        let size = shape[axis];
        let range = if self.reverse { SliceRange::between(by, size) } else { SliceRange::between(0, size - by) };
        let kept = slice_dim(build, values, axis, range)?;
        let mut widths = vec![(0, 0); shape.len()];
        widths[axis] = if self.reverse { (0, by) } else { (by, 0) };
        build.emit1(Pad { widths, value: fill }, &[kept])
    }
}
