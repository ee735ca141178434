//! Small programs with expectations: on every mesh the answer is the evaluator's, types and collectives are those that the comments say,
//! and a program that must fail fails where it says.

use spmdc_abi::CollectiveKind;
use spmdc_compiler::report::plan::{self, Collective};
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::program::{Module, Stage, Value};
use spmdc_kernel::machine::Machine;
use spmdc_runtime::data::array::HostArray;
use spmdc_tests::case::{Case, Expectation};
use spmdc_tests::compare::{Tolerance, difference};
use spmdc_tests::dumps;
use spmdc_tests::engine::{self, Failure, Loaded};
use spmdc_tests::processes::same_in_processes;
use spmdc_tests::root;
use std::collections::{BTreeMap, BTreeSet};

/// The directives and marks that [`check`] compares with the program.
const COMPARED: [&str; 10] = ["args", "bytes", "collectives", "combined", "meshes", "run", "//:", "//>", "//?", "//~"];

/// Everything that is wrong with a case. With `stages` the evaluator runs the module of every stage, too.
pub fn check(case: &Case, stages: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    if let Err(text) = case.allow(&COMPARED) {
        wrong.push(text);
    }
    if !case.errors.is_empty() {
        errors_stand_where_expected(case, &mut wrong);
        return wrong;
    }
    let mut expected = None;
    // What devices do with their own position depends on how many there are.
    let by_position = ["pshift", "ppermute", "axis_index"].iter().any(|name| case.text.contains(name));
    for (number, mesh) in case.meshes_to_run().iter().enumerate() {
        if by_position {
            expected = None;
        }
        if let Err(text) = answers_agree(case, (number, mesh), &mut expected, stages) {
            wrong.push(format!("on {mesh}: {text}"));
        }
    }
    if let Err(text) = types_and_collectives(case) {
        wrong.push(text);
    }
    wrong
}

fn errors_stand_where_expected(case: &Case, wrong: &mut Vec<String>) {
    let failures: Vec<Failure> = match engine::compiled("case.spmd", &case.text, "", None) {
        Err(failures) => failures,
        Ok(compilation) => {
            let inputs = engine::inputs(&compilation, &case.args, &root()).unwrap();
            match engine::run(&compilation, &inputs, None) {
                Err(failure) => vec![failure],
                Ok(_) => Vec::new(),
            }
        }
    };
    for expected in &case.errors {
        let mut words = expected.text.split_whitespace();
        let code = words.next().unwrap_or_default();
        let rest: Vec<&str> = words.collect();
        let found = failures.iter().any(|failure| {
            failure.line == expected.line
                && failure.code == code
                && rest.iter().all(|word| failure.message.contains(word))
        });
        if !found {
            wrong.push(format!("line {} should raise {}; found {failures:?}", expected.line, expected.text));
        }
    }
    if failures.len() > case.errors.len() {
        wrong.push(format!("more errors than expected: {failures:?}"));
    }
}

/// The evaluator's answer is computed once: it does not depend on the mesh, which is what is being tested.
fn answers_agree(
    case: &Case,
    (number, mesh): (usize, &str),
    expected: &mut Option<Vec<HostArray>>,
    stages: bool,
) -> Result<(), String> {
    let text = |failures: Vec<Failure>| format!("{failures:?}");
    let compilation = engine::compiled("case.spmd", &case.text, mesh, None).map_err(text)?;
    let inputs = engine::inputs(&compilation, &case.args, &root())?;
    let evaluate =
        |module| engine::evaluated(&case.text, module, &inputs).map_err(|failure| format!("evaluator: {failure:?}"));
    let expected = match expected {
        Some(known) => known,
        None => expected.insert(evaluate(&compilation.stages[0])?),
    };
    let agree = |what: &str, actual: &[HostArray]| {
        if expected.len() != actual.len() {
            return Err(format!("{what}: expected {} results, found {}", expected.len(), actual.len()));
        }
        for (index, (expected, actual)) in expected.iter().zip(actual).enumerate() {
            if let Some(text) = difference(expected, actual, Tolerance::reassociated(expected.dtype)) {
                return Err(format!("{what}, result {index}: {text}"));
            }
        }
        Ok(())
    };
    let failed = |failure: Failure| format!("{failure:?}");
    let loaded = Loaded::new(&compilation).map_err(failed)?;
    let (actual, again) = (&loaded.run(&inputs, None).map_err(failed)?, &loaded.run(&inputs, Some(1)).map_err(failed)?);
    agree("run", &actual.results)?;
    let printed: Vec<&str> = actual.printed.lines().collect();
    if !case.printed.is_empty() && printed != case.printed {
        return Err(format!("expected to print {:#?}, printed {printed:#?}", case.printed));
    }
    let tiny = engine::compiled_on(Machine::TINY, "case.spmd", &case.text, mesh, None).map_err(text)?;
    let there = engine::run(&tiny, &inputs, None).map_err(|failure| format!("on a tiny machine: {failure:?}"))?;
    agree("run on a tiny machine", &there.results)?;
    if again.results != actual.results {
        return Err("one worker gives other bits".to_string());
    }
    // On two of six meshes, one of which has an even number of devices.
    if case.meshes_to_run().len() < 4 || (case.text.len() + number).is_multiple_of(3) {
        same_in_processes(&loaded, &inputs, Ok(actual), case.text.len() + number)?;
    }
    // On four meshes the dumps of all four stages run.
    dumps::read_back(&compilation, &inputs, &actual.results, case.text.len() + number)?;
    if number % 2 == 0 {
        dumps::differentiated_reads_back(&case.text, mesh, &inputs, &actual.results)?;
    }
    if stages {
        for module in &compilation.stages {
            agree(module.stage.name(), &evaluate(module)?)?;
        }
    }
    Ok(())
}

fn types_and_collectives(case: &Case) -> Result<(), String> {
    let own = case.meshes.as_ref().map_or("", |meshes| meshes.last().map_or("", String::as_str));
    let own = if case.meshes.is_some() { own } else { "" };
    let stage = Some(Stage::Optimized);
    let compilation = engine::compiled("case.spmd", &case.text, own, stage).map_err(|f| format!("{f:?}"))?;
    warnings_match(case, &compilation.warnings)?;
    let at = |stage: Stage| -> Result<Vec<&Module>, String> {
        let modules = compilation.of_meshes().into_iter().map(|of_mesh| of_mesh.stage(stage));
        modules.collect::<Option<_>>().ok_or(format!("no stage `{}`", stage.name()))
    };
    for expected in &case.types {
        let line = |offset: u32| case.text[..offset as usize].matches('\n').count() + 1;
        let mut types: Vec<String> = Vec::new();
        for module in at(Stage::Propagated)? {
            // The table of a mesh has the values of the others, too.
            let mut own: BTreeSet<Value> = module.func.body.params.iter().copied().collect();
            module.func.body.walk(&mut |stmt| {
                own.extend(&stmt.results);
                stmt.blocks().for_each(|block| own.extend(&block.params));
            });
            if compilation.parts.is_empty() {
                own.extend((0..module.func.values.len() as u32).map(Value));
            }
            let is_there = |value: &Value| {
                let info = module.func.info(*value);
                info.name.is_some() && line(info.named.start) == expected.line
            };
            let values = own.into_iter().filter(is_there);
            types.extend(values.map(|value| module.func.ty_in_program(value).display(&module.mesh)));
        }
        if !types.contains(&expected.text) {
            return Err(format!("line {}: expected {}, found {types:?}", expected.line, expected.text));
        }
    }
    for (stage, expected) in [(Stage::Partitioned, &case.collectives), (Stage::Optimized, &case.combined)] {
        let Some(expected) = expected else { continue };
        let mut found: BTreeMap<String, usize> = BTreeMap::new();
        for collective in collectives(&at(stage)?) {
            *found.entry(collective.kind.name().to_string()).or_default() += 1;
        }
        if found != *expected {
            return Err(format!("expected the collectives {expected:?} at stage `{}`, found {found:?}", stage.name()));
        }
    }
    if let Some(expected) = &case.bytes {
        let found: Vec<u64> = collectives(&at(Stage::Partitioned)?).iter().map(|collective| collective.bytes).collect();
        if found != *expected {
            return Err(format!("expected collectives of {expected:?} bytes, found {found:?}"));
        }
    }
    Ok(())
}

/// Each warning is expected, and each that is expected is there.
fn warnings_match(case: &Case, warnings: &[Diagnostic]) -> Result<(), String> {
    let line = |offset: u32| case.text[..offset as usize].matches('\n').count() + 1;
    let found =
        warnings.iter().map(|warning| (line(warning.span.start), format!("{} {}", warning.code, warning.message)));
    let found: Vec<(usize, String)> = found.collect();
    let fits = |expected: &Expectation| {
        let is_there = |(line, text): &(usize, String)| {
            *line == expected.line && expected.text.split_whitespace().all(|word| text.contains(word))
        };
        found.iter().any(is_there)
    };
    if found.len() == case.warnings.len() && case.warnings.iter().all(fits) {
        return Ok(());
    }
    let expected: Vec<String> =
        case.warnings.iter().map(|warning| format!("{}: {}", warning.line, warning.text)).collect();
    Err(format!("expected the warnings {expected:?}, found {found:?}"))
}

/// The collectives of all meshes. A transfer is where it is sent.
fn collectives(modules: &[&Module]) -> Vec<Collective> {
    let all = modules.iter().flat_map(|module| plan::collectives(module));
    all.filter(|collective| collective.kind != CollectiveKind::Transfer || collective.bytes > 0).collect()
}
