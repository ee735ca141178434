//! Code for each device: `sdy.manual_computation` as `manual` functions.

use super::devices::position;
use super::sharding::{SdySharding, SplitDim};
use super::{FunctionReader, MlirValue, at, identifier, malformed, unsupported};
use crate::build::Build;
use crate::cursor::{Cursor, MAX_DEPTH, Read};
use crate::tree::{Attribute, MlirBlock, MlirOp, TensorType, ValueName};
use spmdc_grammar::ast::{AxisKind, BlockNode, FnItem, InfixOp, ItemKind, ItemNode, RegionNode, TypeExpr};
use spmdc_grammar::diagnostic::Diagnostic;
use std::collections::BTreeSet;

impl FunctionReader<'_> {
    /// A region of code for each device as a `manual` function.
    pub(super) fn manual_computation(&mut self, operation: &MlirOp) -> Read<()> {
        let build = at(operation);
        let operands = self.all_operands(operation)?;
        let [region] = operation.regions.as_slice() else {
            return Err(malformed(operation, "a manual computation has a body"));
        };
        let own_axes = self.manual_axes(operation)?;
        let ins = self.shardings(operation, "in_shardings", operands.len())?;
        let outs = self.shardings(operation, "out_shardings", operation.types.len())?;
        let dims_fit = |(ty, sharding): (&TensorType, &SdySharding)| ty.rank() == sharding.dims.len();
        let fit = operands.iter().map(|operand| &operand.ty).zip(&ins).all(dims_fit)
            && operation.types.iter().zip(&outs).all(dims_fit)
            && region.params.len() == operands.len();
        if !fit {
            return Err(malformed(operation, "the shardings of a manual computation fit its values"));
        }
        if !self.manual.is_empty() {
            return self.nested_computation(operation, region, (&operands, &ins), (&own_axes, &outs));
        }
        // The axes of the computations inside are those of the function, too; along them, its values are the same.
        let mut axes = own_axes.clone();
        self.axes_inside(&region.body, &mut axes, &mut BTreeSet::new(), 0)?;
        let name = self.fresh("per_device");
        let is_partial = self.context.mesh.is_some_and(|mesh| mesh.axes.len() > axes.len());
        let manual_only = |sharding: &SdySharding| {
            let dims = sharding.dims.iter().map(|dim| SplitDim {
                axes: dim.axes.iter().filter(|axis| own_axes.contains(axis)).cloned().collect(),
                is_open: dim.is_open && is_partial,
            });
            SdySharding { dims: dims.collect(), ..SdySharding::default() }
        };
        let outer_manual = self.manual.clone();
        let outer_values = std::mem::take(&mut self.values);
        let outer_names = self.names.clone();
        self.manual.extend(axes.iter().cloned());
        let mut params = Vec::new();
        for (((param, local), operand), sharding) in region.params.iter().zip(&operands).zip(&ins) {
            let own = self.fresh(param);
            params.push(build.param(&own, Some(manual_only(sharding).ty(build, &operand.ty))));
            let varying =
                sharding.dims.iter().flat_map(|dim| &dim.axes).filter(|axis| own_axes.contains(axis)).cloned();
            let varying = varying.collect();
            let value = MlirValue { varying, ..MlirValue::new(build.name(own), local.clone()) };
            self.values.insert(ValueName { base: param.clone(), index: 0 }, value);
        }
        let body = self.per_device_body(build, region, (&axes, &outs));
        self.values = outer_values;
        self.names = outer_names;
        self.names.insert(name.clone());
        self.manual = outer_manual;
        let mut body = body?;
        crate::tidy::simplify(&mut body);
        let rets: Vec<TypeExpr> =
            operation.types.iter().zip(&outs).map(|(ty, sharding)| manual_only(sharding).ty(build, ty)).collect();
        let ret = build.types_together(rets);
        let all = self.context.mesh.map_or(0, |mesh| mesh.axes.len());
        let named = if axes.len() == all && self.manual.is_empty() {
            Vec::new()
        } else {
            axes.iter().map(|axis| build.ident(identifier(axis))).collect()
        };
        let item = FnItem {
            region: Some(RegionNode { kind: AxisKind::Manual, axes: named }),
            name: build.ident(&name),
            size_params: Vec::new(),
            params,
            ret: Some(ret),
            body,
        };
        self.items.push(ItemNode { doc: Vec::new(), kind: ItemKind::Fn(item), span: build.0 });
        let call = build.call(&name, operands.into_iter().map(|operand| operand.expr));
        self.emit_all(operation, call);
        Ok(())
    }

    /// A computation inside of another one. All devices along its axes have the same operands, of which each takes its part; the parts of the
    /// results are gathered.
    fn nested_computation(
        &mut self,
        operation: &MlirOp,
        region: &MlirBlock,
        (operands, ins): (&[MlirValue], &[SdySharding]),
        (axes, outs): (&[String], &[SdySharding]),
    ) -> Read<()> {
        let build = at(operation);
        let Some(mesh) = self.context.mesh else { return Err(malformed(operation, "a manual computation has a mesh")) };
        let sized = |dim: &SplitDim| -> Vec<(String, usize)> {
            let own = dim.axes.iter().filter(|axis| axes.contains(axis));
            own.filter_map(|axis| mesh.axes.iter().find(|(name, _)| name == axis).cloned()).collect()
        };
        let mut inner = Vec::new();
        for (((param, local), operand), sharding) in region.params.iter().zip(operands).zip(ins) {
            let mut varying = operand.varying.clone();
            let mut starts = vec![build.int(0); local.rank()];
            for (dim, split) in sharding.dims.iter().enumerate() {
                let split = sized(split);
                varying.extend(split.iter().map(|(axis, _)| axis.clone()));
                if !split.is_empty() {
                    let size = build.int(local.shape.get(dim).copied().unwrap_or(0) as i128);
                    starts[dim] = build.binary(InfixOp::Mul, position(build, &split), size);
                }
            }
            let expr = match varying == operand.varying {
                true => operand.expr.clone(),
                false => {
                    let lens = build.ints(local.shape.iter().copied());
                    let part = build.call("dynamic_slice", [operand.expr.clone(), build.tuple(starts), lens]);
                    self.variable(build, param, part)
                }
            };
            let value = MlirValue { varying, ..MlirValue::new(expr, local.clone()) };
            inner.push((ValueName { base: param.clone(), index: 0 }, value));
        }
        let outer = std::mem::take(&mut self.values);
        self.values.extend(inner);
        let returned = self.statements(&region.body);
        self.values = outer;
        let names = Self::result_names(operation);
        for (((name, ty), value), sharding) in names.into_iter().zip(&operation.types).zip(returned?).zip(outs) {
            let mut varying = value.varying.clone();
            let mut expr = value.expr.clone();
            for (dim, split) in sharding.dims.iter().enumerate() {
                let split = sized(split);
                if split.is_empty() {
                    continue;
                }
                varying.extend(split.iter().map(|(axis, _)| axis.clone()));
                let along = split.iter().map(|(axis, _)| build.name(identifier(axis))).collect();
                let axis = [("axis", build.int(dim as i128))];
                expr = build.call_with("all_gather", [expr, build.together(along)], axis);
            }
            if value.ty.rank() == ty.rank() && varying != value.varying {
                expr = self.variable(build, &name.base, expr);
            }
            let device = value.device.filter(|_| varying == value.varying);
            self.values.insert(name, MlirValue { varying, device, ..MlirValue::new(expr, ty.clone()) });
        }
        Ok(())
    }

    /// The axes of a manual computation, which are those of the mesh of its shardings.
    fn manual_axes(&self, operation: &MlirOp) -> Read<Vec<String>> {
        let names = match operation.attributes.get("manual_axes") {
            Some(Attribute::List(names)) => names.clone(),
            // `#sdy<manual_axes{"a", "b"}>`
            Some(Attribute::Custom(_, inside)) => {
                let mut cursor = Cursor::of_part(inside);
                let read = cursor.expect("manual_axes").and_then(|()| cursor.expect("{"));
                let read = read.and_then(|()| cursor.list("}", |cursor| Ok(Attribute::Text(cursor.string()?))));
                read.map_err(|error| Diagnostic { span: operation.span, ..error })?
            }
            _ => return Err(malformed(operation, "a manual computation has axes")),
        };
        let mut axes = Vec::new();
        for name in names {
            let Attribute::Text(name) = name else { continue };
            let found = self.context.common.and_then(|common| common.axes_of_operation(operation, &name));
            axes.extend(found.ok_or_else(|| malformed(operation, format!("the mesh has no axis `{name}`")))?);
        }
        Ok(axes)
    }

    /// Adds the axes of the manual computations in statements, and in the functions that they call, of which some have been `seen`.
    fn axes_inside(
        &self,
        body: &[MlirOp],
        axes: &mut Vec<String>,
        seen: &mut BTreeSet<String>,
        depth: usize,
    ) -> Read<()> {
        for operation in body {
            if depth > MAX_DEPTH {
                return Err(unsupported(operation, "in functions that call each other so deeply"));
            }
            if operation.name == "sdy.manual_computation" && !operation.operands.is_empty() {
                for axis in self.manual_axes(operation)? {
                    if !axes.contains(&axis) {
                        axes.push(axis);
                    }
                }
            }
            for region in &operation.regions {
                self.axes_inside(&region.body, axes, seen, depth + 1)?;
            }
            if let Some(callee) = self.callee(operation)
                && self.has_manual_code(callee)
                && seen.insert(callee.name.clone())
            {
                self.axes_inside(&callee.body, axes, seen, depth + 1)?;
            }
        }
        Ok(())
    }

    /// The body of a `manual` function. Along axes that do not split a result, all devices have the same value, which the text does not
    /// say: it is gathered as such, or is the largest of the devices' equal values.
    fn per_device_body(
        &mut self,
        build: Build,
        region: &MlirBlock,
        (axes, outs): (&[String], &[SdySharding]),
    ) -> Read<BlockNode> {
        let (stmts, mut values) = self.body(&region.body)?;
        let names = region.body.last().map_or(&[][..], |last| &last.operands);
        for ((value, name), sharding) in values.iter_mut().zip(names).zip(outs) {
            let Some(lowered) = self.values.get(name).cloned() else { continue };
            let splits = |axis: &&String| sharding.dims.iter().any(|dim| dim.axes.contains(axis));
            let same: Vec<&String> =
                axes.iter().filter(|axis| lowered.varying.contains(*axis) && !splits(axis)).collect();
            if same.is_empty() {
                continue;
            }
            if let Some(gathered) = &lowered.gathered {
                *value = (**gathered).clone();
                continue;
            }
            for axis in same {
                *value = build.call("pmax", [value.clone(), build.name(identifier(axis))]);
            }
        }
        let value = build.together(values);
        Ok(build.block(stmts, Some(value)))
    }
}
