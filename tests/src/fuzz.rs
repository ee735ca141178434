//! What anybody may give to the compiler and the runtime, as functions of bytes: each panics where something is wrong with the answer.
//!
//! A coverage-guided fuzzer calls them (`tests/fuzz`), and `tests/tests/fuzz.rs` does so briefly with texts and files that it damages.

use crate::compare::{Tolerance, difference};
use crate::engine::{self, Failure};
use crate::random::programs::{Scale, Writer};
use crate::random::{Draw, Mesh};
use spmdc_compiler::check::sources::{NoSources, SourceSet};
use spmdc_compiler::ir::Stage;
use spmdc_grammar::print;
use spmdc_grammar::span::FileId;
use spmdc_runtime::array::BlockSource;
use spmdc_runtime::io::npy::NpySource;
use spmdc_runtime::io::npz::NpzArchive;
use spmdc_runtime::io::safetensors::SafetensorsFile;
use std::fs;
use std::path::Path;

/// Programs that need more devices or memory than this are only checked: they would be slow, not wrong.
const MOST_DEVICES: usize = 16;
const MOST_BYTES: u64 = 1 << 20;

/// An entry point.
pub type Target = fn(&[u8]);

/// All of them, by name.
pub const TARGETS: [(&str, Target); 7] = [
    ("parse", parse),
    ("check", check),
    ("print_and_read", print_and_read),
    ("run", run),
    ("npy", npy),
    ("npz", npz),
    ("safetensors", safetensors),
];

/// A text that parses prints as a text that parses as the same.
pub fn parse(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (program, diagnostics) = spmdc_grammar::parse(&text, FileId(0));
    if diagnostics.is_empty() {
        let printed = print::program(&program);
        let (again, diagnostics) = spmdc_grammar::parse(&printed, FileId(0));
        assert!(diagnostics.is_empty(), "{diagnostics:?}\n{printed}");
        assert_eq!(print::program(&again), printed);
    }
}

fn no_bug(failures: &[Failure], text: &str) {
    let bug = failures.iter().find(|failure| failure.code == "E0999");
    assert!(bug.is_none(), "{bug:?}\n{text}");
}

/// Whatever a text says, it is compiled as far as there is no machine code yet, or wrong by a code of its own.
pub fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Err(failures) = engine::compiled("fuzz.spmd", &text, "", Some(Stage::Typed)) {
        return no_bug(&failures, &text);
    }
    if let Err(failures) = engine::compiled("fuzz.spmd", &text, "", None) {
        no_bug(&failures, &text);
    }
}

/// The dump of every stage of a program reads back as itself.
pub fn print_and_read(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (_, diagnostics) = SourceSet::load("fuzz.spmd", &text, &NoSources);
    if !diagnostics.is_empty() {
        return;
    }
    let Ok(compilation) = engine::compiled("fuzz.spmd", &text, "", Some(Stage::Optimized)) else { return };
    for module in &compilation.stages {
        let dump = spmdc_compiler::ir::print::module(module);
        let again = engine::compiled("dump.spmd", &dump, "", Some(module.stage));
        let printed = again.map(|again| spmdc_compiler::ir::print::module(&again.stages[0]));
        assert_eq!(printed.as_ref(), Ok(&dump), "{text}");
    }
}

/// A program of the random ones, chosen by the bytes, gives the evaluator's answer.
pub fn run(data: &[u8]) {
    let mut draw = Draw::of_tape(data);
    let mesh = Mesh::random(&mut draw, false);
    let machine = draw.machine();
    let wanted = 1 + draw.below(20);
    let mut writer = Writer::new(draw, mesh.clone(), Scale::Small);
    let shardings = writer.shardings();
    (0..wanted).for_each(|_| writer.statement());
    let text = writer.text(&mesh, &shardings);
    let compilation = match engine::compiled_on(machine, "fuzz.spmd", &text, "", None) {
        Ok(compilation) => compilation,
        // `manual` code cuts twelve by axes that need not divide it.
        Err(failures) => return no_bug(&failures, &text),
    };
    let program = compilation.program.as_ref().expect("it went to the end");
    let bytes: u64 = program.arenas.iter().map(|arena| arena.bytes).sum();
    if program.device_count() > MOST_DEVICES || bytes > MOST_BYTES {
        return;
    }
    let inputs = engine::inputs(&compilation, &[], Path::new("/")).expect("values are generated");
    let expected = engine::evaluated(&text, &compilation.stages[0], &inputs);
    let actual = engine::run(&compilation, &inputs, None).map(|outcome| outcome.results);
    match (expected, actual) {
        (Ok(expected), Ok(actual)) => {
            for (expected, actual) in expected.iter().zip(&actual) {
                let wrong = difference(expected, actual, Tolerance::sum_of_ones(expected.dtype));
                assert_eq!(wrong, None, "{text}");
            }
        }
        (expected, actual) => {
            let code = |failure: Failure| (failure.code, failure.line);
            assert_eq!(expected.err().map(code), actual.err().map(code), "{text}");
        }
    }
}

/// Calls a reader with a file of these bytes.
fn with_file(data: &[u8], ending: &str, read: impl FnOnce(&Path)) {
    let file = tempfile::Builder::new().suffix(ending).tempfile().expect("there is room for a small file");
    fs::write(file.path(), data).expect("a temporary file can be written");
    read(file.path());
}

/// An array of a file that opens can be read, or is wrong by a message.
fn read_all(source: &mut NpySource) {
    if source.shape().iter().product::<usize>() <= MOST_BYTES as usize {
        let _ = source.read();
    }
}

pub fn npy(data: &[u8]) {
    with_file(data, ".npy", |path| {
        if let Ok(mut source) = NpySource::open(path) {
            read_all(&mut source);
        }
    });
}

pub fn npz(data: &[u8]) {
    with_file(data, ".npz", |path| {
        let Ok(archive) = NpzArchive::open(path) else { return };
        for name in archive.names() {
            if let Ok(Some(mut source)) = archive.array(name) {
                read_all(&mut source);
            }
        }
    });
}

pub fn safetensors(data: &[u8]) {
    with_file(data, ".safetensors", |path| {
        let Ok(file) = SafetensorsFile::open(path) else { return };
        for name in file.names() {
            if let Ok(Some(mut source)) = file.array(&name) {
                read_all(&mut source);
            }
        }
    });
}

/// Another text or file: some bytes, words or lines are gone, twice, elsewhere, or those of another one.
pub fn damaged(data: &[u8], other: &[u8], draw: &mut Draw) -> Vec<u8> {
    let mut data = data.to_vec();
    for _ in 0..1 + draw.below(4) {
        let pieces = pieces(&data, draw);
        if pieces.is_empty() {
            return data;
        }
        let (a, b) = (pieces[draw.below(pieces.len())].clone(), pieces[draw.below(pieces.len())].clone());
        let theirs = self::pieces(other, draw);
        let piece = match draw.below(5) {
            0 => Vec::new(),
            1 => data[b].to_vec(),
            2 => [&data[a.clone()], &data[a.clone()]].concat(),
            3 if !theirs.is_empty() => other[theirs[draw.below(theirs.len())].clone()].to_vec(),
            _ => {
                const NUMBERS: [&str; 9] =
                    ["0", "-1", "1", "2147483648", "9223372036854775807", "1e400", "@", "_", "\""];
                draw.pick(&NUMBERS).as_bytes().to_vec()
            }
        };
        data.splice(a, piece);
    }
    data
}

/// Its lines, its words, or its bytes.
fn pieces(data: &[u8], draw: &mut Draw) -> Vec<std::ops::Range<usize>> {
    let kind = draw.below(4);
    let ends = |at: usize| match kind {
        0 => data[at] == b'\n',
        1 => true,
        _ => {
            let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            at + 1 == data.len() || !word(data[at]) || !word(data[at + 1])
        }
    };
    let mut pieces = Vec::new();
    let mut start = 0;
    for at in 0..data.len() {
        if ends(at) {
            pieces.push(start..at + 1);
            start = at + 1;
        }
    }
    pieces
}
