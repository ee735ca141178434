//! The intermediate representation: one function of structured statements over arrays.
//!
//! It contains no calls, because the checker expands every function where it is called. Structs and tuples are replaced by their leaves, and
//! shapes are numbers. A statement has operands and results, and is an op or control flow. Instead of a control-flow graph, `for`, `while`, `if`
//! and `manual` contain blocks, so a pass visits statements in order.
//!
//! Every value is defined once. A block sees the values of its enclosing blocks.

pub mod build;
pub mod choice;
pub mod control;
pub mod explicit;
pub mod local;
pub mod origin;
pub mod partial_sums;
pub mod placement;
pub mod reasons;
pub mod streams;
pub mod transfer_target;
pub mod typing;
pub mod units;
pub mod value;
pub mod walk;

pub use self::value::Value;
use crate::op::Op;
use crate::program::control::Control;
use crate::program::origin::{DerivedFrom, Origin};
use crate::rules::{Effect, Rules};
use spmdc_abi::{CollectiveKind, LayoutDim, Plane};
use spmdc_grammar::span::Span;
use spmdc_layout::factors::Factors;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::sharding::Sharding;
use spmdc_layout::sub_axes::SubAxes;
use spmdc_layout::types::{ArrayType, AxisSet, Type};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The progress of a program through the pipeline. Dumps name it in their first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Types and shapes are known; auto axes are not decided.
    Typed,
    /// As before; dead and duplicate statements left by differentiation and batching have been removed.
    Differentiated,
    /// Every sharding is decided; operands of an op may still disagree.
    Propagated,
    /// Every op is local under its factor rule; all communication is explicit.
    Partitioned,
    /// Collectives are combined; loop nests and buffers are decided.
    Optimized,
}

impl Stage {
    /// All stages, in pipeline order.
    pub const ALL: [Stage; 5] =
        [Stage::Typed, Stage::Differentiated, Stage::Propagated, Stage::Partitioned, Stage::Optimized];

    /// The name in the first line of dumps.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Typed => "typed",
            Stage::Differentiated => "differentiated",
            Stage::Propagated => "propagated",
            Stage::Partitioned => "partitioned",
            Stage::Optimized => "optimized",
        }
    }
}

/// A whole program: its mesh and its entry function.
#[derive(Clone, Debug, PartialEq)]
pub struct Module {
    /// The stage of the module.
    pub stage: Stage,
    /// The devices for which it is compiled.
    pub mesh: Mesh,
    /// The entry function, in which all others are expanded.
    pub func: Func,
}

/// A function: its signature, its statements, and the table of its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Func {
    /// The name of the function in the source.
    pub name: String,
    /// One for each leaf: a struct parameter `p` becomes `p.w`, `p.b`. The values are the parameters of `body`.
    pub params: Vec<Param>,
    /// The names of the results: `0`, `1` for a tuple's fields, field paths for a struct's. The values are the results of `body`.
    pub results: Vec<ResultInfo>,
    /// The statements.
    pub body: Block,
    /// All values, by number. Copies of a module, which passes and the choice between layouts make, share the unchanged entries.
    pub values: Vec<Arc<ValueInfo>>,
    /// The source text at the position of each statement of a derivative, for reasons: "line 7: `h @ w`".
    pub quotes: BTreeMap<Span, String>,
    /// Further names of values that have one, each with the source position at which the program gives it: `t` of `slots = t`.
    pub other_names: BTreeSet<(Span, String, Value)>,
}

/// A leaf of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// The path of the leaf, such as `p.w`; the planes of complex numbers `z` are `z.re` and `z.im`.
    pub name: String,
    /// Set for a plane of complex numbers.
    pub plane: Option<Plane>,
    /// The mesh on which it is, if the program has several; None: wherever it is used.
    pub on: Option<u8>,
    /// The source position of the parameter.
    pub span: Span,
}

/// The name of the complex array with this plane, or of the array itself: `z` for `z.re`, `0` for a lone `re`.
pub fn whole_name(name: &str, plane: Option<Plane>) -> String {
    let Some(plane) = plane else { return name.to_string() };
    match name.strip_suffix(plane.name()).map(|whole| whole.trim_end_matches('.')) {
        Some("") => "0".to_string(),
        Some(whole) => whole.to_string(),
        None => unreachable!("a plane is named after its kind"),
    }
}

/// The type as the program writes it: for a plane, the complex type.
pub fn shown_type(ty: &Type, plane: Option<Plane>, mesh: &Mesh) -> String {
    let text = ty.display(mesh);
    match (plane, ty.dtype().complex_name()) {
        (Some(_), Some(name)) => text.replacen(ty.dtype().name(), name, 1),
        (Some(_) | None, _) => text,
    }
}

/// A leaf of the result.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultInfo {
    /// The path of the leaf, such as `0` or `w`; the planes of complex numbers `z` are `z.re` and `z.im`.
    pub name: String,
    /// Set for a plane of complex numbers.
    pub plane: Option<Plane>,
    /// The source position of the result.
    pub span: Span,
}

/// The properties of a value besides its definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueInfo {
    /// Its type, with its sharding.
    pub ty: Type,
    /// The name of the user's `let`, for reports.
    pub name: Option<String>,
    /// The source position of that name.
    pub named: Span,
    /// The origin of its definition.
    pub origin: Origin,
    /// The value to which derivatives relate it, if they made it; it has a name after that one.
    pub derived_from: Option<DerivedFrom>,
    /// The axes along which it was reduced until derivatives had been taken, for reports.
    pub was_reduced: AxisSet,
}

/// Statements in order, with parameters and results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// The values that exist before the first statement, supplied by the statement that holds the block.
    pub params: Vec<Value>,
    /// The statements, in the order in which they run.
    pub stmts: Vec<Stmt>,
    /// The values that the block returns to the statement that holds it.
    pub results: Vec<Value>,
}

/// A statement: an op or control flow, with its operands and the values that it defines.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    /// The op or the control flow.
    pub kind: StmtKind,
    /// The operands.
    pub args: Vec<Value>,
    /// The values that it defines.
    pub results: Vec<Value>,
    /// Its source position, and the reason if a pass inserted it.
    pub origin: Origin,
}

/// The action of a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    /// An operation on arrays.
    Op(Op),
    /// A loop, a branch or a region, which holds blocks.
    Control(Control),
}

impl Stmt {
    /// A statement that is an op.
    pub fn new(op: Op, args: Vec<Value>, results: Vec<Value>, origin: Origin) -> Stmt {
        Stmt { kind: StmtKind::Op(op), args, results, origin }
    }

    /// Control flow.
    pub fn of_control(control: Control, args: Vec<Value>, results: Vec<Value>, origin: Origin) -> Stmt {
        Stmt { kind: StmtKind::Control(control), args, results, origin }
    }

    /// The same statement with other results of the same types.
    pub fn making(&self, results: Vec<Value>) -> Stmt {
        Stmt { results, ..self.clone() }
    }

    /// The op; None for control flow.
    pub fn op(&self) -> Option<&Op> {
        match &self.kind {
            StmtKind::Op(op) => Some(op),
            StmtKind::Control(_) => None,
        }
    }

    /// Whether it is an op of this type.
    pub fn is<T: Rules>(&self) -> bool {
        self.op().is_some_and(Op::is::<T>)
    }

    /// The op, if it is of this type.
    pub fn as_op<T: Rules>(&self) -> Option<&T> {
        self.op()?.as_op()
    }

    /// As [`Stmt::as_op`], mutable.
    pub fn as_op_mut<T: Rules>(&mut self) -> Option<&mut T> {
        if let StmtKind::Op(op) = &mut self.kind { op.as_op_mut() } else { None }
    }

    /// The control flow; None for an op.
    pub fn control(&self) -> Option<&Control> {
        match &self.kind {
            StmtKind::Op(_) => None,
            StmtKind::Control(control) => Some(control),
        }
    }

    /// As [`Stmt::control`], mutable.
    pub fn control_mut(&mut self) -> Option<&mut Control> {
        match &mut self.kind {
            StmtKind::Op(_) => None,
            StmtKind::Control(control) => Some(control),
        }
    }

    /// Whether it is control flow.
    pub fn is_control(&self) -> bool {
        self.control().is_some()
    }

    /// The blocks of control flow; empty for an op.
    pub fn blocks(&self) -> impl Iterator<Item = &Block> + use<'_> {
        self.control().into_iter().flat_map(Control::blocks)
    }

    /// As [`Stmt::blocks`], mutable.
    pub fn blocks_mut(&mut self) -> impl Iterator<Item = &mut Block> + use<'_> {
        self.control_mut().into_iter().flat_map(Control::blocks_mut)
    }

    /// Its name in messages: the name of the op, or `for`, `while`, `if` or `manual`.
    pub fn name(&self) -> &'static str {
        match &self.kind {
            StmtKind::Op(op) => op.rules().name(),
            StmtKind::Control(control) => control.name(),
        }
    }

    /// Whether the statement itself has an effect; the contents of control flow do not count.
    pub fn has_effect(&self) -> bool {
        self.op().is_some_and(Op::has_effect)
    }

    /// Replaces cut axes by their parts wherever the statement itself names axes.
    pub fn name_parts(&mut self, parts: &SubAxes) {
        self.origin.turned = parts.set(self.origin.turned);
        match &mut self.kind {
            StmtKind::Op(op) => op.rules_mut().named_axes().into_iter().for_each(|axes| axes.cut(parts)),
            StmtKind::Control(control) => control.name_parts(parts),
        }
    }
}

impl Func {
    /// A function of this name without parameters, results and statements.
    pub fn new(name: &str) -> Func {
        Func {
            name: name.to_string(),
            params: Vec::new(),
            results: Vec::new(),
            body: Block::default(),
            values: Vec::new(),
            quotes: BTreeMap::new(),
            other_names: BTreeSet::new(),
        }
    }

    /// The axes that some function turns: see [`Origin::turned`].
    pub fn turned(&self) -> AxisSet {
        self.values.iter().fold(AxisSet::EMPTY, |axes, info| axes.union(info.origin.turned))
    }

    /// Whether the statement itself can stop the program: for an operand of integers that is invalid, or by its effect.
    pub fn may_stop(&self, stmt: &Stmt) -> bool {
        let Some(op) = stmt.op() else { return false };
        match op.rules().properties().effect {
            Effect::None | Effect::Text | Effect::File | Effect::Layout | Effect::Message => false,
            Effect::Stops => stmt.results.iter().any(|&result| self.ty(result).dtype().is_integer()),
            Effect::Check => true,
        }
    }

    /// The type of a value, as the program has it: also reduced where it was that before derivatives were taken.
    pub fn ty_in_program(&self, value: Value) -> Type {
        let info = self.info(value);
        let reduced = info.ty.sharding.reduced.union(info.was_reduced);
        Type { sharding: Sharding { reduced, ..info.ty.sharding.clone() }, ..info.ty.clone() }
    }

    /// The type of a value.
    pub fn ty(&self, value: Value) -> &Type {
        &self.values[value.0 as usize].ty
    }

    /// The type of each of these values.
    pub fn types(&self, values: &[Value]) -> Vec<&Type> {
        values.iter().map(|&value| self.ty(value)).collect()
    }

    /// The element type and shape of each of these values.
    pub fn arrays(&self, values: &[Value]) -> Vec<&ArrayType> {
        values.iter().map(|&value| &self.ty(value).array).collect()
    }

    /// The factor rule of a statement's op.
    pub fn factors(&self, op: &Op, stmt: &Stmt) -> Factors {
        op.rules().factors(&self.arrays(&stmt.args), &self.arrays(&stmt.results))
    }

    /// The number of operations of a statement over all devices; the contents of control flow do not count.
    pub fn flops(&self, stmt: &Stmt) -> u64 {
        stmt.op().map_or(0, |op| op.rules().flops(&self.arrays(&stmt.args), &self.arrays(&stmt.results)))
    }

    /// The collective that a statement itself is, if any: its kind, and the axes of its groups.
    pub fn collective(&self, stmt: &Stmt, mesh: &Mesh) -> Option<(CollectiveKind, AxisSet)> {
        let exchange = stmt.op()?.exchange()?;
        Some(exchange.collective(&self.types(&stmt.args), &self.types(&stmt.results), mesh))
    }

    /// The entry of a value in the table of values.
    pub fn info(&self, value: Value) -> &ValueInfo {
        &self.values[value.0 as usize]
    }

    /// As [`Func::info`], mutable.
    pub fn info_mut(&mut self, value: Value) -> &mut ValueInfo {
        Arc::make_mut(&mut self.values[value.0 as usize])
    }

    /// The parameter that a stream is, by its position, and for each dimension the part of it that a device of a region sees.
    pub fn stream_source(&self, stream: Value) -> Option<(usize, Vec<LayoutDim>)> {
        let whole = |axes: &dyn Fn(usize) -> Vec<u8>, of: Value| {
            let sizes = self.ty(of).shape().iter().enumerate();
            sizes.map(|(dim, &size)| LayoutDim { size, axes: axes(dim) }).collect()
        };
        let param = |value: Value| self.body.params.iter().position(|&param| param == value);
        if let Some(param) = param(stream) {
            return Some((param, whole(&|_| Vec::new(), stream)));
        }
        let mut found = None;
        self.body.walk(&mut |stmt| {
            let Some(Control::Manual(region)) = stmt.control() else { return };
            let Some(at) = region.body.params.iter().position(|&inner| inner == stream) else { return };
            let cut = &region.inputs[at];
            found = param(stmt.args[at]).map(|param| (param, whole(&|dim| cut.dims[dim].axes.clone(), stmt.args[at])));
        });
        found
    }

    /// The entries of all values, mutable, in the order of their numbers.
    pub fn infos_mut(&mut self) -> impl Iterator<Item = &mut ValueInfo> {
        self.values.iter_mut().map(Arc::make_mut)
    }

    /// Replaces the value in every use, and in the records of derivatives.
    pub fn replace_uses(&mut self, replaced: impl Fn(Value) -> Value) {
        self.body.each_use_mut(&mut |value| *value = replaced(*value));
        self.body.walk_mut(&mut |stmt| stmt.origin.lineage.of = stmt.origin.lineage.of.map(&replaced));
        for info in &mut self.values {
            if let Some(derived_from) = info.derived_from {
                Arc::make_mut(info).derived_from = Some(derived_from.mapped(&replaced));
            }
        }
    }

    /// Adds a value of this type without a name; the caller makes it a result or a parameter.
    pub fn new_value(&mut self, ty: Type, origin: Origin) -> Value {
        self.values.push(Arc::new(ValueInfo {
            ty,
            name: None,
            named: origin.span,
            origin,
            derived_from: None,
            was_reduced: AxisSet::EMPTY,
        }));
        Value(self.values.len() as u32 - 1)
    }

    /// Adds a value with the type, the origin and the name of another one.
    pub fn new_like(&mut self, value: Value) -> Value {
        let info = self.info(value).clone();
        let new = self.new_value(info.ty, info.origin);
        self.info_mut(new).name = info.name;
        new
    }
}

impl Block {
    /// Visits every statement, in order; a statement comes before those in its blocks.
    pub fn walk<'a>(&'a self, visit: &mut dyn FnMut(&'a Stmt)) {
        for stmt in &self.stmts {
            visit(stmt);
            for block in stmt.blocks() {
                block.walk(visit);
            }
        }
    }

    /// Visits every use of a value, in order: operands and the results of blocks.
    pub fn each_use(&self, visit: &mut dyn FnMut(Value)) {
        for stmt in &self.stmts {
            stmt.args.iter().for_each(|&arg| visit(arg));
            stmt.blocks().for_each(|block| block.each_use(visit));
        }
        self.results.iter().for_each(|&result| visit(result));
    }

    /// As [`Block::each_use`], mutable.
    pub fn each_use_mut(&mut self, visit: &mut dyn FnMut(&mut Value)) {
        for stmt in &mut self.stmts {
            stmt.args.iter_mut().for_each(&mut *visit);
            stmt.blocks_mut().for_each(|block| block.each_use_mut(visit));
        }
        self.results.iter_mut().for_each(visit);
    }

    /// As [`Block::walk`], mutable.
    pub fn walk_mut(&mut self, visit: &mut dyn FnMut(&mut Stmt)) {
        for stmt in &mut self.stmts {
            visit(stmt);
            stmt.blocks_mut().for_each(|block| block.walk_mut(visit));
        }
    }
}
