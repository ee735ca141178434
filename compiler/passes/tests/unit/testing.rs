//! The checked program of a text, for the tests of the passes.

use spmdc_check::sources::{NoSources, SourceSet};
use spmdc_check::{CheckOptions, check};
use spmdc_ir::program::Module;

/// The checked program.
pub fn typed(source: &str) -> Module {
    let (set, diagnostics) = SourceSet::load("test.spmd", source, &NoSources);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    check(&set, &CheckOptions::default()).unwrap().0
}
