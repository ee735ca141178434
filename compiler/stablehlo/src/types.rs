//! Types and constants.

use crate::cursor::{Cursor, Read};
use crate::tree::{Dense, DenseNumber, MlirElement, TensorType};
use spmdc_grammar::sentences::expected;

impl Cursor<'_> {
    /// `tensor<8x16xf32>`, or an element type alone, which is that of a scalar.
    pub fn tensor_type(&mut self) -> Read<TensorType> {
        let start = self.position();
        if !self.take("tensor<") {
            let element = self.element_type()?;
            return Ok(TensorType { shape: Vec::new(), element });
        }
        let mut shape = Vec::new();
        loop {
            if self.looks_at("?") {
                return Err(self.unsupported(
                    start,
                    "arrays of unknown size are not supported: export the program for static shapes",
                ));
            }
            let is_size = self.peek().is_some_and(|c| c.is_ascii_digit());
            if !is_size {
                break;
            }
            shape.push(self.unsigned()?);
            self.expect_x()?;
        }
        let element = self.element_type()?;
        // An encoding says nothing about the elements.
        if self.take(",") {
            self.until_closed('<')?;
        } else {
            self.expect(">")?;
        }
        let len = shape.iter().try_fold(1usize, |len, &size| len.checked_mul(size));
        if len.is_none_or(|len| len > 1 << 48) {
            return Err(self.malformed(start, "this array is too large"));
        }
        Ok(TensorType { shape, element })
    }

    fn expect_x(&mut self) -> Read<()> {
        // `8x16xf32`: the letter is followed by the next size at once.
        if self.rest().starts_with('x') {
            self.skip_char();
            Ok(())
        } else {
            Err(self.expected("`x` and a size or an element type"))
        }
    }

    /// `f32`, `complex<f64>`
    pub fn element_type(&mut self) -> Read<MlirElement> {
        let start = self.position();
        let name = self.word()?;
        Ok(match name {
            "i1" => MlirElement::Bool,
            "i8" => MlirElement::Signed(8),
            "i16" => MlirElement::Signed(16),
            "i32" => MlirElement::Signed(32),
            "i64" | "index" => MlirElement::Signed(64),
            "ui8" => MlirElement::Unsigned(8),
            "ui16" => MlirElement::Unsigned(16),
            "ui32" => MlirElement::Unsigned(32),
            "ui64" => MlirElement::Unsigned(64),
            "f8E4M3FN" => MlirElement::F8e4m3,
            "f8E5M2" => MlirElement::F8e5m2,
            "f16" => MlirElement::F16,
            "bf16" => MlirElement::Bf16,
            "f32" => MlirElement::F32,
            "f64" => MlirElement::F64,
            "complex" => {
                self.expect("<")?;
                let part = self.element_type()?;
                self.expect(">")?;
                if part == MlirElement::F32 {
                    MlirElement::C64
                } else if part == MlirElement::F64 {
                    MlirElement::C128
                } else {
                    return Err(self.malformed(start, "complex numbers have parts of type f32 or f64"));
                }
            }
            other => {
                let message = format!("elements of type `{other}` are not supported");
                return Err(self.unsupported(start, message));
            }
        })
    }

    /// `dense<[[1, 2], [3, 4]]> : tensor<2x2xi64>`, after the word.
    pub fn dense(&mut self) -> Read<Dense> {
        let start = self.position();
        self.expect("<")?;
        let mut numbers = Vec::new();
        let mut bytes = None;
        if self.looks_at("\"") {
            bytes = Some(self.string_bytes()?);
            self.expect(">")?;
        } else if !self.take(">") {
            self.dense_items(&mut numbers)?;
            self.expect(">")?;
        }
        self.expect(":")?;
        let ty = self.tensor_type()?;
        self.elements(start, ty, numbers, bytes.as_deref())
    }

    /// `dense_resource<name> : tensor<2x2xi64>`, after the word.
    pub fn dense_resource(&mut self) -> Read<Dense> {
        let start = self.position();
        self.expect("<")?;
        let name = if self.looks_at("\"") { self.string()? } else { self.word()?.to_string() };
        self.expect(">")?;
        self.expect(":")?;
        let ty = self.tensor_type()?;
        let resources = self.resources.clone();
        let Some(digits) = resources.get(&name) else {
            let message = format!("the text lacks the elements of the constant `{name}`: print it without a limit");
            return Err(self.malformed(start, message));
        };
        // The first four bytes are an alignment.
        let bytes = bytes_of(digits).filter(|bytes| bytes.len() >= 4);
        let bytes = bytes.ok_or_else(|| self.malformed(start, "expected hexadecimal digits"))?;
        self.elements(start, ty, Vec::new(), Some(&bytes[4..]))
    }

    /// A constant of these numbers, or of the numbers with these bytes.
    fn elements(
        &mut self,
        start: usize,
        ty: TensorType,
        mut numbers: Vec<DenseNumber>,
        bytes: Option<&[u8]>,
    ) -> Read<Dense> {
        if let Some(bytes) = bytes {
            // Before 2025, MLIR stored eight bools in a byte, the first one in its least significant bit.
            let is_packed =
                ty.element == MlirElement::Bool && bytes.len() != ty.len() && bytes.len() == ty.len().div_ceil(8);
            let unpacked: Vec<u8> = match is_packed {
                true => (0..ty.len()).map(|at| bytes[at / 8] >> (at % 8) & 1).collect(),
                false => Vec::new(),
            };
            numbers = of_bytes(if is_packed { &unpacked } else { bytes }, ty.element)
                .ok_or_else(|| self.malformed(start, "these bytes are not whole elements"))?;
        }
        let parts = if ty.element.is_complex() { 2 } else { 1 };
        if numbers.len() != parts && numbers.len() != parts * ty.len() {
            let message = expected(format_args!("{} numbers", parts * ty.len()), numbers.len());
            return Err(self.malformed(start, message));
        }
        Ok(Dense { ty, elements: numbers })
    }

    fn dense_items(&mut self, numbers: &mut Vec<DenseNumber>) -> Read<()> {
        for (open, close) in [("[", "]"), ("(", ")")] {
            if self.take(open) {
                self.list(close, |cursor| cursor.dense_items(numbers))?;
                return Ok(());
            }
        }
        numbers.push(self.dense_number()?);
        Ok(())
    }

    fn dense_number(&mut self) -> Read<DenseNumber> {
        if self.take("true") {
            return Ok(DenseNumber::Int(1));
        }
        if self.take("false") {
            return Ok(DenseNumber::Int(0));
        }
        let start = self.position();
        let text = self.number()?;
        let found = match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok().map(DenseNumber::Bits),
            None if text.contains(['.', 'e', 'E']) => {
                text.parse::<f64>().ok().map(|_| DenseNumber::Decimal(text.to_string()))
            }
            None => text.parse().ok().map(DenseNumber::Int),
        };
        found.ok_or_else(|| self.malformed(start, "this number is malformed or too large"))
    }

    /// `"0x00112233"`: the bytes of a constant.
    fn string_bytes(&mut self) -> Read<Vec<u8>> {
        let start = self.position();
        let text = self.string()?;
        bytes_of(&text).ok_or_else(|| self.malformed(start, "expected hexadecimal digits"))
    }
}

/// The bytes that `0x00112233` are.
fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x").unwrap_or(text).as_bytes();
    let digit = |byte: u8| (byte as char).to_digit(16);
    digits.chunks(2).map(|pair| Some((digit(pair[0])? << 4 | digit(*pair.get(1)?)?) as u8)).collect()
}

/// The elements whose bytes, the least significant first, these are.
fn of_bytes(bytes: &[u8], element: MlirElement) -> Option<Vec<DenseNumber>> {
    if element == MlirElement::Bool {
        return Some(bytes.iter().map(|&byte| DenseNumber::Int(i128::from(byte != 0))).collect());
    }
    let parts = if element.is_complex() { 2 } else { 1 };
    let size = element.bits() as usize / 8 / parts;
    if !bytes.len().is_multiple_of(size * parts) {
        return None;
    }
    let one = |chunk: &[u8]| {
        let bits = chunk.iter().rev().fold(0u64, |bits, &byte| bits << 8 | u64::from(byte));
        match element {
            MlirElement::Signed(width) => DenseNumber::Int(i128::from((bits << (64 - width)) as i64 >> (64 - width))),
            MlirElement::Unsigned(_) => DenseNumber::Int(i128::from(bits)),
            MlirElement::Bool
            | MlirElement::F8e4m3
            | MlirElement::F8e5m2
            | MlirElement::F16
            | MlirElement::Bf16
            | MlirElement::F32
            | MlirElement::F64
            | MlirElement::C64
            | MlirElement::C128 => DenseNumber::Bits(bits),
        }
    };
    Some(bytes.chunks(size).map(one).collect())
}
