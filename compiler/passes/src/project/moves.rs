//! Makes every move of a value between meshes a `transfer`: of printed values, and of conditions and bounds that several meshes need.
//!
//! Text of a manual function leaves it as arrays with a row for each device with its own value, and is printed in loops over these:
//!
//! ```text
//! manual(X) fn f(x: f32[8@X]) { print("{}", sum(x)) }      =>      send(sum(x), varying=X)
//!
//!                                                                  let rows = receive(f32[2]);
//!                                                                  for i in 0..2 { print("X={}: {}", i, rows[i]); }
//! ```

use super::content::{DEFAULT, OutputMeshes, content, decides, effect};
use super::needs::NeededMeshes;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::op::Op;
use spmdc_ir::program::control::{Control, ForLoop};
use spmdc_ir::program::origin::Origin;
use spmdc_ir::program::placement::home;
use spmdc_ir::program::placement::meshes::ValueMeshes;
use spmdc_ir::program::transfer_target::Target;
use spmdc_ir::program::transfer_target::TransferTarget;
use spmdc_ir::program::{Block, Func, Stmt, StmtKind, Value};
use spmdc_ir::rules::Effect;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{ArrayType, AxisSet, DType, Type};
use spmdc_ops::cast::Cast;
use spmdc_ops::dynamic_slice::DynamicSlice;
use spmdc_ops::print::Assert;
use spmdc_ops::print::Print;
use spmdc_ops::print::ShowSharding;
use spmdc_ops::reshape::Reshape;
use spmdc_ops::transfer::Transfer;
use std::collections::BTreeSet;

/// Adds the transfers that the program does not write.
pub(super) struct Mover<'a> {
    pub func: &'a mut Func,
    pub of: &'a mut ValueMeshes,
    pub mesh: &'a Mesh,
    pub outputs: OutputMeshes,
    /// The meshes that need values on no mesh.
    needs: &'a NeededMeshes,
    /// In a manual function, the mesh of its values on no mesh.
    home: Option<u8>,
    /// The axes over which conditions around vary.
    conditions: AxisSet,
    /// The number of layouts that other meshes draw.
    drawings: u32,
    errors: Vec<Diagnostic>,
}

impl<'a> Mover<'a> {
    pub fn new(
        func: &'a mut Func,
        of: &'a mut ValueMeshes,
        mesh: &'a Mesh,
        outputs: OutputMeshes,
        needs: &'a NeededMeshes,
    ) -> Mover<'a> {
        Mover {
            func,
            of,
            mesh,
            outputs,
            needs,
            home: None,
            conditions: AxisSet::EMPTY,
            drawings: 0,
            errors: Vec::new(),
        }
    }

    /// Changes the whole function; errors if a value cannot be moved where it is needed.
    pub fn run(mut self) -> Result<(), Vec<Diagnostic>> {
        let mut body = std::mem::take(&mut self.func.body);
        self.block(&mut body);
        self.func.body = body;
        if self.errors.is_empty() { Ok(()) } else { Err(self.errors) }
    }

    fn at(&self, value: Value) -> Option<u8> {
        self.of[value.0 as usize]
    }

    /// A new value on a mesh.
    fn value(&mut self, ty: Type, on: u8, origin: &Origin) -> Value {
        let value = self.func.new_value(ty, origin.clone());
        debug_assert_eq!(self.of.len(), value.0 as usize, "values are numbered in order");
        self.of.push(Some(on));
        value
    }

    fn define(&mut self, op: impl Into<Op>, args: &[Value], ty: Type, origin: &Origin, stmts: &mut Vec<Stmt>) -> Value {
        let result = self.value(ty, self.outputs.text, origin);
        stmts.push(Stmt::new(op.into(), args.to_vec(), vec![result], origin.clone()));
        result
    }

    /// The value on a mesh. Values that text needs from a manual function leave it, with a row for each device with its own value.
    fn moved(&mut self, value: Value, to: u8, origin: &Origin, stmts: &mut Vec<Stmt>) -> Value {
        let mut value = value;
        if let (None, Some(home)) = (self.at(value), self.home) {
            value = self.made(value, home, origin, stmts);
        }
        let ty = self.func.ty(value);
        let (array, varying) = (ty.array.clone(), ty.varying);
        let ty = match to == self.outputs.text {
            true => Type::open(self.rows(&array, varying)),
            false => Type { varying, ..Type::open(array) },
        };
        self.transfer(value, to, ty, origin, stmts)
    }

    /// A value that is on no mesh, made on this one.
    fn made(&mut self, value: Value, on: u8, origin: &Origin, stmts: &mut Vec<Stmt>) -> Value {
        let ty = self.func.ty(value).clone();
        self.transfer(value, on, ty, origin, stmts)
    }

    fn transfer(&mut self, value: Value, to: u8, ty: Type, origin: &Origin, stmts: &mut Vec<Stmt>) -> Value {
        let moved = self.value(ty, to, origin);
        let op = Transfer { target: TransferTarget { to: Target::Mesh(to), number: 0 }, out: None };
        stmts.push(Stmt::new(op.into(), vec![value], vec![moved], origin.clone()));
        moved
    }

    /// The array of the values of all devices that differ.
    fn rows(&self, array: &ArrayType, varying: AxisSet) -> ArrayType {
        let rows = (!varying.is_empty()).then(|| self.mesh.size_of_set(varying));
        let shape: Vec<usize> = rows.into_iter().chain(array.shape.iter().copied()).collect();
        ArrayType::new(array.dtype, &shape)
    }

    fn block(&mut self, block: &mut Block) {
        let mut stmts = Vec::with_capacity(block.stmts.len());
        for mut stmt in std::mem::take(&mut block.stmts) {
            match effect(&stmt) {
                Some(Effect::Text) => {
                    self.text(stmt, &mut stmts);
                    continue;
                }
                Some(Effect::File) => {
                    self.bring(&mut stmt, self.outputs.files, &mut stmts);
                    stmts.push(stmt);
                    continue;
                }
                Some(Effect::Layout) => {
                    self.drawing(stmt, &mut stmts);
                    continue;
                }
                Some(Effect::None | Effect::Stops | Effect::Check | Effect::Message) | None => {}
            }
            if matches!(stmt.control(), Some(Control::Manual(_))) {
                self.home = home(&stmt, self.of, self.mesh);
                stmt.blocks_mut().for_each(|inner| self.block(inner));
                self.home = None;
            } else if stmt.control().is_some() {
                let around = self.conditions;
                let decides = decides(&stmt);
                let varying = decides.iter().fold(around, |all, &value| all.union(self.func.ty(value).varying));
                self.conditions = varying;
                stmt.blocks_mut().for_each(|inner| self.block(inner));
                // The condition of a `while` is sent in each trip.
                let is_inside = matches!(stmt.control(), Some(Control::While(_)));
                self.conditions = if is_inside { varying } else { around };
                self.control(&mut stmt, &decides, &mut stmts);
                self.conditions = around;
            }
            stmts.push(stmt);
        }
        block.stmts = stmts;
    }

    /// Moves the operands of a statement to a mesh, if they are on any.
    fn bring(&mut self, stmt: &mut Stmt, to: u8, stmts: &mut Vec<Stmt>) {
        for arg in &mut stmt.args {
            if self.home.is_some() || self.at(*arg).is_some() {
                *arg = self.moved(*arg, to, &stmt.origin, stmts);
            }
        }
    }

    /// Sends the values of a text, and shows it for each device with its own value.
    fn text(&mut self, mut stmt: Stmt, stmts: &mut Vec<Stmt>) {
        let origin = stmt.origin.clone();
        let types: Vec<Type> = stmt.args.iter().map(|&arg| self.func.ty(arg).clone()).collect();
        self.bring(&mut stmt, self.outputs.text, stmts);
        let varying = types.iter().fold(AxisSet::EMPTY, |all, ty| all.union(ty.varying));
        if varying.is_empty() {
            stmts.push(stmt);
            return;
        }
        let axes: Vec<usize> = varying.iter().collect();
        for (arg, ty) in stmt.args.iter_mut().zip(&types).filter(|(_, ty)| !ty.varying.is_empty()) {
            // A dimension for each axis.
            let sizes = ty.varying.iter().map(|axis| self.mesh.axes[axis].size);
            let shape: Vec<usize> = sizes.chain(ty.shape().iter().copied()).collect();
            let op = Reshape { trivial: ty.varying.iter().count() == 1, shape: shape.clone() };
            *arg = self.define(op, &[*arg], Type::open(ArrayType::new(ty.dtype(), &shape)), &origin, stmts);
        }
        let counter = || Type::open(ArrayType::new(DType::I32, &[]));
        let counters: Vec<Value> = axes.iter().map(|_| self.value(counter(), self.outputs.text, &origin)).collect();
        let mut body = Vec::new();
        let index = Type::open(ArrayType::new(DType::I64, &[]));
        let places: Vec<Value> = counters
            .iter()
            .map(|&counter| self.define(Cast { to: DType::I64 }, &[counter], index.clone(), &origin, &mut body))
            .collect();
        for (arg, ty) in stmt.args.iter_mut().zip(&types).filter(|(_, ty)| !ty.varying.is_empty()) {
            let own: Vec<usize> = ty.varying.iter().collect();
            let place =
                |axis: &usize| places[axes.iter().position(|other| other == axis).expect("an axis of the text")];
            let operands: Vec<Value> = std::iter::once(*arg).chain(own.iter().map(place)).collect();
            let shape: Vec<usize> = own.iter().map(|_| 1).chain(ty.shape().iter().copied()).collect();
            let op = DynamicSlice { dims: (0..own.len()).map(|dim| (dim, 1)).collect() };
            let row = Type::open(ArrayType::new(ty.dtype(), &shape));
            let row = self.define(op, &operands, row, &origin, &mut body);
            let op = Reshape { trivial: true, shape: ty.shape().to_vec() };
            *arg = self.define(op, &[row], Type::open(ArrayType::new(ty.dtype(), ty.shape())), &origin, &mut body);
        }
        let names: Vec<String> = axes.iter().map(|&axis| format!("{}={{}}", self.mesh.axes[axis].name)).collect();
        if let StmtKind::Op(op) = &mut stmt.kind {
            let is_condition = usize::from(op.is::<Assert>());
            let text = match op.as_op_mut::<Print>() {
                Some(op) => Some(&mut op.text),
                None => op.as_op_mut::<Assert>().map(|op| &mut op.text),
            };
            if let Some(text) = text {
                text.insert_str(0, &format!("{}: ", names.join(",")));
            }
            stmt.args.splice(is_condition..is_condition, counters.iter().copied());
        }
        body.push(stmt);
        // The last axis is the innermost loop.
        for (&counter, &axis) in counters.iter().zip(&axes).rev() {
            let block = Block { params: vec![counter], stmts: std::mem::take(&mut body), results: Vec::new() };
            let range = Some((0, self.mesh.axes[axis].size as i64));
            let control = Control::For(ForLoop { range, collected: 0, body: block });
            body.push(Stmt::of_control(control, Vec::new(), Vec::new(), origin.clone()));
        }
        stmts.append(&mut body);
    }

    /// Makes the mesh of a value draw its layout, and the mesh of the text print the drawing.
    fn drawing(&mut self, mut stmt: Stmt, stmts: &mut Vec<Stmt>) {
        let origin = stmt.origin.clone();
        let number = Some(self.drawings);
        self.drawings += 1;
        if let Some(&arg) = stmt.args.first()
            && self.at(arg).is_none()
        {
            stmt.args[0] = self.made(arg, self.home.unwrap_or(DEFAULT), &origin, stmts);
        }
        if let Some(op) = stmt.as_op_mut::<ShowSharding>() {
            op.number = number;
        }
        stmts.push(stmt);
        stmts.push(Stmt::new(ShowSharding { complex: false, number }.into(), Vec::new(), Vec::new(), origin));
    }

    /// Sends the condition or the bounds of control flow to the other meshes on which something happens in it.
    fn control(&mut self, stmt: &mut Stmt, decides: &[Value], stmts: &mut Vec<Stmt>) {
        let origin = stmt.origin.clone();
        let mut there = BTreeSet::new();
        content(stmt, self.of, self.outputs, &mut there);
        there.extend(self.needs.of(&stmt.results));
        let mut own = Vec::new();
        for &value in decides {
            let from = self.at(value);
            for &to in there.iter().filter(|&&to| Some(to) != from) {
                // A value on no mesh is made there; only in a manual function it may depend on axes that the mesh of text does not have.
                if from.is_none() && (self.home.is_none() || to != self.outputs.text) {
                    continue;
                }
                self.reaches(value, to, &origin);
                self.moved(value, to, &origin, &mut own);
            }
        }
        match &mut stmt.kind {
            StmtKind::Control(Control::While(op)) => op.cond.stmts.append(&mut own),
            StmtKind::Control(Control::Branch(_) | Control::For(_) | Control::Manual(_)) | StmtKind::Op(_) => {
                stmts.append(&mut own);
            }
        }
    }

    /// E0502 if some devices do not come to a condition that they have to send.
    fn reaches(&mut self, value: Value, to: u8, origin: &Origin) {
        if self.conditions.is_empty() {
            return;
        }
        let on = self.at(value).or(self.home).unwrap_or(DEFAULT);
        let names = [on, to].map(|on| self.mesh.named[usize::from(on)].name.clone());
        let axes = self.mesh.display_set(self.conditions);
        let message = format!(
            "a condition on `{}` controls values on `{}`, but an enclosing condition varies over {axes}",
            names[0], names[1]
        );
        let help = "the other devices would wait forever; make the enclosing condition unvarying, as `pmax` does";
        self.errors.push(Diagnostic::error(Code::E0502, origin.span, message).help(help));
    }
}
