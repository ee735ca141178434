//! Numbers as text, to the bit.

use spmdc_abi::{DType, Kind};
use spmdc_kernel::number;

/// More elements than this are one string of hexadecimal digits.
const FEW: usize = 64;

/// The text after `dense`, without the angle brackets.
pub fn dense(dtype: DType, shape: &[usize], bits: &[u64]) -> String {
    match bits {
        [] => String::new(),
        [first, rest @ ..] if rest.iter().all(|other| other == first) => element(dtype, *first),
        _ if bits.len() > FEW && dtype != DType::Bool => hexadecimal(dtype, bits),
        _ => nested(dtype, shape, bits),
    }
}

/// One element.
pub fn element(dtype: DType, bits: u64) -> String {
    match dtype.kind() {
        Kind::Bool => (bits != 0).to_string(),
        Kind::Signed | Kind::Unsigned | Kind::Key => number::to_int(dtype, bits).to_string(),
        Kind::Float => decimal(dtype, bits).unwrap_or_else(|| {
            let digits = 2 * dtype.size();
            format!("0x{bits:0digits$X}")
        }),
    }
}

/// A float in decimal digits; None where these do not give the bits again.
fn decimal(dtype: DType, bits: u64) -> Option<String> {
    let value = number::to_float(dtype, bits);
    if !value.is_finite() {
        return None;
    }
    let text = if dtype == DType::F64 { format!("{value:e}") } else { format!("{:e}", value as f32) };
    let (digits, exponent) = text.split_once('e')?;
    let point = if digits.contains('.') { "" } else { ".0" };
    let text = format!("{digits}{point}e{exponent}");
    let read: f64 = text.parse().ok()?;
    (number::from_float(dtype, read) == bits).then_some(text)
}

fn hexadecimal(dtype: DType, bits: &[u64]) -> String {
    let bytes = bits.iter().flat_map(|element| element.to_le_bytes().into_iter().take(dtype.size()));
    let digits: String = bytes.map(|byte| format!("{byte:02X}")).collect();
    format!("\"0x{digits}\"")
}

fn nested(dtype: DType, shape: &[usize], bits: &[u64]) -> String {
    match shape {
        [] => element(dtype, bits[0]),
        [_, inner @ ..] => {
            let rows = bits.chunks(inner.iter().product::<usize>().max(1));
            let rows: Vec<String> = rows.map(|row| nested(dtype, inner, row)).collect();
            format!("[{}]", rows.join(", "))
        }
    }
}
