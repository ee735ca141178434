//! The files of a program.

use std::path::Path;

use miette::NamedSource;
use spmdc_grammar::span::FileId;
use spmdc_runtime::io::describe;

/// One file, named as the user named it.
pub struct SourceFile {
    pub name: String,
    pub text: String,
    /// The same for messages.
    pub named: NamedSource<String>,
}

/// The files of one compilation, by their [`FileId`].
#[derive(Default)]
pub struct SourceTexts {
    files: Vec<SourceFile>,
}

impl SourceTexts {
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) {
        let (name, text) = (name.into(), text.into());
        let named = NamedSource::new(&name, text.clone());
        self.files.push(SourceFile { name, text, named });
    }

    pub fn get(&self, file: FileId) -> Option<&SourceFile> {
        self.files.get(usize::from(file.0))
    }

    pub fn iter(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter()
    }

    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> SourceTexts {
        let mut sources = SourceTexts::default();
        files.iter().for_each(|(name, text)| sources.add(*name, *text));
        sources
    }
}

/// The text of a file, or why there is none.
pub fn read(path: &Path) -> Result<String, String> {
    let bytes = std::fs::read(path).map_err(|error| describe(&error))?;
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_string())
}
