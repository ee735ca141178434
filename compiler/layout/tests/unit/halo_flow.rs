//! The elements that move for halos: by products along dimensions, as by all boxes.

use crate::testing::mesh;
use spmdc_abi::FetchDim;
use spmdc_layout::halo_flow::{flow, flow_of_boxes};
use spmdc_layout::sharding::Sharding;
use spmdc_layout::window::{DimMap, Reaches};

/// The fetches of the halos of a window whose dimensions are mapped so, from one layout to the other.
fn fetches(maps: &[DimMap], [from, to]: [&Sharding; 2]) -> Vec<Vec<FetchDim>> {
    let mesh = mesh();
    let Some(reaches) = Reaches::new(maps, from, to, &mesh) else { return Vec::new() };
    reaches.halos().into_iter().map(|dim| reaches.fetch(dim, &mesh)).collect()
}

#[test]
fn products_along_dimensions_count_all_boxes() {
    let slice = |start, step, len| DimMap { size: 13, before: 0, start, step, len, after: 0 };
    let maps = [
        DimMap::identity(13),
        slice(1, 1, 11),
        slice(12, -1, 13),
        slice(0, 2, 7),
        slice(3, 1, 13),
        DimMap { before: 2, after: 1, ..slice(1, 3, 4) },
    ];
    let axes: [[&[u8]; 2]; 6] = [[&[0], &[1]], [&[1], &[0]], [&[0, 1], &[]], [&[], &[1, 0]], [&[0], &[]], [&[1], &[]]];
    let layouts: Vec<Sharding> =
        axes.iter().map(|dims| Sharding::closed(dims.iter().map(|axes| axes.to_vec()).collect())).collect();
    let mut moving = 0;
    for a in maps {
        for b in maps {
            for from in &layouts {
                for to in &layouts {
                    let fetches = fetches(&[a, b], [from, to]);
                    let found = flow(&fetches, &mesh());
                    assert_eq!(found, flow_of_boxes(&fetches, &mesh()), "{a:?}, {b:?}, {from:?}, {to:?}");
                    moving += usize::from(found.total > 0);
                }
            }
        }
    }
    assert!(moving > 100, "{moving} windows move elements");
}
