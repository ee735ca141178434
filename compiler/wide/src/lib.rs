//! From loop nests to machine code with vectors of 128 to 512 bits, for processors with AVX-512 or AVX2.
//!
//! Cranelift has vectors of 128 bits. This crate compiles whole kernels with wider ones; it returns None for kernels that it does not
//! support, which Cranelift compiles. Results have the same bits in all cases.
//!
//! ```text
//! select   instructions of a kernel      -> graph of operations on lanes
//! plan     at which depth of the loops an operation runs, and the loop that runs in lanes
//! loops    loops as blocks               -> body: operations as instructions; reduce: combinations over loops;
//!                                           masks, memory; vex: what AVX2 lacks; trips: loops in the body; checks
//! emit     registers, by `regalloc2`     -> encode: bytes
//! ```
#![warn(missing_docs)]

mod body;
mod checks;
mod code;
mod emit;
mod emitter;
mod encode;
mod graph;
mod level;
mod loops;
mod masks;
mod memory;
mod narrow;
mod ops;
mod plan;
mod reduce;
mod select;
mod trips;
mod vex;

pub use emit::{RareCall, WideCode};
pub use level::VectorLevel;
use spmdc_kernel::loops::Kernel;

/// Maximum number of constants that are in registers.
fn most_residents(level: VectorLevel) -> usize {
    if level.evex { 10 } else { 4 }
}

/// The code of a kernel, a function with the signature of `spmdc_abi::KernelFn`; None if the kernel is not supported. `near`: the
/// functions that it calls will be in the same object.
pub fn compile(kernel: &Kernel, level: VectorLevel, near: bool) -> Option<WideCode> {
    let plan = plan::LanePlan::new(kernel, level)?;
    // The first pass finds the constants that instructions want in registers.
    let mut body = loops::emit(&plan, level, &[]);
    let mut wanted: Vec<(encode::PoolConstant, u32)> = std::mem::take(&mut body.wanted).into_iter().collect();
    wanted.sort_by_key(|&(constant, count)| (std::cmp::Reverse(count), constant));
    wanted.truncate(most_residents(level));
    let residents: Vec<encode::PoolConstant> = wanted.into_iter().map(|(constant, _)| constant).collect();
    if !residents.is_empty() {
        body = loops::emit(&plan, level, &residents);
    }
    emit::emit(&body.function.finish(), level, near)
}
