//! Unknown names.

use crate::program::sources::shipped_with;
use spmdc_functions::is_builtin;
use spmdc_grammar::ast::{DTypeName, FnItem, Ident};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::unknown;
use spmdc_grammar::span::Span;
use spmdc_grammar::{elsewhere, habits};
use spmdc_ir::call::errors::nearest;

/// E0101
pub fn unknown_name(name: &str, span: Span, candidates: &[&str]) -> Diagnostic {
    let error = Diagnostic::error(Code::E0101, span, unknown("name", name));
    let error = error.here("not found in this scope");
    let is_from_elsewhere = habits::of_word(name).or_else(|| elsewhere::of_function(name)).is_some();
    match shipped_with(name).filter(|_| !is_from_elsewhere) {
        Some((file, module)) => error.help(format!("`import \"{file}\" as {module};` has `{module}.{name}`")),
        None => suggest(error, name, span, candidates),
    }
}

/// E0228, a warning: a text with the name of a variable in braces.
pub fn name_in_braces(name: &str, span: Span) -> Diagnostic {
    let message = format!("`{{{name}}}` in a text is not replaced by the value of `{name}`");
    let help = format!(
        "write `{{}}`, and `{name}` after the text, as in print(\"{{}}\", {name}); or `{{{{{name}}}}}` for braces"
    );
    Diagnostic::warning(Code::E0228, span, message).help(help)
}

/// E0101: a size in the signature of a function that is neither a constant nor a size parameter.
pub fn unknown_size(name: &str, span: Span, function: &FnItem, candidates: &[&str]) -> Diagnostic {
    let error = Diagnostic::error(Code::E0101, span, unknown("size", name)).here("not found in this scope");
    if let Some(near) = nearest(name, candidates.iter().copied().filter(|near| *near != "None")) {
        return error.help(format!("did you mean `{near}`?")).edit(span, near, "the nearest name");
    }
    let own = &function.name;
    if own.name == "main" {
        return error.help(format!("declare a constant, as in `const {name} = 8;`, which --set changes"));
    }
    let known = function.size_params.iter().map(|param| param.name.as_str());
    let list = known.chain([name]).collect::<Vec<_>>().join(", ");
    let error = error.help(format!("declare it as a size parameter: `fn {}<{list}>(..)`", own.name));
    match function.size_params.last() {
        Some(last) => {
            let after = Span { start: last.span.end, ..last.span };
            error.edit(after, format!(", {name}"), "a size parameter")
        }
        None => {
            let after = Span { start: own.span.end, ..own.span };
            error.edit(after, format!("<{name}>"), "a size parameter")
        }
    }
}

/// E0101: `text`, such as `norm(x)`, with the name of a library before it.
pub fn foreign(prefix: &str, name: &Ident, text: &str, (root, callee): (Span, Span)) -> Diagnostic {
    let error = Diagnostic::error(Code::E0101, root, unknown("name", prefix)).here("not found in this scope");
    if is_builtin(&name.name) {
        let is_short = text.len() <= 40 && !text.contains('\n');
        let call = if is_short { text.to_string() } else { format!("{}(..)", name.name) };
        return error.help(format!("functions have no prefix: write `{call}`")).edit(
            callee,
            &name.name,
            "without the prefix",
        );
    }
    if let Some(meant) = DTypeName::meant_by(&name.name) {
        return error.help(format!("did you mean `{meant}`?")).edit(callee, meant, "the element type");
    }
    match habits::of_word(&name.name).or_else(|| elsewhere::of_function(&name.name)) {
        Some(help) => error.help(format!("functions have no prefix; {help}")),
        None => match habits::of_word(prefix) {
            Some(help) => error.help(help),
            None => error,
        },
    }
}

/// E0101
pub fn unknown_type(name: &str, span: Span, types: &[&str]) -> Diagnostic {
    let error = Diagnostic::error(Code::E0101, span, unknown("type", name));
    suggest(error.here("not found in this scope"), name, span, types)
}

/// E0101
pub fn unknown_element_type(name: &str, span: Span) -> Diagnostic {
    let error = Diagnostic::error(Code::E0101, span, unknown("element type", name));
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
    let error = Diagnostic::error(Code::E0101, span, format!("the module `{module}` does not define `{name}`"));
    suggest(error, name, span, candidates)
}

/// E0304
pub fn unknown_axis(name: &str, span: Span, axes: &[String]) -> Diagnostic {
    let error = Diagnostic::error(Code::E0304, span, unknown("mesh axis", name));
    let candidates: Vec<&str> = axes.iter().map(String::as_str).collect();
    match nearest(name, candidates.iter().copied()) {
        Some(_) => suggest(error, name, span, &candidates),
        None if axes.is_empty() => error
            .help(format!("the program has no mesh; declare one, as in `mesh ({name} = 2);`, or pass --mesh {name}=2")),
        None => error.help(format!("the axes of the mesh are {}", axes.join(", "))),
    }
}

/// E0101
pub fn unknown_mesh(name: &str, span: Span, meshes: &[String]) -> Diagnostic {
    let error = Diagnostic::error(Code::E0101, span, unknown("mesh", name));
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
