//! From one sharding of a value to another, as steps.
//!
//! First partial values are combined, by `all_reduce`, or by `reduce_scatter` where the target is split over an axis of the
//! sum. Then at most one collective moves blocks, after a free slice where that makes it smaller:
//!
//! ```text
//! f32[8@X,16]{U:Y} -> f32[8@X,16@Y]    reduce_scatter
//! f32[16@X,32@Y]   -> f32[16,32@Y]     all_gather
//! f32[16@X,32]     -> f32[16,32@X]     all_to_all
//! f32[16@X,32]     -> f32[16,32@Y]     shard to f32[16@X,32@Y], then all_gather
//! ```
//!
//! Every step fetches exact ranges, so sizes that do not divide are no special case: a kind only names what a step is.

use crate::ir::blocks::{exchange_axes, is_slice, received};
use crate::ir::mesh::Mesh;
use crate::ir::sharding::{DimSharding, Sharding};
use crate::ir::types::{ArrayType, AxisSet};
use crate::ops::reshard::{Reshard, Step};
use spmdc_runtime::abi::CollectiveKind;

/// The steps from one layout to another; none if they are the same.
pub fn plan(array: &ArrayType, from: &Sharding, to: &Sharding, mesh: &Mesh) -> Vec<Reshard> {
    let mut steps = Vec::new();
    let mut at = from.close();
    let target = to.close();
    let summed = at.unreduced.minus(target.unreduced);
    if mesh.size_of_set(summed) > 1 {
        let reduced = combine(array, &at, &target, summed, mesh);
        at = reduced.to.clone();
        steps.push(reduced);
    } else {
        // A sum over one device is whole already.
        let (rest, combine) = (at.unreduced.minus(summed), at.combine);
        at = at.with_unreduced(rest, combine);
    }
    // Partial values are made last, as they forbid their axes elsewhere.
    let moved = target.clone().with_unreduced(at.unreduced, at.combine);
    steps.extend(move_blocks(array, &at, &moved, mesh));
    if moved != target || steps.is_empty() && *from != target {
        steps.push(Reshard { to: target, step: Step::Slice });
    }
    steps
}

/// The axes of the groups in which devices exchange data in this step.
pub fn group(array: &ArrayType, from: &Sharding, to: &Sharding, mesh: &Mesh) -> AxisSet {
    let summed = from.unreduced.minus(to.unreduced);
    let summed = summed.iter().filter(|&axis| mesh.axes[axis].size > 1).collect();
    exchange_axes(&array.shape, from, to, mesh).union(summed)
}

/// Bytes that a device receives on the way, on average.
pub fn cost(array: &ArrayType, from: &Sharding, to: &Sharding, mesh: &Mesh) -> f64 {
    if from == to {
        return 0.0;
    }
    let mut at = from.clone();
    let mut sum = 0.0;
    for step in plan(array, from, to, mesh) {
        sum += step_cost(array, &at, &step, mesh);
        at = step.to;
    }
    sum
}

fn step_cost(array: &ArrayType, from: &Sharding, step: &Reshard, mesh: &Mesh) -> f64 {
    let summed = from.unreduced.minus(step.to.unreduced);
    let n = mesh.size_of_set(summed) as f64;
    let bytes = block_bytes(array, from, mesh) as f64;
    match step.step {
        Step::Slice | Step::Request | Step::Pin => 0.0,
        Step::Collective(CollectiveKind::AllReduce) => 2.0 * (n - 1.0) / n * bytes,
        Step::Collective(CollectiveKind::ReduceScatter) => (n - 1.0) / n * bytes,
        Step::Collective(_) => received(&array.shape, from, &step.to, mesh) * array.dtype.size() as f64,
    }
}

fn block_bytes(array: &ArrayType, sharding: &Sharding, mesh: &Mesh) -> usize {
    let dims = array.shape.iter().zip(&sharding.dims);
    dims.map(|(&size, dim)| size.div_ceil(mesh.size_of(&dim.axes))).product::<usize>() * array.dtype.size()
}

/// The dimensions of a sharding without these axes.
fn without(sharding: &Sharding, axes: AxisSet) -> Sharding {
    let mut rest = sharding.clone();
    rest.dims.iter_mut().for_each(|dim| dim.axes.retain(|&axis| !axes.contains(axis as usize)));
    rest
}

/// The step that makes partial values along `summed` whole.
fn combine(array: &ArrayType, from: &Sharding, to: &Sharding, summed: AxisSet, mesh: &Mesh) -> Reshard {
    let rest = from.unreduced.minus(summed);
    let whole = from.clone().with_unreduced(rest, from.combine);
    let all = Reshard { to: whole.clone(), step: Step::Collective(CollectiveKind::AllReduce) };
    if to.used_axes().intersect(summed).is_empty() {
        return all;
    }
    // Every device keeps only the part that it needs in the end, as far as that is split over axes of the sum.
    let mut scattered = whole;
    if without(to, summed).dims == from.dims {
        scattered.dims = to.dims.clone();
    } else {
        for (dim, wanted) in scattered.dims.iter_mut().zip(&to.dims) {
            dim.axes.extend(wanted.axes.iter().filter(|&&axis| summed.contains(axis as usize)));
        }
    }
    let scatter = Reshard { to: scattered, step: Step::Collective(CollectiveKind::ReduceScatter) };
    let target = to.clone().with_unreduced(rest, from.combine);
    let total = |step: &Reshard| {
        let moved = move_blocks(array, &step.to, &target, mesh)
            .into_iter()
            .fold((0.0, step.to.clone()), |sum, next| (sum.0 + step_cost(array, &sum.1, &next, mesh), next.to));
        step_cost(array, from, step, mesh) + moved.0
    };
    if total(&scatter) <= total(&all) { scatter } else { all }
}

/// The steps between layouts that are partial along the same axes.
fn move_blocks(array: &ArrayType, from: &Sharding, to: &Sharding, mesh: &Mesh) -> Vec<Reshard> {
    if from.dims == to.dims {
        return Vec::new();
    }
    if is_slice(&array.shape, from, to, mesh) {
        return vec![Reshard { to: to.clone(), step: Step::Slice }];
    }
    let direct = |from: &Sharding| Reshard { to: to.clone(), step: Step::Collective(kind(from, to, mesh)) };
    let sliced = slice_first(from, to);
    let table = |from: &Sharding| {
        let n = mesh.size_of_set(exchange_axes(&array.shape, from, to, mesh)) as f64;
        let bytes = block_bytes(array, from, mesh) as f64;
        match kind(from, to, mesh) {
            CollectiveKind::AllGather => (n - 1.0) * bytes,
            CollectiveKind::AllToAll => (n - 1.0) / n * bytes,
            CollectiveKind::CollectivePermute
            | CollectiveKind::AllReduce
            | CollectiveKind::ReduceScatter
            | CollectiveKind::Transfer => bytes,
        }
    };
    if sliced.dims != from.dims && is_slice(&array.shape, from, &sliced, mesh) && table(&sliced) < table(from) {
        let slice = Reshard { to: sliced.clone(), step: Step::Slice };
        return vec![slice, direct(&sliced)];
    }
    vec![direct(from)]
}

/// The source, split further over the axes that only the target has.
fn slice_first(from: &Sharding, to: &Sharding) -> Sharding {
    let used = from.used_axes().union(from.unreduced);
    let mut sliced = from.clone();
    for (dim, wanted) in sliced.dims.iter_mut().zip(&to.dims) {
        dim.axes.extend(wanted.axes.iter().filter(|&&axis| !used.contains(axis as usize)));
    }
    sliced
}

/// What moving all blocks at once is called.
fn kind(from: &Sharding, to: &Sharding, mesh: &Mesh) -> CollectiveKind {
    let every = |holds: &dyn Fn(&DimSharding, &DimSharding) -> bool| {
        from.dims.iter().zip(&to.dims).all(|(from, to)| holds(from, to))
    };
    if every(&|from, to| from.axes.starts_with(&to.axes)) {
        CollectiveKind::AllGather
    } else if every(&|from, to| mesh.size_of(&from.axes) == mesh.size_of(&to.axes)) {
        // As many blocks before as after: each comes whole from one device.
        CollectiveKind::CollectivePermute
    } else {
        CollectiveKind::AllToAll
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::mesh::{Axis, AxisKind};
    use crate::ir::types::DType;
    use spmdc_runtime::abi::ReduceOp;

    /// X = 2, Y = 4.
    fn mesh() -> Mesh {
        let axis = |name: &str, size| Axis { name: name.into(), size, kind: AxisKind::Auto };
        Mesh { axes: vec![axis("X", 2), axis("Y", 4)] }
    }

    const X: u8 = 0;
    const Y: u8 = 1;

    /// The kinds of the steps of `f32[rows, 32]`, each with the bytes of its operand.
    fn steps_of(rows: usize, from: Sharding, to: Sharding) -> Vec<String> {
        let (mesh, array) = (mesh(), ArrayType::new(DType::F32, &[rows, 32]));
        let mut at = from.clone();
        let steps = plan(&array, &from, &to, &mesh);
        let shown = steps.iter().map(|step| {
            let bytes = block_bytes(&array, &at, &mesh);
            at = step.to.clone();
            match step.step {
                Step::Collective(kind) => format!("{} {bytes}", kind.name()),
                _ => "slice".to_string(),
            }
        });
        let shown = shown.collect();
        assert_eq!(at, to);
        shown
    }

    fn steps(from: [&[u8]; 2], to: [&[u8]; 2]) -> Vec<String> {
        let sharding = |dims: [&[u8]; 2]| Sharding::closed(dims.iter().map(|axes| axes.to_vec()).collect());
        steps_of(16, sharding(from), sharding(to))
    }

    #[test]
    fn blocks_move_by_one_collective() {
        assert_eq!(steps([&[X], &[]], [&[X], &[]]), Vec::<String>::new());
        assert_eq!(steps([&[], &[]], [&[X], &[Y]]), ["slice"]);
        assert_eq!(steps([&[X], &[]], [&[X, Y], &[]]), ["slice"]);
        assert_eq!(steps([&[X], &[Y]], [&[], &[]]), ["all_gather 256"]);
        assert_eq!(steps([&[X, Y], &[]], [&[X], &[]]), ["all_gather 256"]);
        assert_eq!(steps([&[X], &[]], [&[], &[X]]), ["all_to_all 1024"]);
        assert_eq!(steps([&[X, Y], &[]], [&[X], &[Y]]), ["all_to_all 256"]);
        assert_eq!(steps([&[X, Y], &[]], [&[Y, X], &[]]), ["collective_permute 256"]);
        assert_eq!(steps([&[X], &[]], [&[], &[Y]]), ["slice", "all_gather 256"]);
    }

    #[test]
    fn partial_values_are_combined_first() {
        let partial = |dims: [&[u8]; 2]| {
            let dims = dims.iter().map(|axes| axes.to_vec()).collect();
            Sharding::closed(dims).with_unreduced(AxisSet::of(Y as usize), ReduceOp::Sum)
        };
        let whole = |dims: [&[u8]; 2]| Sharding::closed(dims.iter().map(|axes| axes.to_vec()).collect());
        assert_eq!(steps_of(16, partial([&[X], &[]]), whole([&[X], &[]])), ["all_reduce 1024"]);
        assert_eq!(steps_of(16, partial([&[X], &[]]), whole([&[X], &[Y]])), ["reduce_scatter 1024"]);
        assert_eq!(steps_of(16, partial([&[X], &[]]), whole([&[], &[Y]])), ["reduce_scatter 1024", "all_gather 256"]);
        assert_eq!(steps_of(16, whole([&[X], &[]]), partial([&[X], &[]])), ["slice"]);
    }

    #[test]
    fn uneven_blocks_take_the_same_steps() {
        let rows = |axes: &[u8]| Sharding::closed(vec![axes.to_vec(), Vec::new()]);
        assert_eq!(steps_of(10, rows(&[X, Y]), rows(&[X])), ["all_gather 256"]);
        assert_eq!(steps_of(10, rows(&[X]), rows(&[X, Y])), ["all_to_all 640"]);
        assert_eq!(
            group(&ArrayType::new(DType::F32, &[10, 32]), &rows(&[X, Y]), &rows(&[X]), &mesh()),
            AxisSet::all(2)
        );
    }
}
