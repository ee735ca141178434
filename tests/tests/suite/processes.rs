//! The devices of a program in several processes: failures are those of one process, and so is the text before them.
//!
//! The tests `cases` and `programs` compare the results of programs that succeed.

use spmdc_abi::Kernels;
use spmdc_compiler::backends;
use spmdc_compiler::pipeline::Compilation;
use spmdc_compiler::report::timeline::timeline;
use spmdc_compiler::totals::collectives;
use spmdc_ir::program::Stage;
use spmdc_layout::cost::Levels;
use spmdc_runtime::component_table::in_process;
use spmdc_runtime::data::array::HostArray;
use spmdc_runtime::errors::trap::RunCode;
use spmdc_runtime::processes::Process;
use spmdc_runtime::run::report::RunOptions;
use spmdc_runtime::run::session::Session;
use spmdc_tests::compare::{Tolerance, difference};
use spmdc_tests::engine::Loaded;
use spmdc_tests::processes::same_in_processes;
use spmdc_tests::random::Draw;
use spmdc_tests::random::failures::{ARGS, program as failing_program};
use spmdc_tests::{engine, problems, root};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Also what was printed before the failure, and that nothing is printed after it.
#[test]
fn failures_are_the_same_in_several_processes() {
    let numbers: Vec<u64> = (0..60).collect();
    let list = problems(&numbers, |&number| {
        let text = failing_program(&mut Draw::new("failing", number)).text;
        let mesh = ["2x3", "4x2", "3x4"][number as usize % 3];
        let compilation = engine::compiled("failing.spmd", &text, mesh, None).unwrap();
        let inputs = engine::inputs(&compilation, &ARGS.map(str::to_string), &root()).unwrap();
        let loaded = Loaded::new(&compilation).unwrap();
        let alone = loaded.run(&inputs, None);
        let same = same_in_processes(&loaded, &inputs, alone.as_ref(), number as usize);
        same.err().map(|error| format!("program {number} on {mesh}: {error}\n{text}")).into_iter().collect()
    });
    assert!(list.is_empty(), "{} problems:\n{}", list.len(), list.join("\n"));
}

/// The text of a program is that of one process also where another process fails between two lines.
#[test]
fn no_line_is_printed_after_a_failure() {
    let text = "mesh (X = 4);
        fn main(x: i32[8@X], at: i32[8@X]) {
          print(\"first\");
          let y = x // at;
          print(\"second\");
          y
        }";
    let compilation = engine::compiled("failing.spmd", text, "", None).unwrap();
    let mut inputs = engine::inputs(&compilation, &["x=ones".to_string(), "at=ones".to_string()], &root()).unwrap();
    // A zero in the block of the last device.
    inputs[1].bytes[4 * 7] = 0;
    let (printed, failures) = printed_by_processes(&compilation, &inputs, 4, Duration::from_secs(20), 4);
    assert_eq!(printed, "first\n");
    assert!(failures.iter().all(|failure| failure == "E0802"), "{failures:?}");
}

/// A failure on one mesh stops the others, in one process and in several, also while values are on their way.
#[test]
fn failures_on_one_of_several_meshes_stop_all() {
    let text = "mesh all (stage = 4, X = 2);
        mesh a = all[stage = 0];
        mesh b = all[stage = 1];
        mesh c = all[stage = 3];
        fn main(x: i32[6, 8] on a, at: i32[6] on b) -> i32[6, 8] on c {
          for i in 0..6 collect {
            let y = transfer(x[i] + 1, b);
            let z = y // at[i];
            transfer(2 * z, c)
          }
        }";
    let compilation = engine::compiled("failing.spmd", text, "", None).unwrap();
    let mut inputs = engine::inputs(&compilation, &["x=iota".to_string(), "at=ones".to_string()], &root()).unwrap();
    let loaded = Loaded::new(&compilation).unwrap();
    let whole = loaded.run(&inputs, None);
    assert!(whole.is_ok(), "{:?}", whole.err());
    for number in 0..3 {
        same_in_processes(&loaded, &inputs, whole.as_ref(), number).unwrap();
    }
    for trip in [0, 3, 5] {
        inputs[1].bytes.chunks_exact_mut(4).for_each(|at| at.copy_from_slice(&1i32.to_le_bytes()));
        inputs[1].bytes[4 * trip] = 0;
        let alone = loaded.run(&inputs, None);
        let failure = alone.as_ref().err().unwrap();
        assert_eq!((failure.code.as_str(), failure.line), ("E0802", 8), "trip {trip}");
        for number in 0..3 {
            same_in_processes(&loaded, &inputs, alone.as_ref(), number).unwrap();
        }
    }
}

/// A process that does not come is named by those that wait for it, after the time limit.
#[test]
fn a_process_that_does_not_come_is_named() {
    let text = "mesh (X = 4);\nfn main(x: f32[8@X]) { sum(x) }";
    let compilation = engine::compiled("late.spmd", text, "", None).unwrap();
    let inputs = engine::inputs(&compilation, &[], &root()).unwrap();
    let (_, failures) = printed_by_processes(&compilation, &inputs, 2, Duration::from_millis(200), 1);
    assert_eq!(failures.len(), 1);
    assert!(failures[0].starts_with("E0809") && failures[0].contains("process 1"), "{failures:?}");
}

/// A program that saves files into a folder in a loop, of all kinds of arrays, and whose last division fails if `at` has a zero.
fn saving(folder: &Path) -> String {
    format!(
        "mesh (X = 4, Y = 3);
        fn main(x: f32[9@X, 7@Y], n: i32, at: i32[8@X]) -> i32[8@X] {{
          let mut y = x;
          for i in 0..n {{
            y = 0.5 * y + 0.1 * sum(y);
            let z = complex(y, 2 * y);
            save(\"{0}/step-{{}}.npz\", i, {{ y: y, z: z, whole: reshard(y, P()), column: y[:, 1], i: i, none: y[3:3] }});
            save(\"{0}/step-{{}}.safetensors\", i, (y > 1, bf16(y)));
          }}
          save(\"{0}/z.npy\", y.T);
          8 // at
        }}",
        folder.display()
    )
}

/// The names and bytes of the files of a folder, which are removed.
fn taken(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let take = |path: std::path::PathBuf| {
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        (path.file_name().unwrap().to_string_lossy().into_owned(), bytes)
    };
    paths.into_iter().map(take).collect()
}

#[test]
fn processes_save_the_files_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["x=normal:1", "n=4", "at=ones"].map(str::to_string);
    let compilation = engine::compiled("saving.spmd", &saving(folder.path()), "", None).unwrap();
    let mut inputs = engine::inputs(&compilation, &words, &root()).unwrap();
    let loaded = Loaded::new(&compilation).unwrap();
    loaded.run(&inputs, None).unwrap();
    let alone = taken(folder.path());
    assert_eq!(alone.len(), 9);
    for processes in [2, 3, 4, 6, 12] {
        for workers in [None, Some(1)] {
            loaded.run_in_processes(&inputs, (processes, &engine::options(workers))).unwrap();
            let found = taken(folder.path());
            let names = |files: &[(String, Vec<u8>)]| files.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
            assert_eq!(names(&found), names(&alone), "{processes} processes");
            assert!(found == alone, "files of {processes} processes have other bytes");
        }
    }
    // A program that fails leaves whole files alone: those that all processes had begun.
    inputs[2].bytes[4 * 5..4 * 6].fill(0);
    for processes in [2, 4, 6] {
        let failure = loaded.run_in_processes(&inputs, (processes, &engine::options(None))).err().unwrap();
        assert_eq!(failure.code, "E0802", "{processes} processes");
        let found = taken(folder.path());
        assert!(found.iter().all(|file| alone.contains(file)), "{processes} processes");
        assert!(found.len() >= 8, "only the last file can be missing: {}", found.len());
    }
}

/// Where a file cannot be written, the failure is that of one process.
#[test]
fn what_cannot_be_saved_stops_all_processes() {
    let folder = tempfile::tempdir().unwrap();
    let text = saving(&folder.path().join("absent"));
    let compilation = engine::compiled("saving.spmd", &text, "", None).unwrap();
    let words = ["x=normal:1", "n=4", "at=ones"].map(str::to_string);
    let inputs = engine::inputs(&compilation, &words, &root()).unwrap();
    let loaded = Loaded::new(&compilation).unwrap();
    let alone = loaded.run(&inputs, None);
    assert!(alone.as_ref().is_err_and(|failure| failure.code == "E0704" && failure.line == 7), "{:?}", alone.err());
    for number in 0..4 {
        same_in_processes(&loaded, &inputs, alone.as_ref(), number).unwrap();
    }
}

/// A process that does not come leaves no file.
#[test]
fn a_file_of_which_a_process_is_missing_does_not_appear() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display();
    let text = format!("mesh (X = 4);\nfn main(x: f32[8@X]) {{ save(\"{path}/x.npz\", x); x }}");
    let compilation = engine::compiled("saving.spmd", &text, "", None).unwrap();
    let inputs = engine::inputs(&compilation, &[], &root()).unwrap();
    let (_, failures) = printed_by_processes(&compilation, &inputs, 2, Duration::from_millis(200), 1);
    assert!(failures.len() == 1 && failures[0].starts_with("E0809"), "{failures:?}");
    assert!(taken(folder.path()).is_empty());
}

/// An all-reduce between `P` processes brings each of them `2 (P - 1) / P` of the bytes of its result, and the bits of one process.
#[test]
fn reductions_receive_the_least_bytes_and_the_same_bits() {
    /// A sum whose result has `elements` on each process, of which the processes of a group receive `parts` of `of` times as many.
    struct Sum {
        mesh: &'static str,
        processes: usize,
        from: &'static str,
        elements: usize,
        received: (usize, usize),
    }
    let sum = |mesh, processes, from, elements, received| Sum { mesh, processes, from, elements, received };
    let all = |mesh, processes, received| sum(mesh, processes, "[16@(X, Y), 20, 1001]", 20_020, received);
    let sums = [
        all("2x4", 2, (1, 1)),
        all("2x4", 4, (6, 4)),
        all("2x4", 8, (14, 8)),
        all("4x2", 4, (6, 4)),
        all("16x1", 16, (30, 16)),
        // Of three devices in each of two processes, the sum of a pair of neighbours and a value alone come from the other process.
        all("3x2", 2, (3, 2)),
        all("3x2", 3, (4, 3)),
        all("3x2", 6, (10, 6)),
        // Sums along some axes are of several groups.
        sum("2x4", 2, "[16@X, 20, 8008@Y]", 20 * 8008, (1, 1)),
        sum("4x2", 4, "[16@X, 20, 4004@Y]", 20 * 4004, (6, 4)),
        sum("4x2", 8, "[16@X, 20, 4004@Y]", 20 * 2002, (6, 4)),
        sum("2x4", 8, "[16@Y, 20, 2002@X]", 20 * 1001, (6, 4)),
        sum("2x4", 4, "[16@Y, 20, 2002@X]", 20 * 1001, (1, 1)),
    ];
    for Sum { mesh, processes, from, elements, received } in sums {
        for (dtype, op) in [("f32", "sum"), ("f64", "max"), ("i32", "sum"), ("f32", "min"), ("i64", "prod")] {
            let to = from.replace("[16@(X, Y), ", "[").replace("[16@X, ", "[").replace("[16@Y, ", "[");
            let text = format!("mesh (X = 2, Y = 4);\nfn main(x: {dtype}{from}) -> {dtype}{to} {{ {op}(x, 0) }}");
            let size = dtype[1..].parse::<u64>().unwrap() / 8;
            let (parts, of) = (received.0 as u64, received.1 as u64);
            let bytes = (elements as u64 * size * parts).div_ceil(of);
            let found = received_in(&text, mesh, processes);
            // A share may be one of 20 rows longer than another one.
            let rounding = if 20 % processes == 0 { 0 } else { elements as u64 * size / 20 };
            assert!(
                (bytes..=bytes + 2 * rounding + 64).contains(&found),
                "{dtype} {op} {from} on {mesh} in {processes} processes: {found} bytes instead of {bytes}"
            );
        }
    }
}

/// Narrow floats are combined in f32: their values travel as they are, or combined if that is not more bytes.
#[test]
fn reductions_of_narrow_floats_receive_few_bytes_and_the_same_bits() {
    let elements = 80 * 1000;
    let cases = [
        // Of three other devices two bytes of each element of a quarter of the elements; then three quarters of the results.
        ("bf16", "4", 4, 2 * 6 * elements / 4),
        ("f16", "2", 2, 2 * elements),
        // The values of four devices in f32, of half the elements; then the other half of the results.
        ("f16", "8", 2, 4 * elements / 2 + 2 * elements / 2),
        // The values of two devices take as many bytes alone.
        ("f16", "8", 4, 3 * 4 * elements / 4 + 2 * 3 * elements / 4),
        ("f8e4m3", "8", 2, 4 * elements / 2 + elements / 2),
        ("f8e5m2", "8", 4, 3 * 2 * elements / 4 + 3 * elements / 4),
        ("f8e5m2", "16", 2, 4 * elements / 2 + elements / 2),
        // A pair in f32, and one device alone.
        ("bf16", "6", 2, 6 * elements / 2 + 2 * elements / 2),
    ];
    for (dtype, mesh, processes, bytes) in cases {
        for op in ["psum", "pmax", "pmin"] {
            let text = format!(
                "mesh (X = 8);\nmanual(X) fn main(x: {dtype}[48@X, 80, 1000]) -> {dtype}[80, 1000] {{ {op}(max(x, axis=0), X) }}"
            );
            let found = received_in(&text, mesh, processes);
            assert!(
                (bytes..bytes + 64).contains(&found),
                "{dtype} {op} on {mesh} in {processes} processes: {found} bytes instead of {bytes}"
            );
        }
    }
}

/// Below 64 KiB a second message would cost more than the bytes that it saves.
#[test]
fn small_reductions_take_one_round() {
    let text = "mesh (X = 2, Y = 4);\nfn main(x: f32[16@(X, Y), 4, 1000]) -> f32[4, 1000] { sum(x, 0) }";
    assert_eq!(received_in(text, "2x4", 4), 3 * 16_000);
}

/// The memory of messages is known before the run, and counts for the limit beside that of the program.
#[test]
fn messages_count_for_the_limit_of_memory() {
    let text = "mesh (X = 2, Y = 4);\nfn main(x: f32[16@(X, Y), 80, 1000]) -> f32[80, 1000] { sum(x, 0) }";
    let compilation = engine::compiled("sum.spmd", text, "", None).unwrap();
    let inputs = engine::inputs(&compilation, &[], &root()).unwrap();
    let loaded = Loaded::new(&compilation).unwrap();
    let with_limit = |limit| {
        let options = RunOptions { memory_limit: Some(limit), ..engine::options(Some(1)) };
        loaded.run_in_processes(&inputs, (4, &options)).err()
    };
    let limits = (1..64).map(|step| step * (128 << 10));
    let failures: Vec<_> = limits.map_while(with_limit).collect();
    assert!(failures.iter().all(|failure| failure.code == "E0803"), "{failures:?}");
    let of_program = failures.iter().filter(|failure| failure.message.starts_with("the program needs")).count();
    // A quarter of the result from and to each of three processes: 480 KB, three or four steps.
    let of_messages = failures.iter().filter(|failure| failure.message.starts_with("messages between processes need"));
    assert!(of_program > 0 && (3..=4).contains(&of_messages.count()), "{failures:?}");
}

/// The most bytes that a process receives, if so many processes compute the bits that one does.
fn received_in(text: &str, mesh: &str, processes: usize) -> u64 {
    let compilation = engine::compiled("sum.spmd", text, mesh, None).unwrap();
    let inputs = engine::inputs(&compilation, &[], &root()).unwrap();
    let loaded = Loaded::new(&compilation).unwrap();
    let alone = loaded.run(&inputs, None).unwrap();
    let found = loaded.run_in_processes(&inputs, (processes, &engine::options(Some(1)))).unwrap();
    assert!(found.results == alone.results, "in {processes} processes on {mesh} it has other bits: {text}");
    found.received
}

/// A layout that fewer bytes cross hosts for is chosen where hosts are known, and what a plan says of it is what processes receive.
#[test]
fn fewer_bytes_cross_known_hosts() {
    // Each of two hosts has all blocks of `b`, of which a device needs more bytes than of `a`.
    let text = "mesh (X = 2, Y = 4);\nfn main(a: f32[4096@X, 64], b: f32[4096@Y, 64]) { a + b }";
    let [(without, counted), (with, known)] = [None, Some(2)].map(|hosts| crossing(hosts, text, "2x4", 2));
    assert_eq!((counted, with, known), (None, 0, Some(0)));
    assert!(without >= 4096 * 64 * 4 / 2, "{without} bytes");
}

/// Where hosts are known, few long messages take the place of many short ones.
#[test]
fn fewer_messages_cross_known_hosts() {
    let programs = [
        "fn main(r: f32[4096@X], i: f32[4096@X]) { let z = fft(complex(r, i)); (real(z), imag(z)) }",
        "fn main(a: f32[256@X, 256], b: f32[256@X, 2]) { solve(a + 40 * eye(256), b) }",
    ];
    for body in programs {
        let text = format!("mesh (X = 8);\n{body}");
        let count = |hosts: Option<usize>| {
            let compilation = engine::compiled_for_hosts(hosts, &text, "").unwrap();
            let inputs = engine::inputs(&compilation, &[], &root()).unwrap();
            let expected = engine::evaluated(&text, &compilation.stages[0], &inputs).unwrap();
            let found = engine::run(&compilation, &inputs, None).unwrap().results;
            for (expected, found) in expected.iter().zip(&found) {
                assert_eq!(difference(expected, found, Tolerance::reassociated(expected.dtype)), None, "{text}");
            }
            collectives(compilation.stage(Stage::Optimized).unwrap()).len()
        };
        let [unknown, one, two] = [None, Some(1), Some(2)].map(count);
        assert!(one == unknown && two < unknown, "{unknown}, {one} and {two} collectives: {text}");
    }
}

/// A value that goes to another host is there later.
#[test]
fn timelines_have_messages_between_hosts() {
    let text = "mesh all (S = 2, X = 2); mesh a = all[S = 0]; mesh b = all[S = 1];
        fn main(x: f32[64@X] on a) { transfer(sin(x), b, P(X)) * 2 }";
    let total = |hosts: Option<usize>| {
        let compilation = engine::compiled_for_hosts(hosts, text, "").unwrap();
        timeline(compilation.program.as_ref().unwrap(), compilation.hosts).unwrap().total
    };
    let [unknown, one, two, four] = [None, Some(1), Some(2), Some(4)].map(total);
    assert_eq!(one, unknown);
    // A message of 256 bytes to one host, or of 128 to each of two.
    let levels = Levels::DEFAULT;
    assert!((two - unknown - levels.time_between(256)).abs() < 1e-6, "{two} and {unknown}");
    assert!((four - unknown - levels.time_between(128)).abs() < 1e-6, "{four} and {unknown}");
}

/// The bytes that `spmdc plan` shows for hosts are those that processes receive.
#[test]
fn planned_bytes_between_hosts_are_received() {
    let moved = |from: &str, to: &str| format!("fn main(x: f32[{from}]) -> f32[{to}] {{ x }}");
    // Blocks of more than 16 KiB: devices have smaller ones for themselves, and receive them so.
    let bodies = [
        moved("64@X, 4096", "64, 4096"),
        moved("64@Y, 4096", "64, 4096"),
        moved("64@X, 4096", "64, 4096@X"),
        moved("64@(X, Y), 4096", "64, 4096@Y"),
        moved("64@(X, Y), 4096", "64@(Y, X), 4096"),
        moved("64@X, 4096@Y", "64@Y, 4096@X"),
        "fn main(x: f32[64@(X, Y), 64, 512]) -> f32[64, 512] { sum(x, axis=0) }".to_string(),
        "fn main(x: f32[64@(X, Y), 64, 4096]) -> f32[64@X, 4096] { sum(x, axis=0) }".to_string(),
        "fn main(x: f32[64@X, 64@Y, 4096]) -> f32[64@Y, 4096] { sum(x, axis=0) }".to_string(),
        "fn main(x: f32[64@X, 64]) -> f32 { sum(x) }".to_string(),
        "fn main(x: f32[64@(X, Y), 4096]) -> f32[64@(X, Y), 4096] { roll(x, 1, axis=0) }".to_string(),
        "manual(X) fn main(x: f32[64@X, 4096]) -> f32[ROWS, 4096] { psum(x, X) }".to_string(),
        "manual(Y) fn main(x: f32[64@Y, 4096]) -> f32[64, 4096] { all_gather(x, Y) }".to_string(),
    ];
    for (mesh, hosts) in [("2x4", 2), ("2x4", 4), ("4x2", 4), ("4x4", 4), ("2x4", 8)] {
        for body in &bodies {
            let rows = if mesh.starts_with('2') { "32" } else { "16" };
            let body = body.replace("ROWS", rows);
            let (received, planned) = crossing(Some(hosts), &format!("mesh (X = 2, Y = 4);\n{body}"), mesh, hosts);
            let planned = planned.unwrap();
            // A box of a message begins at a multiple of 16 bytes.
            assert!(
                (planned..=planned + 256).contains(&received),
                "{received} bytes received and {planned} planned on {mesh} with {hosts} hosts: {body}"
            );
        }
    }
}

/// The most bytes that a process receives, of a program that is compiled for these hosts and computes what it computes without them; and
/// the bytes that a host receives by the plan.
fn crossing(hosts: Option<usize>, text: &str, mesh: &str, processes: usize) -> (u64, Option<u64>) {
    let compilation = engine::compiled_for_hosts(hosts, text, mesh).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    let mut inputs = engine::inputs(&compilation, &[], &root()).unwrap();
    for input in &mut inputs {
        // Whole numbers have the same sums in every order.
        for (element, number) in input.bytes.chunks_exact_mut(4).zip((0..7u8).cycle()) {
            element.copy_from_slice(&f32::from(number).to_le_bytes());
        }
    }
    let loaded = Loaded::new(&compilation).unwrap();
    let alone =
        Loaded::new(&engine::compiled_for_hosts(None, text, mesh).unwrap()).unwrap().run(&inputs, None).unwrap();
    let found = loaded.run_in_processes(&inputs, (processes, &engine::options(Some(1)))).unwrap();
    assert!(found.results == alone.results, "for {hosts:?} hosts on {mesh} it has other results: {text}");
    let module = compilation.stage(Stage::Optimized).unwrap();
    let planned = hosts.map(|_| collectives(module).iter().map(|collective| collective.crossing).sum());
    (found.received, planned)
}

/// Runs the first `running` of so many processes. The output of the first one, and the failures of all: code and message for E0809, the
/// code alone for others.
fn printed_by_processes(
    compilation: &Compilation,
    inputs: &[HostArray],
    count: usize,
    timeout: Duration,
    running: usize,
) -> (String, Vec<String>) {
    let program = compilation.program.clone().unwrap();
    let code = backends::DEFAULT.load(&compilation.kernels).unwrap();
    let functions = code.functions().unwrap();
    let run = |process: Process| {
        // SAFETY: these are the kernels of this very program, and `code` outlives the sessions.
        let kernels = unsafe { Kernels::new(functions.to_vec()) };
        let options = RunOptions { timeout, ..RunOptions::default() };
        let mut session = Session::load_in(Some(process), program.clone(), in_process(kernels), options).unwrap();
        for (index, input) in inputs.iter().enumerate() {
            session.write_param(index, &mut input.clone()).unwrap();
        }
        let mut printed = Vec::new();
        let failure = session.run(&mut printed).err().map(|error| match error.code == RunCode::E0809 {
            true => format!("E0809 {}", error.message),
            false => error.code.to_string(),
        });
        (String::from_utf8(printed).unwrap(), failure)
    };
    let outcomes: Vec<(String, Option<String>)> = std::thread::scope(|scope| {
        let run = &run;
        let processes = Process::threads(count).into_iter().take(running);
        let threads: Vec<_> = processes.map(|process| scope.spawn(move || run(process))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let failures = outcomes.iter().filter_map(|(_, failure)| failure.clone()).collect();
    (outcomes.into_iter().next().unwrap().0, failures)
}
