//! Static slices: `x[1:-1, ::2]`, with any step, also backwards.
//!
//! Factors: dimensions taken whole pass through. A dimension that is cut is a *window*: operand and result are split by the same
//! axes, and a device fetches the missing elements of its block of the result.

mod derivative;

use crate::window;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::array::{Array, Trap};
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::lower::builder::KernelBuilder;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::derivative::Derivative;
use spmdc_ir::rules::{
    Combines, Effect, Elements, Infer, Linear, Lowered, Manual, NamedAxes, Placement, Point, Properties, Reads, Rules,
    Semantics, Typing, Windowed,
};
use spmdc_ir::shape;
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_kernel::loops::{Affine, Elem};
use spmdc_layout::factors::Factors;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::ArrayType;
use spmdc_layout::window::{DimMap, WindowMap};

/// The indices `start`, `start + step`, ... of a dimension, `len` of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceRange {
    /// The index of the first element.
    pub start: usize,
    /// The distance between indices, not 0; negative for a range that runs backwards.
    pub step: i64,
    /// The number of indices.
    pub len: usize,
}

impl SliceRange {
    /// All indices of a dimension of this size, in order.
    pub fn all(size: usize) -> SliceRange {
        SliceRange { start: 0, step: 1, len: size }
    }

    /// `start:stop`; all empty ranges are equal.
    pub fn between(start: usize, stop: usize) -> SliceRange {
        if start < stop {
            SliceRange { start, step: 1, len: stop - start }
        } else {
            SliceRange { start: 0, step: 1, len: 0 }
        }
    }

    /// `start:stop:step` as in Python: negative bounds count from the end, and bounds outside of the dimension are clipped.
    ///
    /// ```
    /// use spmdc_ops::slice::SliceRange;
    /// let reversed = SliceRange::of(None, None, Some(-1), 5).map_err(|e| e.message);
    /// assert_eq!(reversed, Ok(SliceRange { start: 4, step: -1, len: 5 }));
    /// ```
    pub fn of(start: Option<i64>, stop: Option<i64>, step: Option<i64>, size: usize) -> Result<SliceRange, Mismatch> {
        let (size, step) = (size as i64, step.unwrap_or(1));
        if step == 0 {
            return Err(Mismatch::new(Code::E0402, "the step of a slice is zero"));
        }
        let (low, high) = if step > 0 { (0, size) } else { (-1, size - 1) };
        let bound = |given: Option<i64>, otherwise: i64| match given {
            None => otherwise,
            Some(at) if at < 0 => at.saturating_add(size).clamp(low, high),
            Some(at) => at.clamp(low, high),
        };
        let (first, last) = if step > 0 { (low, high) } else { (high, low) };
        let (start, stop) = (bound(start, first), bound(stop, last));
        let distance = if step > 0 { stop - start } else { start - stop };
        let len = if distance > 0 { (distance as u64).div_ceil(step.unsigned_abs()) as usize } else { 0 };
        // One form for each set of indices, so that equal ranges compare equal.
        Ok(match len {
            0 => SliceRange { start: 0, step: 1, len: 0 },
            1 => SliceRange { start: start as usize, step: 1, len: 1 },
            _ => SliceRange { start: start as usize, step, len },
        })
    }

    /// One index, counted as in Python.
    pub fn one(index: i64, size: usize) -> Result<SliceRange, Mismatch> {
        let place = if index < 0 { index.saturating_add(size as i64) } else { index };
        if !(0..size as i64).contains(&place) {
            let message = format!("index {index} is out of bounds for a dimension of size {size}");
            return Err(Mismatch::new(Code::E0401, message));
        }
        Ok(SliceRange { start: place as usize, step: 1, len: 1 })
    }

    /// Whether these are all indices of a dimension of this size, in order.
    pub fn is_all(&self, size: usize) -> bool {
        *self == SliceRange::all(size)
    }

    /// The index of the `i`-th element.
    pub fn at(&self, i: usize) -> usize {
        (self.start as i64 + i as i64 * self.step) as usize
    }

    /// Whether all indices are within a dimension of this size.
    pub fn lies_in(&self, size: usize) -> bool {
        let last = |steps: i64| i64::try_from(self.start).ok()?.checked_add(self.step.checked_mul(steps)?);
        let inside = |place: Option<i64>| place.is_some_and(|place| place >= 0 && (place as u64) < size as u64);
        match self.len.checked_sub(1) {
            None => true,
            Some(steps) => self.start < size && i64::try_from(steps).is_ok_and(|steps| inside(last(steps))),
        }
    }

    /// Its text in an index.
    pub fn display(&self, size: usize) -> String {
        if self.is_all(size) {
            return ":".to_string();
        }
        let stop = self.start as i64 + self.len as i64 * self.step;
        match (self.step, stop) {
            (1, stop) => format!("{}:{stop}", self.start),
            // A backward range to the front has no upper bound to write: -1 would count from the end.
            (step, stop) if stop < 0 => format!("{}::{step}", self.start),
            (step, stop) => format!("{}:{stop}:{step}", self.start),
        }
    }
}

/// `x[1:3, :]`: the elements of `x` at a static range of indices of each dimension.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// For each dimension its range, and its size.
    pub ranges: Vec<(SliceRange, usize)>,
}

impl Semantics for Slice {
    fn name(&self) -> &'static str {
        "slice"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], _: &[&ArrayType]) -> Factors {
        window::factors(&self.map(), args)
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let lens: Vec<usize> = self.ranges.iter().map(|(range, _)| range.len).collect();
        Ok(vec![Array::from_fn(ArrayType::new(args[0].dtype(), &lens), |index| {
            let places: Vec<usize> = index.iter().zip(&self.ranges).map(|(&i, (range, _))| range.at(i)).collect();
            args[0].get(&places)
        })])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        let ranges: Vec<String> = self.ranges.iter().map(|(range, size)| range.display(*size)).collect();
        format!("{}[{}]", args[0], ranges.join(", "))
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }
}

impl Infer for Slice {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        let sizes: Vec<usize> = self.ranges.iter().map(|(_, size)| *size).collect();
        if sizes != args[0].shape {
            let message = format!("a slice of an array of shape {} is applied to {}", shape::display(&sizes), args[0]);
            return Err(Mismatch::new(Code::E0205, message));
        }
        let inside =
            |range: &SliceRange, size: usize| range.len == 0 || (range.start < size && range.at(range.len - 1) < size);
        if !self.ranges.iter().all(|(range, size)| inside(range, *size)) {
            return Err(Mismatch::new(Code::E0401, format!("a slice reaches beyond the ends of {}", args[0])));
        }
        let lens: Vec<usize> = self.ranges.iter().map(|(range, _)| range.len).collect();
        Ok(vec![ArrayType::new(args[0].dtype, &lens)])
    }
}

impl Rules for Slice {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Linear(self)
    }

    fn batching(&self, size: usize) -> Batching<'_> {
        Batching::shifted(Slice { ranges: [&[(SliceRange::all(size), size)], self.ranges.as_slice()].concat() })
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Point(self)
    }

    fn properties(&self) -> Properties<'_> {
        Properties {
            effect: Effect::None,
            manual: Manual::Local,
            placement: Placement::Follows,
            linear: Linear::Together,
            combines: Combines::Nothing,
            elements: Elements::Window(self),
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

impl WritesStablehlo for Slice {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], results: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        if results[0].is_empty() {
            return Ok(vec![hlo.splat(results[0].dtype(), 0, &results[0].shape)]);
        }
        let step = |range: &SliceRange| range.step.unsigned_abs() as usize;
        let range = |(range, _): &(SliceRange, usize)| {
            let (first, last) = (range.at(0), range.at(range.len - 1));
            (first.min(last), first.max(last) + 1, step(range).max(1))
        };
        let ranges: Vec<(usize, usize, usize)> = self.ranges.iter().map(range).collect();
        let backwards = self.ranges.iter().enumerate().filter(|(_, (range, _))| range.step < 0 && range.len > 1);
        let backwards: Vec<usize> = backwards.map(|(dim, _)| dim).collect();
        let part = hlo.slice(&args[0], &ranges);
        Ok(vec![hlo.reverse(&part, &backwards)])
    }
}

impl Point for Slice {
    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem {
        window::point(kernel, stmt, &self.map(), &[], index)
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Once
    }
}

impl Windowed for Slice {
    fn window(&self, _: &[&ArrayType]) -> WindowMap {
        self.map()
    }
}

impl Slice {
    /// The slice of a whole array.
    pub fn identity(array: &ArrayType) -> Slice {
        Slice { ranges: array.shape.iter().map(|&size| (SliceRange::all(size), size)).collect() }
    }

    fn map(&self) -> WindowMap {
        let dim = |&(range, size): &(SliceRange, usize)| {
            let SliceRange { start, step, len } = range;
            DimMap { size, before: 0, start, step, len, after: 0 }
        };
        WindowMap { dims: self.ranges.iter().map(dim).collect(), fill: 0 }
    }
}

/// The elements of an array at these ranges; the array itself if the ranges are whole.
pub fn slice(build: &mut CallBuilder, value: Value, ranges: &[SliceRange]) -> Result<Value, Diagnostic> {
    let shape = build.ty(value).shape().to_vec();
    let ranges: Vec<(SliceRange, usize)> = ranges.iter().copied().zip(shape).collect();
    if ranges.iter().all(|(range, size)| range.is_all(*size)) {
        return Ok(value);
    }
    build.emit1(Slice { ranges }, &[value])
}

/// The elements of an array at a range of one dimension.
pub fn slice_dim(build: &mut CallBuilder, value: Value, dim: usize, range: SliceRange) -> Result<Value, Diagnostic> {
    let mut ranges: Vec<SliceRange> = build.ty(value).shape().iter().map(|&size| SliceRange::all(size)).collect();
    ranges[dim] = range;
    slice(build, value, &ranges)
}
