//! The reverse of a `manual` region: another region over the same devices.
//!
//! The residuals leave the region as the blocks of one array: along the axes over which a value varies, each device has a separate row.

use super::cotangents::Reverse;
use super::repeat::repeat;
use super::repeat::substitute;
use super::residuals::Kept;
use super::{captured, missing, needed_for};
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::scoped::Scoped;
use spmdc_ir::program::control::{Control, ManualRegion};
use spmdc_ir::program::origin::{DerivativePart, DerivedFrom, Lineage};
use spmdc_ir::program::{Block, Stmt, Value};
use spmdc_layout::mesh::AxisKind;
use spmdc_layout::sharding::{DimSharding, Sharding};
use spmdc_layout::types::{ArrayType, AxisSet, Type};
use spmdc_ops::reshape::reshape;
use spmdc_ops::reshard::Reshard;
use std::collections::{BTreeMap, BTreeSet};

/// The region under construction: its operands, and how each is cut.
struct Border {
    args: Vec<Value>,
    inputs: Vec<Sharding>,
    params: Vec<Value>,
}

/// Adds the reverse of a region.
pub(super) fn reverse(reverse: &mut Reverse<'_>, stmt: &mut Stmt) -> Result<(), Diagnostic> {
    let mut seeds = Vec::new();
    for &result in &stmt.results {
        seeds.push(reverse.take(result)?);
    }
    let mut needed: BTreeSet<Value> =
        stmt.results.iter().zip(&seeds).filter(|(_, seed)| seed.is_some()).map(|(&result, _)| result).collect();
    needed_for(reverse.build, std::slice::from_ref(stmt), &mut needed);
    let (origin, lineage) = (reverse.build.origin(), stmt.origin.lineage);
    let results = stmt.results.clone();
    let args: Vec<Value> = stmt.args.iter().map(|&arg| reverse.build.resolved(arg)).collect();
    let Some(Control::Manual(op)) = stmt.control_mut() else { return Err(missing(stmt)) };
    let active: Vec<usize> = (0..args.len())
        .filter(|&at| reverse.depends.contains(&op.body.params[at]) && needed.contains(&op.body.params[at]))
        .collect();
    let mut border = Border { args: Vec::new(), inputs: Vec::new(), params: Vec::new() };
    let mut own_seeds = Vec::new();
    for (at, seed) in seeds.iter().enumerate() {
        let Some(seed) = *seed else { continue };
        let outer = reverse.build.ty(results[at]).sharding.clone().dual();
        let seed = match reverse.build.ty(seed).sharding == outer {
            true => seed,
            false => reverse.build.emit1(Reshard::request(outer), &[seed])?,
        };
        let split = op.outputs[at].clone().dual();
        let ty = reverse.build.ty(op.body.results[at]).clone();
        let sharding = reverse.in_region(op.axes, |reverse| reverse.build.explicit_part(&ty).dual());
        let local = Type { varying: split.used_axes(), sharding, ..ty };
        own_seeds.push((op.body.results[at], border.enter(reverse.build, seed, split, local)));
    }
    let around = std::mem::take(&mut reverse.cotangents);
    let (mut outputs, mut types, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let fill = |reverse: &mut Reverse<'_>| {
        for (value, seed) in own_seeds {
            if reverse.depends.contains(&reverse.build.resolved(value)) {
                reverse.add(value, seed)?;
            }
        }
        reverse.run(&mut op.body.stmts)?;
        let mut found = Vec::new();
        for at in active {
            let ty = reverse.build.ty(op.body.params[at]).clone();
            let local = Type { sharding: ty.sharding.dual(), ..ty };
            let Some(cotangent) = reverse.take(op.body.params[at])? else { continue };
            let cotangent = super::conformed(reverse.build, cotangent, &local)?;
            let split = op.inputs[at].clone().dual();
            values.push(args[at]);
            types.push(joined(reverse.build, &local, &split, op.axes));
            outputs.push(split);
            found.push(cotangent);
        }
        Ok(found)
    };
    let axes = op.axes;
    let (mut block, found) = reverse.in_region(axes, |reverse| reverse.in_block(Block::default(), fill));
    reverse.cotangents = around;
    block.results = found?;
    let mut kept = Vec::new();
    reverse.computes(DerivativePart::Value, None);
    reverse.in_region(axes, |reverse| {
        with_residuals(reverse.build, (op, lineage), &args, &mut block, &mut border, &mut kept)
    })?;
    let (name, axes) = (op.name.clone(), op.axes);
    stmt.results.extend(kept);
    if values.is_empty() {
        return Ok(());
    }
    block.params = border.params;
    let results: Vec<Value> = types.into_iter().map(|ty| reverse.build.new_value(ty, origin.clone())).collect();
    let control = Control::Manual(ManualRegion { name, axes, inputs: border.inputs, outputs, body: block });
    reverse.build.innermost().stmts.push(Stmt::of_control(control, border.args, results.clone(), origin));
    for (value, result) in values.into_iter().zip(results) {
        reverse.add(value, result)?;
    }
    Ok(())
}

impl Border {
    /// Adds an operand, cut in this way, and gives the value that the body has of it.
    fn enter(&mut self, build: &mut CallBuilder, arg: Value, split: Sharding, local: Type) -> Value {
        let origin = build.origin();
        let param = build.new_value(local, origin);
        let derived_from = build.info(arg).derived_from.unwrap_or(DerivedFrom::CopyOf(arg));
        build.info_mut(param).derived_from = Some(derived_from);
        self.args.push(arg);
        self.inputs.push(split);
        self.params.push(param);
        param
    }
}

/// The type outside of a region of a value that has this type inside, and is cut in this way.
fn joined(build: &CallBuilder, local: &Type, split: &Sharding, manual: AxisSet) -> Type {
    let shape: Vec<usize> =
        local.shape().iter().zip(&split.dims).map(|(size, dim)| size * build.mesh().size_of(&dim.axes)).collect();
    let others = build.mesh().of_kind(AxisKind::Auto).minus(manual);
    let mut sharding = if others.is_empty() { local.sharding.close() } else { local.sharding.clone() };
    for (dim, outer) in sharding.dims.iter_mut().zip(&split.dims) {
        dim.axes.splice(0..0, outer.axes.iter().copied());
    }
    sharding.unreduced = sharding.unreduced.union(split.unreduced);
    sharding.reduced = sharding.reduced.union(split.reduced);
    Type { array: ArrayType::new(local.dtype(), &shape), sharding, varying: AxisSet::EMPTY }
}

/// Lets the reverse of a region have the values of the region that it uses: `kept` gets the results of the region that are added.
fn with_residuals(
    build: &mut CallBuilder,
    (op, lineage): (&mut ManualRegion, Lineage),
    args: &[Value],
    block: &mut Block,
    border: &mut Border,
    kept: &mut Vec<Value>,
) -> Result<(), Diagnostic> {
    let own: BTreeSet<Value> = border.params.iter().copied().collect();
    let used: Vec<Value> = captured(build, block).into_iter().filter(|value| !own.contains(value)).collect();
    let params = op.body.params.clone();
    let found = Kept {
        params: &params,
        stmts: &op.body.stmts,
        had: &params,
        is_loop: false,
        can_keep: true,
        changing: &BTreeSet::new(),
    }
    .find(build, &used);
    let mut map = BTreeMap::new();
    for &param in &found.params {
        let at = params.iter().position(|&other| other == param).expect("it is one of the parameters");
        let local = build.ty(param).clone();
        map.insert(param, border.enter(build, args[at], op.inputs[at].clone(), local));
    }
    let origin = build.origin();
    let mut head = Block::default();
    for value in found.kept {
        let ty = build.ty(value).clone();
        let varies: Vec<u8> = ty.varying.iter().map(|axis| axis as u8).collect();
        let mut split = Sharding::replicated(ty.rank());
        let mut leaving = value;
        if !varies.is_empty() {
            // A row for each device.
            let shape: Vec<usize> = std::iter::once(1).chain(ty.shape().iter().copied()).collect();
            let body = Block { stmts: std::mem::take(&mut op.body.stmts), ..Block::default() };
            let (Block { stmts, .. }, row) =
                build.in_block(body, |build| build.at(build.span(), lineage, |build| reshape(build, value, &shape)));
            op.body.stmts = stmts;
            leaving = row?;
            split.dims.insert(0, DimSharding::closed(varies));
        }
        let local = build.ty(leaving).clone();
        let outer = build.new_value(joined(build, &local, &split, op.axes), origin.clone());
        op.body.results.push(leaving);
        op.outputs.push(split.clone());
        kept.push(outer);
        let entered = border.enter(build, outer, split, local);
        let back = build.resume_block(&mut head, |build| reshape(build, entered, ty.shape()))?;
        map.insert(value, back);
    }
    build.resume_block(&mut head, |build| repeat(build, &found.repeated, &mut map))?;
    head.stmts.append(&mut block.stmts);
    block.stmts = head.stmts;
    substitute(build, block, &mut map);
    Ok(())
}
