//! The tokens before a position: they are known in a text that does not parse.

use spmdc_grammar::classify::{ClassifiedToken, TokenClass, classified};

/// The tokens of a text up to a position.
pub struct TokenCursor<'t> {
    text: &'t str,
    /// The tokens before the position, without comments and without the word that is being typed.
    tokens: Vec<ClassifiedToken>,
    /// The offset of the word that is being typed; the position without one.
    pub start: usize,
    /// Whether the position is inside a comment.
    pub is_comment: bool,
    /// The start of the string that the position is in.
    pub string: Option<usize>,
}

/// A call whose arguments are being written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCall {
    /// The name before the dot.
    pub base: Option<String>,
    /// The called name.
    pub name: String,
    /// The number of commas before the position.
    pub commas: usize,
    /// The keyword of the argument at the position.
    pub keyword: Option<String>,
    /// Whether an argument begins at the position.
    pub is_start: bool,
}

impl<'t> TokenCursor<'t> {
    /// The tokens of a text before an offset.
    pub fn new(text: &'t str, offset: usize) -> TokenCursor<'t> {
        let mut tokens = classified(text);
        tokens.retain(|token| token.start < offset);
        let mut cursor = TokenCursor { text, tokens: Vec::new(), start: offset, is_comment: false, string: None };
        if let Some(last) = tokens.last().copied() {
            let is_inside = last.end >= offset;
            let is_comment = matches!(last.class, TokenClass::Comment | TokenClass::DocComment);
            let is_malformed = last.class == TokenClass::Malformed && is_inside;
            let is_string = last.class == TokenClass::String && last.end > offset
                || is_malformed && text[last.start..].starts_with('"');
            cursor.is_comment = is_comment && is_inside;
            cursor.string = is_string.then_some(last.start);
            if is_inside && matches!(last.class, TokenClass::Name | TokenClass::Keyword | TokenClass::ElementType) {
                cursor.start = last.start;
                tokens.pop();
            }
        }
        tokens.retain(|token| !matches!(token.class, TokenClass::Comment | TokenClass::DocComment));
        cursor.tokens = tokens;
        cursor
    }

    /// The class and the text of a token, counted back from the position; 0 is the last one.
    pub fn back(&self, count: usize) -> Option<(TokenClass, &'t str)> {
        let token = self.tokens.get(self.tokens.len().checked_sub(count + 1)?)?;
        Some((token.class, &self.text[token.start..token.end]))
    }

    /// The name before the dot at the position; empty after another operand. None without a dot.
    pub fn receiver(&self) -> Option<&'t str> {
        let (TokenClass::Dot, _) = self.back(0)? else { return None };
        match self.back(1)? {
            (TokenClass::Name, name) if self.back(2).is_none_or(|(class, _)| class != TokenClass::Dot) => Some(name),
            _ => Some(""),
        }
    }

    /// The innermost bracket that is open, counted back from the position.
    pub fn open_bracket(&self) -> Option<usize> {
        let mut depth = 0usize;
        for (count, token) in self.tokens.iter().rev().enumerate() {
            match nesting(token.class) {
                Nesting::Closes => depth += 1,
                Nesting::Opens if depth == 0 => return Some(count),
                Nesting::Opens => depth -= 1,
                Nesting::Stays => {}
            }
        }
        None
    }

    /// Whether the position is in a place for axes: the sizes of a type after `@`, `P(`, or the axes of a function.
    pub fn takes_axes(&self) -> bool {
        let Some(open) = self.open_bracket() else { return false };
        let Some((_, bracket)) = self.back(open) else { return false };
        let before = self.back(open + 1);
        match bracket {
            "P(" => true,
            "[" => {
                let is_after_at = self.back(0).is_some_and(|(_, text)| text == "@");
                is_after_at && before.is_some_and(|(class, _)| class == TokenClass::ElementType)
            }
            "(" => before.is_some_and(|(_, text)| matches!(text, "manual" | "auto" | "explicit" | "@")),
            _ => false,
        }
    }

    /// The call whose arguments are at the position, through lists and tuples among them.
    pub fn call(&self) -> Option<OpenCall> {
        let (mut depth, mut commas) = (0usize, 0);
        // The first tokens of the present argument, last first.
        let mut argument: Vec<&str> = Vec::new();
        let mut has_comma = false;
        for (count, token) in self.tokens.iter().rev().enumerate() {
            let text = &self.text[token.start..token.end];
            match nesting(token.class) {
                Nesting::Closes => depth += 1,
                Nesting::Opens if depth > 0 => depth -= 1,
                Nesting::Opens => {
                    if text == "("
                        && let Some((TokenClass::Name, name)) = self.back(count + 1)
                    {
                        let has_dot = self.back(count + 2).is_some_and(|(class, _)| class == TokenClass::Dot);
                        let base = has_dot.then(|| match self.back(count + 3) {
                            Some((TokenClass::Name, base)) => base.to_string(),
                            _ => String::new(),
                        });
                        let keyword = match argument.as_slice() {
                            [.., "=", name] => Some((*name).to_string()),
                            _ => None,
                        };
                        let is_start = argument.is_empty();
                        let is_definition = self.back(count + 2).is_some_and(|(_, text)| text == "fn");
                        return (!is_definition).then(|| OpenCall {
                            base,
                            name: name.to_string(),
                            commas,
                            keyword,
                            is_start,
                        });
                    }
                    if text == "{" {
                        return None;
                    }
                    (commas, has_comma) = (0, false);
                    argument = vec![""];
                }
                Nesting::Stays if depth > 0 => {}
                Nesting::Stays if text == ";" => return None,
                Nesting::Stays if token.class == TokenClass::Comma => {
                    commas += 1;
                    has_comma = true;
                }
                Nesting::Stays if !has_comma => argument.push(text),
                Nesting::Stays => {}
            }
        }
        None
    }
}

/// The change of the nesting of brackets by a token.
enum Nesting {
    Opens,
    Closes,
    Stays,
}

fn nesting(class: TokenClass) -> Nesting {
    match class {
        TokenClass::Open => Nesting::Opens,
        TokenClass::Close => Nesting::Closes,
        TokenClass::Keyword
        | TokenClass::ElementType
        | TokenClass::Name
        | TokenClass::Number
        | TokenClass::String
        | TokenClass::Comment
        | TokenClass::DocComment
        | TokenClass::Operator
        | TokenClass::Comma
        | TokenClass::Dot
        | TokenClass::Punctuation
        | TokenClass::Malformed => Nesting::Stays,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn at(text: &str) -> TokenCursor<'_> {
        TokenCursor::new(text, text.len())
    }

    #[test]
    fn the_open_call_is_found() {
        let call = at("fn f(x) { let y = x.sum(axis=(0, 1), ke").call().unwrap();
        assert_eq!((call.base.as_deref(), call.name.as_str(), call.commas), (Some("x"), "sum", 1));
        assert!(call.is_start && call.keyword.is_none());
        let call = at("fn f(x) { concatenate([a, b], axis=").call().unwrap();
        assert_eq!((call.name.as_str(), call.keyword.as_deref()), ("concatenate", Some("axis")));
        let call = at("fn f(x) { concatenate([a, ").call().unwrap();
        assert_eq!((call.commas, call.is_start), (0, false));
        assert_eq!(at("fn f(x, ").call(), None);
        assert_eq!(at("fn f(x) { g(x); ").call(), None);
    }

    #[test]
    fn places_are_recognized() {
        assert_eq!(at("x.su").receiver(), Some("x"));
        assert_eq!(at("f(x).").receiver(), Some(""));
        assert!(at("let y: f32[8@").takes_axes() && at("P(X, ").takes_axes() && at("manual(").takes_axes());
        assert!(!at("x @ ").takes_axes());
        assert!(at("// x").is_comment && at("import \"a").string.is_some());
    }
}
