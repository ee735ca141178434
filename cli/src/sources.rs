//! Reads the programs that the command line names.

use std::path::{Path, PathBuf};

use spmdc_check::CheckOptions;
use spmdc_compiler::pipeline::HostOptions;
use spmdc_driver::disk::{read, read_text};
use spmdc_driver::errors::{CommandError, unreadable};
use spmdc_driver::sources::{ParsedProgram, SourceTexts, parse};
use spmdc_kernel::machine::Machine;
use spmdc_layout::cost::Levels;
use spmdc_runtime::errors::trap::{RunCode, RunError};
use spmdc_runtime::io::describe;

use crate::examples;
use crate::machine;
use crate::options::{MachineOption, ProgramOptions};

/// Maximum number of nested folders in which files are looked for.
const MAX_DEPTH: usize = 64;

/// The name of standard input, and of standard output, on the command line.
pub const STANDARD_INPUT: &str = "-";

/// Reads the program and its imports. The texts are kept even if they have errors: messages show them.
pub fn load(options: &ProgramOptions, texts: &mut SourceTexts) -> Result<ParsedProgram, CommandError> {
    let example = examples::text(&options.program).transpose()?;
    let (name, text) = match (example, options.program.to_str()) {
        (Some(text), _) => (options.program.to_string_lossy(), Ok(text.to_string())),
        (None, Some(STANDARD_INPUT)) => ("<stdin>".into(), read_text(std::io::stdin().lock())),
        (None, _) => (options.program.to_string_lossy(), read(&options.program)),
    };
    let text = text.map_err(|why| RunError::new(RunCode::E0703, format!("cannot read the program `{name}`: {why}")))?;
    let set = parse(&name, &text, texts)?;
    let (machine, levels) = match &options.machine {
        MachineOption::Real => (Machine::REAL, Levels::DEFAULT),
        MachineOption::Tiny => (Machine::TINY, Levels::DEFAULT),
        MachineOption::File(path) => {
            let unreadable = |why| format!("cannot read the machine file `{}`: {why}", path.display());
            let text = read(path).map_err(|why| RunError::new(RunCode::E0703, unreadable(why)))?;
            (Machine::REAL, machine::parse(path, &text)?)
        }
    };
    let given = options.hosts.map(|count| HostOptions { count, levels, refuses: true });
    let hosts = given.or(options.launched.map(|count| HostOptions { count, levels, refuses: false }));
    let options = CheckOptions {
        entry: options.entry.clone(),
        mesh: options.mesh.clone(),
        sets: options.settings.clone(),
        machine: Machine { native_bf16: options.native_bf16, ..machine },
        ..CheckOptions::default()
    };
    Ok(ParsedProgram { set, options, hosts })
}

/// The named files, and all source files in the named folders, in order.
pub fn named_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, CommandError> {
    let mut files = Vec::new();
    for path in paths {
        match path.is_dir() {
            true => add_folder(path, 0, &mut files)?,
            false => files.push(path.clone()),
        }
    }
    Ok(files)
}

/// Adds the source files below a folder. Hidden folders, folders of builds and links are left out.
fn add_folder(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), CommandError> {
    let failed = |error: &std::io::Error| unreadable(&folder.to_string_lossy(), &describe(error));
    let mut entries = std::fs::read_dir(folder)
        .and_then(|entries| entries.collect::<Result<Vec<_>, _>>())
        .map_err(|error| failed(&error))?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name());
        let is_hidden = name.to_string_lossy().starts_with('.') || name == "target";
        let kind = entry.file_type().map_err(|error| failed(&error))?;
        if kind.is_dir() && !is_hidden && depth < MAX_DEPTH {
            add_folder(&path, depth + 1, files)?;
        } else if kind.is_file() && path.extension().is_some_and(|extension| extension == "spmd") {
            files.push(path.strip_prefix(".").map_or(path.clone(), Path::to_path_buf));
        }
    }
    Ok(())
}
