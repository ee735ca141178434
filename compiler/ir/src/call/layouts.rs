//! Types and layouts of values under construction: the part of a layout that a type decides, and values brought into it.

use crate::call::build::CallBuilder;
use crate::op::Op;
use crate::program::Value;
use spmdc_abi::ReduceOp;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_layout::explicit;
use spmdc_layout::mesh::AxisKind;
use spmdc_layout::sharding::Sharding;
use spmdc_layout::types::{ArrayType, AxisSet, Type};

impl CallBuilder {
    /// The initial layout of a value's type: replicated on explicit axes, otherwise open.
    pub fn unknown_layout(&self, rank: usize) -> Sharding {
        explicit::unknown_layout(rank, self.mesh())
    }

    /// The type of a value created here.
    pub fn replicated(&self, array: ArrayType) -> Type {
        Type { sharding: self.unknown_layout(array.rank()), array, varying: AxisSet::EMPTY }
    }

    /// The type of a value without its annotations on auto axes, which apply to that value only.
    pub fn carried_type(&self, value: Value) -> Type {
        let ty = self.ty(value);
        Type { sharding: self.explicit_part(ty), ..ty.clone() }
    }

    /// The type of the gradients of a value without annotations on auto axes: its layout is the dual of the value's.
    pub fn gradient_type(&self, value: Value) -> Type {
        let ty = self.carried_type(value);
        Type { sharding: ty.sharding.dual(), ..ty }
    }

    /// The layout of a product whose result is a gradient of a value, for its `out=`: the layout of the gradient. Along axes over which the
    /// operands do not produce partial sums, the result is whole first. None without explicit axes.
    pub fn out_of_gradient(&self, op: &Op, args: &[Value], of: Value) -> Option<Sharding> {
        let explicit = self.mesh().of_kind(AxisKind::Explicit).minus(self.manual());
        if explicit.is_empty() {
            return None;
        }
        let ty = self.gradient_type(of);
        let partial = (self.ops.partial_axes)(op, &self.func().types(args), &ty.array, self.mesh());
        let unreduced = ty.sharding.unreduced.intersect(partial).intersect(explicit);
        let out = Sharding { reduced: ty.sharding.reduced.intersect(explicit), ..ty.sharding };
        Some(out.with_unreduced(unreduced, ReduceOp::Sum))
    }

    /// The type of `trips` values of one type along a new first dimension.
    pub fn stacked_type(&self, value: Value, trips: usize) -> Type {
        let mut ty = self.carried_type(value);
        ty.array.shape.insert(0, trips);
        ty.sharding.dims.insert(0, self.unknown_layout(1).dims[0].clone());
        ty
    }

    /// Whether types decide layouts along some axis.
    pub fn has_explicit_axes(&self) -> bool {
        self.mesh().axes.iter().any(|axis| axis.kind == AxisKind::Explicit)
    }

    /// The part of a layout that the value's type decides: all of it on explicit axes, and on manual ones its unreduced and reduced axes.
    pub fn explicit_part(&self, ty: &Type) -> Sharding {
        let own = explicit::explicit_part(&ty.sharding, self.mesh());
        let reduced = own.reduced.union(ty.sharding.reduced.intersect(self.manual()));
        let unreduced = own.unreduced.union(ty.sharding.unreduced.intersect(self.manual()));
        Sharding { reduced, ..own }.with_unreduced(unreduced, ty.sharding.combine)
    }

    /// A value in the layout that the type of another decides.
    pub fn in_layout_of(&mut self, value: Value, like: Value) -> Result<Value, Diagnostic> {
        let (own, wanted) = (self.explicit_part(self.ty(value)), self.explicit_part(self.ty(like)));
        if own == wanted && !self.comes_in(value) {
            Ok(value)
        } else {
            self.emit1((self.ops.request)(wanted), &[value])
        }
    }

    /// As [`CallBuilder::in_layout_of`], varying along the axes of the other value.
    pub fn laid_out_like(&mut self, value: Value, like: Value) -> Result<Value, Diagnostic> {
        let value = self.in_layout_of(value, like)?;
        let varying = self.ty(like).varying;
        self.vary(value, varying)
    }

    /// A type as in messages: without open dimensions.
    pub fn display_closed(&self, ty: &Type) -> String {
        Type { sharding: ty.sharding.close(), ..ty.clone() }.display(self.mesh())
    }

    /// As [`CallBuilder::display_closed`], with the axes of every dimension if otherwise none would be written: `f32[8@_]`.
    pub fn annotated(&self, ty: &Type) -> String {
        let is_quiet = ty.sharding.dims.iter().all(|dim| dim.axes.is_empty());
        let text = self.display_closed(ty);
        match text.split_once('[') {
            Some((dtype, rest)) if is_quiet => {
                let dims: Vec<String> = ty.shape().iter().map(|size| format!("{size}@_")).collect();
                let suffixes = rest.split_once(']').map_or("", |(_, suffixes)| suffixes);
                format!("{dtype}[{}]{suffixes}", dims.join(","))
            }
            Some(_) | None => text,
        }
    }

    /// The value, marked as varying along these axes, too.
    pub fn vary(&mut self, value: Value, axes: AxisSet) -> Result<Value, Diagnostic> {
        let missing = axes.minus(self.ty(value).varying);
        if missing.is_empty() {
            return Ok(value);
        }
        let axes = missing.iter().map(|axis| axis as u8).collect();
        self.emit1((self.ops.vary)(axes), &[value])
    }
}
