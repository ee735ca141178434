//! Literals: numbers and lists of numbers.

use spmdc_abi::Kind;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::expected;
use spmdc_grammar::span::Span;
use spmdc_ir::array::{Array, Trap};
use spmdc_ir::call::term::{StaticScalar, Term};
use spmdc_ir::lower::builder::KernelBuilder;
use spmdc_ir::lower::work::Lowering;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::Stmt;
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::derivative::Derivative;
use spmdc_ir::rules::{
    Combines, Effect, Elements, Infer, Linear, Lowered, Manual, NamedAxes, NestLowering, Placement, Point, Properties,
    Reads, Rules, Semantics, Typing,
};
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_kernel::loops::{Affine, Elem};
use spmdc_kernel::number;
use spmdc_layout::factors::{FactorKind, Factors};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{ArrayType, DType};

/// An array known at compile time: a scalar, or the elements of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    /// The elements with their type and shape.
    pub array: Array,
}

impl Constant {
    /// Whether all elements are the same.
    fn is_uniform(&self) -> bool {
        self.array.shape().is_empty() || self.array.bits.windows(2).all(|pair| pair[0] == pair[1])
    }

    /// The scalar of this element type with these bits.
    pub fn scalar(dtype: DType, bits: u64) -> Constant {
        Constant { array: Array::scalar(dtype, bits) }
    }

    /// A number, bool, or nested list of them, of the given element type or the common type of all elements.
    pub fn from_term(term: &Term, dtype: Option<DType>, span: Span) -> Result<Constant, Diagnostic> {
        let mut shape = Vec::new();
        let mut leaves = Vec::new();
        flatten(term, 0, &mut shape, &mut leaves, span)?;
        let found = || leaves.iter().filter_map(|leaf| leaf.default_dtype()).max().unwrap_or(DType::F32);
        let is_given = dtype.is_some();
        let dtype = dtype.unwrap_or_else(found);
        let bits = leaves.iter().map(|leaf| number_bits(leaf, dtype, span)).collect::<Result<Vec<u64>, _>>();
        let bits = bits.map_err(|error| match dtype == DType::I32 && !is_given {
            // The 32 bits are the default, not the choice of the program.
            true => error.help("write i64(...) or u64(...): an integer literal is an i32"),
            false => error,
        })?;
        Ok(Constant { array: Array::new(ArrayType::new(dtype, &shape), bits) })
    }
}

/// The shape and the elements of a number or a nested list of numbers; an error for a list of anything else, or with rows of different
/// lengths.
pub fn flatten<'a>(
    term: &'a Term,
    depth: usize,
    shape: &mut Vec<usize>,
    leaves: &mut Vec<&'a Term>,
    span: Span,
) -> Result<(), Diagnostic> {
    let ragged = || Diagnostic::error(Code::E0205, span, "the rows of this list have different lengths");
    if let Term::List(items) = term {
        if depth == shape.len() && leaves.is_empty() {
            shape.push(items.len());
        } else if shape.get(depth) != Some(&items.len()) {
            return Err(ragged());
        }
        return items.iter().try_for_each(|item| flatten(item, depth + 1, shape, leaves, span));
    }
    if term.static_scalar().is_none() {
        return Err(no_number(term, span));
    }
    if depth != shape.len() {
        return Err(ragged());
    }
    leaves.push(term);
    Ok(())
}

fn no_number(term: &Term, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0210, span, expected("a number", term.describe()))
}

fn fits(value: i128, dtype: DType) -> bool {
    let (low, high) = dtype.integer_bounds();
    (low..=high).contains(&value)
}

/// The bits of a number that fills an array: as for a literal, except that any number but zero is true.
pub fn filling_bits(term: &Term, dtype: DType, span: Span) -> Result<u64, Diagnostic> {
    match term.number() {
        Some(value) if dtype == DType::Bool => Ok(u64::from(value != 0.0)),
        Some(_) | None => number_bits(term, dtype, span),
    }
}

/// The bits of a literal in an element type; an error if it does not fit.
pub fn number_bits(term: &Term, dtype: DType, span: Span) -> Result<u64, Diagnostic> {
    let misfit = |text: String| {
        Diagnostic::error(Code::E0218, span, format!("{text} is not a value of type {}", dtype.name()))
            .help(format!("write {}(...) to convert", dtype.name()))
    };
    match term.static_scalar().ok_or_else(|| no_number(term, span))? {
        StaticScalar::Bool(value) if dtype == DType::Bool => Ok(u64::from(value)),
        StaticScalar::Bool(value) => number_bits(&Term::Int(i128::from(value)), dtype, span),
        StaticScalar::Int(value) if dtype.is_float() => Ok(dtype.narrow(value as f64)),
        StaticScalar::Float(value) if dtype.is_float() => Ok(dtype.narrow(value)),
        StaticScalar::Int(value) if dtype.is_integer() => {
            let (bits, (low, high)) = (dtype.size() as u32 * 8, dtype.integer_bounds());
            if value < low || value > high {
                let message = format!("{value} does not fit into {}, whose values are {low} to {high}", dtype.name());
                let wider = [DType::I32, DType::I64, DType::U64].into_iter().find(|wider| fits(value, *wider));
                return Err(Diagnostic::error(Code::E0218, span, message).help(match wider {
                    Some(wider) => format!("it fits into {}, or write it as a float: f64({value}.0)", wider.name()),
                    None => format!("it fits into no integer type; write it as a float: f64({value}.0)"),
                }));
            }
            Ok(value as u64 & (u64::MAX >> (64 - bits)))
        }
        StaticScalar::Int(value) => Err(misfit(value.to_string())),
        StaticScalar::Float(value) => Err(misfit(format!("{value:?}"))),
    }
}

/// An element as a literal that reads back as the same bits; NaN and infinities are written as expressions.
pub fn literal(dtype: DType, bits: u64) -> String {
    let float = |value: f64, text: String| {
        if value.is_nan() {
            "(0.0 / 0.0)".to_string()
        } else if value.is_infinite() {
            if value > 0.0 { "1e999".to_string() } else { "-1e999".to_string() }
        } else {
            text
        }
    };
    match dtype.kind() {
        Kind::Bool => (bits != 0).to_string(),
        Kind::Signed | Kind::Unsigned => number::to_int(dtype, bits).to_string(),
        Kind::Key => seed_of(bits).to_string(),
        Kind::Float => {
            let value = dtype.widen(bits);
            // The shortest digits that identify the f32, not the f64.
            float(value, if dtype == DType::F32 { format!("{:?}", value as f32) } else { format!("{value:?}") })
        }
    }
}

fn print_list(array: &Array, dim: usize, start: usize) -> String {
    if dim == array.shape().len() {
        return literal(array.dtype(), array.bits[start]);
    }
    let stride: usize = array.shape()[dim + 1..].iter().product();
    let items = (0..array.shape()[dim]).map(|i| print_list(array, dim + 1, start + i * stride));
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

impl Semantics for Constant {
    fn name(&self) -> &'static str {
        "constant"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, _: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        // A scalar fuses into every use. Every device has the whole list: it is small, and its users slice it freely.
        let mut rule = Factors::new();
        let dims = results[0].shape.iter().map(|&size| vec![rule.add(size, FactorKind::Whole)]).collect();
        rule.results.push(dims);
        rule
    }

    fn eval(&self, _: &[&Array]) -> Result<Vec<Array>, Trap> {
        Ok(vec![self.array.clone()])
    }

    fn print(&self, _: &[String], _: &Mesh) -> String {
        format!("{}({})", self.array.dtype().name(), print_list(&self.array, 0, 0))
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }
}

impl Infer for Constant {
    fn infer(&self, _: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        Ok(vec![self.array.ty.clone()])
    }
}

impl Rules for Constant {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Zero
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::Never
    }

    fn lowered(&self) -> Lowered<'_> {
        match self.is_uniform() {
            true => Lowered::Point(self),
            false => Lowered::Nest(self),
        }
    }

    fn properties(&self) -> Properties<'_> {
        Properties {
            effect: Effect::None,
            manual: Manual::Local,
            placement: Placement::Follows,
            linear: Linear::No,
            combines: Combines::Nothing,
            elements: Elements::Literal(&self.array),
            // Every device has the whole list anyway.
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

impl WritesStablehlo for Constant {
    fn write(&self, hlo: &mut HloBuilder<'_>, _: &[HloValue], _: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        Ok(vec![hlo.constant(self.array.dtype(), self.array.shape(), &self.array.bits)])
    }
}

impl Point for Constant {
    fn point(&self, kernel: &mut KernelBuilder<'_>, _: &Stmt, _: &[Affine]) -> Elem {
        kernel.constant(self.array.dtype(), self.array.bits.first().copied().unwrap_or(0))
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Once
    }
}

impl NestLowering for Constant {
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        let size = self.array.dtype().size();
        let bytes = self.array.bits.iter().flat_map(|bits| bits.to_le_bytes().into_iter().take(size)).collect();
        lowering.constant(stmt.results[0], bytes);
        Ok(())
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Once
    }
}

/// The seed as which a dump writes a key.
pub fn seed_of(key: u64) -> u64 {
    number::cast(DType::Key, DType::U64, key).expect("a key is a u64")
}

impl Constant {
    /// A scalar literal of the given type, from a float.
    pub fn float(dtype: DType, value: f64) -> Constant {
        let bits =
            if dtype.is_float() { number::from_float(dtype, value) } else { number::from_int(dtype, value as i128) };
        Constant::scalar(dtype, bits)
    }
}
