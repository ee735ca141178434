//! The cotangents of values, while a reverse is under construction.

use super::sparse::{accumulated, is_sparse};
use super::{conformed, parts, total};
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::scoped::Scoped;
use spmdc_ir::program::origin::{DerivativePart, DerivedFrom, Lineage};
use spmdc_ir::program::{Stmt, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Marks statements as ones through which a reverse has been taken; their largest order.
pub(super) fn passed(stmts: &mut [Stmt]) -> u8 {
    let mut order = 0;
    for stmt in stmts {
        stmt.origin.lineage.is_reversed = true;
        order = order.max(stmt.origin.lineage.order);
        for block in stmt.blocks_mut() {
            order = order.max(passed(&mut block.stmts));
        }
    }
    order
}

/// A reverse under construction; its statements go to the innermost block.
pub(super) struct Reverse<'b> {
    pub build: &'b mut CallBuilder,
    /// The values that depend on the inputs.
    pub depends: BTreeSet<Value>,
    /// The known cotangents of values.
    pub cotangents: BTreeMap<Value, Value>,
    /// The values of the innermost loop around the current statement that differ from trip to trip, including values of blocks inside.
    pub changing: BTreeSet<Value>,
}

impl Reverse<'_> {
    /// Sets the role of the next statements.
    pub fn computes(&mut self, part: DerivativePart, of: Option<Value>) {
        let order = self.build.lineage().order;
        self.build.set_lineage(Lineage { part, of, order, ..Lineage::default() });
    }

    /// Adds a cotangent to the cotangent of a value, in the layout on explicit axes that follows from the value's layout where it was made.
    pub fn add(&mut self, value: Value, found: Value) -> Result<(), Diagnostic> {
        let value = self.build.resolved(value);
        let turned = self.build.info(value).origin.turned;
        self.turned_to(turned, |reverse| reverse.add_here(value, found))
    }

    fn add_here(&mut self, value: Value, found: Value) -> Result<(), Diagnostic> {
        self.computes(DerivativePart::Gradient, Some(value));
        let ty = self.build.gradient_type(value);
        let found = conformed(self.build, found, &ty)?;
        let sum = match self.cotangents.remove(&value) {
            None => found,
            Some(before) => {
                let (mut before, mut found) = (before, found);
                // A part is not added to a sum.
                let of = |value: Value| parts(self.build.ty(value), &ty, self.build.manual());
                if of(before) != of(found) {
                    before = total(self.build, before, value)?;
                    found = total(self.build, found, value)?;
                }
                // Parts at some places are added to the whole.
                let in_loop = !self.changing.is_empty();
                let is_part = is_sparse(self.build, before, in_loop) && !is_sparse(self.build, found, in_loop);
                let (whole, part) = match is_part {
                    true => (found, before),
                    false => (before, found),
                };
                accumulated(self.build, whole, part, in_loop)?
            }
        };
        self.build.info_mut(sum).derived_from.get_or_insert(DerivedFrom::DerivativeOf(value));
        self.cotangents.insert(value, sum);
        Ok(())
    }

    /// The whole cotangent of a value, if there is one; it is not needed any more.
    pub fn take(&mut self, value: Value) -> Result<Option<Value>, Diagnostic> {
        let value = self.build.resolved(value);
        match self.cotangents.remove(&value) {
            Some(found) => total(self.build, found, value).map(Some),
            None => Ok(None),
        }
    }

    /// As [`Reverse::take`]; zeros if there is none.
    pub fn take_or_zeros(&mut self, value: Value) -> Result<Value, Diagnostic> {
        let ty = self.build.gradient_type(value);
        match self.take(value)? {
            Some(found) => conformed(self.build, found, &ty),
            None => super::zeros(self.build, value, &ty),
        }
    }
}
