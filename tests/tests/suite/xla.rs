//! The programs of the folder `xla`: no more bytes than XLA's, the answers of the evaluator and of JAX, and the page about them.

use spmdc_tests::compare::{Tolerance, difference, numbers};
use spmdc_tests::xla::{Program, Row, page, programs};
use spmdc_tests::{case, engine, root};

#[test]
fn every_program_was_measured() {
    let (_, programs) = programs().unwrap();
    let mut measured: Vec<String> = programs.into_iter().map(|program| program.name).collect();
    measured.sort();
    let paths = case::programs(&root().join("tests/xla"));
    let mut written: Vec<String> =
        paths.iter().map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    written.sort();
    assert_eq!(measured, written);
}

/// A program that receives more than XLA's says `missing` in its header, one that receives less says why.
fn held(row: &Row) -> Result<(), String> {
    let ours = row.received.max(row.exact);
    let (less, missing) = (row.program.remark("less"), row.program.remark("missing"));
    if (ours > row.xla_received) != missing.is_some() {
        return Err(format!("{ours} bytes, XLA {}, `missing`: {missing:?}: {:?}", row.xla_received, row.ours));
    }
    if (ours < row.xla_received) != less.is_some() {
        return Err(format!("{ours} bytes, XLA {}, `less`: {less:?}", row.xla_received));
    }
    Ok(())
}

#[test]
fn no_program_receives_more_than_xla() {
    let rows = programs().unwrap().1.into_iter().map(|program| program.row().unwrap());
    let wrong: Vec<String> =
        rows.filter_map(|row| held(&row).err().map(|why| format!("{}: {why}", row.program.name))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_page_is_what_the_command_prints() {
    crate::assert_page("xla", &page().unwrap());
}

fn answers(program: &Program) -> Result<(), String> {
    let meshes = if program.mesh().contains(',') { ["", "1x1", "3x2"] } else { ["", "1", "6"] };
    let mut expected = None;
    for mesh in meshes {
        let compilation = engine::compiled(&program.name, &program.text, mesh, None).map_err(|f| format!("{f:?}"))?;
        let params = &compilation.program.as_ref().unwrap().params;
        let args: Vec<String> =
            params.iter().enumerate().map(|(seed, param)| format!("{}=uniform:{seed}", param.name)).collect();
        let inputs = engine::inputs(&compilation, &args, &root())?;
        let evaluate = || engine::evaluated(&program.text, &compilation.stages[0], &inputs).unwrap().remove(0);
        let expected = expected.get_or_insert_with(evaluate);
        let outcome = engine::run(&compilation, &inputs, None).map_err(|failure| format!("{mesh}: {failure:?}"))?;
        if let Some(text) = difference(expected, &outcome.results[0], Tolerance::reassociated(expected.dtype)) {
            return Err(format!("on `{mesh}`: {text}"));
        }
    }
    let values = numbers(&expected.unwrap());
    let mean = |f: fn(f64) -> f64| values.iter().map(|&value| f(value)).sum::<f64>() / values.len() as f64;
    let last = values.len() - 1;
    let figures = [mean(|v| v), mean(|v| v * v), values[0], values[values.len() / 3], values[last]];
    let scale = program.answer[1].sqrt();
    let agree = |(ours, jax): (&f64, &f64)| (ours - jax).abs() <= 1e-4 * jax.abs().max(scale);
    if figures.len() == program.answer.len() && figures.iter().zip(&program.answer).all(agree) {
        Ok(())
    } else {
        Err(format!("{figures:?} and JAX {:?}", program.answer))
    }
}

#[test]
fn both_forms_of_a_program_mean_the_same_on_every_mesh() {
    let programs = programs().unwrap().1;
    let wrong: Vec<String> =
        programs.iter().filter_map(|p| answers(p).err().map(|why| format!("{}: {why}", p.name))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
