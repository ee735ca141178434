//! Calls of the runtime's functions, in terms of values.

use crate::program::value::Value;
use spmdc_abi::{LibraryDim, LibraryFunction, LibraryOwners, Scalar};
use spmdc_grammar::span::Span;

/// As [`spmdc_abi::LibraryStep`].
#[derive(Clone, Debug, PartialEq)]
pub struct LibraryCalls {
    /// The function.
    pub function: LibraryFunction,
    /// The arrays that it reads.
    pub operands: Vec<CallArray>,
    /// The arrays that it writes: the results, then its scratch memory.
    pub results: Vec<CallArray>,
    /// Extents of the batch dimensions, outermost first.
    pub batch: Vec<Scalar>,
    /// Set if operands are read from the devices that hold their blocks.
    pub owners: Option<LibraryOwners>,
    /// Estimated nanoseconds of one call.
    pub cost: f64,
    /// The indices that the calls check, in source order: the statement that does, and the size of the dimension.
    pub checks: Vec<(Span, usize)>,
}

/// The array of one call, as a part of a value's block.
#[derive(Clone, Debug, PartialEq)]
pub struct CallArray {
    /// The value.
    pub value: Value,
    /// Strides along the batch dimensions, in elements.
    pub batch: Vec<i64>,
    /// The other dimensions.
    pub dims: Vec<LibraryDim>,
}
