//! Machine code of kernels: the target processor, and the compilation of many kernels at once.
//!
//! `run` uses the features of the host, which must be at least the level `x86-64-v3` (AVX2 and FMA) or `armv8-a`. Objects are for a
//! level, [`Cpu`], and list the features that they need, so that the runtime can refuse to start on a machine without them.
//!
//! The bits of results do not depend on the choice. Arithmetic of the program is never contracted: `a * x + b` is a rounded product
//! and a rounded sum everywhere. Math functions request fused multiply-add, which is exact by definition: an instruction if there
//! is one, otherwise a call of the C library's `fma`, which is slow but rounds in the same way. Vectors have the same width on
//! every level, so that sums have the same partial sums.

use super::draws;
use super::kernel::{self, EmitOptions};
use super::math_calls::{MathCall, MathStyle, MathSymbol};
use super::vector::{Bundle, Vector};
use cranelift_codegen::binemit::{Addend, CodeOffset, Reloc};
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::types::{F32, F64};
use cranelift_codegen::ir::{ExternalName, Function, InstBuilder, LibCall, UserFuncName};
use cranelift_codegen::isa::{OwnedTargetIsa, TargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_codegen::{Context, FinalizedRelocTarget};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use spmdc_abi::CPU_FEATURES;
use spmdc_kernel::backend::{CodegenError, Cpu, Destination, TextForm};
use spmdc_kernel::loops::Kernel;
use spmdc_kernel::nest::{Nest, NestOf};
use spmdc_wide::VectorLevel;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The features of x86-64-v3 known to Cranelift.
const X86_64_V3: [&str; 11] = [
    "has_sse3",
    "has_ssse3",
    "has_sse41",
    "has_sse42",
    "has_popcnt",
    "has_avx",
    "has_avx2",
    "has_fma",
    "has_bmi1",
    "has_bmi2",
    "has_lzcnt",
];

/// Cranelift's description of the target machine.
pub fn isa(destination: Destination) -> Result<OwnedTargetIsa, CodegenError> {
    match destination {
        Destination::Memory => isa_of(Cpu::Native, false),
        Destination::Object(cpu) => isa_of(cpu, true),
    }
}

pub(super) fn isa_of(cpu: Cpu, is_pic: bool) -> Result<OwnedTargetIsa, CodegenError> {
    let internal = |error: &dyn std::fmt::Display| CodegenError::Internal(error.to_string());
    let mut flags = settings::builder();
    for (name, value) in [
        ("opt_level", "speed"),
        // `finish` verifies each function once, as it is emitted; the flag has it verified after every pass of Cranelift's own.
        ("enable_verifier", "false"),
        ("is_pic", if is_pic { "true" } else { "false" }),
        ("unwind_info", "false"),
        // Frames larger than a page, which tiles of random bits need, touch each of their pages.
        ("enable_probestack", "true"),
        ("probestack_strategy", "inline"),
    ] {
        flags.set(name, value).map_err(|error| internal(&error))?;
    }
    check_host(cpu)?;
    let native = cpu == Cpu::Native;
    let mut builder =
        cranelift_native::builder_with_options(native).map_err(|reason| CodegenError::Machine(reason.to_string()))?;
    if cpu == Cpu::X86_64V3 {
        for feature in X86_64_V3 {
            builder.enable(feature).map_err(|error| internal(&error))?;
        }
    }
    builder.finish(settings::Flags::new(flags)).map_err(|error| internal(&error))
}

/// The features that code for this machine needs: a bit for each of [`CPU_FEATURES`].
pub fn needed_features(isa: &dyn TargetIsa) -> Result<u64, CodegenError> {
    let flags = isa.isa_flags();
    let names = flags.iter().filter(|flag| flag.as_bool() == Some(true));
    features_of(&names.filter_map(|flag| flag.name.strip_prefix("has_")).collect::<Vec<_>>())
}

/// The features that functions need beyond those of the machine that they are compiled for.
pub fn features_of_levels<'a>(codes: impl Iterator<Item = &'a FunctionCode>) -> Result<u64, CodegenError> {
    codes.filter_map(|code| code.level).try_fold(0, |bits, level| Ok(bits | features_of(level.features())?))
}

/// A bit for each of these features.
fn features_of(names: &[&str]) -> Result<u64, CodegenError> {
    names.iter().try_fold(0, |bits, name| {
        let unknown = || CodegenError::Internal(format!("the feature `{name}` has no bit"));
        Ok(bits | 1 << CPU_FEATURES.iter().position(|feature| feature == name).ok_or_else(unknown)?)
    })
}

/// Checks that code for these processors can be generated here, and, for the host, that it reaches the level of `run`.
fn check_host(cpu: Cpu) -> Result<(), CodegenError> {
    #[cfg(target_arch = "x86_64")]
    if cpu == Cpu::Native && !(std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma")) {
        let reason = "it lacks AVX2 or FMA; spmdc needs an x86-64-v3 processor (Intel Haswell, AMD Zen, or later)";
        return Err(CodegenError::Machine(String::from(reason)));
    }
    let (x86, arm) = (cfg!(target_arch = "x86_64"), cfg!(target_arch = "aarch64"));
    let (possible, reason) = match cpu {
        Cpu::Native => (x86 || arm, "only x86-64 and aarch64 are supported"),
        Cpu::X86_64V3 | Cpu::X86_64 => (x86, "code for x86-64 can be made on x86-64 only"),
        Cpu::Armv8A => (arm, "code for armv8-a can be made on aarch64 only"),
    };
    if possible { Ok(()) } else { Err(CodegenError::Machine(String::from(reason))) }
}

/// One compiled function.
#[derive(Clone, Debug)]
pub struct FunctionCode {
    pub bytes: Vec<u8>,
    pub alignment: u64,
    pub relocations: Vec<Relocation>,
    /// The machine instructions as text, if asked for.
    pub listing: Option<String>,
    /// The level of its wide vectors.
    pub level: Option<VectorLevel>,
}

/// A position in the code that holds an address.
#[derive(Clone, Copy, Debug)]
pub struct Relocation {
    pub offset: CodeOffset,
    pub kind: Reloc,
    pub addend: Addend,
    pub symbol: Symbol,
}

#[derive(Clone, Copy, Debug)]
pub enum Symbol {
    Math(MathSymbol),
    /// The runtime's random bits.
    RandomBits,
    Library(LibCall),
    /// An offset into the function itself.
    Inside(CodeOffset),
}

/// The functions of some kernels.
pub struct Compiled {
    /// The distinct functions.
    pub functions: Vec<FunctionCode>,
    /// For each kernel the index of its function.
    pub of_kernel: Vec<usize>,
    /// For each function one with wide vectors; empty if none were wanted.
    pub wide: Vec<Option<FunctionCode>>,
    /// The bulk math functions that they call.
    pub bulk: Vec<(MathSymbol, FunctionCode)>,
}

impl Compiled {
    /// The scalar math functions that the others call, each once.
    pub fn scalar_functions(&self) -> Vec<MathSymbol> {
        let bulk = self.bulk.iter().map(|(_, code)| code);
        math_symbols(self.functions.iter().chain(self.wide.iter().flatten()).chain(bulk), false)
    }
}

fn math_symbols<'a>(codes: impl Iterator<Item = &'a FunctionCode>, bulk: bool) -> Vec<MathSymbol> {
    let mut symbols = Vec::new();
    for relocation in codes.flat_map(|code| &code.relocations) {
        if let Symbol::Math(symbol) = relocation.symbol
            && symbol.bulk == bulk
            && !symbols.contains(&symbol)
        {
            symbols.push(symbol);
        }
    }
    symbols
}

/// Compiles kernels with vectors of a level where possible, others to run as `nest` says; equal ones once, many ones on several
/// threads.
pub fn compile(
    isa: &dyn TargetIsa,
    level: Option<VectorLevel>,
    kernels: &[Kernel],
    nest: &NestOf,
) -> Result<Compiled, CodegenError> {
    let (distinct, of_kernel) = distinct(kernels);
    let functions = in_parallel(distinct.len(), |at, scratch| {
        let kernel = distinct[at];
        match level.and_then(|level| wide(isa, kernel, level)) {
            Some(code) => Ok(code),
            None => narrow(isa, kernel, nest, scratch),
        }
    })?;
    let bulk = bulk_functions(isa, functions.iter())?;
    Ok(Compiled { functions, of_kernel, wide: Vec::new(), bulk })
}

/// Compiles kernels with vectors of a level if possible, and if possible a second time with vectors of a better level.
pub fn compile_both(
    isa: &dyn TargetIsa,
    [level, better]: [Option<VectorLevel>; 2],
    kernels: &[Kernel],
) -> Result<Compiled, CodegenError> {
    let Compiled { functions, of_kernel, .. } = compile(isa, level, kernels, &Nest::new)?;
    let (distinct, _) = distinct(kernels);
    let wide = match better {
        None => Vec::new(),
        Some(level) => in_parallel(distinct.len(), |at, _| Ok(wide(isa, distinct[at], level)))?,
    };
    let bulk = bulk_functions(isa, functions.iter().chain(wide.iter().flatten()))?;
    Ok(Compiled { functions, of_kernel, wide, bulk })
}

/// The levels of objects: of their kernels, and of the second table of kernels, which is used on processors that have more features.
pub fn object_levels(cpu: Cpu) -> [Option<VectorLevel>; 2] {
    match cpu {
        Cpu::Native => [VectorLevel::of_host(), None],
        Cpu::X86_64V3 => [Some(VectorLevel::V3), Some(VectorLevel::V4)],
        Cpu::X86_64 | Cpu::Armv8A => [None, None],
    }
}

/// The distinct kernels, and for each kernel its number among them.
fn distinct(kernels: &[Kernel]) -> (Vec<&Kernel>, Vec<usize>) {
    let (mut distinct, mut known) = (Vec::new(), HashMap::new());
    let of_kernel = kernels
        .iter()
        .map(|kernel| {
            *known.entry(kernel).or_insert_with(|| {
                distinct.push(kernel);
                distinct.len() - 1
            })
        })
        .collect();
    (distinct, of_kernel)
}

fn narrow(
    isa: &dyn TargetIsa,
    kernel: &Kernel,
    nest: &NestOf,
    scratch: &mut Scratch,
) -> Result<FunctionCode, CodegenError> {
    let function = kernel::emit(kernel, &nest(kernel), options(isa), &mut scratch.builder);
    finish(isa, function, false, &mut scratch.control)
}

/// The bulk math functions that the code calls.
fn bulk_functions<'a>(
    isa: &dyn TargetIsa,
    codes: impl Iterator<Item = &'a FunctionCode>,
) -> Result<Vec<(MathSymbol, FunctionCode)>, CodegenError> {
    math_symbols(codes, true).into_iter().map(|symbol| Ok((symbol, math_function(isa, symbol)?))).collect()
}

/// A kernel's function as text: in Cranelift's form, or as instructions.
pub fn text(
    kernel: &Kernel,
    form: TextForm,
    destination: Destination,
    level: Option<VectorLevel>,
) -> Result<String, CodegenError> {
    let isa = isa(destination)?;
    let level = match destination {
        Destination::Memory => level,
        Destination::Object(cpu) => object_levels(cpu)[0],
    };
    if form == TextForm::Assembly
        && let Some(code) = level.and_then(|level| spmdc_wide::compile(kernel, level, false))
    {
        return listing(&*isa, &code);
    }
    let function = kernel::emit(kernel, &Nest::new(kernel), options(&*isa), &mut FunctionBuilderContext::new());
    match form {
        TextForm::Intermediate => Ok(function.display().to_string()),
        TextForm::Assembly => {
            let code = guarded(|| finish(&*isa, function, true, &mut ControlPlane::default()))?;
            code.listing.ok_or_else(|| CodegenError::Internal(String::from("no listing was made")))
        }
    }
}

/// The instructions of code as text, one a line.
fn listing(isa: &dyn TargetIsa, code: &spmdc_wide::WideCode) -> Result<String, CodegenError> {
    let internal = |error: &dyn std::fmt::Display| CodegenError::Internal(error.to_string());
    let decoder = isa.to_capstone().map_err(|error| internal(&error))?;
    let instructions = decoder.disasm_all(&code.bytes[..code.constants], 0).map_err(|error| internal(&error))?;
    let lines = instructions.iter().map(|inst| {
        let text =
            format!("{:6x}:   {} {}", inst.address(), inst.mnemonic().unwrap_or(""), inst.op_str().unwrap_or(""));
        String::from(text.trim_end()) + "\n"
    });
    Ok(lines.collect())
}

/// Code of wide vectors, with its calls as relocations; None if the kernel is not supported.
fn wide(isa: &dyn TargetIsa, kernel: &Kernel, level: VectorLevel) -> Option<FunctionCode> {
    let code = spmdc_wide::compile(kernel, level, isa.flags().is_pic())?;
    let relocation = |call: &spmdc_wide::RareCall| {
        let lane = if call.double { F64 } else { F32 };
        // A distance counts from the end of its four bytes.
        let (kind, addend) = if call.near { (Reloc::X86CallPCRel4, -4) } else { (Reloc::Abs8, 0) };
        let symbol = Symbol::Math(MathSymbol { call: MathCall::Rare(call.function), lane, bulk: true });
        Relocation { offset: call.offset, kind, addend, symbol }
    };
    let relocations = code.calls.iter().map(relocation).collect();
    Some(FunctionCode { bytes: code.bytes, alignment: code.alignment, relocations, listing: None, level: Some(level) })
}

/// All math functions reachable from the code, each with its own code; None for functions of the C library.
pub fn math_functions(
    isa: &dyn TargetIsa,
    compiled: &Compiled,
) -> Result<Vec<(MathSymbol, Option<FunctionCode>)>, CodegenError> {
    let mut functions: Vec<(MathSymbol, Option<FunctionCode>)> =
        compiled.bulk.iter().map(|(symbol, code)| (*symbol, Some(code.clone()))).collect();
    let mut wanted = compiled.scalar_functions();
    while let Some(symbol) = wanted.pop() {
        if functions.iter().any(|(known, _)| *known == symbol) {
            continue;
        }
        let code = if symbol.is_external() { None } else { Some(math_function(isa, symbol)?) };
        wanted.extend(math_symbols(code.iter(), false));
        functions.push((symbol, code));
    }
    Ok(functions)
}

/// The code of a math function that kernels call.
fn math_function(isa: &dyn TargetIsa, symbol: MathSymbol) -> Result<FunctionCode, CodegenError> {
    let MathSymbol { call, lane, bulk } = symbol;
    let convention = isa.default_call_conv();
    let mut function = Function::with_name_signature(UserFuncName::default(), symbol.signature(convention));
    let mut context = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut function, &mut context);
    let entry = builder.create_block();
    builder.append_block_params_for_function_params(entry);
    builder.switch_to_block(entry);
    let params = builder.block_params(entry).to_vec();
    let style = MathStyle { call_scalars: false, near: options(isa).near, convention };
    let mut scalars = Vector { builder: &mut builder, lanes: 1 };
    if let (true, &[address, count]) = (bulk, &params[..]) {
        scalars.bulk_body(call, lane, [address, count], style);
    } else {
        let args: Vec<Bundle> = params.iter().map(|&param| Bundle::new(lane, &[param])).collect();
        let result = scalars.math_body(call, &args, style);
        builder.ins().return_(&[result.single()]);
    }
    builder.seal_all_blocks();
    builder.finalize(isa.frontend_config());
    guarded(|| finish(isa, function, false, &mut ControlPlane::default()))
}

fn options(isa: &dyn TargetIsa) -> EmitOptions {
    EmitOptions { frontend: isa.frontend_config(), near: isa.flags().is_pic(), moves_loads: may_move_loads(isa) }
}

/// Whether a load may be an operand in memory. Without AVX such operands must be aligned, and Cranelift 0.135 does not see to that in
/// comparisons of floats.
fn may_move_loads(isa: &dyn TargetIsa) -> bool {
    isa.name() != "x64" || isa.isa_flags().iter().any(|flag| flag.name == "has_avx" && flag.as_bool() == Some(true))
}

/// The reusable state of a compiling thread.
#[derive(Default)]
struct Scratch {
    builder: FunctionBuilderContext,
    control: ControlPlane,
}

/// Minimum number of functions for a further thread.
const FUNCTIONS_PER_THREAD: usize = 2;

fn in_parallel<T: Send>(
    count: usize,
    work: impl Fn(usize, &mut Scratch) -> Result<T, CodegenError> + Sync,
) -> Result<Vec<T>, CodegenError> {
    let threads = match count.div_ceil(FUNCTIONS_PER_THREAD) {
        // To count the cores takes longer than to compile a small function.
        0 | 1 => 1,
        most => std::thread::available_parallelism().map_or(1, usize::from).min(most),
    };
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<Result<T, CodegenError>>>> = (0..count).map(|_| Mutex::new(None)).collect();
    let run = || {
        let mut scratch = Scratch::default();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(slot) = results.get(at) else { return };
            let result = guarded(|| work(at, &mut scratch));
            if let Ok(mut slot) = slot.lock() {
                *slot = Some(result);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(run);
        }
        run();
    });
    let missing = || Err(CodegenError::Internal(String::from("a compiling thread was lost")));
    results.into_iter().map(|slot| slot.into_inner().ok().flatten().unwrap_or_else(missing)).collect()
}

/// A panic of the code generator as an error.
fn guarded<T>(work: impl FnOnce() -> Result<T, CodegenError>) -> Result<T, CodegenError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        Err(CodegenError::Internal(String::from(text.unwrap_or("the code generator stopped"))))
    })
}

/// From Cranelift's IR to bytes.
fn finish(
    isa: &dyn TargetIsa,
    function: Function,
    listing: bool,
    control: &mut ControlPlane,
) -> Result<FunctionCode, CodegenError> {
    if cfg!(debug_assertions) {
        let verified = cranelift_codegen::verify_function(&function, isa);
        verified.map_err(|errors| CodegenError::Internal(format!("a function is not valid: {errors}")))?;
    }
    let mut context = Context::for_function(function);
    context.set_disasm(listing);
    context.compile(isa, control).map_err(|error| CodegenError::Internal(format!("{:?}", error.inner)))?;
    let names = context.func.params.user_named_funcs().clone();
    let code = context.take_compiled_code().ok_or_else(|| CodegenError::Internal(String::from("no code was made")))?;
    let relocations = code
        .buffer
        .relocs()
        .iter()
        .map(|relocation| {
            let symbol = match &relocation.target {
                FinalizedRelocTarget::Func(offset) => Some(Symbol::Inside(*offset)),
                FinalizedRelocTarget::ExternalName(ExternalName::User(name)) => match &names[*name] {
                    name if draws::is_external(name) => Some(Symbol::RandomBits),
                    name => MathSymbol::from_external(name).map(Symbol::Math),
                },
                FinalizedRelocTarget::ExternalName(ExternalName::LibCall(call)) => Some(Symbol::Library(*call)),
                FinalizedRelocTarget::ExternalName(_) => None,
            };
            let symbol = symbol.ok_or_else(|| CodegenError::Internal(String::from("an unknown symbol")))?;
            Ok(Relocation { offset: relocation.offset, kind: relocation.kind, addend: relocation.addend, symbol })
        })
        .collect::<Result<_, CodegenError>>()?;
    Ok(FunctionCode {
        bytes: code.buffer.data().to_vec(),
        alignment: u64::from(code.buffer.alignment).max(16),
        relocations,
        listing: code.vcode,
        level: None,
    })
}
