//! `spmdc dump`: prints the program after a stage of the compiler.

use clap::ValueEnum;
use serde_json::Value;
use spmdc_check::sources::SourceSet;
use spmdc_compiler::pipeline::{Compilation, Options};
use spmdc_compiler::report::json::module_json;
use spmdc_driver::errors::{CommandError, absent};
use spmdc_driver::render::Reporter;
use spmdc_driver::reports;
use spmdc_driver::reports::dump::text;
use spmdc_driver::reports::meshes::each_part;
use spmdc_driver::sources::SourceTexts;
use spmdc_ir::program::Stage;
use spmdc_kernel::backend::{Destination, TextForm};
use spmdc_layout::mesh::NamedMesh;
use spmdc_runtime::errors::trap::{RunCode, RunError};

use crate::options::{DumpCommand, DumpStage, MessageFormat};
use crate::sources::load;

/// The text of the program after the stage.
pub fn dump(command: &DumpCommand, reporter: &Reporter, texts: &mut SourceTexts) -> Result<String, CommandError> {
    if let Some(pass) = command.after {
        return after_pass(command, pass, reporter, texts);
    }
    let is_json = command.format == MessageFormat::Json;
    let asked = command.stage.unwrap_or(DumpStage::Partitioned);
    if is_json && (asked == DumpStage::Differentiated || module_stage(asked).is_none()) {
        return Err(no_summary(asked).into());
    }
    let Some(stage) = module_stage(asked) else { return text_of(asked, command, reporter, texts) };
    // The summary includes the memory of the whole program.
    let compilation = super::compile(&command.program, Some(stage).filter(|_| !is_json), reporter, texts)?;
    let place = |span| texts.line_column(span);
    let failed = |error: serde_json::Error| RunError::internal(error.to_string());
    let of_part = |of_mesh: &Compilation| -> Result<String, CommandError> {
        let module = of_mesh.stage(stage).ok_or_else(|| absent("such stage"))?;
        let program = of_mesh.program.as_ref().ok_or_else(|| absent("program"))?;
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
    reports::dump::stage(&compilation, stage, texts)
}

/// The stage of a module; None for stages before and after.
fn module_stage(stage: DumpStage) -> Option<Stage> {
    match stage {
        DumpStage::Ast | DumpStage::Clif | DumpStage::Asm => None,
        DumpStage::Typed => Some(Stage::Typed),
        DumpStage::Differentiated => Some(Stage::Differentiated),
        DumpStage::Propagated => Some(Stage::Propagated),
        DumpStage::Partitioned => Some(Stage::Partitioned),
        DumpStage::Optimized => Some(Stage::Optimized),
    }
}

/// The program as it is parsed, or its code.
fn text_of(
    stage: DumpStage,
    command: &DumpCommand,
    reporter: &Reporter,
    texts: &mut SourceTexts,
) -> Result<String, CommandError> {
    if stage == DumpStage::Ast {
        let loaded = load(&command.program, texts)?;
        return Ok(spmdc_grammar::print(&loaded.set.file(SourceSet::ROOT).program));
    }
    let form = if stage == DumpStage::Asm { TextForm::Assembly } else { TextForm::Intermediate };
    reports::dump::code(&super::compile(&command.program, None, reporter, texts)?, form, Destination::Memory)
}

/// The text of the program after the last run of a pass, up to the stage if one is given.
fn after_pass(
    command: &DumpCommand,
    pass: &'static str,
    reporter: &Reporter,
    texts: &mut SourceTexts,
) -> Result<String, CommandError> {
    let stage = match command.stage {
        None => Stage::Optimized,
        Some(asked) => module_stage(asked).filter(|&stage| stage != Stage::Typed).ok_or_else(|| {
            let error =
                RunError::new(RunCode::E0702, "passes run between the stages `typed` and `optimized`".to_string());
            error.with_help("leave out `--stage`, or choose one of the stages after `typed`")
        })?,
    };
    let set = |options| Options { stop_after: Some(stage), after: Some(pass), ..options };
    let (compilation, ..) = super::compile_with(&command.program, reporter, texts, set)?;
    match &compilation.after {
        Some(module) => Ok(text(module, texts)),
        // Most passes of a program with several meshes run for each of them.
        None => each_part(&compilation, |of_mesh| {
            let module = of_mesh.after.as_ref();
            let message = || format!("the pass `{pass}` does not run up to stage `{}`", stage.name());
            let never = || RunError::new(RunCode::E0702, message());
            let help = "choose a later stage; the passes before the stage of a dump do not run again";
            Ok(text(module.ok_or_else(|| never().with_help(help))?, texts))
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
    RunError::new(RunCode::E0702, format!("the stage `{name}` cannot be written as JSON"))
        .with_help("`--format json` is available for the stages typed, propagated, partitioned and optimized")
}
