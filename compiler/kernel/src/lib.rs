//! Loop nests as data: what a kernel computes, on which indices, and how its loops are cut. It knows no shardings and no machine code.
//!
//! `loops` has the nests and `scalar` the operations in them, whose meaning is in `number`; `interpret` runs a nest by definition.
//! `order` says in which order the terms of each result are put together, by the kernel alone. `nest` and `cut` decide how a nest
//! runs, by the `work` in it and the sizes of a `machine`, and change no bits; `strips` says which nests run by strips of columns, and
//! `grain` how finely a nest may be divided.
#![warn(missing_docs)]

pub mod backend;
pub mod cut;
pub mod grain;
pub mod interpret;
pub mod loops;
pub mod machine;
pub mod nest;
pub mod number;
pub mod order;
pub mod scalar;
pub mod strips;
pub mod work;
