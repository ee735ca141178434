//! The output of the README's command with `--explain`, and at other widths.

use crate::folder::{SPMDC, spmdc};
use std::path::Path;

use spmdc_tests::root;
use spmdc_tests::screen::{COLUMNS, LINES, explained_run, svg};

#[test]
fn the_explained_program_fits_a_screen() {
    let lines = explained_run(Path::new(SPMDC)).unwrap();
    let widest = lines.iter().map(|line| line.chars().count()).max().unwrap();
    // The prompt comes below.
    assert!(lines.len() < LINES && widest <= COLUMNS, "{} lines, {widest} columns\n{}", lines.len(), lines.join("\n"));
    let text = lines.join("\n");
    for part in
        ["mesh (X = 2, Y = 4);", "│     7     │", "25 times", "Replicated", "purity: f32\n0.741", "sizes: i32[10]\n["]
    {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert!(lines.last().unwrap().starts_with("[145 132"), "{text}");
}

#[test]
fn the_picture_shows_the_explained_program() {
    let drawn = svg(&explained_run(Path::new(SPMDC)).unwrap());
    let kept = std::fs::read_to_string(root().join("docs/explained.svg")).unwrap_or_default();
    assert_eq!(drawn, kept, "cargo run --bin screen -- target/release/spmdc > docs/explained.svg");
}

#[test]
fn no_edit_makes_the_explained_program_cheaper() {
    // Where something is noted below a line, devices exchange data there.
    let lines = explained_run(Path::new(SPMDC)).unwrap();
    let noted = lines.windows(2).filter(|pair| pair[1].trim_start().starts_with('╰'));
    let noted: Vec<&str> =
        noted.map(|pair| pair[0].split('│').next().unwrap().trim()).filter(|n| !n.is_empty()).collect();
    assert!(noted.len() > 2, "{noted:?}");
    for line in noted {
        let why = spmdc().args(["why", &format!("examples/kmeans.spmd:{line}")]).current_dir(root()).output();
        let said = String::from_utf8(why.unwrap().stdout).unwrap();
        assert!(!said.contains("to avoid it"), "{said}");
    }
}

#[test]
fn what_is_shown_fits_the_terminal() {
    let program = "mesh (data = 4, tensor = 4);
fn main(x: f32[1437@(data, tensor), 64], w: f32[64, 4096@tensor], v: f32[1437, 64]) {
  let hidden = (x @ w) @ w.T + sum(x @ w, axis=1, keepdims=true);
  let partial = reshard(x.T @ x, P(unreduced=(data, tensor)));
  show_sharding(w);
  { hidden: hidden, total: sum(partial), copied: reshard(v, P(tensor)) + 1 }
}
";
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a_program_with_a_long_name.spmd"), program).unwrap();
    let args = ["--arg", "x=zeros", "--arg", "w=zeros", "--arg", "v=zeros", "--out", "all.npz"];
    let commands: [&[&str]; 6] = [
        &["plan", "a_program_with_a_long_name.spmd"],
        &["viz", "a_program_with_a_long_name.spmd"],
        &["why", "a_program_with_a_long_name.spmd:3"],
        &["why", "a_program_with_a_long_name.spmd:6"],
        &["run", "a_program_with_a_long_name.spmd", "--plan"],
        &["run", "a_program_with_a_long_name.spmd", "--explain"],
    ];
    for words in commands {
        let said = |columns: usize| {
            let mut command = spmdc();
            command.args(words).args(args).current_dir(folder.path()).env("COLUMNS", columns.to_string());
            let output = command.output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let text = String::from_utf8(output.stdout).unwrap();
            // What the program itself draws knows no terminal.
            text.split("w: f32[64,4096@tensor]\n    ").next().unwrap().to_string()
        };
        // Folded, not cut: the same words at every width. Columns that stand below their row have their title there.
        let words_of = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>().len();
        for columns in [60, 80, 100] {
            let text = said(columns);
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= columns, "{words:?} at {columns} is {widest} wide:\n{text}");
            if words[0] != "viz" && !words.contains(&"--explain") {
                assert_eq!(words_of(&text), words_of(&said(1000)), "{words:?} at {columns}:\n{text}");
            }
        }
    }
}
