//! Tells the command's build script where this crate lives, so that it can build the archive that goes into executables.

use std::env;

fn main() -> Result<(), env::VarError> {
    println!("cargo:manifest_dir={}", env::var("CARGO_MANIFEST_DIR")?);
    println!("cargo:rerun-if-changed=build.rs");
    Ok(())
}
