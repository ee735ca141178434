//! JAX programs: a built executable, and the imported program, write the same bytes as `spmdc run`. Exported programs run as text.

use std::fs;
use std::path::{Path, PathBuf};
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
fn arguments(program: &Path) -> Vec<String> {
    let archive = program.with_extension("npz");
    let text = fs::read_to_string(program).unwrap();
    // In the generic form, the parameters are those of the first block.
    let (_, head) = text.split_once("@main(").or_else(|| text.split_once("^bb0(")).unwrap();
    let head = head.split(")\n").next().unwrap().split(" -> ").next().unwrap().split("):").next().unwrap();
    let params = head.matches(": tensor<").count();
    let given = |number| ["--arg".to_string(), format!("arg{number}=@{}:in.arg{number}", archive.display())];
    (0..params).flat_map(given).collect()
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

/// JAX prints the body of a scan as a function, its rows as slices, and its results as arrays that are updated.
#[test]
fn scans_are_loops_that_collect_rows() {
    let name = root().join("tests/stablehlo/scans.mlir").display().to_string();
    let imported = Folder::with(&[]).spmdc(&["import", &name]).out;
    for part in [" = for i in 0..5 collect {", " = arg0[i];", " = if sum(arg2, axis=0) > 0.0 { arg2 * 2.0 } else { "] {
        assert!(imported.contains(part), "{part}\n{imported}");
    }
    for part in ["closed_call", "dynamic_slice", "maximum("] {
        assert!(!imported.contains(part), "{part}\n{imported}");
    }
}

/// JAX prints the cipher as a loop over all elements.
#[test]
fn random_bits_of_jax_are_those_of_the_language() {
    let name = root().join("tests/stablehlo/draws.mlir").display().to_string();
    let imported = Folder::with(&[]).spmdc(&["import", &name]).out;
    assert!(imported.contains(" bits(wrap_key_data(") && !imported.contains("threefry2x32"), "{imported}");
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

const TREE: &str = r#"#loc1 = loc("state.params['w']")
module @jit_f {
  func.func public @main(%arg0: tensor<2xf32> loc(#loc1), %arg1: tensor<2xf32> loc("state.extra[0]")) -> (tensor<2xf32> {jax.result_info = "result['a'][0]"}, tensor<2xf32> {jax.result_info = "result['a'][1]"}) {
    %0 = stablehlo.add %arg0, %arg1 : tensor<2xf32> loc(#loc4)
    %1 = stablehlo.subtract %arg0, %arg1 : tensor<2xf32> loc(#loc4)
    return %0, %1 : tensor<2xf32>, tensor<2xf32>
  }
}
#loc2 = loc("model.py":12:8 to :24)
#loc3 = loc("loss"(#loc2))
#loc4 = loc("jit(f)/add"(#loc3))
"#;

#[test]
fn paths_of_jax_name_parameters_and_results() {
    let folder = Folder::with(&[("f.mlir", TREE)]);
    let run = |arguments: &[&str]| folder.spmdc(&[&["run", "f.mlir"], arguments].concat());
    let by_name = run(&["--arg", "arg0=[1,2]", "--arg", "arg1=[3,4]"]);
    assert_eq!((by_name.status, by_name.out.as_str()), (0, "0: f32[2]\n[4. 6.]\n1: f32[2]\n[-2. -2.]\n"));
    for arguments in [
        ["--arg", "state.params['w']=[1,2]", "--arg", "state.extra[0]=[3,4]"],
        ["--arg", "state.params.w=[1,2]", "--arg", "arg1=[3,4]"],
    ] {
        assert_eq!(run(&arguments).out, by_name.out);
    }
    assert_eq!(run(&["--arg", "state=ones"]).out, "0: f32[2]\n[2. 2.]\n1: f32[2]\n[0. 0.]\n");
    let twice = run(&["--arg", "arg0=ones", "--arg", "state.params['w']=ones"]);
    let words = "error[E0702]: `state.params['w']` is given twice, also as `arg0`";
    assert!(twice.status == 2 && twice.err.contains(words), "{}", twice.err);

    // Results go into files by either name, and the file of all arguments has either name for each.
    let files = ["--out", "result['a'][1]=one.npy", "--out", "result['a']=a.npz", "--out", "all.npz"];
    assert_eq!(run(&[&["--arg", "state=ones"][..], &files[..]].concat()).status, 0);
    let foreign = run(&["--args", "a.npz"]);
    let words = "`a.npz` has arrays that are not parameters of the program: `0`, `1`";
    assert!(foreign.status == 2 && foreign.err.contains(words), "{}", foreign.err);
    fs::write(
        folder.path().join("save.spmd"),
        "fn main(w: f32[2], e: f32[2]) -> { state: { params: { w: f32[2] }, extra: (f32[2],) } } {\n  \
         { state: { params: { w: w }, extra: (e,) } }\n}\n",
    )
    .unwrap();
    let saved = folder.spmdc(&["run", "save.spmd", "--arg", "arg0=[1,2]", "--arg", "arg1=[3,4]", "--out", "args.npz"]);
    assert_eq!((saved.status, saved.err.as_str()), (0, ""), "the position of a parameter is a name, too");
    assert_eq!(run(&["--args", "args.npz"]).out, by_name.out);
}

#[test]
fn messages_name_the_line_of_python() {
    let folder = Folder::with(&[("f.mlir", &TREE.replace("stablehlo.add", "stablehlo.unheard"))]);
    let refused = folder.spmdc(&["check", "f.mlir"]);
    assert!(refused.status == 1 && refused.err.contains("the line of Python is model.py:12"), "{}", refused.err);
    assert!(refused.err.contains("f.mlir:4:5"), "{}", refused.err);
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
