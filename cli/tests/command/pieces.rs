//! Files of one process or one device, `{process}` and `{device}` in their names: in one process, and in two where an MPI is installed.

use std::fs;

use crate::folder::{Folder, SPMDC, Said};

const BLOCKS: &str = "mesh (X = 4);\nfn main(x: f32[6@X, 3]) -> f32[6@X, 3] { 2 * x }\n";

/// The shape that the header of a .npy file says.
fn shape(folder: &Folder, name: &str) -> String {
    let bytes = fs::read(folder.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let header = String::from_utf8_lossy(&bytes[..128]).into_owned();
    header.split("'shape': ").nth(1).unwrap().split(')').next().unwrap().to_string() + ")"
}

/// `spmdc run` with these words in so many processes; None without an MPI.
fn in_processes(folder: &Folder, count: usize, words: &[&str]) -> Option<Said> {
    let count = count.to_string();
    let said = folder.spmdc(&[&["launch", "-n", &count, "--", SPMDC, "run"], words].concat());
    if said.err.contains("no MPI launcher was found") {
        eprintln!("skipped: no MPI is installed");
        return None;
    }
    Some(said)
}

fn in_two_processes(folder: &Folder, words: &[&str]) -> Option<Said> {
    in_processes(folder, 2, words)
}

#[test]
fn each_device_has_a_file() {
    let folder = Folder::with(&[("p.spmd", BLOCKS)]);
    let write = ["p.spmd", "--arg", "x=iota", "--out", "block-{device}.npy"];
    let read = ["p.spmd", "--arg", "x=@block-{device}.npy"];
    let names: Vec<String> = (0..4).map(|device| format!("block-{device}.npy")).collect();
    folder.spmdc(&[&["run"], &write[..]].concat()).expect(0, "", "");
    let shapes: Vec<String> = names.iter().map(|name| shape(&folder, name)).collect();
    assert_eq!(shapes, ["(2, 3)", "(2, 3)", "(2, 3)", "(0, 3)"]);
    let expected = "[[ 0.  4.  8.]\n [12. 16. 20.]\n [24. 28. 32.]\n [36. 40. 44.]\n [48. 52. 56.]\n [60. 64. 68.]]\n";
    folder.spmdc(&[&["run"], &read[..]].concat()).expect(0, expected, "");
    if let Some(said) = in_two_processes(&folder, &read) {
        said.expect(0, expected, "");
        names.iter().for_each(|name| fs::remove_file(folder.path().join(name)).unwrap());
        in_two_processes(&folder, &write).unwrap().expect(0, "", "");
        assert_eq!(names.iter().map(|name| shape(&folder, name)).collect::<Vec<_>>(), shapes);
        folder.spmdc(&[&["run"], &read[..]].concat()).expect(0, expected, "");
    }
    // One that is missing, and one of another shape.
    fs::copy(folder.path().join(&names[3]), folder.path().join(&names[1])).unwrap();
    let said = folder.spmdc(&[&["run"], &read[..]].concat());
    said.expect(2, "", "E0701");
    said.expect(2, "", "of which the block of device 1 should have the shape [2, 3], but `block-1.npy` is f32[0, 3]");
    fs::remove_file(folder.path().join(&names[1])).unwrap();
    folder.spmdc(&[&["run"], &read[..]].concat()).expect(2, "", "block-1.npy");
}

#[test]
fn each_process_has_a_file() {
    let folder = Folder::with(&[("p.spmd", BLOCKS)]);
    let write = ["p.spmd", "--arg", "x=iota", "--out", "rows-{process}.npy"];
    let read = ["p.spmd", "--arg", "x=@rows-{process}.npy", "--out", "back.npy"];
    folder.spmdc(&["run", "p.spmd", "--arg", "x=iota", "--out", "whole.npy"]).expect(0, "", "");
    folder.spmdc(&[&["run"], &write[..]].concat()).expect(0, "", "");
    let file = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert!(file("rows-0.npy") == file("whole.npy"), "one process has all rows");
    folder.spmdc(&["run", "p.spmd", "--arg", "x=@whole.npy", "--out", "twice.npy"]).expect(0, "", "");
    if let Some(said) = in_two_processes(&folder, &write) {
        said.expect(0, "", "");
        assert_eq!(["rows-0.npy", "rows-1.npy"].map(|name| shape(&folder, name)), ["(4, 3)", "(2, 3)"]);
        in_two_processes(&folder, &read).unwrap().expect(0, "", "");
        assert!(file("back.npy") == file("twice.npy"), "the rows come back");
        // The files are those of two processes.
        let said = folder.spmdc(&[&["run"], &read[..]].concat());
        said.expect(
            2,
            "",
            "of which the rows of process 0 should have the shape [6, 3], but `rows-0.npy` is f32[4, 3]",
        );
    }
}

#[test]
fn structs_complex_numbers_and_meshes_are_in_pieces() {
    let text = "
        mesh all (half = 2, X = 2);
        mesh first = all[half = 0];
        mesh second = all[half = 1];
        type P = { w: f32[4@X, 3], b: c64[4@X] };
        fn main(p: P on second) { p }";
    let folder = Folder::with(&[("p.spmd", text)]);
    let write = ["p.spmd", "--arg", "p.w=iota", "--arg", "p.b=normal:1", "--out", "p-{device}.npz", "--out", "p.npz"];
    let read = ["p.spmd", "--arg", "p=@p-{device}.npz", "--out", "again.npz"];
    folder.spmdc(&[&["run"], &write[..]].concat()).expect(0, "", "");
    // Device 2 is the first of the second half.
    assert!(!folder.path().join("p-0.npz").exists() && folder.path().join("p-2.npz").exists());
    let same = || {
        let [a, b] = ["p.npz", "again.npz"].map(|name| fs::read(folder.path().join(name)).unwrap());
        assert!(a == b, "the arrays come back");
    };
    folder.spmdc(&[&["run"], &read[..]].concat()).expect(0, "", "");
    same();
    if let Some(said) = in_two_processes(&folder, &read) {
        said.expect(0, "", "");
        same();
    }
}

#[test]
fn what_cannot_be_in_pieces_is_refused() {
    let text = "mesh (X = 4);\nfn main(x: f32[6, 8@X]) -> f32[6, 8@X] { x }\n";
    let stream = "mesh (X = 4);\nfn main(x: stream f32[8, 4@X]) { sum(x[0]) }\n";
    let folder = Folder::with(&[("p.spmd", text), ("s.spmd", stream)]);
    let said = folder.spmdc(&["run", "s.spmd", "--arg", "x=@x-{process}.npy"]);
    said.expect(2, "", "the stream `x` must be read from a single file");
    folder.spmdc(&["run", "p.spmd", "--arg", "x=iota", "--out", "no/x-{device}.npy"]).expect(2, "", "E0704");
    // Each device has columns. One process has all of them, two have the whole of no row.
    let words = ["p.spmd", "--arg", "x=iota", "--out", "x-{process}.npy", "--out", "x.npy"];
    folder.spmdc(&[&["run"], &words[..]].concat()).expect(0, "", "");
    let [whole, piece] = ["x.npy", "x-0.npy"].map(|name| fs::read(folder.path().join(name)).unwrap());
    assert!(whole == piece, "one process has all columns");
    if let Some(said) = in_two_processes(&folder, &words) {
        assert!(said.status != 0 && said.err.contains("are divided among processes"), "{}", said.err);
        assert!(said.err.contains("write a file for each device: `x-{device}.npy`"), "{}", said.err);
    }
}

/// One number for each device of two processes out of four; the others have no part in it.
#[test]
fn some_of_the_processes_have_an_array() {
    let text = "
        mesh all (i = 4, j = 2);
        mesh some (a = 2, b = 2) devices [0, 1, 2, 3];
        fn main(x: i32[2@a, 2@b] on some) -> (i32[2@a, 2@b], i32) { (x, sum(x)) }";
    let folder = Folder::with(&[("p.spmd", text)]);
    folder.spmdc(&["run", "p.spmd", "--arg", "x=iota", "--out", "0=number-{device}.npy"]).expect(0, "", "");
    assert_eq!(shape(&folder, "number-3.npy"), "(1, 1)");
    let words = ["p.spmd", "--arg", "x=@number-{device}.npy"];
    let expected = "0: i32[2@a,2@b] on some\n[[0 1]\n [2 3]]\n1: i32 on some\n6\n";
    folder.spmdc(&[&["run"], &words[..]].concat()).expect(0, expected, "");
    if let Some(said) = in_processes(&folder, 4, &words) {
        assert_eq!((said.status, said.out.as_str()), (0, expected), "{}", said.err);
    }
}
