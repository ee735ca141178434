//! A folder with programs in it, and what the command says when it is called there.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// The path of the command.
pub const SPMDC: &str = env!("CARGO_BIN_EXE_spmdc");

/// `spmdc`, with the code cache of the tests.
pub fn spmdc() -> Command {
    starter(SPMDC)
}

/// A program that starts `spmdc`. Programs of the tests are kept in the build folder, not in the home of the user.
pub fn starter(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command
}

pub struct Folder(TempDir);

impl Folder {
    /// A folder with these files.
    pub fn with(files: &[(&str, &str)]) -> Folder {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Folder(folder)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The bytes of these files, which are removed.
    pub fn taken(&self, names: &[&str]) -> Vec<Vec<u8>> {
        let take = |name: &&str| {
            let path = self.path().join(name);
            let bytes = fs::read(&path).unwrap();
            fs::remove_file(path).unwrap();
            bytes
        };
        names.iter().map(take).collect()
    }

    /// `spmdc` with these words, in this folder.
    pub fn spmdc(&self, words: &[&str]) -> Said {
        let mut command = spmdc();
        Said::of(command.args(words).current_dir(self.path()).output().unwrap())
    }

    /// The same with this text on standard input.
    pub fn spmdc_reading(&self, words: &[&str], input: &str) -> Said {
        let mut command = spmdc();
        command.args(words).current_dir(self.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        // Who refuses the command line does not read.
        let _ = process.stdin.take().unwrap().write_all(input.as_bytes());
        Said::of(process.wait_with_output().unwrap())
    }
}

pub struct Said {
    pub status: i32,
    pub out: String,
    pub err: String,
}

impl Said {
    pub fn of(output: Output) -> Said {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Said { status: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
    }

    #[track_caller]
    pub fn expect(&self, status: i32, out: &str, err: &str) {
        let as_expected = self.status == status && self.out.contains(out) && self.err.contains(err);
        assert!(as_expected, "status {}\nstandard output:\n{}\nstandard error:\n{}", self.status, self.out, self.err);
    }

    /// Each line of standard error as JSON.
    pub fn messages(&self) -> Vec<serde_json::Value> {
        self.err.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// The options of `spmdc launch` for each MPI that is installed; says which are not.
pub fn installed() -> Vec<&'static str> {
    let families = [("openmpi", "Open MPI", "mpirun.openmpi"), ("mpich", "HYDRA", "mpirun.mpich")];
    let is_installed = |&(family, says, name): &(&'static str, &str, &str)| {
        let says_so = |command: &str| {
            let said = Command::new(command).arg("--version").output();
            said.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).contains(says))
        };
        let found = [name, "mpirun", "mpiexec"].into_iter().any(says_so);
        if !found {
            eprintln!("skipped: {family} is not installed");
        }
        found
    };
    families.iter().filter(|family| is_installed(family)).map(|(family, ..)| *family).collect()
}

/// Whether whoever started the tests has them ignore this signal, as `nohup` does: then so does what they start.
pub fn is_ignored(signal: u32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() >> (signal - 1) & 1 == 1
}
