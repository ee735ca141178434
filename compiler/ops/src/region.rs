//! The region of an array that an assignment writes: its places, and the kernel that stores new elements there.

use crate::index::{are_checked, beginnings, checked};
use crate::slice::SliceRange;
use spmdc_abi::Scalar;
use spmdc_grammar::codes::Code;
use spmdc_ir::array::{Array, indices};
use spmdc_ir::call::term::Term;
use spmdc_ir::lower::builder::KernelBuilder;
use spmdc_ir::lower::work::Lowering;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::shape;
use spmdc_kernel::loops::{Affine, Elem};
use spmdc_layout::blocks::table;
use spmdc_layout::factors::{FactorKind, FactorRange, Factors};
use spmdc_layout::types::{ArrayType, DType, Type};

/// The indices of a dimension that are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Places {
    /// Static indices; `step` is positive.
    Range(SliceRange),
    /// This many indices from the one that an operand gives.
    Dynamic(usize),
}

/// The shape of the region.
pub fn region_shape(at: &[Places]) -> Vec<usize> {
    let len = |places: &Places| match places {
        Places::Range(range) => range.len,
        Places::Dynamic(len) => *len,
    };
    at.iter().map(len).collect()
}

/// The text of the places.
pub fn print_places(at: &[Places]) -> String {
    let places = at.iter().map(|places| match places {
        Places::Range(range) => format!("({}, {}, {})", range.start, range.step, range.len),
        Places::Dynamic(1) => "()".to_string(),
        Places::Dynamic(len) => format!("({len},)"),
    });
    shape::tuple(&places.collect::<Vec<_>>())
}

/// Parses places: a tuple of three, one or zero numbers for each dimension. None if the text has another form.
pub fn parse_places(term: &Term) -> Option<Vec<Places>> {
    let Term::Tuple(dims) = term else { return None };
    let places = |term: &Term| {
        let Term::Tuple(parts) = term else { return None };
        match parts.as_slice() {
            [] => Some(Places::Dynamic(1)),
            [Term::Int(len)] => usize::try_from(*len).ok().map(Places::Dynamic),
            [Term::Int(start), Term::Int(step), Term::Int(len)] => {
                let unsigned = |number: &i128| usize::try_from(*number).ok();
                let step = i64::try_from(*step).ok()?;
                Some(Places::Range(SliceRange { start: unsigned(start)?, step, len: unsigned(len)? }))
            }
            _ => None,
        }
    };
    dims.iter().map(places).collect()
}

/// An error unless the operands are an array that has the places, `values` arrays that broadcast to the region, and an index for each
/// dynamic dimension.
pub fn check_region(at: &[Places], args: &[&ArrayType], values: usize) -> Result<(), Mismatch> {
    let x = args[0];
    let dynamic = at.iter().filter(|places| matches!(places, Places::Dynamic(_))).count();
    let inside = |places: &Places, size: usize| match places {
        Places::Range(range) => (1..=size.max(1) as i64).contains(&range.step) && range.lies_in(size),
        Places::Dynamic(len) => *len <= size,
    };
    let fits = at.len() == x.rank() && args.len() == 1 + values + dynamic;
    if !fits || !at.iter().zip(&x.shape).all(|(places, &size)| inside(places, size)) {
        return Err(Mismatch::new(Code::E0205, format!("the indices of an update do not match the dimensions of {x}")));
    }
    are_checked(&args[1 + values..])?;
    let region = region_shape(at);
    match args[1..=values].iter().find(|v| shape::broadcast(&[&region, &v.shape]).ok().as_ref() != Some(&region)) {
        Some(v) => {
            let message = format!("{v} does not broadcast to the {} elements assigned to", shape::display(&region));
            Err(Mismatch::new(Code::E0204, message))
        }
        None => Ok(()),
    }
}

/// The factors of an array, of `values` arrays for its region, and of the indices: the dimensions of the array pass, as every device writes the
/// part of the region in its block. The new values are a part of each dimension that the region cuts.
pub fn region_factors(at: &[Places], args: &[&ArrayType], values: usize) -> Factors {
    let x = args[0];
    let mut rule = Factors::new();
    let dims: Vec<usize> = x.shape.iter().map(|&size| rule.add(size, FactorKind::Pass)).collect();
    let all: Vec<Vec<usize>> = dims.iter().map(|&factor| vec![factor]).collect();
    rule.operands = vec![all.clone()];
    for (operand, v) in args.iter().enumerate().skip(1).take(values) {
        let skipped = x.rank() - v.rank();
        let mut new = Vec::new();
        for (own, &size) in v.shape.iter().enumerate() {
            let dim = skipped + own;
            new.push(vec![match at[dim] {
                Places::Range(range) if range.len == size && size > 0 => {
                    if range != SliceRange::all(x.shape[dim]) {
                        rule.parts.push(FactorRange {
                            operand,
                            dim: own,
                            start: range.start,
                            step: range.step as usize,
                        });
                    }
                    dims[dim]
                }
                Places::Range(_) | Places::Dynamic(_) => rule.add(size, FactorKind::Whole),
            }]);
        }
        rule.operands.push(new);
    }
    rule.operands.resize(args.len(), Vec::new());
    rule.results.push(all);
    rule
}

/// The array with elements of the region replaced by the results of `element` for the old element and the elements of the `values` arrays,
/// by their bits; None if one of them has no result.
pub fn region_replaced(
    at: &[Places],
    args: &[&Array],
    values: usize,
    element: impl Fn(u64, &[u64]) -> Option<u64>,
) -> Option<Array> {
    let mut result = args[0].clone();
    let strides = shape::strides(result.shape());
    for index in indices(&region_shape(at)) {
        let mut dynamic = args[1 + values..].iter();
        let places = at.iter().zip(&index).zip(args[0].shape()).map(|((places, &i), &size)| match places {
            Places::Range(range) => range.at(i),
            Places::Dynamic(len) => dynamic.next().map_or(0, |place| checked(place, beginnings(size, *len))) + i,
        });
        let address: usize = places.zip(&strides).map(|(place, stride)| place * stride).sum();
        let new: Vec<u64> = args[1..=values].iter().map(|v| v.get_broadcast(&index)).collect();
        result.bits[address] = element(result.bits[address], &new)?;
    }
    Some(result)
}

/// The source of the new values of a kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NewValues {
    /// It computes them if they are fused.
    Computed,
    /// They are computed into memory before.
    Stored,
}

/// Makes a new element from the old one and the elements of the new values.
type NewElement<'w> = dyn Fn(&mut KernelBuilder<'_>, Option<Elem>, &[Elem]) -> Elem + 'w;

/// The stores of an assignment to a region.
pub struct RegionWrite<'w> {
    /// For each dimension of the array, the indices that are replaced.
    pub at: &'w [Places],
    /// How many operands after the array are new values.
    pub values: usize,
    /// Whether the new element is computed from the old one.
    pub reads_old: bool,
    /// The new element.
    pub element: &'w NewElement<'w>,
}

impl RegionWrite<'_> {
    /// A copy, which is omitted if the old array is not needed any more, and a kernel over a device's part of the region. Along a split
    /// dimension with a dynamic index each device tests whether it has the element. If there are several, or blocks of several lengths, it
    /// tests all elements of its block. New values that are computed from other elements of the array go into a separate array. `around`
    /// are the parts around a region that is most of a large array; then only these are copied.
    pub fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt, around: Option<Vec<Vec<SliceRange>>>) {
        let (x, result) = (stmt.args[0], stmt.results[0]);
        if region_shape(self.at).contains(&0) {
            lowering.copy(x, result);
            return;
        }
        let (mut kernel, needs_old) = self.kernel(lowering, stmt, NewValues::Computed);
        if needs_old && let Some(around) = around {
            lowering.run(kernel);
            around.iter().for_each(|part| copy_part(lowering, (x, result), part));
            return;
        }
        lowering.copy(x, result);
        if needs_old && lowering.is_last_use {
            kernel = self.kernel(lowering, stmt, NewValues::Stored).0;
        }
        lowering.run(kernel);
    }

    /// The kernel that stores the new values, and whether it needs the old array for them, in separate memory.
    fn kernel<'a>(&self, lowering: &Lowering<'a>, stmt: &Stmt, values: NewValues) -> (KernelBuilder<'a>, bool) {
        let (x, result) = (stmt.args[0], stmt.results[0]);
        let mut kernel = lowering.kernel();
        let ty = kernel.context.ty(result);
        let mut dynamic = stmt.args[1 + self.values..].iter();
        // For each dimension the number of the element among the elements of this device, and its index in the device's block.
        let (mut numbers, mut to) = (Vec::new(), Vec::new());
        // Conditions under which an element is replaced, for dynamic indices of split dimensions.
        let mut tests = Vec::new();
        for (dim, places) in self.at.iter().enumerate() {
            let (number, place) = match places {
                Places::Dynamic(len) => {
                    let &at = dynamic.next().expect("each dynamic place has its operand");
                    let place = kernel.dynamic_index(at, beginnings(ty.shape()[dim], *len));
                    if ty.sharding.dims[dim].axes.is_empty() {
                        let number = kernel.dim(Scalar::Const(*len as i64), *len, false);
                        let place = place.plus(&number);
                        (number, place)
                    } else if *len == 1 && matches!(kernel.context.block_len(ty, dim), Scalar::Const(_)) {
                        (Affine::default(), own_place(&mut kernel, ty, dim, &place, &mut tests))
                    } else {
                        let (own, max) = (kernel.context.block_len(ty, dim), ty.block_shape(kernel.context.mesh)[dim]);
                        let index = kernel.dim(own, max, false);
                        let whole = kernel.global_index(ty, dim, &index);
                        tests.push(kernel.in_range(whole.clone(), place.clone(), place.offset(*len as i64)));
                        (whole.plus(&place.times(-1)), index)
                    }
                }
                Places::Range(range) => own_places(&mut kernel, ty, dim, range),
            };
            numbers.push(number);
            to.push(place);
        }
        let mut new = Vec::new();
        for &v in &stmt.args[1..=self.values] {
            let shape = kernel.context.ty(v).shape();
            let numbers = &numbers[ty.rank() - shape.len()..];
            let from = shape.iter().zip(numbers);
            let from: Vec<Affine> =
                from.map(|(&size, number)| if size == 1 { Affine::default() } else { number.clone() }).collect();
            new.push(match values {
                NewValues::Computed => kernel.operand(v, &from),
                NewValues::Stored => kernel.stored(v, &from),
            });
        }
        // The new array begins as the old one, so `x[i] += 1` has its element there, and the old array can become the new one.
        let needs_old = match kernel.reads_only_at(x, &to) {
            None => false,
            Some(true) => {
                kernel.read_instead(x, result);
                false
            }
            Some(false) => true,
        };
        let old = self.reads_old.then(|| kernel.operand(result, &to));
        let mut elem = (self.element)(&mut kernel, old, &new);
        for test in tests {
            let old = kernel.operand(result, &to);
            elem = kernel.select(ty.dtype(), test, elem, old);
        }
        kernel.store(result, &to, elem);
        (kernel, needs_old)
    }
}

/// The place of one element in this device's block, from its index in the whole dimension, whose blocks are equally long; adds to `tests`
/// whether the device has it. Of a device that has not, the first element.
fn own_place(kernel: &mut KernelBuilder<'_>, ty: &Type, dim: usize, place: &Affine, tests: &mut Vec<Elem>) -> Affine {
    let own = kernel.index_in_block(ty, dim, place, tests);
    let test = *tests.last().expect("a split dimension has a test");
    let (own, first) = (kernel.index(own, DType::I64), kernel.constant(DType::I64, 0));
    let own = kernel.select(DType::I64, test, own, first);
    kernel.place(own, ty.block_shape(kernel.context.mesh)[dim])
}

/// A loop over the indices of a range in this device's block: the number among these, and the index in the block.
fn own_places(kernel: &mut KernelBuilder<'_>, ty: &Type, dim: usize, range: &SliceRange) -> (Affine, Affine) {
    let layout = &ty.sharding.dims[dim];
    let blocks = layout.blocks(ty.shape()[dim], kernel.context.mesh);
    // The number of indices of the range before a bound.
    let before = |bound: usize| bound.saturating_sub(range.start).div_ceil(range.step as usize).min(range.len);
    let lens: Vec<i64> = blocks.iter().map(|block| (before(block.end) - before(block.start)) as i64).collect();
    let first = blocks.iter().map(|block| range.at(before(block.start)) as i64 - block.start as i64).collect();
    let max = lens.iter().copied().max().unwrap_or(0) as usize;
    let number = kernel.dim(table(&layout.axes, lens), max, false);
    let first = kernel.scalar_affine(table(&layout.axes, first));
    let place = number.times(range.step).plus(&first);
    (number, place)
}

/// Copies the elements in these ranges from the old array to the new one.
fn copy_part(lowering: &mut Lowering<'_>, (x, result): (Value, Value), part: &[SliceRange]) {
    let mut kernel = lowering.kernel();
    let ty = kernel.context.ty(result);
    let places = part.iter().enumerate().map(|(dim, range)| own_places(&mut kernel, ty, dim, range).1);
    let places: Vec<Affine> = places.collect();
    let elem = kernel.operand(x, &places);
    kernel.store(result, &places, elem);
    lowering.run(kernel);
}
