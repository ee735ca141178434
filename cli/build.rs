//! Embeds the pages of `spmdc explain`, and the examples with their data, in the command.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let command = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    println!("cargo:rerun-if-changed=build.rs");
    write_pages(&command.join("../docs/errors"), &out)?;
    write_examples(&command.join("../examples"), &out)
}

/// Writes `examples.rs` and `example_data.rs`: lists of the examples and of their data.
fn write_examples(folder: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={}", folder.display());
    let files = |folder: &Path, ending: &str| -> Result<Vec<PathBuf>, Box<dyn Error>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == ending) {
                files.push(path.canonicalize()?);
            }
        }
        files.sort();
        Ok(files)
    };
    let mut programs = String::from("&[\n");
    for path in files(folder, "spmd")? {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        programs.push_str(&format!("    ({name:?}, include_str!({path:?})),\n"));
    }
    fs::write(out.join("examples.rs"), programs + "]\n")?;
    let mut data = String::from("&[\n");
    let mut folders = Vec::new();
    for entry in fs::read_dir(folder.join("data"))? {
        folders.push(entry?.path());
    }
    folders.sort();
    for folder in folders.iter().filter(|path| path.is_dir()) {
        println!("cargo:rerun-if-changed={}", folder.display());
        for path in files(folder, "npy")? {
            let of = folder.file_name().unwrap_or_default().to_string_lossy();
            let name = format!("{of}/{}", path.file_name().unwrap_or_default().to_string_lossy());
            data.push_str(&format!("    ({name:?}, include_bytes!({path:?})),\n"));
        }
    }
    Ok(fs::write(out.join("example_data.rs"), data + "]\n")?)
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
