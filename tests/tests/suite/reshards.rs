//! Reshards between all shardings of an array: how much they move, and that they give what was asked for.

use spmdc_runtime::data::array::HostArray;
use spmdc_tests::compare::numbers;
use spmdc_tests::engine::{compiled, generate, run};
use spmdc_tests::reshards::{Layout, page, program, summary};

#[test]
fn plans_move_hardly_more_than_they_must() {
    assert_eq!(Layout::all(3).len(), 19);
    let even = summary(&[64, 64, 64]).unwrap();
    assert_eq!(even.pairs, 19 * 18);
    assert!(even.device <= 1.02 && even.worst_device <= 1.5, "{even:?}");
    assert!(even.all <= 1.02 && even.worst_all <= 1.5, "{even:?}");
    assert_eq!(even.over_cap, 0);
    assert_eq!(summary(&[13, 22, 7]).unwrap().over_cap, 0);
}

#[test]
fn the_page_is_what_the_command_prints() {
    crate::assert_page("reshards", &page().unwrap());
}

/// Runs the reshards from one layout to others; the sums of small integers are exact.
fn check(shape: &[usize], from: &Layout, targets: &[Layout]) {
    let text = program("f32", shape, from, targets);
    let compilation = compiled("reshards.spmd", &text, "", None).unwrap();
    let params = &compilation.program.as_ref().unwrap().params;
    let mut inputs = Vec::new();
    for (number, param) in params.iter().enumerate() {
        let dims: Vec<usize> = param.layout.dims.iter().map(|dim| dim.size).collect();
        let mut array = HostArray::zeros(param.layout.dtype, &dims);
        generate(&mut array, number as u64);
        for element in array.bytes.chunks_exact_mut(4) {
            let value = f32::from_le_bytes(element.try_into().unwrap());
            element.copy_from_slice(&(value * 100.0).round().to_le_bytes());
        }
        inputs.push(array);
    }
    let outcome = run(&compilation, &inputs, None).unwrap();
    let again = run(&compilation, &inputs, Some(1)).unwrap();
    for (number, (input, result)) in inputs.iter().zip(&outcome.results).enumerate() {
        let elements: usize = shape.iter().product();
        let input = numbers(input);
        let addends = input.len() / elements;
        let expected: Vec<f64> = input.chunks(addends.max(1)).map(|chunk| chunk.iter().sum()).collect();
        let target = targets[number].sharding();
        assert!(numbers(result) == expected, "{} to {target}", from.addends("f32", shape));
        assert_eq!(result.bytes, again.results[number].bytes);
    }
}

#[test]
fn every_pair_gives_the_same_array() {
    for from in Layout::all(3) {
        check(&[13, 22, 7], &from, &Layout::all(3));
    }
}

#[test]
fn every_sum_of_parts_gives_the_same_array() {
    let targets = [Layout::all(3), Layout::all_partial(3)].concat();
    for from in Layout::all_partial(3) {
        check(&[13, 22, 7], &from, &targets);
    }
}

#[test]
fn blocks_larger_than_a_page_and_empty_ones_move_as_well() {
    // Values of 16 KiB and more are shared by the devices that hold the same block.
    for from in Layout::all(2).iter().chain(&Layout::all_partial(2)) {
        check(&[260, 70], from, &Layout::all(2));
        check(&[3, 9], from, &Layout::all(2));
    }
}
