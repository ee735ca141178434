//! The arguments of all parameters from one archive: `--args all.npz`.

use std::fs;
use std::process::Command;

use crate::folder::{Folder, SPMDC, Said, installed};
use spmdc_tests::root;

/// A parameter of each kind, for an archive that NumPy has written.
const KINDS: &str = "
    mesh (X = 2);
    type P = { w: bf16[3@X, 2], layer: { w: bf16[3, 2@X], b: f8e4m3[2], c: f8e5m2[2], d: f8e5m2[2] } };
    fn main(p: P, z: c64[2@X], c: c128, mask: bool[3], seed: key, n: i64, pair: (f16[2@X, 3], i32[3]), empty: f32[0, 3]) {
      { p: p, z: z, c: c, mask: mask, drawn: uniform(seed, f32[2]), n: n, pair: pair, empty: empty }
    }";

const SUM: &str = "
    mesh (X = 2);
    fn main(p: { w: f32[3@X, 2], layer: { b: f32[2] } }, scale: f32) { scale * (p.w + p.layer.b) }";

/// Writes an archive with the results of this function.
fn write(folder: &Folder, file: &str, results: &str) {
    fs::write(folder.path().join("write.spmd"), format!("fn main() {{ {results} }}\n")).unwrap();
    folder.spmdc(&["run", "write.spmd", "--out", file]).expect(0, "", "");
}

const ALL: &str = "{ p: { w: f32(arange(6).reshape((3, 2))), layer: { b: f32([10, 20]) } }, scale: 2.0 }";
const SUMS: &str = "[[20. 42.]\n [24. 46.]\n [28. 50.]]\n";

#[test]
fn an_archive_of_numpy_has_the_arguments_of_all_parameters() {
    let folder = Folder::with(&[("p.spmd", KINDS)]);
    fs::copy(root().join("runtime/tests/golden/args.npz"), folder.path().join("args.npz")).unwrap();
    let all = folder.spmdc(&["run", "p.spmd", "--args", "args.npz"]);
    for shown in [
        "p.w: bf16[3@X,2]\n[[1 2]\n [3 4]\n [5 6]]\n",
        "p.layer.w: bf16[3,2@X]\n[[1 2]\n [3 4]\n [5 6]]\n",
        "p.layer.b: f8e4m3[2]\n[0.5 448]\n",
        "p.layer.c: f8e5m2[2]\n[-2 0.25]\n",
        "p.layer.d: f8e5m2[2]\n[3 inf]\n",
        "z: c64[2@X]\n[1.-2.j  0.+0.5j]\n",
        "c: c128\n(2+1j)\n",
        "mask: bool[3]\n[ True False  True]\n",
        "n: i64\n-7\n",
        "pair.0: f16[2@X,3]\n[[0. 1. 2.]\n [3. 4. 5.]]\n",
        "pair.1: i32[3]\n[0 1 2]\n",
        "empty: f32[0,3]\n[]\n",
    ] {
        all.expect(0, shown, "");
    }
    let names = ["p.w", "p.layer.w", "p.layer.b", "p.layer.c", "p.layer.d", "z", "c", "mask", "n"];
    let names = names.iter().chain(&["pair.0", "pair.1", "empty"]);
    let each: Vec<String> = names.map(|name| format!("--arg={name}=@args.npz:{name}")).collect();
    let words: Vec<&str> =
        ["run", "p.spmd", "--arg=seed=42"].into_iter().chain(each.iter().map(String::as_str)).collect();
    let one_by_one = folder.spmdc(&words);
    assert_eq!((one_by_one.status, &one_by_one.out), (0, &all.out), "{}", one_by_one.err);
}

#[test]
fn runs_and_executables_take_archives_of_both_formats() {
    let folder = Folder::with(&[("p.spmd", SUM)]);
    folder.spmdc(&["build", "p.spmd", "-o", "p"]).expect(0, "", "");
    for file in ["all.npz", "all.safetensors"] {
        write(&folder, file, ALL);
        folder.spmdc(&["run", "p.spmd", "--args", file]).expect(0, SUMS, "");
        folder.spmdc(&["plan", "p.spmd", "--args", file]).expect(0, "", "");
        let mut built = Command::new(folder.path().join("p"));
        let built = built.arg(format!("--args={file}")).current_dir(folder.path()).output().unwrap();
        Said::of(built).expect(0, SUMS, "");
        for mpi in installed() {
            let words = ["launch", "-n", "2", "--mpi", mpi, "--", SPMDC, "run", "p.spmd", "--args", file];
            folder.spmdc(&words).expect(0, SUMS, "");
        }
    }
    let built = Command::new(folder.path().join("p")).arg("--help").output().unwrap();
    Said::of(built).expect(0, "  --args FILE                the values of all parameters", "");
    // The results of a tuple have its numbers as their names.
    fs::write(folder.path().join("pair.spmd"), "fn main(p: (i32, i32[2])) { (p.0, p.1 + 1) }\n").unwrap();
    write(&folder, "pair.npz", "{ p: (7, i32([1, 2])) }");
    folder.spmdc(&["run", "pair.spmd", "--args", "pair.npz", "--out", "back.npz"]).expect(0, "", "");
    folder.spmdc(&["run", "pair.spmd", "--arg", "p=@back.npz"]).expect(0, "0: i32\n7\n1: i32[2]\n[3 4]\n", "");
}

#[test]
fn an_argument_overrides_the_archive() {
    let folder = Folder::with(&[("p.spmd", SUM)]);
    let run = |words: &[&str]| folder.spmdc(&[&["run", "p.spmd", "--args", "all.npz"], words].concat());
    write(&folder, "all.npz", ALL);
    run(&["--arg", "scale=1"]).expect(0, "[[10. 21.]\n [12. 23.]\n [14. 25.]]\n", "");
    run(&["--arg", "p.layer.b=zeros"]).expect(0, "[[ 0.  2.]\n [ 4.  6.]\n [ 8. 10.]]\n", "");
    run(&["--arg", "p=zeros"]).expect(0, "[[0. 0.]\n [0. 0.]\n [0. 0.]]\n", "");
    // An array that is not read may have any type, or be missing.
    write(&folder, "all.npz", "{ p: { w: ones(f32[3, 2]) }, scale: 2 }");
    run(&["--arg", "scale=1", "--arg", "p.layer.b=ones"]).expect(0, "[[2. 2.]\n [2. 2.]\n [2. 2.]]\n", "");
    run(&["--arg", "p.layer.b=ones"]).expect(2, "", "E0701");
    run(&["--arg", "p.layer.b=ones"]).expect(2, "", "`scale` has type f32, but `all.npz:scale` is i32");
}

#[test]
fn missing_and_unknown_arrays_are_named() {
    let folder = Folder::with(&[("p.spmd", SUM), ("none.spmd", "fn main() { 1 }\n")]);
    let run = |file: &str| folder.spmdc(&["run", "p.spmd", "--args", file]);
    write(&folder, "few.npz", "{ p: { w: ones(f32[3, 2]) } }");
    let said = run("few.npz");
    said.expect(2, "", "error[E0702]: 2 arguments are missing from `few.npz`: `p.layer.b: f32[2]`, `scale: f32`\n");
    said.expect(2, "", "pass a value with --arg p.layer.b=VALUE");
    write(&folder, "typo.npz", "{ p: { w: ones(f32[3, 2]), layr: { b: ones(f32[2]) } }, scale: 1.0, p2: 1 }");
    let said = run("typo.npz");
    said.expect(2, "", "`typo.npz` has arrays that are not parameters of the program: `p.layr.b`, `p2`\n");
    said.expect(2, "", "did you mean `p.layer.b`?");
    write(&folder, "other.npz", "{ p: 1, scale: 1.0 }");
    run("other.npz").expect(2, "", "its parameters are `p.w: f32[3@X,2]`, `p.layer.b: f32[2]`, `scale: f32`");
    run("absent.npz").expect(2, "", "cannot read `absent.npz`: No such file or directory");
    run("all.npy").expect(2, "", "--args takes FILE.npz or FILE.safetensors");
    folder.spmdc(&["build", "none.spmd", "-o", "none"]).expect(0, "", "");
    let mut none = Command::new(folder.path().join("none"));
    let none = none.args(["--args", "few.npz"]).current_dir(folder.path()).output().unwrap();
    Said::of(none).expect(2, "", "the program has no parameters for the arrays of `few.npz`");
    folder.spmdc(&["run", "none.spmd", "--args", "few.npz"]).expect(2, "", "it has no parameters");
    // `numpy.savez` without arrays.
    let end = [&b"PK\x05\x06"[..], &[0; 18]].concat();
    fs::write(folder.path().join("empty.npz"), end).unwrap();
    folder.spmdc(&["run", "none.spmd", "--args", "empty.npz"]).expect(0, "1\n", "");
    run("empty.npz").expect(2, "", "3 arguments are missing from `empty.npz`: ");
}

/// Each device reads the archive with its blocks. On several meshes it has only the parameters of its mesh.
#[test]
fn archives_of_devices_have_their_blocks() {
    let text = "
        mesh all (half = 2, X = 2);
        mesh first = all[half = 0];
        mesh second = all[half = 1];
        fn main(p: { w: f32[4@X, 3], b: c64[4@X] } on second, x: i32[2@X] on first) { { p: p, x: x } }";
    let folder = Folder::with(&[("p.spmd", text)]);
    let write = ["run", "p.spmd", "--arg", "p.w=iota", "--arg", "p.b=normal:1", "--arg", "x=iota"];
    folder.spmdc(&[&write[..], &["--out", "d-{device}.npz", "--out", "all.npz"]].concat()).expect(0, "", "");
    let same = || {
        let [a, b] = ["all.npz", "again.npz"].map(|name| fs::read(folder.path().join(name)).unwrap());
        assert!(a == b, "the arrays come back");
    };
    let read = ["run", "p.spmd", "--args", "d-{device}.npz", "--out", "again.npz"];
    folder.spmdc(&read).expect(0, "", "");
    same();
    for mpi in installed() {
        folder.spmdc(&[&["launch", "-n", "2", "--mpi", mpi, "--", SPMDC], &read[..]].concat()).expect(0, "", "");
        same();
    }
    fs::copy(folder.path().join("d-0.npz"), folder.path().join("d-2.npz")).unwrap();
    folder.spmdc(&read).expect(2, "", "`d-2.npz` has no array `p.w`");
}

#[test]
fn a_stream_is_read_from_the_archive() {
    let text = "fn main(data: stream i32[4, 2], n: i32) {
      let mut total = zeros(i32[2]);
      for i in 0..4 { total += data[i]; }
      total + n
    }";
    let folder = Folder::with(&[("p.spmd", text)]);
    write(&folder, "all.npz", "{ data: i32(arange(8)).reshape((4, 2)), n: 100 }");
    folder.spmdc(&["run", "p.spmd", "--args", "all.npz"]).expect(0, "[112 116]\n", "");
}
