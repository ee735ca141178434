//! The reasons of statements, in words.

use super::Func;
use super::origin::{ASKED, Lineage, Origin};
use super::value::Value;

impl Func {
    /// The name in the program of the value of which a statement computes the derivative, if that is one value with a name.
    pub fn subject(&self, lineage: Lineage) -> Option<&str> {
        let Value(number) = lineage.of?;
        self.values.get(number as usize)?.name.as_deref()
    }

    /// "the gradient of `w`" for a statement of a derivative; None for others.
    pub fn derivative(&self, origin: &Origin) -> Option<String> {
        let part = origin.lineage.part.name()?;
        Some(match self.subject(origin.lineage) {
            Some(name) => format!("the {part} of `{name}`"),
            None => format!("the {part}"),
        })
    }

    /// The reason of a statement; of one of a derivative it says of which one, and from which line that comes.
    pub fn reason(&self, origin: &Origin) -> String {
        const SUMS: &str = " sums over ";
        const PARTIAL: &str = "partial sums over ";
        let (reason, Some(derivative)) = (&origin.reason, self.derivative(origin)) else {
            return origin.reason.clone();
        };
        let place = self.quotes.get(&origin.span).map_or(String::new(), |quote| format!(" ({quote})"));
        if reason.is_empty() {
            return format!("{derivative}{place}");
        }
        if reason == ASKED {
            let own = self.subject(origin.lineage).map_or("its value".to_string(), |name| format!("`{name}`"));
            return format!("{derivative}{place} has the layout of {own}");
        }
        if let Some(over) = reason.strip_prefix(PARTIAL) {
            return format!("partial sums of {derivative}{place} over {over}");
        }
        match reason.split_once(SUMS) {
            Some((_, over)) => format!("{derivative}{place}{SUMS}{over}"),
            None => format!("in {derivative}{place}, {reason}"),
        }
    }
}
