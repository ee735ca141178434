//! `vmap` of every function and operator of the language, on random shapes, shardings and meshes: the results are those of its elements, one
//! after another.
//!
//! `OPS_SAMPLES=200` tries more of each, `OPS_ONLY=roll` one of them, `OPS_NUMBER=17` one sample.

use spmdc_runtime::data::array::HostArray;
use spmdc_tests::compare::{Tolerance, difference};
use spmdc_tests::engine;
use spmdc_tests::random::batching::MappedCall;
use spmdc_tests::random::{Array, Draw, Mesh, calls, manual};
use std::panic::{AssertUnwindSafe, catch_unwind};

const NAMES: [&str; 3] = ["a", "b", "c"];

fn program(mesh: &str, call: &MappedCall, params: &[String], result: &str) -> String {
    let params: Vec<String> = params.iter().zip(NAMES).map(|(ty, name)| format!("{name}: {ty}")).collect();
    let own = NAMES[..params.len()].join(", ");
    let (before, expr) = (&call.element.before, &call.element.expr);
    format!("{mesh}fn f({own}) {{ {before} {expr} }}\nfn main({}) {{ {result} }}\n", params.join(", "))
}

/// Whether there was anything to compare.
fn holds(name: &str, number: u64, shown: &mut String) -> Result<bool, String> {
    let mut draw = Draw::new(&format!("mapped {name}"), number);
    let element = calls::call(name, &mut draw).expect("the name has a random call");
    let Some(call) = MappedCall::of(element, &mut draw) else { return Ok(false) };
    let dtypes = call.element.params.iter().map(|param| param.dtype);
    let arrays: Vec<Array> =
        dtypes.zip(call.shapes()).map(|(dtype, shape)| Array { dtype, ..Array::new(dtype, &shape) }).collect();
    let is_explicit = draw.chance(30);
    let mesh = Mesh::random(&mut draw, is_explicit);
    let types: Vec<String> = arrays
        .iter()
        .map(|array| {
            let dims = if draw.chance(20) { Vec::new() } else { mesh.sharding(&mut draw, array.shape.len()) };
            array.text(&dims)
        })
        .collect();
    let plain: Vec<String> = arrays.iter().map(|array| array.text(&[])).collect();
    let stacked = program("", &call, &plain, &call.stacked(&NAMES));
    let mapped = program(&mesh.text(), &call, &types, &call.mapped(&NAMES));
    *shown = format!("{mapped}{stacked}");
    let reference = match engine::compiled("stacked.spmd", &stacked, "", None) {
        Ok(reference) => reference,
        // Some functions are not defined for the arrays that were drawn.
        Err(_) => return Ok(false),
    };
    let compilation = match engine::compiled("mapped.spmd", &mapped, "", None) {
        Ok(compilation) => compilation,
        Err(failures)
            if is_explicit
                && failures.iter().all(|failure| failure.code.starts_with("E03") || failure.code == "E0212") =>
        {
            return Ok(false);
        }
        Err(failures) => return Err(format!("{failures:?}")),
    };
    let inputs = engine::inputs(&compilation, &[], &spmdc_tests::root())?;
    let expected = engine::evaluated(&stacked, &reference.stages[0], &inputs);
    let evaluated = engine::evaluated(&mapped, &compilation.stages[0], &inputs);
    let run = engine::run(&compilation, &inputs, None).map(|run| run.results);
    for (what, found) in [("evaluated", evaluated), ("run", run)] {
        match (&expected, found) {
            (Ok(expected), Ok(found)) => agree(what, expected, &found)?,
            (Err(expected), Err(found)) if expected.code == found.code => return Ok(false),
            (expected, found) => return Err(format!("{what}: {found:?} instead of {expected:?}")),
        }
    }
    Ok(true)
}

fn agree(what: &str, expected: &[HostArray], found: &[HostArray]) -> Result<(), String> {
    for (expected, found) in expected.iter().zip(found) {
        if let Some(text) = difference(expected, found, Tolerance::sum_of_ones(expected.dtype)) {
            return Err(format!("{what}: {text}"));
        }
    }
    if expected.len() == found.len() { Ok(()) } else { Err(format!("{what}: {} results", found.len())) }
}

#[test]
fn mapped_functions_give_what_their_elements_give() {
    let numbers = crate::only_or_all("OPS_NUMBER", "OPS_SAMPLES", 4);
    let mut wrong = Vec::new();
    for name in crate::selected_functions() {
        if manual::NAMES.contains(&name) || calls::call(name, &mut Draw::new(name, 0)).is_none() {
            continue;
        }
        for number in numbers.clone() {
            let mut shown = String::new();
            let outcome = catch_unwind(AssertUnwindSafe(|| holds(name, number, &mut shown)));
            if let Err(text) = outcome.unwrap_or_else(|_| Err("panic".to_string())) {
                wrong.push(format!("`{name}`, sample {number}: {text}\n{shown}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} problems:\n{}", wrong.len(), wrong.join("\n"));
}
