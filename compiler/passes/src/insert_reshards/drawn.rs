//! Random numbers in several layouts: a reshard would move numbers that each device can draw itself, so they are drawn again.
//!
//! ```text
//! let u = random_bits(k, u32[16]) >> 9;      // u: u32[16@X]
//! y + u                                      // y: u32[16@Y]
//! =>
//! let v0: u32[16@Y] = random_bits(k, u32[16]);
//! let v1: u32[16@Y] = v0 >> 9;
//! ```

use super::{Inserter, Stmt, Type, Value, statement};
use spmdc_ir::program::origin::Origin;
use spmdc_ir::rules::Elements;
use spmdc_layout::sharding::Sharding;

impl Inserter<'_> {
    /// Remembers a statement whose result every device can make in any layout: of random bits, of values without dimensions, and element
    /// by element of such results.
    pub(super) fn note_drawn(&mut self, stmt: &Stmt) {
        let (Some(op), &[result]) = (stmt.op(), stmt.results.as_slice()) else { return };
        let reads = stmt.args.first().is_some_and(|&arg| self.func.ty(arg).array.is_stream);
        if !(op.is_pointwise() || reads) || op.has_effect() || op.rules().properties().group().is_some() {
            return;
        }
        let is_scalar = |arg: &Value| {
            let ty = self.func.ty(*arg);
            ty.rank() == 0 && ty.sharding.unreduced.is_empty()
        };
        let shape = self.func.ty(result).shape();
        let is_drawn = |arg: &Value| self.drawn.contains_key(arg) && self.func.ty(*arg).shape() == shape;
        let elements = op.rules().properties().elements;
        let from_drawn =
            || stmt.args.iter().any(is_drawn) && stmt.args.iter().all(|arg| is_scalar(arg) || is_drawn(arg));
        let again = match elements.are_elementwise() {
            true => from_drawn(),
            // The indices of rows follow the rows.
            false => matches!(elements, Elements::Drawn | Elements::Rows) && (reads || stmt.args.iter().all(is_scalar)),
        };
        if again && !shape.is_empty() {
            self.drawn.insert(result, stmt.clone());
        }
    }

    /// Whether the value is made again instead of being moved to this layout.
    pub(super) fn is_drawn_again(&self, value: Value, to: &Sharding) -> bool {
        let are_whole = |layout: &Sharding| !layout.is_aligned() && layout.unreduced.is_empty();
        self.drawn.contains_key(&value) && are_whole(to) && are_whole(&self.func.ty(value).sharding)
    }

    /// The value in another layout, made again from its operands; None if it cannot be made again.
    pub(super) fn drawn_again(&mut self, value: Value, to: &Sharding, origin: &Origin) -> Option<Value> {
        if !self.is_drawn_again(value, to) {
            return None;
        }
        let at = self.reach(value);
        let stmt = self.drawn.get(&value)?.clone();
        let mut args = stmt.args.clone();
        let reads = self.func.ty(args[0]).array.is_stream;
        for arg in &mut args {
            if self.drawn.contains_key(arg) && !reads {
                *arg = self.laid_out(*arg, to, origin.clone());
            }
        }
        if let (true, [_, rows]) = (reads, args.as_mut_slice()) {
            let rank = self.func.ty(*rows).rank();
            *rows = self.laid_out(*rows, &Sharding { dims: to.dims[..rank].to_vec(), ..to.clone() }, origin.clone());
        }
        let ty = Type { sharding: to.clone(), ..self.func.ty(value).clone() };
        let made = self.new_value(ty, origin, at);
        let op = stmt.op()?.clone();
        let stmt = statement(&self.func, self.mesh, (op, &args), &[made], origin);
        self.drawn.insert(made, stmt.clone());
        self.open_blocks[at].stmts.push(stmt);
        self.open_blocks[at].made.push((value, to.clone(), made));
        debug_assert_eq!(self.sharding(made), *to, "the numbers lie as they were asked for");
        Some(made)
    }
}
