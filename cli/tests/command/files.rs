//! Files that are not what they should be, and commands that are ended while they write.

use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::folder::{Folder, Said, is_ignored, spmdc};

const PROGRAM: &str = "const N = 4;\nmesh (X = 2);\nfn main(x: f32[N@X]) { (x, 2 * x) }\n";

fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn only_files_that_end_are_read() {
    let folder = Folder::with(&[("p.spmd", PROGRAM), ("q.spmd", "import \"pipe.spmd\" as a;\nfn main() { 1 }\n")]);
    make_pipe(&folder.path().join("pipe.spmd"));
    make_pipe(&folder.path().join("pipe.npz"));
    folder.spmdc(&["run", "p.spmd", "--arg", "x=@/dev/zero"]).expect(2, "", "cannot read `/dev/zero`: it is a device");
    folder.spmdc(&["check", "/dev/zero"]).expect(2, "", "it is a device");
    folder.spmdc(&["check", "."]).expect(2, "", "it is a directory");
    folder.spmdc(&["check", "pipe.spmd"]).expect(2, "", "it is a pipe");
    folder.spmdc(&["check", "q.spmd"]).expect(1, "", "it is a pipe");
    fs::write(folder.path().join("large.spmd"), " ".repeat((16 << 20) + 1)).unwrap();
    folder.spmdc(&["check", "large.spmd"]).expect(2, "", "it is larger than 16 MiB");
}

#[test]
fn an_array_may_come_out_of_a_pipe() {
    let folder = Folder::with(&[("p.spmd", PROGRAM)]);
    folder.spmdc(&["run", "p.spmd", "--arg", "x=iota", "--out", "0=x.npy"]).expect(0, "", "");
    let array = fs::read(folder.path().join("x.npy")).unwrap();
    let piped = |bytes: &[u8], name: &str| {
        make_pipe(&folder.path().join(name));
        thread::scope(|scope| {
            scope.spawn(|| fs::write(folder.path().join(name), bytes));
            folder.spmdc(&["run", "p.spmd", "--arg", &format!("x=@{name}")])
        })
    };
    piped(&array, "whole.npy").expect(0, "[0. 2. 4. 6.]", "");
    piped(&array[..140], "part.npy").expect(2, "", "cannot read `part.npy`: it is truncated after 12 bytes of 16");
}

/// A program that reads a file of `ROWS` rows in batches, and one row by its number.
const STREAM: &str = "const ROWS = 40;
    mesh (X = 3, Y = 2);
    fn main(data: stream i32[ROWS@X, 5@Y], i: i32) {
      let mut sum = zeros(i32[5]);
      for t in 0..ROWS / 8 {
        let rows = data[t * 8 : (t + 1) * 8];
        sum += reduced(rows);
        if t % 100 == 0 { print(\"trip {}\", t); }
      }
      (sum, data[i])
    }
    fn reduced(rows) { sum(rows * reshape(arange(8) + 1, (8, 1)), axis=0) }";

#[test]
fn rows_of_a_stream_are_read_where_they_lie() {
    let text = "fn main(data: i32[40, 5]) { (data, { a: data, b: data[:3] }, data) }";
    let folder = Folder::with(&[("p.spmd", STREAM), ("make.spmd", text)]);
    let files = ["--out", "0=x.npy", "--out", "1=x.npz", "--out", "2=x.safetensors"];
    folder.spmdc(&[&["run", "make.spmd", "--arg", "data=iota"], &files[..]].concat()).expect(0, "", "");
    let found = "[18600 18780 18960 19140 19320]";
    for argument in ["data=iota", "data=@x.npy", "data=@x.npz:a", "data=@x.safetensors:2"] {
        for mesh in ["3x2", "1x1", "1x7"] {
            let said = folder.spmdc(&["run", "p.spmd", "--mesh", mesh, "--arg", argument, "--arg", "i=-1"]);
            said.expect(0, found, "");
            said.expect(0, "[195 196 197 198 199]", "");
        }
    }
    let given = ["--arg", "data=@x.npy", "--arg", "i=-1"];
    folder.spmdc(&["build", "p.spmd", "-o", "p"]).expect(0, "", "");
    let mut built = Command::new(folder.path().join("p"));
    built.args(given).args(["--bench", "3", "--timeout", "9"]).current_dir(folder.path());
    let built = Said::of(built.output().unwrap());
    built.expect(0, found, "");
    folder.spmdc(&["plan", "p.spmd"]).expect(0, "rows read of streams", "");
    let json = folder.spmdc(&["dump", "p.spmd", "--stage", "optimized", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!((&json["params"][0]["type"], &json["reads"][0]["trips"]), (&"stream i32[40,5]".into(), &5.into()));
    folder.spmdc(&["viz", "p.spmd", "--value", "data"]).expect(0, "stays in its file", "");
    folder.spmdc(&["build", "p.spmd", "--emit", "lib"]).expect(
        2,
        "",
        "a library cannot have a stream as a parameter: `data: stream",
    );
}

#[test]
fn files_that_cannot_be_streamed_are_refused() {
    let text = "fn main(data: i32[5, 40]) { (data.T, f32(data.T), data.T[:39]) }";
    let folder = Folder::with(&[("p.spmd", STREAM), ("make.spmd", text)]);
    let files = ["--out", "0=x.npy", "--out", "1=f.npy", "--out", "2=short.npy"];
    folder.spmdc(&[&["run", "make.spmd", "--arg", "data=iota"], &files[..]].concat()).expect(0, "", "");
    let refused = |file: &str, status: i32, error: &str| {
        let argument = format!("data=@{file}");
        folder.spmdc(&["run", "p.spmd", "--arg", &argument, "--arg", "i=0"]).expect(status, "", error);
    };
    refused("none.npy", 2, "cannot read `none.npy`: No such file or directory");
    refused("f.npy", 2, "`data` has type stream i32[40,5], but `f.npy` is f32[40, 5]");
    refused("short.npy", 2, "but `short.npy` is i32[39, 5]");
    let whole = fs::read(folder.path().join("x.npy")).unwrap();
    fs::write(folder.path().join("cut.npy"), &whole[..whole.len() - 4]).unwrap();
    refused("cut.npy", 2, "it is truncated");
    let at = whole.windows(5).position(|bytes| bytes == b"False").unwrap();
    let mut fortran = whole.clone();
    fortran[at..at + 5].copy_from_slice(b"True ");
    fs::write(folder.path().join("fortran.npy"), &fortran).unwrap();
    refused("fortran.npy", 2, "np.ascontiguousarray");
    make_pipe(&folder.path().join("pipe.npy"));
    thread::scope(|scope| {
        scope.spawn(|| fs::write(folder.path().join("pipe.npy"), &whole));
        refused("pipe.npy", 2, "this is a pipe");
    });
    refused("x.npy", 0, "");
}

/// The rows that are read exist, the rest of the file takes no place: neither on the disk nor in memory.
#[test]
fn a_file_larger_than_memory_is_read_in_part() {
    let text = "const STEPS = 40;
        fn main(data: stream u8[4_000_000, 1000]) {
          let mut sum = 0;
          for t in 0..STEPS { sum += i32(max(data[t * 1000 : (t + 1) * 1000])); print(\"{}\", t); }
          (sum, data[3_999_999][999])
        }";
    let folder = Folder::with(&[("p.spmd", text)]);
    let mut content = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    content
        .extend(format!("{:<117}\n", "{'descr': '|u1', 'fortran_order': False, 'shape': (4000000, 1000), }").bytes());
    fs::write(folder.path().join("x.npy"), &content).unwrap();
    let file = fs::OpenOptions::new().write(true).open(folder.path().join("x.npy")).unwrap();
    file.set_len(128 + 4_000_000_000).unwrap();
    file.write_all_at(&[7], 128 + 5_000_123).unwrap();
    file.write_all_at(&[9], 128 + 3_999_999_999).unwrap();
    let said = folder.spmdc(&["run", "p.spmd", "--arg", "data=@x.npy", "--stats", "json"]);
    said.expect(0, "0: i32\n7\n1: u8\n9\n", "");
    let stats: serde_json::Value = serde_json::from_str(&said.err).unwrap();
    let peak = stats["peak_bytes_per_device"].as_u64().unwrap();
    // A batch, and another one that is read ahead.
    assert!((2_000_000..2_200_000).contains(&peak), "{peak}");
    assert_eq!(stats["collectives"], serde_json::json!([]));

    // The file becomes shorter while the program runs.
    let program = spmdc()
        .args(["run", "p.spmd", "--set", "STEPS=4000", "--arg", "data=@x.npy"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .current_dir(folder.path())
        .spawn();
    let mut program = program.unwrap();
    let mut first = [0; 2];
    program.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    file.set_len(128 + 2_000_000_000).unwrap();
    let output = Said::of(program.wait_with_output().unwrap());
    output.expect(3, "", "cannot read `x.npy`: it was truncated while it was being read");
    output.expect(3, "", "p.spmd:4:");
}

/// A program writes files while it runs, and a run on another mesh goes on from one of them.
#[test]
fn a_program_saves_and_goes_on() {
    let text = "mesh (X = 3);
        fn main(p: { w: f32[10@X], inner: (c64[4@X], i32) }) {
          let mut p = p;
          for step in 0..3 {
            p = { w: 2 * p.w + 1, inner: (p.inner.0 * 2, p.inner.1 + 1) };
            save(\"ckpt-{:02}.npz\", p.inner.1, p);
          }
          save(\"w.npy\", p.w);
          p
        }";
    let folder = Folder::with(&[("p.spmd", text)]);
    let given = ["--arg", "p.w=iota", "--arg", "p.inner.0=ones", "--arg", "p.inner.1=0"];
    let shown = folder.spmdc(&[&["run", "p.spmd"], &given[..]].concat());
    shown.expect(0, "w: f32[10@X]\n[ 7. 15. 23. 31. 39. 47. 55. 63. 71. 79.]\n", "");
    let mut files = names(folder.path());
    files.sort();
    assert_eq!(files, ["ckpt-01.npz", "ckpt-02.npz", "ckpt-03.npz", "p.spmd", "w.npy"]);
    folder.spmdc(&["run", "p.spmd", "--mesh", "4", "--arg", "p=@ckpt-02.npz"]).expect(
        0,
        "[ 31.  63.  95. 127. 159. 191. 223. 255. 287. 319.]\ninner.0: c64[4@X]\n[32.+0.j 32.+0.j 32.+0.j 32.+0.j]\ninner.1: i32\n5\n",
        "",
    );
    assert_eq!(names(folder.path()).len(), 7, "each run writes its own three");
    // A built program saves, too.
    folder.spmdc(&["build", "p.spmd", "-o", "p"]).expect(0, "", "");
    fs::remove_file(folder.path().join("w.npy")).unwrap();
    assert!(Command::new(folder.path().join("p")).args(given).current_dir(folder.path()).status().unwrap().success());
    assert!(folder.path().join("w.npy").is_file());
}

/// Saved arrays of several meshes are written by the mesh that has most of them, in program order, wherever its devices are.
#[test]
fn a_program_of_several_meshes_saves() {
    let text = "mesh a (X = 2);
        mesh b (Y = 3) devices [4, 2, 3];
        fn main(x: f32[4@X] on a, y: f32[10@Y] on b) {
          let mut x = x;
          let mut y = y;
          for step in 0..3 {
            x = 2 * x + 1;
            y = y + transfer(sum(x), b);
            print(\"{}\", sum(y));
            save(\"both-{}.npz\", step, { x: x, y: (y, step) });
            save(\"last.npy\", x);
          }
          save(\"last.npy\", y);
          if transfer(sum(y), a) > 0.0 { save(\"sum-{}.npz\", i32(sum(x)), { y: y[:2], k: 7 }); }
        }";
    let folder = Folder::with(&[("p.spmd", text)]);
    let said = folder.spmdc(&["run", "p.spmd", "--arg", "x=iota", "--arg", "y=ones"]);
    said.expect(0, "170.0\n530.0\n1290.0\n", "");
    let back = |ty: &str, name: &str| {
        fs::write(folder.path().join("q.spmd"), format!("fn main(x: {ty}) {{ x }}")).unwrap();
        folder.spmdc(&["run", "q.spmd", "--arg", &format!("x=@{name}")]).out
    };
    let repeated = |value: &str, times: usize| format!("[{}]", vec![value; times].join(" "));
    assert_eq!(back("f32[10]", "last.npy"), format!("f32[10]\n{}\n", repeated("129.", 10)));
    let y = repeated("53.", 10);
    let both = format!("x: f32[4]\n[ 3.  7. 11. 15.]\ny.0: f32[10]\n{y}\ny.1: i32\n1\n");
    assert_eq!(back("{ x: f32[4], y: (f32[10], i32) }", "both-1.npz"), both);
    assert_eq!(back("{ y: f32[2], k: i32 }", "sum-76.npz"), "y: f32[2]\n[129. 129.]\nk: i32\n7\n");
}

/// Without a terminal, progress is a line at the end; standard output does not change.
#[test]
fn progress_is_a_line_where_there_is_no_terminal() {
    let text = "mesh (X = 2);
        fn main(x: f32[4@X], n: i32) {
          let mut y = x;
          for i in 0..n { for j in 0..7 { y = 2 * roll(y, 1); } print(\"{} of many\", i); y = y / 128; }
          y
        }";
    let folder = Folder::with(&[("p.spmd", text), ("q.spmd", "fn main() { 1 }")]);
    let run = folder.spmdc(&["run", "p.spmd", "--arg", "x=ones", "--arg", "n=3", "--progress"]);
    run.expect(0, "2 of many\nf32[4@X]\n[1. 1. 1. 1.]\n", "7 of 7 trips in ");
    assert!(run.err.trim_end().ends_with(": 2 of many") && run.err.lines().count() == 1, "{}", run.err);
    let silent = folder.spmdc(&["run", "p.spmd", "--arg", "x=ones", "--arg", "n=3"]);
    assert_eq!((silent.out, silent.err), (run.out, String::new()));
    let without_loops = folder.spmdc(&["run", "q.spmd", "--progress"]);
    assert_eq!((without_loops.out.as_str(), without_loops.err.as_str()), ("i32\n1\n", ""));
}

#[test]
fn what_cannot_be_saved_stops_the_program() {
    let text = "mesh (X = 2);\nfn main(x: f32[4@X]) {\n  save(\"nowhere/x-{}.npz\", 1, x);\n  print(\"not reached\");\n  x\n}\n";
    let folder = Folder::with(&[("p.spmd", text)]);
    let stopped = folder.spmdc(&["run", "p.spmd", "--arg", "x=iota"]);
    stopped.expect(3, "", "cannot write `nowhere/x-1.npz`: No such file or directory");
    stopped.expect(3, "", "p.spmd:3:");
    assert_eq!(names(folder.path()), ["p.spmd"]);
}

/// Complex numbers are read and written as NumPy has them, and printed.
#[test]
fn complex_numbers_come_from_files_and_go_there() {
    let text = "mesh (X = 2);\nfn main(z: c64[3@X], p: { w: c128 }) { { double: z * 2, p: { w: conj(p.w) } } }";
    let folder = Folder::with(&[("p.spmd", text)]);
    let elements: Vec<u8> = [1.0f32, -2.0, 0.5, 0.0, 0.0, 3.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    let header = "{'descr': '<c8', 'fortran_order': False, 'shape': (3,), }\n";
    let len = (header.len() as u16).to_le_bytes();
    let file = [b"\x93NUMPY\x01\x00".as_slice(), &len, header.as_bytes(), &elements].concat();
    fs::write(folder.path().join("z.npy"), file).unwrap();
    let printed = "double: c64[3@X]\n[2.-4.j 1.+0.j 0.+6.j]\np.w: c128\n(1-1e-20j)\n";
    folder.spmdc(&["run", "p.spmd", "--arg", "z=@z.npy", "--arg", "p.w=1+1e-20j"]).expect(0, printed, "");
    let run = ["run", "p.spmd", "--arg", "z=@z.npy", "--arg", "p=ones", "--out"];
    folder.spmdc(&[&run[..], &["all.npz"]].concat()).expect(0, "", "");
    folder.spmdc(&[&run[..], &["double=d.npy"]].concat()).expect(0, "", "");
    folder.spmdc(&[&run[..], &["p=p.safetensors"]].concat()).expect(2, "", "`w` is complex");
    let made = fs::read(folder.path().join("d.npy")).unwrap();
    let doubled: Vec<u8> = [2.0f32, -4.0, 1.0, 0.0, 0.0, 6.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    assert!(made.ends_with(&doubled) && made.windows(5).any(|bytes| bytes == b"'<c8'"));
    let again = ["run", "p.spmd", "--arg", "z=@all.npz:double", "--arg", "p=@all.npz"];
    folder.spmdc(&again).expect(0, "double: c64[3@X]\n[4. -8.j 2. +0.j 0.+12.j]\np.w: c128\n(1+0j)\n", "");
    folder.spmdc(&["build", "p.spmd", "-o", "p"]).expect(0, "", "");
    let built =
        Command::new(folder.path().join("p")).args(["--arg", "z=[1j,2,3]", "--arg", "p=zeros"]).output().unwrap();
    let text = String::from_utf8_lossy(&built.stdout).into_owned();
    assert_eq!(text, "double: c64[3@X]\n[0.+2.j 4.+0.j 6.+0.j]\np.w: c128\n-0j\n");
    let wide = ["run", "p.spmd", "--arg", "z=@all.npz:p.w", "--arg", "p=ones"];
    folder.spmdc(&wide).expect(2, "", "`z` has type c64[3@X], but `all.npz:p.w` is c128");
}

/// Files of NumPy do not say which 8-bit floats they hold; the parameter does.
#[test]
fn eight_bit_floats_come_from_files_and_go_there() {
    let text = "fn main(x: f8e5m2[2], y: f8e4m3[2]) { (2 * x, y) }";
    let folder = Folder::with(&[("p.spmd", text)]);
    let array = |name: &str, descr: &str, bytes: [u8; 2]| {
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (2,), }}\n");
        let len = (header.len() as u16).to_le_bytes();
        let file = [b"\x93NUMPY\x01\x00", &len[..], header.as_bytes(), &bytes].concat();
        fs::write(folder.path().join(name), file).unwrap();
    };
    array("raw.npy", "<V1", [0x3c, 0x7b]);
    array("named.npy", "<f1", [0x3c, 0x7b]);
    array("bytes.npy", "|u1", [0x3c, 0x7b]);
    let header = r#"{"y":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]}}"#;
    let tensors = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &[0x38, 0xff]].concat();
    fs::write(folder.path().join("y.safetensors"), tensors).unwrap();
    let run = |x: &str, y: &str| {
        let (x, y) = (format!("x=@{x}"), format!("y=@{y}"));
        folder.spmdc(&["run", "p.spmd", "--arg", &x, "--arg", &y, "--out", "0=out.npy", "--out", "1=y.npy"])
    };
    for (x, y) in [("raw.npy", "y.safetensors"), ("named.npy", "y.npy")] {
        run(x, y).expect(0, "", "");
        // The number 1 doubled, and one that has no double.
        let (out, same) =
            (fs::read(folder.path().join("out.npy")).unwrap(), fs::read(folder.path().join("y.npy")).unwrap());
        assert!(out.windows(5).any(|word| word == b"'|V1'") && out.ends_with(&[0x40, 0x7c]), "{out:?}");
        assert!(same.ends_with(&[0x38, 0x7f]), "{same:?}");
    }
    run("named.npy", "named.npy").expect(2, "", "`y` has type f8e4m3[2], but `named.npy` is f8e5m2[2]");
    run("bytes.npy", "raw.npy").expect(2, "", "`x` has type f8e5m2[2], but `bytes.npy` is u8[2]");
    let way_out = "declare `x: u8[2]`, or convert the array before it is saved";
    run("bytes.npy", "raw.npy").expect(2, "", way_out);
    run("y.safetensors", "raw.npy").expect(2, "", "`x` has type f8e5m2[2], but `y.safetensors:y` is f8e4m3[2]");
    let given = |x: &str| folder.spmdc(&["run", "p.spmd", "--arg", "x=iota", "--arg", &format!("y={x}")]);
    given("[448,nan]").expect(0, "[448 nan]", "");
    given("[448,465]").expect(2, "", "465 does not fit into f8e4m3");
    given("[inf,0]").expect(2, "", "inf does not fit into f8e4m3");
}

#[test]
fn what_is_given_twice_is_refused() {
    let folder = Folder::with(&[("p.spmd", PROGRAM)]);
    folder.spmdc(&["check", "p.spmd", "--mesh", "X=2,X=3"]).expect(2, "", "axis `X` is given twice");
    folder.spmdc(&["check", "p.spmd", "--set", "N=8", "--set", "N=6"]).expect(2, "", "--set: `N` is given twice");
    let words = ["run", "p.spmd", "--arg", "x=ones", "--out", "0=y.npy", "--out", "1=./y.npy"];
    folder.spmdc(&words).expect(2, "", "`./y.npy`, which is also `y.npy`, would be written twice");
}

#[test]
fn a_dump_is_json_or_an_error() {
    let folder = Folder::with(&[("p.spmd", PROGRAM)]);
    for stage in ["ast", "typed", "propagated", "partitioned", "optimized", "clif", "asm"] {
        let said = folder.spmdc(&["dump", "p.spmd", "--stage", stage, "--format", "json"]);
        match said.status {
            0 => assert!(serde_json::from_str::<serde_json::Value>(&said.out).is_ok(), "{}", said.out),
            _ => said.expect(2, "", &format!("the stage `{stage}` cannot be written as JSON")),
        }
    }
}

/// The names in a folder.
fn names(folder: &Path) -> Vec<OsString> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

/// Ends the process by a signal as soon as `begun`; says whether it was ended by it.
fn ended(mut process: Child, signal: &str, begun: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while !begun() && process.try_wait().unwrap().is_none() {
        assert!(start.elapsed() < Duration::from_secs(60), "nothing is written");
        thread::sleep(Duration::from_micros(200));
    }
    assert!(Command::new("kill").args([signal, &process.id().to_string()]).status().is_ok());
    let status = process.wait().unwrap();
    status.signal().is_some()
}

#[test]
fn a_command_that_is_ended_leaves_nothing_behind() {
    let text = "fn main(x: f32) { broadcast_to(x, (4096, 16384)) }\n";
    let folder = Folder::with(&[("p.spmd", text)]);
    for (signal, _) in [("-TERM", 15), ("-INT", 2), ("-HUP", 1)].into_iter().filter(|&(_, number)| !is_ignored(number))
    {
        let at = |name: &OsString| folder.path().join(name);
        let is_large = |name: &OsString| fs::metadata(at(name)).is_ok_and(|metadata| metadata.len() > 1 << 16);
        let is_temporary = |name: &OsString| name.to_string_lossy().ends_with(".tmp");
        // The file may be complete before the signal comes; then it comes too late to show anything.
        let was_ended = (0..20).any(|_| {
            let mut command = spmdc();
            command.args(["run", "p.spmd", "--arg", "x=1", "--out", "y.npy"]).current_dir(folder.path());
            let begun = || names(folder.path()).iter().any(|name| is_temporary(name) && is_large(name));
            let was_ended = ended(command.spawn().unwrap(), signal, begun);
            let left = names(folder.path());
            assert!(!left.iter().any(is_temporary), "{signal}: {left:?}");
            was_ended
        });
        assert!(was_ended, "{signal}");
    }
}

#[test]
fn a_link_that_is_ended_leaves_nothing_behind() {
    let text = "fn main(x: f32[4]) { 2 * x }\n";
    // Writes as a linker does, and takes its time.
    let linker = "#!/bin/sh\ntouch \"$2\" begun\nexec sleep 20\n";
    let folder = Folder::with(&[("p.spmd", text), ("slow", linker)]);
    fs::set_permissions(folder.path().join("slow"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = spmdc();
    command.args(["build", "p.spmd", "-o", "program"]).current_dir(folder.path()).stderr(Stdio::null());
    let process = command.env("CC", folder.path().join("slow")).spawn().unwrap();
    assert!(ended(process, "-TERM", || folder.path().join("begun").exists()));
    let mut left = names(folder.path());
    left.sort();
    assert_eq!(left, ["begun", "p.spmd", "slow"]);
}
