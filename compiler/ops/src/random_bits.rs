//! `random_bits(k, u32[4, 8])`: the bits from which all random numbers are made, as in JAX's partitionable Threefry.
//!
//! The bits of an element follow from the key and from the element's index in the whole array, row-major. So every device computes its own
//! block, in any layout, without communication. One element is an expression, so no array of bits is in memory.

use spmdc_abi::threefry;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::{must_be, requires};
use spmdc_ir::array::{Array, Trap, indices};
use spmdc_ir::call::Call;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::lower::builder::KernelBuilder;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::Stmt;
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::derivative::Derivative;
use spmdc_ir::rules::{
    Combines, Effect, Elements, Infer, Linear, Lowered, Manual, NamedAxes, Placement, Point, Properties, Reads, Rules,
    Semantics, Typing,
};
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_kernel::draws;
use spmdc_kernel::loops::{Affine, Elem};
use spmdc_kernel::number;
use spmdc_layout::factors::{FactorKind, Factors};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{ArrayType, DType};

/// `random_bits(k, u32[4, 8])`: unsigned integers of any width, or keys. An array of keys results in an array for each of them: the sizes
/// of the result begin with the sizes of the keys.
#[derive(Clone, Debug, PartialEq)]
pub struct RandomBits {
    /// The element type and shape of the result.
    pub ty: ArrayType,
}

/// Operations for the bits of one element: 20 rounds, and the additions of the key between them.
pub const OPERATIONS: u64 = 120;

/// The element of this type that the two words of the generator give.
pub fn element(dtype: DType, words: [u32; 2]) -> u64 {
    draws::element(dtype, words).unwrap_or_else(|| unreachable!("typing refuses random bits of type {}", dtype.name()))
}

/// The words of a key.
pub fn words(key: u64) -> [u32; 2] {
    threefry::words(number::cast(DType::Key, DType::U64, key).expect("a key is a u64"))
}

/// An error unless the operand is a key, or an array of keys.
pub fn needs_key(function: &str, key: &ArrayType) -> Result<(), Mismatch> {
    if key.dtype == DType::Key {
        return Ok(());
    }
    let message = requires(function, "a random key", key.dtype.name());
    Err(Mismatch::new(Code::E0203, message).help("`key(42)` makes a key from a seed"))
}

impl Semantics for RandomBits {
    fn name(&self) -> &'static str {
        "random_bits"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        let mut rule = Factors::new();
        let dims: Vec<Vec<usize>> =
            results[0].shape.iter().map(|&size| vec![rule.add(size, FactorKind::Pass)]).collect();
        rule.operands.push(dims[..args[0].rank()].to_vec());
        rule.results.push(dims);
        rule
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let keys = args[0];
        let each: usize = self.ty.shape[keys.ty.rank()..].iter().product();
        let bits = indices(&self.ty.shape).enumerate().map(|(at, _)| {
            let counter = threefry::words((at % each) as u64);
            element(self.ty.dtype, threefry::threefry2x32(words(keys.bits[at / each]), counter))
        });
        Ok(vec![Array::new(self.ty.clone(), bits.collect())])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        format!("random_bits({}, {})", args[0], self.ty)
    }

    fn flops(&self, _: &[&ArrayType], results: &[&ArrayType]) -> u64 {
        OPERATIONS * results[0].len() as u64
    }
}

impl Infer for RandomBits {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        needs_key("`random_bits`", args[0])?;
        if !self.ty.dtype.is_unsigned_integer() && self.ty.dtype != DType::Key {
            let message = must_be("random bits", "unsigned integers", self.ty.dtype.name());
            return Err(
                Mismatch::new(Code::E0215, message).help("`randint` generates signed integers, `bernoulli` bools")
            );
        }
        if !self.ty.shape.starts_with(&args[0].shape) {
            let message = format!("the leading sizes of {} do not match the shape of {}", self.ty, args[0]);
            return Err(Mismatch::new(Code::E0204, message));
        }
        Ok(vec![self.ty.clone()])
    }
}

impl Rules for RandomBits {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Zero
    }

    fn batching(&self, size: usize) -> Batching<'_> {
        Batching::shifted(RandomBits {
            ty: ArrayType::new(self.ty.dtype, &[&[size], self.ty.shape.as_slice()].concat()),
        })
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Point(self)
    }

    fn properties(&self) -> Properties<'_> {
        Properties {
            effect: Effect::None,
            manual: Manual::Local,
            placement: Placement::Follows,
            linear: Linear::No,
            combines: Combines::Nothing,
            elements: Elements::Drawn,
            keeps_alignment: true,
        }
    }

    fn stablehlo(&self) -> Exported<'_> {
        Exported::Written(self)
    }

    fn named_axes(&mut self) -> Vec<NamedAxes<'_>> {
        Vec::new()
    }
}

impl WritesStablehlo for RandomBits {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], results: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        let (keys, shape) = (&args[0], &results[0].shape);
        let rank = keys.ty.rank();
        let each = &shape[rank..];
        let count: usize = each.iter().product();
        // The number of each element of an array, as two words.
        let number = hlo.iota(DType::U64, &[count], 0);
        let number = hlo.reshape(&number, each);
        let number = hlo.broadcast_in_dim(&number, &(rank..shape.len()).collect::<Vec<usize>>(), shape);
        let keys = hlo.broadcast_in_dim(keys, &(0..rank).collect::<Vec<usize>>(), shape);
        let keys = hlo.convert(&keys, DType::U64);
        Ok(vec![hlo_drawn(hlo, &keys, &number, self.ty.dtype)?])
    }
}

impl Point for RandomBits {
    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem {
        let ty = kernel.context.ty(stmt.results[0]);
        let batch = kernel.context.ty(stmt.args[0]).rank();
        let key = kernel.operand(stmt.args[0], &index[..batch]);
        // The index in the whole array of this key.
        let (mut place, mut stride) = (Affine::default(), 1);
        for dim in (batch..ty.rank()).rev() {
            let global = kernel.global_index(ty, dim, &index[dim]);
            place = place.plus(&global.times(stride));
            stride *= ty.shape()[dim] as i64;
        }
        kernel.random_bits(self.ty.dtype, key, place)
    }

    fn reads(&self, _: usize, args: &[&ArrayType]) -> Reads {
        // A key serves many elements.
        if args[0].rank() == 0 { Reads::Once } else { Reads::Often }
    }
}

impl Call for RandomBits {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// Random bits.
        random_bits(key: Array, type: Type) in_dumps "" "write `bits(k, u32[4, 8])`";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let key = args.array(build, "key")?;
        let ty = args.ty("type")?.array;
        Ok(Term::Array(build.emit1(RandomBits { ty }, &[key])?))
    }
}

/// The elements of this type that the generator gives for keys and counters, which are u64 with the first word in the upper half.
pub fn hlo_drawn(
    hlo: &mut HloBuilder<'_>,
    keys: &HloValue,
    counters: &HloValue,
    to: DType,
) -> Result<HloValue, HloGap> {
    let shape = keys.ty.shape.clone();
    let half = hlo.splat(DType::U64, 32, &shape);
    let words = |hlo: &mut HloBuilder<'_>, value: &HloValue| {
        let upper = hlo.binary("stablehlo.shift_right_logical", value, &half);
        [upper, value.clone()].map(|word| hlo.convert(&word, DType::U32))
    };
    let [key, counter] = [keys, counters].map(|value| words(hlo, value));
    let ty = HloType::new(DType::U32, &shape);
    let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
    let name = format!("threefry2x32_{}", sizes.join("x"));
    let args: Vec<&HloValue> = key.iter().chain(&counter).collect();
    let drawn = hlo.call(&name, &args, &[ty.clone(), ty], |hlo, words| {
        let [k0, k1, c0, c1] = [0, 1, 2, 3].map(|at| &words[at]);
        hlo_threefry(hlo, [k0, k1], [c0, c1]).to_vec()
    });
    let [high, low] = [&drawn[0], &drawn[1]];
    if to.size() < 8 {
        let mixed = hlo.binary("stablehlo.xor", high, low);
        return Ok(hlo.convert(&mixed, to));
    }
    let [high, low] = [high, low].map(|word| hlo.convert(word, DType::U64));
    let upper = hlo.binary("stablehlo.shift_left", &high, &half);
    let both = hlo.binary("stablehlo.or", &upper, &low);
    Ok(hlo.convert(&both, to))
}

/// The rounds of [`threefry::threefry2x32`].
fn hlo_threefry(hlo: &mut HloBuilder<'_>, key: [&HloValue; 2], counter: [&HloValue; 2]) -> [HloValue; 2] {
    let shape = key[0].ty.shape.clone();
    let number = |hlo: &mut HloBuilder<'_>, value: u32| hlo.splat(DType::U32, value.into(), &shape);
    let parity = number(hlo, threefry::PARITY);
    let mixed = hlo.binary("stablehlo.xor", key[0], key[1]);
    let third = hlo.binary("stablehlo.xor", &mixed, &parity);
    let schedule = [key[0].clone(), key[1].clone(), third];
    let mut x = [0, 1].map(|at| hlo.binary("stablehlo.add", counter[at], &schedule[at]));
    for group in 0..threefry::GROUPS {
        for rotation in threefry::ROTATIONS[group % 2] {
            let sum = hlo.binary("stablehlo.add", &x[0], &x[1]);
            let [left, right] = [rotation, 32 - rotation].map(|places| number(hlo, places));
            let left = hlo.binary("stablehlo.shift_left", &x[1], &left);
            let right = hlo.binary("stablehlo.shift_right_logical", &x[1], &right);
            let turned = hlo.binary("stablehlo.or", &left, &right);
            x = [sum.clone(), hlo.binary("stablehlo.xor", &turned, &sum)];
        }
        let first = hlo.binary("stablehlo.add", &x[0], &schedule[(group + 1) % 3]);
        let second = hlo.binary("stablehlo.add", &x[1], &schedule[(group + 2) % 3]);
        let round = number(hlo, group as u32 + 1);
        x = [first, hlo.binary("stablehlo.add", &second, &round)];
    }
    x
}
