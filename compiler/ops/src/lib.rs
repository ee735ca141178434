//! The ops, one file each.
//!
//! An op is a small struct of its attributes that implements [`Rules`](spmdc_ir::rules::Rules). A call of one of its names in the language is
//! handled by its [`Call`](spmdc_ir::call::Call), which emits statements. `spmdc_functions` has the table of these names. Most ops have the
//! language's name in the IR, too, and print as a call that reads back as the same op.
#![warn(missing_docs)]

pub mod arithmetic;
pub mod barrier;
pub mod batching;
pub mod bitcast;
pub mod broadcast;
pub mod cast;
pub mod check_indices;
pub mod collective;
pub mod combined;
pub mod concatenate;
pub mod constant;
pub mod derivative;
pub mod dynamic_slice;
pub mod elementwise;
pub mod flip;
pub mod fma;
pub mod fold_in;
pub mod from_end;
pub mod gather;
pub mod index;
pub mod iota;
pub mod keys;
pub mod makers;
pub mod margins;
pub mod message;
pub mod pad;
pub mod partials;
pub mod print;
pub mod products;
pub mod promote;
pub mod random_bits;
pub mod read_rows;
pub mod reduce;
pub mod region;
pub mod reshape;
pub mod reshard;
pub mod revise;
pub mod roll;
pub mod save;
pub mod scan;
pub mod scatter;
pub mod show;
pub mod slice;
pub mod sort;

pub mod transfer;
pub mod transpose;
pub mod trigamma;
pub mod update;
pub mod window;
pub mod with_partials;

use crate::collective::vary::PVary;
use crate::concatenate::stacked;
use crate::constant::Constant;
use crate::reshard::Reshard;
use spmdc_ir::call::build::{BuilderOps, CallBuilder};
use spmdc_ir::program::Func;
use spmdc_ir::program::explicit::partial_axes;
use spmdc_ir::program::typing::{result_types, shapes};
use spmdc_layout::mesh::Mesh;

/// The parts of the modules above that the builder uses.
static BUILDER_OPS: BuilderOps = BuilderOps {
    types: result_types,
    shapes,
    partial_axes,
    constant: |term, dtype, span| Ok(Constant::from_term(term, dtype, span)?.into()),
    stacked,
    vary: |axes| PVary { axes }.into(),
    request: |to| Reshard::request(to).into(),
};

/// A builder with one open, empty block, outside `manual` code.
pub fn builder(mesh: Mesh, func: Func) -> CallBuilder {
    CallBuilder::new(mesh, func, &BUILDER_OPS)
}
