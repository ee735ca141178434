//! Programs as StableHLO text with Shardy's shardings, for XLA.
//!
//! [`export`] takes a module at `typed` or `differentiated`: functions, structs and templates are expanded, and no op concerns blocks on
//! devices. Each op writes itself (`spmdc_ir::stablehlo`); this crate writes the module around them: the mesh, the signature, and control
//! flow.
//!
//! ```text
//! mesh (X: auto = 2);                          sdy.mesh @mesh = <["X"=2]>
//! fn main(x: f32[4@X]) -> f32[4] { x + x }     func.func public @main(%x: tensor<4xf32> {sdy.sharding = ..}) -> ..
//! ```

#![warn(missing_docs)]

mod control;
mod exporter;
mod signature;

use crate::exporter::Exporter;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_ir::program::Module;

/// The text of a program, and the statements that it leaves out.
#[derive(Clone, Debug)]
pub struct HloText {
    /// A module that `jaxlib` compiles.
    pub text: String,
    /// E0113 for each statement that has an effect besides its results, such as `print`.
    pub warnings: Vec<Diagnostic>,
}

/// The StableHLO text of a module at `typed` or `differentiated`. E0112 for a program with several meshes, and for each op that StableHLO
/// cannot express.
pub fn export(module: &Module) -> Result<HloText, Vec<Diagnostic>> {
    if module.mesh.is_several() {
        let message = "cannot export a program with several meshes: StableHLO has one mesh for a module";
        let error = Diagnostic::error(Code::E0112, Span::default(), message);
        return Err(vec![error.help("export the part on each mesh as a program of its own")]);
    }
    let mut exporter = Exporter::new(&module.func, &module.mesh);
    let main = exporter.main();
    if !exporter.errors.is_empty() {
        return Err(exporter.errors);
    }
    let (lines, functions) = exporter.hlo.finish();
    let text = signature::module_text(&module.func.name, &module.mesh, &main.0, &lines, &main.1, &functions);
    Ok(HloText { text, warnings: exporter.warnings })
}
