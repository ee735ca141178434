//! The sizes at which the planner and the code generator change algorithms, because another one is faster.
//!
//! Results do not depend on them, except for subnormal numbers and the rounding of sums by `native_bf16`. Tests also compile programs with
//! [`Machine::TINY`], where arrays of a few elements are large, so that small random programs reach the algorithms for large arrays.

/// The sizes at which the compiler changes its choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Maximum bytes of values that exist once per device: computing them everywhere is cheaper than waiting for the device that
    /// computes them.
    pub private_bytes: usize,
    /// Maximum nanoseconds of a device to compute such a value: several times the cost of a barrier.
    pub private_nanos: u64,
    /// Bytes of all rows of a panel: a part of the second-level cache. The rest of it holds data that all rows share.
    pub panel_bytes: u64,
    /// Minimum bytes of an array on a device that is not stored if products and kernels compute it tile by tile.
    pub tiled_bytes: u64,
    /// Bytes of the arrays of a tile: a part of the second-level cache.
    pub tile_bytes: u64,
    /// Minimum number of rows of a tile: a product packs its other operand again for each tile.
    pub tile_rows: u64,
    /// Maximum bytes of scratch memory of a device for tiles, for 100 bytes of arrays that are not stored. If less is saved, these arrays
    /// would stay in a cache anyway.
    pub most_scratch: u64,
    /// Minimum number of parts, on all devices together, into which sums over the rows of tiles must divide: each has one thread.
    pub least_chains: usize,
    /// Maximum bytes of the rows that kernels with neighbouring rows use at a time, if they run panel by panel: half of the second-level
    /// cache.
    pub lagging_bytes: u64,
    /// Minimum bytes of partial sums on a device that are computed in the course of their reduction.
    pub summed_bytes: u64,
    /// Minimum bytes of a gathered operand of a product on a device for which the gather is avoided.
    pub ring_bytes: usize,
    /// Minimum length of the blocks of an operand that is not gathered: the other operand is packed again for each of them, or the
    /// sums are read and written again. At 64 that costs more than the copy that it saves.
    pub ring_block: usize,
    /// Minimum bytes of an operand of a product that devices transpose together instead of packing it one by one.
    pub shared_operand_bytes: usize,
    /// Bytes of a cache line.
    pub line_bytes: usize,
    /// Minimum bytes of an array, on all devices together, that has left the caches before the next kernel reads it: stores may bypass them.
    pub streamed_bytes: u64,
    /// Maximum elements of a block with margins that neighbours compute, too, for 100 elements of the block.
    pub most_repeated: usize,
    /// The number of sums of adjacent columns that are computed at once.
    pub sums_side_by_side: u32,
    /// Maximum number of elements per result of a reduction in one stage; longer ones take two stages.
    pub long_reduction: u64,
    /// Approximate number of elements that are combined into each part of the first stage.
    pub reduction_part: u64,
    /// Minimum operations of a device for work that is moved between a collective and its user: about a microsecond, the cost of a
    /// barrier.
    pub overlapped_operations: u64,
    /// Maximum bytes on a device of the operands of combined collectives, and of their results. Below that devices wait for each
    /// other longer than they copy; larger ones gain nothing, and would be held longer.
    pub combined_bytes: usize,
    /// Whether products of bf16 use the instruction of the processor for them, which takes subnormal numbers as zeros. Otherwise they are
    /// products of f32.
    pub native_bf16: bool,
}

impl Machine {
    /// Present processors.
    pub const REAL: Machine = Machine {
        private_bytes: 16 * 1024,
        private_nanos: 20_000,
        panel_bytes: 128 * 1024,
        tiled_bytes: 2 * 1024 * 1024,
        tile_bytes: 1024 * 1024,
        tile_rows: 128,
        most_scratch: 50,
        least_chains: 16,
        summed_bytes: 256 * 1024,
        lagging_bytes: 512 * 1024,
        ring_bytes: 64 * 1024,
        ring_block: 128,
        shared_operand_bytes: 64 * 1024,
        line_bytes: 64,
        streamed_bytes: 32 * 1024 * 1024,
        most_repeated: 115,
        sums_side_by_side: 32,
        long_reduction: 64 * 1024,
        reduction_part: 16 * 1024,
        overlapped_operations: 10_000,
        combined_bytes: 64 * 1024,
        native_bf16: false,
    };

    /// Devices on which a few elements are large.
    pub const TINY: Machine = Machine {
        private_bytes: 8,
        private_nanos: 8,
        panel_bytes: 64,
        tiled_bytes: 64,
        tile_bytes: 64,
        tile_rows: 2,
        most_scratch: 1_000_000,
        least_chains: 1,
        summed_bytes: 16,
        lagging_bytes: 4096,
        ring_bytes: 16,
        ring_block: 2,
        shared_operand_bytes: 16,
        line_bytes: 8,
        streamed_bytes: 64,
        most_repeated: 1000,
        sums_side_by_side: 2,
        long_reduction: 8,
        reduction_part: 4,
        overlapped_operations: 8,
        combined_bytes: 256,
        native_bf16: false,
    };
}

impl Default for Machine {
    fn default() -> Machine {
        Machine::REAL
    }
}
