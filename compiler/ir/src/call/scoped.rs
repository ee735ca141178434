//! Scopes of a builder: blocks, conditions, regions, and the place of new statements. Each is left on every path, as it was entered.

use crate::call::build::{CallBuilder, CalledFunction};
use crate::program::Block;
use crate::program::origin::{Lineage, UnitId};
use spmdc_grammar::span::Span;
use spmdc_layout::types::AxisSet;

/// A state with a builder, such as the checker or a derivative under construction.
pub trait Scoped {
    /// The builder.
    fn builder(&mut self) -> &mut CallBuilder;

    /// Adds to a new innermost block, which begins as `start`; returns the block, and the result.
    fn in_block<T>(&mut self, start: Block, fill: impl FnOnce(&mut Self) -> T) -> (Block, T) {
        let outside = self.builder().mark();
        self.builder().open(start);
        let result = fill(self);
        (self.builder().close(&outside), result)
    }

    /// Adds to a finished block.
    fn resume_block<T>(&mut self, block: &mut Block, add: impl FnOnce(&mut Self) -> T) -> T {
        let (more, result) = self.in_block(std::mem::take(block), add);
        *block = more;
        result
    }

    /// The context of new statements is afterwards as before: conditions, the region, the turned axes, and the unit.
    fn in_context<T>(&mut self, add: impl FnOnce(&mut Self) -> T) -> T {
        let mark = self.builder().mark();
        let result = add(self);
        self.builder().leave(&mark);
        result
    }

    /// New statements stand under a condition that may differ between devices along these axes.
    fn under<T>(&mut self, varies: AxisSet, condition: Span, add: impl FnOnce(&mut Self) -> T) -> T {
        self.in_context(|state| {
            state.builder().add_condition(varies, condition);
            add(state)
        })
    }

    /// New statements are those of a call of this function.
    fn in_call<T>(&mut self, called: Option<CalledFunction>, add: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.builder().set_called(called);
        let result = add(self);
        self.builder().set_called(outer);
        result
    }

    /// New statements stand in the manual region over these axes.
    fn in_region<T>(&mut self, axes: AxisSet, add: impl FnOnce(&mut Self) -> T) -> T {
        self.in_context(|state| {
            state.builder().enter_region(axes);
            add(state)
        })
    }

    /// New statements belong to a new unit, which [`CallBuilder::close_unit`] closes.
    fn in_unit<T>(&mut self, add: impl FnOnce(&mut Self) -> T) -> (UnitId, T) {
        self.in_context(|state| (state.builder().enter_unit(), add(state)))
    }

    /// The axes of the mesh are turned like those at a place in the program.
    fn turned_to<T>(&mut self, turned: AxisSet, add: impl FnOnce(&mut Self) -> T) -> T {
        self.in_context(|state| {
            state.builder().turn(turned);
            add(state)
        })
    }

    /// New statements have this source position and this lineage.
    fn at<T>(&mut self, span: Span, lineage: Lineage, add: impl FnOnce(&mut Self) -> T) -> T {
        let around = self.builder().origin();
        self.builder().set_span(span);
        self.builder().set_lineage(lineage);
        let result = add(self);
        self.builder().resume(&around);
        result
    }

    /// The place of new statements is afterwards as before, and so are the open blocks and their context if this fails.
    fn restoring<T, E>(&mut self, add: impl FnOnce(&mut Self) -> Result<T, E>) -> Result<T, E> {
        let (mark, around) = (self.builder().mark(), self.builder().origin());
        let result = add(self);
        if result.is_err() {
            self.builder().leave(&mark);
        }
        self.builder().resume(&around);
        result
    }
}

impl Scoped for CallBuilder {
    fn builder(&mut self) -> &mut CallBuilder {
        self
    }
}
