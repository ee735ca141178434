//! Decides whether `//` divides or begins a comment.
//!
//! `//` divides if the code requires it and the spacing shows it; otherwise it begins a comment. It divides only if these hold:
//!
//! 1. An operand ends right before it on the same line (a name, a literal, `)` or `]`).
//! 2. It is spaced evenly: no space on either side, or exactly one on both.
//! 3. The rest of the line is the rest of an expression: operands and operators alternate, brackets pair up and every character
//!    belongs to the language.
//! 4. This part of the line may begin with a name and reach neither a `;` or `{` nor a bracket that closes an earlier one. The name
//!    must then be called, or occur in code of the file before any `//` of its line.
//!
//! `//=` divides if 1. and 2. hold.
//!
//! So `i // 2`, `n//m;` and `f(i // size(x), 1)` divide, while `f(x); // why`, `x @ w  // two spaces`,
//! `x @ w // project it`, `x @ w // (B, H)`, `x @ w // projected` and `} // end` are comments.

use std::collections::HashSet;

use logos::Logos;

use crate::token::{Lexeme, TYPE_SUFFIXES, Token};

/// Maximum number of `//` on a line that are examined to classify the first.
const MAX_DIVISIONS: usize = 16;

/// Whether the `//` at `start` divides; the rule is in the header of this file.
pub fn divides<'s>(before: &[Lexeme<'s>], start: usize, open: &[Token], code: &mut WordsOfCode<'s>) -> bool {
    let source = code.source;
    let operator = if source[start..].starts_with("//=") { 3 } else { 2 };
    let Some(previous) = before.last() else { return false };
    let rest = &source[start + operator..];
    let rest = &rest[..line_length(rest)];
    if !ends_operand(before) || rest.starts_with(['/', '!']) {
        return false;
    }
    let is_even = match &source[previous.end..start] {
        "" => !rest.starts_with([' ', '\t']),
        " " => rest.starts_with(' ') && !rest[1..].starts_with([' ', '\t']),
        _ => false,
    };
    // No comment begins like this.
    let is_assignment = operator == 3 && !rest.starts_with('=');
    is_even && (is_assignment || continues_expression(rest, open, code))
}

/// Whether `rest` is an operand and a valid continuation, up to the end of the line or another `//`, which is classified separately.
/// `outside` are the brackets open at its beginning.
fn continues_expression<'s>(rest: &'s str, outside: &[Token], code: &mut WordsOfCode<'s>) -> bool {
    // Whether `=` may follow: in a list, for a keyword, and after the type of a `let`.
    let mut may_assign = outside.last().is_some_and(|open| *open != Token::OpenBrace);
    let mut inside: Vec<Token> = Vec::new();
    let mut lexemes = Token::lexer(rest).spanned().peekable();
    let (mut earlier, mut previous) = (Token::SlashSlash, Token::SlashSlash);
    let mut wants_operand = true;
    let mut is_first_group = rest.trim_start().starts_with('(');
    // Whether the first operand is a name that no code mentions, which needs more evidence.
    let mut is_doubtful = None;
    let mut divisions = 0;
    while let Some((token, range)) = lexemes.next() {
        let Ok(token) = token else { return false };
        match token {
            Token::SlashSlash | Token::SlashSlashAssign if wants_operand => return false,
            // It decides for itself, but for what may come behind.
            Token::SlashSlash if is_doubtful == Some(true) && divisions < MAX_DIVISIONS => {
                divisions += 1;
                wants_operand = true;
            }
            Token::SlashSlash | Token::SlashSlashAssign => break,
            Token::Semicolon => return !wants_operand && inside.is_empty(),
            _ if token.is_closing() => {
                let may_end_empty =
                    previous.closing() == Some(token) || matches!(previous, Token::Comma | Token::Colon);
                let may_end = !wants_operand || may_end_empty;
                let Some(open) = inside.pop() else {
                    return may_end && outside.last().is_some_and(|open| open.closing() == Some(token));
                };
                if !may_end || open.closing() != Some(token) {
                    return false;
                }
                is_doubtful.get_or_insert(false);
                wants_operand = false;
                is_first_group = false;
            }
            _ if wants_operand => match token {
                Token::Minus | Token::Not => {}
                Token::Colon | Token::Or | Token::OrOr if previous != Token::SlashSlash => {}
                Token::Comma if previous == Token::Colon => {}
                // Names of fields and keywords, and the type of a mesh axis.
                Token::Type | Token::Mesh | Token::Manual if previous != Token::SlashSlash => wants_operand = false,
                Token::If | Token::For | Token::While | Token::OpenBrace => return previous != Token::SlashSlash,
                Token::Underscore | Token::Ellipsis | Token::Question => {
                    is_doubtful.get_or_insert(false);
                    wants_operand = false;
                }
                // Nothing is divided by a list.
                Token::OpenBracket if previous == Token::SlashSlash => return false,
                _ if token.closing().is_some() => inside.push(token),
                _ if token.begins_operand() => {
                    let is_called = matches!(lexemes.peek(), Some((Ok(Token::OpenParen), _)));
                    is_doubtful.get_or_insert_with(|| token.is_name() && !is_called && !code.contains(&rest[range]));
                    wants_operand = false;
                }
                _ => return false,
            },
            // `Layer<n // 2> on first`; elsewhere `on` is an operand as other names are.
            _ if (earlier, previous) == (Token::Greater, Token::On) && token.is_name() => may_assign = true,
            // `Layer<n // 2>, data: stream f32[4]`
            Token::DType(_) | Token::Name(_) if previous == Token::Stream => {}
            // A block, or the suffix of a type.
            Token::OpenBrace => {
                return inside.is_empty() || previous == Token::Greater || rest[range.end..].starts_with(TYPE_SUFFIXES);
            }
            Token::OpenParen | Token::OpenBracket => {
                inside.push(token);
                wants_operand = true;
            }
            _ if token.is_assignment() => {
                if inside.is_empty() && !may_assign {
                    return false;
                }
                wants_operand = true;
            }
            // Nor by a tuple: `// (B, H)` tells a shape.
            Token::Comma if inside.len() == 1 && is_first_group => return false,
            Token::Comma | Token::Colon | Token::Dot | Token::DotDot | Token::Arrow | Token::On => {
                wants_operand = true;
            }
            // `t.0` looks like `t` and a float here.
            Token::Float(text) if text.starts_with('.') => {}
            Token::Collect => {}
            Token::Step => wants_operand = true,
            // The end of `Layer<n // 2, m>`, or a comparison.
            Token::Greater => {
                let ends_type = |next: &Token| {
                    next.is_closing()
                        || next.is_assignment()
                        || matches!(next, Token::Comma | Token::Semicolon | Token::OpenBrace | Token::Or)
                };
                wants_operand = !matches!(lexemes.peek(), Some((Ok(next), _)) if ends_type(next));
                may_assign |= !wants_operand;
            }
            _ if token.is_binary_operator() => wants_operand = true,
            _ => return false,
        }
        (earlier, previous) = (previous, token);
    }
    // The line may also end after an operator, a comma or an opening bracket, if the expression continues below.
    is_doubtful == Some(false) && previous != Token::Dot
}

/// The words on the parts of lines before any `//`, collected at first use.
pub struct WordsOfCode<'s> {
    source: &'s str,
    words: Option<HashSet<&'s str>>,
}

impl<'s> WordsOfCode<'s> {
    pub fn new(source: &'s str) -> WordsOfCode<'s> {
        WordsOfCode { source, words: None }
    }

    fn contains(&mut self, word: &str) -> bool {
        let source = self.source;
        let words = self.words.get_or_insert_with(|| {
            let code = source.lines().map(|line| line.split("//").next().unwrap_or(line));
            code.flat_map(|code| code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')).collect()
        });
        words.contains(word)
    }
}

/// Whether an expression may end here; after a dot, `type` and `mesh` are fields.
pub fn ends_operand(lexemes: &[Lexeme]) -> bool {
    match lexemes {
        [.., before, last] if matches!(last.token, Token::Type | Token::Mesh) => before.token == Token::Dot,
        [.., last] => last.token.ends_operand(),
        [] => false,
    }
}

/// The length of the first line, without its newline.
pub fn line_length(text: &str) -> usize {
    text.find('\n').unwrap_or(text.len())
}
