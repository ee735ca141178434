//! Makes operands agree: after this pass every op is local under its factor rule.
//!
//! ```text
//! let h = relu(x @ w1) @ w2;   // h: f32[8,16], relu(..): f32[8,64@Y], w2: f32[64@Y,16]
//! =>
//! let v7: f32[8,16]{U:Y} = einsum("ik,kj->ij", v5, w2);
//! let h: f32[8,16] = reshard(v7, P(_,_));             // the product sums over a dimension that is split over Y
//! ```
//!
//! For each op the pass chooses one list of axes per factor, among the lists of its operands and its wanted result. It takes the choice
//! that moves the fewest bytes, then the one with the least work on each device. An operand in another layout is resharded by a request
//! before the op, in the outermost loop that does not define the operand; equal requests are made once. If a broadcast, a cast, padding or
//! windows made the operand from fewer bytes, these bytes are resharded, and the operand is made again. Random numbers are generated again
//! (`drawn.rs`). The result gets the layout that the factors imply, partial along the axes of split summed factors, and is resharded to the
//! layout that propagation decided.
//!
//! A sum that linear ops use is combined after them where that moves fewer bytes (`sums.rs`): once for `x @ y + x @ z`, once after
//! a loop that accumulates into a carried value.
//!
//! Control flow keeps layouts: the initial value, the body's result and the result of a branch have the layout of the carried
//! value.
//!
//! Arguments and results of the program are whole: its caller cannot have partial sums. A parameter with partial sums is the argument on
//! the first devices along their axes and zero on the others; a partial result is summed.

mod costs;
mod drawn;
mod sums;

use costs::Costs;
use spmdc_abi::ReduceOp;
use spmdc_ir::mismatch::called;
use spmdc_ir::op::Op;
use spmdc_ir::program::build::statement;
use spmdc_ir::program::control::{Control, ForLoop, ManualRegion, WhileLoop};
use spmdc_ir::program::local::window_of;
use spmdc_ir::program::local::{Alignments, alignments_of, kept_sums, natural, needed};
use spmdc_ir::program::origin::{ASKED, Origin};
use spmdc_ir::program::{Block, Func, Module, Stage, Stmt, StmtKind, Value};
use spmdc_ir::rules::{Combines, Effect, Lowered, Typing};
use spmdc_layout::cost::{self, Room};
use spmdc_layout::crossings;
use spmdc_layout::factors::FactorKind;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::projection::{Assignment, Projection};
use spmdc_layout::reshard::{Planner, Plans};
use spmdc_layout::sharding::Sharding;
use spmdc_layout::types::{AxisSet, Type};
use spmdc_layout::window::{DimMap, Reaches, WindowMap};
use spmdc_ops::broadcast::Broadcast;
use spmdc_ops::reshape::Reshape;
use spmdc_ops::reshard::Reshard;
use spmdc_ops::slice::Slice;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of combinations that are compared; if there are more, factors are chosen one after the other.
const MAX_COMBINATIONS: usize = 4096;

/// Inserts requests where layouts disagree.
pub fn insert_reshards(module: Module, plans: &Plans, room: Room) -> Module {
    debug_assert_eq!(module.stage, Stage::Propagated, "no dimension is open any more");
    let Module { stage, mesh, mut func } = module;
    let body = std::mem::take(&mut func.body);
    let depth = vec![0; func.values.len()];
    let mut inserter = Inserter {
        mesh: &mesh,
        planner: Planner::new(&mesh, plans),
        depth,
        func,
        open_blocks: Vec::new(),
        trips: 1.0,
        room,
        pinned: pinned(&body),
        stretched: BTreeMap::new(),
        drawn: BTreeMap::new(),
    };
    let mut body = sums::defer(&mut inserter, body);
    let results = body.results.iter().map(|&result| Some(without_sums(&inserter.sharding(result)))).collect();
    inserter.begin(&body, true);
    inserter.take_whole(&mut body.params);
    let body = inserter.end(body, results, "a result is whole where it leaves the program");
    debug_assert!(inserter.open_blocks.is_empty(), "a block was begun and not ended");
    debug_assert_eq!(inserter.depth.len(), inserter.func.values.len(), "every value stands in a block");
    let mut func = inserter.func;
    func.body = body;
    Module { stage, mesh, func }
}

/// The values to which the program gives a layout.
fn pinned(body: &Block) -> BTreeSet<Value> {
    let mut found = BTreeSet::new();
    body.walk(&mut |stmt| {
        if stmt.as_op::<Reshard>().is_some() {
            found.insert(stmt.args[0]);
        }
    });
    found
}

fn without_sums(sharding: &Sharding) -> Sharding {
    sharding.clone().with_unreduced(AxisSet::EMPTY, ReduceOp::Sum)
}

struct Inserter<'a> {
    mesh: &'a Mesh,
    planner: Planner<'a>,
    func: Func,
    /// For each value, the number of blocks around it.
    depth: Vec<usize>,
    /// The blocks that are being rewritten, innermost last.
    open_blocks: Vec<OpenBlock>,
    /// The trip count of the next block to rewrite.
    trips: f64,
    /// Whether memory may be traded against bytes.
    room: Room,
    /// The values to which the program gives a layout.
    pinned: BTreeSet<Value>,
    /// Results of ops that make more bytes of their operand, such as broadcasts: the op and the operand.
    stretched: BTreeMap<Value, (Op, Value)>,
    /// Values that every device can make in any layout, such as random numbers, and how.
    drawn: BTreeMap<Value, Stmt>,
}

struct OpenBlock {
    stmts: Vec<Stmt>,
    /// The requests made in this block: value, layout, result.
    made: Vec<(Value, Sharding, Value)>,
    /// No statement moves out of this block: it may not run at all, or it does not see the values outside.
    closed: bool,
    /// The number of times that it runs for each run of the enclosing block.
    trips: f64,
    /// Values that are resharded once for several windows on them, and that layout.
    shared: BTreeMap<Value, Sharding>,
}

impl Inserter<'_> {
    /// Rewrites a block; each result is resharded to its entry in `wanted`, if there is one.
    fn block(&mut self, block: Block, wanted: Vec<Option<Sharding>>, closed: bool, why: &str) -> Block {
        self.begin(&block, closed);
        self.end(block, wanted, why)
    }

    fn begin(&mut self, block: &Block, closed: bool) {
        let trips = std::mem::replace(&mut self.trips, 1.0);
        let shared = self.shared_by_windows(block);
        self.open_blocks.push(OpenBlock { stmts: Vec::new(), made: Vec::new(), closed, trips, shared });
        let depth = self.open_blocks.len() - 1;
        block.params.iter().for_each(|param| self.depth[param.0 as usize] = depth);
    }

    fn end(&mut self, block: Block, wanted: Vec<Option<Sharding>>, why: &str) -> Block {
        for stmt in block.stmts {
            self.stmt(stmt);
        }
        debug_assert_eq!(block.results.len(), wanted.len(), "every result of a block has its wish");
        let results = block.results.iter().zip(wanted);
        let results = results.map(|(&result, wanted)| match wanted {
            Some(wanted) => {
                let origin = self.func.info(result).origin.because(why);
                self.laid_out(result, &wanted, origin)
            }
            None => result,
        });
        let results = results.collect();
        let open = self.open_blocks.pop().expect("this block was begun");
        Block { params: block.params, stmts: open.stmts, results }
    }

    /// Makes the parameters of the program whole, and derives partial sums from them where the body wants partial sums.
    fn take_whole(&mut self, params: &mut [Value]) {
        debug_assert_eq!(self.open_blocks.len(), 1, "parameters are those of the program");
        for param in params {
            let (partial, wanted) = (*param, self.sharding(*param));
            let whole = without_sums(&wanted);
            if whole != wanted {
                let origin = self.func.info(partial).origin.because("an argument is whole where it enters the program");
                *param = self.new_value(Type { sharding: whole.clone(), ..self.func.ty(partial).clone() }, &origin, 0);
                let stmts = self.moves(*param, partial, &origin, 0);
                self.open_blocks[0].stmts.extend(stmts);
                self.open_blocks[0].made.push((partial, whole, *param));
            }
        }
    }

    /// The value in another layout.
    fn laid_out(&mut self, value: Value, to: &Sharding, origin: Origin) -> Value {
        if self.func.ty(value).sharding == *to {
            return value;
        }
        let at = self.reach(value);
        let known = self.open_blocks[at..].iter().flat_map(|open| &open.made);
        if let Some((_, _, made)) = known.into_iter().find(|(of, sharding, _)| *of == value && sharding == to) {
            return *made;
        }
        if let Some(made) = self.drawn_again(value, to, &origin) {
            return made;
        }
        if let Some(made) = self.stretched_later(value, to, &origin) {
            return made;
        }
        let ty = Type { sharding: to.clone(), ..self.func.ty(value).clone() };
        let grows = costs::more_held(&ty.array, &self.sharding(value), to, self.mesh) > 0;
        let at = if grows && self.room == Room::Scarce { self.open_blocks.len() - 1 } else { at };
        let made = self.new_value(ty, &origin, at);
        let stmts = self.moves(value, made, &origin, at);
        self.open_blocks[at].stmts.extend(stmts);
        self.open_blocks[at].made.push((value, to.clone(), made));
        made
    }

    /// The outermost block in which a value can be brought to another layout.
    fn reach(&self, value: Value) -> usize {
        let mut at = self.open_blocks.len() - 1;
        debug_assert!(self.depth[value.0 as usize] <= at, "{value} is used outside of its block");
        while at > self.depth[value.0 as usize] && !self.open_blocks[at].closed {
            at -= 1;
        }
        at
    }

    /// For a statement of a loop that takes a different part of an array in each trip: the memory for gathering more of the array before
    /// the loop. It is zero if the program states the layout of the part in each trip.
    fn before_loop(&self, stmt: &Stmt) -> Option<Room> {
        let takes = |op: &Op| matches!(op.rules().properties().combines, Combines::Places(_));
        let (Some((&array, places)), [part], true) =
            (stmt.args.split_first(), stmt.results.as_slice(), stmt.op().is_some_and(takes))
        else {
            return None;
        };
        let before = self.reach(array);
        let varies = places.iter().any(|&place| self.reach(place) > before);
        let is_part = self.func.ty(*part).array.len() < self.func.ty(array).array.len();
        let room = if self.pinned.contains(part) { Room::Scarce } else { self.room };
        (varies && is_part).then_some(room)
    }

    /// Whether a statement of a loop takes parts of an array, and devices would hold considerably more of it before the loop in this
    /// layout.
    fn is_held_in_loop(&self, stmt: &Stmt, to: &Sharding) -> bool {
        let held = |_| {
            let ty = self.func.ty(stmt.args[0]);
            cost::held_in_loop(costs::more_held(&ty.array, &ty.sharding, to, self.mesh), Room::Ample)
        };
        self.before_loop(stmt).map_or(0.0, held) > 0.0
    }

    /// The number of times that statements of a block run.
    fn weight(&self, depth: usize) -> f64 {
        debug_assert!(depth < self.open_blocks.len(), "block {depth} has been left");
        self.open_blocks[..=depth].iter().map(|open| open.trips).product()
    }

    /// For the result of an op that enlarges its operand, such as a broadcast, a cast to a wider type, padding or windows. Returns the op,
    /// its operand, and the layout of the operand that results in the wanted layout, without another exchange of its neighbours.
    fn source(&self, value: Value, to: &Sharding) -> Option<(&Op, Value, Sharding)> {
        let (op, small) = self.stretched.get(&value)?;
        let (ty, from) = (self.func.ty(value), self.func.ty(*small));
        if to.is_aligned() || !to.unreduced.is_empty() {
            return None;
        }
        let is_broadcast = op.is::<Broadcast>();
        let are_whole = |layout: &Sharding| !layout.is_aligned() && layout.unreduced.is_empty();
        // A broadcast of partial sums is one of whole sums, too.
        if !(is_broadcast || are_whole(&ty.sharding) && are_whole(&from.sharding)) {
            return None;
        }
        let rule = op.rules().factors(&[&from.array], &[&ty.array]);
        let results = || to.dims.iter().zip(&ty.sharding.dims).zip(&rule.results[0]);
        let can_move = results().all(|((wanted, here), factors)| {
            factors.iter().all(|&factor| match rule.factors[factor].kind {
                FactorKind::Pass => true,
                FactorKind::Window => wanted.axes == here.axes,
                FactorKind::Whole | FactorKind::Reduce(_) => wanted.axes.is_empty(),
            })
        });
        let axes_of = |(dim, factors): (usize, &Vec<usize>)| {
            let same = results().find(|(_, result)| *result == factors);
            match same {
                Some(((wanted, _), _)) => Some(wanted.axes.clone()),
                None => (from.shape()[dim] == 1).then(Vec::new),
            }
        };
        let axes: Option<Vec<Vec<u8>>> = rule.operands[0].iter().enumerate().map(axes_of).collect();
        let wanted = Sharding::closed(axes.filter(|_| can_move)?);
        let is_window = |factor: &usize| rule.factors[*factor].kind == FactorKind::Window;
        let mut dims = rule.operands[0].iter().zip(wanted.dims.iter().zip(&from.sharding.dims));
        let stays = dims.all(|(factors, (to, from))| !factors.iter().any(is_window) || to.axes == from.axes);
        stays.then_some((op, *small, wanted))
    }

    /// The value and the layout for which devices exchange data to bring `value` to another layout.
    fn moved(&self, value: Value, to: &Sharding) -> (Value, Sharding) {
        if self.is_drawn_again(value, to) {
            return (value, self.sharding(value));
        }
        let (mut value, mut to) = (value, to.clone());
        while self.func.ty(value).sharding != to
            && let Some((_, small, wanted)) = self.source(value, &to)
        {
            (value, to) = (small, wanted);
        }
        (value, to)
    }

    /// Reshards the smaller operand from which the value is made, and makes it again in the wanted layout.
    fn stretched_later(&mut self, value: Value, to: &Sharding, origin: &Origin) -> Option<Value> {
        let (op, small, wanted) = self.source(value, to)?;
        let op = op.clone();
        // A broadcast is computed where it is used; other values are made once.
        let is_broadcast = op.is::<Broadcast>();
        let at = if is_broadcast { self.open_blocks.len() - 1 } else { self.reach(value) };
        let ty = Type { sharding: to.clone(), ..self.func.ty(value).clone() };
        let moved = self.laid_out(small, &wanted, origin.clone());
        let made = self.new_value(ty, origin, at);
        self.stretched.insert(made, (op.clone(), moved));
        let stmt = statement(&self.func, self.mesh, (op, &[moved]), &[made], origin);
        self.open_blocks[at].stmts.push(stmt);
        if !is_broadcast {
            self.open_blocks[at].made.push((value, to.clone(), made));
        }
        Some(made)
    }

    /// Gives `from` the layout of `to`: by a request, or by windows where a layout is aligned with another array.
    fn moves(&mut self, from: Value, to: Value, origin: &Origin, depth: usize) -> Vec<Stmt> {
        let (here, there) = (self.sharding(from), self.sharding(to));
        let maps: Vec<DimMap> = self.func.ty(from).shape().iter().map(|&size| DimMap::identity(size)).collect();
        let mut ways = Vec::new();
        if here.is_aligned() || there.is_aligned() {
            // Partial values have no alignments; a window needs whole values.
            let whole = here.clone().with_unreduced(there.unreduced, there.combine);
            if whole != here {
                ways.push(whole.clone());
            }
            if Reaches::new(&maps, &whole, &there, self.mesh).is_none() {
                ways.extend([whole.without_alignment(), there.without_alignment()]);
            }
        }
        ways.push(there);
        let (mut at, mut stmts) = (from, Vec::new());
        for (i, way) in ways.iter().enumerate() {
            if self.func.ty(at).sharding == *way && i + 1 < ways.len() {
                continue;
            }
            let next = match i + 1 == ways.len() {
                true => to,
                false => self.new_value(Type { sharding: way.clone(), ..self.func.ty(from).clone() }, origin, depth),
            };
            let is_aligned = self.func.ty(at).sharding.is_aligned() || way.is_aligned();
            let op: Op = if is_aligned {
                Slice::identity(&self.func.ty(from).array).into()
            } else {
                Reshard::request(way.clone()).into()
            };
            stmts.push(statement(&self.func, self.mesh, (op, &[at]), &[next], origin));
            at = next;
        }
        debug_assert_eq!(at, to, "the last way leads to what was asked for");
        stmts
    }

    fn new_value(&mut self, ty: Type, origin: &Origin, depth: usize) -> Value {
        debug_assert_eq!(self.depth.len(), self.func.values.len(), "every value stands in a block");
        self.depth.push(depth);
        self.func.new_value(ty, origin.clone())
    }

    fn push(&mut self, stmt: Stmt) {
        let depth = self.open_blocks.len() - 1;
        self.note_drawn(&stmt);
        stmt.results.iter().for_each(|result| self.depth[result.0 as usize] = depth);
        if let (Some(op), &[small], &[large]) = (stmt.op(), &stmt.args[..], &stmt.results[..])
            && !op.has_effect()
            && op.rules().properties().group().is_none()
            && matches!(op.rules().typing(), Typing::ByFactors(_))
        {
            let bytes =
                |value: Value| self.func.ty(value).array.len() as u64 * self.func.ty(value).dtype().size() as u64;
            if bytes(small) < bytes(large) {
                self.stretched.insert(large, (op.clone(), small));
            }
        }
        self.open_blocks[depth].stmts.push(stmt);
    }

    fn sharding(&self, value: Value) -> Sharding {
        self.func.ty(value).sharding.clone()
    }

    fn stmt(&mut self, mut stmt: Stmt) {
        let Stmt { kind, args, results, origin } = &mut stmt;
        match kind {
            StmtKind::Control(Control::For(op)) => self.for_loop(op, args, results, origin),
            StmtKind::Control(Control::While(op)) => self.while_loop(op, args, results, origin),
            StmtKind::Control(Control::Branch(op)) => {
                self.whole_scalars(args, origin);
                let wanted: Vec<Option<Sharding>> = results.iter().map(|&result| Some(self.sharding(result))).collect();
                let why = "both branches give this value in one layout";
                for block in [&mut op.then, &mut op.otherwise] {
                    *block = self.block(std::mem::take(block), wanted.clone(), true, why);
                }
            }
            StmtKind::Control(Control::Manual(op)) => self.region(op, args, results, origin),
            // A reshard of the program is a request already.
            StmtKind::Op(op) if op.is::<Reshard>() => {
                if origin.reason.is_empty() {
                    *origin = origin.because(ASKED);
                }
            }
            StmtKind::Op(_) => {
                return match window_of(&self.func, &stmt) {
                    Some(map) => self.window(stmt, &map),
                    None => self.ordinary(stmt),
                };
            }
        }
        self.push(stmt);
    }

    fn for_loop(&mut self, op: &mut ForLoop, args: &mut [Value], results: &[Value], origin: &Origin) {
        let carried = "the loop carries this value in another layout";
        let (bounds, inits) = args.split_at_mut(op.bounds());
        self.whole_scalars(bounds, origin);
        let carries = op.body.params.len() - 1;
        debug_assert_eq!(inits.len(), carries, "each carried value has its beginning");
        for (init, param) in inits.iter_mut().zip(&op.body.params[1..]) {
            let wanted = self.sharding(*param);
            *init = self.laid_out(*init, &wanted, origin.because(carried));
        }
        let wanted = |i: usize| {
            let mut wanted = self.sharding(results[i]);
            if i >= carries {
                wanted.dims.remove(0);
            }
            Some(wanted)
        };
        let wanted = (0..results.len()).map(wanted).collect();
        self.trips = cost::trips_inside(op.trips());
        op.body = self.block(std::mem::take(&mut op.body), wanted, false, carried);
    }

    fn while_loop(&mut self, op: &mut WhileLoop, args: &mut [Value], results: &[Value], origin: &Origin) {
        let trips = cost::trips_inside(None);
        let carried = "the loop carries this value in another layout";
        for (arg, &param) in args.iter_mut().zip(&op.body.params) {
            let wanted = self.sharding(param);
            *arg = self.laid_out(*arg, &wanted, origin.because(carried));
        }
        let wanted: Vec<Option<Sharding>> = results.iter().map(|&result| Some(self.sharding(result))).collect();
        let (cond, body) = (std::mem::take(&mut op.cond), std::mem::take(&mut op.body));
        self.trips = trips;
        op.cond = self.block(cond, vec![Some(Sharding::replicated(0))], false, "the condition is needed whole");
        self.trips = trips;
        op.body = self.block(body, wanted, false, carried);
    }

    fn region(&mut self, op: &mut ManualRegion, args: &mut [Value], results: &[Value], origin: &Origin) {
        let body = std::mem::take(&mut op.body);
        debug_assert_eq!(op.inputs.len(), args.len(), "each argument of `{}` has its layout", op.name);
        debug_assert_eq!(op.outputs.len(), results.len(), "each result of `{}` has its layout", op.name);
        for ((arg, &param), input) in args.iter_mut().zip(&body.params).zip(&op.inputs) {
            // No device holds a stream: what the region sees of it is read.
            if self.func.ty(*arg).array.is_stream {
                continue;
            }
            let wanted = outside(op, input, &self.sharding(param));
            let why = format!("`{}` takes this argument as {}", op.name, wanted.in_words(self.mesh));
            *arg = self.laid_out(*arg, &wanted, origin.because(why));
        }
        let wanted = results.iter().zip(&op.outputs);
        let wanted = wanted.map(|(&result, output)| Some(inside(output, &self.sharding(result)))).collect();
        op.body = self.block(body, wanted, true, &format!("`{}` gives its result in this layout", op.name));
    }

    /// Makes bounds and conditions whole.
    fn whole_scalars(&mut self, scalars: &mut [Value], origin: &Origin) {
        for scalar in scalars {
            let origin = origin.because("this scalar decides how the program goes on");
            *scalar = self.laid_out(*scalar, &Sharding::replicated(0), origin);
        }
    }

    /// Values for which one reshard costs less than the halos that several windows of a block fetch.
    fn shared_by_windows(&self, block: &Block) -> BTreeMap<Value, Sharding> {
        let mut windows: BTreeMap<Value, Vec<(WindowMap, Value)>> = BTreeMap::new();
        for stmt in &block.stmts {
            if let Some(map) = window_of(&self.func, stmt) {
                windows.entry(stmt.args[0]).or_default().push((map, stmt.results[0]));
            }
        }
        windows.retain(|_, windows| windows.len() > 1);
        let shared =
            windows.into_iter().filter_map(|(value, windows)| Some((value, self.shared_layout(value, &windows)?)));
        shared.collect()
    }

    fn shared_layout(&self, value: Value, windows: &[(WindowMap, Value)]) -> Option<Sharding> {
        let ty = self.func.ty(value);
        let from = &ty.sharding;
        let layouts = || windows.iter().map(|(_, result)| &self.func.ty(*result).sharding).chain([from]);
        if layouts().any(|layout| layout.is_aligned() || !layout.unreduced.is_empty()) {
            return None;
        }
        let mut to = from.clone();
        for (dim, layout) in to.dims.iter_mut().enumerate() {
            let wanted = &self.func.ty(windows[0].1).sharding.dims[dim];
            let is_wanted = |(map, result): &(WindowMap, Value)| {
                map.dims[dim].is_identity() && self.func.ty(*result).sharding.dims[dim] == *wanted
            };
            if windows.iter().all(is_wanted) {
                layout.clone_from(wanted);
            }
        }
        if to == *from || to.repeated_axis().is_some() {
            return None;
        }
        let fetched = |from: &Sharding| -> Option<f64> {
            windows.iter().map(|(map, result)| self.fetched(map, from, *result)).sum()
        };
        (self.planner.cost(&ty.array, from, &to) + fetched(&to)? < fetched(from)?).then_some(to)
    }

    /// The cost of the exchange by which a window fetches missing elements of an operand in layout `from`.
    fn fetched(&self, map: &WindowMap, from: &Sharding, result: Value) -> Option<f64> {
        let ty = self.func.ty(result);
        let reaches = Reaches::new(&map.dims, from, &ty.sharding, self.mesh)?;
        let halos = reaches.halos();
        let bytes =
            halos.iter().map(|&dim| reaches.halo_type(dim, ty, self.mesh).block_bytes(self.mesh)).sum::<usize>();
        let beside = crossings::beside_others(from.used_axes().union(ty.sharding.used_axes()), self.mesh);
        Some(crossings::exchange(!halos.is_empty(), bytes as f64, bytes as f64 * beside as f64, self.mesh))
    }

    /// A window fetches missing elements by halos, so operand and result may have different layouts.
    fn window(&mut self, mut stmt: Stmt, map: &WindowMap) {
        let (from, to) = (self.sharding(stmt.args[0]), self.sharding(stmt.results[0]));
        let sums = kept_sums(&self.func, &stmt);
        let whole = |layout: &Sharding| layout.clone().with_unreduced(sums, ReduceOp::Sum);
        let (mut wanted, natural) = (whole(&from), whole(&to));
        let shared = self.open_blocks.last().and_then(|open| open.shared.get(&stmt.args[0]));
        if let Some(shared) = shared {
            wanted.dims.clone_from(&shared.dims);
        } else if wanted != from || Reaches::new(&map.dims, &wanted, &natural, self.mesh).is_none() {
            wanted.dims.clone_from(&to.dims);
        }
        let name = called(stmt.name());
        let why = match from.unreduced == sums {
            true => format!("{name} needs this operand as {}", wanted.in_words(self.mesh)),
            false => format!("{name} needs the whole sum"),
        };
        stmt.args[0] = self.laid_out(stmt.args[0], &wanted, stmt.origin.because(why));
        let result = stmt.results[0];
        if natural == to {
            return self.push(stmt);
        }
        let ty = Type { sharding: natural, ..self.func.ty(result).clone() };
        let made = self.new_value(ty, &stmt.origin, self.open_blocks.len() - 1);
        let origin = stmt.origin.because(format!("the result of {name} is wanted in another layout"));
        stmt.results[0] = made;
        self.push(stmt);
        let after = self.moves(made, result, &origin, self.open_blocks.len() - 1);
        after.into_iter().for_each(|stmt| self.push(stmt));
    }

    fn ordinary(&mut self, mut stmt: Stmt) {
        let StmtKind::Op(op) = &stmt.kind else { return self.push(stmt) };
        let projection = Projection::new(self.func.factors(op, &stmt));
        // A text or a file takes each value from where it lies, so one axis may split several of them.
        let is_text = matches!(op.rules().properties().effect, Effect::Text | Effect::File);
        debug_assert!(!is_text || stmt.results.is_empty(), "a text is no result");
        let (mut assignment, mut alignments) = (Assignment::new(), Alignments::new());
        if !is_text {
            assignment = self.choose(&projection, &stmt);
            alignments = self.alignments_of(&projection, &stmt, &assignment);
        }
        let sums = kept_sums(&self.func, &stmt);
        let name = called(stmt.name());
        for i in 0..projection.rule.operands.len() {
            if is_text {
                assignment = self.own_assignment(&projection, &stmt, i);
                alignments = self.alignments_of(&projection, &stmt, &assignment);
            }
            let ty = self.func.ty(stmt.args[i]);
            let kept = ty.sharding.unreduced.intersect(sums);
            let wanted = needed(&projection, (i, ty.shape()), &assignment, &alignments, self.mesh);
            let wanted = wanted.with_unreduced(kept, ReduceOp::Sum);
            if ty.sharding == wanted {
                continue;
            }
            let mut why = self.reason(&name, &projection, i, stmt.args[i], &wanted);
            if i == 0 && self.is_held_in_loop(&stmt, &wanted) {
                why += "; it is gathered before the loop, as every byte held there saves four";
            }
            stmt.args[i] = self.laid_out(stmt.args[i], &wanted, stmt.origin.because(why));
        }
        let mut after = Vec::new();
        for (i, dims) in projection.rule.results.iter().enumerate() {
            let natural = natural(&projection, dims, &assignment, &alignments, sums);
            let wanted = stmt.results[i];
            if self.func.ty(wanted).sharding == natural {
                continue;
            }
            let why = if natural.unreduced.is_empty() {
                let is_gathered =
                    |&array: &Value| self.is_held_in_loop(&stmt, &Sharding::replicated(self.func.ty(array).rank()));
                match stmt.args.first().is_some_and(is_gathered) {
                    true => "each trip gathers its part, as all parts would be held through the loop".to_string(),
                    false => format!("the result of {name} is wanted in another layout"),
                }
            } else {
                let axes = self.mesh.display_set(natural.unreduced);
                match op.rules().properties().combines {
                    Combines::Places(_) => format!("the place lies on one device along {axes}"),
                    Combines::Diagonal => format!("each device has a part of the diagonal along {axes}"),
                    Combines::Nothing | Combines::Elements(_) => {
                        format!("{name} {} over a dimension that is split over {axes}", combines(natural.combine))
                    }
                }
            };
            let ty = Type { sharding: natural, ..self.func.ty(wanted).clone() };
            let depth = self.open_blocks.len() - 1;
            let made = self.new_value(ty, &stmt.origin, depth);
            stmt.results[i] = made;
            after.extend(self.moves(made, wanted, &stmt.origin.because(why), depth));
        }
        self.push(stmt);
        after.into_iter().for_each(|stmt| self.push(stmt));
    }

    fn reason(&self, name: &str, projection: &Projection, operand: usize, value: Value, wanted: &Sharding) -> String {
        let ty = self.func.ty(value);
        if !ty.sharding.unreduced.minus(wanted.unreduced).is_empty() {
            return format!("{name} needs the whole sum");
        }
        for (dim, factors) in projection.rule.operands[operand].iter().enumerate() {
            let whole = factors.iter().any(|&factor| projection.rule.factors[factor].kind == FactorKind::Whole);
            if whole && !ty.sharding.dims[dim].axes.is_empty() && wanted.dims[dim].axes.is_empty() {
                return format!("{name} needs dimension {dim} whole");
            }
        }
        format!("{name} needs this operand as {}", wanted.in_words(self.mesh))
    }

    /// The axes that an operand has for each factor.
    fn own_assignment(&self, projection: &Projection, stmt: &Stmt, operand: usize) -> Assignment {
        let layout = &self.func.ty(stmt.args[operand]).sharding;
        let axes = |dim: usize| layout.dims[dim].axes.as_slice();
        let own = projection.factors_of(&projection.rule.operands[operand], axes, self.mesh);
        own.into_iter().map(|axes| axes.map(<[u8]>::to_vec).unwrap_or_default()).collect()
    }

    /// Chooses one list of axes for each factor.
    fn choose(&self, projection: &Projection, stmt: &Stmt) -> Assignment {
        if let Some(agreed) = agreed(projection, &self.tensors(projection, stmt), self.mesh) {
            return agreed;
        }
        let candidates = self.candidates(projection, stmt);
        let mut costs = Costs::new(self, projection, stmt, kept_sums(&self.func, stmt));
        match are_few(&candidates) {
            true => costs.cheapest_of_all(&candidates),
            false => costs.cheapest_in_turn(&candidates),
        }
    }

    /// The lists of axes among which each factor's is chosen.
    fn candidates(&self, projection: &Projection, stmt: &Stmt) -> Vec<Vec<Vec<u8>>> {
        let tensors = self.tensors(projection, stmt);
        let is_stuck = |lists: &[Option<&[u8]>], factor: usize| match stmt.op() {
            Some(op) if op.is::<Reshape>() => lists[factor].is_none(),
            Some(op) => matches!(op.rules().lowered(), Lowered::Library(_)) && projection.whole[factor],
            None => false,
        };
        let stuck = self.stuck(projection, stmt, &tensors, is_stuck);
        (0..projection.rule.factors.len()).map(|factor| candidates(projection, factor, &tensors, &stuck)).collect()
    }

    /// The axes of split dimensions that the factors of a reshape cannot express, or that a function of the runtime needs whole. While it runs, they may
    /// split another dimension: two exchanges of parts of blocks can be cheaper than one gather.
    fn stuck(
        &self,
        projection: &Projection,
        stmt: &Stmt,
        tensors: &[Vec<Option<&[u8]>>],
        is_stuck: impl Fn(&[Option<&[u8]>], usize) -> bool,
    ) -> Vec<&[u8]> {
        let rules = projection.rule.operands.iter().chain(&projection.rule.results);
        let values = stmt.args.iter().chain(&stmt.results);
        let mut stuck: Vec<&[u8]> = Vec::new();
        for ((dims, &value), lists) in rules.zip(values).zip(tensors) {
            for (factors, dim) in dims.iter().zip(&self.func.ty(value).sharding.dims) {
                let has_stuck = factors.iter().any(|&factor| is_stuck(lists, factor));
                if has_stuck && !dim.axes.is_empty() && !stuck.contains(&dim.axes.as_slice()) {
                    stuck.push(&dim.axes);
                }
            }
        }
        stuck
    }

    /// For each factor, the blocks of a result or operand that is split as chosen.
    fn alignments_of(&self, projection: &Projection, stmt: &Stmt, assignment: &Assignment) -> Alignments {
        alignments_of(&self.func, projection, stmt, assignment)
    }

    /// For each tensor, operands first, the axes of each factor: now for operands, as wanted for results.
    fn tensors(&self, projection: &Projection, stmt: &Stmt) -> Vec<Vec<Option<&[u8]>>> {
        let rules = projection.rule.operands.iter().chain(&projection.rule.results);
        let values = stmt.args.iter().chain(&stmt.results);
        let tensors = rules.zip(values).map(|(dims, &value)| {
            let layout = &self.func.ty(value).sharding;
            projection.factors_of(dims, |dim| &layout.dims[dim].axes, self.mesh)
        });
        tensors.collect()
    }
}

fn combines(op: ReduceOp) -> &'static str {
    match op {
        ReduceOp::Sum => "sums",
        ReduceOp::Product => "multiplies",
        ReduceOp::Max | ReduceOp::Min | ReduceOp::And | ReduceOp::Or => "reduces",
    }
}

/// The layout outside a region of a value with layout `local` inside.
fn outside(op: &ManualRegion, manual: &Sharding, local: &Sharding) -> Sharding {
    let mut sharding = local.clone();
    for (dim, manual) in sharding.dims.iter_mut().zip(&manual.dims) {
        dim.axes.splice(0..0, manual.axes.iter().copied());
    }
    let partial = manual.unreduced.intersect(op.axes);
    sharding.with_unreduced(local.unreduced.union(partial), local.combine)
}

/// The layout inside a region of a value with layout `global` outside.
fn inside(manual: &Sharding, global: &Sharding) -> Sharding {
    let mut sharding = global.clone();
    for (dim, manual) in sharding.dims.iter_mut().zip(&manual.dims) {
        if dim.axes.starts_with(&manual.axes) {
            dim.axes.drain(..manual.axes.len());
        }
    }
    sharding.with_unreduced(global.unreduced.minus(manual.unreduced), global.combine)
}

/// Whether so few combinations of candidates are possible that all are compared.
fn are_few(candidates: &[Vec<Vec<u8>>]) -> bool {
    let combinations = candidates.iter().try_fold(1usize, |product, list| product.checked_mul(list.len()));
    combinations.is_some_and(|combinations| combinations <= MAX_COMBINATIONS)
}

/// The lists of axes that tensors have for a factor, all prefixes of them, and each of these followed by axes `stuck` elsewhere.
fn candidates(projection: &Projection, factor: usize, tensors: &[Vec<Option<&[u8]>>], stuck: &[&[u8]]) -> Vec<Vec<u8>> {
    if projection.whole[factor] {
        return vec![Vec::new()];
    }
    let mut lists: Vec<Vec<u8>> = Vec::new();
    for axes in tensors.iter().filter_map(|lists| lists[factor]) {
        for end in (1..=axes.len()).rev() {
            if !lists.iter().any(|known| *known == axes[..end]) {
                lists.push(axes[..end].to_vec());
            }
        }
    }
    lists.push(Vec::new());
    for own in lists.clone() {
        for axes in stuck.iter().filter(|axes| axes.iter().all(|axis| !own.contains(axis))) {
            let joined = [own.as_slice(), axes].concat();
            if !lists.contains(&joined) {
                lists.push(joined);
            }
        }
    }
    lists
}

/// The assignment that all tensors already have, if they agree and nothing is summed over devices.
fn agreed(projection: &Projection, tensors: &[Vec<Option<&[u8]>>], mesh: &Mesh) -> Option<Assignment> {
    let mut assignment = vec![Vec::new(); projection.rule.factors.len()];
    let rules = projection.rule.operands.iter().chain(&projection.rule.results);
    for (factor, agreed) in assignment.iter_mut().enumerate() {
        let mut lists =
            tensors.iter().zip(rules.clone()).filter(|(_, dims)| dims.iter().flatten().any(|&f| f == factor));
        let first = lists.next().map_or(Some([].as_slice()), |(lists, _)| lists[factor])?;
        if lists.any(|(lists, _)| lists[factor] != Some(first)) {
            return None;
        }
        if matches!(projection.rule.factors[factor].kind, FactorKind::Reduce(_)) && !first.is_empty() {
            return None;
        }
        *agreed = first.to_vec();
    }
    projection.is_valid(&assignment, mesh).then_some(assignment)
}
