//! `scatter(x, v, i, of="sum", dims=(0,))`: updates of the elements that `gather(x, i, dims=(0,))` takes. `x[i] = v` and `x[i] += v`
//! become it, and sums over the elements with equal indices.
//!
//! Updates of one element are combined in the order of the updates; without an operation the last one remains. Without `x` the
//! result begins with the identity element.
//!
//! Factors: the dimensions of `x` pass, as each device applies the updates that fall into its block; of split rows it needs all
//! updates and indices. Without `x` the index arrays' dimensions are reduced by the operation: every device combines its own updates,
//! and its result is partial.

mod derivative;
mod lowering;

use crate::batching::{BatchForms, from_front};
use crate::gather::{DimSource, Gather};
use crate::reduce::reduction_name;
use crate::reshape::reshape;
use crate::reshard::explicit_out;
use spmdc_abi::ReduceOp;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::undefined;
use spmdc_ir::array::{Array, Trap, indices};
use spmdc_ir::call::Call;
use spmdc_ir::call::arg::{as_string, complete};
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::batching::{Batch, Batched, BatchedOperand, Batching};
use spmdc_ir::rules::derivative::Derivative;
use spmdc_ir::rules::{
    Combines, Effect, Elements, Infer, Linear, Lowered, Manual, NamedAxes, Placement, Properties, Rules, Semantics,
    Typing,
};
use spmdc_ir::shape;
use spmdc_ir::stablehlo::{
    Exported, HloBuilder, HloCombination, HloGap, HloScatter, HloType, HloValue, WritesStablehlo,
};
use spmdc_kernel::number;
use spmdc_kernel::scalar::BinaryOp;
use spmdc_layout::factors::{FactorKind, Factors};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::sharding::Sharding;
use spmdc_layout::types::{ArrayType, DType};

/// Maximum number of updates that are compared with each other to find the remaining ones.
const FEW_PLACES: usize = 16;

/// `scatter(x, v, i, of="sum", dims=(0,), at=0)`: the updates `v` broadcast to the shape of `gather(x, i, dims=(0,), at=0)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Scatter {
    /// The updated places, which are the places that this gather reads.
    pub places: Gather,
    /// The operation; None: the update replaces the element.
    pub combine: Option<ReduceOp>,
    /// The elements that are updated.
    pub onto: Onto,
    /// The user's `out=` on explicit axes, or the layout of the array that is assigned to.
    pub out: Option<Sharding>,
}

/// The array that a scatter updates.
#[derive(Clone, Debug, PartialEq)]
pub enum Onto {
    /// The first operand.
    Operand,
    /// An array of this shape of identity elements.
    Identity(Vec<usize>),
    /// An array of this shape of the number that also keeps the sign of zero when it is added: -0 for floats.
    Nothing(Vec<usize>),
}

/// The number that broadcasting leaves of an index along dimensions of these sizes, aligned at the end.
fn broadcast_index(index: &[usize], sizes: &[usize]) -> Vec<usize> {
    let skipped = index.len() - sizes.len();
    sizes.iter().zip(&index[skipped..]).map(|(&size, &at)| if size == 1 { 0 } else { at }).collect()
}

impl Scatter {
    /// The number of operands before the updates.
    fn skipped(&self) -> usize {
        usize::from(self.onto == Onto::Operand)
    }

    /// The array that is updated, from the operands' types.
    fn target(&self, args: &[&ArrayType]) -> ArrayType {
        match &self.onto {
            Onto::Operand => args[0].clone(),
            Onto::Identity(shape) | Onto::Nothing(shape) => ArrayType::new(args[0].dtype, shape),
        }
    }

    /// The types of the operands of the gather.
    fn gathered<'a>(&self, target: &'a ArrayType, args: &[&'a ArrayType]) -> Vec<&'a ArrayType> {
        std::iter::once(target).chain(args[self.skipped() + 1..].iter().copied()).collect()
    }

    /// The initial bits of elements; None if an operand has them.
    fn start(&self, dtype: DType) -> Option<u64> {
        match (&self.onto, self.combine) {
            (Onto::Operand, _) => None,
            (Onto::Nothing(_), _) => Some(number::nothing_added(dtype)),
            (Onto::Identity(_), Some(op)) => Some(number::identity_element(op, dtype)),
            (Onto::Identity(_), None) => Some(0),
        }
    }

    /// For each dimension of the updates' full shape the corresponding dimension of the target, or None for dimensions of the index arrays.
    pub fn rows(&self, target: &ArrayType, full: &[usize]) -> Vec<Option<usize>> {
        let mut rows = vec![None; full.len()];
        let rank = full.len() + self.places.dims.len() + self.places.batch.len() - target.rank();
        for (dim, source) in self.places.roles(target.rank(), rank).into_iter().enumerate() {
            if let DimSource::Kept(at) = source {
                rows[at] = Some(dim);
            }
        }
        rows
    }
}

impl Semantics for Scatter {
    fn name(&self) -> &'static str {
        "scatter"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        let mut rule = Factors::new();
        let result: Vec<usize> = results[0].shape.iter().map(|&size| rule.add(size, FactorKind::Pass)).collect();
        let gathered = self.gathered(results[0], args);
        let full = self.places.infer(&gathered).expect("the places have been inferred").swap_remove(0).shape;
        let rank = full.len() + self.places.dims.len() + self.places.batch.len() - results[0].rank();
        let kind = match (&self.onto, self.combine) {
            (Onto::Identity(_) | Onto::Nothing(_), Some(op)) => FactorKind::Reduce(op),
            (Onto::Identity(_) | Onto::Nothing(_), None) | (Onto::Operand, _) => FactorKind::Whole,
        };
        // The factors of the updates' dimensions.
        let mut of: Vec<Option<usize>> =
            self.rows(results[0], &full).into_iter().map(|row| row.map(|dim| result[dim])).collect();
        for (dim, source) in self.places.roles(results[0].rank(), rank).into_iter().enumerate() {
            if let DimSource::Batch(place) = source {
                of[self.places.at + place] = Some(result[dim]);
            }
        }
        let of: Vec<usize> =
            of.into_iter().zip(&full).map(|(known, &size)| known.unwrap_or_else(|| rule.add(size, kind))).collect();
        let dims: Vec<Vec<usize>> = result.iter().map(|&factor| vec![factor]).collect();
        if self.onto == Onto::Operand {
            rule.operands.push(dims.clone());
        }
        let places = &of[self.places.at..self.places.at + rank];
        let arrays = args[self.skipped()..].iter().enumerate();
        for (position, array) in arrays {
            let all = if position == 0 { &of } else { places };
            let own = array.shape.iter().zip(&all[all.len() - array.rank()..]);
            let own = own.map(|(&size, &factor)| {
                vec![if rule.factors[factor].size == size { factor } else { rule.add(size, FactorKind::Whole) }]
            });
            let own = own.collect();
            rule.operands.push(own);
        }
        rule.results.push(dims);
        rule
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let types: Vec<&ArrayType> = args.iter().map(|array| &array.ty).collect();
        let target = self.target(&types);
        let full = self.places.infer(&self.gathered(&target, &types)).expect("the checker has typed the scatter");
        let (full, dtype) = (&full[0].shape, target.dtype);
        let mut result = match self.start(dtype) {
            Some(bits) => Array::filled(target.clone(), bits),
            None => args[0].clone(),
        };
        if self.places.has_no_place(&target.shape) {
            return Ok(vec![result]);
        }
        let (updates, places) = (args[self.skipped()], &args[self.skipped() + 1..]);
        let rank = full.len() + self.places.dims.len() + self.places.batch.len() - target.rank();
        let roles = self.places.roles(target.rank(), rank);
        let strides = shape::strides(&target.shape);
        for index in order(full, self.places.at, rank) {
            let of = &index[self.places.at..self.places.at + rank];
            let own = roles.iter().map(|source| match *source {
                DimSource::Indexed(array) => places[array].get(&broadcast_index(of, places[array].shape())) as usize,
                DimSource::Batch(dim) => of[dim],
                DimSource::Kept(dim) => index[dim],
            });
            let own: Vec<usize> = own.collect();
            if own.iter().zip(&target.shape).any(|(at, size)| at >= size) {
                continue;
            }
            let update = updates.get(&broadcast_index(&index, updates.shape()));
            let element = &mut result.bits[own.iter().zip(&strides).map(|(at, stride)| at * stride).sum::<usize>()];
            *element = match self.combine {
                None => update,
                Some(op) => {
                    number::eval_binary(operation(op), dtype, *element, update).expect("typing knows the operation")
                }
            };
        }
        Ok(vec![result])
    }

    fn print(&self, args: &[String], mesh: &Mesh) -> String {
        let of = self.combine.map_or("set", reduction_name);
        let onto = match &self.onto {
            Onto::Operand => String::new(),
            Onto::Identity(shape) => format!(", shape={}", shape::tuple(shape)),
            Onto::Nothing(shape) => format!(", shape={}, signed=true", shape::tuple(shape)),
        };
        let places = self.places.print(args, mesh);
        let attributes = places.find("dims=").map_or("", |at| &places[at..places.len() - 1]);
        let out = self.out.as_ref().map_or(String::new(), |out| format!(", out={}", out.display(mesh)));
        format!("scatter({}, of=\"{of}\"{onto}, {attributes}{out})", args.join(", "))
    }

    fn flops(&self, args: &[&ArrayType], results: &[&ArrayType]) -> u64 {
        let full = self.places.infer(&self.gathered(results[0], args)).map_or(0, |full| full[0].len());
        full as u64
    }
}

/// The indices of the updates in the order in which they are applied: the index arrays' dimensions vary last.
fn order(full: &[usize], at: usize, rank: usize) -> impl Iterator<Item = Vec<usize>> {
    let places: Vec<Vec<usize>> = indices(&full[at..at + rank]).collect();
    let others: Vec<usize> = full[..at].iter().chain(&full[at + rank..]).copied().collect();
    let joined = move |place: &Vec<usize>| {
        let place = place.clone();
        indices(&others).map(move |mut index| {
            index.splice(at..at, place.iter().copied());
            index
        })
    };
    places.into_iter().flat_map(move |place| joined(&place).collect::<Vec<_>>())
}

fn operation(op: ReduceOp) -> BinaryOp {
    match op {
        ReduceOp::Sum => BinaryOp::Add,
        ReduceOp::Product => BinaryOp::Mul,
        ReduceOp::Max => BinaryOp::Maximum,
        ReduceOp::Min => BinaryOp::Minimum,
        ReduceOp::And => BinaryOp::And,
        ReduceOp::Or => BinaryOp::Or,
    }
}

impl Infer for Scatter {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        if args.len() < self.skipped() + 2 {
            return Err(Mismatch::new(Code::E0201, "`scatter` requires updates and indices"));
        }
        let target = self.target(args);
        let updates = args[self.skipped()];
        if target.dtype != updates.dtype {
            let message =
                format!("elements of {} cannot be updated with {}", target.dtype.name(), updates.dtype.name());
            return Err(Mismatch::new(Code::E0203, message));
        }
        let is_defined = match self.combine {
            None => true,
            Some(ReduceOp::Sum | ReduceOp::Product) => target.dtype.is_float() || target.dtype.is_integer(),
            Some(ReduceOp::Max | ReduceOp::Min) => target.dtype != DType::Key,
            Some(ReduceOp::And | ReduceOp::Or) => target.dtype == DType::Bool,
        };
        if !is_defined || (self.combine != Some(ReduceOp::Sum) && matches!(self.onto, Onto::Nothing(_))) {
            let message = undefined("`scatter`", target.dtype.name());
            return Err(Mismatch::new(Code::E0215, message));
        }
        let full = self.places.infer(&self.gathered(&target, args))?.swap_remove(0).shape;
        if shape::broadcast(&[&full, &updates.shape]).ok().as_ref() != Some(&full) {
            let message = format!("{updates} does not broadcast to the {} elements updated", shape::display(&full));
            return Err(Mismatch::new(Code::E0204, message));
        }
        Ok(vec![target])
    }
}

impl Rules for Scatter {
    fn derivative(&self) -> Derivative<'_> {
        match self.combine {
            None | Some(ReduceOp::Sum) => Derivative::Linear(self),
            Some(ReduceOp::Product | ReduceOp::Max | ReduceOp::Min) => Derivative::Tangents(self),
            Some(ReduceOp::And | ReduceOp::Or) => Derivative::Zero,
        }
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::Rule(self)
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Library(self)
    }

    fn properties(&self) -> Properties<'_> {
        let combines = match (&self.onto, self.combine) {
            (Onto::Identity(_) | Onto::Nothing(_), Some(op)) => Combines::Elements(op),
            (Onto::Identity(_) | Onto::Nothing(_), None) | (Onto::Operand, _) => Combines::Nothing,
        };
        Properties {
            effect: Effect::None,
            manual: Manual::Local,
            placement: Placement::Out(self.out.as_ref()),
            linear: Linear::No,
            combines,
            elements: Elements::Other,
            keeps_alignment: false,
        }
    }

    fn stablehlo(&self) -> Exported<'_> {
        Exported::Written(self)
    }

    fn named_axes(&mut self) -> Vec<NamedAxes<'_>> {
        self.out.iter_mut().map(NamedAxes::Layout).collect()
    }
}

impl WritesStablehlo for Scatter {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], results: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        let target = &results[0];
        let x = match self.start(target.dtype()) {
            Some(bits) => hlo.splat(target.dtype(), bits, &target.shape),
            None => args[0].clone(),
        };
        let (updates, places) = (&args[self.skipped()], &args[self.skipped() + 1..]);
        let types: Vec<ArrayType> =
            std::iter::once(target).chain(places.iter().map(|place| &place.ty)).map(HloType::array).collect();
        let full = self.places.infer(&types.iter().collect::<Vec<_>>());
        let full = full.map_err(|mismatch| HloGap(mismatch.message))?.swap_remove(0).shape;
        if full.contains(&0) || self.places.has_no_place(&target.shape) {
            return Ok(vec![x]);
        }
        let updates = hlo.broadcast(updates, &full);
        let (indices, places) = self.places.hlo_places(hlo, &target.shape, places, &full);
        let combine = self.combine.map(|op| HloCombination::of(op, target.dtype()));
        Ok(vec![hlo.scatter(&HloScatter { places, combine }, &x, &indices, &updates)])
    }
}

impl Batched for Scatter {
    fn batched(
        &self,
        build: &mut CallBuilder,
        stmt: &Stmt,
        batch: &Batch,
        operands: &[BatchedOperand],
    ) -> Result<Vec<Value>, Diagnostic> {
        let first = self.skipped();
        let (updates, places) = (operands[first], &operands[first + 1..]);
        let of_places = places.iter().any(|place| place.is_mapped());
        let rank = stmt.args[first + 1..].iter().map(|&place| build.ty(place).rank()).max().unwrap_or(0);
        let full = build.ty(stmt.results[0]).rank() - self.places.dims.len() - self.places.batch.len() + rank;
        let with_size = |shape: &Vec<usize>| [&[batch.size], shape.as_slice()].concat();
        let onto = match &self.onto {
            Onto::Operand => Onto::Operand,
            Onto::Identity(shape) => Onto::Identity(with_size(shape)),
            Onto::Nothing(shape) => Onto::Nothing(with_size(shape)),
        };
        let at = self.places.mapped_at(of_places);
        let updates = match updates {
            BatchedOperand::Mapped(_) => {
                let aligned = batch.aligned(build, updates, full)?;
                from_front(build, aligned, at)?
            }
            BatchedOperand::Same(value) => {
                let mut shape = build.ty(value).shape().to_vec();
                if let Some(place) = (shape.len() + at).checked_sub(full) {
                    shape.insert(place, 1);
                }
                reshape(build, value, &shape)?
            }
        };
        let mut args = Vec::new();
        if self.onto == Onto::Operand {
            args.push(batch.mapped(build, operands[0])?);
        }
        args.push(updates);
        args.extend(Gather::aligned_places(build, &stmt.args[first + 1..], batch, places)?);
        let places = self.places.in_batch(batch, true, of_places);
        let mut out = self.out.clone();
        out.iter_mut().for_each(|out| batch.add_to(out, 0));
        build.emit(Scatter { places, combine: self.combine, onto, out }, &args)
    }
}

impl Call for Scatter {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// Updates of elements at indices from arrays.
        scatter(
            x: Array, [rest] operands: Array, [named] of: String = "set", [named] shape: Ints = None,
            [named] signed: Bool = false, [named] dims: Ints = None, [named] batch: Of("pairs of dimensions") = None,
            [named] at: Int = 0, [named] out: Sharding = None,
        ) in_dumps "" "write x[indices] = v or x[indices] += v, or segment_sum(v, indices, num_segments=n)";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let span = args.span;
        let unknown =
            |what: &str| Diagnostic::error(Code::E0227, span, format!("invalid attribute of `scatter`: {what}"));
        let combine = match args.take("of") {
            Some(arg) => {
                let name = as_string(&arg, "of")?;
                let all = [ReduceOp::Sum, ReduceOp::Product, ReduceOp::Max, ReduceOp::Min, ReduceOp::And, ReduceOp::Or];
                match (all.into_iter().find(|&op| reduction_name(op) == name), name.as_str()) {
                    (Some(op), _) => Some(op),
                    (None, "set") => None,
                    (None, _) => return Err(unknown(&name)),
                }
            }
            None => None,
        };
        let signed = args.optional_bool("signed")?.unwrap_or(false);
        let onto = match args.optional_ints("shape")? {
            Some(given) => {
                let shape = given.into_iter().map(|size| usize::try_from(size).map_err(|_| unknown("this shape")));
                let shape = shape.collect::<Result<Vec<usize>, Diagnostic>>()?;
                if signed { Onto::Nothing(shape) } else { Onto::Identity(shape) }
            }
            None => Onto::Operand,
        };
        let places = Gather::read(args)?;
        let mut operands = vec![args.array(build, "x")?];
        for arg in args.rest("operands") {
            let dtype = if operands.len() < 1 + usize::from(onto == Onto::Operand) {
                build.ty(operands[0]).dtype()
            } else {
                DType::I64
            };
            operands.push(build.materialize(&arg.term, Some(dtype), arg.span)?);
        }
        let mut op = Scatter { places, combine, onto, out: None };
        if let Some((out, span)) = args.optional_sharding("out")? {
            let types = build.func().arrays(&operands);
            let rank = op.infer(&types).map_err(|mismatch| build.mismatch(mismatch))?[0].rank();
            op.out = explicit_out(build, &complete(out.sharding, rank, span)?);
        }
        Ok(Term::Array(build.emit1(op, &operands)?))
    }
}
