//! Generates the parser from `src/grammar.lalrpop` when that file has changed.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/grammar.lalrpop");
    lalrpop::Configuration::new().use_cargo_dir_conventions().process().map_err(|error| error.to_string().into())
}
