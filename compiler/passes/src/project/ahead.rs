//! Lets a mesh begin later trips of a loop while it waits for the answers to earlier ones.
//!
//! ```text
//! on first:                             one forward, one backward, two trips ahead:
//! for i in 0..12 {                      for i in 0..2 { let a = f(x[i]); ring[i] = a; send(a); }
//!   let a = f(x[i]);                    for i in 0..10 {
//!   send(a);                      =>      let a = f(x[i + 2]); ring[(i + 2) % 3] = a; send(a);
//!   let da = receive();                   let da = receive(); t = t + g(ring[i % 3], da);
//!   t = t + g(a, da);                   }
//! }                                     for i in 10..12 { let da = receive(); t = t + g(ring[i % 3], da); }
//! ```
//!
//! In a pipeline with gradients a stage sends a value forward and needs its cotangent in the same trip, so the stages would work one after
//! the other. An *answer* is a value whose sender has waited, directly or through other meshes, for a value that the mesh has sent in the
//! same trip. The loop is *cut* before the first answer, if nothing before the cut depends on an answer of the trip before. The part before
//! the cut runs some trips ahead; a ring with as many places holds the values that both parts use. Each part runs its trips in their order,
//! so sums keep their bits, and each transfer moves the values of the trips in their order.
//!
//! The number of trips that a mesh works ahead is a multiple of its distance: the number of meshes on the way to the answering mesh. A
//! simulation (`compiler/pipeline`) decides whether working ahead helps, and whether a mesh would wait forever, because a transfer holds
//! one value. So a loop is only cut if the order of all transfers in a trip is known: not if a transfer is in an inner loop.

use spmdc_ir::op::Op;
use spmdc_ir::program::control::{Control, ForLoop};
use spmdc_ir::program::origin::Origin;
use spmdc_ir::program::walk::{defined_values, free_values};
use spmdc_ir::program::{Block, Func, Module, Stmt, StmtKind, Value};
use spmdc_ir::rules::{Effect, Elements, Manual};
use spmdc_kernel::scalar::BinaryOp;
use spmdc_layout::explicit::unknown_layout;
use spmdc_layout::mesh::{AxisKind, Mesh};
use spmdc_layout::types::{ArrayType, DType, Type};
use spmdc_ops::broadcast::Broadcast;
use spmdc_ops::cast::Cast;
use spmdc_ops::concatenate::Concatenate;
use spmdc_ops::constant::Constant;
use spmdc_ops::dynamic_slice::DynamicSlice;
use spmdc_ops::elementwise::Binary;
use spmdc_ops::message::{ReceiveMessage, SendMessage};
use spmdc_ops::region::Places;
use spmdc_ops::reshape::Reshape;
use spmdc_ops::slice::SliceRange;
use spmdc_ops::update::Update;
use std::collections::{BTreeMap, BTreeSet};

/// Where a mesh may cut a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopCut {
    /// The number of statements before the first answer.
    pub before: usize,
    /// The number of meshes on the way to the one that answers.
    pub distance: u64,
}

/// The loops that meshes may cut: by the position of the mesh and the loop's counter, which is the same value on all meshes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoopCuts(BTreeMap<(usize, Value), LoopCut>);

/// The loops that the programs of these meshes may cut.
pub fn loop_cuts(parts: &[&Module]) -> LoopCuts {
    let mut loops: BTreeMap<Value, Vec<(usize, &ForLoop)>> = BTreeMap::new();
    for (at, part) in parts.iter().enumerate() {
        find(&part.func.body, &mut |op| loops.entry(op.body.params[0]).or_default().push((at, op)));
    }
    let mut found = LoopCuts::default();
    for (counter, meshes) in loops {
        let ends: Vec<Vec<Ends>> = meshes.iter().map(|(_, op)| op.body.stmts.iter().map(Ends::of).collect()).collect();
        if ends.iter().flatten().any(|ends| ends.are_in_loop) {
            continue;
        }
        for (own, cut) in cut_of_each(&ends).into_iter().enumerate() {
            let (at, op) = meshes[own];
            let Some(cut) = cut else { continue };
            let module = parts[at];
            if Halves::new(&module.func, &module.mesh, op, cut.before).is_some() {
                found.0.insert((at, counter), cut);
            }
        }
    }
    found
}

impl LoopCuts {
    /// Whether no loop can be cut.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The program of the mesh at this position, which works ahead by `factor` times its distance.
    pub fn applied(&self, at: usize, factor: u64, mut module: Module) -> Module {
        let mut body = std::mem::take(&mut module.func.body);
        let mut cutter = Cutter { func: &mut module.func, mesh: &module.mesh, cuts: self, at, factor };
        cutter.block(&mut body);
        module.func.body = body;
        module
    }
}

/// Visits the loops with known bounds, and those in them.
fn find<'m>(block: &'m Block, visit: &mut dyn FnMut(&'m ForLoop)) {
    for stmt in &block.stmts {
        match &stmt.kind {
            StmtKind::Control(Control::Manual(_)) | StmtKind::Op(_) => {}
            StmtKind::Control(control) => {
                if let Control::For(op) = control
                    && op.range.is_some()
                {
                    visit(op);
                }
                control.blocks().for_each(|inner| find(inner, visit));
            }
        }
    }
}

/// The ends of transfers in a statement.
#[derive(Default)]
pub struct Ends {
    /// The transfers whose values are sent.
    pub sends: BTreeSet<u32>,
    /// The transfers whose values are received.
    pub receives: BTreeSet<u32>,
    /// Whether some of them are in a loop inside the statement.
    pub are_in_loop: bool,
}

impl Ends {
    fn of(stmt: &Stmt) -> Ends {
        let mut ends = Ends::default();
        ends.add(stmt, false);
        ends
    }

    fn add(&mut self, stmt: &Stmt, is_in_loop: bool) {
        let mut is_end = true;
        if let Some(op) = stmt.as_op::<SendMessage>() {
            self.sends.insert(op.channel);
        } else if let Some(op) = stmt.as_op::<ReceiveMessage>() {
            self.receives.insert(op.channel);
        } else {
            is_end = false;
        }
        self.are_in_loop |= is_end && is_in_loop;
        let repeats = matches!(stmt.control(), Some(Control::For(_) | Control::While(_)));
        stmt.blocks().flat_map(|block| &block.stmts).for_each(|stmt| self.add(stmt, is_in_loop || repeats));
    }
}

/// For each mesh with a loop, given by the ends of transfers of its statements, where it may be cut.
pub fn cut_of_each(meshes: &[Vec<Ends>]) -> Vec<Option<LoopCut>> {
    // For each transfer, those that have been received before its value is sent: its sender has waited for them.
    let mut after: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for mesh in meshes {
            let mut received = BTreeSet::new();
            for ends in mesh {
                for channel in &ends.receives {
                    received.insert(*channel);
                    received.extend(after.get(channel).into_iter().flatten().copied());
                }
                for &channel in &ends.sends {
                    let known = after.entry(channel).or_default();
                    let count = known.len();
                    known.extend(&received);
                    changed |= known.len() > count;
                }
            }
        }
    }
    let before: Vec<Option<usize>> = meshes
        .iter()
        .map(|mesh| {
            let mut sent: BTreeSet<u32> = BTreeSet::new();
            mesh.iter().position(|ends| {
                let answers = |channel: &u32| after.get(channel).is_some_and(|after| !after.is_disjoint(&sent));
                let is_answer = ends.receives.iter().any(answers);
                sent.extend(&ends.sends);
                is_answer
            })
        })
        .collect();
    // A value that is received behind the cut of its receiver is an answer there, and leads no further.
    let ahead = |at: usize| &meshes[at][..before[at].unwrap_or(meshes[at].len())];
    let receiver = |channel: &u32| {
        (0..meshes.len())
            .find(|&at| ahead(at).iter().any(|ends| ends.receives.contains(channel)) && before[at].is_some())
    };
    let mut distances = vec![0u64; meshes.len()];
    // The way forward has no circle, so it has fewer meshes than there are.
    for _ in 0..meshes.len() {
        for at in (0..meshes.len()).filter(|&at| before[at].is_some()) {
            let next = ahead(at).iter().flat_map(|ends| &ends.sends).filter_map(receiver).filter(|&to| to != at);
            distances[at] = 1 + next.map(|to| distances[to]).max().unwrap_or(0);
        }
    }
    let cut = |(before, distance): (Option<usize>, u64)| Some(LoopCut { before: before?, distance });
    before.into_iter().zip(distances).map(cut).collect()
}

/// The two parts of the body of a loop.
struct Halves {
    /// The statements of the first part, by position: those before the cut, and others that it needs for the next trip.
    first: BTreeSet<usize>,
    /// For each carried value, whether the first part carries it.
    first_carries: Vec<bool>,
    /// The values of the first part that are kept in rings for the second one.
    crossing: Vec<Value>,
    /// The statements of the first part that the second one repeats, by position.
    repeated: BTreeSet<usize>,
}

impl Halves {
    /// None if the loop cannot be cut before this statement.
    fn new(func: &Func, mesh: &Mesh, op: &ForLoop, before: usize) -> Option<Halves> {
        if !mesh.of_kind(AxisKind::Explicit).union(func.turned()).is_empty() {
            return None;
        }
        let body = &op.body;
        let (counter, carries) = (body.params[0], &body.params[1..]);
        let mut halves = Halves {
            first: (0..before).collect(),
            first_carries: vec![false; carries.len()],
            crossing: Vec::new(),
            repeated: BTreeSet::new(),
        };
        // What the first part needs of the trip before is computed by it.
        let mut used: BTreeSet<Value> = free_values(&halves.part(body, true)).into_iter().collect();
        while let Some(at) = (0..carries.len()).find(|&at| !halves.first_carries[at] && used.contains(&carries[at])) {
            halves.first_carries[at] = true;
            halves.pull(func, body, body.results[at], &mut used)?;
        }
        let (first, second) = (halves.part(body, true), halves.part(body, false));
        let in_first = defined_values(&first);
        let mut needed: BTreeSet<Value> = free_values(&second).into_iter().collect();
        let own = (0..body.results.len()).filter(|&at| halves.first_carries.get(at) != Some(&true));
        needed.extend(own.map(|at| body.results[at]));
        let first_values: BTreeSet<Value> = first.stmts.iter().flat_map(|stmt| stmt.results.iter().copied()).collect();
        // Cheap values of the counter and of values from outside are computed twice.
        let mut same: BTreeSet<Value> = BTreeSet::new();
        for stmt in &first.stmts {
            let is_known = |arg: &Value| {
                *arg == counter || same.contains(arg) || !in_first.contains(arg) && !carries.contains(arg)
            };
            if is_cheap(func, stmt) && stmt.args.iter().all(is_known) {
                same.extend(&stmt.results);
            }
        }
        let is_carry =
            |value: &Value| carries.iter().zip(&halves.first_carries).any(|(carry, first)| carry == value && *first);
        halves.crossing = needed
            .iter()
            .copied()
            .filter(|value| (first_values.contains(value) || is_carry(value)) && !same.contains(value))
            .collect();
        let cannot_wait = |&value: &Value| func.ty(value).dtype() == DType::Key || func.ty(value).array.is_stream;
        if halves.crossing.iter().any(cannot_wait) {
            return None;
        }
        for &at in halves.first.iter().rev() {
            let stmt = &body.stmts[at];
            if stmt.results.iter().any(|result| needed.contains(result) && same.contains(result)) {
                halves.repeated.insert(at);
                needed.extend(&stmt.args);
            }
        }
        Some(halves)
    }

    /// The statements of the first part, or of the second one.
    fn part(&self, body: &Block, is_first: bool) -> Block {
        let own = body.stmts.iter().enumerate().filter(|(at, _)| self.first.contains(at) == is_first);
        Block { stmts: own.map(|(_, stmt)| stmt.clone()).collect(), ..Block::default() }
    }

    /// Moves the statements that compute a value to the first part; None if that is impossible, for example if they depend on an answer.
    fn pull(&mut self, func: &Func, body: &Block, value: Value, used: &mut BTreeSet<Value>) -> Option<()> {
        let made = body.stmts.iter().position(|stmt| stmt.results.contains(&value));
        let Some(at) = made.filter(|at| !self.first.contains(at)) else {
            used.insert(value);
            return Some(());
        };
        let stmt = &body.stmts[at];
        let properties = stmt.op()?.rules().properties();
        match properties.effect {
            Effect::None | Effect::Stops => {}
            Effect::Check | Effect::Text | Effect::File | Effect::Layout | Effect::Message => return None,
        }
        self.first.insert(at);
        debug_assert!(!func.ty(value).array.is_stream, "streams are from outside");
        stmt.args.iter().try_for_each(|&arg| self.pull(func, body, arg, used))
    }
}

/// Whether a statement may be computed twice: it moves elements, or gives a number.
fn is_cheap(func: &Func, stmt: &Stmt) -> bool {
    let Some(op) = stmt.op() else { return false };
    let properties = op.rules().properties();
    let is_pure = match properties.effect {
        Effect::None | Effect::Stops | Effect::Check => matches!(properties.manual, Manual::Local),
        Effect::Text | Effect::File | Effect::Layout | Effect::Message => false,
    };
    let is_number = stmt.results.iter().all(|&result| func.ty(result).rank() == 0)
        && stmt.args.iter().all(|&arg| func.ty(arg).rank() == 0);
    let moves = match properties.elements {
        Elements::Literal(_)
        | Elements::Counted
        | Elements::Repeated
        | Elements::Moved
        | Elements::Window(_)
        | Elements::Framed(_)
        | Elements::Chosen(_) => true,
        Elements::Drawn
        | Elements::Rows
        | Elements::Ordered(_)
        | Elements::Elementwise
        | Elements::Negated
        | Elements::Transferred(_)
        | Elements::Other => false,
    };
    is_pure && (moves || is_number) && !matches!(properties.elements, Elements::Rows)
}

/// Cuts the loops of the program of one mesh.
struct Cutter<'a> {
    func: &'a mut Func,
    mesh: &'a Mesh,
    cuts: &'a LoopCuts,
    at: usize,
    factor: u64,
}

type Replaced = BTreeMap<Value, Value>;

impl Cutter<'_> {
    fn block(&mut self, block: &mut Block) {
        let mut stmts = Vec::with_capacity(block.stmts.len());
        for mut stmt in std::mem::take(&mut block.stmts) {
            if let Some(Control::For(op)) = stmt.control()
                && let Some(cut) = self.cuts.0.get(&(self.at, op.body.params[0]))
                && let Some(trips) = op.trips()
                && let ahead = (self.factor * cut.distance).min(trips.saturating_sub(1))
                && ahead > 0
                && let Some(halves) = Halves::new(self.func, self.mesh, op, cut.before)
            {
                let op = op.clone();
                self.cut(&stmt, &op, (cut.before, ahead), &halves, &mut stmts);
            } else {
                stmt.blocks_mut().for_each(|inner| self.block(inner));
                stmts.push(stmt);
            }
        }
        block.stmts = stmts;
    }

    fn cut(
        &mut self,
        stmt: &Stmt,
        op: &ForLoop,
        (before, ahead): (usize, u64),
        halves: &Halves,
        stmts: &mut Vec<Stmt>,
    ) {
        let origin = &stmt.origin;
        debug_assert!(halves.first.len() >= before, "all before the cut are in the first part");
        let (start, end) = op.range.expect("only loops with known bounds are cut");
        let (trips, places) = (end - start, ahead as i64 + 1);
        let ahead = ahead as i64;
        let body = &op.body;
        let carries = stmt.args.len();
        let of = |is_first: bool| (0..carries).filter(move |&at| halves.first_carries[at] == is_first);
        let (first, second): (Vec<usize>, Vec<usize>) = (of(true).collect(), of(false).collect());

        // The rings.
        let mut rings = Vec::new();
        for &value in &halves.crossing {
            let array = self.func.ty(value).array.clone();
            let zero = self.emit(Constant::scalar(array.dtype, 0), &[], &[], array.dtype, origin, stmts);
            let shape: Vec<usize> = std::iter::once(places as usize).chain(array.shape.iter().copied()).collect();
            rings.push(self.emit(Broadcast { shape: shape.clone() }, &[zero], &shape, array.dtype, origin, stmts));
        }

        // The first trips of the first part.
        let mut inits: Vec<Value> = first.iter().map(|&at| stmt.args[at]).chain(rings.iter().copied()).collect();
        let mut block = self.opened(&inits);
        let mut map = self.entered(body, &first, &block);
        self.first(op, start, places, halves, (&mut block, &mut map, false), origin);
        let results = self.fresh(&inits);
        stmts.push(for_loop((0, ahead), 0, block, inits, results.clone(), origin));
        inits = results;

        // Both parts.
        inits.extend(second.iter().map(|&at| stmt.args[at]));
        let mut block = self.opened(&inits);
        let mut map = self.entered(body, &first, &block);
        self.first(op, start + ahead, places, halves, (&mut block, &mut map, true), origin);
        let rings_now: Vec<Value> = block.results[first.len()..].to_vec();
        let mut map = Replaced::new();
        let params = &block.params[1 + first.len() + rings.len()..];
        map.extend(second.iter().zip(params).map(|(&at, &param)| (body.params[1 + at], param)));
        let collected = self.second(op, (start, 0), places, halves, (&rings_now, &mut block, &mut map, true), origin);
        let count = collected.len();
        block.results.extend(collected);
        let mut results = self.fresh(&inits);
        for (&at, result) in first.iter().zip(&mut results) {
            *result = stmt.results[at];
        }
        let stacks = self.stacks(&stmt.results[carries..], trips - ahead);
        let all = results.iter().chain(&stacks).copied().collect();
        stmts.push(for_loop((0, trips - ahead), count, block, inits, all, origin));

        // The last trips of the second part.
        let rings_now = results[first.len()..first.len() + rings.len()].to_vec();
        let inits: Vec<Value> = results[first.len() + rings.len()..].to_vec();
        let mut block = self.opened(&inits);
        let mut map = Replaced::new();
        map.extend(second.iter().zip(&block.params[1..]).map(|(&at, &param)| (body.params[1 + at], param)));
        let done = trips - ahead;
        let collected =
            self.second(op, (start + done, done), places, halves, (&rings_now, &mut block, &mut map, false), origin);
        block.results.extend(collected);
        let ends = self.stacks(&stmt.results[carries..], ahead);
        let all = second.iter().map(|&at| stmt.results[at]).chain(ends.iter().copied()).collect();
        stmts.push(for_loop((0, ahead), count, block, inits, all, origin));
        for ((&begin, &end), &whole) in stacks.iter().zip(&ends).zip(&stmt.results[carries..]) {
            stmts.push(Stmt::new(Concatenate { axis: 0 }.into(), vec![begin, end], vec![whole], origin.clone()));
        }
    }

    /// Adds the first part of a trip, whose number is the counter and `offset`; the block returns its carried values and the rings.
    #[allow(clippy::too_many_arguments)]
    fn first(
        &mut self,
        op: &ForLoop,
        offset: i64,
        places: i64,
        halves: &Halves,
        (block, map, keeps): (&mut Block, &mut Replaced, bool),
        origin: &Origin,
    ) {
        let body = &op.body;
        let start = op.range.map_or(0, |(start, _)| start);
        let counter = block.params[0];
        let trip = self.plus(counter, offset, origin, &mut block.stmts);
        map.insert(body.params[0], trip);
        let mut part = self.copied(&halves.part(body, true).stmts, map, keeps);
        block.stmts.append(&mut part);
        let now = |value: Value| map.get(&value).copied().unwrap_or(value);
        let firsts = (0..halves.first_carries.len()).filter(|&at| halves.first_carries[at]);
        block.results = firsts.map(|at| now(body.results[at])).collect();
        let count = block.results.len();
        let place = self.place(counter, offset - start, places, origin, &mut block.stmts);
        for (at, &value) in halves.crossing.iter().enumerate() {
            let ring = block.params[1 + count + at];
            let ty = self.func.ty(ring).array.clone();
            let all = ty.shape[1..].iter().map(|&size| Places::Range(SliceRange::all(size)));
            let update = Update::replacing(std::iter::once(Places::Dynamic(1)).chain(all).collect());
            let args = [ring, now(value), place];
            let ring = self.emit(update, &args, &ty.shape, ty.dtype, origin, &mut block.stmts);
            block.results.push(ring);
        }
    }

    /// Adds the second part of a trip, whose number is the counter and `offset`, and its place in the rings the counter and `done`; the
    /// block also returns its carried values. Returns the collected ones.
    #[allow(clippy::too_many_arguments)]
    fn second(
        &mut self,
        op: &ForLoop,
        (offset, done): (i64, i64),
        places: i64,
        halves: &Halves,
        (rings, block, map, keeps): (&[Value], &mut Block, &mut Replaced, bool),
        origin: &Origin,
    ) -> Vec<Value> {
        let body = &op.body;
        let counter = block.params[0];
        let trip = self.plus(counter, offset, origin, &mut block.stmts);
        map.insert(body.params[0], trip);
        let place = self.place(counter, done, places, origin, &mut block.stmts);
        for (&value, &ring) in halves.crossing.iter().zip(rings) {
            let array = self.func.ty(value).array.clone();
            let row: Vec<usize> = std::iter::once(1).chain(array.shape.iter().copied()).collect();
            let slice = DynamicSlice { dims: vec![(0, 1)] };
            let row = self.emit(slice, &[ring, place], &row, array.dtype, origin, &mut block.stmts);
            let reshape = Reshape { trivial: true, shape: array.shape.clone() };
            let read = self.emit(reshape, &[row], &array.shape, array.dtype, origin, &mut block.stmts);
            map.insert(value, read);
        }
        for &at in &halves.repeated {
            let mut copy = self.copied(&body.stmts[at..=at], map, false);
            block.stmts.append(&mut copy);
        }
        let mut part = self.copied(&halves.part(body, false).stmts, map, keeps);
        block.stmts.append(&mut part);
        let now = |value: Value| map.get(&value).copied().unwrap_or(value);
        let carries = halves.first_carries.len();
        let own = (0..carries).filter(|&at| !halves.first_carries[at]);
        block.results.extend(own.map(|at| now(body.results[at])));
        body.results[carries..].iter().map(|&value| now(value)).collect()
    }

    /// A block with a counter and parameters like these values.
    fn opened(&mut self, carries: &[Value]) -> Block {
        let counter = self.number(DType::I32, &Origin::default());
        let params = std::iter::once(counter).chain(self.fresh(carries)).collect();
        Block { params, ..Block::default() }
    }

    /// The parameters of the first part, for the parameters of the body.
    fn entered(&self, body: &Block, first: &[usize], block: &Block) -> Replaced {
        first.iter().zip(&block.params[1..]).map(|(&at, &param)| (body.params[1 + at], param)).collect()
    }

    /// New values like these.
    fn fresh(&mut self, values: &[Value]) -> Vec<Value> {
        values.iter().map(|&value| self.func.new_like(value)).collect()
    }

    /// For each collected value, the stack of this number of trips.
    fn stacks(&mut self, wholes: &[Value], trips: i64) -> Vec<Value> {
        let stack = |&whole: &Value| {
            let new = self.func.new_like(whole);
            self.func.info_mut(new).ty.array.shape[0] = trips as usize;
            new
        };
        wholes.iter().map(stack).collect()
    }

    fn number(&mut self, dtype: DType, origin: &Origin) -> Value {
        let ty = Type { sharding: unknown_layout(0, self.mesh), ..Type::open(ArrayType::new(dtype, &[])) };
        self.func.new_value(ty, origin.clone())
    }

    fn emit(
        &mut self,
        op: impl Into<Op>,
        args: &[Value],
        shape: &[usize],
        dtype: DType,
        origin: &Origin,
        stmts: &mut Vec<Stmt>,
    ) -> Value {
        let ty = Type { sharding: unknown_layout(shape.len(), self.mesh), ..Type::open(ArrayType::new(dtype, shape)) };
        let result = self.func.new_value(ty, origin.clone());
        stmts.push(Stmt::new(op.into(), args.to_vec(), vec![result], origin.clone()));
        result
    }

    /// The counter and a number.
    fn plus(&mut self, counter: Value, number: i64, origin: &Origin, stmts: &mut Vec<Stmt>) -> Value {
        if number == 0 {
            return counter;
        }
        let bits = u64::from((number as i32).cast_unsigned());
        let number = self.emit(Constant::scalar(DType::I32, bits), &[], &[], DType::I32, origin, stmts);
        self.emit(Binary(BinaryOp::Add), &[counter, number], &[], DType::I32, origin, stmts)
    }

    /// The place in the rings of the trip whose number is the counter and `offset`.
    fn place(&mut self, counter: Value, offset: i64, places: i64, origin: &Origin, stmts: &mut Vec<Stmt>) -> Value {
        let trip = self.plus(counter, offset, origin, stmts);
        let bits = u64::from((places as i32).cast_unsigned());
        let places = self.emit(Constant::scalar(DType::I32, bits), &[], &[], DType::I32, origin, stmts);
        let place = self.emit(Binary(BinaryOp::Rem), &[trip, places], &[], DType::I32, origin, stmts);
        self.emit(Cast { to: DType::I64 }, &[place], &[], DType::I64, origin, stmts)
    }

    /// Statements with other operands. They define the same values if `keeps` says so, otherwise new ones, which `map` gets.
    fn copied(&mut self, stmts: &[Stmt], map: &mut Replaced, keeps: bool) -> Vec<Stmt> {
        let now = |map: &Replaced, value: Value| map.get(&value).copied().unwrap_or(value);
        let mut copies = Vec::with_capacity(stmts.len());
        for stmt in stmts {
            let mut copy = stmt.clone();
            copy.args.iter_mut().for_each(|arg| *arg = now(map, *arg));
            for block in copy.blocks_mut() {
                self.define(&mut block.params, map, keeps);
                block.stmts = self.copied(&block.stmts, map, keeps);
                block.results.iter_mut().for_each(|result| *result = now(map, *result));
            }
            self.define(&mut copy.results, map, keeps);
            copies.push(copy);
        }
        copies
    }

    fn define(&mut self, values: &mut [Value], map: &mut Replaced, keeps: bool) {
        for value in values.iter_mut().filter(|_| !keeps) {
            let new = self.func.new_like(*value);
            map.insert(*value, new);
            *value = new;
        }
    }
}

fn for_loop(
    range: (i64, i64),
    collected: usize,
    body: Block,
    inits: Vec<Value>,
    results: Vec<Value>,
    origin: &Origin,
) -> Stmt {
    debug_assert_eq!((body.params.len(), body.results.len()), (inits.len() + 1, results.len()), "a carry is lost");
    let control = Control::For(ForLoop { range: Some(range), collected, body });
    Stmt::of_control(control, inits, results, origin.clone())
}
