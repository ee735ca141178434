//! Programs in several processes: `spmdc launch` with launchers that are scripts, and with those of the MPI libraries of this machine.
//! Launchers that are not installed are skipped, with a line that says so.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::folder::{Folder, SPMDC, Said, installed, is_ignored, spmdc, starter};

const PROGRAM: &str = "mesh (X = 4);\nfn main(x: f32[8@X]) -> f32 { sum(2 * x) }\n";

/// A launcher in the folder `bin`, which runs these lines after `program` was set to the words after the options.
fn script(folder: &Folder, name: &str, version: &str, lines: &str) {
    let text = format!(
        "#!/bin/sh\nif [ \"$1\" = --version ]; then echo '{version}'; exit 0; fi\n\
         while [ \"$1\" != -n ]; do shift; done\nshift 2\nif [ \"$1\" = -x ]; then shift 2; fi\n{lines}\n"
    );
    let path = folder.path().join("bin").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// `spmdc launch` with these words, where only the scripts of the folder are launchers.
fn launch(folder: &Folder, words: &[&str]) -> Said {
    let mut command = spmdc();
    command.arg("launch").args(words).current_dir(folder.path());
    command.env("PATH", format!("{}:/bin-without-launchers", folder.path().join("bin").display()));
    Said::of(command.output().unwrap())
}

#[test]
fn the_line_of_the_launcher_is_shown() {
    let folder = Folder::with(&[]);
    let said = launch(&folder, &["-n", "2", "--mpi", "mpich", "--dry-run", "--", "./prog", "--arg", "x=[1, 2]"]);
    said.expect(0, "mpiexec -n 2 ./prog --arg 'x=[1, 2]'\n", "");
    let said = launch(&folder, &["--hosts", "a,b", "--mpi", "openmpi", "--dry-run", "--", "./prog"]);
    said.expect(0, "mpirun --bind-to none --host a:1,b:1 -n 2 ./prog\n", "");
    launch(&folder, &["-n", "2", "--", "./prog"]).expect(3, "", "no MPI launcher was found");
    launch(&folder, &["--", "./prog"]).expect(2, "", "write -n P, or --hosts a,b");
    launch(&folder, &["-n", "2"]).expect(2, "", "EXE");
    script(&folder, "mpirun", "mpirun (Open MPI) 4.1.4", "");
    launch(&folder, &["-n", "3", "--dry-run", "--", "p"]).expect(
        0,
        "mpirun --bind-to none --oversubscribe -n 3 p\n",
        "",
    );
}

/// Slurm's launcher is used if it is asked for.
#[test]
fn processes_are_started_as_a_step_of_slurm() {
    let folder = Folder::with(&[("p.spmd", PROGRAM)]);
    launch(&folder, &["-n", "1", "--mpi", "slurm-pmix", "--", "p"]).expect(3, "", "was found; tried srun");
    script(&folder, "srun", "slurm 22.05.8", "exec \"$@\"");
    launch(&folder, &["-n", "1", "--", "p"]).expect(3, "", "no MPI launcher was found");
    for (mpi, option) in [("slurm-pmix", "--mpi=pmix"), ("slurm-pmi2", "--mpi=pmi2")] {
        let said = launch(&folder, &["-n", "2", "--mpi", mpi, "--dry-run", "--", "p"]);
        said.expect(0, &format!("srun {option} -K1 --cpu-bind=none -n 2 p\n"), "");
        let run = ["-n", "1", "--mpi", mpi, "--", SPMDC, "run", "p.spmd", "--arg", "x=ones"];
        launch(&folder, &run).expect(0, "f32\n16.0\n", "");
    }
}

#[test]
fn success_is_what_the_job_says_and_not_what_the_launcher_says() {
    let folder = Folder::with(&[("p.spmd", PROGRAM)]);
    let run = ["-n", "1", "--", SPMDC, "run", "p.spmd", "--arg", "x=ones"];
    // The launcher fails after the job has completed.
    script(&folder, "mpirun", "mpirun (Open MPI) 4.1.4", "\"$@\"; exit 1");
    let said = launch(&folder, &run);
    said.expect(0, "f32\n16.0\n", "");
    assert_eq!(said.err, "");
    // The job is lost, and the launcher says that all is well.
    script(&folder, "mpirun", "mpirun (Open MPI) 4.1.4", "exit 0");
    launch(&folder, &run).expect(75, "", "the job did not complete (`mpirun`: exit status 0)");
    // The program fails.
    script(&folder, "mpirun", "mpirun (Open MPI) 4.1.4", "exec \"$@\"");
    let said = launch(&folder, &["-n", "1", "--", SPMDC, "run", "p.spmd"]);
    said.expect(2, "", "error[E0702]");
    assert!(!said.err.contains("did not complete") && !said.err.contains('\u{1e}'), "{}", said.err);
    // What it writes to standard error arrives.
    let said = launch(&folder, &[&run[..], &["--stats", "json"]].concat());
    said.expect(0, "16.0", "{\"compile_ms\":");
    assert!(said.err.ends_with("}\n"), "{}", said.err);
}

#[test]
fn a_launcher_that_goes_on_after_a_failure_is_ended() {
    let folder = Folder::with(&[("p.spmd", PROGRAM)]);
    // It ignores the polite signal.
    let lines = "trap '' TERM; \"$@\"; while :; do /bin/sleep 0.1; done";
    script(&folder, "mpirun", "mpirun (Open MPI) 4.1.4", lines);
    let said = launch(&folder, &["-n", "1", "--grace", "0", "--", SPMDC, "run", "p.spmd"]);
    // The status of the process, not of the launcher that was killed.
    said.expect(2, "", "error[E0702]");
}

#[test]
fn a_signal_ends_the_launcher() {
    let folder = Folder::with(&[]);
    script(&folder, "mpirun", "mpirun (Open MPI) 4.1.4", "echo started; exec /bin/sleep 1000");
    for (signal, name, status) in [(2, "-INT", 130), (15, "-TERM", 143)] {
        if is_ignored(signal) {
            eprintln!("skipped: {name} is ignored by who started the tests, and so by all that they start");
            continue;
        }
        let mut command = spmdc();
        command.args(["launch", "-n", "1", "--", "./prog"]).env("PATH", folder.path().join("bin"));
        let mut launch = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut out = std::io::BufReader::new(launch.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut out, &mut line).unwrap();
        assert_eq!(line, "started\n");
        let killed = Command::new("kill").args([name, &launch.id().to_string()]).status().unwrap();
        assert!(killed.success());
        let said = Said::of(launch.wait_with_output().unwrap());
        assert_eq!((said.status, said.err.as_str()), (status, ""), "{name}");
    }
}

#[test]
fn devices_are_shown_in_one_process() {
    let folder = Folder::with(&[("p.spmd", PROGRAM)]);
    let said = folder.spmdc(&["run", "p.spmd", "--show-devices"]);
    said.expect(0, "process  host", "");
    assert!(said.out.ends_with("  4              0 to 3\n") && said.out.lines().count() == 2, "{}", said.out);
    let said = folder.spmdc(&["run", "p.spmd", "--show-devices", "--format", "json"]);
    let table: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&table["devices"], &table["processes"][0]["devices"]), (&4.into(), &serde_json::json!([0, 1, 2, 3])));
}

#[test]
fn processes_that_know_nothing_of_each_other_are_refused() {
    let folder = Folder::with(&[("p.spmd", PROGRAM)]);
    for (variables, reason) in [
        (&[("SLURM_PROCID", "1"), ("SLURM_STEP_NUM_TASKS", "2")][..], "srun started 2 processes"),
        (&[("PMI_RANK", "7"), ("PMI_SIZE", "2")], "PMI_RANK is 7, and PMI_SIZE is 2"),
        (
            &[("PMI_RANK", "0"), ("PMI_SIZE", "2"), ("SPMDC_MPI_LIB", "libno-such-mpi.so")],
            "no MPI library could be loaded: libno-such-mpi.so",
        ),
    ] {
        let mut command = spmdc();
        command.args(["run", "p.spmd", "--arg", "x=ones"]).current_dir(folder.path()).envs(variables.iter().copied());
        let said = Said::of(command.output().unwrap());
        said.expect(3, "", reason);
        assert!(said.err.contains("E0807") && said.out.is_empty(), "{}", said.err);
    }
    // One process needs no library, whoever has started it.
    let mut command = spmdc();
    command.args(["run", "p.spmd", "--arg", "x=ones"]).current_dir(folder.path());
    command.envs([("PMI_RANK", "0"), ("PMI_SIZE", "1"), ("SPMDC_MPI_LIB", "libno-such-mpi.so")]);
    Said::of(command.output().unwrap()).expect(0, "16.0", "");
}

/// `spmdc launch -n 2` of this command with these words.
fn in_two_processes(folder: &Folder, mpi: &str, words: &[&str]) -> Said {
    folder.spmdc(&[&["launch", "-n", "2", "--mpi", mpi, "--", SPMDC, "run"], words].concat())
}

#[test]
fn two_processes_find_each_other() {
    let folder = Folder::with(&[("p.spmd", PROGRAM), ("odd.spmd", "mesh (X = 3);\nfn main(x: f32[3@X]) { x }\n")]);
    for mpi in installed() {
        let said = in_two_processes(&folder, mpi, &["p.spmd", "--show-devices", "--format", "json"]);
        said.expect(0, "", "");
        let table: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        let devices = |process: usize| &table["processes"][process]["devices"];
        assert_eq!((devices(0), devices(1)), (&serde_json::json!([0, 1]), &serde_json::json!([2, 3])), "{mpi}");
        let said = in_two_processes(&folder, mpi, &["odd.spmd", "--show-devices"]);
        assert!(
            said.status != 0 && said.err.contains("3 devices of the mesh cannot be divided equally among 2"),
            "{}",
            said.err
        );
        assert_eq!(said.err.matches("error[E0807]").count(), 1, "{mpi}: {}", said.err);
        assert!(!said.err.contains("did not complete"), "{}", said.err);
    }
}

#[test]
fn two_processes_give_what_one_gives() {
    let text = "
        mesh (X = 2, Y = 2);
        fn main(x: f32[8@X, 6@Y], n: i32) -> (f32[8@X, 6@Y], f32) {
          let mut y = x;
          for i in 0..n { y = roll(y, 1, axis=0) @ eye(6) + 0.5 * y; }
          print(\"the sum is {:.3}\", sum(y));
          (y, sum(y[3]))
        }";
    let fails = "mesh (X = 4);\nfn main(x: i32[4@X], n: i32) -> i32[4@X] {\n  x // (n - x)\n}\n";
    let folder = Folder::with(&[("p.spmd", text), ("fails.spmd", fails)]);
    let arguments = ["--arg", "x=normal:1", "--arg", "n=5"];
    let alone = folder.spmdc(&[&["run", "p.spmd"], &arguments[..]].concat());
    alone.expect(0, "the sum is ", "");
    folder.spmdc(&[&["run", "p.spmd", "--out", "alone.npz"], &arguments[..]].concat()).expect(0, "", "");
    for mpi in installed() {
        let said = in_two_processes(&folder, mpi, &[&["p.spmd"], &arguments[..]].concat());
        assert_eq!((said.status, &said.out), (0, &alone.out), "{mpi}: {}", said.err);
        let words = [&["p.spmd", "--out", "two.npz", "--stats", "json", "--bench", "2"], &arguments[..]].concat();
        let said = in_two_processes(&folder, mpi, &words);
        said.expect(0, "2 runs: min ", "{\"compile_ms\":");
        assert_eq!(said.out.matches("the sum is").count(), 1, "{}", said.out);
        let [one, two] = ["alone.npz", "two.npz"].map(|name| fs::read(folder.path().join(name)).unwrap());
        assert!(one == two, "{mpi}: the results differ");
        // The device that fails is in the second process.
        let said = in_two_processes(&folder, mpi, &["fails.spmd", "--arg", "x=iota", "--arg", "n=3"]);
        assert!(said.status != 0 && said.err.contains("fails.spmd:3:"), "{mpi}: {}", said.err);
        assert_eq!(said.err.matches("error[E0802]").count(), 1, "{mpi}: {}", said.err);
        let said = in_two_processes(&folder, mpi, &["fails.spmd", "--arg", "x=@absent.npy", "--arg", "n=3"]);
        assert_eq!(said.err.matches("error[E0703]").count(), 1, "{mpi}: {}", said.err);
        let said = in_two_processes(&folder, mpi, &["fails.spmd", "--arg", "x=iota", "--arg", "n=9"]);
        said.expect(0, "[0 0 0 0]", "");
    }
}

/// One file of all processes, whatever its arrays are, with the bytes that one process writes.
#[test]
fn two_processes_write_one_file() {
    let text = "
        mesh (X = 2, Y = 2);
        fn main(x: f32[7@X, 300@Y], k: key) {
          let z = complex(x, -x);
          { rows: reshard(x, P((X, Y))), columns: x.T, halves: bf16(x), z: z, whole: reshard(2 * x, P()), s: sum(x), k: k,
            b: x > 0, none: x[2:2], part: f64(x[1:5, 3]) }
        }";
    let half = "mesh all (x = 4);\nmesh half (a = 2) devices [3, 2];\n\
                fn main() -> (i32[9@a] on half, f32[5@x] on all) {\n  let x = transfer(arange(9), half, P(a));\n  \
                (x, f32(arange(5)))\n}\n";
    let folder = Folder::with(&[("p.spmd", text), ("half.spmd", half)]);
    let arguments = ["--arg", "x=normal:3", "--arg", "k=5"];
    let outs = ["all.npz", "columns=c.npy", "z=z.npy", "rows=r.safetensors", "s=s.npy", "none=n.npz"];
    let words: Vec<&str> = outs.iter().flat_map(|out| ["--out", *out]).collect();
    let programs = [[&["p.spmd"], &arguments[..], &words[..]].concat(), vec!["half.spmd", "--out", "half.npz"]];
    let names: Vec<&str> = outs.iter().map(|out| out.split('=').next_back().unwrap()).chain(["half.npz"]).collect();
    let files = || -> Vec<Vec<u8>> {
        let paths: Vec<_> = names.iter().map(|name| folder.path().join(name)).collect();
        let files = paths.iter().map(|path| fs::read(path).unwrap()).collect();
        paths.iter().for_each(|path| fs::remove_file(path).unwrap());
        files
    };
    programs.iter().for_each(|words| folder.spmdc(&[&["run"], &words[..]].concat()).expect(0, "", ""));
    let alone = files();
    std::os::unix::fs::symlink("/dev/full", folder.path().join("full.npz")).unwrap();
    for mpi in installed() {
        programs.iter().for_each(|words| in_two_processes(&folder, mpi, words).expect(0, "", ""));
        let found = files();
        let differ: Vec<&&str> =
            names.iter().zip(alone.iter().zip(&found)).filter(|(_, (a, b))| a != b).map(|(name, _)| name).collect();
        assert!(differ.is_empty(), "{mpi}: {differ:?} have other bytes");
        // An older file stays where the new one cannot be written.
        let said = in_two_processes(&folder, mpi, &[&["p.spmd"], &arguments[..], &["--out", "full.npz"]].concat());
        said.expect(3, "", "cannot write `full.npz`: No space left on device");
        assert_eq!(said.err.matches("error[E0704]").count(), 1, "{mpi}: {}", said.err);
        let left = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 3, "{mpi}: two programs and a link");
    }
}

/// Stages of a pipeline in different processes, and a mesh that leaves one process without devices.
#[test]
fn meshes_lie_in_different_processes() {
    let half = "mesh all (x = 4);\nmesh half (a = 2) devices [3, 2];\n\
                fn main() -> i32[8@a] on half {\n  let x = transfer(arange(8), half, P(a));\n  print(\"sum {}\", sum(x));\n  x\n}\n";
    let folder = Folder::with(&[("half.spmd", half)]);
    let pipeline = root().join("examples/pipeline.spmd");
    for words in [&[pipeline.to_str().unwrap(), "--arg", "batches=uniform:0"][..], &["half.spmd"]] {
        let alone = folder.spmdc(&[&["run"], words].concat());
        alone.expect(0, "", "");
        for mpi in installed() {
            let said = in_two_processes(&folder, mpi, words);
            assert_eq!((said.status, &said.out), (0, &alone.out), "{mpi}: {}", said.err);
        }
    }
}

#[test]
fn each_process_writes_its_own_trace() {
    let folder = Folder::with(&[("p.spmd", PROGRAM)]);
    for mpi in installed() {
        in_two_processes(&folder, mpi, &["p.spmd", "--arg", "x=ones", "--trace", "run.json"]).expect(0, "16.0", "");
        for process in 0..2 {
            let path = folder.path().join(format!("run.{process}.json"));
            let trace: serde_json::Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
            let events = trace["traceEvents"].as_array().unwrap();
            assert!(events.iter().all(|event| event["pid"] == process), "{mpi}: {trace}");
            let named = events.iter().filter(|event| event["name"] == "thread_name");
            let names: Vec<String> = named.map(|event| event["args"]["name"].to_string()).collect();
            assert_eq!(names, [0, 1].map(|at| format!("\"device {}\"", 2 * process + at)), "{mpi}");
            fs::remove_file(path).unwrap();
        }
        assert!(!folder.path().join("run.json").exists());
        let words = ["p.spmd", "--arg", "x=ones", "--trace", "no_such_folder/run.json"];
        let said = in_two_processes(&folder, mpi, &words);
        assert!(said.status != 0 && said.err.matches("error[E0704]").count() == 1, "{mpi}: {}", said.err);
    }
}

/// Files that a program writes and reads while it runs.
#[test]
fn two_processes_save_and_stream() {
    let text = "
        mesh (X = 4);
        fn main(rows: stream f32[40, 3], start: f32[8@X]) -> f32[8@X] {
          let mut y = start;
          for i in 0..5 {
            y = y + mean(rows[8 * i : 8 * i + 8], axis=1);
            save(\"step-{}.npz\", i, y);
          }
          y
        }";
    let names = ["step-0.npz", "step-1.npz", "step-2.npz", "step-3.npz", "step-4.npz"];
    let folder =
        Folder::with(&[("p.spmd", text), ("rows.spmd", "fn main() -> f32[40, 3] { normal(key(1), f32[40, 3]) }")]);
    folder.spmdc(&["run", "rows.spmd", "--out", "rows.npy"]).expect(0, "", "");
    let words = ["p.spmd", "--arg", "rows=@rows.npy", "--arg", "start=iota"];
    let alone = folder.spmdc(&[&["run"], &words[..]].concat());
    alone.expect(0, "f32[8@X]", "");
    let saved = || folder.taken(&names);
    let files = saved();
    for mpi in installed() {
        let said = in_two_processes(&folder, mpi, &words);
        assert_eq!((said.status, &said.out), (0, &alone.out), "{mpi}: {}", said.err);
        assert!(saved() == files, "{mpi}: the files differ");
        let said = in_two_processes(&folder, mpi, &[&words[..], &["--bench", "3", "--timeout", "20"]].concat());
        said.expect(0, "3 runs: min ", "");
        assert!(saved() == files, "{mpi}: the files of the last run differ");
    }
}

/// The mesh that writes what a program saves may have no device in the first process.
#[test]
fn processes_save_without_the_first() {
    let text = "
        mesh a (X = 4);
        mesh b (Y = 3) devices [5, 4, 3];
        fn main(x: f32[5@X] on a, y: f32[10@Y] on b) {
          let mut y = y;
          for step in 0..3 {
            y = y + transfer(sum(x), b);
            save(\"step-{}.npz\", step, { x: x, y: y });
          }
          if transfer(sum(y), a) > 0.0 { save(\"sum-{}.npy\", i32(sum(x)), 2 * y); }
        }";
    let names = ["step-0.npz", "step-1.npz", "step-2.npz", "sum-10.npy"];
    let folder = Folder::with(&[("p.spmd", text)]);
    let words = ["p.spmd", "--arg", "x=iota", "--arg", "y=ones"];
    folder.spmdc(&[&["run"], &words[..]].concat()).expect(0, "", "");
    let saved = || folder.taken(&names);
    let files = saved();
    for mpi in installed() {
        for processes in [2, 6] {
            let count = processes.to_string();
            let launched = ["launch", "-n", &count, "--mpi", mpi, "--", SPMDC, "run"];
            folder.spmdc(&[&launched[..], &words[..]].concat()).expect(0, "", "");
            assert!(saved() == files, "{mpi}: the files of {processes} processes differ");
        }
    }
}

/// A process that is stopped is named after the time limit, and all end.
#[test]
fn a_process_that_is_stopped_ends_the_job() {
    let text = "mesh (X = 4);\nfn main(x: f32[8@X], n: i32) -> f32[8@X] {\n  let mut y = x;\n  print(\"started\");\n  \
                for i in 0..n { y = 0.5 * y + 0.06 * sum(y); }\n  y\n}\n";
    let folder = Folder::with(&[("p.spmd", text)]);
    folder.spmdc(&["build", "p.spmd", "-o", "p"]).expect(0, "", "");
    // The second process stops itself when the loop is under way.
    let script = "#!/bin/sh\nif [ \"${PMI_RANK:-$OMPI_COMM_WORLD_RANK}\" = 1 ]; then (sleep 1; kill -STOP $$) & fi\nexec ./p \"$@\"\n";
    let path = folder.path().join("stopped");
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let stops = |mpi: &str| {
        let begin = Instant::now();
        let words = ["launch", "-n", "2", "--mpi", mpi, "--", "./stopped", "--arg", "x=ones", "--arg", "n=2000000000"];
        let said = folder.spmdc(&[&words[..], &["--timeout", "3", "--out", "y.npy"]].concat());
        said.expect(75, "started\n", "waited 3s for process 1");
        assert!(said.err.contains("error[E0809]") && said.err.contains("process 1 runs on `"), "{mpi}: {}", said.err);
        // A start, the limit, and the end of the launcher with the stopped process; several tests share the machine.
        assert!(begin.elapsed() < Duration::from_secs(40), "{mpi}: {:?}", begin.elapsed());
        assert!(!folder.path().join("y.npy").exists(), "{mpi}");
    };
    // They mostly wait, so all at once.
    let stops = &stops;
    thread::scope(|scope| {
        for mpi in installed() {
            scope.spawn(move || stops(mpi));
        }
    });
}

/// Two programs in one job, each with its words.
fn side_by_side(folder: &Path, mpi: &str, first: &[&str], second: &[&str]) -> Said {
    let name = if mpi == "openmpi" { "mpirun.openmpi" } else { "mpirun.mpich" };
    let mut command = starter(name);
    if mpi == "openmpi" {
        command.args(["--bind-to", "none", "--oversubscribe"]);
    }
    command.args(["-n", "1", SPMDC, "run"]).args(first).args([":", "-n", "1", SPMDC, "run"]).args(second);
    command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
    Said::of(command.current_dir(folder).output().unwrap())
}

#[test]
fn processes_that_would_do_different_things_are_refused() {
    let other = PROGRAM.replace("2 * x", "3 * x");
    let mesh = PROGRAM.replace("X = 4", "X = 2");
    let folder = Folder::with(&[("p.spmd", PROGRAM), ("other.spmd", &other), ("mesh.spmd", &mesh)]);
    for mpi in installed() {
        let run = |words: &[&str]| side_by_side(folder.path(), mpi, &["p.spmd", "--show-devices"], words);
        for (words, reason) in [
            (&["other.spmd", "--show-devices"][..], "process 1 on "),
            (&["other.spmd", "--show-devices"], " has another program than process 0 on "),
            (&["mesh.spmd", "--show-devices"], " has another mesh (X = 2) than process 0 on "),
            (&["p.spmd", "--show-devices", "--timeout", "50"], " was started with other options than process 0 on "),
        ] {
            let said = run(words);
            said.expect(65, "", reason);
            assert_eq!(said.err.matches("error[E0808]").count(), 1, "{mpi}: {}", said.err);
        }
    }
}

/// The blocks of a page that begin with a command, as its words and what it prints.
fn shown_commands(page: &str) -> Vec<(String, String)> {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let blocks = text.split("```\n$ ").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.map(|block| block.split_once('\n').unwrap()).map(|(line, out)| (line.to_string(), out.to_string())).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

#[test]
fn commands_of_the_page_print_what_is_shown() {
    let folder = Folder::with(&[]);
    let commands = shown_commands("docs/clusters.md");
    assert_eq!(commands.len(), 2);
    let path = format!("{}:/usr/bin:/bin", Path::new(SPMDC).parent().unwrap().display());
    for (line, out) in commands {
        // The launchers of this machine would stand in the line under their own names.
        script(&folder, "mpiexec", "HYDRA", "");
        for hidden in ["mpiexec.hydra", "mpirun.mpich"] {
            script(&folder, hidden, "hidden", "");
        }
        let mut command = Command::new("sh");
        command.args(["-c", &line]).env("PATH", format!("{}:{path}", folder.path().join("bin").display()));
        let said = Said::of(command.output().unwrap());
        assert_eq!((said.status, said.out), (0, out), "{line}: {}", said.err);
    }
}

#[test]
fn recipes_have_their_form() {
    let folder = root().join("examples/clusters");
    let page = fs::read_to_string(root().join("docs/clusters.md")).unwrap();
    for file in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = file.file_name().unwrap().to_str().unwrap();
        assert!(page.contains(&format!("(../examples/clusters/{name})")), "docs/clusters.md does not name {name}");
        let text = fs::read_to_string(&file).unwrap();
        match name.rsplit_once('.').map(|(_, extension)| extension) {
            Some("sh") => {
                let checked = Command::new("bash").arg("-n").arg(&file).output().unwrap();
                assert!(checked.status.success(), "{name}: {checked:?}");
            }
            Some("yaml") => {
                let parsed = yaml_rust2::YamlLoader::load_from_str(&text).unwrap();
                let [object] = parsed.as_slice() else { panic!("{name} is not one object") };
                assert!(object["apiVersion"].as_str().is_some() && object["kind"].as_str().is_some(), "{name}");
                // Every command begins with an absolute path or a launcher, and the numbers of processes agree.
                match object["kind"].as_str() {
                    Some("JobSet") => {
                        let job = &object["spec"]["replicatedJobs"][0]["template"]["spec"];
                        let container = &job["template"]["spec"]["containers"][0];
                        let hosts = container["env"][0]["value"].as_str().unwrap().split(',').count();
                        assert_eq!(job["completions"].as_i64(), Some(hosts as i64));
                        assert_eq!(job["parallelism"].as_i64(), Some(hosts as i64));
                        assert_eq!(container["command"][0].as_str(), Some("/opt/start.sh"));
                    }
                    Some("MPIJob") => {
                        let replicas = &object["spec"]["mpiReplicaSpecs"];
                        let workers = replicas["Worker"]["replicas"].as_i64().unwrap();
                        let container = &replicas["Launcher"]["template"]["spec"]["containers"][0];
                        let words: Vec<&str> =
                            container["command"].as_vec().unwrap().iter().filter_map(|word| word.as_str()).collect();
                        assert_eq!(words[..5], ["mpirun", "--bind-to", "none", "-n", &(workers + 1).to_string()]);
                    }
                    other => panic!("{name}: {other:?}"),
                }
            }
            Some(_) | None => assert_eq!(name, "Dockerfile"),
        }
    }
}

/// The pods are processes of this machine, and their names are those of this host.
#[test]
fn pods_without_ssh_find_each_other() {
    let is_there = |command: &str| Command::new(command).arg("--version").output().is_ok();
    if !is_there("mpiexec.hydra") || !is_there("hydra_pmi_proxy") {
        eprintln!("skipped: MPICH is not installed");
        return;
    }
    let folder = Folder::with(&[("p.spmd", PROGRAM)]);
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let pod = |index: &str| {
        let mut command = starter(root().join("examples/clusters/start.sh"));
        command.args([SPMDC, "run", "p.spmd", "--show-devices"]).current_dir(folder.path());
        command.envs([("HOSTS", "localhost,127.0.0.1"), ("JOB_COMPLETION_INDEX", index)]).env("PORT", port.to_string());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let (second, first) = (pod("1"), pod("0"));
    let said = Said::of(first.wait_with_output().unwrap());
    said.expect(0, "process  host", "");
    assert!(
        said.out.contains("  2              0 to 1\n") && said.out.contains("  2              2 to 3\n"),
        "{}",
        said.out
    );
    assert!(second.wait_with_output().unwrap().status.success());
}
