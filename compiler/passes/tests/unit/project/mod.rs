//! Tests of `project`.

mod ahead;
