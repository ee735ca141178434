//! Draws the layouts of parameters, results and named values.

use std::fmt::Write as _;

use spmdc_compiler::pipeline::Compilation;
use spmdc_compiler::report::named::shown_values;
use spmdc_ir::program::{Module, Stage, Value};
use spmdc_layout::draw::{Style, draw};
use spmdc_runtime::errors::suggest;
use spmdc_runtime::errors::trap::{RunCode, RunError};

use super::meshes::{self, each_mesh};
use crate::errors::{CommandError, absent};
use crate::table::{indented, width};

/// The drawings of the values with these names, or of all, each under its value's name and type. The compilation has reached propagation. An
/// unknown name is an E0702.
pub fn viz(compilation: &Compilation, wanted: &[String], style: Style) -> Result<String, CommandError> {
    let mut modules = Vec::new();
    for of_mesh in compilation.of_meshes() {
        modules.push(of_mesh.stage(Stage::Propagated).ok_or_else(|| absent("layouts"))?);
    }
    let all: Vec<(String, Value)> = modules.iter().flat_map(|module| shown_values(module)).collect();
    if let Some(unknown) = wanted.iter().find(|wanted| !all.iter().any(|(name, _)| name == *wanted)) {
        return Err(unknown_value(&all, unknown).into());
    }
    each_mesh(compilation, |of_mesh| {
        let module = of_mesh.stage(Stage::Propagated).ok_or_else(|| absent("layouts"))?;
        Ok(drawings(module, wanted, style))
    })
}

/// The drawings of the values of one mesh.
fn drawings(module: &Module, wanted: &[String], style: Style) -> String {
    // A value with several names, such as a variable that is a result, is drawn once.
    let mut values: Vec<(Vec<String>, Value)> = Vec::new();
    let is_wanted = |name: &String| wanted.is_empty() || wanted.contains(name);
    for (name, value) in shown_values(module).into_iter().filter(|(name, _)| is_wanted(name)) {
        match values.iter_mut().find(|(_, known)| *known == value) {
            Some((names, _)) => names.push(name),
            None => values.push((vec![name], value)),
        }
    }
    let mut text = legend(module);
    for (names, value) in &values {
        let (name, ty) = (names.join(", "), &module.func.ty_in_program(*value));
        if ty.array.is_stream {
            let _ = write!(text, "\n{name}: {}\nstays in its file\n", ty.display(&module.mesh));
            continue;
        }
        let _ = write!(text, "\n{name}: {}\n{}", ty.display(&module.mesh), draw(ty, &module.mesh, style, width()));
    }
    text
}

/// The legend of the drawings.
fn legend(module: &Module) -> String {
    let axes = module.mesh.whole().axes;
    let (sizes, count) = (meshes::axes(&module.mesh), module.mesh.device_count());
    let order = match axes.as_slice() {
        [] | [_] => String::new(),
        [.., last] => format!(", neighbours along {} first", last.name),
    };
    let devices = match (module.mesh.named.first(), axes.as_slice()) {
        (Some(named), []) => named.describe(),
        (Some(named), [..]) => format!("{}: the mesh ({}){order}", named.describe(), sizes.join(", ")),
        (None, _) if count == 1 => "one device".to_string(),
        (None, []) => format!("{count} devices"),
        (None, [axis]) => {
            format!("the mesh ({}): the devices 0 to {} along {}", sizes.join(", "), count - 1, axis.name)
        }
        (None, [..]) => format!("the mesh ({}): the devices 0 to {}{order}", sizes.join(", "), count - 1),
    };
    let text =
        format!("{devices}. Each box is a block of a value: beside it its indices, in it the devices that hold it.");
    indented(&text, "", "", width())
}

fn unknown_value(values: &[(String, Value)], wanted: &str) -> RunError {
    let error = RunError::new(RunCode::E0702, format!("the program has no value `{wanted}`"));
    let names: Vec<&str> = values.iter().map(|(name, _)| name.as_str()).collect();
    match suggest::nearest(wanted, names.iter().copied()) {
        Some(near) => error.with_help(format!("did you mean `{near}`?")),
        None => error.with_help(format!("its values are `{}`", names.join("`, `"))),
    }
}
