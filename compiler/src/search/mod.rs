//! Searches for the layouts of a program: annotations of parameters, results and named values with which its estimated time is least.
//!
//! `sites` finds the places at which a layout may be written, `space` joins those that are decided together, `explore` tries candidates,
//! and `judge` prices each of them by a compilation up to the memory plan. The best ones are then written into the source, without the
//! annotations that change nothing, and compiled from there: the reported figures are those of the written program.

mod explore;
mod judge;
mod sites;
mod space;

pub use explore::SearchBounds;
pub use judge::Price;
pub use sites::{DimAxesList, SiteKind, SourceEdit};

use crate::pipeline::{Options, compile};
use crate::totals::{Collective, collectives};
use explore::{SearchOutcome, search};
use judge::{EFFORT_OF_NAMED, Judge};
use sites::sites;
use space::{Candidate, DecisionSpace};
use spmdc_abi::words::bytes;
use spmdc_check::MeshOverride;
use spmdc_check::sources::SourceSet;
use spmdc_grammar::ast::{ItemKind, MeshAxisNode, MeshItem, MeshKind, ProgramNode};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::parse;
use spmdc_grammar::print;
use spmdc_grammar::span::Span;
use spmdc_ir::program::{Module, Stage};
use spmdc_layout::mesh::AxisKind;

/// The number of alternatives that are reported after the best layout.
const ALTERNATIVES: usize = 3;

/// Maximum number of candidates that are written into the source and compared again.
const FINALISTS: usize = 8;

/// Candidates for each of them: writing one into the source takes as long as pricing about this many.
const CANDIDATES_PER_FINALIST: usize = 24;

/// Maximum number of meshes that are compared.
const MAX_SHAPES: usize = 64;

/// The request to a search.
#[derive(Clone, Copy, Debug)]
pub struct SearchRequest {
    /// Maximum bytes of a device.
    pub memory: Option<u64>,
    /// The bounds of the search.
    pub bounds: SearchBounds,
}

/// A layout of the program, as annotations.
#[derive(Clone, Debug, PartialEq)]
pub struct ProposedLayout {
    /// The annotations to write, in the order of the source.
    pub edits: Vec<ProposedEdit>,
    /// The costs of the program with them.
    pub price: Price,
    /// Its collectives, in program order.
    pub collectives: Vec<Collective>,
}

impl ProposedLayout {
    /// The effort of writing it: parameters and results are annotated rather than named values.
    fn effort(&self) -> usize {
        let of = |edit: &ProposedEdit| if edit.kind == SiteKind::Named { EFFORT_OF_NAMED } else { 1 };
        self.edits.iter().map(of).sum()
    }
}

/// An annotation to write.
#[derive(Clone, Debug, PartialEq)]
pub struct ProposedEdit {
    /// The change of the source.
    pub edit: SourceEdit,
    /// The old and the new text, shortened for people.
    pub shown: (String, String),
    /// The place for people: `x`, `Layer.w`, `the result`.
    pub name: String,
    /// The kind of its place.
    pub kind: SiteKind,
    /// The costs of the program with the other annotations only; None if these alone contradict each other.
    pub without: Option<Price>,
}

/// The result of a search.
#[derive(Clone, Debug)]
pub struct SearchResult {
    /// The axes of the mesh, with their sizes.
    pub mesh: Vec<(String, usize)>,
    /// The edits that give the program this mesh; none if it was not searched, too.
    pub mesh_edits: Vec<SourceEdit>,
    /// The meshes that were compared, with the price of the best layout that was found on each of them; the best one first.
    pub shapes: Vec<(Vec<(String, usize)>, Price)>,
    /// The costs of the program as it is on this mesh.
    pub before: Price,
    /// The best layout, then alternatives.
    pub layouts: Vec<ProposedLayout>,
    /// The number of places that were decided, and of those with annotations of the program.
    pub places: (usize, usize),
    /// The number of decisions.
    pub decisions: usize,
    /// The number of candidates compiled.
    pub priced: usize,
    /// Whether all candidates were priced.
    pub is_exhaustive: bool,
    /// Whether a bound ended the search.
    pub is_cut: bool,
}

/// Searches for layouts of the program's main file on its mesh, or on the best mesh of this number of devices.
pub fn search_layouts(
    set: &SourceSet,
    options: &Options,
    request: SearchRequest,
    devices: Option<usize>,
) -> Result<SearchResult, Vec<Diagnostic>> {
    let Some(devices) = devices else {
        let program = SearchedProgram::new(set, options.clone())?;
        let found = program.search(request);
        return program.result(&found, request);
    };
    let shapes = mesh_shapes(&set.file(SourceSet::ROOT).program, devices)?;
    let each = SearchBounds { statements: request.bounds.statements / shapes.len().max(1), ..request.bounds };
    let mut best: Option<(SearchedProgram<'_>, SearchOutcome)> = None;
    let mut tried = Vec::new();
    let mut refused = None;
    for shape in shapes {
        let mut options = options.clone();
        options.check.mesh = Some(MeshOverride::Named(shape.clone()));
        // A mesh on which the program is not valid, or whose devices the hosts cannot share.
        let program = match SearchedProgram::new(set, options) {
            Ok(program) => program,
            Err(errors) => {
                refused.get_or_insert(errors);
                continue;
            }
        };
        let found = program.search(SearchRequest { bounds: each, ..request });
        let Some((_, price)) = found.ranked.first() else { continue };
        tried.push((shape, *price));
        let is_better = |(_, known): &(SearchedProgram<'_>, SearchOutcome)| {
            known.ranked.first().is_none_or(|(_, known)| price.order(known, request.memory).is_lt())
        };
        if best.as_ref().is_none_or(is_better) {
            best = Some((program, found));
        }
    }
    let Some((program, mut found)) = best else {
        return Err(refused.unwrap_or_else(without_program));
    };
    if found.is_cut {
        found = program.search(request);
    }
    let mut result = program.result(&found, request)?;
    let root = set.file(SourceSet::ROOT);
    result.mesh_edits = mesh_edits(&root.program, &root.text, &result.mesh);
    tried.sort_by(|a, b| a.1.order(&b.1, request.memory));
    result.shapes = tried;
    Ok(result)
}

/// The ways to arrange devices along the axes of a program, or along `data` and `model`.
fn mesh_shapes(program: &ProgramNode, devices: usize) -> Result<Vec<Vec<(String, usize)>>, Vec<Diagnostic>> {
    let axes = mesh_axes(program);
    let names: Vec<String> = match axes.is_empty() {
        true => vec!["data".to_string(), "model".to_string()],
        false => axes.iter().map(|axis| axis.name.name.clone()).collect(),
    };
    let mut shapes: Vec<Vec<usize>> = vec![Vec::new()];
    for at in 0..names.len() {
        let longer = shapes.iter().flat_map(|shape| {
            let left = devices / shape.iter().product::<usize>();
            let last = at + 1 == names.len();
            let fits = move |size: &usize| left.is_multiple_of(*size) && (!last || *size == left);
            (1..=left).filter(fits).map(|size| [&shape[..], &[size]].concat())
        });
        shapes = longer.collect();
    }
    if shapes.len() > MAX_SHAPES {
        let message = format!("{devices} devices have {} arrangements along {} axes", shapes.len(), names.len());
        let error = Diagnostic::error(Code::E0601, Span::default(), message);
        return Err(vec![error.help("choose the mesh with --mesh").of_command()]);
    }
    Ok(shapes.into_iter().map(|shape| names.iter().cloned().zip(shape).collect()).collect())
}

/// The axes that a program declares; none without a `mesh` item.
fn mesh_axes(program: &ProgramNode) -> &[MeshAxisNode] {
    let axes = program.items.iter().find_map(|item| match &item.kind {
        ItemKind::Mesh(MeshItem { kind: MeshKind::Axes { axes, .. }, .. }) => Some(&axes[..]),
        ItemKind::Mesh(MeshItem { kind: MeshKind::Sub { .. }, .. })
        | ItemKind::Const { .. }
        | ItemKind::Type { .. }
        | ItemKind::Import { .. }
        | ItemKind::Fn(_)
        | ItemKind::Test(_) => None,
    });
    axes.unwrap_or_default()
}

/// The edits that give a program this mesh.
fn mesh_edits(program: &ProgramNode, text: &str, mesh: &[(String, usize)]) -> Vec<SourceEdit> {
    let axes = mesh_axes(program);
    if axes.is_empty() {
        let axes: Vec<String> = mesh.iter().map(|(name, size)| format!("{name} = {size}")).collect();
        let first = program.items.first().map_or(Span::default(), |item| item.span);
        // The comment of the first item stays with it.
        let mut start = first.start as usize;
        let line_before = |start: usize| {
            let before = text.get(..start)?.trim_end_matches([' ', '\t']).strip_suffix('\n')?;
            let line = before.rfind('\n').map_or(0, |end| end + 1);
            before[line..].trim_start().starts_with("///").then_some(line)
        };
        while let Some(line) = line_before(start) {
            start = line;
        }
        let span = Span { start: start as u32, end: start as u32, ..first };
        return vec![SourceEdit { span, from: String::new(), to: format!("mesh ({});\n\n", axes.join(", ")) }];
    }
    let changed = axes.iter().zip(mesh).filter_map(|(axis, (_, size))| {
        let (from, to) = (print::expr(&axis.size), size.to_string());
        (from != to).then_some(SourceEdit { span: axis.size.span, from, to })
    });
    changed.collect()
}

/// A program whose layouts are searched.
struct SearchedProgram<'a> {
    set: &'a SourceSet,
    options: Options,
    /// The program at the stage `differentiated`.
    module: Module,
    space: DecisionSpace,
    /// The costs of the program as it is.
    before: Price,
}

impl<'a> SearchedProgram<'a> {
    fn new(set: &'a SourceSet, options: Options) -> Result<SearchedProgram<'a>, Vec<Diagnostic>> {
        let compilation = compile(set, &options)?;
        let root = set.file(SourceSet::ROOT);
        let refused = |text: &str, help: &str| {
            let error = Diagnostic::error(Code::E0901, Span::default(), text);
            vec![error.help(help).of_command()]
        };
        if root.name.ends_with(".mlir") {
            let help = "print it as a program with `spmdc import`, and search for layouts of that";
            return Err(refused("layouts cannot be written into StableHLO text", help));
        }
        if root.program.stage.is_some() {
            let help = "search for layouts of the program from which it was made";
            return Err(refused("a dump has its layouts", help));
        }
        let differentiated = Options { stop_after: Some(Stage::Differentiated), ..options.clone() };
        let mut early = compile(set, &differentiated)?;
        let Some(module) = early.stages.pop().filter(|module| !module.mesh.is_several()) else {
            let help = "search for layouts of the part on each mesh as a program of its own";
            return Err(refused("layouts of a program with several meshes cannot be searched", help));
        };
        if module.mesh.axes.iter().any(|axis| axis.kind == AxisKind::Explicit && axis.size > 1) {
            let help = "declare the axes as `auto` for the search, and write the layouts that it finds into the types";
            return Err(refused("layouts along explicit axes, which types decide, cannot be searched", help));
        }
        let before = Price::of(&compilation, &options).ok_or_else(without_program)?;
        let entry = options.check.entry.as_deref().unwrap_or("main");
        let space = DecisionSpace::new(sites(&root.program, &module, entry), &module);
        Ok(SearchedProgram { set, options, module, space, before })
    }

    fn judge(&self, request: SearchRequest) -> Judge<'_> {
        Judge::new(&self.module, &self.options, request.memory, &self.space)
    }

    fn search(&self, request: SearchRequest) -> SearchOutcome {
        search(&self.space, &self.judge(request), request.bounds)
    }

    /// The best candidates, written into the source. E0803 if none of them keeps the memory limit.
    fn result(&self, found: &SearchOutcome, request: SearchRequest) -> Result<SearchResult, Vec<Diagnostic>> {
        let (judge, space) = (self.judge(request), &self.space);
        let writer =
            LayoutWriter { set: self.set, options: &self.options, space, judge: &judge, limit: request.memory };
        let mut layouts: Vec<ProposedLayout> = Vec::new();
        let all = request.bounds.statements / judge.statements().max(1);
        for (candidate, price) in found.ranked.iter().take((all / CANDIDATES_PER_FINALIST).clamp(2, FINALISTS)) {
            // The others are at best as good.
            if layouts.len() > ALTERNATIVES {
                break;
            }
            let Some(layout) = writer.proposed(candidate, price) else { continue };
            match layouts.iter_mut().find(|known| known.price == layout.price) {
                Some(known) if layout.effort() < known.effort() => *known = layout,
                Some(_) => {}
                None => layouts.push(layout),
            }
        }
        // Candidates are in order, unless comparing the layouts of the whole program makes one of them better.
        let is_first_best = |best: &ProposedLayout| layouts.iter().all(|each| judge.is_alike(&each.price, &best.price));
        if !layouts.first().is_some_and(is_first_best) {
            layouts.sort_by(|a, b| a.price.order(&b.price, request.memory).then(a.edits.len().cmp(&b.edits.len())));
        }
        if let (Some(limit), Some(best)) = (request.memory, layouts.first())
            && best.price.memory > limit
        {
            let least = bytes(best.price.memory);
            let message =
                format!("no layout was found with which a device needs at most {}: the least is {least}", bytes(limit));
            let help =
                "raise --memory-limit, use more devices, or `checkpoint` functions whose values derivatives keep";
            return Err(vec![Diagnostic::error(Code::E0803, Span::default(), message).help(help).of_command()]);
        }
        if let Some(best) = layouts.first_mut() {
            writer.explain(best);
        }
        let kept = space.sites.iter().filter(|site| site.is_kept).count();
        Ok(SearchResult {
            mesh: self.module.mesh.axes.iter().map(|axis| (axis.name.clone(), axis.size)).collect(),
            mesh_edits: Vec::new(),
            shapes: Vec::new(),
            before: self.before,
            layouts,
            places: (space.sites.len() - kept, kept),
            decisions: space.groups.len(),
            priced: found.ranked.len(),
            is_exhaustive: found.is_exhaustive,
            is_cut: found.is_cut,
        })
    }
}

fn without_program() -> Vec<Diagnostic> {
    vec![Diagnostic::error(Code::E0999, Span::default(), "a complete compilation has no program")]
}

/// Writes candidates into the source.
struct LayoutWriter<'a> {
    set: &'a SourceSet,
    options: &'a Options,
    space: &'a DecisionSpace,
    judge: &'a Judge<'a>,
    limit: Option<u64>,
}

impl LayoutWriter<'_> {
    /// The annotations of a candidate that have an effect; None if the written program cannot be compiled.
    fn proposed(&self, candidate: &Candidate, price: &Price) -> Option<ProposedLayout> {
        let needed = self.needed(candidate, price);
        let all = self.space.decided(&needed);
        // One place of each group, if the others follow from it.
        let first = |site: &usize| self.space.groups.iter().any(|group| group.sites[0] == *site);
        let few: Vec<_> = all.iter().copied().filter(|(site, _)| first(site)).collect();
        let (few, all) = (self.written(&few), self.written(&all));
        let is_enough = match (&few, &all) {
            (Some(few), Some(all)) => few.price.order(&all.price, self.limit).is_le(),
            (Some(_), None) => true,
            (None, _) => false,
        };
        if is_enough { few } else { all }
    }

    /// The candidate without the decisions that follow from others. Named values and results are left out first.
    fn needed(&self, candidate: &Candidate, price: &Price) -> Candidate {
        let mut needed = candidate.clone();
        for group in (0..needed.len()).rev().filter(|&group| candidate[group].is_some()) {
            let mut without = needed.clone();
            without[group] = None;
            let found = self.judge.prices(self.space, std::slice::from_ref(&without), None).pop();
            if found.flatten().flatten().is_some_and(|found| found.order(price, self.limit).is_le()) {
                needed = without;
            }
        }
        needed
    }

    /// The program with these annotations.
    fn written(&self, decided: &[(usize, &DimAxesList)]) -> Option<ProposedLayout> {
        let root = self.set.file(SourceSet::ROOT);
        let proposed = |(site, split): &(usize, &DimAxesList)| {
            let site = &self.space.sites[*site];
            let edit = site.edit(&root.program, &root.text, split, self.judge.axes())?;
            let shown = site.shown(&edit, split, self.judge.axes());
            Some(ProposedEdit { edit, shown, name: site.name.clone(), kind: site.kind, without: None })
        };
        let mut edits = decided.iter().map(proposed).collect::<Option<Vec<_>>>()?;
        edits.sort_by_key(|each| each.edit.span.start);
        let (price, collectives) = self.compiled(&edits)?;
        Some(ProposedLayout { edits, price, collectives })
    }

    /// The costs of the program with these edits.
    fn compiled(&self, edits: &[ProposedEdit]) -> Option<(Price, Vec<Collective>)> {
        let mut changed = self.set.clone();
        let root = &mut changed.files[0];
        root.text = edited(&root.text, edits.iter().map(|each| &each.edit));
        let (program, errors) = parse(&root.text, SourceSet::ROOT);
        root.program = program;
        if !errors.is_empty() {
            return None;
        }
        let compilation = compile(&changed, self.options).ok()?;
        let module = compilation.stage(Stage::Optimized)?;
        Some((Price::of(&compilation, self.options)?, collectives(module)))
    }

    /// Adds the costs of the program without each of its edits.
    fn explain(&self, layout: &mut ProposedLayout) {
        let without: Vec<Option<Price>> = (0..layout.edits.len())
            .map(|at| {
                let mut others = layout.edits.clone();
                others.remove(at);
                self.compiled(&others).map(|(price, _)| price)
            })
            .collect();
        layout.edits.iter_mut().zip(without).for_each(|(edit, without)| edit.without = without);
    }
}

/// The text of a file with these edits, which do not overlap.
pub fn edited<'a>(text: &str, edits: impl Iterator<Item = &'a SourceEdit>) -> String {
    let mut edits: Vec<&SourceEdit> = edits.collect();
    edits.sort_by_key(|edit| std::cmp::Reverse(edit.span.start));
    let mut text = text.to_string();
    for edit in edits {
        text.replace_range(edit.span.start as usize..edit.span.end as usize, &edit.to);
    }
    text
}
