//! Every example and every test program, built once: what was built prints and writes what `spmdc run` does, to the bit.
//!
//! Linking an executable takes longer than everything else about it, and gives the same runtime each time. So the programs become
//! shared objects, and one executable with the whole runtime starts any of them; every twentieth program is linked by itself.

use spmdc_runtime::data::array::HostArray;
use spmdc_runtime::io::npz::NpzArchive;
use spmdc_tests::case::{Case, programs};
use spmdc_tests::{problems, root};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Calls `main` of the shared object that the environment names.
const STARTER: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    void *program = dlopen(getenv("PROGRAM"), RTLD_NOW);
    int (*entry)(int, char **) = program ? (int (*)(int, char **))dlsym(program, "main") : NULL;
    if (entry) return entry(argc, argv);
    fprintf(stderr, "%s\n", dlerror());
    return 127;
}
"#;

/// Called as `spmdc build` calls a linker: `-o`, the output, the program's object, and the archive of the runtime.
const LINK_STARTER: &str = "exec cc \"$(dirname \"$0\")/starter.c\" -o \"$2\" -rdynamic -Wl,--whole-archive \"$4\" -Wl,--no-whole-archive -lpthread -ldl -lm";
const LINK_PROGRAM: &str = "exec ld -shared -o \"$2\" \"$3\"";

/// An executable with the whole runtime, and how to link a program that it can start.
struct Starter {
    executable: PathBuf,
    linker: String,
}

impl Starter {
    fn build(folder: &Path) -> Starter {
        for (name, text) in [("starter.c", STARTER), ("starter.sh", LINK_STARTER), ("program.sh", LINK_PROGRAM)] {
            std::fs::write(folder.join(name), text).unwrap();
        }
        let linker = |script: &str| format!("sh {}", folder.join(script).display());
        let executable = folder.join("starter");
        let output = executable.to_str().unwrap();
        let built = spmdc(&["build", "examples/toy.spmd", "-o", output], Some(&linker("starter.sh")));
        assert!(built.status.success(), "{built:?}");
        Starter { executable, linker: linker("program.sh") }
    }
}

fn spmdc(words: &[&str], linker: Option<&str>) -> Output {
    let mut command = crate::folder::spmdc();
    command.args(words).current_dir(root()).envs(linker.map(|linker| ("CC", linker))).output().unwrap()
}

/// A value for each parameter: what the case names, the arrays of a golden program, or generated ones.
fn arguments(case: &Case, program: &str) -> Result<Vec<String>, String> {
    let dump = spmdc(&["dump", program, "--stage", "typed", "--format", "json"], None);
    if !dump.status.success() {
        return Err(String::from_utf8_lossy(&dump.stderr).into_owned());
    }
    let dump: serde_json::Value = serde_json::from_slice(&dump.stdout).unwrap();
    let archive = case.path.with_extension("npz");
    let argument = |param: &serde_json::Value| {
        let (name, ty) = (param["name"].as_str().unwrap(), param["type"].as_str().unwrap());
        let ty = ty.trim_start_matches("stream ");
        let given = case.args.iter().find(|arg| arg.split('=').next() == Some(name));
        match given {
            Some(arg) => arg.clone(),
            None if archive.exists() => format!("{name}=@{}:in.{name}", archive.display()),
            None if ty.starts_with('f') || ty.starts_with("bf") => format!("{name}=uniform:7"),
            None if ty.starts_with('c') => format!("{name}=normal:7"),
            None if ty.starts_with("key") => format!("{name}=full:42"),
            None if ty.starts_with("bool") => format!("{name}=ones"),
            None => format!("{name}=iota"),
        }
    };
    Ok(dump["params"].as_array().unwrap().iter().map(argument).collect())
}

/// Differences between running a program and building it first.
fn differs(path: &Path, folder: &Path, starter: Option<&Starter>) -> Result<(), String> {
    let case = Case::read(path)?;
    let program = path.to_str().unwrap();
    // Programs that are wrong are no programs.
    let Ok(arguments) = arguments(&case, program) else {
        return if case.errors.is_empty() { Err("does not compile".to_string()) } else { Ok(()) };
    };
    let words: Vec<&str> = arguments.iter().flat_map(|argument| ["--arg", argument]).collect();
    let file = |name: &str| folder.join(name).to_str().unwrap().to_string();
    let (executable, ran, built) = (file("program"), file("run.npz"), file("built.npz"));
    let run = spmdc(&[&["run", program, "--out", &ran], words.as_slice()].concat(), None);
    let build = spmdc(&["build", program, "-o", &executable], starter.map(|starter| starter.linker.as_str()));
    if !build.status.success() {
        let same = !case.errors.is_empty() && (run.status.code(), &run.stderr) == (build.status.code(), &build.stderr);
        return if same { Ok(()) } else { Err(format!("`build` says {build:?}, `run` {run:?}")) };
    }
    let mut command = Command::new(starter.map_or(Path::new(&executable), |starter| &starter.executable));
    command.env_clear().env("PROGRAM", &executable).args(&words).args(["--out", &built]);
    let executed = command.current_dir(root()).output().unwrap();
    if (run.status.code(), &run.stdout) != (executed.status.code(), &executed.stdout) {
        return Err(format!("`run` says {run:?}, what was built {executed:?}"));
    }
    if run.status.success() != case.errors.is_empty() {
        return Err(format!("{run:?}"));
    }
    let same = !run.status.success() || same_arrays(&ran, &built);
    if same { Ok(()) } else { Err("the results differ".to_string()) }
}

fn same_arrays(ran: &str, built: &str) -> bool {
    if std::fs::read(ran).unwrap() == std::fs::read(built).unwrap() {
        return true;
    }
    let (ran, built) = (NpzArchive::open(Path::new(ran)).unwrap(), NpzArchive::open(Path::new(built)).unwrap());
    let same = |a: &HostArray, b: &HostArray| (a.dtype, &a.shape, &a.bytes) == (b.dtype, &b.shape, &b.bytes);
    let array = |archive: &NpzArchive, name: &str| archive.array(name).unwrap().unwrap().read().unwrap();
    ran.names().eq(built.names()) && ran.names().all(|name| same(&array(&ran, name), &array(&built, name)))
}

#[test]
fn executables_give_what_run_gives() {
    let paths: Vec<_> =
        ["examples", "tests/cases", "tests/golden"].iter().flat_map(|folder| programs(&root().join(folder))).collect();
    assert!(paths.len() > 100, "{} programs", paths.len());
    let folder = tempfile::tempdir().unwrap();
    let starter = Starter::build(folder.path());
    let numbered: Vec<(usize, &PathBuf)> = paths.iter().enumerate().collect();
    let wrong = problems(&numbered, |&(number, path)| {
        let folder = tempfile::tempdir().unwrap();
        let starter = (number % 20 != 0).then_some(&starter);
        let outcome = differs(path, folder.path(), starter);
        outcome.err().map(|text| format!("{}: {text}", path.display())).into_iter().collect()
    });
    assert!(wrong.is_empty(), "{} problems:\n{}", wrong.len(), wrong.join("\n"));
}
