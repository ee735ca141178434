//! Dumps that lie: whoever changes one by hand gets an error, or a program that means what it says. No lie ends the compiler or
//! touches memory that is not the program's.
//!
//! 1,000 dumps. `LIES=20000` tries more, `LIE=17` one, both together as many from there on.

use spmdc_compiler::pipeline::Compilation;
use spmdc_inspect::print;
use spmdc_ir::program::Stage;
use spmdc_ir::program::control::Control;
use spmdc_tests::compare::{Tolerance, difference};
use spmdc_tests::dumps::text;
use spmdc_tests::engine;
use spmdc_tests::random::lies::lying;
use spmdc_tests::random::programs::{Scale, Writer};
use spmdc_tests::random::{Draw, Mesh};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The dump of a small random program at some stage.
fn dump(draw: &mut Draw) -> Option<String> {
    let mesh = Mesh { axes: vec![("X", 2, false), ("Y", 3, false)] };
    let wanted = 2 + draw.below(6);
    let mut writer = Writer::new(draw.clone(), mesh.clone(), Scale::Small);
    let types = writer.param_types();
    (0..wanted).for_each(|_| writer.statement());
    let program = writer.text(&mesh, &types);
    let compilation = engine::compiled("program.spmd", &program, "", None).ok()?;
    let number = draw.below(compilation.stages.len());
    Some(print::module(&compilation.stages[number]))
}

/// Whether a run ends soon, in little memory.
fn is_small(compilation: &Compilation) -> bool {
    let mut is_short = true;
    compilation.stages[0].func.body.walk(&mut |stmt| match stmt.control() {
        Some(Control::While(_)) => is_short = false,
        Some(Control::For(op)) => is_short &= op.trips().is_some_and(|trips| trips < 1000),
        Some(Control::Branch(_) | Control::Manual(_)) | None => {}
    });
    let bytes = compilation.program.iter().flat_map(|program| &program.arenas).map(|arena| arena.bytes);
    is_short && bytes.sum::<u64>() < 1 << 20
}

/// Whether the lie was believed.
fn holds(number: u64) -> Result<bool, String> {
    let mut draw = Draw::new("lie", number);
    let Some(dump) = dump(&mut draw) else { return Ok(false) };
    let lie = lying(&dump, &mut draw);
    let failed = |what: String| format!("{what}\n{lie}");
    let compilation = match catch_unwind(|| engine::compiled("lie.spmd", &lie, "", None)) {
        Ok(Ok(compilation)) => compilation,
        Ok(Err(failures)) if failures.iter().all(|failure| failure.code != "E0999") => return Ok(false),
        Ok(Err(failures)) => return Err(failed(text(&failures))),
        Err(_) => return Err(failed("panic".to_string())),
    };
    if !is_small(&compilation) {
        return Ok(true);
    }
    let inputs = engine::inputs(&compilation, &[], &spmdc_tests::root()).map_err(&failed)?;
    let results = catch_unwind(AssertUnwindSafe(|| engine::run(&compilation, &inputs, None)));
    let expected = catch_unwind(|| engine::evaluated(&lie, &compilation.stages[0], &inputs));
    match (expected, results) {
        (Ok(Ok(expected)), Ok(Ok(run))) => {
            for (expected, actual) in expected.iter().zip(&run.results) {
                let difference = difference(expected, actual, Tolerance::sum_of_ones(expected.dtype));
                if let Some(difference) = difference {
                    return Err(failed(difference));
                }
            }
            Ok(true)
        }
        (Ok(Err(expected)), Ok(Err(run))) if expected.code == run.code => Ok(true),
        (expected, run) => Err(failed(format!("the evaluator says {expected:?}, the run {run:?}"))),
    }
}

/// A scan begins with the totals of its own blocks, not with those of another operand or another kind of scan.
#[test]
fn totals_of_another_scan_are_refused() {
    let source = "mesh (X = 4);\nfn main(x: f32[16@X], y: f32[16@X]) { (cumsum(x), cumsum(y), cumprod(x)) }";
    let compilation = engine::compiled("program.spmd", source, "", None).map_err(|failures| text(&failures)).unwrap();
    for stage in [Stage::Partitioned, Stage::Optimized] {
        let dump = print::module(compilation.stage(stage).unwrap());
        let totals: Vec<&str> = dump.split("totals=").skip(1).map(|rest| rest.split(')').next().unwrap()).collect();
        assert_eq!(totals.len(), 3, "{dump}");
        assert!(engine::compiled("dump.spmd", &dump, "", None).is_ok(), "{dump}");
        for (own, other) in [(1, 0), (2, 0), (2, 1)] {
            let lie = dump.replace(&format!("totals={})", totals[own]), &format!("totals={})", totals[other]));
            let failures = engine::compiled("lie.spmd", &lie, "", None).err().unwrap_or_default();
            assert!(failures.iter().any(|failure| failure.code == "E0109"), "{lie}");
        }
    }
}

/// An index that a dump takes without a check is the last place there is, in memory as in the evaluator.
#[test]
fn indices_that_nobody_checked_stay_inside() {
    let forms = [
        ("f32", "index(x, i, dims=(0,))"),
        ("f32[2]", "dynamic_slice(x, i, dims=(0,), sizes=(2,))"),
        ("f32[6]", "update(x, v, i, at=((),))"),
        ("f32[6]", "update(x, w, i, at=((3,),))"),
    ];
    for at in ["", "@X"] {
        for (ty, form) in forms {
            let dump = format!(
                "stage typed;\nmesh (X: auto = 4);\nfn main(x: f32[6{at}], v: f32, w: f32[3], i: i64) -> {ty} {{\n  \
                 let y: {ty} = {form};\n  y\n}}\n"
            );
            let compilation = engine::compiled("dump.spmd", &dump, "", None).unwrap_or_else(|e| panic!("{dump}{e:?}"));
            for i in ["5", "6", "100000000000", "-1", "-9223372036854775808"] {
                let args = ["x=iota", "v=7", "w=[8,9,10]", &format!("i={i}")].map(str::to_string);
                let inputs = engine::inputs(&compilation, &args, &spmdc_tests::root()).unwrap();
                let expected = engine::evaluated(&dump, &compilation.stages[0], &inputs).unwrap();
                let run = engine::run(&compilation, &inputs, None).unwrap();
                assert_eq!(run.results, expected, "i = {i}\n{dump}");
            }
        }
    }
}

#[test]
fn dumps_that_lie_do_no_harm() {
    let numbers = crate::numbers("LIE", "LIES", 1_000);
    let count = numbers.end - numbers.start;
    let (mut believed, mut wrong) = (0, Vec::new());
    for number in numbers {
        match holds(number) {
            Ok(was_believed) => believed += u64::from(was_believed),
            Err(text) => wrong.push(format!("lie {number}: {text}")),
        }
    }
    assert!(wrong.is_empty(), "{} problems:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count == 1 || believed > count / 20, "{believed} of {count} lies were believed");
}

/// Windows read no more than their margins have, whatever a dump says.
#[test]
fn margins_have_what_windows_read() {
    let program =
        "mesh (X = 4);\nfn main(u: i32[32@X], w: i32[32@X]) { roll(u, 1) + roll(u, 2) - roll(w, 1) - roll(w, 2) }\n";
    let compilation = engine::compiled("program.spmd", program, "", None).unwrap();
    let dump = print::module(compilation.stage(spmdc_ir::program::Stage::Partitioned).unwrap());
    assert!(engine::compiled("dump.spmd", &dump, "", None).is_ok(), "{dump}");
    let lies = [
        // Too short, on one device or on all; of another array; on the other side; along nothing.
        ("(-2, 0)", "(-1, 0)"),
        ("(6, 8)", "(7, 8)"),
        ("(6, 8)", "(8, 10)"),
        ("(6, 8), ", ""),
        ("margins(u,", "margins(w,"),
        ("(0, -1,", "(0, 1,"),
        ("(0, -1,", "(1, -1,"),
        ("(-2, 0)", "(-2, 9223372036854775807)"),
        ("halos=(0,)", "halos=(0, 0)"),
        ("halos=(0,)", "halos=()"),
        ("window(u, ", "window(w, "),
        ("(32, 0, 31, 1, 32, 0)", "(32, 0, 29, 1, 32, 0)"),
    ];
    for (said, lie) in lies {
        assert!(dump.contains(said), "{said} is not in\n{dump}");
        let lying = dump.replacen(said, lie, 1);
        match engine::compiled("lie.spmd", &lying, "", None) {
            Ok(_) => panic!("{said} as {lie} was believed:\n{lying}"),
            Err(failures) => assert!(failures.iter().all(|failure| failure.code != "E0999"), "{failures:?}"),
        }
    }
}
