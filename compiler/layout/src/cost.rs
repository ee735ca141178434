//! The cost model: the figures by which the compiler compares layouts and schedules of a program, each with its unit and source,
//! and the formulas that combine them.
//!
//! | quantity | unit | compared by |
//! |---|---|---|
//! | communication | bytes received by a device, [`collective`] | reshards, the layout of each op, alignments, whole programs, edits of `why` |
//! | computation | operations of a device, as bytes by [`operations`] | the layout of each op, partial sums, whole programs |
//! | communication between hosts | bytes received by a host, as bytes of a device by [`Levels::between`] | as communication, if hosts are known |
//! | repetition | trips, [`trips`] | all of these |
//! | time | nanoseconds of a device, [`of_kernel`] and [`of_product`] | the division of tasks among devices, and the size of the pieces |
//! | time of exchanges | nanoseconds of a device, [`of_copy`], [`of_barrier`] and [`Levels::time_between`] | timelines of several meshes, which decide how far they work ahead |
//! | memory | bytes of a device that are held longer | the positions of collectives, and which are combined |
//! | memory of a loop | bytes of a device that are held through it, as received bytes by [`held_in_loop`] | whether a loop gathers the part of each trip, or the whole array before the loop |
//!
//! Only differences and proportions matter: no figure predicts a running time. "Measured" refers to `docs/benchmarks.md`, which names the
//! machine: an AMD EPYC with two cores, code 128 bits wide. "Estimated" means that the figure was not measured; the text then states the
//! assumption. `spmdc_kernel::work` counts the machine instructions of each scalar operation for all back ends; a
//! [`Machine`](spmdc_kernel::machine::Machine) has the sizes at which an algorithm changes. Bounds of searches are not costs: they are
//! defined next to the search.

use spmdc_abi::mesh::TWO_ROUNDS_FROM;
use spmdc_kernel::loops::{Combine, Kernel};
use spmdc_kernel::repeats::times_in;
use spmdc_kernel::work::work;
use std::ops::Add;

/// Bytes that count as much as one collective that moves nothing. Estimated, and far below the real cost: devices wait for each
/// other for 0.1 to 0.5 microseconds (measured), in which a device could receive up to 2,000 bytes. It is this small because users
/// compare bytes: the layout that receives fewer bytes must win, and the number of collectives must decide only where bytes hardly
/// differ.
const BYTES_PER_COLLECTIVE: u8 = 16;

/// Bytes that a device receives in the time of one operation. Estimated: products run at about 100 operations per nanosecond on a
/// core (measured: 66 to 96), and a device receives about 5 bytes per nanosecond while all devices do.
const BYTES_PER_OPERATION: f64 = 0.05;

/// Assumed trip count of loops with unknown bounds. Estimated: large enough that code which can leave a loop does, and small enough
/// that a loop does not outweigh the code around it.
const ASSUMED_TRIPS: u64 = 16;

/// Trip count of loops with unknown bounds in reported figures, which state that the count is unknown (`plan` says "at least"): the
/// figure is the cost of one trip. It differs from [`ASSUMED_TRIPS`] because users would take an assumed factor in a total for a
/// fact. `why` compares edits by the reported figures.
const REPORTED_TRIPS: u64 = 1;

/// Trip count of loops with unknown bounds when the suggested edits of an error are ordered: the least count with repetition. It differs
/// from [`ASSUMED_TRIPS`] because users see this order next to the bytes of one trip. With more trips, an edit that moves several times as
/// many bytes before the loop would come first because of an assumption.
const REPEATED_TRIPS: u64 = 2;

/// The effort of a step of a reshard, without unit: it decides between plans that receive the same bytes.
pub const EFFORT_OF_STEP: u32 = 2;

/// The additional effort of an `all_to_all`, because it is the hardest step to follow.
pub const EFFORT_OF_ALL_TO_ALL: u32 = 1;

/// Nanoseconds of a machine instruction for one element, where four elements share an instruction. Measured in cache: `exp(-x)`,
/// which counts as 32 instructions, takes 1.06 nanoseconds per element.
const NANOSECONDS_PER_INSTRUCTION: f64 = 0.035;

/// Nanoseconds of a store, or of adding one element to a reduction. Measured within a factor of two: loops in cache of one load,
/// one operation and one store take 0.09 to 0.13 in total.
const NANOSECONDS_PER_STORE: f64 = 0.1;

/// Nanoseconds of comparing one element for an `argmax` or `argmin`, whose lanes also hold positions. Measured in cache: 0.3 in total.
const NANOSECONDS_PER_POSITION: f64 = 0.4;

/// Nanoseconds of sorting one element of a line with one operand. Estimated: four passes over its bytes.
const NANOSECONDS_PER_SORTED: f64 = 10.0;

/// Nanoseconds of comparing one element of a line with those selected so far, and of one selected element.
const NANOSECONDS_PER_SELECTED: (f64, f64) = (0.5, 40.0);

/// Nanoseconds of a call of a factorization, and of each of its operations.
const NANOSECONDS_PER_FACTORIZATION: (f64, f64) = (500.0, 0.3);

/// Nanoseconds of a call of a Fourier transform, and of each element at each level. Estimated: 2 GFLOP/s to 4 GFLOP/s on one thread.
const NANOSECONDS_PER_TRANSFORM: (f64, f64) = (100.0, 1.0);

/// Nanoseconds of one multiplication and addition of a product. Measured: products of 64 x 64 x 64 and more reach 66 to 96 GFLOP/s
/// on one thread, counting each as two operations.
const NANOSECONDS_PER_MULTIPLY_ADD: f64 = 0.02;

/// Nanoseconds of copying a byte from another device, or into or out of the memory of a transfer. Measured on two cores: 0.02 to 0.06 for
/// transfers of 64 KiB, 0.06 to 0.11 for transfers of 1 MiB.
const NANOSECONDS_PER_COPIED_BYTE: f64 = 0.06;

/// Nanoseconds for which devices wait for each other that arrive at the same time. Measured: 100 to 500.
const NANOSECONDS_PER_BARRIER: f64 = 300.0;

/// A level of communication: the copies between devices of one host, or the messages between hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelSpeed {
    /// Bytes that a device receives in a second inside a host while all do, or that a host receives from others; not 0.
    pub bytes_per_second: u64,
    /// Nanoseconds of a collective that moves next to nothing.
    pub latency_nanos: u64,
}

/// The costs of communication inside a host and between hosts. The defaults apply without a machine file (`spmdc tune`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    /// Among devices of one host.
    pub inside: LevelSpeed,
    /// Among hosts.
    pub between: LevelSpeed,
}

impl Levels {
    /// Inside a host [`NANOSECONDS_PER_COPIED_BYTE`] and [`NANOSECONDS_PER_BARRIER`]. Between hosts, measured on two hosts that were
    /// network namespaces of one machine, over Open MPI 5. Sums of 4 MiB take 2.0 milliseconds at best, which is 0.5 nanoseconds for a
    /// byte. Sums of 4 bytes take 7 to 17 microseconds, and 5 to 11 with Open MPI 4 over TCP on one host.
    pub const DEFAULT: Levels = Levels {
        inside: LevelSpeed { bytes_per_second: 16_000_000_000, latency_nanos: 300 },
        between: LevelSpeed { bytes_per_second: 2_000_000_000, latency_nanos: 10_000 },
    };

    /// The cost of a number of bytes that a host receives in one collective, in bytes that a device receives in the same time; 0 without
    /// bytes. Other than `BYTES_PER_COLLECTIVE` it has the whole latency: a message between hosts takes as long as 150 KiB inside one,
    /// and is worth avoiding where users see no difference in bytes.
    pub fn between(&self, bytes: f64) -> f64 {
        if bytes <= 0.0 {
            return 0.0;
        }
        let inside = self.inside.bytes_per_second as f64;
        let latency = self.between.latency_nanos.saturating_sub(self.inside.latency_nanos) as f64 * inside * 1e-9;
        bytes * inside / self.between.bytes_per_second as f64 + latency
    }

    /// Nanoseconds of the messages in which a host receives this many bytes; 0 without bytes.
    pub fn time_between(&self, bytes: u64) -> f64 {
        if bytes == 0 {
            return 0.0;
        }
        self.between.latency_nanos as f64 + bytes as f64 * 1e9 / self.between.bytes_per_second as f64
    }

    /// The figures, to tell machines apart.
    pub fn key(&self) -> [usize; 4] {
        let of = |level: LevelSpeed| [level.bytes_per_second as usize, level.latency_nanos as usize];
        let ([a, b], [c, d]) = (of(self.inside), of(self.between));
        [a, b, c, d]
    }
}

/// Bytes that each of `parties` hosts receives when they combine values of this number of bytes. For small arrays they exchange the values;
/// for large ones they exchange a share, and then the combined shares.
pub fn all_reduce_between(parties: u64, bytes: u64) -> u64 {
    if bytes < TWO_ROUNDS_FROM { (parties - 1) * bytes } else { all_reduce(parties, bytes) }
}

/// Assumed extent, in elements, of a dimension of a product whose length is known only at run time (`manual` code).
pub const ASSUMED_EXTENT: f64 = 1.0;

/// Minimum number of instructions of a loop nest into which nothing more is fused. Estimated: registers that are spilled take less time than
/// an array that is stored and loaded, but the time to allocate them grows faster than the body.
pub const LONG_NEST: usize = 600;

/// Maximum number of instructions of a trip of a loop that runs in a kernel, with carried values in registers. Estimated: half a long nest.
pub const LONG_TRIP: usize = 300;

/// Maximum number of those instructions for scalars, which each bundle of points repeats. Estimated: as much as the rest of a short trip.
pub const LONG_TRIP_OF_SCALARS: usize = 16;

/// Maximum number of trips of a loop that is replaced by their statements. Estimated: filters and polynomials have fewer terms.
pub const UNROLLED_TRIPS: u64 = 32;

/// Maximum number of those statements that compute arrays. Estimated: some kernels of [`LONG_NEST`].
pub const UNROLLED_STATEMENTS: u64 = 256;

/// Maximum number of elements that a reduction combines in an expression.
pub const SHORT_REDUCTION: usize = 4;

/// Maximum number of instructions by which a reduction of few elements, with all that is computed in it, may be written one after the
/// other in each of its users. Estimated: two functions such as `exp`.
pub const LONG_EXPRESSION: usize = 64;

/// Maximum number of instructions for one element that are repeated rather than storing the element and loading it again: where that
/// takes place in caches, and where it does not. Measured: in cache an instruction takes 0.035 nanoseconds and a store 0.1;
/// in memory 4 bytes that are written and read take 0.5 to 1.2.
pub const REPEATED_INSTRUCTIONS: (usize, usize) = (4, 16);

/// Minimum bytes of a device's block that are stored in memory rather than in caches. Estimated: a level-two cache.
pub const BEYOND_CACHES: usize = 1 << 20;

/// Maximum number of operations of a scalar expression that each of its users computes again. Estimated: they take less time than
/// reading a value that another kernel has written.
pub const SHORT_SCALARS: usize = 8;

/// Bytes of a device that may be held longer to shorten the wait of one collective. Estimated: a part of a level-two cache (1 MiB
/// on the measured machine).
pub const HELD_FOR_OVERLAP: usize = 256 * 1024;

/// Bytes of a device that may be held longer to combine collectives. Estimated: the size of a level-two cache, as combined
/// collectives hold them once, not each.
pub const HELD_FOR_COMBINING: usize = 1 << 20;

/// Maximum bytes of a whole array that may stay replicated in a loop, which saves collectives and repeats work. Estimated: 1,024
/// elements take 0.1 to 1 microsecond to compute, and a collective 0.5 to 1.1 (both measured).
pub const SMALL_IN_LOOP: usize = 4096;

/// Bytes that a device must receive less for each byte that it holds through a loop because all that the trips take of an array was
/// gathered before the loop. Estimated: where five trips or more take the same part, waiting for it each time costs more than its room.
const RECEIVED_PER_HELD: f64 = 4.0;

/// The cost of a byte that is held where it must not be: more than the cost of any layout that does not hold it.
const FORBIDDEN: f64 = 1e9;

/// Whether memory may be traded against bytes that devices receive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Room {
    /// It may, at the rate of [`held_in_loop`].
    #[default]
    Ample,
    /// It may not: the program would need more than there is.
    Scarce,
}

/// The cost, in bytes received, of this many bytes of a device that are held through a loop in which each trip needs a part of them. An array
/// that is small ([`SMALL_IN_LOOP`]) costs nothing.
pub fn held_in_loop(bytes: usize, room: Room) -> f64 {
    match room {
        _ if bytes <= SMALL_IN_LOOP => 0.0,
        Room::Ample => bytes as f64 * RECEIVED_PER_HELD,
        Room::Scarce => bytes as f64 * FORBIDDEN,
    }
}

/// The cost of a collective in bytes: the bytes that a device receives plus a fixed price, which empty arrays pay, too. Bytes are
/// whole numbers or averages.
pub fn collective<Bytes: Add<Output = Bytes> + From<u8>>(received: Bytes) -> Bytes {
    received + Bytes::from(BYTES_PER_COLLECTIVE)
}

/// The cost of an exchange in bytes; 0 if nothing `moves`.
pub fn exchange(moves: bool, received: f64) -> f64 {
    if moves { collective(received) } else { 0.0 }
}

/// The trip count of a loop, assumed if it is unknown.
pub fn trips(known: Option<u64>) -> u64 {
    known.unwrap_or(ASSUMED_TRIPS)
}

/// The trip count for choosing layouts inside a loop: a loop that never runs counts as one trip.
pub fn trips_inside(known: Option<u64>) -> f64 {
    trips(known).max(1) as f64
}

/// The trip count for reported figures.
pub fn reported_trips(known: Option<u64>) -> u64 {
    known.unwrap_or(REPORTED_TRIPS)
}

/// The trip count for ordering the suggested edits of an error.
pub fn repeated_trips(known: Option<u64>) -> u64 {
    known.unwrap_or(REPEATED_TRIPS)
}

/// The trip count of a statement: the product over the loops around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trips {
    /// The known count; None if one of the loops has unknown bounds.
    pub known: Option<u64>,
    /// The count with `ASSUMED_TRIPS` for each loop with unknown bounds.
    pub assumed: u64,
}

impl Trips {
    /// Outside all loops.
    pub const ONCE: Trips = Trips { known: Some(1), assumed: 1 };

    /// Inside a loop with this trip count, if it is known.
    pub fn within(self, known: Option<u64>) -> Trips {
        Trips {
            known: self.known.zip(known).map(|(outer, inner)| outer.saturating_mul(inner)),
            assumed: self.assumed.saturating_mul(trips(known)),
        }
    }
}

/// The cost in bytes of operations that are divided among devices.
pub fn operations(count: u64, devices: usize) -> f64 {
    count as f64 / devices as f64 * BYTES_PER_OPERATION
}

/// The amount received by each of `n` devices that sum blocks of this length, in the unit of the length. They scatter the sum and gather
/// its parts (Rabenseifner, "Optimization of collective reduction operations", ICCS 2004).
pub fn all_reduce(n: u64, block: u64) -> u64 {
    (2 * (n - 1) * block).div_ceil(n)
}

/// The amount received by each of `n` devices that take a part of this length of a sum, in the unit of the length: that part of all
/// other devices.
pub fn reduce_scatter(n: u64, part: u64) -> u64 {
    (n - 1) * part
}

/// Nanoseconds of a loop nest on one device.
pub fn of_kernel(kernel: &Kernel) -> f64 {
    let units = if kernel.range_dim { kernel.dims.first().map_or(1, |dim| dim.extent.most()) } else { 1 };
    units as f64 * of_unit(kernel)
}

/// Nanoseconds of one unit of the range of a loop nest on one device.
pub fn of_unit(kernel: &Kernel) -> f64 {
    let inner = if kernel.range_dim { 1 } else { 0 };
    let points: f64 = kernel.dims.iter().skip(inner).map(|dim| dim.extent.most() as f64).product();
    let times = times_in(&kernel.insts);
    let instructions: f64 = kernel.insts.iter().zip(times).map(|(inst, times)| times * work(inst)).sum();
    let point: f64 = NANOSECONDS_PER_INSTRUCTION * instructions
        + kernel.stores.iter().map(|each| of_store(each.combine)).sum::<f64>();
    points * point
}

/// Nanoseconds of a store, or of combining one element.
fn of_store(combine: Option<Combine>) -> f64 {
    if combine.is_some_and(Combine::is_position) { NANOSECONDS_PER_POSITION } else { NANOSECONDS_PER_STORE }
}

/// Nanoseconds of a product of this many multiplications and additions on one device.
pub fn of_product(multiply_adds: f64) -> f64 {
    NANOSECONDS_PER_MULTIPLY_ADD * multiply_adds
}

/// Nanoseconds of copying this many bytes between devices.
pub fn of_copy(bytes: u64) -> f64 {
    NANOSECONDS_PER_COPIED_BYTE * bytes as f64
}

/// Nanoseconds of adding this many elements to a sum, on average.
pub fn of_combining(elements: f64) -> f64 {
    NANOSECONDS_PER_STORE * elements
}

/// Nanoseconds of a barrier of this many devices.
pub fn of_barrier(devices: usize) -> f64 {
    if devices > 1 { NANOSECONDS_PER_BARRIER } else { 0.0 }
}

/// Nanoseconds of an update of one element at an index, and of a step to the next element of its row.
const NANOSECONDS_PER_UPDATE: (f64, f64) = (3.0, 0.3);

/// Nanoseconds of a number of updates of rows of this length.
pub fn of_scatter(updates: usize, row: usize) -> f64 {
    let (each, step) = NANOSECONDS_PER_UPDATE;
    updates as f64 * (each + step * row as f64)
}

/// Nanoseconds of a read from a file that the system has in memory, and of each of its bytes. Estimated: a call of the system, and a copy.
const NANOSECONDS_PER_READ: (f64, f64) = (1000.0, 0.2);

/// Nanoseconds of a read of this many bytes of a file.
pub fn of_reading(bytes: usize) -> f64 {
    let (each, step) = NANOSECONDS_PER_READ;
    each + step * bytes as f64
}

/// Nanoseconds of a sort of a line by the bytes of one of several operands.
pub fn of_sort(len: usize, operands: usize) -> f64 {
    NANOSECONDS_PER_SORTED * (len * operands) as f64
}

/// Nanoseconds of a factorization of a matrix by this number of operations, most of which are in products of blocks.
pub fn of_factorization(operations: u64) -> f64 {
    let (each, step) = NANOSECONDS_PER_FACTORIZATION;
    each + step * operations as f64
}

/// Nanoseconds of the selection of `count` elements of a line.
pub fn of_selection(len: usize, count: usize) -> f64 {
    let (each, chosen) = NANOSECONDS_PER_SELECTED;
    each * len as f64 + chosen * count as f64
}

/// Nanoseconds of a Fourier transform of a line.
pub fn of_transform(len: usize) -> f64 {
    let (each, step) = NANOSECONDS_PER_TRANSFORM;
    let len = len.max(2) as f64;
    each + step * len * len.log2()
}
