//! The open documents, and files as they are seen with the unsaved texts of open documents.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::SystemTime;

use lsp_types::TextDocumentContentChangeEvent;
use spmdc_check::sources::{Source, Sources};
use spmdc_compiler::sources::load;
use spmdc_driver::disk::{self, imported};
use spmdc_grammar::ast::ProgramNode;
use spmdc_grammar::span::FileId;

use crate::positions::LineIndex;
use crate::shipped;
use crate::symbols::Symbols;

/// Maximum number of files on disk whose trees are kept.
const MAX_KEPT: usize = 256;

/// A text with its syntax tree and its names.
#[derive(Debug)]
pub struct ParsedFile {
    /// The path of the file; the files of the compiler are in the folder of [`shipped`].
    pub path: PathBuf,
    /// The text.
    pub text: Arc<str>,
    /// The lines of the text.
    pub lines: LineIndex,
    /// The parts of the text that could be parsed.
    pub tree: ProgramNode,
    /// Whether all of it could be parsed.
    pub is_whole: bool,
    /// The names in the tree.
    pub symbols: Symbols,
}

impl ParsedFile {
    /// Parses a text.
    pub fn new(path: &Path, text: Arc<str>) -> ParsedFile {
        let lines = LineIndex::new(&text);
        let path = path.to_path_buf();
        if is_stablehlo(&path) {
            // Names of the text are not those of the tree.
            let (set, diagnostics) = load(&path.to_string_lossy(), &text, &Overlay::default());
            let program = set.files.into_iter().next().map(|file| file.program);
            let (tree, symbols) = (program.unwrap_or_default(), Symbols::default());
            return ParsedFile { path, lines, is_whole: diagnostics.is_empty(), tree, symbols, text };
        }
        let (tree, diagnostics) = spmdc_grammar::parse(&text, FileId::default());
        let symbols = Symbols::of(&tree, &text);
        ParsedFile { path, lines, is_whole: diagnostics.is_empty(), tree, symbols, text }
    }

    /// Whether it is StableHLO text.
    pub fn is_stablehlo(&self) -> bool {
        is_stablehlo(&self.path)
    }

    /// The file that an import of this file names.
    pub fn imported(&self, path: &str) -> PathBuf {
        shipped::standard(path).unwrap_or_else(|| imported(path, &self.path.to_string_lossy()))
    }

    /// The text of a range of bytes; empty if there is none.
    pub fn slice(&self, start: usize, end: usize) -> &str {
        self.text.get(start..end).unwrap_or_default()
    }
}

/// Whether the file of this path is StableHLO text.
pub fn is_stablehlo(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "mlir")
}

/// An open document.
pub struct Document {
    /// The version that the client gave.
    pub version: i32,
    text: String,
    /// The present text, parsed when it is first asked for.
    parsed: RefCell<Option<Rc<ParsedFile>>>,
    /// The last text without syntax errors.
    good: RefCell<Option<Rc<ParsedFile>>>,
}

impl Document {
    fn new(version: i32, text: String) -> Document {
        Document { version, text, parsed: RefCell::default(), good: RefCell::default() }
    }

    /// Applies changes in order. A range of positions replaces a part, and a change without one all of the text.
    fn change(&mut self, version: i32, changes: Vec<TextDocumentContentChangeEvent>) {
        for TextDocumentContentChangeEvent { range, text, .. } in changes {
            let Some(range) = range else {
                self.text = text;
                continue;
            };
            let lines = LineIndex::new(&self.text);
            let (start, end) = (lines.offset(&self.text, range.start), lines.offset(&self.text, range.end));
            self.text.replace_range(start.min(end)..end.max(start), &text);
        }
        self.version = version;
        self.parsed.take();
    }

    fn parsed(&self, path: &Path) -> Rc<ParsedFile> {
        let mut parsed = self.parsed.borrow_mut();
        // As files on disk, texts have a bound; a larger one is as an empty one.
        let text = if self.text.len() as u64 <= disk::MAX_BYTES { self.text.as_str() } else { "" };
        let parsed = parsed.get_or_insert_with(|| Rc::new(ParsedFile::new(path, Arc::from(text))));
        if parsed.is_whole {
            *self.good.borrow_mut() = Some(Rc::clone(parsed));
        }
        Rc::clone(parsed)
    }
}

/// The open documents by path, and the trees of other files.
#[derive(Default)]
pub struct Documents {
    open: BTreeMap<PathBuf, Document>,
    /// The open documents, the one that changed last at the end.
    order: Vec<PathBuf>,
    /// Files on disk with the times of their last changes.
    kept: RefCell<BTreeMap<PathBuf, (SystemTime, Rc<ParsedFile>)>>,
}

impl Documents {
    /// Opens a document.
    pub fn open(&mut self, path: PathBuf, version: i32, text: String) {
        self.open.insert(path.clone(), Document::new(version, text));
        self.touch(path);
    }

    /// Changes an open document; others are ignored.
    pub fn change(&mut self, path: &Path, version: i32, changes: Vec<TextDocumentContentChangeEvent>) {
        if let Some(document) = self.open.get_mut(path) {
            document.change(version, changes);
            self.touch(path.to_path_buf());
        }
    }

    /// Closes a document: its file on disk counts again.
    pub fn close(&mut self, path: &Path) {
        self.open.remove(path);
        self.order.retain(|known| known != path);
    }

    fn touch(&mut self, path: PathBuf) {
        self.order.retain(|known| *known != path);
        self.order.push(path);
    }

    /// The paths of the open documents, the one that changed last first.
    pub fn recent(&self) -> impl Iterator<Item = &PathBuf> {
        self.order.iter().rev()
    }

    /// The texts of all open documents.
    pub fn overlay(&self) -> Overlay {
        let open = self
            .open
            .iter()
            .map(|(path, document)| (path.clone(), (document.version, Arc::clone(&document.parsed(path).text))));
        Overlay { texts: Arc::new(open.collect()) }
    }

    /// A file with its tree: the text of the open document, of the compiler, or on disk.
    pub fn file(&self, path: &Path) -> Option<Rc<ParsedFile>> {
        if let Some(document) = self.open.get(path) {
            return Some(document.parsed(path));
        }
        let changed = std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
        if let Some((time, known)) = self.kept.borrow().get(path)
            && changed.is_none_or(|changed| changed == *time)
        {
            return Some(Rc::clone(known));
        }
        let text = match shipped::text(path) {
            Some(text) => text.to_string(),
            None => disk::read(path).ok()?,
        };
        let file = Rc::new(ParsedFile::new(path, Arc::from(text)));
        let mut kept = self.kept.borrow_mut();
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(path.to_path_buf(), (changed.unwrap_or(SystemTime::UNIX_EPOCH), Rc::clone(&file)));
        Some(file)
    }

    /// The last text of an open document without syntax errors, if the present one has some.
    pub fn good(&self, path: &Path) -> Option<Rc<ParsedFile>> {
        let document = self.open.get(path)?;
        let parsed = document.parsed(path);
        document.good.borrow().clone().filter(|good| !Rc::ptr_eq(good, &parsed))
    }
}

/// Sources for the compiler: the texts of open documents, and files on disk for the others.
#[derive(Clone, Debug, Default)]
pub struct Overlay {
    /// The version and the text of each document.
    texts: Arc<BTreeMap<PathBuf, (i32, Arc<str>)>>,
}

impl Overlay {
    /// The text of an open document.
    pub fn text(&self, path: &Path) -> Option<&Arc<str>> {
        self.texts.get(path).map(|(_, text)| text)
    }

    /// The same with other texts of these files.
    pub fn with(&self, texts: BTreeMap<PathBuf, String>) -> Overlay {
        let mut all = (*self.texts).clone();
        all.extend(texts.into_iter().map(|(path, text)| {
            let version = self.version(&path).unwrap_or_default();
            (path, (version, Arc::from(text)))
        }));
        Overlay { texts: Arc::new(all) }
    }

    /// The version of an open document.
    pub fn version(&self, path: &Path) -> Option<i32> {
        self.texts.get(path).map(|(version, _)| *version)
    }
}

impl Sources for Overlay {
    fn read(&self, path: &str, from: &str) -> Result<Source, String> {
        let path = imported(path, from);
        let text = match self.text(&path) {
            Some(text) => text.to_string(),
            None => disk::read(&path)?,
        };
        Ok(Source { name: path.to_string_lossy().into_owned(), text })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use lsp_types::{Position, Range};

    use super::*;

    fn change(range: Option<(u32, u32, u32)>, text: &str) -> TextDocumentContentChangeEvent {
        let range =
            range.map(|(line, start, end)| Range { start: Position::new(line, start), end: Position::new(line, end) });
        TextDocumentContentChangeEvent { range, range_length: None, text: text.to_string() }
    }

    #[test]
    fn changes_apply_in_order_and_the_last_good_tree_stays() {
        let path = Path::new("/p.spmd");
        let mut documents = Documents::default();
        documents.open(path.to_path_buf(), 1, "fn f(x) { x }\n".to_string());
        assert!(documents.file(path).unwrap().is_whole && documents.good(path).is_none());
        documents.change(path, 2, vec![change(Some((0, 10, 11)), "\u{1f980}"), change(Some((0, 12, 12)), " y")]);
        assert_eq!(&*documents.file(path).unwrap().text, "fn f(x) { \u{1f980} y }\n");
        assert_eq!(&*documents.good(path).unwrap().text, "fn f(x) { x }\n");
        documents.change(path, 3, vec![change(None, "fn g(x) { x }\n")]);
        assert!(documents.good(path).is_none());
    }
}
