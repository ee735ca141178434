//! Tests of the pipeline, of the totals that choices compare, and of the reports, in a file for each tested one.
#![allow(clippy::unwrap_used)]

mod pipeline;
mod report;
mod testing;
mod totals;
