//! Math functions that kernels call instead of inlining them.
//!
//! Scalars call where inlining gains little: for the remaining elements at the end of a vector loop. *Bulk* calls serve the rare
//! lanes that a vector function jumps around: operands and results are passed in memory, and the function preserves every register,
//! so that the loop around the call keeps its registers. A bulk function is a loop of scalar calls.

use super::vector::{Bundle, Vector, memory};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F32, F64, I64};
use cranelift_codegen::ir::{
    AbiParam, BlockArg, ExtFuncData, ExternalName, FuncRef, InstBuilder, Signature, StackSlotData, StackSlotKind, Type,
    UserExternalName, Value,
};
use cranelift_codegen::isa::CallConv;
use spmdc_math::{MathFn, MathFn2, Rare};

/// A function of scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MathCall {
    One(MathFn),
    Two(MathFn2),
    Rare(Rare),
    /// The C library's `fmod`.
    Remainder,
}

impl MathCall {
    /// Every function that a kernel may call.
    pub fn all() -> impl Iterator<Item = MathCall> {
        let one = MathFn::ALL.iter().map(|&f| MathCall::One(f));
        let two = MathFn2::ALL.iter().map(|&f| MathCall::Two(f));
        let rare = [Rare::Sin, Rare::Cos, Rare::Tan].map(MathCall::Rare);
        one.chain(two).chain(rare).chain([MathCall::Remainder])
    }

    fn operands(self) -> usize {
        if matches!(self, MathCall::Two(_) | MathCall::Remainder) { 2 } else { 1 }
    }
}

/// A function as a symbol: of `f32` or `f64`, of scalars (`extern "C" fn(f32) -> f32`) or in bulk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MathSymbol {
    pub call: MathCall,
    pub lane: Type,
    pub bulk: bool,
}

/// The namespace of these functions among the external names of a kernel.
const NAMESPACE: u32 = 1;

impl MathSymbol {
    /// A number of 32 bits that no other function has.
    pub fn number(self) -> u32 {
        let number = match self.call {
            MathCall::One(f) => f as u32,
            MathCall::Two(f) => 100 + f as u32,
            MathCall::Rare(rare) => 200 + rare as u32,
            MathCall::Remainder => 300,
        };
        4 * number + 2 * u32::from(self.bulk) + u32::from(self.lane == F64)
    }

    /// The function with this number.
    pub fn from_number(number: u32) -> Option<MathSymbol> {
        let (lane, bulk) = (if number & 1 == 0 { F32 } else { F64 }, number & 2 != 0);
        let symbols = MathCall::all().map(|call| MathSymbol { call, lane, bulk });
        symbols.into_iter().find(|symbol| symbol.number() == number)
    }

    fn external(self) -> UserExternalName {
        UserExternalName::new(NAMESPACE, self.number())
    }

    /// The function of an external name.
    pub fn from_external(name: &UserExternalName) -> Option<MathSymbol> {
        if name.namespace == NAMESPACE { MathSymbol::from_number(name.index) } else { None }
    }

    /// Its name in objects.
    pub fn name(self) -> String {
        let width = if self.lane == F32 { "f32" } else { "f64" };
        let name = match self.call {
            MathCall::One(f) => f.name(),
            MathCall::Two(f) => f.name(),
            MathCall::Rare(Rare::Sin) => "rare_sin",
            MathCall::Rare(Rare::Cos) => "rare_cos",
            MathCall::Rare(Rare::Tan) => "rare_tan",
            MathCall::Remainder if self.bulk => "fmod",
            MathCall::Remainder => return String::from(if self.lane == F32 { "fmodf" } else { "fmod" }),
        };
        format!("spmd_{}{name}_{width}", if self.bulk { "bulk_" } else { "" })
    }

    /// Whether the C library provides it.
    pub fn is_external(self) -> bool {
        self.call == MathCall::Remainder && !self.bulk
    }

    /// Bulk functions take the address of `count` first operands, followed by the second ones, and overwrite the first ones with
    /// the results.
    pub fn signature(self, convention: CallConv) -> Signature {
        if self.bulk {
            let mut signature = Signature::new(CallConv::PreserveAll);
            signature.params = vec![AbiParam::new(I64); 2];
            return signature;
        }
        let mut signature = Signature::new(convention);
        signature.params = vec![AbiParam::new(self.lane); self.call.operands()];
        signature.returns.push(AbiParam::new(self.lane));
        signature
    }
}

/// The form of math functions in code.
#[derive(Clone, Copy, Debug)]
pub struct MathStyle {
    /// Whether scalars call; vectors are always inlined.
    pub call_scalars: bool,
    /// Whether the functions are in the same object as the kernels.
    pub near: bool,
    /// The calling convention of scalar functions.
    pub convention: CallConv,
}

impl Vector<'_, '_> {
    /// Calls a function on scalars.
    pub fn call_scalar(&mut self, call: MathCall, args: &[Bundle], style: MathStyle) -> Bundle {
        let lane = args[0].lane;
        let function = self.import(MathSymbol { call, lane, bulk: false }, style);
        let args: Vec<Value> = args.iter().map(Bundle::single).collect();
        let inst = self.builder.ins().call(function, &args);
        let result = self.builder.inst_results(inst)[0];
        Bundle::new(lane, &[result])
    }

    /// Calls a function on every lane; the call preserves all registers.
    pub fn call_bulk(&mut self, call: MathCall, args: &[Bundle], style: MathStyle) -> Bundle {
        let lane = args[0].lane;
        let function = self.import(MathSymbol { call, lane, bulk: true }, style);
        let bytes = self.lanes * lane.bytes();
        let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, bytes * args.len() as u32, 4);
        let slot = self.builder.create_sized_stack_slot(slot);
        let address = self.builder.ins().stack_addr(I64, slot, 0);
        for (i, &arg) in args.iter().enumerate() {
            self.store(arg, address, bytes as i32 * i as i32);
        }
        let count = self.builder.ins().iconst(I64, i64::from(self.lanes));
        self.builder.ins().call(function, &[address, count]);
        self.load(lane, address, 0)
    }

    /// The body of a bulk function, from its parameters to its return.
    pub fn bulk_body(&mut self, call: MathCall, lane: Type, params: [Value; 2], style: MathStyle) {
        let [address, count] = params;
        let size = i64::from(lane.bytes());
        let bytes = self.builder.ins().imul_imm_s(count, size);
        let end = self.builder.ins().iadd(address, bytes);
        let (body, after) = (self.builder.create_block(), self.builder.create_block());
        let at = self.builder.append_block_param(body, I64);
        self.builder.ins().jump(body, &[BlockArg::from(address)]);
        self.builder.switch_to_block(body);
        let mut args = vec![self.load(lane, at, 0)];
        if call.operands() == 2 {
            let second = self.builder.ins().iadd(at, bytes);
            args.push(self.load(lane, second, 0));
        }
        let result = self.call_scalar(call, &args, style);
        self.builder.ins().store(memory(), result.single(), at, 0);
        let next = self.builder.ins().iadd_imm_s(at, size);
        let again = self.builder.ins().icmp(IntCC::UnsignedLessThan, next, end);
        self.builder.ins().brif(again, body, &[BlockArg::from(next)], after, &[]);
        self.builder.switch_to_block(after);
        self.builder.ins().return_(&[]);
    }

    /// The reference to an external function, declared at its first use.
    fn import(&mut self, symbol: MathSymbol, style: MathStyle) -> FuncRef {
        let name = symbol.external();
        let names = self.builder.func.params.user_named_funcs();
        let is_named = |external: &ExternalName| matches!(external, ExternalName::User(user) if names[*user] == name);
        let known = self.builder.func.dfg.ext_funcs.iter().find(|(_, data)| is_named(&data.name));
        if let Some((function, _)) = known {
            return function;
        }
        let signature = self.builder.import_signature(symbol.signature(style.convention));
        let name = ExternalName::user(self.builder.func.declare_imported_user_function(name));
        let colocated = style.near && !symbol.is_external();
        self.builder.import_function(ExtFuncData { name, signature, colocated, patchable: false })
    }
}
