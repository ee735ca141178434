//! Margins: devices find all elements that windows read.

use spmdc_layout::margin::{Margin, Spread, cover, joined};
use spmdc_layout::mesh::{Axis, AxisKind, Mesh};
use spmdc_layout::sharding::Sharding;
use spmdc_layout::window::DimMap;

const Y: u8 = 0;

fn mesh() -> Mesh {
    Mesh { axes: vec![Axis::new("Y", 4, AxisKind::Auto)], ..Mesh::default() }
}

fn split() -> Sharding {
    Sharding::closed(vec![vec![Y]])
}

/// Rolls, slices and pads of 13 elements in blocks of 4, 4, 4 and 1.
fn maps() -> Vec<DimMap> {
    let identity = DimMap::identity(13);
    let mut maps: Vec<DimMap> = (0..13).map(|start| DimMap { start, ..identity }).collect();
    maps.extend((0..7).map(|start| DimMap { start, len: 7, ..identity }));
    maps.extend((0..4).map(|start| DimMap { start, step: 2, len: 5, ..identity }));
    maps.extend((1..9).map(|before| DimMap { before, len: 13 - before, ..identity }));
    maps.push(DimMap { before: 2, after: 3, ..identity });
    maps.push(DimMap { start: 5, len: 0, ..identity });
    maps.push(DimMap { start: 12, len: 1, ..identity });
    maps
}

fn spread(map: DimMap) -> Spread {
    Spread::new(&[map], &split(), &split(), &mesh()).unwrap()
}

/// Checks that each device finds the elements of the map in its block and in the margins.
fn check(map: DimMap, margins: &[Margin]) {
    let spread = spread(map);
    assert!(cover(margins, &spread.margins()), "{map:?} in {margins:?}");
    for (position, at) in spread.dims[0].positions.iter().enumerate() {
        for element in at.body.clone() {
            let place = at.places(&map, &(element..element + 1)).start;
            let wanted = map.place(element).unwrap();
            assert_eq!(place.rem_euclid(13) as usize, wanted, "{map:?} {at:?}");
            let part = (at.held.start > element, at.held.end <= element);
            if part == (false, false) {
                assert!(at.own.contains(&wanted) && at.own.contains(&(place as usize)), "{map:?} {at:?}");
                continue;
            }
            let margin = margins.iter().find(|margin| margin.behind == part.1).unwrap();
            let index = (place - margin.spans[0][position].start) as usize + position * margin.width(0);
            assert_eq!(margin.place(&[index], &[13]), Some(vec![wanted]), "{map:?} {margin:?}");
        }
    }
}

#[test]
fn devices_find_all_in_their_block_and_in_margins() {
    for map in maps() {
        let own = spread(map).margins();
        check(map, &own);
        for other in maps() {
            let both = joined(&own, &spread(other).margins());
            if both.iter().all(|margin| margin.is_sound(&[13])) {
                [map, other].into_iter().for_each(|map| check(map, &both));
            }
        }
    }
}

#[test]
fn what_is_fetched_is_what_the_margin_says() {
    for margin in maps().into_iter().flat_map(|map| spread(map).margins()) {
        let fetch = &margin.fetch(&[13], &split(), &mesh())[0];
        for (position, runs) in fetch.runs.iter().enumerate() {
            let mut found = vec![None; margin.width(0)];
            for run in runs {
                for i in 0..run.len {
                    found[run.to + i] = Some(vec![run.owner as usize * 4 + run.from + i]);
                }
            }
            let wanted = (0..margin.width(0)).map(|i| margin.place(&[position * margin.width(0) + i], &[13]));
            assert_eq!(found, wanted.collect::<Vec<_>>(), "{margin:?}");
        }
    }
}

#[test]
fn corners_lie_in_the_margins_of_the_first_dimension() {
    let mesh = Mesh { axes: ["X", "Y"].map(|name| Axis::new(name, 2, AxisKind::Auto)).to_vec(), ..Mesh::default() };
    let layout = Sharding::closed(vec![vec![0], vec![1]]);
    let by = |rows: usize, columns: usize| {
        let dims = [rows, columns].map(|start| DimMap { start, ..DimMap::identity(8) });
        Spread::new(&dims, &layout, &layout, &mesh).unwrap().margins()
    };
    // A diagonal neighbour: the row before the block, and the block's part of the column before it.
    let both = joined(&by(7, 0), &by(7, 7));
    let shapes: Vec<_> = both.iter().map(|margin| (margin.dim, margin.behind, margin.shape())).collect();
    assert_eq!(shapes, [(0, false, vec![2, 10]), (1, false, vec![6, 2])]);
    assert!(cover(&both, &by(7, 7)) && !cover(&by(7, 0), &both));
}
