//! Factor rules: the effect of an op on shardings.
//!
//! A rule names *factors* (index variables with sizes) and gives for each dimension of each operand and result the factors that it
//! consists of, major to minor. A product is `ik,kj->ij` with `k` of kind [`FactorKind::Reduce`]; a reshape of `[8,16]` to `[128]`
//! is `ab->(ab)`. Propagation, the types of explicit axes, partitioning, and cost follow from the rule.

use crate::types::ArrayType;
use spmdc_abi::DType;
use spmdc_abi::ReduceOp;

/// The effect on an op of splitting one of its factors over devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactorKind {
    /// Nothing: the op runs on blocks. Position-dependent ops read their block's global offset.
    Pass,
    /// Every device computes a partial result; this operation combines them.
    Reduce(ReduceOp),
    /// Elements move along this dimension, mostly to neighbours: operand and result are split by the same axes, each over its own
    /// size, and devices fetch missing elements. The factor has the result's size.
    Window,
    /// The op needs this dimension whole on every device, or produces it whole.
    Whole,
}

/// An index variable of a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Factor {
    /// The number of its values.
    pub size: usize,
    /// The effect on the op of splitting the factor.
    pub kind: FactorKind,
}

/// The factors of one dimension, major to minor. A dimension of size 1 that is broadcast has a separate factor.
pub type DimFactors = Vec<usize>;

/// The rule of an op for operands and results of given shapes. Factors are named by their position in `factors`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Factors {
    /// All factors of the rule.
    pub factors: Vec<Factor>,
    /// Per operand, per dimension.
    pub operands: Vec<Vec<DimFactors>>,
    /// Per result, per dimension.
    pub results: Vec<Vec<DimFactors>>,
    /// Dimensions of operands that are only a part of their factor, and are needed where that part is.
    pub parts: Vec<FactorRange>,
}

/// Element `i` of an operand's dimension is element `start + i * step` of its factor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FactorRange {
    /// The position of the operand.
    pub operand: usize,
    /// The dimension of the operand.
    pub dim: usize,
    /// The index of element 0 in the factor.
    pub start: usize,
    /// The distance between neighbouring elements in the factor.
    pub step: usize,
}

impl FactorKind {
    /// The kind of an indexed dimension: one device has the element that is taken, and the others contribute the identity element.
    pub fn one_has(dtype: DType) -> FactorKind {
        if dtype == DType::Key {
            FactorKind::Whole
        } else if dtype == DType::Bool {
            FactorKind::Reduce(ReduceOp::Or)
        } else {
            FactorKind::Reduce(ReduceOp::Sum)
        }
    }
}

impl Factors {
    /// A rule without factors, operands and results.
    pub fn new() -> Factors {
        Factors::default()
    }

    /// Adds a factor and returns its number.
    pub fn add(&mut self, size: usize, kind: FactorKind) -> usize {
        self.factors.push(Factor { size, kind });
        self.factors.len() - 1
    }

    /// The part of its factor that a dimension of an operand is, if it is not the whole factor.
    pub fn part(&self, operand: usize, dim: usize) -> Option<FactorRange> {
        self.parts.iter().copied().find(|part| (part.operand, part.dim) == (operand, dim))
    }

    /// A rule in which no dimension corresponds to another, for results whose contents depend on the layout of blocks.
    pub fn unrelated(operands: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        let mut rule = Factors::new();
        let mut own = |arrays: &[&ArrayType]| -> Vec<Vec<Vec<usize>>> {
            let dims = |array: &&ArrayType| {
                array.shape.iter().map(|&size| vec![rule.add(size, FactorKind::Whole)]).collect::<Vec<_>>()
            };
            arrays.iter().map(dims).collect()
        };
        let (operands, results) = (own(operands), own(results));
        Factors { operands, results, ..rule }
    }

    /// Elementwise with NumPy broadcasting: operand dimensions align at the end, and dimensions of size 1 have separate factors.
    pub fn elementwise(operands: &[&[usize]], result: &[usize]) -> Factors {
        let mut rule = Factors::new();
        let dims: Vec<usize> = result.iter().map(|&size| rule.add(size, FactorKind::Pass)).collect();
        for shape in operands {
            let offset = result.len() - shape.len();
            let mut operand = Vec::new();
            for (dim, &size) in shape.iter().enumerate() {
                let same = size == result[offset + dim];
                operand.push(vec![if same { dims[offset + dim] } else { rule.add(size, FactorKind::Whole) }]);
            }
            rule.operands.push(operand);
        }
        rule.results.push(dims.into_iter().map(|factor| vec![factor]).collect());
        rule
    }

    /// A rule from letters as in `einsum`, such as `ik,kj->ij`, given as lists of labels.
    pub fn labelled(
        operands: &[Vec<(char, usize)>],
        result: &[(char, usize)],
        kind: impl Fn(char) -> FactorKind,
    ) -> Factors {
        let mut rule = Factors::new();
        let mut labels: Vec<(char, usize)> = Vec::new();
        let mut factor = |rule: &mut Factors, label: char, size: usize| match labels.iter().find(|(l, _)| *l == label) {
            Some(&(_, factor)) => factor,
            None => {
                let factor = rule.add(size, kind(label));
                labels.push((label, factor));
                factor
            }
        };
        for operand in operands {
            let dims = operand.iter().map(|&(label, size)| vec![factor(&mut rule, label, size)]).collect();
            rule.operands.push(dims);
        }
        let dims = result.iter().map(|&(label, size)| vec![factor(&mut rule, label, size)]).collect();
        rule.results.push(dims);
        rule
    }

    /// In the letters of `einsum`, dimensions of several factors in parentheses: `ik,kj->ij, k is reduced by sum`.
    pub fn describe(&self) -> String {
        let letter = |&factor: &usize| char::from(b'a' + (factor % 26) as u8);
        let dim = |factors: &DimFactors| match factors.as_slice() {
            [factor] => letter(factor).to_string(),
            several => format!("({})", several.iter().map(letter).collect::<String>()),
        };
        let list = |arrays: &[Vec<DimFactors>]| -> String {
            let arrays = arrays.iter().map(|dims| dims.iter().map(dim).collect::<String>());
            arrays.collect::<Vec<_>>().join(",")
        };
        let mut text = format!("{}->{}", list(&self.operands), list(&self.results));
        for (factor, Factor { kind, size }) in self.factors.iter().enumerate() {
            let is = match kind {
                FactorKind::Pass => continue,
                // A factor of size 1 cannot be split.
                FactorKind::Whole if *size == 1 => continue,
                FactorKind::Reduce(ReduceOp::Sum) => "reduced by sum",
                FactorKind::Reduce(ReduceOp::Product) => "reduced by prod",
                FactorKind::Reduce(ReduceOp::Max) => "reduced by max",
                FactorKind::Reduce(ReduceOp::Min) => "reduced by min",
                FactorKind::Reduce(ReduceOp::And) => "reduced by all",
                FactorKind::Reduce(ReduceOp::Or) => "reduced by any",
                FactorKind::Window => "moved along",
                FactorKind::Whole => "needed whole",
            };
            text.push_str(&format!(", {} is {is}", letter(&factor)));
        }
        text
    }
}
