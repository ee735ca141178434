//! The tour is true: on each page of `docs/tour`, every program is used by a command, and each command prints exactly the lines below it.
//!
//! A page has a folder. Its blocks are executed in order:
//!
//! | block | is |
//! |---|---|
//! | `spmd` that begins with `// NAME.spmd` | a formatted program in this file |
//! | `python` that begins with `# NAME.py` | a script in this file |
//! | any that begins with `$ ` | lines of a shell, each with its output; `...` stands for any number of lines |
//! | any that begins with `editor> ` | an editor that speaks with `spmdc lsp`: `open FILE` shows findings, and `fix LINE:COLUMN` the first quick fix there, which is applied |
//!
//! `docs/first-minute.md` is a page of this form, too.

use crate::client::Client;
use crate::folder::{Folder, SPMDC, starter};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

fn tour() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("docs/tour")
}

/// The numbered pages, in order: their names and texts.
fn pages() -> Vec<(String, String)> {
    let entries = fs::read_dir(tour()).unwrap().map(|entry| entry.unwrap().path());
    let named = entries.map(|path| (path.file_name().unwrap().to_str().unwrap().to_string(), path));
    let mut pages: Vec<(String, String)> = named
        .filter(|(name, _)| name != "README.md")
        .map(|(name, path)| (name, fs::read_to_string(path).unwrap()))
        .collect();
    pages.sort();
    pages
}

/// The lines of a command's output, without the time that the tests of a program took.
fn printed(folder: &Folder, line: &str) -> Vec<String> {
    let mut shell = starter("sh");
    let commands = Path::new(SPMDC).parent().unwrap().to_str().unwrap();
    shell.arg("-c").arg(format!("PATH=\"$0:$PATH\"\n{{ {line}\n}} 2>&1")).arg(commands).current_dir(folder.path());
    shell.env("NO_COLOR", "1").env_remove("COLUMNS").env("PYTHONPATH", package());
    let output = shell.output().unwrap();
    String::from_utf8(output.stdout).unwrap().lines().map(without_time).collect()
}

/// `2 passed, 0 failed in 0.02 s` without the time.
fn without_time(line: &str) -> String {
    let timed = line
        .rsplit_once(" in ")
        .filter(|(_, time)| time.strip_suffix(" s").is_some_and(|seconds| seconds.parse::<f64>().is_ok()));
    timed.map_or(line, |(before, _)| before).trim_end().to_string()
}

/// Whether the lines are as on the page, where `...` stands for any number of lines.
fn matches(shown: &[String], printed: &[String]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((first, rest)) if first == "..." => (0..=printed.len()).any(|at| matches(rest, &printed[at..])),
        Some((first, rest)) => printed.first() == Some(first) && matches(rest, &printed[1..]),
    }
}

/// The folder in which `.ci/python` puts the package.
fn package() -> PathBuf {
    Path::new(SPMDC).ancestors().nth(2).unwrap().join("python")
}

/// Whether Python has these modules; says if it has not.
fn has_modules(modules: &str) -> bool {
    let mut python = Command::new("python3");
    let found = python.args(["-c", &format!("import {modules}")]).env("PYTHONPATH", package()).output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("skipped: a script of Python, which lacks a module of `{modules}`");
    }
    found
}

/// An editor without a window that has one file of the folder open.
struct Editor<'f> {
    folder: &'f Folder,
    client: Client,
    file: String,
}

impl Editor<'_> {
    /// Opens a file, and shows its findings.
    fn open<'f>(folder: &'f Folder, file: &str) -> (Editor<'f>, Vec<String>) {
        let text = fs::read_to_string(folder.path().join(file)).unwrap();
        let mut client = Client::with(&[(file, &text)]);
        client.open(file);
        let shown = |found: &Value| {
            let (place, message) = (&found["range"]["start"], found["message"].as_str().unwrap());
            let (line, column) = (place["line"].as_u64().unwrap() + 1, place["character"].as_u64().unwrap() + 1);
            let severity = if found["severity"] == 1 { "error" } else { "warning" };
            let message = message.lines().next().unwrap();
            format!("{line}:{column} {severity} {}: {message}", found["code"].as_str().unwrap())
        };
        let findings = client.findings(file).iter().map(shown).collect();
        (Editor { folder, client, file: file.to_string() }, findings)
    }

    /// Applies the first quick fix at a place, and shows its title and the findings that are left.
    fn fix(&mut self, place: &str) -> Vec<String> {
        let number = |text: &str| text.parse::<u64>().unwrap() - 1;
        let (line, column) = place.split_once(':').unwrap();
        let at = json!({ "line": number(line), "character": number(column) });
        let params = json!({
            "textDocument": { "uri": self.client.uri(&self.file) }, "range": { "start": at, "end": at },
            "context": { "diagnostics": [], "only": ["quickfix"], "triggerKind": 1 },
        });
        let actions = self.client.request("textDocument/codeAction", params).unwrap();
        self.client.apply(&actions[0]["edit"]);
        fs::write(self.folder.path().join(&self.file), self.client.text(&self.file)).unwrap();
        let left = self.client.findings(&self.file).len();
        vec![actions[0]["title"].as_str().unwrap().to_string(), format!("{left} findings")]
    }
}

/// All that is wrong with a page.
fn check(name: &str, page: &str) -> Vec<String> {
    let folder = Folder::with(&[]);
    let (mut wrong, mut unused) = (Vec::new(), Vec::new());
    let mut editor = None;
    for fence in page.split("```").skip(1).step_by(2) {
        let (language, block) = fence.split_once('\n').unwrap();
        if block.starts_with("editor> ") {
            for command in format!("\n{block}").split("\neditor> ").skip(1) {
                let mut lines = command.lines();
                let line = lines.next().unwrap();
                let printed = match line.split_once(' ') {
                    Some(("open", file)) => {
                        let (opened, findings) = Editor::open(&folder, file);
                        editor = Some(opened);
                        findings
                    }
                    Some(("fix", place)) => editor.as_mut().expect("a file is open").fix(place),
                    _ => panic!("{name}: an editor does not `{line}`"),
                };
                if !lines.map(str::to_string).eq(printed.iter().cloned()) {
                    wrong.push(format!("{name}: `{line}` shows\n{}", printed.join("\n")));
                }
            }
            continue;
        }
        if block.starts_with("$ ") {
            for command in format!("\n{block}").split("\n$ ").skip(1) {
                let mut lines = command.lines();
                let line = lines.next().unwrap();
                unused.retain(|file: &String| !line.contains(file));
                let script = line.strip_prefix("python3 ").map(|file| fs::read_to_string(folder.path().join(file)));
                if let Some(script) = script {
                    let imports_package = script.is_ok_and(|script| script.contains("import spmdc"));
                    if !has_modules(if imports_package { "numpy, spmdc" } else { "numpy" }) {
                        continue;
                    }
                }
                let shown: Vec<String> = lines.map(without_time).collect();
                let printed = printed(&folder, line);
                if !matches(&shown, &printed) {
                    wrong.push(format!("{name}: `{line}` prints\n{}", printed.join("\n")));
                }
            }
            continue;
        }
        let mark = match language {
            "spmd" => "// ",
            "python" => "# ",
            _ => panic!("{name}: a block is a program, a script, or begins with `$ `: {block}"),
        };
        let file = block.lines().next().unwrap().strip_prefix(mark).expect("the first line is a file's name");
        fs::write(folder.path().join(file), block).unwrap();
        unused.push(file.to_string());
        if language == "spmd" {
            let difference = folder.spmdc(&["fmt", "--check", file]).out;
            if !difference.is_empty() {
                wrong.push(format!("{name}: `spmdc fmt` changes {file}:\n{difference}"));
            }
        }
    }
    wrong.extend(unused.iter().map(|file| format!("{name}: no command uses {file}")));
    wrong
}

#[test]
fn commands_of_the_tour_print_what_is_shown() {
    let pages = pages();
    let wrong: Vec<String> = thread::scope(|scope| {
        let checks: Vec<_> = pages.iter().map(|(name, page)| scope.spawn(|| check(name, page))).collect();
        checks.into_iter().flat_map(|check| check.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn pages_of_the_tour_are_short_and_lead_to_the_next() {
    let pages = pages();
    let index = fs::read_to_string(tour().join("README.md")).unwrap();
    for (number, (name, page)) in pages.iter().enumerate() {
        assert!(name.starts_with(&format!("{:02}-", number + 1)), "{name} is page {}", number + 1);
        assert!(index.contains(&format!("({name})")), "the index does not list {name}");
        let lines = page.lines().count();
        assert!(lines <= 130, "{name} has {lines} lines");
        for link in page.split("](").skip(1).map(|rest| rest.split([')', '#']).next().unwrap()) {
            assert!(tour().join(link).exists(), "{name}: there is no {link}");
        }
        let neighbours = [number.checked_sub(1), Some(number + 1)].into_iter().flatten().filter_map(|at| pages.get(at));
        for (neighbour, _) in neighbours {
            assert!(page.contains(&format!("({neighbour})")), "{name} does not lead to {neighbour}");
        }
    }
}

#[test]
fn the_first_minute_is_as_shown() {
    let page = fs::read_to_string(tour().parent().unwrap().join("first-minute.md")).unwrap();
    let wrong = check("first-minute.md", &page);
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    for part in [
        "spmdc new ",
        "spmdc run ",
        "editor> fix ",
        "spmdc test ",
        "spmdc plan ",
        "spmdc report ",
        "spmdc build ",
        "python3 ",
    ] {
        assert!(page.contains(part), "the page does not show `{part}`");
    }
    let root = tour().parent().unwrap().parent().unwrap().to_path_buf();
    for (file, link) in [("README.md", "(docs/first-minute.md)"), ("docs/tour/README.md", "(../first-minute.md)")] {
        assert!(fs::read_to_string(root.join(file)).unwrap().contains(link), "{file} does not lead to the page");
    }
}
