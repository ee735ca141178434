//! Positions of the protocol, which are lines and UTF-16 code units, and offsets of the compiler, which are bytes.

use std::fmt::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use lsp_types::{Position, Uri};

/// The starts of the lines of a text.
#[derive(Clone, Debug)]
pub struct LineIndex {
    starts: Vec<usize>,
}

impl LineIndex {
    /// Finds the lines. A line ends with `\n`, `\r\n` or `\r`.
    pub fn new(text: &str) -> LineIndex {
        let bytes = text.as_bytes();
        let ends_line = |at: usize| match bytes[at] {
            b'\n' => true,
            b'\r' => bytes.get(at + 1) != Some(&b'\n'),
            _ => false,
        };
        let starts = (0..bytes.len()).filter(|&at| ends_line(at)).map(|at| at + 1);
        LineIndex { starts: std::iter::once(0).chain(starts).collect() }
    }

    /// The number of the line of an offset, from 0.
    pub fn line(&self, offset: usize) -> usize {
        self.starts.partition_point(|&start| start <= offset) - 1
    }

    /// The bytes of a line without its end; empty after the last line.
    pub fn range(&self, text: &str, line: usize) -> Range<usize> {
        let Some(&start) = self.starts.get(line) else { return text.len()..text.len() };
        let end = self.starts.get(line + 1).copied().unwrap_or(text.len()).min(text.len());
        let within = text.get(start..end).unwrap_or_default();
        start..start + within.trim_end_matches(['\n', '\r']).len()
    }

    /// The offset of a position. A position after the end of its line is the end of the line, and one inside a character its start.
    pub fn offset(&self, text: &str, position: Position) -> usize {
        let range = self.range(text, position.line as usize);
        let mut units = 0;
        for (at, c) in text[range.clone()].char_indices() {
            units += c.len_utf16() as u32;
            if units > position.character {
                return range.start + at;
            }
        }
        range.end
    }

    /// The position of an offset; of one inside a character, the position of the character.
    pub fn position(&self, text: &str, offset: usize) -> Position {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.line(offset);
        let units: usize = text[self.starts[line]..offset].chars().map(char::len_utf16).sum();
        Position { line: line as u32, character: units as u32 }
    }

    /// The range of positions of a range of bytes.
    pub fn positions(&self, text: &str, range: Range<usize>) -> lsp_types::Range {
        lsp_types::Range { start: self.position(text, range.start), end: self.position(text, range.end) }
    }
}

/// The path of a `file:` address; None for other addresses.
pub fn path_of(uri: &Uri) -> Option<PathBuf> {
    let rest = uri.as_str().strip_prefix("file://")?;
    // An authority is ignored: the only one that clients send is the own host.
    let path = &rest[rest.find('/')?..];
    let path = path.split(['?', '#']).next().unwrap_or(path);
    let bytes = path.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = bytes.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        let byte = escaped.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        decoded.push(byte.unwrap_or(bytes[at]));
        at += if byte.is_some() { 3 } else { 1 };
    }
    String::from_utf8(decoded).ok().map(PathBuf::from)
}

/// The `file:` address of an absolute path; None for another path.
pub fn uri_of(path: &Path) -> Option<Uri> {
    let path = path.to_str().filter(|path| path.starts_with('/'))?;
    let mut text = "file://".to_string();
    for &byte in path.as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => text.push(char::from(byte)),
            _ => {
                let _ = write!(text, "%{byte:02X}");
            }
        }
    }
    Uri::from_str(&text).ok()
}

/// A change of a text as one replaced range, found by comparing the texts: it maps offsets of one to the other.
#[derive(Clone, Copy, Debug)]
pub struct TextShift {
    /// The end of the common start.
    start: usize,
    /// The start of the common end in the old text.
    old_end: usize,
    /// The start of the common end in the new text.
    new_end: usize,
}

impl TextShift {
    /// Compares two texts.
    pub fn between(old: &str, new: &str) -> TextShift {
        let start = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count();
        let ends = old.as_bytes()[start..].iter().rev().zip(new.as_bytes()[start..].iter().rev());
        let common = ends.take_while(|(a, b)| a == b).count();
        TextShift { start, old_end: old.len() - common, new_end: new.len() - common }
    }

    /// The start of the changed part, in both texts.
    pub fn start(self) -> usize {
        self.start
    }

    /// The offset in the old text; None inside the changed part.
    pub fn to_old(self, offset: usize) -> Option<usize> {
        if offset <= self.start {
            return Some(offset);
        }
        (offset >= self.new_end).then(|| offset - self.new_end + self.old_end)
    }

    /// The offset in the new text; None inside the changed part.
    pub fn to_new(self, offset: usize) -> Option<usize> {
        if offset <= self.start {
            return Some(offset);
        }
        (offset >= self.old_end).then(|| offset - self.old_end + self.new_end)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn positions_count_utf16_units() {
        let text = "a\u{1f980}b\r\nß = 1\rx\n";
        let lines = LineIndex::new(text);
        assert_eq!(lines.position(text, 5), Position::new(0, 3));
        assert_eq!(lines.offset(text, Position::new(0, 3)), 5);
        // The middle of a pair of surrogates is the start of its character.
        assert_eq!(lines.offset(text, Position::new(0, 2)), 1);
        assert_eq!(lines.offset(text, Position::new(0, 99)), 6);
        assert_eq!(lines.offset(text, Position::new(1, 1)), 10);
        assert_eq!(lines.position(text, text.len() - 2), Position::new(2, 0));
        assert_eq!(lines.offset(text, Position::new(99, 0)), text.len());
    }

    #[test]
    fn addresses_are_paths() {
        let path = Path::new("/a b/ü%.spmd");
        let uri = uri_of(path).unwrap();
        assert_eq!(uri.as_str(), "file:///a%20b/%C3%BC%25.spmd");
        assert_eq!(path_of(&uri).unwrap(), path);
        assert_eq!(path_of(&Uri::from_str("untitled:1").unwrap()), None);
    }

    #[test]
    fn a_change_maps_offsets() {
        let shift = TextShift::between("let a = 1; b", "let a = x.; b");
        assert_eq!((shift.to_old(4), shift.to_old(9), shift.to_old(12)), (Some(4), None, Some(11)));
        assert_eq!(shift.to_new(11), Some(12));
    }
}
