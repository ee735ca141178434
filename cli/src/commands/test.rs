//! `spmdc test`: runs the tests of source files, each on several meshes.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use serde_json::json;
use spmdc_check::MeshOverride;
use spmdc_check::sources::SourceSet;
use spmdc_compiler::backends;
use spmdc_compiler::pipeline::{self, Compilation};
use spmdc_driver::errors::{CommandError, absent, no_code};
use spmdc_driver::render::Reporter;
use spmdc_driver::reports::meshes::axes;
use spmdc_driver::sources::{ParsedProgram, SourceTexts};
use spmdc_grammar::ast::ItemKind;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::program::Stage;
use spmdc_layout::mesh::Mesh;
use spmdc_runtime::component_table::in_process;
use spmdc_runtime::errors::trap::{RunCode, RunError};
use spmdc_runtime::run::report::RunOptions;
use spmdc_runtime::run::session::Session;
use spmdc_runtime::run::start::{Failure, FailureReport};

use crate::options::{MessageFormat, ProgramOptions, TestCommand};
use crate::sources::{load, named_files};

/// Sizes of axes that divide few dimensions. Others have one device.
const UNEVEN: [usize; 2] = [3, 2];

/// A test of a file.
struct TestOfFile {
    /// Its name without quotes.
    name: String,
    /// The name of its function.
    entry: String,
    line: usize,
}

/// The result of a test on one mesh.
enum Outcome {
    Passed,
    /// The message, and the line in which the test stopped.
    Failed(RunError),
    /// The mesh does not fit the program, for this reason.
    Skipped(String),
    /// Errors in the program.
    Refused(Vec<Diagnostic>),
}

#[derive(Default)]
struct TestCounts {
    passed: usize,
    failed: usize,
    refused: usize,
}

/// Runs all tests that the filter admits, and prints a line for each. Fails with status 3 if a test fails, and with status 1 if one cannot
/// be compiled.
pub fn test(command: &TestCommand, reporter: &Reporter) -> Result<(), CommandError> {
    let files = named_files(&command.files)?;
    let mut summary = TestCounts::default();
    let begin = Instant::now();
    for path in &files {
        let options = ProgramOptions { settings: command.settings.clone(), ..ProgramOptions::of(path) };
        let mut texts = SourceTexts::default();
        let parsed = match load(&options, &mut texts) {
            Ok(parsed) => parsed,
            Err(CommandError::Program(errors)) => {
                reporter.diagnostics(&errors, &texts);
                summary.refused += 1;
                continue;
            }
            Err(error @ CommandError::Failure(_)) => return Err(error),
        };
        let tests = tests_of(&parsed.set, &texts, command.filter.as_deref());
        if files.len() > 1 && !tests.is_empty() && command.format == MessageFormat::Text {
            crate::print(&format!("{}\n", path.display()))?;
        }
        for test in &tests {
            perform(command, (path, test), &options, &parsed, (reporter, &texts), &mut summary)?;
        }
    }
    let TestCounts { passed, failed, refused } = summary;
    crate::print(&match command.format {
        MessageFormat::Json => json!({"passed": passed, "failed": failed, "errors": refused}).to_string() + "\n",
        MessageFormat::Text => {
            let errors = match refused {
                0 => String::new(),
                1 => ", 1 with errors".to_string(),
                count => format!(", {count} with errors"),
            };
            let seconds = begin.elapsed().as_secs_f64();
            format!("{passed} passed, {failed} failed{errors} in {seconds:.2} s\n")
        }
    })?;
    match (refused, failed) {
        (0, 0) => Ok(()),
        (0, _) => {
            let failure = Failure::new(RunError::internal("a test failed"));
            Err(Failure { status: 3, report: FailureReport::ByAnother, ..failure }.into())
        }
        _ => Err(CommandError::Program(Vec::new())),
    }
}

/// The tests of the main file whose names contain the text.
fn tests_of(set: &SourceSet, texts: &SourceTexts, filter: Option<&str>) -> Vec<TestOfFile> {
    let test = |item: &spmdc_grammar::ast::ItemNode| {
        let ItemKind::Test(function) = &item.kind else { return None };
        let entry = function.name.name.clone();
        let quoted = entry.strip_prefix("test \"").and_then(|rest| rest.strip_suffix('"')).unwrap_or(&entry);
        let name = quoted.replace("\\\"", "\"").replace("\\\\", "\\");
        Some(TestOfFile { name, entry, line: texts.line_column(item.span).0 })
    };
    let all = set.file(SourceSet::ROOT).program.items.iter().filter_map(test);
    all.filter(|test| filter.is_none_or(|part| test.name.contains(part))).collect()
}

/// Runs a test on all meshes, and prints its line.
fn perform(
    command: &TestCommand,
    (path, test): (&Path, &TestOfFile),
    options: &ProgramOptions,
    parsed: &ParsedProgram,
    (reporter, texts): (&Reporter, &SourceTexts),
    summary: &mut TestCounts,
) -> Result<(), CommandError> {
    let begin = Instant::now();
    let mut meshes: Vec<Option<MeshOverride>> = command.meshes.iter().cloned().map(Some).collect();
    let derives = meshes.is_empty();
    if derives {
        meshes.push(None);
    }
    let mut runs: Vec<(String, Outcome, String)> = Vec::new();
    let mut at = 0;
    while at < meshes.len() {
        let mesh = meshes[at].clone();
        let is_own = at == 0 && derives;
        let mut of_compiler = super::compiler_options(options, parsed);
        of_compiler.check.entry = Some(test.entry.clone());
        of_compiler.check.mesh = mesh;
        let mut printed = Vec::new();
        let (outcome, own) = match pipeline::compile(&parsed.set, &of_compiler) {
            Ok(compilation) => {
                let own =
                    compilation.of_meshes().first().and_then(|each| each.stage(Stage::Typed)).map(|m| m.mesh.clone());
                (run(compilation, &mut printed)?, own)
            }
            // Another mesh may not fit: a block is cut unevenly in a `manual` function, or devices are given by their numbers.
            Err(errors) if derives && !is_own && errors.iter().all(is_of_mesh) => {
                (Outcome::Skipped(errors.first().map(|error| error.message.clone()).unwrap_or_default()), None)
            }
            Err(errors) => (Outcome::Refused(errors), None),
        };
        if is_own && let Some(own) = &own {
            meshes.extend(other_meshes(own).into_iter().map(Some));
        }
        let label = own.as_ref().map_or_else(|| given(meshes[at].as_ref()), described);
        let stops = matches!(outcome, Outcome::Refused(_));
        runs.push((label, outcome, String::from_utf8_lossy(&printed).into_owned()));
        at += 1;
        if stops {
            break;
        }
    }
    let milliseconds = begin.elapsed().as_secs_f64() * 1e3;
    let is_failed = runs.iter().any(|(_, outcome, _)| matches!(outcome, Outcome::Failed(_)));
    let is_refused = runs.iter().any(|(_, outcome, _)| matches!(outcome, Outcome::Refused(_)));
    *match (is_refused, is_failed) {
        (true, _) => &mut summary.refused,
        (false, true) => &mut summary.failed,
        (false, false) => &mut summary.passed,
    } += 1;
    let text = match command.format {
        MessageFormat::Json => as_json((path, test), &runs, milliseconds),
        MessageFormat::Text => {
            let verdict = if is_refused {
                "ERROR"
            } else if is_failed {
                "FAILED"
            } else {
                "ok"
            };
            let mut text = format!("test {} ... {verdict}\n", test.name);
            // Meshes on which the test fails alike are listed together.
            let mut failures: Vec<(String, &str, Vec<&str>)> = Vec::new();
            for (label, outcome, printed) in &runs {
                let Outcome::Failed(error) = outcome else { continue };
                let line = error.site.map_or(String::new(), |site| format!(":{}", site.line));
                let message = format!("{}{line}: {}", path.display(), error.message);
                match failures.iter_mut().find(|(known, text, _)| *known == message && text == printed) {
                    Some((_, _, labels)) => labels.push(label),
                    None => failures.push((message, printed, vec![label])),
                }
            }
            for (message, printed, labels) in failures {
                text += &format!("  {message}, on {}\n", labels.join(", "));
                printed.lines().for_each(|line| text += &format!("    {line}\n"));
            }
            text
        }
    };
    crate::print(&text)?;
    for (_, outcome, _) in &runs {
        if let Outcome::Refused(errors) = outcome {
            reporter.diagnostics(errors, texts);
        }
    }
    Ok(())
}

/// Whether an error may be absent on another mesh.
fn is_of_mesh(error: &Diagnostic) -> bool {
    error.of_command || matches!(error.code, Code::E0503)
}

/// One device, and a mesh with sizes that divide few dimensions, unless these are the mesh of the program.
fn other_meshes(own: &Mesh) -> Vec<MeshOverride> {
    let sizes: Vec<usize> = own.axes.iter().map(|axis| axis.size).collect();
    let uneven: Vec<usize> = (0..sizes.len()).map(|at| UNEVEN.get(at).copied().unwrap_or(1)).collect();
    let mut others = vec![vec![1; sizes.len()], uneven];
    others.retain(|other| *other != sizes && !other.is_empty());
    others.dedup();
    others.into_iter().map(MeshOverride::Sizes).collect()
}

/// `one device`, `the mesh (X = 2, Y = 4)`
fn described(mesh: &Mesh) -> String {
    if mesh.device_count() == 1 { "one device".to_string() } else { format!("the mesh ({})", axes(mesh).join(", ")) }
}

/// A mesh as it is given on the command line.
fn given(mesh: Option<&MeshOverride>) -> String {
    let joined = |sizes: &[usize]| sizes.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
    match mesh {
        None => "the mesh of the program".to_string(),
        Some(MeshOverride::Sizes(sizes)) => joined(sizes),
        Some(MeshOverride::Named(axes)) => {
            axes.iter().map(|(name, size)| format!("{name}={size}")).collect::<Vec<_>>().join(",")
        }
    }
}

/// Runs a compiled test; what it prints goes to `printed`.
fn run(compilation: Compilation, printed: &mut Vec<u8>) -> Result<Outcome, CommandError> {
    let program = compilation.program.ok_or_else(|| absent("program"))?;
    let code = backends::DEFAULT.load(&compilation.kernels).map_err(|error| no_code(&error))?;
    let kernels = code.into_kernels().map_err(|error| no_code(&error))?;
    let session = Session::load_in(None, program, in_process(kernels), RunOptions::default());
    Ok(match session.and_then(|mut session| session.run(printed)) {
        Ok(_) => Outcome::Passed,
        Err(error) if error.code == RunCode::E0999 => return Err(error.into()),
        Err(error) => Outcome::Failed(error),
    })
}

/// An object for a test on all its meshes, on one line.
fn as_json((path, test): (&Path, &TestOfFile), runs: &[(String, Outcome, String)], milliseconds: f64) -> String {
    let meshes = runs.iter().map(|(label, outcome, printed)| {
        let mut run: BTreeMap<&str, serde_json::Value> = BTreeMap::new();
        run.insert("mesh", json!(label));
        run.insert("printed", json!(printed));
        run.insert("status", json!(outcome.name()));
        match outcome {
            Outcome::Passed => {}
            Outcome::Failed(error) => {
                run.insert("code", json!(error.code.name()));
                run.insert("message", json!(error.message));
                run.insert("line", json!(error.site.map(|site| site.line)));
            }
            Outcome::Skipped(message) => {
                run.insert("message", json!(message));
            }
            Outcome::Refused(errors) => {
                run.insert("code", json!(errors.first().map(|error| error.code.name())));
                run.insert("message", json!(errors.first().map(|error| &error.message)));
            }
        }
        json!(run)
    });
    let worst = ["error", "failed"].into_iter().find(|name| runs.iter().any(|(_, outcome, _)| outcome.name() == *name));
    let object = json!({
        "file": path.to_string_lossy(), "test": test.name, "line": test.line, "status": worst.unwrap_or("passed"),
        "ms": milliseconds, "meshes": meshes.collect::<Vec<_>>(),
    });
    object.to_string() + "\n"
}

impl Outcome {
    fn name(&self) -> &'static str {
        match self {
            Outcome::Passed => "passed",
            Outcome::Failed(_) => "failed",
            Outcome::Skipped(_) => "skipped",
            Outcome::Refused(_) => "error",
        }
    }
}
