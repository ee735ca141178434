//! `spmdc man`: manual pages of the command.

use std::fs;
use std::path::Path;

use clap::CommandFactory;
use clap_mangen::Man;
use spmdc_driver::errors::CommandError;
use spmdc_runtime::errors::trap::{RunCode, RunError};
use spmdc_runtime::io::{describe, write_file};

use crate::options::CommandLine;

/// Writes a page for the command, and one for each of its commands, `spmdc-run.1` and so on.
pub fn man(folder: &Path) -> Result<(), CommandError> {
    fs::create_dir_all(folder).map_err(|error| {
        RunError::new(RunCode::E0704, format!("cannot make the folder `{}`: {}", folder.display(), describe(&error)))
    })?;
    let mut command = CommandLine::command();
    command.build();
    let subcommands: Vec<clap::Command> = command.get_subcommands().cloned().collect();
    for each in subcommands.into_iter().chain([command]) {
        let page = Man::new(each);
        write_file(&folder.join(page.get_filename()), |out| page.render(out))?;
    }
    Ok(())
}
