//! Tiles of random bits: calls of the runtime, and reads of the elements.

use super::arithmetic::memory_type;
use super::kernel::{Emitter, Tile};
use super::vector::Bundle;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{
    AbiParam, ExtFuncData, ExternalName, FuncRef, InstBuilder, Signature, StackSlot, StackSlotData, StackSlotKind,
    UserExternalName, Value,
};
use cranelift_codegen::isa::CallConv;
use spmdc_abi::DType;
use spmdc_kernel::loops::{Elem, Inst};
use spmdc_threefry::BitsForm;

/// The namespace of the function among the external names of a kernel.
const NAMESPACE: u32 = 2;

/// Whether an external name is the name of the runtime's function.
pub fn is_external(name: &UserExternalName) -> bool {
    name.namespace == NAMESPACE
}

/// The signature of [`spmdc_threefry::fill`].
pub fn signature(convention: CallConv) -> Signature {
    let mut signature = Signature::new(convention);
    signature.params = vec![AbiParam::new(I64); 5];
    signature
}

impl Emitter<'_, '_> {
    /// Draws the bits of `count` points of the loop that is cut, from the index `first` on.
    pub fn fill_tiles(&mut self, first: Value, count: Value) {
        let nest = self.nest;
        let (Some(tiles), Some(cut)) = (&nest.tiles, &nest.cut) else { return };
        self.indices[cut.dim] = first;
        self.tile_start = Some(first);
        let function = self.random_bits();
        for &draw in &tiles.draws {
            let Inst::RandomBits { dtype, key, at } = &nest.insts[draw.0 as usize] else { continue };
            let slot = self.tile(draw, tiles.points * dtype.size() as u32);
            let key = self.operand(*key, 1);
            let key = self.vector(1).cast(DType::Key, DType::U64, key).single();
            let counter = self.affine(at);
            let to = self.builder.ins().stack_addr(I64, slot, 0);
            let form = BitsForm::of(*dtype).expect("random bits are unsigned integers or keys");
            let form = self.builder.ins().iconst(I64, form as i64);
            self.builder.ins().call(function, &[to, key, counter, count, form]);
        }
    }

    /// The elements of the current bundle, from the tile.
    pub fn drawn(&mut self, draw: Elem, dtype: DType, lanes: u32) -> Bundle {
        let cut = self.nest.cut.as_ref().expect("tiles lie along a loop that is cut");
        let tile = self.tiles.iter().find(|tile| tile.draw == draw);
        let slot = tile.expect("tiles are filled before they are read; other bits have instructions").slot;
        let start = self.tile_start.expect("tiles begin somewhere");
        let at = self.builder.ins().isub(self.indices[cut.dim], start);
        let base = self.builder.ins().stack_addr(I64, slot, 0);
        let address = self.add_product(Some(base), at, dtype.size() as i64);
        self.vector(lanes).load(memory_type(dtype), address, 0)
    }

    /// The memory for a tile; the memory of the last tile if a loop has the same bits.
    fn tile(&mut self, draw: Elem, bytes: u32) -> StackSlot {
        if let Some(tile) = self.tiles.iter().find(|tile| tile.draw == draw) {
            return tile.slot;
        }
        let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 4);
        let slot = self.builder.create_sized_stack_slot(slot);
        self.tiles.push(Tile { draw, slot });
        slot
    }

    fn random_bits(&mut self) -> FuncRef {
        let name = UserExternalName::new(NAMESPACE, 0);
        let names = self.builder.func.params.user_named_funcs();
        let is_named = |external: &ExternalName| matches!(external, ExternalName::User(user) if names[*user] == name);
        let known = self.builder.func.dfg.ext_funcs.iter().find(|(_, data)| is_named(&data.name));
        if let Some((function, _)) = known {
            return function;
        }
        let convention = self.builder.func.signature.call_conv;
        let signature = self.builder.import_signature(signature(convention));
        let name = ExternalName::user(self.builder.func.declare_imported_user_function(name));
        self.builder.import_function(ExtFuncData { name, signature, colocated: false, patchable: false })
    }
}
