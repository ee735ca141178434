//! `spmdc dump`: prints the program after a stage of the compiler.

use clap::ValueEnum;
use serde_json::Value;
use spmdc_check::sources::SourceSet;
use spmdc_compiler::backends;
use spmdc_compiler::pipeline::Compilation;
use spmdc_compiler::report::json::module_json;
use spmdc_ir::layout::mesh::NamedMesh;
use spmdc_ir::print::module_with_places;
use spmdc_ir::program::{Module, Stage};
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
    let place = |span| texts.line_column(span);
    let failed = |error: serde_json::Error| RunError::internal(error.to_string());
    let of_part = |of_mesh: &Compilation| -> Result<String, CommandError> {
        let module = of_mesh.stage(stage).ok_or_else(|| super::absent("such stage"))?;
        let program = of_mesh.program.as_ref().ok_or_else(|| super::absent("program"))?;
        Ok(module_json(module, program, &place).map_err(failed)?)
    };
    if is_json {
        let mut parts = Vec::new();
        for part in &compilation.parts {
            let object = serde_json::from_str(&of_part(&part.compilation)?).map_err(failed)?;
            parts.push((&part.mesh, object));
        }
        return Ok(match parts.is_empty() {
            true => of_part(&compilation)?,
            false => meshes_json(parts).to_string(),
        } + "\n");
    }
    let text = |module: &Module| module_with_places(module, &|span| texts.place(span));
    match compilation.stage(stage) {
        Some(module) => Ok(text(module)),
        // From propagation on, each mesh has a program of its own.
        None => super::each_part(&compilation, |of_mesh| {
            Ok(text(of_mesh.stage(stage).ok_or_else(|| super::absent("such stage"))?))
        }),
    }
}

/// One object for the programs of several meshes: the fields of each under `meshes`, and those of all together.
fn meshes_json(parts: Vec<(&NamedMesh, Value)>) -> Value {
    let mut all = serde_json::Map::new();
    let mut meshes = Vec::new();
    for (mesh, part) in parts {
        let Value::Object(mut part) = part else { continue };
        for (key, value) in &part {
            // A transfer is where it is sent.
            let is_sent = |each: &Value| each["kind"] != "transfer" || each["bytes"] != 0;
            match (all.get_mut(key), value) {
                (Some(Value::Array(known)), Value::Array(more)) => {
                    for each in more.iter().filter(|each| is_sent(each)) {
                        if key == "collectives" || !known.contains(each) {
                            known.push(each.clone());
                        }
                    }
                }
                (Some(Value::Number(known)), Value::Number(more)) => {
                    if more.as_u64() > known.as_u64() {
                        *known = more.clone();
                    }
                }
                (Some(_), _) => {}
                (None, Value::Array(first)) => {
                    let kept = first.iter().filter(|each| is_sent(each)).cloned().collect();
                    all.insert(key.clone(), Value::Array(kept));
                }
                (None, first) => {
                    all.insert(key.clone(), first.clone());
                }
            }
        }
        part.insert("name".to_string(), mesh.name.clone().into());
        part.insert("devices".to_string(), mesh.devices.clone().into());
        meshes.push(Value::Object(part));
    }
    all.insert("meshes".to_string(), Value::Array(meshes));
    Value::Object(all)
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
