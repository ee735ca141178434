//! The sizes from which the planner and the code generator do something another way, because on real devices that is faster.
//!
//! Answers do not depend on them. Tests compile programs with [`Machine::TINY`], too, where arrays of a few elements are large, so
//! that small random programs reach what only large arrays reach otherwise.

/// What the devices of a mesh are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Values of up to this many bytes exist once per device: computing them everywhere is cheaper than waiting for whoever
    /// computes them.
    pub private_bytes: usize,
    /// Unless it takes a device more nanoseconds than this to compute them: several times the cost of a barrier.
    pub private_nanos: u64,
    /// Bytes of all rows of a panel: a part of the second cache, the rest of which is for what all rows share.
    pub panel_bytes: u64,
    /// Bytes of a gathered operand of a product on a device from which on it is worth not to have it.
    pub ring_bytes: usize,
    /// Blocks of an operand that is not gathered must not be shorter: the other operand is packed anew for each of them, or the
    /// sums are read and written again. At 64 that costs more than the copy that it spares.
    pub ring_block: usize,
    /// Bytes that are read or written at once.
    pub line_bytes: usize,
    /// So many sums whose terms lie side by side are computed at once.
    pub sums_side_by_side: u32,
    /// Reductions of more elements per result are made in two stages.
    pub long_reduction: u64,
    /// About this many elements are combined into each part of the first stage.
    pub reduction_part: u64,
    /// Operations of a device from which on work is worth being put between a collective and its user: about a microsecond, the
    /// cost of a barrier.
    pub overlapped_operations: u64,
    /// The operands of combined collectives have at most this many bytes on a device, and so do their results. Below that devices
    /// wait for each other longer than they copy; larger ones gain nothing, and would be held longer.
    pub combined_bytes: usize,
}

impl Machine {
    /// Today's processors.
    pub const REAL: Machine = Machine {
        private_bytes: 16 * 1024,
        private_nanos: 20_000,
        panel_bytes: 128 * 1024,
        ring_bytes: 64 * 1024,
        ring_block: 128,
        line_bytes: 64,
        sums_side_by_side: 32,
        long_reduction: 64 * 1024,
        reduction_part: 16 * 1024,
        overlapped_operations: 10_000,
        combined_bytes: 64 * 1024,
    };

    /// Devices on which a few elements are many.
    pub const TINY: Machine = Machine {
        private_bytes: 8,
        private_nanos: 8,
        panel_bytes: 64,
        ring_bytes: 16,
        ring_block: 2,
        line_bytes: 8,
        sums_side_by_side: 2,
        long_reduction: 8,
        reduction_part: 4,
        overlapped_operations: 8,
        combined_bytes: 256,
    };
}

impl Default for Machine {
    fn default() -> Machine {
        Machine::REAL
    }
}
