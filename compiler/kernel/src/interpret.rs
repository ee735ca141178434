//! Runs a kernel one point at a time, by definition: the model for generated code.
//!
//! The terms of sums are added in the [`Order`] of the kernel; nothing else is reordered. A value is computed only if it is needed, so an
//! address out of range in the untaken operand of a `select` is not an error. Any other address out of range panics.

use super::draws::element;
use super::loops::{Affine, Combine, Elem, Extent, Inst, Kernel, KernelCheck, Store};
use super::nest::{Nest, Order};
use super::order::{LANES, depends_on_order, fold_lanes};
use super::repeats;
use crate::number;
use crate::scalar::{BinaryOp, CompareOp};
use spmdc_abi::{DType, ReduceOp, counted_index, threefry, trap};
use std::ops::Range;

/// Runs a part of the range over whole buffers, as a `KernelFn` would, and returns 0 or a trap code.
pub fn run(kernel: &Kernel, buffers: &mut [Vec<u8>], scalars: &[i64], begin: i64, end: i64) -> i64 {
    if begin >= end {
        return trap::NONE;
    }
    let nest = Nest::uncut(kernel);
    let mut interpreter = NestInterpreter {
        kernel,
        lanes: match nest.sums {
            Order::Lanes { dim } => Some(nest.dims[dim].of.clone()),
            Order::Any | Order::InTurn => None,
        },
        buffers,
        scalars,
        index: vec![0; kernel.dims.len()],
        values: Vec::new(),
        inside: nest.inside,
        checks: kernel.checks(),
        trap: None,
    };
    interpreter.parallel(0, begin, end);
    interpreter.trap.unwrap_or(trap::NONE)
}

struct NestInterpreter<'a> {
    kernel: &'a Kernel,
    /// The dimensions along which sums run by lanes, as if they were one.
    lanes: Option<Range<usize>>,
    buffers: &'a mut [Vec<u8>],
    scalars: &'a [i64],
    index: Vec<i64>,
    /// The known values at the current point.
    values: Vec<Option<u64>>,
    /// For each instruction the innermost loop of the body that it is inside.
    inside: Vec<Option<Elem>>,
    checks: Vec<KernelCheck>,
    /// The least code of the failures so far; values computed from a failure do not matter.
    trap: Option<i64>,
}

/// A partial result: an element, and its position.
type Partial = Option<(u64, i64)>;

/// The partial results of a store: one in turn, or one for each lane; the last for the remaining terms.
type Partials = [Partial; LANES as usize + 1];

const LEFT_OVER: usize = LANES as usize;

impl NestInterpreter<'_> {
    fn parallel(&mut self, dim: usize, begin: i64, end: i64) {
        let Some(of) = self.kernel.dims.get(dim).filter(|of| !of.reduced) else {
            return self.results();
        };
        let range = if dim == 0 && self.kernel.range_dim { begin..end } else { 0..self.extent(&of.extent) };
        for i in range {
            self.index[dim] = i;
            self.parallel(dim + 1, begin, end);
        }
    }

    fn extent(&self, extent: &Extent) -> i64 {
        match *extent {
            Extent::Static(n) => n as i64,
            Extent::Scalar { slot, .. } => self.scalars[slot],
        }
    }

    /// All points of the reduced dimensions, then the stores of the combined values.
    fn results(&mut self) {
        let mut partials: Vec<Partials> = vec![[None; LANES as usize + 1]; self.kernel.stores.len()];
        let first = self.kernel.dims.iter().position(|dim| dim.reduced).unwrap_or(self.kernel.dims.len());
        let extents: Vec<i64> = self.kernel.dims[first..].iter().map(|dim| self.extent(&dim.extent)).collect();
        for position in 0..extents.iter().product() {
            let mut rest = position;
            for (at, &extent) in extents.iter().enumerate().rev() {
                self.index[first + at] = rest % extent;
                rest /= extent;
            }
            self.point(position, &mut partials);
        }
        let kernel = self.kernel;
        for (store, partials) in kernel.stores.iter().zip(partials) {
            if let Some(combine) = store.combine {
                let partial = match &self.lanes {
                    Some(_) if depends_on_order(combine, store.dtype) => folded(store.dtype, combine, &partials),
                    Some(_) | None => partials[0],
                };
                let bits = finish(store.dtype, combine, partial);
                match combine {
                    Combine::Scan { .. } => {}
                    Combine::Reduce(_) => self.store(store, store.dtype, bits),
                    Combine::ArgMax | Combine::ArgMin => self.store(store, DType::I32, bits),
                }
            }
        }
    }

    fn runs_by_lanes(&self, combine: Combine, dtype: DType) -> bool {
        self.lanes.is_some() && depends_on_order(combine, dtype)
    }

    /// The index of the current point's partial result if sums run by lanes.
    fn lane(&self) -> usize {
        let Some(dims) = self.lanes.clone() else { return 0 };
        let (mut at, mut length) = (0, 1);
        for dim in dims {
            let extent = self.extent(&self.kernel.dims[dim].extent);
            (at, length) = (at * extent + self.index[dim], length * extent);
        }
        let lanes = i64::from(LANES);
        if at < length / lanes * lanes { (at % lanes) as usize } else { LEFT_OVER }
    }

    /// One point: every load comes before any store.
    fn point(&mut self, position: i64, partials: &mut [Partials]) {
        self.values = vec![None; self.kernel.insts.len()];
        let kernel = self.kernel;
        let mut values = Vec::with_capacity(kernel.stores.len());
        for store in &kernel.stores {
            let first = store.combine.and_then(Combine::operand).map(|first| self.value(first));
            values.push((self.value(store.value), first));
        }
        let lane = self.lane();
        for ((store, (bits, first)), partials) in kernel.stores.iter().zip(values).zip(partials) {
            let by_lanes = store.combine.is_some_and(|combine| self.runs_by_lanes(combine, store.dtype));
            let partial = &mut partials[if by_lanes { lane } else { 0 }];
            match store.combine {
                None => self.store(store, store.dtype, bits),
                Some(combine) => {
                    if let (Combine::Scan { .. }, None, Some(first)) = (combine, &partial, first) {
                        *partial = Some(combined(store.dtype, combine, None, first, position));
                    }
                    let before = *partial;
                    *partial = Some(combined(store.dtype, combine, before, bits, position));
                    if combine.is_scan() {
                        let total = if combine.is_exclusive() { before } else { *partial };
                        self.store(store, store.dtype, finish(store.dtype, combine, total));
                    }
                }
            }
        }
    }

    fn store(&mut self, store: &Store, dtype: DType, bits: u64) {
        let at = self.affine(&store.access.address);
        write(&mut self.buffers[store.access.buffer], dtype, at, bits);
    }

    fn affine(&mut self, affine: &Affine) -> i64 {
        let terms: i64 = affine.terms.iter().map(|&(dim, stride)| self.index[dim] * stride).sum();
        let scalars: i64 = affine.scalars.iter().map(|&(slot, stride)| self.scalars[slot] * stride).sum();
        let dynamic: i64 = affine
            .dynamic
            .iter()
            .map(|&(elem, stride)| {
                let inst = &self.kernel.insts[elem.0 as usize];
                let is_limited = matches!(inst, Inst::LoopInvariant { .. } | Inst::Limit { .. });
                assert!(is_limited, "{inst:?} is no dynamic index");
                self.value(elem) as i64 * stride
            })
            .sum();
        affine.constant + terms + scalars + dynamic
    }

    fn fail(&mut self, inst: &Inst, value: i64) {
        let code = inst.trap(&self.checks, value);
        self.trap = Some(self.trap.map_or(code, |least| least.min(code)));
    }

    fn value(&mut self, elem: Elem) -> u64 {
        if let Some(bits) = self.values[elem.0 as usize] {
            return bits;
        }
        let kernel = self.kernel;
        let undefined = "the operation is defined for the type";
        let inst = &kernel.insts[elem.0 as usize];
        let bits = match inst {
            Inst::Load { access, dtype } => {
                let at = self.affine(&access.address);
                read(&self.buffers[access.buffer], *dtype, at)
            }
            Inst::Const { bits, .. } => *bits,
            Inst::Index { affine, dtype } => {
                let index = self.affine(affine);
                number::cast(DType::I64, *dtype, index as u64).expect(undefined)
            }
            Inst::LoopInvariant { buffer, last } => read(&self.buffers[*buffer], DType::I64, 0).min(*last),
            Inst::CheckIndex { dtype, arg, extent, .. } => {
                let arg = self.value(*arg);
                let index = number::to_int(*dtype, arg);
                match counted_index(index, i128::from(*extent), 1) {
                    Some(counted) => counted as u64,
                    None => {
                        self.fail(inst, index.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64);
                        0
                    }
                }
            }
            Inst::Limit { arg, last } => self.value(*arg).min(*last),
            Inst::Unary { op, dtype, arg } => {
                let arg = self.value(*arg);
                number::eval_unary(*op, *dtype, arg).expect(undefined)
            }
            Inst::Binary { op, dtype, lhs, rhs, .. } => {
                let (lhs, rhs) = (self.value(*lhs), self.value(*rhs));
                if inst.divides_integers() && rhs == 0 {
                    self.fail(inst, 0);
                    0
                } else {
                    number::eval_binary(*op, *dtype, lhs, rhs).expect(undefined)
                }
            }
            Inst::Compare { op, dtype, lhs, rhs } => {
                let (lhs, rhs) = (self.value(*lhs), self.value(*rhs));
                u64::from(number::eval_compare(*op, *dtype, lhs, rhs).expect(undefined))
            }
            Inst::Select { cond, then, otherwise, .. } => {
                let taken = if self.value(*cond) != 0 { then } else { otherwise };
                self.value(*taken)
            }
            Inst::Fma { dtype, x, y, z } => {
                let [x, y, z] = [x, y, z].map(|&operand| self.value(operand));
                number::eval_fma(*dtype, x, y, z).expect(undefined)
            }
            Inst::Cast { from, to, arg } => {
                let arg = self.value(*arg);
                number::cast(*from, *to, arg).expect(undefined)
            }
            Inst::Bitcast { arg, .. } => self.value(*arg),
            Inst::RandomBits { dtype, key, at } => {
                let key = number::cast(DType::Key, DType::U64, self.value(*key)).expect(undefined);
                let counter = threefry::words(self.affine(at) as u64);
                element(*dtype, threefry::threefry2x32(threefry::words(key), counter)).expect(undefined)
            }
            Inst::InRange { affine, low, high } => {
                let (at, low, high) = (self.affine(affine), self.affine(low), self.affine(high));
                u64::from(low <= at && at < high)
            }
            Inst::Carried { .. } => panic!("{inst:?} is used outside its loop"),
            Inst::Repeat { trips, carried } => self.repeat(elem, *trips, carried),
            Inst::Last { repeat, place, .. } => {
                self.value(*repeat);
                let Inst::Repeat { carried, .. } = &kernel.insts[repeat.0 as usize] else {
                    panic!("{inst:?} has no loop")
                };
                self.values[carried[*place].0.0 as usize].expect("the loop has run")
            }
        };
        self.values[elem.0 as usize] = Some(bits);
        bits
    }
}

impl NestInterpreter<'_> {
    /// Runs a loop of the body, after which its carried values are the values after the last trip; returns the number of trips.
    fn repeat(&mut self, repeat: Elem, trips: Elem, carried: &[(Elem, Elem)]) -> u64 {
        let trips = (self.value(trips) as i64).max(0);
        let first = |this: &mut Self, value: Elem| {
            let Inst::Carried { init, .. } = this.kernel.insts[value.0 as usize] else {
                panic!("{value:?} is not carried")
            };
            this.value(init)
        };
        let mut now: Vec<u64> = carried.iter().map(|&(value, _)| first(self, value)).collect();
        let within: Vec<usize> =
            (0..self.values.len()).filter(|&at| repeats::is_within(&self.inside, Elem(at as u32), repeat)).collect();
        let begin = |this: &mut Self, now: &[u64]| {
            within.iter().for_each(|&at| this.values[at] = None);
            carried.iter().zip(now).for_each(|((value, _), &bits)| this.values[value.0 as usize] = Some(bits));
        };
        for _ in 0..trips {
            begin(self, &now);
            now = carried.iter().map(|&(_, next)| self.value(next)).collect();
        }
        begin(self, &now);
        trips as u64
    }
}

fn read(buffer: &[u8], dtype: DType, at: i64) -> u64 {
    let start = usize::try_from(at).expect("the address is not negative") * dtype.size();
    let bytes = buffer[start..start + dtype.size()].iter().rev();
    bytes.fold(0, |bits, &byte| bits << 8 | u64::from(byte))
}

fn write(buffer: &mut [u8], dtype: DType, at: i64, bits: u64) {
    let start = usize::try_from(at).expect("the address is not negative") * dtype.size();
    buffer[start..start + dtype.size()].copy_from_slice(&bits.to_le_bytes()[..dtype.size()]);
}

/// The type of a partial result: sums and products of narrow floats accumulate in f32.
fn accumulator(dtype: DType, op: ReduceOp) -> DType {
    if matches!(op, ReduceOp::Sum | ReduceOp::Product) { dtype.computed() } else { dtype }
}

fn operation(op: ReduceOp) -> BinaryOp {
    match op {
        ReduceOp::Sum => BinaryOp::Add,
        ReduceOp::Product => BinaryOp::Mul,
        ReduceOp::Max => BinaryOp::Maximum,
        ReduceOp::Min => BinaryOp::Minimum,
        ReduceOp::And => BinaryOp::And,
        ReduceOp::Or => BinaryOp::Or,
    }
}

fn combined(dtype: DType, combine: Combine, partial: Partial, bits: u64, position: i64) -> (u64, i64) {
    let (first, op) = match combine {
        Combine::Reduce(op) | Combine::Scan { op, .. } => {
            let of = accumulator(dtype, op);
            let bits = number::cast(dtype, of, bits).expect("narrow floats widen");
            // A scan begins with its first value, any other combination with the identity element.
            let before = match partial {
                Some((sum, _)) => sum,
                None if combine.is_scan() => return (bits, 0),
                None => number::identity_element(op, of),
            };
            return (number::eval_binary(operation(op), of, before, bits).expect("the type can be reduced so"), 0);
        }
        Combine::ArgMax => (CompareOp::Gt, CompareOp::Ne),
        Combine::ArgMin => (CompareOp::Lt, CompareOp::Ne),
    };
    let Some((best, at)) = partial else { return (bits, position) };
    let is_nan = |x: u64| number::eval_compare(op, dtype, x, x) == Some(true);
    let beyond = number::eval_compare(first, dtype, bits, best) == Some(true) || is_nan(bits);
    if beyond && !is_nan(best) { (bits, position) } else { (best, at) }
}

/// The sum of all lanes and of the remaining terms.
fn folded(dtype: DType, combine: Combine, partials: &Partials) -> Partial {
    let Combine::Reduce(op) = combine else { return partials[0] };
    let of = accumulator(dtype, op);
    let bits = |partial: &Partial| partial.map_or(number::identity_element(op, of), |(bits, _)| bits);
    let add = |a, b| number::eval_binary(operation(op), of, a, b).expect("the type can be reduced so");
    let lanes = fold_lanes(partials[..LEFT_OVER].iter().map(bits).collect(), add)?;
    Some((add(lanes, bits(&partials[LEFT_OVER])), 0))
}

/// The element to store; without any point the identity element.
fn finish(dtype: DType, combine: Combine, partial: Partial) -> u64 {
    let op = match combine {
        Combine::ArgMax | Combine::ArgMin => return partial.map_or(0, |(_, position)| position as u64),
        Combine::Reduce(op) | Combine::Scan { op, .. } => op,
    };
    let (bits, of) = match partial {
        Some((bits, _)) => (bits, accumulator(dtype, op)),
        None => (number::identity_element(op, dtype), dtype),
    };
    number::cast(of, dtype, bits).expect("single precision narrows")
}
