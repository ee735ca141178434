//! The tour is true: on each page of `docs/tour`, every program is used by a command, and each command prints exactly the lines below it.
//!
//! A page has a folder. Its blocks are executed in order:
//!
//! | block | is |
//! |---|---|
//! | `spmd` that begins with `// NAME.spmd` | a formatted program in this file |
//! | `python` that begins with `# NAME.py` | a script in this file |
//! | any that begins with `$ ` | lines of a shell, each with its output; `...` stands for any number of lines |

use crate::folder::{Folder, SPMDC, starter};
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
    shell.env("NO_COLOR", "1").env_remove("COLUMNS");
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

fn has_numpy() -> bool {
    let found = Command::new("python3").args(["-c", "import numpy"]).output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("skipped: the Python of the tour, since NumPy is not installed");
    }
    found
}

/// All that is wrong with a page.
fn check(name: &str, page: &str) -> Vec<String> {
    let folder = Folder::with(&[]);
    let (mut wrong, mut unused) = (Vec::new(), Vec::new());
    for fence in page.split("```").skip(1).step_by(2) {
        let (language, block) = fence.split_once('\n').unwrap();
        if block.starts_with("$ ") {
            for command in format!("\n{block}").split("\n$ ").skip(1) {
                let mut lines = command.lines();
                let line = lines.next().unwrap();
                unused.retain(|file: &String| !line.contains(file));
                if line.starts_with("python3 ") && !has_numpy() {
                    continue;
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
