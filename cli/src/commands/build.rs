//! `spmdc build`: compiles ahead of time, to an executable or library that does not need spmdc.

use std::path::{Path, PathBuf};

use spmdc_compiler::backends;
use spmdc_driver::errors::{CommandError, absent, no_code};
use spmdc_driver::render::Reporter;
use spmdc_driver::reports;
use spmdc_driver::sources::SourceTexts;
use spmdc_kernel::backend::{Destination, Entry, TextForm};
use spmdc_runtime::errors::trap::{RunCode, RunError};
use spmdc_runtime::run::start::encode;

use crate::header::{LibraryHeader, identifier};
use crate::link;
use crate::options::{BuildCommand, Emit};
use crate::sources::STANDARD_INPUT;

/// Writes the requested output.
pub fn build(command: &BuildCommand, reporter: &Reporter, texts: &mut SourceTexts) -> Result<(), CommandError> {
    let output = match &command.output {
        Some(output) => output.clone(),
        None if command.program.program.as_os_str() == STANDARD_INPUT => {
            let error = RunError::new(RunCode::E0702, "a program read from standard input needs an output name");
            return Err(error.with_help("write -o FILE, or -o - for standard output").into());
        }
        None => default_output(command),
    };
    if !link::is_file(&output) && command.emit == Emit::Lib {
        let error =
            RunError::new(RunCode::E0702, "a library cannot be written to standard output: it comes with a header");
        return Err(error.with_help("write -o FILE, or write an object with --emit obj").into());
    }
    let compilation = super::compile(&command.program, None, reporter, texts)?;
    let program = compilation.program.as_ref().ok_or_else(|| absent("program"))?;
    if let (Emit::Lib | Emit::Obj, Some(stream)) = (command.emit, program.params.iter().find(|it| it.place.is_none())) {
        let why = format!("a library cannot have a stream as a parameter: `{}: {}`", stream.name, stream.ty);
        let error = RunError::new(RunCode::E0901, why);
        return Err(error.with_help("declare a parameter for the rows of one call, which the caller reads").into());
    }
    let cpu = command.cpu.cpu();
    let object = |entry: Entry| -> Result<Vec<u8>, CommandError> {
        let object = backends::DEFAULT.object(&encode(program)?, &compilation.kernels, cpu, entry);
        object.map_err(|error| no_code(&error))
    };
    let named_after = if link::is_file(&output) { &output } else { &command.program.program };
    let name = library_name(named_after);
    let function = Entry::Function { name: &name, inputs: program.params.len(), outputs: program.results.len() };
    match command.emit {
        Emit::Exe => link::executable(&object(Entry::Main)?, &output)?,
        Emit::Obj => link::write(&object(function)?, &output)?,
        Emit::Lib => {
            let header = LibraryHeader { program, source: &command.program.program, library: &output, function: &name };
            link::library(&object(function)?, &name, &output)?;
            link::write(header.to_string().as_bytes(), &output.with_extension("h"))?;
        }
        Emit::Asm => {
            let text = reports::dump::code(&compilation, TextForm::Assembly, Destination::Object(cpu))?;
            link::write(text.as_bytes(), &output)?;
        }
        Emit::Clif => {
            let text = reports::dump::code(&compilation, TextForm::Intermediate, Destination::Object(cpu))?;
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
