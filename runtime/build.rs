//! Tells the command's build script where this crate lives, so that it can build the archive that goes into executables.
fn main() {
    println!("cargo:manifest_dir={}", env!("CARGO_MANIFEST_DIR"));
    println!("cargo:rerun-if-changed=build.rs");
}
