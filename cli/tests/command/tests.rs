//! `spmdc test`, and tests in programs.

use crate::folder::{Folder, spmdc};
use std::path::Path;

const TESTS: &str = "mesh (X = 2);
fn double(x) { 2 * x }
test \"doubles are even\" {
  assert(all(double(iota(i32[7@X], axis=0)) % 2 == 0));
}
test \"a \\\"wrong\\\" one\" {
  let x = sum(arange(10));
  print(\"x is {}\", x);
  assert(x == 44, \"{} is not 44\", x);
}
fn main(x: f32[4]) { double(x) }
";

#[test]
fn each_test_is_a_line_and_failures_are_explained() {
    let folder = Folder::with(&[("a.spmd", TESTS)]);
    let said = folder.spmdc(&["test", "a.spmd"]);
    let expected = "test doubles are even ... ok\ntest a \"wrong\" one ... FAILED\n  a.spmd:9: 45 is not 44, \
                    on the mesh (X = 2), one device, the mesh (X = 3)\n    x is 45\n1 passed, 1 failed in ";
    said.expect(3, expected, "");
    assert!(said.out.starts_with(expected), "{}", said.out);
    let said =
        folder.spmdc(&["test", "a.spmd", "--filter", "even", "--mesh", "4", "--mesh", "X=5", "--format", "json"]);
    said.expect(0, "\"line\":3,\"meshes\":[{\"mesh\":\"the mesh (X = 4)\",\"printed\":\"\",\"status\":\"passed\"}", "");
    said.expect(0, "the mesh (X = 5)", "");
    said.expect(0, "{\"errors\":0,\"failed\":0,\"passed\":1}\n", "");
    // Other commands ignore tests, and inspect one as an entry.
    folder.spmdc(&["run", "a.spmd", "--arg", "x=iota"]).expect(0, "[0. 2. 4. 6.]", "");
    folder.spmdc(&["plan", "a.spmd", "--entry", "test \"doubles are even\""]).expect(0, "`test` on the mesh", "");
}

#[test]
fn errors_in_tests_are_of_tests_and_of_check() {
    let wrong = "test \"unknown\" { assert(absent > 0); }\ntest \"right\" { assert(true); }\nfn main() { 1 }\n";
    let twice = "test \"same\" { assert(true); }\ntest \"same\" { assert(true); }\n";
    let names = "fn test(x) { x }\nconst N = 3;\nfn main() { let test = test(N); print(test, \"!\"); test }\n";
    let meant = "manual(X) fn half(x: f32[8@X]) -> f32[8@X] { x / 2 }\nmesh (X = 2);\n\
                 test \"blocks\" { assert(all(half(ones(f32[8])) == 0.5)); }\n";
    let folder =
        Folder::with(&[("wrong.spmd", wrong), ("twice.spmd", twice), ("names.spmd", names), ("meant.spmd", meant)]);
    let said = folder.spmdc(&["test", "wrong.spmd"]);
    said.expect(1, "test unknown ... ERROR\ntest right ... ok\n1 passed, 0 failed, 1 with errors", "E0101");
    folder.spmdc(&["check", "wrong.spmd"]).expect(1, "", "E0101");
    folder.spmdc(&["run", "wrong.spmd"]).expect(0, "1", "");
    folder.spmdc(&["test", "twice.spmd"]).expect(1, "2 with errors", "defined twice");
    folder.spmdc(&["run", "names.spmd"]).expect(0, "3 !", "");
    folder.spmdc(&["test", "names.spmd"]).expect(0, "0 passed, 0 failed", "");
    // Blocks of `manual` functions must be equal, so the mesh of three devices is left out.
    folder.spmdc(&["test", "meant.spmd"]).expect(0, "1 passed, 0 failed", "");
    folder.spmdc(&["test", "meant.spmd", "--format", "json"]).expect(0, "\"status\":\"skipped\"", "");
    folder.spmdc(&["test", "absent.spmd"]).expect(2, "", "cannot read the program `absent.spmd`");
}

#[test]
fn imported_tests_are_ignored() {
    let nn = "fn f(x) { x + 1 }\ntest \"fails\" { assert(false); }\n";
    let main = "import \"nn.spmd\";\ntest \"uses f\" { assert(f(1) == 2); }\nfn main() { f(2) }\n";
    let folder = Folder::with(&[("nn.spmd", nn), ("main.spmd", main)]);
    folder.spmdc(&["test", "main.spmd"]).expect(0, "test uses f ... ok\n1 passed, 0 failed", "");
    folder.spmdc(&["run", "main.spmd"]).expect(0, "3", "");
    folder.spmdc(&["test", "."]).expect(3, "main.spmd\ntest uses f ... ok\nnn.spmd\ntest fails ... FAILED", "");
}

#[test]
fn tests_of_the_library_and_of_examples_pass() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let said = spmdc().args(["test", "compiler/check/prelude", "examples"]).current_dir(root).output().unwrap();
    let out = String::from_utf8(said.stdout).unwrap();
    assert!(said.status.success(), "{out}{}", String::from_utf8_lossy(&said.stderr));
    for file in ["linalg.spmd", "nn.spmd", "optim.spmd", "stats.spmd", "edges.spmd", "heat.spmd", "life.spmd"] {
        assert!(out.contains(file), "{file} has no tests:\n{out}");
    }
}
