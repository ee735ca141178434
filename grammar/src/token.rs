//! The tokens of the language. `lexer.rs` turns source text into a stream of these.
//!
//! A few words have a meaning only in certain positions (`on`, `as`, `collect`, `devices`, `auto`, `explicit`, `step`, `stream`). They are
//! separate tokens here, and the grammar accepts them as names everywhere else.

use logos::Logos;

use crate::ast::DTypeName;

/// The letters of the suffixes of types: `f32[4]{U:Y}`.
pub const TYPE_SUFFIXES: [char; 4] = ['U', 'R', 'V', 'T'];

/// The reason why text is not a token.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Malformed {
    /// A character that begins no token.
    #[default]
    Character,
    /// `12abc`, `1.5x`, `0xfg`
    Number,
    /// More than 64 bits.
    TooLarge,
    /// No closing quote on the line.
    String,
}

/// One token. Numbers and strings keep their text, so that a token borrows from the source and is cheap to copy.
#[derive(Logos, Clone, Copy, Debug, PartialEq)]
#[logos(skip r"[ \t\r\n\f]+", error = Malformed)]
pub enum Token<'s> {
    #[token("as")]
    As,
    #[token("auto")]
    Auto,
    #[token("collect")]
    Collect,
    #[token("const")]
    Const,
    #[token("devices")]
    Devices,
    #[token("else")]
    Else,
    #[token("explicit")]
    Explicit,
    #[token("false")]
    False,
    #[token("fn")]
    Fn,
    #[token("for")]
    For,
    #[token("if")]
    If,
    #[token("import")]
    Import,
    #[token("in")]
    In,
    #[token("let")]
    Let,
    #[token("manual")]
    Manual,
    #[token("mesh")]
    Mesh,
    #[token("mut")]
    Mut,
    #[token("None")]
    None,
    #[token("on")]
    On,
    #[token("step")]
    Step,
    #[token("stream")]
    Stream,
    /// `test` before the name of a test; the lexer recognizes it by its context.
    Test,
    #[token("true")]
    True,
    #[token("type")]
    Type,
    #[token("while")]
    While,
    #[token("_", priority = 10)]
    Underscore,

    /// Placeholder: `word` returns one of the next two tokens.
    #[regex("[A-Za-z_][A-Za-z0-9_]*", word, priority = 2)]
    Word,
    DType(DTypeName),
    Name(&'s str),
    #[regex("[0-9]", integer)]
    Int(u64),
    /// The text, with underscores; may begin or end with the point.
    #[regex(r"([0-9][0-9_]*\.[0-9][0-9_]*|\.[0-9][0-9_]*)([eE][+-]?[0-9][0-9_]*)?", float)]
    #[regex(r"[0-9][0-9_]*\.?[eE][+-]?[0-9][0-9_]*", float)]
    Float(&'s str),
    /// With its quotes and escapes.
    #[regex(r#""([^"\\\n]|\\[^\n])*""#, |lexer| lexer.slice())]
    #[token("\"", unterminated)]
    Str(&'s str),

    #[token("(")]
    OpenParen,
    #[token(")")]
    CloseParen,
    #[token("[")]
    OpenBracket,
    #[token("]")]
    CloseBracket,
    #[token("{")]
    OpenBrace,
    #[token("}")]
    CloseBrace,
    /// `P(`, which always begins a sharding.
    #[token("P(")]
    OpenSharding,
    /// The bracket of `f32[4]`, which contains sizes, not indices.
    OpenDims,
    /// The brace of `f32[4]{U:Y}`; the lexer recognizes it by its context.
    OpenSuffix,

    #[token(",")]
    Comma,
    #[token(";")]
    Semicolon,
    #[token(":")]
    Colon,
    #[token("->")]
    Arrow,
    #[token(".")]
    Dot,
    #[token("..")]
    DotDot,
    #[token("...")]
    Ellipsis,
    #[token("?")]
    Question,

    #[token("||")]
    OrOr,
    #[token("&&")]
    AndAnd,
    #[token("==")]
    EqEq,
    #[token("!=")]
    NotEq,
    #[token("<")]
    Less,
    #[token("<=")]
    LessEq,
    #[token(">")]
    Greater,
    #[token(">=")]
    GreaterEq,
    #[token("|")]
    Or,
    #[token("^")]
    Xor,
    #[token("&")]
    And,
    #[token("<<")]
    ShiftLeft,
    #[token(">>")]
    ShiftRight,
    #[token("+")]
    Plus,
    #[token("-")]
    Minus,
    #[token("*")]
    Star,
    #[token("/")]
    Slash,
    /// Also the beginning of a comment; see `lexer.rs`.
    #[token("//")]
    SlashSlash,
    #[token("%")]
    Percent,
    #[token("@")]
    At,
    #[token("!")]
    Not,
    #[token("**")]
    StarStar,

    #[token("=")]
    Assign,
    #[token("+=")]
    PlusAssign,
    #[token("-=")]
    MinusAssign,
    #[token("*=")]
    StarAssign,
    #[token("/=")]
    SlashAssign,
    #[token("//=")]
    SlashSlashAssign,
    #[token("%=")]
    PercentAssign,
    #[token("@=")]
    AtAssign,
    #[token("**=")]
    StarStarAssign,
    #[token("&=")]
    AndAssign,
    #[token("|=")]
    OrAssign,
    #[token("^=")]
    XorAssign,
    #[token("<<=")]
    ShiftLeftAssign,
    #[token(">>=")]
    ShiftRightAssign,

    /// Text that has been reported; no rule of the grammar accepts it, so parsing stops there.
    Malformed,
}

/// A token and its range of bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lexeme<'s> {
    pub token: Token<'s>,
    pub start: usize,
    pub end: usize,
}

/// The element type of this name, or a name.
fn word<'s>(lexer: &mut logos::Lexer<'s, Token<'s>>) -> Token<'s> {
    let word = lexer.slice();
    DTypeName::named(word).map_or(Token::Name(word), Token::DType)
}

/// The rest of an integer after its first digit: `12`, `1_000`, `0xff`, `0o17`, `0b101`.
fn integer<'s>(lexer: &mut logos::Lexer<'s, Token<'s>>) -> Result<u64, Malformed> {
    let word = word_length(lexer.remainder());
    lexer.bump(word);
    let digits = lexer.slice().replace('_', "");
    let (digits, radix) = match digits.get(..2) {
        Some("0x" | "0X") => (&digits[2..], 16),
        Some("0o" | "0O") => (&digits[2..], 8),
        Some("0b" | "0B") => (&digits[2..], 2),
        _ => (digits.as_str(), 10),
    };
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err(Malformed::Number);
    }
    u64::from_str_radix(digits, radix).map_err(|_| Malformed::TooLarge)
}

/// A float may not continue into a word: `1.5x` is not a number.
fn float<'s>(lexer: &mut logos::Lexer<'s, Token<'s>>) -> Result<&'s str, Malformed> {
    let word = word_length(lexer.remainder());
    if word == 0 {
        return Ok(lexer.slice());
    }
    lexer.bump(word);
    Err(Malformed::Number)
}

/// Reached only if no closing quote follows: takes the rest of the line.
fn unterminated<'s>(lexer: &mut logos::Lexer<'s, Token<'s>>) -> Result<&'s str, Malformed> {
    let rest = lexer.remainder();
    lexer.bump(rest.find('\n').unwrap_or(rest.len()));
    Err(Malformed::String)
}

/// The number of bytes of letters, digits and underscores at the start of `text`.
fn word_length(text: &str) -> usize {
    text.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count()
}

impl Token<'_> {
    /// Whether an expression may end with this token, so that an operator may follow it. A closing brace is excluded: a statement
    /// usually ends there.
    pub fn ends_operand(self) -> bool {
        use Token::*;
        self.is_name()
            || matches!(
                self,
                DType(_) | Int(_) | Float(_) | Str(_) | True | False | None | Underscore | CloseParen | CloseBracket
            )
    }

    /// Whether an expression may begin with this token. Blocks, `if`, loops and lambdas are excluded: as a matter of style none of them may
    /// be the right side of an operator without parentheses.
    pub fn begins_operand(self) -> bool {
        use Token::*;
        self.is_name()
            || matches!(self, DType(_) | Int(_) | Float(_) | Str(_) | True | False | None)
            || matches!(self, OpenParen | OpenBracket | OpenSharding | Minus | Not)
    }

    /// Whether this token can be the name of something, contextual words included.
    pub fn is_name(self) -> bool {
        use Token::*;
        matches!(self, Name(_) | As | Auto | Collect | Devices | Explicit | On | Step | Stream)
    }

    /// Whether the token is an operator between two operands.
    pub fn is_binary_operator(self) -> bool {
        use Token::*;
        self.is_comparison()
            || matches!(self, OrOr | AndAnd | Or | Xor | And | ShiftLeft | ShiftRight | Plus | Minus)
            || matches!(self, Star | Slash | SlashSlash | Percent | At | StarStar)
    }

    pub fn is_comparison(self) -> bool {
        use Token::*;
        matches!(self, EqEq | NotEq | Less | LessEq | Greater | GreaterEq)
    }

    /// `=`, `+=` and the other assignment operators.
    pub fn is_assignment(self) -> bool {
        use Token::*;
        matches!(self, Assign | PlusAssign | MinusAssign | StarAssign | SlashAssign | SlashSlashAssign | PercentAssign)
            || matches!(self, AtAssign | StarStarAssign | AndAssign | OrAssign | XorAssign)
            || matches!(self, ShiftLeftAssign | ShiftRightAssign)
    }

    /// The bracket that closes this one.
    pub fn closing(self) -> Option<Token<'static>> {
        match self {
            Token::OpenParen | Token::OpenSharding => Some(Token::CloseParen),
            Token::OpenBracket | Token::OpenDims => Some(Token::CloseBracket),
            Token::OpenBrace | Token::OpenSuffix => Some(Token::CloseBrace),
            _ => Option::None,
        }
    }

    pub fn is_closing(self) -> bool {
        matches!(self, Token::CloseParen | Token::CloseBracket | Token::CloseBrace)
    }

    /// Whether the word is reserved, so that it cannot name a value.
    pub fn is_reserved_word(self) -> bool {
        use Token::*;
        matches!(self, Const | Else | False | Fn | For | If | Import | In | Let | Manual | Mesh | Mut | None | True)
            || matches!(self, Type | While | DType(_))
    }

    /// Whether the word can only begin an item.
    pub fn begins_item(self) -> bool {
        matches!(
            self,
            Token::Mesh | Token::Const | Token::Type | Token::Import | Token::Fn | Token::Manual | Token::Test
        )
    }
}
