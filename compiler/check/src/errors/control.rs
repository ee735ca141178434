//! Assignment, loops and branches.

use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;

/// E0106
pub fn not_mutable(name: &str, span: Span, declared: Option<Span>) -> Diagnostic {
    let error = Diagnostic::error(Code::E0106, span, format!("`{name}` is not mutable"));
    match declared {
        Some(declared) => error
            .label(declared, format!("`{name}` is introduced here"))
            .help(format!("write `let mut {name} = ...` where it is introduced")),
        None => error.help("only variables of `let mut` can be assigned to"),
    }
}

/// E0106
pub fn not_assignable(span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0106, span, "this is not a variable or a part of one").help(
        "an assignment changes a variable, a field of it, or elements of it: `u = e;`, `p.w = e;`, `u[0, :] = e;`",
    )
}

/// E0212
pub fn carried_type(name: &str, before: &str, after: &str, span: Span) -> Diagnostic {
    Diagnostic::error(
        Code::E0212,
        span,
        format!("`{name}` is `{before}` before this loop and `{after}` after a trip through it"),
    )
    .help("a variable that a loop carries keeps its type, shape included; `for ... collect` collects a value per trip")
}

/// E0212
pub fn carried_kind(name: &str, kind: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0212, span, format!("the loop assigns `{name}`, which is {kind}"))
        .help("a loop carries arrays, numbers, and structs and tuples of them")
}

/// E0213
pub fn branch_types(what: &str, then: &str, otherwise: &str, span: Span) -> Diagnostic {
    Diagnostic::error(
        Code::E0213,
        span,
        format!("{what} is `{then}` after the first branch and `{otherwise}` after the second"),
    )
    .help("an `if` compiles to one value, so both branches must give the same type")
}

/// E0213
pub fn no_else(span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0213, span, "this `if` has a value but no `else`")
}

/// E0214
pub fn condition(found: &str, is_array: bool, span: Span) -> Diagnostic {
    let error = Diagnostic::error(Code::E0214, span, format!("a condition is one bool, this is `{found}`"));
    match is_array {
        true => error.help("`where(c, a, b)` chooses per element; `any(c)` and `all(c)` make one bool of many"),
        false => error.help("compare it, as in `x != 0`"),
    }
}

/// E0207
pub fn collect_bounds(span: Span) -> Diagnostic {
    Diagnostic::error(
        Code::E0207,
        span,
        "the number of trips of a `collect` must be known when the program is compiled",
    )
    .help("it is a dimension of the result")
}

/// E0210
pub fn loop_bound(found: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0210, span, format!("a loop bound is a whole number, this is {found}"))
}

/// E0207
pub fn loop_step(found: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0207, span, format!("a loop's step is a whole number that is not 0, this is {found}"))
        .help("it is a constant, so that the direction is known; `while` may step as it likes")
}

/// E0218
pub fn loop_range(start: i128, end: i128, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0218, span, format!("the bounds of a loop are i32; {start}..{end} does not fit"))
}

/// E0210
pub fn collect_kind(found: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0210, span, format!("`collect` stacks arrays, this is {found}"))
}

/// E0210
pub fn no_collect(span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0210, span, "a loop without `collect` has no value")
        .help("`for i in 0..n collect { ... }` stacks the values of all trips; else assign to a variable of `let mut`")
}

/// E0219
pub fn unused_value(span: Span, is_last: bool) -> Diagnostic {
    let error = Diagnostic::error(Code::E0219, span, "nothing uses this value");
    match is_last {
        true => error.help("without the `;` it is the value of its block; `print` shows it"),
        false => error.help("name it by `let`, or write `let _ = ...;` to drop it"),
    }
}

/// E0219
pub fn dropped_in_loop(span: Span, is_for: bool) -> Diagnostic {
    Diagnostic::error(Code::E0219, span, "nothing uses this value, which is dropped in every trip").help(match is_for {
        true => "`for ... collect { ... }` stacks the values of all trips; a variable of `let mut` keeps the last one",
        false => "assign it to a variable of `let mut` in front of the loop",
    })
}
