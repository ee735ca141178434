//! Control flow: loops become `while`, branches `if`, and `manual` functions `manual_computation`.

use crate::exporter::Exporter;
use spmdc_abi::{DType, ReduceOp};
use spmdc_ir::program::control::{Branch, Control, ForLoop, ManualRegion, WhileLoop};
use spmdc_ir::program::value::Value;
use spmdc_ir::program::walk::free_values;
use spmdc_ir::program::{Block, Stmt};
use spmdc_ir::rules::{Manual, Placement};
use spmdc_ir::stablehlo::{HloType, HloValue, sharding_text};
use spmdc_layout::sharding::Sharding;
use spmdc_layout::types::AxisSet;

impl Exporter<'_> {
    /// Writes control flow.
    pub fn control(&mut self, stmt: &Stmt) {
        match stmt.control() {
            // Nothing but effects, which are left out.
            Some(control) if stmt.results.is_empty() => control.blocks().for_each(|block| self.left_out(block)),
            Some(Control::For(for_loop)) => self.for_loop(stmt, for_loop),
            Some(Control::While(while_loop)) => self.while_loop(stmt, while_loop),
            Some(Control::Branch(branch)) => self.branch(stmt, branch),
            Some(Control::Manual(region)) => self.manual(stmt, region),
            None => {}
        }
    }

    /// Warns of the effects of a block that computes nothing.
    fn left_out(&mut self, block: &Block) {
        for stmt in block.stmts.iter() {
            stmt.blocks().for_each(|block| self.left_out(block));
            if stmt.results.is_empty() && !stmt.is_control() {
                self.stmt(stmt);
            }
        }
    }

    /// The state of the loop is the counter, the carries, and an array for each collected value.
    fn for_loop(&mut self, stmt: &Stmt, for_loop: &ForLoop) {
        let args = self.values(&stmt.args);
        let carries = &args[for_loop.bounds()..];
        let collected = &stmt.results[carries.len()..];
        let [start, end] = match for_loop.range {
            Some((start, end)) => [start, end].map(|bound| self.hlo.whole(DType::I32, bound, &[])),
            None => [args[0].clone(), args[1].clone()],
        };
        let mut state = vec![start.clone()];
        state.extend_from_slice(carries);
        for &result in collected {
            let ty = self.ty(result);
            state.push(self.hlo.splat(ty.dtype(), 0, &ty.shape));
        }
        // A loop without trips has no element to collect.
        if for_loop.trips() == Some(0) {
            return self.define(&stmt.results, state.split_off(1));
        }
        let carried = carries.len();
        let made = self.looped(
            &state,
            |exporter, state| exporter.hlo.compare("LT", &state[0], &end),
            |exporter, state| {
                exporter.define(&for_loop.body.params, state[..=carried].to_vec());
                let made = exporter.block(&for_loop.body);
                let one = exporter.hlo.whole(DType::I32, 1, &[]);
                let mut next = vec![exporter.hlo.binary("stablehlo.add", &state[0], &one)];
                next.extend_from_slice(&made[..carried]);
                let place = exporter.hlo.binary("stablehlo.subtract", &state[0], &start);
                for (value, all) in made[carried..].iter().zip(&state[carried + 1..]) {
                    let mut shape = value.ty.shape.clone();
                    shape.insert(0, 1);
                    let row = exporter.hlo.reshape(value, &shape);
                    let zero = exporter.hlo.whole(DType::I32, 0, &[]);
                    let mut starts = vec![zero; all.ty.rank()];
                    starts[0] = place.clone();
                    next.push(exporter.hlo.dynamic_update_slice(all, &row, &starts));
                }
                next
            },
        );
        self.define(&stmt.results, made[1..].to_vec());
    }

    fn while_loop(&mut self, stmt: &Stmt, while_loop: &WhileLoop) {
        let state = self.values(&stmt.args);
        let made = self.looped(
            &state,
            |exporter, state| {
                exporter.define(&while_loop.cond.params, state.to_vec());
                exporter.block(&while_loop.cond).swap_remove(0)
            },
            |exporter, state| {
                exporter.define(&while_loop.body.params, state.to_vec());
                exporter.block(&while_loop.body)
            },
        );
        self.define(&stmt.results, made);
    }

    /// `stablehlo.while` whose blocks are written with this exporter.
    fn looped(
        &mut self,
        state: &[HloValue],
        condition: impl FnOnce(&mut Self, &[HloValue]) -> HloValue,
        body: impl FnOnce(&mut Self, &[HloValue]) -> Vec<HloValue>,
    ) -> Vec<HloValue> {
        let (carried, made) = self.hlo.while_head(state);
        self.hlo.line("cond {");
        self.hlo.enter();
        let holds = condition(self, &carried);
        self.hlo.returns("stablehlo.return", &[holds]);
        self.hlo.leave();
        self.hlo.line("} do {");
        self.hlo.enter();
        let next = body(self, &carried);
        self.hlo.returns("stablehlo.return", &next);
        self.hlo.leave();
        self.hlo.line("}");
        made
    }

    fn branch(&mut self, stmt: &Stmt, branch: &Branch) {
        let types: Vec<HloType> = stmt.results.iter().map(|&result| self.ty(result)).collect();
        let condition = self.value(stmt.args[0]);
        let name = self.hlo.fresh();
        let made = if types.len() == 1 { name.clone() } else { format!("{name}:{}", types.len()) };
        self.hlo.line(&format!("{made} = \"stablehlo.if\"({}) ({{", condition.name));
        for (side, close) in branch.sides().into_iter().zip(["}, {", "})"]) {
            self.hlo.enter();
            let mut results = self.block(side);
            for (result, value) in results.iter_mut().zip(&side.results) {
                // XLA wants one layout for the results of both sides, where they are results of constraints.
                if is_requested(side, *value) {
                    *result = self.hlo.barrier(result);
                }
            }
            self.hlo.returns("stablehlo.return", &results);
            self.hlo.leave();
            if close == "})" {
                let shown: Vec<String> = types.iter().map(HloType::to_string).collect();
                let shown = if shown.len() == 1 { shown.join("") } else { format!("({})", shown.join(", ")) };
                self.hlo.line(&format!("}}) : ({}) -> {shown}", condition.ty));
            } else {
                self.hlo.line(close);
            }
        }
        self.define(&stmt.results, HloValue::all(&name, &types));
    }

    /// The body sees its operands only: values from around it become operands, and positions along the axes that it asks for.
    fn manual(&mut self, stmt: &Stmt, region: &ManualRegion) {
        let outer_axes = self.hlo.manual;
        let own = outer_axes.union(region.axes);
        let free = self.mesh.all().minus(own);
        let inner: Vec<Value> = free_values(&region.body);
        let mut operands = self.values(&stmt.args);
        let mut ins: Vec<String> = region.inputs.iter().map(|layout| self.manual_layout(layout, free)).collect();
        for value in self.values(&inner) {
            ins.push(self.manual_layout(&Sharding::replicated(value.ty.rank()), free));
            operands.push(value);
        }
        let mut params = Vec::new();
        for &value in region.body.params.iter().chain(&inner) {
            params.push(HloValue { name: self.hlo.fresh(), ty: self.ty(value) });
        }
        // A device has a number only where all axes are manual; elsewhere each gets its block of the numbers along an axis.
        let asked = if free.is_empty() && outer_axes.is_empty() { AxisSet::EMPTY } else { asked(region) };
        let mut numbers = Vec::new();
        for axis in asked.iter().map(|axis| axis as u8) {
            let (number, layout) = match self.hlo.positions.get(&axis) {
                Some(known) => (known.clone(), Sharding::replicated(0)),
                None => {
                    let size = self.mesh.axes[usize::from(axis)].size;
                    (self.hlo.iota(DType::I32, &[size], 0), Sharding::closed(vec![vec![axis]]))
                }
            };
            ins.push(self.manual_layout(&layout, free));
            let shape: &[usize] = if number.ty.rank() == 0 { &[] } else { &[1] };
            numbers.push((axis, HloValue { name: self.hlo.fresh(), ty: number.ty.with_shape(shape) }));
            operands.push(number);
        }
        params.extend(numbers.iter().map(|(_, number)| number.clone()));
        let outs: Vec<String> = region.outputs.iter().map(|layout| self.manual_layout(layout, free)).collect();
        let types: Vec<HloType> = stmt.results.iter().map(|&result| self.ty(result)).collect();
        let axes: Vec<String> = region.axes.iter().map(|axis| format!("\"{}\"", self.mesh.name(axis as u8))).collect();
        let name = self.hlo.fresh();
        let made = if types.len() == 1 { name.clone() } else { format!("{name}:{}", types.len()) };
        let names: Vec<&str> = operands.iter().map(|operand| operand.name.as_str()).collect();
        let typed: Vec<String> = params.iter().map(|param| format!("{}: {}", param.name, param.ty)).collect();
        self.hlo.line(&format!(
            "{made} = sdy.manual_computation({}) in_shardings=[{}] out_shardings=[{}] manual_axes={{{}}} ({}) {{",
            names.join(", "),
            ins.join(", "),
            outs.join(", "),
            axes.join(", "),
            typed.join(", ")
        ));
        let outside: Vec<(Value, HloValue)> = inner.iter().copied().zip(self.values(&inner)).collect();
        let positions = std::mem::take(&mut self.hlo.positions);
        self.hlo.manual = own;
        self.hlo.enter();
        for (axis, number) in numbers {
            let number = self.hlo.reshape(&number, &[]);
            self.hlo.positions.insert(axis, number);
        }
        let count = region.body.params.len();
        self.define(&inner, params[count..count + inner.len()].to_vec());
        for ((&value, param), layout) in region.body.params.iter().zip(&params).zip(&region.inputs) {
            let summand = self.summand(stmt, param, layout.unreduced);
            self.define(&[value], vec![summand]);
        }
        let mut results = self.block(&region.body);
        for (result, layout) in results.iter_mut().zip(&region.outputs) {
            let axes: Vec<u8> = layout.unreduced.iter().map(|axis| axis as u8).collect();
            if !axes.is_empty() {
                *result = self.hlo.all_reduce(ReduceOp::Sum, result, &axes);
            }
        }
        self.hlo.returns("sdy.return", &results);
        self.hlo.leave();
        (self.hlo.manual, self.hlo.positions) = (outer_axes, positions);
        self.names.extend(outside);
        let from: Vec<String> = operands.iter().map(|operand| operand.ty.to_string()).collect();
        let to: Vec<String> = types.iter().map(HloType::to_string).collect();
        let to = if to.len() == 1 { to.join("") } else { format!("({})", to.join(", ")) };
        self.hlo.line(&format!("}} : ({}) -> {to}", from.join(", ")));
        self.define(&stmt.results, HloValue::all(&name, &types));
    }

    /// The part of a whole value that a device has of partial sums: all of it on the first one along the axes, zeros on the others.
    fn summand(&mut self, stmt: &Stmt, value: &HloValue, axes: AxisSet) -> HloValue {
        if axes.is_empty() {
            return value.clone();
        }
        let axes: Vec<u8> = axes.iter().map(|axis| axis as u8).collect();
        let position = match self.hlo.axis_index(&axes) {
            Ok(position) => position,
            Err(gap) => {
                self.missing(stmt, &gap.0);
                return value.clone();
            }
        };
        let zero = self.hlo.whole(DType::I32, 0, &[]);
        let is_first = self.hlo.compare("EQ", &position, &zero);
        let is_first = self.hlo.broadcast(&is_first, &value.ty.shape);
        let nothing = self.hlo.whole_like(value, 0);
        self.hlo.select(&is_first, value, &nothing)
    }

    /// The split over manual axes; axes that are free inside may split the dimensions further.
    fn manual_layout(&self, layout: &Sharding, free: AxisSet) -> String {
        let mut layout = layout.clone();
        layout.dims.iter_mut().for_each(|dim| dim.open = !free.is_empty());
        sharding_text(&layout, self.mesh, AxisSet::EMPTY)
    }
}

/// The axes along which the body of a region asks for a device's position.
fn asked(region: &ManualRegion) -> AxisSet {
    let mut axes = region.inputs.iter().fold(AxisSet::EMPTY, |axes, layout| axes.union(layout.unreduced));
    region.body.walk(&mut |stmt| {
        if let Some(Manual::Group(group)) = stmt.op().map(|op| op.rules().properties().manual) {
            let is_asked = stmt.args.is_empty();
            axes = axes.union(group.axes().iter().filter(|_| is_asked).map(|&axis| usize::from(axis)).collect());
        } else if let Some(Control::Manual(inner)) = stmt.control() {
            axes = inner.inputs.iter().fold(axes, |axes, layout| axes.union(layout.unreduced));
        }
    });
    axes
}

/// Whether a statement of the block gives the value a layout.
fn is_requested(block: &Block, value: Value) -> bool {
    let places =
        |stmt: &Stmt| stmt.op().is_some_and(|op| matches!(op.rules().properties().placement, Placement::Requested(_)));
    block.stmts.iter().any(|stmt| stmt.results.contains(&value) && places(stmt))
}
