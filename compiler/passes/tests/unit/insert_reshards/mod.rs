//! Tests of `insert_reshards`.

mod sums;
