//! Compiles the reference functions of the accuracy sweep (`src/accuracy`), which need C's wider formats, and the parser for editors. The
//! functions of one number are expressions in the table of math functions.

use spmdc_math::MathFn;
use std::path::Path;
use std::{env, fs};

fn main() {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/reference/reference.c");
    println!("cargo:rerun-if-changed={}", concat!(env!("CARGO_MANIFEST_DIR"), "/reference"));
    let case = |(number, f): (usize, &MathFn)| format!("case {number}: return {};\n", f.description().reference);
    let cases: String = MathFn::ALL.iter().enumerate().filter(|(_, f)| !f.is_internal()).map(case).collect();
    let made = env::var("OUT_DIR").expect("Cargo says where build scripts may write");
    fs::write(Path::new(&made).join("unary.h"), cases).expect("a build script may write there");
    let terms = MathFn::ALL.iter().enumerate().filter_map(|(number, f)| Some((number, f.terms()?)));
    let terms: String = terms.map(|(number, terms)| format!("case {number}: return {terms};\n")).collect();
    fs::write(Path::new(&made).join("terms.h"), terms).expect("a build script may write there");
    cc::Build::new()
        .file(source)
        .include(&made)
        .opt_level(2)
        .flag_if_supported("-ffp-contract=off")
        .compile("reference");
    println!("cargo:rustc-link-lib=m");
    let editors = concat!(env!("CARGO_MANIFEST_DIR"), "/../grammar/editors/tree-sitter-spmd/src");
    println!("cargo:rerun-if-changed={editors}");
    let files = ["parser.c", "scanner.c"].map(|name| Path::new(editors).join(name));
    cc::Build::new().files(files).include(editors).warnings(true).compile("tree-sitter-spmd");
}
