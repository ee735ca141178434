//! Compiles kernels to functions in this process.

use super::draws;
use super::machine::{self, Compiled, FunctionCode, Symbol};
use super::math_calls::{MathCall, MathSymbol};
use cranelift_codegen::ir::Type;
use cranelift_codegen::ir::types::F32;
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, ModuleError, ModuleReloc, ModuleRelocTarget};
use spmdc_abi::{KernelFn, Kernels};
use spmdc_kernel::backend::{CodegenError, Cpu, LoadedCode};
use spmdc_kernel::loops::Kernel;
use spmdc_kernel::nest::NestOf;
use spmdc_math::{MathFn, MathFn2, Rare, SingleLane};
use spmdc_wide::VectorLevel;

/// Compiled kernels; their memory is freed with this value.
pub struct Jit {
    module: Option<JITModule>,
    compiled: Compiled,
    functions: Vec<KernelFn>,
}

/// Compiles kernels for these processors, with vectors of a level where possible; others run as `nest` says.
pub fn compile(cpu: Cpu, level: Option<VectorLevel>, kernels: &[Kernel], nest: &NestOf) -> Result<Jit, CodegenError> {
    let isa: OwnedTargetIsa = machine::isa_of(cpu, false)?;
    let compiled = machine::compile(&*isa, level, kernels, nest)?;
    load(isa, compiled)
}

/// Loads functions that [`LoadedCode::stored`] returned, of kernels that were compiled for these processors.
///
/// # Safety
/// The bytes must be those. Others are functions that do anything.
pub unsafe fn load_stored(cpu: Cpu, bytes: &[u8]) -> Result<Jit, CodegenError> {
    load(machine::isa_of(cpu, false)?, Compiled::from_stored(bytes)?)
}

/// Loads compiled functions into this process.
fn load(isa: OwnedTargetIsa, compiled: Compiled) -> Result<Jit, CodegenError> {
    let mut builder = JITBuilder::with_isa(isa, cranelift_module::default_libcall_names());
    for &(name, address) in missing_instructions().iter().chain(&missing_shuffle()) {
        builder.symbol(name, address);
    }
    for symbol in compiled.scalar_functions() {
        builder.symbol(symbol.name(), math_address(symbol.call, symbol.lane));
    }
    builder.symbol(spmdc_threefry::SYMBOL, spmdc_threefry::fill as *const u8);
    let mut jit = Jit { module: None, compiled, functions: Vec::new() };
    let (module, compiled) = (jit.module.insert(JITModule::new(builder)), &jit.compiled);
    let convention = module.isa().default_call_conv();
    let mut known = Callees::new(module, compiled)?;
    for symbol in compiled.scalar_functions() {
        let id = module.declare_function(&symbol.name(), Linkage::Import, &symbol.signature(convention));
        known.math.push((symbol, id.map_err(internal)?));
    }
    for (symbol, code) in &compiled.bulk {
        let id = module.declare_function(&symbol.name(), Linkage::Local, &symbol.signature(convention));
        let id = id.map_err(internal)?;
        define(module, id, code, &known)?;
        known.math.push((*symbol, id));
    }
    let signature = super::kernel::signature(convention);
    let mut ids = Vec::with_capacity(compiled.functions.len());
    for (at, code) in compiled.functions.iter().enumerate() {
        let id = module.declare_function(&format!("kernel{at}"), Linkage::Local, &signature).map_err(internal)?;
        define(module, id, code, &known)?;
        ids.push(id);
    }
    module.finalize_definitions().map_err(internal)?;
    let functions = ids.iter().map(|&id| {
        let address = module.get_finalized_function(id);
        // SAFETY: the function was emitted with the signature of `KernelFn`, and its memory is executable now. Stored functions were
        // emitted so by the process that stored them.
        unsafe { std::mem::transmute::<*const u8, KernelFn>(address) }
    });
    let functions: Vec<KernelFn> = functions.collect();
    jit.functions = compiled.of_kernel.iter().map(|&at| functions[at]).collect();
    Ok(jit)
}

/// Functions that code calls instead of missing instructions: not every process has C's functions available.
fn missing_instructions() -> [(&'static str, *const u8); 10] {
    macro_rules! functions {
        ($($name:ident: $of:ident($($x:ident),*) $float:ident,)*) => {
            [$({
                extern "C" fn $name($($x: $float),*) -> $float {
                    $float::$of($($x),*)
                }
                (stringify!($name), $name as *const u8)
            },)*]
        };
    }
    functions! {
        ceilf: ceil(x) f32,
        ceil: ceil(x) f64,
        floorf: floor(x) f32,
        floor: floor(x) f64,
        truncf: trunc(x) f32,
        trunc: trunc(x) f64,
        nearbyintf: round_ties_even(x) f32,
        nearbyint: round_ties_even(x) f64,
        fmaf: mul_add(x, y, z) f32,
        fma: mul_add(x, y, z) f64,
    }
}

/// Byte shuffles for processors without the instruction. The code generator passes vectors in the C convention, and so do these
/// functions. Executables have their own.
#[cfg(target_arch = "x86_64")]
fn missing_shuffle() -> [(&'static str, *const u8); 1] {
    use std::arch::x86_64::__m128i;
    #[allow(improper_ctypes_definitions)]
    extern "C" fn shuffle_bytes(bytes: __m128i, picks: __m128i) -> __m128i {
        // SAFETY: all of these are sixteen bytes, of which every pattern is valid.
        unsafe {
            let [bytes, picks] = std::mem::transmute::<[__m128i; 2], [[u8; 16]; 2]>([bytes, picks]);
            let picked = picks.map(|pick| if pick & 0x80 == 0 { bytes[usize::from(pick & 15)] } else { 0 });
            std::mem::transmute::<[u8; 16], __m128i>(picked)
        }
    }
    let shuffle: extern "C" fn(__m128i, __m128i) -> __m128i = shuffle_bytes;
    [("__cranelift_x86_pshufb", shuffle as *const u8)]
}

/// All these processors have the instruction.
#[cfg(not(target_arch = "x86_64"))]
fn missing_shuffle() -> [(&'static str, *const u8); 0] {
    []
}

impl LoadedCode for Jit {
    fn run(&self, kernel: usize, buffers: &mut [Vec<u8>], scalars: &[i64], begin: i64, end: i64) -> i64 {
        let pointers: Vec<*mut u8> = buffers.iter_mut().map(|buffer| buffer.as_mut_ptr()).collect();
        // SAFETY: the caller supplies buffers with room for all accesses of the kernel.
        unsafe { self.functions[kernel](pointers.as_ptr(), scalars.as_ptr(), begin, end) }
    }

    fn functions(&self) -> Result<&[KernelFn], CodegenError> {
        Ok(&self.functions)
    }

    fn stored(&self) -> Option<Vec<u8>> {
        self.compiled.stored()
    }

    fn into_kernels(mut self: Box<Self>) -> Result<Kernels, CodegenError> {
        std::mem::forget(self.module.take());
        // SAFETY: the code is never freed. Kernels and program come from one compilation, which orders accesses to the same memory
        // and gives each kernel the buffers that it was made for.
        Ok(unsafe { Kernels::new(std::mem::take(&mut self.functions)) })
    }
}

impl Drop for Jit {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: function pointers are lent for the lifetime of `self` only.
            unsafe { module.free_memory() };
        }
    }
}

fn internal(error: ModuleError) -> CodegenError {
    CodegenError::Internal(error.to_string())
}

/// The functions that kernels may call.
pub(super) struct Callees {
    /// The math functions of the module.
    pub math: Vec<(MathSymbol, FuncId)>,
    /// The runtime's random bits, if a kernel draws them.
    random_bits: Option<FuncId>,
}

impl Callees {
    /// Declares the functions of the runtime that kernels call.
    pub fn new(module: &mut impl Module, compiled: &Compiled) -> Result<Callees, CodegenError> {
        let mut relocations = compiled.functions.iter().flat_map(|code| &code.relocations);
        let draws = relocations.any(|relocation| matches!(relocation.symbol, Symbol::RandomBits));
        let random_bits = if draws {
            let signature = draws::signature(module.isa().default_call_conv());
            let id = module.declare_function(spmdc_threefry::SYMBOL, Linkage::Import, &signature);
            Some(id.map_err(internal)?)
        } else {
            None
        };
        Ok(Callees { math: Vec::new(), random_bits })
    }
}

/// Adds a function to a module.
pub(super) fn define(
    module: &mut impl Module,
    id: FuncId,
    code: &FunctionCode,
    known: &Callees,
) -> Result<(), CodegenError> {
    let relocations = code
        .relocations
        .iter()
        .map(|relocation| {
            let name = match relocation.symbol {
                Symbol::Math(symbol) => {
                    let found = known.math.iter().find(|(other, _)| *other == symbol);
                    let missing = || CodegenError::Internal(format!("no function `{}`", symbol.name()));
                    ModuleRelocTarget::from(found.ok_or_else(missing)?.1)
                }
                Symbol::RandomBits => {
                    let missing = || CodegenError::Internal(String::from("no function for random bits"));
                    ModuleRelocTarget::from(known.random_bits.ok_or_else(missing)?)
                }
                Symbol::Library(call) => ModuleRelocTarget::LibCall(call),
                Symbol::Inside(offset) => ModuleRelocTarget::FunctionOffset(id, offset),
            };
            Ok(ModuleReloc { offset: relocation.offset, kind: relocation.kind, name, addend: relocation.addend })
        })
        .collect::<Result<Vec<ModuleReloc>, CodegenError>>()?;
    module.define_function_bytes(id, code.alignment, &code.bytes, &relocations).map_err(internal)
}

/// The address of a math function of one number in this process.
fn address_of_one(function: MathFn, lane: Type) -> *const u8 {
    if lane == F32 { function.c_f32() as *const u8 } else { function.c_f64() as *const u8 }
}

fn address_of_two(function: MathFn2, lane: Type) -> *const u8 {
    macro_rules! address {
        ($function:ident) => {{
            extern "C" fn single(x: f32, y: f32) -> f32 {
                spmdc_math::eval2_f32(MathFn2::$function, x, y)
            }
            extern "C" fn double(x: f64, y: f64) -> f64 {
                spmdc_math::eval2_f64(MathFn2::$function, x, y)
            }
            if lane == F32 { single as *const u8 } else { double as *const u8 }
        }};
    }
    match function {
        MathFn2::Pow => address!(Pow),
        MathFn2::Atan2 => address!(Atan2),
        MathFn2::Hypot => address!(Hypot),
        MathFn2::Logaddexp => address!(Logaddexp),
    }
}

fn address_of_rare(rare: Rare, lane: Type) -> *const u8 {
    macro_rules! address {
        ($rare:ident) => {{
            extern "C" fn single(x: f32) -> f32 {
                spmdc_math::rare_f32(&mut SingleLane, Rare::$rare, x)
            }
            extern "C" fn double(x: f64) -> f64 {
                spmdc_math::rare_f64(&mut SingleLane, Rare::$rare, x)
            }
            if lane == F32 { single as *const u8 } else { double as *const u8 }
        }};
    }
    match rare {
        Rare::Sin => address!(Sin),
        Rare::Cos => address!(Cos),
        Rare::Tan => address!(Tan),
    }
}

fn math_address(call: MathCall, lane: Type) -> *const u8 {
    extern "C" fn remainder_f32(x: f32, y: f32) -> f32 {
        x % y
    }
    extern "C" fn remainder_f64(x: f64, y: f64) -> f64 {
        x % y
    }
    match call {
        MathCall::One(f) => address_of_one(f, lane),
        MathCall::Two(f) => address_of_two(f, lane),
        MathCall::Rare(rare) => address_of_rare(rare, lane),
        MathCall::Remainder if lane == F32 => remainder_f32 as *const u8,
        MathCall::Remainder => remainder_f64 as *const u8,
    }
}
