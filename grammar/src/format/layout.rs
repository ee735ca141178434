//! The layout of a file as a document: its tokens, with the spaces and possible line breaks between them.
//!
//! No token is added, removed or changed but commas before closing brackets. Literals and parentheses stay as they are written.

use super::classify::Meanings;
use super::doc::Doc;
use crate::ast::{ItemNode, ProgramNode};
use crate::lexer::Lexed;
use crate::token::{Lexeme, Token};
use std::ops::Range;

/// A token with its comments.
struct TokenWithComments<'s> {
    token: Token<'s>,
    text: &'s str,
    start: usize,
    /// Comments on the lines before it.
    before: Vec<Note<'s>>,
    /// The comment after it on its line.
    after: Option<&'s str>,
    /// Whether an empty line comes before it, or before its last comment.
    after_gap: bool,
}

struct Note<'s> {
    text: &'s str,
    after_gap: bool,
}

/// Lays out the tokens of a file.
pub struct TokenLayout<'s> {
    tokens: Vec<TokenWithComments<'s>>,
    /// For each opening bracket the closing one.
    mates: Vec<Option<usize>>,
    meanings: Meanings,
    /// Comments after the last token.
    end: Vec<Note<'s>>,
}

/// A part of an expression or declaration that is laid out as one.
#[derive(Clone, Copy)]
enum TokenPiece {
    Token(usize),
    /// Brackets, or the bars of a lambda, and all between.
    Bracket(usize, usize),
    Block(usize, usize),
    /// `if`, `for` or `while` with all of its blocks.
    Control(usize, usize),
}

impl TokenPiece {
    fn first(self) -> usize {
        match self {
            TokenPiece::Token(first)
            | TokenPiece::Bracket(first, _)
            | TokenPiece::Block(first, _)
            | TokenPiece::Control(first, _) => first,
        }
    }

    fn last(self) -> usize {
        match self {
            TokenPiece::Token(last)
            | TokenPiece::Bracket(_, last)
            | TokenPiece::Block(_, last)
            | TokenPiece::Control(_, last) => last,
        }
    }
}

impl<'s> TokenLayout<'s> {
    pub fn new(source: &'s str, lexed: &Lexed<'s>, meanings: Meanings) -> TokenLayout<'s> {
        let mut comments: Vec<_> = lexed.comments.iter().chain(&lexed.docs).collect();
        comments.sort_by_key(|comment| comment.span.start);
        let mut comments = comments.into_iter().peekable();
        let mut tokens: Vec<TokenWithComments<'s>> = Vec::with_capacity(lexed.lexemes.len());
        let mut end = 0;
        let mut gap_before = |start: usize, to: usize| {
            let is_gap = source[end..start].bytes().filter(|byte| *byte == b'\n').count() > 1;
            end = to;
            is_gap
        };
        let mut before = Vec::new();
        for place in 0..=lexed.lexemes.len() {
            let lexeme = lexed.lexemes.get(place);
            let start = lexeme.map_or(usize::MAX, |lexeme| lexeme.start);
            while let Some(comment) = comments.next_if(|comment| (comment.span.start as usize) < start) {
                let (from, to) = (comment.span.start as usize, comment.span.end as usize);
                let text = source[from..to].trim_end();
                let after_gap = gap_before(from, to);
                match tokens.last_mut() {
                    Some(last) if comment.trailing && before.is_empty() => last.after = Some(text),
                    Some(_) | None => before.push(Note { text, after_gap }),
                }
            }
            if let Some(&Lexeme { token, start, end }) = lexeme {
                let (before, after_gap) = (std::mem::take(&mut before), gap_before(start, end));
                tokens.push(TokenWithComments {
                    token,
                    text: &source[start..end],
                    start,
                    before,
                    after: None,
                    after_gap,
                });
            }
        }
        let mates = mates(&tokens, &meanings);
        TokenLayout { tokens, mates, meanings, end: before }
    }

    /// The whole file.
    pub fn program(mut self, program: &ProgramNode) -> Doc<'s> {
        let mut parts = Vec::new();
        if program.stage.is_some() {
            self.entry(0..3, true, &mut parts);
        }
        for item in &program.items {
            let range = self.tokens_of(item);
            let is_first = parts.is_empty();
            self.entry(range, is_first, &mut parts);
        }
        let end = std::mem::take(&mut self.end);
        let is_first = parts.is_empty();
        notes(end, is_first, &mut parts);
        Doc::concat(parts)
    }

    fn tokens_of(&self, item: &ItemNode) -> Range<usize> {
        let at = |offset: u32| self.tokens.partition_point(|token| token.start < offset as usize);
        at(item.span.start)..at(item.span.end)
    }

    /// An item or statement on separate lines, with the comments before it. `is_first` in its list: no empty line precedes it.
    fn entry(&mut self, range: Range<usize>, is_first: bool, parts: &mut Vec<Doc<'s>>) {
        let before = std::mem::take(&mut self.tokens[range.start].before);
        let is_alone = before.is_empty();
        notes(before, is_first, parts);
        let gap = self.tokens[range.start].after_gap && !(is_first && is_alone);
        parts.push(if gap { Doc::BlankLine } else { Doc::HardLine });
        parts.push(self.ended(range));
    }

    /// A declaration or statement with its semicolon, before which no comment stays.
    fn ended(&mut self, range: Range<usize>) -> Doc<'s> {
        let last = range.end - 1;
        // Comments after it are outside of its groups.
        let mut after: Vec<Doc<'s>> = self.tokens[last].after.take().map(Doc::Trailing).into_iter().collect();
        let mut parts = Vec::new();
        if self.tokens[last].token == Token::Semicolon && range.len() > 1 {
            after.splice(0..0, self.tokens[last - 1].after.take().map(Doc::Trailing));
            parts.extend([self.run(range.start..last), self.token(last)]);
        } else {
            parts.push(self.run(range));
        }
        parts.append(&mut after);
        Doc::concat(parts)
    }

    fn token(&mut self, at: usize) -> Doc<'s> {
        let token = &mut self.tokens[at];
        let before = std::mem::take(&mut token.before);
        let text = Doc::Text(token.text);
        match (before.is_empty(), token.after) {
            (true, None) => text,
            (_, after) => {
                let mut parts: Vec<Doc<'s>> = before.into_iter().map(|note| Doc::Comment(note.text)).collect();
                parts.push(text);
                parts.extend(after.map(Doc::Trailing));
                Doc::concat(parts)
            }
        }
    }

    // --- Expressions and declarations ---

    fn pieces(&self, range: Range<usize>) -> Vec<TokenPiece> {
        let mut pieces = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let piece = self.piece(at);
            debug_assert!(piece.last() < range.end, "a bracket is closed outside of its part");
            pieces.push(piece);
            at = piece.last() + 1;
        }
        pieces
    }

    fn piece(&self, at: usize) -> TokenPiece {
        match self.mates[at] {
            Some(mate) if self.is_block(at) => TokenPiece::Block(at, mate),
            Some(mate) => TokenPiece::Bracket(at, mate),
            None if self.is_control(at) => TokenPiece::Control(at, self.end_of_control(at)),
            None => TokenPiece::Token(at),
        }
    }

    fn is_block(&self, at: usize) -> bool {
        self.tokens[at].token == Token::OpenBrace && self.meanings.blocks.contains(&self.tokens[at].start)
    }

    /// Whether a word is one of a field or argument, which may be a keyword elsewhere.
    fn is_field(&self, at: usize) -> bool {
        let follows_dot = at > 0 && self.tokens[at - 1].token == Token::Dot;
        let is_named = self.tokens.get(at + 1).is_some_and(|next| {
            next.token == Token::Colon || next.token == Token::Assign && self.meanings.tight.contains(&next.start)
        });
        follows_dot || is_named
    }

    fn is_control(&self, at: usize) -> bool {
        matches!(self.tokens[at].token, Token::If | Token::For | Token::While) && !self.is_field(at)
    }

    /// The last token of the `if` or loop that begins here.
    fn end_of_control(&self, at: usize) -> usize {
        let mut at = at;
        loop {
            let open = self.next_block(at);
            let Some(close) = self.mates[open] else { return open };
            match self.tokens.get(close + 1) {
                Some(next) if next.token == Token::Else && self.tokens[at].token == Token::If => at = close + 2,
                Some(_) | None => return close,
            }
            if self.is_block(at) {
                return self.mates[at].unwrap_or(at);
            }
        }
    }

    /// The first block from here on that is in no other brackets.
    fn next_block(&self, at: usize) -> usize {
        let mut at = at;
        while !self.is_block(at) {
            at = self.mates[at].unwrap_or(at) + 1;
        }
        at
    }

    /// Tokens in a row: a declaration, statement, operand or item of a list.
    fn run(&mut self, range: Range<usize>) -> Doc<'s> {
        let pieces = self.pieces(range);
        self.run_of(&pieces)
    }

    fn run_of(&mut self, pieces: &[TokenPiece]) -> Doc<'s> {
        let is_assignment = |piece: &TokenPiece| match *piece {
            TokenPiece::Token(at) => self.tokens[at].token.is_assignment() && !self.is_tight(at),
            TokenPiece::Bracket(..) | TokenPiece::Block(..) | TokenPiece::Control(..) => false,
        };
        if let Some(at) = pieces.iter().position(is_assignment) {
            return self.split_behind(pieces, at);
        }
        let is_lambda = |piece: &TokenPiece| match *piece {
            TokenPiece::Bracket(open, _) => self.tokens[open].token == Token::Or,
            TokenPiece::Token(at) => self.is_empty_lambda(at),
            TokenPiece::Block(..) | TokenPiece::Control(..) => false,
        };
        if let Some(at) = pieces.iter().position(is_lambda) {
            return self.split_behind(pieces, at);
        }
        if self.is_glued(pieces) {
            return self.words(pieces);
        }
        let levels = pieces.iter().filter_map(|piece| self.level(piece));
        match levels.min() {
            Some(level) => self.chain(pieces, level),
            None => self.words(pieces),
        }
    }

    /// Pieces up to this one without line breaks of their own, and the others as a run.
    fn split_behind(&mut self, pieces: &[TokenPiece], at: usize) -> Doc<'s> {
        let (head, rest) = pieces.split_at(at + 1);
        let is_spaced =
            matches!((head.last(), rest.first()), (Some(&a), Some(&b)) if self.is_spaced(a.last(), b.first()));
        let head = self.words(head);
        let rest = self.run_of(rest);
        Doc::concat(vec![head, Doc::Text(if is_spaced { " " } else { "" }), rest])
    }

    /// The level of an operator at which a chain may be broken. Before and after `//` a line break could begin a comment, and powers are short.
    fn level(&self, piece: &TokenPiece) -> Option<u8> {
        let TokenPiece::Token(at) = *piece else { return None };
        let level = self.meanings.operators.get(&self.tokens[at].start).copied()?;
        (self.tokens[at].token != Token::SlashSlash && self.tokens[at].token != Token::StarStar && !self.is_tight(at))
            .then_some(level)
    }

    /// Whether pieces are two operands, one token and one that ends in brackets, which are broken instead of the line around the operator.
    fn is_glued(&self, pieces: &[TokenPiece]) -> bool {
        let mut operators = (0..pieces.len()).filter(|&at| self.level(&pieces[at]).is_some());
        let (Some(at), None) = (operators.next(), operators.next()) else { return false };
        let is_token = |operand: &[TokenPiece]| matches!(operand, [TokenPiece::Token(_)]);
        let ends_in_brackets = |operand: &[TokenPiece]| matches!(operand, [.., TokenPiece::Bracket(..)]);
        let (left, right) = (&pieces[..at], &pieces[at + 1..]);
        is_token(left) && ends_in_brackets(right) || ends_in_brackets(left) && is_token(right)
    }

    /// Operands with operators of one level between them.
    fn chain(&mut self, pieces: &[TokenPiece], level: u8) -> Doc<'s> {
        let mut parts = Vec::new();
        let mut rest = Vec::new();
        let mut start = 0;
        for at in (0..pieces.len()).filter(|&at| self.level(&pieces[at]) == Some(level)).collect::<Vec<_>>() {
            let operand = self.run_of(&pieces[start..at]);
            if parts.is_empty() {
                parts.push(operand)
            } else {
                rest.push(operand)
            }
            rest.extend([Doc::Line, self.token(pieces[at].first()), Doc::Text(" ")]);
            start = at + 1;
        }
        rest.push(self.run_of(&pieces[start..]));
        parts.push(Doc::nest(rest));
        Doc::group(parts)
    }

    /// Pieces with the spaces between them.
    fn words(&mut self, pieces: &[TokenPiece]) -> Doc<'s> {
        let mut parts = Vec::with_capacity(2 * pieces.len());
        for (place, &piece) in pieces.iter().enumerate() {
            let previous = place.checked_sub(1).map(|before| pieces[before].last());
            if previous.is_some_and(|previous| self.is_spaced(previous, piece.first())) {
                parts.push(Doc::Text(" "));
            }
            parts.push(match piece {
                TokenPiece::Token(at) => self.token(at),
                TokenPiece::Bracket(open, close) => {
                    let is_call = previous.is_some_and(|previous| self.ends_operand(previous));
                    let bracket = self.bracket(open, close, is_call);
                    // A line break after `// (` would begin a comment.
                    let is_divisor = previous.is_some_and(|at| self.tokens[at].token == Token::SlashSlash);
                    if is_divisor { Doc::flat(vec![bracket]) } else { bracket }
                }
                TokenPiece::Block(open, close) => Doc::group(self.block(open, close)),
                TokenPiece::Control(first, last) => self.control(first, last),
            });
        }
        Doc::concat(parts)
    }

    /// `if` with all its branches, which are on one line or all broken, or a loop.
    fn control(&mut self, first: usize, last: usize) -> Doc<'s> {
        let mut parts = Vec::new();
        let mut at = first;
        while at <= last {
            if !self.is_block(at) {
                let open = self.next_block(at);
                let words = if self.tokens[at].token == Token::Else { 2 } else { 1 };
                let words = if self.is_block(at + 1) { 1 } else { words };
                for word in at..at + words {
                    parts.extend([self.token(word), Doc::Text(" ")]);
                }
                if at + words < open {
                    parts.extend([self.run(at + words..open), Doc::Text(" ")]);
                }
                at = open;
            }
            let close = self.mates[at].unwrap_or(at);
            parts.append(&mut self.block(at, close));
            at = close + 1;
            if at <= last {
                parts.push(Doc::Text(" "));
            }
        }
        Doc::group(parts)
    }

    // --- Brackets ---

    /// A list in brackets. A call has no single item in parentheses that a comma would make a tuple.
    fn bracket(&mut self, open: usize, close: usize, is_call: bool) -> Doc<'s> {
        let kind = self.tokens[open].token;
        let items = self.items(open, close);
        let has_notes = !self.tokens[close].before.is_empty() || self.tokens[open].after.is_some();
        if items.is_empty() && !has_notes {
            return Doc::concat(vec![self.token(open), self.token(close)]);
        }
        let is_braces = kind == Token::OpenBrace;
        let one = matches!(items[..], [(_, Some(_))]) && (is_braces || kind == Token::OpenParen && !is_call);
        if matches!(kind, Token::OpenSuffix | Token::Or | Token::Less) {
            return self.flat(open, close, &items);
        }
        if let Some(texts) = self.literals(kind, &items).filter(|_| !has_notes) {
            let inner = vec![Doc::SoftLine, Doc::Fill(texts), Doc::IfBroken(",")];
            return Doc::group(vec![self.token(open), Doc::nest(inner), Doc::SoftLine, self.token(close)]);
        }
        if let [(item, None)] = &items[..]
            && !has_notes
            && !is_braces
            && self.is_hugged(item)
        {
            return Doc::concat(vec![self.token(open), self.run(item.clone()), self.token(close)]);
        }
        let is_last_block = items.len() > 1 && items.last().is_some_and(|(item, _)| self.ends_in_block(item));
        let tuple = kind == Token::OpenParen && !is_call && matches!(items[..], [(_, None)]);
        let open_ended = items.last().is_some_and(|(item, _)| self.tokens[item.end - 1].token == Token::Question);
        let may_end_in_comma = !tuple && !open_ended && !items.is_empty();
        let count = items.len();
        let mut inner = Vec::new();
        let mut breaks_before_last = has_notes;
        for (place, (item, comma)) in items.into_iter().enumerate() {
            let is_last = place + 1 == count;
            let after = self.tokens[item.end - 1].after.take();
            let doc = self.run(item);
            breaks_before_last |= !is_last && doc.breaks() || after.is_some();
            let separator = match comma {
                Some(comma) if !is_last || one => self.token(comma),
                Some(comma) => self.without_text(comma, if may_end_in_comma { "," } else { "" }),
                None => Doc::IfBroken(if may_end_in_comma { "," } else { "" }),
            };
            breaks_before_last |= separator.breaks();
            inner.push(vec![doc, separator]);
            inner[place].extend(after.map(Doc::Trailing));
        }
        let end: Vec<Doc<'s>> =
            std::mem::take(&mut self.tokens[close].before).into_iter().map(|note| Doc::Comment(note.text)).collect();
        let (opening, closing) = (self.token(open), self.token(close));
        if is_last_block && !breaks_before_last && inner.last().is_some_and(|last| last[0].breaks()) {
            return hugged(opening, inner, closing);
        }
        let edge = || if is_braces { Doc::Line } else { Doc::SoftLine };
        let mut nested = vec![edge()];
        for (place, item) in inner.into_iter().enumerate() {
            if place > 0 {
                nested.push(Doc::Line);
            }
            nested.extend(item);
        }
        nested.extend(end);
        Doc::group(vec![opening, Doc::nest(nested), edge(), closing])
    }

    /// A token without its text, or with another one: a comma that the layout decides.
    fn without_text(&mut self, at: usize, broken: &'static str) -> Doc<'s> {
        let token = &mut self.tokens[at];
        let mut parts: Vec<Doc<'s>> =
            std::mem::take(&mut token.before).into_iter().map(|note| Doc::Comment(note.text)).collect();
        parts.insert(0, Doc::IfBroken(broken));
        parts.extend(token.after.take().map(Doc::Trailing));
        Doc::concat(parts)
    }

    /// The items between brackets, each with the comma after it.
    fn items(&self, open: usize, close: usize) -> Vec<(Range<usize>, Option<usize>)> {
        let mut items = Vec::new();
        let (mut start, mut at) = (open + 1, open + 1);
        while at < close {
            if self.tokens[at].token == Token::Comma {
                items.push((start..at, Some(at)));
                start = at + 1;
            }
            at = self.mates[at].unwrap_or(at) + 1;
        }
        if start < close {
            items.push((start..close, None));
        }
        items
    }

    /// A list on one line.
    fn flat(&mut self, open: usize, close: usize, items: &[(Range<usize>, Option<usize>)]) -> Doc<'s> {
        let mut parts = vec![self.token(open)];
        for (place, (item, comma)) in items.iter().enumerate() {
            parts.push(self.run(item.clone()));
            match *comma {
                Some(comma) if place + 1 < items.len() => parts.extend([self.token(comma), Doc::Text(" ")]),
                Some(comma) => parts.push(self.without_text(comma, "")),
                None => {}
            }
        }
        parts.push(self.token(close));
        Doc::concat(parts)
    }

    /// The signs and digits of a list of numbers, without comments.
    fn literals(&self, kind: Token<'_>, items: &[(Range<usize>, Option<usize>)]) -> Option<Vec<[&'s str; 2]>> {
        let is_plain = |at: usize| self.tokens[at].before.is_empty() && self.tokens[at].after.is_none();
        let literal = |(item, comma): &(Range<usize>, Option<usize>)| {
            let (sign, at) = match item.len() {
                1 => ("", item.start),
                2 if self.tokens[item.start].token == Token::Minus => ("-", item.start + 1),
                _ => return None,
            };
            let is_number =
                matches!(self.tokens[at].token, Token::Int(_) | Token::Float(_) | Token::True | Token::False);
            let all_plain = item.clone().chain(*comma).all(is_plain);
            (is_number && all_plain).then_some([sign, self.tokens[at].text])
        };
        if kind != Token::OpenBracket || items.len() < 2 {
            return None;
        }
        items.iter().map(literal).collect()
    }

    /// Whether a single item stays next to its brackets: other brackets, or a block, `if`, loop or lambda.
    fn is_hugged(&self, item: &Range<usize>) -> bool {
        let pieces = self.pieces(item.clone());
        let has_notes = !self.tokens[item.start].before.is_empty() || self.tokens[item.end - 1].after.is_some();
        !has_notes
            && match pieces[..] {
                [TokenPiece::Bracket(open, _)] => self.tokens[open].token != Token::Or,
                [TokenPiece::Block(..) | TokenPiece::Control(..)] => true,
                [.., TokenPiece::Block(..) | TokenPiece::Control(..)] => self.ends_in_block(item),
                _ => false,
            }
    }

    /// Whether an item is a lambda whose value is a block, `if` or loop.
    fn ends_in_block(&self, item: &Range<usize>) -> bool {
        match self.pieces(item.clone())[..] {
            [.., bars, TokenPiece::Block(..) | TokenPiece::Control(..)] => {
                let first = bars.first();
                self.tokens[first].token == Token::Or && self.mates[first].is_some() || self.is_empty_lambda(first)
            }
            _ => false,
        }
    }

    // --- Blocks ---

    /// A block of one statement may be on one line; others have a line for each.
    fn block(&mut self, open: usize, close: usize) -> Vec<Doc<'s>> {
        let statements = self.statements(open + 1..close);
        let opening = self.token(open);
        let mut inner = Vec::new();
        let is_short = matches!(&statements[..], [one] if self.tokens[one.start].before.is_empty())
            && self.tokens[close].before.is_empty();
        if is_short {
            let statement = self.ended(statements[0].clone());
            return vec![opening, Doc::nest(vec![Doc::Line, statement]), Doc::Line, self.token(close)];
        }
        for statement in statements {
            let is_first = inner.is_empty();
            self.entry(statement, is_first, &mut inner);
        }
        let end = std::mem::take(&mut self.tokens[close].before);
        let is_first = inner.is_empty();
        notes(end, is_first, &mut inner);
        let is_empty = inner.is_empty();
        let mut parts = vec![opening, Doc::nest(inner)];
        if !is_empty {
            parts.push(Doc::HardLine);
        }
        parts.push(self.token(close));
        parts
    }

    /// The statements of a block, each with its semicolon.
    fn statements(&self, range: Range<usize>) -> Vec<Range<usize>> {
        let mut statements = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let start = at;
            if self.is_control(at) || self.is_block(at) {
                at = self.piece(at).last() + 1;
                at += usize::from(at < range.end && self.tokens[at].token == Token::Semicolon);
            } else {
                while at < range.end && self.tokens[at].token != Token::Semicolon {
                    at = self.piece(at).last() + 1;
                }
                at = range.end.min(at + 1);
            }
            statements.push(start..at);
        }
        statements
    }

    // --- Spaces ---

    fn is_tight(&self, at: usize) -> bool {
        self.meanings.tight.contains(&self.tokens[at].start)
    }

    fn is_operator(&self, at: usize) -> bool {
        self.meanings.operators.contains_key(&self.tokens[at].start)
    }

    /// `||` before the value of a lambda.
    fn is_empty_lambda(&self, at: usize) -> bool {
        self.tokens[at].token == Token::OrOr && !self.is_operator(at)
    }

    /// Whether an operand ends with this token, so that a parenthesis after it begins arguments.
    fn ends_operand(&self, at: usize) -> bool {
        let token = &self.tokens[at];
        let before = |steps: usize| at.checked_sub(steps).map(|at| self.tokens[at].token);
        let is_keyword = self.meanings.keywords.contains(&token.start)
            || token.token == Token::Devices && before(1) == Some(Token::CloseParen)
            // The name of a mesh, before its axes.
            || before(1) == Some(Token::Mesh) && before(2) != Some(Token::Dot);
        !is_keyword
            && (token.token.ends_operand()
                || token.token == Token::CloseBrace
                || token.token == Token::Manual
                || before(1) == Some(Token::Dot))
    }

    /// Whether a space separates two neighbours.
    fn is_spaced(&self, left: usize, right: usize) -> bool {
        let (before, after) = (self.tokens[left].token, self.tokens[right].token);
        let slice = |at: usize| self.meanings.slices.get(&self.tokens[at].start);
        if let (Token::Comma | Token::Semicolon, _) | (_, Token::Comma | Token::Semicolon) = (before, after) {
            return before == Token::Comma;
        }
        if self.is_tight(left) || self.is_tight(right) {
            return false;
        }
        match (slice(left), slice(right)) {
            (Some(_), Some(_)) => return false,
            (Some(is_spaced), None) | (None, Some(is_spaced)) => return *is_spaced,
            (None, None) => {}
        }
        // `{U:X}`
        if before == Token::Colon && left >= 2 && self.tokens[left - 2].token == Token::OpenSuffix {
            return false;
        }
        let is_point = |token: Token<'_>| matches!(token, Token::Dot | Token::DotDot);
        if is_point(before) || is_point(after) || after == Token::Colon {
            return false;
        }
        let is_sign = matches!(before, Token::Minus | Token::Not) && !self.is_operator(left);
        if is_sign {
            return false;
        }
        if self.is_operator(left) || self.is_operator(right) {
            return true;
        }
        let is_angle = |at: usize| self.meanings.angles.contains_key(&self.tokens[at].start);
        match after {
            Token::OpenDims | Token::OpenSuffix => false,
            Token::Less if is_angle(right) => false,
            Token::OpenParen if before == Token::Greater => false,
            Token::OpenParen | Token::OpenBracket => !self.ends_operand(left),
            _ => true,
        }
    }
}

/// The closing bracket of each opening one, also of bars and angles.
fn mates(tokens: &[TokenWithComments<'_>], meanings: &Meanings) -> Vec<Option<usize>> {
    let mut mates = vec![None; tokens.len()];
    let mut open: Vec<usize> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let closes_angle = |open: usize| meanings.angles.get(&tokens[open].start) == Some(&token.start);
        let closes = match open.last() {
            Some(&last) if token.token.is_closing() => tokens[last].token.closing() == Some(token.token),
            Some(&last) if token.token == Token::Or => {
                tokens[last].token == Token::Or && !meanings.operators.contains_key(&token.start)
            }
            Some(&last) if token.token == Token::Greater => closes_angle(last),
            Some(_) | None => false,
        };
        let opens = token.token.closing().is_some()
            || token.token == Token::Or && !meanings.operators.contains_key(&token.start)
            || meanings.angles.contains_key(&token.start);
        if closes {
            mates[open.pop().unwrap_or(at)] = Some(at);
        } else if opens {
            open.push(at);
        }
    }
    mates
}

/// Comments on lines of their own, with the empty lines before them.
fn notes<'s>(notes: Vec<Note<'s>>, is_first: bool, parts: &mut Vec<Doc<'s>>) {
    for (place, note) in notes.into_iter().enumerate() {
        if note.after_gap && !(is_first && place == 0) {
            parts.push(Doc::BlankLine);
        }
        parts.push(Doc::Comment(note.text));
    }
}

/// A list whose last item ends in a block of several lines, next to its brackets.
fn hugged<'s>(opening: Doc<'s>, items: Vec<Vec<Doc<'s>>>, closing: Doc<'s>) -> Doc<'s> {
    let mut parts = vec![opening];
    let count = items.len();
    for (place, mut item) in items.into_iter().enumerate() {
        let is_last = place + 1 == count;
        if is_last {
            item.truncate(1);
        }
        parts.extend(item);
        if !is_last {
            parts.push(Doc::Text(" "));
        }
    }
    parts.push(closing);
    Doc::concat(parts)
}
