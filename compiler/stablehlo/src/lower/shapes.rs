//! Operations that move elements without computing.

use super::{FunctionReader, MlirValue, ShapedExpr, ValueForm, at, dims, ints, malformed, optional_ints, result_type};
use crate::build::Build;
use crate::cursor::Read;
use crate::tree::{Dense, DenseNumber, MlirElement, MlirOp, TensorType, ValueName};
use spmdc_grammar::ast::{Expr, ExprKind, IndexNode};

impl FunctionReader<'_> {
    /// Whether the operation moves elements only; then it is done.
    pub(super) fn shape_operation(&mut self, operation: &MlirOp) -> Read<bool> {
        let build = at(operation);
        match operation.name.as_str() {
            "stablehlo.iota" => {
                let ty = result_type(operation)?;
                let dim = first_of(operation, &["iota_dimension", "dim"])?;
                let Some(&size) = ty.shape.get(dim) else {
                    return Err(malformed(operation, "an iota counts along one of its dimensions"));
                };
                let line = counts(build, size, ty.element);
                if ty.rank() == 1 {
                    let value = self.bound(operation, line)?;
                    self.define(operation, MlirValue { counts_along: Some(dim), ..value });
                    return Ok(true);
                }
                let mut shape = vec![1; ty.rank() - dim];
                shape[0] = size;
                let line = MlirValue::new(self.variable(build, "count", line), ty.with_shape(&[size]));
                let narrow = self.variable(build, "count", in_shape(build, &line, &shape).0);
                let narrow = Some(ShapedExpr { expr: narrow, shape });
                let axis = build.int(dim as i128);
                let value =
                    self.bound(operation, build.call_with("iota", [build.type_value(&ty)], [("axis", axis)]))?;
                self.define(operation, MlirValue { counts_along: Some(dim), narrow, ..value });
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
                        let value = MlirValue::new(super::constants::constant(build, &dense), dense.ty.clone());
                        let value = if dense.ty.rank() == 0 { value } else { self.bound(operation, value.expr)? };
                        self.define(operation, MlirValue { constant: Some(dense), ..value });
                    }
                    None => self.reshape(operation, build, &x, &ty.shape, None)?,
                }
            }
            "stablehlo.transpose" => {
                let [x] = self.some_operands(operation)?;
                let name = if operation.attributes.contains_key("dims") { "dims" } else { "permutation" };
                let order = dims(operation, name, x.ty.rank())?;
                if order.iter().enumerate().all(|(at, &dim)| at == dim) {
                    self.same_as_operands(operation)?;
                } else if order == [1, 0] {
                    let kind = ExprKind::Field { base: Box::new(x.expr), name: build.ident("T") };
                    self.emit(operation, build.expr(kind))?;
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
                if let Some(dense) = joined_constants(&parts, &result_type(operation)?) {
                    let value = self.bound(operation, super::constants::constant(build, &dense))?;
                    self.define(operation, MlirValue { constant: Some(dense), ..value });
                    return Ok(true);
                }
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
                let of = x.shaped();
                let value = self.bound(operation, sliced(build, x.expr, &x.ty.shape, &ranges))?;
                let form = ValueForm::Sliced(of, ranges);
                self.define(operation, MlirValue { factored: x.factored, form, ..value });
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
            let value = self.bound(operation, super::constants::constant(build, &dense))?;
            self.define(operation, MlirValue { constant: Some(dense), ..value });
            return Ok(());
        }
        // The dimensions of the operand may come in another order.
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_by_key(|&dim| places[dim]);
        let is_ordered = order.iter().enumerate().all(|(at, &dim)| at == dim);
        let is_last = places.iter().enumerate().all(|(at, &place)| place == ty.rank() - x.ty.rank() + at);
        let counts_along = x.counts_along.map(|dim| places[dim]);
        let own = x.narrow.clone().unwrap_or_else(|| without_leading_ones(&x));
        let narrow = match is_last || own.shape.is_empty() {
            true => own,
            false => {
                let first = places.iter().copied().min().unwrap_or(0);
                let mut shape = vec![1; ty.rank() - first];
                for (dim, &place) in places.iter().enumerate() {
                    shape[place - first] = x.ty.shape[dim];
                }
                let wide = match is_ordered {
                    true => in_shape(build, &x, &shape).0,
                    false => reshaped(build, build.call("transpose", [x.expr.clone(), build.ints(order)]), &shape),
                };
                ShapedExpr { expr: self.variable(build, "wide", wide), shape }
            }
        };
        if is_ordered && ty.len() == x.ty.len() {
            self.reshape(operation, build, &x, &ty.shape, Some(narrow))?;
        } else {
            let shape = build.ints(ty.shape.iter().copied());
            let value = self.bound(operation, build.call("broadcast_to", [narrow.expr.clone(), shape]))?;
            let is_same_rank = places.len() == ty.rank();
            let mut repeats = x.repeats.clone();
            repeats = repeats.filter(|reduction| is_same_rank && is_ordered && reduction.of.shape == ty.shape);
            if let ValueForm::Reduced(reduction) = &x.form
                && reduction.of.shape == ty.shape
                && places.iter().copied().eq((0..ty.rank()).filter(|dim| !reduction.axes.contains(dim)))
            {
                repeats = Some(Box::new(reduction.clone()));
            }
            self.define(operation, MlirValue { narrow: Some(narrow), repeats, ..value });
        }
        let result = operation.results.first().map(|(name, _)| ValueName { base: name.clone(), index: 0 });
        if let Some(value) = result.and_then(|name| self.values.get_mut(&name)) {
            value.counts_along = counts_along;
        }
        Ok(())
    }

    /// The elements in another shape.
    pub(super) fn reshape(
        &mut self,
        operation: &MlirOp,
        build: Build,
        x: &MlirValue,
        shape: &[usize],
        narrow: Option<ShapedExpr>,
    ) -> Read<()> {
        let (expr, from) = in_shape(build, x, shape);
        let value = self.bound(operation, expr)?;
        let mut repeats = x.repeats.clone().filter(|_| x.ty.shape == shape);
        if let ValueForm::Reduced(reduction) = &x.form
            && reduction.kept_shape() == shape
        {
            repeats = Some(Box::new(reduction.clone()));
        }
        let mut form = ValueForm::Reshaped(from);
        if let ValueForm::Sliced(of, ranges) = &x.form
            && let ([_], [(start, ..)], []) = (of.shape.as_slice(), ranges.as_slice(), shape)
        {
            form = ValueForm::Element(of.clone(), *start);
        }
        self.define(operation, MlirValue { form, narrow, repeats, ..value });
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
        let number = super::constants::literal(build, x.ty.element, &number);
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

/// Maximum number of elements of a line that constants make.
const MAX_CONSTANTS: usize = 64;

/// Short lines of constant integers one after the other, such as the indices of a slice.
fn joined_constants(parts: &[MlirValue], ty: &TensorType) -> Option<Dense> {
    if ty.rank() != 1 || ty.len() > MAX_CONSTANTS || !ty.element.is_integer() {
        return None;
    }
    let lines: Option<Vec<Vec<i128>>> = parts.iter().map(|part| part.constant.as_ref()?.ints()).collect();
    let elements: Vec<DenseNumber> = lines?.into_iter().flatten().map(DenseNumber::Int).collect();
    (elements.len() == ty.len()).then(|| Dense { ty: ty.clone(), elements })
}

/// 0, 1, 2 and so on.
fn counts(build: Build, size: usize, element: MlirElement) -> Expr {
    if element == MlirElement::Signed(32) && size > 0 {
        return build.call("arange", [build.int(size as i128)]);
    }
    build.call("iota", [build.type_value(&TensorType { shape: vec![size], element })])
}

/// An array without the dimensions of one element that a reshape has put before its own.
fn without_leading_ones(x: &MlirValue) -> ShapedExpr {
    let from = x.unshaped();
    let is_same = x.ty.shape.ends_with(&from.shape) && x.ty.len() == from.shape.iter().product();
    if is_same { from } else { x.shaped() }
}

/// The elements of an array in another shape, and the array from which they come.
pub(super) fn in_shape(build: Build, x: &MlirValue, shape: &[usize]) -> (Expr, ShapedExpr) {
    let from = x.unshaped();
    if from.shape == shape {
        return (from.expr.clone(), from);
    }
    if let ValueForm::Reduced(reduction) = &x.form
        && reduction.kept_shape() == shape
    {
        let named = [("axis", axes_of(build, &reduction.axes)), ("keepdims", build.flag(true))];
        return (build.call_with(reduction.function, [reduction.of.expr.clone()], named), from);
    }
    if let ValueForm::Sliced(of, ranges) = &x.form
        && let Some(items) = indexed(build, of, ranges, shape)
    {
        return (build.index(of.expr.clone(), items), from);
    }
    if let ValueForm::Row(of, places) = &x.form
        && let Some(items) = rows_of(build, of, places, shape)
    {
        return (build.index(of.expr.clone(), items), from);
    }
    match with_new_dimensions(build, &from.shape, shape) {
        Some(items) => (build.index(from.expr.clone(), items), from),
        None => (reshaped(build, from.expr.clone(), shape), from),
    }
}

/// `0`, or `(0, 1)`
pub(super) fn axes_of(build: Build, axes: &[usize]) -> Expr {
    match axes {
        [axis] => build.int(*axis as i128),
        _ => build.ints(axes.iter().copied()),
    }
}

/// `0, :, 2:4`: the ranges of an array, of which those of one element that `shape` does not have are indices.
fn indexed(build: Build, of: &ShapedExpr, ranges: &[(usize, usize, usize)], shape: &[usize]) -> Option<Vec<IndexNode>> {
    let mut left = shape.iter().peekable();
    let mut items = Vec::new();
    for (&range, &size) in ranges.iter().zip(&of.shape) {
        let (start, stop, step) = range;
        let len = stop.saturating_sub(start).div_ceil(step);
        if left.next_if(|next| **next == len).is_some() {
            items.push(build.range(range, size));
        } else if len == 1 {
            items.push(IndexNode::Expr(build.int(start as i128)));
        } else {
            return None;
        }
    }
    left.next().is_none().then(|| without_whole_end(items))
}

/// `:, i`: the places of an array, if `shape` has the other dimensions.
fn rows_of(build: Build, of: &ShapedExpr, places: &[Option<Expr>], shape: &[usize]) -> Option<Vec<IndexNode>> {
    let dims = || places.iter().zip(&of.shape);
    let others = dims().filter(|(place, _)| place.is_none()).map(|(_, size)| size);
    let item = |(place, &size): (&Option<Expr>, &usize)| match place {
        Some(place) => IndexNode::Expr(place.clone()),
        None => build.range((0, size, 1), size),
    };
    others.eq(shape).then(|| without_whole_end(dims().map(item).collect()))
}

/// `:, None`: an array of one shape with one or two dimensions of one element more, if `to` is such a shape.
fn with_new_dimensions(build: Build, from: &[usize], to: &[usize]) -> Option<Vec<IndexNode>> {
    let more = to.len().checked_sub(from.len()).filter(|more| (1..=2).contains(more))?;
    if from.is_empty() {
        return None;
    }
    let mut left = from.iter().peekable();
    let mut items = Vec::new();
    for &size in to {
        if left.next_if(|next| **next == size).is_some() {
            items.push(build.range((0, size, 1), size));
        } else if size == 1 {
            items.push(IndexNode::Expr(build.expr(ExprKind::None)));
        } else {
            return None;
        }
    }
    if left.next().is_some() {
        return None;
    }
    let are_last = items[..from.len()].iter().all(|item| matches!(item, IndexNode::Slice { .. }));
    if are_last && from.len() > 1 {
        items.splice(..items.len() - more, [IndexNode::Ellipsis(build.0)]);
    }
    Some(without_whole_end(items))
}

/// Without the whole dimensions at the end, which need no index.
fn without_whole_end(mut items: Vec<IndexNode>) -> Vec<IndexNode> {
    while items.len() > 1 && matches!(items.last(), Some(IndexNode::Slice { start: None, stop: None, step: None, .. }))
    {
        items.pop();
    }
    items
}

/// `reshape(x, (..))`
pub(super) fn reshaped(build: Build, value: Expr, shape: &[usize]) -> Expr {
    build.call("reshape", [value, build.ints(shape.iter().copied())])
}

/// The part of an array of this shape, or the array if it is all of it.
pub(super) fn sliced(build: Build, value: Expr, shape: &[usize], ranges: &[(usize, usize, usize)]) -> Expr {
    let is_all = ranges.iter().zip(shape).all(|(&(start, stop, step), &size)| (start, stop, step) == (0, size, 1));
    if is_all {
        return value;
    }
    let items = ranges.iter().zip(shape).map(|(&range, &size)| build.range(range, size)).collect();
    build.index(value, without_whole_end(items))
}

/// The dimension that one of these attributes names.
pub(super) fn first_of(operation: &MlirOp, names: &[&str]) -> Read<usize> {
    let found = names.iter().find_map(|name| optional_ints(operation, name).first().copied());
    found.and_then(|dim| usize::try_from(dim).ok()).ok_or_else(|| malformed(operation, "a dimension is missing"))
}
