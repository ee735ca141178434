//! The program after a stage of the compiler, as text.

use spmdc_compiler::backends;
use spmdc_compiler::pipeline::Compilation;
use spmdc_inspect::print::module_with_places;
use spmdc_ir::program::{Module, Stage};
use spmdc_kernel::backend::{Destination, TextForm};

use super::meshes::each_part;
use crate::errors::{CommandError, absent, no_code};
use crate::sources::SourceTexts;

/// The program after a stage that the compilation has reached.
pub fn stage(compilation: &Compilation, stage: Stage, texts: &SourceTexts) -> Result<String, CommandError> {
    match compilation.stage(stage) {
        Some(module) => Ok(text(module, texts)),
        // From propagation on, each mesh has a program of its own.
        None => {
            each_part(compilation, |of_mesh| Ok(text(of_mesh.stage(stage).ok_or_else(|| absent("such stage"))?, texts)))
        }
    }
}

/// The text of a module, with the source positions of its statements.
pub fn text(module: &Module, texts: &SourceTexts) -> String {
    module_with_places(module, &|span| texts.place(span))
}

/// The code of the kernels as text.
pub fn code(compilation: &Compilation, form: TextForm, destination: Destination) -> Result<String, CommandError> {
    let names = compilation.program.iter().flat_map(|program| &program.kernels);
    let mut listing = String::new();
    for (number, (kernel, name)) in compilation.kernels.iter().zip(names).enumerate() {
        let text = backends::DEFAULT.text(kernel, form, destination).map_err(|error| no_code(&error))?;
        listing.push_str(&format!("; kernel {number}: {name}\n{}\n", text.trim_end()));
    }
    Ok(listing)
}
