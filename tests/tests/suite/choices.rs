//! Errors about layouts on explicit axes list choices. Each choice for a random call, and some for random programs, are applied to the text; the
//! program then means what it means on one device.
//!
//! `CHOICES_SAMPLES=200` tries more calls of each function, `OPS_ONLY=roll` one function, `CHOICES_NUMBER=17` one sample; `CHOICES_PROGRAMS=500` more
//! programs.

use spmdc_check::sources::{NoSources, SourceSet};
use spmdc_compiler::pipeline::{Compilation, Options, compile};
use spmdc_grammar::diagnostic::{Diagnostic, Edit};
use spmdc_ir::program::Stage;
use spmdc_runtime::data::array::HostArray;
use spmdc_tests::engine::{self, Failure};
use spmdc_tests::problems;
use spmdc_tests::random::programs::{Scale, Writer};
use spmdc_tests::random::{Draw, Mesh, calls};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

const NAMES: [&str; 3] = ["a", "b", "c"];

/// Maximum number of choices that a program makes, one after the other.
const MAX_STEPS: usize = 8;

pub fn compiled(text: &str, stop_after: Option<Stage>) -> Result<Compilation, Vec<Diagnostic>> {
    let (set, diagnostics) = SourceSet::load("choice.spmd", text, &NoSources);
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    compile(&set, &Options { stop_after, ..Options::default() })
}

/// Whether all errors are about layouts, also where control flow joins.
fn is_about_layouts(errors: &[Diagnostic]) -> bool {
    errors.iter().all(|error| error.code.name().starts_with("E03") || ["E0212", "E0213"].contains(&error.code.name()))
}

fn applied(text: &str, edit: &Edit) -> String {
    let mut edited = text.to_string();
    edited.replace_range(edit.span.start as usize..edit.span.end as usize, &edit.replacement);
    edited
}

pub fn told(errors: &[Diagnostic]) -> String {
    let told = errors.iter().map(|e| format!("{}: {}\n  help: {}", e.code, e.message, e.help.as_deref().unwrap_or("")));
    told.collect::<Vec<_>>().join("\n")
}

/// Applies each choice of the first error, and then the first choice of each further error, until the program compiles.
fn follow(text: &str, errors: &[Diagnostic], check: &mut dyn FnMut(&str, &Compilation)) -> Vec<String> {
    let Some(error) = errors.first() else { return Vec::new() };
    let mut wrong = Vec::new();
    if error.edits.is_empty() || !listed(error) {
        wrong.push(format!("{text}has no choice:\n{}", told(errors)));
    }
    for edit in &error.edits {
        let mut edited = applied(text, edit);
        let mut result = compiled(&edited, Some(Stage::Partitioned));
        for _ in 0..MAX_STEPS {
            let Err(errors) = &result else { break };
            let Some(next) = errors[0].edits.first().filter(|_| is_about_layouts(errors)) else { break };
            edited = applied(&edited, next);
            result = compiled(&edited, Some(Stage::Partitioned));
        }
        match result {
            Ok(compilation) => check(&edited, &compilation),
            Err(errors) => wrong.push(format!("{text}`{}` leads to\n{edited}{}", edit.replacement, told(&errors))),
        }
    }
    wrong
}

/// Each line of the help that begins with code is an edit.
fn listed(error: &Diagnostic) -> bool {
    let help = error.help.as_deref().unwrap_or_default();
    assert!(!help.contains(": ,"), "a cost begins with nothing:\n{help}");
    help.lines().filter(|line| line.starts_with('`')).count() == error.edits.len()
}

/// The problems with the choices of a sample, and whether there were any choices.
fn problems_of(name: &str, number: u64) -> (Vec<String>, bool) {
    let mut draw = Draw::new(name, 1_000_000 + number);
    let Some(call) = calls::call(name, &mut draw) else { return (Vec::new(), false) };
    let mut mesh = Mesh::random(&mut draw, true);
    let all_explicit = draw.chance(70);
    mesh.axes.iter_mut().for_each(|axis| axis.2 |= all_explicit);
    let program = |mesh: &Mesh, params: &[String]| {
        let params: Vec<String> = params.iter().zip(NAMES).map(|(ty, name)| format!("{name}: {ty}")).collect();
        format!("{}fn main({}) {{ {} {} }}\n", mesh.text(), params.join(", "), call.before, call.expr)
    };
    let plain: Vec<String> = call.params.iter().map(|array| array.text(&[])).collect();
    let plain = program(&Mesh { axes: Vec::new() }, &plain).replace("mesh ();\n", "");
    if compiled(&plain, Some(Stage::Typed)).is_err() {
        return (Vec::new(), false);
    }
    let layouts: Vec<String> =
        call.params.iter().map(|array| array.text(&mesh.sharding(&mut draw, array.shape.len()))).collect();
    let text = program(&mesh, &layouts);
    let Err(errors) = compiled(&text, Some(Stage::Partitioned)) else { return (Vec::new(), false) };
    if !is_about_layouts(&errors) {
        return (vec![format!("{text}{}", told(&errors))], true);
    }
    let whole = compiled(&plain, None).expect("it has been checked");
    let inputs = engine::inputs(&whole, &[], &spmdc_tests::root()).expect("these are generated");
    let expected = engine::evaluated(&plain, &whole.stages[0], &inputs);
    let mut differ = Vec::new();
    let mut wrong = follow(&text, &errors, &mut |edited, compilation| {
        let answers = [expected.clone(), engine::evaluated(edited, &compilation.stages[0], &inputs)];
        if !agree(&answers) {
            differ.push(format!("{text}has another answer as\n{edited}{answers:?}"));
        }
    });
    wrong.append(&mut differ);
    (wrong, true)
}

/// Whether both answers have the same bits, or are the same error.
fn agree(answers: &[Result<Vec<HostArray>, Failure>; 2]) -> bool {
    match answers {
        [Ok(expected), Ok(found)] => {
            let is_same =
                |(a, b): (&HostArray, &HostArray)| (a.dtype, &a.shape, &a.bytes) == (b.dtype, &b.shape, &b.bytes);
            expected.len() == found.len() && expected.iter().zip(found).all(is_same)
        }
        [Err(expected), Err(found)] => expected.code == found.code,
        [Ok(_), Err(_)] | [Err(_), Ok(_)] => false,
    }
}

/// The problems with all samples of a function; `ambiguous` counts those that had to choose.
fn all_of(name: &str, numbers: Range<u64>, ambiguous: &AtomicUsize) -> Vec<String> {
    numbers
        .flat_map(|number| {
            let (wrong, had_choices) = problems_of(name, number);
            ambiguous.fetch_add(usize::from(had_choices), Ordering::Relaxed);
            wrong.into_iter().map(move |wrong| format!("`{name}`, sample {number}: {wrong}"))
        })
        .collect()
}

#[test]
fn every_choice_of_every_function_compiles() {
    let numbers = crate::only_or_all("CHOICES_NUMBER", "CHOICES_SAMPLES", 6);
    let names = crate::selected_functions();
    let ambiguous = AtomicUsize::new(0);
    let wrong = problems(&names, |name| all_of(name, numbers.clone(), &ambiguous));
    assert!(wrong.is_empty(), "{} problems:\n{}", wrong.len(), wrong.join("\n"));
    let ambiguous = ambiguous.into_inner();
    assert!(names.len() == 1 || ambiguous > 20, "only {ambiguous} samples had to choose");
}

/// Maximum number of errors of a program.
const MAX_ERRORS: usize = 60;

/// The program after choices of its errors, one after the other, until it compiles.
pub fn follow_any(text: &str, draw: &mut Draw) -> Result<(String, Compilation), String> {
    let mut edited = text.to_string();
    for _ in 0..MAX_ERRORS {
        let errors = match compiled(&edited, Some(Stage::Partitioned)) {
            Ok(compilation) => return Ok((edited, compilation)),
            Err(errors) => errors,
        };
        let error = errors.iter().find(|error| !error.edits.is_empty()).filter(|_| is_about_layouts(&errors));
        let Some(error) = error else { return Err(format!("{edited}has no choice:\n{}", told(&errors))) };
        edited = applied(&edited, &error.edits[draw.below(error.edits.len())]);
    }
    Err(format!("{edited}is still ambiguous"))
}

/// Why a random program, with all axes explicit, does not come to compile by its choices and mean the same.
fn of_program(number: u64) -> Result<(), String> {
    let mut draw = Draw::new("choices", number);
    let mesh = Mesh { axes: vec![("X", 2, true), ("Y", 3, true)] };
    let derivatives = if number.is_multiple_of(4) { 2 } else { 0 };
    let mut writer = Writer::new(draw.clone(), mesh.clone(), Scale::Small).with_derivatives(derivatives);
    let types = writer.param_types();
    (0..8).for_each(|_| writer.statement());
    let text = writer.text(&mesh, &types);
    let plain = text.replace("explicit", "auto");
    let whole = compiled(&plain, None).map_err(|errors| format!("{plain}{}", told(&errors)))?;
    let (edited, compilation) = follow_any(&text, &mut draw).map_err(|wrong| format!("{text}leads to\n{wrong}"))?;
    let inputs = engine::inputs(&whole, &[], &spmdc_tests::root())?;
    let answers =
        [(&plain, &whole), (&edited, &compilation)].map(|(text, of)| engine::evaluated(text, &of.stages[0], &inputs));
    if agree(&answers) { Ok(()) } else { Err(format!("{text}has another answer as\n{edited}")) }
}

#[test]
fn programs_compile_by_their_choices() {
    let numbers: Vec<u64> = crate::only_or_all("CHOICES_NUMBER", "CHOICES_PROGRAMS", 20).collect();
    let wrong = problems(&numbers, |&number| {
        of_program(number).err().map(|wrong| format!("program {number}: {wrong}")).into_iter().collect()
    });
    assert!(wrong.is_empty(), "{} problems:\n{}", wrong.len(), wrong.join("\n"));
}
