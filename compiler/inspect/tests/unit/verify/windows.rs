//! The elements that a device reads through a window.

use spmdc_inspect::verify::windows::pieces;
use spmdc_layout::window::DimMap;

/// Rolls, slices, flips and pads of 13 elements, on blocks of 4.
#[test]
fn pieces_are_what_places_say() {
    let identity = DimMap::identity(13);
    let mut maps: Vec<DimMap> = (0..13).map(|start| DimMap { start, ..identity }).collect();
    maps.extend((1..5).map(|step| DimMap { start: 1, step, len: 3, ..identity }));
    maps.extend((0..3).map(|before| DimMap { before, start: 12, step: -1, after: 2, ..identity }));
    for map in maps {
        for own in [0..4, 4..8, 12..13, 5..5, 0..13] {
            for block in [0..4, 3..7, 2..map.result(), 1..1] {
                let wanted: Vec<usize> =
                    block.clone().filter(|&at| at < map.result()).filter_map(|at| map.place(at)).collect();
                let found = pieces(&map, &own, &(block.start..block.end.min(map.result()).max(block.start)));
                let count = |held| found.iter().filter(|piece| piece.held == held).map(|piece| piece.count).sum();
                let inside = wanted.iter().filter(|place| own.contains(place)).count();
                assert_eq!((inside, wanted.len() - inside), (count(true), count(false)), "{map:?} {own:?} {block:?}");
                assert!(wanted.iter().all(|place| found.iter().any(|piece| piece.places.contains(place))));
            }
        }
    }
}
