//! Information on shipped functions: signature, example, and, by compiling the example, factor rules and collectives.

use crate::pipeline::{self, Compilation, Options};
use crate::totals::{Collective, collectives};
use spmdc_abi::words::bytes;
use spmdc_check::sources::{NoSources, SourceSet};
use spmdc_functions::Function;
use spmdc_grammar::ast::{FnItem, ItemKind, ParamNode, PatternKind, TypeExprKind};
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::signature::{Signature, Status};
use spmdc_ir::program::{Module, Stage};
use std::collections::BTreeMap;

/// The mesh on which collectives are measured.
pub const MESH: &str = "mesh (X = 2, Y = 2);";

/// The available functions of the language, by name, without functions that occur in dumps only.
pub fn functions() -> Vec<Function> {
    let mut found: Vec<Function> = spmdc_functions::functions()
        .filter(|function| match function.signature().status {
            Status::Shipped => true,
            Status::InDumps { .. } => false,
        })
        .collect();
    found.sort_by_key(|function| function.name);
    found
}

/// The element types for which a function is defined, in words; None if there is nothing to say.
pub fn element_types(function: &Function) -> Option<String> {
    let signature = function.signature();
    let real = signature.dtypes.describe()?;
    Some(if signature.complex.is_defined() { format!("{real}, and complex numbers") } else { real.to_string() })
}

/// The behaviour of a function, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionDescription {
    /// The element types for which it is defined; None if there is nothing to say.
    pub element_types: Option<String>,
    /// The factor rule of each statement of the example.
    pub rules: Vec<String>,
    /// The source of a function that is written in the language.
    pub source: Option<&'static str>,
    /// For each way to split an array of the example over [`MESH`]: the parameter's type, and the collectives or `none`.
    pub exchanges: Vec<(String, String)>,
    /// The example as a program that runs.
    pub example: String,
}

/// The behaviour of a function that programs may call; an error if its example does not compile.
pub fn described(function: &Function) -> Result<FunctionDescription, Vec<Diagnostic>> {
    let signature = function.signature();
    let shown = |found: Vec<Collective>| match found.is_empty() {
        true => "none".to_string(),
        false => found.iter().map(exchange).collect::<Vec<_>>().join("; "),
    };
    Ok(FunctionDescription {
        element_types: element_types(function),
        rules: rules(signature)?,
        source: function.prelude().map(|written| written.source),
        exchanges: exchanges(signature)?.into_iter().map(|(ty, found)| (ty, shown(found))).collect(),
        example: program(signature),
    })
}

/// `all_reduce over X, 16 bytes`
fn exchange(collective: &Collective) -> String {
    format!("{} over {}, {}", collective.kind.name(), collective.axes.join(" and "), bytes(collective.bytes))
}

/// A program of one line that calls the function.
pub fn example(signature: &Signature) -> String {
    let text = signature.example;
    if text.starts_with('(') { format!("fn main{text}") } else { text.to_string() }
}

/// The example as a program that runs: with a mesh if it names an axis.
pub fn program(signature: &Signature) -> String {
    let text = example(signature);
    let names_axes = text.contains('@') || text.contains("P(") || text.starts_with("manual");
    if names_axes { format!("{}\n{text}\n", mesh(&text)) } else { format!("{text}\n") }
}

/// The declaration of the mesh of an example, which has a name if the example names it.
fn mesh(text: &str) -> String {
    if text.contains("transfer(") { MESH.replace("mesh (", "mesh all (") } else { MESH.to_string() }
}

/// The names of the example's parameters.
pub fn parameters(signature: &Signature) -> Vec<String> {
    let (set, _) = SourceSet::load("example", &example(signature), &NoSources);
    let params = main_of(&set).map(|function| function.params.as_slice()).unwrap_or_default();
    params.iter().map(name_of).collect()
}

/// The factor rule of each statement that the example compiles to, as `sum(x, axis=(1,)): ab->a, b is summed`.
pub fn rules(signature: &Signature) -> Result<Vec<String>, Vec<Diagnostic>> {
    let compilation = compiled(&program(signature), Stage::Typed)?;
    let Some(Module { mesh, func, .. }) = compilation.stage(Stage::Typed) else { return Ok(Vec::new()) };
    let mut names = BTreeMap::new();
    names.extend(func.body.params.iter().copied().zip(func.params.iter().map(|param| param.name.clone())));
    let mut found = Vec::new();
    func.body.walk(&mut |stmt| {
        let Some(op) = stmt.op() else { return };
        // Scalars have no layouts.
        let mut values = stmt.args.iter().chain(&stmt.results);
        if values.all(|&value| func.ty(value).is_scalar()) {
            return;
        }
        let args: Vec<String> =
            stmt.args.iter().map(|arg| names.get(arg).cloned().unwrap_or("_".to_string())).collect();
        let text = format!("{}: {}", op.rules().print(&args, mesh), func.factors(op, stmt).describe());
        if !found.contains(&text) {
            found.push(text);
        }
    });
    Ok(found)
}

/// For each way to split an array of the example over the mesh: the parameter's type, and the collectives.
pub fn exchanges(signature: &Signature) -> Result<Vec<(String, Vec<Collective>)>, Vec<Diagnostic>> {
    let text = example(signature);
    let (set, _) = SourceSet::load("example", &text, &NoSources);
    let mut found = Vec::new();
    let mut measure = |what: String, text: &str| -> Result<(), Vec<Diagnostic>> {
        let compilation = compiled(&format!("{}\n{text}\n", mesh(text)), Stage::Optimized)?;
        found.push((what, compilation.stage(Stage::Optimized).map(collectives).unwrap_or_default()));
        Ok(())
    };
    for (name, places) in main_of(&set).filter(|function| !function.is_manual()).map(split_places).unwrap_or_default() {
        let mut ways: Vec<Vec<(usize, &str)>> = places.iter().map(|&place| vec![(place, "@X")]).collect();
        if let [first, second, ..] = *places {
            ways.push(vec![(first, "@X"), (second, "@Y")]);
        }
        for mut way in ways {
            way.sort_by_key(|&(place, _)| std::cmp::Reverse(place));
            let mut text = text.clone();
            way.iter().for_each(|&(place, axis)| text.insert_str(place, axis));
            let (set, _) = SourceSet::load("example", &text, &NoSources);
            let ty = main_of(&set).and_then(|function| {
                let param = function.params.iter().find(|param| name_of(param) == name)?;
                text.get(param.span.start as usize..param.span.end as usize)
            });
            measure(ty.unwrap_or(&name).to_string(), &text)?;
        }
    }
    if found.is_empty() {
        let compilation = compiled(&format!("{}\n{text}\n", mesh(&text)), Stage::Optimized)?;
        let of_example = compilation.stage(Stage::Optimized).map(collectives).unwrap_or_default();
        found.push(("as in the example".to_string(), of_example));
    }
    Ok(found)
}

fn compiled(text: &str, stage: Stage) -> Result<Compilation, Vec<Diagnostic>> {
    let (set, diagnostics) = SourceSet::load("example", text, &NoSources);
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    pipeline::compile(&set, &Options { stop_after: Some(stage), ..Options::default() })
}

fn main_of(set: &SourceSet) -> Option<&FnItem> {
    set.file(SourceSet::ROOT).program.items.iter().find_map(|item| match &item.kind {
        ItemKind::Fn(function) => Some(function),
        ItemKind::Mesh(_)
        | ItemKind::Test(_)
        | ItemKind::Const { .. }
        | ItemKind::Type { .. }
        | ItemKind::Import { .. } => None,
    })
}

fn name_of(param: &ParamNode) -> String {
    match &param.pattern.kind {
        PatternKind::Name(name) => name.clone(),
        PatternKind::Wildcard | PatternKind::Tuple(_) | PatternKind::Struct(_) => "_".to_string(),
    }
}

/// The parameters that are arrays, and the positions in the text after whose sizes an axis can be inserted.
fn split_places(function: &FnItem) -> Vec<(String, Vec<usize>)> {
    fn places(kind: &TypeExprKind) -> Vec<usize> {
        match kind {
            TypeExprKind::Array { dims, .. } => dims.iter().map(|dim| dim.size.span.end as usize).collect(),
            TypeExprKind::Stream(ty) => places(&ty.kind),
            TypeExprKind::Tuple(_) | TypeExprKind::Struct(_) | TypeExprKind::Named { .. } | TypeExprKind::On { .. } => {
                Vec::new()
            }
        }
    }
    let param = |param: &ParamNode| Some((name_of(param), places(&param.ty.as_ref()?.kind)));
    function.params.iter().filter_map(param).collect()
}
