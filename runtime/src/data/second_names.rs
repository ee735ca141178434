//! Second names of parameters and results: their paths in the JAX program from which they come, and their positions.

use std::borrow::Cow;

use spmdc_abi::{Binding, Plane};

/// A path of JAX as one of the language: `state.params.w.0` for `state.params['w'][0]`.
pub(crate) fn dotted(path: &str) -> Cow<'_, str> {
    if !path.contains('[') {
        return Cow::Borrowed(path);
    }
    let mut dotted = String::with_capacity(path.len());
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('[') {
        dotted.push_str(before);
        // A key in quotes may contain brackets.
        let quote = after.chars().next().filter(|first| matches!(first, '\'' | '"'));
        let end = match quote {
            Some(quote) => after[1..].find(&format!("{quote}]")).map(|end| (1, end + 1, end + 3)),
            None => after.find(']').map(|end| (0, end, end + 1)),
        };
        let Some((from, to, next)) = end else {
            dotted.push('[');
            rest = after;
            continue;
        };
        if !dotted.is_empty() {
            dotted.push('.');
        }
        dotted.push_str(&after[from..to]);
        rest = &after[next..];
    }
    dotted.push_str(rest);
    Cow::Owned(dotted)
}

/// The bindings under their second names, as paths of the language. One without such a name has that of its position: `arg0`, `arg1`.
pub(crate) fn under_second_names(params: &[Binding]) -> Vec<Binding> {
    let mut position = 0;
    let mut renamed = params.to_vec();
    for param in &mut renamed {
        // Both planes of complex numbers are one array.
        position += usize::from(param.plane != Some(Plane::Imaginary));
        param.name = match &param.second_name {
            Some(name) => dotted(name).into_owned(),
            None => format!("arg{}", position - 1),
        };
    }
    renamed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_jax_are_paths_of_the_language() {
        for (path, name) in [
            ("x", "x"),
            ("p.w", "p.w"),
            ("state.params['w'][0].m", "state.params.w.0.m"),
            ("p['a]b'][\"c\"]", "p.a]b.c"),
            ("[0]['w']", "0.w"),
            ("x[", "x["),
            ("x['y]", "x['y]"),
        ] {
            assert_eq!(dotted(path), name);
        }
    }
}
