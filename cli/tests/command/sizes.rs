//! Executables contain the parts of the runtime that their programs need, and no others.

use crate::folder::{Folder, Said};
use spmdc_tests::root;
use std::fs;
use std::path::Path;
use std::process::Command;

/// An upper bound of bytes: the one of a release, or the one of builds for tests, which are less optimised and have assertions.
const fn bound(release: u64, tests: u64) -> u64 {
    if cfg!(debug_assertions) { tests } else { release }
}

/// A program that calls every library, on floats of both widths and on integers.
const ALL: &str = r#"
mesh all (stage = 2, X = 2);
mesh first = all[stage = 0];
mesh second = all[stage = 1];

fn factor(a) { cholesky(a @ a.T + f32(arange(8)[:, None] == arange(8))) }

fn main(x: f32[8@X, 8], d: f64[8@X, 8], i: i32[8@X], rows: stream f32[16, 8]) {
  let mut total = x @ x.T;
  let mut counts = zeros(i32[8]);
  for step in 0..3 {
    total = total + rows[step] * max(x, axis=0);
    counts[i] += 1;
  }
  let wide = (d @ d.T)[0:4] + sum(d, axis=0);
  print("{} of {}", sum(total), sum(counts));
  save("saved.npz", { counts: counts });
  let moved = transfer(sort(reshape(total, (64,))), second);
  let there = sum(abs(fft(moved))) + max(eigh(transfer(factor(x), second))[0]);
  (total, counts, wide, argsort(i), abs(fft(wide)), there, min(svd(wide)[1]))
}
"#;

fn size(executable: &Path) -> u64 {
    fs::metadata(executable).unwrap().len()
}

fn build(program: &Path, folder: &Folder, name: &str) -> u64 {
    folder.spmdc(&["build", program.to_str().unwrap(), "-o", name]).expect(0, "", "");
    let bytes = size(&folder.path().join(name));
    println!("{}: {bytes} bytes", program.display());
    bytes
}

#[test]
fn executables_are_as_large_as_their_programs_need() {
    let folder = Folder::with(&[("all.spmd", ALL)]);
    let example = |name: &str| root().join("examples").join(name);
    let toy = build(&example("toy.spmd"), &folder, "toy");
    let transformer = build(&example("transformer_explicit.spmd"), &folder, "transformer");
    let language_model = build(&example("language_model.spmd"), &folder, "language_model");
    let all = build(&folder.path().join("all.spmd"), &folder, "all");
    assert!(toy < bound(2_000_000, 5_000_000), "the toy has {toy} bytes");
    assert!(transformer < bound(3_000_000, 7_000_000), "the step of a transformer has {transformer} bytes");
    assert!(language_model < bound(3_000_000, 7_000_000), "the language model has {language_model} bytes");
    assert!(all < bound(8_000_000, 17_000_000), "the program that uses everything has {all} bytes");
    assert!(all > toy + 2_000_000, "the libraries are in the program that calls them: {all} bytes");

    let run = |words: &[&str]| {
        let mut command = Command::new(folder.path().join("all"));
        Said::of(command.args(words).current_dir(folder.path()).output().unwrap())
    };
    let arguments = ["--arg", "x=uniform:1", "--arg", "d=uniform:2", "--arg", "i=iota", "--arg", "rows=normal:3"];
    let built = run(&arguments);
    let ran = folder.spmdc(&[&["run", "all.spmd"], &arguments[..]].concat());
    assert_eq!((built.status, &built.out), (0, &ran.out), "{}", built.err);
}
