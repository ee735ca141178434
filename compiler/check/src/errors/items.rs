//! Items: imports, constants, functions, the mesh, the entry.

use spmdc_grammar::ast::Ident;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_ir::call::errors::nearest;

/// E0102
pub fn defined_twice(name: &Ident, first: Span) -> Diagnostic {
    Diagnostic::error(Code::E0102, name.span, format!("`{}` is defined twice", name.name))
        .here("defined again here")
        .label(first, "defined first here")
        .help("rename one of the two")
}

/// E0102
pub fn parameter_twice(name: &Ident) -> Diagnostic {
    Diagnostic::error(Code::E0102, name.span, format!("two parameters are called `{}`", name.name))
}

/// E0103
pub fn recursion(function: &str, span: Span, calls: &[String]) -> Diagnostic {
    Diagnostic::error(Code::E0103, span, format!("`{function}` calls itself"))
        .here(format!("this call leads back to `{function}`"))
        .help(format!(
            "functions are expanded where they are called, so a call cannot lead back: {}; use `for` or `while`",
            calls.join(" calls ")
        ))
}

/// E0103
pub fn too_many_calls(span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0103, span, "calls are nested too deeply here")
        .help("a function that is passed to itself cannot be expanded; use `for` or `while`")
}

/// E0103
pub fn too_much_expanded(most: usize, calls: &[String], span: Span) -> Diagnostic {
    // Of a long chain both ends say enough.
    const SHOWN: usize = 5;
    let chain = match calls.len() > 2 * SHOWN {
        true => format!(
            "{} calls ... calls {}",
            calls[..SHOWN].join(" calls "),
            calls[calls.len() - SHOWN..].join(" calls ")
        ),
        false => calls.join(" calls "),
    };
    Diagnostic::error(Code::E0103, span, format!("more than {most} calls are expanded: {chain}")).help(
        "a call is compiled as a part of its caller, so two calls of a function in each function of a chain double the program at each step: \
         call it once and keep the result in a variable, or use a loop",
    )
}

/// E0104
pub fn unreadable_import(path: &str, reason: &str, shipped: &[&str], span: Span) -> Diagnostic {
    let error = Diagnostic::error(Code::E0104, span, format!("`{path}` cannot be imported: {reason}"));
    match path.starts_with("std/") {
        true => error.help(format!("shipped files are {}", shipped.join(", "))),
        false => error,
    }
}

/// E0104
pub fn import_cycle(path: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0104, span, format!("`{path}` is what leads to this import, so it would import itself"))
        .help("move what both files need into a third one")
}

/// E0105
pub fn no_entry(entry: &str, span: Span, functions: &[&str]) -> Diagnostic {
    let error = Diagnostic::error(Code::E0105, span, format!("the program has no function `{entry}` to begin with"));
    match nearest(entry, functions.iter().copied()) {
        Some(near) => error.help(format!("did you mean --entry {near}?")),
        None if functions.is_empty() => error.help(format!("write `fn {entry}() {{ ... }}`")),
        None => error.help(format!("give one of its functions with --entry: {}", functions.join(", "))),
    }
}

/// E0105
pub fn untyped_entry(entry: &str, parameter: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0105, span, format!("parameter `{parameter}` of `{entry}` has no type"))
        .help("the program's arguments come from outside, so every parameter of its entry says what it takes")
}

/// E0105
pub fn generic_entry(entry: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0105, span, format!("`{entry}` has size parameters, which nothing decides"))
        .help("make them constants: `const N = 8;`, which --set changes")
}

/// E0107
pub fn unknown_constant(name: &str, constants: &[&str]) -> Diagnostic {
    let message = format!("--set: the program has no constant `{name}`");
    let error = Diagnostic::error(Code::E0107, Span::default(), message).of_command();
    match nearest(name, constants.iter().copied()) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None if constants.is_empty() => error.help("it has none: write `const N = 8;`"),
        None => error.help(format!("its constants are {}", constants.join(", "))),
    }
}

/// E0107
pub fn set_twice(name: &str) -> Diagnostic {
    Diagnostic::error(Code::E0107, Span::default(), format!("--set: `{name}` is given twice"))
        .help(format!("write --set {name}=VALUE once"))
        .of_command()
}

/// E0107
pub fn set_does_not_fit(name: &str, value: &str, kind: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0107, span, format!("--set {name}={value}: `{value}` is not {kind}"))
        .here(format!("`{name}` is {kind} here"))
        .help(format!("write --set {name}=VALUE with {kind}"))
        .of_command()
}

/// E0218
pub fn not_constant(span: Span, found: &str) -> Diagnostic {
    Diagnostic::error(Code::E0218, span, format!("a constant is a number, a bool or a list of these, not {found}"))
}

/// E0218
pub fn constant_cycle(name: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0218, span, format!("the constant `{name}` is defined by itself"))
}

/// E0601
pub fn mesh(span: Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(Code::E0601, span, message)
}

/// E0901
pub fn not_yet(span: Span, what: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::error(Code::E0901, span, format!("{what} is not supported yet"))
}

/// E0210
pub fn entry_default(name: &str, param: &str, span: Span) -> Diagnostic {
    let message =
        format!("`{param}` of the entry `{name}` has a default value; its arguments come from the command line");
    Diagnostic::error(Code::E0210, span, message)
        .help(format!("leave it out and give --arg {param}=..., or make it a constant, which --set changes"))
}
