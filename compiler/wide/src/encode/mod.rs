//! The encoding of x86-64 instructions.
//!
//! Vector instructions are data: an [`Opcode`] has the numbers of the manual, and [`Encoder::vector`] makes the EVEX or VEX form of
//! it. All that differs between widths is the length field.

/// The second byte of the opcode map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Map {
    M0F = 1,
    M0F38 = 2,
    M0F3A = 3,
}

/// The mandatory prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefix {
    None = 0,
    P66 = 1,
    PF3 = 2,
    PF2 = 3,
}

/// The size of a memory operand, which is the unit of EVEX's short displacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tuple {
    /// A whole register; an element if it is broadcast.
    Full,
    /// A half, a quarter of a register.
    Half,
    Quarter,
    /// One element of 1, 2, 4 or 8 bytes.
    One,
    Two,
    Four,
    Eight,
    /// A register of 128 or 256 bits.
    Sixteen,
    ThirtyTwo,
}

/// The numbers of a vector instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opcode {
    pub prefix: Prefix,
    pub map: Map,
    pub byte: u8,
    pub wide: bool,
    pub tuple: Tuple,
    /// Whether the only form is VEX.
    pub vex_only: bool,
}

impl Opcode {
    pub const fn new(prefix: Prefix, map: Map, byte: u8, wide: bool, tuple: Tuple) -> Opcode {
        Opcode { prefix, map, byte, wide, tuple, vex_only: false }
    }

    /// Whether the bit W says something in the VEX form: of most instructions it belongs to EVEX alone.
    const fn has_vex_w(self) -> bool {
        // Shifts by vectors, gathers and fused multiply-adds have it.
        let of_both = matches!(self.map, Map::M0F38) && matches!(self.byte, 0x45..=0x47 | 0x90..=0xbf);
        self.wide && (self.vex_only || of_both)
    }

    /// An instruction without an EVEX form, or with one that is not used: of mask registers, general registers, and for VEX levels.
    pub const fn vex(prefix: Prefix, map: Map, byte: u8, wide: bool) -> Opcode {
        Opcode { prefix, map, byte, wide, tuple: Tuple::Full, vex_only: true }
    }
}

/// The number of a general register that addresses may not use as an index.
pub const RSP: u8 = 4;

/// An address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    pub base: u8,
    /// A register and the binary logarithm of its factor; the register is a vector in gathers and scatters.
    pub index: Option<(u8, u8)>,
    pub displacement: i32,
}

/// The operand that may be in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RmPlace {
    Register(u8),
    Memory(Address),
    /// A constant of the pool, by index.
    Pool(usize),
}

/// A vector instruction with its operands.
#[derive(Clone, Copy, Debug)]
pub struct EncodedVector {
    pub opcode: Opcode,
    /// Binary logarithm of the length in units of 128 bits.
    pub length: u8,
    pub reg: u8,
    pub vvvv: u8,
    pub rm: RmPlace,
    /// The mask register; 0 for none.
    pub mask: u8,
    /// Whether lanes outside of the mask become zero.
    pub zeroing: bool,
    /// Whether the memory operand is one element for all lanes.
    pub broadcast: bool,
    pub immediate: Option<u8>,
}

impl EncodedVector {
    /// An instruction of two operands on all lanes; `length` is the binary logarithm of the vectors' length in units of 128 bits.
    pub fn new(opcode: Opcode, length: u8, reg: u8, rm: RmPlace) -> EncodedVector {
        let (mask, zeroing, broadcast, immediate) = (0, false, false, None);
        EncodedVector { opcode, length, reg, vvvv: 0, rm, mask, zeroing, broadcast, immediate }
    }
}

/// A jump target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct JumpLabel(pub u32);

/// A condition of a jump or move: the low four bits of its opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JumpCondition {
    Above = 7,
    Equal = 4,
    NotEqual = 5,
    Less = 12,
    GreaterOrEqual = 13,
    LessOrEqual = 14,
    Greater = 15,
}

impl JumpCondition {
    pub fn negated(self) -> JumpCondition {
        match self {
            JumpCondition::Above => unreachable!("used by moves only"),
            JumpCondition::Equal => JumpCondition::NotEqual,
            JumpCondition::NotEqual => JumpCondition::Equal,
            JumpCondition::Less => JumpCondition::GreaterOrEqual,
            JumpCondition::GreaterOrEqual => JumpCondition::Less,
            JumpCondition::LessOrEqual => JumpCondition::Greater,
            JumpCondition::Greater => JumpCondition::LessOrEqual,
        }
    }
}

/// Operations `a = a op b` on general registers: the digit of their form with an immediate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alu {
    Or = 1,
    And = 4,
    Sub = 5,
    Cmp = 7,
}

/// A constant in the pool that follows the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PoolConstant {
    /// The numbers 0, 1, 2, ... as words, for each lane one.
    LaneNumbers,
    /// An element of 8 bytes.
    Double(u64),
    /// An element of 4 bytes.
    Word(u32),
}

impl PoolConstant {
    /// The bytes in memory; an element is repeated up to this number of bytes.
    fn bytes(self, least: usize) -> Vec<u8> {
        match self {
            PoolConstant::LaneNumbers => (0..16_u32).flat_map(u32::to_le_bytes).collect(),
            PoolConstant::Double(bits) => bits.to_le_bytes().repeat((least / 8).max(1)),
            PoolConstant::Word(bits) => bits.to_le_bytes().repeat((least / 4).max(1)),
        }
    }
}

/// A position that holds the distance from its instruction's end.
struct Fixup<T> {
    at: usize,
    end: usize,
    target: T,
}

/// Instructions as bytes.
#[derive(Default)]
pub struct Encoder {
    pub bytes: Vec<u8>,
    labels: Vec<Option<usize>>,
    jumps: Vec<Fixup<JumpLabel>>,
    pool: Vec<PoolConstant>,
    constants: Vec<Fixup<usize>>,
}

impl Encoder {
    pub fn new(labels: usize) -> Encoder {
        Encoder { labels: vec![None; labels], ..Encoder::default() }
    }

    pub fn label(&mut self) -> JumpLabel {
        self.labels.push(None);
        JumpLabel(self.labels.len() as u32 - 1)
    }

    /// Puts a label here.
    pub fn bind(&mut self, label: JumpLabel) {
        self.labels[label.0 as usize] = Some(self.bytes.len());
    }

    /// The index of a constant in the pool.
    pub fn constant(&mut self, constant: PoolConstant) -> usize {
        self.pool.iter().position(|known| *known == constant).unwrap_or_else(|| {
            self.pool.push(constant);
            self.pool.len() - 1
        })
    }

    /// The code with its pool of constants, each of which has at least this number of bytes.
    pub fn finish(mut self, constant_bytes: usize) -> Vec<u8> {
        // The longest first, so that all are aligned.
        let mut order: Vec<usize> = (0..self.pool.len()).collect();
        order.sort_by_key(|&at| self.pool[at]);
        if !order.is_empty() {
            while !self.bytes.len().is_multiple_of(64) {
                self.bytes.push(0xcc);
            }
        }
        let mut places = vec![0; self.pool.len()];
        for at in order {
            places[at] = self.bytes.len();
            self.bytes.extend(self.pool[at].bytes(constant_bytes));
        }
        let labels = std::mem::take(&mut self.labels);
        let jumps = std::mem::take(&mut self.jumps).into_iter().map(|fixup| {
            let place = labels[fixup.target.0 as usize].expect("every jump has its target");
            (fixup.at, place as i64 - fixup.end as i64)
        });
        let constants = std::mem::take(&mut self.constants).into_iter();
        let constants = constants.map(|fixup| (fixup.at, places[fixup.target] as i64 - fixup.end as i64));
        for (at, distance) in jumps.chain(constants).collect::<Vec<_>>() {
            let distance = i32::try_from(distance).expect("a kernel has less than 2 GiB of code");
            self.bytes[at..at + 4].copy_from_slice(&distance.to_le_bytes());
        }
        self.bytes
    }

    /// A vector instruction, in EVEX form where `evex` says so.
    pub fn vector(&mut self, inst: &EncodedVector, evex: bool) {
        let immediate = usize::from(inst.immediate.is_some());
        if evex && !inst.opcode.vex_only {
            self.evex(inst);
        } else {
            self.vex(inst);
        }
        self.bytes.push(inst.opcode.byte);
        let unit = if evex && !inst.opcode.vex_only { displacement_unit(inst) } else { 1 };
        self.operands(inst.reg & 7, inst.rm, unit, immediate);
        self.bytes.extend(inst.immediate);
    }

    fn evex(&mut self, inst: &EncodedVector) {
        let bit = |value: u8, at: u8| (value >> at) & 1;
        // Bits of registers are stored inverted.
        let (x, b, v_high) = match inst.rm {
            RmPlace::Register(register) => (bit(register, 4), bit(register, 3), bit(inst.vvvv, 4)),
            RmPlace::Memory(Address { base, index, .. }) => {
                let index_register = index.map_or(0, |(index, _)| index);
                // Gathers have no second operand: the bit belongs to the index.
                let high = if index_register >= 16 { 1 } else { bit(inst.vvvv, 4) };
                (bit(index_register, 3), bit(base, 3), high)
            }
            RmPlace::Pool(_) => (0, 0, bit(inst.vvvv, 4)),
        };
        let not = |bit: u8| bit ^ 1;
        let Opcode { prefix, map, wide, .. } = inst.opcode;
        self.bytes.push(0x62);
        self.bytes
            .push(not(bit(inst.reg, 3)) << 7 | not(x) << 6 | not(b) << 5 | not(bit(inst.reg, 4)) << 4 | map as u8);
        self.bytes.push(u8::from(wide) << 7 | (!inst.vvvv & 15) << 3 | 4 | prefix as u8);
        self.bytes.push(
            u8::from(inst.zeroing) << 7
                | inst.length << 5
                | u8::from(inst.broadcast) << 4
                | not(v_high) << 3
                | inst.mask,
        );
    }

    fn vex(&mut self, inst: &EncodedVector) {
        debug_assert!(!inst.broadcast && inst.mask == 0 && inst.length < 2, "VEX has no such form");
        let not = |value: u8| u8::from(value & 8 == 0);
        let (x, b) = match inst.rm {
            RmPlace::Register(register) => (1, not(register)),
            RmPlace::Memory(Address { base, index, .. }) => (index.map_or(1, |(index, _)| not(index)), not(base)),
            RmPlace::Pool(_) => (1, 1),
        };
        let Opcode { prefix, map, .. } = inst.opcode;
        let wide = inst.opcode.has_vex_w();
        let rest = (!inst.vvvv & 15) << 3 | inst.length << 2 | prefix as u8;
        if x == 1 && b == 1 && map == Map::M0F && !wide {
            self.bytes.extend([0xc5, not(inst.reg) << 7 | rest]);
        } else {
            let first = not(inst.reg) << 7 | x << 6 | b << 5 | map as u8;
            self.bytes.extend([0xc4, first, u8::from(wide) << 7 | rest]);
        }
    }

    /// The bytes after the opcode: ModRM, SIB, displacement. `immediate` is the number of bytes that follow them.
    fn operands(&mut self, reg: u8, rm: RmPlace, unit: i32, immediate: usize) {
        match rm {
            RmPlace::Register(register) => self.bytes.push(0xc0 | reg << 3 | register & 7),
            RmPlace::Pool(target) => {
                self.bytes.push(reg << 3 | 5);
                let at = self.bytes.len();
                self.bytes.extend([0; 4]);
                self.constants.push(Fixup { at, end: at + 4 + immediate, target });
            }
            RmPlace::Memory(Address { base, index, displacement }) => {
                let needs_index = index.is_some() || base & 7 == RSP;
                let low = if needs_index { RSP } else { base & 7 };
                let short = displacement % unit == 0 && i8::try_from(displacement / unit).is_ok();
                let form = match displacement {
                    // A base of rbp or r13 without a displacement means another thing.
                    0 if base & 7 != 5 => 0,
                    _ if short => 1,
                    _ => 2,
                };
                self.bytes.push(form << 6 | reg << 3 | low);
                if needs_index {
                    let (index, scale) = index.unwrap_or((RSP, 0));
                    self.bytes.push(scale << 6 | (index & 7) << 3 | base & 7);
                }
                match form {
                    0 => {}
                    1 => self.bytes.push((displacement / unit) as u8),
                    _ => self.bytes.extend(displacement.to_le_bytes()),
                }
            }
        }
    }

    /// The REX prefix of an instruction on 64 bits, its opcode and operands.
    fn integer(&mut self, opcode: &[u8], reg: u8, rm: RmPlace, immediate: usize) {
        let bit = |value: u8| value >> 3 & 1;
        let (x, b) = match rm {
            RmPlace::Register(register) => (0, bit(register)),
            RmPlace::Memory(Address { base, index, .. }) => (index.map_or(0, |(index, _)| bit(index)), bit(base)),
            RmPlace::Pool(_) => (0, 0),
        };
        self.bytes.push(0x48 | bit(reg) << 2 | x << 1 | b);
        self.bytes.extend(opcode);
        self.operands(reg & 7, rm, 1, immediate);
    }

    pub fn move_constant(&mut self, to: u8, value: i64) {
        match (u32::try_from(value), i32::try_from(value)) {
            (Ok(value), _) => {
                if to >= 8 {
                    self.bytes.push(0x41);
                }
                self.bytes.push(0xb8 | to & 7);
                self.bytes.extend(value.to_le_bytes());
            }
            (_, Ok(value)) => {
                self.integer(&[0xc7], 0, RmPlace::Register(to), 4);
                self.bytes.extend(value.to_le_bytes());
            }
            _ => {
                self.bytes.extend([0x48 | to >> 3, 0xb8 | to & 7]);
                self.bytes.extend(value.to_le_bytes());
            }
        }
    }

    pub fn move_register(&mut self, to: u8, from: u8) {
        self.integer(&[0x8b], to, RmPlace::Register(from), 0);
    }

    pub fn load(&mut self, to: u8, from: Address) {
        self.integer(&[0x8b], to, RmPlace::Memory(from), 0);
    }

    pub fn store(&mut self, to: Address, from: u8) {
        self.integer(&[0x89], from, RmPlace::Memory(to), 0);
    }

    /// Loads an element of 1, 2, 4 or 8 bytes; the bits above are arbitrary.
    pub fn load_element(&mut self, bytes: u8, to: u8, from: Address) {
        let opcode: &[u8] = match bytes {
            1 => &[0x0f, 0xb6],
            2 => &[0x0f, 0xb7],
            4 => &[0x63],
            _ => &[0x8b],
        };
        self.integer(opcode, to, RmPlace::Memory(from), 0);
    }

    /// Stores the low bytes: 1, 2, 4 or 8.
    pub fn store_element(&mut self, bytes: u8, to: Address, from: u8) {
        if bytes == 8 {
            return self.store(to, from);
        }
        if bytes == 2 {
            self.bytes.push(0x66);
        }
        let bit = |value: u8| value >> 3 & 1;
        let index = to.index.map_or(0, |(index, _)| bit(index));
        self.bytes.push(0x40 | bit(from) << 2 | index << 1 | bit(to.base));
        self.bytes.push(if bytes == 1 { 0x88 } else { 0x89 });
        self.operands(from & 7, RmPlace::Memory(to), 1, 0);
    }

    /// The number of the lowest bit.
    pub fn lowest_bit(&mut self, to: u8, from: u8) {
        self.bytes.push(0xf3);
        self.integer(&[0x0f, 0xbc], to, RmPlace::Register(from), 0);
    }

    pub fn address(&mut self, to: u8, of: Address) {
        self.integer(&[0x8d], to, RmPlace::Memory(of), 0);
    }

    pub fn alu(&mut self, op: Alu, a: u8, b: u8) {
        self.integer(&[(op as u8) << 3 | 3], a, RmPlace::Register(b), 0);
    }

    pub fn alu_constant(&mut self, op: Alu, a: u8, b: i32) {
        match i8::try_from(b) {
            Ok(b) => {
                self.integer(&[0x83], op as u8, RmPlace::Register(a), 1);
                self.bytes.push(b as u8);
            }
            Err(_) => {
                self.integer(&[0x81], op as u8, RmPlace::Register(a), 4);
                self.bytes.extend(b.to_le_bytes());
            }
        }
    }

    pub fn multiply(&mut self, to: u8, from: u8) {
        self.integer(&[0x0f, 0xaf], to, RmPlace::Register(from), 0);
    }

    pub fn multiply_constant(&mut self, to: u8, from: u8, factor: i32) {
        self.integer(&[0x69], to, RmPlace::Register(from), 4);
        self.bytes.extend(factor.to_le_bytes());
    }

    pub fn shift_left(&mut self, register: u8, by: u8) {
        self.integer(&[0xc1], 4, RmPlace::Register(register), 1);
        self.bytes.push(by);
    }

    pub fn shift_right(&mut self, register: u8, by: u8) {
        self.integer(&[0xc1], 5, RmPlace::Register(register), 1);
        self.bytes.push(by);
    }

    pub fn move_if(&mut self, condition: JumpCondition, to: u8, from: u8) {
        self.integer(&[0x0f, 0x40 | condition as u8], to, RmPlace::Register(from), 0);
    }

    pub fn jump(&mut self, to: JumpLabel) {
        self.bytes.push(0xe9);
        self.distance(to);
    }

    pub fn jump_if(&mut self, condition: JumpCondition, to: JumpLabel) {
        self.bytes.extend([0x0f, 0x80 | condition as u8]);
        self.distance(to);
    }

    fn distance(&mut self, target: JumpLabel) {
        let at = self.bytes.len();
        self.bytes.extend([0; 4]);
        self.jumps.push(Fixup { at, end: at + 4, target });
    }

    pub fn push(&mut self, register: u8) {
        if register >= 8 {
            self.bytes.push(0x41);
        }
        self.bytes.push(0x50 | register & 7);
    }

    pub fn pop(&mut self, register: u8) {
        if register >= 8 {
            self.bytes.push(0x41);
        }
        self.bytes.push(0x58 | register & 7);
    }

    /// Fetches a line into all caches.
    pub fn prefetch(&mut self, of: Address) {
        let bit = |value: u8| value >> 3 & 1;
        let rex = 0x40 | of.index.map_or(0, |(index, _)| bit(index)) << 1 | bit(of.base);
        if rex != 0x40 {
            self.bytes.push(rex);
        }
        self.bytes.extend([0x0f, 0x18]);
        self.operands(1, RmPlace::Memory(of), 1, 0);
    }

    /// Calls a register.
    pub fn call_register(&mut self, register: u8) {
        if register >= 8 {
            self.bytes.push(0x41);
        }
        self.bytes.extend([0xff, 0xd0 | register & 7]);
    }

    /// Clears the upper parts of all vectors, which slow down instructions without VEX.
    pub fn zero_upper(&mut self) {
        self.bytes.extend([0xc5, 0xf8, 0x77]);
    }

    pub fn ret(&mut self) {
        self.bytes.push(0xc3);
    }
}

/// The unit of the short displacement.
fn displacement_unit(inst: &EncodedVector) -> i32 {
    let register = 16 << inst.length;
    match inst.opcode.tuple {
        Tuple::Full if inst.broadcast => 4 << u32::from(inst.opcode.wide),
        Tuple::Full => register,
        Tuple::Half if inst.broadcast => 4 << u32::from(inst.opcode.wide),
        Tuple::Half => register / 2,
        Tuple::Quarter => register / 4,
        Tuple::One => 1,
        Tuple::Two => 2,
        Tuple::Four => 4,
        Tuple::Eight => 8,
        Tuple::Sixteen => 16,
        Tuple::ThirtyTwo => 32,
    }
}

#[cfg(test)]
mod tests;
