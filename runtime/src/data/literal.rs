//! Arrays written on the command line: `3.5`, `-1`, `true`, `[[1, 2], [3, 4]]`.
//!
//! A number must fit the parameter's type: an integer fits any float type, but `3.5` is not an `i32`, and `300` is not a `u8`. A key is
//! written as its seed.

use crate::data::array::HostArray;
use crate::data::random;
use spmdc_abi::{DType, Kind, Width};

/// A literal before its type is known: all elements in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Literal {
    /// The size of each dimension; empty for a number.
    pub shape: Vec<usize>,
    elements: Vec<Number>,
}

#[derive(Clone, Debug, PartialEq)]
enum Number {
    Bool(bool),
    Integer(i128),
    /// The text as written, without underscores, so that it is rounded only once, to its type.
    Float(String),
    /// Its real and its imaginary part, neither of them complex.
    Complex(Box<[Number; 2]>),
}

/// Maximum nesting of lists: the maximum rank of an array of the language.
const MAX_DIMENSIONS: usize = 32;

impl Literal {
    /// Parses a literal. The error describes the problem with the text.
    pub fn parse(text: &str) -> Result<Literal, String> {
        let mut shape: Vec<usize> = Vec::new();
        let mut elements = Vec::new();
        // The number of elements so far of each open list; closed lists have fixed the sizes in `shape`.
        let mut open: Vec<usize> = Vec::new();
        let mut rank = None;
        let mut rest = text.trim();
        if !rest.starts_with('[') {
            return Ok(Literal { shape, elements: vec![Number::parse(rest)?] });
        }
        loop {
            // An element, or its opening brackets.
            if let Some(inner) = rest.strip_prefix('[') {
                if open.len() == MAX_DIMENSIONS {
                    return Err(format!("lists are nested more than {MAX_DIMENSIONS} deep"));
                }
                open.push(0);
                rest = inner.trim_start();
                if !rest.starts_with(']') {
                    continue;
                }
            } else {
                let end = rest.find([',', ']', '[']).unwrap_or(rest.len());
                elements.push(Number::parse(rest[..end].trim())?);
                if *rank.get_or_insert(open.len()) != open.len() {
                    return Err("a list mixes lists and numbers".to_string());
                }
                count_one(&mut open);
                rest = &rest[end..];
            }
            // After an element: closing brackets, then a comma.
            while let Some(after) = rest.strip_prefix(']') {
                let len = open.pop().ok_or("unexpected `]`")?;
                let depth = open.len();
                if shape.len() <= depth {
                    shape.resize(depth + 1, usize::MAX);
                }
                if shape[depth] != usize::MAX && shape[depth] != len {
                    return Err(format!("lists at the same depth have different lengths: {} and {len}", shape[depth]));
                }
                shape[depth] = len;
                count_one(&mut open);
                rest = after.trim_start();
            }
            if open.is_empty() {
                break;
            }
            rest = rest.strip_prefix(',').ok_or("expected `,` or `]`")?.trim_start();
        }
        if !rest.is_empty() {
            return Err(format!("unexpected `{rest}` after the list"));
        }
        if rank.is_some_and(|rank| rank != shape.len()) {
            return Err("a list mixes lists and numbers".to_string());
        }
        Ok(Literal { shape, elements })
    }

    /// The elements as this type. The error names the element that does not fit, and the reason.
    pub fn to_array(&self, dtype: DType) -> Result<HostArray, String> {
        let mut bytes = Vec::with_capacity(self.elements.len() * dtype.size());
        for element in &self.elements {
            element.encode(dtype, &mut bytes)?;
        }
        Ok(HostArray { dtype, shape: self.shape.clone(), bytes })
    }
}

impl Literal {
    /// The elements as the planes of complex numbers: `1+2j`, `3`, `-1j`.
    pub fn to_planes(&self, dtype: DType) -> Result<[HostArray; 2], String> {
        let mut planes = [Vec::new(), Vec::new()];
        for element in &self.elements {
            let zero = Number::Integer(0);
            let parts = if let Number::Complex(parts) = element { [&parts[0], &parts[1]] } else { [element, &zero] };
            for (part, bytes) in parts.into_iter().zip(&mut planes) {
                part.encode(dtype, bytes)?;
            }
        }
        Ok(planes.map(|bytes| HostArray { dtype, shape: self.shape.clone(), bytes }))
    }
}

fn count_one(open: &mut [usize]) {
    if let Some(innermost) = open.last_mut() {
        *innermost += 1;
    }
}

impl Number {
    fn parse(text: &str) -> Result<Number, String> {
        if let Some(parts) = text.strip_suffix(['j', 'J']) {
            // The last sign that is not that of an exponent separates the parts; NumPy writes parentheses around both.
            let is_sign =
                |&(at, c): &(usize, char)| at > 0 && matches!(c, '+' | '-') && !parts[..at].ends_with(['e', 'E']);
            let at = parts.char_indices().rfind(is_sign).map_or(0, |(at, _)| at);
            let re = if at == 0 { Number::Integer(0) } else { Number::parse(parts[..at].trim())? };
            let im = match parts[at..].trim() {
                "" | "+" => Number::Integer(1),
                "-" => Number::Integer(-1),
                im => Number::parse(im)?,
            };
            return Ok(Number::Complex(Box::new([re, im])));
        }
        if let Some(inner) = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) {
            return Number::parse(inner.trim());
        }
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let is_negative = text.starts_with('-');
        match unsigned {
            "true" | "True" if unsigned.len() == text.len() => return Ok(Number::Bool(true)),
            "false" | "False" if unsigned.len() == text.len() => return Ok(Number::Bool(false)),
            "inf" | "nan" => return Ok(Number::Float(text.to_string())),
            _ => {}
        }
        let wrong =
            || if text.is_empty() { "expected a number".to_string() } else { format!("`{text}` is not a number") };
        if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return Err(wrong());
        }
        let digits = unsigned.replace('_', "");
        let integer = match digits.strip_prefix("0x") {
            Some(hex) => Some(i128::from_str_radix(hex, 16).map_err(|_| wrong())?),
            None => digits.parse().ok(),
        };
        let sign = if is_negative { "-" } else { "" };
        match integer {
            Some(integer) => Ok(Number::Integer(if is_negative { -integer } else { integer })),
            None if digits.parse::<f64>().is_ok() => Ok(Number::Float(format!("{sign}{digits}"))),
            None => Err(wrong()),
        }
    }

    fn show(&self) -> String {
        match self {
            Number::Bool(value) => value.to_string(),
            Number::Integer(value) => value.to_string(),
            Number::Float(text) => text.clone(),
            Number::Complex(parts) => {
                let im = parts[1].show();
                let sign = if im.starts_with('-') { "" } else { "+" };
                format!("{}{sign}{im}j", parts[0].show())
            }
        }
    }

    fn encode(&self, dtype: DType, bytes: &mut Vec<u8>) -> Result<(), String> {
        let name = dtype.name();
        let no_fit = || format!("{} does not fit into {name}", self.show());
        match dtype.kind() {
            Kind::Bool => match self {
                Number::Bool(value) => bytes.push(u8::from(*value)),
                Number::Integer(_) | Number::Float(_) | Number::Complex(_) => {
                    return Err(format!("{} is not a bool; write true or false", self.show()));
                }
            },
            Kind::Signed | Kind::Unsigned => match *self {
                Number::Integer(value) => {
                    let (low, high) = dtype.integer_bounds();
                    if !(low..=high).contains(&value) {
                        return Err(no_fit());
                    }
                    bytes.extend(&value.to_le_bytes()[..dtype.size()]);
                }
                Number::Bool(_) | Number::Float(_) | Number::Complex(_) => {
                    return Err(format!("{} is not an {name}", self.show()));
                }
            },
            Kind::Float => {
                let text = match self {
                    Number::Integer(value) => value.to_string(),
                    Number::Float(text) => text.clone(),
                    Number::Bool(_) | Number::Complex(_) => return Err(format!("{} is not an {name}", self.show())),
                };
                let written: f64 = text.parse().map_err(|_| no_fit())?;
                let element = match dtype.width() {
                    // Rounded once: through double precision it could be twice.
                    Width::W32 => text.parse::<f32>().map_err(|_| no_fit())?.to_bits().into(),
                    Width::W8 | Width::W16 | Width::W64 => dtype.narrow(written),
                };
                let value = dtype.widen(element);
                let is_kept = value.is_finite() || written == value && text.ends_with("inf") || written.is_nan();
                if !is_kept {
                    return Err(no_fit());
                }
                bytes.extend(&element.to_le_bytes()[..dtype.size()]);
            }
            Kind::Key => match *self {
                Number::Integer(seed) => {
                    let seed = i64::try_from(seed).map_err(|_| no_fit())?;
                    random::key(seed).iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
                }
                Number::Bool(_) | Number::Float(_) | Number::Complex(_) => {
                    return Err(format!("{} is not the seed of a key", self.show()));
                }
            },
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn array(text: &str, dtype: DType) -> Result<HostArray, String> {
        Literal::parse(text)?.to_array(dtype)
    }

    #[test]
    fn lists_have_the_shape_they_show() {
        for (text, shape) in [
            ("7", vec![]),
            ("[1,2,3]", vec![3]),
            (" [ [1, 2, 3] , [4, 5, 6] ] ", vec![2, 3]),
            ("[[[1]], [[2]]]", vec![2, 1, 1]),
            ("[]", vec![0]),
            ("[[], []]", vec![2, 0]),
        ] {
            assert_eq!(array(text, DType::U8).unwrap().shape, shape, "{text}");
        }
        assert_eq!(array("[[1, 2], [3, 4]]", DType::U8).unwrap().bytes, [1, 2, 3, 4]);
    }

    #[test]
    fn complex_numbers_are_those_of_python() {
        let planes = |text: &str| Literal::parse(text).and_then(|literal| literal.to_planes(DType::F32));
        let numbers = |array: &HostArray| -> Vec<f32> {
            array.bytes.chunks_exact(4).map(|bytes| f32::from_ne_bytes(bytes.try_into().unwrap())).collect()
        };
        let [re, im] = planes("[1+2j, -1.5e-3-2e+1j, 3, -1j, (0-j), +nanj]").unwrap();
        assert_eq!(numbers(&re), [1.0, -1.5e-3, 3.0, 0.0, 0.0, 0.0]);
        assert_eq!(numbers(&im)[..5], [2.0, -20.0, 0.0, -1.0, -1.0]);
        assert!(numbers(&im)[5].is_nan() && planes("1+2").is_err() && planes("trueish+1j").is_err());
        assert_eq!(array("1+2j", DType::F32).unwrap_err(), "1+2j is not an f32");
    }

    #[test]
    fn malformed_lists_say_what_is_wrong() {
        for (text, part) in [
            ("[1, 2", "expected `,` or `]`"),
            ("[1, 2]]", "unexpected `]`"),
            ("[1] 2", "unexpected `2` after the list"),
            ("[1 2]", "`1 2` is not a number"),
            ("[1,,2]", "expected a number"),
            ("[[1], 2]", "a list mixes"),
            ("[1, [2]]", "a list mixes"),
            ("[[1, 2], [3]]", "different lengths: 2 and 1"),
            ("[[], 1]", "a list mixes"),
            ("", "expected a number"),
            ("x", "`x` is not a number"),
            ("--1", "not a number"),
            ("1e", "not a number"),
        ] {
            let message = array(text, DType::F32).unwrap_err();
            assert!(message.contains(part), "{text}: {message}");
        }
        assert!(array(&"[".repeat(100_000), DType::F32).is_err());
    }

    #[test]
    fn numbers_fit_their_type_or_are_refused() {
        assert_eq!(array("-1", DType::I8).unwrap().bytes, [255]);
        assert_eq!(array("0xff", DType::U8).unwrap().bytes, [255]);
        assert_eq!(array("1_000", DType::I16).unwrap().bytes, 1000i16.to_ne_bytes());
        assert_eq!(array("3", DType::F32).unwrap().bytes, 3f32.to_ne_bytes());
        assert_eq!(array("-1e-5", DType::F64).unwrap().bytes, (-1e-5f64).to_ne_bytes());
        assert_eq!(array("-inf", DType::F32).unwrap().bytes, f32::NEG_INFINITY.to_ne_bytes());
        assert_eq!(array("true", DType::Bool).unwrap().bytes, [1]);
        assert_eq!(array("18446744073709551615", DType::U64).unwrap().bytes, [255; 8]);
        assert_eq!(array("42", DType::Key).unwrap().bytes, [0, 0, 0, 0, 42, 0, 0, 0]);
        for (text, dtype) in [
            ("3.5", DType::I32),
            ("3.0", DType::I32),
            ("300", DType::U8),
            ("-1", DType::U64),
            ("1e39", DType::F32),
            ("65520", DType::F16),
            ("1", DType::Bool),
            ("true", DType::F32),
            ("1.5", DType::Key),
        ] {
            assert!(array(text, dtype).is_err(), "{text} as {}", dtype.name());
        }
    }
}
