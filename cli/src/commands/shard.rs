//! `spmdc shard`: layouts by search, as edits of the source.

use std::path::Path;
use std::time::Duration;

use spmdc_compiler::search::{SearchBounds, SearchRequest, SourceEdit, edited, search_layouts};
use spmdc_driver::disk::read;
use spmdc_driver::errors::{CommandError, unreadable};
use spmdc_driver::reports::shard::{json, show};
use spmdc_driver::sources::SourceTexts;
use spmdc_grammar::format::format;
use spmdc_grammar::span::FileId;
use spmdc_runtime::errors::trap::{RunCode, RunError};

use super::compiler_options;
use super::fmt::replace;
use crate::options::{MessageFormat, ShardCommand};
use crate::sources::load;

/// The best layouts, as tables or JSON; with `--write` the best one is written into the program.
pub fn shard(command: &ShardCommand, ascii: bool, texts: &mut SourceTexts) -> Result<String, CommandError> {
    let path = &command.program.program;
    let parsed = load(&command.program, texts)?;
    let options = compiler_options(&command.program, &parsed);
    let time = command.time_limit.map(Duration::from_secs_f64);
    let bounds = SearchBounds { time, ..SearchBounds::USUAL };
    let request = SearchRequest { memory: command.not_needed.most_memory()?, bounds };
    let result = search_layouts(&parsed.set, &options, request, command.devices).map_err(CommandError::Program)?;
    let edits = result.layouts.first().into_iter().flat_map(|best| best.edits.iter().map(|each| &each.edit));
    let edits: Vec<&SourceEdit> = edits.chain(&result.mesh_edits).collect();
    if command.write && !edits.is_empty() {
        write(path, &edits)?;
    }
    match command.format {
        MessageFormat::Json => json(&result, texts),
        MessageFormat::Text => {
            Ok(show(&result, request.memory, (command.write, command.not_needed.explain), ascii, texts))
        }
    }
}

/// Replaces a program by the one with these edits, formatted if it was.
fn write(path: &Path, edits: &[&SourceEdit]) -> Result<(), CommandError> {
    let name = path.to_string_lossy();
    if !path.is_file() {
        let error = RunError::new(RunCode::E0704, format!("cannot write into `{name}`: it is not a file"));
        return Err(error.with_help("leave out --write, and make the edits in the program").into());
    }
    let text = read(path).map_err(|why| unreadable(&name, &why))?;
    let mut changed = edited(&text, edits.iter().copied());
    let formatted = |text: &str| format(text, FileId(u16::MAX)).ok();
    if formatted(&text).as_deref() == Some(text.as_str())
        && let Some(formatted) = formatted(&changed)
    {
        changed = formatted;
    }
    replace(path, &changed)
}
