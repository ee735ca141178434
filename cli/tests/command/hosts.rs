//! Programs on three hosts, which are network namespaces of this machine: `tests/hosts/run.py` starts them and injects faults. One program
//! and one fault; all of them if the variable `SPMDC_HOSTS` is `all`. Missing tools are skipped, with a line that says so.

use crate::folder::{SPMDC, starter};
use std::env;
use std::path::Path;
use std::process::Command;

#[test]
fn programs_run_and_fail_on_three_hosts() {
    if !Command::new("python3").arg("--version").output().is_ok_and(|said| said.status.success()) {
        eprintln!("skipped: `python3` is not installed");
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("tests/hosts/run.py");
    let mut command = starter(script);
    command.arg(SPMDC);
    if let Ok(which) = env::var("SPMDC_HOSTS") {
        assert_eq!(which, "all", "SPMDC_HOSTS is `all` or not set");
        command.arg("--all");
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    eprint!("{said}");
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
}
