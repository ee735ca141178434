//! Compiles the reference functions of the accuracy sweep (`src/accuracy`), which need C's wider formats.

fn main() {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/reference/reference.c");
    println!("cargo:rerun-if-changed={}", concat!(env!("CARGO_MANIFEST_DIR"), "/reference"));
    cc::Build::new().file(source).opt_level(2).flag_if_supported("-ffp-contract=off").compile("reference");
    println!("cargo:rustc-link-lib=m");
}
