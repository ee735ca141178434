//! Items: imports, constants, functions, the mesh, the entry.

use spmdc_grammar::ast::Ident;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::{cannot, must_be};
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
        .here(format!("this call recurses into `{function}`"))
        .help(format!(
            "functions are expanded where they are called, so they cannot be recursive: {}; use `for` or `while`",
            calls.join(" calls ")
        ))
}

/// E0103
pub fn too_many_calls(span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0103, span, "calls are nested too deeply")
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
        "every call is expanded into its caller, so a chain of functions that each call the next one twice doubles the program at each step. \
         Call it once and keep the result in a variable, or use a loop",
    )
}

/// E0104
pub fn unreadable_import(path: &str, reason: &str, shipped: &[&str], span: Span) -> Diagnostic {
    let error = Diagnostic::error(Code::E0104, span, cannot(format_args!("import `{path}`"), reason));
    match path.starts_with("std/") {
        true => error.help(format!("the files of the standard library are {}", shipped.join(", "))),
        false => error,
    }
}

/// E0104
pub fn import_cycle(path: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0104, span, format!("circular import: `{path}` imports this file"))
        .help("move the items that both files need into a third one")
}

/// E0105
pub fn no_entry(entry: &str, span: Span, functions: &[&str]) -> Diagnostic {
    let error =
        Diagnostic::error(Code::E0105, span, format!("no entry function: the program does not define `{entry}`"));
    match nearest(entry, functions.iter().copied()) {
        Some(near) => error.help(format!("did you mean --entry {near}?")),
        None if functions.is_empty() => error.help(format!("write `fn {entry}() {{ ... }}`")),
        None => error.help(format!("choose one of its functions with --entry: {}", functions.join(", "))),
    }
}

/// E0105
pub fn untyped_entry(entry: &str, parameter: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0105, span, format!("parameter `{parameter}` of the entry function `{entry}` has no type"))
        .help("no call determines the types of the program's arguments, so the entry function must declare them")
}

/// E0105
pub fn generic_entry(entry: &str, span: Span) -> Diagnostic {
    let message = format!("the entry function `{entry}` cannot have size parameters: no caller determines them");
    Diagnostic::error(Code::E0105, span, message).help("use constants, as in `const N = 8;`; --set changes them")
}

/// E0107
pub fn unknown_constant(name: &str, constants: &[&str]) -> Diagnostic {
    let message = format!("--set: the program has no constant `{name}`");
    let error = Diagnostic::error(Code::E0107, Span::default(), message).of_command();
    match nearest(name, constants.iter().copied()) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None if constants.is_empty() => error.help("it has no constants; declare one, as in `const N = 8;`"),
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
    Diagnostic::error(Code::E0218, span, must_be("a constant", "a number, a bool or a list of these", found))
}

/// E0218
pub fn constant_cycle(name: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0218, span, format!("the constant `{name}` depends on itself"))
}

/// E0601
pub fn mesh(span: Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(Code::E0601, span, message)
}

/// E0901
pub fn not_yet(span: Span, what: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::error(Code::E0901, span, format!("{what} is not supported yet"))
}

/// E0105
pub fn entry_default(name: &str, param: &str, span: Span) -> Diagnostic {
    let message = format!("parameter `{param}` of the entry function `{name}` cannot have a default value");
    Diagnostic::error(Code::E0105, span, message)
        .help(format!("remove it and pass --arg {param}=..., or use a constant, which --set changes"))
}
