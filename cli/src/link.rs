//! Links the object of a program and the embedded runtime into an executable.
//!
//! The linker is the system's C compiler: `cc`, or the command in the variable CC. The output file appears only when it is
//! complete.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use spmdc_runtime::errors::trap::{RunCode, RunError};
use spmdc_runtime::io::temporary::{TemporaryPath, while_written_by};
use spmdc_runtime::io::{beside_file, describe, is_special, rename_to, unwritable_output, write_file};

use crate::ar;

/// The archive of the runtime with all its dependencies. A release of the command contains it, without debugging information and
/// compressed; a debug build reads it from the build directory, because packing it in every build would take longer.
#[cfg(not(debug_assertions))]
fn runtime() -> Result<Vec<u8>, RunError> {
    static PACKED: &[u8] = spmdc_embed::packed_archive!();
    miniz_oxide::inflate::decompress_to_vec_zlib(PACKED).map_err(|error| {
        RunError::new(RunCode::E0704, format!("the runtime library in this command is damaged: {error}"))
    })
}

#[cfg(debug_assertions)]
fn runtime() -> Result<Vec<u8>, RunError> {
    let archive = spmdc_embed::executable_archive!();
    fs::read(archive).map_err(|error| RunError::new(RunCode::E0704, format!("cannot read `{archive}`: {error}")))
}

/// The archive as a file, which is unpacked to a path where it has to be.
#[cfg(not(debug_assertions))]
fn runtime_at<'a>(unpacked: &'a Path, output: &Path) -> Result<&'a Path, RunError> {
    fs::write(unpacked, runtime()?).map_err(|error| unwritable(output, &error))?;
    Ok(unpacked)
}

#[cfg(debug_assertions)]
fn runtime_at<'a>(_unpacked: &'a Path, _output: &Path) -> Result<&'a Path, RunError> {
    Ok(Path::new(spmdc_embed::executable_archive!()))
}

/// Links an executable from the object of a program.
pub fn executable(object: &[u8], output: &Path) -> Result<(), RunError> {
    let failed = |error: io::Error| unwritable(output, &error);
    let folder = match is_file(output) {
        true => beside_file(output),
        false => TemporaryPath::beside(&std::env::temp_dir().join("spmdc")),
    };
    fs::create_dir(folder.path()).map_err(failed)?;
    let [program, unpacked, linked] =
        ["program.o", "runtime.a", "executable"].map(|name| TemporaryPath::at(folder.path().join(name)));
    fs::write(program.path(), object).map_err(failed)?;
    let runtime = runtime_at(unpacked.path(), output)?;
    let (mut linker, name) = linker();
    linker.arg("-o").args([linked.path(), program.path(), runtime]);
    linker.args(if cfg!(target_os = "macos") {
        ["-Wl,-dead_strip", "-lpthread", "-lm"].as_slice()
    } else {
        ["-static-libgcc", "-Wl,--gc-sections", "-s", "-lpthread", "-ldl", "-lm"].as_slice()
    });
    linker.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let process = linker.spawn().map_err(|error| missing_linker(&name, &error))?;
    let done = while_written_by(process.id(), || process.wait_with_output()).map_err(failed)?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        let message = format!("`{name}` failed to link `{}`:\n{}", output.display(), said.trim_end());
        return Err(RunError::new(RunCode::E0704, message));
    }
    match is_file(output) {
        true => rename_to(linked.path(), output).map_err(failed),
        false => write(&fs::read(linked.path()).map_err(failed)?, output),
    }
}

/// Writes a static library with the runtime and the object of a program, which defines `function`.
pub fn library(object: &[u8], function: &str, output: &Path) -> Result<(), RunError> {
    let runtime = runtime()?;
    let library = ar::with_member(&runtime, "program.o", object, function).ok_or_else(|| {
        RunError::new(RunCode::E0901, "libraries are not supported on this system yet")
            .with_help("write an object with --emit obj")
    })?;
    write(&library, output)
}

/// Whether an output is a file, which has a name and a folder, and not standard output, a device or a pipe.
pub fn is_file(output: &Path) -> bool {
    !is_standard_output(output) && !is_special(output)
}

/// Whether `-o` asks for standard output.
pub fn is_standard_output(output: &Path) -> bool {
    output.as_os_str() == "-"
}

/// Writes a file that appears only when it is complete, or standard output.
pub fn write(content: &[u8], output: &Path) -> Result<(), RunError> {
    if is_standard_output(output) {
        let mut out = io::stdout().lock();
        return out.write_all(content).and_then(|()| out.flush()).map_err(|error| unwritable_output(&error));
    }
    write_file(output, |out| out.write_all(content))
}

/// The linker's command, and its name for messages. CC may contain options: `ccache gcc`.
fn linker() -> (Command, String) {
    let chosen = std::env::var_os("CC").filter(|cc| !cc.is_empty()).unwrap_or_else(|| OsString::from("cc"));
    let text = chosen.to_string_lossy();
    let mut words = text.split_whitespace();
    let name = words.next().unwrap_or("cc").to_string();
    let mut command = Command::new(&name);
    command.args(words);
    (command, name)
}

fn unwritable(output: &Path, error: &io::Error) -> RunError {
    RunError::new(RunCode::E0704, format!("cannot write `{}`: {}", output.display(), describe(error)))
}

fn missing_linker(name: &str, error: &io::Error) -> RunError {
    let is_missing = error.kind() == io::ErrorKind::NotFound;
    let reason = if is_missing { "it was not found".to_string() } else { describe(error) };
    RunError::new(RunCode::E0704, format!("the linker `{name}` could not be started: {reason}"))
        .with_help("install a C compiler, or name one in the environment variable CC; --emit obj needs none")
}
