//! Gradients on explicit meshes, with random states of parameters and of what is computed from them: a program compiles by its choices, and its
//! gradients are those on one device.
//!
//! 60 programs. `STATES=20000` tries more, `STATE=17` one, both together as many from there on.

use crate::choices::{compiled, follow_any, told};
use spmdc_tests::random::{Draw, Mesh, states};
use spmdc_tests::{engine, problems};

/// The largest difference of two arrays of f64, relative to the largest element.
fn difference(expected: &[u8], found: &[u8]) -> f64 {
    let numbers = |bytes: &[u8]| -> Vec<f64> {
        bytes.chunks_exact(8).map(|chunk| f64::from_le_bytes(chunk.try_into().expect("a chunk has 8 bytes"))).collect()
    };
    let (expected, found) = (numbers(expected), numbers(found));
    assert_eq!(expected.len(), found.len());
    let largest = expected.iter().fold(1e-3_f64, |most, number| most.max(number.abs()));
    expected.iter().zip(&found).fold(0.0, |most: f64, (a, b)| most.max((a - b).abs() / largest))
}

fn holds(number: u64) -> Result<(), String> {
    let mut draw = Draw::new("states", number);
    let mut axes = vec![("X", 2 + draw.below(3), true)];
    if draw.chance(50) {
        axes.push(("Y", 2, true));
    }
    let mesh = Mesh { axes };
    let text = states::program(&mut draw, &mesh);
    let plain = text.replace("explicit", "auto");
    let whole = compiled(&plain, None).map_err(|errors| format!("{plain}{}", told(&errors)))?;
    let inputs = engine::inputs(&whole, &[], &spmdc_tests::root())?;
    let expected = engine::evaluated(&plain, &whole.stages[0], &inputs).map_err(|failure| format!("{failure:?}"))?;
    let (edited, _) = follow_any(&text, &mut draw).map_err(|wrong| format!("{text}leads to\n{wrong}"))?;
    let compilation = compiled(&edited, None).map_err(|errors| format!("{edited}{}", told(&errors)))?;
    let evaluated = engine::evaluated(&edited, &compilation.stages[0], &inputs);
    let run = engine::run(&compilation, &inputs, None).map(|outcome| outcome.results);
    let auto = engine::run(&whole, &inputs, None).map(|outcome| outcome.results);
    for (what, found) in [("the evaluator", evaluated), ("a run", run), ("a run on auto axes", auto)] {
        let found = found.map_err(|failure| format!("{edited}{what}: {failure:?}"))?;
        for (at, (expected, found)) in expected.iter().zip(&found).enumerate() {
            let difference = difference(&expected.bytes, &found.bytes);
            if difference > 1e-9 || difference.is_nan() {
                return Err(format!("{edited}{what}: gradient {at} differs by {difference:e}"));
            }
        }
    }
    Ok(())
}

#[test]
fn gradients_of_random_states_are_those_of_one_device() {
    let numbers: Vec<u64> = crate::numbers("STATE", "STATES", 60).collect();
    let wrong = problems(&numbers, |&number| {
        holds(number).err().map(|wrong| format!("program {number}: {wrong}")).into_iter().collect()
    });
    assert!(wrong.is_empty(), "{} problems:\n{}", wrong.len(), wrong.join("\n"));
}
