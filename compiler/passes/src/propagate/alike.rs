//! Classes of dimensions that ops want to be split alike.
//!
//! ```text
//! h = x @ w; y = relu(h) @ v        x: [b, i], w: [i, j], h: [b, j], v: [j, k], y: [b, k]
//! ```
//!
//! Two dimensions are in one class if an op has a factor in both, or if one is carried into the other by a loop, a branch or a `manual`
//! region. Where a reshape joins dimensions, the class of the joined dimension is that of its first part. Propagation spreads an axis within
//! a class, so the classes are the decisions about a program's layout.

use super::{PropagationEdge, SlotGraph};
use crate::propagate::Choices;
use spmdc_ir::program::{Module, Value};
use spmdc_layout::factors::DimFactors;
use spmdc_layout::projection::Projection;

/// The class of each dimension of each value.
#[derive(Clone, Debug)]
pub struct DimClasses {
    /// For each value that the program defines, the class of each dimension.
    of: Vec<Option<Vec<usize>>>,
    count: usize,
}

impl DimClasses {
    /// The classes of a module before propagation.
    pub fn new(module: &Module) -> DimClasses {
        let graph = SlotGraph::new(module, Choices::NONE);
        let mut first = Vec::new();
        let mut nodes = 0;
        for slot in &graph.slots {
            first.push(nodes);
            nodes += slot.dims.len();
        }
        let mut sets = DisjointSets((0..nodes).collect());
        for edge in &graph.edges {
            match edge {
                PropagationEdge::Op(node) => {
                    let Projection { rule, whole, .. } = &node.projection;
                    let leads = |dim: &DimFactors, factor: usize| {
                        dim.iter().find(|&&other| rule.factors[other].size != 1) == Some(&factor)
                    };
                    for (factor, _) in whole.iter().enumerate().filter(|(_, whole)| !**whole) {
                        let mut known = None;
                        for (tensor, &slot) in rule.operands.iter().chain(&rule.results).zip(&node.slots) {
                            debug_assert_eq!(tensor.len(), graph.slots[slot].dims.len(), "a rule has each dimension");
                            for dim in (0..tensor.len()).filter(|&dim| leads(&tensor[dim], factor)) {
                                let here = first[slot] + dim;
                                sets.join(*known.get_or_insert(here), here);
                            }
                        }
                    }
                }
                PropagationEdge::Border { slots: [outside, inside], .. } => {
                    for dim in 0..graph.slots[*outside].dims.len() {
                        sets.join(first[*outside] + dim, first[*inside] + dim);
                    }
                }
            }
        }
        let mut numbers = vec![None; nodes];
        let mut count = 0;
        let mut number = |node: usize| {
            *numbers[sets.root(node)].get_or_insert_with(|| {
                count += 1;
                count - 1
            })
        };
        let of_slot = |slot: usize| -> Vec<usize> {
            (0..graph.slots[slot].dims.len()).map(|dim| number(first[slot] + dim)).collect()
        };
        let by_slot: Vec<Vec<usize>> = (0..graph.slots.len()).map(of_slot).collect();
        debug_assert!(count <= nodes, "a class has a dimension");
        let of = graph.slot_of.iter().map(|slot| slot.map(|slot| by_slot[slot].clone())).collect();
        DimClasses { of, count }
    }

    /// The class of each dimension of a value; None if no statement computes it.
    pub fn of(&self, value: Value) -> Option<&[usize]> {
        self.of.get(value.0 as usize)?.as_deref()
    }

    /// The number of classes.
    pub fn count(&self) -> usize {
        self.count
    }
}

/// Sets of numbers, each number with another one of its set; a set's root has itself.
struct DisjointSets(Vec<usize>);

impl DisjointSets {
    fn root(&mut self, mut at: usize) -> usize {
        while self.0[at] != at {
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.0[a.max(b)] = a.min(b);
    }
}
