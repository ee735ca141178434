//! Names of Python and MLIR as names of the language.

/// Words that cannot be names.
const KEYWORDS: &[&str] = &[
    "P", "None", "as", "auto", "collect", "const", "devices", "else", "explicit", "false", "fn", "for", "if", "import",
    "in", "let", "manual", "mesh", "mut", "on", "step", "stream", "true", "type", "while", "bool", "i8", "i16", "i32",
    "i64", "u8", "u16", "u32", "u64", "f8e4m3", "f8e5m2", "f16", "bf16", "f32", "f64", "c64", "c128", "key",
];

/// A name of MLIR as that of a field, which may be a word of the language.
pub fn field_name(name: &str) -> String {
    let mut text: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if !text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') || text == "_" {
        text.insert(0, 'v');
    }
    text
}

/// A name of MLIR as one of the language.
pub fn identifier(name: &str) -> String {
    let mut text = field_name(name);
    if KEYWORDS.contains(&text.as_str()) {
        text.push('_');
    }
    text
}

/// `dense_layer` for `DenseLayer`.
pub fn snake_case(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_ascii_uppercase() && text.ends_with(|last: char| last.is_ascii_lowercase()) {
            text.push('_');
        }
        text.push(c.to_ascii_lowercase());
    }
    text
}

/// The first of `name`, `name_2`, `name_3` and so on that `take` accepts.
pub fn numbered(name: &str, mut take: impl FnMut(&str) -> bool) -> String {
    let mut found = name.to_string();
    let mut number = 1;
    while !take(&found) {
        number += 1;
        found = format!("{name}_{number}");
    }
    found
}
