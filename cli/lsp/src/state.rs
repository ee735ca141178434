//! The state that requests read.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use lsp_types::{Location, TextDocumentPositionParams, Uri};

use crate::analysis::Analyst;
use crate::documents::{Documents, ParsedFile};
use crate::functions::FunctionTexts;
use crate::positions::{TextShift, path_of, uri_of};
use crate::programs::Settings;
use crate::shipped::Copies;
use crate::symbols::Occurrence;

/// The abilities of the client that the server uses.
#[derive(Clone, Debug, Default)]
pub struct ClientAbilities {
    /// Whether the edit of a code action may be computed when the user chooses it.
    pub resolves_edits: bool,
    /// Whether the server may ask for new hints.
    pub refreshes_hints: bool,
    /// Whether completions may have placeholders.
    pub has_snippets: bool,
    /// Whether the client can be asked to report changes of files on disk.
    pub watches_files: bool,
}

/// The open documents, their analyses and the client.
pub struct ServerState {
    /// The open documents.
    pub documents: Documents,
    /// The results of the analysis.
    pub analyst: Analyst,
    /// The copies of the sources of the compiler.
    pub copies: Copies,
    /// The folders of the workspace.
    pub folders: Vec<PathBuf>,
    /// The abilities of the client.
    pub client: ClientAbilities,
    /// The settings of the client.
    pub settings: Settings,
    /// The texts of shipped functions, each made once.
    pub functions: FunctionTexts,
}

/// A position in a file, with a tree in which its place is known.
pub struct NameView {
    /// The present text, or the last one without syntax errors.
    pub file: Rc<ParsedFile>,
    /// The offset in that text.
    pub offset: usize,
    /// The changes since that text; None for the present text.
    shift: Option<TextShift>,
}

impl NameView {
    /// The name at the position.
    pub fn occurrence(&self) -> Option<&Occurrence> {
        self.file.symbols.at(self.offset)
    }

    /// A range of this text in the present one; None if it has changed.
    pub fn present(&self, range: &Range<usize>) -> Option<Range<usize>> {
        match self.shift {
            Some(shift) => Some(shift.to_new(range.start)?..shift.to_new(range.end)?),
            None => Some(range.clone()),
        }
    }
}

impl ServerState {
    /// The path of a document inside the server.
    pub fn path(&self, uri: &Uri) -> Option<PathBuf> {
        path_of(uri).map(|path| self.copies.inside(spmdc_driver::disk::tidy(&path)))
    }

    /// The file and the offset of a position.
    pub fn place(&self, params: &TextDocumentPositionParams) -> Option<(Rc<ParsedFile>, usize)> {
        let file = self.documents.file(&self.path(&params.text_document.uri)?)?;
        let offset = file.lines.offset(&file.text, params.position);
        Some((file, offset))
    }

    /// The position in the present tree, or in the last one without errors if the present one has no name there.
    pub fn view(&self, params: &TextDocumentPositionParams) -> Option<NameView> {
        let (file, offset) = self.place(params)?;
        if file.symbols.at(offset).is_none()
            && let Some(good) = self.documents.good(&file.path)
        {
            let shift = TextShift::between(&good.text, &file.text);
            let old = shift.to_old(offset).filter(|&old| good.symbols.at(old).is_some());
            if let Some(offset) = old {
                return Some(NameView { file: good, offset, shift: Some(shift) });
            }
        }
        Some(NameView { file, offset, shift: None })
    }

    /// The location of a range of bytes of a file.
    pub fn location(&self, path: &Path, range: &Range<usize>) -> Option<Location> {
        let file = self.documents.file(path)?;
        let range = file.lines.positions(&file.text, range.clone());
        Some(Location { uri: uri_of(&self.copies.outside(path)?)?, range })
    }

    /// The location of a range of the text of a view.
    pub fn location_in(&self, view: &NameView, range: &Range<usize>) -> Option<Location> {
        self.location(&view.file.path, &view.present(range)?)
    }
}
