//! Parses source text into a tree and reports all its errors.
//!
//! A file is split into items before any of it is parsed, so that an error in one does not affect the others. Within an item the
//! parser stops at its first error; that is reported, the statement that contains it is removed (or the missing `;` inserted), and
//! the item is parsed again. So each error is found by a parser that has seen no earlier one, and no report is the consequence of
//! another.

use std::ops::Range;

use lalrpop_util::ParseError;

use crate::ast::{Comment, Ident, ItemNode, ProgramNode};
use crate::brackets;
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::grammar::ItemNodeParser;
use crate::lexer::{Lexed, lex};
use crate::span::{FileId, Span};
use crate::syntax_error::{Expected, ParserStop, Repair};
use crate::token::{Lexeme, Token};

/// Maximum number of errors reported for one item.
const MAX_ERRORS_PER_ITEM: usize = 40;

/// Maximum number of errors reported for one file.
const MAX_ERRORS: usize = 100;

/// Reads a file. The program contains the parts that could be parsed; it is complete if there are no diagnostics.
pub fn parse(source: &str, file: FileId) -> (ProgramNode, Vec<Diagnostic>) {
    if u32::try_from(source.len()).is_err() {
        let place = Span::new(file, 0, 0);
        return (
            ProgramNode::default(),
            vec![Diagnostic::error(Code::E0002, place, "a source file must be smaller than 4 GiB")],
        );
    }
    let Lexed { lexemes, mut comments, docs, mut diagnostics } = lex(source, file);
    let (stage, header) = stage_header(source, &lexemes, file);
    let mut parser = Parser { source, file, grammar: ItemNodeParser::new(), diagnostics: Vec::new(), is_whole: true };
    let mut items = Vec::new();
    let mut docs = docs.into_iter().peekable();
    for range in split_items(source, &lexemes, header) {
        let lexemes = &lexemes[range];
        let start = lexemes.first().map_or(0, |first| first.start);
        let end = lexemes.last().map_or(0, |last| last.end);
        let mut doc = Vec::new();
        while let Some(line) = docs.next_if(|line| (line.span.start as usize) < start) {
            doc.push(line.text);
        }
        while let Some(line) = docs.next_if(|line| (line.span.start as usize) < end) {
            comments.push(line);
        }
        if let Some(item) = parser.item(lexemes) {
            items.push(ItemNode { doc, ..item });
        }
    }
    comments.extend(docs);
    comments.sort_by_key(|comment: &Comment| comment.span.start);
    diagnostics.append(&mut parser.diagnostics);
    debug_assert!(parser.is_whole || !diagnostics.is_empty(), "something was left out without a report");
    diagnostics.sort_by_key(|diagnostic| diagnostic.span.start);
    diagnostics.truncate(MAX_ERRORS);
    (ProgramNode { stage, items, comments }, diagnostics)
}

/// The header `stage partitioned;`, and its number of tokens. `stage` is a name everywhere else.
fn stage_header(source: &str, lexemes: &[Lexeme], file: FileId) -> (Option<Ident>, usize) {
    match lexemes {
        [word, stage, semicolon, ..]
            if word.token == Token::Name("stage") && stage.token.is_name() && semicolon.token == Token::Semicolon =>
        {
            let name = source[stage.start..stage.end].to_string();
            (Some(Ident { name, span: Span::new(file, stage.start, stage.end) }), 3)
        }
        _ => (None, 0),
    }
}

/// The tokens of each item. An item begins with one of the words that begin items, outside all brackets; in a file with unpaired
/// brackets, also with such a word at the start of a line.
fn split_items(source: &str, lexemes: &[Lexeme], first: usize) -> Vec<Range<usize>> {
    let is_balanced = brackets::is_balanced(lexemes);
    let mut items = Vec::new();
    let mut start = first;
    let mut depth = 0usize;
    for at in first..lexemes.len() {
        let token = lexemes[at].token;
        let is_outside = depth == 0 || !is_balanced && is_first_on_line(source, lexemes[at].start);
        if token.begins_item() && is_outside && !brackets::is_field(lexemes, at) {
            let begin = if token == Token::Fn { region_before(&lexemes[start..at]) } else { 0 };
            let begin = at - begin;
            if begin > start {
                items.push(start..begin);
                start = begin;
                depth = 0;
            }
        }
        if token.closing().is_some() {
            depth += 1;
        } else if token.is_closing() {
            depth = depth.saturating_sub(1);
        }
    }
    if start < lexemes.len() {
        items.push(start..lexemes.len());
    }
    items
}

fn is_first_on_line(source: &str, at: usize) -> bool {
    source[..at].trim_end_matches([' ', '\t']).chars().next_back().is_none_or(|before| before == '\n')
}

/// The number of the last tokens that are `manual`, `auto(X, Y)` or the like, with which an item begins whose next token is `fn`.
fn region_before(lexemes: &[Lexeme]) -> usize {
    let token = |back: usize| lexemes.len().checked_sub(back).map(|at| lexemes[at].token);
    let is_word = |back: usize| matches!(token(back), Some(Token::Manual | Token::Auto | Token::Explicit));
    if is_word(1) {
        return 1;
    }
    if token(1) != Some(Token::CloseParen) {
        return 0;
    }
    let inner =
        lexemes.iter().rev().skip(1).take_while(|lexeme| !matches!(lexeme.token, Token::OpenParen | Token::CloseParen));
    let opening = inner.count() + 2;
    if token(opening) == Some(Token::OpenParen) && is_word(opening + 1) { opening + 1 } else { 0 }
}

struct Parser<'s> {
    source: &'s str,
    file: FileId,
    grammar: ItemNodeParser,
    diagnostics: Vec<Diagnostic>,
    /// Whether nothing has been left out so far.
    is_whole: bool,
}

impl<'s> Parser<'s> {
    /// Parses the tokens of one item; None if none of it can be used.
    fn item(&mut self, lexemes: &[Lexeme<'s>]) -> Option<ItemNode> {
        let (mut lexemes, unpaired) = brackets::pair_up(self.source, lexemes, self.file);
        if let Some(diagnostic) = brackets::too_deep(&lexemes, self.file) {
            self.diagnostics.push(diagnostic);
            return None;
        }
        let mut has_header = true;
        let has_unpaired = !unpaired.is_empty();
        let mut is_first = !has_unpaired;
        self.diagnostics.extend(unpaired);
        for _ in 0..MAX_ERRORS_PER_ITEM {
            let stream = lexemes.iter().map(|lexeme| Ok((lexeme.start, lexeme.token, lexeme.end)));
            let error = match self.grammar.parse(self.file, stream) {
                Ok(item) => return has_header.then_some(*item),
                Err(error) => error,
            };
            let at = position(&lexemes, &error);
            let (diagnostic, repair) = if let ParseError::User { error } = error {
                (Some(*error), Repair::RemoveStatement)
            } else {
                let stop = ParserStop {
                    expected: self.expected(&lexemes[..at]),
                    lexemes: &lexemes,
                    at,
                    source: self.source,
                    file: self.file,
                };
                stop.explain()
            };
            self.is_whole = false;
            let statement = statement_around(&lexemes, at);
            // If an item ends too early after a part was removed, it may have been complete before, and unpaired brackets make
            // errors outside of a function's body meaningless.
            let is_consequence = !is_first && at == lexemes.len() || has_unpaired && statement.is_none();
            if !is_consequence {
                self.diagnostics.extend(diagnostic);
            }
            is_first &= repair == Repair::InsertSemicolon;
            match repair {
                Repair::EndItem => lexemes.truncate(at),
                Repair::InsertSemicolon => {
                    let end = lexemes[at - 1].end;
                    lexemes.insert(at, Lexeme { token: Token::Semicolon, start: end, end });
                }
                Repair::RemoveStatement => match statement {
                    Some(range) if range.is_empty() => return None,
                    Some(range) => {
                        lexemes.drain(range);
                    }
                    // The error is in the item's header: only a function's body can still be parsed.
                    None if has_header => {
                        let body = body_of(&lexemes)?;
                        if at >= body {
                            return None;
                        }
                        has_header = false;
                        let place = lexemes[body].start;
                        let header = [Token::Fn, Token::Name("f"), Token::OpenParen, Token::CloseParen];
                        lexemes.splice(..body, header.map(|token| Lexeme { token, start: place, end: place }));
                    }
                    None => return None,
                },
            }
        }
        None
    }

    /// The tokens that may follow these, which begin an item. The parser is given a token that the grammar never accepts: another
    /// one might first cause reductions after which fewer tokens are possible.
    fn expected(&self, lexemes: &[Lexeme<'s>]) -> Expected {
        let end = lexemes.last().map_or(0, |last| last.end);
        let stream = lexemes.iter().map(|lexeme| (lexeme.start, lexeme.token, lexeme.end));
        let stream = stream.chain([(end, Token::Malformed, end)]).map(Ok);
        match self.grammar.parse(self.file, stream) {
            Err(ParseError::UnrecognizedToken { expected, .. }) => Expected::new(&expected),
            _ => Expected::default(),
        }
    }
}

/// The index of the token at which the parser stopped; the number of tokens at the end.
fn position(lexemes: &[Lexeme], error: &ParseError<usize, Token, Box<Diagnostic>>) -> usize {
    let start = match error {
        ParseError::UnrecognizedToken { token: (start, _, _), .. }
        | ParseError::ExtraToken { token: (start, _, _) } => *start,
        ParseError::User { error } => error.span.start as usize,
        ParseError::InvalidToken { .. } | ParseError::UnrecognizedEof { .. } => return lexemes.len(),
    };
    // An inserted token has no width, and comes before the one that begins at the same position.
    let at = lexemes.partition_point(|lexeme| lexeme.end <= start);
    at.min(lexemes.len())
}

/// The `{` of a function's body, which the item's last token closes.
fn body_of(lexemes: &[Lexeme]) -> Option<usize> {
    let is_function = lexemes
        .iter()
        .take_while(|lexeme| lexeme.token != Token::OpenBrace)
        .any(|l| matches!(l.token, Token::Fn | Token::Test));
    if !is_function || lexemes.last()?.token != Token::CloseBrace {
        return None;
    }
    let mut depth = 0usize;
    for (at, lexeme) in lexemes.iter().enumerate().rev() {
        if lexeme.token.is_closing() {
            depth += 1;
        } else if lexeme.token.closing().is_some() {
            depth -= 1;
            if depth == 0 {
                return Some(at);
            }
        }
    }
    None
}

/// The statement of the innermost block around the token `at`, with its `;`; None outside of all blocks.
///
/// A statement extends between two semicolons, or between one and a brace of its block.
pub fn statement_around(lexemes: &[Lexeme], at: usize) -> Option<Range<usize>> {
    struct Open {
        is_block: bool,
        /// The start of the current statement, if this is a block.
        start: usize,
    }
    let mut open: Vec<Open> = Vec::new();
    for (position, lexeme) in lexemes[..at].iter().enumerate() {
        if lexeme.token.closing().is_some() {
            let is_block = lexeme.token == Token::OpenBrace && brackets::opens_block(lexemes, position);
            open.push(Open { is_block, start: position + 1 });
        } else if lexeme.token.is_closing() {
            open.pop();
        }
        let ends_statement = lexeme.token == Token::Semicolon
            || lexeme.token == Token::CloseBrace && brackets::statement_may_begin(lexemes.get(position + 1));
        if ends_statement && let Some(block) = open.last_mut() {
            block.start = position + 1;
        }
    }
    let mut depth = open.len() - open.iter().rposition(|open| open.is_block)?;
    let start = open[open.len() - depth].start;
    for (position, lexeme) in lexemes.iter().enumerate().skip(at) {
        if lexeme.token.closing().is_some() {
            depth += 1;
        } else if lexeme.token.is_closing() {
            depth -= 1;
            if depth == 0 {
                return Some(start..position);
            }
        }
        let ends_statement = lexeme.token == Token::Semicolon
            || lexeme.token == Token::CloseBrace && brackets::statement_may_begin(lexemes.get(position + 1));
        if ends_statement && depth == 1 {
            return Some(start..position + 1);
        }
    }
    None
}
