//! Explains the position at which the parser stopped, in terms of the program.
//!
//! The parser knows which tokens were possible. `Expected` turns them into words ("an expression", "`;`"). Common errors, above all habits
//! from Python, C or Rust, get a specific message or help.

use std::fmt::{self, Display};

use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::habits;
use crate::sentences::expected;
use crate::span::{FileId, Span};
use crate::token::{Lexeme, Token};

/// The repair after an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// The item is complete before the token.
    EndItem,
    /// A `;` is missing before the token.
    InsertSemicolon,
    /// The statement around the token cannot be parsed.
    RemoveStatement,
}

/// The position at which the parser stopped.
pub struct ParserStop<'a, 's> {
    /// The tokens of the item.
    pub lexemes: &'a [Lexeme<'s>],
    /// The index of the token that does not fit; the number of tokens if it is the end.
    pub at: usize,
    pub expected: Expected,
    pub source: &'s str,
    pub file: FileId,
}

impl<'s> ParserStop<'_, 's> {
    /// The report and the repair. The report is left out if an earlier one covers it.
    pub fn explain(&self) -> (Option<Diagnostic>, Repair) {
        match self.found() {
            Some(Token::Malformed) => (None, Repair::RemoveStatement),
            // Inserted for unclosed brackets, which have been reported.
            Some(Token::CloseBrace) if self.span(self.at).start == self.span(self.at).end => {
                (None, Repair::RemoveStatement)
            }
            _ if self.expected.is_nothing() => (Some(self.behind_item()), Repair::EndItem),
            _ if self.lacks_semicolon() => (Some(self.missing_semicolon()), Repair::InsertSemicolon),
            _ => (Some(self.unexpected()), Repair::RemoveStatement),
        }
    }

    fn token(&self, at: usize) -> Option<Token<'s>> {
        self.lexemes.get(at).map(|lexeme| lexeme.token)
    }

    fn found(&self) -> Option<Token<'s>> {
        self.token(self.at)
    }

    /// The token at `distance` before the one that was found.
    fn before(&self, distance: usize) -> Option<Token<'s>> {
        self.token(self.at.checked_sub(distance)?)
    }

    fn span(&self, at: usize) -> Span {
        let lexeme = &self.lexemes[at];
        Span::new(self.file, lexeme.start, lexeme.end)
    }

    /// The position after the last valid token.
    fn end_of_previous(&self) -> Span {
        let end = self.at.checked_sub(1).map_or(0, |previous| self.lexemes[previous].end);
        Span::new(self.file, end, end)
    }

    fn place(&self) -> Span {
        if self.at < self.lexemes.len() { self.span(self.at) } else { self.end_of_previous() }
    }

    fn is_on_new_line(&self) -> bool {
        match (self.at.checked_sub(1).map(|previous| self.lexemes[previous]), self.lexemes.get(self.at)) {
            (Some(previous), Some(found)) => self.source[previous.end..found.start].contains('\n'),
            _ => true,
        }
    }

    fn text(&self, at: usize) -> &'s str {
        &self.source[self.lexemes[at].start..self.lexemes[at].end]
    }

    /// The token that was found, in words.
    fn found_words(&self) -> String {
        match self.found() {
            None if self.source[self.end_of_previous().end as usize..].trim().is_empty() => {
                "the end of the file".to_string()
            }
            None => "the end of the item".to_string(),
            Some(Token::Name(name)) => format!("the name `{name}`"),
            Some(Token::DType(dtype)) => format!("the type `{}`", dtype.name()),
            Some(Token::Int(_) | Token::Float(_)) => format!("the number `{}`", self.text(self.at)),
            Some(Token::Str(_)) => "a string".to_string(),
            Some(_) => format!("`{}`", self.text(self.at)),
        }
    }

    // --- A token after a complete item ---

    fn behind_item(&self) -> Diagnostic {
        let found = self.found_words();
        let error = |message: String| Diagnostic::error(Code::E0002, self.place(), message);
        match self.found() {
            Some(Token::Semicolon) => {
                error("unexpected `;`".to_string()).help("remove it: a function needs no `;` after its body")
            }
            Some(token) if begins_statement(token) => error(expected("an item", &found))
                .help("write statements in a function, such as `fn main() { ... }`, and constants as `const N = 4;`"),
            _ => {
                error(expected("an item", &found)).help("an item begins with `fn`, `mesh`, `const`, `type` or `import`")
            }
        }
    }

    // --- A statement without its end ---

    /// Whether only a `;` is missing: it is possible here, and the token found begins a new statement.
    fn lacks_semicolon(&self) -> bool {
        if !self.expected.has(";") || self.foreign_word().is_some() {
            return false;
        }
        match self.found() {
            None | Some(Token::CloseBrace | Token::Let | Token::For | Token::While | Token::If) => true,
            Some(token) => self.is_on_new_line() && begins_statement(token),
        }
    }

    fn missing_semicolon(&self) -> Diagnostic {
        let diagnostic = Diagnostic::error(Code::E0002, self.end_of_previous(), "missing `;`");
        match self.found() {
            Some(Token::CloseBrace) => diagnostic
                .here("this statement needs a `;`")
                .help("`let` and assignments end with `;`; only the value of a block does not"),
            Some(_) => diagnostic.here(format!("expected `;` before {}", self.found_words())),
            None => diagnostic.here("expected `;`"),
        }
    }

    // --- Everything else ---

    fn unexpected(&self) -> Diagnostic {
        let error = |message: String| Diagnostic::error(Code::E0002, self.place(), message);
        if let Some(diagnostic) = self.reserved_word() {
            return diagnostic;
        }
        match self.found() {
            Some(found) if found.is_comparison() && self.expected.has("&&") && !self.expected.has("==") => {
                return error("comparisons do not chain".to_string())
                    .here("a second comparison")
                    .help("write `a < b && b < c`, or parenthesise one comparison");
            }
            Some(Token::Else) => {
                return error("`else` without an `if`".to_string())
                    .help("write `else` directly after the `}` of its `if`, without a `;` in between");
            }
            Some(token) if token.begins_item() && self.expected.has("let") => {
                let what = match token {
                    Token::Fn | Token::Manual => "a function",
                    Token::Const => "a constant",
                    Token::Mesh => "a mesh",
                    Token::Import => "an import",
                    _ => "a type",
                };
                return error(format!("{what} cannot be declared inside a function"))
                    .help("move it out of the function, or use `let`, or a lambda such as `|x| ...`");
            }
            _ => {}
        }
        let mut message = expected(&self.expected, self.found_words());
        if self.found().is_none() && self.at > 0 {
            message = format!("expected {} before {}", self.expected, self.found_words());
        }
        let diagnostic = error(message);
        match self.foreign_word().or_else(|| self.help()) {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        }
    }

    /// A word of the language in the position of a user's name.
    fn reserved_word(&self) -> Option<Diagnostic> {
        let found = self.found()?;
        // `mesh` may be the name of an argument, so the token after it is the error.
        if let Some(at) = self.at.checked_sub(1)
            && self.lexemes[at].token.is_reserved_word()
            && self.expected.0 == ["="]
            && found != Token::Assign
            && self.token(0) != Some(Token::Let)
        {
            let message = expected("a name", format_args!("the keyword `{}`", self.text(at)));
            return Some(Diagnostic::error(Code::E0002, self.span(at), message));
        }
        let in_expression = self.expected.is_expression() && matches!(found, Token::Mesh | Token::Type | Token::Manual);
        let as_name = self.expected.has("name") && !self.expected.is_expression() && !self.expected.has("dtype");
        if found == Token::OpenSharding && as_name {
            let message = "`P` cannot be called: `P(` begins a sharding";
            return Some(
                Diagnostic::error(Code::E0002, self.place(), message).help("choose another name for the function"),
            );
        }
        if !found.is_reserved_word() || !(in_expression || as_name) {
            return None;
        }
        let word = self.text(self.at);
        let message = match found {
            Token::DType(_) => expected("a name", format_args!("the element type `{word}`")),
            _ => expected("a name", format_args!("the keyword `{word}`")),
        };
        let help = match found {
            Token::DType(crate::ast::DTypeName::Key) => "a random key is often called `k`".to_string(),
            Token::Mut => "parameters are immutable; write `let mut x = x;` in the body".to_string(),
            _ => format!("choose another name, such as `{word}_`"),
        };
        Some(Diagnostic::error(Code::E0002, self.place(), message).help(help))
    }

    /// A word of another language, here or right before.
    fn foreign_word(&self) -> Option<&'static str> {
        let word = |token: Option<Token<'s>>| match token {
            Some(Token::Name(name)) => Some(name),
            _ => None,
        };
        // An operator comes between the parsed text and the error; any other foreign word comes before the error.
        let is_operator = |name: &&str| matches!(*name, "and" | "or" | "is");
        let here = word(self.found()).filter(is_operator).and_then(habits::of_word);
        let before = match (word(self.before(1)), self.found()) {
            (Some("f" | "r" | "b"), Some(Token::Str(_))) => {
                Some("strings have no prefix; write `print(\"x = {}\", x)` to format values")
            }
            (Some("assert"), _) => Some("write a call: `assert(c, \"text {}\", x)`"),
            (Some("print"), _) => Some("write a call: `print(\"x = {}\", x)`"),
            (Some(name), Some(Token::Not)) if name.starts_with("print") => {
                Some("write `print(\"x = {}\", x)`, without `!`")
            }
            (Some(name), _) if begins_line(name) => habits::of_word(name),
            _ => None,
        };
        let first = word(self.found()).filter(|_| self.at == 0).and_then(|name| match name {
            "def" | "func" | "function" | "pub" => habits::of_word(name),
            "from" | "use" | "include" => Some("import another file with `import \"nn.spmd\" as nn;`"),
            "struct" | "class" => Some("declare a type with `type Layer = { w: f32[4], b: f32 };`"),
            _ => None,
        });
        here.or(before).or(first)
    }

    fn help(&self) -> Option<&'static str> {
        let found = self.found()?;
        let previous = self.before(1);
        Some(match found {
            Token::As => "write `f32(x)` or `cast(x, f32)`",
            Token::Question if self.expected.is_operator() => {
                "write `if c { a } else { b }`, or `where(c, a, b)` to select element by element"
            }
            Token::In if self.expected.is_operator() => "write `any(x == y)` to search for an element",
            Token::For if self.expected.has("]") => {
                "write `for i in 0..n collect { ... }` to stack the values of all trips"
            }
            Token::Assign if self.expected.is_operator() => "write `==` to compare; an assignment is a statement",
            token if token.is_binary_operator() && previous == Some(Token::CloseBrace) && self.expected.has("let") => {
                "the `}` ended a statement; parenthesise the block to use it as an operand"
            }
            Token::Plus if self.expected.is_expression() && previous == Some(Token::Plus) => "write `i += 1;`",
            Token::Plus if self.expected.is_expression() => "remove the `+`: numbers have no positive sign",
            Token::Colon if self.expected.has("{") => {
                "write blocks in braces: `fn f(x) { ... }`, `if c { ... }`, `for i in 0..n { ... }`"
            }
            Token::Colon if matches!(self.token(0), Some(Token::Const)) => {
                "constants have no declared type: `const N = 4;`, `const EPS = f32(1e-5);`"
            }
            Token::Comma if self.expected.has(";") => {
                "write a tuple in parentheses, `(a, b)`, and a struct that is the value of a block in its own braces: `{ { w: a, b: c } }`"
            }
            Token::Colon | Token::Comma if self.before(2) == Some(Token::OpenBrace) => {
                "these braces are a block; write a struct that is its value in its own braces: `{ { w: a, b: c } }`"
            }
            Token::Int(_) if self.token(0) == Some(Token::Mesh) && previous == Some(Token::Assign) => {
                "write the axes of a mesh in parentheses: `mesh (X = 2, Y = 4);`"
            }
            Token::OpenBrace if self.expected.has("..") => "write a range: `for i in 0..n { ... }`",
            Token::DotDot if self.expected.has(":") => "write a slice as `x[1:3]`",
            Token::Arrow if self.expected.has("=") => "`->` declares the result type of a function",
            Token::Question => "`?` is only allowed as an open dimension, as in `f32[4@?]` and `P(X, ?)`",
            token if begins_statement(token) && self.at == 0 => {
                "write statements in a function, such as `fn main() { ... }`, and constants as `const N = 4;`"
            }
            _ => return None,
        })
    }
}

/// Whether this is a word with which another language begins a line or an expression.
fn begins_line(name: &str) -> bool {
    const WORDS: [&str; 18] = [
        "return", "var", "val", "not", "elif", "elsif", "elseif", "lambda", "def", "func", "function", "pub", "loop",
        "until", "del", "println", "printf", "echo",
    ];
    WORDS.contains(&name)
}

fn begins_statement(token: Token) -> bool {
    matches!(token, Token::Let | Token::If | Token::For | Token::While) || token.begins_operand()
}

/// The tokens that were possible.
#[derive(Default)]
pub struct Expected(Vec<String>);

impl Expected {
    /// From the parser's list, in which each token is in quotes.
    pub fn new(tokens: &[String]) -> Expected {
        Expected(tokens.iter().map(|token| token.trim_matches('"').to_string()).collect())
    }

    fn has(&self, token: &str) -> bool {
        self.0.iter().any(|expected| expected == token)
    }

    /// Whether an item was complete.
    fn is_nothing(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an expression could have begun.
    fn is_expression(&self) -> bool {
        self.has("float")
    }

    /// Whether an expression could have ended or continued.
    fn is_operator(&self) -> bool {
        self.has("+") && self.has("*")
    }
}

/// In words, at most a handful: "an expression", "`,` or `)`".
impl Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const OPERATORS: [&str; 21] = [
            "||", "&&", "==", "!=", "<", "<=", ">", ">=", "|", "^", "&", "<<", ">>", "+", "-", "*", "/", "//", "%",
            "@", "**",
        ];
        const ASSIGNMENTS: [&str; 14] =
            ["=", "+=", "-=", "*=", "/=", "//=", "%=", "@=", "**=", "&=", "|=", "^=", "<<=", ">>="];
        const NAMES: [&str; 9] = ["name", "as", "auto", "collect", "devices", "explicit", "on", "step", "stream"];
        const BEGINNINGS: [&str; 19] = [
            "dtype", "integer", "float", "string", "true", "false", "None", "_", "(", "[", "P(", "-", "!", "|", "||",
            "{", "if", "for", "while",
        ];
        // Words of the language that begin no expression and no statement, but may be the name of a field.
        const FIELDS: [&str; 8] = ["const", "else", "fn", "import", "in", "manual", "mut", "type"];
        let may_be_field = self.has("else") && self.has("mesh");
        let mut words: Vec<String> = Vec::new();
        let mut rest: Vec<&str> = self.0.iter().map(String::as_str).collect();
        let mut drop = |tokens: &[&str]| rest.retain(|token| !tokens.contains(token));
        if may_be_field {
            drop(&FIELDS);
        }
        if may_be_field && !self.has("string") {
            words.push("the name of a field".to_string());
            drop(&["dtype", "mesh", "let", "true", "false", "None", "if", "for", "while"]);
        } else if self.has("let") {
            words.push("a statement".to_string());
            drop(&BEGINNINGS);
            drop(&["let"]);
        } else if self.is_expression() {
            words.push("an expression".to_string());
            drop(&BEGINNINGS);
        } else if self.has("integer") && self.has("-") {
            words.push("a size".to_string());
            drop(&["integer", "-", "("]);
        } else if self.has("mesh") && self.has("fn") {
            words.push("an item (`fn`, `mesh`, `const`, `type` or `import`)".to_string());
            drop(&["mesh", "fn", "const", "type", "import", "manual", "auto", "explicit", "test"]);
        } else if self.has("dtype") {
            words.push("a type".to_string());
            drop(&["dtype", "(", "{"]);
        } else if self.has("?") {
            words.push("a mesh axis".to_string());
            drop(&["None"]);
        } else if self.has("name") {
            words.push("a name".to_string());
            if self.has("_") {
                drop(&["_", "(", "{"]);
            }
        }
        if self.is_operator() {
            drop(&OPERATORS);
            drop(&ASSIGNMENTS);
            drop(&["(", "[", ".", "[ after a type", "{ after a type"]);
        }
        if self.has("name") {
            drop(&NAMES);
        } else if self.is_operator() {
            drop(&["on"]);
        }
        words.extend(rest.iter().filter(|token| !token.ends_with("after a type")).map(|token| match *token {
            "string" => "a string".to_string(),
            "integer" => "a number".to_string(),
            token => format!("`{token}`"),
        }));
        if words.len() > 6 || words.is_empty() {
            words.truncate(5);
            words.insert(0, "an operator".to_string());
        }
        for (position, word) in words.iter().enumerate() {
            if position > 0 {
                f.write_str(if position + 1 == words.len() { " or " } else { ", " })?;
            }
            f.write_str(word)?;
        }
        Ok(())
    }
}
