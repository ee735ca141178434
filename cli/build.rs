//! Puts into the command what it needs at run time: the pages of `spmdc explain`, and the runtime of executables.

#[path = "src/archive.rs"]
mod archive;

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use archive::ArchiveBuild;

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let command = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    // The runtime's own build script says where it lives.
    let runtime = PathBuf::from(env::var("DEP_SPMDRT_MANIFEST_DIR")?);
    for changed in ["build.rs", "src/archive.rs", "src/executable.rs.in"] {
        println!("cargo:rerun-if-changed={changed}");
    }
    write_pages(&command.join("../docs/errors"), &out)?;

    println!("cargo:rustc-check-cfg=cfg(embedded_runtime)");
    let (target, cargo) = (env::var("TARGET")?, env::var("CARGO")?);
    if env::var("PROFILE")? == "release" {
        for changed in
            [runtime.join("src"), runtime.join("abi"), runtime.join("Cargo.toml"), runtime.join("../Cargo.lock")]
        {
            println!("cargo:rerun-if-changed={}", changed.display());
        }
        // `target/dist/build/spmdc-1234/out`
        let whole_program = out.ancestors().nth(3).is_some_and(|folder| folder.ends_with("dist"));
        let build = ArchiveBuild { runtime: &runtime, folder: &out, cargo: &cargo, target: &target, whole_program };
        println!("cargo:rustc-cfg=embedded_runtime");
        println!("cargo:rustc-env=SPMDC_RUNTIME_ARCHIVE={}", build.run()?.display());
    } else {
        println!("cargo:rustc-env=SPMDC_RUNTIME_SOURCE={}", runtime.display());
        println!("cargo:rustc-env=SPMDC_ARCHIVE_FOLDER={}", out.display());
        println!("cargo:rustc-env=SPMDC_TARGET={target}");
    }
    Ok(())
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
