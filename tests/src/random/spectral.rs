//! Random calls of functions of complex numbers and Fourier transforms, on parameters that are planes.

use super::call::Call;
use super::{Draw, all, floats};
use spmdc_abi::DType;

/// Functions whose results may differ by the order of sums.
pub const SUMS: [&str; 12] =
    ["fft", "ifft", "rfft", "irfft", "fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"];

/// Expressions on the complex numbers `z` and `w` of one shape, and the real ones `a`.
const EXPRESSIONS: &[&str] = &[
    "z * w",
    "z / w",
    "z - a",
    "a / z",
    "2.5 * z + w",
    "z ** 3",
    "z ** w",
    "exp(z)",
    "log(z)",
    "sqrt(z) * a",
    "tanh(z)",
    "acos(z)",
    "atanh(w)",
    "where(a > 0, z, w)",
    "where(z == w, z, a)",
    "concatenate([ravel(z), ravel(a)])",
    "roll(z, 1)",
    "flip(w)",
    "conj(z)[..., None]",
    "reshape(z, (-1,))",
    "z.T",
    "cast(z, c128)",
    "sign(z)",
    "1 / z",
    "-z",
];

pub(super) fn call(name: &str, draw: &mut Draw) -> Option<Call> {
    let rank = draw.rank(1, 3);
    let shape: Vec<usize> = draw.shape(rank).iter().map(|&size| size.max(1)).collect();
    // Long lines remain split.
    let is_long = matches!(name, "fft" | "ifft" | "rfft" | "irfft") && draw.chance(30);
    let (rank, shape) = if is_long { (1, vec![draw.pick(&[96, 120, 135, 140, 154, 97])]) } else { (rank, shape) };
    let axis = draw.axis(rank);
    let plane = draw.pick(&[DType::F32, DType::F64]);
    let planes: &[(DType, &[usize])] = &[(plane, &shape), (plane, &shape)];
    let norm = draw.pick(&["", "", ", norm=\"ortho\"", ", norm=\"forward\""]);
    Some(match name {
        "complex" => {
            let rank = draw.rank(0, 3);
            let shape = draw.shape(rank);
            let expr = draw.pick(EXPRESSIONS);
            let mut call = Call::new(&[(plane, &shape), (plane, &shape)], expr);
            call.before = "let z = complex(a, b); let w = complex(b, 1 - a);".to_string();
            call
        }
        "real" | "imag" | "conj" | "angle" => match draw.chance(50) {
            true => Call::new(&planes[..2], format!("{name}(complex(a, b))")),
            false => Call::new(&[(draw.pick(&floats()), &shape)], format!("{name}(a)")),
        },
        "fft" | "ifft" | "irfft" | "rfft" => {
            let size = shape[axis.rem_euclid(rank as i64) as usize];
            let n = match draw.below(4) {
                0 => format!(", n={}", 1 + draw.below(2 * size)),
                _ if name == "irfft" => format!(", n={}", (2 * size - 1 - draw.below(2)).max(1)),
                _ => String::new(),
            };
            match name != "rfft" && draw.chance(60) {
                true => Call::new(planes, format!("{name}(complex(a, b){n}, axis={axis}{norm})")),
                false => Call::new(&[(plane, &shape)], format!("{name}(a{n}, axis={axis}{norm})")),
            }
        }
        "fft2" | "ifft2" => {
            let shape = [draw.size().max(1), draw.size().max(1), draw.size().max(1)];
            let axes = draw.pick(&["", ", axes=(0, 1)", ", axes=(2, 0)"]);
            Call::new(&[(plane, &shape), (plane, &shape)], format!("{name}(complex(a, b){axes}{norm})"))
        }
        "rfft2" | "irfft2" | "fftn" | "ifftn" | "rfftn" | "irfftn" => {
            let count = draw.rank(2, 3);
            let shape: Vec<usize> = draw.shape(count).iter().map(|&size| size.max(2)).collect();
            let axes = draw.pick(&["", ", axes=(0, 1)", ", axes=(1, 0)"]);
            let points = if draw.chance(30) {
                format!(", s=({}, {})", 1 + draw.below(5), 1 + draw.below(5))
            } else {
                String::new()
            };
            match name.starts_with("rfft") || draw.chance(30) {
                true => Call::new(&[(plane, &shape)], format!("{name}(a{points}{axes}{norm})")),
                false => {
                    Call::new(&[(plane, &shape), (plane, &shape)], format!("{name}(complex(a, b){points}{axes}{norm})"))
                }
            }
        }
        "fftshift" | "ifftshift" => {
            let axes = if draw.chance(50) { format!(", axes={axis}") } else { String::new() };
            Call::new(&[(draw.pick(&all()), &shape)], format!("{name}(a{axes})"))
        }
        "fftfreq" | "rfftfreq" => {
            let n = 1 + draw.below(20);
            let d = draw.pick(&["", ", 0.25", ", d=3"]);
            Call::new(
                &[(DType::F32, &[n / if name == "fftfreq" { 1 } else { 2 } + usize::from(name != "fftfreq")])],
                format!("a + {name}({n}{d})"),
            )
        }
        _ => return None,
    })
}
