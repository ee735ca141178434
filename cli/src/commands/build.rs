//! `spmdc build`: ahead of time, to an executable that needs nothing of spmdc.

use std::path::PathBuf;

use spmdc_compiler::codegen::object;
use spmdc_runtime::start::encode;

use crate::options::{BuildCommand, Emit};
use crate::render::Reporter;
use crate::sources::SourceTexts;
use crate::{Stop, link};

/// Executables use all that this machine can do, as programs that run at once do; so their answers have the same bits.
const NATIVE: bool = true;

/// Writes what was asked for.
pub fn build(command: &BuildCommand, reporter: &Reporter, texts: &mut SourceTexts) -> Result<(), Stop> {
    let output = command.output.clone().unwrap_or_else(|| default_output(command));
    let compilation = super::compile(&command.program, None, reporter, texts)?;
    let object = || -> Result<Vec<u8>, Stop> {
        let program = compilation.program.as_ref().ok_or_else(|| super::absent("program"))?;
        object::emit(&encode(program)?, &compilation.kernels, NATIVE).map_err(|error| super::no_code(&error))
    };
    match command.emit {
        Emit::Exe => link::executable(&object()?, &output)?,
        Emit::Obj => link::write(&object()?, &output)?,
        Emit::Lib => link::library(&object()?, &output)?,
        Emit::Asm => link::write(super::dump::asm(&compilation)?.as_bytes(), &output)?,
        Emit::Clif => link::write(super::dump::clif(&compilation)?.as_bytes(), &output)?,
    }
    Ok(())
}

/// `heat.spmd` becomes `heat`, `heat.o` and so on, in the folder where the command runs.
fn default_output(command: &BuildCommand) -> PathBuf {
    let stem = command.program.program.file_stem().unwrap_or_default();
    let extension = match command.emit {
        Emit::Exe => std::env::consts::EXE_EXTENSION,
        Emit::Obj => "o",
        Emit::Lib => "a",
        Emit::Asm => "s",
        Emit::Clif => "clif",
    };
    PathBuf::from(stem).with_extension(extension)
}
