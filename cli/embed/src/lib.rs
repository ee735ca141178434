//! Locates the static library of the crate `spmdc-executable`, which Cargo has built.
//!
//! Cargo compiles a dependency once, as a Rust library and as a static library, side by side: `libspmdc_executable-HASH.rlib` and
//! `.a`. It has no variable for either path. The command line of the compiler has the first one, and a macro runs in the compiler.

#![warn(missing_docs)]

use proc_macro::TokenStream;
use std::path::PathBuf;

/// The path of the archive, as a string literal. Without linking, as in `cargo check`, there is no archive: any existing file.
#[proc_macro]
pub fn executable_archive(_: TokenStream) -> TokenStream {
    let found = archive(std::env::args());
    let text = match found {
        Some(path) => format!("{:?}", path.display().to_string()),
        None => {
            "compile_error!(\"the command line of rustc does not name the library `spmdc_executable`\")".to_string()
        }
    };
    text.parse().expect("a literal or a macro call")
}

fn archive(args: impl Iterator<Item = String>) -> Option<PathBuf> {
    let library = args.filter_map(|arg| arg.strip_prefix("spmdc_executable=").map(PathBuf::from)).next()?;
    match library.extension()?.to_str()? {
        "rlib" => Some(library.with_extension("a")),
        _ => Some(library),
    }
}
