//! Format strings: texts with placeholders, whose specifications have the syntax of Rust's.

/// A part of a format string.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// Text that is printed unchanged.
    Text(String),
    /// The placeholder of the next value.
    Value(Spec),
}

/// The part of a placeholder after the colon: `[[fill]align][+][0][width][.precision][e][j]`, `?`, `c` or `p`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spec {
    /// The character that fills the width; None: a space.
    pub fill: Option<char>,
    /// None: numbers are aligned to the right, everything else to the left.
    pub align: Option<Align>,
    /// Whether positive numbers get a sign, too.
    pub plus: bool,
    /// Whether zeros between sign and digits fill the width.
    pub zeros: bool,
    /// The minimum number of characters, at most 1000; 0 by default.
    pub width: usize,
    /// Digits after the point.
    pub precision: Option<usize>,
    /// The form of the value itself.
    pub form: Form,
    /// Whether the value is complex: its real and its imaginary plane are two arguments. `j` in dumps.
    pub complex: bool,
}

/// The alignment of a text in its width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// `<`
    Left,
    /// `^`
    Center,
    /// `>`
    Right,
}

/// The form of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// `{}`: the value as NumPy prints it, or with the digits of the precision.
    #[default]
    Plain,
    /// `{:e}`: with an exponent.
    Exponent,
    /// `{:?}`: shape and element type instead of the value.
    Type,
    /// `{:c}`: integers as the characters with these numbers, as in Python; the last dimension is a line.
    Characters,
    /// `{:p}`: a picture of a vector or a matrix; a scalar as `{}`.
    Picture,
}

/// Maximum width and precision, in characters.
const MOST: usize = 1000;

/// Maximum length of a specification, in bytes.
const MAX_LETTERS: usize = 40;

impl Spec {
    /// Parses the text between `{:` and `}`.
    pub fn parse(text: &str) -> Option<Spec> {
        let mut spec = Spec::default();
        let align = |c: char| match c {
            '<' => Some(Align::Left),
            '^' => Some(Align::Center),
            '>' => Some(Align::Right),
            _ => None,
        };
        let mut chars = text.chars();
        let (first, second) = (chars.next(), chars.next());
        let mut rest = text;
        if let (Some(fill), Some(found)) = (first, second.and_then(align)) {
            (spec.fill, spec.align) = (Some(fill), Some(found));
            rest = &text[fill.len_utf8() + 1..];
        } else if let Some(found) = first.and_then(align) {
            spec.align = Some(found);
            rest = &text[1..];
        }
        if let Some(after) = rest.strip_prefix('+') {
            (spec.plus, rest) = (true, after);
        }
        if let Some(after) = rest.strip_prefix('0') {
            (spec.zeros, rest) = (true, after);
        }
        let number = |text: &str| {
            let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
            let number = text[..end].parse().ok().filter(|&number: &usize| number <= MOST);
            (number, end)
        };
        let (width, end) = number(rest);
        if end > 0 {
            spec.width = width?;
            rest = &rest[end..];
        }
        if let Some(after) = rest.strip_prefix('.') {
            let (precision, end) = number(after);
            spec.precision = Some(precision?);
            rest = &after[end..];
        }
        if let Some(before) = rest.strip_suffix('j') {
            (spec.complex, rest) = (true, before);
        }
        spec.form = match rest {
            "" => Form::Plain,
            "e" => Form::Exponent,
            "?" if !spec.complex => Form::Type,
            "c" if spec == Spec::default() => Form::Characters,
            "p" if spec == Spec::default() => Form::Picture,
            _ => return None,
        };
        Some(spec)
    }

    /// The placeholder with this specification: `{}`, `{:8.3}`.
    pub fn place(&self) -> String {
        if *self == Spec::default() {
            return "{}".to_string();
        }
        let align = match self.align {
            None => "",
            Some(Align::Left) => "<",
            Some(Align::Center) => "^",
            Some(Align::Right) => ">",
        };
        let fill = self.fill.map(String::from).unwrap_or_default();
        let plus = if self.plus { "+" } else { "" };
        let zeros = if self.zeros { "0" } else { "" };
        let width = if self.width > 0 { self.width.to_string() } else { String::new() };
        let precision = self.precision.map(|digits| format!(".{digits}")).unwrap_or_default();
        let form = match self.form {
            Form::Plain => "",
            Form::Exponent => "e",
            Form::Type => "?",
            Form::Characters => "c",
            Form::Picture => "p",
        };
        let complex = if self.complex { "j" } else { "" };
        format!("{{:{fill}{align}{plus}{zeros}{width}{precision}{form}{complex}}}")
    }

    /// The number of arguments that the value is.
    pub fn values(&self) -> usize {
        if self.complex { 2 } else { 1 }
    }

    /// Pads a text to the width; by default numbers are aligned to the right.
    pub fn pad(&self, text: String, is_number: bool) -> String {
        let missing = self.width.saturating_sub(text.chars().count());
        if missing == 0 {
            return text;
        }
        if self.zeros && is_number && text.ends_with(|c: char| c.is_ascii_digit()) {
            let digits = text.find(|c: char| c.is_ascii_digit()).unwrap_or(0);
            return format!("{}{}{}", &text[..digits], "0".repeat(missing), &text[digits..]);
        }
        let left = match (self.align, is_number) {
            (Some(Align::Left), _) | (None, false) => 0,
            (Some(Align::Center), _) => missing / 2,
            (Some(Align::Right), _) | (None, true) => missing,
        };
        let fill = |count: usize| self.fill.unwrap_or(' ').to_string().repeat(count);
        format!("{}{text}{}", fill(left), fill(missing - left))
    }
}

/// The number of values in a text.
pub fn places(text: &str) -> usize {
    let values = |piece: &Piece| if let Piece::Value(spec) = piece { spec.values() } else { 0 };
    pieces(text).iter().map(values).sum()
}

/// Splits a format string: `{}` and `{:8.3}` are placeholders, `{{` and `}}` are braces, and everything else is text.
///
/// ```
/// use spmdc_abi::{Piece, Spec, pieces};
/// let text = |text: &str| Piece::Text(text.to_string());
/// let value = |spec: &str| Piece::Value(Spec::parse(spec).unwrap());
/// assert_eq!(pieces("a {} b"), [text("a "), value(""), text(" b")]);
/// assert_eq!(pieces("{:8.3}{:e}"), [text(""), value("8.3"), text(""), value("e"), text("")]);
/// assert_eq!(pieces("{{}} {{{}}}"), [text("{} {"), value(""), text("}")]);
/// assert_eq!(pieces("{x} } { {:y}"), [text("{x} } { {:y}")]);
/// ```
pub fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        // The length of a specification is bounded, so that a text full of braces is still read in linear time.
        let close = after.bytes().take(MAX_LETTERS).position(|byte| byte == b'}').filter(|_| c == '{');
        let spec = close.and_then(|close| {
            let spec = if close == 0 { "" } else { after[..close].strip_prefix(':')? };
            Some((Spec::parse(spec)?, &after[close + 1..]))
        });
        rest = match (c, spec) {
            ('{', Some((spec, behind))) => {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
                pieces.push(Piece::Value(spec));
                behind
            }
            ('{' | '}', _) if after.starts_with(c) => {
                plain.push(c);
                &after[1..]
            }
            _ => {
                plain.push(c);
                after
            }
        };
    }
    pieces.push(Piece::Text(plain));
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specifications_print_as_they_are_read() {
        for text in
            ["8", ".4", "8.3", "e", ".2e", "?", "c", "p", "+.1", "08.2", "<6", "*^9", ">+07.2e", "j", ".2j", "ej"]
        {
            let spec = Spec::parse(text).map(|spec| spec.place());
            assert_eq!(spec, Some(format!("{{:{text}}}")));
        }
        for text in ["x", "8.", "8.3f", "1001", "..2", "e2", "?j", "4p", "99999999999999999999"] {
            assert_eq!(Spec::parse(text), None, "{text}");
        }
    }

    #[test]
    fn text_and_numbers_stand_where_rust_puts_them() {
        let pad =
            |spec: &str, text: &str, is_number| Spec::parse(spec).map(|spec| spec.pad(text.to_string(), is_number));
        assert_eq!(pad("6", "1.5", true), Some(format!("{:6}", 1.5)));
        assert_eq!(pad("06", "-1.5", true), Some(format!("{:06}", -1.5)));
        assert_eq!(pad("06", "nan", true), Some(format!("{:>6}", "nan")));
        assert_eq!(pad("6", "ab", false), Some(format!("{:6}", "ab")));
        assert_eq!(pad("*^7", "ab", false), Some(format!("{:*^7}", "ab")));
    }
}
