//! Constants whose bytes are after the module: `dense_resource<name>` and `{-# dialect_resources: { builtin: { name: "0x.." } } #-}`.

use crate::cursor::{Cursor, Read, Resources};

impl Cursor<'_> {
    /// The resources of a text, which are its last part; none if there are none, or if they are malformed, which is reported where the text
    /// is read.
    pub fn resources_of(text: &str) -> Resources {
        let mut found = Resources::new();
        if let Some(at) = text.rfind("{-#") {
            let mut cursor = Cursor::of_part(&text[at..]);
            // The resources before an error are known.
            let _ = cursor.resource_sections(&mut found);
        }
        found
    }

    /// `{-# section: { dialect: { name: "0x.." } } #-}`
    pub fn resource_sections(&mut self, found: &mut Resources) -> Read<()> {
        self.expect("{-#")?;
        while !self.take("#-}") {
            self.resource_entry(found)?;
        }
        Ok(())
    }

    fn resource_entry(&mut self, found: &mut Resources) -> Read<()> {
        let name = if self.looks_at("\"") { self.string()? } else { self.word()?.to_string() };
        self.expect(":")?;
        if self.take("{") {
            self.enter()?;
            while !self.take("}") {
                self.resource_entry(found)?;
            }
            self.depth -= 1;
        } else if self.looks_at("\"") {
            let digits = self.string()?;
            found.insert(name, digits);
        } else {
            self.attribute()?;
        }
        self.take(",");
        Ok(())
    }
}
