//! Writes the results along a short dimension one after the other, where they share work.
//!
//! ```text
//! for i { for k in 0..3 { for j { y[i, k] += x[j, k] * w(i, j) } } }
//! =>
//! for i { for j { w = w(i, j); y[i, 0] += x[j, 0] * w; y[i, 1] += x[j, 1] * w; y[i, 2] += x[j, 2] * w } }
//! ```
//!
//! The loop nest then computes `w` once. Where its terms are added in turn, each result has the bits that it had.

use spmdc_kernel::loops::{
    Affine, Combine, Elem, Extent, Inst, Kernel, Store, affines, affines_mut, operands, operands_mut,
};
use spmdc_kernel::nest::Nest;
use spmdc_kernel::work::work;
use spmdc_layout::cost::{LONG_NEST, SHORT_REDUCTION};

/// Maximum part of the work that remains where unrolling pays: registers and code grow.
const REMAINING: f64 = 0.75;

/// The kernel without its short dimensions, if that spares work.
pub fn unroll(mut kernel: Kernel) -> Kernel {
    while let Some(dim) = candidate(&kernel) {
        kernel = unrolled(&kernel, dim);
    }
    kernel
}

/// The number of trips of a loop over results that may be unrolled.
pub fn is_short(extent: u64) -> bool {
    (2..=SHORT_REDUCTION as u64).contains(&extent)
}

fn trips(kernel: &Kernel, dim: usize) -> Option<u64> {
    match kernel.dims[dim].extent {
        Extent::Static(extent) => Some(extent),
        Extent::Scalar { .. } => None,
    }
}

fn candidate(kernel: &Kernel) -> Option<usize> {
    let combines = |store: &Store| store.combine.is_some_and(|combine| !combine.is_scan());
    let repeats = kernel.insts.iter().any(|inst| matches!(inst, Inst::Repeat { .. }));
    if repeats || kernel.stores.len() >= SHORT_REDUCTION || !kernel.stores.iter().all(combines) {
        return None;
    }
    let is_kept = |dim: &usize| !kernel.dims[*dim].reduced;
    let is_long = |dim: usize| kernel.dims[dim].extent.most() > SHORT_REDUCTION as u64;
    (0..kernel.dims.len()).filter(is_kept).find(|&dim| {
        trips(kernel, dim).is_some_and(is_short)
            && (0..kernel.dims.len()).filter(is_kept).any(|other| other != dim && is_long(other))
            && pays(kernel, dim)
    })
}

/// Whether the results along a dimension share enough work at each point of the reduced dimensions.
fn pays(kernel: &Kernel, dim: usize) -> bool {
    let trips = trips(kernel, dim).expect("the dimension is short") as f64;
    let varies = depends(kernel, &|at| at == dim);
    let is_inside = depends(kernel, &|at| kernel.dims[at].reduced);
    let sum = |varying: bool| -> f64 {
        let insts = kernel.insts.iter().enumerate().filter(|&(at, _)| is_inside[at] && varies[at] == varying);
        insts.map(|(_, inst)| work(inst)).sum()
    };
    let (shared, own) = (sum(false), sum(true) + kernel.stores.len() as f64);
    let after = shared + trips * own;
    after <= REMAINING * trips * (shared + own) && after <= LONG_NEST as f64
}

/// For each instruction whether it depends on the index of one of these dimensions.
fn depends(kernel: &Kernel, dims: &dyn Fn(usize) -> bool) -> Vec<bool> {
    let mut depends: Vec<bool> = Vec::with_capacity(kernel.insts.len());
    for inst in &kernel.insts {
        let by_index = affines(inst).any(|affine| {
            affine.terms.iter().any(|&(dim, _)| dims(dim))
                || affine.dynamic.iter().any(|&(elem, _)| depends[elem.0 as usize])
        });
        depends.push(by_index || operands(inst).any(|operand| depends[operand.0 as usize]));
    }
    depends
}

fn unrolled(kernel: &Kernel, dim: usize) -> Kernel {
    let trips = trips(kernel, dim).expect("the dimension is short");
    let varies = depends(kernel, &|at| at == dim);
    let mut insts: Vec<Inst> = Vec::new();
    let mut stores = Vec::new();
    let mut place = vec![Elem(0); kernel.insts.len()];
    for trip in 0..trips as i64 {
        let at = |affine: &Affine, place: &[Elem]| {
            let mut fixed = affine.offset(Nest::stride(affine, dim) * trip);
            fixed.terms.retain(|&(of, _)| of != dim);
            fixed.terms.iter_mut().filter(|(of, _)| *of > dim).for_each(|(of, _)| *of -= 1);
            fixed.dynamic.iter_mut().for_each(|(elem, _)| *elem = place[elem.0 as usize]);
            fixed
        };
        for (number, inst) in kernel.insts.iter().enumerate() {
            if trip > 0 && !varies[number] {
                continue;
            }
            let mut inst = inst.clone();
            affines_mut(&mut inst).for_each(|affine| *affine = at(affine, &place));
            operands_mut(&mut inst).for_each(|elem| *elem = place[elem.0 as usize]);
            let known = insts.iter().position(|known| *known == inst);
            place[number] = Elem(known.unwrap_or_else(|| {
                insts.push(inst);
                insts.len() - 1
            }) as u32);
        }
        for store in &kernel.stores {
            let mut store = store.clone();
            store.access.address = at(&store.access.address, &place);
            store.value = place[store.value.0 as usize];
            debug_assert!(store.combine.and_then(Combine::operand).is_none(), "no scan is unrolled");
            stores.push(store);
        }
    }
    let mut dims = kernel.dims.clone();
    dims.remove(dim);
    Kernel { dims, insts, stores, ..kernel.clone() }
}
