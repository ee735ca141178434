//! Compiles kernels to an object file, to be linked with the runtime.
//!
//! | symbol | is |
//! |---|---|
//! | `main`, of an executable | `int main(void)`: passes the program to `spmd_main` |
//! | the name of a library | a function of the program's input and output arrays: passes them to `spmd_call` |
//!
//! All other symbols in the object are local, so that several libraries can be linked into one program. Both functions pass on an
//! [`Image`](spmdc_abi::Image), which points to the encoded program, the table of its kernels, and the components of the runtime that
//! the program needs. These are undefined symbols; the linker adds them from the runtime, and drops the components that are not named.

use super::jit::{Callees, define};
use super::machine;
use cranelift_codegen::Context;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{
    AbiParam, Function, InstBuilder, MemFlagsData, Signature, StackSlotData, StackSlotKind, UserFuncName, Value,
};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_module::{DataDescription, DataId, FuncId, Linkage, Module, ModuleRelocTarget};
use cranelift_object::{ObjectBuilder, ObjectModule};
use spmdc_abi::EncodedProgram;
use spmdc_kernel::backend::{CodegenError, Cpu, Destination, Entry};
use spmdc_kernel::loops::Kernel;

/// Position-independent code for the kernels of a program.
pub fn emit(program: &EncodedProgram, kernels: &[Kernel], cpu: Cpu, entry: Entry) -> Result<Vec<u8>, CodegenError> {
    let isa = machine::isa(Destination::Object(cpu))?;
    let compiled = machine::compile_both(&*isa, machine::object_levels(cpu), kernels)?;
    let features = machine::needed_features(&*isa)? | machine::features_of_levels(compiled.functions.iter())?;
    let wide_features = features | machine::features_of_levels(compiled.wide.iter().flatten())?;
    let mut builder = ObjectBuilder::new(isa, "spmd", cranelift_module::default_libcall_names()).map_err(internal)?;
    builder.per_function_section(false);
    let mut module = ObjectModule::new(builder);
    let convention = module.isa().default_call_conv();

    // Math functions may call others: all are declared before any is defined.
    let math = machine::math_functions(module.isa(), &compiled)?;
    let mut known = Callees::new(&mut module, &compiled)?;
    for (symbol, code) in &math {
        let linkage = if code.is_some() { Linkage::Local } else { Linkage::Import };
        let id = module.declare_function(&symbol.name(), linkage, &symbol.signature(convention)).map_err(internal)?;
        known.math.push((*symbol, id));
    }
    for ((_, code), &(_, id)) in math.iter().zip(&known.math) {
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

    let mut wide = functions.clone();
    for (at, code) in compiled.wide.iter().enumerate() {
        let Some(code) = code else { continue };
        let name = format!("spmd_wide_kernel_{at}");
        wide[at] = module.declare_function(&name, Linkage::Local, &signature).map_err(internal)?;
        define(&mut module, wide[at], code, &known)?;
    }
    let wide_features = if wide == functions { 0 } else { wide_features };

    let table = |functions: &[FuncId]| -> Vec<FuncId> { compiled.of_kernel.iter().map(|&at| functions[at]).collect() };
    let image = image(&mut module, program, [&table(&functions), &table(&wide)], [features, wide_features])?;
    entry_function(&mut module, entry, image)?;
    module.finish().emit().map_err(internal)
}

/// A table of kernels.
fn table(module: &mut ObjectModule, name: &str, kernels: &[FuncId]) -> Result<DataId, CodegenError> {
    let mut table = DataDescription::new();
    table.define(vec![0; 8 * kernels.len().max(1)].into_boxed_slice());
    table.set_align(8);
    for (at, &function) in kernels.iter().enumerate() {
        let function = table.import_function(ModuleRelocTarget::from(function));
        table.write_function_addr(8 * at as u32, function);
    }
    local(module, name, &table)
}

/// The addresses of components of the runtime.
fn components(module: &mut ObjectModule, program: &EncodedProgram) -> Result<DataId, CodegenError> {
    let mut table = DataDescription::new();
    table.define(vec![0; 8 * program.components.len().max(1)].into_boxed_slice());
    table.set_align(8);
    for (at, component) in program.components.iter().enumerate() {
        let component = module.declare_data(&component.symbol(), Linkage::Import, false, false).map_err(internal)?;
        let component = module.declare_data_in_data(component, &mut table);
        table.write_data_addr(8 * at as u32, component, 0);
    }
    local(module, "spmd_components", &table)
}

/// The data of `spmdc_abi::Image`: nine words, in its order. Each of the two tables of kernels has its features.
fn image(
    module: &mut ObjectModule,
    program: &EncodedProgram,
    kernels: [&[FuncId]; 2],
    [features, wide_features]: [u64; 2],
) -> Result<DataId, CodegenError> {
    let mut data = DataDescription::new();
    data.define(program.bytes.clone().into_boxed_slice());
    data.set_align(8);
    let data = local(module, "spmd_program", &data)?;
    let [narrow, wide] = kernels;
    let narrow_table = table(module, "spmd_kernels", narrow)?;
    let wide_table = if wide == narrow { narrow_table } else { table(module, "spmd_wide_kernels", wide)? };

    let components = components(module, program)?;

    let (program_len, component_count) = (program.bytes.len() as u64, program.components.len() as u64);
    let words = [0, program_len, 0, narrow.len() as u64, features, 0, wide_features, 0, component_count];
    let mut image = DataDescription::new();
    image.define(words.iter().flat_map(|word| word.to_le_bytes()).collect());
    image.set_align(8);
    for (word, target) in [(0, data), (2, narrow_table), (5, wide_table), (7, components)] {
        let target = module.declare_data_in_data(target, &mut image);
        image.write_data_addr(8 * word, target, 0);
    }
    local(module, "spmd_image", &image)
}

fn local(module: &mut ObjectModule, name: &str, data: &DataDescription) -> Result<DataId, CodegenError> {
    let id = module.declare_data(name, Linkage::Local, false, false).map_err(internal)?;
    module.define_data(id, data).map_err(internal)?;
    Ok(id)
}

/// Defines the only exported function.
fn entry_function(module: &mut ObjectModule, entry: Entry, image: DataId) -> Result<(), CodegenError> {
    let convention = module.isa().default_call_conv();
    let signature = |params: usize| {
        let mut signature = Signature::new(convention);
        signature.params = vec![AbiParam::new(I64); params];
        signature.returns.push(AbiParam::new(I32));
        signature
    };
    let (name, arrays, callee) = match entry {
        Entry::Main => ("main", None, "spmd_main"),
        Entry::Function { name, inputs, outputs } => (name, Some((inputs, outputs)), "spmd_call"),
    };
    let own = signature(arrays.map_or(0, |(inputs, outputs)| inputs + outputs));
    let id = module.declare_function(name, Linkage::Export, &own).map_err(internal)?;
    let of_callee = signature(if arrays.is_some() { 3 } else { 1 });
    let callee = module.declare_function(callee, Linkage::Import, &of_callee).map_err(internal)?;

    let mut context = Context::for_function(Function::with_name_signature(UserFuncName::default(), own));
    let callee = module.declare_func_in_func(callee, &mut context.func);
    let image = module.declare_data_in_func(image, &mut context.func);
    let mut scratch = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut context.func, &mut scratch);
    let block = builder.create_block();
    builder.append_block_params_for_function_params(block);
    builder.switch_to_block(block);
    let params = builder.block_params(block).to_vec();
    let mut args = vec![builder.ins().symbol_value(I64, image)];
    if let Some((inputs, _)) = arrays {
        let (inputs, outputs) = params.split_at(inputs);
        args.push(on_stack(&mut builder, inputs));
        args.push(on_stack(&mut builder, outputs));
    }
    let call = builder.ins().call(callee, &args);
    let status = builder.inst_results(call)[0];
    builder.ins().return_(&[status]);
    builder.seal_all_blocks();
    builder.finalize(module.isa().frontend_config());
    module.define_function(id, &mut context).map_err(internal)
}

/// The address of a list of words.
fn on_stack(builder: &mut FunctionBuilder, words: &[Value]) -> Value {
    let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, 8 * words.len().max(1) as u32, 3);
    let slot = builder.create_sized_stack_slot(slot);
    let address = builder.ins().stack_addr(I64, slot, 0);
    for (at, &word) in words.iter().enumerate() {
        builder.ins().store(MemFlagsData::trusted(), word, address, 8 * at as i32);
    }
    address
}

fn internal(error: impl std::fmt::Display) -> CodegenError {
    CodegenError::Internal(error.to_string())
}
