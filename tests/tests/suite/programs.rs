//! Random whole programs, each on four meshes: every answer is the evaluator's, also in several processes.
//!
//! 2,000 programs. `PROGRAMS=20000` tries more, `PROGRAM=17` one, both together as many from there on; `TINY=1` all on tiny machines,
//! `DERIVATIVES=1` all with derivatives; `SMOOTH=6000` compares the derivatives of more functions with differences. `BACKENDS=all` also runs
//! each program by every back end, with vectors of every width, and compares bits.

use spmdc_abi::{Program, Step};
use spmdc_compiler::backends;
use spmdc_compiler::pipeline::Compilation;
use spmdc_ir::program::{Stage, Value};
use spmdc_kernel::machine::Machine;
use spmdc_runtime::data::array::HostArray;
use spmdc_tests::compare::{difference, difference_of_bits, numbers};
use spmdc_tests::dumps::{read_back, text};
use spmdc_tests::engine::Loaded;
use spmdc_tests::processes::same_in_processes;
use spmdc_tests::races::race;
use spmdc_tests::random::programs::{Scale, Writer};
use spmdc_tests::random::whole::{MESHES, program};
use spmdc_tests::random::{Draw, Mesh};
use spmdc_tests::{engine, problems};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn holds(number: u64) -> Result<(), String> {
    let (program, tolerances) = program(number)?;
    let failed = |what: String| format!("{what}\n{program}");
    let mut expected: Option<Vec<HostArray>> = None;
    for (at, mesh) in MESHES.into_iter().enumerate() {
        // Every other time on devices for which a few elements are many; with TINY=1 every time.
        let is_tiny = (number as usize + at) % 2 == 1 || std::env::var_os("TINY").is_some();
        let (machine, kind) = if is_tiny { (Machine::TINY, " of tiny machines") } else { (Machine::REAL, "") };
        let failed = |what: String| failed(format!("on {mesh}{kind}: {what}"));
        let compilation = match engine::compiled_on(machine, "program.spmd", &program, mesh, None) {
            Ok(compilation) => compilation,
            // How blocks fit a reshape depends on how many there are, so on another mesh its layout may be ambiguous, or another
            // one than is annotated. A scan of an array in several blocks has reshapes.
            Err(failures)
                if program.contains("explicit")
                    && (program.contains("reshape(") || program.contains("associative_scan("))
                    && failures.iter().all(|f| matches!(f.code.as_str(), "E0301" | "E0305")) =>
            {
                continue;
            }
            Err(failures) => return Err(failed(text(&failures))),
        };
        let inputs = engine::inputs(&compilation, &[], &spmdc_tests::root())?;
        if expected.is_none() {
            let module = &compilation.stages[0];
            let answer = engine::evaluated(&program, module, &inputs);
            expected = Some(answer.map_err(|failure| failed(text(&[failure])))?);
        }
        let stopped = |failure| failed(text(&[failure]));
        let loaded = Loaded::new(&compilation).map_err(stopped)?;
        let run = loaded.run(&inputs, None).map_err(stopped)?;
        for (index, (expected, actual)) in expected.iter().flatten().zip(&run.results).enumerate() {
            if let Some(text) = difference(expected, actual, tolerances[index]) {
                return Err(failed(format!("result {index}: {text}")));
            }
        }
        if std::env::var_os("BACKENDS").is_some() {
            same_by_all_back_ends(&loaded, &compilation, &inputs, &run.results).map_err(failed)?;
        }
        // One in four also in several processes, on one of the meshes.
        if number.is_multiple_of(4) && at == 1 + number as usize / 4 % 3 {
            same_in_processes(&loaded, &inputs, Ok(&run), number as usize / 4).map_err(failed)?;
        }
        // A dump is compiled for real machines, which sum in another order.
        if mesh == MESHES[number as usize % 4] && !is_tiny {
            read_back(&compilation, &inputs, &run.results, number as usize).map_err(failed)?;
        }
    }
    Ok(())
}

/// Runs the program with the code of each back end, of vectors of each width, and compares the bits.
fn same_by_all_back_ends(
    loaded: &Loaded,
    compilation: &Compilation,
    inputs: &[HostArray],
    expected: &[HostArray],
) -> Result<(), String> {
    for (at, backend) in backends::IN_MEMORY.iter().enumerate().skip(1) {
        let stopped = |failure| format!("by back end {at}: {}", text(&[failure]));
        let Some(other) = loaded.with_code_of(*backend, &compilation.kernels).map_err(stopped)? else { continue };
        let run = other.run(inputs, None).map_err(stopped)?;
        for (index, (expected, actual)) in expected.iter().zip(&run.results).enumerate() {
            if let Some(text) = difference_of_bits(expected, actual) {
                return Err(format!("by back end {at}, result {index}: {text}"));
            }
        }
    }
    Ok(())
}

#[test]
fn random_programs_mean_the_same_on_every_mesh() {
    let numbers: Vec<u64> = crate::numbers("PROGRAM", "PROGRAMS", 2_000).collect();
    let list = problems(&numbers, |&number| {
        let panicked = |_| Err(format!("panic\n{}", program(number).map_or_else(|error| error, |(text, _)| text)));
        let outcome = catch_unwind(AssertUnwindSafe(|| holds(number))).unwrap_or_else(panicked);
        outcome.err().map(|text| format!("program {number}: {text}")).into_iter().collect()
    });
    assert!(list.is_empty(), "{} problems:\n{}", list.len(), list.join("\n"));
}

#[test]
fn random_programs_have_complex_numbers() {
    let texts: Vec<String> = (0..150).map(|number| program(number).unwrap().0).collect();
    for what in [": c64[", ": c128[", "complex(", "conj(", "fft(", "ifft(", ".T) /", "abs(z", "for _ in", "else { -"] {
        let count = texts.iter().filter(|text| text.contains(what)).count();
        assert!(count >= 5, "{count} of 150 programs have {what:?}");
    }
}

#[test]
fn random_programs_add_up_gradients() {
    let texts: Vec<String> = (0..300).map(|number| program(number).unwrap().0).collect();
    for what in ["for l in", "for t in", "].T @ tanh(", "= reshard(zeros(", "% 2 == 0 {", "% 2] +=", "] @ w) ** 2"] {
        let count = texts.iter().filter(|text| text.contains(what)).count();
        assert!(count >= 5, "{count} of 300 programs have {what:?}");
    }
}

#[test]
fn random_programs_have_derivatives() {
    let texts: Vec<String> = (0..100).map(|number| program(5 * number + 2).unwrap().0).collect();
    let found = |what: &str| texts.iter().filter(|text| text.contains(what)).count();
    for what in [
        " grad(",
        "value_and_grad(",
        "argnums",
        "has_aux",
        " vjp(",
        " jvp(",
        "| grad(|",
        "| jvp(",
        "checkpoint(",
        "collect {",
    ] {
        assert!(found(what) >= 5, "{} of 100 programs have {what:?}", found(what));
    }
}

/// A smooth function whose derivatives are compared with what they are by definition.
fn smooth_program(number: u64) -> Option<String> {
    let mesh = Mesh { axes: vec![("X", 2, false), ("Y", 3, false)] };
    let mut writer = Writer::new(Draw::new("smooth", number), mesh.clone(), Scale::Small).with_derivatives(8);
    let types = writer.param_types();
    writer.smooth_function()?;
    Some(writer.text(&mesh, &types))
}

/// Whether each derivative is what it must be, and how many of them differences approximate.
fn is_true(text: &str) -> Result<usize, String> {
    let compilation =
        engine::compiled("smooth.spmd", text, "", Some(Stage::Typed)).map_err(|f| spmdc_tests::dumps::text(&f))?;
    let module = &compilation.stages[0];
    let param = |(at, param): (usize, &Value)| {
        let ty = module.func.ty(*param);
        let mut array = HostArray::zeros(ty.dtype(), ty.shape());
        engine::generate(&mut array, at as u64);
        array
    };
    let inputs: Vec<HostArray> = module.func.body.params.iter().enumerate().map(param).collect();
    let results = engine::evaluated(text, module, &inputs).map_err(|failure| failure.message)?;
    let mut compared = 0;
    for (at, four) in results.chunks_exact(4).take(3).enumerate() {
        let [found, near, far, error] = [0, 1, 2, 3].map(|at| numbers(&four[at]));
        let apart = |(a, b): (&f64, &f64)| if (a - b).is_nan() { f64::INFINITY } else { (a - b).abs() };
        let distance = |a: &[f64], b: &[f64]| a.iter().zip(b).map(apart).fold(0.0, f64::max);
        let size = found.iter().chain(&near).fold(1.0f64, |most, x| most.max(x.abs()));
        // The error of a quotient grows with the square of the step: fourfold.
        let (wrong, unknown) = (distance(&found, &near), distance(&near, &far));
        if wrong > unknown + error[0] + 1e-9 * size {
            return Err(format!(
                "comparison {at}: {wrong:e} of {size:e}, where {unknown:e} and {:e} are allowed",
                error[0]
            ));
        }
        compared += usize::from(unknown + error[0] < 1e-3 * size);
    }
    Ok(compared)
}

#[test]
fn derivatives_of_random_functions_are_limits_of_differences() {
    let count = crate::variable("SMOOTH").unwrap_or(300);
    let (mut wrong, mut all, mut compared) = (Vec::new(), 0, 0);
    for number in 0..count {
        let Some(text) = smooth_program(number) else { continue };
        all += 3;
        match is_true(&text) {
            Ok(known) => compared += known,
            Err(message) => wrong.push(format!("function {number}: {message}\n{text}")),
        }
    }
    assert!(wrong.is_empty(), "{} problems:\n{}", wrong.len(), wrong.join("\n"));
    assert!(2 * all as u64 > 3 * count && 10 * compared > 9 * all, "{compared} of {all} comparisons say something");
}

/// Whether every barrier of a program is needed: without it there is a race.
fn all_are_needed(source: &str) {
    let compilation = engine::compiled("test.spmd", source, "", None).unwrap();
    let program = compilation.program.unwrap();
    assert_eq!(race(&program, &compilation.kernels), None);
    fn without(steps: &[Step], left: &mut i64) -> Vec<Step> {
        let mut kept = Vec::new();
        for step in steps {
            let mut step = step.clone();
            if let Step::Sync { .. } | Step::Await { .. } = step {
                *left -= 1;
                if *left == -1 {
                    continue;
                }
            }
            if let Step::For { body, .. } = &mut step {
                *body = without(body, left);
            }
            kept.push(step);
        }
        kept
    }
    let mut tried = 0;
    loop {
        let mut left = tried;
        let body = without(&program.body, &mut left);
        if left >= 0 {
            break;
        }
        let other = Program { body, ..program.clone() };
        assert!(race(&other, &compilation.kernels).is_some(), "barrier {tried} is not needed");
        tried += 1;
    }
    assert!(tried > 0);
}

#[test]
fn a_missing_barrier_is_a_race() {
    all_are_needed("mesh (X = 4); fn main(x: f32[8@X]) { sum(exp(x)) }");
    all_are_needed("mesh (X = 4); fn main(x: f32[64@X]) { let mut u = x; for i in 0..9 { u = roll(u, 1) + u; } u }");
    all_are_needed("mesh (X = 2, Y = 2); fn main(x: f32[200@X, 200]) { let y = exp(x); sum(y @ y.T, axis=0) }");
    all_are_needed("mesh (X = 4); fn main(x: f32[600@X, 512], w: f32[512@X, 64]) { x @ (2 * w) }");
    // Devices run the panels of split rows for each other: after the product on each of them, and before its result moves.
    let panels =
        "mesh (X = 2, Y = 2); fn main(x: f32[600@X, 64], w: f32[64, 3000@Y]) { roll(softmax(x @ w), 1, axis=1) }";
    let body = engine::compiled("test.spmd", panels, "", None).unwrap().program.unwrap().body;
    assert!(body.iter().any(|step| matches!(step, Step::GroupPanels(_))), "{body:?}");
    all_are_needed(panels);
}
