//! JAX programs: a built executable, and the imported program, write the same bytes as `spmdc run`. Exported programs run as text.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::folder::{Folder, Said};
use spmdc_tests::root;

/// The programs that JAX has printed.
fn programs() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("tests/stablehlo")).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "mlir"));
    paths.sort();
    paths
}

/// The arguments of a program, from the archive beside it.
fn arguments(program: &PathBuf) -> Vec<String> {
    let text = fs::read_to_string(program).unwrap();
    let head = text.lines().find(|line| line.contains("@main(")).unwrap();
    let archive = program.with_extension("npz");
    let given = (0..).take_while(|number| head.contains(&format!("%arg{number}: ")));
    given
        .flat_map(|number| ["--arg".to_string(), format!("arg{number}=@{}:in.arg{number}", archive.display())])
        .collect()
}

#[test]
fn imported_programs_compute_the_same() {
    let folder = Folder::with(&[]);
    for program in programs() {
        let name = program.display().to_string();
        let imported = folder.spmdc(&["import", &name]);
        assert_eq!((imported.status, imported.err.as_str()), (0, ""), "{name}");
        fs::write(folder.path().join("imported.spmd"), &imported.out).unwrap();
        let arguments = arguments(&program);
        let run = |file: &str, out: &str| {
            let words = ["run", file, "--out", out].into_iter().chain(arguments.iter().map(String::as_str));
            let said = folder.spmdc(&words.collect::<Vec<_>>());
            assert_eq!((said.status, said.err.as_str()), (0, ""), "{name}:\n{}", imported.out);
        };
        run(&name, "text.npz");
        run("imported.spmd", "imported.npz");
        let [text, imported] = folder.taken(&["text.npz", "imported.npz"]).try_into().unwrap();
        assert!(text == imported, "{name} and the imported program have other results");
    }
}

#[test]
fn an_executable_of_a_jax_program_writes_the_same_results() {
    let folder = Folder::with(&[]);
    let program = root().join("tests/stablehlo/named.mlir");
    let (name, arguments) = (program.display().to_string(), arguments(&program));
    assert_eq!(folder.spmdc(&["build", &name, "-o", "named"]).status, 0);
    let mut built = Command::new(folder.path().join("named"));
    let said =
        Said::of(built.args(&arguments).args(["--out", "built.npz"]).current_dir(folder.path()).output().unwrap());
    assert_eq!((said.status, said.err.as_str()), (0, ""));
    let words = ["run", &name, "--out", "run.npz"].into_iter().chain(arguments.iter().map(String::as_str));
    assert_eq!(folder.spmdc(&words.collect::<Vec<_>>()).status, 0);
    let [built, run] = folder.taken(&["built.npz", "run.npz"]).try_into().unwrap();
    assert!(built == run, "the executable has other results");
}

#[test]
fn only_stablehlo_text_is_imported() {
    let folder = Folder::with(&[("p.spmd", "fn main() { 1 }\n")]);
    let refused = folder.spmdc(&["import", "p.spmd"]);
    assert_eq!(refused.status, 2);
    assert!(refused.err.contains("cannot import `p.spmd`: expected StableHLO text"), "{}", refused.err);
}

#[test]
fn exported_programs_run_as_text() {
    let program =
        "mesh (X = 2);\nfn main(x: f32[5@X], z: c64[2]) -> (f32[5], c64[2]) { print(x[0]); (x * 2, z * z) }\n";
    let folder = Folder::with(&[("p.spmd", program)]);
    let printed = folder.spmdc(&["export", "p.spmd", "--mesh", "4"]);
    assert_eq!(printed.status, 0, "{}", printed.err);
    assert!(printed.err.contains("E0113") && printed.err.contains("the exported program leaves out this `print`"));
    // Four devices do not divide five elements: the parameter is whole, and split inside.
    for part in
        ["<[\"X\"=4]>", "%x: tensor<5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}", "%x <@mesh, [{\"X\"}]>"]
    {
        assert!(printed.out.contains(part), "{part} is not in\n{}", printed.out);
    }
    let written = folder.spmdc(&["export", "p.spmd", "--mesh", "4", "-o", "p.mlir"]);
    assert_eq!((written.status, written.out.as_str()), (0, ""));
    assert_eq!(fs::read_to_string(folder.path().join("p.mlir")).unwrap(), printed.out);
    for (file, out) in [("p.spmd", "a.npz"), ("p.mlir", "b.npz")] {
        let ran = folder.spmdc(&["run", file, "--arg", "x=iota", "--arg", "z=[1+2j,3]", "--out", out]);
        assert_eq!(ran.status, 0, "{}", ran.err);
    }
    let [program, text] = folder.taken(&["a.npz", "b.npz"]).try_into().unwrap();
    assert!(program == text, "the text has other results");
}

#[test]
fn programs_that_stablehlo_cannot_express_are_refused() {
    let saves = "fn main(x: f32[2]) -> f32[2] {\n  save(\"x.npz\", x);\n  x\n}\n";
    let meshes =
        "mesh a (X = 2) devices [0, 1];\nmesh b (X = 2) devices [2, 3];\nfn main(x: f32[2]) { transfer(x, b) }\n";
    let folder = Folder::with(&[("saves.spmd", saves), ("meshes.spmd", meshes)]);
    for (name, message) in [
        ("saves.spmd", "cannot export `save`: StableHLO has no writing of files"),
        ("meshes.spmd", "cannot export a program with several meshes"),
    ] {
        let refused = folder.spmdc(&["export", name, "-o", "none.mlir"]);
        assert_eq!(refused.status, 1);
        assert!(refused.err.contains("E0112") && refused.err.contains(message), "{}", refused.err);
        assert!(!folder.path().join("none.mlir").exists(), "{name} wrote a file");
    }
}
