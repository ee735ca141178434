//! Loads and stores of groups of lanes.

use crate::body::{BodyEmitter, GroupPlace, Registers};
use crate::code::{ElementRun, INT, Instruction, Mem, RegisterSlot, Rm, V, VECTOR, VectorInstruction, VectorLength};
use crate::encode::{Opcode, PoolConstant};
use crate::graph::LoadForm;
use crate::ops::{self, Lane};

impl BodyEmitter {
    /// The number of a lane times a factor, in each lane.
    pub fn lane_steps(&mut self, factor: i64) -> V {
        if let Some(&known) = self.steps.get(&factor) {
            return known;
        }
        if factor == 0 {
            return self.load_constant(PoolConstant::Word(0));
        }
        let numbers = self.load_constant(PoolConstant::LaneNumbers);
        if factor == 1 {
            return numbers;
        }
        let factor = Rm::Const(PoolConstant::Word(factor as u32));
        self.vector(ops::Binary::MulI32.opcode(), VectorLength::Whole, RegisterSlot::Use(numbers), factor, None)
    }

    /// Stores the registers of a value in memory of the function.
    pub fn put_away(&mut self, room: i32, lane: Lane, value: Registers) {
        for (half, &register) in value.iter().enumerate().take(lane.registers()) {
            let to = Rm::Stack(room + self.level.bytes() as i32 * half as i32);
            let store = VectorInstruction::new(ops::STORE, RegisterSlot::Use(register), RegisterSlot::None, to);
            self.function.push(Instruction::Vector(store));
        }
    }

    fn mem(place: &GroupPlace, more: i64) -> Mem {
        let displacement =
            i32::try_from(place.displacement + more).expect("displacements are bounded where places are made");
        Mem { base: place.base, index: place.index, displacement }
    }

    /// Loads a group, or an element for all of its lanes; lanes outside of the mask are not read and become zero.
    pub fn load(&mut self, form: LoadForm, place: &GroupPlace, mask: Option<Registers>) -> Registers {
        if let (false, Some(mask)) = (self.level.evex, mask) {
            return self.vex_load_masked(form, place, mask);
        }
        let low = mask.map(|mask| mask[0]);
        match (form, place.stride) {
            (LoadForm::Word, 0) => {
                [self.masked(
                    ops::BROADCAST,
                    VectorLength::Whole,
                    RegisterSlot::None,
                    Rm::Mem(Self::mem(place, 0)),
                    low,
                ); 2]
            }
            (LoadForm::Double, 0) => {
                let mem = Rm::Mem(Self::mem(place, 0));
                let one = self.masked(ops::BROADCAST_DOUBLES, VectorLength::Whole, RegisterSlot::None, mem, low);
                match mask {
                    Some([_, high]) => [
                        one,
                        self.masked(ops::BROADCAST_DOUBLES, VectorLength::Whole, RegisterSlot::None, mem, Some(high)),
                    ],
                    None => [one; 2],
                }
            }
            (_, 0) => {
                let (opcode, length) = match form.bytes() {
                    2 => (ops::BROADCAST_16, VectorLength::Half),
                    _ => (ops::BROADCAST_8, VectorLength::Quarter),
                };
                let narrow = self.masked(opcode, length, RegisterSlot::None, Rm::Mem(Self::mem(place, 0)), low);
                [self.vector(extension(form), VectorLength::Whole, RegisterSlot::None, Rm::Use(narrow), None); 2]
            }
            (LoadForm::Double, 1) => {
                let half = i64::from(self.level.bytes());
                let load = |body: &mut BodyEmitter, at: usize| {
                    let mem = Rm::Mem(Self::mem(place, half * at as i64));
                    body.masked(
                        ops::LOAD_DOUBLES,
                        VectorLength::Whole,
                        RegisterSlot::None,
                        mem,
                        mask.map(|mask| mask[at]),
                    )
                };
                [load(self, 0), load(self, 1)]
            }
            (_, 1) => {
                [self.masked(
                    extension(form),
                    VectorLength::Whole,
                    RegisterSlot::None,
                    Rm::Mem(Self::mem(place, 0)),
                    low,
                ); 2]
            }
            (LoadForm::Word | LoadForm::Double, stride) => self.gather(form == LoadForm::Double, place, stride, mask),
            (_, stride) => unreachable!("narrow elements at a stride of {stride} are refused"),
        }
    }

    /// Masks that are vectors: the instruction reads no lane outside of them.
    fn vex_load_masked(&mut self, form: LoadForm, place: &GroupPlace, mask: Registers) -> Registers {
        match (form, place.stride) {
            (LoadForm::Word, 1) => [self.two(ops::LOAD_MASKED, mask[0], Rm::Mem(Self::mem(place, 0))); 2],
            (LoadForm::Double, 1) => std::array::from_fn(|at| {
                let mem = Self::mem(place, i64::from(self.level.bytes()) * at as i64);
                self.two(ops::LOAD_MASKED_DOUBLES, mask[at], Rm::Mem(mem))
            }),
            (LoadForm::Word | LoadForm::Double, stride) => {
                self.gather(form == LoadForm::Double, place, stride, Some(mask))
            }
            (_, stride) => {
                let to = self.function.register(VECTOR);
                let run = self.element_run(form.bytes(), stride);
                let (from, mask, extend) = (Self::mem(place, 0), mask[0], extension(form));
                self.function.push(Instruction::LoadElements { to, from, mask, extend, run });
                [to; 2]
            }
        }
    }

    fn element_run(&mut self, bytes: i64, stride: i64) -> ElementRun {
        let stride = i32::try_from(stride * bytes).expect("strides are bounded where places are made");
        let room = self.function.stack(self.level.bytes() as i32);
        ElementRun { bytes: bytes as u8, stride, room, scratch: [INT; 4].map(|class| self.function.register(class)) }
    }

    fn gather(&mut self, double: bool, place: &GroupPlace, stride: i64, mask: Option<Registers>) -> Registers {
        let mask =
            mask.unwrap_or_else(|| [self.everything.expect("the mask of all lanes exists if there are gathers"); 2]);
        let lane = if double { Lane::Double } else { Lane::Word };
        let (base, scale) = self.plain_base(place, double);
        let index = self.lane_steps(stride);
        self.for_registers(lane, |body, at| {
            let to = body.function.register(VECTOR);
            let displacement = body.half_of(place, stride, at);
            let from = Mem { base, index: Some((index, scale)), displacement };
            let used_up = (!body.level.evex).then(|| body.function.register(VECTOR));
            body.function.push(Instruction::Gather { double, to, from, mask: mask[at], used_up });
            to
        })
    }

    /// Loads the elements at a distance from the place that each lane has in elements.
    pub fn look_up(&mut self, form: LoadForm, place: &GroupPlace, index: V, mask: Option<Registers>) -> Registers {
        let mask =
            mask.unwrap_or_else(|| [self.everything.expect("the mask of all lanes exists if there are lookups"); 2]);
        let double = form == LoadForm::Double;
        let (base, scale) = self.plain_base(place, double);
        let index = if place.stride == 0 {
            index
        } else {
            let steps = Rm::Use(self.lane_steps(place.stride));
            self.two(ops::Binary::AddI32.opcode(), index, steps)
        };
        let displacement = i32::try_from(place.displacement).expect("displacements are bounded where places are made");
        self.for_registers(form.lane(), |body, at| {
            let to = body.function.register(VECTOR);
            let index = if at == 0 { index } else { body.upper_half(index) };
            let from = Mem { base, index: Some((index, scale)), displacement };
            let used_up = (!body.level.evex).then(|| body.function.register(VECTOR));
            body.function.push(Instruction::Gather { double, to, from, mask: mask[at], used_up });
            to
        })
    }

    /// The distance of a half's first lane, which the numbers of lanes in the low half do not reach.
    fn half_of(&self, place: &GroupPlace, stride: i64, at: usize) -> i32 {
        let more = at as i64 * stride * 8 * i64::from(self.level.lanes() / 2);
        i32::try_from(place.displacement + more).expect("displacements are bounded where places are made")
    }

    fn plain_base(&mut self, place: &GroupPlace, double: bool) -> (V, u8) {
        let scale = if double { 3 } else { 2 };
        let base = match place.index {
            None => place.base,
            index => {
                let to = self.function.register(INT);
                self.function.push(Instruction::Address { to, of: Mem { base: place.base, index, displacement: 0 } });
                to
            }
        };
        (base, scale)
    }

    /// Stores a group, or its first lane if the place is the same for all; a stream bypasses the caches.
    pub fn store(
        &mut self,
        form: LoadForm,
        place: &GroupPlace,
        value: Registers,
        mask: Option<Registers>,
        stream: bool,
    ) {
        if !self.level.evex && !stream {
            return self.vex_store(form, place, value, mask);
        }
        let first = if place.stride == 0 { self.first.map(|first| [first; 2]) } else { None };
        let mask = first.or(mask);
        let low = mask.map(|mask| (mask[0], false));
        let (opcode, immediate) = match form {
            LoadForm::Word | LoadForm::Double if stream => (ops::STREAM, None),
            LoadForm::Double => (ops::STORE_DOUBLES, None),
            LoadForm::Word => (ops::STORE, None),
            LoadForm::Half => (ops::TO_HALF, Some(0)),
            LoadForm::Zero16 | LoadForm::Sign16 => (ops::TRUNCATE_16, None),
            LoadForm::Zero8 | LoadForm::Sign8 => (ops::TRUNCATE_8, None),
        };
        if !matches!(place.stride, 0 | 1) {
            return self.scatter(form == LoadForm::Double, place, value, mask);
        }
        let store = |body: &mut BodyEmitter, value: V, more: i64, mask: Option<(V, bool)>| {
            let to = Rm::Mem(Self::mem(place, more));
            let inst = VectorInstruction::new(opcode, RegisterSlot::Use(value), RegisterSlot::None, to);
            body.function.push(Instruction::Vector(VectorInstruction { mask, immediate, ..inst }));
        };
        store(self, value[0], 0, low);
        if form == LoadForm::Double && place.stride != 0 {
            store(self, value[1], i64::from(self.level.bytes()), mask.map(|mask| (mask[1], false)));
        }
    }

    fn vex_store(&mut self, form: LoadForm, place: &GroupPlace, value: Registers, mask: Option<Registers>) {
        let value = match form {
            LoadForm::Word | LoadForm::Double => value,
            LoadForm::Half => [self.as_half(value[0]); 2],
            LoadForm::Zero16 | LoadForm::Sign16 | LoadForm::Zero8 | LoadForm::Sign8 => {
                [self.packed(form.bytes(), value[0]); 2]
            }
        };
        match (place.stride, mask) {
            (0, _) => self.store_lane(form, value[0], 0, Self::mem(place, 0)),
            (1, None) => {
                let (opcode, length) = match form.bytes() {
                    8 => (ops::STORE_DOUBLES, VectorLength::Whole),
                    4 => (ops::STORE, VectorLength::Whole),
                    2 => (ops::STORE, VectorLength::Half),
                    _ => (ops::STORE_LOW_DOUBLE, VectorLength::Least),
                };
                for (at, &value) in value.iter().enumerate().take(form.lane().registers()) {
                    let to = Rm::Mem(Self::mem(place, i64::from(self.level.bytes()) * at as i64));
                    let inst = VectorInstruction::new(opcode, RegisterSlot::Use(value), RegisterSlot::None, to);
                    self.function.push(Instruction::Vector(VectorInstruction { length, ..inst }));
                }
            }
            (1, Some(mask)) if form.bytes() >= 4 => {
                let opcode = if form == LoadForm::Double { ops::STORE_MASKED_DOUBLES } else { ops::STORE_MASKED };
                for at in 0..form.lane().registers() {
                    let to = Rm::Mem(Self::mem(place, i64::from(self.level.bytes()) * at as i64));
                    let (value, mask) = (RegisterSlot::Use(value[at]), RegisterSlot::Use(mask[at]));
                    self.function.push(Instruction::Vector(VectorInstruction::new(opcode, value, mask, to)));
                }
            }
            (stride, None) => {
                let lanes = i64::from(self.level.lanes()) / form.lane().registers() as i64;
                for (at, &value) in value.iter().enumerate().take(form.lane().registers()) {
                    // Instructions reach 128 bits.
                    let upper = self.upper_half(value);
                    for lane in 0..lanes {
                        let to = Self::mem(place, (at as i64 * lanes + lane) * stride * form.bytes());
                        let (part, lane) = if lane < lanes / 2 { (value, lane) } else { (upper, lane - lanes / 2) };
                        self.store_lane(form, part, lane as u8, to);
                    }
                }
            }
            (stride, Some(mask)) => {
                for at in 0..form.lane().registers() {
                    let lanes = i64::from(self.level.lanes()) / form.lane().registers() as i64;
                    let to = Self::mem(place, at as i64 * lanes * stride * form.bytes());
                    let run = self.element_run(form.bytes(), stride);
                    self.function.push(Instruction::StoreElements { to, mask: mask[at], value: value[at], run });
                }
            }
        }
    }

    /// Stores a lane of the lower 128 bits; the elements of 8 and 16 bits are packed.
    fn store_lane(&mut self, form: LoadForm, value: V, lane: u8, to: Mem) {
        let (opcode, immediate) = match (form.bytes(), lane) {
            (8, 0) => (ops::STORE_LOW_DOUBLE, None),
            (8, _) => (ops::STORE_HIGH_DOUBLE, None),
            (4, 0) => (ops::STORE_LOWEST, None),
            (4, _) => (ops::STORE_ONE_WORD, Some(lane)),
            (2, _) => (ops::STORE_ONE_16, Some(lane)),
            _ => (ops::STORE_ONE_8, Some(lane)),
        };
        let inst = VectorInstruction::new(opcode, RegisterSlot::Use(value), RegisterSlot::None, Rm::Mem(to));
        let inst = VectorInstruction { length: VectorLength::Least, immediate, ..inst };
        self.function.push(Instruction::Vector(inst));
    }

    fn scatter(&mut self, double: bool, place: &GroupPlace, value: Registers, mask: Option<Registers>) {
        let mask =
            mask.unwrap_or_else(|| [self.everything.expect("the mask of all lanes exists if there are scatters"); 2]);
        let (base, scale) = self.plain_base(place, double);
        let index = self.lane_steps(place.stride);
        for at in 0..=usize::from(double) {
            let displacement = self.half_of(place, place.stride, at);
            let to = Mem { base, index: Some((index, scale)), displacement };
            self.function.push(Instruction::Scatter { double, to, mask: mask[at], value: value[at] });
        }
    }
}

/// The instruction that loads a group of such elements.
fn extension(form: LoadForm) -> Opcode {
    match form {
        LoadForm::Word => ops::LOAD,
        LoadForm::Double => ops::LOAD_DOUBLES,
        LoadForm::Zero16 => ops::ZERO_EXTEND_16,
        LoadForm::Sign16 => ops::SIGN_EXTEND_16,
        LoadForm::Zero8 => ops::ZERO_EXTEND_8,
        LoadForm::Sign8 => ops::SIGN_EXTEND_8,
        LoadForm::Half => ops::FROM_HALF,
    }
}
