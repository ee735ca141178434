//! Whether a kernel or a product computes rows of matrices, and which elements it uses for each.

use super::rows::{ArrayRows, Count, is_dense, merged, reach};
use spmdc_abi::{Scalar, TileRows};
use spmdc_ir::lower::work::{Product, ProductDim};
use spmdc_ir::program::Value;
use spmdc_kernel::loops::{Extent, Inst, Kernel};
use std::collections::BTreeMap;

/// The matrices and rows of a group.
#[derive(Clone, Debug)]
pub(super) struct Domain {
    /// The number of matrices.
    pub matrices: Count,
    pub rows: Count,
    /// The most neighbouring matrices whose products may be summed, and 0 if no sums over rows are members: the matrices of a sum have one
    /// thread.
    pub longest_chain: u64,
}

/// The rows of the values that members of a group write, by class; None for values that no member may read.
pub(super) type WrittenRows = BTreeMap<usize, Option<ArrayRows>>;

/// A kernel of a group.
#[derive(Clone, Debug)]
pub(super) struct FittingKernel {
    /// The number of its outer dimensions that count matrices; the next one counts rows.
    pub outer: usize,
    /// For each buffer that it writes, its rows.
    pub written: Vec<(usize, Option<ArrayRows>)>,
}

/// A product of a group.
#[derive(Clone, Debug)]
pub(super) struct FittingProduct {
    pub rows: TileRows,
    /// The dimensions that count matrices, outermost first.
    pub matrices: Vec<ProductDim>,
    /// Further contracted dimensions.
    pub contracted: Vec<ProductDim>,
    /// The rows of the result; None if it is a sum over rows.
    pub written: Option<ArrayRows>,
    /// Neighbouring matrices whose products are summed; 0 if the result has rows.
    pub chain: u64,
}

pub(super) fn extent_of(kernel: &Kernel, dim: usize) -> Scalar {
    match kernel.dims[dim].extent {
        Extent::Static(extent) => Scalar::Const(extent as i64),
        Extent::Scalar { slot, .. } => kernel.scalars[slot].clone(),
    }
}

impl Domain {
    /// How a kernel fits; None if it does not.
    pub fn kernel(&self, kernel: &Kernel, classes: &[usize], written: &WrittenRows) -> Option<FittingKernel> {
        debug_assert_eq!(kernel.buffers.len(), classes.len(), "each buffer has a class");
        let outer = (0..kernel.dims.len()).find(|&outer| {
            let before: Vec<Scalar> = (0..outer).map(|dim| extent_of(kernel, dim)).collect();
            Count::of(&extent_of(kernel, outer)) == self.rows && Count::product(&before) == self.matrices
        })?;
        if !kernel.range_dim || kernel.dims[outer].reduced {
            return None;
        }
        let invariant = |buffer: usize| {
            let of_buffer = |inst: &Inst| matches!(inst, Inst::LoopInvariant { buffer: other, .. } if *other == buffer);
            kernel.insts.iter().any(of_buffer)
        };
        let mut rows_written = Vec::new();
        for (buffer, slot) in kernel.buffers.iter().enumerate() {
            let known = written.get(&classes[buffer]);
            if known.is_some() && (slot.written || invariant(buffer)) {
                return None;
            }
            let mut stores = kernel.stores.iter().filter(|store| store.access.buffer == buffer);
            if slot.written {
                let rows = match (stores.next(), stores.next()) {
                    (Some(store), None) => rows_of(kernel, outer, &store.access.address, None),
                    _ => None,
                };
                rows_written.push((buffer, rows));
            }
            let Some(known) = known else { continue };
            let rows = known.as_ref()?;
            let fits = |address| rows_of(kernel, outer, address, Some(rows)).is_some();
            let mut loads = kernel.insts.iter().filter_map(Inst::load);
            if !loads.all(|(access, _)| access.buffer != buffer || fits(&access.address)) {
                return None;
            }
        }
        Some(FittingKernel { outer, written: rows_written })
    }

    /// How a product fits; None if it does not. The first product of a group has no known operands: it defines the domain.
    pub fn product(&self, product: &Product, [a, b, c]: [usize; 3], written: &WrittenRows) -> Option<FittingProduct> {
        let (of_a, of_b) = (written.get(&a), written.get(&b));
        if written.contains_key(&c) || product.ring.is_some() {
            return None;
        }
        let candidates: &[TileRows] = match (of_a, of_b) {
            // A product of other values belongs to the group for its rows only.
            (None, None) => {
                let by =
                    |rows| self.product_by(product, rows, [None, None]).filter(|fitting| fitting.written.is_some());
                return by(TileRows::M).or_else(|| by(TileRows::N));
            }
            (Some(_), None) => &[TileRows::M, TileRows::K],
            (None, Some(_)) => &[TileRows::N, TileRows::K],
            (Some(_), Some(_)) => &[TileRows::K],
        };
        candidates.iter().find_map(|&rows| self.product_by(product, rows, [of_a, of_b]))
    }

    fn product_by(
        &self,
        product: &Product,
        rows: TileRows,
        of: [Option<&Option<ArrayRows>>; 2],
    ) -> Option<FittingProduct> {
        let Product { m, n, k, loops, contracted, .. } = product;
        debug_assert!(m.b == 0 && n.a == 0 && k.c == 0, "each dimension of a product is in two of its arrays");
        debug_assert!(product.ring.is_none(), "the blocks of other devices have rows of their own");
        let row = rows.of(m, n, k);
        if Count::of(&row.extent) != self.rows {
            return None;
        }
        // The array whose matrices are in order.
        let stride: fn(&ProductDim) -> i64 = match (of, rows) {
            ([Some(_), _], _) => |dim| dim.a,
            ([None, Some(_)], _) => |dim| dim.b,
            ([None, None], TileRows::M | TileRows::N) => |dim| dim.c,
            ([None, None], TileRows::K) => return None,
        };
        let several = |dim: &&ProductDim| dim.extent != Scalar::Const(1);
        let outer = loops.iter().chain(contracted.iter().filter(|_| rows == TileRows::K));
        let mut matrices: Vec<ProductDim> = outer.filter(several).cloned().collect();
        matrices.sort_by_key(|dim| -stride(dim));
        let contracted: Vec<ProductDim> =
            if rows == TileRows::K { Vec::new() } else { contracted.iter().filter(several).cloned().collect() };
        if Count::product(matrices.iter().map(|dim| &dim.extent)) != self.matrices {
            return None;
        }
        let in_array =
            |stride: fn(&ProductDim) -> i64| merged(matrices.iter().map(|dim| (Count::of(&dim.extent), stride(dim))));
        // The dimensions within the rows of each operand: those that are not in `outer` and not `row`.
        for (known, stride) in of.into_iter().zip([(|dim| dim.a) as fn(&ProductDim) -> i64, |dim| dim.b]) {
            let Some(known) = known else { continue };
            let known = known.as_ref()?;
            let inner =
                [m, n, k].into_iter().chain(&contracted).filter(|dim| !std::ptr::eq(*dim, row) && stride(dim) != 0);
            let inner: Option<Vec<(i64, i64)>> = inner.map(|dim| Some((constant(&dim.extent)?, stride(dim)))).collect();
            let end = reach(0, &inner?)?;
            if in_array(stride) != known.matrices || stride(row) != known.stride || end > known.len {
                return None;
            }
        }
        if rows == TileRows::K {
            // The last dimensions may be summed, too.
            let summed = matrices.iter().rev().take_while(|dim| dim.c == 0).count();
            let kept = matrices.len() - summed;
            if matrices[..kept].iter().any(|dim| dim.c == 0) {
                return None;
            }
            let chain = Count::product(matrices[kept..].iter().map(|dim| &dim.extent)).known()?.max(1) as u64;
            let fits = chain <= self.longest_chain;
            return fits.then_some(FittingProduct { rows, matrices, contracted, written: None, chain });
        }
        let within = if rows == TileRows::M { n } else { m };
        let inner = constant(&within.extent).map(|extent| [(extent, within.c)]);
        let is_row = inner.is_some_and(|inner| is_dense(0, &inner)) && matrices.iter().all(|dim| dim.c != 0);
        let len = inner.map_or(0, |[(extent, _)]| extent);
        let written = is_row.then(|| ArrayRows { matrices: in_array(|dim| dim.c), stride: row.c, len });
        Some(FittingProduct { rows, matrices, contracted, written, chain: 0 })
    }
}

pub(super) fn constant(scalar: &Scalar) -> Option<i64> {
    if let Scalar::Const(value) = scalar { Some(*value) } else { None }
}

/// The rows of an array that a kernel accesses at this address, or `known` if it stays within these. None without rows.
fn rows_of(
    kernel: &Kernel,
    outer: usize,
    address: &spmdc_kernel::loops::Affine,
    known: Option<&ArrayRows>,
) -> Option<ArrayRows> {
    if !address.scalars.is_empty() || !address.dynamic.is_empty() {
        return None;
    }
    debug_assert!(outer < kernel.dims.len(), "a dimension counts the rows");
    let stride = |dim: usize| address.terms.iter().find(|(other, _)| *other == dim).map_or(0, |(_, stride)| *stride);
    let matrices = merged((0..outer).map(|dim| (Count::of(&extent_of(kernel, dim)), stride(dim))));
    let inner: Vec<(i64, i64)> = (outer + 1..kernel.dims.len())
        .filter(|&dim| stride(dim) != 0)
        .map(|dim| (kernel.dims[dim].extent.most() as i64, stride(dim)))
        .collect();
    let len = reach(address.constant, &inner)?;
    let rows = ArrayRows { matrices, stride: stride(outer), len };
    match known {
        Some(known) => {
            (rows.matrices == known.matrices && rows.stride == known.stride && len <= known.len).then_some(rows)
        }
        None => is_dense(address.constant, &inner).then_some(rows),
    }
}

/// The domain of a product, whose result has rows: its matrices in the order of the result.
pub(super) fn domain_of(product: &Product, longest_chain: u64) -> Option<Domain> {
    let rows = match (product.n.c, product.m.c) {
        (1, _) => &product.m,
        (_, 1) => &product.n,
        _ => return None,
    };
    let matrices = Count::product(product.loops.iter().map(|dim| &dim.extent));
    Some(Domain { matrices, rows: Count::of(&rows.extent), longest_chain })
}

/// The class of each of a product's arrays.
pub(super) fn classes_of(product: &Product, class: impl Fn(Value) -> usize) -> [usize; 3] {
    [product.a, product.b, product.c].map(class)
}
