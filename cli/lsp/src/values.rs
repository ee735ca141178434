//! The values of compiled programs by the places at which the source names them.

use std::ops::Range;
use std::sync::Arc;

use spmdc_compiler::pipeline::Compilation;
use spmdc_compiler::report::named::named_values;
use spmdc_grammar::span::{FileId, Span};
use spmdc_ir::program::{Module, Stage, Value};
use spmdc_layout::types::Type;

use crate::documents::ParsedFile;
use crate::positions::TextShift;
use crate::programs::CompiledProgram;
use crate::state::ServerState;

/// A value with a name.
pub struct NamedValue<'c> {
    /// The name; of a part of a struct or tuple its path, such as `p.w`.
    pub name: String,
    /// The place of the name in the source.
    pub span: Span,
    /// The value.
    pub value: Value,
    /// The program in which it is.
    pub module: &'c Module,
    /// The compilation of that program.
    pub compilation: &'c Compilation,
}

impl NamedValue<'_> {
    /// Its type after propagation.
    pub fn ty(&self) -> Type {
        self.module.func.ty_in_program(self.value)
    }

    /// Its type in the language.
    pub fn shown(&self) -> String {
        self.ty().display(&self.module.mesh).to_string()
    }

    /// The path after the name of the variable: `.w` of `p.w`.
    pub fn path(&self) -> &str {
        self.name.find('.').map_or("", |dot| &self.name[dot..])
    }
}

/// The named values of a program that are named in a file, in program order. Parameters come first.
pub fn named(compiled: &CompiledProgram, file: FileId) -> Vec<NamedValue<'_>> {
    let mut found: Vec<NamedValue<'_>> = Vec::new();
    for compilation in compiled.compilation.of_meshes() {
        let Some(module) = compilation.stage(Stage::Propagated) else { continue };
        let func = &module.func;
        let params = func.params.iter().zip(&func.body.params);
        let params = params.map(|(param, &value)| (param.name.clone(), param.span, value));
        let variables = named_values(func).into_iter();
        let variables = variables.map(|(name, value)| (name.to_string(), func.info(value).named, value));
        let others = func.other_names.iter().map(|(span, name, value)| (name.clone(), *span, *value));
        for (name, span, value) in params.chain(variables).chain(others) {
            if span != Span::default() && span.file == file {
                found.push(NamedValue { name, span, value, module, compilation });
            }
        }
    }
    found
}

/// A compiled program with a file in it, and the changes of the file since then.
pub struct Seen {
    /// The program.
    pub compiled: Arc<CompiledProgram>,
    /// The number of the file in it.
    pub file: FileId,
    shift: TextShift,
}

impl Seen {
    /// The compiled programs that contain a file.
    pub fn all(state: &ServerState, file: &ParsedFile) -> Vec<Seen> {
        let seen = |compiled: Arc<CompiledProgram>| {
            let number = compiled.file(&file.path)?;
            let shift = TextShift::between(compiled.text(number), &file.text);
            Some(Seen { compiled, file: number, shift })
        };
        state.analyst.compiled(&file.path).into_iter().filter_map(seen).collect()
    }

    /// The range of a span in the present text; None if it has changed.
    pub fn present(&self, span: Span) -> Option<Range<usize>> {
        let (start, end) = (self.shift.to_new(span.start as usize)?, self.shift.to_new(span.end as usize)?);
        (start <= end).then_some(start..end)
    }

    /// The named values of the file whose names are at these places of the present text.
    pub fn named(&self) -> Vec<(Range<usize>, NamedValue<'_>)> {
        let values = named(&self.compiled, self.file).into_iter();
        values.filter_map(|value| Some((self.present(value.span)?, value))).collect()
    }
}
