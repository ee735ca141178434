//! Assignment, loops and branches.

use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::{expected, must_be};
use spmdc_grammar::span::Span;

/// E0106
pub fn not_mutable(name: &str, span: Span, declared: Option<Span>) -> Diagnostic {
    let error = Diagnostic::error(Code::E0106, span, format!("`{name}` is not mutable"));
    match declared {
        Some(declared) => error
            .label(declared, format!("`{name}` is declared here"))
            .help(format!("declare it with `let mut {name} = ...`")),
        None => error.help("only variables declared with `let mut` can be assigned to"),
    }
}

/// E0106
pub fn not_assignable(span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0106, span, "this expression cannot be assigned to")
        .help("assign to a variable, to a field of it, or to elements of it: `u = e;`, `p.w = e;`, `u[0, :] = e;`")
}

/// E0212
pub fn carried_type(name: &str, before: &str, after: &str, span: Span) -> Diagnostic {
    Diagnostic::error(
        Code::E0212,
        span,
        format!("the type of `{name}` changes in this loop: it is `{before}` before it, and `{after}` after a trip"),
    )
    .help("a loop-carried variable must keep its type and shape; `for ... collect` stacks one value per trip")
}

/// E0212
pub fn carried_kind(name: &str, kind: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0212, span, format!("a loop cannot assign to `{name}`, which is {kind}"))
        .help("a loop carries arrays, numbers, and structs and tuples of them")
}

/// E0213
pub fn branch_types(what: &str, then: &str, otherwise: &str, span: Span) -> Diagnostic {
    Diagnostic::error(
        Code::E0213,
        span,
        format!("the type of {what} differs between the branches: `{then}` in the first, `{otherwise}` in the second"),
    )
    .help("both branches of an `if` must have the same type")
}

/// E0213
pub fn no_else(span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0213, span, "this `if` is used as a value but has no `else`")
}

/// E0214
pub fn condition(found: &str, is_array: bool, span: Span) -> Diagnostic {
    let message = must_be("a condition", "a scalar `bool`", format_args!("`{found}`"));
    let error = Diagnostic::error(Code::E0214, span, message);
    match is_array {
        true => {
            error.help("`where(c, a, b)` selects element by element; `any(c)` and `all(c)` reduce to a scalar `bool`")
        }
        false => error.help("compare it, as in `x != 0`"),
    }
}

/// E0207
pub fn collect_bounds(span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0207, span, "the number of trips of a `collect` loop must be known at compile time")
        .help("it is the size of a dimension of the result")
}

/// E0210
pub fn loop_bound(found: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0210, span, must_be("a loop bound", "a scalar integer", found))
}

/// E0207
pub fn loop_step(found: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0207, span, must_be("a loop step", "a nonzero constant integer", found))
        .help("its sign gives the direction of the loop; use `while` for a step that is computed")
}

/// E0218
pub fn loop_range(start: i128, end: i128, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0218, span, format!("the loop range {start}..{end} does not fit into `i32`"))
}

/// E0210
pub fn collect_kind(found: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0210, span, expected("an array for `collect` to stack", found))
}

/// E0210
pub fn no_collect(span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0210, span, "a loop without `collect` has no value").help(
        "`for i in 0..n collect { ... }` stacks the values of all trips; otherwise assign to a `let mut` variable",
    )
}

/// E0219
pub fn unused_value(span: Span, is_last: bool) -> Diagnostic {
    let error = Diagnostic::error(Code::E0219, span, "this value is never used");
    match is_last {
        true => error.help("remove the `;` to make it the value of the block, or `print` it"),
        false => error.help("bind it with `let`, or write `let _ = ...;` to drop it"),
    }
}

/// E0219
pub fn dropped_in_loop(span: Span, is_for: bool) -> Diagnostic {
    Diagnostic::error(Code::E0219, span, "this value is never used: every trip drops it").help(match is_for {
        true => "`for ... collect { ... }` stacks the values of all trips; a `let mut` variable keeps the last one",
        false => "assign it to a variable that is declared with `let mut` before the loop",
    })
}
