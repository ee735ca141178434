//! The cost model: every figure by which the compiler compares ways to lay out and run a program, each with its unit and its source, and
//! the formulas that combine them.
//!
//! | quantity | unit | compared by |
//! |---|---|---|
//! | communication | bytes received by a device, [`collective`] | reshards, the layout of each op, alignments, whole programs, edits of `why` |
//! | computation | operations of a device, as bytes by [`operations`] | the layout of each op, partial sums, whole programs |
//! | repetition | trips, [`trips`] | all of these |
//! | time | nanoseconds of a device, [`of_kernel`] and [`of_product`] | what devices divide among them, and in which pieces |
//! | memory | bytes of a device that are held longer | where collectives stand, and which are combined |
//!
//! Only differences matter: no figure is a promise of how long something takes. "Measured" refers to `docs/benchmarks.md`, which names
//! the machine: an AMD EPYC with two cores, code 128 bits wide. "Estimated" says that nobody has measured the figure; then the text says
//! what it assumes. The machine instructions of each scalar operation are counted in `spmdc_kernel::work`, which back ends share; the
//! sizes from which a method changes are those of a [`Machine`](spmdc_kernel::machine::Machine). Bounds of searches are no costs: they
//! stand where the search is.

use spmdc_kernel::loops::{Combine, Kernel};
use spmdc_kernel::work::work;
use std::ops::Add;

/// Bytes that count as much as one collective that moves nothing. Estimated, and far less than the truth: devices wait for each other for
/// 0.1 to 0.5 microseconds (measured), in which a device could receive up to 2,000 bytes. It is this small because users compare bytes:
/// of two ways the one that receives fewer bytes is to win, and the number of collectives is to decide where bytes hardly differ.
const BYTES_PER_COLLECTIVE: u8 = 16;

/// Bytes that a device receives in the time of one operation. Estimated: products run at about 100 operations per nanosecond on a core
/// (measured: 66 to 96), and a device is taken to receive 5 bytes per nanosecond from others while all of them do.
const BYTES_PER_OPERATION: f64 = 0.05;

/// Assumed trip count of loops with unknown bounds. Estimated: more than a few, so that what can leave a loop does, and few enough
/// that a loop does not outweigh all that surrounds it.
const ASSUMED_TRIPS: u64 = 16;

/// Trip count of loops with unknown bounds in figures that are shown to users, who are told that the count is unknown (`plan` says "at
/// least"): such a figure is what one trip costs. It differs from [`ASSUMED_TRIPS`] because a made-up factor in a total would be
/// taken for a fact. `why` compares edits by the figures that it shows.
const REPORTED_TRIPS: u64 = 1;

/// Trip count of loops with unknown bounds where the ways out of an error are put in order: the fewest with which anything is repeated. It
/// differs from [`ASSUMED_TRIPS`] because users read that order beside the bytes of one trip: with more trips, a way that moves several times
/// as many bytes in front of the loop would stand first on the strength of a guess.
const REPEATED_TRIPS: u64 = 2;

/// A statement more in a way from one layout to another, without unit: it decides between ways that receive the same bytes.
pub const EFFORT_OF_STEP: u32 = 2;

/// An `all_to_all` counts this much more than other steps, as it is the hardest to follow.
pub const EFFORT_OF_ALL_TO_ALL: u32 = 1;

/// Nanoseconds of a machine instruction for one element, where four elements share one. Measured in cache: `exp(-x)`, for which 32 are
/// counted, takes 1.06 nanoseconds per element.
const NANOSECONDS_PER_INSTRUCTION: f64 = 0.035;

/// Nanoseconds of a store, or of adding one element to a reduction. Measured within a factor of two: loops in cache that load, compute one
/// thing and store take 0.09 to 0.13 in all.
const NANOSECONDS_PER_STORE: f64 = 0.1;

/// Nanoseconds of comparing one element for an `argmax` or `argmin`, whose lanes hold positions, too. Measured in cache: 0.3 in all.
const NANOSECONDS_PER_POSITION: f64 = 0.4;

/// Nanoseconds of one multiplication and addition of a product. Measured: products of 64 x 64 x 64 and more reach 66 to 96 GFLOP/s on one
/// thread, where one of these is two operations.
const NANOSECONDS_PER_MULTIPLY_ADD: f64 = 0.02;

/// Assumed extent, in elements, of a dimension of a product of which only the running program knows how long it is (`manual` code).
pub const ASSUMED_EXTENT: f64 = 1.0;

/// Operations of a loop nest from which on nothing more is fused into it. Estimated: a longer body needs more than the sixteen vector
/// registers of x86-64, and spills more than it saves.
pub const LONG_NEST: usize = 48;

/// Operations of an expression of scalars up to which everyone who needs its value computes it. Estimated: these take less than reading a value
/// that another kernel has written.
pub const SHORT_SCALARS: usize = 8;

/// Bytes of a device that may be held longer for one collective to wait less. Estimated: a part of a level-two cache
/// (1 MiB on the measured machine).
pub const HELD_FOR_OVERLAP: usize = 256 * 1024;

/// Bytes of a device that may be held longer for collectives to be combined. Estimated: what a level-two
/// cache holds, as what is combined runs once, not beside each collective.
pub const HELD_FOR_COMBINING: usize = 1 << 20;

/// Bytes of a whole array up to which a value in a loop may stay whole on every device, which spares collectives and repeats work.
/// Estimated: 1,024 elements take 0.1 to 1 microsecond to compute, and a collective 0.5 to 1.1 (both measured).
pub const SMALL_IN_LOOP: usize = 4096;

/// Bytes that count for a collective of which a device receives so many: these, and a fixed price. Counts are whole numbers or averages.
/// Empty arrays cost a barrier, too.
pub fn collective<Bytes: Add<Output = Bytes> + From<u8>>(received: Bytes) -> Bytes {
    received + Bytes::from(BYTES_PER_COLLECTIVE)
}

/// Bytes that count for an exchange, which takes place only where something `moves`.
pub fn exchange(moves: bool, received: f64) -> f64 {
    if moves { collective(received) } else { 0.0 }
}

/// How often a loop is taken to run: as often as it does, where that is known.
pub fn trips(known: Option<u64>) -> u64 {
    known.unwrap_or(ASSUMED_TRIPS)
}

/// The same where layouts inside of the loop are chosen: those of a loop that never runs are chosen as if it ran once.
pub fn trips_inside(known: Option<u64>) -> f64 {
    trips(known).max(1) as f64
}

/// How often something counts in figures that are shown.
pub fn reported_trips(known: Option<u64>) -> u64 {
    known.unwrap_or(REPORTED_TRIPS)
}

/// How often a loop counts where the ways out of an error are put in order.
pub fn repeated_trips(known: Option<u64>) -> u64 {
    known.unwrap_or(REPEATED_TRIPS)
}

/// How often a statement runs because of the loops around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trips {
    /// None if one of the loops has unknown bounds.
    pub known: Option<u64>,
    /// With [`ASSUMED_TRIPS`] for each of those.
    pub assumed: u64,
}

impl Trips {
    /// Outside of all loops.
    pub const ONCE: Trips = Trips { known: Some(1), assumed: 1 };

    /// Inside of a loop that runs so often, if that is known.
    pub fn within(self, known: Option<u64>) -> Trips {
        Trips {
            known: self.known.zip(known).map(|(outer, inner)| outer.saturating_mul(inner)),
            assumed: self.assumed.saturating_mul(trips(known)),
        }
    }
}

/// Bytes that count for operations which are divided among so many devices.
pub fn operations(count: u64, devices: usize) -> f64 {
    count as f64 / devices as f64 * BYTES_PER_OPERATION
}

/// Received by each of `n` devices that add up blocks of this length, in the unit of the length: they scatter the sum and gather its
/// parts, as in Rabenseifner, "Optimization of collective reduction operations" (ICCS 2004).
pub fn all_reduce(n: u64, block: u64) -> u64 {
    (2 * (n - 1) * block).div_ceil(n)
}

/// Received by each of `n` devices that take a part of this length of a sum, in the unit of the length: that part of all others.
pub fn reduce_scatter(n: u64, part: u64) -> u64 {
    (n - 1) * part
}

/// Nanoseconds of a device for a loop nest.
pub fn of_kernel(kernel: &Kernel) -> f64 {
    let units = if kernel.range_dim { kernel.dims.first().map_or(1, |dim| dim.extent.most()) } else { 1 };
    units as f64 * of_unit(kernel)
}

/// Nanoseconds of a device for one unit of the range of a loop nest.
pub fn of_unit(kernel: &Kernel) -> f64 {
    let inner = if kernel.range_dim { 1 } else { 0 };
    let points: f64 = kernel.dims.iter().skip(inner).map(|dim| dim.extent.most() as f64).product();
    let point: f64 = NANOSECONDS_PER_INSTRUCTION * kernel.insts.iter().map(work).sum::<f64>()
        + kernel.stores.iter().map(|each| of_store(each.combine)).sum::<f64>();
    points * point
}

/// Nanoseconds of a store, or of combining one element.
fn of_store(combine: Option<Combine>) -> f64 {
    if combine.is_some_and(Combine::is_position) { NANOSECONDS_PER_POSITION } else { NANOSECONDS_PER_STORE }
}

/// Nanoseconds of a device for a product of so many multiplications and additions.
pub fn of_product(multiply_adds: f64) -> f64 {
    NANOSECONDS_PER_MULTIPLY_ADD * multiply_adds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collective_has_a_price_of_its_own() {
        assert_eq!(collective(0_u64), 16);
        assert_eq!(collective(2.5), 18.5);
        assert_eq!(exchange(true, 0.0), 16.0, "empty arrays cost a barrier");
        assert_eq!(exchange(false, 0.0), 0.0);
    }

    #[test]
    fn sums_take_what_the_table_of_the_search_says() {
        // 2 (n - 1) / n of a block of 12, and n - 1 parts of 3.
        assert_eq!((all_reduce(4, 12), reduce_scatter(4, 3)), (18, 9));
        assert_eq!(all_reduce(1, 12), 0);
        // What does not divide is rounded up.
        assert_eq!(all_reduce(3, 4), 6);
        // A sum that is scattered and then gathered receives what one that is made whole at once does.
        assert_eq!(all_reduce(4, 12), 2 * reduce_scatter(4, 3));
    }

    #[test]
    fn loops_with_unknown_bounds_have_an_assumed_trip_count() {
        assert_eq!((trips(None), trips(Some(3)), trips(Some(0))), (16, 3, 0));
        assert_eq!((trips_inside(None), trips_inside(Some(0))), (16.0, 1.0));
        assert_eq!((reported_trips(None), reported_trips(Some(3))), (1, 3));
        assert_eq!((repeated_trips(None), repeated_trips(Some(3))), (2, 3));
        let inner = Trips::ONCE.within(Some(3)).within(None);
        assert_eq!(inner, Trips { known: None, assumed: 48 });
        assert_eq!(Trips::ONCE.within(Some(3)).within(Some(5)), Trips { known: Some(15), assumed: 15 });
    }

    #[test]
    fn the_position_of_the_smallest_element_costs_as_much_as_that_of_the_largest() {
        let [largest, smallest] = [Combine::ArgMax, Combine::ArgMin].map(|combine| of_store(Some(combine)));
        assert_eq!((largest, smallest), (NANOSECONDS_PER_POSITION, NANOSECONDS_PER_POSITION));
        assert_eq!(of_store(None), NANOSECONDS_PER_STORE);
    }

    #[test]
    fn operations_count_little_beside_bytes() {
        // A product of 8x16 and 16x64 on one device counts as 819.2 bytes, on four devices as a quarter of that.
        assert_eq!(operations(2 * 8 * 16 * 64, 1), 819.2);
        assert_eq!(operations(2 * 8 * 16 * 64, 4), 204.8);
        assert_eq!(of_product(1e9), 2e7);
    }
}
