//! Decides which values exist in memory; all others are computed where they are used.
//!
//! ```text
//! let a = x * 2;  let b = exp(a);  let s = sum(b);  let y = b / s;
//! ```
//! `a` is computed inside `b`. `b` has two users with separate loop nests, so it is stored; `s` is not pointwise, so it is stored, too.
//!
//! A pointwise value, or a reduction of few elements ([`SHORT_REDUCTION`]), is fused into its users
//! - if every user can take it as an expression ([`Reads`]), and
//! - if one of these holds:
//!   1. The work is not repeated: all its uses are in one loop nest of the same block, which reads each element once or several times
//!      at the same index (the kernel then computes it once).
//!   2. The work is trivial: literals, `iota`, views such as slices, transposes and broadcasts of values in memory, and short expressions
//!      of scalars, which a kernel computes before its loops.
//!   3. Repeating the work takes less time than storing the elements and loading them again (`is_cheaper`), and at most as much memory,
//!      for instance for differences of all pairs of points.
//! - and if the loop nest does not become too long.
//!
//! The result of an all_gather is not stored either if its only user reads the blocks in place (`Library::streams`). The same holds for an
//! array that a function of the runtime computes internally (`Library::computes`).

use crate::repeats::{PointwiseLoop, is_aligned, used};
use spmdc_abi::CollectiveKind;
use spmdc_ir::lower::builder::{KernelBuilder, KernelContext};
use spmdc_ir::lower::unroll::is_short;
use spmdc_ir::lower::work::Temporaries;
use spmdc_ir::op::Op;
use spmdc_ir::program::control::Control;
use spmdc_ir::program::{Block, Func, Stmt, StmtKind, Value};
use spmdc_ir::rules::{Effect, Lowered, Point, Reads, Users};
use spmdc_kernel::loops::Inst;
use spmdc_kernel::work::work as inst_work;
use spmdc_layout::cost::{
    BEYOND_CACHES, LONG_EXPRESSION, LONG_NEST, REPEATED_INSTRUCTIONS, SHORT_REDUCTION, SHORT_SCALARS,
};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::reshard::step::ReshardStep;
use spmdc_ops::reshard::Reshard;
use std::collections::{BTreeMap, BTreeSet};

/// For each value, whether it is computed where it is used.
pub fn fuse(func: &Func, mesh: &Mesh) -> Vec<bool> {
    let mut fuser = Fuser {
        func,
        mesh,
        stmts: Vec::new(),
        uses: vec![Vec::new(); func.values.len()],
        definitions: vec![None; func.values.len()],
        fused: vec![false; func.values.len()],
        bodies: Vec::new(),
        sites: vec![Sites::None; func.values.len()],
        scalar_sizes: vec![0; func.values.len()],
        chains: vec![Chain::default(); func.values.len()],
        costs: vec![Repetition::ONCE; func.values.len()],
        roots: vec![Vec::new(); func.values.len()],
        loops: BTreeMap::new(),
        in_memory: vec![None; func.values.len()],
        left_out: vec![false; func.values.len()],
    };
    fuser.collect(&func.body, &mut 0);
    fuser.loops = pointwise_loops(func, mesh, &fuser.stmts);
    fuser.bodies = vec![1; fuser.stmts.len()];
    debug_assert_eq!(fuser.uses.len(), func.values.len(), "every value has its uses");
    for number in 0..fuser.stmts.len() {
        fuser.measure_scalar(number);
        fuser.measure_chain(number);
    }
    let shared = fuser.computed_by_all();
    for number in (0..fuser.stmts.len()).rev() {
        fuser.leave_out(number, &shared);
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

/// The computation of an element of a value from values that are in memory, or may well be.
#[derive(Clone, Debug, Default)]
struct Chain {
    /// Approximate instructions of the statement alone; None if it is not an expression.
    own: Option<usize>,
    /// Approximate instructions of all statements.
    work: usize,
    /// The values in memory; at most [`MANY_LEAVES`].
    leaves: Vec<Value>,
}

/// Number of values in memory from which on a computation is not repeated.
const MANY_LEAVES: usize = 8;

/// The computations of a value in the loop nests of its users.
#[derive(Clone, Copy, Debug)]
struct Repetition {
    /// The number of times that each element is computed.
    times: f64,
    /// The number of times that its instructions are written in one loop nest.
    copies: usize,
}

impl Repetition {
    const NEVER: Repetition = Repetition { times: 0.0, copies: 0 };
    const ONCE: Repetition = Repetition { times: 1.0, copies: 1 };

    fn plus(self, other: Repetition) -> Repetition {
        Repetition { times: self.times + other.times, copies: self.copies.saturating_add(other.copies) }
    }

    fn max(self, other: Repetition) -> Repetition {
        Repetition { times: self.times.max(other.times), copies: self.copies.max(other.copies) }
    }
}

/// A use of a value as an expression.
struct Read {
    here: Sites,
    /// Whether some elements are read several times.
    repeats: bool,
    cost: Repetition,
}

/// The place of a value that is fused.
struct Placed {
    sites: Sites,
    /// Whether some elements are computed more than once because each is read several times.
    repeats: bool,
    /// All the loop nests.
    roots: Vec<usize>,
    cost: Repetition,
}

#[derive(Clone, Copy)]
enum Use {
    /// The number of the statement, and the operand.
    Operand(usize, usize),
    /// The result of a block: it must be in memory.
    Result,
}

struct Fuser<'a> {
    func: &'a Func,
    mesh: &'a Mesh,
    /// The statements in order, each with the number of its block.
    stmts: Vec<(&'a Stmt, usize)>,
    uses: Vec<Vec<Use>>,
    /// The number of the statement of each value; None for parameters of blocks.
    definitions: Vec<Option<usize>>,
    fused: Vec<bool>,
    /// The number of instructions in each statement's loop nest.
    bodies: Vec<usize>,
    /// For each value, where it would be computed.
    sites: Vec<Sites>,
    /// For each value None: for a single statement, all operands are in memory.
    in_memory: Vec<Option<(&'a Op, &'a Stmt)>>,
    /// For scalars, the number of operations that compute them from values that are not pointwise.
    scalar_sizes: Vec<usize>,
    /// For each value, how it is computed.
    chains: Vec<Chain>,
    /// For each fused value, how often it is computed.
    costs: Vec<Repetition>,
    /// For each fused value, the statements in whose loop nests it is computed.
    roots: Vec<Vec<usize>>,
    /// The loops that run in kernels, by statement.
    loops: BTreeMap<usize, PointwiseLoop<'a>>,
    /// For each value, whether the function of the runtime that uses it computes it internally.
    left_out: Vec<bool>,
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
            stmt.results.iter().for_each(|result| self.definitions[result.0 as usize] = Some(user));
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
            // An operand that is used twice is computed twice, so chains of such statements double.
            let sizes = stmt.args.iter().map(|arg| self.scalar_sizes[arg.0 as usize]);
            let own = usize::from(self.func.flops(stmt) > 0);
            self.scalar_sizes[result.0 as usize] = sizes.fold(own, usize::saturating_add);
        }
    }

    /// Measures the computation of a value, of whose operands those with several users count as stored if they take long.
    fn measure_chain(&mut self, number: usize) {
        let (stmt, _) = self.stmts[number];
        let mut chain = Chain::default();
        if let (&[value], Some(op)) = (stmt.results.as_slice(), stmt.op())
            && let (Some(point), false) = (op.rules().lowered().expression(), op.has_effect())
            && let Some(terms) = self.terms(op, stmt)
        {
            let own = self.work(point, stmt);
            (chain.own, chain.work) = (Some(own), own);
            let mut args = stmt.args.clone();
            args.dedup();
            for arg in args {
                let of = &self.chains[arg.0 as usize];
                let alone = self.uses[arg.0 as usize].len() == 1 || of.work <= REPEATED_INSTRUCTIONS.0;
                let spreads = self.elements(value) > self.elements(arg) && terms == 1 && of.work > 0;
                if of.own.is_some() && alone && !spreads {
                    chain.work += terms * of.work;
                    chain.leaves.extend(of.leaves.iter().copied());
                } else {
                    chain.leaves.push(arg);
                }
            }
            chain.leaves.sort_unstable();
            chain.leaves.dedup();
            chain.leaves.truncate(MANY_LEAVES);
            if terms > 1 && chain.work > LONG_EXPRESSION {
                chain = Chain::default();
            }
        }
        for &result in &stmt.results {
            self.chains[result.0 as usize] = chain.clone();
        }
    }

    /// The number of elements of an operand from which an expression computes an element; None for reductions that are not expressions.
    fn terms(&self, op: &Op, stmt: &Stmt) -> Option<usize> {
        match op.rules().lowered() {
            Lowered::Reduction(reduction) => {
                let count = reduction.combined(stmt, self.func, self.mesh)?;
                (1..=SHORT_REDUCTION).contains(&count).then_some(count)
            }
            Lowered::Point(_)
            | Lowered::Nest(_)
            | Lowered::Alias(_)
            | Lowered::Library(_)
            | Lowered::Exchange(_)
            | Lowered::Request => Some(1),
        }
    }

    fn decide(&mut self, number: usize) {
        let (stmt, block) = self.stmts[number];
        let (&[value], Some(op)) = (stmt.results.as_slice(), stmt.op()) else { return };
        let Some(own) = self.chains[value.0 as usize].own.filter(|_| !self.left_out[value.0 as usize]) else { return };
        debug_assert!(!op.has_effect(), "a statement with an effect is no expression");
        if op.rules().properties().effect == Effect::Stops && self.takes_nothing(value) {
            return;
        }
        let Some(Placed { sites, repeats, roots, cost }) = self.placed(value) else { return };
        // A reduction of one element has its own work: it frees an array that changes in place afterwards.
        let short = self.is_scalar(value) && self.scalar_sizes[value.0 as usize] <= SHORT_SCALARS;
        let free =
            stmt.args.is_empty() || op.rules().lowered().point().is_some() && (self.func.flops(stmt) == 0 || short);
        let is_here = roots.iter().all(|&root| self.stmts[root].1 == block);
        let alone = matches!(sites, Sites::One { .. }) && !repeats && is_here;
        if !(free || alone || is_here && self.is_cheaper(value, op, cost)) {
            return;
        }
        // Literals take no instruction.
        let work = own * cost.copies;
        if work > 0 && roots.iter().any(|&root| self.bodies[root] >= LONG_NEST) {
            return;
        }
        self.fused[value.0 as usize] = true;
        // The operands of a repeated value are computed as often.
        self.sites[value.0 as usize] = if repeats { Sites::Many } else { sites };
        self.costs[value.0 as usize] = cost;
        roots.iter().for_each(|&root| self.bodies[root] += work);
        debug_assert!(roots.iter().all(|&root| root > number), "a value is computed before its operands");
        self.roots[value.0 as usize] = roots;
    }

    /// Whether it takes less time to compute a value in each place where it is used than to store it, and no more memory.
    fn is_cheaper(&self, value: Value, op: &Op, cost: Repetition) -> bool {
        let chain = &self.chains[value.0 as usize];
        let bytes = |value: Value| self.elements(value) * self.func.ty(value).dtype().size();
        let most = if bytes(value) > BEYOND_CACHES { REPEATED_INSTRUCTIONS.1 } else { REPEATED_INSTRUCTIONS.0 };
        // Arguments are held anyway, and scalars take no room.
        let is_held = |leaf: &&Value| !self.func.body.params.contains(leaf) && !self.is_scalar(**leaf);
        let held: usize = chain.leaves.iter().filter(is_held).map(|&leaf| bytes(leaf)).sum();
        op.rules().properties().effect == Effect::None
            && (cost.times - 1.0) * chain.work as f64 <= most as f64
            && chain.leaves.len() < MANY_LEAVES
            && held <= bytes(value)
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

    /// The values with several users, all of which are functions of the runtime that compute it internally.
    fn computed_by_all(&self) -> BTreeSet<Value> {
        let is_library = |number: usize| {
            let (stmt, _) = self.stmts[number];
            matches!(stmt.op().map(|op| op.rules().lowered()), Some(Lowered::Library(_)))
        };
        let users = |value: &Value| {
            let uses = self.uses[value.0 as usize].iter();
            uses.map(|site| if let Use::Operand(user, _) = site { Some(*user) } else { None })
        };
        let results = self.stmts.iter().flat_map(|(stmt, _)| &stmt.results).copied();
        let mut all: BTreeSet<Value> = results
            .filter(|value| users(value).count() > 1 && users(value).all(|user| user.is_some_and(is_library)))
            .collect();
        // A function may compute an operand only if it computes the other one as well, so one value can exclude others.
        loop {
            let functions: BTreeSet<usize> = all.iter().flat_map(|value| users(value).flatten()).collect();
            let excluded = functions.iter().flat_map(|&number| {
                let computed = self.computes(number, &all);
                let operands = self.stmts[number].0.args.iter().copied();
                operands.filter(move |operand| !computed.contains(operand))
            });
            let excluded: BTreeSet<Value> = excluded.collect();
            let before = all.len();
            all.retain(|value| !excluded.contains(value));
            if all.len() == before {
                return all;
            }
        }
    }

    /// Does not store values that a function of the runtime computes internally from values in the same block.
    fn leave_out(&mut self, number: usize, shared: &BTreeSet<Value>) {
        for value in self.computes(number, shared) {
            debug_assert!(
                !self.stmts[number].0.results.contains(&value),
                "a function computes a value before its own result"
            );
            self.left_out[value.0 as usize] = true;
            self.fused[value.0 as usize] = true;
        }
    }

    /// The values that the function of a statement computes internally from values in the same block: those without other users, and
    /// some shared ones.
    fn computes(&self, number: usize, shared: &BTreeSet<Value>) -> Vec<Value> {
        let (stmt, block) = self.stmts[number];
        let Some(Lowered::Library(library)) = stmt.op().map(|op| op.rules().lowered()) else { return Vec::new() };
        let definition = |value: Value, users: Users| {
            let is_only = matches!(self.uses[value.0 as usize].as_slice(), [Use::Operand(..)]);
            if !is_only && (users == Users::One || !shared.contains(&value)) {
                return None;
            }
            let (stmt, its_block) = self.stmts[self.definitions[value.0 as usize]?];
            (its_block == block).then_some((stmt.op()?, stmt))
        };
        let is_empty = |value: &Value| self.func.ty(*value).array.is_empty();
        if stmt.args.iter().chain(&stmt.results).any(is_empty) {
            return Vec::new();
        }
        let operands = 0..stmt.args.len();
        operands.flat_map(|operand| library.computes(operand, stmt, self.func, self.mesh, &definition)).collect()
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

    /// The place of the value, if it is fused; None if a user needs it in memory.
    fn placed(&self, value: Value) -> Option<Placed> {
        let mut placed = Placed { sites: Sites::None, repeats: false, roots: Vec::new(), cost: Repetition::NEVER };
        // Those at the index of their loop nest are one.
        let mut aligned: Vec<(usize, Repetition)> = Vec::new();
        let mut seen = Vec::new();
        for &site in &self.uses[value.0 as usize] {
            let Use::Operand(user, operand) = site else { return None };
            if self.stmts[user].0.results.first().is_some_and(|result| self.left_out[result.0 as usize]) {
                // The function reads the first operand, and knows the others.
                if operand == 0 {
                    return None;
                }
                continue;
            }
            let read = self.read_by(value, user, operand)?;
            let fused = self.stmts[user].0.results.first().filter(|result| self.fused[result.0 as usize]);
            let own = [user];
            for &root in fused.map_or(own.as_slice(), |result| &self.roots[result.0 as usize]) {
                if !placed.roots.contains(&root) {
                    placed.roots.push(root);
                }
            }
            match read.here {
                Sites::One { root, aligned: true } => {
                    if let Some((_, known)) = aligned.iter_mut().find(|(known, _)| *known == root) {
                        *known = known.max(read.cost);
                    } else {
                        aligned.push((root, read.cost));
                    }
                }
                // Operands of one statement are read at the same index, or nearly always.
                Sites::One { .. } | Sites::Many | Sites::None if seen.contains(&user) => {}
                Sites::One { .. } | Sites::Many | Sites::None => placed.cost = placed.cost.plus(read.cost),
            }
            seen.push(user);
            placed.repeats |= read.repeats;
            placed.sites = match (placed.sites, read.here) {
                (Sites::None, here) => here,
                (Sites::One { root: a, aligned: true }, Sites::One { root: b, aligned: true }) if a == b => {
                    placed.sites
                }
                _ => Sites::Many,
            };
        }
        placed.cost = aligned.iter().fold(placed.cost, |sum, (_, of_root)| sum.plus(*of_root));
        debug_assert!(placed.cost.copies >= placed.roots.len(), "each loop nest computes what it needs");
        Some(placed)
    }

    /// How a statement reads the value as an expression; None if it needs it in memory.
    fn read_by(&self, value: Value, user: usize, operand: usize) -> Option<Read> {
        let (stmt, _) = self.stmts[user];
        debug_assert_eq!(stmt.args[operand], value, "a use is an operand");
        let Some(op) = stmt.op() else {
            let aligned = self.loops.get(&user)?.takes_in_one_kernel(value)?;
            return Some(Read { here: Sites::One { root: user, aligned }, repeats: false, cost: Repetition::ONCE });
        };
        if op.has_effect() {
            return None;
        }
        let lowered = op.rules().lowered();
        let reads = lowered.reads(operand, &self.func.arrays(&stmt.args));
        if reads == Reads::Buffer {
            return None;
        }
        let fused = stmt.results.first().filter(|result| self.fused[result.0 as usize]);
        let is_expression = lowered.point().is_some() || fused.is_some();
        let aligned = !is_expression || is_aligned(&self.func.factors(op, stmt), operand);
        let here = match fused.map(|result| self.sites[result.0 as usize]) {
            None => Sites::One { root: user, aligned },
            Some(Sites::One { root, aligned: outer }) => Sites::One { root, aligned: aligned && outer },
            Some(other) => other,
        };
        let mut read = Read { here, repeats: reads == Reads::Often, cost: Repetition::ONCE };
        if let Some(result) = fused {
            read.cost = self.costs[result.0 as usize];
            read.cost.copies = read.cost.copies.saturating_mul(self.terms(op, stmt).unwrap_or(1));
        }
        if reads == Reads::Often {
            read.cost.times = f64::INFINITY;
        }
        let spread = stmt.results.iter().map(|&result| self.elements(result)).max().unwrap_or(0);
        let ratio = spread as f64 / self.elements(value).max(1) as f64;
        if is_expression && spread > self.elements(value) && !self.is_shared(here, ratio) {
            read.repeats = true;
            read.cost.times *= ratio;
        } else if is_expression && reads == Reads::Once && spread < self.elements(value) {
            // A slice computes the elements that it takes.
            read.cost.times *= ratio;
        }
        Some(read)
    }

    /// Whether all results of a reduction along short dimensions are computed at once, so that a value that all of them need is computed
    /// once.
    fn is_shared(&self, sites: Sites, ratio: f64) -> bool {
        let Sites::One { root, .. } = sites else { return false };
        let (stmt, _) = self.stmts[root];
        let (Some(op), Some(&result)) = (stmt.op(), stmt.results.first()) else { return false };
        if !matches!(op.rules().lowered(), Lowered::Reduction(_)) || self.fused[result.0 as usize] {
            return false;
        }
        let shape = self.func.ty(result).block_shape(self.mesh);
        let (short, long): (Vec<usize>, Vec<usize>) = shape.iter().partition(|&&extent| extent <= SHORT_REDUCTION);
        let trips: usize = short.iter().product();
        is_short(trips as u64) && trips as f64 == ratio && !long.is_empty()
    }
}

/// The loops that run in kernels, by the number of their statement.
fn pointwise_loops<'a>(func: &'a Func, mesh: &Mesh, stmts: &[(&'a Stmt, usize)]) -> BTreeMap<usize, PointwiseLoop<'a>> {
    let used = used(func);
    let all = stmts.iter().enumerate().filter_map(|(number, (stmt, _))| {
        let StmtKind::Control(Control::For(op)) = &stmt.kind else { return None };
        Some((number, PointwiseLoop::of(func, mesh, &used, op, stmt)?))
    });
    all.collect()
}

/// Whether the statement joins the blocks of an array.
fn is_gather(stmt: &Stmt) -> bool {
    stmt.as_op::<Reshard>().is_some_and(|op| op.step == ReshardStep::Collective(CollectiveKind::AllGather))
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
    fn reductions_of_few_elements_are_expressions() {
        for of_three in ["sum(x * x, axis=1)", "max(x, axis=-1)", "argmin(abs(x), axis=1)", "prod(x, axis=(1,))"] {
            assert_eq!(
                kernels(&format!("fn main(x: f32[64, 3]) {{ let s = {of_three}; s * s + 1 }}")),
                1,
                "{of_three}"
            );
        }
        assert_eq!(kernels("fn main(x: f32[64, 2, 2]) { sqrt(sum(x * x, axis=(1, 2))) }"), 1);
        assert_eq!(kernels("fn main(x: f32[64, 5]) { sqrt(sum(x * x, axis=1)) }"), 2);
        // Four times a long function is too much for an expression.
        assert_eq!(kernels("fn main(x: f32[64, 4]) { sqrt(sum(exp(x), axis=1)) }"), 2);
    }

    #[test]
    fn short_work_is_repeated_rather_than_stored() {
        let pairs = "let d = x[None] - x[:, None]; let w = 1 / (sum(d * d, axis=-1) + 1);";
        assert_eq!(kernels(&format!("fn main(x: f32[64, 3]) {{ {pairs} sum(d * w[:, :, None], axis=1) }}")), 1);
        assert_eq!(kernels("fn main(x: f32[64, 64]) { let c = x - mean(x); (sum(c * c, axis=0), 2 * c) }"), 3);
        // Each slice computes its part.
        let planes = "let c = u32(p); c[:, 0] * 3 + c[:, 1] * 5 + c[:, 2]";
        assert_eq!(kernels(&format!("fn main(p: u8[640000, 3]) {{ {planes} }}")), 1);
        // Two arrays would be held instead of one, or work is long.
        let source =
            |c: &str| format!("fn main(x: f32[64], y: f32[64]) {{ let a = cumsum(x); let c = {c}; (sum(c), 2 * c) }}");
        assert_eq!(
            (kernels(&source("a - 1")), kernels(&source("a - y")), kernels(&source("a - cumprod(y)"))),
            (3, 3, 5)
        );
        assert_eq!(kernels("fn main(x: f32[64]) { let c = exp(x); (sum(c), 2 * c) }"), 3);
        // Every trip would repeat it.
        let trips = |c: &str| {
            let body = "let mut s = 0.0; for i in 0..9 { s = s + sum(c * s); }";
            kernels(&format!("fn main(x: f32[64]) {{ let c = {c}; {body} (s, c * 2) }}"))
        };
        assert_eq!(trips("x - 1"), trips("exp(x)"));
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
