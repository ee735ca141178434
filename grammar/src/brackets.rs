//! Analysis of an item by its brackets alone, before it is parsed: unpaired brackets, the starts of statements, and the depth of
//! its tree.

use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::span::{FileId, Span};
use crate::token::{Lexeme, Token};

/// Maximum number of operators in a row.
const MAX_ROW: usize = 512;

/// Maximum depth of a tree, in operators: such a row, within some brackets. The rest of the compiler walks trees by recursion and
/// relies on this.
pub const MAX_DEPTH: usize = MAX_ROW + 64;

/// The depth of a bracket: there is a block, a list or an argument between two expressions.
const BRACKET_DEPTH: usize = 2;

pub fn is_balanced(lexemes: &[Lexeme]) -> bool {
    let mut open: Vec<Token> = Vec::new();
    for lexeme in lexemes {
        if let Some(closing) = lexeme.token.closing() {
            open.push(closing);
        } else if lexeme.token.is_closing() && open.pop() != Some(lexeme.token) {
            return false;
        }
    }
    open.is_empty()
}

/// The same tokens with every bracket paired: an unpaired one is reported and becomes `Token::Malformed`, at which the parser stops
/// without another report, and missing `}` are inserted at the end.
pub fn pair_up<'s>(source: &str, lexemes: &[Lexeme<'s>], file: FileId) -> (Vec<Lexeme<'s>>, Vec<Diagnostic>) {
    let mut paired = lexemes.to_vec();
    let mut diagnostics = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut open_braces = 0usize;
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    // Whether this statement already had a closing bracket too many.
    let mut is_consequence = false;
    for (at, lexeme) in lexemes.iter().enumerate() {
        let token = lexeme.token;
        is_consequence &= !matches!(token, Token::Semicolon | Token::OpenBrace);
        // No list continues past the end of its statement. One report for all lists that should have ended there.
        if matches!(token, Token::Semicolon | Token::Arrow)
            || token == Token::Let && !is_field(lexemes, at)
            || token == Token::CloseBrace && open_braces > 0
        {
            let mut is_reported = false;
            while let Some(opening) = open.pop_if(|opening| is_list(lexemes[*opening].token)) {
                if !is_reported {
                    diagnostics.push(unclosed(lexemes, opening, at, file));
                }
                paired[opening].token = Token::Malformed;
                is_reported = true;
            }
        }
        // Nor past the bracket that closes an enclosing list.
        if let Some(lists) = lists_inside(lexemes, &open, token) {
            diagnostics.push(unclosed(lexemes, open[open.len() - 1], at, file));
            for opening in open.drain(open.len() - lists..) {
                paired[opening].token = Token::Malformed;
            }
        }
        if token.closing().is_some() {
            open.push(at);
            open_braces += usize::from(token.closing() == Some(Token::CloseBrace));
        } else if token.is_closing() {
            match open.last().copied() {
                Some(opening) if lexemes[opening].token.closing() == Some(token) => {
                    open.pop();
                    open_braces -= usize::from(token == Token::CloseBrace);
                    pairs.push((opening, at));
                }
                Some(opening) if is_list(lexemes[opening].token) => {
                    open.pop();
                    diagnostics.push(mismatched(&lexemes[opening], lexeme, file));
                    paired[opening].token = Token::Malformed;
                    paired[at].token = Token::Malformed;
                }
                _ => {
                    if !is_consequence {
                        diagnostics.push(unopened(lexeme, file));
                    }
                    is_consequence = true;
                    paired[at].token = Token::Malformed;
                }
            }
        }
    }
    let end = lexemes.last().map_or(0, |last| last.end);
    if let Some(innermost) = open.last() {
        let suspect = badly_indented(source, lexemes, &pairs, open[0]).unwrap_or(*innermost);
        diagnostics.push(unclosed(lexemes, suspect, lexemes.len(), file));
    }
    for opening in open.into_iter().rev() {
        if is_list(lexemes[opening].token) {
            paired[opening].token = Token::Malformed;
        } else {
            paired.push(Lexeme { token: Token::CloseBrace, start: end, end });
        }
    }
    // An unterminated string contains the brackets on its line.
    if lexemes.iter().any(|lexeme| lexeme.token == Token::Malformed && source[lexeme.start..].starts_with('"')) {
        diagnostics.clear();
    }
    (paired, diagnostics)
}

/// The number of open lists inside the one that `closing` closes; None if it closes none of them, or the innermost.
fn lists_inside(lexemes: &[Lexeme], open: &[usize], closing: Token) -> Option<usize> {
    if !closing.is_closing() || closing == Token::CloseBrace {
        return None;
    }
    let mut lists = open.iter().rev().take_while(|opening| is_list(lexemes[**opening].token));
    lists.position(|opening| lexemes[*opening].token.closing() == Some(closing)).filter(|inside| *inside > 0)
}

fn is_list(opening: Token) -> bool {
    opening.closing().is_some_and(|closing| closing != Token::CloseBrace)
}

/// If a `}` is missing, the unmatched brace is often not the cause: this brace took the `}` of an outer one, which is then further left
/// than the line that it seems to close.
fn badly_indented(source: &str, lexemes: &[Lexeme], pairs: &[(usize, usize)], outermost: usize) -> Option<usize> {
    let line_of = |at: usize| source[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let indentation = |line: usize| source[line..].len() - source[line..].trim_start_matches([' ', '\t']).len();
    let (opening, _) = pairs.iter().find(|(opening, closing)| {
        let (opening, closing) = (&lexemes[*opening], &lexemes[*closing]);
        let (first, last) = (line_of(opening.start), line_of(closing.start));
        opening.start > lexemes[outermost].start
            && opening.token == Token::OpenBrace
            && first != last
            && last + indentation(last) == closing.start
            && indentation(last) < indentation(first)
    })?;
    Some(*opening)
}

/// Whether the word at `at` is the name of a field or of an argument: after a dot, or before a `:` or `=`.
pub fn is_field(lexemes: &[Lexeme], at: usize) -> bool {
    let follows_dot = at > 0 && lexemes[at - 1].token == Token::Dot;
    follows_dot || lexemes.get(at + 1).is_some_and(|next| matches!(next.token, Token::Colon | Token::Assign))
}

/// Whether the `{` at `at` opens a block and not a struct or its pattern: those continue with a field.
pub fn opens_block(lexemes: &[Lexeme], at: usize) -> bool {
    let token = |at: usize| lexemes.get(at).map(|lexeme| lexeme.token);
    let follows_let = at > 0 && matches!(lexemes[at - 1].token, Token::Let | Token::Mut);
    let has_field = token(at + 1).is_some_and(|name| name.is_name() || name.is_reserved_word())
        && matches!(token(at + 2), Some(Token::Colon | Token::Comma));
    !follows_let && !has_field
}

/// Whether a statement may begin with this token but an expression cannot continue with it, so that a `}` before it ended a
/// statement.
pub fn statement_may_begin(next: Option<&Lexeme>) -> bool {
    next.is_some_and(|next| match next.token {
        Token::Let | Token::If | Token::For | Token::While | Token::OpenSharding => true,
        Token::Collect | Token::On | Token::As | Token::Step => false,
        token => token.is_name() || token.begins_operand() && !is_ambiguous(token),
    })
}

/// Whether a token may both begin an expression and continue one.
fn is_ambiguous(token: Token) -> bool {
    matches!(token, Token::OpenParen | Token::OpenBracket | Token::Minus | Token::Not)
}

/// Refuses tokens whose tree could be deeper than `MAX_DEPTH`.
///
/// This is decided before there is a tree, because even dropping a tree that is too deep would overflow the stack. The depth of a
/// tree is at most the number of operators between two commas or semicolons, summed over the brackets open at a position. The bound
/// is too large for operators side by side, which no program has by the thousand.
pub fn too_deep(lexemes: &[Lexeme], file: FileId) -> Option<Diagnostic> {
    /// The operators so far in an open bracket.
    #[derive(Default)]
    struct Level {
        is_braces: bool,
        /// The number since the last comma.
        operators: usize,
        /// The number of bars of lambdas, whose parameters have commas.
        bars: usize,
    }
    let mut levels = vec![Level::default()];
    let mut depth = 0;
    for (at, lexeme) in lexemes.iter().enumerate() {
        let token = lexeme.token;
        let level = levels.last_mut()?;
        match token {
            _ if token.closing().is_some() => {
                // A call or an index is an operator on the expression before it.
                let is_postfix = at > 0 && (lexemes[at - 1].token.ends_operand() || lexemes[at - 1].token.is_closing());
                level.operators += usize::from(is_postfix);
                depth += usize::from(is_postfix) + BRACKET_DEPTH;
                levels.push(Level { is_braces: token == Token::OpenBrace, ..Level::default() });
            }
            _ if token.is_closing() => {
                depth -= BRACKET_DEPTH + level.operators + level.bars;
                levels.pop();
                let level = levels.last_mut()?;
                if token == Token::CloseBrace && level.is_braces && statement_may_begin(lexemes.get(at + 1)) {
                    depth -= level.operators + level.bars;
                    *level = Level { is_braces: true, ..Level::default() };
                }
            }
            Token::Comma => {
                depth -= level.operators;
                level.operators = 0;
            }
            Token::Semicolon => {
                depth -= level.operators + level.bars;
                (level.operators, level.bars) = (0, 0);
            }
            Token::Or | Token::OrOr => {
                level.bars += 1;
                depth += 1;
            }
            Token::If | Token::For | Token::While | Token::Dot | Token::Not => {
                level.operators += 1;
                depth += 1;
            }
            _ if token.is_binary_operator() => {
                level.operators += 1;
                depth += 1;
            }
            _ => {}
        }
        let row = levels.last().map_or(0, |level| level.operators);
        if depth > MAX_DEPTH || row > MAX_ROW {
            let span = span(lexeme, file);
            let is_nested = levels.len() * BRACKET_DEPTH > MAX_DEPTH / 2;
            return Some(if is_nested {
                Diagnostic::error(Code::E0003, span, "brackets are nested too deeply")
                    .here(format!("{} brackets are open", levels.len() - 1))
                    .help("bind an inner part with `let`, or move it into a function")
            } else {
                Diagnostic::error(Code::E0003, span, "this expression has too many operators in a row")
                    .here(format!("more than {MAX_ROW} operators"))
                    .help("bind a part of it with `let`, or use a loop or a reduction such as `sum`")
            });
        }
    }
    None
}

fn unclosed(lexemes: &[Lexeme], opening: usize, end: usize, file: FileId) -> Diagnostic {
    let opening = &lexemes[opening];
    let closing = opening.token.closing().map_or("", text);
    let message = format!("unclosed `{}`", text(opening.token));
    let diagnostic = Diagnostic::error(Code::E0002, span(opening, file), message)
        .here("opened here")
        .help(format!("add the missing `{closing}`"));
    match lexemes.get(end) {
        Some(end) => diagnostic.label(span(end, file), format!("expected `{closing}` before this")),
        None => {
            let end = lexemes.last().map_or(0, |last| last.end);
            diagnostic.label(Span::new(file, end, end), format!("expected `{closing}` here"))
        }
    }
}

fn mismatched(opening: &Lexeme, closing: &Lexeme, file: FileId) -> Diagnostic {
    let expected = opening.token.closing().map_or("", text);
    let message = format!("mismatched brackets: `{}` closes `{}`", text(closing.token), text(opening.token));
    Diagnostic::error(Code::E0002, span(closing, file), message)
        .here(format!("expected `{expected}`"))
        .label(span(opening, file), "opened here")
        .help(format!("write `{expected}`, or close the brackets opened in between"))
}

fn unopened(closing: &Lexeme, file: FileId) -> Diagnostic {
    let message = format!("unexpected `{}`", text(closing.token));
    Diagnostic::error(Code::E0002, span(closing, file), message).help("remove it, or add the bracket that it closes")
}

fn span(lexeme: &Lexeme, file: FileId) -> Span {
    Span::new(file, lexeme.start, lexeme.end)
}

fn text(token: Token) -> &'static str {
    match token {
        Token::OpenParen => "(",
        Token::OpenSharding => "P(",
        Token::OpenBracket | Token::OpenDims => "[",
        Token::OpenBrace | Token::OpenSuffix => "{",
        Token::CloseParen => ")",
        Token::CloseBracket => "]",
        _ => "}",
    }
}
