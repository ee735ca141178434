//! The command as a user meets it: words in; standard output, standard error and exit status out.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

struct Folder(TempDir);

impl Folder {
    /// A folder with these files.
    fn with(files: &[(&str, &str)]) -> Folder {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Folder(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// `spmdc` with these words, in this folder.
    fn spmdc(&self, words: &[&str]) -> Said {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spmdc"));
        Said::of(command.args(words).current_dir(self.path()).output().unwrap())
    }
}

struct Said {
    status: i32,
    out: String,
    err: String,
}

impl Said {
    fn of(output: Output) -> Said {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Said { status: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
    }

    #[track_caller]
    fn expect(&self, status: i32, out: &str, err: &str) {
        let as_expected = self.status == status && self.out.contains(out) && self.err.contains(err);
        assert!(as_expected, "status {}\nstandard output:\n{}\nstandard error:\n{}", self.status, self.out, self.err);
    }

    /// Each line of standard error as JSON.
    fn messages(&self) -> Vec<serde_json::Value> {
        self.err.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

#[test]
fn a_wrong_command_line_is_status_2() {
    let folder = Folder::with(&[("p.spmd", "fn main() -> f32 { 1.0 }\n")]);
    folder.spmdc(&["rnu", "p.spmd"]).expect(2, "", "rnu");
    folder.spmdc(&["check", "absent.spmd"]).expect(2, "", "cannot read the program `absent.spmd`: No such file");
    folder.spmdc(&["run", "p.spmd", "--bench", "none"]).expect(2, "", "`--bench none` is not understood");
    folder.spmdc(&["check", "p.spmd", "--mesh", "2xtwo"]).expect(2, "", "2x4");
    let messages = folder.spmdc(&["--error-format", "json", "check", "p.spmd", "--meh", "2"]).messages();
    assert_eq!((&messages[0]["code"], &messages[0]["severity"]), (&"E0702".into(), &"error".into()));
}

#[test]
fn codes_are_explained() {
    let folder = Folder::with(&[]);
    folder.spmdc(&["explain", "e0301"]).expect(0, "# E0301: the layout of a contraction is ambiguous\n", "");
    folder.spmdc(&["explain"]).expect(0, "E0999  internal error\n", "");
    folder.spmdc(&["explain", "E5555"]).expect(2, "", "there is no diagnostic `E5555`");
}

#[test]
fn completions_are_scripts() {
    Folder::with(&[]).spmdc(&["completions", "bash"]).expect(0, "complete -F", "");
}

#[test]
fn a_wrong_program_is_status_1_and_all_mistakes_are_reported() {
    let folder = Folder::with(&[("p.spmd", "fn f(x) { sine(x) }\nfn main(x: f32[4]) -> f32[4] { valeu + f(x) }\n")]);
    folder.spmdc(&["check", "p.spmd"]).expect(1, "", "p.spmd:1:11");
    let messages = folder.spmdc(&["check", "p.spmd", "--error-format", "json"]).messages();
    let number = |message: &serde_json::Value, key: &str| message[key].as_u64().unwrap();
    let mut places: Vec<_> =
        messages.iter().map(|message| (number(message, "line"), number(message, "column"))).collect();
    places.sort_unstable();
    assert_eq!(places, [(1, 11), (2, 32)]);
    assert!(messages.iter().all(|message| message["code"] == "E0101" && message["file"] == "p.spmd"), "{messages:?}");
}

#[test]
fn messages_are_plain_where_nobody_looks_and_coloured_on_request() {
    let folder = Folder::with(&[("p.spmd", "fn main() -> f32 { x }\n")]);
    assert!(!folder.spmdc(&["check", "p.spmd"]).err.contains('\u{1b}'));
    assert!(folder.spmdc(&["check", "p.spmd", "--color", "always"]).err.contains('\u{1b}'));
    assert!(folder.spmdc(&["check", "p.spmd", "--ascii"]).err.is_ascii());
}

#[test]
fn imports_are_found_beside_the_file_that_names_them() {
    let folder = Folder::with(&[
        ("p.spmd", "import \"lib/a.spmd\" as a;\nfn main(x: f32) -> f32 { a.twice(x) }\n"),
        ("lib/a.spmd", "import \"./b.spmd\" as b;\nfn twice(x) { b.two() * x }\n"),
        ("lib/b.spmd", "fn two() { 2 }\n"),
        ("q.spmd", "import \"absent.spmd\" as a;\nfn main(x: f32) -> f32 { x }\n"),
    ]);
    folder.spmdc(&["check", "p.spmd"]).expect(0, "", "");
    folder.spmdc(&["check", "q.spmd"]).expect(1, "", "E0104");
}

#[test]
fn a_dump_is_a_program() {
    let folder = Folder::with(&[("p.spmd", "fn main(x: f32[4]) -> f32[4] { 2*sin(x)+1 }\n")]);
    folder.spmdc(&["dump", "p.spmd", "--stage", "ast"]).expect(
        0,
        "fn main(x: f32[4]) -> f32[4] { 2 * sin(x) + 1 }\n",
        "",
    );
    folder.spmdc(&["dump", "p.spmd", "--stage", "typed"]).expect(0, "stage typed;\n", "");
}
