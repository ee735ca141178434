//! Common subexpression elimination: computes equal expressions once.
//!
//! ```text
//! let a = sin(x);  let b = sin(x);  a + b      =>      let a = sin(x);  a + a
//! ```
//!
//! Two statements are equal if their op, operands and result types are equal. The second may be in a block inside the first one's block. A
//! second check of an index has the same result as the first; other statements with an effect, and statements with blocks, do not change.
//! If two reductions differ in `keepdims` only, the second becomes a reshape of the first.

use spmdc_ir::op::Op;
use spmdc_ir::program::control::Control;
use spmdc_ir::program::{Block, Func, Module, Stmt, StmtKind, Value};
use spmdc_ir::rules::Effect;
use spmdc_layout::sharding::Sharding;
use spmdc_ops::reduce::Reduce;
use spmdc_ops::reshape::Reshape;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Replaces each statement that equals an earlier one by that one.
pub fn cse(mut module: Module) -> Module {
    let mut body = std::mem::take(&mut module.func.body);
    let replaced = (0..module.func.values.len() as u32).map(Value).collect();
    let mut finder = Finder { func: &module.func, replaced, blocks: Vec::new(), known: HashMap::new() };
    finder.block(&mut body);
    module.func.body = body;
    module
}

struct Finder<'a> {
    func: &'a Func,
    replaced: Vec<Value>,
    /// The statements of the blocks around a statement that come before it, innermost last.
    blocks: Vec<Vec<Stmt>>,
    /// Earlier statements that are visible, by [`key`]: their block and their place in it.
    known: HashMap<u64, Vec<(u32, u32)>>,
}

/// A hash that is the same for equal statements. Constants differ by their elements.
fn key(op: &Op, stmt: &Stmt) -> u64 {
    let mut hasher = DefaultHasher::new();
    op.rules().name().hash(&mut hasher);
    stmt.args.iter().for_each(|arg| arg.0.hash(&mut hasher));
    if let Some(literal) = op.rules().properties().elements.literal() {
        literal.bits.hash(&mut hasher);
    }
    hasher.finish()
}

impl Finder<'_> {
    fn block(&mut self, block: &mut Block) {
        let stmts = std::mem::take(&mut block.stmts);
        let depth = self.blocks.len();
        self.blocks.push(Vec::with_capacity(stmts.len()));
        let mut added = Vec::new();
        for mut stmt in stmts {
            added.extend(self.statement(&mut stmt));
            if stmt.results.iter().all(|result| self.replaced[result.0 as usize] == *result) {
                self.blocks[depth].push(stmt);
            }
        }
        block.stmts = self.blocks.pop().unwrap_or_default();
        block.results.iter_mut().for_each(|result| *result = self.replaced[result.0 as usize]);
        // Values of this block are not visible outside.
        for key in added.into_iter().rev() {
            if let Some(known) = self.known.get_mut(&key) {
                let last = known.pop();
                debug_assert!(last.is_some(), "a statement stays known until its block ends");
            }
        }
    }

    /// Replaces the results of a statement that equals an earlier one. Returns the key under which it becomes known otherwise.
    fn statement(&mut self, stmt: &mut Stmt) -> Option<u64> {
        stmt.args.iter_mut().for_each(|arg| *arg = self.replaced[arg.0 as usize]);
        match stmt.control_mut() {
            // Inside a region only its operands are visible.
            Some(Control::Manual(region)) => {
                let outside = std::mem::take(&mut self.known);
                self.block(&mut region.body);
                self.known = outside;
            }
            Some(control) => control.blocks_mut().for_each(|inner| self.block(inner)),
            None => {}
        }
        let op = stmt.op()?;
        let is_known_again = match op.rules().properties().effect {
            Effect::None | Effect::Stops | Effect::Check => true,
            Effect::Text | Effect::File | Effect::Layout | Effect::Message => false,
        };
        if !is_known_again || stmt.results.is_empty() {
            return None;
        }
        let key = key(op, stmt);
        let known = self.known.get(&key).map(Vec::as_slice).unwrap_or_default();
        let known = || known.iter().map(|&(block, place)| &self.blocks[block as usize][place as usize]);
        let equal = known().find(|other| self.are_equal(other, stmt));
        if let Some(first) = equal {
            debug_assert_eq!(first.results.len(), stmt.results.len(), "equal statements give as many values");
            for (result, same) in stmt.results.iter().zip(first.results.clone()) {
                debug_assert_eq!(
                    self.replaced[same.0 as usize], same,
                    "a value is replaced by one that is replaced itself"
                );
                self.replaced[result.0 as usize] = same;
            }
            return None;
        }
        let reduced = known().find(|other| self.are_reshaped(other, stmt)).map(|other| other.results[0]);
        if let Some(reduced) = reduced {
            let [from, to] = [reduced, stmt.results[0]].map(|value| self.func.ty(value).shape());
            stmt.kind = StmtKind::Op(Reshape::new(from, to).into());
            stmt.args = vec![reduced];
            return None;
        }
        let block = self.blocks.len() - 1;
        let place = (block as u32, self.blocks[block].len() as u32);
        self.known.entry(key).or_default().push(place);
        Some(key)
    }

    /// Whether two statements are the same reduction, except that one keeps the reduced dimensions, with size 1, and the other does not.
    /// False for partial values.
    fn are_reshaped(&self, a: &Stmt, b: &Stmt) -> bool {
        let (Some(first), Some(second)) = (a.as_op::<Reduce>(), b.as_op::<Reduce>()) else { return false };
        // The layout of the dimensions that both results have; None for partial results and for split dimensions of size 1.
        let layout = |stmt: &Stmt, keepdims: bool| {
            let Sharding { dims, unreduced, .. } = &self.func.ty(stmt.results[0]).sharding;
            let (ones, kept): (Vec<_>, Vec<_>) =
                dims.iter().enumerate().partition(|(dim, _)| keepdims && first.axes.contains(dim));
            let plain = unreduced.is_empty() && ones.iter().all(|(_, dim)| dim.axes.is_empty());
            plain.then(|| kept.into_iter().map(|(_, dim)| dim).collect::<Vec<_>>())
        };
        (first.op, &first.axes, &a.args) == (second.op, &second.axes, &b.args)
            && first.keepdims != second.keepdims
            && layout(a, first.keepdims).is_some_and(|first| layout(b, second.keepdims) == Some(first))
    }

    fn are_equal(&self, a: &Stmt, b: &Stmt) -> bool {
        a.kind == b.kind
            && a.args == b.args
            && a.results.len() == b.results.len()
            && a.results.iter().zip(&b.results).all(|(&a, &b)| self.func.ty(a) == self.func.ty(b))
    }
}
