//! Values that move between random meshes, in random layouts, arrive as they were, in one process and in several, and each device that
//! sends has no more than its block.
//!
//! `TRANSFERS=N` draws so many programs, `TRANSFER=I` only number I.

#![allow(clippy::unwrap_used)]

use spmdc_abi::CollectiveKind;
use spmdc_compiler::report::plan;
use spmdc_ir::program::Stage;
use spmdc_tests::engine::{self, Loaded};
use spmdc_tests::processes::same_in_processes;
use spmdc_tests::random::Draw;
use std::fmt::Write as _;

/// A mesh of random axes over random devices, and the names of its axes with their sizes.
fn mesh(draw: &mut Draw, name: &str, axes: &[&str]) -> (String, Vec<(String, usize)>) {
    let count = draw.below(axes.len() + 1);
    let kind = draw.pick(&["", "", ": explicit"]);
    let sizes: Vec<(String, usize)> = axes[..count].iter().map(|axis| (axis.to_string(), 1 + draw.below(4))).collect();
    let devices: usize = sizes.iter().map(|(_, size)| size).product();
    let mut numbers: Vec<usize> = (0..devices + 3).collect();
    for at in (1..numbers.len()).rev() {
        numbers.swap(at, draw.below(at + 1));
    }
    let listed: Vec<String> = numbers[..devices].iter().map(usize::to_string).collect();
    let axes: Vec<String> = sizes.iter().map(|(axis, size)| format!("{axis}{kind} = {size}")).collect();
    (format!("mesh {name} ({}) devices [{}];\n", axes.join(", "), listed.join(", ")), sizes)
}

/// A layout over some of these axes, for a value of this rank.
fn layout(draw: &mut Draw, axes: &[(String, usize)], rank: usize) -> Vec<String> {
    let mut dims: Vec<Vec<&str>> = vec![Vec::new(); rank];
    for (axis, _) in axes {
        let dim = draw.below(rank + 1);
        if dim < rank {
            dims[dim].push(axis);
        }
    }
    let text = |axes: Vec<&str>| match axes.as_slice() {
        [] => "_".to_string(),
        [axis] => axis.to_string(),
        axes => format!("({})", axes.join(", ")),
    };
    dims.into_iter().map(text).collect()
}

/// A program that moves its parameter there and back, or around, perhaps in a loop.
fn program(draw: &mut Draw) -> String {
    let (mut text, first) = mesh(draw, "first", &["a", "b"]);
    let (second_text, second) = mesh(draw, "second", &["c", "d"]);
    text += &second_text;
    let rank = draw.below(4);
    let shape: Vec<usize> = (0..rank).map(|_| draw.below(8)).collect();
    let dtype = draw.pick(&["f32", "i8", "f64", "bf16", "u16"]);
    let own = layout(draw, &first, rank);
    let dims: Vec<String> = shape.iter().zip(&own).map(|(size, axes)| format!("{size}@{axes}")).collect();
    let ty = if rank == 0 { dtype.to_string() } else { format!("{dtype}[{}]", dims.join(", ")) };
    let place = |draw: &mut Draw, axes: &[(String, usize)]| match draw.below(3) {
        0 => String::new(),
        _ => format!(", P({})", layout(draw, axes, rank).join(", ")),
    };
    let (there, back) = (place(draw, &second), place(draw, &first));
    let _ = writeln!(text, "fn main(x: {ty} on first) {{");
    if draw.below(3) == 0 {
        let _ = writeln!(text, "  let mut y = transfer(x, second{there});");
        let _ = writeln!(text, "  for i in 0..3 {{ y = transfer(transfer(y, first{back}), second{there}); }}");
    } else {
        let _ = writeln!(text, "  let y = transfer(x, second{there});");
    }
    let _ = writeln!(text, "  let z = transfer(y, first{back});\n  (y, z)\n}}");
    text
}

/// What is wrong with a program; None if nothing is.
fn problem(at: u64, text: &str) -> Option<String> {
    let compilation = match engine::compiled("transfer.spmd", text, "", None) {
        Ok(compilation) => compilation,
        Err(failures) => return Some(format!("{failures:?}")),
    };
    let inputs = engine::inputs(&compilation, &[], &spmdc_tests::root()).unwrap();
    let loaded = match Loaded::new(&compilation) {
        Ok(loaded) => loaded,
        Err(failure) => return Some(format!("{failure:?}")),
    };
    for workers in [None, Some(1)] {
        let outcome = match loaded.run(&inputs, workers) {
            Ok(outcome) => outcome,
            Err(failure) => return Some(format!("{failure:?}")),
        };
        for (index, result) in outcome.results.iter().enumerate() {
            if *result != inputs[0].clone().with_one_nan() {
                return Some(format!("result {index} is {result:?}, not {:?}", inputs[0]));
            }
        }
        if workers.is_none()
            && at.is_multiple_of(2)
            && let Err(text) = same_in_processes(&loaded, &inputs, Ok(&outcome), at as usize / 2)
        {
            return Some(text);
        }
    }
    // A small value of a loop may be kept whole, as that saves barriers.
    if text.contains("for ") {
        return None;
    }
    // Nothing else is moved: a value is sent and received in the layouts that it has.
    let moved = compilation
        .of_meshes()
        .into_iter()
        .flat_map(|of_mesh| plan::collectives(of_mesh.stage(Stage::Partitioned).unwrap()));
    let others: Vec<CollectiveKind> =
        moved.map(|each| each.kind).filter(|&kind| kind != CollectiveKind::Transfer).collect();
    (!others.is_empty()).then(|| format!("devices of one mesh exchange data: {others:?}"))
}

#[test]
fn values_arrive_as_they_were() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let numbers = match number("TRANSFER") {
        Some(only) => only..only + 1,
        None => 0..number("TRANSFERS").unwrap_or(2000),
    };
    let mut wrong = Vec::new();
    for at in numbers {
        let text = program(&mut Draw::new("transfers", at));
        if let Some(problem) = problem(at, &text) {
            wrong.push(format!("number {at}: {problem}\n{text}"));
        }
    }
    assert!(wrong.is_empty(), "{} problems:\n{}", wrong.len(), wrong[..wrong.len().min(3)].join("\n"));
}
