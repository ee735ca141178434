//! The keys of seeds.

use crate::testing::{self, words};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::array::Array;
use spmdc_ir::call::term::Term;
use spmdc_kernel::number;
use spmdc_layout::types::DType;
use spmdc_ops::constant::seed_of;

/// The bits of the key of a literal seed.
fn key_of(seed: Term) -> Result<u64, Diagnostic> {
    testing::run("key", &[], |_| vec![seed], &[]).map(|key| key.bits[0])
}

#[test]
fn keys_of_seeds_are_those_of_jax() {
    let of = |seed: i128| key_of(Term::Int(seed)).map(words);
    assert_eq!(of(42).unwrap(), [0, 42]);
    assert_eq!(of(-1).unwrap(), [0, u32::MAX]);
    assert_eq!(of((1 << 40) + 5).unwrap(), [256, 5]);
    assert_eq!(of(u64::MAX.into()).unwrap(), [u32::MAX; 2]);
    assert_eq!(of(1 << 64).unwrap_err().code, Code::E0218);
    assert_eq!(key_of(Term::Float(1.0)).unwrap_err().code, Code::E0210);
}

#[test]
fn a_dump_of_a_key_reads_back() {
    for words in [[0, 42], [0, u32::MAX], [7, 0], [u32::MAX; 2]] {
        let seed = u64::from(words[0]) << 32 | u64::from(words[1]);
        let key = number::cast(DType::U64, DType::Key, seed).unwrap();
        assert_eq!(seed_of(key), seed);
        assert_eq!(key_of(Term::Int(seed_of(key).into())).unwrap(), key);
    }
}

#[test]
fn seeds_of_a_program_become_the_words_of_keys() {
    let seeds = Array::from_ints(DType::I32, &[2], &[42, -1]);
    let keys = testing::run("key", &[seeds], |x| x, &[]).unwrap();
    assert_eq!([words(keys.bits[0]), words(keys.bits[1])], [[0, 42], [0, u32::MAX]]);
}
