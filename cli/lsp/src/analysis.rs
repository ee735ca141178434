//! The analysis of open programs, on two threads.
//!
//! The first thread checks each open document as a program, and publishes its diagnostics. The second one compiles the programs without
//! errors, when no change has come for a while: hints, types and collectives are from its result. Both drop their work when a newer text
//! has come.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lsp_server::{Message, Notification};
use lsp_types::PublishDiagnosticsParams;
use spmdc_check::check;
use spmdc_check::sources::SourceSet;
use spmdc_compiler::pipeline::{self, Compilation, Options};
use spmdc_compiler::report::lints::{Policy, findings};
use spmdc_compiler::sources::load;
use spmdc_compiler::totals::collectives;
use spmdc_grammar::ast::ItemKind;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::{Diagnostic, Severity};
use spmdc_grammar::span::Span;
use spmdc_ir::program::Stage;

use crate::carried::carried;
use crate::documents::Overlay;
use crate::findings::{Published, shown};
use crate::programs::{CheckedProgram, CompiledProgram, Settings};
use crate::shipped::{self, Copies};
use crate::worker::{Newest, lock};

/// The time without changes after which programs are compiled.
const QUIET: Duration = Duration::from_millis(150);

/// Maximum number of programs whose compilations are kept, those that changed last.
const MAX_COMPILED: usize = 8;

/// The open documents to analyse.
#[derive(Clone, Debug)]
pub struct AnalysisJob {
    /// Their texts.
    pub overlay: Overlay,
    /// The programs, those that changed last first.
    pub roots: Vec<PathBuf>,
    /// The settings of the client.
    pub settings: Settings,
}

/// The newest results, by the path of the program.
#[derive(Debug, Default)]
pub struct Results {
    /// Findings.
    pub checked: BTreeMap<PathBuf, Arc<CheckedProgram>>,
    /// Compilations of the last texts without errors.
    pub compiled: BTreeMap<PathBuf, Arc<CompiledProgram>>,
}

/// The messages of the threads to the client.
pub type Send = Arc<dyn Fn(Message) + std::marker::Send + Sync>;

/// The threads, and their results.
#[derive(Clone)]
pub struct Analyst {
    jobs: Newest<AnalysisJob>,
    compilations: Newest<AnalysisJob>,
    results: Arc<Mutex<Results>>,
    published: Arc<Mutex<Published>>,
    send: Send,
}

impl Analyst {
    /// Starts the threads. `refresh` asks the client for new hints.
    pub fn start(
        send: Send,
        copies: Copies,
        refresh: impl Fn() + std::marker::Send + 'static,
    ) -> std::io::Result<Analyst> {
        let analyst = Analyst {
            jobs: Newest::new(),
            compilations: Newest::new(),
            results: Arc::default(),
            published: Arc::new(Mutex::new(Published::new(copies))),
            send,
        };
        let own = analyst.clone();
        analyst.jobs.start("check", move |job| own.check(job))?;
        let own = analyst.clone();
        analyst.compilations.start("compile", move |job| own.compile(&job, &refresh))?;
        Ok(analyst)
    }

    /// Analyses these documents, and drops the work on earlier ones.
    pub fn analyse(&self, job: AnalysisJob) {
        self.jobs.put(job);
    }

    /// Ends the threads after their present work.
    pub fn end(&self) {
        self.jobs.close();
        self.compilations.close();
    }

    /// The findings on a file, with the program that has them.
    pub fn checked(&self, path: &Path) -> Vec<Arc<CheckedProgram>> {
        let results = lock(&self.results);
        let contains = |checked: &&Arc<CheckedProgram>| checked.paths.iter().any(|known| known == path);
        results.checked.values().filter(contains).cloned().collect()
    }

    /// The compilations of programs that contain a file; the program that the file is comes first.
    pub fn compiled(&self, path: &Path) -> Vec<Arc<CompiledProgram>> {
        let results = lock(&self.results);
        let own = results.compiled.get(path);
        let others = results.compiled.iter().filter(|(root, _)| *root != path).map(|(_, compiled)| compiled);
        let contains = |compiled: &&Arc<CompiledProgram>| compiled.file(path).is_some();
        own.into_iter().chain(others.filter(contains)).cloned().collect()
    }

    fn check(&self, job: AnalysisJob) {
        let mut is_complete = true;
        for root in &job.roots {
            if self.jobs.is_outdated() {
                is_complete = false;
                break;
            }
            let known = lock(&self.results).checked.get(root).cloned();
            match catch_unwind(AssertUnwindSafe(|| check_root(root, &job, known.as_deref()))) {
                Ok(Some(checked)) => {
                    lock(&self.results).checked.insert(root.clone(), Arc::new(checked));
                    self.publish(&job);
                }
                Ok(None) => {}
                Err(_) => self.log(root),
            }
        }
        if is_complete {
            let mut results = lock(&self.results);
            results.checked.retain(|root, _| job.roots.contains(root));
            results.compiled.retain(|root, _| job.roots.contains(root));
            drop(results);
            self.publish(&job);
            self.compilations.put(job);
        }
    }

    fn compile(&self, job: &AnalysisJob, refresh: &impl Fn()) {
        if !self.compilations.is_quiet_for(QUIET) {
            return;
        }
        let mut has_changed = false;
        for root in job.roots.iter().take(MAX_COMPILED) {
            if self.compilations.is_outdated() {
                break;
            }
            let (checked, known) = {
                let results = lock(&self.results);
                (results.checked.get(root).cloned(), results.compiled.get(root).cloned())
            };
            let Some(checked) = checked.filter(|checked| is_right(&checked.diagnostics)) else { continue };
            if known.is_some_and(|known| is_same(&known.set, &checked.set)) {
                continue;
            }
            match catch_unwind(AssertUnwindSafe(|| compile_root(&checked, &job.settings))) {
                Ok(Ok((compiled, found))) => {
                    self.add_findings(root, &checked, found);
                    lock(&self.results).compiled.insert(root.clone(), Arc::new(compiled));
                    has_changed = true;
                }
                Ok(Err(found)) => self.add_findings(root, &checked, found),
                Err(_) => self.log(root),
            }
        }
        lock(&self.results).compiled.retain(|root, _| job.roots.iter().take(MAX_COMPILED).any(|kept| kept == root));
        if has_changed {
            self.publish(job);
            refresh();
        }
    }

    /// Adds the findings of a compilation, unless the program has been checked again since.
    fn add_findings(&self, root: &Path, checked: &Arc<CheckedProgram>, found: Vec<Diagnostic>) {
        let mut results = lock(&self.results);
        let is_newest = results.checked.get(root).is_some_and(|newest| Arc::ptr_eq(newest, checked));
        if !is_newest || found.is_empty() {
            return;
        }
        let diagnostics = [checked.diagnostics.clone(), found].concat();
        let more =
            CheckedProgram { set: checked.set.clone(), paths: checked.paths.clone(), diagnostics, syntax_errors: 0 };
        results.checked.insert(root.to_path_buf(), Arc::new(more));
    }

    /// Sends the findings of all files whose findings have changed.
    fn publish(&self, job: &AnalysisJob) {
        let checked: Vec<Arc<CheckedProgram>> = lock(&self.results).checked.values().cloned().collect();
        let messages: Vec<PublishDiagnosticsParams> =
            lock(&self.published).update(shown(&checked, &job.overlay), &job.overlay);
        for params in messages {
            let notification = Notification::new("textDocument/publishDiagnostics".to_string(), params);
            (self.send)(Message::Notification(notification));
        }
    }

    fn log(&self, root: &Path) {
        let message = format!("the analysis of `{}` failed, which is a defect of spmdc", root.display());
        let params = serde_json::json!({ "type": 1, "message": message });
        (self.send)(Message::Notification(Notification { method: "window/logMessage".to_string(), params }));
    }
}

fn is_right(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().all(|diagnostic| diagnostic.severity != Severity::Error)
}

fn is_same(one: &SourceSet, other: &SourceSet) -> bool {
    one.files.len() == other.files.len() && one.files.iter().zip(&other.files).all(|(a, b)| a.text == b.text)
}

/// The path of each file of a program.
pub fn paths(set: &SourceSet) -> Vec<PathBuf> {
    let path = |name: &str| shipped::standard(name).unwrap_or_else(|| PathBuf::from(name));
    set.files.iter().map(|file| if file.is_shipped { path(&file.name) } else { PathBuf::from(&file.name) }).collect()
}

/// The findings on a program, whose earlier findings are known; None if they are the same, or the program is not open any more.
fn check_root(root: &Path, job: &AnalysisJob, known: Option<&CheckedProgram>) -> Option<CheckedProgram> {
    let text = job.overlay.text(root)?;
    let (set, mut diagnostics) = load(&root.to_string_lossy(), text, &job.overlay);
    // Its files are those that were checked last.
    if known.is_some_and(|known| is_same(&known.set, &set)) {
        return None;
    }
    let syntax_errors = diagnostics.len();
    if syntax_errors == 0 {
        diagnostics.extend(match check(&set, &job.settings.check) {
            Ok((_, warnings)) => warnings,
            Err(errors) => errors,
        });
        if !has_main(&set) {
            diagnostics.retain(|diagnostic| !is_about_entry(diagnostic));
        }
    }
    let mut checked = CheckedProgram { paths: paths(&set), set, diagnostics, syntax_errors };
    if syntax_errors > 0 {
        let carried = known.map(|known| carried(known, &checked)).unwrap_or_default();
        checked.diagnostics.extend(carried);
    }
    Some(checked)
}

/// Whether the file is a program: others have functions for programs that import them.
pub fn has_main(set: &SourceSet) -> bool {
    let program = &set.file(SourceSet::ROOT).program;
    let is_main = |kind: &ItemKind| matches!(kind, ItemKind::Fn(function) if function.name.name == "main");
    program.stage.is_some() || program.items.iter().any(|item| is_main(&item.kind))
}

/// Whether a finding says that the file has no entry function.
pub fn is_about_entry(diagnostic: &Diagnostic) -> bool {
    diagnostic.code == Code::E0105 && diagnostic.span.start == diagnostic.span.end
}

type WithFindings = (CompiledProgram, Vec<Diagnostic>);

/// Compiles a program; the findings are those that the check did not have.
fn compile_root(checked: &CheckedProgram, settings: &Settings) -> Result<WithFindings, Vec<Diagnostic>> {
    if !has_main(&checked.set) {
        return Err(Vec::new());
    }
    let options = Options { check: settings.check.clone(), ..Options::default() };
    let compilation = pipeline::compile(&checked.set, &options)?;
    let policy =
        Policy { lints: settings.lints.iter().map(|&lint| (lint, Severity::Warning)).collect(), ..Policy::default() };
    let mut found = Vec::new();
    let mut all = Vec::new();
    for module in compilation.of_meshes().into_iter().filter_map(|of_mesh| of_mesh.stage(Stage::Partitioned)) {
        found.extend(findings(module, &policy));
        all.extend(collectives(module).into_iter().filter(|collective| collective.span != Span::default()));
    }
    // Neither is shown, and both are large.
    let mut compilation = Compilation { program: None, kernels: Vec::new(), ..compilation };
    compilation.parts.iter_mut().for_each(|part| {
        (part.compilation.program, part.compilation.kernels) = (None, Vec::new());
    });
    let compiled = CompiledProgram {
        set: checked.set.clone(),
        paths: checked.paths.clone(),
        compilation,
        collectives: all,
        settings: settings.clone(),
    };
    Ok((compiled, found))
}
