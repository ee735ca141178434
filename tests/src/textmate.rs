//! The TextMate grammar of the extension for VS Code, from the tables of the lexer.
//!
//! A TextMate grammar matches patterns within lines. It cannot say whether a contextual word is a name, so each has a pattern of its
//! surroundings here; and a `//` divides if the rest of its line has the form of an expression.

use serde::Serialize;
use spmdc_grammar::ast::DTypeName;
use spmdc_grammar::classify::{KEYWORDS, TokenClass, classified, is_name};
use std::collections::BTreeMap;

/// A rule of the grammar.
#[derive(Default, Serialize)]
struct Rule {
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'static str,
    #[serde(rename = "match", skip_serializing_if = "String::is_empty")]
    pattern: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    captures: BTreeMap<usize, Capture>,
}

#[derive(Serialize)]
struct Capture {
    name: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Grammar {
    comment: &'static str,
    name: &'static str,
    scope_name: &'static str,
    file_types: [&'static str; 1],
    patterns: Vec<Rule>,
}

const NAME: &str = "[A-Za-z_][A-Za-z0-9_]*";

/// Before a word that a dot does not make a field; it may come after `..`.
const NO_FIELD: &str = r"(?<![^.]\.)\b";

/// After a word that is neither the name of a field nor of a keyword argument.
const NO_LABEL: &str = r"\b(?!=(?!=)|\s*:)";

/// The rest of a line after a division: operands with operators between them, up to the end of an expression.
const REST: &str = r#"(?=\s?(?!\[|\([^()]*,)(?<operand>[-!]*(?:[\w."]+|\g<group>)(?:\g<group>|\.\w+)*)(?:\s*(?:\|\||&&|[=!<>]=|<<|>>|\*\*|//|\.\.|[-+*/%@<>|^&])\s*\g<operand>)*\s*(?:$|//|[;,:)\]{}]|step\b|collect\b|on\b|\.\.))(?:(?<group>\((?:[^()\[\]]|\g<group>)*\)|\[(?:[^()\[\]]|\g<group>)*\])){0}"#;

fn rule(name: &'static str, pattern: impl Into<String>) -> Rule {
    Rule { name, pattern: pattern.into(), ..Rule::default() }
}

fn rule_with(pattern: impl Into<String>, captures: &[&'static str]) -> Rule {
    let captures = captures.iter().enumerate().map(|(number, name)| (number + 1, Capture { name }));
    Rule { pattern: pattern.into(), captures: captures.collect(), ..Rule::default() }
}

/// One of these words or symbols, the longest first.
fn any(mut texts: Vec<String>) -> String {
    texts.sort_by_key(|text| (std::cmp::Reverse(text.len()), text.clone()));
    let escaped = texts.iter().map(|text| {
        let escape = |c: char| {
            if c.is_ascii_alphanumeric() || "_=<>!&%@-".contains(c) { c.to_string() } else { format!("\\{c}") }
        };
        text.chars().map(escape).collect::<String>()
    });
    format!("(?:{})", escaped.collect::<Vec<_>>().join("|"))
}

fn scope(word: &str) -> &'static str {
    match word {
        "if" | "else" => "keyword.control.conditional.spmd",
        "for" | "while" | "in" | "step" | "collect" => "keyword.control.loop.spmd",
        "import" | "as" => "keyword.control.import.spmd",
        "mut" | "on" | "stream" | "auto" | "explicit" | "manual" => "storage.modifier.spmd",
        "true" | "false" | "None" => "constant.language.spmd",
        "const" | "fn" | "let" | "mesh" | "type" => "storage.type.spmd",
        _ => "keyword.other.spmd",
    }
}

/// The pattern of a word that is a name elsewhere; None for words that have none here.
fn contextual(word: &str) -> Option<String> {
    Some(match word {
        "as" => format!(r#"(?<=")\s*(as)\s+({NAME})"#),
        "auto" | "explicit" => format!(r"(?:(?<=: )({word})(?= *=)|^\s*({word})(?= *(?:\([^()]*\) *)?fn\b))"),
        "collect" => r"(?<=[\w)\]] )(collect)(?=\s*(?:\{|//|$))".to_string(),
        "devices" => r"(?<=\))\s*(devices)(?=\s*\[)".to_string(),
        "on" => format!(r"(?<=[\w)\]}}>])\s+(on)\s+({NAME})"),
        "step" => r"(?<=[\w)\]] )(step)(?= +(?!in\b)[-\w(])".to_string(),
        "stream" => r"(?<=[:(,] )(stream)(?=\s+[A-Za-z_])".to_string(),
        _ => return None,
    })
}

/// All operators: texts of up to three characters that the lexer finds between two names.
fn operators() -> Vec<String> {
    let symbols: Vec<char> = (33..127_u8).map(char::from).filter(|c| c.is_ascii_punctuation() && *c != '"').collect();
    let mut found = Vec::new();
    let mut longer = vec![String::new()];
    for _ in 0..3 {
        let texts = longer.iter().flat_map(|text| symbols.iter().map(move |symbol| format!("{text}{symbol}")));
        longer = texts.collect();
        found.extend(longer.iter().filter(|text| is_operator(text)).cloned());
    }
    found
}

fn is_operator(text: &str) -> bool {
    let line = format!("a{text}a;");
    let tokens = classified(&line);
    matches!(tokens.as_slice(), [_, token, ..] if token.class == TokenClass::Operator && token.end - token.start == text.len())
}

/// The file `grammar/editors/vscode/syntaxes/spmd.tmLanguage.json`.
pub fn grammar() -> Result<String, String> {
    let (names, reserved): (Vec<&str>, Vec<&str>) = KEYWORDS.iter().partition(|word| is_name(word));
    let mut patterns = vec![
        rule("keyword.operator.spmd", r#"(?<=[\w)\]"])//=(?![=\s])|(?<=[\w)\]"] )//=(?= \S)"#),
        rule("keyword.operator.spmd", format!(r#"(?:(?<=[\w)\]"])//(?![/!\s])|(?<=[\w)\]"] )//(?= [^\s])){REST}"#)),
        rule("comment.line.documentation.spmd", "///(?!/).*$"),
        rule("comment.line.double-slash.spmd", "//.*$"),
        rule("string.quoted.double.spmd", r#""(?:[^"\\]|\\.)*""#),
        rule_with(format!(r"^\s*(stage)\s+({NAME})(?=\s*;)"), &["keyword.other.spmd", "entity.name.label.spmd"]),
        rule_with(r#"^\s*(test)(?=\s*")"#, &["storage.type.spmd"]),
        rule_with(format!(r"{NO_FIELD}(fn)\s+({NAME})"), &["storage.type.spmd", "entity.name.function.spmd"]),
        rule_with(format!(r"{NO_FIELD}(type)\s+({NAME})"), &["storage.type.spmd", "entity.name.type.spmd"]),
        rule_with(format!(r"{NO_FIELD}(const)\s+({NAME})"), &["storage.type.spmd", "variable.other.constant.spmd"]),
        rule_with(format!(r"{NO_FIELD}(mesh)\s+({NAME})"), &["storage.type.spmd", "entity.name.namespace.spmd"]),
    ];
    for word in names {
        let pattern = contextual(word).ok_or_else(|| format!("`{word}` needs a pattern"))?;
        let captures: &[&'static str] = match word {
            "as" | "on" => &[scope(word), "entity.name.namespace.spmd"],
            "auto" | "explicit" => &[scope(word), scope(word)],
            _ => &[scope(word)],
        };
        patterns.push(rule_with(pattern, captures));
    }
    let mut by_scope: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    reserved.iter().for_each(|word| by_scope.entry(scope(word)).or_default().push((*word).to_string()));
    for (scope, words) in by_scope {
        patterns.push(rule(scope, format!("{NO_FIELD}{}{NO_LABEL}", any(words))));
    }
    let element_types = DTypeName::ALL.iter().map(|(_, name)| (*name).to_string()).collect();
    patterns.extend([
        rule("support.type.spmd", format!("{NO_FIELD}{}{NO_LABEL}", any(element_types))),
        rule_with(r"(?<=[\w\]}])(\{)([URVT])(?=\s*:)", &["punctuation.spmd", "entity.other.attribute-name.spmd"]),
        rule_with(
            format!(r"(?<=[\w)])(@)(?!(?:_|None)\b)({NAME})"),
            &["keyword.operator.spmd", "entity.other.attribute-name.spmd"],
        ),
        rule("support.type.sharding.spmd", r"\bP(?=\()"),
        rule("variable.parameter.spmd", format!(r"\b{NAME}(?==(?!=))")),
        rule("entity.name.function.spmd", format!(r"\b{NAME}(?=\()")),
        rule("variable.other.member.spmd", format!(r"(?<=[\w)\]}}]\.){NAME}|(?<=^\s*\.){NAME}")),
        rule("constant.language.spmd", r"\b_\b"),
        rule("variable.other.spmd", format!(r"\b{NAME}\b")),
        // The field of a tuple after a dot, which is no float.
        rule("constant.numeric.spmd", r"(?<=[\w)\]}]\.)\d+"),
        rule("constant.numeric.spmd", r"0[xX][0-9A-Fa-f_]+|0[oO][0-7_]+|0[bB][01_]+"),
        rule(
            "constant.numeric.spmd",
            r"(?:\d[\d_]*\.\d[\d_]*|(?<![\w)\]}])\.\d[\d_]*|\d[\d_]*(?:\.(?![.A-Za-z_]))?)(?:[eE][+-]?\d[\d_]*)?",
        ),
        rule("punctuation.spmd", r"\.\.\.?"),
        rule("keyword.operator.spmd", any(operators())),
        rule("punctuation.spmd", r"[()\[\]{},;:.?]"),
    ]);
    let grammar = Grammar {
        comment: "Generated: cargo run -p spmdc-tests --bin textmate > grammar/editors/vscode/syntaxes/spmd.tmLanguage.json",
        name: "spmd",
        scope_name: "source.spmd",
        file_types: ["spmd"],
        patterns,
    };
    let text = serde_json::to_string_pretty(&grammar).map_err(|error| error.to_string())?;
    Ok(text + "\n")
}
