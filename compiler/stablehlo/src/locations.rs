//! Locations: the names that JAX gives to parameters and operations, and their lines of Python.
//!
//! `loc("state.params['w']")` is on a parameter. On an operation there is `loc("jit(f)/mul"(#loc7))`, with its name scopes and the place of
//! the call. Places are `"file.py":12:8 to :24`, calls in calls are `callsite(#loc1 at #loc2)`, and `#loc1 = loc(..)` names one for all uses.

use crate::cursor::{Cursor, Read};
use crate::tree::MlirParam;
use std::collections::BTreeMap;

/// Maximum number of locations inside each other.
const MAX_NESTED: usize = 64;

/// A location.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PythonLocation {
    /// The path of a parameter, or the scopes of an operation: `jit(f)/mul`.
    pub name: Option<String>,
    /// The file and the line of the innermost call in it.
    pub line: Option<(String, u64)>,
}

/// The locations with names: the text inside of `loc(..)` by `loc7`.
pub type NamedLocations<'t> = BTreeMap<&'t str, &'t str>;

/// All `#loc7 = loc(..)` of a text.
pub fn named_locations(text: &str) -> NamedLocations<'_> {
    let entry = |line| {
        let (name, rest) = str::strip_prefix(line, "#")?.split_once('=')?;
        Some((name.trim(), rest.trim().strip_prefix("loc(")?.strip_suffix(')')?))
    };
    text.lines().filter(|line| line.starts_with("#loc")).filter_map(entry).collect()
}

/// The location that the text inside of `loc(..)` describes; nothing is known of one that cannot be read.
pub fn resolve(inside: &str, named: &NamedLocations<'_>) -> PythonLocation {
    let mut found = PythonLocation::default();
    // An unreadable part ends the search.
    let _ = look(&mut Cursor::of_part(inside), named, MAX_NESTED, &mut found);
    found
}

/// The path of a parameter in Python. A location with a line of Python is that of an operation.
pub fn param_path(param: &MlirParam, named: &NamedLocations<'_>) -> Option<String> {
    let location = resolve(param.location.as_ref()?, named);
    location.name.filter(|_| location.line.is_none())
}

/// Adds the first name and the first place to the location.
fn look(cursor: &mut Cursor<'_>, named: &NamedLocations<'_>, left: usize, found: &mut PythonLocation) -> Read<()> {
    if left == 0 {
        return Ok(());
    }
    if cursor.peek() == Some('#') {
        let name = cursor.name_after('#')?;
        if let Some(inside) = named.get(name.as_str()) {
            look(&mut Cursor::of_part(inside), named, left - 1, found)?;
        }
        return Ok(());
    }
    if cursor.take("callsite") {
        cursor.expect("(")?;
        look(cursor, named, left - 1, found)?;
        cursor.expect("at")?;
        look(cursor, named, left - 1, found)?;
        return cursor.expect(")");
    }
    if cursor.take("fused") {
        if cursor.take("<") {
            cursor.until_closed('<')?;
        }
        cursor.expect("[")?;
        while !cursor.take("]") {
            look(cursor, named, left - 1, found)?;
            cursor.take(",");
        }
        return Ok(());
    }
    if !cursor.looks_at("\"") {
        cursor.word()?;
        return Ok(());
    }
    let text = cursor.string()?;
    if cursor.take(":") {
        let line = cursor.unsigned()? as u64;
        found.line.get_or_insert((text, line));
        cursor.expect(":")?;
        cursor.unsigned()?;
        if cursor.take("to") {
            while cursor.take(":") {
                cursor.unsigned()?;
            }
        }
        return Ok(());
    }
    found.name.get_or_insert(text);
    if cursor.take("(") {
        look(cursor, named, left - 1, found)?;
        cursor.expect(")")?;
    }
    Ok(())
}

/// The line of Python, `model.py:12`, from which JAX made the operation or parameter that ends at this offset of a text.
pub fn python_line(text: &str, end: usize) -> Option<String> {
    let rest = text.get(end..)?.trim_start().strip_prefix("loc(")?;
    let inside = Cursor::of_part(rest).until_closed('(').ok()?;
    let (file, line) = resolve(inside, &named_locations(text)).line?;
    Some(format!("{file}:{line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_call_is_the_line() {
        let text = "#loc1 = loc(\"x\")\n#loc2 = loc(\"a.py\":3:1 to :9)\n#loc3 = loc(\"f\"(#loc2))\n#loc4 = \
                    loc(\"main.py\":20:1)\n#loc5 = loc(callsite(#loc3 at #loc4))\n#loc6 = loc(\"jit(f)/mul\"(#loc5))\n\
                    #loop = loc(#loop)\n%0 = a %1 loc(#loc6)\n%1 = b loc(fused<1>[unknown, \"b.py\":7:1])\n";
        let named = named_locations(text);
        let line = |file: &str, line| Some((file.to_string(), line));
        assert_eq!(resolve("#loc1", &named), PythonLocation { name: Some("x".into()), line: None });
        assert_eq!(resolve("#loc6", &named), PythonLocation { name: Some("jit(f)/mul".into()), line: line("a.py", 3) });
        assert_eq!(resolve("#loop", &named), PythonLocation::default());
        assert_eq!(resolve("callsite(", &named), PythonLocation::default());
        let at = |op: &str| python_line(text, text.find(op).map_or(0, |at| at + op.len()));
        assert_eq!(at("a %1"), Some("a.py:3".to_string()));
        assert_eq!(at("= b"), Some("b.py:7".to_string()));
        assert_eq!(at("%1 = "), None);
    }
}
