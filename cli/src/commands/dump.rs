//! `spmdc dump`: the program after a stage of the compiler.

use spmdc_compiler::check::check;
use spmdc_compiler::check::sources::SourceSet;
use spmdc_compiler::ir::print::module_with_places;
use spmdc_runtime::trap::RunError;

use crate::Stop;
use crate::options::{DumpCommand, DumpStage};
use crate::render::Reporter;
use crate::sources::{SourceTexts, load};

/// The text of the program after the stage.
pub fn dump(command: &DumpCommand, reporter: &Reporter, texts: &mut SourceTexts) -> Result<String, Stop> {
    let loaded = load(&command.program, texts)?;
    match command.stage {
        DumpStage::Ast => Ok(spmdc_grammar::print(&loaded.set.file(SourceSet::ROOT).program)),
        DumpStage::Typed => {
            let (module, warnings) = check(&loaded.set, &loaded.options).map_err(Stop::Program)?;
            reporter.diagnostics(&warnings, texts);
            Ok(module_with_places(&module, &|span| texts.place(span)))
        }
        DumpStage::Propagated | DumpStage::Partitioned | DumpStage::Optimized | DumpStage::Clif | DumpStage::Asm => {
            Err(RunError::new("E0901", "this stage is not supported yet").into())
        }
    }
}
