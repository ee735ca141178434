//! Kernels as an object file, to be linked with the runtime.
//!
//! | symbol | holds |
//! |---|---|
//! | `spmd_program` | the encoded program, as it was given |
//! | `spmd_program_len` | its length, a u64 |
//! | `spmd_kernels` | the addresses of the kernels, in order |
//! | `spmd_kernel_count` | their number, a u64 |

use super::jit::define;
use super::loops::Kernel;
use super::machine::{self, CodegenError, Destination};
use cranelift_module::{DataDescription, Linkage, Module, ModuleRelocTarget};
use cranelift_object::{ObjectBuilder, ObjectModule};

/// Position-independent code for the kernels of a program; `native` code runs on machines like this one only.
pub fn emit(program: &[u8], kernels: &[Kernel], native: bool) -> Result<Vec<u8>, CodegenError> {
    let isa = machine::isa(Destination::Object { native })?;
    let compiled = machine::compile(&*isa, kernels)?;
    let mut builder = ObjectBuilder::new(isa, "spmd", cranelift_module::default_libcall_names()).map_err(internal)?;
    builder.per_function_section(false);
    let mut module = ObjectModule::new(builder);
    let convention = module.isa().default_call_conv();

    // Math functions may call others: all are declared before any is defined.
    let math = machine::math_functions(module.isa(), &compiled)?;
    let mut known = Vec::new();
    for (symbol, code) in &math {
        let linkage = if code.is_some() { Linkage::Local } else { Linkage::Import };
        let id = module.declare_function(&symbol.name(), linkage, &symbol.signature(convention)).map_err(internal)?;
        known.push((*symbol, id));
    }
    for ((_, code), &(_, id)) in math.iter().zip(&known) {
        if let Some(code) = code {
            define(&mut module, id, code, &known)?;
        }
    }
    let signature = super::kernel::signature(convention);
    let mut functions = Vec::with_capacity(compiled.functions.len());
    for (at, code) in compiled.functions.iter().enumerate() {
        let id = module.declare_function(&format!("spmd_kernel_{at}"), Linkage::Local, &signature).map_err(internal)?;
        define(&mut module, id, code, &known)?;
        functions.push(id);
    }

    let mut table = DataDescription::new();
    table.define(vec![0; 8 * compiled.of_kernel.len().max(1)].into_boxed_slice());
    table.set_align(8);
    for (at, &function) in compiled.of_kernel.iter().enumerate() {
        let function = table.import_function(ModuleRelocTarget::from(functions[function]));
        table.write_function_addr(8 * at as u32, function);
    }
    export(&mut module, "spmd_kernels", &table)?;
    export(&mut module, "spmd_kernel_count", &word(compiled.of_kernel.len() as u64))?;
    let mut data = DataDescription::new();
    data.define(program.to_vec().into_boxed_slice());
    data.set_align(8);
    export(&mut module, "spmd_program", &data)?;
    export(&mut module, "spmd_program_len", &word(program.len() as u64))?;
    module.finish().emit().map_err(internal)
}

fn word(value: u64) -> DataDescription {
    let mut data = DataDescription::new();
    data.define(value.to_le_bytes().to_vec().into_boxed_slice());
    data.set_align(8);
    data
}

fn export(module: &mut ObjectModule, name: &str, data: &DataDescription) -> Result<(), CodegenError> {
    let id = module.declare_data(name, Linkage::Export, false, false).map_err(internal)?;
    module.define_data(id, data).map_err(internal)
}

fn internal(error: impl std::fmt::Display) -> CodegenError {
    CodegenError::Internal(error.to_string())
}
