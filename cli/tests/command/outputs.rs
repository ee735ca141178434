//! Outputs that are no new files: devices, pipes, links, and what the shell has opened.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::thread;

use crate::folder::{Folder, SPMDC, Said, starter};

const PROGRAM: &str = "fn main() { save(\"saved.npy\", arange(3)); print(\"printed\"); arange(4) }\n";

/// The words of every command that writes a file of this name, and what the file begins with.
fn commands(output: &str) -> Vec<(Vec<String>, &'static [u8])> {
    let build = |emit: &str| ["build", "p.spmd", "--emit", emit, "-o", output].map(str::to_string).to_vec();
    let run = |option: &str| ["run", "p.spmd", option, output].map(str::to_string).to_vec();
    let program: &[u8] = if cfg!(target_os = "macos") { b"" } else { b"\x7fELF" };
    vec![
        (build("exe"), program),
        (build("obj"), program),
        (build("asm"), b""),
        (build("clif"), b";"),
        (run("--out"), b"\x93NUMPY"),
        (run("--trace"), b"{"),
    ]
}

fn spmdc(folder: &Folder, words: &[String]) -> Said {
    folder.spmdc(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn a_device_is_written_through() {
    let folder = Folder::with(&[("p.spmd", PROGRAM)]);
    let output = folder.path().join("full.npy");
    // A link, as nobody but root makes devices, and none of the system's may be lost here.
    symlink("/dev/full", &output).unwrap();
    symlink("/dev/full", folder.path().join("saved.npy")).unwrap();
    for (words, _) in commands("full.npy") {
        let (status, name) = if words[0] == "run" { (3, "saved.npy") } else { (2, "full.npy") };
        spmdc(&folder, &words).expect(status, "", &format!("cannot write `{name}`: No space left on device"));
        assert!(output.is_symlink() && folder.path().join("saved.npy").is_symlink(), "{words:?}");
    }
    let library = folder.spmdc(&["build", "p.spmd", "--emit", "lib", "-o", "full.npy"]);
    library.expect(2, "", "a library cannot be written to standard output");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "nothing is left");
}

#[test]
fn a_link_stays_a_link() {
    let folder = Folder::with(&[("p.spmd", PROGRAM), ("there/old", "")]);
    symlink("there/old", folder.path().join("first.npy")).unwrap();
    symlink("first.npy", folder.path().join("old.npy")).unwrap();
    symlink("there/new", folder.path().join("new.npy")).unwrap();
    for name in ["old", "new"] {
        for (words, begin) in commands(&format!("{name}.npy")) {
            spmdc(&folder, &words).expect(0, "", "");
            assert!(folder.path().join(format!("{name}.npy")).is_symlink(), "{words:?}");
            let written = fs::read(folder.path().join("there").join(name)).unwrap();
            assert!(written.starts_with(begin) && !written.is_empty(), "{words:?}");
        }
    }
    let built = folder.spmdc(&["build", "p.spmd", "-o", "new.npy"]);
    built.expect(0, "", "");
    assert!(Command::new(folder.path().join("new.npy")).current_dir(folder.path()).status().unwrap().success());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 6, "the program, a folder, three links, what it saves");
}

#[test]
fn a_pipe_is_written_for_its_reader() {
    let folder = Folder::with(&[("p.spmd", PROGRAM)]);
    let pipe = folder.path().join("pipe.npy");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for (words, begin) in commands("pipe.npy") {
        let read = thread::scope(|scope| {
            let reader = scope.spawn(|| fs::read(&pipe).unwrap());
            spmdc(&folder, &words).expect(0, "", "");
            reader.join().unwrap()
        });
        assert!(read.starts_with(begin) && !read.is_empty(), "{words:?}");
    }
    // Without a reader it waits, and says so.
    let mut waiting = starter(SPMDC)
        .args(["build", "p.spmd", "--emit", "obj", "-o", "pipe.npy"])
        .current_dir(folder.path())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(waiting.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said, "waiting for a process that reads the pipe `pipe.npy`\n");
    let late = thread::spawn(move || fs::read(pipe).unwrap());
    assert!(waiting.wait().unwrap().success());
    assert!(!late.join().unwrap().is_empty());
}

/// Earlier output in the file of standard output stays, and later output follows it.
#[test]
fn standard_output_has_everything_in_order() {
    let folder = Folder::with(&[("p.spmd", PROGRAM)]);
    symlink("/dev/stdout", folder.path().join("link.npy")).unwrap();
    symlink("link.npy", folder.path().join("other.npy")).unwrap();
    let run = |output: &str| format!("run p.spmd --out {output}");
    let traced = |output: &str| format!("run p.spmd --trace {output}");
    for command in
        [run("link.npy"), run("other.npy"), traced("/dev/stdout"), traced("/proc/self/fd/1"), traced("/dev/fd/1")]
    {
        let script = format!("(echo before; \"$0\" {command}; echo after) > all");
        let shell = ["-c", &script, SPMDC];
        assert!(starter("sh").args(shell).current_dir(folder.path()).status().unwrap().success());
        let all = fs::read(folder.path().join("all")).unwrap();
        let first: &[u8] =
            if command.contains("--out") { b"before\nprinted\n\x93NUM" } else { b"before\nprinted\n{\"dis" };
        let is_ordered = all.starts_with(first) && all.ends_with(b"after\n");
        assert!(is_ordered, "{command}: {}", String::from_utf8_lossy(&all));
    }
}
