//! The residuals: values of a block that its reverse needs.
//!
//! They are kept, unless the reverse has them anyway. It has captured values, the trip of a loop, and values that follow from these by
//! moving elements or by scalar arithmetic. Values of a loop that are the same in every trip are computed once more before its reverse. If
//! each trip reshards its part of an array, such as the weights of a layer, the reverse reshards the part again. If an array changes from
//! trip to trip, a branch keeps the small parts that it takes, so that the loop does not have to keep the whole.

use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::{Combines, Effect, Elements, Placement};
use spmdc_layout::mesh::AxisKind;
use std::collections::{BTreeMap, BTreeSet};

/// How the reverse of a block comes to the values of the block.
#[derive(Default)]
pub(super) struct Residuals {
    /// Statements to repeat before the reverse, in order: they do not depend on the block.
    pub invariant: Vec<Stmt>,
    /// Statements to repeat in the reverse, in order.
    pub repeated: Vec<Stmt>,
    /// The values to keep.
    pub kept: Vec<Value>,
    /// The needed ones among the parameters that the reverse has, too.
    pub params: Vec<Value>,
}

/// The known facts about a value of the block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    /// It is the same whenever the block runs.
    Invariant,
    /// The reverse can compute it from available values.
    Repeated,
    /// Only elements of kept values are moved.
    Moved,
    Kept,
}

/// The block whose values are needed.
pub(super) struct Kept<'s> {
    pub params: &'s [Value],
    pub stmts: &'s [Stmt],
    /// The parameters that the reverse has, too.
    pub had: &'s [Value],
    /// Whether the block runs many times, so that it pays to compute invariant values once.
    pub is_loop: bool,
    /// Whether values can be kept at all: otherwise the reverse computes all that it can.
    pub can_keep: bool,
    /// The values of the loops around the block, which their reverses have only if they are kept.
    pub changing: &'s BTreeSet<Value>,
}

/// A part of an array is small if the array has at least this multiple of its elements.
const SMALL_PART: usize = 8;

impl Kept<'_> {
    /// The way to each value of the block that is in `needed`.
    pub fn find(&self, build: &CallBuilder, needed: &[Value]) -> Residuals {
        let known = self.known(build);
        // A value on which no derivative depends is needed, too.
        let own = |value: &Value| build.aliases().first(*value, |name| known.contains_key(&name));
        let mut needed: BTreeSet<Value> = needed.iter().filter_map(own).collect();
        let mut found = Residuals::default();
        for stmt in self.stmts.iter().rev() {
            let Some(result) = stmt.results.iter().find(|result| needed.contains(result)) else { continue };
            match known[result] {
                Known::Kept => {
                    found.kept.extend(stmt.results.iter().filter(|result| needed.contains(result)));
                    continue;
                }
                Known::Invariant => found.invariant.push(stmt.clone()),
                Known::Repeated | Known::Moved => found.repeated.push(stmt.clone()),
            }
            needed.extend(stmt.args.iter().filter_map(own));
        }
        for param in self.params.iter().filter(|param| needed.contains(param)) {
            if self.had.contains(param) { &mut found.params } else { &mut found.kept }.push(*param);
        }
        found.invariant.reverse();
        found.repeated.reverse();
        found
    }

    fn known(&self, build: &CallBuilder) -> BTreeMap<Value, Known> {
        let of_param = |param: &Value| if self.had.contains(param) { Known::Repeated } else { Known::Kept };
        let mut known: BTreeMap<Value, Known> = self.params.iter().map(|param| (*param, of_param(param))).collect();
        for stmt in self.stmts {
            let of_name = |&arg: &Value| build.aliases().first(arg, |name| known.contains_key(&name));
            let args: Vec<Option<Known>> =
                stmt.args.iter().map(|arg| of_name(arg).and_then(|name| known.get(&name).copied())).collect();
            let own = self.known_result(build, stmt, &args);
            known.extend(stmt.results.iter().map(|&result| (result, own)));
        }
        known
    }

    /// Whether the statement states the layout of rows of a stream, which are read again in this layout, or of the part of an array that a
    /// trip takes. If it were kept in this layout, the parts of all trips might take the memory that the program saves.
    fn lays_out_parts(&self, build: &CallBuilder, stmt: &Stmt, args: &[Option<Known>]) -> bool {
        let is_read = |made: &Stmt| made.args.first().is_some_and(|&arg| build.ty(arg).array.is_stream);
        let is_requested =
            stmt.op().is_some_and(|op| matches!(op.rules().properties().placement, Placement::Requested(_)));
        let is_auto = || build.mesh().axes.iter().all(|axis| axis.kind == AxisKind::Auto);
        let of = |arg: &Value| self.stmts.iter().find(|made| made.results.contains(arg));
        let are_rows = || stmt.args.iter().all(|&arg| of(&build.resolved(arg)).is_some_and(is_read));
        is_requested && (self.is_loop && *args == [Some(Known::Repeated)] && is_auto() || are_rows())
    }

    /// The known facts about the results of a statement, from its operands; None for a captured operand.
    fn known_result(&self, build: &CallBuilder, stmt: &Stmt, args: &[Option<Known>]) -> Known {
        let Some(op) = stmt.op() else { return Known::Kept };
        let properties = op.rules().properties();
        let is_had = |known: &Option<Known>| matches!(known, None | Some(Known::Invariant | Known::Repeated));
        let is_invariant = |known: &Option<Known>| matches!(known, None | Some(Known::Invariant));
        let acts = match properties.effect {
            Effect::None => build.func().may_stop(stmt),
            Effect::Stops | Effect::Check => true,
            Effect::Text | Effect::File | Effect::Layout | Effect::Message => return Known::Kept,
        };
        if self.is_loop && !acts && args.iter().all(is_invariant) {
            return Known::Invariant;
        }
        if self.can_keep && args.first() == Some(&None) && self.is_small_part(build, stmt) {
            return Known::Kept;
        }
        let moves = matches!(properties.elements, Elements::Repeated | Elements::Moved);
        let is_cheap = match properties.elements {
            Elements::Literal(_)
            | Elements::Counted
            | Elements::Drawn
            | Elements::Rows
            | Elements::Repeated
            | Elements::Moved
            | Elements::Negated
            | Elements::Window(_)
            | Elements::Framed(_) => true,
            Elements::Chosen(_)
            | Elements::Ordered(_)
            | Elements::Elementwise
            | Elements::Transferred(_)
            | Elements::Other => {
                let is_number = |value: &Value| build.ty(*value).is_scalar();
                self.lays_out_parts(build, stmt, args)
                    || matches!(properties.combines, Combines::Places(_))
                    || stmt.args.iter().chain(&stmt.results).all(is_number)
            }
        };
        match (is_cheap, args.iter().all(is_had)) {
            (true, true) => Known::Repeated,
            (false, true) if !self.can_keep => Known::Repeated,
            (true, false) if moves => Known::Moved,
            (true | false, _) => Known::Kept,
        }
    }

    /// Whether the statement takes a small part of an array from outside that changes from trip to trip.
    fn is_small_part(&self, build: &CallBuilder, stmt: &Stmt) -> bool {
        let (Some(op), &[result]) = (stmt.op(), stmt.results.as_slice()) else { return false };
        let properties = op.rules().properties();
        let takes =
            matches!(properties.combines, Combines::Places(_)) || matches!(properties.elements, Elements::Window(_));
        let of = build.resolved(stmt.args[0]);
        let elements = |value: Value| build.ty(value).array.len();
        takes && self.changing.contains(&of) && elements(result).saturating_mul(SMALL_PART) <= elements(of)
    }
}
