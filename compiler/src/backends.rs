//! The back ends: the one place that names them.

use spmdc_cranelift::Cranelift;
use spmdc_kernel::backend::{Backend, Cpu, Interpreter};

/// The one that programs are compiled with.
pub const DEFAULT: &dyn Backend = &Cranelift { cpu: Cpu::Native };

/// All that run kernels in this process. They give the same bits; tests hold them to that.
pub const IN_MEMORY: &[&dyn Backend] = &[
    DEFAULT,
    // What code does without the instructions of newer processors.
    #[cfg(target_arch = "x86_64")]
    &Cranelift { cpu: Cpu::X86_64 },
    &Interpreter,
];
