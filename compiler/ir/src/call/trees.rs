//! Structs, tuples and lists as trees of leaves; only leaves enter the IR.

use crate::call::fields::FieldLinks;
use crate::call::limits::{MAX_LEAVES, MAX_NESTING, MAX_NUMBERS};
use crate::call::term::Term;
use spmdc_abi::Plane;

/// `the parameter \`p\`` and `w` give `field \`w\` of the parameter \`p\``.
pub fn part_of(place: &str, field: &str) -> String {
    format!("field `{field}` of {place}")
}

/// Whether a description was made by [`part_of`].
pub fn is_part(place: &str) -> bool {
    place.starts_with("field ")
}

/// The leaves in order, each with its path: `.w`, `.0.b`; the path of a lone leaf is empty.
pub fn leaves<'t>(term: &'t Term, path: &str, found: &mut Vec<(String, &'t Term)>) {
    if let Term::Tuple(parts) = term {
        for (position, part) in parts.iter().enumerate() {
            leaves(part, &format!("{path}.{position}"), found);
        }
    } else if let Term::Struct(fields) = term {
        for (name, field) in fields {
            leaves(field, &format!("{path}.{name}"), found);
        }
    } else if let Term::Complex(planes) = term {
        for (plane, part) in Plane::BOTH.into_iter().zip(planes.iter()) {
            found.push((format!("{path}.{}", plane.name()), part));
        }
    } else {
        found.push((path.to_string(), term));
    }
}

/// For each of the leaves that are arrays whether it is the imaginary plane of complex numbers.
pub fn imaginary(term: &Term) -> Vec<bool> {
    let mut found = Vec::new();
    let mut numbers = Vec::new();
    elements(term, &mut numbers);
    for number in numbers {
        if let Term::Complex(planes) = number {
            let arrays = planes.iter().zip([false, true]).filter(|(plane, _)| matches!(plane, Term::Array(_)));
            found.extend(arrays.map(|(_, is_imaginary)| is_imaginary));
        } else if let Term::Array(_) = number {
            found.push(false);
        }
    }
    found
}

/// The leaves in order, where an array of complex numbers is one of them.
pub fn elements<'t>(term: &'t Term, found: &mut Vec<&'t Term>) {
    if let Term::Tuple(_) | Term::Struct(_) = term {
        term.parts().into_iter().for_each(|part| elements(part, found));
    } else {
        found.push(term);
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
    if let Term::Complex(planes) = shape {
        let [re, im] = [&planes[0], &planes[1]].map(|plane| rebuild(plane, leaves));
        return joined(re, im);
    }
    leaves.next().expect("there is a leaf for each place of the tree")
}

/// As [`rebuild`], of the leaves that [`elements`] finds.
pub fn rebuild_elements(shape: &Term, leaves: &mut impl Iterator<Item = Term>) -> Term {
    if let Term::Tuple(parts) = shape {
        return Term::Tuple(parts.iter().map(|part| rebuild_elements(part, leaves)).collect());
    }
    if let Term::Struct(fields) = shape {
        return Term::Struct(
            fields.iter().map(|(name, field)| (name.clone(), rebuild_elements(field, leaves))).collect(),
        );
    }
    leaves.next().expect("there is a leaf for each place of the tree")
}

/// The complex numbers of two terms of equal form, such as the results of a function for both planes.
pub fn joined(re: Term, im: Term) -> Term {
    let join = |re: Vec<Term>, im: Vec<Term>| re.into_iter().zip(im).map(|(re, im)| joined(re, im)).collect();
    match (re, im) {
        (Term::Array(re), Term::Array(im)) => Term::complex(re, im),
        (Term::Tuple(re), Term::Tuple(im)) => Term::Tuple(join(re, im)),
        (Term::List(re), Term::List(im)) => Term::List(join(re, im)),
        (Term::Poison, _) | (_, Term::Poison) => Term::Poison,
        (re, _) => re,
    }
}

/// Whether two terms are trees of the same form; complex numbers have a separate form.
pub fn same_form(lhs: &Term, rhs: &Term) -> bool {
    let complex = |term: &Term| matches!(term, Term::Complex(_));
    match (lhs, rhs) {
        _ if complex(lhs) || complex(rhs) => complex(lhs) && complex(rhs),
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

/// Records that the fields of the same names of two trees are the same.
pub fn link_fields(one: &Term, other: &Term, links: &mut FieldLinks) {
    if let (Term::Struct(fields), Term::Struct(others)) = (one, other) {
        for (name, field) in fields {
            if let Some((same, other)) = others.iter().find(|(other, _)| other == name) {
                links.link(name.place, same.place);
                link_fields(field, other, links);
            }
        }
    } else if let (Term::Tuple(parts), Term::Tuple(others)) = (one, other) {
        parts.iter().zip(others).for_each(|(part, other)| link_fields(part, other, links));
    }
}

/// The parts of a tree in the places of the leaves of another one; false if it does not have all of these places.
pub fn parts_at_leaves<'t>(tree: &Term, other: &'t Term, found: &mut Vec<&'t Term>) -> bool {
    match (tree, other) {
        (Term::Tuple(parts), Term::Tuple(others)) => {
            parts.len() == others.len()
                && parts.iter().zip(others).all(|(part, other)| parts_at_leaves(part, other, found))
        }
        (Term::Struct(fields), Term::Struct(others)) => {
            let mut pairs = fields.iter().zip(others);
            fields.len() == others.len()
                && pairs.all(|((name, part), (of, other))| name == of && parts_at_leaves(part, other, found))
        }
        (Term::Tuple(_) | Term::Struct(_), _) => false,
        _ => {
            found.push(other);
            true
        }
    }
}

/// Whether a leaf can become an array of the program.
pub fn is_number(term: &Term) -> bool {
    if let Term::List(items) = term { items.iter().all(is_number) } else { term.is_operand() }
}

/// Whether a term can be used; reported errors cannot.
pub fn is_something(term: &Term) -> bool {
    let mut found = Vec::new();
    leaves(term, "", &mut found);
    found.iter().any(|(_, leaf)| !matches!(leaf, Term::Poison))
}

/// Whether a tree is within these limits.
pub fn is_within_limits(term: &Term) -> bool {
    fn count(term: &Term, depth: usize, left: &mut usize) -> bool {
        let parts = term.parts();
        let is_tree = matches!(term, Term::Tuple(_) | Term::List(_) | Term::Struct(_));
        if !is_tree && term.static_scalar().is_none() {
            // Arithmetic other than numbers have types, names and paths.
            *left = left.saturating_sub(MAX_NUMBERS / MAX_LEAVES - 1);
        }
        if *left == 0 || depth > MAX_NESTING {
            return false;
        }
        *left -= 1;
        parts.iter().all(|part| count(part, depth + 1, left))
    }
    let mut left = MAX_NUMBERS;
    count(term, 0, &mut left)
}
