//! Elements at indices: gathers, scatters, and slices at dynamic places.

use super::products::{custom_ints, in_order};
use super::reductions::{RegionFunction, is_identity};
use super::shapes::{reshaped, sliced};
use super::{FunctionReader, MlirValue, ValueForm, at, malformed, result_type, unsupported};
use crate::build::Build;
use crate::cursor::Read;
use crate::tree::{Attribute, Dense, DenseNumber, MlirOp, TensorType};
use spmdc_grammar::ast::{Expr, IndexNode, InfixOp, StmtNode, StmtNodeKind};

/// The dimension numbers of a gather or scatter.
pub(super) struct DimensionNumbers {
    /// The dimensions of the slices in the result, or in the updates.
    offset: Vec<usize>,
    collapsed: Vec<usize>,
    /// The dimensions of the operand that are batched, and those of the indices.
    pub batch: Vec<usize>,
    pub of_indices: Vec<usize>,
    /// The dimension of the operand to which each index belongs.
    pub map: Vec<usize>,
    /// The dimension of the indices along which one element's indices lie.
    pub vector: usize,
}

impl DimensionNumbers {
    fn new(operation: &MlirOp, attribute: &str, names: [&str; 5]) -> Read<DimensionNumbers> {
        let Some(Attribute::Custom(_, inside)) = operation.attributes.get(attribute) else {
            return Err(malformed(operation, format!("`{}` requires dimension numbers", operation.name)));
        };
        let list = |name: &str| custom_ints(inside, name).into_iter().map(|dim| dim as usize).collect();
        let [offset, collapsed, batch, of_indices, map] = names.map(list);
        let vector = custom_ints(inside, "index_vector_dim").first().copied().unwrap_or(0) as usize;
        Ok(DimensionNumbers { offset, collapsed, batch, of_indices, map, vector })
    }

    /// The dimensions of an array of this rank that slices of it have.
    fn slice_dims(&self, rank: usize) -> Vec<usize> {
        (0..rank).filter(|dim| !self.collapsed.contains(dim) && !self.batch.contains(dim)).collect()
    }

    /// The shape of the indices without the dimension along which one element's indices lie.
    pub fn index_shape(&self, indices: &MlirValue) -> Vec<usize> {
        let mut shape = indices.ty.shape.clone();
        if self.vector < shape.len() {
            shape.remove(self.vector);
        }
        shape
    }

    /// The origin of each dimension of the result of a gather, or of the updates of a scatter, of this `rank`; the array has rank `of`.
    pub fn sources(&self, of: usize, rank: usize) -> Vec<SourceDim> {
        let mut of_slices = self.slice_dims(of).into_iter().map(SourceDim::Operand);
        let mut of_indices = (0..).map(SourceDim::Index);
        let source = |dim: usize| if self.offset.contains(&dim) { of_slices.next() } else { of_indices.next() };
        (0..rank).filter_map(source).collect()
    }

    /// E0110 unless these numbers name dimensions of an array and of its indices, and as many offsets as slices have dimensions.
    fn check(&self, op: &MlirOp, x: &MlirValue, indices: &MlirValue) -> Read<()> {
        let mut own: Vec<usize> = self.collapsed.iter().chain(&self.batch).copied().collect();
        own.sort_unstable();
        let are_distinct = own.windows(2).all(|pair| pair[0] < pair[1]);
        let vector = indices.ty.shape.get(self.vector).copied().unwrap_or(1);
        let fits = are_distinct
            && own.iter().chain(&self.map).all(|&dim| dim < x.ty.rank())
            && self.vector <= indices.ty.rank()
            && vector == self.map.len()
            && self.batch.len() == self.of_indices.len()
            && self.offset.len() == x.ty.rank() - own.len();
        if fits { Ok(()) } else { Err(malformed(op, "these dimension numbers do not fit the operands")) }
    }
}

/// A dimension of `x[indices]`.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum SourceDim {
    /// A dimension of the indices.
    Index(usize),
    /// A dimension of the operand.
    Operand(usize),
}

/// Elements of an array in the form of `x[items]`.
#[derive(Clone)]
struct IndexedPlaces {
    items: Vec<IndexNode>,
    /// The dimensions of `x[items]`.
    dims: Vec<SourceDim>,
    /// Their sizes.
    sizes: Vec<usize>,
    /// Whether each index is inside of the array, for the dimensions of the indices.
    inside: Option<Expr>,
    /// The first dimension to which indices belong.
    first: Option<usize>,
}

/// The effect of an update on an element.
enum ScatterUpdate {
    Replace,
    Combine(RegionFunction),
    /// A function of the element and the update.
    MlirFunction(Expr),
}

impl ScatterUpdate {
    fn of(&self, build: Build, old: Expr, new: Expr) -> Expr {
        match self {
            ScatterUpdate::Replace => new,
            ScatterUpdate::Combine(combination) => combination.of(build, old, new),
            ScatterUpdate::MlirFunction(function) => build.call_of(function.clone(), [old, new], []),
        }
    }
}

/// The treatment of indices outside of an array.
#[derive(Clone, Copy, PartialEq)]
enum Outside {
    /// They are moved inside.
    Clamped,
    /// They are one after the last element.
    AfterEnd,
}

impl FunctionReader<'_> {
    /// The places of slices of these sizes at the indices.
    fn places(
        &mut self,
        operation: &MlirOp,
        (x, indices): (&MlirValue, &MlirValue),
        numbers: &DimensionNumbers,
        sizes: &[usize],
        outside: Outside,
    ) -> Read<IndexedPlaces> {
        let build = at(operation);
        let rank = x.ty.rank();
        let bad = || malformed(operation, "these dimension numbers do not fit the operands");
        if sizes.len() != rank {
            return Err(bad());
        }
        let index_type = indices.ty.element;
        let has_vector = numbers.vector < indices.ty.rank();
        let batch = numbers.index_shape(indices);
        // Windows of several elements along an indexed dimension add a dimension to the indices.
        let is_window = |dim: usize| numbers.map.contains(&dim) && sizes[dim] != 1 && sizes[dim] != x.ty.shape[dim];
        let windows: Vec<usize> = (0..rank).filter(|&dim| is_window(dim)).collect();
        let all_rank = batch.len() + windows.len();
        let one_of = |at: usize| -> Expr {
            if !has_vector {
                return indices.expr.clone();
            }
            if let ValueForm::Reshaped(from) = &indices.form
                && from.shape == batch
                && numbers.map.len() == 1
            {
                return from.expr.clone();
            }
            if indices.ty.rank() == 1 {
                return build.index(indices.expr.clone(), vec![IndexNode::Expr(build.int(at as i128))]);
            }
            let items = (0..indices.ty.rank())
                .map(|dim| match dim == numbers.vector {
                    true => IndexNode::Expr(build.int(at as i128)),
                    false => IndexNode::Slice { start: None, stop: None, step: None, span: build.0 },
                })
                .collect();
            build.index(indices.expr.clone(), items)
        };
        let mut inside: Option<Expr> = None;
        let mut items = Vec::new();
        let mut kept = Vec::new();
        let mut indexed = Vec::new();
        for (dim, (&all, &len)) in x.ty.shape.iter().zip(sizes).enumerate() {
            if let Some(place) = numbers.batch.iter().position(|&own| own == dim) {
                let of = *numbers.of_indices.get(place).ok_or_else(bad)?;
                let along = if of > numbers.vector { of - 1 } else { of };
                let mut shape = vec![1; all_rank];
                *shape.get_mut(along).ok_or_else(bad)? = all;
                let ty = TensorType { shape: vec![all], element: index_type };
                let count = build.call("iota", [build.type_value(&ty)]);
                items.push(IndexNode::Expr(reshaped(build, count, &shape)));
                indexed.push(dim);
                continue;
            }
            let of_index = numbers
                .map
                .iter()
                .position(|&own| own == dim)
                .filter(|_| len != all || all == 1 || outside == Outside::AfterEnd);
            let Some(at) = of_index else {
                let is_all = sizes[dim] == all;
                items.push(IndexNode::Slice {
                    start: None,
                    stop: (!is_all).then(|| build.int(sizes[dim] as i128)),
                    step: None,
                    span: build.0,
                });
                kept.push(dim);
                continue;
            };
            let most = all as i128 - sizes[dim] as i128;
            if most < 0 {
                return Err(bad());
            }
            let start = self.variable(build, "at", one_of(at));
            let start = match outside {
                Outside::Clamped => {
                    let zero = build.cast(index_type, build.int(0));
                    let most = build.cast(index_type, build.int(most));
                    build.call("clamp", [zero, start, most])
                }
                Outside::AfterEnd => {
                    inside = Some(also_inside(build, inside.take(), &start, most));
                    start
                }
            };
            let mut index = start;
            if !windows.is_empty() && all_rank > 0 {
                let mut shape = batch.clone();
                shape.resize(all_rank, 1);
                index = reshaped(build, index, &shape);
            }
            if let Some(place) = windows.iter().position(|&own| own == dim) {
                let ty = TensorType { shape: vec![sizes[dim]], element: index_type };
                let mut shape = vec![1; all_rank];
                shape[batch.len() + place] = sizes[dim];
                let count = reshaped(build, build.call("iota", [build.type_value(&ty)]), &shape);
                index = build.binary(InfixOp::Add, index, count);
            }
            items.push(IndexNode::Expr(index));
            indexed.push(dim);
        }
        // NumPy puts the dimensions of indices in front unless the indexed dimensions are neighbours.
        let of_indices: Vec<(SourceDim, usize)> = (0..batch.len())
            .map(|dim| (SourceDim::Index(dim), batch[dim]))
            .chain(windows.iter().map(|&dim| (SourceDim::Operand(dim), sizes[dim])))
            .collect();
        let are_neighbours = indexed.windows(2).all(|pair| pair[1] == pair[0] + 1);
        let before = match indexed.first() {
            Some(&first) if are_neighbours => kept.iter().filter(|&&dim| dim < first).count(),
            Some(_) | None => 0,
        };
        let mut all: Vec<(SourceDim, usize)> = kept.iter().map(|&dim| (SourceDim::Operand(dim), sizes[dim])).collect();
        if indexed.is_empty() {
            return Ok(IndexedPlaces {
                items,
                dims: all.iter().map(|&(dim, _)| dim).collect(),
                sizes: all.iter().map(|&(_, size)| size).collect(),
                inside,
                first: None,
            });
        }
        all.splice(before..before, of_indices);
        Ok(IndexedPlaces {
            items,
            dims: all.iter().map(|&(dim, _)| dim).collect(),
            sizes: all.iter().map(|&(_, size)| size).collect(),
            inside,
            first: indexed.iter().find(|dim| !numbers.batch.contains(dim)).or(indexed.first()).copied(),
        })
    }

    pub(super) fn gather(&mut self, operation: &MlirOp) -> Read<()> {
        let build = at(operation);
        let [x, indices] = self.some_operands(operation)?;
        let names = [
            "offset_dims",
            "collapsed_slice_dims",
            "operand_batching_dims",
            "start_indices_batching_dims",
            "start_index_map",
        ];
        let numbers = DimensionNumbers::new(operation, "dimension_numbers", names)?;
        numbers.check(operation, &x, &indices)?;
        let sizes: Vec<usize> = super::ints(operation, "slice_sizes")?.into_iter().map(|size| size as usize).collect();
        let ty = result_type(operation)?;
        let places = self.places(operation, (&x, &indices), &numbers, &sizes, Outside::Clamped)?;
        let found = match places.items.is_empty() {
            true => x.expr.clone(),
            false => build.index(x.expr.clone(), places.items.clone()),
        };
        // The dimensions of the result: offsets at their places, and the dimensions of the indices around them.
        let wanted = numbers.sources(x.ty.rank(), ty.rank());
        let result = arranged(build, found, (&places.dims, &places.sizes), (&wanted, &ty.shape))
            .ok_or_else(|| unsupported(operation, "with these dimension numbers"))?;
        self.emit(operation, result)
    }

    pub(super) fn scatter(&mut self, operation: &MlirOp) -> Read<()> {
        let build = at(operation);
        let operands = self.all_operands(operation)?;
        let count = operands.len() / 2;
        if operands.len() != 2 * count + 1 || count == 0 {
            return Err(malformed(operation, "a scatter has indices, and updates for each array"));
        }
        let (arrays, rest) = operands.split_at(count);
        let (x, indices, all_updates) = (&arrays[0], &rest[0], &rest[1..]);
        let updates = &all_updates[0];
        let names = [
            "update_window_dims",
            "inserted_window_dims",
            "input_batching_dims",
            "scatter_indices_batching_dims",
            "scatter_dims_to_operand_dims",
        ];
        let numbers = DimensionNumbers::new(operation, "scatter_dimension_numbers", names)?;
        numbers.check(operation, x, indices)?;
        let Some(region) = operation.regions.first() else {
            return Err(malformed(operation, "a scatter has a function"));
        };
        let mut sizes = vec![1; x.ty.rank()];
        for (dim, &of) in numbers.slice_dims(x.ty.rank()).into_iter().zip(&numbers.offset) {
            sizes[dim] =
                *updates.ty.shape.get(of).ok_or_else(|| malformed(operation, "an update has no such dimension"))?;
        }
        let are_alike = |all: &[MlirValue]| all.iter().all(|one| one.ty.shape == all[0].ty.shape);
        let fit = sizes.iter().zip(&x.ty.shape).all(|(size, all)| size <= all);
        if !are_alike(arrays) || !are_alike(all_updates) || !fit {
            return Err(malformed(operation, "the updates do not fit the arrays"));
        }
        let combination = RegionFunction::of_region(region);
        let is_unique = matches!(operation.attributes.get("unique_indices"), Some(Attribute::Bool(true)));
        let is_one = numbers.index_shape(indices).iter().all(|&size| size == 1) && numbers.batch.is_empty();
        let is_window = |dim: &usize| sizes[*dim] != 1 && numbers.map.contains(dim);
        let has_windows = (0..sizes.len()).any(|dim| is_window(&dim));
        let is_whole = |dim: usize| is_window(&dim) && sizes[dim] == x.ty.shape[dim];
        let is_expressible = match combination {
            Some(RegionFunction::Max | RegionFunction::Min) => !has_windows,
            Some(RegionFunction::Add | RegionFunction::Multiply | RegionFunction::Or) => true,
            Some(RegionFunction::And) => false,
            None => is_unique || returns_update(region),
        };
        let needs_order = count > 1 || !is_one && (!is_expressible || (0..sizes.len()).any(is_whole));
        if needs_order {
            return self.scatter_in_order(operation, (arrays, indices, all_updates), &numbers, &sizes);
        }
        let update = match combination {
            Some(combination) => ScatterUpdate::Combine(combination),
            None if returns_update(region) => ScatterUpdate::Replace,
            None => ScatterUpdate::MlirFunction(self.lambda(operation, region)?),
        };
        if is_one {
            return self.scatter_one(operation, (x, indices, updates), &numbers, &sizes, update);
        }
        let places = self.places(operation, (x, indices), &numbers, &sizes, Outside::AfterEnd)?;
        // The updates in the order of `x[items]`.
        let given = numbers.sources(x.ty.rank(), updates.ty.rank());
        let values = arranged(build, updates.expr.clone(), (&given, &updates.ty.shape), (&places.dims, &places.sizes))
            .ok_or_else(|| unsupported(operation, "with these dimension numbers"))?;
        let Some(first) = places.first else {
            return self.emit(operation, update.of(build, x.expr.clone(), values));
        };
        if let ScatterUpdate::Combine(combination @ (RegionFunction::Max | RegionFunction::Min)) = update {
            return self.scatter_extremes(operation, x, &places, values, combination);
        }
        // Updates outside of the array go to an element after its end, which is dropped.
        let inside = places.inside.clone().map(|inside| self.variable(build, "inside", inside));
        let end = x.ty.shape[first];
        let window = if sizes[first] == end { 1 } else { sizes[first] };
        let mut items = places.items;
        let mut base = x.expr.clone();
        if let Some(inside) = &inside {
            let mut shape = x.ty.shape.clone();
            shape[first] = window;
            let rest = build.call("zeros", [build.type_value(&TensorType { shape, element: x.ty.element })]);
            let axis = build.int(first as i128);
            base = build.call_with("concatenate", [build.list(vec![base, rest])], [("axis", axis)]);
            for (dim, item) in items.iter_mut().enumerate() {
                let IndexNode::Expr(index) = item else { continue };
                if numbers.batch.contains(&dim) {
                    continue;
                }
                let element = indices.ty.element;
                let outside = build.cast(element, build.int(if dim == first { end as i128 } else { 0 }));
                let inside = self.inside_for(build, inside, &numbers, indices, &sizes, &x.ty);
                *index = build.call("where", [inside, index.clone(), outside]);
            }
        }
        let name = self.fresh(operation.results.first().map_or("x", |(name, _)| name.as_str()));
        self.stmts.push(build.bind_mutable(&name, base));
        let target = build.index(build.name(&name), items);
        let statement = match update {
            ScatterUpdate::Replace => StmtNodeKind::Assign { target, op: None, value: values },
            ScatterUpdate::Combine(RegionFunction::Add) => {
                StmtNodeKind::Assign { target, op: Some(InfixOp::Add), value: values }
            }
            ScatterUpdate::Combine(RegionFunction::Multiply) => {
                StmtNodeKind::Assign { target, op: Some(InfixOp::Mul), value: values }
            }
            // `+=` of bools is `or`.
            ScatterUpdate::Combine(RegionFunction::Or) => {
                StmtNodeKind::Assign { target, op: Some(InfixOp::Add), value: values }
            }
            ScatterUpdate::MlirFunction(_) => {
                let old = target.clone();
                StmtNodeKind::Assign { target, op: None, value: update.of(build, old, values) }
            }
            ScatterUpdate::Combine(RegionFunction::Max | RegionFunction::Min | RegionFunction::And) => {
                return Err(unsupported(operation, "with this function"));
            }
        };
        self.stmts.push(StmtNode { kind: statement, span: build.0 });
        let ty = result_type(operation)?;
        let mut result = build.name(&name);
        if inside.is_some() {
            let mut ranges: Vec<(usize, usize, usize)> = ty.shape.iter().map(|&size| (0, size, 1)).collect();
            ranges[first].1 = end;
            let mut shape = ty.shape.clone();
            shape[first] = end + window;
            result = super::shapes::sliced(build, result, &shape, &ranges);
        }
        self.emit(operation, result)
    }

    /// The update of one slice, unless it does not fit into the array.
    fn scatter_one(
        &mut self,
        operation: &MlirOp,
        (x, indices, updates): (&MlirValue, &MlirValue, &MlirValue),
        numbers: &DimensionNumbers,
        sizes: &[usize],
        update: ScatterUpdate,
    ) -> Read<()> {
        let build = at(operation);
        if let Some(numbers_of) = indices.constant.as_ref().and_then(Dense::ints)
            && self.scatter_at_constants(operation, (x, updates), (numbers, &numbers_of), sizes, &update)?
        {
            return Ok(());
        }
        let flat = match indices.ty.rank() {
            1 => indices.expr.clone(),
            _ => reshaped(build, indices.expr.clone(), &[numbers.map.len()]),
        };
        let flat = self.variable(build, "starts", flat);
        let mut starts = vec![build.int(0); x.ty.rank()];
        let mut inside: Option<Expr> = None;
        for (number, &dim) in numbers.map.iter().enumerate() {
            let most = x.ty.shape[dim] as i128 - sizes[dim] as i128;
            let start = build.index(flat.clone(), vec![IndexNode::Expr(build.int(number as i128))]);
            let start = self.variable(build, "at", start);
            inside = Some(also_inside(build, inside, &start, most));
            starts[dim] = build.call("maximum", [start, build.int(0)]);
        }
        let given = numbers.sources(x.ty.rank(), updates.ty.rank());
        let all: Vec<SourceDim> = (0..x.ty.rank()).map(SourceDim::Operand).collect();
        let new = arranged(build, updates.expr.clone(), (&given, &updates.ty.shape), (&all, sizes))
            .ok_or_else(|| unsupported(operation, "with these dimension numbers"))?;
        let starts = build.tuple(starts);
        let Some(inside) = inside else {
            return self.emit(operation, update.of(build, x.expr.clone(), new));
        };
        let lens = build.ints(sizes.iter().copied());
        let old = self.variable(build, "old", build.call("dynamic_slice", [x.expr.clone(), starts.clone(), lens]));
        let new = update.of(build, old.clone(), new);
        let new = build.call("where", [inside, new, old]);
        self.emit(operation, build.call("dynamic_update_slice", [x.expr.clone(), new, starts]))
    }

    /// The update of a slice at a constant place; false if the dimension numbers do not fit.
    fn scatter_at_constants(
        &mut self,
        operation: &MlirOp,
        (x, updates): (&MlirValue, &MlirValue),
        (numbers, places): (&DimensionNumbers, &[i128]),
        sizes: &[usize],
        update: &ScatterUpdate,
    ) -> Read<bool> {
        let build = at(operation);
        if places.len() != numbers.map.len() || numbers.map.is_empty() {
            return Ok(false);
        }
        let mut starts = vec![0; x.ty.rank()];
        for (&dim, &place) in numbers.map.iter().zip(places) {
            let most = x.ty.shape[dim] as i128 - sizes[dim] as i128;
            // Nothing is updated by a slice that does not lie in the array.
            if !(0..=most).contains(&place) {
                self.define(operation, x.clone());
                return Ok(true);
            }
            starts[dim] = place as usize;
        }
        let given = numbers.sources(x.ty.rank(), updates.ty.rank());
        let all: Vec<SourceDim> = (0..x.ty.rank()).map(SourceDim::Operand).collect();
        let Some(new) = arranged(build, updates.expr.clone(), (&given, &updates.ty.shape), (&all, sizes)) else {
            return Ok(false);
        };
        let ranges: Vec<(usize, usize, usize)> =
            starts.iter().zip(sizes).map(|(&start, &size)| (start, start + size, 1)).collect();
        self.assign_range(operation, x, &ranges, |old| update.of(build, old, new))?;
        Ok(true)
    }

    /// Gives the result of the operation the elements of `x`, but others in a range; `new` makes them from the old ones.
    fn assign_range(
        &mut self,
        operation: &MlirOp,
        x: &MlirValue,
        ranges: &[(usize, usize, usize)],
        new: impl FnOnce(Expr) -> Expr,
    ) -> Read<()> {
        let build = at(operation);
        let name = self.fresh(operation.results.first().map_or("x", |(name, _)| name.as_str()));
        let old = sliced(build, build.name(&name), &x.ty.shape, ranges);
        self.stmts.push(build.bind_mutable(&name, x.expr.clone()));
        let kind = StmtNodeKind::Assign { target: old.clone(), op: None, value: new(old) };
        self.stmts.push(StmtNode { kind, span: build.0 });
        self.emit(operation, build.name(&name))
    }

    /// The extremes of the updates of each element, by segments: the positions along the indexed dimensions as one number.
    fn scatter_extremes(
        &mut self,
        operation: &MlirOp,
        x: &MlirValue,
        places: &IndexedPlaces,
        values: Expr,
        combination: RegionFunction,
    ) -> Read<()> {
        let build = at(operation);
        let indexed: Vec<usize> =
            (0..x.ty.rank()).filter(|&dim| matches!(places.items[dim], IndexNode::Expr(_))).collect();
        if places.dims.iter().any(|dim| matches!(dim, SourceDim::Operand(dim) if indexed.contains(dim))) {
            return Err(unsupported(operation, "of windows with this function"));
        }
        let (mut number, mut stride) = (None, 1);
        for &dim in indexed.iter().rev() {
            let IndexNode::Expr(index) = &places.items[dim] else { continue };
            let scaled = build.binary(InfixOp::Mul, index.clone(), build.int(stride as i128));
            number = Some(match number {
                None => scaled,
                Some(other) => build.binary(InfixOp::Add, scaled, other),
            });
            stride *= x.ty.shape[dim];
        }
        let Some(number) = number else { return Err(unsupported(operation, "without indices")) };
        // The dimensions of the indices come first.
        let of_index = |dim: &SourceDim| matches!(dim, SourceDim::Index(_));
        let first: Vec<usize> = (0..places.dims.len()).filter(|&dim| of_index(&places.dims[dim])).collect();
        let rest: Vec<usize> = (0..places.dims.len()).filter(|&dim| !of_index(&places.dims[dim])).collect();
        let order: Vec<usize> = first.iter().chain(&rest).copied().collect();
        let index_shape: Vec<usize> = first.iter().map(|&dim| places.sizes[dim]).collect();
        let count: usize = index_shape.iter().product();
        let mut shape = vec![count];
        shape.extend(rest.iter().map(|&dim| places.sizes[dim]));
        let data = reshaped(build, in_order(build, values, &order), &shape);
        let number = match &places.inside {
            Some(inside) => build.call("where", [inside.clone(), number, build.int(-1)]),
            None => number,
        };
        let number = build.call("broadcast_to", [number, build.ints(index_shape)]);
        let ids = reshaped(build, number, &[count]);
        let function = if combination == RegionFunction::Max { "segment_max" } else { "segment_min" };
        let segments = build.call_with(function, [data, ids], [("num_segments", build.int(stride as i128))]);
        let mut shape: Vec<usize> = indexed.iter().map(|&dim| x.ty.shape[dim]).collect();
        let kept: Vec<usize> = (0..x.ty.rank()).filter(|dim| !indexed.contains(dim)).collect();
        shape.extend(kept.iter().map(|&dim| x.ty.shape[dim]));
        let apart = reshaped(build, segments, &shape);
        let mut back = vec![0; x.ty.rank()];
        for (place, &dim) in indexed.iter().chain(&kept).enumerate() {
            back[dim] = place;
        }
        self.emit(operation, combination.of(build, x.expr.clone(), in_order(build, apart, &back)))
    }

    /// The mask of indices with a dimension of one element for each window.
    fn inside_for(
        &mut self,
        build: Build,
        inside: &Expr,
        numbers: &DimensionNumbers,
        indices: &MlirValue,
        sizes: &[usize],
        ty: &TensorType,
    ) -> Expr {
        let windows = numbers.map.iter().filter(|&&dim| sizes[dim] != 1 && sizes[dim] != ty.shape[dim]).count();
        let mut batch = numbers.index_shape(indices);
        if windows == 0 || batch.len() + windows == 0 {
            return inside.clone();
        }
        batch.resize(batch.len() + windows, 1);
        reshaped(build, inside.clone(), &batch)
    }

    pub(super) fn dynamic_slice(&mut self, operation: &MlirOp) -> Read<()> {
        let build = at(operation);
        let mut operands = self.all_operands(operation)?.into_iter();
        let Some(x) = operands.next() else { return Err(malformed(operation, "an operand is missing")) };
        let name = if operation.attributes.contains_key("sizes") { "sizes" } else { "slice_sizes" };
        let sizes = super::ints(operation, name)?;
        let starts: Vec<MlirValue> = operands.collect();
        let lens: Option<Vec<usize>> = sizes.iter().map(|&size| usize::try_from(size).ok()).collect();
        let rows = lens.as_ref().and_then(|lens| self.row_indices(build, &x, &starts, lens));
        if let Some(ranges) = lens.and_then(|lens| constant_ranges(&x, &starts, &lens)) {
            let of = x.shaped();
            let value = self.bound(operation, sliced(build, x.expr, &x.ty.shape, &ranges))?;
            self.define(operation, MlirValue { form: ValueForm::Sliced(of, ranges), ..value });
            return Ok(());
        }
        let starts: Vec<Expr> = starts.iter().map(|start| not_negative(build, start)).collect();
        if starts.is_empty() {
            return self.emit(operation, x.expr);
        }
        let sizes = build.tuple(sizes.into_iter().map(|size| build.int(size)).collect());
        let of = x.shaped();
        let value = self.bound(operation, build.call("dynamic_slice", [x.expr, build.tuple(starts), sizes]))?;
        let form = rows.map_or(ValueForm::Other, |rows| ValueForm::Row(of, rows));
        self.define(operation, MlirValue { form, ..value });
        Ok(())
    }

    pub(super) fn dynamic_update_slice(&mut self, operation: &MlirOp) -> Read<()> {
        let build = at(operation);
        let mut operands = self.all_operands(operation)?.into_iter();
        let (Some(x), Some(update)) = (operands.next(), operands.next()) else {
            return Err(malformed(operation, "an operand is missing"));
        };
        let starts: Vec<MlirValue> = operands.collect();
        if starts.is_empty() {
            return self.emit(operation, update.expr);
        }
        if let Some(ranges) = constant_ranges(&x, &starts, &update.ty.shape) {
            return self.assign_range(operation, &x, &ranges, |_| update.expr);
        }
        let form = self.stacked_row(build, &x, &update, &starts);
        let starts: Vec<Expr> = starts.iter().map(|start| not_negative(build, start)).collect();
        let updated = build.call("dynamic_update_slice", [x.expr, update.expr, build.tuple(starts)]);
        let value = self.bound(operation, updated)?;
        self.define(operation, MlirValue { form, ..value });
        Ok(())
    }
}

/// The ranges of a slice of these sizes at constant places, which are moved inside; None for other places.
fn constant_ranges(x: &MlirValue, starts: &[MlirValue], sizes: &[usize]) -> Option<Vec<(usize, usize, usize)>> {
    if starts.is_empty() || starts.len() != x.ty.rank() || sizes.len() != starts.len() {
        return None;
    }
    let range = |((start, &len), &size): ((&MlirValue, &usize), &usize)| {
        let Some(DenseNumber::Int(start)) = start.splat() else { return None };
        let start = (*start).clamp(0, size.checked_sub(len)? as i128) as usize;
        Some((start, start + len, 1))
    };
    starts.iter().zip(sizes).zip(&x.ty.shape).map(range).collect()
}

/// Whether the start of a slice lies between 0 and `most`, and the starts of `others` lie inside as well.
pub(super) fn also_inside(build: Build, others: Option<Expr>, start: &Expr, most: i128) -> Expr {
    let low = build.binary(InfixOp::Ge, start.clone(), build.int(0));
    let high = build.binary(InfixOp::Le, start.clone(), build.int(most));
    let own = build.binary(InfixOp::BitAnd, low, high);
    match others {
        Some(others) => build.binary(InfixOp::BitAnd, others, own),
        None => own,
    }
}

/// A start index, of which negative ones are 0.
fn not_negative(build: Build, start: &MlirValue) -> Expr {
    match start.splat() {
        Some(DenseNumber::Int(value)) => build.int((*value).max(0)),
        _ if start.is_counting() => start.expr.clone(),
        _ => build.call("maximum", [start.expr.clone(), build.int(0)]),
    }
}

/// Whether the function of a scatter returns its second parameter.
fn returns_update(region: &crate::tree::MlirBlock) -> bool {
    let Some((update, _)) = region.params.get(1) else { return false };
    // Names of the same number.
    let mut names = vec![update.as_str()];
    for operation in &region.body {
        let Some(operand) = operation.operands.first() else { return false };
        if !names.contains(&operand.base.as_str()) {
            return false;
        }
        match operation.results.first() {
            Some((result, _)) if is_identity(&operation.name) => names.push(result),
            Some(_) => return false,
            None => return true,
        }
    }
    false
}

/// An array whose dimensions come from these, in another order; dimensions of one element may be added or dropped.
pub(super) fn arranged(
    build: Build,
    value: Expr,
    (from, from_sizes): (&[SourceDim], &[usize]),
    (to, to_sizes): (&[SourceDim], &[usize]),
) -> Option<Expr> {
    // Dimensions that the other side lacks have one element.
    let mut order = Vec::new();
    for dim in to {
        if let Some(place) = from.iter().position(|known| known == dim) {
            order.push(place);
        }
    }
    for (place, dim) in from.iter().enumerate() {
        if !to.contains(dim) {
            if from_sizes[place] != 1 {
                return None;
            }
            order.push(place);
        }
    }
    let moved = in_order(build, value, &order);
    let sizes: Vec<usize> = order.iter().map(|&place| from_sizes[place]).collect();
    let len = |sizes: &[usize]| sizes.iter().product::<usize>();
    if len(&sizes) != len(to_sizes) {
        return None;
    }
    Some(if sizes == to_sizes { moved } else { reshaped(build, moved, to_sizes) })
}
