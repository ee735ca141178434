//! Checks that the windows of `patches` only read elements of their own device, and that `ghosted` made the blocks that they read.
//!
//! Ranges of elements are compared, block by block: the layouts that passes choose are not trusted.

use crate::verify::Verifier;
use spmdc_ir::op::Op;
use spmdc_ir::program::Stmt;
use spmdc_layout::patch::PatchDim;
use spmdc_window_ops::ghosted::Ghosted;
use spmdc_window_ops::patches::Patches;

impl Verifier<'_> {
    /// Every element that a window reads is in the device's block of the operand, at the place where the kernel looks for it.
    pub fn patches(&mut self, patches: &Patches, stmt: &Stmt) {
        let (from, to) = (self.func.ty(stmt.args[0]), self.func.ty(stmt.results[0]));
        let whole = from.sharding.unreduced.is_empty() && to.sharding.unreduced.is_empty();
        self.expect(whole, |_| "takes windows of partial values".to_string());
        for (dim, &extent) in from.shape().iter().enumerate() {
            let (own, windows) = (&from.sharding.dims[dim], &to.sharding.dims[patches.result_dim(dim)]);
            let fits = match patches.dims.iter().find(|patch| patch.dim == dim) {
                None => own.has_blocks_of(windows, extent, self.mesh),
                Some(patch) => {
                    own.axes == windows.axes
                        && own.alignment.is_none()
                        && windows.alignment.is_none()
                        && self.mesh.size_of(&own.axes) == patch.blocks
                        && patch.fits(extent)
                }
            };
            self.expect(fits, |_| format!("reads elements of other devices along dimension {dim}"));
        }
        let elements = patches.at..patches.at + patches.dims.len();
        let are_whole = to.sharding.dims[elements].iter().all(|dim| self.mesh.size_of(&dim.axes) == 1);
        self.expect(are_whole, |_| "splits the elements of its windows".to_string());
        let made = self.halos.get(&stmt.args[0]).and_then(|(maker, _)| maker.op());
        if let Some(ghosted) = made.and_then(Op::as_op::<Ghosted>) {
            let same = ghosted.patches().eq(patches.dims.iter().copied());
            self.expect(same, |it| format!("{} has the elements of other windows", it.display(stmt.args[0])));
        }
    }
}

/// Whether the windows are defined only for values with a block on every device.
pub fn are_in_blocks(dims: &[PatchDim]) -> bool {
    dims.iter().any(|patch| patch.blocks > 1)
}
