//! The findings of the compiler about a program, as values; only the command renders them.

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

/// A second source position that explains the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The second source position.
    pub span: Span,
    /// The relation of this position to the finding.
    pub text: String,
}

/// A change of the source that would resolve the finding: `replacement` in place of `span`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The text that is replaced; empty for an insertion.
    pub span: Span,
    /// The new text.
    pub replacement: String,
    /// The cost or the effect of the edit, such as "one all_reduce over Y, 128 bytes per device".
    pub note: String,
}

/// One finding: a stable code, the source position, the problem, and the way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The stable code; `spmdc explain` says more about it.
    pub code: Code,
    /// Error or warning.
    pub severity: Severity,
    /// The source position; the default span for a finding without one.
    pub span: Span,
    /// The problem.
    pub message: String,
    /// The text under the marked source; empty if the message suffices.
    pub label: String,
    /// Further source positions, in the order in which they were added.
    pub labels: Vec<Label>,
    /// The way out, in words.
    pub help: Option<String>,
    /// Alternative changes of the source that resolve the finding.
    pub edits: Vec<Edit>,
    /// Whether the command line is wrong, not the program.
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

    /// Marks the finding as one about the command line.
    pub fn of_command(self) -> Diagnostic {
        Diagnostic { of_command: true, ..self }
    }

    /// The text under the marked source.
    pub fn here(mut self, text: impl Into<String>) -> Diagnostic {
        self.label = text.into();
        self
    }

    /// Adds a second source position.
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// Sets the help, in place of an earlier one.
    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.help = Some(text.into());
        self
    }

    /// The edits that the help does not spell out.
    pub fn further_edits(&self) -> impl Iterator<Item = &Edit> {
        let help = self.help.as_deref().unwrap_or_default();
        self.edits.iter().filter(move |edit| !help.contains(&format!("`{}`", edit.replacement.trim())))
    }

    /// Adds a change of the source that would resolve the finding.
    pub fn edit(mut self, span: Span, replacement: impl Into<String>, note: impl Into<String>) -> Diagnostic {
        self.edits.push(Edit { span, replacement: replacement.into(), note: note.into() });
        self
    }
}
