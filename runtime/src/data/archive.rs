//! Files that contain several arrays, and which of them are a parameter's: `.npz` and `.safetensors`.

use std::collections::BTreeSet;
use std::path::Path;

use crate::data::second_names::dotted;
use crate::errors::suggest;
use crate::errors::trap::{RunCode, RunError};
use crate::io::npy::NpySource;
use crate::io::npz::NpzArchive;
use crate::io::safetensors::SafetensorsFile;
use spmdc_abi::{Binding, Plane};

/// A file that contains several arrays.
pub(crate) enum Archive {
    Npz(NpzArchive),
    Safetensors(SafetensorsFile),
}

impl Archive {
    /// Whether the name of the file is that of an archive.
    pub fn is_one(path: &Path) -> bool {
        has_extension(path, "npz") || has_extension(path, "safetensors")
    }

    /// Opens a file and reads the names of its arrays. An error (E0703) if it cannot be read or is not an archive.
    pub fn open(path: &Path) -> Result<Archive, RunError> {
        if has_extension(path, "safetensors") {
            return SafetensorsFile::open(path).map(Archive::Safetensors);
        }
        NpzArchive::open(path).map(Archive::Npz)
    }

    /// The names of the arrays.
    pub fn names(&self) -> Vec<String> {
        match self {
            Archive::Npz(archive) => archive.names().map(str::to_string).collect(),
            Archive::Safetensors(file) => file.names(),
        }
    }

    /// The names of the arrays for these leaves of the struct or tuple `path`. They are their paths in it, as `--out p=p.npz` writes them,
    /// or in the program, as `--out all.npz` does. An error if one is missing, or if an array matches no parameter.
    pub fn members_of(
        &self,
        params: &[Binding],
        leaves: &[usize],
        path: &str,
        file: &Path,
    ) -> Result<Vec<String>, RunError> {
        debug_assert!(leaves.iter().all(|&leaf| is_below(&params[leaf].name, path)), "leaves of `{path}`");
        let names = self.names();
        let shown = file.display();
        let is_full = names.iter().any(|name| is_below(name, path));
        let wanted = |leaf: usize| if is_full { &params[leaf].name } else { &params[leaf].name[path.len() + 1..] };
        let missing: Vec<usize> =
            leaves.iter().copied().filter(|&leaf| !names.iter().any(|name| name == wanted(leaf))).collect();
        // Arrays of an archive with the names of the program belong to other values, unless they are below the struct.
        let extra: Vec<&String> = names
            .iter()
            .filter(|name| !leaves.iter().any(|&leaf| wanted(leaf) == *name))
            .filter(|name| if is_full { is_below(name, path) } else { !params.iter().any(|p| p.name == **name) })
            .collect();
        if let Some(&first) = missing.first() {
            let texts = missing.iter().map(|&leaf| format!("`{}: {}`", params[leaf].name, params[leaf].ty));
            let verb = if missing.len() == 1 { "is" } else { "are" };
            let texts: Vec<String> = texts.collect();
            let absent: Vec<String> = missing.iter().map(|&leaf| format!("`{}`", wanted(leaf))).collect();
            let why = format!("{} {verb} missing: `{shown}` has no {}", texts.join(", "), absent.join(", "));
            let near = suggest::nearest(wanted(first), extra.iter().map(|name| name.as_str()));
            let help = near.map_or_else(|| holds(self), |near| format!("did you mean `{near}`? {}", holds(self)));
            return Err(RunError::new(RunCode::E0702, why).with_help(help));
        }
        if let Some(first) = extra.first() {
            let parts: Vec<String> = leaves.iter().map(|&leaf| format!("`{}`", wanted(leaf))).collect();
            let listed: Vec<String> = extra.iter().map(|name| format!("`{name}`")).collect();
            let why = format!("`{shown}` has arrays that `{path}` does not have: {}", listed.join(", "));
            let near = suggest::nearest(first, leaves.iter().map(|&leaf| wanted(leaf)));
            let near = near.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
            let leaf = &params[leaves[0]].name;
            return Err(RunError::new(RunCode::E0702, why).with_help(format!(
                "{near}the parts of `{path}` are {}; to read only some arrays of the file, write --arg {leaf}=@{shown}:KEY for each",
                parts.join(", ")
            )));
        }
        Ok(leaves.iter().map(|&leaf| wanted(leaf).to_string()).collect())
    }

    /// The array of this name, or `None` if there is none.
    pub fn array(&self, name: &str) -> Result<Option<NpySource>, RunError> {
        match self {
            Archive::Npz(archive) => archive.array(name),
            Archive::Safetensors(file) => file.array(name),
        }
    }
}

/// The names of the arrays, for messages.
pub(crate) fn holds(archive: &Archive) -> String {
    let names: Vec<String> = archive.names().iter().map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "it holds no arrays".to_string() } else { format!("it holds {}", names.join(", ")) }
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found.eq_ignore_ascii_case(extension))
}

/// Whether the leaf is inside the struct or tuple: `p.w` in `p`.
pub(crate) fn is_below(leaf: &str, path: &str) -> bool {
    leaf.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'))
}

/// E0702 for a name that no parameter has.
pub(crate) fn unknown_parameter(params: &[Binding], path: &str) -> RunError {
    let error = RunError::new(RunCode::E0702, format!("the program has no parameter `{path}`"));
    let names = params.iter().map(|param| param.name.as_str());
    let with_structs = names.clone().chain(names.clone().filter_map(|name| name.split('.').next()));
    error.with_help(known_parameters(params, suggest::nearest(path, with_structs)))
}

/// The parameter that was probably meant, or all of them.
fn known_parameters(params: &[Binding], near: Option<&str>) -> String {
    match near {
        Some(near) => format!("did you mean `{near}`?"),
        None if params.is_empty() => "it has no parameters".to_string(),
        None => {
            let whole = params.iter().filter(|param| param.plane != Some(Plane::Imaginary));
            let known: Vec<String> = whole.map(|param| format!("`{}: {}`", param.name, param.ty)).collect();
            format!("its parameters are {}", known.join(", "))
        }
    }
}

/// Checks that every array of the archive of a whole program has the name or the second name of a parameter; E0702 otherwise.
pub(crate) fn check_members([params, second]: [&[Binding]; 2], archive: &Archive, file: &Path) -> Result<(), RunError> {
    let known: BTreeSet<&str> = params.iter().map(|param| param.name.as_str()).collect();
    let paths: BTreeSet<&str> = second.iter().map(|param| param.name.as_str()).collect();
    let names = archive.names();
    let is_extra = |name: &&String| {
        let path = dotted(name);
        !known.contains(name.as_str()) && !known.contains(&*path) && !paths.contains(&*path)
    };
    let extra: Vec<&String> = names.iter().filter(is_extra).collect();
    let Some(first) = extra.first() else { return Ok(()) };
    let listed: Vec<String> = extra.iter().map(|name| format!("`{name}`")).collect();
    let why = format!("`{}` has arrays that are not parameters of the program: {}", file.display(), listed.join(", "));
    Err(RunError::new(RunCode::E0702, why).with_help(known_parameters(params, suggest::nearest(first, known))))
}
