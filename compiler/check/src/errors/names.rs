//! Unknown names.

use crate::sources::shipped_with;
use spmdc_grammar::ast::DTypeName;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_grammar::{elsewhere, habits};
use spmdc_ir::call::errors::nearest;

/// E0101
pub fn unknown(name: &str, span: Span, candidates: &[&str]) -> Diagnostic {
    let error = Diagnostic::error(Code::E0101, span, format!("there is nothing called `{name}` here"));
    let error = error.here("unknown name");
    let is_from_elsewhere = habits::of_word(name).or_else(|| elsewhere::of_function(name)).is_some();
    match shipped_with(name).filter(|_| !is_from_elsewhere) {
        Some((file, module)) => error.help(format!("`import \"{file}\" as {module};` has `{module}.{name}`")),
        None => suggest(error, name, span, candidates),
    }
}

/// E0101
pub fn unknown_type(name: &str, span: Span, types: &[&str]) -> Diagnostic {
    let error = Diagnostic::error(Code::E0101, span, format!("there is no type called `{name}` here"));
    suggest(error.here("unknown type"), name, span, types)
}

/// E0101
pub fn unknown_element_type(name: &str, span: Span) -> Diagnostic {
    let message = format!("there is no element type called `{name}`");
    let error = Diagnostic::error(Code::E0101, span, message).here("unknown type");
    match DTypeName::meant_by(name) {
        Some(meant) => error.help(format!("did you mean `{meant}`?")),
        None => {
            let names: Vec<&str> = DTypeName::ALL.iter().map(|(_, name)| *name).collect();
            error.help(format!("element types are {}", names.join(", ")))
        }
    }
}

/// E0101
pub fn unknown_member(name: &str, module: &str, span: Span, candidates: &[&str]) -> Diagnostic {
    let error = Diagnostic::error(Code::E0101, span, format!("`{module}` has nothing called `{name}`"));
    suggest(error, name, span, candidates)
}

/// E0304
pub fn unknown_axis(name: &str, span: Span, axes: &[String]) -> Diagnostic {
    let error = Diagnostic::error(Code::E0304, span, format!("the mesh has no axis called `{name}`"));
    let candidates: Vec<&str> = axes.iter().map(String::as_str).collect();
    match nearest(name, candidates.iter().copied()) {
        Some(_) => suggest(error, name, span, &candidates),
        None if axes.is_empty() => error.help(format!(
            "the program has no mesh: declare one, as in `mesh ({name} = 2);`, or give one with --mesh {name}=2"
        )),
        None => error.help(format!("its axes are {}", axes.join(", "))),
    }
}

/// E0101
pub fn unknown_mesh(name: &str, span: Span, meshes: &[String]) -> Diagnostic {
    let error = Diagnostic::error(Code::E0101, span, format!("there is no mesh called `{name}`"));
    let known: Vec<&str> = meshes.iter().map(String::as_str).filter(|mesh| !mesh.is_empty()).collect();
    match nearest(name, known.iter().copied()) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None if known.is_empty() => error.help(format!("declare it, as in `mesh {name} (X = 2);`")),
        None => error.help(format!("the meshes are {}", known.join(", "))),
    }
}

fn suggest(error: Diagnostic, name: &str, span: Span, candidates: &[&str]) -> Diagnostic {
    let is_name = error.code == Code::E0101;
    if let Some(meant) = DTypeName::meant_by(name).filter(|_| is_name) {
        return error.help(format!("did you mean `{meant}`?")).edit(span, meant, "the element type");
    }
    if let Some(help) = habits::of_word(name).filter(|_| is_name) {
        return error.help(help);
    }
    if let Some(help) = elsewhere::of_function(name).filter(|_| is_name) {
        return error.help(help);
    }
    // PyTorch's functions that modify their operand.
    if let Some(function) = name.strip_suffix('_').filter(|function| is_name && candidates.contains(function)) {
        return error.help(format!("values are immutable: `let mut u = x; u = {function}(u);`"));
    }
    if is_name && elsewhere::is_unknown(name) {
        return error;
    }
    match nearest(name, candidates.iter().copied()) {
        Some(near) => error.help(format!("did you mean `{near}`?")).edit(span, near, "the nearest name"),
        None => error,
    }
}
