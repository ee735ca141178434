//! Keeps partial sums through ops whose results the program asks for as partial sums.
//!
//! ```text
//! let a = reshard(g, P(unreduced=X)) + reshard(h, P(unreduced=X));      each sum would be combined, for the result to be split up again
//! let b = reshard(a, P(unreduced=X));
//! ```
//!
//! On auto axes a sum is combined before any other op. Here the program says that the result shall stay partial, so the op in between, which
//! commutes with the sum, adds the parts. The pass runs before propagation, which takes partial sums as they are.

use spmdc_abi::ReduceOp;
use spmdc_ir::program::partial_sums::commutes_with_sum;
use spmdc_ir::program::{Block, Func, Module, Stmt, Value};
use spmdc_layout::types::AxisSet;
use spmdc_ops::reshard::Reshard;
use std::collections::BTreeMap;

/// Makes the results of ops partial that are only used as partial sums, if their operands are.
pub fn keep_sums(mut module: Module) -> Module {
    if module.mesh.device_count() == 1 {
        return module;
    }
    let mut uses = vec![0; module.func.values.len()];
    module.func.body.each_use(&mut |value| uses[value.0 as usize] += 1);
    let body = std::mem::take(&mut module.func.body);
    keep(&body, &mut module.func, &uses);
    module.func.body = body;
    module
}

fn keep(block: &Block, func: &mut Func, uses: &[usize]) {
    let mut makers: BTreeMap<Value, &Stmt> = BTreeMap::new();
    for stmt in &block.stmts {
        stmt.blocks().for_each(|inner| keep(inner, func, uses));
        makers.extend(stmt.results.iter().map(|&result| (result, stmt)));
        let Some(asked) = stmt.as_op::<Reshard>().filter(|op| !op.to.unreduced.is_empty()) else { continue };
        let (sums, combine, value) = (asked.to.unreduced, asked.to.combine, stmt.args[0]);
        let is_whole = func.ty(value).sharding.unreduced.is_empty();
        if combine != ReduceOp::Sum || !is_whole || uses[value.0 as usize] != 1 {
            continue;
        }
        if makers.get(&value).is_some_and(|maker| adds_parts(maker, func, sums)) {
            let sharding = func.ty(value).sharding.clone().with_unreduced(sums, ReduceOp::Sum);
            func.info_mut(value).ty.sharding = sharding;
        }
    }
}

/// Whether a statement maps partial sums over these axes to partial sums over them.
fn adds_parts(maker: &Stmt, func: &Func, sums: AxisSet) -> bool {
    let Some(op) = maker.op().filter(|op| !op.is::<Reshard>() && !op.has_effect()) else { return false };
    let args = func.types(&maker.args);
    let sets: Vec<AxisSet> = args.iter().map(|ty| ty.sharding.unreduced).collect();
    let are_theirs = sets.iter().all(|set| set.is_empty() || *set == sums);
    let are_sums = args.iter().all(|ty| ty.sharding.unreduced.is_empty() || ty.sharding.combine == ReduceOp::Sum);
    are_theirs && are_sums && sets.contains(&sums) && maker.results.len() == 1 && commutes_with_sum(op, &args, &sets)
}
