//! Checked programs.

use spmdc_check::sources::{NoSources, SourceSet};
use spmdc_check::{CheckOptions, check};
use spmdc_ir::program::Module;

/// The checked program of a text.
pub fn typed(text: &str) -> Module {
    let (set, diagnostics) = SourceSet::load("test.spmd", text, &NoSources);
    assert!(diagnostics.is_empty(), "{diagnostics:#?}");
    check(&set, &CheckOptions::default()).unwrap().0
}
