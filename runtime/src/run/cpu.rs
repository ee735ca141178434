//! Checks whether this processor can execute the code of a program.

use crate::errors::trap::{RunCode, RunError};
use spmdc_abi::CPU_FEATURES;

/// Whether this processor has all of these features, a bit for each of [`CPU_FEATURES`].
pub fn has_all(needed: u64) -> bool {
    missing(needed).is_empty()
}

fn missing(needed: u64) -> Vec<&'static str> {
    (0..u64::BITS as usize)
        .filter(|bit| needed & (1 << bit) != 0)
        .map(|bit| CPU_FEATURES.get(bit).copied().unwrap_or("what is unknown here"))
        .filter(|name| !has(name))
        .collect()
}

/// Checks that this processor has all needed features, so that the program fails with E0805 and not with an illegal instruction.
/// `needed` has a bit for each of [`CPU_FEATURES`].
pub fn check(needed: u64) -> Result<(), RunError> {
    let mut missing = missing(needed);
    missing.dedup();
    if missing.is_empty() {
        return Ok(());
    }
    let message = format!(
        "the program was built for a processor with {}, which this processor does not support",
        missing.join(", ")
    );
    Err(RunError::new(RunCode::E0805, message)
        .with_help("build it with `--cpu x86-64`, or on this machine with `--cpu native`"))
}

#[cfg(target_arch = "x86_64")]
fn has(name: &str) -> bool {
    match name {
        "sse3" => std::is_x86_feature_detected!("sse3"),
        "ssse3" => std::is_x86_feature_detected!("ssse3"),
        "sse41" => std::is_x86_feature_detected!("sse4.1"),
        "sse42" => std::is_x86_feature_detected!("sse4.2"),
        "popcnt" => std::is_x86_feature_detected!("popcnt"),
        "avx" => std::is_x86_feature_detected!("avx"),
        "avx2" => std::is_x86_feature_detected!("avx2"),
        "fma" => std::is_x86_feature_detected!("fma"),
        "f16c" => std::is_x86_feature_detected!("f16c"),
        "bmi1" => std::is_x86_feature_detected!("bmi1"),
        "bmi2" => std::is_x86_feature_detected!("bmi2"),
        "lzcnt" => std::is_x86_feature_detected!("lzcnt"),
        "cmpxchg16b" => std::is_x86_feature_detected!("cmpxchg16b"),
        "avx_vnni" => std::is_x86_feature_detected!("avxvnni"),
        "avx512f" => std::is_x86_feature_detected!("avx512f"),
        "avx512bw" => std::is_x86_feature_detected!("avx512bw"),
        "avx512dq" => std::is_x86_feature_detected!("avx512dq"),
        "avx512vl" => std::is_x86_feature_detected!("avx512vl"),
        "avx512bitalg" => std::is_x86_feature_detected!("avx512bitalg"),
        "avx512vbmi" => std::is_x86_feature_detected!("avx512vbmi"),
        "avx512vnni" => std::is_x86_feature_detected!("avx512vnni"),
        _ => false,
    }
}

#[cfg(target_arch = "aarch64")]
fn has(name: &str) -> bool {
    match name {
        "lse" => std::arch::is_aarch64_feature_detected!("lse"),
        "pauth" => std::arch::is_aarch64_feature_detected!("paca"),
        "fp16" => std::arch::is_aarch64_feature_detected!("fp16"),
        "dotprod" => std::arch::is_aarch64_feature_detected!("dotprod"),
        "i8mm" => std::arch::is_aarch64_feature_detected!("i8mm"),
        _ => false,
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn has(_: &str) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_processor_lacks_is_named() {
        assert_eq!(check(0), Ok(()));
        // No processor has the features of both architectures.
        let bit = |name: &str| CPU_FEATURES.iter().position(|feature| *feature == name).map_or(0, |bit| 1 << bit);
        let error = check(bit("avx2") | bit("lse")).expect_err("one of them must be missing");
        assert_eq!(error.code, RunCode::E0805);
        assert!(
            error.message.contains(if cfg!(target_arch = "x86_64") { "with lse," } else { "with avx2," }),
            "{error}"
        );
        assert_eq!(check(1 << 63).map_err(|error| error.code), Err(RunCode::E0805));
        // Features that every machine of an architecture has: a misspelt name would be missing.
        if cfg!(target_arch = "x86_64") && std::env::consts::OS == "linux" {
            assert_eq!(check(bit("sse3")), Ok(()));
        }
    }
}
