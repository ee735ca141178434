//! JSON that every program can write: statistics, messages and traces. A serializer for all types would be a large part of a small executable.

use std::fmt::{Display, Write};

/// An object on one line, to which fields are added one by one.
pub(crate) struct JsonObject {
    text: String,
}

impl JsonObject {
    pub fn new() -> JsonObject {
        JsonObject { text: "{".to_string() }
    }

    /// Adds a field whose value is the text of a JSON value, such as that of an integer.
    pub fn field(mut self, name: &str, value: impl Display) -> JsonObject {
        let separator = if self.text.len() == 1 { "" } else { "," };
        let written = write!(self.text, "{separator}{}:{value}", quoted(name));
        debug_assert!(written.is_ok(), "a string takes any text");
        self
    }

    /// Adds a text.
    pub fn text(self, name: &str, value: &str) -> JsonObject {
        self.field(name, quoted(value))
    }

    /// Adds a finite number.
    pub fn float(self, name: &str, value: f64) -> JsonObject {
        self.field(name, format_args!("{value:?}"))
    }

    /// The text of the object.
    pub fn end(mut self) -> String {
        self.text.push('}');
        self.text
    }
}

/// The values of an array, given as the texts of JSON values.
pub(crate) fn array(values: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", values.into_iter().collect::<Vec<_>>().join(","))
}

/// A text as a JSON value.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..'\x20' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_json() {
        let text = "a \"b\" \\ \n \r \t \u{1} \u{1f} \u{7f} ä 𝄞";
        let inner = array([1.5, 2.0, 1e-7, 1e300].map(|number| format!("{number:?}")));
        let object = JsonObject::new().text(text, text).float("number", 0.25).field("list", &inner).end();
        let read: serde_json::Value = serde_json::from_str(&object).expect("it is JSON");
        assert_eq!(read, serde_json::json!({ (text): text, "number": 0.25, "list": [1.5, 2.0, 1e-7, 1e300] }));
        assert_eq!(JsonObject::new().end(), "{}");
    }
}
