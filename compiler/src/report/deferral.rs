//! Loops that combine a sum over the mesh in every trip and only accumulate the results. Such a loop can accumulate partial sums, and
//! combine them once after it.
//!
//! On auto axes the compiler does this automatically. On explicit axes the types state where a sum is combined, so the program must change:
//! the accumulated value begins unreduced, and so do the terms. A gradient is unreduced if it is taken with respect to a reduced value.

use crate::totals::Collective;
use spmdc_grammar::span::Span;
use spmdc_ir::program::control::Control;
use spmdc_ir::program::origin::{DerivativePart, Lineage};
use spmdc_ir::program::partial_sums::commutes_with_sum;
use spmdc_ir::program::{Block, Func, Module, Stmt, Value};
use spmdc_layout::types::{AxisSet, Type};
use std::collections::BTreeMap;

/// A sum in a loop that could be combined after it.
#[derive(Clone, Debug, PartialEq)]
pub struct Deferral {
    /// The source position of the statement that needs the sum.
    pub span: Span,
    /// The role of this statement in derivatives.
    pub lineage: Lineage,
    /// The axes over which it is, as in a program: `X`.
    pub axes: String,
    /// The variable that the loop adds up, if it has a name.
    pub variable: Option<String>,
    /// The value by which the derivative is taken, if the term is a gradient and this has a name.
    pub gradient_of: Option<String>,
    /// Whether the term is a gradient.
    pub is_gradient: bool,
    /// The number of trips of the loop; None if it is unknown at compile time.
    pub trips: Option<u64>,
}

impl Deferral {
    /// Whether it is the sum of this collective.
    pub fn is_of(&self, collective: &Collective) -> bool {
        (self.span, self.lineage) == (collective.span, collective.lineage)
    }

    /// The change of the program that defers the sum of this collective, and both prices.
    pub fn advice(&self, collective: &Collective) -> String {
        let (axes, bytes) = (&self.axes, collective.bytes);
        let begin = match &self.variable {
            Some(name) => format!("initialise `{name}` with `pcast(.., {axes}, to=\"unreduced\")`"),
            None => format!("initialise the variable with `pcast(.., {axes}, to=\"unreduced\")`"),
        };
        let term = match (self.is_gradient, &self.gradient_of) {
            (true, Some(name)) => format!("differentiate with respect to `pcast({name}, {axes}, to=\"reduced\")`"),
            (true, None) => format!("differentiate with respect to a value of `pcast(.., {axes}, to=\"reduced\")`"),
            (false, _) => format!("keep its terms partial with `out=P(.., unreduced={axes})`"),
        };
        let times = |count: u64| if count == 1 { "once".to_string() } else { format!("{count} times") };
        let price = match (collective.trips, self.trips) {
            (Some(all), Some(trips)) => format!("{} instead of {}", times(all / trips.max(1)), times(all)),
            (_, Some(trips)) => format!("once for {trips} trips"),
            (_, None) => "once instead of in every trip".to_string(),
        };
        format!("{begin}, {term}, and `reshard` the sum after the loop: {bytes} bytes per device {price}")
    }
}

/// The sums over explicit axes that loops only add up, in program order.
pub fn deferrals(module: &Module) -> Vec<Deferral> {
    let mut found = Vec::new();
    module.func.body.walk(&mut |stmt| {
        let (body, first, trips) = match stmt.control() {
            Some(Control::For(op)) => (&op.body, 1, op.trips()),
            Some(Control::While(op)) => (&op.body, 0, None),
            Some(Control::Branch(_) | Control::Manual(_)) | None => return,
        };
        if trips.is_none_or(|trips| trips > 1) {
            let mut uses = BTreeMap::new();
            body.each_use(&mut |value| *uses.entry(value).or_default() += 1);
            let around = SumLoop { module, body, carried: &body.params[first..], trips, uses };
            found.extend(body.stmts.iter().filter_map(|stmt| around.deferral(stmt)));
        }
    });
    found
}

/// A loop, and the values that its body carries.
struct SumLoop<'a> {
    module: &'a Module,
    body: &'a Block,
    carried: &'a [Value],
    trips: Option<u64>,
    /// The number of uses of each value in the body.
    uses: BTreeMap<Value, usize>,
}

impl SumLoop<'_> {
    fn func(&self) -> &Func {
        &self.module.func
    }

    /// The sum that this statement of the body combines, if the loop only adds it up.
    fn deferral(&self, stmt: &Stmt) -> Option<Deferral> {
        let (&[from], &[to]) = (stmt.args.as_slice(), stmt.results.as_slice()) else { return None };
        stmt.op()?.exchange()?;
        let state = |value: Value| self.func().ty(value).sharding.unreduced;
        let axes = state(from).minus(state(to));
        let explicit = self.module.mesh.explicit_where(self.func().info(to).origin.turned);
        if axes.is_empty() || !axes.is_subset_of(explicit) {
            return None;
        }
        let carried = self.added_to(to, axes)?;
        let lineage = stmt.origin.lineage;
        Some(Deferral {
            span: stmt.origin.span,
            lineage,
            axes: self.module.mesh.display_set(axes),
            variable: self.func().info(carried).name.clone(),
            gradient_of: self.func().subject(lineage).map(str::to_string),
            is_gradient: lineage.part == DerivativePart::Gradient,
            trips: self.trips,
        })
    }

    /// The carried value to which linear statements add this one, if it has no other use, and the carried value neither.
    fn added_to(&self, value: Value, axes: AxisSet) -> Option<Value> {
        let mut sum = None;
        let mut value = value;
        loop {
            if let Some(at) = self.body.results.iter().position(|&result| result == value) {
                let carried = *self.carried.get(at)?;
                return (sum == Some(carried) && self.uses(value) == 1).then_some(carried);
            }
            let user = self.body.stmts.iter().find(|stmt| stmt.args.contains(&value))?;
            let (Some(op), &[result]) = (user.op(), user.results.as_slice()) else { return None };
            if self.uses(value) != 1 {
                return None;
            }
            let own = |arg: &Value| self.carried.contains(arg) && self.uses(*arg) == 1;
            sum = sum.or(user.args.iter().copied().find(|arg| own(arg)));
            let sets = user.args.iter().map(|&arg| match arg == value || Some(arg) == sum {
                true => axes,
                false => AxisSet::EMPTY,
            });
            let types: Vec<&Type> = self.func().types(&user.args);
            if !commutes_with_sum(op, &types, &sets.collect::<Vec<_>>()) {
                return None;
            }
            value = result;
        }
    }

    fn uses(&self, value: Value) -> usize {
        self.uses.get(&value).copied().unwrap_or_default()
    }
}
