//! The key of a compiled program: everything that it depends on, as text.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use spmdc_abi::ABI_VERSION;
use spmdc_check::CheckOptions;
use spmdc_check::sources::SourceSet;
use spmdc_compiler::backends;
use spmdc_compiler::pipeline::Options;
use spmdc_compiler::report::lints::Policy;

/// The key of a program that is compiled to its end; None if the compiler cannot identify itself or generate code here.
///
/// Entries contain their keys, so no two programs are confused. All options are named here, so that a new one cannot be forgotten.
pub fn of(set: &SourceSet, options: &Options, policy: &Policy, compiler: &Path) -> Option<Vec<u8>> {
    // The plans only remember what the layouts imply.
    let Options { check, stop_after, after, verify, plans: _, hosts, memory, room, fixed } = options;
    let CheckOptions { entry, tests, mesh, sets, machine, recomputed } = check;
    let Policy { lints, max_comm } = policy;
    let mut key = String::new();
    let written = [
        writeln!(key, "spmdc {} {ABI_VERSION} {}", env!("CARGO_PKG_VERSION"), build(compiler)?),
        writeln!(key, "{}", backends::DEFAULT.target().ok()?),
        writeln!(key, "{entry:?} {tests} {mesh:?} {sets:?} {machine:?} {recomputed:?}"),
        writeln!(key, "{stop_after:?} {after:?} {verify:?} {hosts:?} {memory:?} {room:?} {fixed:?}"),
        writeln!(key, "{lints:?} {max_comm:?} {}", set.files.len()),
    ];
    debug_assert!(written.iter().all(Result::is_ok), "text can always be appended");
    for (at, file) in set.files.iter().enumerate() {
        // No warning has the name of the main file, so only its ending matters. The other names say which imports are of the same file.
        let name = if at == 0 { Path::new(&file.name).extension().unwrap_or_default() } else { OsStr::new(&file.name) };
        // The length marks the end.
        writeln!(key, "{name:?} {}\n{}", file.text.len(), file.text).ok()?;
    }
    Some(key.into_bytes())
}

/// The build of the compiler that is running: the identity of the file with its code. A file that has been replaced or changed has another
/// time of change, which no program can set.
fn build(compiler: &Path) -> Option<String> {
    let executable = fs::metadata(compiler).ok()?;
    let (device, number, size) = (executable.dev(), executable.ino(), executable.size());
    let changed = (executable.ctime(), executable.ctime_nsec());
    let modified = (executable.mtime(), executable.mtime_nsec());
    Some(format!("{device} {number} {size} {changed:?} {modified:?}"))
}

/// The path of the executable of this process. On Linux it leads to the file that is running, even if another one has its name now.
pub fn executable() -> Option<PathBuf> {
    if cfg!(target_os = "linux") { Some(PathBuf::from("/proc/self/exe")) } else { std::env::current_exe().ok() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use spmdc_check::sources::NoSources;
    use spmdc_compiler::pipeline::MemoryLimit;
    use spmdc_compiler::report::lints::Lint;
    use spmdc_grammar::diagnostic::Severity;
    use spmdc_kernel::machine::Machine;
    use std::collections::BTreeSet;

    fn key(name: &str, text: &str, options: &Options, policy: &Policy) -> Vec<u8> {
        of(&SourceSet::load(name, text, &NoSources).0, options, policy, &executable().unwrap()).unwrap()
    }

    #[test]
    fn each_choice_makes_another_key() {
        let (text, none) = ("fn main() { 1.0 }", Policy::default());
        let plain = Options::default();
        let check = |change: &dyn Fn(&mut CheckOptions)| {
            let mut options = Options::default();
            change(&mut options.check);
            options
        };
        let keys = [
            key("a.spmd", text, &plain, &none),
            key("a.txt", text, &plain, &none),
            key("a.spmd", "fn main() { 2.0 }", &plain, &none),
            key("a.spmd", text, &check(&|it| it.entry = Some("f".into())), &none),
            key("a.spmd", text, &check(&|it| it.sets = vec![("N".into(), "2".into())]), &none),
            key("a.spmd", text, &check(&|it| it.sets = vec![("N".into(), "3".into())]), &none),
            key("a.spmd", text, &check(&|it| it.machine = Machine::TINY), &none),
            key(
                "a.spmd",
                text,
                &Options { memory: Some(MemoryLimit { bytes: 9, processes: 1 }), ..plain.clone() },
                &none,
            ),
            key("a.spmd", text, &plain, &Policy { lints: vec![(Lint::UnusedAxis, Severity::Warning)], max_comm: None }),
            key("a.spmd", text, &plain, &Policy { lints: Vec::new(), max_comm: Some(1) }),
        ];
        assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len());
        assert_eq!(key("elsewhere/b.spmd", text, &plain, &none), keys[0]);
    }
}
