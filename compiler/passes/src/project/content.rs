//! Where something happens in a statement.

use spmdc_ir::program::control::Control;
use spmdc_ir::program::placement::meshes::ValueMeshes;
use spmdc_ir::program::{Func, Stmt, StmtKind, Value};
use spmdc_ir::rules::Effect;
use spmdc_layout::mesh::Mesh;
use std::collections::BTreeSet;

/// The mesh of results on no mesh: the first of the program.
pub(super) const DEFAULT: u8 = 0;

/// The meshes of effects that are not on the mesh of an operand.
#[derive(Clone, Copy)]
pub(super) struct OutputMeshes {
    /// The mesh of all text, of one device.
    pub text: u8,
    /// The mesh of all files that the program saves.
    pub files: u8,
}

impl OutputMeshes {
    /// The mesh to which all operands of an effect are brought.
    pub fn of(self, effect: Effect) -> Option<u8> {
        match effect {
            Effect::Text => Some(self.text),
            Effect::File => Some(self.files),
            Effect::None | Effect::Stops | Effect::Check | Effect::Layout | Effect::Message => None,
        }
    }
}

/// The mesh with most bytes of what a program saves, of equal ones the first: the other arrays move to it, and no file overtakes another
/// one. `None` if a `manual` function saves, whose values leave it as text does, or if all saved arrays are on no mesh.
pub(super) fn mesh_of_files(func: &Func, of: &ValueMeshes, mesh: &Mesh) -> Option<u8> {
    let mut bytes = vec![0; mesh.named.len()];
    let mut is_in_manual = false;
    func.body.walk(&mut |stmt| {
        let is_file = |stmt: &Stmt| effect(stmt) == Some(Effect::File);
        if is_file(stmt) {
            for &arg in &stmt.args {
                if let Some(on) = of[arg.0 as usize] {
                    bytes[usize::from(on)] += func.ty(arg).array.len() * func.ty(arg).dtype().size();
                }
            }
        } else if let Some(Control::Manual(op)) = stmt.control() {
            op.body.walk(&mut |stmt| is_in_manual |= is_file(stmt));
        }
    });
    let most = *bytes.iter().max()?;
    let on = bytes.iter().position(|&bytes| bytes == most)?;
    (most > 0 && !is_in_manual).then_some(on as u8)
}

/// The effect of an op.
pub(super) fn effect(stmt: &Stmt) -> Option<Effect> {
    stmt.op().map(|op| op.rules().properties().effect)
}

/// The meshes on which a statement does something.
pub(super) fn content(stmt: &Stmt, of: &ValueMeshes, outputs: OutputMeshes, found: &mut BTreeSet<u8>) {
    let at = |value: &Value| of[value.0 as usize];
    found.extend(stmt.results.iter().filter_map(at));
    match &stmt.kind {
        StmtKind::Op(op) => match op.rules().properties().effect {
            effect @ (Effect::Text | Effect::File) => found.extend(outputs.of(effect)),
            Effect::Layout if stmt.args.is_empty() => {
                found.insert(outputs.text);
            }
            Effect::None | Effect::Stops | Effect::Check | Effect::Layout | Effect::Message => {
                found.extend(stmt.args.iter().filter_map(at));
            }
        },
        StmtKind::Control(control) => {
            if let Control::Manual(_) = control {
                found.extend(stmt.args.iter().filter_map(at));
            }
            control.blocks().flat_map(|block| &block.stmts).for_each(|stmt| content(stmt, of, outputs, found));
        }
    }
}

/// The values that decide about control flow.
pub(super) fn decides(stmt: &Stmt) -> Vec<Value> {
    match stmt.control() {
        Some(Control::Branch(_)) => vec![stmt.args[0]],
        Some(Control::For(op)) => stmt.args[..op.bounds()].to_vec(),
        Some(Control::While(op)) => op.cond.results.clone(),
        Some(Control::Manual(_)) | None => Vec::new(),
    }
}
