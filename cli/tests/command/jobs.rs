//! Random programs and all cases in two processes over each MPI that is installed: the bits and the text of one process.
//!
//! 100 programs. `PROGRAMS=5000` tries more, `PROGRAM=17` begins there.

use crate::folder::{Folder, installed};
use spmdc_runtime::data::array::HostArray;
use spmdc_runtime::processes::{Process, job};
use spmdc_runtime::run::args::RunArgs;
use spmdc_tests::case::{Case, programs};
use spmdc_tests::engine::{self, Failure, Loaded};
use spmdc_tests::random::whole::{MESHES, program};
use spmdc_tests::root;
use std::env;
use std::ops::Range;

/// The test that the launcher starts twice.
const ONE: &str = "jobs::one_process_of_two";

#[test]
fn two_processes_over_mpi_give_what_one_gives() {
    let folder = Folder::with(&[]);
    let test = env::current_exe().unwrap();
    for mpi in installed() {
        let words = ["launch", "-n", "2", "--mpi", mpi, "--", test.to_str().unwrap(), ONE];
        let said = folder.spmdc(&[&words[..], &["--exact", "--ignored", "--nocapture"]].concat());
        assert_eq!(said.status, 0, "{mpi}:\n{}{}", said.out, said.err);
        eprint!("{mpi}: {}", said.err);
    }
}

fn numbers() -> Range<u64> {
    let env = |name: &str| env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let first = env("PROGRAM").unwrap_or(0);
    first..first + env("PROGRAMS").unwrap_or(100)
}

/// Both processes compile and run the same programs in the same order; the first one compares.
#[test]
#[ignore = "one process of a job, which the other test starts"]
fn one_process_of_two() {
    let process = job::enter(&RunArgs::default()).unwrap().expect("a launcher starts this test");
    let mut wrong = Vec::new();
    let mut count = 0;
    for number in numbers() {
        let text = program(number).unwrap().0;
        // On explicit axes a program may be ambiguous on other meshes than its own.
        let Ok(compilation) = engine::compiled_quickly("program.spmd", &text, MESHES[1 + number as usize % 3]) else {
            continue;
        };
        let inputs = engine::inputs(&compilation, &[], &root()).unwrap();
        let same = is_same(&process, &Loaded::new(&compilation).unwrap(), &inputs);
        wrong.extend(same.err().map(|error| format!("program {number}: {error}\n{text}")));
        count += 1;
    }
    for path in ["tests/cases", "examples"].into_iter().flat_map(|folder| programs(&root().join(folder))) {
        let case = Case::read(&path).unwrap();
        let Some((loaded, inputs)) = dealt_equally(&case) else { continue };
        let same = is_same(&process, &loaded, &inputs);
        wrong.extend(same.err().map(|error| format!("{}: {error}", path.display())));
        count += 1;
    }
    if process.rank() == 0 {
        eprintln!("{count} programs are the same in two processes as in one");
    }
    job::leave(None);
    assert!(wrong.is_empty(), "{} problems:\n{}", wrong.len(), wrong.join("\n"));
}

/// The program of a case that succeeds, on the last of its meshes whose devices can be dealt to two processes.
fn dealt_equally(case: &Case) -> Option<(Loaded, Vec<HostArray>)> {
    if !case.errors.is_empty() {
        return None;
    }
    case.meshes_to_run().iter().rev().find_map(|mesh| {
        let compilation = engine::compiled_quickly("case.spmd", &case.text, mesh).unwrap();
        let inputs = engine::inputs(&compilation, &case.args, &root()).unwrap();
        let loaded = Loaded::new(&compilation).unwrap();
        loaded.devices().is_multiple_of(2).then_some((loaded, inputs))
    })
}

fn is_same(process: &Process, loaded: &Loaded, inputs: &[HostArray]) -> Result<(), String> {
    let said = |failure: Failure| format!("{failure:?}");
    let alone = loaded.run(inputs, None).map_err(said)?;
    // The folder of the test, which both processes see.
    let folder = env::current_dir().map_err(|error| error.to_string())?;
    let found = loaded.run_as(process.clone(), inputs, &folder).map_err(said)?;
    if process.rank() > 0 {
        return if found.printed.is_empty() { Ok(()) } else { Err("several processes print".to_string()) };
    }
    if let Some(index) = (0..alone.results.len()).find(|&at| alone.results[at] != found.results[at]) {
        return Err(format!("result {index} has other bits"));
    }
    if alone.printed != found.printed {
        return Err(format!("it prints {:?} instead of {:?}", found.printed, alone.printed));
    }
    Ok(())
}
