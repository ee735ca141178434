//! Builds statements for passes, which know the type of every result before they make it.
//!
//! Nothing is inferred and nothing can fail: a statement that does not fit its op is a defect of the pass, which an assertion
//! detects at once. User code can be wrong, so types are inferred there: see [`ops::call::build`](crate::call::build).

use crate::op::Op;
use crate::program::origin::Origin;
use crate::program::typing;
use crate::program::{Func, Stmt, Value};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::Type;

/// Makes statements one after the other; [`Builder::finish`] returns them.
pub struct Builder<'a> {
    /// The function that gets the new values.
    pub func: &'a mut Func,
    mesh: &'a Mesh,
    stmts: Vec<Stmt>,
}

impl<'a> Builder<'a> {
    /// A builder without statements.
    pub fn new(func: &'a mut Func, mesh: &'a Mesh) -> Builder<'a> {
        Builder { func, mesh, stmts: Vec::new() }
    }

    /// Adds a statement whose result is a new value of this type.
    pub fn emit(&mut self, op: impl Into<Op>, args: &[Value], ty: Type, origin: &Origin) -> Value {
        let result = self.func.new_value(ty, origin.clone());
        self.define(op, args, &[result], origin);
        result
    }

    /// Adds a statement that defines these values, which already have types.
    pub fn define(&mut self, op: impl Into<Op>, args: &[Value], results: &[Value], origin: &Origin) {
        self.stmts.push(statement(self.func, self.mesh, (op, args), results, origin));
    }

    /// The statements, in the order of their creation.
    pub fn finish(self) -> Vec<Stmt> {
        self.stmts
    }
}

/// A statement that defines these values, which already have types, from operands.
pub fn statement(
    func: &Func,
    mesh: &Mesh,
    (op, args): (impl Into<Op>, &[Value]),
    results: &[Value],
    origin: &Origin,
) -> Stmt {
    let op = op.into();
    debug_assert_eq!(misfit(func, mesh, (&op, args), results), None);
    Stmt::new(op, args.to_vec(), results.to_vec(), origin.clone())
}

/// The reason why the op cannot have these operands and results.
fn misfit(func: &Func, mesh: &Mesh, (op, args): (&Op, &[Value]), results: &[Value]) -> Option<String> {
    let name = op.rules().name();
    match typing::shapes(op, &func.types(args), mesh) {
        Ok(types) => {
            let results = func.types(results);
            let fits = types.len() == results.len() && types.iter().zip(results).all(|(a, b)| a.array == b.array);
            (!fits).then(|| format!("`{name}` makes {types:?} of its operands"))
        }
        Err(mismatch) => Some(format!("`{name}`: {}", mismatch.message)),
    }
}
