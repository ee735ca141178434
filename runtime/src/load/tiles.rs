//! Prepares kernels and products that run tile by tile.

use std::sync::atomic::AtomicBool;

use super::{Loader, chunk};
use crate::errors::trap::RunError;
use crate::library::gemm::sums_lines;
use crate::library::matrix_product::{GemmExtent, ProductFn};
use crate::run::device::Action;
use crate::run::tiles::{PreparedBuffer, PreparedKernel, PreparedMember, PreparedTileProduct, PreparedTiles};
use spmdc_abi::mesh::share;
use spmdc_abi::{GemmDim, Scalar, TileBuffer, TileMember, TileStep};

impl Loader<'_> {
    pub(crate) fn tiles(&mut self, step: &TileStep, multiply: ProductFn) -> Result<(), RunError> {
        let (mesh, memory, functions) = (self.mesh, self.memory, self.kernels);
        let maker = self.call_maker();
        self.emit(step.site, "tiles", |device, _| {
            let number = |scalar: &Scalar| mesh.resolve(scalar, device);
            let buffer = |buffer: &TileBuffer| match *buffer {
                TileBuffer::Memory(place) => PreparedBuffer::Memory(memory.address(place, device)),
                TileBuffer::Scratch { offset, row } => {
                    PreparedBuffer::Scratch { offset: offset as usize, row: row as usize }
                }
            };
            let extent = |dim: &GemmDim| GemmExtent::new(dim, number(&dim.extent));
            let mut members: Vec<PreparedMember> = Vec::new();
            for member in &step.members {
                match member {
                    TileMember::Kernel(kernel) => {
                        let kernel = PreparedKernel {
                            function: functions[kernel.kernel as usize],
                            buffers: kernel.buffers.iter().map(buffer).collect(),
                            scalars: kernel.scalars.iter().map(number).collect(),
                            matrices: kernel.matrices.iter().map(number).collect(),
                        };
                        match members.last_mut() {
                            Some(PreparedMember::Kernels(kernels)) => kernels.push(kernel),
                            Some(PreparedMember::Product(_)) | None => {
                                members.push(PreparedMember::Kernels(vec![kernel]));
                            }
                        }
                    }
                    TileMember::Product(product) => {
                        let [m, n, k] = [&product.m, &product.n, &product.k].map(extent);
                        members.push(PreparedMember::Product(Box::new(PreparedTileProduct {
                            multiply,
                            dtype: product.dtype,
                            buffers: [0, 1, 2].map(|at| buffer(&product.buffers[at])),
                            m,
                            n,
                            k,
                            matrices: product.matrices.iter().map(extent).collect(),
                            contracted: product.contracted.iter().map(extent).collect(),
                            rows: product.rows,
                            lines: sums_lines([product.dtype; 2], [&m, &n, &k]),
                        })));
                    }
                }
            }
            let rows = number(&step.rows).max(0);
            let matrices: i64 = step.matrices.iter().map(number).product();
            let (tile, tiles) = step.tiles(rows);
            let chain = step.chain as i64;
            let all = matrices.checked_div(chain).unwrap_or(matrices * tiles);
            let (rank, ranks) = mesh.rank(device, step.split);
            let units = share(all, rank, ranks);
            let team = maker.threads(device).min(step.slots as i64).max(1);
            let of_unit = step.cost * (if chain > 0 { rows * chain } else { rows.min(tile) }) as f32;
            let count = units.end - units.start;
            let chunk = chunk(count, 1, of_unit, team);
            Action::Tiles(Box::new(PreparedTiles {
                members: members.into(),
                rows,
                panel: step.panel as i64,
                tile,
                tiles,
                chain,
                units,
                chunk,
                scratch: memory.address(step.scratch, device),
                slot_bytes: step.slot_bytes as usize,
                slots: (0..step.slots).map(|_| AtomicBool::new(false)).collect(),
            }))
        });
        Ok(())
    }
}
