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
mod signature;

use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_ir::program::value::Value;
use spmdc_ir::program::{Block, Func, Module, Stmt};
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloType, HloValue};
use spmdc_layout::mesh::Mesh;
use std::collections::BTreeMap;

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

/// A function on its way to text.
struct Exporter<'a> {
    func: &'a Func,
    mesh: &'a Mesh,
    hlo: HloBuilder<'a>,
    /// The values that are visible, by their names in the text.
    names: BTreeMap<Value, HloValue>,
    warnings: Vec<Diagnostic>,
    errors: Vec<Diagnostic>,
}

impl<'a> Exporter<'a> {
    fn new(func: &'a Func, mesh: &'a Mesh) -> Exporter<'a> {
        let hlo = HloBuilder::new(mesh);
        Exporter { func, mesh, hlo, names: BTreeMap::new(), warnings: Vec::new(), errors: Vec::new() }
    }

    /// The type of a value in the text.
    fn ty(&self, value: Value) -> HloType {
        HloType::of(&self.func.ty(value).array)
    }

    /// A value in the text. A value whose statement is an error has a name that no text shows.
    fn value(&self, value: Value) -> HloValue {
        let unknown = || HloValue { name: "%unknown".to_string(), ty: self.ty(value) };
        self.names.get(&value).cloned().unwrap_or_else(unknown)
    }

    fn values(&self, values: &[Value]) -> Vec<HloValue> {
        values.iter().map(|&value| self.value(value)).collect()
    }

    fn define(&mut self, values: &[Value], made: Vec<HloValue>) {
        debug_assert_eq!(values.len(), made.len(), "a statement has as many values in the text");
        self.names.extend(values.iter().copied().zip(made));
    }

    /// Writes the statements of a block, and returns its results.
    fn block(&mut self, block: &Block) -> Vec<HloValue> {
        for stmt in &block.stmts {
            self.stmt(stmt);
        }
        self.values(&block.results)
    }

    fn stmt(&mut self, stmt: &Stmt) {
        let Some(op) = stmt.op() else { return self.control(stmt) };
        let rules = op.rules();
        let args = self.values(&stmt.args);
        let types: Vec<HloType> = stmt.results.iter().map(|&result| self.ty(result)).collect();
        let missing = match rules.stablehlo() {
            Exported::Written(writer) => match writer.write(&mut self.hlo, &args, &types) {
                Ok(made) => return self.define(&stmt.results, made),
                Err(gap) => gap.0,
            },
            Exported::Dropped => return self.dropped(stmt),
            Exported::Missing(missing) => missing.to_string(),
            Exported::AfterPartitioning => "step of a partitioned program".to_string(),
        };
        self.missing(stmt, &missing);
    }

    /// Notes that a statement has no form in the text.
    fn missing(&mut self, stmt: &Stmt, missing: &str) {
        let message = format!("cannot export `{}`: StableHLO has no {missing}", stmt.name());
        let error = Diagnostic::error(Code::E0112, stmt.origin.span, message);
        self.errors
            .push(error.help("leave the call out of the exported program, or compile the program with `spmdc build`"));
    }

    /// Warns of a statement that the text leaves out.
    fn dropped(&mut self, stmt: &Stmt) {
        let message = format!("the exported program leaves out this `{}`", stmt.name());
        self.warnings.push(Diagnostic::warning(Code::E0113, stmt.origin.span, message));
    }
}
