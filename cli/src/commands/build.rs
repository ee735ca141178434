//! `spmdc build`: ahead of time, to an executable or library that needs nothing of spmdc.

use std::path::{Path, PathBuf};

use spmdc_compiler::codegen::machine::Destination;
use spmdc_compiler::codegen::object::{self, Entry};
use spmdc_runtime::start::encode;

use crate::header::{Header, identifier};
use crate::options::{BuildCommand, Emit};
use crate::render::Reporter;
use crate::sources::SourceTexts;
use crate::{Stop, link};

/// Writes what was asked for.
pub fn build(command: &BuildCommand, reporter: &Reporter, texts: &mut SourceTexts) -> Result<(), Stop> {
    let output = command.output.clone().unwrap_or_else(|| default_output(command));
    let compilation = super::compile(&command.program, None, reporter, texts)?;
    let program = compilation.program.as_ref().ok_or_else(|| super::absent("program"))?;
    let cpu = command.cpu.cpu();
    let object = |entry: Entry| -> Result<Vec<u8>, Stop> {
        object::emit(&encode(program)?, &compilation.kernels, cpu, entry).map_err(|error| super::no_code(&error))
    };
    let name = library_name(&output);
    let function = Entry::Function { name: &name, inputs: program.params.len(), outputs: program.results.len() };
    match command.emit {
        Emit::Exe => link::executable(&object(Entry::Main)?, &output)?,
        Emit::Obj => link::write(&object(function)?, &output)?,
        Emit::Lib => {
            let header = Header { program, source: &command.program.program, library: &output, function: &name };
            link::library(&object(function)?, &name, &output)?;
            link::write(header.to_string().as_bytes(), &output.with_extension("h"))?;
        }
        Emit::Asm => {
            let text = super::dump::asm(&compilation, Destination::Object(cpu))?;
            link::write(text.as_bytes(), &output)?;
        }
        Emit::Clif => {
            let text = super::dump::clif(&compilation, Destination::Object(cpu))?;
            link::write(text.as_bytes(), &output)?;
        }
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

/// The function of a library is named after its file: `libheat.a` has `heat`.
fn library_name(output: &Path) -> String {
    let stem = output.file_stem().unwrap_or_default().to_string_lossy();
    identifier(stem.strip_prefix("lib").filter(|name| !name.is_empty()).unwrap_or(&stem))
}
