//! Operations that move elements without computing.

use super::{FunctionReader, MlirValue, at, dims, ints, malformed, optional_ints, result_type};
use crate::build::Build;
use crate::cursor::Read;
use crate::tree::{Dense, DenseNumber, MlirElement, MlirOp};
use spmdc_grammar::ast::Expr;

impl FunctionReader<'_> {
    /// Whether the operation moves elements only; then it is done.
    pub(super) fn shape_operation(&mut self, operation: &MlirOp) -> Read<bool> {
        let build = at(operation);
        match operation.name.as_str() {
            "stablehlo.iota" => {
                let ty = result_type(operation)?;
                let dim = first_of(operation, &["iota_dimension", "dim"])?;
                let axis = build.int(dim as i128);
                let value =
                    self.bound(operation, build.call_with("iota", [build.type_value(&ty)], [("axis", axis)]))?;
                self.define(operation, MlirValue { counts_along: Some(dim), ..value });
            }
            "stablehlo.broadcast_in_dim" => self.broadcast(operation)?,
            "stablehlo.reshape" => {
                let [x] = self.some_operands(operation)?;
                let ty = result_type(operation)?;
                if ty.len() != x.ty.len() {
                    return Err(malformed(operation, "a reshape keeps the number of elements"));
                }
                match &x.constant {
                    Some(dense) => {
                        let dense = Dense { ty, elements: dense.elements.clone() };
                        let value = MlirValue::new(super::constant(build, &dense), dense.ty.clone());
                        let value = if dense.ty.rank() == 0 { value } else { self.bound(operation, value.expr)? };
                        self.define(operation, MlirValue { constant: Some(dense), ..value });
                    }
                    None => self.emit(operation, reshaped(build, x.expr, &ty.shape))?,
                }
            }
            "stablehlo.transpose" => {
                let [x] = self.some_operands(operation)?;
                let name = if operation.attributes.contains_key("dims") { "dims" } else { "permutation" };
                let order = dims(operation, name, x.ty.rank())?;
                if order.iter().enumerate().all(|(at, &dim)| at == dim) {
                    self.same_as_operands(operation)?;
                } else {
                    self.emit(operation, build.call("transpose", [x.expr, build.ints(order)]))?;
                }
            }
            "stablehlo.reverse" => {
                let [x] = self.some_operands(operation)?;
                let name = if operation.attributes.contains_key("dims") { "dims" } else { "dimensions" };
                let axes = dims(operation, name, x.ty.rank())?;
                self.emit(operation, build.call_with("flip", [x.expr], [("axis", build.ints(axes))]))?;
            }
            "stablehlo.concatenate" => {
                let parts = self.all_operands(operation)?;
                let axis = first_of(operation, &["dimension", "dim"])?;
                let parts = build.list(parts.into_iter().map(|part| part.expr).collect());
                let axis = build.int(axis as i128);
                self.emit(operation, build.call_with("concatenate", [parts], [("axis", axis)]))?;
            }
            "stablehlo.slice" => {
                let [x] = self.some_operands(operation)?;
                let [start, limit, stride] =
                    ["start_indices", "limit_indices", "strides"].map(|name| ints(operation, name));
                let (start, limit, stride) = (start?, limit?, stride?);
                if [&start, &limit, &stride].iter().any(|list| list.len() != x.ty.rank()) {
                    return Err(malformed(operation, "a slice has one range for each dimension"));
                }
                let is_inside = |dim: usize| {
                    let size = x.ty.shape[dim] as i128;
                    0 <= start[dim] && start[dim] <= limit[dim] && limit[dim] <= size && stride[dim] >= 1
                };
                if !(0..start.len()).all(is_inside) {
                    return Err(malformed(operation, "this slice does not lie in its array"));
                }
                let ranges: Vec<(usize, usize, usize)> = (0..start.len())
                    .map(|dim| (start[dim] as usize, limit[dim] as usize, stride[dim] as usize))
                    .collect();
                let value = self.bound(operation, sliced(build, x.expr, &x.ty.shape, &ranges))?;
                self.define(operation, MlirValue { factored: x.factored, ..value });
            }
            "stablehlo.pad" => self.pad(operation)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn broadcast(&mut self, operation: &MlirOp) -> Read<()> {
        let build = at(operation);
        let [x] = self.some_operands(operation)?;
        let ty = result_type(operation)?;
        let name = if operation.attributes.contains_key("dims") { "dims" } else { "broadcast_dimensions" };
        let places = dims(operation, name, ty.rank())?;
        if places.len() != x.ty.rank() {
            return Err(malformed(operation, "a broadcast has a dimension for each one of its operand"));
        }
        if x.ty == ty && places.iter().enumerate().all(|(at, &dim)| at == dim) {
            return self.same_as_operands(operation);
        }
        if let Some(dense) = x.constant.as_ref().filter(|dense| dense.is_splat()) {
            let dense = Dense { ty, elements: dense.elements.clone() };
            let value = self.bound(operation, super::constant(build, &dense))?;
            self.define(operation, MlirValue { constant: Some(dense), ..value });
            return Ok(());
        }
        // The dimensions of the operand may come in another order.
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_by_key(|&dim| places[dim]);
        let is_ordered = order.iter().enumerate().all(|(at, &dim)| at == dim);
        let is_last = places.iter().enumerate().all(|(at, &place)| place == ty.rank() - x.ty.rank() + at);
        let counts_along = x.counts_along.map(|dim| places[dim]);
        let narrow = match is_last {
            true => x.narrow.clone().unwrap_or(x.expr.clone()),
            false => {
                let ordered = if is_ordered {
                    x.expr.clone()
                } else {
                    build.call("transpose", [x.expr.clone(), build.ints(order)])
                };
                let first = places.iter().copied().min().unwrap_or(0);
                let mut shape = vec![1; ty.rank() - first];
                for (dim, &place) in places.iter().enumerate() {
                    shape[place - first] = x.ty.shape[dim];
                }
                self.variable(build, "wide", reshaped(build, ordered, &shape))
            }
        };
        // A narrow array has fewer elements than the operand.
        let is_whole = ty.len() == x.ty.len() && !(is_last && x.narrow.is_some());
        let value = match is_whole {
            true => self.bound(operation, reshaped(build, narrow.clone(), &ty.shape))?,
            false => self
                .bound(operation, build.call("broadcast_to", [narrow.clone(), build.ints(ty.shape.iter().copied())]))?,
        };
        self.define(operation, MlirValue { narrow: Some(narrow), counts_along, ..value });
        Ok(())
    }

    fn pad(&mut self, operation: &MlirOp) -> Read<()> {
        let build = at(operation);
        let [x, fill] = self.some_operands(operation)?;
        let rank = x.ty.rank();
        let either = |short: &str, long: &str| {
            let found = optional_ints(operation, short);
            if found.is_empty() { optional_ints(operation, long) } else { found }
        };
        let low = either("low", "edge_padding_low");
        let high = either("high", "edge_padding_high");
        let between = either("interior", "interior_padding");
        let is_width = |&width: &i128| width.unsigned_abs() < 1 << 40;
        let are_widths = low.iter().chain(&high).chain(&between).all(is_width) && between.iter().all(|&gap| gap >= 0);
        let is_small = |(dim, &size): (usize, &usize)| (size as i128) * (between[dim] + 1) < 1 << 48;
        let fits = [&low, &high, &between].iter().all(|list| list.len() == rank)
            && are_widths
            && x.ty.shape.iter().enumerate().all(is_small);
        if !fits {
            return Err(malformed(operation, "a pad has widths for each dimension"));
        }
        if rank == 0 {
            return self.emit(operation, x.expr);
        }
        let value = self.padded_by(build, &x, &fill, (&low, &high, &between));
        let value = self.bound(operation, value)?;
        let factored = x.factored.filter(|_| fill.splat().is_some());
        self.define(operation, MlirValue { factored, ..value });
        Ok(())
    }

    /// The array with a scalar before, after and between its elements: a number, or a computed one, which is chosen by a mask.
    pub(super) fn padded_by(
        &mut self,
        build: Build,
        x: &MlirValue,
        fill: &MlirValue,
        (low, high, between): (&[i128], &[i128], &[i128]),
    ) -> Expr {
        let number = fill.splat().cloned().unwrap_or(DenseNumber::Int(0));
        let number = super::literal(build, x.ty.element, &number);
        let result = padded(self, build, x.expr.clone(), number, (&x.ty.shape, low, high, between));
        if fill.splat().is_some() {
            return result;
        }
        let ones = build.call("ones", [build.type_value(&x.ty.with(MlirElement::Bool))]);
        let exists = padded(self, build, ones, build.flag(false), (&x.ty.shape, low, high, between));
        build.call("where", [exists, result, fill.expr.clone()])
    }
}

/// The array with elements before, after and between its own.
fn padded(
    lowering: &mut FunctionReader<'_>,
    build: Build,
    mut value: Expr,
    number: Expr,
    (shape, low, high, between): (&[usize], &[i128], &[i128], &[i128]),
) -> Expr {
    let mut shape = shape.to_vec();
    let pad = |value: Expr, widths: Vec<(i128, i128)>| {
        let widths = widths.into_iter().map(|(low, high)| build.tuple(vec![build.int(low), build.int(high)]));
        build.call_with("pad", [value, build.tuple(widths.collect())], [("constant_values", number.clone())])
    };
    for dim in 0..shape.len() {
        let gap = between[dim];
        if gap == 0 || shape[dim] == 0 {
            continue;
        }
        // Each element gets the gap after it in a dimension of its own; the last gap is cut off.
        let mut wide = shape.clone();
        wide.insert(dim + 1, 1);
        let apart = lowering.variable(build, "apart", reshaped(build, value, &wide));
        let mut widths = vec![(0, 0); wide.len()];
        widths[dim + 1] = (0, gap);
        shape[dim] *= gap as usize + 1;
        let joined = lowering.variable(build, "joined", reshaped(build, pad(apart, widths), &shape));
        let mut ranges: Vec<(usize, usize, usize)> = shape.iter().map(|&size| (0, size, 1)).collect();
        ranges[dim].1 -= gap as usize;
        value = sliced(build, joined, &shape, &ranges);
        shape[dim] -= gap as usize;
    }
    if low.iter().chain(high).any(|&width| width > 0) {
        let widths = low.iter().zip(high).map(|(&low, &high)| (low.max(0), high.max(0))).collect();
        value = pad(value, widths);
    }
    for dim in 0..shape.len() {
        shape[dim] += (low[dim].max(0) + high[dim].max(0)) as usize;
    }
    if low.iter().chain(high).any(|&width| width < 0) {
        let ranges: Vec<(usize, usize, usize)> = (0..shape.len())
            .map(|dim| {
                let (start, end) = ((-low[dim]).max(0) as usize, (-high[dim]).max(0) as usize);
                (start.min(shape[dim]), shape[dim].saturating_sub(end).max(start.min(shape[dim])), 1)
            })
            .collect();
        value = sliced(build, value, &shape, &ranges);
    }
    value
}

/// `reshape(x, (..))`
pub(super) fn reshaped(build: Build, value: Expr, shape: &[usize]) -> Expr {
    build.call("reshape", [value, build.ints(shape.iter().copied())])
}

/// The part of an array of this shape, or the array if it is all of it.
pub(super) fn sliced(build: Build, value: Expr, shape: &[usize], ranges: &[(usize, usize, usize)]) -> Expr {
    let is_all = ranges.iter().zip(shape).all(|(&(start, stop, step), &size)| (start, stop, step) == (0, size, 1));
    if is_all { value } else { build.sliced(value, ranges) }
}

/// The dimension that one of these attributes names.
pub(super) fn first_of(operation: &MlirOp, names: &[&str]) -> Read<usize> {
    let found = names.iter().find_map(|name| optional_ints(operation, name).first().copied());
    found.and_then(|dim| usize::try_from(dim).ok()).ok_or_else(|| malformed(operation, "a dimension is missing"))
}
