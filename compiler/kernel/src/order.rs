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
//! Where a term takes a math function there are 4 lanes: its own instructions overlap, and fill the registers.
//! A kernel runs by lanes along one reduced dimension; for each of the other reduced dimensions the terms come in the order of their
//! indices. Everything else that combines (integers, truths, extremes and their positions) gives the same bits in any order.

use super::loops::{Combine, Inst};
use super::nest::Nest;
use super::number;
use crate::scalar::UnaryOp;
use spmdc_abi::{DType, ReduceOp};

/// The most lanes of a sum: four registers of 128 bits, as many as hide the latency of an addition.
pub const LANES: u32 = 16;

/// Lanes of a sum whose terms take a math function.
const FEW_LANES: u32 = 4;

/// Shorter dimensions than this share no work between lanes.
const SHORT: u64 = 4;

/// What the order of terms must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// No result depends on it.
    Any,
    /// Row-major over the reduced dimensions.
    InTurn,
    /// So many terms of this dimension of the nest side by side: [`LANES`] or fewer, a power of two.
    Lanes {
        /// Index of a reduced dimension of the nest.
        dim: usize,
        /// The number of partial results.
        lanes: u32,
    },
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
            Some(dim) if least_beside.is_none_or(|least| apart(dim) < least) => {
                let is_long = nest.order.iter().any(|elem| is_math(&nest.insts[elem.0 as usize]));
                Order::Lanes { dim, lanes: if is_long { FEW_LANES } else { LANES } }
            }
            Some(_) | None => Order::InTurn,
        }
    }
}

impl Order {
    /// The lanes of a sum along a dimension of the nest, if sums run by lanes there.
    pub fn lanes_along(self, along: usize) -> Option<u32> {
        match self {
            Order::Lanes { dim, lanes } if dim == along => Some(lanes),
            Order::Lanes { .. } | Order::Any | Order::InTurn => None,
        }
    }
}

/// Whether an instruction is a function of `spmdc_math` that is more than an instruction of most machines.
fn is_math(inst: &Inst) -> bool {
    match inst {
        Inst::Unary { op, .. } => matches!(op, UnaryOp::Math(f) if !f.description().is_instruction),
        Inst::Binary { op, .. } => number::math_fn2(*op).is_some(),
        Inst::Load { .. }
        | Inst::Const { .. }
        | Inst::Index { .. }
        | Inst::LoopInvariant { .. }
        | Inst::Compare { .. }
        | Inst::Select { .. }
        | Inst::Cast { .. }
        | Inst::InRange { .. } => false,
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

/// What the lanes come to, before the terms left over.
pub fn fold_lanes<T>(mut lanes: Vec<T>, mut combine: impl FnMut(T, T) -> T) -> Option<T> {
    debug_assert!(lanes.len().is_power_of_two(), "lanes are halved");
    while lanes.len() > 1 {
        let upper = lanes.split_off(lanes.len() / 2);
        lanes = lanes.into_iter().zip(upper).map(|(low, high)| combine(low, high)).collect();
    }
    lanes.pop()
}
