//! `examples/resume.spmd` is killed and goes on from its last checkpoint, on another mesh and in another number of processes, to the losses
//! of a run that nothing has stopped.

use crate::folder::{Folder, SPMDC, Said, installed, spmdc};
use spmdc_tests::root;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The words of `spmdc` that train up to this step from this file, or from the beginning.
fn words(steps: &str, start: &str) -> Vec<String> {
    let example = |path: &str| root().join("examples").join(path).display().to_string();
    let data = |name: &str, file: &str| {
        ["--arg".to_string(), format!("{name}=@{}", example(&format!("data/digits/{file}.npy")))]
    };
    let mut words = vec!["run".to_string(), example("resume.spmd")];
    words.extend(["--set".to_string(), format!("STEPS={steps}"), "--arg".to_string(), format!("start={start}")]);
    words.extend([data("images", "train_x"), data("labels", "train_y")].concat());
    words
}

/// `spmdc`, in this number of processes under an MPI, or alone.
fn command(folder: &Folder, processes: Option<(&str, &str)>, words: &[String]) -> Command {
    let mut command = spmdc();
    command.current_dir(folder.path());
    if let Some((mpi, count)) = processes {
        command.args(["launch", "-n", count, "--mpi", mpi, "--", SPMDC]);
    }
    command.args(words);
    command
}

/// Kills a run that would take very long, as soon as this file is there.
fn kill_after(mut command: Command, folder: &Folder, file: &str, signal: &str) {
    let mut run: Child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begin = Instant::now();
    while !folder.path().join(file).exists() {
        assert!(run.try_wait().unwrap().is_none(), "the run ended before it was killed");
        assert!(begin.elapsed() < Duration::from_secs(120), "no checkpoint was written");
        sleep(Duration::from_millis(2));
    }
    assert!(Command::new("kill").args([signal, &run.id().to_string()]).status().unwrap().success());
    assert!(!run.wait().unwrap().success());
}

/// The last line: the loss at the end.
fn last_loss(said: &Said) -> f64 {
    said.out.lines().last().unwrap().parse().unwrap()
}

#[test]
fn a_run_that_was_killed_goes_on_from_its_last_checkpoint() {
    let folder = Folder::with(&[]);
    let run = |processes: Option<(&str, &str)>, words: &[String]| {
        let said = Said::of(command(&folder, processes, words).output().unwrap());
        said.expect(0, "step  80: loss ", "");
        said
    };
    let whole = run(None, &words("80", "zeros"));
    let expected = last_loss(&whole);
    let mut ways = vec![(None, "-KILL", None, vec!["--mesh", "3"])];
    for mpi in installed() {
        // Killed in two processes, and on in four; the launcher passes the signal on.
        ways.push((Some((mpi, "2")), "-TERM", Some((mpi, "4")), vec!["--mesh", "4"]));
    }
    for (first, signal, second, mesh) in ways {
        for step in [20, 40, 60, 80] {
            // What an earlier run has written.
            let _ = fs::remove_file(folder.path().join(format!("checkpoint-{step:04}.npz")));
        }
        kill_after(command(&folder, first, &words("1000000", "zeros")), &folder, "checkpoint-0040.npz", signal);
        let rest = run(
            second,
            &[words("80", "@checkpoint-0040.npz"), mesh.iter().map(|word| word.to_string()).collect()].concat(),
        );
        // The steps up to the checkpoint are not done again, and the others have the losses of the whole run.
        assert!(!rest.out.contains("step  40") && whole.out.contains("step  40"), "{}", rest.out);
        let found = last_loss(&rest);
        assert!((found - expected).abs() <= 1e-4 * expected, "{first:?} {second:?}: {found} instead of {expected}");
    }
}
