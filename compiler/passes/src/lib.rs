//! The passes, in the order of the pipeline, each with its postcondition.
//!
//! - `simplify`, `cse`, `dce`: no expression is computed twice or without a use. They keep every contract.
//! - `project`: every module has one mesh; values move between modules by `send` and `receive`.
//! - `erase_reduced`: no type has a state that only concerns gradients.
//! - `commute_reshapes`: no pair of inverse reshapes surrounds statements that do not depend on the shape.
//! - `keep_sums`: no sum is combined of which the program asks for the parts.
//! - `propagate`: every sharding is decided; no dimension is open.
//! - `local_argmax`: no array is gathered for `argmax` or `argmin` where two small reductions cost less.
//! - `revise_regions`: no device waits for its own elements from which it computes new ones.
//! - `order_cuts`: elements and slices are taken in the order that moves the fewest bytes.
//! - `choose_alignments`: parts of arrays are aligned with these arrays wherever that saves communication.
//! - `insert_reshards`: the operands of every op agree with its factor rule.
//! - `deepen_halos`: stencils in loops exchange halos for several steps at once.
//! - `distribute_factorizations`: every factorization of split rows consists of steps on blocks.
//! - `distribute_sorts`: every sort along a split dimension is two steps.
//! - `distribute_transforms`: every Fourier transform has whole lines, or consists of steps with whole lines.
//! - `exchange_ghosts`: every window of `patches` only reads elements of its own device.
//! - `exchange_halos`: every window only reads elements of its own device.
//! - `distribute_scans`: every scan along a split dimension has the totals of the preceding blocks.
//! - `partition`: all communication is explicit. It plans with `reshard`.
//! - `orient_products`: no large operand of a product is transposed, and none that many devices share is packed by each of them.
//! - `hoist`: no loop makes the same exchange in every trip.
//! - `share_halos`: windows on one value fetch their halos once for each direction.
//! - `inline_loops`: no loop is known to run once.
//! - `unroll_loops`: no short pointwise loop chooses elements by its counter.
//! - `sink`: no pointwise statement runs for the sides of an `if` that do not need it.
//! - `combine_collectives`: small independent collectives of the same devices are combined.
//! - `overlap`: collectives come after work that does not need them.

#![warn(missing_docs)]

pub mod choose_alignments;
pub mod combine_collectives;
pub mod commute_reshapes;
mod contract;
pub mod cse;
pub mod dce;
pub mod deepen_halos;
pub mod distribute_factorizations;
pub mod distribute_scans;
pub mod distribute_sorts;
pub mod distribute_transforms;
pub mod erase_reduced;
pub mod exchange_ghosts;
pub mod exchange_halos;
pub mod hoist;
pub mod inline_loops;
pub mod insert_reshards;
pub mod keep_sums;
pub mod local_argmax;
pub mod order_cuts;
pub mod orient_products;
pub mod overlap;
pub mod partition;
pub mod project;
pub mod propagate;
pub mod revise_regions;
mod rewrite;
pub mod share_halos;
pub mod simplify;
pub mod sink;
pub mod unroll_loops;
