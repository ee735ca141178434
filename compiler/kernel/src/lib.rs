//! Loop nests as data: their computation, their indices, and the cuts of their loops. This crate is independent of shardings and machine
//! code.
//!
//! `loops` has the nests, `repeats` the loops in their bodies, and `scalar` the operations in them, whose semantics are in `number`.
//! `interpret` runs a nest by definition. `order` defines the order in which the terms of each result are combined, from the kernel alone.
//! `nest` and `cut` decide the execution of a nest, by the `work` in it and the sizes of a `machine`, and change no bits. `strips` decides
//! which nests run by strips of columns, `pressure` measures loops in bodies, and `grain` decides how finely a nest may be divided.
//! `narrow` has the numbers for conversions of narrow floats.
#![warn(missing_docs)]

pub mod backend;
pub mod cut;
pub mod draws;
pub mod grain;
pub mod interpret;
pub mod loops;
pub mod machine;
pub mod narrow;
pub mod nest;
pub mod number;
pub mod order;
mod pressure;
pub mod repeats;
pub mod scalar;
pub mod strips;
pub mod work;
