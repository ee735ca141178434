//! Layouts that one mesh draws and another one prints: the drawing is known once the program of the first mesh has its layouts.

use spmdc_ir::program::{Module, StmtKind};
use spmdc_ops::print::Print;
use spmdc_ops::print::ShowSharding;
use std::collections::BTreeMap;

/// The drawings of a program of one mesh, by their numbers.
pub fn drawings(module: &Module) -> BTreeMap<u32, String> {
    let mut found = BTreeMap::new();
    module.func.body.walk(&mut |stmt| {
        if let (Some(op), [value]) = (stmt.as_op::<ShowSharding>(), stmt.args.as_slice()) {
            found.extend(op.number.map(|number| (number, op.drawing(&module.func, &module.mesh, *value))));
        }
    });
    found
}

/// Whether the program prints drawings of other meshes.
pub fn has_drawings(module: &Module) -> bool {
    let mut found = false;
    module.func.body.walk(&mut |stmt| {
        found |= stmt.args.is_empty() && stmt.is::<ShowSharding>();
    });
    found
}

/// Lets the program of the mesh that prints print these drawings.
pub fn with_drawings(mut module: Module, drawings: &BTreeMap<u32, String>) -> Module {
    module.func.body.walk_mut(&mut |stmt| {
        if let (StmtKind::Op(op), []) = (&mut stmt.kind, stmt.args.as_slice())
            && let Some(shown) = op.as_op::<ShowSharding>()
        {
            let text = shown.number.and_then(|number| drawings.get(&number));
            *op = Print { text: text.cloned().unwrap_or_default() }.into();
        }
    });
    debug_assert!(!has_drawings(&module), "each drawing is made by the mesh of its value");
    module
}
