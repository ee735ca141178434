//! The classes of tokens, for editors.

use spmdc_grammar::classify::{KEYWORDS, TokenClass, classified, is_name};

#[test]
fn every_token_has_its_class() {
    let text = "let h: f32[4@X] = x.sum(1.5, \"a\"); // why";
    let found: Vec<(TokenClass, &str)> =
        classified(text).iter().map(|token| (token.class, &text[token.start..token.end])).collect();
    use TokenClass::{
        Close, Comma, Comment, Dot, ElementType, Keyword, Name, Number, Open, Operator, Punctuation, String,
    };
    let expected = [
        (Keyword, "let"),
        (Name, "h"),
        (Punctuation, ":"),
        (ElementType, "f32"),
        (Open, "["),
        (Number, "4"),
        (Operator, "@"),
        (Name, "X"),
        (Close, "]"),
        (Operator, "="),
        (Name, "x"),
        (Dot, "."),
        (Name, "sum"),
        (Open, "("),
        (Number, "1.5"),
        (Comma, ","),
        (String, "\"a\""),
        (Close, ")"),
        (Punctuation, ";"),
        (Comment, "// why"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn keywords_are_words_of_the_language() {
    for word in KEYWORDS {
        assert_eq!(classified(word)[0].class, TokenClass::Keyword, "{word}");
    }
    assert!(is_name("step") && is_name("_x1"));
    assert!(!is_name("let") && !is_name("f32") && !is_name("a b") && !is_name("") && !is_name(" a"));
}
