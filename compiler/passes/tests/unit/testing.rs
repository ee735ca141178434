//! The parsed, checked and compiled program of a text, for the tests of the passes.

use spmdc_check::sources::{NoSources, SourceSet};
use spmdc_check::{CheckOptions, check};
use spmdc_compiler::pipeline::{Compilation, Options, compile};
use spmdc_ir::program::Module;

/// The parsed program.
pub fn parsed(source: &str) -> SourceSet {
    let (set, diagnostics) = SourceSet::load("test.spmd", source, &NoSources);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    set
}

/// The checked program.
pub fn typed(source: &str) -> Module {
    check(&parsed(source), &CheckOptions::default()).unwrap().0
}

/// The compilation of a program without options.
pub fn compiled(source: &str) -> Compilation {
    compile(&parsed(source), &Options::default()).unwrap()
}
