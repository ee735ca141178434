//! Attributes.

use crate::cursor::{Cursor, Read};
use crate::tree::{Attribute, Attributes};

impl Cursor<'_> {
    /// `{a = 1, b, c = "text"}`, after the opening bracket.
    pub fn attributes(&mut self, close: &str) -> Read<Attributes> {
        let entries = self.list(close, |cursor| {
            let name = if cursor.looks_at("\"") { cursor.string()? } else { cursor.word()?.to_string() };
            let value = if cursor.take("=") { cursor.attribute()? } else { Attribute::Bool(true) };
            Ok((name, value))
        })?;
        Ok(entries.into_iter().collect())
    }

    /// The value of an attribute.
    pub fn attribute(&mut self) -> Read<Attribute> {
        let start = self.position();
        match self.peek() {
            Some('"') => {
                let text = Attribute::Text(self.string()?);
                self.skip_type()?;
                Ok(text)
            }
            Some('@') => {
                let mut name = self.name_after('@')?;
                while self.take("::") {
                    name = self.name_after('@')?;
                }
                Ok(Attribute::Symbol(name))
            }
            Some('[') => {
                self.expect("[")?;
                Ok(Attribute::List(self.list("]", Cursor::attribute)?))
            }
            Some('{') => {
                self.expect("{")?;
                self.enter()?;
                let map = self.attributes("}")?;
                self.depth -= 1;
                Ok(Attribute::Map(map))
            }
            Some('#') => self.custom_attribute(),
            // The type of a function.
            Some('(') => {
                self.signature(usize::MAX)?;
                Ok(Attribute::Custom("function_type".to_string(), self.since(start).to_string()))
            }
            Some('<') => {
                self.expect("<")?;
                Ok(Attribute::Custom(String::new(), self.until_closed('<')?.to_string()))
            }
            Some(c) if c.is_ascii_digit() || c == '-' || c == '+' => {
                let text = self.number()?;
                let is_int = !text.contains(['.', 'e', 'E']) || text.starts_with("0x");
                let value = match (is_int, text.strip_prefix("0x")) {
                    (true, Some(digits)) => i128::from_str_radix(digits, 16).ok().map(Attribute::Int),
                    (true, None) => text.parse().ok().map(Attribute::Int),
                    (false, _) => Some(Attribute::Float(text.to_string())),
                };
                let value = value.ok_or_else(|| self.malformed(start, "this number is too large"))?;
                self.skip_type()?;
                Ok(value)
            }
            Some(_) => self.named_attribute(),
            None => Err(self.expected("the value of an attribute")),
        }
    }

    fn named_attribute(&mut self) -> Read<Attribute> {
        for (word, value) in [("true", true), ("false", false), ("unit", true)] {
            if self.take(word) {
                return Ok(Attribute::Bool(value));
            }
        }
        if self.take("dense_resource") {
            return Ok(Attribute::Dense(self.dense_resource()?));
        }
        if self.take("dense") {
            return Ok(Attribute::Dense(self.dense()?));
        }
        if self.take("array<") {
            self.word()?;
            let numbers = match self.take(":") {
                true => self.list(">", |cursor| {
                    let number = cursor.attribute()?.ints().filter(|numbers| numbers.len() == 1);
                    number.map(|numbers| numbers[0]).ok_or_else(|| cursor.expected("an integer"))
                })?,
                false => {
                    self.expect(">")?;
                    Vec::new()
                }
            };
            return Ok(Attribute::Ints(numbers));
        }
        let word = self.word()?.to_string();
        if self.looks_at("<") && !self.looks_at("<=") {
            self.expect("<")?;
            let inside = self.until_closed('<')?;
            return Ok(Attribute::Custom(word, inside.to_string()));
        }
        Ok(Attribute::Word(word))
    }

    /// `#stablehlo.gather<..>`, `#stablehlo<precision DEFAULT>`, `#alias`
    fn custom_attribute(&mut self) -> Read<Attribute> {
        let name = self.name_after('#')?;
        let inside = match self.rest().starts_with('<') {
            true => {
                self.skip_char();
                self.until_closed('<')?.to_string()
            }
            false => String::new(),
        };
        // `#stablehlo<comparison_direction LT>` is the word of an enumeration.
        if let ("stablehlo", Some((_, word))) = (name.as_str(), inside.split_once(' ')) {
            return Ok(Attribute::Word(word.trim().to_string()));
        }
        Ok(Attribute::Custom(name, inside))
    }

    /// `: i64` after a number; `: tensor<..>` is the type of an operation.
    fn skip_type(&mut self) -> Read<()> {
        let mut ahead = self.clone();
        if ahead.take(":") && !ahead.looks_at("tensor<") && ahead.optional_word().is_some() {
            *self = ahead;
        }
        Ok(())
    }
}
