//! Breaks long lines of a printed program where few brackets are open.

/// The text with lines of at most `columns` characters, if they have places to break: after a comma and before an operator. Strings and
/// comments are not broken.
pub fn wrap(text: &str, columns: usize) -> String {
    let mut wrapped = String::with_capacity(text.len());
    for line in text.lines() {
        wrap_line(line, columns, &mut wrapped);
    }
    wrapped
}

/// A place where a line may be broken: the offset of the rest, and the number of brackets around it.
struct BreakPlace {
    at: usize,
    depth: usize,
}

fn wrap_line(line: &str, columns: usize, wrapped: &mut String) {
    let indent = line.len() - line.trim_start().len();
    let mut rest = line;
    let mut margin = 0;
    while margin + rest.chars().count() > columns && !rest.trim_start().starts_with("//") {
        let is_within = |place: &&BreakPlace| margin + rest[..place.at].trim_end().chars().count() <= columns;
        let places = break_places(rest);
        let Some(best) = places.iter().filter(is_within).min_by_key(|place| (place.depth, std::cmp::Reverse(place.at)))
        else {
            break;
        };
        wrapped.extend(std::iter::repeat_n(' ', margin));
        wrapped.push_str(rest[..best.at].trim_end());
        wrapped.push('\n');
        rest = &rest[best.at..];
        margin = indent + 4;
    }
    wrapped.extend(std::iter::repeat_n(' ', margin));
    wrapped.push_str(rest);
    wrapped.push('\n');
}

/// All places of a line, in their order.
fn break_places(line: &str) -> Vec<BreakPlace> {
    let mut places = Vec::new();
    let (mut depth, mut in_string, mut is_escaped) = (0usize, false, false);
    let start = line.len() - line.trim_start().len();
    for (at, c) in line.char_indices() {
        if in_string {
            in_string = is_escaped || c != '"';
            is_escaped = !is_escaped && c == '\\';
            continue;
        }
        match c {
            '"' => in_string = true,
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ' ' if at > start => {
                let rest = &line[at + 1..];
                let is_operator =
                    ["+ ", "- ", "* ", "/ ", "@ ", "& ", "| ", "-> "].iter().any(|sign| rest.starts_with(sign));
                if line[..at].ends_with(',') || is_operator {
                    places.push(BreakPlace { at: at + 1, depth });
                }
            }
            _ => {}
        }
    }
    places
}
