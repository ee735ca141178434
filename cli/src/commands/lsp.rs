//! `spmdc lsp`: a language server on standard input and output.

use spmdc_driver::cache;
use spmdc_driver::errors::CommandError;
use spmdc_lsp::{ServerEnd, serve};
use spmdc_runtime::errors::trap::RunError;
use spmdc_runtime::run::start::{Failure, FailureReport};

/// Serves an editor until it ends the server. The exit status is 1 if the editor has gone without announcing it.
pub fn lsp() -> Result<(), CommandError> {
    let end = serve(cache::folder_of_user().map(|folder| folder.join("sources")));
    match end.map_err(|error| RunError::internal(format!("a thread cannot be started: {error}")))? {
        ServerEnd::Shutdown => Ok(()),
        ServerEnd::Disconnected => {
            let gone = Failure::new(RunError::internal("the editor has gone"));
            Err(CommandError::Failure(Failure { status: 1, report: FailureReport::ByAnother, ..gone }))
        }
    }
}
