//! What the compiler has to say about a program, as values; only the command renders them.

use crate::codes::Code;
use crate::span::Span;

/// Whether a finding stops the compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The program is refused.
    Error,
    /// The program is compiled nevertheless.
    Warning,
}

/// A second place that explains the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The second place.
    pub span: Span,
    /// What this place has to do with the finding.
    pub text: String,
}

/// A change of the source that would resolve the matter: `replacement` in place of `span`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The text that is replaced; empty for an insertion.
    pub span: Span,
    /// The new text.
    pub replacement: String,
    /// What the edit costs or means, such as "one all_reduce over Y, 128 bytes per device".
    pub note: String,
}

/// One finding: a stable code, the place, what is wrong, and the way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The stable code; `spmdc explain` says more about it.
    pub code: Code,
    /// Error or warning.
    pub severity: Severity,
    /// The place in the source; the default span where the finding has none.
    pub span: Span,
    /// What is wrong.
    pub message: String,
    /// The text under the marked source; empty where the message says it all.
    pub label: String,
    /// Further places, in the order in which they were added.
    pub labels: Vec<Label>,
    /// The way out, in words.
    pub help: Option<String>,
    /// Ways out as changes of the source, as alternatives.
    pub edits: Vec<Edit>,
    /// The command line is wrong, not the program.
    pub of_command: bool,
}

impl Diagnostic {
    /// An error without label, help or edits.
    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            severity: Severity::Error,
            span,
            message: message.into(),
            label: String::new(),
            labels: Vec::new(),
            help: None,
            edits: Vec::new(),
            of_command: false,
        }
    }

    /// A warning without label, help or edits.
    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, span, message) }
    }

    /// What the command line says does not fit the program.
    pub fn of_command(self) -> Diagnostic {
        Diagnostic { of_command: true, ..self }
    }

    /// The text under the marked source.
    pub fn here(mut self, text: impl Into<String>) -> Diagnostic {
        self.label = text.into();
        self
    }

    /// Adds a second place.
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// Sets the help, in place of an earlier one.
    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.help = Some(text.into());
        self
    }

    /// Adds a change of the source that would resolve the matter.
    pub fn edit(mut self, span: Span, replacement: impl Into<String>, note: impl Into<String>) -> Diagnostic {
        self.edits.push(Edit { span, replacement: replacement.into(), note: note.into() });
        self
    }
}
