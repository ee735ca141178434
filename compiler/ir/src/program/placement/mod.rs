//! The mesh of each value, in a program with several.
//!
//! A value is *committed* to a mesh by a `transfer`, or because it is computed from committed values. All other values are made where they
//! are needed: literals, `zeros`, keys, and parameters that name no mesh. A condition also commits the results of its control flow, unless
//! a result is a value of another mesh, or another mesh needs it, too: then the condition is sent there. So a counter of a loop is on the
//! mesh of the loop's condition as long as no other mesh uses it.
//!
//! A manual function runs on every mesh of its values, which all have its axes. A manual function without a value on a mesh still depends
//! on its axes, so it is committed, too. It goes to the mesh that needs its results, or else to the first one with its axes.
//!
//! The meshes follow from the statements alone, so no pass has to keep them.

pub mod meshes;
mod regions;

use self::meshes::{ValueMeshes, destination};
use super::transfer_target::Target;
use crate::program::control::Control;
pub use crate::program::placement::regions::home;
use crate::program::placement::regions::home_of_free;
use crate::program::{Block, Func, Stmt, StmtKind, Value};
use crate::rules::{Effect, NamedAxes};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::AxisSet;
use std::collections::{BTreeMap, BTreeSet};

/// The meshes of all values; E0602 for operands on different ones, and for values on meshes without their axes.
pub fn placement(func: &Func, mesh: &Mesh) -> Result<ValueMeshes, Vec<Diagnostic>> {
    let found = found(func, mesh);
    if found.errors.is_empty() { Ok(found.of) } else { Err(found.errors) }
}

/// Names the meshes to which cotangents go back, and drops declarations, which have been checked; E0602 as for [`placement`].
pub fn resolve(func: &mut Func, mesh: &Mesh) -> Result<(), Vec<Diagnostic>> {
    let found = found(func, mesh);
    if !found.errors.is_empty() {
        return Err(found.errors);
    }
    func.body.walk_mut(&mut |stmt| {
        let result = stmt.results.first().copied();
        if let (StmtKind::Op(op), Some(result)) = (&mut stmt.kind, result)
            && destination(op).is_some()
        {
            for named in op.rules_mut().named_axes() {
                if let NamedAxes::Transfer(op) = named {
                    op.number = 0;
                    if let (Target::Back | Target::Declared(_), Some(on)) = (op.to, found.of[result.0 as usize]) {
                        op.to = Target::Mesh(on);
                    }
                }
            }
        }
    });
    // What goes back to no mesh stays where it is.
    let mut stays: BTreeMap<Value, Value> = BTreeMap::new();
    remove_identities(&mut func.body, &mut stays);
    let original = |mut value: Value| {
        while let Some(&of) = stays.get(&value) {
            value = of;
        }
        value
    };
    func.replace_uses(original);
    Ok(())
}

fn remove_identities(block: &mut Block, stays: &mut BTreeMap<Value, Value>) {
    block.stmts.retain(|stmt| {
        let goes_back = stmt.op().and_then(destination).is_some_and(|op| op.to == Target::Back);
        if goes_back {
            stays.insert(stmt.results[0], stmt.args[0]);
        }
        !goes_back
    });
    block.stmts.iter_mut().flat_map(Stmt::blocks_mut).for_each(|inner| remove_identities(inner, stays));
}

fn found<'a>(func: &'a Func, mesh: &'a Mesh) -> PlacementFinder<'a> {
    let mut free = BTreeSet::new();
    loop {
        let finder = found_with(func, mesh, &free);
        // Each round frees another result of control flow.
        if finder.freed.is_empty() {
            return finder;
        }
        debug_assert!(finder.freed.is_disjoint(&free), "a condition does not commit a free value");
        free.extend(finder.freed);
    }
}

/// The meshes if conditions do not commit these results of control flow.
fn found_with<'a>(func: &'a Func, mesh: &'a Mesh, free: &BTreeSet<Value>) -> PlacementFinder<'a> {
    let mut finder = PlacementFinder {
        func,
        mesh,
        of: vec![None; func.values.len()],
        free: free.clone(),
        freed: BTreeSet::new(),
        causes: BTreeMap::new(),
        inner: BTreeMap::new(),
        sources: BTreeMap::new(),
        changed: true,
        is_last: false,
        errors: Vec::new(),
        told: BTreeSet::new(),
    };
    for (param, &value) in func.params.iter().zip(&func.body.params) {
        finder.of[value.0 as usize] = param.on;
    }
    // Each round that changes something commits a value, so there are no more rounds than values.
    while std::mem::take(&mut finder.changed) {
        finder.block(&func.body);
        if !finder.changed {
            finder.settle(&func.body, &func.body);
        }
    }
    finder.is_last = true;
    finder.block(&func.body);
    finder
}

struct PlacementFinder<'a> {
    func: &'a Func,
    mesh: &'a Mesh,
    of: ValueMeshes,
    /// The results of control flow that conditions do not commit.
    free: BTreeSet<Value>,
    /// The results of control flow that a condition has committed, and that a value on another mesh is combined with.
    freed: BTreeSet<Value>,
    /// The cause that has committed each value.
    causes: BTreeMap<Value, CommitCause>,
    /// For each result and carried value of control flow the value in it from which it comes.
    inner: BTreeMap<Value, Value>,
    /// For each transfer of the program, by its number, the mesh from which it comes.
    sources: BTreeMap<u32, Option<u8>>,
    changed: bool,
    /// Whether nothing changes any more, and errors are told.
    is_last: bool,
    errors: Vec<Diagnostic>,
    told: BTreeSet<(Span, u8, u8)>,
}

/// The reason for which a value is on a mesh.
#[derive(Clone, Copy)]
enum CommitCause {
    /// It is computed from this value.
    From(Value),
    /// The condition of control flow that returns it, as this result.
    Condition(Value),
}

impl PlacementFinder<'_> {
    fn at(&self, value: Value) -> Option<u8> {
        self.of[value.0 as usize]
    }

    fn commit(&mut self, value: Value, on: Option<u8>, cause: Option<CommitCause>) {
        let known = &mut self.of[value.0 as usize];
        if known.is_none() && on.is_some() {
            *known = on;
            self.changed = true;
            self.causes.extend(cause.map(|cause| (value, cause)));
        }
    }

    /// The result of control flow by whose condition a value is on its mesh, if it is so.
    fn condition_of(&self, mut value: Value) -> Option<Value> {
        loop {
            match *self.causes.get(&value)? {
                CommitCause::From(other) => value = other,
                CommitCause::Condition(result) => return Some(result),
            }
        }
    }

    /// The source position of a value; for a result of control flow, the position of the value in it.
    fn place(&self, mut value: Value) -> Span {
        while let Some(&inner) = self.inner.get(&value) {
            value = inner;
        }
        self.func.info(value).origin.span
    }

    /// The first of these values that is on a mesh, and the mesh. An error if others are on another one, unless a condition alone has
    /// committed one of both.
    fn joined(&mut self, values: &[Value], span: Span, what: &str) -> Option<(u8, CommitCause)> {
        let first = values.iter().copied().find(|&value| self.at(value).is_some())?;
        let on = self.at(first)?;
        let other = values.iter().copied().find(|&value| self.at(value).is_some_and(|other| other != on));
        if let (true, Some(other)) = (self.is_last, other) {
            let conditions = [first, other].map(|value| self.condition_of(value));
            self.freed.extend(conditions.into_iter().flatten());
        }
        if let (true, Some(other)) = (self.is_last, other)
            && let Some(second) = self.at(other)
            && self.told.insert((span, on, second))
        {
            let meshes = [on, second].map(|on| self.mesh.named[usize::from(on)].describe());
            let message = format!("{what} are on different meshes: {} and {}", meshes[0], meshes[1]);
            let mut error = Diagnostic::error(Code::E0602, span, message);
            for (value, on) in [(first, on), (other, second)] {
                let place = self.place(value);
                if place != span && place != Span::default() {
                    error = error.label(place, format!("this is on `{}`", self.mesh.named[usize::from(on)].name));
                }
            }
            let name = self.func.info(other).name.as_deref().unwrap_or("...");
            let help = format!("move one of them, as in `transfer({name}, {})`", self.mesh.named[usize::from(on)].name);
            self.errors.push(error.help(help));
        }
        Some((on, CommitCause::From(first)))
    }

    /// The mesh of the control flow's `result`: the mesh of the values, or of the condition.
    fn returned(
        &self,
        joined: Option<(u8, CommitCause)>,
        control: Option<u8>,
        result: Value,
    ) -> (Option<u8>, Option<CommitCause>) {
        let control = control.filter(|_| !self.free.contains(&result)).map(|on| (on, CommitCause::Condition(result)));
        joined.or(control).unzip()
    }

    /// The source position of the second of two values that control flow joins, if that is in the control flow at `span`.
    fn place_of_join(&self, second: Value, span: Span) -> Span {
        let place = self.place(second);
        let is_inside = place.file == span.file && span.start <= place.start && place.end <= span.end;
        if is_inside && place != Span::default() { place } else { span }
    }

    fn block(&mut self, block: &Block) {
        for stmt in &block.stmts {
            self.stmt(stmt);
            if self.is_last {
                stmt.results.iter().for_each(|&result| self.has_axes(result, stmt.origin.span));
            }
        }
    }

    /// Checks that the mesh of a value has the axes of its layout.
    fn has_axes(&mut self, value: Value, span: Span) {
        let Some(on) = self.at(value) else { return };
        let (ty, mesh) = (self.func.ty(value), &self.mesh.named[usize::from(on)]);
        let foreign = ty.distinct_axes().minus(mesh.axis_set());
        if !foreign.is_empty() && self.told.insert((span, on, on)) {
            let axes = self.mesh.display_set(foreign);
            let message =
                format!("{} has no axis {axes}, over which `{}` is split", mesh.describe(), ty.display(self.mesh));
            let help = format!("its axes are {}", self.mesh.display_axes(&mesh.axes));
            self.errors.push(Diagnostic::error(Code::E0602, span, message).help(help));
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        let span = stmt.origin.span;
        match &stmt.kind {
            StmtKind::Op(op) if let Some(op) = destination(op) => {
                let from = self.at(stmt.args[0]);
                let on = match op.to {
                    Target::Mesh(to) => {
                        // A derivative may contain the same transfer for tangents.
                        let source = self.sources.entry(op.number).or_insert(from);
                        *source = source.or(from);
                        Some(to)
                    }
                    Target::Declared(to) => {
                        if self.is_last {
                            self.declared(stmt.args[0], to, span);
                        }
                        Some(to)
                    }
                    Target::Back => self.sources.get(&op.number).copied().flatten(),
                };
                // A value that goes back to no mesh stays where it is, once all others are known.
                self.commit(stmt.results[0], on, None);
                if self.is_last && on.is_none() {
                    self.commit(stmt.results[0], from, Some(CommitCause::From(stmt.args[0])));
                }
            }
            StmtKind::Op(op) => {
                let effect = op.rules().properties().effect;
                if matches!(effect, Effect::Text | Effect::File) {
                    // What is shown is brought together.
                    return;
                }
                let (on, cause) = self.joined(&stmt.args, span, "the operands").unzip();
                stmt.results.iter().for_each(|&result| self.commit(result, on, cause));
            }
            StmtKind::Control(Control::Branch(op)) => {
                op.sides().into_iter().for_each(|side| self.block(side));
                let control = self.at(stmt.args[0]);
                for (at, &result) in stmt.results.iter().enumerate() {
                    let values = [op.then.results[at], op.otherwise.results[at]];
                    self.inner.insert(result, values[0]);
                    let place = self.place_of_join(values[1], span);
                    let joined = self.joined(&values, place, "the values of both branches");
                    let (on, cause) = self.returned(joined, control, result);
                    self.commit(result, on, cause);
                }
            }
            StmtKind::Control(Control::For(op)) => {
                let (bounds, starts) = stmt.args.split_at(op.bounds());
                let control = bounds.iter().find_map(|&bound| self.at(bound));
                self.block(&op.body);
                for (at, &start) in starts.iter().enumerate() {
                    let carried = [op.body.params[at + 1], stmt.results[at]];
                    self.carried(&carried, [start, op.body.results[at]], control, span);
                }
                for at in starts.len()..stmt.results.len() {
                    let (inner, result) = (op.body.results[at], stmt.results[at]);
                    self.inner.insert(result, inner);
                    let own = self.at(inner).map(|on| (on, CommitCause::From(inner)));
                    let (on, cause) = self.returned(own, control, result);
                    self.commit(result, on, cause);
                }
            }
            StmtKind::Control(Control::While(op)) => {
                self.block(&op.cond);
                self.block(&op.body);
                let control = self.at(op.cond.results[0]);
                for (at, &start) in stmt.args.iter().enumerate() {
                    let carried = [op.cond.params[at], op.body.params[at], stmt.results[at]];
                    self.carried(&carried, [start, op.body.results[at]], control, span);
                }
            }
            StmtKind::Control(Control::Manual(op)) => {
                for (&arg, &param) in stmt.args.iter().zip(&op.body.params) {
                    let own = self.at(arg);
                    self.commit(param, own, Some(CommitCause::From(arg)));
                }
                self.block(&op.body);
                for (&result, &inner) in stmt.results.iter().zip(&op.body.results) {
                    let own = self.at(inner);
                    self.commit(result, own, Some(CommitCause::From(inner)));
                }
                if self.is_last {
                    let mut meshes: BTreeSet<u8> = stmt.args.iter().filter_map(|&arg| self.at(arg)).collect();
                    op.body.walk(&mut |stmt| meshes.extend(stmt.results.iter().filter_map(|&value| self.at(value))));
                    meshes.iter().for_each(|&on| self.region(op.axes, on, span));
                    if home(stmt, &self.of, self.mesh).is_none() && self.told.insert((span, 0, 0)) {
                        let axes = self.mesh.display_set(op.axes);
                        let message = format!("no mesh has all axes of this manual function: {axes}");
                        self.errors.push(Diagnostic::error(Code::E0602, span, message));
                    }
                }
            }
        }
    }

    /// Commits the results of the first manual function that are on no mesh, once nothing else decides about them.
    fn settle(&mut self, block: &Block, whole: &Block) {
        for stmt in &block.stmts {
            let is_free = |&result: &Value| self.at(result).is_none();
            if matches!(stmt.control(), Some(Control::Manual(_))) && stmt.results.iter().any(is_free) {
                let on = home_of_free(stmt, whole, &self.of, self.mesh);
                stmt.results.iter().for_each(|&result| self.commit(result, on, None));
            } else {
                stmt.blocks().for_each(|inner| self.settle(inner, whole));
            }
            if self.changed {
                return;
            }
        }
    }

    /// A carried value: its parameters and, last, the result of the loop.
    fn carried(&mut self, values: &[Value], ends: [Value; 2], control: Option<u8>, span: Span) {
        let (Some(&result), params) = (values.last(), &values[..values.len() - 1]) else { return };
        params.iter().for_each(|&param| {
            self.inner.insert(param, ends[0]);
        });
        self.inner.insert(result, ends[1]);
        let place = self.place_of_join(ends[1], span);
        let joined = self.joined(&ends, place, "a loop-carried variable before and after a trip");
        let (on, cause) = self.returned(joined, control, result);
        values.iter().for_each(|&value| self.commit(value, on, cause));
    }

    /// E0602 if a value is on another mesh than its type says.
    fn declared(&mut self, value: Value, to: u8, span: Span) {
        let Some(on) = self.at(value).filter(|on| *on != to) else { return };
        if self.told.insert((span, on, to)) {
            let [on, to] = [on, to].map(|on| &self.mesh.named[usize::from(on)]);
            let message =
                format!("declared to be on mesh {}, but the value is on mesh {}", to.describe(), on.describe());
            let place = self.func.info(value).origin.span;
            let mut error = Diagnostic::error(Code::E0602, span, message);
            if place != span && place != Span::default() {
                error = error.label(place, "computed here");
            }
            self.errors.push(error.help(format!("move it with `transfer(x, {})`", to.name)));
        }
    }

    /// E0602 if a manual function is about axes that the mesh of its arguments does not have.
    fn region(&mut self, axes: AxisSet, on: u8, span: Span) {
        let mesh = &self.mesh.named[usize::from(on)];
        let foreign = axes.minus(mesh.axis_set());
        if !foreign.is_empty() && self.told.insert((span, on, on)) {
            let axes = self.mesh.display_set(foreign);
            let message =
                format!("the arguments of this manual function are on {}, which has no axis {axes}", mesh.describe());
            self.errors.push(Diagnostic::error(Code::E0602, span, message));
        }
    }
}
