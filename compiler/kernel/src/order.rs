//! The order in which the terms of a result are combined.
//!
//! Sums and products of floats are rounded at every step, so their bits depend on the order. It is a property of the kernel: it
//! follows from shapes and strides alone, and every back end keeps to it, with registers of any width.
//!
//! ```text
//! in turn             ((0 + x[0]) + x[1]) + ...
//! by lanes            lane l: ((0 + x[l]) + x[l + 16]) + ...   for the terms up to the last whole sixteen
//!                     of 16 lanes make 8 by adding lane l + 8 to lane l, then 4, 2, 1; then add the sum of the other terms, in turn
//! ```
//!
//! A kernel runs by lanes along one reduced dimension; along the other reduced dimensions the terms are combined in the order of
//! their indices. All other combinations (integers, bools, extremes and their positions) give the same bits in any order.

use super::loops::{Combine, Elem, Inst};
use super::nest::{Nest, Order};
use spmdc_abi::{DType, ReduceOp};

/// Number of lanes of a sum: four registers of 128 bits, enough to hide the latency of an addition.
pub const LANES: u32 = 16;

/// Minimum length of a dimension that runs by lanes.
const SHORT: u64 = 4;

impl Order {
    /// The order of a nest: lanes run along a reduced dimension if memory is contiguous along it and not along a kept one.
    pub fn of(nest: &Nest) -> Order {
        if !nest.stores.iter().any(|store| store.combine.is_some_and(|combine| depends_on_order(combine, store.dtype)))
        {
            return Order::Any;
        }
        if nest.stores.iter().any(|store| store.combine.is_some_and(Combine::is_scan)) {
            return Order::InTurn;
        }
        // Counters of random bits are like addresses: neighbours are drawn together.
        let places = |elem: &Elem| {
            let inst = &nest.insts[elem.0 as usize];
            if let Inst::RandomBits { at, .. } = inst {
                Some(at)
            } else {
                inst.load().map(|(access, _)| &access.address)
            }
        };
        let apart = |dim: usize| {
            let places = nest.order.iter().filter_map(places);
            places.filter(|place| Nest::stride(place, dim).unsigned_abs() > 1).count()
        };
        let longer_than = |dim: usize, least: u64| nest.dims[dim].length.max >= least;
        let dims = 0..nest.dims.len();
        let along = |dim: &usize| nest.dims[*dim].reduced && longer_than(*dim, u64::from(LANES));
        let beside = |dim: &usize| !nest.dims[*dim].reduced && longer_than(*dim, SHORT);
        // Lanes of positions must be neighbours: see `cut`.
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

impl Order {
    /// The number of lanes along a dimension of the nest, if sums run by lanes there.
    pub fn lanes_along(self, along: usize) -> Option<u32> {
        match self {
            Order::Lanes { dim } if dim == along => Some(LANES),
            Order::Lanes { .. } | Order::Any | Order::InTurn => None,
        }
    }
}

/// Whether the bits of a result depend on the order of its terms.
pub fn depends_on_order(combine: Combine, dtype: DType) -> bool {
    match combine {
        Combine::Reduce(op) | Combine::Scan { op, .. } => {
            dtype.is_float() && matches!(op, ReduceOp::Sum | ReduceOp::Product)
        }
        Combine::ArgMax | Combine::ArgMin => false,
    }
}

/// The combination of the lanes, before the remaining terms (pairwise, by halves).
pub fn fold_lanes<T>(mut lanes: Vec<T>, mut combine: impl FnMut(T, T) -> T) -> Option<T> {
    debug_assert!(lanes.len().is_power_of_two(), "lanes are halved");
    while lanes.len() > 1 {
        let upper = lanes.split_off(lanes.len() / 2);
        lanes = lanes.into_iter().zip(upper).map(|(low, high)| combine(low, high)).collect();
    }
    lanes.pop()
}
