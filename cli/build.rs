//! Embeds the pages of `spmdc explain` in the command.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let command = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    println!("cargo:rerun-if-changed=build.rs");
    write_pages(&command.join("../docs/errors"), &out)
}

/// Writes `pages.rs`: a list of all codes with the text of their pages.
fn write_pages(folder: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={}", folder.display());
    let mut pages: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path.canonicalize()?);
        }
    }
    pages.sort();
    let mut list = String::from("&[\n");
    for page in pages {
        let code = page.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        list.push_str(&format!("    ({code:?}, include_str!({page:?})),\n"));
    }
    list.push_str("]\n");
    Ok(fs::write(out.join("pages.rs"), list)?)
}
