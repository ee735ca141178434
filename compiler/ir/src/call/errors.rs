//! Errors in calls of shipped functions, common to all that read arguments.

use crate::call::term::Term;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::habits;
use spmdc_grammar::sentences::{expected, must_be};
use spmdc_grammar::span::Span;
use spmdc_layout::types::{MAX_ELEMENTS, MAX_RANK};

/// E0210
pub fn no_array(found: &Term, span: Span) -> Diagnostic {
    if found.holds_complex() {
        return not_real(span);
    }
    Diagnostic::error(Code::E0210, span, expected("an array", found.describe()))
}

/// E0201
pub fn missing(function: &str, parameter: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0201, span, format!("`{function}` is missing its argument `{parameter}`"))
}

/// E0201
pub fn unused(function: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0201, span, format!("unexpected argument: `{function}` does not take it"))
}

/// E0202
pub fn unknown_keyword(function: &str, keyword: &str, parameters: &[&str], span: Span) -> Diagnostic {
    let error = Diagnostic::error(Code::E0202, span, format!("`{function}` has no parameter `{keyword}`"));
    match habits::of_keyword(keyword, parameters).or_else(|| nearest(keyword, parameters.iter().copied())) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None if parameters.is_empty() => error,
        None => error.help(format!("its parameters are {}", parameters.join(", "))),
    }
}

/// E0202
pub fn given_twice(function: &str, parameter: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0202, span, format!("`{parameter}` of `{function}` is given twice"))
}

/// E0108
pub fn only_in_dumps(what: &str, instead: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0108, span, format!("{what} is allowed in dumps only")).help(instead)
}

/// E0218
pub fn too_large(span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0218, span, "this array has too many elements")
        .help(format!("an array has at most {} elements", MAX_ELEMENTS))
}

/// E0208
pub fn not_whole(value: f64, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0208, span, expected("an integer", value)).help("`/` leaves a remainder; `//` rounds down")
}

/// E0004
pub fn rank_too_large(rank: usize, span: Span) -> Diagnostic {
    let message = format!("an array has at most {MAX_RANK} dimensions; found {rank}");
    Diagnostic::error(Code::E0004, span, message).help("`reshape` merges dimensions")
}

/// E0225: one of `known` is wanted, which are text; E0210 for another kind of argument.
pub fn unknown_value(parameter: &str, known: &[&str], found: &Term, span: Span) -> Diagnostic {
    let quoted: Vec<String> = known.iter().map(|known| format!("\"{known}\"")).collect();
    let wanted = match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    };
    let subject = format_args!("`{parameter}`");
    let Term::Str(name) = found else {
        return Diagnostic::error(Code::E0210, span, must_be(subject, wanted, found.describe()));
    };
    let error = Diagnostic::error(Code::E0225, span, must_be(subject, wanted, format_args!("\"{name}\"")));
    match nearest(name, known.iter().copied()) {
        Some(near) => error.help(format!("did you mean \"{near}\"?")),
        None => error,
    }
}

/// The candidate nearest to a misspelt name, if it is near enough to be meant.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // One letter in three may differ; in a name of one or two letters only the case.
    let limit = name.chars().count() / 3;
    let mut best: Option<(usize, &str)> = None;
    // Longer names are no misspellings, and a comparison takes time in the product of the lengths.
    let is_comparable = |candidate: &&str| name.len() <= 100 && candidate.len() <= 100;
    for candidate in candidates.into_iter().filter(is_comparable) {
        let distance = edit_distance(name, candidate);
        // Replacing all letters of a short name is no correction.
        let plausible = distance <= limit && distance < name.chars().count().max(candidate.chars().count());
        if plausible && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// The number of letters to insert, remove, replace or swap with their neighbour (Damerau, "A technique for computer detection and
/// correction of spelling errors", 1964); a difference in case counts half a step.
fn edit_distance(from: &str, to: &str) -> usize {
    let from: Vec<char> = from.to_lowercase().chars().collect();
    let to: Vec<char> = to.to_lowercase().chars().collect();
    let width = to.len() + 1;
    let mut table = vec![0; (from.len() + 1) * width];
    for i in 0..=from.len() {
        for j in 0..=to.len() {
            table[i * width + j] = if i == 0 || j == 0 {
                i + j
            } else {
                let same = usize::from(from[i - 1] != to[j - 1]);
                let mut best = (table[(i - 1) * width + j] + 1)
                    .min(table[i * width + j - 1] + 1)
                    .min(table[(i - 1) * width + j - 1] + same);
                if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                    best = best.min(table[(i - 2) * width + j - 2] + 1);
                }
                best
            };
        }
    }
    table[from.len() * width + to.len()]
}

/// E0307
pub fn no_layout(place: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0307, span, format!("{place} has no layout on the explicit axes"))
        .help("declare a layout in its type, as in `f32[8@X, 4@_]`, pass `out=P(X, _)` to the call of the `auto` function, or `reshard` it")
}

/// E0215: an argument that must be real.
pub fn not_real(span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0215, span, "expected real numbers, found complex numbers")
        .help("`real(z)` and `imag(z)` are the planes, `abs(z)` the magnitudes")
}
