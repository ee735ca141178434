//! The step of a change of layout in which devices exchange data.

use spmdc_abi::CollectiveKind;
use spmdc_ir::lower::work::{Lowering, Side, layout_of};
use spmdc_ir::program::Value;
use spmdc_layout::reshard;

/// Emits the collective that gives a value the layout of another one.
pub fn lower_step(lowering: &mut Lowering<'_>, kind: CollectiveKind, from: Value, to: Value) {
    let (source, target) = (lowering.ty(from), lowering.ty(to));
    let group = reshard::group(&source.array, &source.sharding, &target.sharding, lowering.mesh);
    let reduce = source.sharding.unreduced.minus(target.sharding.unreduced);
    let [before, after] = [(from, source), (to, target)].map(|(value, ty)| Side { value, layout: layout_of(ty) });
    if reduce.is_empty() {
        lowering.exchange(kind, group, before, after);
    } else {
        lowering.reduce(kind, source.sharding.combine, group.union(reduce), reduce, before, after);
    }
}
