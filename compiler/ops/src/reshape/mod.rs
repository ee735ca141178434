//! `reshape`, `ravel`, `squeeze` and `expand_dims`: the same elements, row-major, in another shape.
//!
//! Factors: both shapes are matched from the front; sizes that correspond one to one keep their split, a merged or cut dimension
//! keeps it along its major part if that divides. No bytes move in memory: blocks are row-major, too.

mod detour;

use self::detour::Reshaping;
use crate::reshard::made_with_layout;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::array::{Array, Trap};
use spmdc_ir::call::Call;
use spmdc_ir::call::arg::as_int;
use spmdc_ir::call::arg::complete;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::errors::too_large;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::lower::builder::KernelBuilder;
use spmdc_ir::lower::work::Lowering;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::op::Op;
use spmdc_ir::program::choice::Choice;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::derivative::{Derivative, LinearMap, Linearity};
use spmdc_ir::rules::{
    Alias, Combines, Copied, Effect, Elements, Infer, Linear, Lowered, Manual, NamedAxes, NestLowering, Placement,
    Point, Properties, Reads, Rules, Semantics, Typing,
};
use spmdc_ir::shape;
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_kernel::loops::{Affine, Elem};
use spmdc_layout::factors::{DimFactors, FactorKind, Factors};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::sharding::Sharding;
use spmdc_layout::types::{ArrayType, Type};
use std::ops::Range;

/// `reshape(x, (4,6))`: the same elements, in row-major order, in another shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Reshape {
    /// The shape of the result; it has as many elements as the operand.
    pub shape: Vec<usize>,
    /// Whether only dimensions of size 1 are added or removed; then it is pointwise.
    pub trivial: bool,
}

impl Reshape {
    /// The op that takes an array from one shape to another.
    pub fn new(from: &[usize], to: &[usize]) -> Reshape {
        let proper = |shape: &[usize]| shape.iter().copied().filter(|&size| size != 1).collect::<Vec<_>>();
        Reshape { shape: to.to_vec(), trivial: proper(from) == proper(to) }
    }

    /// As [`Reshape::new`], as an op.
    fn op(from: &[usize], to: &[usize]) -> Op {
        Reshape::new(from, to).into()
    }
}

/// The factors of both shapes' dimensions.
fn walk(from: &[usize], to: &[usize], rule: &mut Factors) -> (Vec<DimFactors>, Vec<DimFactors>) {
    let mut sides = (vec![DimFactors::new(); from.len()], vec![DimFactors::new(); to.len()]);
    if from.contains(&0) || to.contains(&0) {
        for (shape, dims) in [(from, &mut sides.0), (to, &mut sides.1)] {
            for (&size, dim) in shape.iter().zip(dims) {
                dim.push(rule.add(size, FactorKind::Whole));
            }
        }
        return sides;
    }
    // Dimensions of size 1 are factors of their own; the others are matched from the front.
    let proper = |shape: &[usize]| (0..shape.len()).filter(|&dim| shape[dim] != 1).collect::<Vec<_>>();
    let (left, right) = (proper(from), proper(to));
    let (mut l, mut r) = (0, 0);
    let mut behind = (0, 0);
    while l < left.len() && r < right.len() {
        // The shortest runs on both sides with equal products.
        let (start_l, start_r) = (l, r);
        let (mut product_l, mut product_r) = (from[left[l]], to[right[r]]);
        while product_l != product_r {
            if product_l < product_r {
                l += 1;
                product_l *= from[left[l]];
            } else {
                r += 1;
                product_r *= to[right[r]];
            }
        }
        ones(behind.0..left[start_l], behind.1..right[start_r], rule, &mut sides);
        group(&left[start_l..=l], &right[start_r..=r], from, to, rule, &mut sides);
        behind = (left[l] + 1, right[r] + 1);
        l += 1;
        r += 1;
    }
    ones(behind.0..from.len(), behind.1..to.len(), rule, &mut sides);
    for (shape, dims) in [(from, &mut sides.0), (to, &mut sides.1)] {
        for (_, dim) in shape.iter().zip(dims).filter(|(size, dim)| **size == 1 && dim.is_empty()) {
            dim.push(rule.add(1, FactorKind::Whole));
        }
    }
    sides
}

/// Matches dimensions of size 1 between the same others, if both sides have the same number of them: so batches of one keep their layout.
fn ones(left: Range<usize>, right: Range<usize>, rule: &mut Factors, sides: &mut (Vec<DimFactors>, Vec<DimFactors>)) {
    if left.len() == right.len() {
        for (l, r) in left.zip(right) {
            let factor = rule.add(1, FactorKind::Pass);
            sides.0[l].push(factor);
            sides.1[r].push(factor);
        }
    }
}

/// Matches one run on each side with equal products: cut where both have a border, as long as sizes divide each other.
fn group(
    left: &[usize],
    right: &[usize],
    from: &[usize],
    to: &[usize],
    rule: &mut Factors,
    sides: &mut (Vec<DimFactors>, Vec<DimFactors>),
) {
    let (mut l, mut r) = (0, 0);
    let (mut rest_l, mut rest_r) = (from[left[0]], to[right[0]]);
    loop {
        let common = rest_l.min(rest_r);
        if rest_l % common != 0 || rest_r % common != 0 {
            // From here on the borders never match evenly: the rest is one factor, needed whole.
            for (dims, at, rest, shape, side) in
                [(left, l, rest_l, from, &mut sides.0), (right, r, rest_r, to, &mut sides.1)]
            {
                side[dims[at]].push(rule.add(rest, FactorKind::Whole));
                for &dim in &dims[at + 1..] {
                    side[dim].push(rule.add(shape[dim], FactorKind::Whole));
                }
            }
            return;
        }
        let factor = rule.add(common, FactorKind::Pass);
        sides.0[left[l]].push(factor);
        sides.1[right[r]].push(factor);
        rest_l /= common;
        rest_r /= common;
        if rest_l == 1 {
            l += 1;
            rest_l = left.get(l).map_or(1, |&dim| from[dim]);
        }
        if rest_r == 1 {
            r += 1;
            rest_r = right.get(r).map_or(1, |&dim| to[dim]);
        }
        if l == left.len() || r == right.len() {
            return;
        }
    }
}

impl Semantics for Reshape {
    fn name(&self) -> &'static str {
        "reshape"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        let mut rule = Factors::new();
        let (operand, result) = walk(&args[0].shape, &results[0].shape, &mut rule);
        rule.operands.push(operand);
        rule.results.push(result);
        rule
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        Ok(vec![Array::new(ArrayType::new(args[0].dtype(), &self.shape), args[0].bits.clone())])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        format!("reshape({}, {})", args[0], shape::tuple(&self.shape))
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }
}

impl Infer for Reshape {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        let result = ArrayType::new(args[0].dtype, &self.shape);
        if result.len() != args[0].len() {
            let (have, want) = (args[0].len(), result.len());
            let message =
                format!("{} has {have} elements, but shape {} has {want}", args[0], shape::display(&self.shape));
            return Err(Mismatch::new(Code::E0205, message));
        }
        Ok(vec![result])
    }

    fn further_choices(&self, args: &[&Type], results: &[ArrayType], mesh: &Mesh) -> Vec<Choice> {
        Reshaping { from: args[0], result: &results[0], mesh, op: Reshape::op }.choices()
    }
}

impl Rules for Reshape {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Linear(self)
    }

    fn batching(&self, size: usize) -> Batching<'_> {
        Batching::shifted(Reshape { shape: [&[size], self.shape.as_slice()].concat(), trivial: self.trivial })
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Alias(self)
    }

    fn properties(&self) -> Properties<'_> {
        Properties {
            effect: Effect::None,
            manual: Manual::Local,
            placement: Placement::Follows,
            linear: Linear::Together,
            combines: Combines::Nothing,
            elements: Elements::Moved,
            keeps_alignment: false,
        }
    }

    fn stablehlo(&self) -> Exported<'_> {
        Exported::Written(self)
    }

    fn named_axes(&mut self) -> Vec<NamedAxes<'_>> {
        Vec::new()
    }
}

impl WritesStablehlo for Reshape {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], _: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        Ok(vec![hlo.reshape(&args[0], &self.shape)])
    }
}

impl LinearMap for Reshape {
    fn linearity(&self, _: &Stmt) -> Linearity {
        Linearity::Together(vec![0])
    }

    fn transposed(
        &self,
        build: &mut CallBuilder,
        stmt: &Stmt,
        _: usize,
        cotangent: Value,
    ) -> Result<Value, Diagnostic> {
        let shape = build.ty(stmt.args[0]).shape().to_vec();
        reshape(build, cotangent, &shape)
    }
}

impl Alias for Reshape {
    fn aliases(&self, _: &Type, _: &Type, _: &Mesh) -> bool {
        true
    }

    fn copied(&self) -> Copied<'_> {
        match self.trivial {
            true => Copied::Point(self),
            false => Copied::Nest(self),
        }
    }
}

impl Point for Reshape {
    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem {
        let from = kernel.context.ty(stmt.args[0]);
        let mut proper = index.iter().zip(&self.shape).filter(|(_, size)| **size != 1).map(|(index, _)| index.clone());
        let dims = from.shape().iter();
        let index: Vec<Affine> = dims
            .map(|&size| {
                if size == 1 {
                    Affine::constant(0)
                } else {
                    proper.next().expect("both shapes have the same sizes other than 1")
                }
            })
            .collect();
        kernel.operand(stmt.args[0], &index)
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Once
    }
}

impl NestLowering for Reshape {
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        lowering.alias(stmt.args[0], stmt.results[0]);
        Ok(())
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Once
    }
}

/// A value in another shape; itself where it has that shape.
pub fn reshape(build: &mut CallBuilder, value: Value, to: &[usize]) -> Result<Value, Diagnostic> {
    let from = build.ty(value).shape().to_vec();
    if from == to {
        return Ok(value);
    }
    build.emit1(Reshape::new(&from, to), &[value])
}

/// Sizes in which one -1 represents the remaining size.
fn fill_in(given: &[i64], len: usize, args: &Args<'_>) -> Result<Vec<usize>, Diagnostic> {
    let error = |message: String| Diagnostic::error(Code::E0205, args.span, message);
    let mut known = 1usize;
    for &size in given.iter().filter(|&&size| size >= 0) {
        known = known.checked_mul(size as usize).ok_or_else(|| too_large(args.span))?;
    }
    let unknown = given.iter().filter(|&&size| size == -1).count();
    if given.iter().any(|&size| size < -1) || unknown > 1 {
        return Err(error("only one size of a shape can be -1, and none can be less".to_string()));
    }
    if unknown == 1 && (known == 0 || !len.is_multiple_of(known)) {
        return Err(error(format!("the size -1 cannot be determined: {len} elements do not divide evenly by {known}")));
    }
    Ok(given.iter().map(|&size| if size == -1 { len / known } else { size as usize }).collect())
}

impl Call for Reshape {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The same elements, in row-major order, in another shape; one size may be -1.
        reshape(x: Array, shape: Ints, [rest] sizes: Of("int"), [named] out: Sharding = None), Any, Planes(x), "(x: f32[4, 6]) { reshape(x, (3, -1)) }";
        /// The same elements in one dimension.
        ravel(x: Array, [named] out: Sharding = None), Any, Planes(x), "(x: f32[4, 6]) { ravel(x) }";
        /// The array without dimensions of size 1.
        squeeze(x: Array, axis: Ints = None, [named] out: Sharding = None), Any, Planes(x), "(x: f32[4, 1, 6]) { squeeze(x, axis=1) }";
        /// The array with new dimensions of size 1.
        expand_dims(x: Array, axis: Ints, [named] out: Sharding = None), Any, Planes(x), "(x: f32[4, 6]) { expand_dims(x, axis=1) }";
    };

    fn call(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let value = args.array(build, "x")?;
        let from = build.ty(value).shape().to_vec();
        let len = build.ty(value).array.len();
        let to = match name {
            "ravel" => vec![len],
            "squeeze" => {
                let dims = match args.optional_ints("axis")? {
                    Some(dims) => shape::axes(&dims, from.len(), args.span)?,
                    None => (0..from.len()).filter(|&dim| from[dim] == 1).collect(),
                };
                if let Some(&dim) = dims.iter().find(|&&dim| from[dim] != 1) {
                    let message = format!("dimension {dim} cannot be removed by `squeeze`: it has size {}", from[dim]);
                    return Err(Diagnostic::error(Code::E0205, args.span, message));
                }
                (0..from.len()).filter(|dim| !dims.contains(dim)).map(|dim| from[dim]).collect()
            }
            "expand_dims" => {
                let dims = args.ints("axis")?;
                let rank = from.len() + dims.len();
                let dims = shape::axes(&dims, rank, args.span)?;
                let mut rest = from.iter().copied();
                (0..rank)
                    .map(|dim| if dims.contains(&dim) { 1 } else { rest.next().expect("each new axis is given once") })
                    .collect()
            }
            _ => {
                // Both `x.reshape(2, 3)` and `reshape(x, (2, 3))`.
                let mut given = args.ints("shape")?;
                for size in args.rest("sizes") {
                    given.push(as_int(&size, "shape")?);
                }
                fill_in(&given, len, args)?
            }
        };
        let span = args.span;
        let before = |build: &CallBuilder, out: &Sharding| {
            let from = build.ty(value);
            let result = ArrayType { shape: to.clone(), ..from.array.clone() };
            let out = complete(out.clone(), to.len(), span)?;
            let reshaping = Reshaping { from, result: &result, mesh: build.mesh(), op: Reshape::op };
            Ok(reshaping.detour(&out).map(|detour| detour.operand))
        };
        // A dump states each statement, also one that keeps the shape.
        let reshaped = |build: &mut CallBuilder, value| match build.is_exact() {
            true => build.emit1(Reshape::new(&from, &to), &[value]),
            false => reshape(build, value, &to),
        };
        made_with_layout(args, build, value, reshaped, before)
    }
}
