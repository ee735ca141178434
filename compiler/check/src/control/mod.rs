//! `if` and loops.

pub mod assigned;
pub mod branches;
pub mod carried;
pub mod loops;
