//! Registers, and from instructions to bytes.

use crate::code::{
    ElementRun, Finished, INT, Instruction, Int, MASK, Mem, RAX, RegisterSlot, Rm, VECTOR, VectorInstruction,
    VectorLength,
};
use crate::encode::{self, Address, Alu, EncodedVector, Encoder, JumpLabel, Opcode, PoolConstant, RSP, RmPlace, Tuple};
use crate::level::VectorLevel;
use crate::ops;
use regalloc2::RegallocOptions;
use regalloc2::{Allocation, Block, Edit, Function as _, InstOrEdit, MachineEnv, PReg, PRegSet, RegClass};
use spmdc_math::Rare;

/// The register that holds the caller's stack pointer.
const RBP: u8 = 5;
/// Registers that a function must preserve, without `rbp`.
const PRESERVED: [usize; 5] = [3, 12, 13, 14, 15];
/// Registers that calls may change.
const SCRATCH: [usize; 9] = [0, 1, 2, 6, 7, 8, 9, 10, 11];

/// The mask register that gathers and scatters clear.
const USED_UP: u8 = 7;

/// Machine code.
#[derive(Clone, Debug)]
pub struct WideCode {
    /// Instructions, then their constants.
    pub bytes: Vec<u8>,
    /// The end of the last instruction.
    pub constants: usize,
    /// The required alignment, in bytes.
    pub alignment: u64,
    /// The functions that it calls.
    pub calls: Vec<RareCall>,
}

/// A call of a bulk math function, which computes in place: `fn(address, count)`, and preserves general registers.
#[derive(Clone, Copy, Debug)]
pub struct RareCall {
    /// The position of the address of the function in the code.
    pub offset: u32,
    /// The function.
    pub function: Rare,
    /// Whether it is of `f64`.
    pub double: bool,
    /// Whether the position holds a distance of 32 bits to the function, relative to its end, instead of an address of 64 bits.
    pub near: bool,
}

fn environment(level: VectorLevel) -> MachineEnv {
    let set = |class: RegClass, numbers: &mut dyn Iterator<Item = usize>| {
        let mut set = PRegSet::empty();
        numbers.for_each(|number| set.add(PReg::new(number, class)));
        set
    };
    let none = PRegSet::empty();
    let vectors = level.registers();
    MachineEnv {
        preferred_regs_by_class: [
            set(INT, &mut SCRATCH.into_iter()),
            set(VECTOR, &mut (0..vectors)),
            // The number 0 stands for no mask, and gathers use up the last one.
            set(MASK, &mut (1..usize::from(USED_UP))),
        ],
        non_preferred_regs_by_class: [set(INT, &mut PRESERVED.into_iter()), none, none],
        scratch_by_class: [None; 3],
        fixed_stack_slots: Vec::new(),
    }
}

/// Allocates registers and writes the code; `near` functions are reached by a distance. None if the allocator gives up.
pub fn emit(function: &Finished, level: VectorLevel, near: bool) -> Option<WideCode> {
    let options = RegallocOptions { validate_ssa: cfg!(debug_assertions), ..RegallocOptions::default() };
    let allocated = match regalloc2::run(function, &environment(level), &options) {
        Ok(allocated) => allocated,
        Err(error) => {
            debug_assert!(false, "registers cannot be allocated: {error:?}");
            return None;
        }
    };
    #[cfg(debug_assertions)]
    check(function, level, &allocated);
    let mut emitter = CodeWriter {
        level,
        near,
        asm: Encoder::new(function.num_blocks()),
        function,
        allocated: &allocated,
        used: PRegSet::empty(),
        frame: 0,
        rare: Vec::new(),
        calls: Vec::new(),
    };
    emitter.run();
    let CodeWriter { asm, calls, .. } = emitter;
    let constants = asm.bytes.len();
    let least = if level.evex { 0 } else { level.bytes() as usize };
    Some(WideCode { bytes: asm.finish(least), constants, alignment: 64, calls })
}

#[cfg(debug_assertions)]
fn check(function: &Finished, level: VectorLevel, allocated: &regalloc2::Output) {
    let env = environment(level);
    let mut checker = regalloc2::checker::Checker::new(function, &env);
    checker.prepare(allocated);
    if let Err(errors) = checker.run() {
        panic!("registers are allocated wrongly: {errors:?}");
    }
}

/// Code that computes rare lanes, after the code of the function.
struct RareCode {
    function: Rare,
    double: bool,
    to: u8,
    mask: u8,
    x: u8,
    enter: JumpLabel,
    back: JumpLabel,
}

struct CodeWriter<'f> {
    level: VectorLevel,
    near: bool,
    asm: Encoder,
    function: &'f Finished,
    allocated: &'f regalloc2::Output,
    /// The general registers that the function writes.
    used: PRegSet,
    /// Bytes of the frame.
    frame: i32,
    rare: Vec<RareCode>,
    calls: Vec<RareCall>,
}

/// Memory on the stack for the vectors of a rare call: all registers, then the operand and the result.
const SAVED_MASKS: i32 = 64;

impl CodeWriter<'_> {
    fn run(&mut self) {
        for edit in &self.allocated.edits {
            let Edit::Move { to, .. } = &edit.1;
            if let Some(register) = to.as_reg() {
                self.used.add(register);
            }
        }
        for register in self.allocated.allocs.iter().filter_map(|allocation| allocation.as_reg()) {
            self.used.add(register);
        }
        let saved: Vec<u8> = PRESERVED
            .into_iter()
            .filter(|&number| self.used.contains(PReg::new(number, INT)))
            .map(|n| n as u8)
            .collect();
        let slots = 8 * self.allocated.num_spillslots as i32;
        self.frame = self.function.stack + slots;
        self.asm.push(RBP);
        for &register in &saved {
            self.asm.push(register);
        }
        if self.frame > 0 {
            self.asm.move_register(RBP, RSP);
            self.asm.alu_constant(Alu::Sub, RSP, self.frame);
            self.asm.alu_constant(Alu::And, RSP, -64);
        }
        for at in 0..self.function.num_blocks() {
            self.block(Block::new(at), &saved);
        }
        for at in 0..self.rare.len() {
            self.rare_code(at);
        }
    }

    fn label(block: Block) -> JumpLabel {
        JumpLabel(block.index() as u32)
    }

    /// Whether the block only jumps.
    fn is_empty(&self, block: Block) -> bool {
        let mut all = self.allocated.block_insts_and_edits(self.function, block);
        matches!(all.next(), Some(InstOrEdit::Inst(inst)) if matches!(self.function.insts[inst.index()], Instruction::Jump))
    }

    /// The block that a jump to this one reaches.
    fn reached(&self, mut block: Block) -> Block {
        // A loop of empty blocks would have no end, and the builder makes none.
        while self.is_empty(block) {
            block = self.function.block_succs(block)[0];
        }
        block
    }

    /// Whether the code of `target` directly follows `block`.
    fn falls_through(&self, block: Block, target: Block) -> bool {
        let next = (block.index() + 1..self.function.num_blocks()).map(Block::new).find(|&next| !self.is_empty(next));
        next == Some(target)
    }

    fn block(&mut self, block: Block, saved: &[u8]) {
        self.asm.bind(Self::label(block));
        if self.is_empty(block) {
            // Nobody jumps here; a block before it that falls through goes on to the next one.
            return;
        }
        let items: Vec<_> = self.allocated.block_insts_and_edits(self.function, block).collect();
        for item in items {
            match item {
                InstOrEdit::Edit(Edit::Move { from, to }) => self.move_value(*from, *to),
                InstOrEdit::Inst(inst) => {
                    let operands = self.allocated.inst_allocs(inst).to_vec();
                    self.instruction(block, self.function.insts[inst.index()], &operands, saved);
                }
            }
        }
    }

    fn stack(&self, displacement: i32) -> Address {
        Address { base: RSP, index: None, displacement }
    }

    /// The binary logarithm of the level's vectors in units of 128 bits.
    fn whole(&self) -> u8 {
        (self.level.bits / 128).trailing_zeros() as u8
    }

    /// The register or the slot of a value.
    fn place(&self, value: Allocation) -> RmPlace {
        match value.as_reg() {
            Some(register) => RmPlace::Register(register.hw_enc() as u8),
            None => {
                let slot = value.as_stack().expect("values lie in registers or slots");
                RmPlace::Memory(self.stack(self.function.stack + 8 * slot.index() as i32))
            }
        }
    }

    fn move_value(&mut self, from: Allocation, to: Allocation) {
        let class = from.as_reg().or(to.as_reg()).expect("one side of a move is a register").class();
        let (move_aligned, load, store, length) = match class {
            RegClass::Int => {
                return match (self.place(from), self.place(to)) {
                    (RmPlace::Register(from), RmPlace::Register(to)) => self.asm.move_register(to, from),
                    (RmPlace::Register(from), RmPlace::Memory(to)) => self.asm.store(to, from),
                    (RmPlace::Memory(from), RmPlace::Register(to)) => self.asm.load(to, from),
                    (RmPlace::Memory(_) | RmPlace::Pool(_), _) | (_, RmPlace::Pool(_)) => {
                        unreachable!("one side of a move is a register")
                    }
                };
            }
            RegClass::Float => (ops::MOVE_ALIGNED, ops::LOAD, ops::STORE, self.whole()),
            RegClass::Vector => (ops::MOVE_MASK, ops::MOVE_MASK, ops::STORE_MASK, 0),
        };
        match (self.place(from), self.place(to)) {
            (from @ RmPlace::Register(_), RmPlace::Register(to)) => self.plain(move_aligned, length, to, from),
            (from, RmPlace::Register(to)) => self.plain(load, length, to, from),
            (RmPlace::Register(from), to) => self.plain(store, length, from, to),
            (RmPlace::Memory(_) | RmPlace::Pool(_), _) => unreachable!("one side of a move is a register"),
        }
    }

    /// An instruction of two operands without a mask.
    fn plain(&mut self, opcode: Opcode, length: u8, reg: u8, rm: RmPlace) {
        self.asm.vector(&EncodedVector::new(opcode, length, reg, rm), self.level.evex);
    }

    /// Makes a vector zero.
    fn clear(&mut self, register: u8) {
        let xor = EncodedVector::new(ops::Binary::Xor32.opcode(), self.whole(), register, RmPlace::Register(register));
        self.asm.vector(&EncodedVector { vvvv: register, ..xor }, self.level.evex);
    }

    /// An instruction on whole vectors under a mask.
    fn under_mask(&mut self, opcode: Opcode, reg: u8, rm: RmPlace, mask: u8) {
        let inst = EncodedVector { mask, ..EncodedVector::new(opcode, self.whole(), reg, rm) };
        self.asm.vector(&inst, self.level.evex);
    }

    fn instruction(&mut self, block: Block, inst: Instruction, operands: &[Allocation], saved: &[u8]) {
        let mut at = 0;
        let mut next = || {
            at += 1;
            operands[at - 1].as_reg().expect("operands lie in registers").hw_enc() as u8
        };
        match inst {
            Instruction::Parameters(_) => {}
            Instruction::Vector(vector) => self.vector(&vector, operands),
            Instruction::Constant { value, .. } => self.asm.move_constant(next(), value),
            Instruction::Load { from, .. } => {
                let from = address(&from, &mut next);
                self.asm.load(next(), from);
            }
            Instruction::Address { of, .. } => {
                let of = address(&of, &mut next);
                let to = next();
                match of {
                    Address { base, index: None, displacement: 0 } => self.asm.move_register(to, base),
                    of => self.asm.address(to, of),
                }
            }
            Instruction::StackAddress { displacement, .. } => {
                let of = self.stack(displacement);
                self.asm.address(next(), of);
            }
            Instruction::Alu { op, b, .. } => {
                let a = next();
                match b {
                    Int::Register(_) => self.asm.alu(op, a, next()),
                    Int::Constant(b) => self.asm.alu_constant(op, a, b),
                }
            }
            Instruction::Multiply { factor, .. } => {
                let a = next();
                self.asm.multiply_constant(next(), a, factor);
            }
            Instruction::MultiplyRegister { .. } => {
                let a = next();
                self.asm.multiply(a, next());
            }
            Instruction::ShiftLeft { by, .. } => self.asm.shift_left(next(), by),
            Instruction::ShiftRight { by, .. } => self.asm.shift_right(next(), by),
            Instruction::Min { .. } => {
                let (a, b) = (next(), next());
                self.asm.alu(Alu::Cmp, a, b);
                self.asm.move_if(encode::JumpCondition::Greater, a, b);
            }
            Instruction::Limit { .. } => {
                let (a, b) = (next(), next());
                self.asm.alu(Alu::Cmp, a, b);
                self.asm.move_if(encode::JumpCondition::Above, a, b);
            }
            Instruction::Rare { function, double, .. } => {
                let (to, mask, x) = (next(), next(), next());
                let (enter, back) = (self.asm.label(), self.asm.label());
                let (test, length) =
                    if self.level.evex { (ops::TEST_MASK, 0) } else { (ops::TEST_SIGNS, self.whole()) };
                self.plain(test, length, mask, RmPlace::Register(mask));
                self.asm.jump_if(encode::JumpCondition::NotEqual, enter);
                self.asm.bind(back);
                self.rare.push(RareCode { function, double, to, mask, x, enter, back });
            }
            Instruction::Gather { double, from, used_up, .. } => {
                let from = address(&from, &mut next);
                let (mask, to) = (next(), next());
                self.clear(to);
                let opcode = if double { ops::GATHER_DOUBLES } else { ops::GATHER };
                if used_up.is_some() {
                    let used_up = next();
                    self.plain(ops::MOVE_ALIGNED, self.whole(), used_up, RmPlace::Register(mask));
                    let gather = EncodedVector::new(opcode, self.whole(), to, RmPlace::Memory(from));
                    self.asm.vector(&EncodedVector { vvvv: used_up, ..gather }, false);
                } else {
                    self.plain(ops::MOVE_MASK, 0, USED_UP, RmPlace::Register(mask));
                    self.under_mask(opcode, to, RmPlace::Memory(from), USED_UP);
                }
            }
            Instruction::LoadElements { from, extend, run, .. } => {
                let from = address(&from, &mut next);
                let mask = next();
                let scratch = std::array::from_fn(|_| next());
                self.load_elements(next(), from, mask, extend, &run, scratch);
            }
            Instruction::StoreElements { to, run, .. } => {
                let to = address(&to, &mut next);
                let (mask, value) = (next(), next());
                self.store_elements(to, mask, value, &run, std::array::from_fn(|_| next()));
            }
            Instruction::Scatter { double, to, .. } => {
                let to = address(&to, &mut next);
                let (mask, value) = (next(), next());
                self.plain(ops::MOVE_MASK, 0, USED_UP, RmPlace::Register(mask));
                let opcode = if double { ops::SCATTER_DOUBLES } else { ops::SCATTER };
                self.under_mask(opcode, value, RmPlace::Memory(to), USED_UP);
            }
            Instruction::Prefetch { of } => {
                let of = address(&of, &mut next);
                self.asm.prefetch(of);
            }
            Instruction::Jump => {
                let to = self.reached(self.function.block_succs(block)[0]);
                if !self.falls_through(block, to) {
                    self.asm.jump(Self::label(to));
                }
            }
            Instruction::Branch { condition, b, .. } => {
                let a = next();
                match b {
                    Int::Register(_) => self.asm.alu(Alu::Cmp, a, next()),
                    Int::Constant(b) => self.asm.alu_constant(Alu::Cmp, a, b),
                }
                let sides = self.function.block_succs(block);
                let (then, otherwise) = (self.reached(sides[0]), self.reached(sides[1]));
                if self.falls_through(block, then) {
                    self.asm.jump_if(condition.negated(), Self::label(otherwise));
                } else {
                    self.asm.jump_if(condition, Self::label(then));
                    if !self.falls_through(block, otherwise) {
                        self.asm.jump(Self::label(otherwise));
                    }
                }
            }
            Instruction::Return { .. } => {
                debug_assert_eq!(usize::from(next()), RAX, "results are in rax");
                // Code of other generators and of the C library has 128-bit instructions without VEX.
                self.asm.zero_upper();
                if self.frame > 0 {
                    self.asm.move_register(RSP, RBP);
                }
                for &register in saved.iter().rev() {
                    self.asm.pop(register);
                }
                self.asm.pop(RBP);
                self.asm.ret();
            }
        }
    }

    fn vector(&mut self, inst: &VectorInstruction, operands: &[Allocation]) {
        let mut at = 0;
        let mut next = || {
            at += 1;
            operands[at - 1].as_reg().expect("operands lie in registers").hw_enc() as u8
        };
        inst.tied.into_iter().for_each(|_| {
            next();
        });
        let read = |slot: RegisterSlot, next: &mut dyn FnMut() -> u8| match slot {
            RegisterSlot::None | RegisterSlot::Def(_) => 0,
            RegisterSlot::Use(_) => next(),
            RegisterSlot::Digit(digit) => digit,
        };
        let mut reg = read(inst.reg, &mut next);
        let mut vvvv = read(inst.vvvv, &mut next);
        let mut broadcast = false;
        let mut rm = match inst.rm {
            Rm::Use(_) => RmPlace::Register(next()),
            Rm::Mem(mem) => RmPlace::Memory(address(&mem, &mut next)),
            Rm::Def(_) => RmPlace::Register(0),
            Rm::Digit(number) => RmPlace::Register(number),
            Rm::Const(constant) => {
                broadcast = self.level.evex && constant != PoolConstant::LaneNumbers;
                RmPlace::Pool(self.asm.constant(constant))
            }
            Rm::Stack(displacement) => RmPlace::Memory(self.stack(displacement)),
        };
        let (mut mask, zeroing) = inst.mask.map_or((0, false), |(_, zeroing)| (next(), zeroing));
        if let RegisterSlot::Def(_) = inst.reg {
            reg = next();
        } else if let RegisterSlot::Def(_) = inst.vvvv {
            vvvv = next();
        } else if let Rm::Def(_) = inst.rm {
            rm = RmPlace::Register(next());
        }
        let whole = self.whole();
        let length = match inst.length {
            VectorLength::Whole => whole,
            VectorLength::Half => whole.saturating_sub(1),
            VectorLength::Quarter => whole.saturating_sub(2),
            VectorLength::Least => 0,
            VectorLength::One => 1,
        };
        // A broadcast of its own has one element in memory anyway.
        let broadcast = broadcast && inst.opcode.tuple != Tuple::Four && inst.opcode.tuple != Tuple::Eight;
        let encoded = EncodedVector::new(inst.opcode, length, reg, rm);
        let mut immediate = inst.immediate;
        if !self.level.evex && inst.mask.is_some() {
            (mask, immediate) = (0, Some(mask << 4));
        }
        let inst = EncodedVector { vvvv, mask, zeroing, broadcast, immediate, ..encoded };
        self.asm.vector(&inst, self.level.evex);
    }

    /// Copies the elements of the lanes in a mask to the stack, one by one, and makes lanes of them; all at once if the mask has all.
    fn load_elements(&mut self, to: u8, from: Address, mask: u8, extend: Opcode, run: &ElementRun, scratch: [u8; 4]) {
        let [bits, lane, element, start] = scratch;
        let (all, done, end) = (self.asm.label(), self.asm.label(), self.asm.label());
        self.plain(ops::SIGNS, self.whole(), bits, RmPlace::Register(mask));
        let neighbours = run.stride == i32::from(run.bytes);
        if neighbours {
            self.asm.alu_constant(Alu::Cmp, bits, (1 << self.level.lanes()) - 1);
            self.asm.jump_if(encode::JumpCondition::Equal, all);
        }
        self.clear(to);
        self.plain(ops::STORE, 0, to, RmPlace::Memory(self.stack(run.room)));
        self.asm.address(start, from);
        let (size, room) = (run.bytes.trailing_zeros() as u8, run.room);
        self.each_lane(bits, lane, done, |asm| {
            asm.multiply_constant(element, lane, run.stride);
            asm.load_element(run.bytes, element, Address { base: start, index: Some((element, 0)), displacement: 0 });
            asm.store_element(run.bytes, Address { base: RSP, index: Some((lane, size)), displacement: room }, element);
        });
        self.plain(extend, self.whole(), to, RmPlace::Memory(self.stack(run.room)));
        if neighbours {
            self.asm.jump(end);
            self.asm.bind(all);
            self.plain(extend, self.whole(), to, RmPlace::Memory(from));
            self.asm.bind(end);
        }
    }

    /// Copies a vector to the stack, and from there the elements of the lanes in a mask, one by one.
    fn store_elements(&mut self, to: Address, mask: u8, value: u8, run: &ElementRun, scratch: [u8; 4]) {
        let [bits, lane, place, start] = scratch;
        let done = self.asm.label();
        let signs = if run.bytes == 8 { ops::SIGNS_OF_DOUBLES } else { ops::SIGNS };
        self.plain(signs, self.whole(), bits, RmPlace::Register(mask));
        self.plain(ops::STORE, self.whole(), value, RmPlace::Memory(self.stack(run.room)));
        self.asm.address(start, to);
        let (size, room) = (run.bytes.trailing_zeros() as u8, run.room);
        self.each_lane(bits, lane, done, |asm| {
            asm.multiply_constant(place, lane, run.stride);
            asm.load_element(run.bytes, lane, Address { base: RSP, index: Some((lane, size)), displacement: room });
            asm.store_element(run.bytes, Address { base: start, index: Some((place, 0)), displacement: 0 }, lane);
        });
    }

    /// A loop over the bits of a register, which is zero afterwards.
    fn each_lane(&mut self, bits: u8, lane: u8, done: JumpLabel, body: impl FnOnce(&mut Encoder)) {
        let again = self.asm.label();
        self.asm.alu_constant(Alu::Cmp, bits, 0);
        self.asm.jump_if(encode::JumpCondition::Equal, done);
        self.asm.bind(again);
        self.asm.lowest_bit(lane, bits);
        body(&mut self.asm);
        let rest = EncodedVector::new(ops::RESET_LOWEST_BIT, 0, 1, RmPlace::Register(bits));
        self.asm.vector(&EncodedVector { vvvv: bits, ..rest }, false);
        self.asm.jump_if(encode::JumpCondition::NotEqual, again);
        self.asm.bind(done);
    }

    /// Saves all vectors and masks, which the callee may change, calls the function on a copy of the operand, and takes the rare lanes
    /// of the result.
    fn rare_code(&mut self, at: usize) {
        let RareCode { function, double, to, mask, x, enter, back } = self.rare[at];
        self.asm.bind(enter);
        let (length, bytes) = (self.whole(), self.level.bytes() as i32);
        let registers = self.level.registers() as i32;
        let operand = SAVED_MASKS + registers * bytes;
        let room = operand + bytes;
        // Registers of arguments, and two that the call needs.
        const KEPT: [u8; 4] = [0, 6, 7, 12];
        for register in KEPT {
            self.asm.push(register);
        }
        self.asm.move_register(12, RSP);
        self.asm.alu_constant(Alu::Sub, RSP, room);
        self.asm.alu_constant(Alu::And, RSP, -64);
        for register in 0..registers {
            let place = RmPlace::Memory(self.stack(SAVED_MASKS + register * bytes));
            self.plain(ops::STORE, length, register as u8, place);
        }
        let masks = if self.level.evex { 1..8 } else { 0..0 };
        for register in masks.clone() {
            let place = RmPlace::Memory(self.stack(8 * register));
            self.plain(ops::STORE_MASK, 0, register as u8, place);
        }
        let place = RmPlace::Memory(self.stack(operand));
        self.plain(ops::STORE, length, x, place);
        self.asm.zero_upper();
        self.asm.address(7, self.stack(operand));
        self.asm.move_constant(6, i64::from(self.level.bits / if double { 64 } else { 32 }));
        if self.near {
            self.asm.bytes.push(0xe8);
            self.calls.push(RareCall { offset: self.asm.bytes.len() as u32, function, double, near: true });
            self.asm.bytes.extend([0; 4]);
        } else {
            self.asm.bytes.extend([0x48, 0xb8]);
            self.calls.push(RareCall { offset: self.asm.bytes.len() as u32, function, double, near: false });
            self.asm.bytes.extend([0; 8]);
            self.asm.call_register(RAX as u8);
        }
        for register in masks {
            let place = RmPlace::Memory(self.stack(8 * register));
            self.plain(ops::MOVE_MASK, 0, register as u8, place);
        }
        for register in 0..registers {
            let place = RmPlace::Memory(self.stack(SAVED_MASKS + register * bytes));
            self.plain(ops::LOAD, length, register as u8, place);
        }
        let result = RmPlace::Memory(self.stack(operand));
        if self.level.evex {
            let load = if double { ops::LOAD_DOUBLES } else { ops::LOAD };
            self.under_mask(load, to, result, mask);
        } else {
            let choose = if double { ops::CHOOSE_DOUBLES } else { ops::CHOOSE };
            let choose = EncodedVector::new(choose, length, to, result);
            self.asm.vector(&EncodedVector { vvvv: to, immediate: Some(mask << 4), ..choose }, false);
        }
        self.asm.move_register(RSP, 12);
        for register in KEPT.into_iter().rev() {
            self.asm.pop(register);
        }
        self.asm.jump(back);
    }
}

fn address(mem: &Mem, next: &mut dyn FnMut() -> u8) -> Address {
    let base = next();
    let index = mem.index.map(|(_, scale)| (next(), scale));
    Address { base, index, displacement: mem.displacement }
}
