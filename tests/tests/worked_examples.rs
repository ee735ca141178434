//! Worked examples with the collectives that a good plan has: ours receive at most as many bytes, and the answers are the
//! evaluator's on 1, 2, 3, 5 and 8 devices.

#![allow(clippy::unwrap_used)]

use spmdc_compiler::ir::Stage;
use spmdc_compiler::report::plan::{Collective, collectives};
use spmdc_runtime::abi::CollectiveKind::{
    self, AllGather, AllReduce, AllToAll, CollectivePermute, ReduceScatter, Transfer,
};
use spmdc_tests::compare::{Tolerance, difference};
use spmdc_tests::{engine, root};

struct Example {
    number: u32,
    /// Parameters and body; `f32` is left out of types.
    program: &'static str,
    /// Kind, devices of a group, bytes of one device's operand.
    steps: &'static [(CollectiveKind, u64, u64)],
}

const MESH: &str = "mesh (X = 2, Y = 4);";
const LINE: &str = "mesh (X: explicit = 8);";

/// Reshards of `f32[16,32]`, 2048 bytes, and of partial sums of 1024 bytes.
const RESHARDS: &[(&str, &[Example])] = &[
    (
        MESH,
        &[
            Example {
                number: 29,
                program: "(x: f32[16@X, 32]) { reshard(x, P(_, X)) }",
                steps: &[(AllToAll, 2, 1024)],
            },
            Example { number: 29, program: "(x: f32[16@Y, 32]) { reshard(x, P(_, Y)) }", steps: &[(AllToAll, 4, 512)] },
            Example {
                number: 31,
                program: "(x: f32[16@X, 32@Y]) { reshard(x, P(Y, X)) }",
                steps: &[(AllToAll, 2, 256), (CollectivePermute, 8, 256)],
            },
            Example { number: 32, program: "(x: f32[16@X, 32@Y]) { reshard(x, P()) }", steps: &[(AllGather, 8, 256)] },
            Example { number: 33, program: "(x: f32[16@_, 32@_]) { reshard(x, P(X, Y)) }", steps: &[] },
            Example { number: 33, program: "(x: f32[16@X, 32]) { reshard(x, P((X, Y), _)) }", steps: &[] },
            Example {
                number: 34,
                program: "(x: f32[16@(X, Y), 32]) { reshard(x, P(X, Y)) }",
                steps: &[(AllToAll, 4, 256)],
            },
            Example {
                number: 34,
                program: "(x: f32[16@X, 32@Y]) { reshard(x, P((X, Y), _)) }",
                steps: &[(AllToAll, 4, 256)],
            },
            Example {
                number: 35,
                program: "(x: f32[16@(X, Y), 32]) { reshard(x, P((Y, X), _)) }",
                steps: &[(CollectivePermute, 8, 256)],
            },
            Example {
                number: 36,
                program: "(x: f32[16@X, 32]) { reshard(x, P(Y, _)) }",
                steps: &[(CollectivePermute, 8, 512)],
            },
            Example {
                number: 37,
                program: "(x: f32[16@Y, 32]) { reshard(x, P(X, _)) }",
                steps: &[(CollectivePermute, 8, 512), (AllGather, 2, 512)],
            },
            Example {
                number: 38,
                program: "(x: f32[16@X, 32@Y]) { reshard(x, P(_, Y)) }",
                steps: &[(AllGather, 2, 256)],
            },
            Example {
                number: 38,
                program: "(x: f32[16@(X, Y), 32]) { reshard(x, P(X, _)) }",
                steps: &[(AllGather, 4, 256)],
            },
            Example {
                number: 39,
                program: "(x: f32[16@(X, Y), 32]) { reshard(x, P(Y, _)) }",
                steps: &[(CollectivePermute, 8, 256), (AllGather, 2, 256)],
            },
            Example {
                number: 40,
                program: "(x: f32[16@Y, 32]) { reshard(x, P((X, Y), _)) }",
                steps: &[(CollectivePermute, 8, 256)],
            },
            Example {
                number: 41,
                program: "(x: f32[16@X, 32@Y]) { reshard(x, P(_, (X, Y))) }",
                steps: &[(AllToAll, 2, 256), (CollectivePermute, 8, 256)],
            },
            Example {
                number: 41,
                program: "(x: f32[16@X, 32@Y]) { reshard(x, P(_, (Y, X))) }",
                steps: &[(AllToAll, 2, 256)],
            },
        ],
    ),
    (
        "mesh (x = 4, y = 2);",
        &[Example {
            number: 30,
            program: "(v: f32[16@y, 16, 16@x]) { reshard(v, P(_, (x, y), _)) }",
            steps: &[(AllToAll, 4, 2048), (AllToAll, 2, 2048)],
        }],
    ),
    (
        LINE,
        &[
            Example {
                number: 42,
                program: "(a: f32[16, 8@X], b: f32[8@X, 16]) { matmul(a, b, out=P(_, _)) }",
                steps: &[(AllReduce, 8, 1024)],
            },
            Example {
                number: 42,
                program: "(a: f32[16, 8@X], b: f32[8@X, 16]) { reshard(matmul(a, b, out=P(_, _, unreduced=X)), P(X, _)) }",
                steps: &[(ReduceScatter, 8, 1024)],
            },
            Example { number: 43, program: "(x: f32[16, 16]) { reshard(x, P(_, _, unreduced=X)) }", steps: &[] },
        ],
    ),
];

/// Parts of arrays, and arrays put together.
const WINDOWS: &[(&str, &[Example])] = &[(
    MESH,
    &[
        Example {
            number: 44,
            program: "(x: f32[8@X, 16]) { (x[2:6], x[1:7], x[::2], pad(x, ((1, 1), (0, 0)))) }",
            steps: &[],
        },
        Example {
            number: 45,
            program: "(x: f32[8@X, 16]) -> f32[4@X, 16] { x[0:4] }",
            steps: &[(CollectivePermute, 2, 128)],
        },
        Example {
            number: 45,
            program: "(x: f32[8@X, 16]) -> f32[6@X, 16] { x[0:6] }",
            steps: &[(CollectivePermute, 2, 64)],
        },
        Example {
            number: 45,
            program: "(x: f32[8@X, 16]) -> f32[6@X, 16] { x[2:8] }",
            steps: &[(CollectivePermute, 2, 64)],
        },
        Example {
            number: 45,
            program: "(x: f32[8@X, 16]) -> f32[10@X, 16] { pad(x, ((0, 2), (0, 0))) }",
            steps: &[(CollectivePermute, 2, 64)],
        },
        Example {
            number: 46,
            program: "(x: f32[8@X, 16]) -> f32[7@X, 16] { x[1:] }",
            steps: &[(CollectivePermute, 2, 64)],
        },
        Example { number: 47, program: "(x: f32[8@X, 16@Y]) { x[3] }", steps: &[(AllReduce, 2, 16)] },
        Example { number: 48, program: "(x: f32[8@X, 16@Y], i: i32) { x[i] }", steps: &[(AllReduce, 2, 16)] },
        Example {
            number: 49,
            program: "(x: f32[8@X, 16@Y], i: i32) { dynamic_slice(x, (i, 0), (4, 16)) }",
            steps: &[(AllReduce, 2, 64)],
        },
        Example {
            number: 49,
            program: "(x: f32[8@X, 16@Y], i: i32) -> f32[4@X, 16@Y] { dynamic_slice(x, (i, 0), (4, 16)) }",
            steps: &[(ReduceScatter, 2, 64)],
        },
        Example {
            number: 50,
            program: "(x: f32[8@X, 16], v: f32[2, 16], i: i32) { dynamic_update_slice(x, v, (i, 0)) }",
            steps: &[],
        },
        Example {
            number: 51,
            program: "(x: f32[8@X, 16@Y], v: f32[2@X, 16@Y], i: i32) { dynamic_update_slice(x, v, (i, 0)) }",
            steps: &[(AllGather, 2, 16)],
        },
        Example {
            number: 52,
            program: "(x: f32[8@X, 16@Y], row: f32[16@Y], i: i32) { let mut u = x; u[i] = row; u[0, :] = 1; u[:, 0] = 1; u }",
            steps: &[],
        },
        Example {
            number: 53,
            program: "(x: f32[8@Y, 16@X]) -> f32[8@Y, 16@X] { roll(x, 1, axis=0) }",
            steps: &[(CollectivePermute, 4, 32)],
        },
        Example {
            number: 54,
            program: "(x: f32[32@X, 16]) -> f32[32@X, 16] { roll(x, 1, axis=0) + roll(x, -1, axis=0) - 2 * x }",
            steps: &[(CollectivePermute, 2, 64), (CollectivePermute, 2, 64)],
        },
        Example {
            number: 55,
            program: "(x: f32[34@X, 16]) -> f32[32@X, 16] { x[:-2] + x[1:-1] + x[2:] }",
            steps: &[(CollectivePermute, 2, 64), (CollectivePermute, 2, 64)],
        },
        Example {
            number: 56,
            program: "(x: f32[32@Y]) -> f32[32@Y] { let mut u = x; u[1:-1] = 0.5 * (u[:-2] + u[2:]); u }",
            steps: &[(CollectivePermute, 4, 4), (CollectivePermute, 4, 4)],
        },
        Example {
            number: 57,
            program: "(x: f32[16@X, 16@Y]) -> f32[16@X, 16@Y] {
                let mut u = x;
                u[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]);
                u
            }",
            steps: &[
                (CollectivePermute, 2, 16),
                (CollectivePermute, 2, 16),
                (CollectivePermute, 4, 32),
                (CollectivePermute, 4, 32),
            ],
        },
        Example {
            number: 58,
            program: "(x: f32[16@X, 16@Y], inside: bool[16@X, 16@Y]) -> f32[16@X, 16@Y] {
                let sum = roll(x, 1, axis=0) + roll(x, -1, axis=0) + roll(x, 1, axis=1) + roll(x, -1, axis=1);
                where(inside, 0.25 * sum, x)
            }",
            steps: &[
                (CollectivePermute, 2, 16),
                (CollectivePermute, 2, 16),
                (CollectivePermute, 4, 32),
                (CollectivePermute, 4, 32),
            ],
        },
        Example {
            number: 59,
            program: "(x: f32[8@X, 16@Y]) -> f32[8@X, 16@Y] { flip(x, 0) }",
            steps: &[(CollectivePermute, 2, 64)],
        },
        Example {
            number: 60,
            program: "(x: f32[8@X, 16@Y], y: f32[8@X, 16@Y]) -> f32[16@X, 16@Y] { concatenate([x, y]) }",
            steps: &[(CollectivePermute, 2, 64)],
        },
        Example {
            number: 61,
            program: "(x: f32[8@X, 16@_], y: f32[8@X, 16]) {
                (concatenate([x, y], axis=1), stack([x, y]), expand_dims(x, 1), repeat(x, 2, axis=0))
            }",
            steps: &[],
        },
        Example { number: 62, program: "(x: f32[8@X, 16@Y]) { tile(x, (2, 1)) }", steps: &[(AllGather, 2, 64)] },
        Example {
            number: 63,
            program: "(x: f32[8@X, 16@Y]) -> (f32[8@X, 8@Y], f32[8@X, 8@Y]) { split(x, 2, axis=1) }",
            steps: &[
                (CollectivePermute, 4, 64),
                (CollectivePermute, 4, 32),
                (CollectivePermute, 4, 32),
                (CollectivePermute, 4, 32),
            ],
        },
        Example { number: 64, program: "(x: f32[8@(X, Y), 16]) { reshape(x, (2, 4, 16)) }", steps: &[] },
    ],
)];

/// Bytes that a device receives, as the kind, the devices of a group and the bytes of an operand say.
fn received(kind: CollectiveKind, n: u64, bytes: u64) -> f64 {
    let (n, bytes) = (n as f64, bytes as f64);
    match kind {
        AllGather => (n - 1.0) * bytes,
        ReduceScatter | AllToAll => (n - 1.0) / n * bytes,
        AllReduce => 2.0 * (n - 1.0) / n * bytes,
        CollectivePermute | Transfer => bytes,
    }
}

fn check(mesh: &str, example: &Example) -> Result<(), String> {
    let text = format!("{mesh}\nfn main{}\n", example.program);
    let compilation = engine::compiled("example.spmd", &text, "", None).map_err(|failures| format!("{failures:?}"))?;
    let found: Vec<Collective> = collectives(compilation.stage(Stage::Partitioned).unwrap());
    let allowed: f64 = example.steps.iter().map(|&(kind, n, bytes)| received(kind, n, bytes)).sum();
    let usual: f64 = found.iter().map(|step| received(step.kind, step.group_size as u64, step.bytes)).sum();
    let exact: u64 = found.iter().map(|step| step.received).sum();
    if usual > allowed || exact as f64 > allowed {
        return Err(format!("{usual} and {exact} bytes are received, not {allowed}: {found:#?}"));
    }
    let meshes = match mesh.matches('=').count() {
        1 => ["1", "2", "3", "5", "8"],
        _ => ["1x1", "2x1", "1x3", "5x1", "2x4"],
    };
    let inputs = engine::inputs(&compilation, &[], &root())?;
    let expected =
        engine::evaluated(&text, &compilation.stages[0], &inputs).map_err(|failure| format!("{failure:?}"))?;
    for mesh in meshes {
        let compilation = engine::compiled("example.spmd", &text, mesh, None).map_err(|f| format!("{mesh}: {f:?}"))?;
        let outcome = engine::run(&compilation, &inputs, None).map_err(|failure| format!("{mesh}: {failure:?}"))?;
        for (expected, actual) in expected.iter().zip(&outcome.results) {
            if let Some(text) = difference(expected, actual, Tolerance::reassociated(expected.dtype)) {
                return Err(format!("{mesh}: {text}"));
            }
        }
    }
    Ok(())
}

#[test]
fn reshards_receive_no_more_than_they_should() {
    hold(RESHARDS);
}

#[test]
fn windows_receive_no_more_than_they_should() {
    hold(WINDOWS);
}

fn hold(groups: &[(&str, &[Example])]) {
    let mut wrong = Vec::new();
    for (mesh, examples) in groups {
        for example in *examples {
            if let Err(text) = check(mesh, example) {
                wrong.push(format!("example {}, {}: {text}", example.number, example.program));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
