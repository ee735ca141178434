//! `spmdc dump`: prints the program after a stage of the compiler.

use clap::ValueEnum;
use spmdc_check::sources::SourceSet;
use spmdc_compiler::backends;
use spmdc_compiler::pipeline::Compilation;
use spmdc_compiler::report::json::module_json;
use spmdc_ir::print::module_with_places;
use spmdc_ir::program::Stage;
use spmdc_kernel::backend::{Destination, TextForm};
use spmdc_runtime::trap::RunError;

use crate::CommandError;
use crate::options::{DumpCommand, DumpStage, MessageFormat};
use crate::render::Reporter;
use crate::sources::{SourceTexts, load};

/// The text of the program after the stage.
pub fn dump(command: &DumpCommand, reporter: &Reporter, texts: &mut SourceTexts) -> Result<String, CommandError> {
    let is_json = command.format == MessageFormat::Json;
    let stage = match command.stage {
        DumpStage::Ast | DumpStage::Differentiated | DumpStage::Clif | DumpStage::Asm if is_json => {
            return Err(no_summary(command.stage).into());
        }
        DumpStage::Ast => {
            let loaded = load(&command.program, texts)?;
            return Ok(spmdc_grammar::print(&loaded.set.file(SourceSet::ROOT).program));
        }
        DumpStage::Clif | DumpStage::Asm => {
            let form = if command.stage == DumpStage::Asm { TextForm::Assembly } else { TextForm::Intermediate };
            return code(&super::compile(&command.program, None, reporter, texts)?, form, Destination::Memory);
        }
        DumpStage::Typed => Stage::Typed,
        DumpStage::Differentiated => Stage::Differentiated,
        DumpStage::Propagated => Stage::Propagated,
        DumpStage::Partitioned => Stage::Partitioned,
        DumpStage::Optimized => Stage::Optimized,
    };
    // The summary includes the memory of the whole program.
    let compilation = super::compile(&command.program, Some(stage).filter(|_| !is_json), reporter, texts)?;
    let module = compilation.stage(stage).ok_or_else(|| super::absent("such stage"))?;
    if is_json {
        let program = compilation.program.as_ref().ok_or_else(|| super::absent("program"))?;
        let json = module_json(module, program, &|span| texts.line_column(span));
        return Ok(json.map_err(|error| RunError::internal(error.to_string()))? + "\n");
    }
    Ok(module_with_places(module, &|span| texts.place(span)))
}

/// The summary describes layouts and collectives, which these stages do not have.
fn no_summary(stage: DumpStage) -> RunError {
    let name = stage.to_possible_value().map(|value| value.get_name().to_string()).unwrap_or_default();
    RunError::new("E0702", format!("stage `{name}` has no summary in JSON"))
        .with_help("`--format json` goes with the stages typed, propagated, partitioned and optimized")
}

/// The code of the kernels as text.
pub fn code(compilation: &Compilation, form: TextForm, destination: Destination) -> Result<String, CommandError> {
    let names = compilation.program.iter().flat_map(|program| &program.kernels);
    let mut listing = String::new();
    for (number, (kernel, name)) in compilation.kernels.iter().zip(names).enumerate() {
        let text = backends::DEFAULT.text(kernel, form, destination).map_err(|error| super::no_code(&error))?;
        listing.push_str(&format!("; kernel {number}: {name}\n{}\n", text.trim_end()));
    }
    Ok(listing)
}
