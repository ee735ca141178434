//! The texts of shipped functions, as `spmdc explain` has them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::rc::Rc;

use spmdc_compiler::report::functions::{MESH, described};
use spmdc_functions::Function;

/// The texts of functions as Markdown, each made once: the example of the function is compiled for it.
#[derive(Debug, Default)]
pub struct FunctionTexts {
    known: RefCell<BTreeMap<&'static str, Rc<str>>>,
}

impl FunctionTexts {
    /// The text of a shipped function.
    pub fn of(&self, function: &Function) -> Rc<str> {
        if let Some(known) = self.known.borrow().get(function.name) {
            return Rc::clone(known);
        }
        let text: Rc<str> = Rc::from(markdown(function));
        self.known.borrow_mut().insert(function.name, Rc::clone(&text));
        text
    }
}

fn markdown(function: &Function) -> String {
    let signature = function.signature();
    let mut text = format!("```spmd\nfn {signature}\n```\n\n{}\n", signature.line());
    let Ok(description) = described(function) else { return text };
    if let Some(dtypes) = &description.element_types {
        let _ = write!(text, "\nElement types: {dtypes}.\n");
    }
    if !description.rules.is_empty() {
        let _ = write!(text, "\nRule:\n\n```text\n{}\n```\n", description.rules.join("\n"));
    }
    let _ = write!(text, "\nCollectives on {}:\n\n```text\n", MESH.trim_end_matches(';'));
    let longest = description.exchanges.iter().map(|(ty, _)| ty.chars().count()).max().unwrap_or_default();
    for (ty, found) in &description.exchanges {
        let _ = writeln!(text, "{ty:longest$}  {found}");
    }
    text.push_str("```\n");
    if let Some(source) = description.source {
        let _ = write!(text, "\nWritten in the language:\n\n```spmd\n{}\n```\n", source.trim_end());
    }
    let _ = write!(text, "\nExample: `{}`\n", description.example.trim_end());
    text
}
