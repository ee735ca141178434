//! Computes long reductions in two stages, so that all cores share the work.
//!
//! ```text
//! s = sum(x), x: f32[1048576]    =>    p[c] = sum over d of x[4096 * c + d], c in 0..256;  s = sum(p)
//! ```
//!
//! The borders of the parts depend on the shape alone, so the sum has the same bits on any number of cores.

use crate::lower::peel::each_affine;
use crate::lower::work::{Lowering, Work};
use crate::program::Value;
use crate::program::origin::Origin;
use spmdc_kernel::grain::grain;
use spmdc_kernel::loops::{Access, Affine, BufferSlot, Combine, Elem, Extent, Inst, Kernel, LoopDim, Store};
use spmdc_kernel::machine::Machine;
use spmdc_kernel::nest::Nest;
use spmdc_layout::types::{ArrayType, Type};

/// Minimum number of parts that keeps all cores busy.
const ENOUGH_PARTS: u64 = 64;

/// Maximum number of grains of results of a reduction that is split: more grains are enough work to share.
const FEW_RESULTS: u64 = 16;

/// The kernel, or the kernels of both stages for a long reduction to few results.
pub fn split_reduction(
    lowering: &mut Lowering<'_>,
    mut kernel: Kernel,
    buffers: Vec<Value>,
    origin: Origin,
) -> Vec<Work> {
    let whole = |kernel, buffers| vec![Work::Kernel { kernel, buffers, cutout: None, origin: origin.clone() }];
    let Some(cut) = ReductionCut::choose(&kernel, &lowering.mesh.machine) else { return whole(kernel, buffers) };
    let store = kernel.stores[0].clone();
    let result = buffers[store.access.buffer];
    let ty = lowering.ty(result).clone();
    let elements = ty.block_shape(lowering.mesh).iter().product::<usize>() as i64;
    let parts = cut.full + u64::from(cut.rest > 0);
    let partial = lowering.temporary(Type {
        varying: ty.distinct_axes(),
        ..Type::replicated(ArrayType::new(store.dtype, &[parts as usize * elements as usize]))
    });

    // The first stage: the same loops over a part, once for all full parts and once for the rest.
    let mut into = buffers.clone();
    into[store.access.buffer] = partial;
    kernel.buffers[store.access.buffer].len = parts as usize * elements as usize;
    let mut first = kernel.clone();
    first.dims.insert(0, LoopDim { extent: Extent::Static(cut.full), reduced: false });
    first.dims[cut.dim + 1].extent = Extent::Static(cut.part);
    first.range_dim = true;
    let shifted = |affine: &Affine| {
        let mut shifted = Affine { terms: Vec::new(), ..affine.clone() };
        for &(dim, stride) in &affine.terms {
            let part = if dim == cut.dim { cut.part as i64 } else { 0 };
            shifted = shifted.plus(&Affine::dim(dim + 1).times(stride)).plus(&Affine::dim(0).times(stride * part));
        }
        shifted
    };
    each_affine(&mut first, &shifted);
    let address = first.stores[0].access.address.plus(&Affine::dim(0).times(elements));
    first.stores[0].access.address = address;
    let mut work = whole(first, into.clone());
    if cut.rest > 0 {
        let mut rest = kernel.clone();
        rest.dims[cut.dim].extent = Extent::Static(cut.rest);
        let start = (cut.full * cut.part) as i64;
        each_affine(&mut rest, &|affine| affine.offset(Nest::stride(affine, cut.dim) * start));
        let address = rest.stores[0].access.address.offset(cut.full as i64 * elements);
        rest.stores[0].access.address = address;
        work.extend(whole(rest, into));
    }

    // The second stage: each result that the device has, over all parts.
    let mut dims: Vec<LoopDim> = kernel.dims.iter().filter(|dim| !dim.reduced).cloned().collect();
    let free = dims.len();
    dims.push(LoopDim { extent: Extent::Static(parts), reduced: true });
    let at = |buffer, address| Access { buffer, address };
    let slot = |written, len| BufferSlot { dtype: store.dtype, written, len, streamed: false };
    let place = store.access.address.clone();
    let second = Kernel {
        dims,
        range_dim: free > 0,
        buffers: vec![slot(false, parts as usize * elements as usize), slot(true, elements as usize)],
        scalars: kernel.scalars.clone(),
        insts: vec![Inst::Load { access: at(0, place.plus(&Affine::dim(free).times(elements))), dtype: store.dtype }],
        stores: vec![Store { access: at(1, place), value: Elem(0), ..store }],
    };
    work.extend(whole(second, vec![partial, result]));
    work
}

/// The reduced dimension that is cut, and its parts.
pub struct ReductionCut {
    /// The number of the dimension among the dimensions of the kernel.
    pub dim: usize,
    /// The extent of a full part.
    pub part: u64,
    /// The number of full parts.
    pub full: u64,
    /// The extent of the remainder after them; 0 if the parts divide the dimension.
    pub rest: u64,
}

impl ReductionCut {
    /// None for a kernel that is not a long reduction to few results, and for one of narrow floats.
    pub fn choose(kernel: &Kernel, machine: &Machine) -> Option<ReductionCut> {
        let [Store { combine: Some(Combine::Reduce(_)), dtype, .. }] = kernel.stores.as_slice() else { return None };
        // Narrow floats accumulate in f32, which a buffer of the narrow type cannot hold.
        if dtype.is_narrow() {
            return None;
        }
        let most = |dim: &LoopDim| dim.extent.most();
        let product = |reduced| kernel.dims.iter().filter(|dim| dim.reduced == reduced).map(most).product::<u64>();
        let elements = product(true);
        let range = kernel.dims.first().filter(|dim| !dim.reduced).map_or(1, most);
        let results = product(false) / range.max(1) * range.div_ceil(u64::from(grain(kernel, machine)));
        if elements <= machine.long_reduction || results > FEW_RESULTS || results == 0 {
            return None;
        }
        // The outermost dimension that is long enough, so that each part reads whole rows; otherwise the longest.
        let known = |(at, dim): (usize, &LoopDim)| match dim.extent {
            Extent::Static(extent) if dim.reduced => Some((extent, at)),
            Extent::Static(_) | Extent::Scalar { .. } => None,
        };
        let dims = || kernel.dims.iter().enumerate().filter_map(known);
        let longest = || dims().max_by_key(|&(extent, at)| (extent, std::cmp::Reverse(at)));
        let (extent, dim) = dims().find(|&(extent, _)| extent >= ENOUGH_PARTS).or_else(longest)?;
        let part = machine.reduction_part.div_ceil(elements / extent).min(extent);
        let (full, rest) = (extent / part, extent % part);
        (full > 1).then_some(ReductionCut { dim, part, full, rest })
    }
}
