//! Programs as bytes, in object files.

use crate::{Component, Program};
use std::collections::BTreeSet;

/// The contents of an object file apart from its code.
#[derive(Clone, Debug, Default)]
pub struct EncodedProgram {
    /// The program: see [`Image::program`](crate::Image::program).
    pub bytes: Vec<u8>,
    /// The components that the program needs: see [`Image::components`](crate::Image::components).
    pub components: BTreeSet<Component>,
}

impl EncodedProgram {
    /// Encodes a program; the error is the reason why this is not possible.
    pub fn new(program: &Program) -> Result<EncodedProgram, String> {
        let bytes = postcard::to_stdvec(program).map_err(|error| error.to_string())?;
        Ok(EncodedProgram { bytes, components: program.components() })
    }
}

impl Program {
    /// The program of [`EncodedProgram::bytes`]; the error is the reason why there is none.
    pub fn decode(bytes: &[u8]) -> Result<Program, String> {
        postcard::from_bytes(bytes).map_err(|error| error.to_string())
    }
}
