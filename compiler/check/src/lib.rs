//! From the syntax tree to the typed IR.
//!
//! The program's entry function is expanded: every call is replaced by the called function's body, with the arguments' types for
//! its parameters. The result is one function of statements over arrays. During expansion, an expression is a [`Term`]: an
//! array of the program, or an object that exists at compile time only, such as a number, a struct or a function.
//!
//! An error is reported and its term becomes [`Term::Poison`], which every operation accepts silently. So several errors are
//! reported in one run, each once.
#![warn(missing_docs)]

mod complex;
mod control;
mod errors;
mod expand;
mod program;
mod regions;
mod transforms;
mod types;

pub use program::meshes::MeshOverride;
pub use program::sources;
pub use types::sizes;

use expand::prelude;
use expand::scopes::{self, Expansion};
use program::names::{self, ItemId, Names};
use program::sources::SourceSet;
use program::{constants, meshes, stage};
use spmdc_grammar::ast::FnItem;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::{Diagnostic, Severity};
use spmdc_grammar::span::Span;
use spmdc_ir::call::build::CallBuilder;
pub use spmdc_ir::call::fields::FieldLinks;
use spmdc_ir::call::scoped::Scoped;
use spmdc_ir::call::term::Term;
use spmdc_ir::program::{Func, Module, Stage};
use spmdc_kernel::machine::Machine;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::AxisSet;
use spmdc_ops::builder;
use std::collections::{BTreeMap, BTreeSet};
use types::declared::TypeWork;

/// The options of the command line that concern checking.
#[derive(Clone, Debug, Default)]
pub struct CheckOptions {
    /// `--entry`; None for `main`.
    pub entry: Option<String>,
    /// Whether tests are checked that are not the entry.
    pub tests: bool,
    /// `--mesh`; None for the program's mesh.
    pub mesh: Option<MeshOverride>,
    /// `--set NAME=VALUE`
    pub sets: Vec<(String, String)>,
    /// The sizes at which the compiler changes its choices.
    pub machine: Machine,
    /// The source positions of functions and loops whose bodies are treated as a `checkpoint`, to measure its savings.
    pub recomputed: Vec<Span>,
}

/// Maximum nesting of expressions, through all functions that are being expanded.
const MAX_DEPTH: usize = 3000;

/// Maximum number of calls that are expanded: of functions of the program, and of lambdas. Each is compiled as a part of its caller.
const MAX_EXPANDED: usize = 200_000;

/// Stack bytes that suffice for that nesting.
const STACK_BYTES: usize = 256 << 20;

/// Stack bytes that suffice from one expression or block to the next one inside it.
const LEVEL_BYTES: usize = 256 << 10;

/// Calls this on another stack if the present one could be too small: few programs nest so deeply.
fn with_stack<T>(call: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(LEVEL_BYTES, STACK_BYTES, call)
}

/// The typed program and warnings, or all errors.
pub fn check(set: &SourceSet, options: &CheckOptions) -> Result<(Module, Vec<Diagnostic>), Vec<Diagnostic>> {
    let (checker, module) = expand_program(set, options);
    checker.finish(module)
}

/// The places at which the program names the same fields, and all findings. Code that no entry, test or constant uses has none.
pub fn fields(set: &SourceSet, options: &CheckOptions) -> (FieldLinks, Vec<Diagnostic>) {
    let (mut checker, module) = expand_program(set, options);
    let fields = std::mem::take(&mut checker.build.fields);
    let findings = match checker.finish(module) {
        Ok((_, warnings)) => warnings,
        Err(errors) => errors,
    };
    (fields, findings)
}

fn expand_program<'a>(set: &'a SourceSet, options: &'a CheckOptions) -> (Checker<'a>, Option<Module>) {
    let mut diagnostics = Vec::new();
    let names = Names::collect(set, &mut diagnostics);
    let mut checker = Checker {
        set,
        names,
        build: builder(Mesh::default(), Func::new(options.entry.as_deref().unwrap_or("main"))),
        diagnostics,
        warnings: Vec::new(),
        expansions: Vec::new(),
        constants: BTreeMap::new(),
        sets: options.sets.iter().cloned().collect(),
        expanded: BTreeSet::new(),
        lambdas: BTreeMap::new(),
        lists: BTreeMap::new(),
        leaves_choices: false,
        mapped_axes: AxisSet::EMPTY,
        exact: None,
        statement: Span::default(),
        value_acts: false,
        refused: None,
        types: TypeWork::default(),
        crosses: false,
        depth: 0,
        expanded_calls: 0,
        recomputed: &options.recomputed,
        checks_tests: options.tests,
    };
    match stage::of_header(set.file(SourceSet::ROOT).program.stage.as_ref()) {
        Ok(exact) => {
            checker.build.set_exact(exact.is_some());
            checker.exact = exact;
        }
        Err(diagnostic) => checker.diagnostics.push(diagnostic),
    }
    checker.check_sets(&options.sets);
    let declared = meshes::declared(set, &mut checker.diagnostics);
    let mut mesh_errors = Vec::new();
    let mut reader = meshes::MeshReader {
        given: options.mesh.as_ref(),
        size: &mut |size| checker.mesh_size(size),
        diagnostics: &mut mesh_errors,
    };
    let mesh = reader.build(&declared);
    checker.diagnostics.append(&mut mesh_errors);
    if checker.exact.is_some() && options.mesh.is_some() {
        let mut reader = meshes::MeshReader {
            given: None,
            size: &mut |size| checker.mesh_size(size),
            diagnostics: &mut mesh_errors,
        };
        let own = reader.build(&declared);
        checker.refuse_other_mesh(&own, &mesh);
    }
    let axes: Vec<String> = mesh.axes.iter().map(|axis| axis.name.clone()).collect();
    checker.build.set_mesh(Mesh { machine: options.machine, ..mesh });
    let meshes: Vec<String> = checker.build.mesh().named.iter().map(|mesh| mesh.name.clone()).collect();
    let is_compiled = |test: &FnItem| options.tests || options.entry.as_ref() == Some(&test.name.name);
    names::resolve(set, &checker.names, &is_compiled, (&axes, &meshes), &mut checker.diagnostics);
    let module = checker.program(options.entry.as_deref());
    (checker, module)
}

/// The state of one check: facts about the program, the function under construction, and the findings.
struct Checker<'a> {
    set: &'a SourceSet,
    names: Names,
    build: CallBuilder,
    diagnostics: Vec<Diagnostic>,
    /// Of programs that are right: errors count as failures of a trial, warnings do not.
    warnings: Vec<Diagnostic>,
    /// The functions that are being expanded, outermost first.
    expansions: Vec<Expansion>,
    constants: BTreeMap<ItemId, constants::ConstValue>,
    sets: BTreeMap<String, String>,
    /// Functions that have been expanded at least once.
    expanded: BTreeSet<ItemId>,
    /// The lambdas of the program, each copied from the tree once.
    lambdas: BTreeMap<Span, std::rc::Rc<scopes::LambdaSource>>,
    /// The source positions of the parts of lists and tuples, for edits of one of them.
    lists: BTreeMap<Span, Vec<Span>>,
    /// The stage of the dump that is being read, which states all types; None for a program.
    exact: Option<Stage>,
    /// The source position of the statement being checked.
    statement: Span,
    /// Whether the value of the last finished block was computed by code that prints or may stop the program.
    value_acts: bool,
    /// The error in the call of a function of the prelude that is being expanded.
    refused: Option<prelude::Refusal>,
    types: TypeWork,
    /// Whether the checker is in an expression whose ambiguous layouts are resolved outside of it.
    leaves_choices: bool,
    /// The axes that split the mapped dimensions of the `vmap`s that are being expanded: elements cannot be split over them.
    mapped_axes: AxisSet,
    /// Whether values come to where types decide layouts: annotations ask for theirs instead of checking them.
    crosses: bool,
    /// The number of expressions around the present one.
    depth: usize,
    /// The number of calls that have been expanded.
    expanded_calls: usize,
    /// See [`CheckOptions::recomputed`].
    recomputed: &'a [Span],
    /// Whether tests are checked that are not the entry.
    checks_tests: bool,
}

impl Scoped for Checker<'_> {
    fn builder(&mut self) -> &mut CallBuilder {
        &mut self.build
    }
}

impl Checker<'_> {
    /// Records a finding and returns the term that replaces the expression.
    fn report(&mut self, diagnostic: Diagnostic) -> Term {
        if self.in_prelude() {
            let conflict = self.build.take_conflict();
            self.refused.get_or_insert((diagnostic, conflict));
            return Term::Poison;
        }
        let diagnostic = self.with_call_site(diagnostic);
        self.diagnostics.push(diagnostic);
        Term::Poison
    }

    fn or_report(&mut self, result: Result<Term, Diagnostic>) -> Term {
        match result {
            Ok(term) => term,
            Err(diagnostic) => self.report(diagnostic),
        }
    }

    fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    fn finish(mut self, module: Option<Module>) -> Result<(Module, Vec<Diagnostic>), Vec<Diagnostic>> {
        self.diagnostics.append(&mut self.warnings);
        // Errors in a function that is expanded twice are reported once.
        let mut seen = BTreeSet::new();
        self.diagnostics.retain(|diagnostic| {
            // Findings without a position, and those about several variables of a loop or an `if`, are distinguished by their text.
            let by_words = diagnostic.span == Span::default() || matches!(diagnostic.code, Code::E0212 | Code::E0213);
            let words = if by_words { diagnostic.message.clone() } else { String::new() };
            seen.insert((diagnostic.code, diagnostic.span, diagnostic.severity == Severity::Error, words))
        });
        self.diagnostics.sort_by_key(|diagnostic| (diagnostic.span.file, diagnostic.span.start));
        let has_errors = self.has_errors();
        match module {
            Some(module) if !has_errors => Ok((module, self.diagnostics)),
            Some(_) | None => Err(self.diagnostics),
        }
    }
}
