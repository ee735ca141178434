//! Dumps that have been changed by hand: a number, a name, an axis or a line of a true one.

use super::Draw;

/// A piece of a text: a name, a number, a string, or a single other character.
fn pieces(text: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut in_string = false;
    for c in text.chars() {
        let continues =
            pieces.last().and_then(|last| last.chars().last()).is_some_and(|last| is_word(last) && is_word(c));
        match pieces.last_mut() {
            Some(last) if in_string || continues => last.push(c),
            Some(_) | None => pieces.push(c.to_string()),
        }
        if c == '"' {
            in_string = !in_string;
        }
    }
    pieces
}

/// Numbers that are at the edge of something.
const EDGES: [i64; 9] = [0, 1, 2, 3, 7, 1 << 16, 1 << 32, 1 << 62, i64::MAX];

/// The dump with one to three lies in it.
pub fn lying(dump: &str, draw: &mut Draw) -> String {
    let mut lines: Vec<Vec<String>> = dump.lines().map(pieces).collect();
    for _ in 0..1 + draw.below(3) {
        let line = draw.below(lines.len());
        match draw.below(12) {
            0 => drop(lines.remove(line)),
            1 => {
                let other = draw.below(lines.len());
                lines.swap(line, other);
            }
            2 => annotation(&mut lines[line]),
            3..=6 => number(&mut lines[line], draw),
            _ => name(&mut lines, line, draw),
        }
        if lines.is_empty() {
            break;
        }
    }
    lines.iter().map(|line| line.concat()).collect::<Vec<_>>().join("\n")
}

/// Places of the pieces of a line that are such words.
fn words(line: &[String], fits: impl Fn(char) -> bool) -> Vec<usize> {
    let is = |piece: &String| piece.chars().next().is_some_and(&fits);
    (0..line.len()).filter(|&at| is(&line[at])).collect()
}

fn number(line: &mut [String], draw: &mut Draw) {
    let numbers = words(line, |c| c.is_ascii_digit());
    if numbers.is_empty() {
        return;
    }
    let at = draw.pick(&numbers);
    let old = line[at].parse::<i64>().unwrap_or(0);
    line[at] = match draw.below(6) {
        0 => (old + 1).to_string(),
        1 => (old - 1).to_string(),
        2 => format!("-{old}"),
        3 => line[draw.pick(&numbers)].clone(),
        4 => (old * 2).to_string(),
        _ => draw.pick(&EDGES).to_string(),
    };
}

/// A name becomes another one of the dump.
fn name(lines: &mut [Vec<String>], line: usize, draw: &mut Draw) {
    let is_name = |c: char| c.is_ascii_alphabetic();
    let other = &lines[draw.below(lines.len())];
    let others = words(other, is_name);
    let names = words(&lines[line], is_name);
    if names.is_empty() || others.is_empty() {
        return;
    }
    let new = other[draw.pick(&others)].clone();
    lines[line][draw.pick(&names)] = new;
}

/// Takes away where the first split dimension of the line lies.
fn annotation(line: &mut Vec<String>) {
    let Some(at) = line.iter().position(|piece| piece == "@") else { return };
    let end = line[at..].iter().position(|piece| piece == "," || piece == "]").map_or(line.len(), |len| at + len);
    line.drain(at..end);
}
