//! One entry as bytes: a mark, the checksum of the rest, and four sections, each after its length of 64 bits (little-endian): the key,
//! the warnings as JSON, the encoded program, and its code.

use std::hash::{DefaultHasher, Hasher};

use serde_json::{Value, json};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::{Diagnostic, Edit, Label, Severity};
use spmdc_grammar::span::{FileId, Span};

const MARK: &[u8; 8] = b"spmdcode";

/// The sections of an entry.
pub struct CacheEntry<'a> {
    /// The encoded program.
    pub program: &'a [u8],
    /// Its code, as the back end stored it.
    pub code: &'a [u8],
    /// The warnings of its compilation, in the lists in which they were reported.
    pub warnings: Vec<Vec<Diagnostic>>,
}

/// The bytes of an entry.
pub fn encode(key: &[u8], program: &[u8], code: &[u8], warnings: &[Vec<Diagnostic>]) -> Vec<u8> {
    let lists: Vec<Vec<Value>> = warnings.iter().map(|list| list.iter().map(to_json).collect()).collect();
    let warnings = json!(lists).to_string();
    let mut rest = Vec::with_capacity(64 + key.len() + warnings.len() + program.len() + code.len());
    for section in [key, warnings.as_bytes(), program, code] {
        rest.extend((section.len() as u64).to_le_bytes());
        rest.extend(section);
    }
    [&MARK[..], &checksum(&rest).to_le_bytes(), &rest].concat()
}

impl CacheEntry<'_> {
    /// The entry of these bytes; None if they are damaged, or the entry of another key.
    pub fn decode<'a>(bytes: &'a [u8], key: &[u8]) -> Option<CacheEntry<'a>> {
        let (sum, mut rest) = bytes.strip_prefix(MARK)?.split_first_chunk()?;
        if checksum(rest) != u64::from_le_bytes(*sum) {
            return None;
        }
        let mut section = || {
            let (len, after) = rest.split_first_chunk()?;
            let (section, after) = after.split_at_checked(usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
            rest = after;
            Some(section)
        };
        let (found, warnings, program, code) = (section()?, section()?, section()?, section()?);
        if found != key || !rest.is_empty() {
            return None;
        }
        let lists: Value = serde_json::from_slice(warnings).ok()?;
        let list = |list: &Value| list.as_array()?.iter().map(from_json).collect();
        let warnings = lists.as_array()?.iter().map(list).collect::<Option<_>>()?;
        Some(CacheEntry { program, code, warnings })
    }
}

/// A number that differs for damaged bytes, and is the same for the same bytes in every process of a build.
pub fn checksum(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

fn to_json(diagnostic: &Diagnostic) -> Value {
    let Diagnostic { code, severity, span, message, label, labels, help, edits, of_command } = diagnostic;
    let span_of = |span: &Span| json!([span.file.0, span.start, span.end]);
    let labels: Vec<Value> = labels.iter().map(|Label { span, text }| json!([span_of(span), text])).collect();
    let edit = |Edit { span, replacement, note }: &Edit| json!([span_of(span), replacement, note]);
    let edits: Vec<Value> = edits.iter().map(edit).collect();
    let is_error = *severity == Severity::Error;
    json!([code.name(), is_error, span_of(span), message, label, labels, help, edits, of_command])
}

fn from_json(value: &Value) -> Option<Diagnostic> {
    let [code, is_error, span, message, label, labels, help, edits, of_command] = array(value)?;
    let labels = labels.as_array()?.iter().map(|value| {
        let [span, text] = array(value)?;
        Some(Label { span: span_from(span)?, text: text_from(text)? })
    });
    let edits = edits.as_array()?.iter().map(|value| {
        let [span, replacement, note] = array(value)?;
        Some(Edit { span: span_from(span)?, replacement: text_from(replacement)?, note: text_from(note)? })
    });
    Some(Diagnostic {
        code: Code::from_name(code.as_str()?)?,
        severity: if is_error.as_bool()? { Severity::Error } else { Severity::Warning },
        span: span_from(span)?,
        message: text_from(message)?,
        label: text_from(label)?,
        labels: labels.collect::<Option<_>>()?,
        help: if help.is_null() { None } else { Some(text_from(help)?) },
        edits: edits.collect::<Option<_>>()?,
        of_command: of_command.as_bool()?,
    })
}

fn array<const N: usize>(value: &Value) -> Option<&[Value; N]> {
    value.as_array()?.as_array()
}

fn text_from(value: &Value) -> Option<String> {
    Some(value.as_str()?.to_string())
}

fn span_from(value: &Value) -> Option<Span> {
    let [file, start, end] = array(value)?;
    let number = |value: &Value| u32::try_from(value.as_u64()?).ok();
    Some(Span { file: FileId(u16::try_from(file.as_u64()?).ok()?), start: number(start)?, end: number(end)? })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn warning() -> Diagnostic {
        let span = |start| Span::new(FileId(1), start, start + 3);
        let warning = Diagnostic::warning(Code::E0507, span(1), "a \"message\"").here("here").label(span(20), "there");
        warning.help("write\nthis").edit(span(40), "x", "it costs nothing")
    }

    #[test]
    fn an_entry_is_read_as_it_was_written() {
        let warnings =
            vec![vec![warning(), warning().of_command()], vec![Diagnostic::error(Code::E0201, Span::default(), "")]];
        let bytes = encode(b"key", b"program", b"", &warnings);
        let entry = CacheEntry::decode(&bytes, b"key").unwrap();
        assert_eq!((entry.program, entry.code, entry.warnings), (&b"program"[..], &b""[..], warnings));
        assert!(CacheEntry::decode(&bytes, b"kez").is_none());
    }

    #[test]
    fn no_damaged_entry_is_read() {
        let bytes = encode(b"key", b"program", b"code", &[vec![warning()]]);
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            assert!(CacheEntry::decode(&flipped, b"key").is_none(), "byte {at}");
            assert!(CacheEntry::decode(&bytes[..at], b"key").is_none(), "{at} bytes");
        }
        assert!(CacheEntry::decode(&[&bytes[..], b"x"].concat(), b"key").is_none());
    }
}
