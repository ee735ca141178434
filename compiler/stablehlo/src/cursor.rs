//! A position in the text of a module, and the smallest things that are read there.

use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::expected;
use spmdc_grammar::span::{FileId, Span};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The result of reading something.
pub type Read<T> = Result<T, Diagnostic>;

/// The hexadecimal digits of constants by their names. The first four bytes are the alignment of the others.
pub type Resources = BTreeMap<String, String>;

/// Lists, maps, regions and types inside each other beyond this are refused.
pub const MAX_DEPTH: usize = 200;

/// A position in a text.
#[derive(Clone)]
pub struct Cursor<'t> {
    text: &'t str,
    at: usize,
    file: FileId,
    /// The number of brackets and regions around the position.
    pub depth: usize,
    /// The constants whose bytes are after the module.
    pub resources: Rc<Resources>,
}

impl<'t> Cursor<'t> {
    /// The beginning of a text.
    pub fn new(text: &'t str, file: FileId) -> Cursor<'t> {
        Cursor { text, at: 0, file, depth: 0, resources: Rc::default() }
    }

    /// A cursor at the beginning of a part of another text, whose errors are at `span`.
    pub fn of_part(text: &'t str) -> Cursor<'t> {
        Cursor::new(text, FileId::default())
    }

    /// The offset of the next character that is neither space nor comment.
    pub fn position(&mut self) -> usize {
        self.skip_space();
        self.at
    }

    /// The rest of the text.
    pub fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// The text from an offset to here.
    pub fn since(&self, start: usize) -> &'t str {
        &self.text[start..self.at]
    }

    /// The place from an offset to here, without spaces at its end.
    pub fn span(&self, start: usize) -> Span {
        let end = start + self.text[start..self.at.max(start)].trim_end().len();
        Span::new(self.file, start, end.max(start))
    }

    /// Skips spaces and comments.
    pub fn skip_space(&mut self) {
        let bytes = self.text.as_bytes();
        loop {
            while self.at < bytes.len() && bytes[self.at].is_ascii_whitespace() {
                self.at += 1;
            }
            if !self.rest().starts_with("//") {
                return;
            }
            self.at += self.rest().find('\n').unwrap_or(self.rest().len());
        }
    }

    /// Goes on after the next character.
    pub fn skip_char(&mut self) {
        self.at += self.rest().chars().next().map_or(0, char::len_utf8);
    }

    /// Whether the text ends here.
    pub fn is_at_end(&mut self) -> bool {
        self.position() == self.text.len()
    }

    /// The next character.
    pub fn peek(&mut self) -> Option<char> {
        self.skip_space();
        self.rest().chars().next()
    }

    /// Whether the text goes on with this.
    pub fn looks_at(&mut self, text: &str) -> bool {
        self.skip_space();
        self.rest().starts_with(text)
    }

    /// Skips this if the text goes on with it; a word must end there.
    pub fn take(&mut self, text: &str) -> bool {
        if !self.looks_at(text) {
            return false;
        }
        let is_word = text.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let next = self.rest()[text.len()..].chars().next();
        if is_word && next.is_some_and(is_of_word) {
            return false;
        }
        self.at += text.len();
        true
    }

    /// Skips this, which must follow.
    pub fn expect(&mut self, text: &str) -> Read<()> {
        if self.take(text) { Ok(()) } else { Err(self.expected(&format!("`{text}`"))) }
    }

    /// An error here: something else was expected.
    pub fn expected(&mut self, what: &str) -> Diagnostic {
        let found = match self.peek() {
            None => "the end of the text".to_string(),
            Some(_) => {
                let found: String = self.rest().chars().take_while(|c| !c.is_whitespace()).take(20).collect();
                format!("`{found}`")
            }
        };
        let start = self.at;
        let end = start + self.rest().chars().next().map_or(0, char::len_utf8);
        Diagnostic::error(Code::E0110, Span::new(self.file, start, end), expected(what, found))
    }

    /// An error about the text from an offset to here.
    pub fn malformed(&self, start: usize, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(Code::E0110, self.span(start), message)
    }

    /// E0111 about the text from an offset to here.
    pub fn unsupported(&self, start: usize, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(Code::E0111, self.span(start), message)
    }

    /// The characters from here on for which a condition holds.
    fn take_while(&mut self, holds: impl Fn(char) -> bool) -> &'t str {
        let start = self.at;
        self.at += self.rest().find(|c| !holds(c)).unwrap_or(self.rest().len());
        self.since(start)
    }

    /// A word: letters, digits, `_`, `.`, `$`, and `-` within it.
    pub fn word(&mut self) -> Read<&'t str> {
        match self.peek() {
            Some(c) if c.is_ascii_alphabetic() || c == '_' => Ok(self.take_while(is_of_word)),
            Some(_) | None => Err(self.expected("a name")),
        }
    }

    /// A word, if one follows.
    pub fn optional_word(&mut self) -> Option<&'t str> {
        self.peek().filter(|&c| c.is_ascii_alphabetic() || c == '_')?;
        Some(self.take_while(is_of_word))
    }

    /// The name after a `%`, `@`, `^` or `#`; it may be quoted after `@`.
    pub fn name_after(&mut self, sign: char) -> Read<String> {
        if self.peek() != Some(sign) {
            return Err(self.expected(&format!("`{sign}` and a name")));
        }
        self.at += 1;
        if self.rest().starts_with('"') {
            return self.string();
        }
        let name = self.take_while(|c| is_of_word(c) || c == '-' || c == '!');
        if name.is_empty() { Err(self.expected("a name")) } else { Ok(name.to_string()) }
    }

    /// An unsigned integer.
    pub fn unsigned(&mut self) -> Read<usize> {
        let start = self.position();
        let digits = self.take_while(|c| c.is_ascii_digit());
        digits.parse().map_err(|_| {
            self.at = start;
            self.expected("a number")
        })
    }

    /// The text of a number: digits, a sign, an exponent, or hexadecimal digits.
    pub fn number(&mut self) -> Read<&'t str> {
        let start = self.position();
        if self.rest().starts_with(['-', '+']) {
            self.at += 1;
        }
        if self.rest().starts_with("0x") {
            self.at += 2;
            self.take_while(|c| c.is_ascii_hexdigit());
            return Ok(self.since(start));
        }
        self.take_while(|c| c.is_ascii_digit());
        if self.rest().starts_with('.') {
            self.at += 1;
            self.take_while(|c| c.is_ascii_digit());
        }
        let exponent = self.rest().as_bytes();
        let signed = exponent.len() > 1 && matches!(exponent[1], b'+' | b'-' | b'0'..=b'9');
        if signed && matches!(exponent[0], b'e' | b'E') {
            self.at += 2;
            self.take_while(|c| c.is_ascii_digit());
        }
        if self.since(start).chars().any(|c| c.is_ascii_digit()) {
            Ok(self.since(start))
        } else {
            self.at = start;
            Err(self.expected("a number"))
        }
    }

    /// A string in quotes; escapes are two hexadecimal digits, or one character.
    pub fn string(&mut self) -> Read<String> {
        let start = self.position();
        if !self.rest().starts_with('"') {
            return Err(self.expected("a string"));
        }
        self.at += 1;
        let mut bytes = Vec::new();
        loop {
            let Some(c) = self.rest().chars().next() else {
                return Err(self.malformed(start, "this string has no end"));
            };
            self.at += c.len_utf8();
            match c {
                '"' => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
                '\\' => {
                    let two = self.rest().get(..2).and_then(|two| u8::from_str_radix(two, 16).ok());
                    match (two, self.rest().chars().next()) {
                        (Some(byte), _) => {
                            bytes.push(byte);
                            self.at += 2;
                        }
                        (None, Some(next)) => {
                            let plain = match next {
                                'n' => '\n',
                                't' => '\t',
                                other => other,
                            };
                            bytes.extend(plain.encode_utf8(&mut [0; 4]).bytes());
                            self.at += next.len_utf8();
                        }
                        (None, None) => return Err(self.malformed(start, "this string has no end")),
                    }
                }
                c => bytes.extend(c.encode_utf8(&mut [0; 4]).bytes()),
            }
        }
    }

    /// The text up to the bracket that closes one which has just been read; the closing bracket is skipped.
    pub fn until_closed(&mut self, open: char) -> Read<&'t str> {
        let start = self.at;
        let mut closing = vec![closing(open)];
        loop {
            let Some(c) = self.rest().chars().next() else {
                return Err(self.malformed(start, format!("expected `{}` after this", closing[0])));
            };
            match c {
                '"' => {
                    self.string()?;
                    continue;
                }
                '(' | '[' | '{' | '<' => closing.push(self::closing(c)),
                // The arrow of a type closes nothing.
                '-' if self.rest().starts_with("->") => self.at += 1,
                c if closing.last() == Some(&c) => {
                    closing.pop();
                    if closing.is_empty() {
                        let inside = self.since(start);
                        self.at += c.len_utf8();
                        return Ok(inside);
                    }
                }
                _ => {}
            }
            self.at += c.len_utf8();
        }
    }

    /// Goes one level down; an error if there are too many.
    pub fn enter(&mut self) -> Read<()> {
        self.depth += 1;
        let start = self.at;
        if self.depth > MAX_DEPTH {
            return Err(self.malformed(start, format!("brackets and regions are nested more than {MAX_DEPTH} deep")));
        }
        Ok(())
    }

    /// Items with commas between them, up to the closing bracket, which is skipped.
    pub fn list<T>(&mut self, close: &str, mut item: impl FnMut(&mut Cursor<'t>) -> Read<T>) -> Read<Vec<T>> {
        self.enter()?;
        let mut items = Vec::new();
        while !self.take(close) {
            if !items.is_empty() {
                self.expect(",")?;
            }
            items.push(item(self)?);
        }
        self.depth -= 1;
        Ok(items)
    }
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$')
}

fn closing(open: char) -> char {
    match open {
        '(' => ')',
        '[' => ']',
        '{' => '}',
        _ => '>',
    }
}
