//! The code cache of `spmdc run`: what is kept, what is not trusted, and that no run can be told from another by its output.

use std::fs::{self, File, FileTimes};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use crate::folder::{Folder, SPMDC, Said, spmdc};

/// It warns, prints, fails if its argument is too large, and uses a function in another file, math functions and random numbers.
const PROGRAM: &str = "mesh (X = 2, Y = 2);
import \"nn.spmd\";
manual(X) fn slope(w: f32, x: f32[64@X, 8]) { psum(grad(|w| sum(w * x))(w), X) }
fn main(i: i32) {
  let x = normal(key(3), f32[64@X, 8]);
  let s = scaled(tanh(x) + sin(1e6 * x));
  print(\"{}\", sum(s));
  s[i, 0] + slope(1.0, x)
}
";
const MODULE: &str = "const SCALE = 2.0;\nfn scaled(x) { SCALE * x }\n";

/// A folder with the program, whose caches are in `caches`.
fn folder() -> Folder {
    Folder::with(&[("p.spmd", PROGRAM), ("nn.spmd", MODULE)])
}

/// A command that finds the caches in `caches`.
fn in_folder(folder: &Folder, mut command: Command, words: &[&str]) -> Command {
    command.args(words).current_dir(folder.path()).env("XDG_CACHE_HOME", folder.path().join("caches"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// `spmdc run`, which warns of sums, with these words.
fn running(folder: &Folder, words: &[&str]) -> Command {
    in_folder(folder, spmdc(), &[&["run", "p.spmd", "--arg", "i=1", "--warn", "all_reduce"], words].concat())
}

fn run(folder: &Folder, words: &[&str]) -> Said {
    Said::of(running(folder, words).output().unwrap())
}

/// The files of the cache, in the order of their names.
fn kept(folder: &Folder) -> Vec<PathBuf> {
    let Ok(files) = fs::read_dir(folder.path().join("caches/spmdc")) else { return Vec::new() };
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

/// Makes a file an hour older.
fn age(path: &Path) {
    let times = FileTimes::new().set_modified(SystemTime::now() - Duration::from_secs(3600));
    File::open(path).unwrap().set_times(times).unwrap();
}

/// Whether a run reads this file. One that does makes it recent, and one that does not replaces it.
fn is_read(folder: &Folder, path: &Path, words: &[&str]) -> bool {
    age(path);
    let state = |path: &Path| fs::metadata(path).map(|it| (it.ino(), it.modified().unwrap())).unwrap();
    let before = state(path);
    run(folder, words);
    let after = state(path);
    before.0 == after.0 && before.1 != after.1
}

#[track_caller]
fn assert_same(said: &Said, first: &Said) {
    assert_eq!((said.status, &said.out, &said.err), (first.status, &first.out, &first.err));
}

#[test]
fn a_second_run_reads_the_code_and_says_the_same() {
    let folder = folder();
    let never = run(&folder, &["--no-cache"]);
    never.expect(0, "f32", "E0507");
    never.expect(0, "f32", "E1006");
    assert!(!folder.path().join("caches").exists(), "`--no-cache` leaves no trace");
    let first = run(&folder, &[]);
    let files = kept(&folder);
    assert_eq!(files.len(), 1);
    assert_same(&first, &never);
    assert_same(&run(&folder, &[]), &never);
    assert!(is_read(&folder, &files[0], &[]));
    assert!(!is_read(&folder, &files[0], &["--no-cache"]));
    // Arguments, reports of a run and the form of messages are not part of the code.
    for words in [&["--error-format", "json"][..], &["--stats", "json"], &["--workers", "1"], &["--out", "y.npy"]] {
        assert!(is_read(&folder, &files[0], words), "{words:?}");
    }
    assert_same(&run(&folder, &["--error-format", "json"]), &run(&folder, &["--error-format", "json", "--no-cache"]));
    assert_eq!(kept(&folder), files);
}

#[test]
fn errors_at_run_time_show_the_source_with_code_of_the_cache() {
    let folder = folder();
    let run = |file: &str| Said::of(in_folder(&folder, spmdc(), &["run", file, "--arg", "i=99"]).output().unwrap());
    let first = run("p.spmd");
    first.expect(3, "", "p.spmd:8");
    first.expect(3, "", "s[i, 0] + slope");
    assert_same(&run("p.spmd"), &first);
    // Another file with the same text is named in its messages.
    fs::rename(folder.path().join("p.spmd"), folder.path().join("q.spmd")).unwrap();
    run("q.spmd").expect(3, "", "q.spmd:8");
    assert_eq!(kept(&folder).len(), 1);
}

#[test]
fn all_that_changes_code_is_noticed() {
    let folder = folder();
    let first = run(&folder, &[]);
    let options = [["--mesh", "4x1"], ["--set", "SCALE=3.0"], ["--max-comm", "1G"], ["--memory-limit", "1G"]];
    for (at, words) in options.iter().enumerate() {
        assert_same(&run(&folder, words), &run(&folder, &[&words[..], &["--no-cache"]].concat()));
        assert_eq!(kept(&folder).len(), at + 2, "{words:?}");
    }
    fs::write(folder.path().join("nn.spmd"), MODULE.replace('2', "5")).unwrap();
    let changed = run(&folder, &[]);
    assert_ne!(changed.out, first.out);
    assert_same(&changed, &run(&folder, &["--no-cache"]));
    fs::write(folder.path().join("nn.spmd"), "fn scaled(x) { x").unwrap();
    run(&folder, &[]).expect(1, "", "nn.spmd");
    fs::write(folder.path().join("nn.spmd"), MODULE).unwrap();
    assert_same(&run(&folder, &[]), &first);
}

#[test]
fn reports_on_the_program_are_not_left_out() {
    let folder = folder();
    run(&folder, &[]);
    run(&folder, &["--plan"]).expect(0, "memory: ", "");
    run(&folder, &["--explain"]).expect(0, "all_reduce: devices along X", "");
    run(&folder, &["--deny", "all_reduce"]).expect(1, "", "error[E1006]");
}

#[test]
fn processes_at_once_do_not_disturb_each_other() {
    let folder = folder();
    let expected = run(&folder, &["--no-cache"]);
    for _ in 0..3 {
        let running: Vec<Child> = (0..6).map(|_| running(&folder, &[]).spawn().unwrap()).collect();
        for child in running {
            assert_same(&Said::of(child.wait_with_output().unwrap()), &expected);
        }
        let files = kept(&folder);
        assert_eq!(files.len(), 1, "{files:?}");
        // The folder can be removed at any time.
        fs::remove_dir_all(folder.path().join("caches")).unwrap();
    }
}

#[test]
fn a_damaged_entry_is_replaced() {
    let folder = folder();
    let expected = run(&folder, &[]);
    let file = kept(&folder).remove(0);
    let whole = fs::read(&file).unwrap();
    let len = whole.len();
    let flipped = |at: usize| [&whole[..at], &[whole[at] ^ 4], &whole[at + 1..]].concat();
    let damaged = [
        Vec::new(),
        whole[..7].to_vec(),
        whole[..len / 2].to_vec(),
        whole[..len - 1].to_vec(),
        vec![0; len],
        [&whole[..], b"more"].concat(),
        flipped(3),
        flipped(9),
        flipped(40),
        flipped(len / 2),
        flipped(len - 1),
    ];
    for (at, damaged) in damaged.iter().enumerate() {
        fs::write(&file, damaged).unwrap();
        assert_same(&run(&folder, &[]), &expected);
        assert_eq!(fs::read(&file).unwrap(), whole, "{at}");
    }
}

#[test]
fn an_entry_of_another_build_or_program_is_not_read() {
    let folder = folder();
    let expected = run(&folder, &[]);
    let file = kept(&folder).remove(0);
    // A copy of the command is another build, whatever its bytes.
    let copy = folder.path().join("copy");
    // Copied by a process, so that none that starts meanwhile holds the file open for writing.
    assert!(Command::new("cp").arg(SPMDC).arg(&copy).status().unwrap().success());
    let words = ["run", "p.spmd", "--arg", "i=1", "--warn", "all_reduce"];
    let by_copy = Said::of(in_folder(&folder, Command::new(&copy), &words).output().unwrap());
    assert_same(&by_copy, &expected);
    let other = kept(&folder).into_iter().find(|path| *path != file).unwrap();
    // Its entry under our name has a correct checksum and another key.
    fs::copy(&other, &file).unwrap();
    assert_same(&run(&folder, &[]), &expected);
    assert_ne!(fs::read(&file).unwrap(), fs::read(&other).unwrap());
}

#[test]
fn what_is_not_a_private_file_is_not_read() {
    let folder = folder();
    let expected = run(&folder, &[]);
    let (file, caches) = (kept(&folder).remove(0), folder.path().join("caches/spmdc"));
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!((mode(&caches), mode(&file)), (0o700, 0o600));
    fs::set_permissions(&file, PermissionsExt::from_mode(0o666)).unwrap();
    assert!(!is_read(&folder, &file, &[]));
    assert_eq!(mode(&file), 0o600);
    fs::set_permissions(&caches, PermissionsExt::from_mode(0o777)).unwrap();
    assert!(!is_read(&folder, &file, &[]));
    fs::set_permissions(&caches, PermissionsExt::from_mode(0o700)).unwrap();
    assert!(is_read(&folder, &file, &[]));
    // Only root can give a file away.
    if chown(&file, Some(65534), None).is_ok() {
        assert!(!is_read(&folder, &file, &[]));
    }
    // The command waits for no file, not even for a pipe.
    fs::rename(&file, folder.path().join("elsewhere")).unwrap();
    symlink(folder.path().join("elsewhere"), &file).unwrap();
    assert_same(&run(&folder, &[]), &expected);
    fs::remove_file(&file).unwrap();
    assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
    assert_same(&run(&folder, &[]), &expected);
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert_same(&run(&folder, &[]), &expected);
}

#[test]
fn a_folder_that_cannot_be_written_only_costs_time() {
    let folder = folder();
    let expected = run(&folder, &["--no-cache"]);
    let caches = folder.path().join("caches");
    // The folder of the caches, or the cache itself, is a file.
    fs::write(&caches, "").unwrap();
    assert_same(&run(&folder, &[]), &expected);
    fs::remove_file(&caches).unwrap();
    fs::create_dir(&caches).unwrap();
    fs::write(caches.join("spmdc"), "").unwrap();
    assert_same(&run(&folder, &[]), &expected);
    fs::remove_file(caches.join("spmdc")).unwrap();
    // Neither can root create a file below these.
    for home in ["/proc", "/dev/null", "relative", ""] {
        let said = running(&folder, &[]).env_remove("XDG_CACHE_HOME").env("HOME", home).output();
        assert_same(&Said::of(said.unwrap()), &expected);
    }
    assert!(!folder.path().join("relative").exists());
    // A folder that can be read only. Root can write it, too.
    fs::set_permissions(&caches, PermissionsExt::from_mode(0o500)).unwrap();
    assert_same(&run(&folder, &[]), &expected);
    fs::set_permissions(&caches, PermissionsExt::from_mode(0o700)).unwrap();
    run(&folder, &[]);
    fs::set_permissions(caches.join("spmdc"), PermissionsExt::from_mode(0o500)).unwrap();
    assert_same(&run(&folder, &[]), &expected);
    assert_same(&run(&folder, &["--mesh", "2x2"]), &expected);
    fs::set_permissions(caches.join("spmdc"), PermissionsExt::from_mode(0o700)).unwrap();
}

#[test]
fn a_full_disk_only_costs_time() {
    let folder = folder();
    let expected = run(&folder, &["--no-cache"]);
    // No file may become larger than 512 bytes, and the signal for it is ignored: writing fails, as on a full disk.
    let script = "ulimit -f 1; trap '' XFSZ; exec \"$0\" run p.spmd --arg i=1 --warn all_reduce";
    let said = Said::of(in_folder(&folder, Command::new("sh"), &["-c", script, SPMDC]).output().unwrap());
    assert_same(&said, &expected);
    assert_eq!(kept(&folder), [] as [PathBuf; 0], "no part of a file is left");
}

#[test]
fn the_least_recent_entries_are_removed_beyond_the_bound() {
    let folder = folder();
    run(&folder, &[]);
    let first = kept(&folder).remove(0);
    // Of 256 MiB; files with holes do not need the space.
    let large = ["1.code", "2.code", "3.code"].map(|name| first.with_file_name(name));
    for (path, hours) in large.iter().zip([3, 1, 2]) {
        let file = File::create(path).unwrap();
        file.set_len(100 << 20).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(3600 * hours)).unwrap();
    }
    run(&folder, &["--mesh", "4x1"]);
    assert!(first.exists() && !large[0].exists() && large[1].exists() && large[2].exists());
    assert_eq!(kept(&folder).len(), 4);
}
