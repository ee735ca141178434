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

    fn named_axes(&mut self) -> Vec<NamedAxes<'_>> {
        Vec::new()
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
