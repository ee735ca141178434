//! `gather(x, i, j, dims=(0, 2))`: elements at indices from arrays. `x[i]`, `take` and `take_along_axis` become it.
//!
//! The index arrays broadcast to one shape. Its dimensions are in the result at a position among the dimensions that are not indexed:
//! `gather(x, i, dims=(1,), at=1)` of `f32[8, 100, 4]` and `i64[5, 6]` is an `f32[8, 5, 6, 4]`. For `take_along_axis` a dimension of `x`
//! may be a dimension of the index arrays, too (`batch`).
//!
//! Factors: an indexed dimension is reduced, because the device with an element contributes it to a sum, and the others contribute the
//! identity element. All other dimensions of `x`, and the dimensions of the index arrays, pass. The indices are indices of the whole
//! dimension, and have been checked before.

mod derivative;

use crate::batching::{BatchForms, in_front};
use crate::reshard::explicit_out;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::must_be;
use spmdc_ir::array::{Array, Trap};
use spmdc_ir::call::Call;
use spmdc_ir::call::arg::complete;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::lower::builder::KernelBuilder;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::batching::{Batch, Batched, BatchedOperand, Batching};
use spmdc_ir::rules::derivative::Derivative;
use spmdc_ir::rules::{
    Combines, Effect, Elements, Infer, Linear, Lowered, Manual, NamedAxes, Placement, Point, Properties, Reads, Rules,
    Semantics, Typing, one_each,
};
use spmdc_ir::shape;
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloGather, HloType, HloValue, WritesStablehlo};
use spmdc_kernel::loops::{Affine, Elem};
use spmdc_layout::factors::{FactorKind, Factors};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::sharding::Sharding;
use spmdc_layout::types::{ArrayType, DType};

/// `gather(x, i, j, dims=(0, 2), batch=((1, 0),), at=0)`: the elements of `x` at the indices of `i` and `j`.
#[derive(Clone, Debug, PartialEq)]
pub struct Gather {
    /// The indexed dimensions of `x`, in order: one for each index array.
    pub dims: Vec<usize>,
    /// Dimensions of `x`, each with the dimension of the index arrays that it is.
    pub batch: Vec<(usize, usize)>,
    /// The position of the index arrays' dimensions among the remaining dimensions of `x`.
    pub at: usize,
    /// The user's `out=` on explicit axes.
    pub out: Option<Sharding>,
}

/// The origin of a dimension of `x`.
#[derive(Clone, Copy, PartialEq)]
pub enum DimSource {
    /// Indexed by this index array.
    Indexed(usize),
    /// The same as this dimension of the index arrays.
    Batch(usize),
    /// This dimension of the result.
    Kept(usize),
}

impl Gather {
    /// A gather along dimensions of `x` that leaves the layout to the factor rule.
    pub fn new(dims: Vec<usize>, batch: Vec<(usize, usize)>, at: usize) -> Gather {
        Gather { dims, batch, at, out: None }
    }

    /// The role of each dimension of `x`; `rank` is the number of dimensions of the index arrays after broadcasting.
    pub fn roles(&self, of: usize, rank: usize) -> Vec<DimSource> {
        let mut kept = (0..).map(|kept| if kept < self.at { kept } else { kept + rank });
        let role = |dim: usize| {
            let indexed = self.dims.iter().position(|&indexed| indexed == dim).map(DimSource::Indexed);
            let batch = || self.batch.iter().find(|(own, _)| *own == dim).map(|&(_, of)| DimSource::Batch(of));
            indexed.or_else(batch).unwrap_or_else(|| DimSource::Kept(kept.next().expect("there are numbers enough")))
        };
        (0..of).map(role).collect()
    }

    /// The shape of the index arrays after broadcasting, with the sizes of batch dimensions.
    fn places(&self, args: &[&ArrayType]) -> Result<Vec<usize>, Mismatch> {
        let shapes: Vec<&[usize]> = args[1..].iter().map(|ty| ty.shape.as_slice()).collect();
        let mut places = shape::broadcast(&shapes)?;
        for &(dim, of) in &self.batch {
            let size = args[0].shape[dim];
            if places[of] != 1 && places[of] != size {
                let message = format!(
                    "indices of shape {} do not match the batch dimensions of {}",
                    shape::display(&places),
                    args[0]
                );
                return Err(Mismatch::new(Code::E0204, message));
            }
            places[of] = size;
        }
        Ok(places)
    }

    /// Whether the attributes name dimensions that exist, each once.
    fn is_valid(&self, args: &[&ArrayType]) -> bool {
        let rank = args[1..].iter().map(|ty| ty.rank()).max().unwrap_or(0);
        let ordered = self.dims.windows(2).all(|pair| pair[0] < pair[1]);
        let mut own: Vec<usize> = self.dims.iter().copied().chain(self.batch.iter().map(|&(dim, _)| dim)).collect();
        let mut of: Vec<usize> = self.batch.iter().map(|&(_, of)| of).collect();
        let once = |dims: &mut Vec<usize>, rank: usize| {
            dims.sort_unstable();
            dims.windows(2).all(|pair| pair[0] < pair[1]) && dims.last().is_none_or(|&last| last < rank)
        };
        !self.dims.is_empty()
            && self.dims.len() + 1 == args.len()
            && ordered
            && once(&mut own, args[0].rank())
            && once(&mut of, rank)
            && self.at <= args[0].rank() - own.len()
    }

    /// Reads `dims=`, `batch=` and `at=` of a call.
    pub fn read(args: &mut Args<'_>) -> Result<Gather, Diagnostic> {
        let (span, function) = (args.span, args.function.to_string());
        let malformed = |what: &str| Diagnostic::error(Code::E0227, span, format!("`{function}` requires {what}"));
        let unsigned = |number: i64, what: &str| usize::try_from(number).map_err(|_| malformed(what));
        let given = args.optional_ints("dims")?.ok_or_else(|| malformed("`dims=`"))?;
        let dims = given.into_iter().map(|dim| unsigned(dim, "`dims=`")).collect::<Result<_, _>>()?;
        let at = unsigned(args.optional_int("at")?.unwrap_or(0), "a position as `at=`")?;
        let mut batch = Vec::new();
        if let Some(pairs) = args.take("batch") {
            for pair in pairs.term.one_or_more() {
                let Some([Term::Int(dim), Term::Int(of)]) = pair.sequence() else {
                    return Err(malformed("pairs as `batch=`"));
                };
                let number = |number: &i128| usize::try_from(*number).map_err(|_| malformed("pairs as `batch=`"));
                batch.push((number(dim)?, number(of)?));
            }
        }
        Ok(Gather { dims, batch, at, out: None })
    }

    /// Whether an indexed dimension is empty; then a check before has stopped the program.
    pub fn has_no_place(&self, shape: &[usize]) -> bool {
        self.dims.iter().any(|&dim| shape[dim] == 0)
    }
}

impl Semantics for Gather {
    fn name(&self) -> &'static str {
        "gather"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        let mut rule = Factors::new();
        let rank = results[0].rank() + self.dims.len() + self.batch.len() - args[0].rank();
        let result: Vec<usize> = results[0].shape.iter().map(|&size| rule.add(size, FactorKind::Pass)).collect();
        let places = &result[self.at..self.at + rank];
        let mut operand = Vec::new();
        for (role, &size) in self.roles(args[0].rank(), rank).into_iter().zip(&args[0].shape) {
            operand.push(vec![match role {
                DimSource::Indexed(_) => rule.add(size, FactorKind::one_has(args[0].dtype)),
                DimSource::Batch(of) => places[of],
                DimSource::Kept(dim) => result[dim],
            }]);
        }
        rule.operands.push(operand);
        for index in &args[1..] {
            let own = &places[rank - index.rank()..];
            let dims = index.shape.iter().zip(own);
            let dims = dims.map(|(&size, &factor)| {
                vec![if rule.factors[factor].size == size { factor } else { rule.add(size, FactorKind::Whole) }]
            });
            let dims = dims.collect();
            rule.operands.push(dims);
        }
        rule.results.push(result.into_iter().map(|factor| vec![factor]).collect());
        rule
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let types: Vec<&ArrayType> = args.iter().map(|array| &array.ty).collect();
        let ty = self.infer(&types).expect("the checker has typed the gather").swap_remove(0);
        if self.has_no_place(args[0].shape()) {
            return Ok(vec![Array::from_fn(ty, |_| 0)]);
        }
        let rank = ty.rank() + self.dims.len() + self.batch.len() - args[0].ty.rank();
        let roles = self.roles(args[0].ty.rank(), rank);
        Ok(vec![Array::from_fn(ty, |index| {
            let places = &index[self.at..self.at + rank];
            let own = roles.iter().zip(args[0].shape()).map(|(role, &size)| match *role {
                DimSource::Indexed(at) => args[1 + at].get_broadcast(places).min(size as u64 - 1) as usize,
                DimSource::Batch(of) => places[of],
                DimSource::Kept(dim) => index[dim],
            });
            let own: Vec<usize> = own.collect();
            args[0].get(&own)
        })])
    }

    fn print(&self, args: &[String], mesh: &Mesh) -> String {
        let pairs: Vec<String> = self.batch.iter().map(|&(dim, of)| shape::tuple(&[dim, of])).collect();
        let batch = if pairs.is_empty() { String::new() } else { format!(", batch={}", shape::tuple(&pairs)) };
        let out = self.out.as_ref().map_or(String::new(), |out| format!(", out={}", out.display(mesh)));
        format!("gather({}, dims={}{batch}, at={}{out})", args.join(", "), shape::tuple(&self.dims), self.at)
    }

    /// The address of each element is computed.
    fn flops(&self, _: &[&ArrayType], results: &[&ArrayType]) -> u64 {
        one_each(results)
    }
}

impl Infer for Gather {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        if let Some(ty) = args[1..].iter().find(|ty| ty.dtype != DType::I64) {
            return Err(Mismatch::new(Code::E0203, must_be("checked indices", "i64", ty)));
        }
        if !self.is_valid(args) {
            let message =
                format!("{} index arrays do not match the dimensions {:?} of {}", args.len() - 1, self.dims, args[0]);
            return Err(Mismatch::new(Code::E0206, message));
        }
        let places = self.places(args)?;
        let roles = self.roles(args[0].rank(), places.len());
        let kept = roles.iter().zip(&args[0].shape).filter(|(role, _)| matches!(role, DimSource::Kept(_)));
        let mut shape: Vec<usize> = kept.map(|(_, &size)| size).collect();
        shape.splice(self.at..self.at, places);
        Ok(vec![ArrayType::of(args[0].dtype, shape)])
    }
}

impl Rules for Gather {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Linear(self)
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::Rule(self)
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Point(self)
    }

    fn properties(&self) -> Properties<'_> {
        Properties {
            effect: Effect::None,
            manual: Manual::Local,
            placement: Placement::Out(self.out.as_ref()),
            linear: Linear::Places(&[0]),
            combines: Combines::Places(self.dims.clone()),
            elements: Elements::Other,
            keeps_alignment: true,
        }
    }

    fn stablehlo(&self) -> Exported<'_> {
        Exported::Written(self)
    }

    fn named_axes(&mut self) -> Vec<NamedAxes<'_>> {
        self.out.iter_mut().map(NamedAxes::Layout).collect()
    }
}

impl WritesStablehlo for Gather {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], results: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        if self.has_no_place(&args[0].ty.shape) || results[0].is_empty() {
            return Ok(vec![hlo.splat(results[0].dtype(), 0, &results[0].shape)]);
        }
        let (indices, numbers) = self.hlo_places(hlo, &args[0].ty.shape, &args[1..], &results[0].shape);
        Ok(vec![hlo.gather(&numbers, &args[0], &indices, &results[0].shape)])
    }
}

impl Gather {
    /// The places for each element of a batch, where the array or the index arrays have the mapped dimension in front.
    pub fn in_batch(&self, batch: &Batch, of_array: bool, of_places: bool) -> Gather {
        let dims = self.dims.iter().map(|dim| dim + usize::from(of_array)).collect();
        let both = (of_array && of_places).then_some((0, 0));
        let own = self.batch.iter().map(|&(dim, of)| (dim + usize::from(of_array), of + usize::from(of_places)));
        let mut out = self.out.clone();
        out.iter_mut().for_each(|out| batch.add_to(out, self.mapped_at(of_places)));
        let at = self.at + usize::from(of_array && !of_places);
        Gather { dims, batch: both.into_iter().chain(own).collect(), at, out }
    }

    /// The mapped dimension of the result: before the dimensions of the index arrays if these have it.
    pub fn mapped_at(&self, of_places: bool) -> usize {
        if of_places { self.at } else { 0 }
    }

    /// The index arrays, whose dimensions after the mapped one align; `types` are the types of one element.
    pub fn aligned_places(
        build: &mut CallBuilder,
        types: &[Value],
        batch: &Batch,
        places: &[BatchedOperand],
    ) -> Result<Vec<Value>, Diagnostic> {
        let rank = types.iter().map(|&place| build.ty(place).rank()).max().unwrap_or(0);
        places.iter().map(|&place| batch.aligned(build, place, rank)).collect()
    }
}

impl Batched for Gather {
    fn batched(
        &self,
        build: &mut CallBuilder,
        stmt: &Stmt,
        batch: &Batch,
        operands: &[BatchedOperand],
    ) -> Result<Vec<Value>, Diagnostic> {
        let of_places = operands[1..].iter().any(|place| place.is_mapped());
        let mut args = vec![operands[0].value()];
        args.extend(Gather::aligned_places(build, &stmt.args[1..], batch, &operands[1..])?);
        let gathered = build.emit1(self.in_batch(batch, operands[0].is_mapped(), of_places), &args)?;
        Ok(vec![in_front(build, gathered, self.mapped_at(of_places))?])
    }
}

impl Point for Gather {
    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem {
        let ty = kernel.context.ty(stmt.args[0]);
        if self.has_no_place(ty.shape()) {
            return kernel.constant(ty.dtype(), 0);
        }
        let result = kernel.context.ty(stmt.results[0]).shape();
        let rank = result.len() + self.dims.len() + self.batch.len() - ty.rank();
        let (places, sizes) = (&index[self.at..self.at + rank], &result[self.at..self.at + rank]);
        let (mut own, mut tests, mut dynamic) = (Vec::new(), Vec::new(), Vec::new());
        for (dim, role) in self.roles(ty.rank(), rank).into_iter().enumerate() {
            own.push(match role {
                DimSource::Indexed(at) => {
                    let indices = stmt.args[1 + at];
                    let shape = kernel.context.ty(indices).shape();
                    let skipped = rank - shape.len();
                    let dims = shape.iter().zip(&sizes[skipped..]).zip(&places[skipped..]);
                    let dims =
                        dims.map(|((own, size), place)| if own == size { place.clone() } else { Affine::default() });
                    let elem = kernel.operand(indices, &dims.collect::<Vec<Affine>>());
                    let place = kernel.place(elem, ty.shape()[dim]);
                    dynamic.push((place.clone(), ty.shape()[dim]));
                    kernel.index_in_block(ty, dim, &place, &mut tests)
                }
                DimSource::Batch(of) => places[of].clone(),
                DimSource::Kept(at) => index[at].clone(),
            });
        }
        kernel.operand_at(stmt.args[0], &own, &dynamic, &tests)
    }

    fn reads(&self, operand: usize, _: &[&ArrayType]) -> Reads {
        // An element may be taken several times.
        if operand == 0 { Reads::Often } else { Reads::Once }
    }
}

impl Call for Gather {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// Elements at indices from arrays.
        gather(
            x: Array, [rest] indices: Array, [named] dims: Ints = None, [named] batch: Of("pairs of dimensions") = None,
            [named] at: Int = 0, [named] out: Sharding = None,
        ) in_dumps "" "write x[indices], take(x, indices, axis=0) or take_along_axis(x, indices, axis=0)";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let mut op = Gather::read(args)?;
        let out = args.optional_sharding("out")?;
        let mut operands = vec![args.array(build, "x")?];
        for arg in args.rest("indices") {
            operands.push(build.materialize(&arg.term, Some(DType::I64), arg.span)?);
        }
        if let Some((out, span)) = out {
            let types = build.func().arrays(&operands);
            let rank = op.infer(&types).map_err(|mismatch| build.mismatch(mismatch))?[0].rank();
            op.out = explicit_out(build, &complete(out.sharding, rank, span)?);
        }
        Ok(Term::Array(build.emit1(op, &operands)?))
    }
}

impl Gather {
    /// The indices of the text, with one number for each indexed dimension in their last dimension, and the dimension numbers, for an array
    /// of shape `of` and a result of this shape. Numbers outside of a dimension stay outside.
    pub(crate) fn hlo_places(
        &self,
        hlo: &mut HloBuilder<'_>,
        of: &[usize],
        arrays: &[HloValue],
        shape: &[usize],
    ) -> (HloValue, HloGather) {
        let rank = shape.len() + self.dims.len() + self.batch.len() - of.len();
        let places = &shape[self.at..self.at + rank];
        // XLA fails on numbers of 64 bits in blocks of different sizes (jaxlib 0.10.2).
        let is_small = self.dims.iter().all(|&dim| i32::try_from(of[dim]).is_ok());
        let mut numbers = Vec::new();
        for (array, &dim) in arrays.iter().zip(&self.dims) {
            let own = if is_small { small(hlo, array, of[dim]) } else { array.clone() };
            numbers.push(hlo.broadcast(&own, places));
        }
        let indices = hlo.stack(&numbers, rank);
        let kept = (0..shape.len()).filter(|dim| !(self.at..self.at + rank).contains(dim)).collect();
        (indices, HloGather { kept, indexed: self.dims.clone(), batch: self.batch.clone() })
    }
}

/// Indices into a dimension of this size as i32; those outside of it become -1 or the size.
fn small(hlo: &mut HloBuilder<'_>, indices: &HloValue, size: usize) -> HloValue {
    let [low, high] = [-1, size as i64].map(|bound| hlo.whole(indices.ty.dtype(), bound, &[]));
    let inside = hlo.clamp(&low, indices, &high);
    hlo.convert(&inside, DType::I32)
}
