//! Slices: bounds, text, types, factors and values.

use crate::testing;
use spmdc_grammar::codes::Code;
use spmdc_ir::rules::{Infer, Semantics};
use spmdc_layout::factors::FactorKind;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{ArrayType, DType};
use spmdc_ops::slice::{Slice, SliceRange};

#[test]
fn bounds_are_read_as_in_python() {
    let places = |start, stop, step| {
        let range = SliceRange::of(start, stop, step, 10).unwrap();
        (0..range.len).map(|i| range.at(i)).collect::<Vec<_>>()
    };
    assert_eq!(places(Some(1), Some(-1), Some(3)), [1, 4, 7]);
    assert_eq!(places(None, None, Some(-4)), [9, 5, 1]);
    assert_eq!(places(Some(-3), None, None), [7, 8, 9]);
    assert_eq!(places(Some(7), Some(2), Some(-2)), [7, 5, 3]);
    assert_eq!(places(Some(-99), Some(99), Some(9)), [0, 9]);
    assert!(places(Some(4), Some(2), None).is_empty());
    assert!(places(Some(i64::MIN), Some(i64::MIN), None).is_empty());
    assert_eq!(SliceRange::of(None, None, Some(0), 10).unwrap_err().code, Code::E0402);
    assert_eq!(SliceRange::one(-10, 10).unwrap().start, 0);
    assert_eq!(SliceRange::one(10, 10).unwrap_err().message, "index 10 is out of bounds for a dimension of size 10");
}

#[test]
fn what_is_printed_reads_back_the_same() {
    for size in 0..7usize {
        let bounds: Vec<Option<i64>> = std::iter::once(None).chain((-8..8).map(Some)).collect();
        for &start in &bounds {
            for &stop in &bounds {
                for step in [-3, -1, 1, 2] {
                    let range = SliceRange::of(start, stop, Some(step), size).unwrap();
                    let text = range.display(size);
                    let mut parts = text.split(':').map(|part| part.parse::<i64>().ok());
                    let again =
                        SliceRange::of(parts.next().unwrap(), parts.next().unwrap(), parts.next().flatten(), size);
                    assert_eq!(again.unwrap(), range, "{text} of {size}");
                }
            }
        }
    }
}

#[test]
fn cut_dimensions_are_windows() {
    let ty = ArrayType::new(DType::F32, &[8, 4]);
    let op = Slice { ranges: vec![(SliceRange { start: 1, step: 2, len: 3 }, 8), (SliceRange::all(4), 4)] };
    let result = op.infer(&[&ty]).unwrap();
    assert_eq!(result[0].shape, [3, 4]);
    let rule = op.factors(&[&ty], &[&result[0]]);
    assert_eq!(rule.factors[rule.operands[0][0][0]].kind, FactorKind::Window);
    assert_eq!(rule.operands[0][0], rule.results[0][0]);
    assert_eq!(rule.operands[0][1], rule.results[0][1]);
    assert_eq!(op.print(&["v1".into()], &Mesh::default()), "v1[1:7:2, :]");
    let x = testing::integers(&[8, 1], &[0, 1, 2, 3, 4, 5, 6, 7]);
    let op = Slice { ranges: vec![(SliceRange { start: 6, step: -3, len: 3 }, 8), (SliceRange::all(1), 1)] };
    assert_eq!(op.eval(&[&x]).unwrap()[0].ints(), [6, 3, 0]);
}
