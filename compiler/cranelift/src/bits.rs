//! Operations on the bits of integers and floats: counts, signs, neighbours, and common divisors.
//!
//! They are steps on whole registers that every processor has, apart from the divisions of Euclid's algorithm.

use super::vector::{Bundle, Vector, int_of};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{BlockArg, InstBuilder, Value};
use spmdc_abi::{DType, FloatFormat};
use spmdc_kernel::scalar::BinaryOp;

impl Vector<'_, '_> {
    /// The number of ones: sums of neighbouring fields, which double in width until there is one.
    pub fn count_ones(&mut self, x: Bundle) -> Bundle {
        let width = x.lane.bits();
        let mut counts = x;
        let mut field = 1;
        while field < width {
            // The lower field of each two.
            let lower = (0..width).filter(|bit| bit / field % 2 == 0).fold(0, |mask: i64, bit| mask | 1 << bit);
            let low = self.and_int(counts, lower);
            let high = self.shift_right(counts, field);
            let high = self.and_int(high, lower);
            counts = self.add(low, high);
            field *= 2;
        }
        counts
    }

    /// The number of zeros above the highest one: all that are left when every bit below it is set.
    pub fn count_leading_zeros(&mut self, x: Bundle) -> Bundle {
        let mut filled = x;
        let mut distance = 1;
        while distance < x.lane.bits() {
            let shifted = self.shift_right(filled, distance);
            filled = self.or(filled, shifted);
            distance *= 2;
        }
        let zeros = self.map(filled, |v, x| v.builder.ins().bnot(x));
        self.count_ones(zeros)
    }

    /// Whether the sign bit is set and the number is not NaN.
    pub fn has_sign(&mut self, x: Bundle) -> Bundle {
        let bits = self.bitcast(int_of(x.lane), x);
        let zero = self.int(bits.lane, 0);
        let signed = self.compare_ints(IntCC::SignedLessThan, bits, zero);
        let is_number = self.compare_floats(FloatCC::Ordered, x, x);
        self.and(signed, is_number)
    }

    /// The magnitude of `x` with the sign of `y`, positive if `y` is NaN.
    pub fn copy_sign(&mut self, x: Bundle, y: Bundle) -> Bundle {
        let magnitude = self.map(x, |v, x| v.builder.ins().fabs(x));
        let signed = self.with_sign_of(magnitude, y);
        let is_number = self.compare_floats(FloatCC::Ordered, y, y);
        self.select(is_number, signed, magnitude)
    }

    /// The neighbour of `x` in the direction of `y` among the numbers of the type.
    pub fn next_after(&mut self, dtype: DType, x: Bundle, y: Bundle) -> Bundle {
        // Registers hold narrow floats as f32, whose neighbours are others.
        let narrow = dtype.is_narrow();
        let code =
            |v: &mut Self, x: Bundle| if narrow { v.encode_narrow(dtype, x) } else { v.bitcast(int_of(x.lane), x) };
        let (from, to) = (code(self, x), code(self, y));
        let lane = from.lane;
        let zero = self.float(x.lane, 0.0);
        let (below, positive) =
            (self.compare_floats(FloatCC::LessThan, x, y), self.compare_floats(FloatCC::GreaterThan, x, zero));
        // Away from zero the bits grow.
        let inwards = self.xor(below, positive);
        let (one, minus) = (self.int(lane, 1), self.int(lane, -1));
        let step = self.select(inwards, minus, one);
        let neighbour = self.add(from, step);
        let sign = dtype.format().map_or(1 << 63, FloatFormat::sign);
        let sign = self.and_int(to, sign as i64);
        let smallest = self.or(sign, one);
        let is_zero = self.compare_floats(FloatCC::Equal, x, zero);
        let next = self.select(is_zero, smallest, neighbour);
        let equal = self.compare_floats(FloatCC::Equal, x, y);
        let next = self.select(equal, to, next);
        let next = if narrow { self.decode_narrow(dtype, next) } else { self.bitcast(x.lane, next) };
        let nan = self.float(x.lane, f64::NAN);
        let is_nan = self.compare_floats(FloatCC::Unordered, x, y);
        self.select(is_nan, nan, next)
    }

    /// The greatest common divisor by Euclid's algorithm, with as many steps as the slowest lane requires.
    pub fn common_divisor(&mut self, dtype: DType, x: Bundle, y: Bundle) -> Bundle {
        let lane = x.lane;
        let wide = if lane.bits() < 32 { I32 } else { lane };
        let magnitude = |v: &mut Self, x: Bundle| {
            let x = if dtype.is_signed_integer() { v.map(x, |v, x| v.builder.ins().iabs(x)) } else { x };
            v.resize(x, wide, false)
        };
        let start = [magnitude(self, x), magnitude(self, y)];
        let unsigned = if wide == I32 { DType::U32 } else { DType::U64 };
        let zero = self.int(wide, 0);
        let found = self.repeat_while(start, |v, [x, y]| {
            let more = v.compare_ints(IntCC::NotEqual, y, zero);
            let divisor = v.select(more, y, x);
            // Of a lane that is done it is 0.
            let rest = v.int_division(BinaryOp::Rem, unsigned, x, y);
            let left = v.compare_ints(IntCC::NotEqual, rest, zero);
            ([divisor, rest], v.any(left))
        });
        self.resize(found[0], lane, false)
    }

    /// Applies `step` to bundles until it says that it need not be repeated.
    pub fn repeat_while<const N: usize>(
        &mut self,
        start: [Bundle; N],
        step: impl FnOnce(&mut Self, [Bundle; N]) -> ([Bundle; N], Value),
    ) -> [Bundle; N] {
        let args = |bundles: &[Bundle; N]| -> Vec<BlockArg> {
            bundles.iter().flat_map(|bundle| bundle.parts().to_vec()).map(BlockArg::from).collect()
        };
        let (head, after) = (self.builder.create_block(), self.builder.create_block());
        self.builder.ins().jump(head, &args(&start));
        let held = start.map(|bundle| {
            let ty = self.part_type(bundle.lane);
            let parts: Vec<Value> = bundle.parts().iter().map(|_| self.builder.append_block_param(head, ty)).collect();
            Bundle::new(bundle.lane, &parts)
        });
        self.builder.switch_to_block(head);
        let (next, again) = step(self, held);
        self.builder.ins().brif(again, head, &args(&next), after, &[]);
        self.builder.switch_to_block(after);
        next
    }
}
