//! Products with an operand that would have to be gathered, without gathering it: the ring form, or collective matmul.
//!
//! ```text
//! x: f32[512, 4096], w: f32[4096@X, 4096]     x @ w = x[:, 0..1024] @ w0 + x[:, 1024..2048] @ w1 + ..
//! ```
//!
//! Each device multiplies with one block after the other, reading each in place. It begins with its own block, unless the products
//! are summed: their order must be the same on all devices. So no device waits for the whole operand, copies it or needs memory for
//! it; it receives the bytes of the all_gather while it computes.
//!
//! The method is that of Wang et al., "Overlap communication with dependent computation via decomposition in large deep learning
//! models" (ASPLOS 2023), for memory that all devices can read.

use spmdc_layout::types::Type;

/// The only dimension that is gathered completely, if nothing else changes.
pub fn gathered(from: &Type, to: &Type) -> Option<usize> {
    let (from, to) = (&from.sharding, &to.sharding);
    let mut changed = (0..from.rank()).filter(|&dim| from.dims[dim] != to.dims[dim]);
    let (dim, None) = (changed.next()?, changed.next()) else { return None };
    let whole = to.dims[dim].axes.is_empty() && to.dims[dim].alignment.is_none() && from.dims[dim].alignment.is_none();
    (whole && from.unreduced == to.unreduced).then_some(dim)
}
