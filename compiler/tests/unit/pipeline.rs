//! Tests of `pipeline`: what whole programs are compiled to, and how a broken contract is reported.

use crate::testing::{compiled, parsed};
use spmdc_compiler::pipeline::{ContractChecker, HostOptions, MemoryLimit, Options, compile};
use spmdc_compiler::totals;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_inspect::verify::Contract;
use spmdc_ir::program::control::Control;
use spmdc_ir::program::{Stage, StmtKind};
use spmdc_layout::cost::Levels;
use spmdc_layout::reshard::step::ReshardStep;
use spmdc_ops::reshard::Reshard;

/// The collectives that the compiler inserts, in order.
fn collectives(source: &str) -> Vec<&'static str> {
    let compilation = compiled(source);
    let mut found = Vec::new();
    compilation.stage(Stage::Partitioned).unwrap().func.body.walk(&mut |stmt| {
        if let Some(op) = stmt.as_op::<Reshard>()
            && let ReshardStep::Collective(kind) = op.step
        {
            found.push(kind.name());
        }
    });
    found
}

/// The types of results after partitioning.
fn result_types(source: &str) -> Vec<String> {
    let compilation = compiled(source);
    compilation.program.unwrap().results.iter().map(|result| result.ty.clone()).collect()
}

/// The type of the first result of a program that is compiled for so many hosts, if any, and its collectives.
fn for_hosts(source: &str, hosts: Option<usize>) -> Result<(String, Vec<u64>), Vec<Diagnostic>> {
    let hosts = hosts.map(|count| HostOptions { count, levels: Levels::DEFAULT, refuses: true });
    let compilation = compile(&parsed(source), &Options { hosts, ..Options::default() })?;
    let module = compilation.stage(Stage::Partitioned).unwrap();
    let crossing = totals::collectives(module).iter().map(|collective| collective.crossing).collect();
    Ok((compilation.program.unwrap().results[0].ty.clone(), crossing))
}

#[test]
fn gathers_stay_in_loops_where_memory_is_scarce() {
    let source = "mesh (X = 8);
        fn main(a: f32[256@X, 256], b: f32[256@X, 256], c: f32[256@X, 256], x: f32[256@X, 256]) {
            let mut h = x;
            for t in 0..16 { h = tanh(h @ a); h = tanh(h @ b); h = tanh(h @ c); }
            h
        }";
    let trips = |bytes: u64| {
        let memory = Some(MemoryLimit { bytes, processes: 1 });
        let compilation = compile(&parsed(source), &Options { memory, ..Options::default() }).unwrap();
        let found = totals::collectives(compilation.stage(Stage::Partitioned).unwrap());
        found.iter().map(|gather| gather.trips.unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(trips(3 << 20), [1, 1, 1], "there is room for both");
    assert_eq!(trips(2100 << 10), [16, 16, 16]);
    assert_eq!(trips(1 << 10), [1, 1, 1], "it would not fit either way");
}

#[test]
fn layouts_follow_hosts() {
    let source = "mesh (X = 2, Y = 4); fn main(a: f32[64@X, 8], b: f32[64@Y, 8]) { a + b }";
    let (near, far) = ("f32[64@X,8]".to_string(), "f32[64@Y,8]".to_string());
    assert_eq!(for_hosts(source, None), Ok((far.clone(), vec![0])));
    assert_eq!(for_hosts(source, Some(1)), Ok((far, vec![0])), "one host is like none");
    assert!(for_hosts(source, Some(2)).is_ok_and(|(ty, crossing)| ty == near && crossing.iter().all(|&c| c == 0)));
    let uneven = for_hosts(source, Some(3)).unwrap_err();
    assert_eq!((uneven[0].code, uneven[0].of_command), (Code::E0807, true));
    assert!(uneven[0].message.contains("8 devices of the mesh cannot be divided equally among 3 hosts"));
}

#[test]
fn programs_with_other_steps_or_kernels_have_other_fingerprints() {
    let fingerprint = |text: &str| compiled(text).program.unwrap().fingerprint;
    let text = "mesh (X = 2); fn main(x: f32[8@X]) { sin(x) + 1 }";
    let known = fingerprint(text);
    assert_eq!(known, fingerprint(text));
    for other in
        ["f32[8@X]) { sin(x) + 2 }", "f32[8@X]) { cos(x) + 1 }", "f32[9@X]) { sin(x) + 1 }", "f32[8]) { sin(x) + 1 }"]
    {
        assert_ne!(known, fingerprint(&format!("mesh (X = 2); fn main(x: {other}")), "{other}");
    }
}

#[test]
fn elementwise_needs_no_collective() {
    let source = "mesh (X = 2, Y = 4);\nfn main(x: f32[8@X, 16@Y]) { 2 * sin(x) + 1 }";
    assert_eq!(collectives(source), Vec::<&str>::new());
    assert_eq!(result_types(source), ["f32[8@X,16@Y]"]);
    assert_eq!(compiled(source).kernels.len(), 1);
}

#[test]
fn a_tensor_parallel_layer_needs_one_all_reduce() {
    let source = "mesh (X = 2, Y = 4);
        fn main(x: f32[8@X, 16], w1: f32[16, 64@Y], w2: f32[64@Y, 16]) { maximum(x @ w1, 0) @ w2 }";
    assert_eq!(collectives(source), ["all_reduce"]);
    assert_eq!(result_types(source), ["f32[8@X,16]"]);
}

#[test]
fn a_data_parallel_layer_needs_no_collective() {
    let source = "mesh (data = 8);
        fn main(x: f32[32@data, 16], w: f32[16, 4], b: f32[4]) { tanh(x @ w + b) }";
    assert_eq!(collectives(source), Vec::<&str>::new());
    assert_eq!(result_types(source), ["f32[32@data,4]"]);
}

#[test]
fn a_sum_that_is_wanted_split_is_scattered() {
    let source = "mesh (X = 2, Y = 4);
        fn main(x: f32[8@X, 16@Y]) -> f32[8@(X, Y)] { sum(x, axis=1) }";
    assert_eq!(collectives(source), ["reduce_scatter"]);
}

#[test]
fn axes_are_cut_where_that_moves_less() {
    let rows = |mesh: &str, out: &str| {
        format!(
            "mesh ({mesh}); fn main(x: f32[16@Y, 4]){out} {{
            let r = reshape(x, (2, 8, 4)); reshape(r - sum(r, axis=1, keepdims=true), (16, 4)) }}"
        )
    };
    for out in ["", " -> f32[16@Y, 4]"] {
        assert_eq!(collectives(&rows("Y = 8", out)), ["all_reduce"]);
        assert_eq!(result_types(&rows("Y = 8", out)), ["f32[16@Y,4]"]);
    }
    assert_eq!(compiled(&rows("Y = 8", "")).stages[1].mesh.axes.len(), 2);
    assert_eq!(compiled(&rows("Y = 8, Z: explicit = 1", "")).stages[1].mesh.axes.len(), 3);
    for uncut in ["Y = 2", "Y = 3"] {
        let source = rows(uncut, "");
        assert!(compiled(&source).stages.iter().all(|module| module.mesh == module.mesh.plain()), "{uncut}");
    }
    // A cut gains nothing where the result is needed unsplit.
    let source = "mesh (Y = 4); fn main(x: f32[8@Y, 16]) { reshape(x, (2, 4, 16)) }";
    assert_eq!(result_types(source), ["f32[2,4,16@Y]"]);
}

#[test]
fn the_pass_that_breaks_a_contract_is_named() {
    let module = compiled("mesh (X = 2); fn main(x: f32[8@X]) { sin(x) + 1 }").stages.remove(2);
    let mut broken = module.clone();
    let result = broken.func.body.results[0];
    broken.func.info_mut(result).ty.sharding.dims[0].axes.clear();
    let checker = ContractChecker::new(true);
    checker.check("right", &module, Contract::Stage);
    checker.check("hoist", &broken, Contract::Stage);
    checker.check("cse", &broken, Contract::Stage);
    let messages = checker.take_errors().unwrap();
    let message =
        "the pass `hoist` violates the invariants of its stage: `v3: f32[8] = v1 + v2`: v3: f32[8] does not match";
    assert!(messages[0].message.starts_with(message), "{messages:?}");
}

/// The number of searches for plans between layouts, and the number of steps priced in them.
fn searched(source: &str) -> (usize, usize) {
    let options = Options::default();
    compile(&parsed(source), &options).unwrap();
    (options.plans.count(), options.plans.priced())
}

#[test]
fn what_cannot_win_is_not_searched() {
    let split_differently = "mesh (X = 2, Y = 2, Z = 2, U = 2);
        fn main(
            c: bool[4@X, 4@Y, 4, 4@Z, 4, 4, 4@U, 4],
            a: f32[4, 4@X, 4@Y, 4, 4@Z, 4, 4, 4@U],
            b: f32[4@U, 4, 4@X, 4, 4@Y, 4@Z, 4, 4],
        ) { where(c, a, b) }";
    let (ways, priced) = searched(split_differently);
    assert!(ways <= 12 && priced <= 64, "{ways} ways, {priced} steps");
    // One statement after the other, each with three layouts of all axes.
    let layout = |at: usize| {
        let mut dims = vec!["4".to_string(); 6];
        for (axis, name) in ["X", "Y", "Z", "U", "V"].into_iter().enumerate() {
            let dim = &mut dims[(at * (axis + 2) + axis) % 6];
            if dim == "4" {
                *dim = format!("4@{name}");
            }
        }
        format!("[{}]", dims.join(", "))
    };
    let lets: String = (0..8).map(|at| format!("let v{}: f32{} = v{at} + p;", at + 1, layout(at + 1))).collect();
    let axes = "X = 2, Y = 2, Z = 2, U = 2, V = 2";
    let (p, v) = (layout(3), layout(0));
    let (ways, priced) = searched(&format!("mesh ({axes}); fn main(p: f32{p}, v0: f32{v}) {{ {lets} v8 }}"));
    assert!(ways <= 32 && priced <= 2048, "{ways} ways, {priced} steps");
}

#[test]
fn loops_keep_the_layout_of_what_they_carry() {
    let source = "mesh (X = 2, Y = 4);
        fn main(x: f32[8@X, 16]) { let mut u = x; for i in 0..3 { u = 2 * u; } u }";
    assert_eq!(collectives(source), Vec::<&str>::new());
    assert_eq!(result_types(source), ["f32[8@X,16]"]);
}

#[test]
fn devices_transpose_an_operand_that_they_share_together() {
    let transposes = |rows: usize, devices: usize, w: &str| {
        let source = format!(
            "mesh (X = {devices});
             fn main(d: f32[{rows}@X, 256], w: f32[{w}]) {{ einsum(\"ij,kj->ik\", d, w) }}"
        );
        let compilation = compiled(&source);
        let mut count = 0;
        compilation.stage(Stage::Partitioned).unwrap().func.body.walk(&mut |stmt| {
            count += usize::from(stmt.op().is_some_and(|op| op.rules().name() == "transpose"));
        });
        count
    };
    assert_eq!(transposes(1024, 8, "128@_, 256@_"), 1);
    assert_eq!(transposes(1024, 1, "128@_, 256@_"), 0, "nobody shares it");
    assert_eq!(transposes(8192, 8, "128@_, 256@_"), 0, "the product takes long");
    assert_eq!(transposes(1024, 8, "16@_, 256@_"), 0, "it is small");
    assert_eq!(transposes(1024, 8, "1024@X, 256"), 0, "its blocks are read in place");
}

#[test]
fn stencils_exchange_the_halos_of_several_steps() {
    // For each loop over exchanges its trips, and the number of steps in each.
    let rounds = |source: &str, memory: Option<MemoryLimit>| {
        let compilation = compile(&parsed(source), &Options { memory, ..Options::default() }).unwrap();
        let mut found = Vec::new();
        compilation.stage(Stage::Optimized).unwrap().func.body.walk(&mut |stmt| {
            let StmtKind::Control(Control::For(op)) = &stmt.kind else { return };
            let named = |name| op.body.stmts.iter().filter(|stmt| stmt.name() == name).count();
            if named("ghosted") > 0 {
                found.push((op.trips().unwrap(), named("update") + 1));
            }
        });
        found
    };
    let heat = |mesh: &str, shape: &str, trips: usize| {
        format!(
            "{mesh} fn main(v: f32[{shape}]) {{
               let mut u = v;
               for i in 0..{trips} {{ u = 0.6 * u + 0.1 * (roll(u, 1, axis=0) + roll(u, -1, axis=0) + roll(u, 1, axis=1) + roll(u, -1, axis=1)); }}
               u
             }}"
        )
    };
    let mesh = "mesh (X = 4, Y = 2);";
    assert_eq!(rounds(&heat(mesh, "4096@X, 4096@Y", 100), None), [(5, 20)]);
    assert_eq!(rounds(&heat("", "4096, 4096", 100), None), [(7, 14)]);
    // Rows of 32 KiB: the rows of fewer steps fit in the cache.
    assert_eq!(rounds(&heat("", "1024, 8192", 16), None), [(4, 4)]);
    assert_eq!(rounds(&heat(mesh, "1024@X, 1024@Y", 100), None), [], "it fits in the caches");
    assert_eq!(rounds(&heat(mesh, "4098@X, 4096@Y", 100), None), [], "blocks differ");
    assert_eq!(rounds(&heat(mesh, "4096@X, 4096@Y", 3), None), [], "there are few steps");
    let scarce = Some(MemoryLimit { bytes: 200 << 20, processes: 1 });
    assert_eq!(rounds(&heat(mesh, "4096@X, 4096@Y", 100), scarce), [], "blocks with margins are further arrays");
    let whole = "fn main(v: f32[4096, 4096]) { let mut u = v; for i in 0..100 { u = u - 0.1 * (roll(u, 1, axis=0) - mean(u)); } u }";
    assert_eq!(rounds(whole, None), [], "a step needs all elements");
}
