//! In which order the terms of a result are put together.
//!
//! Sums and products of floats are rounded at every step, so their bits depend on the order. It is a property of the kernel: it
//! follows from shapes and strides alone, and whoever runs the kernel keeps to it, with registers of any width.
//!
//! ```text
//! in turn             ((0 + x[0]) + x[1]) + ...
//! by lanes            lane l: ((0 + x[l]) + x[l + 16]) + ...   for the terms up to the last whole sixteen
//!                     of 16 lanes make 8 by adding lane l + 8 to lane l, then 4, 2, 1; then add what the terms left over give in turn
//! ```
//!
//! A kernel runs by lanes along one reduced dimension; for each of the other reduced dimensions the terms come in the order of their
//! indices. Everything else that combines (integers, truths, extremes and their positions) gives the same bits in any order.

use super::loops::Combine;
use super::nest::Nest;
use spmdc_abi::ReduceOp;

/// Lanes of a sum: four registers of 128 bits, as many as hide the latency of an addition.
pub const LANES: u32 = 16;

/// Shorter dimensions than this share no work between lanes.
const SHORT: u64 = 4;

/// What the order of terms must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// No result depends on it.
    Any,
    /// Row-major over the reduced dimensions.
    InTurn,
    /// So many terms of this dimension of the nest side by side.
    Lanes { dim: usize },
}

impl Order {
    /// Where memory is contiguous along a reduced dimension and not along one that stays, lanes run along it.
    pub fn of(nest: &Nest) -> Order {
        if !nest.stores.iter().any(|store| store.combine.is_some_and(|combine| depends_on_order(combine, store.dtype)))
        {
            return Order::Any;
        }
        if nest.stores.iter().any(|store| store.combine.is_some_and(Combine::is_scan)) {
            return Order::InTurn;
        }
        let apart = |dim: usize| {
            let loads = nest.order.iter().filter_map(|elem| nest.insts[elem.0 as usize].load());
            loads.filter(|(access, _)| Nest::stride(&access.address, dim).unsigned_abs() > 1).count()
        };
        let longer_than = |dim: usize, least: u64| nest.dims[dim].length.max >= least;
        let dims = 0..nest.dims.len();
        let along = |dim: &usize| nest.dims[*dim].reduced && longer_than(*dim, u64::from(LANES));
        let beside = |dim: &usize| !nest.dims[*dim].reduced && longer_than(*dim, SHORT);
        // Positions are those of neighbours: see `cut`.
        let searches = nest.stores.iter().any(|store| store.combine.is_some_and(Combine::is_position));
        let possible = |dim: &usize| !searches || dim + 1 == nest.dims.len();
        let best = dims.clone().rev().filter(along).filter(possible).min_by_key(|&dim| apart(dim));
        let least_beside = dims.filter(beside).map(apart).min();
        match best {
            Some(dim) if least_beside.is_none_or(|least| apart(dim) < least) => Order::Lanes { dim },
            Some(_) | None => Order::InTurn,
        }
    }
}

/// Whether the bits of a result depend on the order of its terms.
pub fn depends_on_order(combine: Combine, dtype: spmdc_abi::DType) -> bool {
    match combine {
        Combine::Reduce(op) | Combine::Scan { op, .. } => {
            dtype.is_float() && matches!(op, ReduceOp::Sum | ReduceOp::Product)
        }
        Combine::ArgMax | Combine::ArgMin => false,
    }
}

/// What the lanes come to, before the terms left over.
pub fn fold_lanes<T>(mut lanes: Vec<T>, mut combine: impl FnMut(T, T) -> T) -> Option<T> {
    debug_assert!(lanes.len().is_power_of_two(), "lanes are halved");
    while lanes.len() > 1 {
        let upper = lanes.split_off(lanes.len() / 2);
        lanes = lanes.into_iter().zip(upper).map(|(low, high)| combine(low, high)).collect();
    }
    lanes.pop()
}
