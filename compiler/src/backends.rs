//! The back ends: the only module that names them.

use spmdc_cranelift::{Cranelift, VectorLevel, Vectors};
use spmdc_kernel::backend::{Backend, Cpu, Interpreter};

/// The back end that programs are compiled with.
pub const DEFAULT: &dyn Backend = &Cranelift { cpu: Cpu::Native, vectors: Vectors::Widest };

/// All back ends that run kernels in this process. They give the same bits, which tests check.
pub const IN_MEMORY: &[&dyn Backend] = &[
    DEFAULT,
    &Cranelift { cpu: Cpu::Native, vectors: Vectors::Narrow },
    &Cranelift { cpu: Cpu::Native, vectors: Vectors::Of(VectorLevel::V4_256) },
    &Cranelift { cpu: Cpu::Native, vectors: Vectors::Of(VectorLevel::V4_128) },
    &Cranelift { cpu: Cpu::Native, vectors: Vectors::Of(VectorLevel::V3) },
    // Code without the instructions of newer processors.
    #[cfg(target_arch = "x86_64")]
    &Cranelift { cpu: Cpu::X86_64, vectors: Vectors::Narrow },
    &Interpreter,
];
