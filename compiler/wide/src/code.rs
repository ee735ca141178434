//! A function before registers are allocated: blocks of instructions on virtual registers, in SSA form.

use crate::encode::{Alu, JumpCondition, Opcode, PoolConstant};
use regalloc2::{Block, Inst as InstId, InstRange, Operand, OperandConstraint, OperandKind, OperandPos};
use regalloc2::{PReg, PRegSet, RegClass, VReg};
use spmdc_math::Rare;

/// A virtual register.
pub type V = VReg;

/// General registers.
pub const INT: RegClass = RegClass::Int;
/// Vectors.
pub const VECTOR: RegClass = RegClass::Float;
/// Masks, unless they are vectors.
pub const MASK: RegClass = RegClass::Vector;

/// Numbers of general registers in the C convention.
pub const RAX: usize = 0;
pub const PARAMETERS: [usize; 4] = [7, 6, 2, 1];

/// The length of an instruction's vectors relative to the vectors of the level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorLength {
    Whole,
    Half,
    Quarter,
    /// 128 bits on every level: scalars, and instructions of mask registers with two operands.
    Least,
    /// The length field is 1 on every level: instructions of mask registers with three operands.
    One,
}

/// An operand in a register.
#[derive(Clone, Copy, Debug)]
pub enum RegisterSlot {
    None,
    Use(V),
    Def(V),
    /// A part of the opcode.
    Digit(u8),
}

/// An address: `base + index * 2^scale + displacement`.
#[derive(Clone, Copy, Debug)]
pub struct Mem {
    pub base: V,
    pub index: Option<(V, u8)>,
    pub displacement: i32,
}

/// The operand that may be in memory.
#[derive(Clone, Copy, Debug)]
pub enum Rm {
    Use(V),
    Def(V),
    Mem(Mem),
    /// The same number in every lane.
    Const(PoolConstant),
    /// Memory of the function, by its distance to the stack pointer.
    Stack(i32),
    /// A register by number, whose value is not read.
    Digit(u8),
}

/// An instruction on vectors or masks.
#[derive(Clone, Copy, Debug)]
pub struct VectorInstruction {
    pub opcode: Opcode,
    pub length: VectorLength,
    pub reg: RegisterSlot,
    pub vvvv: RegisterSlot,
    pub rm: Rm,
    /// The value that the defined register has before.
    pub tied: Option<V>,
    /// The lanes that are written, and whether the others become zero.
    pub mask: Option<(V, bool)>,
    pub immediate: Option<u8>,
}

impl VectorInstruction {
    /// An instruction on whole vectors and all lanes.
    pub fn new(opcode: Opcode, reg: RegisterSlot, vvvv: RegisterSlot, rm: Rm) -> VectorInstruction {
        VectorInstruction {
            opcode,
            length: VectorLength::Whole,
            reg,
            vvvv,
            rm,
            tied: None,
            mask: None,
            immediate: None,
        }
    }
}

/// The second operand of an operation on general registers.
#[derive(Clone, Copy, Debug)]
pub enum Int {
    Register(V),
    Constant(i32),
}

/// Elements that are moved one by one.
#[derive(Clone, Copy, Debug)]
pub struct ElementRun {
    pub bytes: u8,
    /// Bytes from lane to lane.
    pub stride: i32,
    /// The place on the stack of a vector of them.
    pub room: i32,
    /// General registers that it overwrites.
    pub scratch: [V; 4],
}

/// One instruction.
#[derive(Clone, Copy, Debug)]
pub enum Instruction {
    /// Defines the parameters of the function.
    Parameters([V; 4]),
    Vector(VectorInstruction),
    /// A constant in a general register.
    Constant {
        to: V,
        value: i64,
    },
    Load {
        to: V,
        from: Mem,
    },
    /// The address itself.
    Address {
        to: V,
        of: Mem,
    },
    /// The address of memory of the function.
    StackAddress {
        to: V,
        displacement: i32,
    },
    /// `to = a op b`
    Alu {
        op: Alu,
        to: V,
        a: V,
        b: Int,
    },
    Multiply {
        to: V,
        a: V,
        factor: i32,
    },
    MultiplyRegister {
        to: V,
        a: V,
        b: V,
    },
    ShiftLeft {
        to: V,
        a: V,
        by: u8,
    },
    /// With zeros coming in.
    ShiftRight {
        to: V,
        a: V,
        by: u8,
    },
    /// The smaller of two signed numbers.
    Min {
        to: V,
        a: V,
        b: V,
    },
    /// `a <= b` as unsigned numbers ? a : b
    Limit {
        to: V,
        a: V,
        b: V,
    },
    /// `mask ? rare(x) : common` for the lanes of one register, after a jump that is almost never taken.
    Rare {
        to: V,
        function: Rare,
        /// Whether lanes have 64 bits.
        double: bool,
        mask: V,
        common: V,
        x: V,
    },
    /// Elements at `base + index * 2^scale` of the lanes in a mask; the others become zero. The index is a vector of words. A mask that is
    /// a vector is copied into a register, which the instruction uses up.
    Gather {
        double: bool,
        to: V,
        from: Mem,
        mask: V,
        used_up: Option<V>,
    },
    /// Stores lanes as a gather loads them.
    Scatter {
        double: bool,
        to: Mem,
        mask: V,
        value: V,
    },
    /// Elements of the lanes in a mask that is a vector, one by one; the others become zero.
    LoadElements {
        to: V,
        from: Mem,
        mask: V,
        /// The instruction that makes lanes of elements in memory.
        extend: Opcode,
        run: ElementRun,
    },
    /// Stores lanes in the same way.
    StoreElements {
        to: Mem,
        mask: V,
        value: V,
        run: ElementRun,
    },
    Prefetch {
        of: Mem,
    },
    Jump,
    /// To the first successor if `a condition b`, else to the second.
    Branch {
        condition: JumpCondition,
        a: V,
        b: Int,
    },
    /// Returns the number.
    Return {
        value: V,
    },
}

/// A function under construction. Blocks are in memory in the order in which they are entered.
#[derive(Default)]
pub struct MachineFunction {
    pub insts: Vec<Instruction>,
    operands: Vec<Operand>,
    first_operand: Vec<usize>,
    /// The blocks in the order of their creation.
    created: Vec<Created>,
    /// The entered blocks, in order.
    order: Vec<usize>,
    vregs: usize,
    /// Bytes of memory on the stack that instructions use.
    stack: i32,
}

/// A block by the number of its creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockTarget(usize);

#[derive(Default)]
struct Created {
    first: usize,
    last: usize,
    parameters: Vec<V>,
    /// The possible successor blocks, and the values of their parameters.
    successors: Vec<(BlockTarget, Vec<V>)>,
}

impl MachineFunction {
    pub fn register(&mut self, class: RegClass) -> V {
        self.vregs += 1;
        VReg::new(self.vregs - 1, class)
    }

    /// The distance of new memory from the stack pointer.
    pub fn stack(&mut self, bytes: i32) -> i32 {
        self.stack += bytes;
        self.stack - bytes
    }

    /// A block to be entered later.
    pub fn block(&mut self, parameters: Vec<V>) -> BlockTarget {
        self.created.push(Created { parameters, ..Created::default() });
        BlockTarget(self.created.len() - 1)
    }

    /// Begins a block; the one before has ended with a jump, a branch or a return.
    pub fn enter(&mut self, block: BlockTarget) {
        self.created[block.0].first = self.insts.len();
        self.order.push(block.0);
    }

    /// Appends an instruction to the current block.
    pub fn push(&mut self, inst: Instruction) {
        self.first_operand.push(self.operands.len());
        let operands = &mut self.operands;
        visit(&inst, |operand| operands.push(operand));
        self.insts.push(inst);
    }

    fn end(&mut self, last: Instruction, successors: Vec<(BlockTarget, Vec<V>)>) {
        self.push(last);
        let at = *self.order.last().expect("a block was entered");
        self.created[at].last = self.insts.len();
        self.created[at].successors = successors;
    }

    pub fn jump(&mut self, to: BlockTarget, arguments: Vec<V>) {
        self.end(Instruction::Jump, vec![(to, arguments)]);
    }

    pub fn ret(&mut self, value: V) {
        self.end(Instruction::Return { value }, Vec::new());
    }

    /// Ends the block with a comparison: to `then` if it holds. Each side is a separate block, since moves of registers need a place that
    /// belongs to one side; the jumps through empty blocks are removed when the code is written.
    pub fn branch(
        &mut self,
        condition: JumpCondition,
        a: V,
        b: Int,
        then: (BlockTarget, Vec<V>),
        otherwise: (BlockTarget, Vec<V>),
    ) {
        let sides = [self.block(Vec::new()), self.block(Vec::new())];
        self.end(Instruction::Branch { condition, a, b }, sides.map(|side| (side, Vec::new())).to_vec());
        for (side, (to, arguments)) in sides.into_iter().zip([then, otherwise]) {
            self.enter(side);
            self.jump(to, arguments);
        }
    }

    /// The function in the form that the register allocator reads.
    pub fn finish(self) -> Finished {
        let mut place = vec![usize::MAX; self.created.len()];
        for (at, &block) in self.order.iter().enumerate() {
            place[block] = at;
        }
        let mut blocks: Vec<BlockData> = Vec::with_capacity(self.order.len());
        for &at in &self.order {
            let Created { first, last, parameters, successors } = &self.created[at];
            let (to, arguments) =
                successors.iter().map(|(to, arguments)| (Block::new(place[to.0]), arguments.clone())).unzip();
            let range = InstRange::new(InstId::new(*first), InstId::new(*last));
            blocks.push(BlockData {
                range,
                parameters: parameters.clone(),
                successors: to,
                predecessors: Vec::new(),
                arguments,
            });
        }
        for at in 0..blocks.len() {
            for to in blocks[at].successors.clone() {
                blocks[to.index()].predecessors.push(Block::new(at));
            }
        }
        let MachineFunction { insts, operands, mut first_operand, vregs, stack, .. } = self;
        first_operand.push(operands.len());
        Finished { insts, operands, first_operand, blocks, vregs, stack }
    }
}

struct BlockData {
    range: InstRange,
    parameters: Vec<V>,
    successors: Vec<Block>,
    predecessors: Vec<Block>,
    arguments: Vec<Vec<V>>,
}

/// A function whose registers can be allocated.
pub struct Finished {
    pub insts: Vec<Instruction>,
    operands: Vec<Operand>,
    first_operand: Vec<usize>,
    blocks: Vec<BlockData>,
    vregs: usize,
    /// Bytes of memory on the stack that instructions use.
    pub stack: i32,
}

impl regalloc2::Function for Finished {
    fn num_insts(&self) -> usize {
        self.insts.len()
    }

    fn num_blocks(&self) -> usize {
        self.blocks.len()
    }

    fn entry_block(&self) -> Block {
        Block::new(0)
    }

    fn block_insns(&self, block: Block) -> InstRange {
        self.blocks[block.index()].range
    }

    fn block_succs(&self, block: Block) -> &[Block] {
        &self.blocks[block.index()].successors
    }

    fn block_preds(&self, block: Block) -> &[Block] {
        &self.blocks[block.index()].predecessors
    }

    fn block_params(&self, block: Block) -> &[VReg] {
        &self.blocks[block.index()].parameters
    }

    fn is_ret(&self, inst: InstId) -> bool {
        matches!(self.insts[inst.index()], Instruction::Return { .. })
    }

    fn is_branch(&self, inst: InstId) -> bool {
        matches!(self.insts[inst.index()], Instruction::Branch { .. } | Instruction::Jump)
    }

    fn branch_blockparams(&self, block: Block, _: InstId, successor: usize) -> &[VReg] {
        &self.blocks[block.index()].arguments[successor]
    }

    fn inst_operands(&self, inst: InstId) -> &[Operand] {
        let at = inst.index();
        &self.operands[self.first_operand[at]..self.first_operand[at + 1]]
    }

    fn inst_clobbers(&self, _: InstId) -> PRegSet {
        PRegSet::empty()
    }

    fn num_vregs(&self) -> usize {
        self.vregs
    }

    fn spillslot_size(&self, class: RegClass) -> usize {
        match class {
            RegClass::Int | RegClass::Vector => 1,
            // The widest vectors.
            RegClass::Float => 8,
        }
    }
}

/// Lists the operands of an instruction; [`crate::emit`] reads their registers in the same order.
fn visit(inst: &Instruction, mut add: impl FnMut(Operand)) {
    let fixed = |register: V, number: usize, kind: OperandKind, pos: OperandPos| {
        Operand::new(register, OperandConstraint::FixedReg(PReg::new(number, register.class())), kind, pos)
    };
    match *inst {
        Instruction::Parameters(parameters) => {
            for (register, number) in parameters.into_iter().zip(PARAMETERS) {
                add(fixed(register, number, OperandKind::Def, OperandPos::Late));
            }
        }
        Instruction::Vector(vector) => visit_vector(&vector, add),
        Instruction::Constant { to, .. } | Instruction::StackAddress { to, .. } => add(Operand::reg_def(to)),
        Instruction::Load { to, from } | Instruction::Address { to, of: from } => {
            visit_address(&from, &mut add);
            add(Operand::reg_def(to));
        }
        Instruction::Alu { to, a, b, .. } => {
            add(Operand::reg_use(a));
            if let Int::Register(b) = b {
                add(Operand::reg_use(b));
            }
            add(Operand::reg_reuse_def(to, 0));
        }
        Instruction::MultiplyRegister { to, a, b }
        | Instruction::Min { to, a, b }
        | Instruction::Limit { to, a, b } => {
            add(Operand::reg_use(a));
            add(Operand::reg_use(b));
            add(Operand::reg_reuse_def(to, 0));
        }
        Instruction::Multiply { to, a, .. } => {
            add(Operand::reg_use(a));
            add(Operand::reg_def(to));
        }
        Instruction::ShiftLeft { to, a, .. } | Instruction::ShiftRight { to, a, .. } => {
            add(Operand::reg_use(a));
            add(Operand::reg_reuse_def(to, 0));
        }
        Instruction::Rare { to, mask, common, x, .. } => {
            add(Operand::reg_use(common));
            add(Operand::reg_use(mask));
            add(Operand::reg_use(x));
            add(Operand::reg_reuse_def(to, 0));
        }
        Instruction::Gather { to, from, mask, used_up, .. } => {
            visit_address(&from, &mut add);
            add(Operand::reg_use(mask));
            // It is cleared before the index is read.
            add(Operand::new(to, OperandConstraint::Reg, OperandKind::Def, OperandPos::Early));
            used_up.into_iter().for_each(|register| add(Operand::reg_temp(register)));
        }
        Instruction::Scatter { to, mask, value, .. } => {
            visit_address(&to, &mut add);
            add(Operand::reg_use(mask));
            add(Operand::reg_use(value));
        }
        Instruction::LoadElements { to, from, mask, run, .. } => {
            visit_address(&from, &mut add);
            add(Operand::reg_use(mask));
            run.scratch.into_iter().for_each(|register| add(Operand::reg_temp(register)));
            add(Operand::reg_def(to));
        }
        Instruction::StoreElements { to, mask, value, run } => {
            visit_address(&to, &mut add);
            add(Operand::reg_use(mask));
            add(Operand::reg_use(value));
            run.scratch.into_iter().for_each(|register| add(Operand::reg_temp(register)));
        }
        Instruction::Prefetch { of } => visit_address(&of, &mut add),
        Instruction::Jump => {}
        Instruction::Branch { a, b, .. } => {
            add(Operand::reg_use(a));
            if let Int::Register(b) = b {
                add(Operand::reg_use(b));
            }
        }
        Instruction::Return { value } => add(fixed(value, RAX, OperandKind::Use, OperandPos::Early)),
    }
}

fn visit_address(mem: &Mem, add: &mut impl FnMut(Operand)) {
    add(Operand::reg_use(mem.base));
    if let Some((index, _)) = mem.index {
        add(Operand::reg_use(index));
    }
}

/// The tied operand comes first, then the uses, then the definition.
fn visit_vector(inst: &VectorInstruction, mut add: impl FnMut(Operand)) {
    inst.tied.into_iter().for_each(|tied| add(Operand::reg_use(tied)));
    for slot in [inst.reg, inst.vvvv] {
        if let RegisterSlot::Use(register) = slot {
            add(Operand::reg_use(register));
        }
    }
    match inst.rm {
        Rm::Use(register) => add(Operand::reg_use(register)),
        Rm::Mem(mem) => visit_address(&mem, &mut add),
        Rm::Def(_) | Rm::Const(_) | Rm::Stack(_) | Rm::Digit(_) => {}
    }
    inst.mask.into_iter().for_each(|(mask, _)| add(Operand::reg_use(mask)));
    let defined = match (inst.reg, inst.vvvv, inst.rm) {
        (RegisterSlot::Def(register), _, _) | (_, RegisterSlot::Def(register), _) | (_, _, Rm::Def(register)) => {
            Some(register)
        }
        _ => None,
    };
    if let Some(register) = defined {
        add(match inst.tied {
            Some(_) => Operand::reg_reuse_def(register, 0),
            None => Operand::reg_def(register),
        });
    }
}
