//! The sentences of messages, each written once: a message says what is wrong in the user's terms, its help says the way out.
//!
//! A message whose form is one of these is built here and nowhere else. `docs/messages.txt` lists all messages, with these forms filled in.

use std::fmt::Display;

/// `expected a tuple, found an array`.
pub fn expected(wanted: impl Display, found: impl Display) -> String {
    format!("expected {wanted}, found {found}")
}

/// `` `axis` must be an integer; found a string``.
pub fn must_be(subject: impl Display, wanted: impl Display, found: impl Display) -> String {
    format!("{subject} must be {wanted}; found {found}")
}

/// `` `grad` requires a function, found an array``.
pub fn requires(subject: impl Display, needed: impl Display, found: impl Display) -> String {
    format!("{subject} requires {needed}, found {found}")
}

/// `` `f` takes 2 arguments, but 1 was given``.
pub fn count(subject: impl Display, takes: usize, noun: &str, given: usize) -> String {
    format!(
        "{subject} takes {takes} {noun}{}, but {given} {} given",
        if takes == 1 { "" } else { "s" },
        if given == 1 { "was" } else { "were" }
    )
}

/// `the forward function must return a pair, but returns an array`.
pub fn must_return(function: impl Display, wanted: impl Display, found: impl Display) -> String {
    format!("{function} must return {wanted}, but returns {found}")
}

/// ``cannot read `x.npy`: it is a directory``.
pub fn cannot(action: impl Display, reason: impl Display) -> String {
    format!("cannot {action}: {reason}")
}

/// `` `sin` is not defined for bool``.
pub fn undefined(function: impl Display, operand: impl Display) -> String {
    format!("{function} is not defined for {operand}")
}

/// ``unknown mesh `first` ``.
pub fn unknown(noun: impl Display, name: impl Display) -> String {
    format!("unknown {noun} `{name}`")
}

/// `1 argument`, `2 arguments`.
pub fn counted(count: usize, noun: &str) -> String {
    match noun.strip_suffix('y') {
        _ if count == 1 => format!("{count} {noun}"),
        Some(stem) => format!("{count} {stem}ies"),
        None => format!("{count} {noun}s"),
    }
}
