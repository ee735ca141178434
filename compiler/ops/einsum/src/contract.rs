//! From the notation of `einsum` to statements; the other products are expressed by it.
//!
//! Each operand is simplified first: dimensions of size 1 that meet larger ones vanish, repeated letters take the diagonal, letters
//! that occur nowhere else are summed. Then two operands at a time are multiplied, the cheapest pair first. A product without a sum
//! is elementwise, and fuses.

use crate::diagonal::{Diagonal, take};
use crate::einsum::Einsum;
use crate::spec;
use spmdc_abi::ReduceOp;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::requires;
use spmdc_grammar::span::Span;
use spmdc_ir::call::Call;
use spmdc_ir::call::arg::complete;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::{Operand, Term};
use spmdc_ir::program::Value;
use spmdc_ir::shape;
use spmdc_kernel::scalar::BinaryOp;
use spmdc_layout::sharding::Sharding;
use spmdc_ops::cast::cast;
use spmdc_ops::elementwise::Binary;
use spmdc_ops::promote;
use spmdc_ops::reduce::{reduce, summed_in};
use spmdc_ops::reshape::reshape;
use spmdc_ops::reshard::{Reshard, explicit_out};
use spmdc_ops::transpose::transpose;
use std::collections::BTreeMap;

/// An intermediate operand: its dimensions by their letters.
#[derive(Clone, Debug)]
struct LabelledOperand {
    value: Value,
    labels: Vec<char>,
}

/// `out=P(...)` of a product, completed to the result's rank.
#[derive(Clone, Debug, Default)]
pub struct Out(Option<Sharding>);

impl Out {
    fn of_call(args: &mut Args<'_>, rank: impl FnOnce() -> usize) -> Result<Out, Diagnostic> {
        match args.optional_sharding("out")? {
            None => Ok(Out(None)),
            Some((given, span)) => Ok(Out(Some(complete(given.sharding, rank(), span)?))),
        }
    }

    /// The part of `out=` that the op itself must know.
    fn explicit(&self, build: &CallBuilder) -> Option<Sharding> {
        explicit_out(build, self.0.as_ref()?)
    }
}

/// The sum of products that the labels describe, of operands with one element type.
pub fn contract(
    build: &mut CallBuilder,
    operands: Vec<(Value, Vec<char>)>,
    output: &[char],
    out: &Out,
) -> Result<Value, Diagnostic> {
    let dtype = build.ty(operands[0].0).dtype();
    let mut sizes: BTreeMap<char, usize> = BTreeMap::new();
    for (value, labels) in &operands {
        for (&label, &size) in labels.iter().zip(build.ty(*value).shape()) {
            let known = sizes.entry(label).or_insert(size);
            if *known == 1 {
                *known = size;
            } else if size != 1 && size != *known {
                let message = format!("the dimensions labelled {label} have different sizes: {known} and {size}");
                return Err(Diagnostic::error(Code::E0205, build.span(), message));
            }
        }
    }
    let sums = operands.iter().flat_map(|(_, labels)| labels).any(|label| !output.contains(label));
    let inner = if sums { summed_in(dtype) } else { dtype };
    let mut parts: Vec<LabelledOperand> = Vec::new();
    let all: Vec<Vec<char>> = operands.iter().map(|(_, labels)| labels.clone()).collect();
    for (at, (value, labels)) in operands.into_iter().enumerate() {
        let value = cast(build, value, inner)?;
        let others = || all.iter().enumerate().filter(|(other, _)| *other != at);
        let alone = |label: &char| !output.contains(label) && !others().any(|(_, labels)| labels.contains(label));
        parts.push(distinct(build, LabelledOperand { value, labels }, &sizes, alone)?);
    }
    for at in 0..parts.len() {
        let elsewhere = |label: &char| {
            let others = parts.iter().enumerate().filter(|(other, _)| *other != at);
            output.contains(label) || others.into_iter().any(|(_, part)| part.labels.contains(label))
        };
        let labels = &parts[at].labels;
        let alone: Vec<usize> = (0..labels.len()).filter(|&dim| !elsewhere(&labels[dim])).collect();
        if !alone.is_empty() {
            let labels = labels.iter().copied().filter(|label| elsewhere(label)).collect();
            let value = reduce(build, ReduceOp::Sum, parts[at].value, &alone, false)?;
            parts[at] = LabelledOperand { value, labels };
        }
    }
    // The layout given to the last product.
    let mut told = None;
    while parts.len() > 1 {
        let (i, j) = cheapest(&parts, &sizes);
        let rhs = parts.remove(j);
        let lhs = parts.remove(i);
        let last = parts.is_empty();
        let kept = |label: &char| output.contains(label) || parts.iter().any(|part| part.labels.contains(label));
        let result: Vec<char> = if last {
            output.to_vec()
        } else {
            let both = lhs.labels.iter().chain(rhs.labels.iter().filter(|label| !lhs.labels.contains(label)));
            both.filter(|label| kept(label)).copied().collect()
        };
        let explicit = if last { out.explicit(build) } else { None };
        let sums = lhs.labels.iter().chain(&rhs.labels).any(|label| !result.contains(label));
        let product = if sums {
            told.clone_from(&explicit);
            summed(build, lhs, rhs, result, explicit)?
        } else {
            elementwise(build, lhs, rhs, result)?
        };
        parts.insert(i, product);
    }
    let part = parts.swap_remove(0);
    let order: Vec<usize> = output.iter().filter_map(|label| part.labels.iter().position(|l| l == label)).collect();
    let value =
        if order.windows(2).all(|pair| pair[0] < pair[1]) { part.value } else { transpose(build, part.value, &order)? };
    let value = cast(build, value, dtype)?;
    match &out.0 {
        Some(given) if told.as_ref() != Some(given) => build.emit1(Reshard::pin(given.clone()), &[value]),
        _ => Ok(value),
    }
}

/// An operand with every letter once, at its full size. If it is a diagonal, letters that occur nowhere else are summed with it.
fn distinct(
    build: &mut CallBuilder,
    mut part: LabelledOperand,
    sizes: &BTreeMap<char, usize>,
    alone: impl Fn(&char) -> bool,
) -> Result<LabelledOperand, Diagnostic> {
    let shape = build.ty(part.value).shape().to_vec();
    let kept: Vec<usize> = (0..shape.len()).filter(|&dim| shape[dim] == sizes[&part.labels[dim]]).collect();
    if kept.len() < shape.len() {
        part.value = reshape(build, part.value, &kept.iter().map(|&dim| shape[dim]).collect::<Vec<usize>>())?;
        part.labels = kept.iter().map(|&dim| part.labels[dim]).collect();
    }
    let repeats = |label: &char| part.labels.iter().filter(|other| *other == label).count() > 1;
    if part.labels.iter().any(repeats) {
        let (diagonal, kept) = Diagonal::of_labels(&part.labels, alone);
        part.value = take(build, part.value, diagonal)?;
        part.labels = kept;
    }
    Ok(part)
}

/// The pair whose product takes the fewest multiplications; the first of equal ones.
fn cheapest(parts: &[LabelledOperand], sizes: &BTreeMap<char, usize>) -> (usize, usize) {
    let cost = |i: usize, j: usize| {
        let more = parts[j].labels.iter().filter(|label| !parts[i].labels.contains(label));
        parts[i].labels.iter().chain(more).map(|label| sizes[label] as f64).product::<f64>()
    };
    let mut best = (0, 1);
    for i in 0..parts.len() {
        for j in i + 1..parts.len() {
            if cost(i, j) < cost(best.0, best.1) {
                best = (i, j);
            }
        }
    }
    best
}

/// A product with a sum over the letters that the result lacks.
fn summed(
    build: &mut CallBuilder,
    lhs: LabelledOperand,
    rhs: LabelledOperand,
    result: Vec<char>,
    out: Option<Sharding>,
) -> Result<LabelledOperand, Diagnostic> {
    let text = |labels: &[char]| labels.iter().collect::<String>();
    let op = Einsum { lhs: text(&lhs.labels), rhs: text(&rhs.labels), result: text(&result), out };
    let value = build.emit1(op, &[lhs.value, rhs.value])?;
    Ok(LabelledOperand { value, labels: result })
}

/// A product without a sum: both operands get dimensions of size 1 for missing letters, and are multiplied element by element.
fn elementwise(
    build: &mut CallBuilder,
    lhs: LabelledOperand,
    rhs: LabelledOperand,
    result: Vec<char>,
) -> Result<LabelledOperand, Diagnostic> {
    let mut factors = Vec::new();
    for part in [lhs, rhs] {
        let order: Vec<usize> = result.iter().filter_map(|label| part.labels.iter().position(|l| l == label)).collect();
        let ordered = order.windows(2).all(|pair| pair[0] < pair[1]);
        let value = if ordered { part.value } else { transpose(build, part.value, &order)? };
        let mut sizes = build.ty(value).shape().iter().copied();
        let stretched: Vec<usize> = result
            .iter()
            .map(|label| if part.labels.contains(label) { sizes.next().expect("each label is a dimension") } else { 1 })
            .collect();
        // Leading dimensions of size 1 follow from broadcasting.
        let leading = result.iter().take_while(|label| !part.labels.contains(label)).count();
        factors.push(reshape(build, value, &stretched[leading..])?);
    }
    let value = build.emit1(Binary(BinaryOp::Mul), &factors)?;
    Ok(LabelledOperand { value, labels: result })
}

/// Letters for dimensions without a name in the source.
fn letters(skipping: &'static str) -> impl Iterator<Item = char> {
    ('a'..='z').chain('A'..='Z').filter(move |&letter| !skipping.contains(letter))
}

/// `lhs @ rhs`: matrices in the last two dimensions, batches before them broadcast; a vector is a row or a column.
pub fn matmul(build: &mut CallBuilder, lhs: Operand<'_>, rhs: Operand<'_>) -> Result<Value, Diagnostic> {
    let values = promote::promoted(build, &[lhs, rhs])?;
    let mut args = Args::none("@", Products::matmul(), build.span());
    matmul_values(build, values[0], values[1], &mut args)
}

fn matmul_values(build: &mut CallBuilder, a: Value, b: Value, args: &mut Args<'_>) -> Result<Value, Diagnostic> {
    let (ta, tb) = (build.ty(a).array.clone(), build.ty(b).array.clone());
    let error = |message: String| Err(Diagnostic::error(Code::E0205, args.span, message));
    if ta.rank() == 0 || tb.rank() == 0 {
        return error(requires("a product", "matrices or vectors", format_args!("{ta} and {tb}; use `*` for scalars")));
    }
    let (inner_a, inner_b) = (ta.shape[ta.rank() - 1], tb.shape[tb.rank().saturating_sub(2)]);
    if inner_a != inner_b {
        return error(format!("the inner sizes {inner_a} and {inner_b} of the product of {ta} and {tb} differ"));
    }
    let batches = ta.rank().max(tb.rank()).saturating_sub(2);
    let batch: Vec<char> = letters("ijk").take(batches).collect();
    let leading = |rank: usize| batch[batches - rank.saturating_sub(2)..].to_vec();
    let mut output = batch.clone();
    let (mut la, mut lb) = (leading(ta.rank()), leading(tb.rank()));
    if ta.rank() > 1 {
        la.push('i');
        output.push('i');
    }
    la.push('k');
    lb.push('k');
    if tb.rank() > 1 {
        lb.push('j');
        output.push('j');
    }
    let batch_of = |shape: &[usize]| shape[..shape.len().saturating_sub(2)].to_vec();
    shape::broadcast(&[&batch_of(&ta.shape), &batch_of(&tb.shape)]).map_err(|mismatch| build.mismatch(mismatch))?;
    let out = Out::of_call(args, || output.len())?;
    contract(build, vec![(a, la), (b, lb)], &output, &out)
}

/// Contracts the last dimension of `a` with the last but one of `b` (or its only one); the result has all other dimensions.
fn dot(build: &mut CallBuilder, a: Value, b: Value, args: &mut Args<'_>) -> Result<Value, Diagnostic> {
    let (ra, rb) = (build.ty(a).rank(), build.ty(b).rank());
    if ra == 0 || rb == 0 {
        return build.emit1(Binary(BinaryOp::Mul), &[a, b]);
    }
    tensordot(build, a, b, &[ra - 1], &[rb.saturating_sub(2)], args)
}

/// Sums over pairs of dimensions; the result has the remaining dimensions of `a`, then the ones of `b`.
fn tensordot(
    build: &mut CallBuilder,
    a: Value,
    b: Value,
    axes_a: &[usize],
    axes_b: &[usize],
    args: &mut Args<'_>,
) -> Result<Value, Diagnostic> {
    let (ta, tb) = (build.ty(a).array.clone(), build.ty(b).array.clone());
    for (&da, &db) in axes_a.iter().zip(axes_b) {
        if ta.shape[da] != tb.shape[db] {
            let message =
                format!("the inner sizes {} and {} of the product of {ta} and {tb} differ", ta.shape[da], tb.shape[db]);
            return Err(Diagnostic::error(Code::E0205, args.span, message));
        }
    }
    let mut fresh = ('a'..='j').chain('A'..='Z');
    let mut summed = 'k'..='z';
    let too_many =
        || Diagnostic::error(Code::E0205, args.span, format!("the product of {ta} and {tb} has too many dimensions"));
    let mut la: Vec<Option<char>> = vec![None; ta.rank()];
    let mut lb: Vec<Option<char>> = vec![None; tb.rank()];
    for (&da, &db) in axes_a.iter().zip(axes_b) {
        let label = summed.next().ok_or_else(too_many)?;
        (la[da], lb[db]) = (Some(label), Some(label));
    }
    let mut output = Vec::new();
    let mut name = |labels: Vec<Option<char>>| -> Result<Vec<char>, Diagnostic> {
        let named = labels.into_iter().map(|label| match label {
            Some(label) => Ok(label),
            None => {
                let label = fresh.next().ok_or_else(too_many)?;
                output.push(label);
                Ok(label)
            }
        });
        named.collect()
    };
    let (la, lb) = (name(la)?, name(lb)?);
    let out = Out::of_call(args, || output.len())?;
    contract(build, vec![(a, la), (b, lb)], &output, &out)
}

/// The calls of `einsum`, `matmul`, `dot`, `outer` and `tensordot`; they emit [`Einsum`] and ops that prepare its operands.
pub struct Products;

impl Products {
    fn matmul() -> &'static Signature {
        let found = Products::SIGNATURES.iter().find(|signature| signature.name == "matmul");
        found.expect("`matmul` is a product")
    }
}

impl Call for Products {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// Sums of products by the letters of dimensions: letters that the result does not name are summed.
        einsum(subscripts: String, [rest] operands: Array, [named] out: Sharding = None),
            NumbersAndBools, Products(operands), "(a: f32[4, 6], b: f32[6, 8]) { einsum(\"ik,kj->ij\", a, b) }";
        /// The product of matrices in the last two dimensions; `a @ b` is the same.
        matmul(a: Array, b: Array, [named] out: Sharding = None), NumbersAndBools, Products(a, b), "(a: f32[4, 6], b: f32[6, 8]) { matmul(a, b) }";
        /// The sum of products over the last dimension of a and the last but one of b.
        dot(a: Array, b: Array, [named] out: Sharding = None), NumbersAndBools, Products(a, b), "(a: f32[4, 6], b: f32[6, 8]) { dot(a, b) }";
        /// All products of an element of a and an element of b.
        outer(a: Array, b: Array, [named] out: Sharding = None), NumbersAndBools, Products(a, b), "(a: f32[4], b: f32[6]) { outer(a, b) }";
        /// The sum of products over the given number of last dimensions of a and first dimensions of b, or over the listed dimensions.
        tensordot(a: Array, b: Array, axes: Of("int or pair of lists") = 2, [named] out: Sharding = None),
            NumbersAndBools, Products(a, b), "(a: f32[4, 6], b: f32[6, 8]) { tensordot(a, b, axes=1) }";
    };

    fn call(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        if name == "einsum" {
            return einsum(args, build);
        }
        let (a, b) = (args.required("a")?, args.required("b")?);
        let values = promote::promoted(build, &[(&a.term, a.span), (&b.term, b.span)])?;
        let (a, b) = (values[0], values[1]);
        let value = match name {
            "matmul" => matmul_values(build, a, b, args)?,
            "dot" => dot(build, a, b, args)?,
            "outer" => {
                let flat = |build: &mut CallBuilder, value: Value| {
                    let len = build.ty(value).array.len();
                    reshape(build, value, &[len])
                };
                let (a, b) = (flat(build, a)?, flat(build, b)?);
                let out = Out::of_call(args, || 2)?;
                contract(build, vec![(a, vec!['i']), (b, vec!['j'])], &['i', 'j'], &out)?
            }
            _ => {
                let (axes_a, axes_b) = tensordot_axes(args, build.ty(a).rank(), build.ty(b).rank())?;
                tensordot(build, a, b, &axes_a, &axes_b, args)?
            }
        };
        Ok(Term::Array(value))
    }
}

/// The `axes=` of `tensordot`: a number, or a list for each operand.
fn tensordot_axes(args: &mut Args<'_>, ra: usize, rb: usize) -> Result<(Vec<usize>, Vec<usize>), Diagnostic> {
    let given = args.take("axes");
    let span = given.as_ref().map_or(args.span, |arg| arg.span);
    let wrong = || {
        let message = "`axes` must be a number of dimensions, or a pair of lists of dimensions";
        Diagnostic::error(Code::E0210, span, message)
    };
    let list = |term: &Term, rank: usize| {
        let ints = term
            .one_or_more()
            .iter()
            .map(|term| if let Term::Int(axis) = term { Ok(*axis as i64) } else { Err(wrong()) });
        shape::axes(&ints.collect::<Result<Vec<i64>, _>>()?, rank, span)
    };
    let axes = given.map(|arg| arg.term).unwrap_or(Term::Int(2));
    if let Term::Int(count) = axes {
        let count = usize::try_from(count).map_err(|_| wrong())?;
        if count > ra.min(rb) {
            let message = format!("`tensordot` cannot contract {count} dimensions of arrays with {ra} and {rb}");
            return Err(Diagnostic::error(Code::E0205, span, message));
        }
        return Ok(((ra - count..ra).collect(), (0..count).collect()));
    }
    let Some([of_a, of_b]) = axes.sequence() else { return Err(wrong()) };
    let (axes_a, axes_b) = (list(of_a, ra)?, list(of_b, rb)?);
    if axes_a.len() == axes_b.len() { Ok((axes_a, axes_b)) } else { Err(wrong()) }
}

fn einsum(args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
    let text = args.string("subscripts")?;
    let operands = args.rest("operands");
    let terms: Vec<(&Term, Span)> = operands.iter().map(|arg| (&arg.term, arg.span)).collect();
    if terms.is_empty() {
        return Err(Diagnostic::error(Code::E0201, args.span, "`einsum` requires operands after its text"));
    }
    let values = promote::promoted(build, &terms)?;
    let ranks: Vec<usize> = values.iter().map(|&value| build.ty(value).rank()).collect();
    let spec = spec::parse(&text, &ranks).map_err(|mismatch| build.mismatch(mismatch))?;
    let out = Out::of_call(args, || spec.output.len())?;
    let operands = values.into_iter().zip(spec.inputs).collect();
    Ok(Term::Array(contract(build, operands, &spec.output, &out)?))
}

/// The product of two operands that an op describes: element by element where it sums nothing, as [`contract`] has it.
pub fn product(build: &mut CallBuilder, op: Einsum, operands: [Value; 2]) -> Result<Value, Diagnostic> {
    if op.lhs.chars().chain(op.rhs.chars()).any(|label| !op.result.contains(label)) {
        return build.emit1(op, &operands);
    }
    let [lhs, rhs] = [(operands[0], &op.lhs), (operands[1], &op.rhs)]
        .map(|(value, labels)| LabelledOperand { value, labels: labels.chars().collect() });
    let product = elementwise(build, lhs, rhs, op.result.chars().collect())?;
    match op.out {
        Some(out) => build.emit1(Reshard::pin(out), &[product.value]),
        None => Ok(product.value),
    }
}
