//! Windows of elements, and the blocks that they read.

use spmdc_layout::mesh::{Axis, AxisKind, Mesh};
use spmdc_layout::patch::{GhostDim, PatchDim};
use spmdc_layout::sharding::DimSharding;
use spmdc_layout::window::DimMap;

fn windows(patch: PatchDim, extent: usize) -> Vec<Vec<usize>> {
    assert!(patch.fits(extent), "{patch:?}");
    (0..patch.len).map(|at| (0..patch.size).map(|k| patch.place(extent, at, k)).collect()).collect()
}

#[test]
fn windows_have_strides_and_dilations() {
    assert_eq!(windows(PatchDim::all(0, 5, (3, 1, 1)), 5), [[0, 1, 2], [1, 2, 3], [2, 3, 4]]);
    assert_eq!(windows(PatchDim::all(0, 7, (2, 3, 2)), 7), [[0, 2], [3, 5]]);
    assert_eq!(PatchDim::all(0, 2, (3, 1, 1)).len, 0);
    assert!(!PatchDim { len: 4, ..PatchDim::all(0, 5, (3, 1, 1)) }.fits(5));
}

#[test]
fn blocks_read_their_own_block() {
    // Blocks of 3, 3 and 1 windows, and of 5, 5 and 3 elements.
    let patch = PatchDim { dim: 0, len: 7, size: 3, stride: 1, dilation: 1, blocks: 3 };
    assert!(patch.fits(13) && !patch.fits(12));
    assert_eq!(windows(patch, 13)[2..5], [[2, 3, 4], [5, 6, 7], [6, 7, 8]]);
    // Blocks of 3 and 3 windows, at elements 0 and 6, but of 7 and 6 elements.
    let pool = PatchDim { blocks: 2, ..PatchDim::all(0, 13, (2, 2, 1)) };
    assert!(pool.fits(13) && !pool.begins_with_blocks(13) && pool.begins_with_blocks(12));
    // Fewer windows than blocks.
    assert!(PatchDim { len: 1, blocks: 4, ..patch }.fits(12));
}

/// Checks that each device has the elements that its windows read, and fetches no others from other devices.
fn check(map: DimMap, window: (usize, usize, usize), parts: usize) {
    let mesh = Mesh { axes: vec![Axis::new("Y", parts, AxisKind::Auto)], ..Mesh::default() };
    let split = DimSharding::closed(vec![0]);
    let patch = PatchDim { blocks: parts, ..PatchDim::all(0, map.result(), window) };
    let ghost = GhostDim { map, patch: Some(patch) };
    assert!(ghost.fits(&split, &split, &mesh), "{ghost:?}");
    let (fetch, sources, blocks) = (ghost.fetch(&split, &split, &mesh), ghost.sources(), split.blocks(map.size, &mesh));
    assert_eq!((sources.len(), sources.len()), (ghost.size(), fetch.to_len * parts));
    let [before, after] = ghost.padding();
    for block in 0..parts {
        let mut held = vec![None; fetch.to_len];
        for run in &fetch.runs[block] {
            for i in 0..run.len {
                let place = blocks[run.owner as usize].start as i64 + run.from as i64 + i as i64 * run.step;
                held[run.to + i] = Some(place as usize);
            }
        }
        let windows = patch.windows(block);
        let read: Vec<usize> = (0..windows.len())
            .flat_map(|at| (0..patch.size).map(move |k| at * patch.stride + k * patch.dilation))
            .collect();
        for &at in &read {
            let place = map.place(windows.start * patch.stride + at);
            assert_eq!((held[at], sources[block * fetch.to_len + at]), (place, place), "{ghost:?}");
            let is_padding = before[block].contains(&at) || after[block].contains(&at);
            assert_eq!(is_padding, place.is_none(), "{ghost:?}");
        }
        for (at, place) in held.iter().enumerate() {
            let is_own = place.is_some_and(|place| blocks[block].contains(&place));
            assert!(place.is_none() || is_own || read.contains(&at), "{ghost:?} fetches {at} for nothing");
        }
    }
}

#[test]
fn ghosted_blocks_have_what_windows_read() {
    let identity = DimMap::identity;
    let maps = [
        identity(13),
        DimMap { before: 2, after: 3, ..identity(10) },
        DimMap { start: 7, ..identity(11) },
        DimMap { start: 9, step: -1, before: 1, ..identity(10) },
        DimMap { start: 1, step: 2, len: 6, after: 4, ..identity(14) },
        identity(2),
    ];
    let windows = [(1, 1, 1), (3, 1, 1), (2, 2, 1), (2, 3, 1), (3, 2, 2), (2, 5, 3), (4, 1, 2)];
    for map in maps {
        for window in windows {
            (1..6).for_each(|parts| check(map, window, parts));
        }
    }
}
