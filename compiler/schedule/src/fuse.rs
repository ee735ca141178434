//! Decides which values exist in memory; all others are computed where they are used.
//!
//! ```text
//! let a = x * 2;  let b = exp(a);  let s = sum(b);  let y = b / s;
//! ```
//! `a` is computed inside `b`. `b` has two users with loop nests of their own, so it is stored; `s` is not pointwise, so it is
//! stored, too.
//!
//! A pointwise value is fused into its users
//! - if every user can take it as an expression ([`Reads`]), and
//! - if that repeats no work: all its uses are in one loop nest of the same block, which reads each element once or several times
//!   at the same index (the kernel then computes it once); or there is no work to repeat: literals, `iota`, views such as slices,
//!   transposes and broadcasts of values in memory, and short expressions of scalars, which a kernel computes before its loops;
//! - and if the loop nest does not become too long.
//!
//! The result of an all_gather is not stored either if its only user reads the blocks in place (`Library::streams`).

use spmdc_abi::CollectiveKind;
use spmdc_ir::cost::{LONG_NEST, SHORT_SCALARS};
use spmdc_ir::layout::factors::{FactorKind, Factors};
use spmdc_ir::layout::mesh::Mesh;
use spmdc_ir::lower::builder::{KernelBuilder, KernelContext};
use spmdc_ir::lower::work::Temporaries;
use spmdc_ir::ops::Op;
use spmdc_ir::ops::rules::{Effect, Lowered, Point, Reads};
use spmdc_ir::program::{Block, Func, Stmt, Value};
use spmdc_ir::reshard::step::ReshardStep;
use spmdc_kernel::loops::Inst;
use spmdc_kernel::work::work as inst_work;

/// For each value, whether it is computed where it is used.
pub fn fuse(func: &Func, mesh: &Mesh) -> Vec<bool> {
    let mut fuser = Fuser {
        func,
        mesh,
        stmts: Vec::new(),
        uses: vec![Vec::new(); func.values.len()],
        fused: vec![false; func.values.len()],
        bodies: Vec::new(),
        sites: vec![Sites::None; func.values.len()],
        scalar_sizes: vec![0; func.values.len()],
        in_memory: vec![None; func.values.len()],
    };
    fuser.collect(&func.body, &mut 0);
    fuser.bodies = vec![1; fuser.stmts.len()];
    debug_assert_eq!(fuser.uses.len(), func.values.len(), "every value has its uses");
    for number in 0..fuser.stmts.len() {
        fuser.measure_scalar(number);
    }
    for number in (0..fuser.stmts.len()).rev() {
        fuser.decide(number);
    }
    for number in 0..fuser.stmts.len() {
        fuser.stream(number);
    }
    let stays = |value: &Value| !fuser.fused[value.0 as usize];
    debug_assert!(func.body.params.iter().all(stays), "an argument lies in memory");
    debug_assert!(func.body.results.iter().all(stays), "a result lies in memory");
    fuser.fused
}

/// The loop nests in which a value would be computed if it were fused.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sites {
    None,
    /// In one statement's loop nest; `aligned` if at the index of that nest, so that all uses share one computation.
    One {
        root: usize,
        aligned: bool,
    },
    /// In several loop nests, or at several indices of one.
    Many,
}

#[derive(Clone, Copy)]
enum Use {
    /// The number of the statement, and the operand.
    Operand(usize, usize),
    /// The result of a block: it must lie in memory.
    Result,
}

struct Fuser<'a> {
    func: &'a Func,
    mesh: &'a Mesh,
    /// The statements in order, each with the number of its block.
    stmts: Vec<(&'a Stmt, usize)>,
    uses: Vec<Vec<Use>>,
    fused: Vec<bool>,
    /// The number of instructions in each statement's loop nest.
    bodies: Vec<usize>,
    /// For each value, where it would be computed.
    sites: Vec<Sites>,
    /// For each value None: to a single statement, all operands lie in memory.
    in_memory: Vec<Option<(&'a Op, &'a Stmt)>>,
    /// For scalars, the number of operations that compute them from values that are not pointwise.
    scalar_sizes: Vec<usize>,
}

impl<'a> Fuser<'a> {
    fn collect(&mut self, block: &'a Block, blocks: &mut usize) {
        let number = *blocks;
        *blocks += 1;
        for stmt in &block.stmts {
            let user = self.stmts.len();
            self.stmts.push((stmt, number));
            for (operand, arg) in stmt.args.iter().enumerate() {
                self.uses[arg.0 as usize].push(Use::Operand(user, operand));
            }
            stmt.blocks().for_each(|inner| self.collect(inner, blocks));
        }
        block.results.iter().for_each(|result| self.uses[result.0 as usize].push(Use::Result));
    }

    fn elements(&self, value: Value) -> usize {
        self.func.ty(value).block_shape(self.mesh).iter().product()
    }

    fn is_scalar(&self, value: Value) -> bool {
        self.func.ty(value).array.len() == 1
    }

    fn measure_scalar(&mut self, number: usize) {
        let (stmt, _) = self.stmts[number];
        if let ([result], true) = (stmt.results.as_slice(), stmt.op().is_some_and(Op::is_pointwise))
            && self.is_scalar(*result)
        {
            let operands: usize = stmt.args.iter().map(|arg| self.scalar_sizes[arg.0 as usize]).sum();
            let own = usize::from(self.func.flops(stmt) > 0);
            self.scalar_sizes[result.0 as usize] = own.saturating_add(operands);
        }
    }

    fn decide(&mut self, number: usize) {
        let (stmt, block) = self.stmts[number];
        let (&[value], Some(op)) = (stmt.results.as_slice(), stmt.op()) else { return };
        if !op.is_pointwise() || op.has_effect() {
            return;
        }
        if op.rules().properties().effect == Effect::Stops && self.takes_nothing(value) {
            return;
        }
        let Some((sites, repeats, roots)) = self.sites_of(value) else { return };
        let free = stmt.args.is_empty()
            || self.func.flops(stmt) == 0
            || self.is_scalar(value) && self.scalar_sizes[value.0 as usize] <= SHORT_SCALARS;
        let alone = matches!(sites, Sites::One { root, .. } if !repeats && self.stmts[root].1 == block);
        let (true, Some(point)) = (free || alone, op.rules().lowered().point()) else { return };
        // Literals take no instruction.
        let work = self.work(point, stmt);
        if work > 0 && roots.iter().any(|&root| self.bodies[root] >= LONG_NEST) {
            return;
        }
        self.fused[value.0 as usize] = true;
        // The operands of a repeated value are computed as often.
        self.sites[value.0 as usize] = if repeats { Sites::Many } else { sites };
        roots.iter().for_each(|&root| self.bodies[root] += work);
        debug_assert!(roots.iter().all(|&root| root > number), "a value is computed before its operands");
    }

    /// Approximate instructions for one element of a pointwise value, without the loads of its operands.
    fn work(&self, point: &dyn Point, stmt: &Stmt) -> usize {
        let (func, mesh) = (self.func, self.mesh);
        let temporaries = Temporaries::starting_at(func.values.len() as u32);
        let context = KernelContext { func, mesh, inlined: &self.in_memory, temporaries: &temporaries };
        let mut kernel = KernelBuilder::new(context, stmt.origin.span);
        let index = kernel.block_dims(func.ty(stmt.results[0]), false);
        point.point(&mut kernel, stmt, &index);
        let insts = kernel.kernel.insts.iter().filter(|inst| !matches!(inst, Inst::Load { .. }));
        insts.map(inst_work).sum::<f64>() as usize
    }

    /// Whether a loop nest that would compute this value has nothing to do: an index, or a divisor, is checked even where no element is taken.
    fn takes_nothing(&self, value: Value) -> bool {
        self.uses[value.0 as usize].iter().any(|site| match *site {
            Use::Operand(user, _) => {
                let stmt = self.stmts[user].0;
                let mut arrays = stmt.args.first().into_iter().chain(&stmt.results);
                arrays.any(|&array| self.func.ty(array).array.is_empty())
            }
            Use::Result => false,
        })
    }

    /// Does not store a gathered array whose only user, in the same block, can read the blocks in place.
    fn stream(&mut self, number: usize) {
        let (gather, block) = self.stmts[number];
        let (&[value], true) = (gather.results.as_slice(), is_gather(gather)) else { return };
        let &[Use::Operand(user, operand)] = self.uses[value.0 as usize].as_slice() else { return };
        let (stmt, its_block) = self.stmts[user];
        if block == its_block
            && !stmt.args.iter().any(|arg| self.fused[arg.0 as usize])
            && let Some(Lowered::Library(library)) = stmt.op().map(|op| op.rules().lowered())
            && library.streams(operand, gather, stmt, self.func, self.mesh)
        {
            self.fused[value.0 as usize] = true;
        }
    }

    /// The sites of the value, whether some elements are computed more than once, and all the loop nests; None if a user needs it
    /// in memory.
    fn sites_of(&self, value: Value) -> Option<(Sites, bool, Vec<usize>)> {
        let mut sites = Sites::None;
        let mut repeats = false;
        let mut roots = Vec::new();
        for &site in &self.uses[value.0 as usize] {
            let Use::Operand(user, operand) = site else { return None };
            let (stmt, _) = self.stmts[user];
            debug_assert_eq!(stmt.args[operand], value, "a use is an operand");
            let op = stmt.op()?;
            if op.has_effect() {
                return None;
            }
            let lowered = op.rules().lowered();
            match lowered.reads(operand, &self.func.arrays(&stmt.args)) {
                Reads::Buffer => return None,
                Reads::Often => repeats = true,
                Reads::Once => {}
            }
            let fused = stmt.results.first().filter(|result| self.fused[result.0 as usize]);
            let is_pointwise = lowered.point().is_some();
            if is_pointwise {
                repeats |= stmt.results.iter().any(|&result| self.elements(result) > self.elements(value));
            }
            let aligned = !is_pointwise || is_aligned(&self.func.factors(op, stmt), operand);
            let here = match fused.map(|result| self.sites[result.0 as usize]) {
                None => Sites::One { root: user, aligned },
                Some(Sites::One { root, aligned: outer }) => Sites::One { root, aligned: aligned && outer },
                Some(other) => other,
            };
            match here {
                Sites::One { root, .. } if !roots.contains(&root) => roots.push(root),
                Sites::One { .. } | Sites::Many | Sites::None => {}
            }
            sites = match (sites, here) {
                (Sites::None, here) => here,
                (Sites::One { root: a, aligned: true }, Sites::One { root: b, aligned: true }) if a == b => sites,
                _ => Sites::Many,
            };
        }
        Some((sites, repeats, roots))
    }
}

/// Whether the statement joins the blocks of an array.
fn is_gather(stmt: &Stmt) -> bool {
    matches!(stmt.op(), Some(Op::Reshard(op)) if op.step == ReshardStep::Collective(CollectiveKind::AllGather))
}

/// Whether element `i` of the result needs element `i` of the operand: each dimension of both is the same factor.
fn is_aligned(rule: &Factors, operand: usize) -> bool {
    let passes = |dims: &[Vec<usize>]| {
        dims.iter().flatten().all(|&f| rule.factors[f].size == 1 || rule.factors[f].kind == FactorKind::Pass)
    };
    rule.results.iter().all(|result| *result == rule.operands[operand]) && passes(&rule.operands[operand])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use spmdc_check::sources::{NoSources, SourceSet};
    use spmdc_compiler::pipeline::{Options, compile};

    /// The number of loop nests of a program.
    fn kernels(source: &str) -> usize {
        let (set, diagnostics) = SourceSet::load("test.spmd", source, &NoSources);
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        compile(&set, &Options::default()).unwrap().kernels.len()
    }

    #[test]
    fn random_numbers_are_drawn_where_they_are_consumed() {
        let draws = "let x = uniform(a, f32[1000]); let y = normal(b, f32[1000]);";
        assert_eq!(kernels(&format!("fn main(a: key, b: key) {{ {draws} sum(x * x + y * y < 1) }}")), 1);
        assert_eq!(
            kernels(&format!("fn main(a: key, b: key, z: f32[1000]) {{ {draws} where(x < 0.5, y + z, z) }}")),
            1
        );
    }

    #[test]
    fn a_chain_ends_in_the_reduction_that_consumes_it() {
        assert_eq!(kernels("fn main(x: f32[64, 8]) { sum(exp(x.T * 2) + 1, axis=0) }"), 1);
    }

    #[test]
    fn what_is_used_twice_at_one_index_is_computed_once() {
        assert_eq!(kernels("fn main(x: f32[64]) { let e = exp(x); e / (1 + e) * e }"), 1);
    }

    #[test]
    fn work_is_not_repeated() {
        // `exp` is computed for each row, and for the sum.
        assert_eq!(kernels("fn main(x: f32[64], y: f32[100, 64]) { y * exp(x) }"), 2);
        assert_eq!(kernels("fn main(x: f32[64]) { let e = exp(x); e / sum(e) }"), 3);
        // Scalars are computed before the loops.
        assert_eq!(kernels("fn main(x: f32[64], a: f32, b: f32) { x * (a + b) }"), 1);
    }

    #[test]
    fn long_chains_are_cut() {
        let steps = "y = sin(y) + x; ".repeat(60);
        assert!(kernels(&format!("fn main(x: f32[64]) {{ let mut y = x; {steps} y }}")) > 1);
        // Cheap operations and literals fill no nest.
        let rounds = "h = (h ^ (h << 13)) * 2654435761; h = h ^ (h >> 17); ".repeat(20);
        assert_eq!(kernels(&format!("fn main(x: u32[64]) {{ let mut h = x; {rounds} h }}")), 1);
    }
}
