//! The computation of a kernel as a graph of operations on lanes, each of which is one instruction or a few.
//!
//! Equal operations are one node. [`spmdc_math`] records its functions here through [`Lanes`].

use crate::ops::{Binary, Compared, Lane, Logic, Relation, Resize, Rounding, Shift, Unary};
use spmdc_math::{Lanes, Rare};
use std::collections::HashMap;

/// A value: the index of its operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Node(pub u32);

/// An operation. Operands are earlier nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LaneOp {
    Const32(u32),
    Const64(u64),
    /// All lanes of a mask, or none.
    Truth(bool),
    /// A value that is given where the operations on it are emitted: a partial result, for instance.
    Given {
        number: u32,
        lane: Lane,
    },
    /// The raw element of a load of the kernel, by the number of its instruction, under a guard.
    Load {
        inst: u32,
        form: LoadForm,
        guard: Option<Node>,
    },
    /// Like a load, at a number of elements after the address, in 32 bits.
    Lookup {
        inst: u32,
        form: LoadForm,
        guard: Option<Node>,
        index: Node,
    },
    /// Notes a failure in each lane of a mask: of a check by its number in [`Graph::checks`], for a value.
    Fail {
        check: u32,
        mask: Node,
        value: Node,
    },
    /// An index in each lane, by its number in [`Graph::indices`].
    Index {
        index: u32,
        lane: Lane,
    },
    Binary(Binary, Node, Node),
    Unary(Unary, Node),
    Resize(Resize, Node),
    /// Bits are kept; the other sign.
    Neg(Node, Lane),
    Round(Rounding, Node, Lane),
    Shift(Shift, Node, u8),
    /// `x * y + z`
    Fma {
        x: Node,
        y: Node,
        z: Node,
        negate_product: bool,
        negate_sum: bool,
    },
    Compare(Compared, Relation, Node, Node),
    Select(Node, Node, Node),
    Logic(Logic, Node, Node),
    Not(Node),
    /// A mask of the other width.
    MaskAs(Lane, Node),
    /// To `f16` and back.
    RoundHalf(Node),
    /// A value that a loop of the body carries, at the beginning of a trip; by the number of its instruction.
    Carried {
        inst: u32,
        init: Node,
    },
    /// A loop of the body, by its number in [`Graph::repeats`].
    Repeat {
        number: u32,
        trips: Node,
    },
    /// A carried value after the last trip.
    Last {
        repeat: Node,
        carried: Node,
    },
    /// `mask ? rare(x) : common`
    Rare {
        function: Rare,
        mask: Node,
        common: Node,
        x: Node,
    },
}

/// The bits of a load in a word or double.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoadForm {
    Word,
    Double,
    Zero16,
    Sign16,
    Zero8,
    Sign8,
    /// An `f16` as an `f32`.
    Half,
}

impl LoadForm {
    /// Bytes of an element in memory.
    pub fn bytes(self) -> i64 {
        match self {
            LoadForm::Word => 4,
            LoadForm::Double => 8,
            LoadForm::Zero16 | LoadForm::Sign16 | LoadForm::Half => 2,
            LoadForm::Zero8 | LoadForm::Sign8 => 1,
        }
    }

    /// The lanes of the value.
    pub fn lane(self) -> Lane {
        if self == LoadForm::Double { Lane::Double } else { Lane::Word }
    }
}

/// The operations, in an order in which operands come first.
#[derive(Default)]
pub struct Graph {
    ops: Vec<(LaneOp, Lane)>,
    known: HashMap<LaneOp, Node>,
    /// The affine values that are used in lanes.
    pub indices: Vec<spmdc_kernel::loops::Affine>,
    /// The carried values of each loop of the body, with the values of the next trip.
    pub repeats: Vec<Vec<(Node, Node)>>,
    /// The checks that may fail.
    pub checks: Vec<CheckCode>,
}

/// The number of the first given value of checks; the numbers of combinations are lower.
pub const GIVEN_TO_CHECKS: u32 = 1 << 30;

/// Operations that note the failures of a check.
#[derive(Clone, Copy)]
pub struct CheckCode {
    /// The lanes that fail, and the least codes before: given values.
    pub fails: Node,
    pub before: Node,
    /// The least codes, updated with the codes of the lanes that fail.
    pub after: Node,
}

impl Graph {
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    pub fn op(&self, node: Node) -> LaneOp {
        self.ops[node.0 as usize].0
    }

    pub fn lane(&self, node: Node) -> Lane {
        self.ops[node.0 as usize].1
    }

    pub fn add(&mut self, op: LaneOp) -> Node {
        if let Some(&known) = self.known.get(&op) {
            return known;
        }
        let lane = self.lane_of(op);
        self.ops.push((op, lane));
        let node = Node(self.ops.len() as u32 - 1);
        self.known.insert(op, node);
        node
    }

    fn lane_of(&self, op: LaneOp) -> Lane {
        match op {
            LaneOp::Const32(_) => Lane::Word,
            LaneOp::Const64(_) => Lane::Double,
            LaneOp::Truth(_) => Lane::Mask,
            LaneOp::Load { form, .. } | LaneOp::Lookup { form, .. } => form.lane(),
            LaneOp::Given { lane, .. }
            | LaneOp::Index { lane, .. }
            | LaneOp::Neg(_, lane)
            | LaneOp::Round(_, _, lane)
            | LaneOp::MaskAs(lane, _) => lane,
            LaneOp::Binary(binary, ..) => binary.lane(),
            LaneOp::Unary(unary, _) => unary.lane(),
            LaneOp::Resize(resize, _) => resize.lane(),
            LaneOp::Shift(shift, ..) => shift.lane(),
            LaneOp::Fma { x, .. } => self.lane(x),
            LaneOp::Compare(compared, ..) => compared.lane(),
            LaneOp::Select(_, a, _) | LaneOp::Logic(_, a, _) | LaneOp::Not(a) | LaneOp::Fail { mask: a, .. } => {
                self.lane(a)
            }
            LaneOp::RoundHalf(_) => Lane::Word,
            LaneOp::Rare { common, .. } => self.lane(common),
            LaneOp::Carried { init: value, .. }
            | LaneOp::Repeat { trips: value, .. }
            | LaneOp::Last { carried: value, .. } => self.lane(value),
        }
    }

    /// The operands of an operation, except the operands of addresses. A loop needs all results of its trips.
    pub fn operands(&self, op: LaneOp) -> impl Iterator<Item = Node> {
        let of_trips =
            if let LaneOp::Repeat { number, .. } = op { self.repeats[number as usize].as_slice() } else { &[] };
        Self::own_operands(op).chain(of_trips.iter().flat_map(|&(carried, next)| [carried, next]))
    }

    fn own_operands(op: LaneOp) -> impl Iterator<Item = Node> {
        let operands = match op {
            LaneOp::Const32(_)
            | LaneOp::Const64(_)
            | LaneOp::Truth(_)
            | LaneOp::Given { .. }
            | LaneOp::Index { .. } => [None; 3],
            LaneOp::Load { guard, .. } => [guard, None, None],
            LaneOp::Lookup { guard, index, .. } => [guard, Some(index), None],
            LaneOp::Binary(_, a, b)
            | LaneOp::Compare(_, _, a, b)
            | LaneOp::Logic(_, a, b)
            | LaneOp::Fail { mask: a, value: b, .. }
            | LaneOp::Last { repeat: a, carried: b } => [Some(a), Some(b), None],
            LaneOp::Unary(_, a)
            | LaneOp::Resize(_, a)
            | LaneOp::Neg(a, _)
            | LaneOp::Round(_, a, _)
            | LaneOp::Shift(_, a, _)
            | LaneOp::Not(a)
            | LaneOp::MaskAs(_, a)
            | LaneOp::Carried { init: a, .. }
            | LaneOp::Repeat { trips: a, .. }
            | LaneOp::RoundHalf(a) => [Some(a), None, None],
            LaneOp::Fma { x, y, z, .. } => [Some(x), Some(y), Some(z)],
            LaneOp::Select(a, b, c) => [Some(a), Some(b), Some(c)],
            LaneOp::Rare { mask, common, x, .. } => [Some(mask), Some(common), Some(x)],
        };
        operands.into_iter().flatten()
    }

    /// The bits of a constant.
    pub fn constant(&self, node: Node) -> Option<u64> {
        if let LaneOp::Const32(bits) = self.op(node) {
            return Some(bits.into());
        }
        if let LaneOp::Const64(bits) = self.op(node) { Some(bits) } else { None }
    }

    pub fn word(&mut self, bits: u32) -> Node {
        self.add(LaneOp::Const32(bits))
    }

    pub fn double(&mut self, bits: u64) -> Node {
        self.add(LaneOp::Const64(bits))
    }

    pub fn binary(&mut self, binary: Binary, a: Node, b: Node) -> Node {
        self.add(LaneOp::Binary(binary, a, b))
    }

    pub fn compare(&mut self, compared: Compared, relation: Relation, a: Node, b: Node) -> Node {
        self.add(LaneOp::Compare(compared, relation, a, b))
    }

    /// `mask ? a : b`, with the mask in the width of the values.
    pub fn select(&mut self, mask: Node, a: Node, b: Node) -> Node {
        if a == b {
            return a;
        }
        let mask = match self.lane(a) {
            Lane::Word | Lane::Mask => self.mask_as(Lane::Mask, mask),
            Lane::Double | Lane::DoubleMask => self.mask_as(Lane::DoubleMask, mask),
        };
        self.add(LaneOp::Select(mask, a, b))
    }

    /// A mask for lanes of this width.
    pub fn mask_as(&mut self, lane: Lane, mask: Node) -> Node {
        if self.lane(mask) == lane {
            return mask;
        }
        if let LaneOp::MaskAs(_, inner) = self.op(mask)
            && self.lane(inner) == lane
        {
            return inner;
        }
        self.add(LaneOp::MaskAs(lane, mask))
    }

    /// A combination of masks, which become equally wide.
    pub fn logic(&mut self, logic: Logic, a: Node, b: Node) -> Node {
        let lane = self.lane(a);
        let b = self.mask_as(lane, b);
        self.add(LaneOp::Logic(logic, a, b))
    }

    pub fn not(&mut self, mask: Node) -> Node {
        self.add(LaneOp::Not(mask))
    }

    pub fn shift(&mut self, shift: Shift, a: Node, by: u32) -> Node {
        if by == 0 { a } else { self.add(LaneOp::Shift(shift, a, by as u8)) }
    }

    fn negation(&self, node: Node) -> (Node, bool) {
        if let LaneOp::Neg(inner, _) = self.op(node) { (inner, true) } else { (node, false) }
    }

    /// `x * y + z`, with negations of operands in the instruction.
    pub fn fma(&mut self, x: Node, y: Node, z: Node) -> Node {
        let ((x, nx), (y, ny), (z, nz)) = (self.negation(x), self.negation(y), self.negation(z));
        self.add(LaneOp::Fma { x, y, z, negate_product: nx != ny, negate_sum: nz })
    }
}

macro_rules! lanes {
    ($($name:ident => $op:ident,)*) => {
        $(fn $name(&mut self, a: Node, b: Node) -> Node {
            self.binary(Binary::$op, a, b)
        })*
    };
}

macro_rules! comparisons {
    ($($name:ident => $of:ident $relation:ident,)*) => {
        $(fn $name(&mut self, a: Node, b: Node) -> Node {
            self.compare(Compared::$of, Relation::$relation, a, b)
        })*
    };
}

macro_rules! roundings {
    ($($name:ident => $rounding:ident $lane:ident,)*) => {
        $(fn $name(&mut self, a: Node) -> Node {
            self.add(LaneOp::Round(Rounding::$rounding, a, Lane::$lane))
        })*
    };
}

macro_rules! shifts {
    ($($name:ident => $shift:ident,)*) => {
        $(fn $name(&mut self, a: Node, by: u32) -> Node {
            self.shift(Shift::$shift, a, by)
        })*
    };
}

impl Lanes for Graph {
    type F32 = Node;
    type F64 = Node;
    type I32 = Node;
    type I64 = Node;
    type M32 = Node;
    type M64 = Node;

    lanes! {
        add_f32 => AddF32, sub_f32 => SubF32, mul_f32 => MulF32, div_f32 => DivF32, min_f32 => MinF32, max_f32 => MaxF32,
        add_f64 => AddF64, sub_f64 => SubF64, mul_f64 => MulF64, div_f64 => DivF64, min_f64 => MinF64, max_f64 => MaxF64,
        add_i32 => AddI32, sub_i32 => SubI32, and_i32 => And32, or_i32 => Or32, xor_i32 => Xor32,
        add_i64 => AddI64, sub_i64 => SubI64, and_i64 => And64, or_i64 => Or64, xor_i64 => Xor64,
    }

    comparisons! {
        eq_f32 => F32 Equal, lt_f32 => F32 Less, le_f32 => F32 LessOrEqual,
        eq_f64 => F64 Equal, lt_f64 => F64 Less, le_f64 => F64 LessOrEqual,
    }

    roundings! {
        nearest_f32 => Nearest Word, floor_f32 => Floor Word, ceil_f32 => Ceil Word, trunc_f32 => Trunc Word,
        nearest_f64 => Nearest Double, floor_f64 => Floor Double, ceil_f64 => Ceil Double, trunc_f64 => Trunc Double,
    }

    shifts! {
        shl_i32 => Shl32, shr_i32 => Shr32, shl_i64 => Shl64, shr_i64 => Shr64,
    }

    fn const_f32(&mut self, value: f32) -> Node {
        self.word(value.to_bits())
    }

    fn const_f64(&mut self, value: f64) -> Node {
        self.double(value.to_bits())
    }

    fn const_i32(&mut self, value: i32) -> Node {
        self.word(value as u32)
    }

    fn const_i64(&mut self, value: i64) -> Node {
        self.double(value as u64)
    }

    fn sqrt_f32(&mut self, a: Node) -> Node {
        self.add(LaneOp::Unary(Unary::SqrtF32, a))
    }

    fn sqrt_f64(&mut self, a: Node) -> Node {
        self.add(LaneOp::Unary(Unary::SqrtF64, a))
    }

    fn fma_f32(&mut self, a: Node, b: Node, c: Node) -> Node {
        self.fma(a, b, c)
    }

    fn fma_f64(&mut self, a: Node, b: Node, c: Node) -> Node {
        self.fma(a, b, c)
    }

    fn neg_f32(&mut self, a: Node) -> Node {
        self.add(LaneOp::Neg(a, Lane::Word))
    }

    fn neg_f64(&mut self, a: Node) -> Node {
        self.add(LaneOp::Neg(a, Lane::Double))
    }

    fn abs_f32(&mut self, a: Node) -> Node {
        let magnitude = self.word(0x7fff_ffff);
        self.binary(Binary::And32, a, magnitude)
    }

    fn abs_f64(&mut self, a: Node) -> Node {
        let magnitude = self.double(u64::MAX >> 1);
        self.binary(Binary::And64, a, magnitude)
    }

    fn select_f32(&mut self, mask: Node, a: Node, b: Node) -> Node {
        self.select(mask, a, b)
    }

    fn select_f64(&mut self, mask: Node, a: Node, b: Node) -> Node {
        self.select(mask, a, b)
    }

    fn to_bits_f32(&mut self, a: Node) -> Node {
        a
    }

    fn from_bits_f32(&mut self, a: Node) -> Node {
        a
    }

    fn to_bits_f64(&mut self, a: Node) -> Node {
        a
    }

    fn from_bits_f64(&mut self, a: Node) -> Node {
        a
    }

    fn and_m32(&mut self, a: Node, b: Node) -> Node {
        self.logic(Logic::And, a, b)
    }

    fn or_m32(&mut self, a: Node, b: Node) -> Node {
        self.logic(Logic::Or, a, b)
    }

    fn and_m64(&mut self, a: Node, b: Node) -> Node {
        self.logic(Logic::And, a, b)
    }

    fn or_m64(&mut self, a: Node, b: Node) -> Node {
        self.logic(Logic::Or, a, b)
    }

    fn widen(&mut self, a: Node) -> Node {
        self.add(LaneOp::Resize(Resize::WidenF32, a))
    }

    fn narrow(&mut self, a: Node) -> Node {
        self.add(LaneOp::Resize(Resize::NarrowF64, a))
    }

    fn rarely_f32(&mut self, mask: Node, common: Node, function: Rare, x: Node) -> Node {
        self.add(LaneOp::Rare { function, mask, common, x })
    }

    fn rarely_f64(&mut self, mask: Node, common: Node, function: Rare, x: Node) -> Node {
        self.add(LaneOp::Rare { function, mask, common, x })
    }
}
