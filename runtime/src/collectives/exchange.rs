//! Moves blocks until an array has its new layout: all_gather, all_to_all, a plain slice, and every mixture.
//!
//! Cost: each device reads the bytes of its block that it does not hold, once. Where the target is shared, a device writes only
//! bytes that it holds itself: an all_gather into shared memory copies every byte once in total.

use super::Sides;
use crate::data::boxes::BoxCopy;
use crate::errors::trap::RunError;
use crate::processes::reads::DeviceReads;
use spmdc_abi::{AxisSet, ExchangeStep};

/// The copies of the device, given the axes of all participating devices (`group`). Bytes already in place are not copied.
pub(crate) fn plan(
    reads: &mut DeviceReads<'_>,
    step: &ExchangeStep,
    group: AxisSet,
    device: usize,
) -> Result<Vec<BoxCopy>, RunError> {
    let sides = Sides::new(reads, device, group, &step.from, &step.to);
    let to = reads.own(step.to.place, device);
    let pieces = sides.pieces(group, step.site)?;
    let moves = pieces.iter().filter_map(|piece| {
        let owner = reads.nearest(piece.owner, sides.copies(group));
        reads.copy(owner, step.from.place, sides.rows(piece), to)
    });
    Ok(moves.filter(|planned| !planned.is_identity()).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::run::memory::Memory;
    use spmdc_abi::mesh::DeviceMesh;
    use spmdc_abi::{Arena, DType, Layout, LayoutDim, MeshAxis, Place, Shards, Site};

    /// X = 2, Y = 4.
    fn mesh() -> DeviceMesh {
        let axis = |name: &str, size| MeshAxis { name: name.into(), size };
        DeviceMesh::new(&[axis("X", 2), axis("Y", 4)]).unwrap()
    }

    fn shards(dims: &[(usize, &[u8])]) -> Shards {
        let dims = dims.iter().map(|&(size, axes)| LayoutDim { size, axes: axes.to_vec() }).collect();
        Shards { place: Place { arena: 0, offset: 0 }, layout: Layout { dtype: DType::F32, dims } }
    }

    /// The number of elements that each device reads from each, itself included, if no memory is shared.
    fn read(from: &Shards, to: &Shards) -> Vec<Vec<usize>> {
        let mesh = mesh();
        let memory = Memory::allocate(&mesh, 0, &[Arena { axes: AxisSet::all(2), bytes: 1 << 16 }]).unwrap();
        let from_each = |device| {
            let mut read = vec![0; mesh.devices()];
            let sides = Sides::new(&DeviceReads::plan(&memory, 0), device, AxisSet::all(2), from, to);
            let pieces = sides.pieces(AxisSet::all(2), Site::default());
            for piece in pieces.unwrap() {
                read[piece.owner] += piece.range.iter().map(|range| range.len()).product::<usize>();
            }
            read
        };
        (0..mesh.devices()).map(from_each).collect()
    }

    /// The number of elements of its new block that a device already has.
    fn overlap(from: &Shards, to: &Shards, device: usize) -> usize {
        let [from, to] = [from, to].map(|side| mesh().blocks(&side.layout, device));
        let lens = from.iter().zip(&to);
        lens.map(|(from, to)| from.end.min(to.end).saturating_sub(from.start.max(to.start))).product()
    }

    #[test]
    fn devices_read_what_they_lack_once_and_from_different_copies() {
        let layouts: [[&[u8]; 2]; 8] = [
            [&[], &[]],
            [&[0], &[]],
            [&[1], &[]],
            [&[], &[0]],
            [&[0], &[1]],
            [&[1], &[0]],
            [&[0, 1], &[]],
            [&[1, 0], &[]],
        ];
        for shape in [[16, 32], [13, 7], [3, 1]] {
            for from in layouts {
                for to in layouts {
                    let [from, to] = [from, to].map(|axes| shards(&[(shape[0], axes[0]), (shape[1], axes[1])]));
                    let read = read(&from, &to);
                    for (device, read) in read.iter().enumerate() {
                        let own: usize = mesh().blocks(&to.layout, device).iter().map(|range| range.len()).product();
                        assert_eq!(read.iter().sum::<usize>(), own, "all of its block");
                        assert_eq!(read[device], overlap(&from, &to, device), "its own where it can");
                    }
                }
            }
        }
        // Each half lies on four devices, and each of them is read by one.
        let read = read(&shards(&[(16, &[0])]), &shards(&[(16, &[])]));
        for (reader, read) in read.iter().enumerate() {
            let others: Vec<usize> = (0..8).filter(|&owner| owner != reader && read[owner] > 0).collect();
            assert_eq!(others, [(reader + 4) % 8]);
        }
    }
}
