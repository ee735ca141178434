//! Two processes under the launchers of this machine: Open MPI, MPICH. Launchers that are not installed are skipped, with a line that says
//! so.
//!
//! Each test starts a launcher, which starts this test program twice more to run `process`, in the scenario that the environment names.
#![allow(clippy::unwrap_used)]

use std::env;
use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use spmdc_mpi::{LIBRARY_VARIABLE, Launched, MpiError, MpiLibrary, MpiTransfer, World};

const SCENARIO: &str = "SPMDC_MPI_SCENARIO";

/// Printed by a process that waited in vain for longer than `PATIENCE`.
const IN_VAIN: &str = "waited in vain";
const PATIENCE: Duration = Duration::from_secs(60);

/// The launchers, each with its possible names, the beginning of its `--version`, and its environment.
struct Mpi {
    name: &'static str,
    commands: &'static [&'static str],
    says: &'static str,
    arguments: &'static [&'static str],
    library: &'static str,
}

const OPEN_MPI: Mpi = Mpi {
    name: "Open MPI",
    commands: &["mpirun.openmpi", "mpirun"],
    says: "Open MPI",
    arguments: &["--bind-to", "none", "--oversubscribe"],
    library: "libmpi.so.40",
};

const MPICH: Mpi = Mpi {
    name: "MPICH",
    commands: &["mpirun.mpich", "mpiexec.hydra", "mpirun"],
    says: "HYDRA",
    arguments: &[],
    library: "libmpich.so.12",
};

impl Mpi {
    /// The launcher's command; None if it is not installed.
    fn command(&self) -> Option<Command> {
        let is_it = |command: &&&str| {
            let version = Command::new(command).arg("--version").output();
            version.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).contains(self.says))
        };
        let mut command = Command::new(self.commands.iter().find(is_it)?);
        // Other variables of an enclosing launcher would confuse this one.
        for (name, _) in env::vars() {
            if ["OMPI_", "PMI", "MPI_", "SLURM_"].iter().any(|prefix| name.starts_with(prefix)) {
                command.env_remove(name);
            }
        }
        command.env_remove(LIBRARY_VARIABLE);
        command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
        Some(command)
    }
}

/// The launcher's result for two processes in this scenario: whether it succeeded, and all output. None if it is not installed.
fn launched(mpi: &Mpi, scenario: &str, variables: &[(&str, &str)]) -> Option<(bool, String)> {
    let Some(mut command) = mpi.command() else {
        eprintln!("skipped: {} is not installed", mpi.name);
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    command.args(mpi.arguments).args(["-n", "2"]).arg(env::current_exe().unwrap());
    command.args(["--exact", "process", "--nocapture", "--test-threads=1"]);
    // What a killed process leaves of its shared memory goes with the folder.
    command.env("OMPI_MCA_btl_vader_backing_directory", folder.path());
    command.env(SCENARIO, scenario).envs(variables.iter().copied());
    let mut job = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let readers = [Box::new(job.stdout.take().unwrap()) as Box<dyn Read + Send>, Box::new(job.stderr.take().unwrap())];
    let readers = readers.map(|mut stream| {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).unwrap();
            String::from_utf8_lossy(&bytes).into_owned()
        })
    });
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = job.try_wait().unwrap() {
            break status;
        }
        if begin.elapsed() > 3 * PATIENCE {
            job.kill().unwrap();
            job.wait().unwrap();
            panic!("{} does not end", mpi.name);
        }
        thread::sleep(Duration::from_millis(10));
    };
    let text = readers.map(|reader| reader.join().unwrap()).concat();
    Some((status.success(), text))
}

fn join() -> Result<World, MpiError> {
    let launched = Launched::find(|name| env::var(name).ok())?.expect("a launcher has started this");
    World::join(MpiLibrary::load(launched.launcher, env::var(LIBRARY_VARIABLE).ok().as_deref())?, &launched)
}

fn wait(world: &World, transfer: &mut MpiTransfer) -> Result<(), MpiError> {
    let begin = Instant::now();
    while !world.is_complete(transfer)? {
        if begin.elapsed() > PATIENCE {
            println!("{IN_VAIN}");
            std::process::exit(1);
        }
        thread::yield_now();
    }
    Ok(())
}

/// Receives this many bytes from the other process while sending these.
fn exchange(world: &World, tag: u32, bytes: &[u8], len: usize) -> Result<Vec<u8>, MpiError> {
    let other = 1 - world.rank();
    let mut received = vec![0; len];
    // SAFETY: both live until their transfers are complete, or until the process ends.
    let (mut sending, mut receiving) = unsafe {
        (world.send(other, tag, bytes.as_ptr(), bytes.len())?, world.receive(other, tag, received.as_mut_ptr(), len)?)
    };
    wait(world, &mut receiving)?;
    wait(world, &mut sending)?;
    Ok(received)
}

fn pattern(process: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 256 + process * 91) as u8).collect()
}

/// The work of each of the two processes.
#[test]
fn process() {
    let Ok(scenario) = env::var(SCENARIO) else { return };
    match scenario.as_str() {
        "bytes" => {
            let world = join().unwrap();
            let (own, other) = (world.rank(), 1 - world.rank());
            for len in [0, 1, 7, 64, 4096, 65_535, 1 << 20, (1 << 24) + 3] {
                let received = exchange(&world, 3, &pattern(own, len), len).unwrap();
                assert!(received == pattern(other, len), "{len} bytes");
            }
            // Messages with the same tag arrive in order, though they are not awaited in between.
            let sent: Vec<Vec<u8>> = (0..20).map(|i| pattern(own + i, 100 * i)).collect();
            let mut received: Vec<Vec<u8>> = (0..20).map(|i| vec![0; 100 * i]).collect();
            let mut transfers = Vec::new();
            for (sent, received) in sent.iter().zip(&mut received) {
                // SAFETY: the buffers are not touched until all transfers are complete.
                unsafe {
                    transfers.push(world.send(other, 9, sent.as_ptr(), sent.len()).unwrap());
                    transfers.push(world.receive(other, 9, received.as_mut_ptr(), received.len()).unwrap());
                }
            }
            transfers.iter_mut().for_each(|transfer| wait(&world, transfer).unwrap());
            assert!((0..20).all(|i| received[i] == pattern(other + i, 100 * i)));
            println!("process {own} of {} received everything, {}", world.size(), world.version());
            world.leave().unwrap();
        }
        "other size" => {
            let world = join().unwrap();
            let short = exchange(&world, 3, &[1; 4], 6).unwrap_err();
            let long = exchange(&world, 4, &[1; 8], 6).unwrap_err();
            println!("{short}\n{long}");
            // MPICH's launcher drops what it has not read when it hears that the job ends.
            thread::sleep(Duration::from_millis(300));
            world.abort(65);
        }
        "killed" | "aborted" => {
            let world = join().unwrap();
            exchange(&world, 3, &[1], 1).unwrap();
            if world.rank() == 1 {
                match scenario.as_str() {
                    "aborted" => world.abort(75),
                    // SAFETY: it ends this process.
                    _ => unsafe {
                        libc::kill(libc::getpid(), libc::SIGKILL);
                    },
                }
            }
            let _ = exchange(&world, 3, &[], 1);
            println!("{IN_VAIN}");
        }
        "other library" => {
            let error = join().err().unwrap();
            println!("{error}\n{}", error.help.as_deref().unwrap());
            std::process::exit(65);
        }
        _ => panic!("unknown scenario `{scenario}`"),
    }
}

#[test]
fn bytes_of_all_sizes_arrive() {
    for mpi in [OPEN_MPI, MPICH] {
        let Some((succeeded, text)) = launched(&mpi, "bytes", &[]) else { continue };
        assert!(succeeded, "{}: {text}", mpi.name);
        for process in 0..2 {
            assert!(text.contains(&format!("process {process} of 2 received everything, {}", mpi.name)), "{text}");
        }
    }
}

#[test]
fn a_message_of_another_size_is_refused() {
    for mpi in [OPEN_MPI, MPICH] {
        let Some((succeeded, text)) = launched(&mpi, "other size", &[]) else { continue };
        assert!(!succeeded && text.contains("has sent 4 bytes where 6 were expected"), "{}: {text}", mpi.name);
        assert!(text.contains("MPI could not receive from process"), "{}: {text}", mpi.name);
    }
}

#[test]
fn the_end_of_one_process_ends_the_other() {
    for scenario in ["killed", "aborted"] {
        for mpi in [OPEN_MPI, MPICH] {
            let Some((succeeded, text)) = launched(&mpi, scenario, &[]) else { continue };
            assert!(!succeeded && !text.contains(IN_VAIN), "{}, {scenario}: {text}", mpi.name);
        }
    }
}

/// Each process would be a separate world.
#[test]
fn the_library_of_another_launcher_is_refused() {
    let is_refused = |mpi: &Mpi, other: &Mpi| {
        if other.command().is_none() {
            return eprintln!("skipped: {} is not installed", other.name);
        }
        let variables = [(LIBRARY_VARIABLE, other.library)];
        let Some((succeeded, text)) = launched(mpi, "other library", &variables) else { return };
        assert!(!succeeded && text.contains("has started 2 processes, but in"), "{}: {text}", mpi.name);
        assert!(text.contains("must be of the same MPI"), "{}: {text}", mpi.name);
    };
    // They mostly wait, so both at once.
    thread::scope(|scope| {
        scope.spawn(|| is_refused(&OPEN_MPI, &MPICH));
        scope.spawn(|| is_refused(&MPICH, &OPEN_MPI));
    });
}
