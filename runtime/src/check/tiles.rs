//! Checks steps that run tile by tile.

use super::{HUGE, ProgramChecker, ensure};
use crate::errors::trap::RunError;
use crate::run::tiles::MOST_ARGUMENTS;
use spmdc_abi::{DType, GemmDim, Scalar, TileBuffer, TileMember, TileProduct, TileRows, TileStep};

/// The most slots of the scratch memory of a device.
const MOST_SLOTS: u64 = 4096;

/// The matrices and rows of a device.
#[derive(Clone, Copy, PartialEq)]
struct Counts {
    matrices: i64,
    rows: i64,
    /// The rows of a tile.
    tile: i64,
}

impl ProgramChecker<'_> {
    pub(crate) fn tiles(&self, step: &TileStep) -> Result<(), RunError> {
        step.matrices.iter().chain([&step.rows]).try_for_each(|number| self.scalar(number))?;
        self.axis_set(step.split)?;
        ensure((1..HUGE).contains(&step.tile), || format!("tiles of {} rows", step.tile))?;
        ensure((1..HUGE).contains(&step.panel), || format!("panels of {} rows", step.panel))?;
        ensure(step.chain < HUGE, || format!("a chain of {} matrices", step.chain))?;
        ensure((1..=MOST_SLOTS).contains(&step.slots), || format!("{} slots", step.slots))?;
        ensure(step.slot_bytes.is_multiple_of(64) && step.slot_bytes < HUGE, || {
            format!("a slot of {} bytes", step.slot_bytes)
        })?;
        self.place(step.scratch, step.slots * step.slot_bytes, 64)?;
        ensure(self.mesh.axes().is_subset_of(self.arena_axes(step.scratch)), || "devices share scratch memory".into())?;
        ensure(step.products().next().is_some(), || "tiles without a product".into())?;
        let dtype = step.products().next().map(|product| product.dtype);
        for member in &step.members {
            match member {
                TileMember::Kernel(kernel) => {
                    let kernels = self.code.kernels.functions().len();
                    ensure((kernel.kernel as usize) < kernels, || format!("kernel {} of {kernels}", kernel.kernel))?;
                    kernel.scalars.iter().chain(&kernel.matrices).try_for_each(|number| self.scalar(number))?;
                    let numbers = kernel.scalars.len() + kernel.matrices.len();
                    ensure(kernel.buffers.len() <= MOST_ARGUMENTS && numbers <= MOST_ARGUMENTS, || {
                        format!("a kernel with {} buffers and {numbers} numbers", kernel.buffers.len())
                    })?;
                    kernel.buffers.iter().try_for_each(|buffer| self.tile_buffer(buffer, 1))?;
                }
                TileMember::Product(product) => {
                    ensure(Some(product.dtype) == dtype, || "products of two types".into())?;
                    self.tile_product(product)?;
                }
            }
        }
        for device in 0..self.mesh.devices() {
            let counts = self.counts(step, device)?;
            for sharer in self.mesh.group(device, step.split) {
                ensure(self.counts(step, sharer)? == counts, || "devices that share memory divide other tiles".into())?;
            }
            for member in &step.members {
                match member {
                    TileMember::Kernel(kernel) => {
                        let matrices = self.product_of(&kernel.matrices, device)?;
                        ensure(matrices == counts.matrices, || format!("a kernel of {matrices} matrices"))?;
                        kernel.buffers.iter().try_for_each(|buffer| in_slot(step, buffer, counts))?;
                    }
                    TileMember::Product(product) => {
                        product.buffers.iter().try_for_each(|buffer| in_slot(step, buffer, counts))?;
                        self.tiles_of_product(step, product, (device, counts))?;
                    }
                }
            }
        }
        Ok(())
    }

    fn tile_buffer(&self, buffer: &TileBuffer, align: u64) -> Result<(), RunError> {
        match *buffer {
            TileBuffer::Memory(place) => self.place(place, 0, align),
            TileBuffer::Scratch { offset, row } => {
                ensure(offset < HUGE && row < HUGE && offset.is_multiple_of(align), || {
                    format!("rows of {row} bytes at {offset}")
                })
            }
        }
    }

    fn product_of(&self, numbers: &[Scalar], device: usize) -> Result<i64, RunError> {
        let numbers = numbers.iter().map(|number| self.mesh.resolve(number, device));
        let product = numbers.clone().try_fold(1i64, |all, one| if one < 0 { None } else { all.checked_mul(one) });
        let product = product.filter(|product| (0..HUGE as i64).contains(product));
        product
            .ok_or_else(|| RunError::internal(format!("malformed program: {:?} matrices", numbers.collect::<Vec<_>>())))
    }

    fn counts(&self, step: &TileStep, device: usize) -> Result<Counts, RunError> {
        let matrices = self.product_of(&step.matrices, device)?;
        let rows = self.mesh.resolve(&step.rows, device);
        ensure((0..HUGE as i64).contains(&rows), || format!("{rows} rows"))?;
        ensure(step.chain == 0 || matrices % step.chain as i64 == 0, || {
            "a chain of more matrices than there are".into()
        })?;
        Ok(Counts { matrices, rows, tile: step.tiles(rows).0.min(rows.max(1)) })
    }

    fn tile_product(&self, product: &TileProduct) -> Result<(), RunError> {
        ensure(matches!(product.dtype, DType::F32 | DType::F64), || format!("a product of {}", product.dtype.name()))?;
        let size = product.dtype.size() as u64;
        product.buffers.iter().try_for_each(|buffer| self.tile_buffer(buffer, size))?;
        for dim in dims(product) {
            self.scalar(&dim.extent)?;
            let strides = [dim.a, dim.b, dim.c];
            ensure(strides.iter().all(|stride| (0..HUGE as i64).contains(stride)), || {
                format!("strides of {strides:?}")
            })?;
        }
        let TileProduct { m, n, k, contracted, .. } = product;
        ensure(m.b == 0 && n.a == 0, || "a free dimension of a product occurs on both sides".into())?;
        ensure(contracted.iter().chain([k]).all(|dim| dim.c == 0), || {
            "a contracted dimension occurs in the product".into()
        })
    }

    /// Checks that the products of a device stay within its arenas, and its slots, and overwrite nothing.
    fn tiles_of_product(
        &self,
        step: &TileStep,
        product: &TileProduct,
        (device, counts): (usize, Counts),
    ) -> Result<(), RunError> {
        let extent = |dim: &GemmDim| self.mesh.resolve(&dim.extent, device);
        for dim in dims(product) {
            ensure((0..HUGE as i64).contains(&extent(dim)), || format!("an extent of {}", extent(dim)))?;
        }
        let lens: Vec<Scalar> = product.matrices.iter().map(|dim| dim.extent.clone()).collect();
        let matrices = self.product_of(&lens, device)?;
        ensure(matrices == counts.matrices, || format!("a product of {matrices} matrices"))?;
        let TileProduct { m, n, k, .. } = product;
        let row = product.rows.of(m, n, k);
        ensure(extent(row) == counts.rows, || format!("a product of {} rows", extent(row)))?;
        // Only the last matrices may be summed, all of one chain.
        let is_kept = matches!(product.buffers[2], TileBuffer::Memory(_));
        let outer = if is_kept { product.matrices.as_slice() } else { &[] };
        let kept = outer.iter().rposition(|dim| dim.c != 0).map_or(0, |last| last + 1);
        let summed: i64 = outer[kept..].iter().map(extent).product();
        let is_sum = product.rows == TileRows::K;
        let in_chain = step.chain > 0 && step.chain as i64 % summed.max(1) == 0;
        ensure(if is_sum { in_chain && is_kept } else { summed <= 1 }, || {
            "products of one place that are not summed".into()
        })?;
        let mut written = outer[..kept].iter().chain([m, n]);
        ensure(written.all(|dim| dim.c != 0 || extent(dim) <= 1), || "a product overwrites itself".into())?;
        if counts.matrices == 0 {
            return Ok(());
        }
        let size = product.dtype.size() as i128;
        let strides: [fn(&GemmDim) -> i64; 3] = [|dim| dim.a, |dim| dim.b, |dim| dim.c];
        for (buffer, stride) in product.buffers.iter().zip(strides) {
            let last = |dim: &GemmDim| (extent(dim).max(1) - 1) as i128 * stride(dim) as i128;
            let inner = dims(product).filter(|dim| !std::ptr::eq(*dim, row));
            match *buffer {
                TileBuffer::Memory(place) => {
                    let end = place.offset as i128 + (dims(product).map(last).sum::<i128>() + 1) * size;
                    let bytes = self.program.arenas[place.arena as usize].bytes as i128;
                    ensure(end <= bytes, || "a product leaves its arena".into())?;
                }
                TileBuffer::Scratch { row: bytes, .. } => {
                    let is_row = stride(row) as i128 * size == bytes as i128 && bytes > 0;
                    let fits = (inner.map(last).sum::<i128>() + 1) * size <= bytes as i128;
                    let is_one = product.matrices.iter().all(|dim| stride(dim) == 0);
                    ensure(is_row && fits && is_one, || "a product leaves the rows of a tile".into())?;
                }
            }
        }
        Ok(())
    }
}

fn dims(product: &TileProduct) -> impl Iterator<Item = &GemmDim> {
    let TileProduct { m, n, k, matrices, contracted, .. } = product;
    [m, n, k].into_iter().chain(matrices).chain(contracted)
}

/// Checks that the rows of a tile lie in the slot.
fn in_slot(step: &TileStep, buffer: &TileBuffer, counts: Counts) -> Result<(), RunError> {
    let TileBuffer::Scratch { offset, row } = *buffer else { return Ok(()) };
    let end = row.checked_mul(counts.tile as u64).and_then(|bytes| bytes.checked_add(offset));
    ensure(end.is_some_and(|end| end <= step.slot_bytes), || "a tile leaves its slot".into())
}
