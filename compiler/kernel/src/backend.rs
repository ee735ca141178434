//! The interface of code generators.
//!
//! A back end compiles kernels to functions of this process, an object file, or text. It keeps the [order](crate::order) of every
//! sum, so that all back ends give the same bits. `compiler/src/backends.rs` lists them.

use crate::loops::Kernel;
use crate::nest::{Nest, NestOf};
use spmdc_abi::{EncodedProgram, KernelFn, Kernels};

/// A code generator for kernels.
pub trait Backend: Sync {
    /// Its name, for messages.
    fn name(&self) -> &'static str;

    /// Loads kernels into this process, each run as `nest` says.
    fn load_as(&self, kernels: &[Kernel], nest: &NestOf) -> Result<Box<dyn LoadedCode>, CodegenError>;

    /// Loads kernels into this process.
    fn load(&self, kernels: &[Kernel]) -> Result<Box<dyn LoadedCode>, CodegenError> {
        self.load_as(kernels, &Nest::new)
    }

    /// Loads kernels whose code was stored.
    ///
    /// # Safety
    /// [`LoadedCode::stored`] must have returned the bytes, in a process of the same build of the compiler, for code of a back end with
    /// the same [target](Backend::target). Other bytes may be functions that do anything.
    unsafe fn load_stored(&self, bytes: &[u8]) -> Result<Box<dyn LoadedCode>, CodegenError>;

    /// Everything that the code of a kernel depends on apart from the kernel, in words: the processor's features, and options.
    fn target(&self) -> Result<String, CodegenError>;

    /// An object file to be linked with the runtime: the encoded program, its kernels, and its entry point. It refers to the components
    /// of the runtime that the program needs.
    fn object(
        &self,
        program: &EncodedProgram,
        kernels: &[Kernel],
        cpu: Cpu,
        entry: Entry,
    ) -> Result<Vec<u8>, CodegenError>;

    /// The code of a kernel as text.
    fn text(&self, kernel: &Kernel, form: TextForm, destination: Destination) -> Result<String, CodegenError>;
}

/// Kernels in this process. Their code is freed with this value.
pub trait LoadedCode {
    /// Runs a part of a kernel's range over whole buffers, each large enough for every access of the kernel. Returns 0 or a code of
    /// [`spmdc_abi::trap`].
    fn run(&self, kernel: usize, buffers: &mut [Vec<u8>], scalars: &[i64], begin: i64, end: i64) -> i64;

    /// The function of each kernel, in the given order; valid as long as `self` is.
    fn functions(&self) -> Result<&[KernelFn], CodegenError>;

    /// The code as bytes for [`Backend::load_stored`]; None if the back end does not have this form.
    fn stored(&self) -> Option<Vec<u8>>;

    /// The functions for the program that the kernels were made for. Their code stays in memory until the process ends.
    fn into_kernels(self: Box<Self>) -> Result<Kernels, CodegenError>;
}

/// The reason why no code was generated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CodegenError {
    /// This machine cannot run the code.
    Machine(String),
    /// The back end does not generate this form of code.
    Unsupported(String),
    /// The code generator failed, which is a defect of the compiler.
    Internal(String),
}

impl std::fmt::Display for CodegenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CodegenError::Machine(reason) => write!(f, "this machine cannot be compiled for: {reason}"),
            CodegenError::Unsupported(reason) => write!(f, "{reason}"),
            CodegenError::Internal(reason) => write!(f, "internal error in code generation: {reason}"),
        }
    }
}

impl std::error::Error for CodegenError {}

/// The processors whose features code may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cpu {
    /// The host processor.
    Native,
    /// With AVX2, FMA and BMI: Intel since Haswell, AMD since Excavator.
    X86_64V3,
    /// Every x86-64. Fused multiply-adds become calls.
    X86_64,
    /// Every 64-bit Arm.
    Armv8A,
}

impl Cpu {
    /// The default level of objects.
    pub const FLOOR: Cpu = if cfg!(target_arch = "aarch64") { Cpu::Armv8A } else { Cpu::X86_64V3 };
}

/// The destination of the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// In this process.
    Memory,
    /// In an object file.
    Object(Cpu),
}

/// The entry point of the program in an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    /// The function `main`.
    Main,
    /// A function of this name: `int name(const void *input.., void *output..)`.
    Function {
        /// The symbol.
        name: &'a str,
        /// The number of `input` parameters.
        inputs: usize,
        /// The number of `output` parameters, which follow the inputs.
        outputs: usize,
    },
}

/// The forms of code as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextForm {
    /// The back end's own form, before instruction selection.
    Intermediate,
    /// Machine instructions.
    Assembly,
}

/// Runs kernels by definition, one point at a time, without machine code.
#[derive(Clone, Copy, Debug)]
pub struct Interpreter;

impl Interpreter {
    fn none<T>(self, of: &str) -> Result<T, CodegenError> {
        Err(CodegenError::Unsupported(format!("the back end `{}` makes no {of}", self.name())))
    }
}

impl Backend for Interpreter {
    fn name(&self) -> &'static str {
        "interpreter"
    }

    fn load_as(&self, kernels: &[Kernel], _: &NestOf) -> Result<Box<dyn LoadedCode>, CodegenError> {
        Ok(Box::new(Interpreted(kernels.to_vec())))
    }

    unsafe fn load_stored(&self, _: &[u8]) -> Result<Box<dyn LoadedCode>, CodegenError> {
        self.none("stored code")
    }

    fn target(&self) -> Result<String, CodegenError> {
        Ok(self.name().to_string())
    }

    fn object(&self, _: &EncodedProgram, _: &[Kernel], _: Cpu, _: Entry) -> Result<Vec<u8>, CodegenError> {
        self.none("object files")
    }

    fn text(&self, _: &Kernel, _: TextForm, _: Destination) -> Result<String, CodegenError> {
        self.none("text of code")
    }
}

struct Interpreted(Vec<Kernel>);

impl LoadedCode for Interpreted {
    fn run(&self, kernel: usize, buffers: &mut [Vec<u8>], scalars: &[i64], begin: i64, end: i64) -> i64 {
        crate::interpret::run(&self.0[kernel], buffers, scalars, begin, end)
    }

    fn functions(&self) -> Result<&[KernelFn], CodegenError> {
        Interpreter.none("functions of this process")
    }

    fn stored(&self) -> Option<Vec<u8>> {
        None
    }

    fn into_kernels(self: Box<Self>) -> Result<Kernels, CodegenError> {
        Interpreter.none("functions of this process")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_interpreter_does_not_make_is_an_error() {
        let error = |error: Option<CodegenError>| error.map(|error| error.to_string()).unwrap_or_default();
        let object = Interpreter.object(&EncodedProgram::default(), &[], Cpu::FLOOR, Entry::Main).err();
        assert_eq!(error(object), "the back end `interpreter` makes no object files");
        let functions = Interpreter.load(&[]).and_then(LoadedCode::into_kernels).err();
        assert_eq!(error(functions), "the back end `interpreter` makes no functions of this process");
        // SAFETY: no bytes are loaded.
        let stored = unsafe { Interpreter.load_stored(&[]) };
        assert_eq!(error(stored.err()), "the back end `interpreter` makes no stored code");
    }
}
