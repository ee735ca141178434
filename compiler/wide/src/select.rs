//! From the instructions of a kernel to operations on lanes.
//!
//! | type | in a lane |
//! |---|---|
//! | `f32`, `i32`, `u32` | a word |
//! | `f16`, `bf16`, `f8` | an `f32` with a value of the type |
//! | integers of 8 and 16 bits | a word, extended by sign or zeros |
//! | `f64`, `i64`, `u64` | a double |
//! | `bool` | a mask |
//!
//! Results are those of `spmdc_kernel::number`, bit for bit except for NaNs. An operation that is not here yields None.

use crate::graph::{Graph, LaneOp, LoadForm, Node};
use crate::ops::{Binary, Compared, Lane, Logic, Relation, Resize, Shift, Unary};
use spmdc_abi::{DType, Kind, ReduceOp, trap};
use spmdc_kernel::loops::{Affine, Elem, Inst, Kernel, KernelCheck};
use spmdc_kernel::nest::Nest;
use spmdc_kernel::number;
use spmdc_kernel::scalar::{BinaryOp, CompareOp, IntegerOp, LogicalOp, UnaryOp};
use spmdc_math::Lanes;

/// The values of a nest's instructions.
pub struct Selection {
    pub graph: Graph,
    /// Operations for their effect.
    pub effects: Vec<Node>,
    /// For each instruction its value; None for instructions that only address, and for unneeded ones.
    pub values: Vec<Option<Node>>,
}

/// The lanes of a type.
fn lane(dtype: DType) -> Lane {
    match dtype.size() {
        _ if dtype == DType::Bool => Lane::Mask,
        8 => Lane::Double,
        _ => Lane::Word,
    }
}

/// Translates all instructions of a nest that are needed.
pub fn select(kernel: &Kernel, nest: &Nest) -> Option<Selection> {
    let (values, checks) = (vec![None; nest.insts.len()], kernel.checks());
    let mut selector = Selector { graph: Graph::default(), effects: Vec::new(), values, checks, nest };
    for &elem in &nest.order {
        if !matches!(nest.insts[elem.0 as usize], Inst::LoopInvariant { .. }) {
            selector.values[elem.0 as usize] = Some(selector.instruction(elem)?);
        }
    }
    Some(Selection { graph: selector.graph, effects: selector.effects, values: selector.values })
}

pub(crate) struct Selector<'n> {
    pub graph: Graph,
    pub effects: Vec<Node>,
    values: Vec<Option<Node>>,
    checks: Vec<KernelCheck>,
    pub nest: &'n Nest,
}

/// The form of an element of this type in memory; None for types that are decoded by other operations.
pub fn load_form(dtype: DType) -> Option<LoadForm> {
    let signed = dtype.is_signed_integer();
    match dtype.size() {
        _ if dtype == DType::Key => None,
        _ if dtype == DType::F16 => Some(LoadForm::Half),
        1 => Some(if signed { LoadForm::Sign8 } else { LoadForm::Zero8 }),
        2 => Some(if signed { LoadForm::Sign16 } else { LoadForm::Zero16 }),
        4 => Some(LoadForm::Word),
        _ => Some(LoadForm::Double),
    }
}

impl Selector<'_> {
    pub fn value(&self, elem: Elem) -> Option<Node> {
        self.values[elem.0 as usize]
    }

    fn instruction(&mut self, elem: Elem) -> Option<Node> {
        let nest = self.nest;
        let guard = match nest.guards[elem.0 as usize] {
            Some(guard) => Some(self.value(guard)?),
            None => None,
        };
        Some(match &nest.insts[elem.0 as usize] {
            Inst::Load { access, dtype } => {
                let form = load_form(*dtype)?;
                let width = if form.lane() == Lane::Double { Lane::DoubleMask } else { Lane::Mask };
                let guard = guard.map(|guard| self.graph.mask_as(width, guard));
                let raw = match self.element(&access.address)? {
                    None => self.graph.add(LaneOp::Load { inst: elem.0, form, guard }),
                    Some(index) => self.graph.add(LaneOp::Lookup { inst: elem.0, form, guard, index }),
                };
                self.graph.decode(*dtype, raw)
            }
            Inst::Const { dtype, bits } => self.graph.number(*dtype, *bits)?,
            Inst::Index { affine, dtype } => {
                let (from, index) = self.index(affine)?;
                self.graph.cast(from, *dtype, index)?
            }
            Inst::Unary { op, dtype, arg } => {
                let arg = self.value(*arg)?;
                self.graph.unary(*op, *dtype, arg)?
            }
            inst @ Inst::Binary { op, dtype, lhs, rhs, .. } => {
                let (lhs, rhs) = (self.value(*lhs)?, self.value(*rhs)?);
                if inst.divides_integers() {
                    let zero = self.graph.integer(self.graph.lane(rhs), 0);
                    let compared = if self.graph.lane(rhs) == Lane::Double { Compared::S64 } else { Compared::S32 };
                    let fails = self.graph.compare(compared, Relation::Equal, rhs, zero);
                    let code = self.graph.double(inst.trap(&self.checks, 0) as u64);
                    self.fail(fails, guard, rhs, code);
                }
                self.graph.binary_op(*op, *dtype, lhs, rhs)?
            }
            Inst::Compare { op, dtype, lhs, rhs } => {
                let (lhs, rhs) = (self.value(*lhs)?, self.value(*rhs)?);
                self.graph.compare_op(*op, *dtype, lhs, rhs)?
            }
            Inst::Select { cond, then, otherwise, .. } => {
                let (cond, then, otherwise) = (self.value(*cond)?, self.value(*then)?, self.value(*otherwise)?);
                if self.graph.lane(then).is_mask() {
                    let cond = self.graph.mask_as(Lane::Mask, cond);
                    let not = self.graph.not(cond);
                    let (a, b) =
                        (self.graph.logic(Logic::And, cond, then), self.graph.logic(Logic::And, not, otherwise));
                    self.graph.logic(Logic::Or, a, b)
                } else {
                    self.graph.select(cond, then, otherwise)
                }
            }
            Inst::Fma { dtype, x, y, z } => {
                let (x, y, z) = (self.value(*x)?, self.value(*y)?, self.value(*z)?);
                let sum = self.graph.fma(x, y, z);
                self.graph.rounded(*dtype, sum)
            }
            Inst::Cast { from, to, arg } => {
                let arg = self.value(*arg)?;
                self.graph.cast(*from, *to, arg)?
            }
            Inst::Bitcast { from, to, arg } => {
                let arg = self.value(*arg)?;
                self.graph.bits_as(*from, *to, arg)?
            }
            Inst::InRange { affine, low, high } => self.in_range(affine, low, high)?,
            Inst::Carried { dtype, init, .. } => {
                let init = self.value(*init)?;
                let init = self.graph.carried_as(*dtype, init);
                self.graph.add(LaneOp::Carried { inst: elem.0, init })
            }
            Inst::Repeat { trips, carried } => {
                let trips = self.value(*trips)?;
                let mut pairs = Vec::new();
                for &(value, next) in carried {
                    let (dtype, value, next) = (nest.dtype(value), self.value(value)?, self.value(next)?);
                    pairs.push((value, self.graph.carried_as(dtype, next)));
                }
                self.graph.repeats.push(pairs);
                self.graph.add(LaneOp::Repeat { number: self.graph.repeats.len() as u32 - 1, trips })
            }
            Inst::Last { repeat, place, .. } => {
                let Inst::Repeat { carried, .. } = &nest.insts[repeat.0 as usize] else { return None };
                let (repeat, carried) = (self.value(*repeat)?, self.value(carried[*place].0)?);
                self.graph.add(LaneOp::Last { repeat, carried })
            }
            inst @ Inst::CheckIndex { dtype, arg, extent, .. } => {
                let index = self.value(*arg)?;
                let (counted, fails) = self.graph.counted_index(*dtype, index, *extent)?;
                let code = self.graph.code_of(inst.trap(&self.checks, trap::LEAST_VALUE), *dtype, index)?;
                self.fail(fails, guard, index, code);
                counted
            }
            Inst::Limit { arg, last } => {
                let arg = self.value(*arg)?;
                self.graph.limited(arg, *last)
            }
            Inst::LoopInvariant { .. } | Inst::RandomBits { .. } => return None,
        })
    }

    /// An index in each lane, in 32 bits if it fits.
    fn index(&mut self, affine: &Affine) -> Option<(DType, Node)> {
        if !affine.dynamic.is_empty() {
            return None;
        }
        let (dtype, lane) =
            if self.nest.fits_i32(affine) { (DType::I32, Lane::Word) } else { (DType::I64, Lane::Double) };
        let indices = &mut self.graph.indices;
        let at = indices.iter().position(|known| known == affine).unwrap_or_else(|| {
            indices.push(affine.clone());
            indices.len() - 1
        });
        Some((dtype, self.graph.add(LaneOp::Index { index: at as u32, lane })))
    }

    fn in_range(&mut self, affine: &Affine, low: &Affine, high: &Affine) -> Option<Node> {
        let mut all = None;
        for difference in [affine.plus(&low.times(-1)), high.plus(&affine.times(-1)).offset(-1)] {
            if self.nest.bounds(&difference).is_some_and(|(least, _)| least >= 0) {
                continue;
            }
            let (dtype, index) = self.index(&difference)?;
            let (compared, zero) = if dtype == DType::I32 {
                (Compared::S32, self.graph.word(0))
            } else {
                (Compared::S64, self.graph.double(0))
            };
            let holds = self.graph.compare(compared, Relation::GreaterOrEqual, index, zero);
            let holds = self.graph.mask_as(Lane::Mask, holds);
            all = Some(match all {
                Some(all) => self.graph.logic(Logic::And, all, holds),
                None => holds,
            });
        }
        Some(all.unwrap_or_else(|| self.graph.add(LaneOp::Truth(true))))
    }
}

/// Whether results need no rounding to a narrow type.
fn is_exact(op: UnaryOp) -> bool {
    matches!(op, UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Sign | UnaryOp::Relu) || op.is_test() || op.is_rounding()
}

impl Graph {
    /// A constant of a type.
    pub fn number(&mut self, dtype: DType, bits: u64) -> Option<Node> {
        if dtype == DType::Key {
            return None;
        }
        Some(if dtype == DType::Bool {
            self.add(LaneOp::Truth(bits != 0))
        } else if dtype.is_narrow() {
            let wide = number::cast(dtype, DType::F32, bits)?;
            self.word(wide as u32)
        } else if dtype.size() == 8 {
            self.double(bits)
        } else if dtype.is_integer() {
            self.word(number::to_int(dtype, bits) as u32)
        } else {
            self.word(bits as u32)
        })
    }

    pub fn float(&mut self, lane: Lane, value: f64) -> Node {
        if lane == Lane::Double { self.double(value.to_bits()) } else { self.word((value as f32).to_bits()) }
    }

    pub fn integer(&mut self, lane: Lane, value: i64) -> Node {
        if lane == Lane::Double { self.double(value as u64) } else { self.word(value as u32) }
    }

    pub fn compare_floats(&mut self, relation: Relation, a: Node, b: Node) -> Node {
        let compared = if self.lane(a) == Lane::Double { Compared::F64 } else { Compared::F32 };
        self.compare(compared, relation, a, b)
    }

    /// The value of a raw element.
    fn decode(&mut self, dtype: DType, raw: Node) -> Node {
        if dtype == DType::Bool {
            let zero = self.word(0);
            self.compare(Compared::U32, Relation::NotEqual, raw, zero)
        } else if dtype == DType::Bf16 {
            self.shift(Shift::Shl32, raw, 16)
        } else if dtype.is_narrow() && dtype != DType::F16 {
            self.decode_narrow(dtype, raw)
        } else {
            raw
        }
    }

    /// The raw element of a value of a narrow float type other than `f16`, which separate conversions store.
    pub fn encode(&mut self, dtype: DType, value: Node) -> Node {
        if dtype == DType::Bf16 {
            self.shift(Shift::Shr32, value, 16)
        } else if dtype.is_narrow() && dtype != DType::F16 {
            self.encode_narrow(dtype, value)
        } else {
            value
        }
    }

    /// A result in `f32` as a value of the type.
    pub fn rounded(&mut self, dtype: DType, value: Node) -> Node {
        if dtype == DType::F16 {
            self.add(LaneOp::RoundHalf(value))
        } else if dtype.is_narrow() {
            self.round_to_narrow(dtype, value)
        } else {
            value
        }
    }

    /// An integer result cut to the width of its type.
    fn wrapped(&mut self, dtype: DType, value: Node) -> Node {
        let unused = 32 - 8 * (dtype.size().min(4) as u32);
        if unused == 0 || !dtype.is_integer() {
            return value;
        }
        if dtype.is_unsigned_integer() {
            let mask = self.word(u32::MAX >> unused);
            return self.binary(Binary::And32, value, mask);
        }
        let high = self.shift(Shift::Shl32, value, unused);
        self.shift(Shift::Sar32, high, unused)
    }

    fn magnitude(&mut self, x: Node) -> Node {
        if self.lane(x) == Lane::Double { self.abs_f64(x) } else { self.abs_f32(x) }
    }

    fn with_sign_of(&mut self, magnitude: Node, sign: Node) -> Node {
        let (sign, magnitude) = if self.lane(sign) == Lane::Double {
            let (bit, rest) = (self.double(1 << 63), self.double(u64::MAX >> 1));
            (self.binary(Binary::And64, sign, bit), self.binary(Binary::And64, magnitude, rest))
        } else {
            let (bit, rest) = (self.word(1 << 31), self.word(u32::MAX >> 1));
            (self.binary(Binary::And32, sign, bit), self.binary(Binary::And32, magnitude, rest))
        };
        self.by_lane(Binary::Or32, Binary::Or64, magnitude, sign)
    }

    pub fn by_lane(&mut self, word: Binary, double: Binary, a: Node, b: Node) -> Node {
        let op = if self.lane(a) == Lane::Double { double } else { word };
        self.binary(op, a, b)
    }

    pub fn unary(&mut self, op: UnaryOp, dtype: DType, x: Node) -> Option<Node> {
        if dtype == DType::Bool {
            return Some(if op == UnaryOp::Not { self.not(x) } else { x });
        }
        if !dtype.is_float() {
            return self.integer_unary(op, dtype, x);
        }
        let y = self.float_unary(op, x)?;
        Some(if is_exact(op) { y } else { self.rounded(dtype, y) })
    }

    fn float_unary(&mut self, op: UnaryOp, x: Node) -> Option<Node> {
        let lane = self.lane(x);
        Some(match op {
            UnaryOp::Neg => self.add(LaneOp::Neg(x, lane)),
            UnaryOp::Abs => self.magnitude(x),
            UnaryOp::Sign => {
                let one = self.float(lane, 1.0);
                let signed = self.with_sign_of(one, x);
                let (magnitude, zero) = (self.magnitude(x), self.float(lane, 0.0));
                let has_sign = self.compare_floats(Relation::Greater, magnitude, zero);
                self.select(has_sign, signed, x)
            }
            UnaryOp::Square => self.by_lane(Binary::MulF32, Binary::MulF64, x, x),
            UnaryOp::Relu => {
                let zero = self.float(lane, 0.0);
                let is_low = self.compare_floats(Relation::LessOrEqual, x, zero);
                self.select(is_low, zero, x)
            }
            UnaryOp::Reciprocal => {
                let one = self.float(lane, 1.0);
                self.by_lane(Binary::DivF32, Binary::DivF64, one, x)
            }
            UnaryOp::IsNan => self.compare_floats(Relation::Unordered, x, x),
            UnaryOp::IsInf | UnaryOp::IsFinite => {
                let (magnitude, infinity) = (self.magnitude(x), self.float(lane, f64::INFINITY));
                let relation = if op == UnaryOp::IsInf { Relation::Equal } else { Relation::Less };
                self.compare_floats(relation, magnitude, infinity)
            }
            UnaryOp::Signbit => {
                let (compared, zero) =
                    if lane == Lane::Double { (Compared::S64, self.double(0)) } else { (Compared::S32, self.word(0)) };
                let signed = self.compare(compared, Relation::Less, x, zero);
                let is_nan = self.compare_floats(Relation::Unordered, x, x);
                let is_number = self.not(is_nan);
                self.logic(Logic::And, signed, is_number)
            }
            UnaryOp::Math(f) if lane == Lane::Double => spmdc_math::unary_f64(self, f, x),
            UnaryOp::Math(f) => spmdc_math::unary_f32(self, f, x),
            UnaryOp::Not | UnaryOp::Popcount | UnaryOp::Clz => return None,
        })
    }

    fn integer_unary(&mut self, op: UnaryOp, dtype: DType, x: Node) -> Option<Node> {
        let lane = self.lane(x);
        let zero = self.integer(lane, 0);
        let unsigned = dtype.is_unsigned_integer();
        let y = match op.of_integers()? {
            IntegerOp::Neg => self.by_lane(Binary::SubI32, Binary::SubI64, zero, x),
            IntegerOp::Not => {
                let ones = self.integer(lane, -1);
                self.by_lane(Binary::Xor32, Binary::Xor64, x, ones)
            }
            IntegerOp::Abs | IntegerOp::Relu if unsigned => x,
            IntegerOp::Abs if lane == Lane::Double => self.add(LaneOp::Unary(Unary::AbsI64, x)),
            IntegerOp::Abs => self.add(LaneOp::Unary(Unary::AbsI32, x)),
            IntegerOp::Square => self.by_lane(Binary::MulI32, Binary::MulI64, x, x),
            IntegerOp::Relu => self.by_lane(Binary::MaxS32, Binary::MaxS64, x, zero),
            IntegerOp::Sign if unsigned => {
                let one = self.integer(lane, 1);
                self.by_lane(Binary::MinU32, Binary::MinU64, x, one)
            }
            IntegerOp::Sign => {
                let (one, minus) = (self.integer(lane, 1), self.integer(lane, -1));
                let low = self.by_lane(Binary::MinS32, Binary::MinS64, x, one);
                self.by_lane(Binary::MaxS32, Binary::MaxS64, low, minus)
            }
            IntegerOp::Popcount | IntegerOp::Clz => return None,
        };
        Some(self.wrapped(dtype, y))
    }

    pub fn binary_op(&mut self, op: BinaryOp, dtype: DType, x: Node, y: Node) -> Option<Node> {
        if dtype == DType::Bool {
            let logic = match op.of_bools()? {
                LogicalOp::And => Logic::And,
                LogicalOp::Or => Logic::Or,
                LogicalOp::Xor => Logic::Xor,
            };
            return Some(self.logic(logic, x, y));
        }
        if !dtype.is_float() {
            return self.integer_binary(op, dtype, x, y);
        }
        let z = self.float_binary(op, x, y)?;
        let is_exact = matches!(op, BinaryOp::Minimum | BinaryOp::Maximum | BinaryOp::Copysign);
        Some(if is_exact { z } else { self.rounded(dtype, z) })
    }

    fn float_binary(&mut self, op: BinaryOp, x: Node, y: Node) -> Option<Node> {
        Some(match op {
            BinaryOp::Add => self.by_lane(Binary::AddF32, Binary::AddF64, x, y),
            BinaryOp::Sub => self.by_lane(Binary::SubF32, Binary::SubF64, x, y),
            BinaryOp::Mul => self.by_lane(Binary::MulF32, Binary::MulF64, x, y),
            BinaryOp::Div => self.by_lane(Binary::DivF32, Binary::DivF64, x, y),
            BinaryOp::Minimum => self.minimum(x, y),
            BinaryOp::Maximum => self.maximum(x, y),
            BinaryOp::Pow | BinaryOp::Atan2 | BinaryOp::Hypot | BinaryOp::Logaddexp => {
                let f = op.math()?;
                if self.lane(x) == Lane::Double {
                    spmdc_math::binary_f64(self, f, x, y)
                } else {
                    spmdc_math::binary_f32(self, f, x, y)
                }
            }
            BinaryOp::Copysign => {
                let (signed, magnitude) = (self.with_sign_of(x, y), self.magnitude(x));
                let is_nan = self.compare_floats(Relation::Unordered, y, y);
                self.select(is_nan, magnitude, signed)
            }
            BinaryOp::Rem
            | BinaryOp::FloorDiv
            | BinaryOp::Nextafter
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::Shl
            | BinaryOp::Shr
            | BinaryOp::Gcd => return None,
        })
    }

    /// A float constant.
    fn float_constant(&self, x: Node) -> Option<f64> {
        let bits = self.constant(x)?;
        Some(if self.lane(x) == Lane::Double { f64::from_bits(bits) } else { f64::from(f32::from_bits(bits as u32)) })
    }

    /// The minimum; NaN if an operand is NaN, and -0 is less than 0.
    pub fn minimum(&mut self, x: Node, y: Node) -> Node {
        let (constant, other) = if self.float_constant(x).is_some() { (x, y) } else { (y, x) };
        if self.float_constant(constant).is_some_and(|c| !c.is_nan() && c.to_bits() != (-0.0_f64).to_bits()) {
            return self.by_lane(Binary::MinF32, Binary::MinF64, constant, other);
        }
        // Both orders give each operand where they are equal or one is NaN: the union of the bits is -0, or a NaN.
        let a = self.by_lane(Binary::MinF32, Binary::MinF64, x, y);
        let b = self.by_lane(Binary::MinF32, Binary::MinF64, y, x);
        self.by_lane(Binary::Or32, Binary::Or64, a, b)
    }

    /// The maximum; NaN if an operand is NaN, and 0 is greater than -0.
    pub fn maximum(&mut self, x: Node, y: Node) -> Node {
        let (constant, other) = if self.float_constant(x).is_some() { (x, y) } else { (y, x) };
        let limit = self.float_constant(constant);
        if let Some(limit) = limit.filter(|c| !c.is_nan() && c.to_bits() != (-0.0_f64).to_bits()) {
            let larger = self.by_lane(Binary::MaxF32, Binary::MaxF64, constant, other);
            // A -0 that was kept becomes 0 when 0 is added; nothing else changes.
            return if limit == 0.0 { self.by_lane(Binary::AddF32, Binary::AddF64, larger, constant) } else { larger };
        }
        let a = self.by_lane(Binary::MaxF32, Binary::MaxF64, x, y);
        let b = self.by_lane(Binary::MaxF32, Binary::MaxF64, y, x);
        let common = self.by_lane(Binary::And32, Binary::And64, a, b);
        let is_nan = self.compare_floats(Relation::Unordered, x, y);
        let nan = self.float(self.lane(x), f64::NAN);
        self.select(is_nan, nan, common)
    }

    fn integer_binary(&mut self, op: BinaryOp, dtype: DType, x: Node, y: Node) -> Option<Node> {
        let signed = dtype.is_signed_integer();
        let z = match op {
            BinaryOp::Add => self.by_lane(Binary::AddI32, Binary::AddI64, x, y),
            BinaryOp::Sub => self.by_lane(Binary::SubI32, Binary::SubI64, x, y),
            BinaryOp::Mul => self.by_lane(Binary::MulI32, Binary::MulI64, x, y),
            BinaryOp::And => self.by_lane(Binary::And32, Binary::And64, x, y),
            BinaryOp::Or => self.by_lane(Binary::Or32, Binary::Or64, x, y),
            BinaryOp::Xor => self.by_lane(Binary::Xor32, Binary::Xor64, x, y),
            BinaryOp::Minimum if signed => self.by_lane(Binary::MinS32, Binary::MinS64, x, y),
            BinaryOp::Minimum => self.by_lane(Binary::MinU32, Binary::MinU64, x, y),
            BinaryOp::Maximum if signed => self.by_lane(Binary::MaxS32, Binary::MaxS64, x, y),
            BinaryOp::Maximum => self.by_lane(Binary::MaxU32, Binary::MaxU64, x, y),
            BinaryOp::Shl | BinaryOp::Shr => self.shift_op(op, dtype, x, y),
            BinaryOp::FloorDiv | BinaryOp::Rem => self.divided(op, dtype, x, y)?,
            BinaryOp::Pow
            | BinaryOp::Gcd
            | BinaryOp::Div
            | BinaryOp::Atan2
            | BinaryOp::Hypot
            | BinaryOp::Logaddexp
            | BinaryOp::Copysign
            | BinaryOp::Nextafter => return None,
        };
        Some(self.wrapped(dtype, z))
    }

    /// Shifts; an amount outside the width shifts everything out. A negative amount is a large one as the unsigned number of a lane, and
    /// narrow integers have room to shift out: their sign or zeros fill the lane.
    fn shift_op(&mut self, op: BinaryOp, dtype: DType, x: Node, y: Node) -> Node {
        let (double, keeps_sign) = (self.lane(x) == Lane::Double, op == BinaryOp::Shr && dtype.is_signed_integer());
        let width = 8 * dtype.size() as u64;
        if let Some(amount) = self.constant(y) {
            if amount >= width && !keeps_sign {
                return self.integer(self.lane(x), 0);
            }
            let shift = match (op == BinaryOp::Shl, keeps_sign, double) {
                (true, _, false) => Shift::Shl32,
                (true, _, true) => Shift::Shl64,
                (false, true, false) => Shift::Sar32,
                (false, true, true) => Shift::Sar64,
                (false, false, false) => Shift::Shr32,
                (false, false, true) => Shift::Shr64,
            };
            return self.shift(shift, x, amount.min(width - 1) as u32);
        }
        let (word, wide) = match (op == BinaryOp::Shl, keeps_sign) {
            (true, _) => (Binary::ShlV32, Binary::ShlV64),
            (false, true) => (Binary::SarV32, Binary::SarV64),
            (false, false) => (Binary::ShrV32, Binary::ShrV64),
        };
        self.by_lane(word, wide, x, y)
    }

    pub fn compare_op(&mut self, op: CompareOp, dtype: DType, x: Node, y: Node) -> Option<Node> {
        if dtype == DType::Bool {
            let (x, y) = (self.mask_as(Lane::Mask, x), self.mask_as(Lane::Mask, y));
            let (not_x, not_y) = (self.not(x), self.not(y));
            return Some(match op {
                CompareOp::Ne => self.logic(Logic::Xor, x, y),
                CompareOp::Eq => self.logic(Logic::Xor, not_x, y),
                CompareOp::Lt => self.logic(Logic::And, not_x, y),
                CompareOp::Gt => self.logic(Logic::And, x, not_y),
                CompareOp::Le => self.logic(Logic::Or, not_x, y),
                CompareOp::Ge => self.logic(Logic::Or, x, not_y),
            });
        }
        let compared = match (dtype.kind(), self.lane(x) == Lane::Double) {
            (Kind::Key | Kind::Bool, _) => return None,
            (Kind::Float, false) => Compared::F32,
            (Kind::Float, true) => Compared::F64,
            (Kind::Signed, false) => Compared::S32,
            (Kind::Signed, true) => Compared::S64,
            (Kind::Unsigned, false) => Compared::U32,
            (Kind::Unsigned, true) => Compared::U64,
        };
        let relation = match op {
            CompareOp::Eq => Relation::Equal,
            CompareOp::Ne => Relation::NotEqual,
            CompareOp::Lt => Relation::Less,
            CompareOp::Le => Relation::LessOrEqual,
            CompareOp::Gt => Relation::Greater,
            CompareOp::Ge => Relation::GreaterOrEqual,
        };
        Some(self.compare(compared, relation, x, y))
    }

    /// Integers wrap, floats saturate with NaN as 0, and to bool is "not zero". Narrow floats are rounded from `f32`.
    pub fn cast(&mut self, from: DType, to: DType, x: Node) -> Option<Node> {
        if from == to {
            return Some(x);
        }
        if from == DType::Key || to == DType::Key {
            return None;
        }
        if to == DType::Bool {
            let zero = self.integer(self.lane(x), 0);
            return if from.is_float() {
                Some(self.compare_floats(Relation::NotEqual, x, zero))
            } else {
                self.compare_op(CompareOp::Ne, from, x, zero)
            };
        }
        if from == DType::Bool {
            let one = self.one(to);
            let zero = self.integer(lane(to), 0);
            return Some(self.select(x, one, zero));
        }
        let wide = self.lane(x) == Lane::Double;
        match (from.is_float(), to.is_float()) {
            (false, false) => {
                let resized = match (wide, lane(to) == Lane::Double) {
                    (true, false) => self.add(LaneOp::Resize(Resize::Truncate, x)),
                    (false, true) if from.is_signed_integer() => self.add(LaneOp::Resize(Resize::SignExtend, x)),
                    (false, true) => self.add(LaneOp::Resize(Resize::ZeroExtend, x)),
                    (true, true) | (false, false) => x,
                };
                Some(self.wrapped(to, resized))
            }
            (false, true) => {
                // Narrow integers are words with a sign.
                let unsigned = from.is_unsigned_integer() && from.size() >= 4;
                let float = match (wide, lane(to) == Lane::Double, unsigned) {
                    (false, false, false) => self.add(LaneOp::Unary(Unary::I32ToF32, x)),
                    (false, false, true) => self.add(LaneOp::Unary(Unary::U32ToF32, x)),
                    (false, true, false) => self.add(LaneOp::Resize(Resize::I32ToF64, x)),
                    (false, true, true) => self.add(LaneOp::Resize(Resize::U32ToF64, x)),
                    (true, false, false) => self.add(LaneOp::Resize(Resize::I64ToF32, x)),
                    (true, false, true) => self.add(LaneOp::Resize(Resize::U64ToF32, x)),
                    (true, true, false) => self.add(LaneOp::Unary(Unary::I64ToF64, x)),
                    (true, true, true) => self.add(LaneOp::Unary(Unary::U64ToF64, x)),
                };
                Some(self.rounded(to, float))
            }
            (true, false) => Some(self.float_to(to, x)),
            (true, true) => {
                let float = match (wide, to == DType::F64) {
                    (true, false) => self.narrow(x),
                    (false, true) => self.widen(x),
                    (true, true) | (false, false) => x,
                };
                Some(self.rounded(to, float))
            }
        }
    }

    /// The bits of an element as another number type of the same size. None for `f16`: the instructions that load and store it make every
    /// NaN a quiet one.
    fn bits_as(&mut self, from: DType, to: DType, x: Node) -> Option<Node> {
        if from == DType::F16 || to == DType::F16 {
            return None;
        }
        let bits = self.encode(from, x);
        let bits = self.wrapped(to, bits);
        Some(self.decode(to, bits))
    }

    /// A value in the form in which loops of the body carry it: bools have masks of one width.
    fn carried_as(&mut self, dtype: DType, value: Node) -> Node {
        if dtype == DType::Bool { self.mask_as(Lane::Mask, value) } else { value }
    }

    fn one(&mut self, dtype: DType) -> Node {
        match (dtype.is_float(), lane(dtype)) {
            (true, lane) => self.float(lane, 1.0),
            (false, lane) => self.integer(lane, 1),
        }
    }

    /// Floats to integers: toward zero, saturating, NaN to 0.
    fn float_to(&mut self, to: DType, x: Node) -> Node {
        let wide = self.lane(x) == Lane::Double;
        let signed = to.is_signed_integer() || to.size() < 4;
        if to.size() == 8 {
            let x = if wide { x } else { self.widen(x) };
            return if signed {
                self.saturated(Unary::F64ToI64.into(), x, 63)
            } else {
                self.positive(Unary::F64ToU64.into(), x)
            };
        }
        let int = match (wide, signed) {
            (false, true) => self.saturated(Unary::F32ToI32.into(), x, 31),
            (false, false) => self.positive(Unary::F32ToU32.into(), x),
            (true, true) => self.saturated(Resize::F64ToI32.into(), x, 31),
            (true, false) => self.positive(Resize::F64ToU32.into(), x),
        };
        if to.size() == 4 {
            return int;
        }
        let (least, largest) = to.integer_bounds();
        let (least, largest) = (self.word(least as i32 as u32), self.word(largest as i32 as u32));
        let raised = self.binary(Binary::MaxS32, int, least);
        self.binary(Binary::MinS32, raised, largest)
    }

    fn convert(&mut self, by: Conversion, x: Node) -> Node {
        match by {
            Conversion::Same(unary) => self.add(LaneOp::Unary(unary, x)),
            Conversion::Resized(resize) => self.add(LaneOp::Resize(resize, x)),
        }
    }

    /// To a signed integer of `bits + 1` bits: the instruction gives the smallest one where the number is out of range.
    fn saturated(&mut self, by: Conversion, x: Node, bits: u32) -> Node {
        let int = self.convert(by, x);
        let (lane, int_lane) = (self.lane(x), self.lane(int));
        let limit = self.float(lane, 2.0_f64.powi(bits as i32));
        let largest = self.integer(int_lane, if bits == 63 { i64::MAX } else { i64::from(i32::MAX) });
        let exceeds = self.compare_floats(Relation::GreaterOrEqual, x, limit);
        let int = self.select(exceeds, largest, int);
        let is_nan = self.compare_floats(Relation::Unordered, x, x);
        let zero = self.integer(int_lane, 0);
        self.select(is_nan, zero, int)
    }

    /// To an unsigned integer: the instruction gives the largest one where the number is too large.
    fn positive(&mut self, by: Conversion, x: Node) -> Node {
        // The second operand where the first is NaN.
        let zero = self.float(self.lane(x), 0.0);
        let positive = self.by_lane(Binary::MaxF32, Binary::MaxF64, x, zero);
        self.convert(by, positive)
    }

    /// A combination of two terms of a reduction; bools are words of 0 and 1.
    pub fn reduce(&mut self, op: ReduceOp, dtype: DType, a: Node, b: Node) -> Node {
        let (signed, is_bool) = (dtype.is_signed_integer(), dtype == DType::Bool);
        match op {
            ReduceOp::Sum | ReduceOp::Max | ReduceOp::Or if is_bool => self.binary(Binary::Or32, a, b),
            ReduceOp::Product | ReduceOp::Min | ReduceOp::And if is_bool => self.binary(Binary::And32, a, b),
            ReduceOp::Sum if dtype.is_float() => self.by_lane(Binary::AddF32, Binary::AddF64, a, b),
            ReduceOp::Product if dtype.is_float() => self.by_lane(Binary::MulF32, Binary::MulF64, a, b),
            ReduceOp::Max if dtype.is_float() => self.maximum(a, b),
            ReduceOp::Min if dtype.is_float() => self.minimum(a, b),
            // Narrow integers are cut to their width at the end.
            ReduceOp::Sum => self.by_lane(Binary::AddI32, Binary::AddI64, a, b),
            ReduceOp::Product => self.by_lane(Binary::MulI32, Binary::MulI64, a, b),
            ReduceOp::And => self.by_lane(Binary::And32, Binary::And64, a, b),
            ReduceOp::Or => self.by_lane(Binary::Or32, Binary::Or64, a, b),
            ReduceOp::Max if signed => self.by_lane(Binary::MaxS32, Binary::MaxS64, a, b),
            ReduceOp::Max => self.by_lane(Binary::MaxU32, Binary::MaxU64, a, b),
            ReduceOp::Min if signed => self.by_lane(Binary::MinS32, Binary::MinS64, a, b),
            ReduceOp::Min => self.by_lane(Binary::MinU32, Binary::MinU64, a, b),
        }
    }
}

/// A conversion that keeps the width of lanes, or one that does not.
#[derive(Clone, Copy)]
enum Conversion {
    Same(Unary),
    Resized(Resize),
}

impl From<Unary> for Conversion {
    fn from(unary: Unary) -> Conversion {
        Conversion::Same(unary)
    }
}

impl From<Resize> for Conversion {
    fn from(resize: Resize) -> Conversion {
        Conversion::Resized(resize)
    }
}
