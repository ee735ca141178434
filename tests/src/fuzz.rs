//! External inputs of the compiler and the runtime, as functions of bytes: each panics if the answer is wrong.
//!
//! A coverage-guided fuzzer calls them (`tests/fuzz`), and `tests/tests/suite/fuzz.rs` does so briefly with texts and files that it damages.

use crate::compare::difference;
use crate::engine::{self, Failure};
use crate::random::programs::{Scale, Writer};
use crate::random::{Draw, Mesh};
use spmdc_abi::DType;
use spmdc_check::sources::{NoSources, SourceSet};
use spmdc_grammar::print;
use spmdc_grammar::span::FileId;
use spmdc_ir::program::Stage;
use spmdc_runtime::data::array::BlockSource;
use spmdc_runtime::io::npy::NpySource;
use spmdc_runtime::io::npz::NpzArchive;
use spmdc_runtime::io::safetensors::SafetensorsFile;
use std::fs;
use std::ops::Range;
use std::path::Path;

/// Programs that need more devices or memory than this are only checked: they would be slow, not wrong.
const MAX_DEVICES: usize = 16;
const MAX_BYTES: u64 = 1 << 20;

/// An entry point.
pub type Target = fn(&[u8]);

/// All of them, by name.
pub const TARGETS: [(&str, Target); 8] = [
    ("parse", parse),
    ("check", check),
    ("print_and_read", print_and_read),
    ("run", run),
    ("jax", jax),
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

/// Every text either compiles up to machine code, or has an error with a code.
pub fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Err(failures) = engine::compiled("fuzz.spmd", &text, "", Some(Stage::Typed)) {
        return no_bug(&failures, &text);
    }
    if let Err(failures) = engine::compiled("fuzz.spmd", &text, "", None) {
        no_bug(&failures, &text);
    }
}

/// Every StableHLO text either compiles up to machine code, or has an error with a code. The program that `import` makes of it has none that
/// it has not.
pub fn jax(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let compiled = engine::compiled("fuzz.mlir", &text, "", None);
    if let Err(failures) = &compiled {
        no_bug(failures, &text);
    }
    if let (Ok(program), true) = (spmdc_compiler::sources::import(&text), compiled.is_ok()) {
        let imported = print::program(&program);
        let again = engine::compiled("fuzz.spmd", &imported, "", Some(Stage::Typed));
        assert!(again.is_ok(), "{:?}\n{imported}", again.err());
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
        let dump = spmdc_inspect::print::module(module);
        let again = engine::compiled("dump.spmd", &dump, "", Some(module.stage));
        let printed = again.map(|again| spmdc_inspect::print::module(&again.stages[0]));
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
    let types = writer.param_types();
    (0..wanted).for_each(|_| writer.statement());
    let text = writer.text(&mesh, &types);
    let compilation = match engine::compiled_on(machine, "fuzz.spmd", &text, "", None) {
        Ok(compilation) => compilation,
        // `manual` code cuts twelve by axes that need not divide it.
        Err(failures) => return no_bug(&failures, &text),
    };
    let program = compilation.program.as_ref().expect("it went to the end");
    let bytes: u64 = program.arenas.iter().map(|arena| arena.bytes).sum();
    if program.device_count() > MAX_DEVICES || bytes > MAX_BYTES {
        return;
    }
    let inputs = engine::inputs(&compilation, &[], Path::new("/")).expect("values are generated");
    let expected = engine::evaluated(&text, &compilation.stages[0], &inputs);
    let actual = engine::run(&compilation, &inputs, None).map(|outcome| outcome.results);
    match (expected, actual) {
        (Ok(expected), Ok(actual)) => {
            for ((expected, actual), tolerance) in expected.iter().zip(&actual).zip(writer.tolerances()) {
                let wrong = difference(expected, actual, tolerance);
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
    if source.shape().iter().product::<usize>() <= MAX_BYTES as usize {
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

/// Another text or file: some bytes, words or lines are gone, twice, elsewhere, those of another one, or others of their kind.
pub fn damaged(data: &[u8], other: &[u8], draw: &mut Draw) -> Vec<u8> {
    let mut data = data.to_vec();
    for _ in 0..1 + draw.below(4) {
        let pieces = pieces(&data, draw);
        if pieces.is_empty() {
            return data;
        }
        let (a, b) = (pieces[draw.below(pieces.len())].clone(), pieces[draw.below(pieces.len())].clone());
        let theirs = self::pieces(other, draw);
        let piece = match draw.below(8) {
            0 => Vec::new(),
            1 => data[b].to_vec(),
            2 => [&data[a.clone()], &data[a.clone()]].concat(),
            3 if !theirs.is_empty() => other[theirs[draw.below(theirs.len())].clone()].to_vec(),
            4..=6 => {
                replace_word(&mut data, other, draw);
                continue;
            }
            _ => draw.pick(&NUMBERS).as_bytes().to_vec(),
        };
        data.splice(a, piece);
    }
    data
}

/// A text with one to three of its whole numbers changed to sizes that nobody has memory or time for, or that barely exist.
pub fn with_hostile_sizes(data: &[u8], draw: &mut Draw) -> Vec<u8> {
    let mut data = data.to_vec();
    for _ in 0..1 + draw.below(3) {
        let numbers: Vec<Range<usize>> =
            words(&data).into_iter().filter(|word| WordKind::of(&data[word.clone()]) == WordKind::Number).collect();
        if !numbers.is_empty() {
            data.splice(numbers[draw.below(numbers.len())].clone(), draw.pick(&SIZES).bytes());
        }
    }
    data
}

const NUMBERS: [&str; 9] = ["0", "-1", "1", "2147483648", "9223372036854775807", "1e400", "@", "_", "\""];

const SIZES: [&str; 14] = [
    "0",
    "1",
    "255",
    "32768",
    "65537",
    "1000003",
    "16777216",
    "2147483647",
    "2147483648",
    "4294967297",
    "1099511627776",
    "4611686018427387904",
    "9223372036854775807",
    "18446744073709551615",
];

/// The approximate kind of a word in the grammar: enough to replace it by another one that parses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WordKind {
    Number,
    DType,
    Keyword,
    Name,
    Operator,
}

impl WordKind {
    fn of(word: &[u8]) -> WordKind {
        const KEYWORDS: [&str; 8] = ["fn", "let", "mut", "for", "in", "if", "else", "const"];
        let is = |list: &[&str]| list.iter().any(|item| item.as_bytes() == word);
        match word.first() {
            Some(byte) if byte.is_ascii_digit() => WordKind::Number,
            _ if DType::ALL.iter().any(|dtype| dtype.name().as_bytes() == word) => WordKind::DType,
            _ if is(&KEYWORDS) => WordKind::Keyword,
            Some(byte) if is_of_word(*byte) => WordKind::Name,
            Some(_) | None => WordKind::Operator,
        }
    }
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Every word and every other character that is not a space.
fn words(data: &[u8]) -> Vec<Range<usize>> {
    let mut words: Vec<Range<usize>> = Vec::new();
    for (at, &byte) in data.iter().enumerate() {
        match words.last_mut() {
            Some(word) if word.end == at && is_of_word(byte) && is_of_word(data[at - 1]) => word.end = at + 1,
            _ if byte.is_ascii_whitespace() => {}
            _ => words.push(at..at + 1),
        }
    }
    words
}

/// Puts another word of the same kind, of this text or of the other, in the place of one.
fn replace_word(data: &mut Vec<u8>, other: &[u8], draw: &mut Draw) {
    let ours = words(data);
    if ours.is_empty() {
        return;
    }
    let place = ours[draw.below(ours.len())].clone();
    let kind = WordKind::of(&data[place.clone()]);
    let (source, from) = if draw.chance(70) { (&data[..], ours) } else { (other, words(other)) };
    let same: Vec<Range<usize>> = from.into_iter().filter(|word| WordKind::of(&source[word.clone()]) == kind).collect();
    if !same.is_empty() {
        let word = source[same[draw.below(same.len())].clone()].to_vec();
        data.splice(place, word);
    }
}

/// Its lines, its words, or its bytes.
fn pieces(data: &[u8], draw: &mut Draw) -> Vec<Range<usize>> {
    let kind = draw.below(4);
    let ends = |at: usize| match kind {
        0 => data[at] == b'\n',
        1 => true,
        _ => at + 1 == data.len() || !is_of_word(data[at]) || !is_of_word(data[at + 1]),
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
