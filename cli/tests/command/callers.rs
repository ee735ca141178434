//! The programs of `examples/callers`: built by the commands in their headers, they print the same plane and the same error.

use std::fs;
use std::process::Command;

use crate::folder::{Folder, Said, spmdc};
use spmdc_tests::root;

const PLANE: &str = "2.000 a + -1.000 b + 0.500 c + 3.000, loss ";
const ERROR: &str = "error[E0806]: the number of steps is -1\n  --> examples/callers/fit.spmd:11:3\n";

/// The commands in the header of a caller: the indented lines before the last one, which starts the caller.
fn commands(caller: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join("examples/callers").join(caller)).unwrap();
    let header =
        text.lines().take_while(|line| line.starts_with("/*") || line.starts_with(" *") || line.starts_with("//!"));
    let indented = header.filter_map(|line| line.trim_start_matches([' ', '*', '/', '!']).split('#').next());
    let words = ["spmdc ", "cc ", "rustc "];
    indented
        .filter(|line| words.iter().any(|word| line.starts_with(word)))
        .map(|line| line.trim().to_string())
        .collect()
}

/// A folder with `examples` and the built caller; None if a tool is missing.
fn built(caller: &str) -> Option<Folder> {
    let folder = Folder::with(&[]);
    std::os::unix::fs::symlink(root().join("examples"), folder.path().join("examples")).unwrap();
    let commands = commands(caller);
    assert!(commands.len() >= 2, "{caller} does not say how to build it");
    for command in commands {
        let (name, words) = command.split_once(' ').unwrap();
        let mut started = if name == "spmdc" { spmdc() } else { Command::new(name) };
        if name != "spmdc" && !Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
        {
            eprintln!("{caller}: skipped, as there is no `{name}`");
            return None;
        }
        Said::of(started.args(words.split_whitespace()).current_dir(folder.path()).output().unwrap()).expect(0, "", "");
    }
    Some(folder)
}

fn call(folder: &Folder, steps: &str) -> Said {
    Said::of(Command::new("./caller").arg(steps).current_dir(folder.path()).output().unwrap())
}

#[test]
fn a_caller_in_c_fits_a_plane() {
    if let Some(folder) = built("caller.c") {
        call(&folder, "100").expect(0, PLANE, "");
        call(&folder, "-1").expect(3, "", ERROR);
    }
}

#[test]
fn a_caller_in_rust_fits_a_plane() {
    if let Some(folder) = built("caller.rs") {
        call(&folder, "100").expect(0, PLANE, "");
        call(&folder, "-1").expect(1, "", ERROR);
    }
}
