//! The devices of a program in several processes: every program gives the bits, the text and the errors that it gives in one.
//!
//! The processes are threads here, each with a session and memory of its own, which send each other messages through queues. All cases
//! run in two processes where two divide the devices, and in three, four, six or eight in turn; so do random programs. `CASE=name` for
//! the cases with this in their path; `PROGRAM=17` and `PROGRAMS=100` as for the test `programs`.

#![allow(clippy::unwrap_used)]

use spmdc_abi::Kernels;
use spmdc_abi::mesh::DeviceMesh;
use spmdc_compiler::backends;
use spmdc_compiler::pipeline::Compilation;
use spmdc_runtime::array::HostArray;
use spmdc_runtime::processes::Process;
use spmdc_runtime::report::RunOptions;
use spmdc_runtime::session::Session;
use spmdc_tests::case::{Case, programs};
use spmdc_tests::random::failures::{ARGS, program as failing_program};
use spmdc_tests::random::programs::{Scale, Writer};
use spmdc_tests::random::{Draw, Mesh};
use spmdc_tests::{engine, problems, root};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The numbers of processes for this many devices: two if they divide them, and another one in turn.
fn numbers_of_processes(devices: usize, number: usize) -> Vec<usize> {
    let others: Vec<usize> = [3, 4, 6, 8, 12].into_iter().filter(|count| devices.is_multiple_of(*count)).collect();
    let other = (!others.is_empty()).then(|| others[number % others.len()]);
    [2].into_iter().filter(|_| devices.is_multiple_of(2)).chain(other).collect()
}

/// Compares runs in several processes with one in a single process. Returns the number of runs.
fn same_in_processes(compilation: &Compilation, inputs: &[HostArray], number: usize) -> Result<usize, String> {
    let program = compilation.program.as_ref().ok_or("no program was made")?;
    let devices = DeviceMesh::new(&program.mesh)?.devices();
    let counts = numbers_of_processes(devices, number);
    if counts.is_empty() {
        return Ok(0);
    }
    let expected = engine::run(compilation, inputs, None);
    for (at, &count) in counts.iter().enumerate() {
        // Every other time all devices of a process are on one thread.
        let workers = (number + at).is_multiple_of(2).then_some(1);
        let found = engine::run_in_processes(compilation, inputs, (count, workers));
        match (&expected, found) {
            (Ok(expected), Ok(found)) => {
                if let Some(index) = (0..found.results.len()).find(|&at| found.results[at] != expected.results[at]) {
                    return Err(format!("in {count} processes result {index} has other bits"));
                }
                if found.printed != expected.printed {
                    let (expected, found) = (&expected.printed, found.printed);
                    return Err(format!("in {count} processes it prints {found:?} instead of {expected:?}"));
                }
            }
            (Err(expected), Err(found)) if *expected == found => {}
            (expected, found) => return Err(format!("in {count} processes {found:?} instead of {expected:?}")),
        }
    }
    Ok(counts.len())
}

fn case_problems(path: &Path) -> Result<usize, String> {
    let case = Case::read(path)?;
    let mut runs = 0;
    for (number, mesh) in case.meshes_to_run().iter().enumerate() {
        let compiled = engine::compiled("case.spmd", &case.text, mesh, None);
        let compilation = match compiled {
            Ok(compilation) => compilation,
            Err(_) if !case.errors.is_empty() => continue,
            Err(failures) => return Err(format!("on {mesh}: {failures:?}")),
        };
        let inputs = engine::inputs(&compilation, &case.args, &root())?;
        let seed = case.text.len() + number;
        runs += same_in_processes(&compilation, &inputs, seed).map_err(|text| format!("on {mesh}: {text}"))?;
    }
    Ok(runs)
}

#[test]
fn cases_mean_the_same_in_several_processes() {
    let only = std::env::var("CASE").unwrap_or_default();
    let paths: Vec<PathBuf> = ["tests/cases", "examples"]
        .into_iter()
        .flat_map(|folder| programs(&root().join(folder)))
        .filter(|path| path.to_string_lossy().contains(&only))
        .collect();
    let list = problems(&paths, |path| {
        let problem = case_problems(path).err();
        problem.map(|text| format!("{}: {text}", path.strip_prefix(root()).unwrap().display())).into_iter().collect()
    });
    assert!(list.is_empty(), "{} problems:\n{}", list.len(), list.join("\n"));
}

/// A random program without explicit axes, which refuse some statements.
fn program(number: u64) -> String {
    let draw = Draw::new("processes", number);
    let mesh = Mesh { axes: vec![("X", 2, false), ("Y", 3, false)] };
    let mut writer = Writer::new(draw, mesh.clone(), if number % 25 == 24 { Scale::Large } else { Scale::Small });
    let types = writer.param_types();
    for _ in 0..30 {
        writer.statement();
    }
    writer.text(&mesh, &types)
}

fn program_problems(number: u64) -> Result<(), String> {
    let text = program(number);
    let mesh = ["2x3", "4x2", "3x4", "1x6", "6x1", "2x6"][number as usize % 6];
    let compilation =
        engine::compiled("program.spmd", &text, mesh, None).map_err(|failures| format!("{failures:?}"))?;
    let inputs = engine::inputs(&compilation, &[], &root())?;
    let same = same_in_processes(&compilation, &inputs, number as usize);
    same.map(drop).map_err(|error| format!("on {mesh}: {error}\n{text}"))
}

#[test]
fn random_programs_mean_the_same_in_several_processes() {
    let env = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let numbers: Vec<u64> = match (env("PROGRAM"), env("PROGRAMS")) {
        (None, count) => (0..count.unwrap_or(1_000)).collect(),
        (Some(first), count) => (first..first + count.unwrap_or(1)).collect(),
    };
    let list = problems(&numbers, |&number| {
        program_problems(number).err().map(|text| format!("program {number}: {text}")).into_iter().collect()
    });
    assert!(list.is_empty(), "{} problems:\n{}", list.len(), list.join("\n"));
}

/// Also what was printed before the failure, and that nothing is printed after it.
#[test]
fn failures_are_the_same_in_several_processes() {
    let numbers: Vec<u64> = (0..60).collect();
    let list = problems(&numbers, |&number| {
        let text = failing_program(&mut Draw::new("failing", number)).text;
        let mesh = ["2x3", "4x2", "3x4"][number as usize % 3];
        let compilation = engine::compiled("failing.spmd", &text, mesh, None).unwrap();
        let inputs = engine::inputs(&compilation, &ARGS.map(str::to_string), &root()).unwrap();
        let same = same_in_processes(&compilation, &inputs, number as usize);
        same.err().map(|error| format!("program {number} on {mesh}: {error}\n{text}")).into_iter().collect()
    });
    assert!(list.is_empty(), "{} problems:\n{}", list.len(), list.join("\n"));
}

/// The text of a program is that of one process also where another process fails between two lines.
#[test]
fn no_line_is_printed_after_a_failure() {
    let text = "mesh (X = 4);
        fn main(x: i32[8@X], at: i32[8@X]) {
          print(\"first\");
          let y = x // at;
          print(\"second\");
          y
        }";
    let compilation = engine::compiled("failing.spmd", text, "", None).unwrap();
    let mut inputs = engine::inputs(&compilation, &["x=ones".to_string(), "at=ones".to_string()], &root()).unwrap();
    // A zero in the block of the last device.
    inputs[1].bytes[4 * 7] = 0;
    let (printed, failures) = printed_by_processes(&compilation, &inputs, 4, Duration::from_secs(20), 4);
    assert_eq!(printed, "first\n");
    assert!(failures.iter().all(|failure| failure == "E0802"), "{failures:?}");
}

/// A process that does not come is named by those that wait for it, after the time limit.
#[test]
fn a_process_that_does_not_come_is_named() {
    let text = "mesh (X = 4);\nfn main(x: f32[8@X]) { sum(x) }";
    let compilation = engine::compiled("late.spmd", text, "", None).unwrap();
    let inputs = engine::inputs(&compilation, &[], &root()).unwrap();
    let (_, failures) = printed_by_processes(&compilation, &inputs, 2, Duration::from_millis(200), 1);
    assert_eq!(failures.len(), 1);
    assert!(failures[0].starts_with("E0804") && failures[0].contains("process 1"), "{failures:?}");
}

/// Runs the first `running` of so many processes. What the first one prints, and the failures of all: code and message for E0804, the
/// code alone for others.
fn printed_by_processes(
    compilation: &Compilation,
    inputs: &[HostArray],
    count: usize,
    timeout: Duration,
    running: usize,
) -> (String, Vec<String>) {
    let program = compilation.program.clone().unwrap();
    let code = backends::DEFAULT.load(&compilation.kernels).unwrap();
    let functions = code.functions().unwrap();
    let run = |process: Process| {
        // SAFETY: these are the kernels of this very program, and `code` outlives the sessions.
        let kernels = unsafe { Kernels::new(functions.to_vec()) };
        let options = RunOptions { timeout, ..RunOptions::default() };
        let mut session = Session::load_in(Some(process), program.clone(), kernels, options).unwrap();
        for (index, input) in inputs.iter().enumerate() {
            session.write_param(index, &mut input.clone()).unwrap();
        }
        let mut printed = Vec::new();
        let failure = session.run(&mut printed).err().map(|error| match error.code {
            "E0804" => format!("E0804 {}", error.message),
            code => code.to_string(),
        });
        (String::from_utf8(printed).unwrap(), failure)
    };
    let outcomes: Vec<(String, Option<String>)> = std::thread::scope(|scope| {
        let run = &run;
        let processes = Process::threads(count).into_iter().take(running);
        let threads: Vec<_> = processes.map(|process| scope.spawn(move || run(process))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let failures = outcomes.iter().filter_map(|(_, failure)| failure.clone()).collect();
    (outcomes.into_iter().next().unwrap().0, failures)
}
