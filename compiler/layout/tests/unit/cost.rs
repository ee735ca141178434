//! The prices of collectives, of loops, of stores and of bytes between hosts.

use spmdc_abi::DType;
use spmdc_kernel::loops::{Access, Affine, Combine, Elem, Kernel, Store};
use spmdc_layout::cost::{
    Levels, Trips, all_reduce, all_reduce_between, collective, exchange, of_barrier, of_copy, of_product, of_unit,
    operations, reduce_scatter, repeated_trips, reported_trips, trips, trips_inside,
};

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
    // The quotient is rounded up.
    assert_eq!(all_reduce(3, 4), 6);
    // A sum that is scattered and then gathered receives as much as an all-reduce.
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
    let stored = |combine| {
        let access = Access { buffer: 0, address: Affine::default() };
        let stores = vec![Store { access, dtype: DType::F32, value: Elem(0), combine }];
        of_unit(&Kernel { stores, ..Kernel::default() })
    };
    assert_eq!([Combine::ArgMax, Combine::ArgMin].map(|combine| stored(Some(combine))), [0.4, 0.4]);
    assert_eq!(stored(None), 0.1);
}

#[test]
fn operations_count_little_beside_bytes() {
    // A product of 8x16 and 16x64 counts as 819.2 bytes on one device, and as a quarter of that on four devices.
    assert_eq!(operations(2 * 8 * 16 * 64, 1), 819.2);
    assert_eq!(operations(2 * 8 * 16 * 64, 4), 204.8);
    assert_eq!(of_product(1e9), 2e7);
    assert_eq!((of_copy(1000), of_barrier(1), of_barrier(2)), (60.0, 0.0, 300.0));
}

#[test]
fn bytes_between_hosts_are_dearer() {
    let levels = Levels::DEFAULT;
    assert_eq!(levels.between(0.0), 0.0);
    assert_eq!(levels.between(1000.0), 8.0 * 1000.0 + 9700.0 * 16.0);
    assert_eq!((levels.time_between(0), levels.time_between(1000)), (0.0, 10_500.0));
    let inside = 1e9 / levels.inside.bytes_per_second as f64;
    assert!((inside / of_copy(1) - 1.0).abs() < 0.1, "the figures of a host are those of copies");
    assert_eq!(levels.inside.latency_nanos as f64, of_barrier(2));
    // Small values are exchanged as they are.
    assert_eq!((all_reduce_between(4, 1000), all_reduce_between(4, 100_000)), (3000, 150_000));
    assert_eq!(all_reduce_between(1, 100_000), 0);
}
