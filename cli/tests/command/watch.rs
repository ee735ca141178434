//! `--watch`: the command repeats when files change.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use crate::folder::{Folder, spmdc};

/// How long a repetition may take.
const LIMIT: Duration = Duration::from_secs(60);

/// How long a command that waits is observed.
const QUIET: Duration = Duration::from_millis(500);

/// A command that watches, and the lines of its outputs, which are one pipe: their order is that of the writes.
struct Watching {
    process: Child,
    lines: Receiver<String>,
}

impl Watching {
    fn start(folder: &Path, words: &[&str]) -> Watching {
        let (reader, writer) = io::pipe().unwrap();
        let mut command = spmdc();
        command.args(words).current_dir(folder).stdout(writer.try_clone().unwrap()).stderr(writer);
        let process = command.spawn().unwrap();
        let (sender, lines) = channel();
        thread::spawn(move || {
            BufReader::new(reader).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Watching { process, lines }
    }

    /// Waits for a line that contains this text.
    fn expect(&self, text: &str) -> String {
        let mut seen = Vec::new();
        loop {
            match self.lines.recv_timeout(LIMIT) {
                Ok(line) if line.contains(text) => return line,
                Ok(line) => seen.push(line),
                Err(_) => panic!("expected `{text}`, found {seen:?}"),
            }
        }
    }

    /// The end of a repetition.
    fn expect_end(&self) {
        self.expect(" s, waits for changes of `p.spmd`");
    }

    /// Sends a signal, and returns the exit status.
    fn end(&mut self, signal: &str) -> Option<i32> {
        Command::new("kill").args([signal, &self.process.id().to_string()]).status().unwrap();
        self.process.wait().unwrap().code()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_program_is_checked_after_each_change() {
    let folder = Folder::with(&[
        ("p.spmd", "import \"nn.spmd\" as nn;\nfn main(x: f32[4]) { nn.f(x) }\n"),
        ("nn.spmd", "fn f(x) { x }\n"),
    ]);
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let mut watching = Watching::start(folder.path(), &["check", "p.spmd", "--watch"]);
    watching.expect("ok: 1 value");
    let line = watching.expect(" s, waits for changes of `p.spmd` and 1 other file ────");
    assert!(line.starts_with("──── 0.") || line.starts_with("──── "), "{line}");
    // An error does not end it, and imported files count.
    write("nn.spmd", "fn f(x) { y }\n");
    watching.expect("E0101");
    watching.expect_end();
    // As editors do it: the name is given to another file.
    write("nn.spmd~", "fn f(x) { let y = x + 1; y }\n");
    fs::rename(folder.path().join("nn.spmd~"), folder.path().join("nn.spmd")).unwrap();
    watching.expect("ok: 2 values");
    watching.expect_end();
    // A file that is missing is waited for.
    fs::remove_file(folder.path().join("nn.spmd")).unwrap();
    watching.expect("nn.spmd");
    watching.expect_end();
    write("nn.spmd", "fn f(x) { x }\n");
    watching.expect("ok: 1 value");
    watching.expect_end();
    // A file that is no longer imported does not count.
    write("p.spmd", "fn main() { 1 }\n");
    watching.expect("ok: 0 values");
    watching.expect_end();
    write("nn.spmd", "fn f(x) { x + 1 }\n");
    assert!(watching.lines.recv_timeout(QUIET).is_err(), "nothing is repeated without a change");
    assert_eq!(watching.end("-INT"), Some(130));
}

#[test]
fn a_run_stops_when_its_program_changes() {
    let folder = Folder::with(&[(
        "p.spmd",
        "fn main(x: i32) { print(\"begins\"); let mut i = x; while i > 0 { i = i | 1; } i }\n",
    )]);
    let mut watching = Watching::start(folder.path(), &["run", "p.spmd", "--watch", "--arg", "x=5"]);
    watching.expect("begins");
    fs::write(folder.path().join("p.spmd"), "fn main(x: i32) { print(\"doubled: {}\", 2 * x); 1 // (x - 5) }\n")
        .unwrap();
    watching.expect(" s, stopped by a change of `p.spmd`");
    watching.expect("doubled: 10");
    // An error of the run does not end it either.
    watching.expect("E0802");
    watching.expect_end();
    fs::write(folder.path().join("p.spmd"), "fn main(x: i32) { let mut i = x; while i > 0 { i = i | 1; } i }\n")
        .unwrap();
    thread::sleep(QUIET);
    assert_eq!(watching.end("-TERM"), Some(143));
}

#[test]
fn files_of_arguments_are_watched() {
    let folder = Folder::with(&[
        ("p.spmd", "fn main(x: i32[3]) { print(\"sum {}\", sum(x)); save(\"x.npy\", x); }\n"),
        ("m.json", "{}"),
    ]);
    let make = |text: &str| {
        let program = format!("fn main() {{ {text} }}");
        fs::write(folder.path().join("make.spmd"), program).unwrap();
        folder.spmdc(&["run", "make.spmd", "--out", "x.npy"]).expect(0, "", "");
    };
    make("arange(3)");
    let watching =
        Watching::start(folder.path(), &["run", "p.spmd", "--watch", "--arg", "x=@x.npy", "--machine", "m.json"]);
    watching.expect("sum 3");
    // The program writes the file itself, which does not count.
    watching.expect_end();
    assert!(watching.lines.recv_timeout(QUIET).is_err(), "a file that the program writes starts it again");
    make("arange(3) + 1");
    watching.expect("sum 6");
    watching.expect_end();
    fs::write(folder.path().join("m.json"), "{ ").unwrap();
    watching.expect("E0703");
}

#[test]
fn a_report_is_written_again() {
    let folder = Folder::with(&[("p.spmd", "fn main() { arange(3) }\n")]);
    let page = || fs::read_to_string(folder.path().join("p.html")).unwrap();
    let watching = Watching::start(folder.path(), &["report", "p.spmd", "--watch", "--error-format", "json"]);
    let note = watching.expect("waits for changes of `p.spmd`");
    let note: serde_json::Value = serde_json::from_str(&note).unwrap();
    assert_eq!((&note["severity"], &note["code"]), (&"note".into(), &serde_json::Value::Null));
    assert!(!page().contains("linspace"));
    fs::write(folder.path().join("p.spmd"), "fn main() { linspace(0.0, 1.0, 3) }\n").unwrap();
    watching.expect_end();
    assert!(page().contains("linspace"));
}

#[test]
fn files_are_needed_to_watch() {
    let folder = Folder::with(&[]);
    for program in ["-", ":heat"] {
        let said = folder.spmdc(&["check", program, "--watch"]);
        said.expect(2, "", &format!("`--watch` watches files, but `{program}` is none"));
    }
}
