//! Tests of `propagate`.

mod refine;
mod step;
