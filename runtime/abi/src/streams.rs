//! Streams: parameters that stay in their files; programs read rows of them.

use crate::mesh::DeviceMesh;
use crate::{LibraryFunction, LibraryStep, Program, Scalar, Step};
use serde::{Deserialize, Serialize};

/// Reads rows of a parameter that stays in its file. The last dimensions of the only result are the dimensions of a row. The only operand,
/// of i64, has the indices of the rows; its dimensions precede the dimensions of a row. Or it is a scalar, and rows from this index on are
/// read, one for each index of the result's first dimension. A device reads its own part of each row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamRows {
    /// The parameter, by its index in [`Program::params`](crate::Program::params).
    pub param: u32,
    /// Whether the rows follow each other in the file, from the index on.
    pub consecutive: bool,
    /// Whether the result has dimensions before the dimensions of a row.
    pub has_several: bool,
    /// For each dimension of the parameter, the index of the first element that this device reads, counted from the index of a row.
    pub first: Vec<Scalar>,
    /// The greatest index. Greater ones, as unsigned numbers, become it: no row is computed from an unchecked number.
    pub last: u64,
}

impl LibraryStep {
    /// Bytes of the rows that a device reads ahead for this step.
    pub fn ahead_bytes(&self, mesh: &DeviceMesh, device: usize) -> u64 {
        let (LibraryFunction::Rows(StreamRows { consecutive: true, .. }), Some(rows)) =
            (&self.function, self.results.first())
        else {
            return 0;
        };
        let row = rows.dims.iter().skip(1).map(|dim| mesh.resolve(&dim.extent, device).max(0) as u64);
        let own = self.share(mesh, device);
        (own.end - own.start).max(0) as u64 * row.product::<u64>() * rows.dtype.size() as u64
    }
}

impl Program {
    /// Bytes of all memory that one device uses: of all arenas, and of the rows of streams that it reads ahead.
    pub fn bytes_per_device(&self, mesh: &DeviceMesh) -> u64 {
        let ahead = (0..mesh.devices()).map(|device| self.ahead_bytes(mesh, device)).max();
        self.arenas.iter().map(|arena| arena.bytes).sum::<u64>() + ahead.unwrap_or(0)
    }

    /// Bytes of the rows of streams that a device reads ahead.
    pub fn ahead_bytes(&self, mesh: &DeviceMesh, device: usize) -> u64 {
        let of_step = |step: &Step| if let Step::Library(step) = step { step.ahead_bytes(mesh, device) } else { 0 };
        Step::walk(&self.body).map(of_step).sum()
    }
}
