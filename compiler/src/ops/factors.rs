//! Factor rules: an op's meaning for shardings.
//!
//! A rule names *factors* (index variables with sizes) and says for each dimension of each operand and result which factors
//! it consists of, major to minor. A product is `ik,kj->ij` with `k` of kind [`FactorKind::Reduce`]; a reshape of `[8,16]`
//! to `[128]` is `ab->(ab)`. From the rule follow propagation, the types of explicit axes, partitioning, and cost.

use spmdc_runtime::abi::ReduceOp;

/// What it means for an op that one of its factors is split over devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactorKind {
    /// Nothing: the op runs on blocks. Position-dependent ops read their block's global offset.
    Pass,
    /// Every device computes a partial result, to be combined so.
    Reduce(ReduceOp),
    /// The op needs this dimension whole on every device, or produces it whole.
    Whole,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Factor {
    pub size: usize,
    pub kind: FactorKind,
}

/// The factors of one dimension, major to minor. A dimension of size 1 that is broadcast has a factor of its own.
pub type DimFactors = Vec<usize>;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Factors {
    pub factors: Vec<Factor>,
    /// Per operand, per dimension.
    pub operands: Vec<Vec<DimFactors>>,
    /// Per result, per dimension.
    pub results: Vec<Vec<DimFactors>>,
}

impl Factors {
    pub fn new() -> Factors {
        Factors::default()
    }

    /// A new factor, by its number.
    pub fn add(&mut self, size: usize, kind: FactorKind) -> usize {
        self.factors.push(Factor { size, kind });
        self.factors.len() - 1
    }

    /// Elementwise with NumPy broadcasting: operand dimensions align at the end, those of size 1 stand for themselves.
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

    /// Dimensions named by letters as in `einsum`: `factors("ik,kj->ij")`-like construction from label lists.
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
}
