//! From loop nests to machine code.
//!
//! `kernel` emits a nest, whose loops have the forms of `loops` (`tile`: of tiles, `strip`: of strips, `repeats`: in the body). `access`
//! emits loads and stores, and `reduction` the combination over loops. `arithmetic`, `narrow_lanes` and `lanes` emit the operations inside,
//! all on the bundles of `vector`. `machine` compiles; `jit` and `object` are the destinations of the code, and `stored` the bytes
//! that a later process loads. All of it implements [`Backend`].
#![warn(missing_docs)]

mod access;
mod accumulator;
mod arithmetic;
mod bits;
mod draws;
mod jit;
mod kernel;
mod lanes;
mod loops;
mod machine;
mod math_calls;
mod narrow_lanes;
mod object;
mod reduction;
mod repeats;
mod stored;
mod strip;
mod tile;
mod vector;

use spmdc_abi::EncodedProgram;
use spmdc_kernel::backend::{Backend, CodegenError, Cpu, Destination, Entry, LoadedCode, TextForm};
use spmdc_kernel::loops::Kernel;
use spmdc_kernel::nest::NestOf;
pub use spmdc_wide::VectorLevel;

/// The Cranelift back end.
#[derive(Clone, Copy, Debug)]
pub struct Cranelift {
    /// The processors whose features code in memory may use.
    pub cpu: Cpu,
    /// The vectors of code in memory.
    pub vectors: Vectors,
}

/// The width of vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vectors {
    /// 128 bits, by Cranelift alone.
    Narrow,
    /// The widest vectors of this processor, where [`spmdc_wide`] supports the kernel.
    Widest,
    /// The vectors of a level if this processor has it, narrow ones otherwise.
    Of(VectorLevel),
}

impl Vectors {
    /// The level of wide vectors on this processor.
    fn level(self) -> Option<VectorLevel> {
        match self {
            Vectors::Narrow => None,
            Vectors::Widest => VectorLevel::of_host(),
            Vectors::Of(level) => level.is_here().then_some(level),
        }
    }
}

impl Backend for Cranelift {
    fn name(&self) -> &'static str {
        "cranelift"
    }

    fn load_as(&self, kernels: &[Kernel], nest: &NestOf) -> Result<Box<dyn LoadedCode>, CodegenError> {
        Ok(Box::new(jit::compile(self.cpu, self.vectors.level(), kernels, nest)?))
    }

    unsafe fn load_stored(&self, bytes: &[u8]) -> Result<Box<dyn LoadedCode>, CodegenError> {
        // SAFETY: as promised by the caller.
        Ok(Box::new(unsafe { jit::load_stored(self.cpu, bytes)? }))
    }

    fn target(&self) -> Result<String, CodegenError> {
        let isa = machine::isa_of(self.cpu, false)?;
        let features = isa.isa_flags().iter().map(|flag| format!(" {flag}")).collect::<String>();
        Ok(format!("{}{features} {:?}\n{}", isa.triple(), self.vectors.level(), isa.flags()))
    }

    fn object(
        &self,
        program: &EncodedProgram,
        kernels: &[Kernel],
        cpu: Cpu,
        entry: Entry,
    ) -> Result<Vec<u8>, CodegenError> {
        object::emit(program, kernels, cpu, entry)
    }

    fn text(&self, kernel: &Kernel, form: TextForm, destination: Destination) -> Result<String, CodegenError> {
        machine::text(kernel, form, destination, self.vectors.level())
    }
}
