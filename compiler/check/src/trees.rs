//! Structs, tuples and lists as trees of leaves: what enters the IR are the leaves.

use spmdc_ir::ops::call::term::Term;

/// `the parameter \`p\`` and `w` give `field \`w\` of the parameter \`p\``.
pub fn part_of(place: &str, field: &str) -> String {
    format!("field `{field}` of {place}")
}

/// Whether a place has been named by [`part_of`].
pub fn is_part(place: &str) -> bool {
    place.starts_with("field ")
}

/// The leaves in order, each with its path: `.w`, `.0.b`; the path of a lone leaf is empty.
pub fn leaves<'t>(term: &'t Term, path: &str, found: &mut Vec<(String, &'t Term)>) {
    match term {
        Term::Tuple(parts) => {
            for (position, part) in parts.iter().enumerate() {
                leaves(part, &format!("{path}.{position}"), found);
            }
        }
        Term::Struct(fields) => {
            for (name, field) in fields {
                leaves(field, &format!("{path}.{name}"), found);
            }
        }
        Term::Array(_)
        | Term::Int(_)
        | Term::Float(_)
        | Term::Bool(_)
        | Term::Str(_)
        | Term::List(_)
        | Term::Type(_)
        | Term::Sharding(_)
        | Term::Axis(_)
        | Term::Nothing
        | Term::Function(_)
        | Term::Module(_)
        | Term::Poison => found.push((path.to_string(), term)),
    }
}

/// The same tree with other leaves, taken in order.
pub fn rebuild(shape: &Term, leaves: &mut impl Iterator<Item = Term>) -> Term {
    if let Term::Tuple(parts) = shape {
        return Term::Tuple(parts.iter().map(|part| rebuild(part, leaves)).collect());
    }
    if let Term::Struct(fields) = shape {
        return Term::Struct(fields.iter().map(|(name, field)| (name.clone(), rebuild(field, leaves))).collect());
    }
    leaves.next().expect("there is a leaf for each place of the tree")
}

/// Whether two terms are trees of the same form.
pub fn same_form(lhs: &Term, rhs: &Term) -> bool {
    match (lhs, rhs) {
        (Term::Tuple(lhs), Term::Tuple(rhs)) => {
            lhs.len() == rhs.len() && lhs.iter().zip(rhs).all(|(lhs, rhs)| same_form(lhs, rhs))
        }
        (Term::Struct(lhs), Term::Struct(rhs)) => {
            lhs.len() == rhs.len()
                && lhs.iter().zip(rhs).all(|((left, lhs), (right, rhs))| left == right && same_form(lhs, rhs))
        }
        (Term::Tuple(_) | Term::Struct(_), _) | (_, Term::Tuple(_) | Term::Struct(_)) => false,
        _ => true,
    }
}

/// Whether a leaf can become an array of the program.
pub fn is_number(term: &Term) -> bool {
    match term {
        Term::Array(_) | Term::Int(_) | Term::Float(_) | Term::Bool(_) => true,
        Term::List(items) => items.iter().all(is_number),
        Term::Str(_)
        | Term::Tuple(_)
        | Term::Struct(_)
        | Term::Type(_)
        | Term::Sharding(_)
        | Term::Axis(_)
        | Term::Nothing
        | Term::Function(_)
        | Term::Module(_)
        | Term::Poison => false,
    }
}

/// Whether anything could use it; what has been reported is nothing.
pub fn is_something(term: &Term) -> bool {
    match term {
        Term::Tuple(parts) => parts.iter().any(is_something),
        Term::Struct(fields) => fields.iter().any(|(_, field)| is_something(field)),
        Term::Poison => false,
        Term::Array(_)
        | Term::Int(_)
        | Term::Float(_)
        | Term::Bool(_)
        | Term::Str(_)
        | Term::List(_)
        | Term::Type(_)
        | Term::Sharding(_)
        | Term::Axis(_)
        | Term::Nothing
        | Term::Function(_)
        | Term::Module(_) => true,
    }
}

/// How many leaves a tuple, struct or list may have in all, and how deep it may be.
pub const MAX_LEAVES: usize = 1 << 16;
pub const MAX_NESTING: usize = 200;
/// How many numbers a list may have, which becomes an array.
pub const MAX_NUMBERS: usize = 1 << 20;

/// Whether a tree keeps to these limits.
pub fn is_within_limits(term: &Term) -> bool {
    fn count(term: &Term, depth: usize, left: &mut usize) -> bool {
        let parts: Vec<&Term> = match term {
            Term::Tuple(parts) | Term::List(parts) => parts.iter().collect(),
            Term::Struct(fields) => fields.iter().map(|(_, field)| field).collect(),
            Term::Int(_) | Term::Float(_) | Term::Bool(_) => Vec::new(),
            // What is no number has a type, a name and a path.
            Term::Array(_)
            | Term::Str(_)
            | Term::Type(_)
            | Term::Sharding(_)
            | Term::Axis(_)
            | Term::Nothing
            | Term::Function(_)
            | Term::Module(_)
            | Term::Poison => {
                *left = left.saturating_sub(MAX_NUMBERS / MAX_LEAVES - 1);
                Vec::new()
            }
        };
        if *left == 0 || depth > MAX_NESTING {
            return false;
        }
        *left -= 1;
        parts.iter().all(|part| count(part, depth + 1, left))
    }
    let mut left = MAX_NUMBERS;
    count(term, 0, &mut left)
}
