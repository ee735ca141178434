//! Damaged texts are errors: the reader neither panics nor takes long. `DAMAGED=20000` sets the number of texts.

#![allow(clippy::unwrap_used)]

use spmdc_grammar::span::FileId;
use std::path::Path;

/// A generator of numbers, the same in every run: SplitMix64.
struct Draw(u64);

impl Draw {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) % count.max(1) as u64) as usize
    }
}

fn texts() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/stablehlo");
    let folders = [folder.join("versions"), folder].map(|folder| std::fs::read_dir(folder).unwrap());
    let mut paths: Vec<_> = folders.into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "mlir"));
    paths.sort();
    assert!(paths.len() >= 12, "there are texts");
    paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

/// The words of a text: names, numbers and single signs.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || "_.%#@".contains(c);
        let end = if is_word(first) { rest.find(|c| !is_word(c)).unwrap_or(rest.len()) } else { first.len_utf8() };
        let (word, after) = rest.split_at(end);
        words.push(word);
        rest = after;
    }
    words
}

/// A text with one to three words changed, or lines removed, or its end cut off.
fn damaged(text: &str, draw: &mut Draw) -> String {
    if draw.below(8) == 0 {
        let mut lines: Vec<&str> = text.lines().collect();
        let at = draw.below(lines.len());
        lines.remove(at);
        return lines.join("\n");
    }
    let mut words: Vec<String> = words(text).into_iter().map(str::to_string).collect();
    if draw.below(10) == 0 {
        words.truncate(draw.below(words.len()));
    }
    for _ in 0..1 + draw.below(3) {
        if words.is_empty() {
            break;
        }
        let (at, other) = (draw.below(words.len()), draw.below(words.len()));
        let numbers = ["0", "1", "7", "99", "18446744073709551616", "-1"];
        match draw.below(4) {
            0 => words[at] = words[other].clone(),
            1 => {
                words.remove(at);
            }
            2 => words[at] = numbers[draw.below(numbers.len())].to_string(),
            _ => {
                // A number for a number, so that more is read.
                let places: Vec<usize> =
                    (0..words.len()).filter(|&at| words[at].chars().all(|c| c.is_ascii_digit())).collect();
                if !places.is_empty() {
                    let place = places[draw.below(places.len())];
                    words[place] = numbers[draw.below(4)].to_string();
                }
            }
        }
    }
    words.concat()
}

#[test]
fn damaged_texts_are_read_without_a_panic() {
    let count = std::env::var("DAMAGED").map_or(1500, |count| count.parse().unwrap());
    let texts = texts();
    let is_shipped = |name: &str| ["sum", "where", "clip"].contains(&name);
    let (mut read, mut panics, mut draw) = (0, Vec::new(), Draw(7));
    for number in 0..count {
        let text = damaged(&texts[number % texts.len()], &mut draw);
        let outcome = std::panic::catch_unwind(|| {
            let imported = spmdc_stablehlo::import(&text, FileId::default(), &is_shipped);
            let outcome = spmdc_stablehlo::read(&text, FileId::default(), &is_shipped);
            assert_eq!(imported.is_ok(), outcome.is_ok(), "both forms read the same texts");
            outcome
        });
        let Ok(outcome) = outcome else {
            panics.push(number);
            continue;
        };
        if let Err(error) = &outcome {
            assert!(error.span.end as usize <= text.len(), "the error is in the text: {error:?}");
        }
        read += usize::from(outcome.is_ok());
    }
    assert!(panics.is_empty(), "these texts make the reader panic: {panics:?}");
    assert!(read > count / 50 && read < count, "{read} of {count} damaged texts are read");
}

#[test]
fn deep_nesting_is_an_error() {
    let deep =
        format!("module {{ func.func @main() {{ %0 = \"stablehlo.constant\"() <{{value = {}", "[".repeat(100_000));
    let is_shipped = |_: &str| false;
    assert!(spmdc_stablehlo::read(&deep, FileId::default(), &is_shipped).is_err());
    let regions = "\"stablehlo.case\"(%0) ({ ".repeat(10_000);
    let deep = format!("module {{ func.func @main(%0: tensor<i32>) {{ {regions}");
    assert!(spmdc_stablehlo::read(&deep, FileId::default(), &is_shipped).is_err());
}

#[test]
fn malformed_numbers_are_errors() {
    for number in ["1.0e+", "e5", "0x", "1_0", "0xFFFFFFFFFFFFFFFFF", "--1"] {
        let text = format!(
            "module {{ func.func @main() -> tensor<f32> {{ %0 = stablehlo.constant dense<{number}> : tensor<f32>\n\
             return %0 : tensor<f32> }} }}"
        );
        let error = spmdc_stablehlo::read(&text, FileId::default(), &|_| false).unwrap_err();
        assert_eq!(error.code.name(), "E0110", "{number}");
    }
}
