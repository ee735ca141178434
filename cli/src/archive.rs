//! Builds the runtime as a static archive, from which executables are linked.
//!
//! Cargo cannot build a static library of a dependency on stable. So a small package is written that depends on the runtime
//! and holds the C entry point; it is built with its own release profile in its own target directory, so that this build
//! and the command's do not wait for each other. The build script does this for a release build of the command, which then
//! embeds the archive; a debug build of the command does it when it first links an executable, so that checking and testing
//! do not pay for it. Nothing is rebuilt when nothing has changed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the archive is built, and from what.
pub struct ArchiveBuild<'a> {
    /// The folder of the runtime's sources.
    pub runtime: &'a Path,
    /// A folder of our own.
    pub folder: &'a Path,
    pub cargo: &'a str,
    /// The target triple.
    pub target: &'a str,
    /// Optimise across all crates: smaller and slightly faster executables, for half a minute more.
    pub whole_program: bool,
}

impl ArchiveBuild<'_> {
    /// Builds what is not built yet; gives the path of the archive.
    pub fn run(&self) -> io::Result<PathBuf> {
        let package = self.folder.join("executable");
        fs::create_dir_all(package.join("src"))?;
        write_if_changed(&package.join("Cargo.toml"), &self.manifest())?;
        write_if_changed(&package.join("src/lib.rs"), include_str!("executable.rs.in"))?;
        // The same versions of everything as in the command.
        let lock = self.runtime.join("../Cargo.lock");
        if lock.exists() && !package.join("Cargo.lock").exists() {
            fs::copy(lock, package.join("Cargo.lock"))?;
        }
        let target_folder = self.folder.join("executable-target");
        let mut cargo = Command::new(self.cargo);
        cargo.args(["build", "--quiet", "--release", "--target", self.target]);
        cargo.arg("--manifest-path").arg(package.join("Cargo.toml")).arg("--target-dir").arg(&target_folder);
        // What was set for the build of the command is not meant for this one.
        for name in [
            "RUSTFLAGS",
            "CARGO_ENCODED_RUSTFLAGS",
            "RUSTC_WRAPPER",
            "RUSTC_WORKSPACE_WRAPPER",
            "MAKEFLAGS",
            "CARGO_MAKEFLAGS",
        ] {
            cargo.env_remove(name);
        }
        let output = cargo.output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(io::Error::other(format!("the runtime of executables could not be built:\n{said}")));
        }
        Ok(target_folder.join(self.target).join("release").join("libspmd_executable.a"))
    }

    fn manifest(&self) -> String {
        format!(
            "[package]\n\
             name = \"spmd_executable\"\n\
             version = \"0.0.0\"\n\
             edition = \"2024\"\n\
             \n\
             [workspace]\n\
             \n\
             [lib]\n\
             crate-type = [\"staticlib\"]\n\
             \n\
             [dependencies]\n\
             spmdc-abi = {{ path = {:?} }}\n\
             spmdc-runtime = {{ path = {:?} }}\n\
             \n\
             [profile.release]\n\
             {}\n\
             strip = \"debuginfo\"\n\
             \n\
             [profile.release.package.spmdc-runtime]\n\
             codegen-units = 1\n",
            self.runtime.join("abi"),
            self.runtime,
            if self.whole_program { "lto = \"fat\"\ncodegen-units = 1" } else { "lto = false" },
        )
    }
}

/// Leaves an equal file alone, so that its time does not cause a rebuild.
fn write_if_changed(path: &Path, content: &str) -> io::Result<()> {
    if fs::read_to_string(path).is_ok_and(|old| old == content) { Ok(()) } else { fs::write(path, content) }
}
