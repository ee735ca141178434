//! Functions as bytes, which a later process of the same build loads: their machine code, and their calls by number or name.
//!
//! Numbers are little-endian, and lists begin with their lengths, of 32 bits. Bytes that [`Compiled::stored`] did not make are an error,
//! or functions that do anything: their reader must know where they come from.

use super::machine::{Compiled, FunctionCode, Relocation, Symbol};
use super::math_calls::MathSymbol;
use cranelift_codegen::binemit::Reloc;
use cranelift_codegen::ir::LibCall;
use spmdc_kernel::backend::CodegenError;

/// The relocations of code in memory that can be stored, each with the bytes that it changes.
const RELOCATIONS: [(Reloc, u32); 7] = [
    (Reloc::Abs4, 4),
    (Reloc::Abs8, 8),
    (Reloc::X86PCRel4, 4),
    (Reloc::X86CallPCRel4, 4),
    (Reloc::Arm64Call, 4),
    (Reloc::Aarch64AdrPrelPgHi21, 4),
    (Reloc::Aarch64AddAbsLo12Nc, 4),
];

const MATH: u32 = 0;
const RANDOM_BITS: u32 = 1;
const LIBRARY: u32 = 2;
const INSIDE: u32 = 3;

impl Compiled {
    /// The functions as bytes; None if one has a relocation without a number here.
    pub fn stored(&self) -> Option<Vec<u8>> {
        debug_assert!(self.wide.is_empty(), "code in memory has one table of kernels");
        let mut out = Vec::new();
        put(&mut out, self.bulk.len())?;
        for (symbol, code) in &self.bulk {
            out.extend(symbol.number().to_le_bytes());
            put_function(&mut out, code)?;
        }
        put(&mut out, self.functions.len())?;
        self.functions.iter().try_for_each(|code| put_function(&mut out, code))?;
        put(&mut out, self.of_kernel.len())?;
        self.of_kernel.iter().try_for_each(|&at| put(&mut out, at))?;
        Some(out)
    }

    /// The functions of these bytes.
    pub fn from_stored(bytes: &[u8]) -> Result<Compiled, CodegenError> {
        let mut rest = StoredBytes(bytes);
        let compiled = rest.compiled().filter(|_| rest.0.is_empty());
        compiled.ok_or_else(|| CodegenError::Internal(String::from("stored code is malformed")))
    }
}

fn put(out: &mut Vec<u8>, number: usize) -> Option<()> {
    out.extend(u32::try_from(number).ok()?.to_le_bytes());
    Some(())
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) -> Option<()> {
    put(out, bytes.len())?;
    out.extend(bytes);
    Some(())
}

fn put_function(out: &mut Vec<u8>, code: &FunctionCode) -> Option<()> {
    out.extend(code.alignment.to_le_bytes());
    put_bytes(out, &code.bytes)?;
    put(out, code.relocations.len())?;
    for relocation in &code.relocations {
        put(out, RELOCATIONS.iter().position(|(kind, _)| *kind == relocation.kind)?)?;
        out.extend(relocation.offset.to_le_bytes());
        out.extend(relocation.addend.to_le_bytes());
        let (form, number) = match relocation.symbol {
            Symbol::Math(symbol) => (MATH, symbol.number()),
            Symbol::RandomBits => (RANDOM_BITS, 0),
            Symbol::Library(_) => (LIBRARY, 0),
            Symbol::Inside(offset) => (INSIDE, offset),
        };
        out.extend(form.to_le_bytes());
        out.extend(number.to_le_bytes());
        if let Symbol::Library(call) = relocation.symbol {
            put_bytes(out, call.to_string().as_bytes())?;
        }
    }
    Some(())
}

/// The unread bytes.
struct StoredBytes<'a>(&'a [u8]);

impl<'a> StoredBytes<'a> {
    fn compiled(&mut self) -> Option<Compiled> {
        let bulk = self.list(|rest| Some((MathSymbol::from_number(rest.number()?)?, rest.function()?)))?;
        let functions = self.list(Self::function)?;
        let of_kernel = self.list(|rest| rest.length().filter(|at| *at < functions.len()))?;
        Some(Compiled { functions, of_kernel, wide: Vec::new(), bulk })
    }

    fn function(&mut self) -> Option<FunctionCode> {
        let alignment = u64::from_le_bytes(self.array()?);
        let bytes = self.bytes()?.to_vec();
        let relocations = self.list(|rest| rest.relocation(bytes.len()))?;
        alignment.is_power_of_two().then_some(FunctionCode {
            bytes,
            alignment,
            relocations,
            listing: None,
            level: None,
        })
    }

    /// A relocation in a function of so many bytes.
    fn relocation(&mut self, len: usize) -> Option<Relocation> {
        let &(kind, size) = RELOCATIONS.get(self.length()?)?;
        let offset = self.number()?;
        if offset.checked_add(size)? as usize > len {
            return None;
        }
        let addend = i64::from_le_bytes(self.array()?);
        let (form, number) = (self.number()?, self.number()?);
        let symbol = match form {
            MATH => Symbol::Math(MathSymbol::from_number(number)?),
            RANDOM_BITS => Symbol::RandomBits,
            LIBRARY => Symbol::Library(std::str::from_utf8(self.bytes()?).ok()?.parse::<LibCall>().ok()?),
            INSIDE => Symbol::Inside(number),
            _ => return None,
        };
        Some(Relocation { offset, kind, addend, symbol })
    }

    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        (0..self.number()?).map(|_| item(self)).collect()
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.length()?;
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }

    fn length(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.array()?))
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }
}
