//! Windows of dimensions: their elements, their compositions, and the elements that devices fetch for them.

use crate::testing::mesh;
use spmdc_layout::sharding::Sharding;
use spmdc_layout::window::{DimMap, Reaches, WindowMap};

const X: u8 = 0;
const Y: u8 = 1;

fn slice(size: usize, start: usize, step: i64, len: usize) -> DimMap {
    DimMap { size, before: 0, start, step, len, after: 0 }
}

fn maps() -> Vec<DimMap> {
    let mut maps = vec![DimMap::identity(10), DimMap { before: 2, after: 3, ..DimMap::identity(10) }];
    maps.extend((0..10).map(|shift| DimMap { start: shift, ..DimMap::identity(10) }));
    maps.extend([
        slice(10, 1, 1, 8),
        slice(10, 1, 3, 3),
        slice(10, 9, -1, 10),
        slice(10, 8, -3, 3),
        slice(10, 4, 1, 0),
    ]);
    maps.push(DimMap { before: 1, after: 1, ..slice(10, 7, -2, 4) });
    maps
}

#[test]
fn runs_are_the_elements() {
    for map in maps() {
        let places: Vec<i64> = map
            .runs()
            .iter()
            .flat_map(|run| run.numbers.clone().map(|number| run.origin + number as i64 * map.step))
            .collect();
        let wanted: Vec<i64> = map.body().map(|at| map.place(at).unwrap() as i64).collect();
        assert_eq!(places, wanted, "{map:?}");
    }
}

/// The composition of two maps of one dimension; `inner` comes first.
fn composed(outer: DimMap, inner: DimMap) -> Option<DimMap> {
    let window = |map| WindowMap { dims: vec![map], fill: 0 };
    window(outer).after(&window(inner)).map(|both| both.dims[0])
}

#[test]
fn windows_on_windows_are_windows() {
    for inner in maps() {
        for outer in maps() {
            let outer = DimMap { size: inner.result(), len: outer.len.min(inner.result()), ..outer };
            if outer.start >= outer.size || !outer.is_sound() {
                continue;
            }
            let Some(both) = composed(outer, inner) else { continue };
            assert_eq!(both.result(), outer.result());
            for at in 0..both.result() {
                let wanted = outer.place(at).and_then(|place| inner.place(place));
                assert_eq!(both.place(at), wanted, "{outer:?} after {inner:?}");
            }
        }
    }
}

/// Checks that each device finds the elements of the map in its own block and in its halo.
fn check(map: DimMap, from: &[u8], to: &[u8]) {
    let mesh = mesh();
    let [from, to] = [from, to].map(|axes| Sharding::closed(vec![axes.to_vec()]));
    let reaches = Reaches::new(&[map], &from, &to, &mesh).unwrap();
    let (reach, lacking) = (&reaches.dims[0], &reaches.fetch(0, &mesh)[0]);
    for (position, own) in reach.positions.iter().enumerate() {
        let at = mesh.positions(&reach.axes, position);
        let block = &reach.blocks[mesh.position(&reach.owners, &at)];
        for (i, place) in own.held.clone().enumerate() {
            let found = block.start as i64 + own.from as i64 + i as i64 * map.step;
            assert_eq!(map.place(place), Some(found as usize), "{map:?} {own:?}");
        }
        let lacks = own.lacks();
        let wanted: Vec<usize> =
            lacks.iter().flat_map(|range| range.clone()).map(|at| map.place(at).unwrap()).collect();
        let mut fetched = vec![usize::MAX; wanted.len()];
        for run in &lacking.runs[position] {
            for i in 0..run.len {
                let place = reach.blocks[run.owner as usize].start + run.from;
                fetched[run.to + i] = (place as i64 + i as i64 * run.step) as usize;
            }
        }
        assert_eq!(fetched, wanted, "{map:?} on device {position}");
    }
}

#[test]
fn devices_find_what_they_hold_and_fetch_what_they_lack() {
    for map in maps() {
        for (from, to) in [(&[Y][..], &[Y][..]), (&[X, Y], &[X, Y]), (&[X], &[Y]), (&[Y], &[]), (&[X, Y], &[X])] {
            check(map, from, to);
        }
    }
}
