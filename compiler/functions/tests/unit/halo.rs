//! Halos: the elements that devices lack, and their traffic.

use crate::testing::{self, integers};
use spmdc_abi::CollectiveKind;
use spmdc_ir::rules::{Exchange, Semantics};
use spmdc_layout::sharding::Sharding;
use spmdc_layout::types::AxisSet;
use spmdc_layout::window::DimMap;
use spmdc_window_ops::halo::{Halo, HaloWindow};

const Y: u8 = 1;

fn rolled() -> Halo {
    let dims = vec![DimMap { size: 8, before: 0, start: 7, step: 1, len: 8, after: 0 }];
    let split = Sharding::closed(vec![vec![Y]]);
    Halo { parts: vec![HaloWindow::new(dims, &split, &split, &testing::mesh()).unwrap()] }
}

#[test]
fn devices_get_what_they_lack() {
    let x = integers(&[8], &[0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(rolled().eval(&[&x]).unwrap()[0].ints(), [7, 1, 3, 5]);
    let flow = rolled().flow(&testing::mesh());
    assert_eq!((flow.group, flow.provided, flow.received, flow.total), (AxisSet::of(1), 1, 1, 8));
    let wanted = (CollectiveKind::CollectivePermute, AxisSet::of(1));
    assert_eq!(rolled().collective(&[], &[], &testing::mesh()), wanted);
}

#[test]
fn one_row_for_all_is_provided_once() {
    let dims = vec![DimMap { size: 8, before: 0, start: 3, step: 1, len: 1, after: 0 }];
    let (from, to) = (Sharding::closed(vec![vec![Y]]), Sharding::replicated(1));
    let halo = Halo { parts: vec![HaloWindow::new(dims, &from, &to, &testing::mesh()).unwrap()] };
    let flow = halo.flow(&testing::mesh());
    assert_eq!((flow.provided, flow.received, flow.shape), (1, 1, vec![1]));
}

#[test]
fn an_axis_cannot_split_a_halo_twice() {
    // Dimension 0 needs a halo along Y, but Y splits dimension 1 of the result.
    let dims = vec![DimMap::identity(8), DimMap::identity(8)];
    let (from, to) = (Sharding::closed(vec![vec![Y], vec![]]), Sharding::closed(vec![vec![], vec![Y]]));
    assert_eq!(HaloWindow::new(dims, &from, &to, &testing::mesh()), None);
}
