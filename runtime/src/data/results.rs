//! The results of a program and their names, by which options such as `--out` choose among them.

use crate::data::array::HostArray;
use crate::data::second_names::dotted;
use crate::errors::suggest;
use crate::errors::trap::{RunCode, RunError};
use crate::io::arrays::WholeArray;
use spmdc_abi::{Binding, Plane};

/// A result as the program wrote it: one array, or complex numbers, whose planes are two.
#[derive(Clone, Debug, PartialEq)]
pub struct WholeResult {
    /// Its path in the result of the program; `0` if that is one array.
    pub name: String,
    /// Its path in the JAX program from which it comes, as a path of the language.
    pub second_name: Option<String>,
    /// Its type as printed.
    pub ty: String,
    /// The number of its array; of complex numbers that of the real parts.
    pub array: usize,
    /// The number of the array of imaginary parts.
    pub imaginary: Option<usize>,
}

/// The results as the program wrote them.
pub fn whole(results: &[Binding]) -> Vec<WholeResult> {
    let mut found: Vec<WholeResult> = Vec::new();
    for (index, result) in results.iter().enumerate() {
        match (result.plane, found.last_mut()) {
            (Some(Plane::Imaginary), Some(last)) => last.imaginary = Some(index),
            (Some(_) | None, _) => {
                let (name, ty) = (result.name.clone(), result.ty.clone());
                let second_name = result.second_name.as_deref().map(|name| dotted(name).into_owned());
                found.push(WholeResult { name, second_name, ty, array: index, imaginary: None });
            }
        }
    }
    found
}

impl WholeResult {
    /// The result from its arrays; None if they were not gathered.
    pub(crate) fn gathered<'a>(&self, arrays: &'a [Option<HostArray>]) -> Option<WholeArray<'a>> {
        let array = |index: usize| arrays.get(index).and_then(Option::as_ref);
        let imaginary = match self.imaginary {
            None => None,
            Some(imaginary) => Some(array(imaginary)?),
        };
        Some(WholeArray::new(array(self.array)?, imaginary))
    }
}

/// The number of the result with this name, and those below it, each with the rest of its name. Names of JAX are tried last. E0702 if there
/// is neither; `without_name` is the help for a program with a single result.
pub fn named(results: &[WholeResult], name: &str, without_name: &str) -> Result<Named, RunError> {
    let (mut exact, mut parts) = matching(results, name, |result| Some(&result.name));
    if exact.is_none() && parts.is_empty() {
        (exact, parts) = matching(results, &dotted(name), |result| result.second_name.as_ref());
    }
    if exact.is_none() && parts.is_empty() {
        return Err(unknown_result(results, name, without_name));
    }
    Ok((exact, parts))
}

/// The result with a name, and those below it.
type Named = (Option<usize>, Vec<(String, usize)>);

/// As [`named`]; `name_of` is the name of a result.
fn matching(results: &[WholeResult], name: &str, name_of: impl Fn(&WholeResult) -> Option<&String>) -> Named {
    let exact = results.iter().position(|result| name_of(result).is_some_and(|own| own == name));
    let prefix = format!("{name}.");
    let part = |(i, result)| Some((name_of(result)?.strip_prefix(&prefix)?.to_string(), i));
    (exact, results.iter().enumerate().filter_map(part).collect())
}

fn unknown_result(results: &[WholeResult], name: &str, without_name: &str) -> RunError {
    let names = || results.iter().map(|result| result.name.as_str());
    let error = RunError::new(RunCode::E0702, format!("the program has no result `{name}`"));
    match suggest::nearest(name, names()) {
        Some(near) if near != "0" || results.len() > 1 => error.with_help(format!("did you mean `{near}`?")),
        _ if results.len() == 1 => error.with_help(format!("it has a single result; {without_name}")),
        _ => error.with_help(format!("its results are {}", list(names()))),
    }
}

/// Names for a message.
pub fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
