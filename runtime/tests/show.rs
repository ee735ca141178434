//! Arrays print as NumPy prints them: `golden/show.txt` holds arrays and their text, written by `golden/make_show.py`.
#![allow(clippy::unwrap_used)]

use spmdc_abi::DType;
use spmdc_runtime::data::array::HostArray;
use spmdc_runtime::text::show;

fn from_hex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
}

#[test]
fn arrays_print_as_numpy_prints_them() {
    let mut failures = Vec::new();
    let mut count = 0;
    let mut lines = include_str!("golden/show.txt").lines().peekable();
    while let Some(line) = lines.next() {
        let mut words = line.split(' ');
        let name = words.next().unwrap();
        let dtype = DType::ALL.into_iter().find(|dtype| dtype.name() == name).unwrap();
        let shape = words.next().unwrap().split(',').filter(|size| !size.is_empty());
        let shape = shape.map(|size| size.parse().unwrap()).collect();
        let array = HostArray { dtype, shape, bytes: from_hex(words.next().unwrap()) };
        let mut expected = Vec::new();
        while let Some(text) = lines.next_if(|line| line.starts_with('|')) {
            expected.push(&text[1..]);
        }
        let expected = expected.join("\n");
        let shown = show::format(&array);
        count += 1;
        if shown != expected {
            failures.push(format!("{name}{:?}\nexpected:\n{expected}\nshown:\n{shown}", array.shape));
        }
    }
    assert!(count > 600, "only {count} cases");
    assert!(
        failures.is_empty(),
        "{} of {count} differ; the first:\n{}",
        failures.len(),
        failures[..failures.len().min(3)].join("\n")
    );
}
