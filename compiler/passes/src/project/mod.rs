//! Divides a program with several meshes into one program for each of them.
//!
//! ```text
//! mesh a (X = 2); mesh b (Y = 2) devices [2, 3];         on a:                     on b:
//! let y = exp(x);                                        let y = exp(x);
//! let z = transfer(y, b);                        =>      send(y, channel=0);       let z = receive(f32[8], channel=0);
//! let w = 2 * z;                                                                   let w = 2 * z;
//! ```
//!
//! Each statement is on the mesh of its values (`ir/program/placement`), and stays in the program of this mesh, with the control flow
//! around it. A statement on no mesh is in the program of every mesh, and is removed where it is unused. A condition or bound that several
//! meshes need is sent to the others. A separate program on one device prints text, so that lines come in the order of the program, and no
//! mesh waits for another one to print. It also prints drawings of layouts, once these are known (`drawings.rs`). The mesh with most of the
//! saved bytes writes files, block by block.
//!
//! It runs after differentiation, which therefore sees transfers, and before propagation, which chooses the layouts of each program
//! separately. Afterwards every value of a module is on its mesh, and all ends of transfers are in the order of the program, until meshes
//! work ahead in loops (`ahead.rs`).

pub mod ahead;
mod content;
pub mod drawings;
mod moves;
mod needs;

use self::content::{DEFAULT, OutputMeshes, content, decides, effect, mesh_of_files};
use self::moves::Mover;
use self::needs::{NeededMeshes, needs};
use crate::dce::dce;
use spmdc_abi::Plane;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::program::control::Control;
use spmdc_ir::program::origin::Origin;
use spmdc_ir::program::placement::meshes::ValueMeshes;
use spmdc_ir::program::placement::{home, placement};
use spmdc_ir::program::transfer_target::Target;
use spmdc_ir::program::{Block, Func, Module, Param, Stmt, StmtKind, Value};
use spmdc_ir::rules::{Effect, NamedAxes};
use spmdc_layout::explicit::explicit_part;
use spmdc_layout::mesh::{AxisKind, Mesh, NamedMesh};
use spmdc_layout::sharding::Sharding;
use spmdc_layout::sub_axes::SubAxes;
use spmdc_layout::types::AxisSet;
use spmdc_ops::message::{ReceiveMessage, SendMessage};
use spmdc_ops::transfer::Transfer;
use std::collections::{BTreeMap, BTreeSet};

/// The name of the mesh of one device that prints.
pub const OUTPUT: &str = "output";

/// The programs of the meshes of a program.
pub struct Projected {
    /// The programs, at the stage of the whole one. If text is printed and there are several, the first one prints it.
    pub parts: Vec<MeshProjection>,
    /// The transfers between them, by their numbers.
    pub channels: Vec<ChannelInfo>,
}

/// The program of one mesh.
pub struct MeshProjection {
    /// The module; its mesh is the only one that it names.
    pub module: Module,
    /// For each parameter, its position among the parameters of the whole program.
    pub params: Vec<usize>,
    /// For each result, its position among the results of the whole program.
    pub results: Vec<usize>,
}

/// A transfer from one mesh to another.
pub struct ChannelInfo {
    /// The program that sends, by its position.
    pub from: usize,
    /// The program that receives, by its position.
    pub to: usize,
    /// The statement that moves it.
    pub origin: Origin,
}

/// The programs of all meshes on which something happens. E0602 for operands on different meshes; E0502 for conditions that not all devices
/// of a manual function can send to another mesh.
pub fn project(module: &Module) -> Result<Projected, Vec<Diagnostic>> {
    let mut mesh = module.mesh.clone();
    let mut func = module.func.clone();
    debug_assert!(mesh.is_several(), "only programs with several meshes are cut");
    let mut of = placement(&func, &mesh)?;
    let mut used: BTreeSet<u8> = of.iter().copied().flatten().collect();
    if used.is_empty() || func.body.results.iter().any(|result| of[result.0 as usize].is_none()) {
        used.insert(DEFAULT);
    }
    // A manual function without values on a mesh runs on one all the same, as does `show_sharding`.
    func.body.walk(&mut |stmt| {
        used.extend(home(stmt, &of, &mesh));
        if effect(stmt) == Some(Effect::Layout) && stmt.args.iter().all(|arg| of[arg.0 as usize].is_none()) {
            used.insert(DEFAULT);
        }
    });
    let files = mesh_of_files(&func, &of, &mesh);
    let mut prints = false;
    func.body.walk(&mut |stmt| {
        prints |= match effect(stmt) {
            Some(Effect::Text | Effect::Layout) => true,
            Some(Effect::File) => files.is_none(),
            Some(Effect::None | Effect::Stops | Effect::Check | Effect::Message) | None => false,
        };
    });
    // The first device of all prints: in a job it is in the first process. A program that uses one of its meshes prints there if it can.
    let first = mesh.named.iter().flat_map(|named| &named.devices).min().copied().unwrap_or(0);
    let one = (used.len() == 1).then(|| used.iter().next().copied()).flatten();
    let only = one.filter(|&on| {
        let is_first = mesh.named[usize::from(on)].devices.contains(&first);
        is_first || !prints
    });
    let text = match only {
        Some(only) => only,
        None => {
            mesh.named.push(NamedMesh { name: OUTPUT.to_string(), axes: Vec::new(), devices: vec![first] });
            (mesh.named.len() - 1) as u8
        }
    };
    let outputs = OutputMeshes { text, files: only.or(files).unwrap_or(text) };
    let mut order: Vec<u8> = if only.is_none() && prints { vec![text] } else { Vec::new() };
    order.extend(&used);
    let needs = if only.is_none() { needs(&func, &of, outputs) } else { NeededMeshes::default() };
    if only.is_none() {
        Mover::new(&mut func, &mut of, &mesh, outputs, &needs).run()?;
    }
    let mut channels = Vec::new();
    let mut numbers = BTreeMap::new();
    number(&func.body, &of, &order, &mut channels, &mut numbers);
    let mut parts: Vec<MeshProjection> = order
        .iter()
        .map(|&on| {
            let projector = Projector {
                func: &func,
                mesh: &mesh,
                of: &of,
                numbers: &numbers,
                needs: &needs,
                on,
                is_default: on == DEFAULT || only == Some(on),
                outputs,
                only_prints: only.is_none() && on == text,
                is_strict: false,
            };
            projector.project(module)
        })
        .collect();
    // The text part comes first.
    let first = order.iter().position(|&on| on == DEFAULT).unwrap_or(order.len() - 1);
    keep_unused(&func, &mut parts, first);
    debug_assert!(
        channels.iter().all(|channel: &ChannelInfo| channel.from != channel.to),
        "a value is sent to another mesh"
    );
    Ok(Projected { parts, channels })
}

/// Gives the parameters that no program uses to one of the programs: arguments and reports have them like all others.
fn keep_unused(func: &Func, parts: &mut [MeshProjection], to: usize) {
    for (at, (param, &value)) in func.params.iter().zip(&func.body.params).enumerate() {
        if parts.iter().any(|part| part.params.contains(&at)) {
            continue;
        }
        let MeshProjection { module, params, .. } = &mut parts[to];
        let place = params.partition_point(|&other| other < at);
        params.insert(place, at);
        module.func.params.insert(place, Param { on: None, ..param.clone() });
        module.func.body.params.insert(place, value);
    }
}

/// Numbers the transfers between different meshes, in program order.
fn number(
    block: &Block,
    of: &ValueMeshes,
    order: &[u8],
    channels: &mut Vec<ChannelInfo>,
    numbers: &mut BTreeMap<Value, u32>,
) {
    for stmt in &block.stmts {
        if let Some(op) = stmt.as_op::<Transfer>()
            && let (Target::Mesh(to), Some(from)) = (op.target.to, of[stmt.args[0].0 as usize])
            && to != from
        {
            let part = |on: u8| order.iter().position(|&other| other == on).expect("the mesh of a value has a program");
            numbers.insert(stmt.results[0], channels.len() as u32);
            channels.push(ChannelInfo { from: part(from), to: part(to), origin: stmt.origin.clone() });
        }
        stmt.blocks().for_each(|inner| number(inner, of, order, channels, numbers));
    }
}

/// Makes the program of one mesh.
struct Projector<'a> {
    func: &'a Func,
    mesh: &'a Mesh,
    of: &'a ValueMeshes,
    numbers: &'a BTreeMap<Value, u32>,
    needs: &'a NeededMeshes,
    on: u8,
    /// Whether results that are on no mesh are computed here.
    is_default: bool,
    outputs: OutputMeshes,
    /// Whether this is the program that prints for all meshes.
    only_prints: bool,
    /// Whether only values on this mesh are here: in a manual function, others may depend on axes that the mesh of text does not have.
    is_strict: bool,
}

/// The values of the whole program that have another name here: values that a transfer does not move, and copies of conditions.
type Renamed = BTreeMap<Value, Value>;

impl Projector<'_> {
    fn at(&self, value: Value) -> Option<u8> {
        self.of[value.0 as usize]
    }

    fn is_here(&self, value: Value) -> bool {
        self.at(value).map_or(!self.is_strict, |on| on == self.on)
    }

    fn project(&self, whole: &Module) -> MeshProjection {
        let named = &self.mesh.named[usize::from(self.on)];
        let axes: Vec<_> = named.axes.iter().map(|&axis| self.mesh.axes[usize::from(axis)].clone()).collect();
        let own = NamedMesh {
            name: named.name.clone(),
            axes: (0..axes.len() as u8).collect(),
            devices: named.devices.clone(),
        };
        let mesh = Mesh { axes, machine: self.mesh.machine, named: vec![own], hosts: None };
        let position = |axis: usize| named.axes.iter().position(|&own| usize::from(own) == axis);
        let parts = (0..self.mesh.axes.len()).map(|axis| position(axis).map(|at| at as u8).into_iter().collect());
        let parts = SubAxes(parts.collect());
        let is_open = !mesh.of_kind(AxisKind::Auto).is_empty() || !parts.set(self.func.turned()).is_empty();

        let mut func = Func { body: Block::default(), ..self.func.clone() };
        func.infos_mut().for_each(|info| {
            info.ty.sharding = parts.sharding(&info.ty.sharding);
            info.ty.varying = parts.set(info.ty.varying);
            info.origin.turned = parts.set(info.origin.turned);
            info.ty.sharding.dims.iter_mut().for_each(|dim| dim.open &= is_open);
        });
        let mut renamed = Renamed::new();
        let mut body = self.block(&self.func.body, &func, &mesh, &mut renamed);
        let mut results = Vec::new();
        for (at, &value) in self.func.body.results.iter().enumerate() {
            if self.at(value) == Some(self.on) || self.at(value).is_none() && self.is_default {
                results.push(at);
            }
        }
        body.params = self.func.body.params.iter().copied().filter(|&param| self.is_here(param)).collect();
        body.results = results.iter().map(|&at| now(&renamed, self.func.body.results[at])).collect();
        body.walk_mut(&mut |stmt| {
            // The ends of transfers are made for this mesh.
            if !(stmt.is::<ReceiveMessage>() || stmt.is::<SendMessage>()) {
                stmt.name_parts(&parts);
            }
            if let StmtKind::Op(op) = &mut stmt.kind
                && !is_open
            {
                for axes in op.rules_mut().named_axes() {
                    if let NamedAxes::Layout(layout) = axes {
                        layout.dims.iter_mut().for_each(|dim| dim.open = false);
                    }
                }
            }
        });
        func.results = results.iter().map(|&at| self.func.results[at].clone()).collect();
        // They are numbered anew, as a tuple has no gaps; the whole program keeps their names.
        let mut next = 0;
        for result in &mut func.results {
            result.name = match result.plane {
                Some(plane) => format!("{next}.{}", plane.name()),
                None => next.to_string(),
            };
            next += usize::from(result.plane != Some(Plane::Real));
        }
        func.params = Vec::new();
        let mut params = Vec::new();
        for (at, (param, &value)) in self.func.params.iter().zip(&self.func.body.params).enumerate() {
            if self.is_here(value) {
                params.push(at);
                func.params.push(param.clone());
            }
        }
        func.params.iter_mut().for_each(|param| param.on = None);
        func.body = body;
        let mut module = dce(Module { stage: whole.stage, mesh, func });
        // A parameter that is on no mesh is a parameter where it is used.
        let mut used = BTreeSet::new();
        let func = &mut module.func;
        func.body.each_use(&mut |value| {
            used.insert(value);
        });
        used.extend(&func.body.results);
        let keeps: Vec<bool> =
            func.body.params.iter().map(|param| used.contains(param) || self.at(*param).is_some()).collect();
        let mut keep = keeps.iter();
        func.params.retain(|_| *keep.next().expect("each parameter has an answer"));
        let mut keep = keeps.iter();
        func.body.params.retain(|_| *keep.next().expect("each parameter has an answer"));
        let mut keep = keeps.iter();
        params.retain(|_| *keep.next().expect("each parameter has an answer"));
        debug_assert_eq!(params.len(), module.func.params.len(), "each parameter is one of the whole program");
        MeshProjection { module, params, results }
    }

    fn block(&self, block: &Block, func: &Func, mesh: &Mesh, renamed: &mut Renamed) -> Block {
        let mut stmts = Vec::new();
        for stmt in &block.stmts {
            match &stmt.kind {
                StmtKind::Op(op) if let Some(op) = op.as_op::<Transfer>() => {
                    self.transfer(op, stmt, func, mesh, renamed, &mut stmts)
                }
                StmtKind::Op(op) => {
                    let is_here = match op.rules().properties().effect {
                        effect @ (Effect::Text | Effect::File) => self.outputs.of(effect) == Some(self.on),
                        Effect::Layout if stmt.args.is_empty() => self.on == self.outputs.text,
                        Effect::None | Effect::Stops | Effect::Check | Effect::Layout | Effect::Message => {
                            let mut values = stmt.args.iter().chain(&stmt.results).peekable();
                            (!self.is_strict || values.peek().is_some()) && values.all(|&value| self.is_here(value))
                        }
                    };
                    if is_here {
                        let args = stmt.args.iter().map(|&arg| now(renamed, arg)).collect();
                        stmts.push(Stmt { args, ..stmt.clone() });
                    }
                }
                StmtKind::Control(control) => {
                    let mut there = BTreeSet::new();
                    content(stmt, self.of, self.outputs, &mut there);
                    if let (Control::Manual(op), true) = (control, self.only_prints) {
                        // Text of a manual function, without the function.
                        if there.contains(&self.on) {
                            let strict = Projector { is_strict: true, ..*self };
                            let mut own = renamed.clone();
                            stmts.append(&mut strict.block(&op.body, func, mesh, &mut own).stmts);
                        }
                        continue;
                    }
                    let is_free = there.is_empty() || stmt.results.iter().any(|&result| self.at(result).is_none());
                    // A condition on another mesh comes only where the results are needed.
                    let is_elsewhere = |value: &Value| self.at(*value).is_some_and(|on| on != self.on);
                    let is_decided = self.needs.any(&stmt.results, self.on) || !decides(stmt).iter().any(is_elsewhere);
                    if there.contains(&self.on) || is_free && !self.is_strict && is_decided {
                        stmts.push(self.control(control, stmt, func, mesh, renamed));
                    }
                }
            }
        }
        Block {
            params: block.params.iter().copied().filter(|&param| self.is_here(param)).collect(),
            stmts,
            results: Vec::new(),
        }
    }

    /// Axes of the whole program as axes of this mesh, in an order that both ends of a transfer have.
    fn axes(&self, axes: AxisSet) -> Vec<u8> {
        let own = &self.mesh.named[usize::from(self.on)].axes;
        let position = |axis: usize| own.iter().position(|&other| usize::from(other) == axis).map(|at| at as u8);
        axes.iter().filter_map(position).collect()
    }

    fn transfer(
        &self,
        op: &Transfer,
        stmt: &Stmt,
        func: &Func,
        mesh: &Mesh,
        renamed: &mut Renamed,
        stmts: &mut Vec<Stmt>,
    ) {
        let (arg, result) = (stmt.args[0], stmt.results[0]);
        let Target::Mesh(to) = op.target.to else { unreachable!("a finished program names the mesh of each transfer") };
        let Some(&channel) = self.numbers.get(&result) else {
            // It is there already, or on no mesh.
            if to == self.on {
                let stays = now(renamed, arg);
                renamed.insert(result, stays);
            } else if self.is_strict {
                // On its way here, from the mesh of its manual function.
                renamed.insert(arg, result);
            }
            return;
        };
        if self.at(arg) == Some(self.on) {
            let args = vec![now(renamed, arg)];
            let varying = self.axes(self.func.ty(arg).varying);
            let op = SendMessage { channel, varying };
            stmts.push(Stmt::new(op.into(), args, Vec::new(), stmt.origin.clone()));
        }
        if to == self.on {
            let ty = func.ty(result);
            let mut mesh = mesh.clone();
            mesh.turn(func.info(result).origin.turned);
            let explicit = mesh.of_kind(AxisKind::Explicit);
            let out = (!explicit.is_empty()).then(|| explicit_part(&ty.sharding, &mesh));
            let varying = self.axes(self.func.ty(result).varying);
            let op = ReceiveMessage { channel, ty: ty.array.clone(), out, varying };
            stmts.push(Stmt::new(op.into(), Vec::new(), vec![result], stmt.origin.clone()));
            // A copy of a condition stands for it here.
            if !self.is_here(arg) {
                renamed.insert(arg, result);
            }
        }
    }

    fn control(&self, control: &Control, stmt: &Stmt, func: &Func, mesh: &Mesh, renamed: &Renamed) -> Stmt {
        let mut stmt = stmt.clone();
        let here = |values: &[Value]| -> Vec<bool> { values.iter().map(|&value| self.is_here(value)).collect() };
        let kept = here(&stmt.results);
        let inner = |block: &Block, keeps: &[bool]| {
            let mut own = renamed.clone();
            let mut made = self.block(block, func, mesh, &mut own);
            let results = block.results.iter().zip(keeps).filter(|(_, keeps)| **keeps);
            made.results = results.map(|(&result, _)| now(&own, result)).collect();
            made
        };
        let mut keeps_args = vec![true; stmt.args.len()];
        let changed = match control {
            Control::Branch(op) => {
                let (then, otherwise) = (inner(&op.then, &kept), inner(&op.otherwise, &kept));
                Control::Branch(spmdc_ir::program::control::Branch { then, otherwise })
            }
            Control::For(op) => {
                let bounds = op.bounds();
                let carries = stmt.args.len() - bounds;
                keeps_args[bounds..].copy_from_slice(&kept[..carries]);
                let collected = kept[carries..].iter().filter(|keeps| **keeps).count();
                let mut body = inner(&op.body, &kept);
                if !self.is_here(op.body.params[0]) {
                    body.params.insert(0, op.body.params[0]);
                }
                Control::For(spmdc_ir::program::control::ForLoop { range: op.range, collected, body })
            }
            Control::While(op) => {
                keeps_args.copy_from_slice(&kept);
                let (cond, body) = (inner(&op.cond, &[true]), inner(&op.body, &kept));
                Control::While(spmdc_ir::program::control::WhileLoop { cond, body })
            }
            Control::Manual(op) => {
                keeps_args = here(&stmt.args);
                let only = |layouts: &[Sharding], keeps: &[bool]| -> Vec<Sharding> {
                    let kept = layouts.iter().zip(keeps).filter(|(_, keeps)| **keeps);
                    kept.map(|(layout, _)| layout.clone()).collect()
                };
                let (inputs, outputs) = (only(&op.inputs, &keeps_args), only(&op.outputs, &kept));
                let (name, axes, body) = (op.name.clone(), op.axes, inner(&op.body, &kept));
                Control::Manual(spmdc_ir::program::control::ManualRegion { name, axes, inputs, outputs, body })
            }
        };
        stmt.kind = StmtKind::Control(changed);
        let args = stmt.args.iter().zip(&keeps_args).filter(|(_, keeps)| **keeps);
        stmt.args = args.map(|(&arg, _)| now(renamed, arg)).collect();
        let results = stmt.results.iter().zip(&kept).filter(|(_, keeps)| **keeps);
        stmt.results = results.map(|(&result, _)| result).collect();
        stmt
    }
}

fn now(renamed: &Renamed, mut value: Value) -> Value {
    while let Some(&other) = renamed.get(&value) {
        value = other;
    }
    value
}
