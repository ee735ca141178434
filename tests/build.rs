//! Compiles the reference functions of the accuracy sweep (`src/bin/ulp.rs`), which need C's `long double`.

fn main() {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/reference/reference.c");
    println!("cargo:rerun-if-changed={source}");
    cc::Build::new().file(source).opt_level(2).flag_if_supported("-ffp-contract=off").compile("reference");
    println!("cargo:rustc-link-lib=m");
}
