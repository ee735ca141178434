//! `spmdc new`: a folder with a small program to start from.

use std::fs;
use std::path::Path;

use spmdc_driver::errors::CommandError;
use spmdc_runtime::errors::trap::{RunCode, RunError};
use spmdc_runtime::io::{describe, write_file};

const PROGRAM: &str = include_str!("../../new/main.spmd");
const README: &str = include_str!("../../new/README.md");

/// Makes the folder, which must not exist or be empty, and says how to go on.
pub fn new(folder: &Path) -> Result<String, CommandError> {
    let failed = |why: &str| RunError::new(RunCode::E0704, format!("cannot make `{}`: {why}", folder.display()));
    let is_used = match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => folder.exists(),
    };
    if is_used {
        return Err(failed("it exists already").with_help("choose another name, or an empty folder").into());
    }
    fs::create_dir_all(folder).map_err(|error| failed(&describe(&error)))?;
    let name = fs::canonicalize(folder).ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    let readme = README.replace("NAME", name.as_deref().unwrap_or("program"));
    for (file, text) in [("main.spmd", PROGRAM), ("README.md", &readme)] {
        write_file(&folder.join(file), |out| out.write_all(text.as_bytes()))?;
    }
    let shown = folder.display();
    Ok(format!(
        "made {shown}/main.spmd and {shown}/README.md\n\n  cd {shown}\n  spmdc test main.spmd\n  spmdc run main.spmd\n"
    ))
}
