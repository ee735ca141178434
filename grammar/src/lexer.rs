//! Splits source text into tokens, comments and doc lines.
//!
//! Six things need more than the next few characters, and are decided here so that the grammar need not:
//!
//! - `t.0.1` is two tuple fields, `0.1` elsewhere a number; `1.` is a number unless a name or a dot follows.
//! - `[` after the name of an element type opens its dimensions: `f32[4@X]`.
//! - `{` after a type, with `U:` or another letter of [`TYPE_SUFFIXES`] inside, is a type suffix: `f32[4]{U:Y}`.
//! - `P(` is one token.
//! - `test` before a string begins an item, where an item can begin; elsewhere it is a name.
//! - `//` begins a comment or divides; `division.rs` decides.

use logos::Logos;

use crate::ast::Comment;
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::division::{WordsOfCode, divides, ends_operand, line_length};
use crate::span::{FileId, Span};
use crate::token::{Lexeme, Malformed, TYPE_SUFFIXES, Token};

/// Maximum length of a name, in bytes.
const MAX_NAME: usize = 1000;

/// The contents of a file.
#[derive(Debug, Default)]
pub struct Lexed<'s> {
    pub lexemes: Vec<Lexeme<'s>>,
    /// Comments that are not documentation, in order.
    pub comments: Vec<Comment>,
    /// `///` lines without the slashes, in order, not yet attached to items.
    pub docs: Vec<Comment>,
    pub diagnostics: Vec<Diagnostic>,
}

/// Splits `source` into tokens. Text that is not a token is reported and becomes one `Token::Malformed`.
pub fn lex(source: &str, file: FileId) -> Lexed<'_> {
    let mut lexed = Lexed::default();
    let mut code = WordsOfCode::new(source);
    // The open brackets, innermost last, as far as they pair up.
    let mut open: Vec<Token> = Vec::new();
    let mut lexer = Token::lexer(source);
    while let Some(next) = lexer.next() {
        let range = lexer.span();
        let lexeme = |token, start, end| Lexeme { token, start, end };
        match next {
            Ok(Token::SlashSlash | Token::SlashSlashAssign)
                if !divides(&lexed.lexemes, range.start, &open, &mut code) =>
            {
                let end = range.start + line_length(&source[range.start..]);
                lexer.bump(end - range.end);
                let (text, is_doc) = comment_text(&source[range.start..end]);
                let line = source[..range.start].rfind('\n').map_or(0, |newline| newline + 1);
                let trailing = lexed.lexemes.last().is_some_and(|last| last.end > line);
                let comment = Comment { text, trailing, span: Span::new(file, range.start, end) };
                if is_doc { lexed.docs.push(comment) } else { lexed.comments.push(comment) }
            }
            Ok(Token::Int(_)) if point_belongs(lexer.slice(), lexer.remainder(), lexed.lexemes.last()) => {
                lexer.bump(1);
                let token = Token::Float(&source[range.start..range.end + 1]);
                lexed.lexemes.push(lexeme(token, range.start, range.end + 1));
            }
            Ok(Token::Float(text)) if is_field_index(text, &lexed.lexemes) => {
                match split_field_indices(text, range.start) {
                    Some(parts) => lexed.lexemes.extend(parts),
                    None => malformed(&mut lexed, source, file, Malformed::Number, range.start, range.end),
                }
            }
            Ok(token @ Token::Str(_)) => {
                if open.is_empty() {
                    mark_test(&mut lexed.lexemes);
                }
                lexed.lexemes.push(lexeme(token, range.start, range.end));
            }
            Ok(Token::Colon) => {
                mark_suffix(&mut lexed.lexemes);
                lexed.lexemes.push(lexeme(Token::Colon, range.start, range.end));
            }
            Ok(Token::Name(_)) if range.len() > MAX_NAME => {
                let place = Span::new(file, range.start, range.start + MAX_NAME);
                let message = format!("a name has at most {MAX_NAME} characters; found {}", range.len());
                lexed.diagnostics.push(Diagnostic::error(Code::E0004, place, message));
                lexed.lexemes.push(lexeme(Token::Malformed, range.start, range.end));
            }
            Ok(token) => {
                let token = if token == Token::OpenBracket && follows_type_name(&lexed.lexemes) {
                    Token::OpenDims
                } else {
                    token
                };
                if token.closing().is_some() {
                    open.push(token);
                } else if open.last().is_some_and(|open| open.closing() == Some(token)) {
                    open.pop();
                }
                lexed.lexemes.push(lexeme(token, range.start, range.end));
            }
            Err(why) => malformed(&mut lexed, source, file, why, range.start, range.end),
        }
    }
    lexed
}

/// The words of a comment, and whether it is a doc line: three slashes, not four.
fn comment_text(comment: &str) -> (String, bool) {
    let is_doc = comment.starts_with("///") && !comment.starts_with("////");
    let text = if is_doc { &comment[3..] } else { &comment[2..] };
    (text.strip_prefix(' ').unwrap_or(text).trim_end().to_string(), is_doc)
}

/// `1.` is a float, but `1..n` is a range, `1.sum()` a method and `t.1.0` a field.
fn point_belongs(digits: &str, rest: &str, previous: Option<&Lexeme>) -> bool {
    let after_point = rest.strip_prefix('.').map(|rest| rest.chars().next());
    let is_decimal = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let is_field = previous.is_some_and(|previous| previous.token == Token::Dot);
    match after_point {
        None => false,
        Some(next) => is_decimal && !is_field && !next.is_some_and(|c| c == '.' || c == '_' || c.is_alphabetic()),
    }
}

/// Whether an apparent float is the field of a tuple: `.0` after an operand, `0.1` after a dot.
fn is_field_index(text: &str, before: &[Lexeme]) -> bool {
    match before.last() {
        None => false,
        Some(last) if text.starts_with('.') => ends_operand(before) || last.token == Token::CloseBrace,
        Some(last) => last.token == Token::Dot,
    }
}

/// `.0`, `0.1`, `.0.1` as dots and integers.
fn split_field_indices<'s>(text: &'s str, start: usize) -> Option<Vec<Lexeme<'s>>> {
    let mut lexemes = Vec::new();
    let mut at = start;
    for (position, digits) in text.split('.').enumerate() {
        if position > 0 {
            lexemes.push(Lexeme { token: Token::Dot, start: at, end: at + 1 });
            at += 1;
        }
        if !digits.is_empty() {
            let index = digits.parse().ok()?;
            lexemes.push(Lexeme { token: Token::Int(index), start: at, end: at + digits.len() });
            at += digits.len();
        }
    }
    Some(lexemes)
}

/// Whether the last token is the name of an element type, and not a field as in `p.key[0]`.
fn follows_type_name(lexemes: &[Lexeme]) -> bool {
    match lexemes {
        [.., before, last] => matches!(last.token, Token::DType(_)) && before.token != Token::Dot,
        _ => false,
    }
}

/// Called at a string outside of all brackets: `test` before it, at the beginning of an item, begins a test.
fn mark_test(lexemes: &mut [Lexeme]) {
    let (word, before) = match lexemes {
        [word] => (word, None),
        [.., before, word] => (word, Some(before.token)),
        [] => return,
    };
    if word.token == Token::Name("test") && matches!(before, None | Some(Token::Semicolon | Token::CloseBrace)) {
        word.token = Token::Test;
    }
}

/// Called at a colon: if `{ U` comes before it, and a type before that, the brace opens a suffix.
fn mark_suffix(lexemes: &mut [Lexeme]) {
    let [.., before, brace, name] = lexemes else { return };
    let follows_type = match before.token {
        Token::DType(_) | Token::CloseBracket => true,
        // `f32[4]{U:X}{V:Y}`: a suffix ends in a brace directly before the next one.
        Token::CloseBrace => before.end == brace.start,
        _ => false,
    };
    let is_letter =
        matches!(name.token, Token::Name(name) if TYPE_SUFFIXES.iter().any(|letter| name.chars().eq([*letter])));
    if follows_type && brace.token == Token::OpenBrace && is_letter {
        brace.token = Token::OpenSuffix;
    }
}

/// Reports text that is not a token; adjacent text of the same kind is one report.
fn malformed(lexed: &mut Lexed, source: &str, file: FileId, why: Malformed, start: usize, end: usize) {
    if let (Malformed::Character, Some(last), Some(diagnostic)) =
        (why, lexed.lexemes.last_mut(), lexed.diagnostics.last_mut())
        && last.token == Token::Malformed
        && last.end == start
    {
        last.end = end;
        diagnostic.span.end = end as u32;
        return;
    }
    lexed.lexemes.push(Lexeme { token: Token::Malformed, start, end });
    let text = &source[start..end];
    let span = Span::new(file, start, end);
    let diagnostic = match why {
        Malformed::Character => {
            let shown: String = text.chars().flat_map(char::escape_debug).collect();
            let diagnostic = Diagnostic::error(Code::E0001, span, format!("`{shown}` is not part of the language"));
            match help_for_character(text) {
                Some(help) => diagnostic.help(help),
                None => diagnostic,
            }
        }
        Malformed::Number => malformed_number(text, span),
        Malformed::TooLarge => {
            Diagnostic::error(Code::E0001, span, format!("the integer `{text}` does not fit into 64 bits"))
                .help("write a float, with a decimal point or an exponent")
        }
        Malformed::String => Diagnostic::error(Code::E0001, span, "unterminated string")
            .here("no closing `\"` on this line")
            .help("a string must end on its line; write `\\n` for a line break"),
    };
    lexed.diagnostics.push(diagnostic);
}

fn malformed_number(text: &str, span: Span) -> Diagnostic {
    let diagnostic = Diagnostic::error(Code::E0001, span, format!("invalid number `{text}`"));
    let word = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '_' || c == '.');
    let number = &text[..text.len() - word.len()];
    if crate::ast::DTypeName::named(word).is_some() {
        diagnostic.help(format!("literals have no suffix; write `{word}({number})`"))
    } else {
        diagnostic.help("write numbers as 12, 1_000, 0xff, 1.5 or 1e-5; a name cannot begin with a digit")
    }
}

fn help_for_character(text: &str) -> Option<&'static str> {
    Some(match text.chars().next()? {
        '#' => "comments begin with `//`",
        '\'' | '`' | '‘' | '’' | '“' | '”' => "write strings with double quotes: \"...\"",
        '×' | '·' | '⋅' => "multiply elementwise with `*`, matrices with `@`",
        '÷' => "divide with `/`, or `//` to round down",
        '−' | '–' | '—' => "write minus as `-`",
        '→' => "write `->`",
        '≤' => "write `<=`",
        '≥' => "write `>=`",
        '≠' => "write `!=`",
        '…' => "write `...`",
        '~' => "`!x` inverts bools, and the bits of integers",
        '$' | '\\' => "this character is allowed in strings and comments only",
        c if c.is_alphabetic() => "names consist of the letters a to z and A to Z, digits and `_`",
        _ => return None,
    })
}
