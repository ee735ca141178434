//! The table of operations, and each operation: types, factors, values and text.
#![allow(clippy::unwrap_used)]

mod bitcast;
mod cast;
mod check_indices;
mod combined;
mod complex;
mod conv;
mod diff;
mod dynamic_slice;
mod einsum;
mod elementwise;
mod fft;
mod fold_in;
mod gather;
mod ghosted;
mod halo;
mod index;
mod keys;
mod matrix_power;
mod norm;
mod pad;
mod partial_sums;
mod patches;
mod prelude;
mod promote;
mod random_bits;
mod read_rows;
mod reduce;
mod reduce_window;
mod reshape;
mod scan;
mod scatter;
mod searchsorted;
mod segments;
mod slice;
mod take;
mod testing;
mod transfer;
mod update;
mod window;
mod windowed;

use spmdc_functions::{builtin_names, functions};
use spmdc_ir::call::signature::{Given, Status};

#[test]
fn every_name_stands_in_the_table_once() {
    let mut names: Vec<&str> = builtin_names().collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}

/// The table itself checks when it is compiled that each name has a signature, and each signature a name.
#[test]
fn every_signature_is_that_of_a_name_and_can_be_bound() {
    for function in functions() {
        for signature in function.forms() {
            let name = signature.name;
            let line = signature.line();
            assert!(line.ends_with('.') && line.len() < 140, "`{name}`: {line}");
            let needs_example = signature.status == Status::Shipped;
            assert_eq!(needs_example, !signature.example.is_empty(), "an example of `{name}`");
            for (at, param) in signature.params.iter().enumerate() {
                let others = &signature.params[..at];
                assert!(others.iter().all(|other| other.name != param.name), "`{name}` has `{}` twice", param.name);
                let follows_optional = others.iter().any(|other| other.default.is_some());
                let needed = param.given == Given::Either && param.default.is_none();
                assert!(
                    !(follows_optional && needed),
                    "`{name}`: `{}` is needed after others that are not",
                    param.name
                );
            }
        }
    }
}
