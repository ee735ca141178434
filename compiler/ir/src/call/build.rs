//! Builds statements; types are inferred, never asserted.
//!
//! The checker, the ops' calls and passes use it: they give operands and get values with types.

use crate::call::aliases::Aliases;
use crate::call::errors::{no_layout, rank_too_large, too_large};
use crate::call::fields::FieldLinks;
use crate::call::term::Term;
use crate::mismatch::PRODUCT;
use crate::mismatch::{Mismatch, called};
use crate::op::Op;
use crate::program::choice::{Choice, ChoiceEdit};
use crate::program::origin::{DerivativePart, Lineage, Origin, UnitId};
use crate::program::streams::refused_at;
use crate::program::transfer_target::{Target, TransferTarget};
use crate::program::units::{UnitCopies, UnitKind, UnitTree};
use crate::program::{Block, Func, Param, ResultInfo, Stmt, Value, ValueInfo};
use crate::rules::{Effect, Elements, Placement};
use crate::shape;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_kernel::number::to_float;
use spmdc_layout::explicit;
use spmdc_layout::mesh::{AxisKind, Mesh};
use spmdc_layout::sharding::Sharding;
use spmdc_layout::types::MAX_RANK;
use spmdc_layout::types::{ArrayType, AxisSet, DType, Type};
use std::collections::BTreeMap;

/// The open blocks of a builder, their context, and the numbers of statements and values.
#[derive(Clone, Copy, Debug)]
pub struct BuilderMark {
    blocks: usize,
    stmts: usize,
    values: usize,
    conditions: usize,
    units: usize,
    manual: AxisSet,
    turned: AxisSet,
    unit: Option<UnitId>,
}

/// The function of a call that is being read.
#[derive(Clone, Debug)]
pub struct CalledFunction {
    /// Its name in the program.
    pub name: String,
    /// Whether its op, or composition of ops, emits statements, so that it has no body in the language.
    pub is_emitted: bool,
}

/// The types of results, on meshes with explicit axes, too; the errors are those of the op and of the rule of explicit axes.
pub type InferTypes = fn(&Op, &[&Type], AxisSet, &Mesh) -> Result<Vec<Type>, Mismatch>;

/// As [`InferTypes`], without the rule of explicit axes.
pub type InferShapes = fn(&Op, &[&Type], &Mesh) -> Result<Vec<Type>, Mismatch>;

/// A list of arrays, of this element type if one is given, as one array.
pub type StackArrays = fn(&mut CallBuilder, &[Term], Option<DType>, Span) -> Result<Value, Diagnostic>;

/// The parts of the crates and modules above that the builder uses: the rule for types, and the ops that it emits.
pub struct BuilderOps {
    /// The types of the results of an op in a region over these manual axes: [`result_types`](crate::program::typing::result_types).
    pub types: InferTypes,
    /// As `types`, without the rule of explicit axes: [`shapes`](crate::program::typing::shapes).
    pub shapes: InferShapes,
    /// The axes over which an op can give partial sums: [`partial_axes`](crate::program::explicit::partial_axes).
    pub partial_axes: fn(&Op, &[&Type], &ArrayType, &Mesh) -> AxisSet,
    /// A number, or a list of numbers, of this element type if one is given.
    pub constant: fn(&Term, Option<DType>, Span) -> Result<Op, Diagnostic>,
    /// A list of arrays as one array, along a new first dimension.
    pub stacked: StackArrays,
    /// The operand, which counts as varying along these axes.
    pub vary: fn(Vec<u8>) -> Op,
    /// The operand in another layout.
    pub request: fn(Sharding) -> Op,
}

/// A function under construction: its values, its open blocks, and the context of the next statement.
pub struct CallBuilder {
    pub(super) ops: &'static BuilderOps,
    /// The mesh of the program.
    mesh: Mesh,
    /// The function; the builder adds the values of the results that it emits.
    func: Func,
    /// Open blocks, innermost last; statements go to the last one.
    blocks: Vec<Block>,
    /// The manual axes of the region that is being built; empty outside.
    manual: AxisSet,
    /// The axes that are turned in the `auto` and `explicit` functions around; the mesh of the builder has them so.
    turned: AxisSet,
    /// The enclosing conditions that may differ between devices: the axes along which they do, and their source positions. No
    /// collective can span these axes here.
    conditions: Vec<(AxisSet, Span)>,
    /// The source position of new statements: the expression being checked.
    span: Span,
    /// The role of new statements in derivatives.
    lineage: Lineage,
    /// The function whose call is being read, by its name in the program: several names make one op.
    called: Option<CalledFunction>,
    /// Whether all types are stated, because a dump is being read.
    exact: bool,
    /// The last statement that could not be emitted because its layout is ambiguous: its operands, and the possible choices.
    conflict: Option<(Vec<Value>, Vec<Choice>)>,
    aliases: Aliases,
    /// The mesh to which each transfer of the program goes, by its number.
    transfers: BTreeMap<u32, u8>,
    /// The functions that derivatives treat as one.
    units: UnitTree,
    /// The innermost of them around new statements.
    unit: Option<UnitId>,
    /// The numbers that scalars of floats are.
    literals: BTreeMap<Value, f64>,
    /// The layouts in the types of streams, which are the layouts of the rows that are read.
    layouts_of_rows: BTreeMap<Value, Sharding>,
    /// The places at which the program names the same fields.
    pub fields: FieldLinks,
}

impl CallBuilder {
    /// A builder with one open, empty block, outside `manual` code.
    pub fn new(mesh: Mesh, func: Func, ops: &'static BuilderOps) -> CallBuilder {
        CallBuilder {
            ops,
            mesh,
            func,
            blocks: vec![Block::default()],
            manual: AxisSet::EMPTY,
            turned: AxisSet::EMPTY,
            conditions: Vec::new(),
            span: Span::default(),
            lineage: Lineage::default(),
            called: None,
            exact: false,
            conflict: None,
            aliases: Aliases::default(),
            transfers: BTreeMap::new(),
            units: UnitTree::default(),
            unit: None,
            literals: BTreeMap::new(),
            layouts_of_rows: BTreeMap::new(),
            fields: FieldLinks::default(),
        }
    }

    /// Another name of an array, so that derivatives by one are not those by the other. [`CallBuilder::end_function`] replaces it.
    pub fn alias(&mut self, value: Value) -> Value {
        let origin = self.origin();
        let ty = self.ty(value).clone();
        let alias = self.func.new_value(ty, origin);
        self.aliases.alias(alias, value);
        alias
    }

    /// As [`CallBuilder::alias`]: a name on which no derivative depends, until it is released.
    pub fn stopped_alias(&mut self, value: Value) -> Value {
        let alias = self.alias(value);
        self.aliases.stop(alias);
        alias
    }

    /// Makes these names plain aliases again.
    pub fn release(&mut self, aliases: &[Value]) {
        aliases.iter().for_each(|&alias| self.aliases.release(alias));
    }

    /// Lets the result of a statement that has been removed be another name of a value.
    pub fn rename(&mut self, result: Value, value: Value) {
        debug_assert_ne!(self.resolved(value), result, "a value is another name of itself");
        self.aliases.alias(result, value);
    }

    /// The array of which a value is a name, up to names that are stopped.
    pub fn resolved(&self, value: Value) -> Value {
        self.aliases.resolve(value)
    }

    /// The array of which a value is a name, in the end.
    pub fn original(&self, value: Value) -> Value {
        self.aliases.original(value)
    }

    /// The other names of arrays.
    pub fn aliases(&self) -> &Aliases {
        &self.aliases
    }

    /// Replaces other names of arrays by these arrays.
    fn retire_aliases(&mut self) {
        let aliases = std::mem::take(&mut self.aliases);
        if aliases.is_empty() {
            return;
        }
        self.func.replace_uses(|value| aliases.original(value));
        let names = std::mem::take(&mut self.func.other_names);
        let original = |(place, name, value)| (place, name, aliases.original(value));
        self.func.other_names = names.into_iter().map(original).collect();
    }

    /// The number that a scalar is, if it is a float that was written down.
    pub fn literal(&self, value: Value) -> Option<f64> {
        self.literals.get(&self.original(value)).copied()
    }

    /// Gives the rows that are read of a stream this layout.
    pub fn lay_out_rows(&mut self, stream: Value, layout: Sharding) {
        debug_assert!(self.ty(stream).array.is_stream, "rows are those of a stream");
        self.layouts_of_rows.insert(stream, layout);
    }

    /// The layout that the type of a stream gives to the rows that are read of it.
    pub fn layout_of_rows(&self, mut stream: Value) -> Option<&Sharding> {
        loop {
            match (self.layouts_of_rows.get(&stream), self.aliases.next(stream)) {
                (Some(layout), _) => return Some(layout),
                (None, Some(of)) => stream = of,
                (None, None) => return None,
            }
        }
    }

    /// A value like another one, which loses its name in the program to it.
    pub fn renewed(&mut self, value: Value) -> Value {
        let info = self.func.info(value).clone();
        let new = self.func.new_value(info.ty, info.origin);
        self.func.info_mut(new).derived_from = info.derived_from;
        self.move_name(value, new);
        new
    }

    /// Gives a value the name that another one has in the program.
    pub fn move_name(&mut self, from: Value, to: Value) {
        let info = self.func.info_mut(from);
        let (name, named) = (info.name.take(), info.named);
        if name.is_some() {
            let info = self.func.info_mut(to);
            (info.name, info.named) = (name, named);
        }
    }

    /// Forgets all values from a number on, because the statements that define them have been removed.
    pub fn forget_values(&mut self, count: usize) {
        let first = Value(count as u32);
        self.func.values.truncate(count);
        self.func.other_names.retain(|&(_, _, value)| value < first);
        self.aliases.forget(first);
        self.literals.split_off(&first);
        self.layouts_of_rows.split_off(&first);
    }

    /// The mesh of the program; its axes are turned as at the place of the next statement.
    pub fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    /// Sets the mesh of the program, before the first statement.
    pub fn set_mesh(&mut self, mesh: Mesh) {
        debug_assert!(self.func.values.is_empty(), "types depend on the mesh");
        self.mesh = mesh;
    }

    /// The function under construction.
    pub fn func(&self) -> &Func {
        &self.func
    }

    /// Names the function.
    pub fn name_function(&mut self, name: &str) {
        self.func.name = name.to_string();
    }

    /// Adds a parameter of the function, which is this value.
    pub fn add_param(&mut self, param: Param, value: Value) {
        self.func.params.push(param);
        self.outermost().params.push(value);
    }

    /// Adds a result of the function, which is this value.
    pub fn add_result(&mut self, result: ResultInfo, value: Value) {
        self.func.results.push(result);
        self.outermost().results.push(value);
    }

    /// Notes that the program calls a value by this name, too, which begins at `place`.
    pub fn add_other_name(&mut self, place: Span, name: String, value: Value) {
        self.func.other_names.insert((place, name, value));
    }

    /// Ends the function: the outermost block is its body, and no value has other names any more.
    pub fn end_function(&mut self) {
        self.func.body = std::mem::take(self.outermost());
        self.retire_aliases();
    }

    /// The function, which the builder no longer has.
    pub fn take_function(&mut self) -> Func {
        let name = self.func.name.clone();
        std::mem::replace(&mut self.func, Func::new(&name))
    }

    /// A new value of the function.
    pub fn new_value(&mut self, ty: Type, origin: Origin) -> Value {
        self.func.new_value(ty, origin)
    }

    /// The type, the origin and the name of a value.
    pub fn info(&self, value: Value) -> &ValueInfo {
        self.func.info(value)
    }

    /// As [`CallBuilder::info`], to change them.
    pub fn info_mut(&mut self, value: Value) -> &mut ValueInfo {
        self.func.info_mut(value)
    }

    /// The number of values that the function has so far.
    pub fn value_count(&self) -> usize {
        self.func.values.len()
    }

    /// The type of a value of the function.
    pub fn ty(&self, value: Value) -> &Type {
        self.func.ty(value)
    }

    /// The origin of new statements: the current span, in the functions around.
    pub fn origin(&self) -> Origin {
        self.origin_at(self.span)
    }

    /// As [`CallBuilder::origin`], at another place.
    pub fn origin_at(&self, span: Span) -> Origin {
        Origin { span, reason: String::new(), lineage: self.lineage, turned: self.turned, unit: self.unit }
    }

    /// Continues with an earlier result of [`CallBuilder::origin`].
    pub fn resume(&mut self, origin: &Origin) {
        (self.span, self.lineage, self.unit) = (origin.span, origin.lineage, origin.unit);
        self.turn(origin.turned);
    }

    /// Gives new statements the position of this one, and its lineage within the present one.
    pub fn follow(&mut self, origin: &Origin, outer: Lineage) {
        (self.span, self.lineage) = (origin.span, origin.lineage.within(outer));
        self.turn(origin.turned);
    }

    /// The source position of new statements.
    pub fn span(&self) -> Span {
        self.span
    }

    /// Sets the source position of the statements that follow: that of the expression being checked.
    pub fn set_span(&mut self, span: Span) {
        self.span = span;
    }

    /// The lineage of new statements.
    pub fn lineage(&self) -> Lineage {
        self.lineage
    }

    /// Sets the part that the statements that follow have in derivatives.
    pub fn set_lineage(&mut self, lineage: Lineage) {
        self.lineage = lineage;
    }

    /// The functions that derivatives treat as one.
    pub fn units(&self) -> &UnitTree {
        &self.units
    }

    /// The innermost unit around new statements.
    pub fn unit(&self) -> Option<UnitId> {
        self.unit
    }

    /// The statements that follow belong to this unit, as another statement does.
    pub fn set_unit(&mut self, unit: Option<UnitId>) {
        self.unit = unit;
    }

    /// The unit of the copy of a statement of this unit.
    pub fn copy_of_unit(&mut self, copies: &mut UnitCopies, unit: Option<UnitId>) -> Option<UnitId> {
        copies.copy(&mut self.units, unit)
    }

    /// States the treatment of a unit that [`Scoped::in_unit`](super::scoped::Scoped::in_unit) has filled.
    pub fn close_unit(&mut self, unit: UnitId, kind: UnitKind) {
        self.units.close(unit, kind);
    }

    /// The function whose call is being read.
    pub fn called(&self) -> Option<&CalledFunction> {
        self.called.as_ref()
    }

    /// Notes a transfer to this mesh, and returns its number.
    pub fn add_transfer(&mut self, to: u8) -> u32 {
        let number = self.value_count() as u32;
        self.transfers.insert(number, to);
        number
    }

    /// The mesh to which the transfer of this number goes.
    pub fn transferred_to(&self, number: u32) -> Option<u8> {
        self.transfers.get(&number).copied()
    }

    /// The manual axes of the region that is being built; empty outside.
    pub fn manual(&self) -> AxisSet {
        self.manual
    }

    /// Whether all types are stated, because a dump is being read.
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// Sets whether all types are stated.
    pub fn set_exact(&mut self, exact: bool) {
        self.exact = exact;
    }

    /// The last statement that could not be emitted because its layout is ambiguous: its operands, and the possible choices. It is forgotten.
    pub fn take_conflict(&mut self) -> Option<(Vec<Value>, Vec<Choice>)> {
        self.conflict.take()
    }

    /// Whether the last statement could not be emitted because its layout is ambiguous.
    pub fn has_conflict(&self) -> bool {
        self.conflict.is_some()
    }

    /// Lets the last statement be one with an ambiguous layout; None for one without.
    pub fn set_conflict(&mut self, conflict: Option<(Vec<Value>, Vec<Choice>)>) {
        self.conflict = conflict;
    }

    /// The axes that are turned.
    pub fn turned(&self) -> AxisSet {
        self.turned
    }

    /// Sets the turned axes: [`Origin::turned`]. Returns the previous ones.
    pub fn turn(&mut self, axes: AxisSet) -> AxisSet {
        self.mesh.turn(self.turned.either(axes));
        std::mem::replace(&mut self.turned, axes)
    }

    /// Whether an array moves to explicit axes along which the compiler decided its layout where it was made, so that its type does not
    /// state its layout.
    pub fn comes_in(&self, value: Value) -> bool {
        let explicit = self.mesh.of_kind(AxisKind::Explicit).minus(self.manual);
        let ty = self.ty(value);
        if explicit.is_empty() || self.exact || ty.rank() == 0 || ty.array.is_stream {
            return false;
        }
        let turned = self.func.info(self.original(value)).origin.turned.either(self.turned);
        !turned.intersect(explicit).is_empty()
    }

    /// Adds a statement to the innermost block and returns its results.
    pub fn emit(&mut self, op: impl Into<Op>, args: &[Value]) -> Result<Vec<Value>, Diagnostic> {
        self.emit_op(op.into(), args)
    }

    /// Not generic, so that it is compiled once and not for each op.
    fn emit_op(&mut self, op: Op, args: &[Value]) -> Result<Vec<Value>, Diagnostic> {
        self.check_reached(&op)?;
        let asks = matches!(op.rules().properties().placement, Placement::Requested(_) | Placement::Moved);
        if !asks && args.iter().any(|&arg| self.comes_in(arg)) {
            return Err(no_layout("an operand", self.span));
        }
        let types = self.func.types(args);
        let inferred = match self.exact {
            true => (self.ops.shapes)(&op, &types, &self.mesh),
            false => (self.ops.types)(&op, &types, self.manual, &self.mesh),
        };
        let results = match inferred {
            Ok(results) => results,
            Err(mismatch) => {
                if let Some(moves) = self.decided_by_derivative(&mismatch) {
                    return self.emit_moved(op, args, moves);
                }
                return Err(self.operand_mismatch(self.as_called(&op, mismatch), args));
            }
        };
        if results.iter().any(|ty| shape::elements(ty.shape()).is_none()) {
            return Err(too_large(self.span));
        }
        if let Some(ty) = results.iter().find(|ty| ty.rank() > MAX_RANK) {
            return Err(rank_too_large(ty.rank(), self.span));
        }
        let origin = self.origin();
        let results: Vec<Value> = results.into_iter().map(|ty| self.func.new_value(ty, origin.clone())).collect();
        if let Some(array) = op.rules().properties().elements.literal()
            && array.ty.rank() == 0
            && array.dtype().is_float()
        {
            self.literals.insert(results[0], to_float(array.dtype(), array.bits[0]));
        }
        let stmt = Stmt::new(op, args.to_vec(), results.clone(), origin);
        self.innermost().stmts.push(stmt);
        Ok(results)
    }

    /// The operands that move if a statement of a derivative has an ambiguous layout, each with its new layout. The program does not state
    /// the layout of such a statement. The cheapest choice is taken, because the tangent or gradient gets the layout of its value anyway.
    fn decided_by_derivative(&self, mismatch: &Mismatch) -> Option<Vec<(usize, Sharding)>> {
        if self.lineage.part == DerivativePart::Value {
            return None;
        }
        mismatch.choices.iter().find_map(|choice| match &choice.edit {
            ChoiceEdit::Reshard { operand, to } => Some(vec![(*operand, to.clone())]),
            ChoiceEdit::Reshards(moves) => Some(moves.clone()),
            ChoiceEdit::Out(_) => None,
        })
    }

    /// As [`CallBuilder::emit`], after some operands have moved.
    fn emit_moved(&mut self, op: Op, args: &[Value], moves: Vec<(usize, Sharding)>) -> Result<Vec<Value>, Diagnostic> {
        let mut args = args.to_vec();
        for (operand, to) in moves {
            let to = explicit::explicit_part(&to, &self.mesh);
            debug_assert_ne!(self.ty(args[operand]).sharding, to, "a choice changes a layout");
            args[operand] = self.emit1((self.ops.request)(to), &[args[operand]])?;
        }
        self.emit_op(op, &args)
    }

    /// No enclosing condition may differ between devices of a group if they all take part: in a collective, in printing a line, or in
    /// moving a value to another mesh.
    fn check_reached(&self, op: &Op) -> Result<(), Diagnostic> {
        let properties = op.rules().properties();
        let moves = matches!(properties.elements, Elements::Transferred(TransferTarget { to: Target::Mesh(_), .. }));
        let axes: AxisSet = match (properties.effect, properties.group().filter(|group| group.communicates())) {
            (Effect::Text | Effect::File | Effect::Layout, _) => self.mesh.all(),
            (Effect::None | Effect::Stops | Effect::Check | Effect::Message, _) if moves => self.mesh.all(),
            (Effect::None | Effect::Stops | Effect::Check | Effect::Message, Some(group)) => {
                group.axes().iter().map(|&axis| usize::from(axis)).collect()
            }
            (Effect::None | Effect::Stops | Effect::Check | Effect::Message, None) => return Ok(()),
        };
        let blocking = self.conditions.iter().find(|(varies, _)| !varies.intersect(axes).is_empty());
        let Some((varies, place)) = blocking else { return Ok(()) };
        let axes = self.mesh.display_set(varies.intersect(axes));
        let message = format!(
            "`{}` must run on all devices along {axes}, but an enclosing condition varies over {axes}",
            self.called.as_ref().map_or(op.rules().name(), |called| called.name.as_str())
        );
        Err(Diagnostic::error(Code::E0502, self.span, message)
            .label(*place, format!("this condition may differ between devices along {axes}"))
            .help("the other devices would wait forever; make the condition unvarying, as `pmax` does, or move the call out of it"))
    }

    /// As [`CallBuilder::emit`], for ops with one result.
    pub fn emit1(&mut self, op: impl Into<Op>, args: &[Value]) -> Result<Value, Diagnostic> {
        Ok(self.emit(op, args)?[0])
    }

    /// The open blocks and their context.
    pub fn mark(&self) -> BuilderMark {
        BuilderMark {
            blocks: self.blocks.len(),
            stmts: self.blocks.last().map_or(0, |block| block.stmts.len()),
            values: self.func.values.len(),
            conditions: self.conditions.len(),
            units: self.units.len(),
            manual: self.manual,
            turned: self.turned,
            unit: self.unit,
        }
    }

    /// Closes the blocks that have been opened since, and restores the context of the others.
    pub fn leave(&mut self, mark: &BuilderMark) {
        debug_assert!(self.blocks.len() >= mark.blocks, "a block from outside has been closed");
        self.blocks.truncate(mark.blocks);
        self.conditions.truncate(mark.conditions);
        self.manual = mark.manual;
        self.unit = mark.unit;
        self.turn(mark.turned);
    }

    /// As [`CallBuilder::leave`], and removes the statements and values that are new since.
    pub fn roll_back(&mut self, mark: &BuilderMark) {
        self.leave(mark);
        self.innermost().stmts.truncate(mark.stmts);
        self.forget_values(mark.values);
        self.units.truncate(mark.units);
    }

    /// Opens a block; [`Scoped::in_block`](super::scoped::Scoped::in_block) closes it.
    pub(super) fn open(&mut self, block: Block) {
        self.blocks.push(block);
    }

    /// Closes and returns the innermost block; blocks that an error has left open inside it are lost.
    pub(super) fn close(&mut self, outside: &BuilderMark) -> Block {
        self.blocks.truncate(outside.blocks + 1);
        let block = self.blocks.pop().filter(|_| self.blocks.len() == outside.blocks);
        self.leave(outside);
        block.expect("no one else closes this block")
    }

    /// New statements stand under a condition that may differ between devices along these axes.
    pub(super) fn add_condition(&mut self, varies: AxisSet, condition: Span) {
        self.conditions.push((varies, condition));
    }

    /// Sets the function whose call is being read; returns the one before.
    pub(super) fn set_called(&mut self, called: Option<CalledFunction>) -> Option<CalledFunction> {
        std::mem::replace(&mut self.called, called)
    }

    /// New statements belong to a new unit inside the present one.
    pub(super) fn enter_unit(&mut self) -> UnitId {
        let unit = self.units.open(self.unit);
        self.unit = Some(unit);
        unit
    }

    /// New statements stand in the manual region over these axes.
    pub(super) fn enter_region(&mut self, axes: AxisSet) {
        self.manual = axes;
    }

    /// The open blocks, innermost last.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The outermost block, which holds all others.
    pub fn outermost(&mut self) -> &mut Block {
        self.blocks.first_mut().expect("the outermost block is never closed")
    }

    /// The innermost block.
    pub fn innermost(&mut self) -> &mut Block {
        self.blocks.last_mut().expect("the outermost block is never closed")
    }

    /// An operand error at the current source position.
    pub fn mismatch(&self, mismatch: Mismatch) -> Diagnostic {
        let mut diagnostic = Diagnostic::error(mismatch.code, self.span, mismatch.message);
        diagnostic.help = mismatch.help;
        diagnostic
    }

    /// Adds labels at the origins of conflicting types, unless the message itself is there.
    pub fn with_types<'t>(
        &self,
        mut diagnostic: Diagnostic,
        types: impl IntoIterator<Item = (&'t Type, Span)>,
    ) -> Diagnostic {
        for (ty, origin) in types {
            if origin != diagnostic.span && diagnostic.labels.iter().all(|label| label.span != origin) {
                diagnostic = diagnostic.label(origin, format!("this is `{}`", self.display_closed(ty)));
            }
        }
        diagnostic
    }

    /// The mismatch in the words of the program: it names the function that is called, where that is made of several ops.
    fn as_called(&self, op: &Op, mut mismatch: Mismatch) -> Mismatch {
        let own = called(op.rules().name());
        let Some(function) = &self.called else { return mismatch };
        // A function that is one product is called that.
        if own != PRODUCT || !function.is_emitted {
            let noun = own.strip_prefix("the ").map_or_else(|| own.clone(), |noun| format!("this {noun}"));
            mismatch.message = mismatch.message.replace(&noun, &format!("`{}`", function.name));
        }
        mismatch
    }

    /// As [`CallBuilder::mismatch`], with labels at the origins of the operands.
    fn operand_mismatch(&mut self, mut mismatch: Mismatch, args: &[Value]) -> Diagnostic {
        let choices = std::mem::take(&mut mismatch.choices);
        let mut diagnostic = self.mismatch(mismatch);
        if args.len() > 1 {
            let types = args.iter().map(|&arg| (self.ty(arg), self.func.info(arg).origin.span));
            diagnostic = self.with_types(diagnostic, types);
        }
        if !choices.is_empty() {
            let list = |choice: &Choice| format!("`{}`: {}", choice.text(None, &self.mesh), choice.note);
            let mut lines: Vec<String> = choices.iter().map(list).collect();
            // One value may be both operands.
            lines.dedup();
            diagnostic.help = Some(lines.join("\n"));
            self.conflict = Some((args.to_vec(), choices));
        }
        diagnostic
    }

    /// The value; E0223 if it is a stream, which `place` in a program cannot be.
    pub fn in_memory(&self, value: Value, place: &str, span: Span) -> Result<Value, Diagnostic> {
        match &self.ty(value).array {
            stream if stream.is_stream => Err(refused_at(place, stream, span)),
            _ => Ok(value),
        }
    }

    /// The array of a term; numbers and lists of them become constants, of `dtype` if given.
    pub fn materialize(&mut self, term: &Term, dtype: Option<DType>, span: Span) -> Result<Value, Diagnostic> {
        if let Term::Array(value) = term {
            return Ok(*value);
        }
        if !term.is_operand() {
            return Err(crate::call::errors::no_array(term, span));
        }
        if let Term::List(items) = term
            && items.iter().any(Term::holds_array)
        {
            return (self.ops.stacked)(self, items, dtype, span);
        }
        self.emit1((self.ops.constant)(term, dtype, span)?, &[])
    }
}
