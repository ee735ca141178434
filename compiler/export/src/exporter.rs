//! The statements of a function on their way to text.

use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::program::value::Value;
use spmdc_ir::program::{Block, Func, Stmt};
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloType, HloValue};
use spmdc_layout::mesh::Mesh;
use std::collections::BTreeMap;

/// A function on its way to text.
pub struct Exporter<'a> {
    /// The function.
    pub func: &'a Func,
    /// The mesh of the program.
    pub mesh: &'a Mesh,
    /// The lines so far.
    pub hlo: HloBuilder<'a>,
    /// The values that are visible, by their names in the text.
    pub names: BTreeMap<Value, HloValue>,
    /// E0113 for each statement that is left out.
    pub warnings: Vec<Diagnostic>,
    /// E0112 for each statement without a form in StableHLO.
    pub errors: Vec<Diagnostic>,
}

impl<'a> Exporter<'a> {
    /// An exporter of this function that has written nothing.
    pub fn new(func: &'a Func, mesh: &'a Mesh) -> Exporter<'a> {
        let hlo = HloBuilder::new(mesh);
        Exporter { func, mesh, hlo, names: BTreeMap::new(), warnings: Vec::new(), errors: Vec::new() }
    }

    /// The type of a value in the text.
    pub fn ty(&self, value: Value) -> HloType {
        HloType::of(&self.func.ty(value).array)
    }

    /// A value in the text. A value whose statement is an error has a name that no text shows.
    pub fn value(&self, value: Value) -> HloValue {
        let unknown = || HloValue { name: "%unknown".to_string(), ty: self.ty(value) };
        self.names.get(&value).cloned().unwrap_or_else(unknown)
    }

    /// Several values in the text.
    pub fn values(&self, values: &[Value]) -> Vec<HloValue> {
        values.iter().map(|&value| self.value(value)).collect()
    }

    /// Gives values their names in the text.
    pub fn define(&mut self, values: &[Value], made: Vec<HloValue>) {
        debug_assert_eq!(values.len(), made.len(), "a statement has as many values in the text");
        self.names.extend(values.iter().copied().zip(made));
    }

    /// Writes the statements of a block, and returns its results.
    pub fn block(&mut self, block: &Block) -> Vec<HloValue> {
        for stmt in &block.stmts {
            self.stmt(stmt);
        }
        self.values(&block.results)
    }

    /// Writes a statement.
    pub fn stmt(&mut self, stmt: &Stmt) {
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
    pub fn missing(&mut self, stmt: &Stmt, missing: &str) {
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
