//! Compilations of texts, for all tests.

use spmdc_check::sources::{NoSources, SourceSet};
use spmdc_compiler::pipeline::{Compilation, Options, compile};

/// The parsed program.
pub fn parsed(text: &str) -> SourceSet {
    let (set, diagnostics) = SourceSet::load("test.spmd", text, &NoSources);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    set
}

/// The compilation of a program without options.
pub fn compiled(text: &str) -> Compilation {
    compiled_with_sources(text).1
}

/// The parsed program, and its compilation without options.
pub fn compiled_with_sources(text: &str) -> (SourceSet, Compilation) {
    let set = parsed(text);
    let compilation = compile(&set, &Options::default()).unwrap();
    (set, compilation)
}
