//! The tokens of a text by class, for editors: highlighting, and the name at a position in a text that does not parse.

use crate::lexer::lex;
use crate::span::FileId;
use crate::token::Token;

/// The class of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenClass {
    /// A word of the language, such as `let`. A contextual word, such as `on`, may be a name instead.
    Keyword,
    /// The name of an element type, such as `f32`.
    ElementType,
    /// A name.
    Name,
    /// An integer or a float.
    Number,
    /// A string with its quotes.
    String,
    /// `// ...`
    Comment,
    /// `/// ...`
    DocComment,
    /// An operator between or before operands, `=` and the other assignments, `->`.
    Operator,
    /// An opening bracket; `P(` is one of them.
    Open,
    /// A closing bracket.
    Close,
    /// A comma.
    Comma,
    /// A dot before a name.
    Dot,
    /// Other punctuation.
    Punctuation,
    /// Text that is not a token.
    Malformed,
}

/// A token and its range of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassifiedToken {
    /// The class of the token.
    pub class: TokenClass,
    /// Offset of the first byte.
    pub start: usize,
    /// Offset after the last byte.
    pub end: usize,
}

/// The tokens and comments of a text, in order. Every text has them, whether it parses or not.
pub fn classified(source: &str) -> Vec<ClassifiedToken> {
    let lexed = lex(source, FileId::default());
    let token = |class, start, end| ClassifiedToken { class, start, end };
    let tokens = lexed.lexemes.iter().map(|lexeme| token(class(lexeme.token), lexeme.start, lexeme.end));
    let comments = lexed.comments.iter().map(|comment| (TokenClass::Comment, comment.span));
    let docs = lexed.docs.iter().map(|comment| (TokenClass::DocComment, comment.span));
    let comments = comments.chain(docs).map(|(class, span)| token(class, span.start as usize, span.end as usize));
    let mut all: Vec<ClassifiedToken> = tokens.chain(comments).collect();
    all.sort_by_key(|token| token.start);
    all
}

/// Whether a text can be the name of a value: a word that is not reserved.
pub fn is_name(text: &str) -> bool {
    let lexed = lex(text, FileId::default());
    let is_whole = |start: usize, end: usize| start == 0 && end == text.len();
    matches!(lexed.lexemes.as_slice(), [one] if one.token.is_name() && is_whole(one.start, one.end))
}

/// The words that begin statements, items and expressions, or occur inside them.
pub const KEYWORDS: &[&str] = &[
    "as", "auto", "collect", "const", "devices", "else", "explicit", "false", "fn", "for", "if", "import", "in", "let",
    "manual", "mesh", "mut", "None", "on", "step", "stream", "true", "type", "while",
];

fn class(token: Token<'_>) -> TokenClass {
    use Token::*;
    match token {
        Name(_) => TokenClass::Name,
        DType(_) => TokenClass::ElementType,
        Token::Int(_) | Float(_) => TokenClass::Number,
        Str(_) => TokenClass::String,
        Comma => TokenClass::Comma,
        Dot => TokenClass::Dot,
        Semicolon | Colon | DotDot | Ellipsis | Question | Underscore => TokenClass::Punctuation,
        Token::Malformed => TokenClass::Malformed,
        Arrow | Token::Not => TokenClass::Operator,
        token if token.closing().is_some() => TokenClass::Open,
        token if token.is_closing() => TokenClass::Close,
        token if token.is_binary_operator() || token.is_assignment() => TokenClass::Operator,
        _ => TokenClass::Keyword,
    }
}
