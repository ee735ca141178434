//! `spmdc explain E0301`: the long text of a diagnostic. `spmdc explain sum`: the signature of a function, its behaviour on split
//! arrays, and an example.

use spmdc_check::sources::{NoSources, SourceSet};
use spmdc_compiler::backends;
use spmdc_compiler::pipeline::{Options, compile};
use spmdc_compiler::report::functions::{self, MESH};
use spmdc_driver::errors::{CommandError, absent, no_code};
use spmdc_driver::sources::SourceTexts;
use spmdc_functions::{Function, builtin};
use spmdc_grammar::codes::Code;
use spmdc_grammar::sentences;
use spmdc_ir::call::errors::nearest;
use spmdc_ir::call::signature::Status;
use spmdc_runtime::data::array::HostArray;
use spmdc_runtime::data::inputs::{Argument, bind};
use spmdc_runtime::data::outputs;
use spmdc_runtime::errors::trap::{RunCode, RunError};
use spmdc_runtime::run::report::RunOptions;
use spmdc_runtime::run::session::Session;
use std::fmt::Write as _;

/// Every code and its page, from `docs/errors`.
static PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// The page of a code, the description of a function, or the list of both.
pub fn explain(topic: Option<&str>, texts: &mut SourceTexts) -> Result<String, CommandError> {
    let Some(name) = topic else {
        return Ok(list());
    };
    if let Some((_, page)) = PAGES.iter().find(|(code, _)| code.eq_ignore_ascii_case(name)) {
        return Ok((*page).to_string());
    }
    match builtin(name) {
        Some(function) => explain_function(&function, texts),
        None => Err(unknown(name).into()),
    }
}

fn unknown(name: &str) -> RunError {
    let is_code = name.len() > 1 && name[1..].bytes().all(|byte| byte.is_ascii_digit());
    let known = functions::functions();
    let known: Vec<&str> = Code::ALL.iter().map(|code| code.name()).chain(known.iter().map(|one| one.name)).collect();
    let help = match nearest(name, known.iter().copied()) {
        Some(near) if !is_code => format!("did you mean `{near}`?"),
        Some(_) | None => "`spmdc explain` lists all codes, such as E0301, and all functions".to_string(),
    };
    let what = if is_code { "diagnostic" } else { "function or diagnostic" };
    RunError::new(RunCode::E0702, sentences::unknown(what, name)).with_help(help)
}

fn list() -> String {
    let mut text = String::new();
    for code in Code::ALL {
        let _ = writeln!(text, "{}  {}", code.name(), code.title());
    }
    text.push('\n');
    let functions = functions::functions();
    let longest = functions.iter().map(|function| function.name.len()).max().unwrap_or_default();
    for function in functions {
        let _ = writeln!(text, "{:longest$}  {}", function.name, function.signature().line());
    }
    text
}

fn explain_function(function: &Function, texts: &mut SourceTexts) -> Result<String, CommandError> {
    let signature = function.signature();
    let mut text = String::new();
    match signature.status {
        Status::Shipped => {}
        Status::InDumps { instead, .. } => {
            for form in function.forms() {
                let _ = writeln!(text, "{form}");
            }
            let _ = writeln!(text, "\n{}\nOnly dumps call it; in a program {instead}.", signature.line());
            return Ok(text);
        }
    }
    let _ = writeln!(text, "{signature}\n\n{}", signature.line());
    let program = functions::program(signature);
    texts.add("example", &program);
    let description = functions::described(function).map_err(CommandError::Program)?;
    if let Some(dtypes) = &description.element_types {
        let _ = writeln!(text, "Element types: {dtypes}.");
    }
    if !description.rules.is_empty() {
        text.push_str("\nRule:\n");
        for rule in &description.rules {
            let _ = writeln!(text, "  {rule}");
        }
    }
    if let Some(source) = description.source {
        text.push_str("\nWritten in the language:\n");
        for line in source.lines() {
            let _ = writeln!(text, "  {line}");
        }
    }
    let _ = writeln!(text, "\nCollectives, {}:", MESH.trim_end_matches(';'));
    let longest = description.exchanges.iter().map(|(ty, _)| ty.chars().count()).max().unwrap_or_default();
    for (ty, found) in &description.exchanges {
        let _ = writeln!(text, "  {ty:longest$}  {found}");
    }
    text.push_str("\nExample");
    let parameters = functions::parameters(signature);
    if !parameters.is_empty() {
        let args: Vec<String> = parameters.iter().map(|name| format!("--arg {name}=iota")).collect();
        let _ = write!(text, ", with {}", args.join(" "));
    }
    text.push_str(":\n");
    let answer = answer(&program, &parameters)?;
    for line in program.lines().chain([""]).chain(answer.lines()) {
        let _ = writeln!(text, "{}", format_args!("  {line}").to_string().trim_end());
    }
    Ok(text)
}

/// The output of the example, for parameters with the values 0, 1, 2 and so on.
fn answer(program: &str, parameters: &[String]) -> Result<String, CommandError> {
    let set = SourceSet::load("example", program, &NoSources).0;
    let compilation = compile(&set, &Options::default()).map_err(CommandError::Program)?;
    let program = compilation.program.ok_or_else(|| absent("program"))?;
    let code = backends::DEFAULT.load(&compilation.kernels).map_err(|error| no_code(&error))?;
    let kernels = code.into_kernels().map_err(|error| no_code(&error))?;
    let arguments = parameters.iter().map(|name| Argument::parse(&format!("{name}=iota")));
    let arguments = arguments.collect::<Result<Vec<Argument>, RunError>>()?;
    let sources = bind(&program.params, &arguments)?;
    let mut session = Session::load(program, kernels, RunOptions::default())?;
    for (index, source) in sources.into_iter().enumerate() {
        session.give(index, source)?;
    }
    let mut printed = Vec::new();
    session.run(&mut printed)?;
    let results = session.program().results.clone();
    let array = |index| session.read_result(index).map(HostArray::with_one_nan).map(Some);
    let arrays = (0..results.len()).map(array).collect::<Result<Vec<_>, RunError>>()?;
    outputs::print(&mut printed, &results, &arrays).map_err(|error| RunError::internal(error.to_string()))?;
    Ok(String::from_utf8_lossy(&printed).into_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn explained(topic: Option<&str>) -> Result<String, CommandError> {
        explain(topic, &mut SourceTexts::default())
    }

    fn refused(topic: &str) -> RunError {
        match explained(Some(topic)) {
            Err(CommandError::Failure(failure)) => failure.error,
            Err(CommandError::Program(diagnostics)) => panic!("{diagnostics:?}"),
            Ok(text) => panic!("{text}"),
        }
    }

    #[test]
    fn every_code_has_a_page_under_its_own_title() {
        for code in Code::ALL {
            let page = explained(Some(code.name())).ok().unwrap();
            assert!(page.starts_with(&format!("# {}: {}\n", code.name(), code.title())), "{page}");
        }
        assert!(explained(Some("e0301")).is_ok());
        assert_eq!(refused("E1234").code, RunCode::E0702);
        let list = explained(None).ok().unwrap();
        assert_eq!(list.lines().count(), Code::ALL.len() + 1 + functions::functions().len());
    }

    #[test]
    fn a_function_is_explained_by_what_compiling_and_running_it_says() {
        let text = explained(Some("sum")).ok().unwrap();
        let expected = "\
sum(x: array, axis: ints = None, keepdims: bool = false, *, dtype: element type = None, initial: number = None, where: mask = None)

The sum of the elements.
Element types: numbers and bools, and complex numbers.

Rule:
  sum(x, axis=(1,)): ab->a, b is reduced by sum

Collectives, mesh (X = 2, Y = 2):
  x: f32[4@X, 6]    none
  x: f32[4, 6@X]    all_reduce over X, 16 bytes
  x: f32[4@X, 6@Y]  all_reduce over Y, 8 bytes

Example, with --arg x=iota:
  fn main(x: f32[4, 6]) { sum(x, axis=1) }

  f32[4]
  [ 15.  51.  87. 123.]
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_function_of_the_prelude_shows_its_source() {
        let text = explained(Some("softplus")).ok().unwrap();
        let source = "Written in the language:\n  fn softplus(x) { logaddexp(as_float(x), 0) }\n";
        assert!(text.starts_with("softplus(x: array)\n\nlog(1 + exp(x)).\n") && text.contains(source), "{text}");
    }

    #[test]
    fn near_names_are_offered() {
        assert_eq!(refused("sofmax").help.as_deref(), Some("did you mean `softmax`?"));
        assert!(refused("E123").message.contains("unknown diagnostic `E123`"));
        assert!(explained(Some("index")).ok().unwrap().contains("in a program write x[i]"));
        assert!(explained(Some("transfer")).ok().unwrap().contains("on another mesh"));
    }
}
