//! Modules and functions in the generic form: `"func.func"() <{function_type = .., sym_name = "main"}> ({ .. }) : () -> ()`.

use crate::cursor::{Cursor, Read};
use crate::parse::check_replicas;
use crate::tree::{Attribute, Attributes, MlirFunction, MlirModule, MlirOp, MlirParam};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;

impl Cursor<'_> {
    /// An operation of a module in the generic form.
    pub fn generic_item(&mut self, module: &mut MlirModule) -> Read<()> {
        let operation = self.operation()?;
        self.add_item(module, operation)
    }

    fn add_item(&mut self, module: &mut MlirModule, mut operation: MlirOp) -> Read<()> {
        let malformed = |what: &str| Diagnostic::error(Code::E0110, operation.span, what.to_string());
        let name = match operation.attributes.get("sym_name") {
            Some(Attribute::Text(name)) => name.clone(),
            _ => String::new(),
        };
        match operation.name.as_str() {
            "builtin.module" => {
                check_replicas(&operation.attributes, operation.span)?;
                for inner in operation.regions.into_iter().flat_map(|region| region.body) {
                    self.add_item(module, inner)?;
                }
                Ok(())
            }
            "sdy.mesh" => {
                let Some(Attribute::Custom(_, inside)) = operation.attributes.get("mesh") else {
                    return Err(malformed("a mesh has axes"));
                };
                let text = format!("<{inside}>");
                let found = Cursor::of_part(&text).mesh_declaration_after(name);
                let mut mesh = found.map_err(|error| Diagnostic { span: operation.span, ..error })?;
                mesh.span = operation.span;
                module.meshes.push(mesh);
                Ok(())
            }
            "func" => {
                let Some(Attribute::Custom(_, text)) = operation.attributes.get("function_type") else {
                    return Err(malformed("a function has a type"));
                };
                let types = Cursor::of_part(text).signature(usize::MAX);
                let types = types.map_err(|error| Diagnostic { span: operation.span, ..error })?;
                let Some(region) = operation.regions.pop() else { return Err(malformed("a function has a body")) };
                let attributes = |list: &str, at: usize| match operation.attributes.get(list) {
                    Some(Attribute::List(all)) => match all.get(at) {
                        Some(Attribute::Map(map)) => map.clone(),
                        _ => Attributes::new(),
                    },
                    _ => Attributes::new(),
                };
                let params = region.params.into_iter().enumerate().map(|(at, (name, ty))| MlirParam {
                    name,
                    ty,
                    attributes: attributes("arg_attrs", at),
                    location: None,
                    span: operation.span,
                });
                let params = params.collect();
                let results = types.into_iter().enumerate().map(|(at, ty)| (ty, attributes("res_attrs", at))).collect();
                module.functions.push(MlirFunction { name, params, results, body: region.body, span: operation.span });
                Ok(())
            }
            _ => Err(malformed("expected a function or a mesh")),
        }
    }
}
