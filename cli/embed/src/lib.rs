//! Locates the static library of the crate `spmdc-executable`, which Cargo has built, and packs it for the command.
//!
//! Cargo compiles a dependency once, as a Rust library and as a static library, side by side: `libspmdc_executable-HASH.rlib` and
//! `.a`. It has no variable for either path. The command line of the compiler has the first one, and a macro runs in the compiler.

#![warn(missing_docs)]

mod archive;

use proc_macro::{Literal, TokenStream, TokenTree};
use std::path::PathBuf;

/// The level of compression, of 10.
const LEVEL: u8 = 9;

/// The path of the archive, as a string literal. Without linking, as in `cargo check`, the archive does not exist: any
/// existing file.
#[proc_macro]
pub fn executable_archive(_: TokenStream) -> TokenStream {
    match archive(std::env::args()) {
        Some(path) => literal(Literal::string(&path.display().to_string())),
        None => error("the command line of rustc does not name the library `spmdc_executable`"),
    }
}

/// The archive without debugging information, compressed (zlib, RFC 1950), as a byte string.
#[proc_macro]
pub fn packed_archive(_: TokenStream) -> TokenStream {
    let Some(path) = archive(std::env::args()) else {
        return error("the command line of rustc does not name the library `spmdc_executable`");
    };
    match std::fs::read(&path) {
        Ok(library) => {
            let library = archive::without_debugging(&library).unwrap_or(library);
            literal(Literal::byte_string(&miniz_oxide::deflate::compress_to_vec_zlib(&library, LEVEL)))
        }
        Err(reason) => error(&format!("cannot read `{}`: {reason}", path.display())),
    }
}

fn archive(args: impl Iterator<Item = String>) -> Option<PathBuf> {
    let library = args.filter_map(|arg| arg.strip_prefix("spmdc_executable=").map(PathBuf::from)).next()?;
    match library.extension()?.to_str()? {
        "rlib" => Some(library.with_extension("a")),
        _ => Some(library),
    }
}

fn literal(literal: Literal) -> TokenStream {
    TokenTree::Literal(literal).into()
}

fn error(message: &str) -> TokenStream {
    format!("compile_error!({message:?})").parse().expect("a macro call")
}
