//! Compiles kernels to an object file, to be linked with the runtime.
//!
//! | symbol | is |
//! |---|---|
//! | `main`, of an executable | `int main(void)`: passes the program to `spmd_main` |
//! | the name of a library | a function of the program's input and output arrays: passes them to `spmd_call` |
//!
//! All other symbols in the object are local, so that several libraries can be linked into one program. Both functions pass on an
//! [`Image`](spmdc_abi::Image), which points to the encoded program and the table of its kernels.

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
use spmdc_kernel::backend::{CodegenError, Cpu, Destination, Entry};
use spmdc_kernel::loops::Kernel;
use spmdc_kernel::nest::Nest;

/// Position-independent code for the kernels of a program.
pub fn emit(program: &[u8], kernels: &[Kernel], cpu: Cpu, entry: Entry) -> Result<Vec<u8>, CodegenError> {
    let isa = machine::isa(Destination::Object(cpu))?;
    let features = machine::needed_features(&*isa)?;
    let compiled = machine::compile(&*isa, kernels, &Nest::new)?;
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

    let table: Vec<FuncId> = compiled.of_kernel.iter().map(|&at| functions[at]).collect();
    let image = image(&mut module, program, &table, features)?;
    entry_function(&mut module, entry, image)?;
    module.finish().emit().map_err(internal)
}

/// The data of `spmdc_abi::Image`: five words, in its order.
fn image(module: &mut ObjectModule, program: &[u8], kernels: &[FuncId], features: u64) -> Result<DataId, CodegenError> {
    let mut table = DataDescription::new();
    table.define(vec![0; 8 * kernels.len().max(1)].into_boxed_slice());
    table.set_align(8);
    for (at, &function) in kernels.iter().enumerate() {
        let function = table.import_function(ModuleRelocTarget::from(function));
        table.write_function_addr(8 * at as u32, function);
    }
    let mut data = DataDescription::new();
    data.define(program.to_vec().into_boxed_slice());
    data.set_align(8);
    let (data, table) = (local(module, "spmd_program", &data)?, local(module, "spmd_kernels", &table)?);

    let words = [0, program.len() as u64, 0, kernels.len() as u64, features];
    let mut image = DataDescription::new();
    image.define(words.iter().flat_map(|word| word.to_le_bytes()).collect());
    image.set_align(8);
    for (word, target) in [(0, data), (2, table)] {
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::tests::{bytes, elements, elementwise};
    use super::*;
    use spmdc_abi::DType;
    use spmdc_kernel::backend::TextForm;
    use spmdc_kernel::interpret;
    use spmdc_kernel::loops::{Affine, Elem, Inst};
    use spmdc_kernel::scalar::{BinaryOp, UnaryOp};
    use spmdc_math::MathFn;

    /// A C program that replaces the runtime: it prints the contents of an image, and the results of kernels.
    const MAIN: &str = r#"
        #include <stdio.h>
        #include <stdint.h>
        struct image {
            const char *program;
            uint64_t len;
            int64_t (*const *kernels)(void **, int64_t *, int64_t, int64_t);
            uint64_t count, features;
        };
        int spmd_main(const struct image *image) {
            printf("%.*s %d %d\n", (int)image->len, image->program, (int)image->count, image->features != 0);
            static float x[75], y[75];
            static uint32_t z[75];
            for (int i = 0; i < 75; i++) { x[i] = (float)(i - 30) * 1e4f; y[i] = 0.7f; }
            void *buffers[] = { x, y, z };
            for (uint64_t k = 0; k < image->count; k++) {
                image->kernels[k](buffers, 0, 0, 75);
                for (int i = 0; i < 75; i++) printf("%08x ", z[i]);
            }
            return 7;
        }
        int spmd_call(const struct image *image, void **inputs, void **outputs) {
            printf("%d %s %s %s\n", (int)image->count, (char *)inputs[0], (char *)inputs[7], (char *)outputs[0]);
            return 5;
        }"#;

    /// Links an object with these C sources, and returns the program's output.
    fn run(name: &str, object: &[u8], sources: &[&str], status: i32) -> String {
        let directory = std::env::temp_dir().join(format!("spmd-object-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("program.o"), object).unwrap();
        std::fs::write(directory.join("main.c"), sources.concat()).unwrap();
        let cc = |args: &[&str]| std::process::Command::new("cc").current_dir(&directory).args(args).output().unwrap();
        let linked = cc(&["-o", "main", "main.c", "program.o", "-lm"]);
        assert!(linked.status.success() && linked.stderr.is_empty(), "{}", String::from_utf8_lossy(&linked.stderr));
        let output = std::process::Command::new(directory.join("main")).output().unwrap();
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!(output.status.code(), Some(status));
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn objects_link_and_run() {
        let unary = |op| move |x: &[Elem]| vec![Inst::Unary { op, dtype: DType::F32, arg: x[0] }];
        let remainder =
            |x: &[Elem]| vec![Inst::Binary { op: BinaryOp::Rem, dtype: DType::F32, lhs: x[0], rhs: x[1], site: None }];
        let inputs = [DType::F32, DType::F32];
        let kernels = [
            elementwise(75, &inputs, DType::F32, unary(UnaryOp::Math(MathFn::Sin))),
            elementwise(75, &inputs, DType::F32, unary(UnaryOp::Math(MathFn::Tanh))),
            elementwise(75, &inputs, DType::F32, remainder),
            elementwise(75, &inputs, DType::F32, unary(UnaryOp::Math(MathFn::Sin))),
        ];
        let x: Vec<u64> = (0..75).map(|i| u64::from(((i as f32 - 30.0) * 1e4).to_bits())).collect();
        let y = vec![u64::from(0.7f32.to_bits()); 75];
        let mut expected = Vec::new();
        for kernel in &kernels {
            let mut buffers = vec![bytes(DType::F32, &x), bytes(DType::F32, &y), vec![0; 300]];
            interpret::run(kernel, &mut buffers, &[], 0, 75);
            expected.extend(elements(DType::F32, &buffers[2]));
        }
        for (name, cpu) in [("floor", Cpu::FLOOR), ("native", Cpu::Native)] {
            let object = emit(b"program", &kernels, cpu, Entry::Main).unwrap();
            let text = run(name, &object, &[MAIN], 7);
            let (first, words) = text.split_once('\n').unwrap();
            assert_eq!(first, "program 4 1");
            let found: Vec<u64> = words.split_whitespace().map(|word| u64::from_str_radix(word, 16).unwrap()).collect();
            assert_eq!(found, expected, "{name}");
        }
    }

    /// The runtime's function, in which the bits of a counter are the counter and a part of the key.
    #[test]
    fn random_bits_are_drawn_by_the_runtime() {
        const RUNTIME: &str = r#"
            void spmd_random_bits(uint32_t *to, uint64_t key, uint64_t first, uint64_t count, uint64_t form) {
                for (uint64_t i = 0; i < count; i++) to[i] = (uint32_t)(key >> 32) + (uint32_t)(first + i) + (form << 16);
            }"#;
        let kernel = elementwise(75, &[DType::F32, DType::F32], DType::U32, |_| {
            let at = Affine { constant: 5, ..Affine::dim(0) };
            let bits = Inst::RandomBits { dtype: DType::U32, key: Elem(2), at };
            vec![Inst::Const { dtype: DType::Key, bits: 0x700 }, bits]
        });
        let object = emit(b"program", &[kernel], Cpu::FLOOR, Entry::Main).unwrap();
        let text = run("draws", &object, &[MAIN, RUNTIME], 7);
        let words: Vec<u32> =
            text.split_whitespace().skip(3).map(|word| u32::from_str_radix(word, 16).unwrap()).collect();
        let form = spmdc_threefry::BitsForm::U32 as u32;
        assert_eq!(words, (0..75).map(|i| 0x700 + 5 + i + (form << 16)).collect::<Vec<u32>>());
    }

    #[test]
    fn functions_hand_on_their_arrays() {
        const CALLER: &str = r#"
            int heat(const char *, const char *, const char *, const char *, const char *, const char *, const char *,
                     const char *, char *, char *);
            int main(void) { return heat("a", "b", "c", "d", "e", "f", "g", "h", "out", ""); }"#;
        let entry = Entry::Function { name: "heat", inputs: 8, outputs: 2 };
        let object = emit(b"program", &[], Cpu::FLOOR, entry).unwrap();
        assert_eq!(run("function", &object, &[MAIN, CALLER], 5), "0 a h out\n");
    }

    /// Instructions differ, results do not: a product and a sum are never contracted, and fused operations are exact.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn every_level_has_code_for_every_operation() {
        let isa = machine::isa(Destination::Object(Cpu::X86_64)).unwrap();
        assert_eq!(machine::needed_features(&*isa), Ok(0));
        let floor = machine::isa(Destination::Object(Cpu::X86_64V3)).unwrap();
        assert_eq!(machine::needed_features(&*floor), Ok((1 << 11) - 1));
        let host = machine::isa(Destination::Memory).unwrap();
        assert!(machine::needed_features(&*host).unwrap() & 0b1100_0000 == 0b1100_0000);
        let multiply_add = elementwise(64, &[DType::F32], DType::F32, |x| {
            vec![
                Inst::Binary { op: BinaryOp::Mul, dtype: DType::F32, lhs: x[0], rhs: x[0], site: None },
                Inst::Binary { op: BinaryOp::Add, dtype: DType::F32, lhs: Elem(x[0].0 + 1), rhs: x[0], site: None },
            ]
        });
        let asm = |cpu| machine::text(&multiply_add, TextForm::Assembly, Destination::Object(cpu)).unwrap();
        assert!(asm(Cpu::X86_64V3).contains("vmulps") && !asm(Cpu::X86_64V3).contains("vfm"));
        assert!(asm(Cpu::X86_64).contains("mulps") && !asm(Cpu::X86_64).contains("vmulps"));
        assert!(matches!(machine::isa(Destination::Object(Cpu::Armv8A)), Err(CodegenError::Machine(_))));
    }
}
