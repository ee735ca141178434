//! Drawings of layouts.

use crate::testing::mesh;
use spmdc_layout::draw::{Style, draw};
use spmdc_layout::mesh::{Axis, AxisKind, Mesh, NamedMesh};
use spmdc_layout::sharding::Sharding;
use spmdc_layout::types::{ArrayType, DType, Type};

fn drawing(shape: &[usize], dims: Vec<Vec<u8>>) -> String {
    let ty = Type { sharding: Sharding::closed(dims), ..Type::open(ArrayType::new(DType::F32, shape)) };
    draw(&ty, &mesh(), Style::Ascii, 40)
}

#[test]
fn copies_share_a_cell() {
    assert_eq!(
        drawing(&[8], vec![vec![1]]),
        "  0:2   2:4   4:6   6:8\n+-----+-----+-----+-----+\n| 0,4 | 1,5 | 2,6 | 3,7 |\n+-----+-----+-----+-----+\n\
         replicated over X: groups of 2 devices hold the same block\n"
    );
    let replicated = "replicated: all 8 devices hold it whole\n";
    assert_eq!(drawing(&[], vec![]), format!("+-----+\n| 0-7 |\n+-----+\n{replicated}"));
}

#[test]
fn devices_have_the_numbers_of_their_mesh() {
    let named = NamedMesh { name: "m".to_string(), axes: vec![0], devices: vec![7, 3, 5] };
    let mesh = Mesh { axes: vec![Axis::new("X", 3, AxisKind::Auto)], named: vec![named], ..Mesh::default() };
    let draw = |dims| {
        let ty = Type { sharding: Sharding::closed(dims), ..Type::open(ArrayType::new(DType::F32, &[3])) };
        draw(&ty, &mesh, Style::Ascii, 40)
    };
    assert!(draw(vec![vec![0]]).contains("|  7  |  3  |  5  |"), "{}", draw(vec![vec![0]]));
    assert!(draw(vec![vec![]]).contains("| 3,5,7 |"), "{}", draw(vec![vec![]]));
}

#[test]
fn wide_tables_go_on_below() {
    let text = drawing(&[8000], vec![vec![0, 1]]);
    assert_eq!(text.matches("\n+").count() - text.matches("-+\n|").count(), 3, "{text}");
    assert!(text.contains("6000:7000   7000:8000"), "{text}");
    assert!(text.lines().all(|line| line.len() <= 40), "{text}");
    let text = drawing(&[5, 8000], vec![vec![], vec![0, 1]]);
    assert!(text.lines().all(|line| line.len() <= 40), "{text}");
    assert!(text.matches("0:5 |").count() > 2, "{text}");
}

#[test]
fn uneven_blocks_show_their_ranges_and_empty_ones_are_listed() {
    let text = drawing(&[5, 3], vec![vec![1], vec![]]);
    assert!(text.contains("4:5 | 2,6"), "{text}");
    assert!(text.contains("devices 3,7 hold nothing"), "{text}");
}
