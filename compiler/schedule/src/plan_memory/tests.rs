//! Programs whose memory and barriers are known.
#![allow(clippy::unwrap_used)]

use spmdc_abi::{AxisSet, Binding, DType, Program, Step};
use spmdc_check::sources::{NoSources, SourceSet};
use spmdc_compiler::pipeline::{Options, compile};
use spmdc_kernel::loops::{BufferSlot, Extent, Kernel};

fn program(source: &str) -> Program {
    let (set, diagnostics) = SourceSet::load("test.spmd", source, &NoSources);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    compile(&set, &Options::default()).unwrap().program.unwrap()
}

/// The steps by kind, loops and branches in brackets.
fn shape(steps: &[Step]) -> String {
    let shapes = steps.iter().map(|step| match step {
        Step::Kernel(_) => "kernel".to_string(),
        Step::Panels { kernels, .. } => format!("panels[{}]", vec!["kernel"; kernels.len()].join(" ")),
        Step::GroupPanels(panels) => format!("group panels[{}]", shape(&panels.steps)),
        Step::Tiles(tiles) => format!("tiles[{}]", tiles.members.len()),
        Step::Gemm(_) => "product".to_string(),
        Step::Library(_) => "library function".to_string(),
        Step::Exchange(_) => "exchange".to_string(),
        Step::Reduce(step) if step.product.is_some() => "sum of products".to_string(),
        Step::Reduce(_) => "reduce".to_string(),
        Step::Permute(_) => "permute".to_string(),
        Step::Fetch(_) => "fetch".to_string(),
        Step::Sync { .. } => "sync".to_string(),
        Step::Post { .. } => "post".to_string(),
        Step::Await { .. } => "await".to_string(),
        Step::Copy { .. } => "copy".to_string(),
        Step::CheckIndex { .. } => "check".to_string(),
        Step::For { body, .. } => format!("for[{}]", shape(body)),
        Step::While { cond, body, .. } => format!("while[{}][{}]", shape(cond), shape(body)),
        Step::If { then, otherwise, .. } => format!("if[{}][{}]", shape(then), shape(otherwise)),
        Step::Print { .. } => "print".to_string(),
    });
    shapes.collect::<Vec<_>>().join(" ")
}

/// The bytes of each copy, also those in loops and branches.
fn copied(steps: &[Step]) -> Vec<u64> {
    let bytes = |step: &Step| if let Step::Copy { bytes, .. } = step { Some(*bytes) } else { None };
    Step::walk(steps).filter_map(bytes).collect()
}

#[test]
fn a_loop_computes_in_place() {
    let program =
        program("fn main(x: f32[1000]) { let mut u = x; for i in 0..3 { u = 2 * u + 1; print(\"trip\"); } u }");
    // The parameter is kept for the next run; everything else happens in one buffer.
    assert_eq!(shape(&program.body), "copy for[kernel print]");
    assert_eq!(program.arenas.iter().map(|arena| arena.bytes).sum::<u64>(), 2 * 4032 + 64);
}

/// Kernels report their use of memory: panels with neighbouring kernels depend on it.
#[test]
fn the_parts_of_a_long_sum_use_memory_each() {
    let (set, _) = SourceSet::load("test.spmd", "fn main(x: f32[1048576]) { sum(x) }", &NoSources);
    let kernels = compile(&set, &Options::default()).unwrap().kernels;
    let written = |slots: &[BufferSlot]| slots.iter().filter(|slot| slot.written).map(|slot| slot.len).sum::<usize>();
    assert_eq!(kernels.iter().map(|kernel| written(&kernel.buffers)).collect::<Vec<_>>(), [64, 1]);
}

#[test]
fn an_axis_of_one_device_divides_nothing() {
    let source =
        |size| format!("mesh (X = {size});\nfn main(x: f32[100@X, 16], y: f32[16@X, 8]) {{ (x @ y, sum(x)) }}");
    assert_eq!(shape(&program(&source(1)).body), "product kernel");
    assert!(shape(&program(&source(2)).body).contains("exchange product"));
}

#[test]
fn neighbours_are_read_before_they_are_overwritten() {
    let program = program("fn main(x: f32[1000]) { let mut u = x; for i in 0..3 { u = u + flip(u); } u }");
    assert_eq!(shape(&program.body), "copy for[kernel copy]");
}

#[test]
fn trips_take_turns_where_each_would_copy() {
    let body = |source: &str| shape(&program(source).body);
    let stencil = |trips: usize, size: usize| {
        format!("fn main(x: f32[{size}]) {{ let mut u = x; for i in 0..{trips} {{ u = u + flip(u); }} u }}")
    };
    assert_eq!(body(&stencil(6, 10_000)), "copy for[kernel kernel]");
    // The trip that is left over copies once.
    assert_eq!(body(&stencil(7, 10_000)), "copy for[kernel kernel] kernel copy");
    let bytes = |size| program(&stencil(7, size)).arenas.iter().map(|arena| arena.bytes).sum::<u64>();
    assert_eq!(bytes(10_000), 3 * 40_000 + 64, "no more memory than with a copy");
    // A body that reads its counter computes it.
    let counted = "fn main(x: f32[10000]) { let mut u = x; for i in 3..7 { u = flip(u) * f32(i); } u }";
    assert_eq!(body(counted), "copy for[kernel kernel kernel kernel]");
    let wave = "fn main(x: f32[10000], y: f32[10000]) {
        let mut a = x; let mut b = y;
        for i in 0..9 { let next = roll(b, 1) - flip(a); a = b; b = next; }
        (a, b)
    }";
    assert_eq!(body(wave), "copy copy for[kernel kernel kernel kernel kernel kernel]");
    // A next value that reads the one before at the same places, in all parts of its kernel, lies where that one lay: two places are enough.
    let string = "fn main(x: f32[10000], y: f32[10000]) {
        let mut a = x; let mut b = y;
        for i in 0..8 { let next = 2 * b - a + roll(b, 1) + roll(b, -1); a = b; b = next; }
        b
    }";
    assert_eq!(body(string), "copy copy for[kernel kernel kernel kernel kernel kernel]");
    let bytes = program(string).arenas.iter().map(|arena| arena.bytes).sum::<u64>();
    assert!((160_000..165_000).contains(&bytes), "{bytes}");
    let until = "fn main(x: f32[10000]) {
        let mut u = x; let mut k = 0;
        while k < 9 { u = u + flip(u); k += 1; }
        u
    }";
    assert_eq!(body(until), "kernel copy while[kernel][kernel kernel kernel if[kernel kernel][copy]]");
    let unknown = "fn main(x: f32[10000], n: i32) { let mut u = x; for i in 0..n { u = u + flip(u); } u }";
    assert_eq!(body(unknown), "kernel copy kernel for[kernel kernel] kernel if[kernel][copy] copy");
    // Interior elements go into the other place, and those around them.
    let inside = "fn main(x: f32[10000]) { let mut u = x; for i in 0..8 { u[1:-1] = (u[2:] + u[:-2]) / 2; } u }";
    assert_eq!(body(inside), "copy for[kernel kernel kernel kernel kernel kernel]");
}

#[test]
fn branches_change_in_place_what_a_loop_carries() {
    let body = |source: &str| shape(&program(source).body);
    let samples = "fn main(x: f32[1000]) {
        let mut h = zeros(f32[50, 1000]);
        for i in 0..50 { if i % 10 == 9 { h[i] = x; } }
        h
    }";
    assert_eq!(body(samples), "kernel for[kernel if[check kernel][]]");
    // Nothing is copied where the branch keeps an array.
    let best = "fn main(x: f32[2000, 1000], w: f32[1000]) {
        let mut best = -1.0; let mut found = w;
        for t in 0..2000 { let s = sum(x[t] * w); if s > best { best = s; found = x[t]; } }
        (best, found)
    }";
    assert_eq!(body(best), "kernel copy for[check kernel kernel if[kernel copy][]]");
    // One copy of `h`, the parameter, and some scalars.
    let bytes = program(samples).arenas.iter().map(|arena| arena.bytes).sum::<u64>();
    assert!(bytes < 204_800, "{bytes}");
    let nested = "fn main(x: f32[1000], g: f32[9, 1000]) {
        let mut h = zeros(f32[50, 1000]); let mut g = g; let mut s = 0.0;
        while s < 9 {
            if h[3, 4] < s { h[i32(s)] = x; } else {
                if s < 2 { g[i32(s)] = x; h[1:-1] *= 2; } else { for j in 0..3 { h[j] = x + h[j + 1]; } }
            }
            s += 1;
        }
        (h, g)
    }";
    assert!(!body(nested).split_once("while[").unwrap().1.contains("copy"), "{}", body(nested));
}

#[test]
fn elements_are_read_before_others_are_written() {
    let inside = |line: &str| {
        let source = format!("fn main(x: f32[1000]) {{ let mut u = x; for i in 1..50 {{ {line} }} u }}");
        let body = shape(&program(&source).body);
        body.strip_prefix("copy for[").and_then(|rest| rest.strip_suffix(']')).unwrap().to_string()
    };
    // The new values of elements that are read lie where the elements lay.
    assert_eq!(inside("u[i] += 3;"), "check kernel");
    assert_eq!(inside("u[i : i + 100] *= 2;"), "check kernel");
    assert_eq!(inside("u[3] = sin(u[3]);"), "kernel");
    // Those of others are computed before.
    assert_eq!(inside("u[i : i + 100] = u[i + 1 : i + 101];"), "kernel check check kernel kernel");
    assert_eq!(inside("u[i] = sin(u[i - 1]);"), "kernel check check kernel kernel");
    assert_eq!(inside("u[i] += u[i - 1];"), "kernel check check kernel kernel");
    assert_eq!(inside("u[1:-1] = (u[2:] + u[:-2]) / 2;"), "kernel kernel");
    // An array that is needed afterwards is copied anyway.
    let kept = "fn main(x: f32[1000]) { let u = 2 * x; let mut v = u; v[1:] = u[:-1]; (u, v) }";
    assert_eq!(shape(&program(kept).body), "kernel copy kernel");
}

#[test]
fn cotangents_of_arrays_that_loops_write_change_in_place() {
    let source = "fn series(x: f32[1000]) {
        let mut p = x;
        for i in 1..1000 { if i % 3 == 0 { p[i] = sin(p[i - 1]) + p[0]; } else { p[i] += sin(p[i - 1] * p[i]); } }
        sum(p)
    }
    fn main(x: f32[1000]) { grad(series)(x) }";
    let (set, _) = SourceSet::load("test.spmd", source, &NoSources);
    let compilation = compile(&set, &Options::default()).unwrap();
    let program = compilation.program.unwrap();
    // The parameter is copied once; trips copy single elements, and no kernel in them is of all elements.
    assert_eq!(copied(&program.body).into_iter().filter(|&bytes| bytes > 4).collect::<Vec<_>>(), [4000]);
    let large = |slots: &[BufferSlot]| slots.iter().any(|slot| slot.written && slot.len == 1000);
    let points = |kernel: &Kernel| kernel.dims.iter().any(|dim| dim.extent == Extent::Static(1000));
    let whole = compilation.kernels.iter().filter(|kernel| large(&kernel.buffers) && points(kernel)).count();
    assert_eq!(whole, 1, "the sum's cotangent");
}

#[test]
fn cotangents_of_arrays_that_loops_read_at_index_arrays_change_in_place() {
    let source = "fn series(x: f32[1000]) {
        let mut p = x;
        for i in 1..1000 { p[[i]] = sin(p[[i - 1]]) + p[[0]]; p[[i, 3]] += sin(p[[0, i]]); }
        sum(p)
    }
    fn main(x: f32[1000]) { grad(series)(x) }";
    let (set, _) = SourceSet::load("test.spmd", source, &NoSources);
    let compilation = compile(&set, &Options::default()).unwrap();
    let points = |kernel: &Kernel| kernel.dims.iter().any(|dim| dim.extent == Extent::Static(1000));
    assert_eq!(compilation.kernels.iter().filter(|kernel| points(kernel)).count(), 1, "the sum's cotangent");
}

#[test]
fn elements_at_indices_of_split_dimensions_are_written_alone() {
    let source = "mesh (X = 4);
    fn main(x: f32[4000@X, 8], v: f32[8]) {
        let mut u = x;
        for i in 0..4000 { u[i] += v; u[i, 3] = u[i, 3] + v[0]; }
        u
    }";
    let (set, _) = SourceSet::load("test.spmd", source, &NoSources);
    let compilation = compile(&set, &Options::default()).unwrap();
    let rows = |kernel: &Kernel| kernel.dims.iter().any(|dim| dim.extent == Extent::Static(1000));
    assert!(!compilation.kernels.iter().any(rows), "a kernel visits all rows of a block");
}

#[test]
fn carried_values_change_places() {
    let source = "fn main(x: f32[1000], y: f32[1000]) {
        let mut a = x; let mut b = y;
        for i in 0..3 { let t = a; a = b; b = t; print(\"trip\"); }
        (a, b)
    }";
    assert_eq!(shape(&program(source).body), "copy copy for[print copy copy copy]");
}

#[test]
fn a_dying_operand_gives_its_place() {
    let program = program("fn main(x: f32[1000]) { let s = sort_free(x); s * sum(s) }\nfn sort_free(x) { exp(x) }");
    // exp, its sum, and the product in the place of exp.
    assert_eq!(shape(&program.body), "kernel kernel kernel");
    assert_eq!(program.arenas.iter().map(|arena| arena.bytes).sum::<u64>(), 2 * 4032 + 64);
}

#[test]
fn a_barrier_stands_where_devices_share_memory() {
    let source = |size: usize| {
        format!("mesh (X = 2);\nfn main(x: f32[{size}]) {{ let s = exp(x); s * sum(s, axis=0, keepdims=true) }}")
    };
    // Small values exist on every device.
    let small = program(&source(1000));
    assert_eq!(shape(&small.body), "kernel kernel kernel");
    // Both devices fill halves of `s`, and then read all of it.
    let large = program(&source(100_000));
    assert_eq!(large.arenas[0].axes, AxisSet::EMPTY);
    assert!(shape(&large.body).starts_with("kernel sync kernel"), "{}", shape(&large.body));
}

fn arena_of(binding: &Binding) -> usize {
    usize::from(binding.place.unwrap().arena)
}

#[test]
fn expensive_values_are_computed_once() {
    let source = |rows: usize| format!("mesh (X = 8);\nfn main(x: f32[{rows}, 64]) {{ sum(x, axis=0) }}");
    let axes = |program: &Program| program.arenas[arena_of(&program.results[0])].axes;
    assert_eq!(axes(&program(&source(100))), AxisSet::of(0), "each device computes its own");
    assert_eq!(axes(&program(&source(60_000))), AxisSet::EMPTY, "they divide the columns");
    let product = program("mesh (X = 8);\nfn main(x: f32[32, 4096], y: f32[4096, 32]) { x @ y }");
    assert_eq!(axes(&product), AxisSet::EMPTY);
}

#[test]
fn accesses_of_a_trip_are_ordered_before_the_next() {
    let source = "mesh (X = 2);
        fn main(x: f32[200, 200]) { let mut u = x; for i in 0..3 { u = u @ u; } u }";
    let program = program(source);
    // All devices have read the factors before the next product overwrites them, which is done before it is read.
    assert_eq!(shape(&program.body), "copy for[sync product sync product] sync product sync copy");
}

#[test]
fn varying_values_are_not_shared() {
    let source = "mesh (X = 2, Y = 2);
        manual(X) fn f(x: f32[20000@X]) -> f32[20000@X] { let mut u = x; while max(u) > 1.0 { u = u * 0.5; } u }
        fn main(x: f32[20000]) { f(x) }";
    let program = program(source);
    let result = &program.results[0];
    assert_eq!(program.arenas[arena_of(result)].axes, AxisSet::of(0));
    // Devices along Y take the same path and divide the work.
    assert!(shape(&program.body).contains("while["), "{}", shape(&program.body));
}

#[test]
fn parts_of_a_sum_are_not_shared() {
    let source = "mesh (X = 2);
        manual(X) fn f(x: f32[20000]) -> f32[20000@X] { psum_scatter(x + 1, X, axis=0) }
        fn main(x: f32[20000]) { f(x) }";
    let program = program(source);
    let Some(Step::Reduce(step)) = program.body.iter().find(|step| matches!(step, Step::Reduce(_))) else {
        panic!("there is a sum")
    };
    assert_eq!(program.arenas[step.from.place.arena as usize].axes, AxisSet::of(0));
}

#[test]
fn kernels_that_hand_on_rows_run_by_panels() {
    let body = |source: &str| shape(&program(source).body);
    assert_eq!(body("fn main(x: f32[500, 1000]) { softmax(x) }"), "panels[kernel kernel kernel kernel]");
    let layer_norm = "fn main(x: f32[500, 1000], g: f32[1000]) {
        let c = x - mean(x, axis=-1, keepdims=true);
        c * rsqrt(mean(c * c, axis=-1, keepdims=true) + 1e-5) * g
    }";
    assert!(body(layer_norm).starts_with("panels[kernel kernel"), "{}", body(layer_norm));
    // Arrays that fit in the cache anyway need no panels.
    assert_eq!(body("fn main(x: f32[5, 1000]) { softmax(x) }"), "kernel kernel kernel kernel");
    // The next kernel needs all rows before it can begin, or other rows.
    assert!(!body("fn main(x: f32[500, 1000]) { softmax(x, axis=0) }").contains("panels"));
    assert_eq!(body("fn main(x: f32[500, 1000]) { let e = exp(x); e / sum(e) }").matches("panels").count(), 0);
    // A kernel that needs the next row as well stays behind by one, if few rows are enough for the cache.
    let stencil = |rows: usize, columns: usize, distance: usize| {
        let inner = format!("{distance}:{}", rows - distance);
        format!(
            "fn main(x: f32[{rows}, {columns}]) {{ let mut u = exp(x); let mut v = exp(2 * x);
               v[{inner}] = u[:-{0}] + u[{0}:]; u[{inner}] = v[:-{0}] + v[{0}:]; (u, v) }}",
            2 * distance
        )
    };
    let lags = |source: &str| -> Vec<u64> {
        let body = program(source).body;
        body.iter()
            .flat_map(|step| if let Step::Panels { lags, .. } = step { lags.clone() } else { Vec::new() })
            .collect()
    };
    assert_eq!(lags(&stencil(1000, 512, 1)), [0, 0, 2, 3]);
    assert_eq!(lags(&stencil(1000, 512, 7)), [0, 0, 14, 21]);
    assert_eq!(lags(&stencil(1000, 512, 200)), [0, 0], "the rows between exceed the cache");
    let shifted = "fn main(x: f32[500, 1000]) { let s = sum(x, axis=1); flip(s, axis=0)[:, None] * x }";
    assert_eq!(body(shifted), "kernel kernel");
    // A division by zero is reported where it comes first in the program.
    let divides = "fn main(x: i32[500, 1000]) { let s = sum(x, axis=1, keepdims=true); x // s }";
    assert_eq!(body(divides), "kernel kernel");
}

#[test]
fn a_collective_takes_one_barrier() {
    let body = |source: &str| shape(&program(source).body);
    // Each sum takes one barrier, and its operand is not overwritten soon.
    let two = "mesh (X = 4);
        fn main(x: f32[8@X], y: f32[8@X]) { let a = sum(exp(x)); let b = sum(exp(y * a)); sum(exp(x * b)) }";
    assert_eq!(body(two), "kernel sync reduce kernel sync reduce kernel sync reduce");
    // The neighbours' rows are read before they are written again: a second barrier in each trip.
    let stencil = "mesh (X = 4);
        fn main(x: f32[64@X]) { let mut u = x; for i in 0..9 { u = roll(u, 1) + u; } u }";
    let loops = body(stencil);
    let inner = loops.split_once("for[").unwrap().1;
    assert_eq!(inner.matches("sync").count() + inner.matches("await").count(), 2, "{loops}");
}

#[test]
fn combined_collectives_share_their_barrier() {
    let source = "mesh (X = 4);
        fn main(x: f32[8@X], y: f32[8@X]) { let a = exp(x); let b = exp(y); (sum(a) / sum(b), sum(a * b)) }";
    let program = program(source);
    assert_eq!(shape(&program.body), "kernel kernel kernel kernel kernel sync reduce reduce reduce kernel");
    let counts =
        program.body.iter().filter_map(|step| if let Step::Reduce(step) = step { Some(step.counts) } else { None });
    assert_eq!(counts.collect::<Vec<_>>(), [true, false, false]);
}

#[test]
fn a_barrier_is_posted_before_work_that_no_device_waits_for() {
    let source = "mesh (X = 4);
        fn main(x: f32[64@X, 64], y: f32[64, 64]) { let s = sum(x, axis=0); let t = y @ y; t * s }";
    let body = shape(&program(source).body);
    assert!(body.contains("post product") && body.contains("await reduce"), "{body}");
}

#[test]
fn a_loop_counter_lies_where_no_one_reads_any_more() {
    // The inner counter takes the place of the operand of the sum before it, which other devices may still be reading.
    let source = "mesh (X = 4);
        fn main(s: f32[6000@X], x: f32[100], n: i32) {
          let mut h = 0.0; let mut u = x;
          for i in 0..3 { let a = sum(s * i); for j in 0..n { h = h + a; u = roll(u, 1) * j; } }
          (h, u)
        }";
    let program = program(source);
    let Some(Step::For { body, .. }) = program.body.iter().find(|step| matches!(step, Step::For { .. })) else {
        panic!("there is a loop")
    };
    let reduced = body.iter().position(|step| matches!(step, Step::Reduce(_))).unwrap();
    let Some(Step::Reduce(reduce)) = body.get(reduced) else { panic!("there is a sum") };
    let inner = body.iter().find_map(|step| if let Step::For { counter, .. } = step { Some(counter) } else { None });
    let counter = inner.unwrap();
    let synced = body[reduced..].iter().any(|step| matches!(step, Step::Sync { .. } | Step::Await { .. }));
    assert!(*counter != reduce.from.place || synced, "{}", shape(body));
}

#[test]
fn products_read_narrow_integers() {
    let product = |text: &str| {
        let program = program(text);
        let gemm =
            program.body.iter().find_map(|step| if let Step::Gemm(gemm) = step { Some(gemm.clone()) } else { None });
        let gemm = gemm.unwrap();
        (shape(&program.body), gemm.dtype, gemm.operands)
    };
    let params = "a: i8[64, 64], b: u8[64, 64]";
    let mixed = product(&format!("fn main({params}) {{ i32(a) @ i32(b) }}"));
    assert_eq!(mixed, ("product".to_string(), DType::I32, [DType::I8, DType::U8]));
    let narrow = product("fn main(a: i8[64, 64], b: i8[64, 64]) { a @ b }");
    assert_eq!(narrow, ("product kernel".to_string(), DType::I32, [DType::I8; 2]));
    // Something else needs one operand widened.
    let shared = product(&format!("fn main({params}) {{ let w = i32(b); (i32(a) @ w, w) }}"));
    assert_eq!(shared, ("kernel product".to_string(), DType::I32, [DType::I8, DType::I32]));
}

#[test]
fn products_take_blocks_from_where_they_lie() {
    let body = |params: &str, product: &str| program(&format!("mesh (X = 4);\nfn main({params}) {{ {product} }}"));
    let has_ring =
        |program: &Program| program.body.iter().any(|step| matches!(step, Step::Gemm(gemm) if gemm.ring.is_some()));
    let gathers = |program: &Program| shape(&program.body).contains("exchange");
    // Weights of a fully sharded model: no device has memory for all of them.
    let large = body("x: f32[2000@X, 512], w: f32[512@X, 128]", "x @ w");
    assert!(has_ring(&large) && !gathers(&large), "{}", shape(&large.body));
    let (x, w, y) = (500 * 512 * 4, 128 * 128 * 4, 500 * 128 * 4);
    assert_eq!(large.arenas.iter().map(|arena| arena.bytes).sum::<u64>(), x + w + y);
    // Small weights need little memory, and a product of a few rows takes as long as one of many.
    let small = body("x: f32[2000@X, 512], w: f32[512@X, 16]", "x @ w");
    assert!(gathers(&small) && !has_ring(&small));
    let short = body("x: f32[20000@X, 64], w: f32[64@X, 2048]", "x @ w");
    assert!(gathers(&short) && !has_ring(&short));
    // Two products take an operand that one of them would have to gather.
    let shared = body("x: f32[2000@X, 512], w: f32[512@X, 128]", "(x @ w, tanh(x) @ w)");
    assert!(gathers(&shared) && !has_ring(&shared));
}

#[test]
fn large_products_are_part_of_the_reductions_that_sum_them() {
    let body = |mesh: &str, params: &str, result: &str| {
        program(&format!("mesh ({mesh});\nfn main({params}) {{ {result} }}")).body
    };
    let gradient = |x: &str, d: &str| body("X = 8, Y = 2", &format!("x: {x}, d: {d}"), "(x.T @ d) * 0.1");
    assert_eq!(shape(&gradient("f32[512@X, 256]", "f32[512@X, 256]")), "kernel sync sum of products sync kernel");
    // A device has two thirds of the bytes; a sum of many elements; the partial sums are the columns of one device.
    for (x, d) in [
        ("f32[512@X, 256]", "f32[512@X, 170]"),
        ("f32[8192@X, 256]", "f32[8192@X, 256]"),
        ("f32[512@X, 256]", "f32[512@X, 300@Y]"),
    ] {
        assert!(!shape(&gradient(x, d)).contains("sum of products"), "{x} {d}");
    }
    // The partial sums have another use.
    let shown = body("X = 8", "x: f32[512@X, 256], d: f32[512@X, 256]", "let g = x.T @ d; (g, g.T @ g)");
    assert_eq!(shape(&shown).matches("sum of products").count(), 1, "{}", shape(&shown));
}

#[test]
fn loops_in_loops_are_planned_without_doubling() {
    // The bound on the work is asserted in the planner.
    let nested = |heads: [&str; 2], depth: usize| {
        let mut source = "mesh (X = 2);\nfn main(x: f32[4@X], n: i32) { let mut u = x; let mut k = n;\n".to_string();
        (0..depth).for_each(|level| source += &format!("{} {{ u = u + sum(u) / 9;\n", heads[level % 2]));
        source += "u = flip(u); k = k + 1;";
        source + &"}".repeat(depth) + " u }"
    };
    for heads in [["for i in 0..2"; 2], ["for i in 0..k"; 2], ["while k < 9"; 2], ["while k < 9", "for i in 0..2"]] {
        program(&nested(heads, 40));
    }
}

#[test]
fn devices_run_the_panels_of_split_rows_for_each_other() {
    let body = |source: &str| shape(&program(source).body);
    let softmax = |mesh: &str, ty: &str| {
        body(&format!(
            "mesh ({mesh});\nfn main(x: f32[{ty}]) {{ let e = exp(x - max(x, axis=1, keepdims=true)); e / sum(e, axis=1, keepdims=true) }}"
        ))
    };
    let grouped = "sync group panels[kernel sync reduce panels[kernel kernel] sync reduce kernel] sync";
    assert_eq!(softmax("X = 4, Y = 2", "8192@X, 4096@Y"), grouped);
    // Blocks of several sizes, and several axes along which rows are split.
    for (mesh, ty) in [("X = 3, Y = 2", "8191@X, 8191@Y"), ("X = 2, Y = 4", "8191, 2050@(X, Y)")] {
        assert!(softmax(mesh, ty).contains("group panels["), "{}", softmax(mesh, ty));
    }
    // Devices along Z share the rows of the result, and divide them as well.
    let shared = softmax("X = 2, Y = 2, Z = 2", "16384@X, 4096@Y");
    assert!(shared.contains("group panels["), "{shared}");
    // Rows that are not split need no exchange; small arrays stay in the cache; few rows would be done by few devices.
    assert_eq!(softmax("X = 8", "8192@X, 4096"), "panels[kernel kernel kernel kernel]");
    assert!(!softmax("X = 4, Y = 2", "64@X, 64@Y").contains("group"));
    assert!(!softmax("X = 1, Y = 8", "16@X, 4194304@Y").contains("group"));
    // In loops, too.
    let repeated = "mesh (X = 4, Y = 2);
        fn main(x: f32[8192@X, 4096@Y]) {
          let mut u = x;
          for i in 0..3 { u = u - mean(u, axis=1, keepdims=true); u = u / max(abs(u), axis=1, keepdims=true); }
          u
        }";
    assert!(body(repeated).contains("for[sync group panels["), "{}", body(repeated));
    // A kernel that may stop the program, or that exchanges rows, runs by itself.
    let indices = "mesh (X = 4, Y = 2);
        fn main(x: i32[8192@X, 4096@Y], d: i32) { let m = max(x, axis=1, keepdims=true); (x - m) % d }";
    assert!(!body(indices).contains("group"), "{}", body(indices));
    let moved = "mesh (X = 4, Y = 2);
        fn main(x: f32[8192@X, 4096@Y]) { x - flip(max(x, axis=1, keepdims=true), axis=0) }";
    assert!(!body(moved).contains("group"), "{}", body(moved));
}

/// The shape of the main steps of attention with heads in a dimension of their own, and the bytes of all its memory but the arguments.
fn attention(inner: &str, length: usize) -> (String, u64) {
    let ty = format!("f32[2, {length}, 8, 64]");
    let program = program(&format!("fn main(q: {ty}, k: {ty}, v: {ty}, m: bool[{length}, {length}]) {{ {inner} }}"));
    let memory = program.arenas.iter().map(|arena| arena.bytes).sum::<u64>();
    (shape(&program.body), memory - (3 * 2 * 8 * 64 * 4 + length as u64) * length as u64)
}

#[test]
fn scores_of_attention_are_not_stored() {
    let scores = 2 * 8 * 2048 * 2048 * 4;
    for call in ["attention(q, k, v)", "attention(q, k, v, causal=true)", "attention(q, k, v, mask=m)"] {
        let (steps, memory) = attention(call, 2048);
        assert!(steps.contains("tiles[") && !steps.contains("product"), "{call}: {steps}");
        // The tiles of 16 threads.
        assert!(memory < scores / 4, "{call}: {memory} bytes");
    }
    // From plain source, with heads outside.
    let heads = "fn main(q: f32[8, 1024, 64], k: f32[8, 1024, 64], v: f32[8, 1024, 64], g: f32[8, 1024, 64]) {
        let s = (q @ swapaxes(k, -1, -2)) / 8.0;
        let e = exp(s - max(s, axis=-1, keepdims=true));
        let p = e / sum(e, axis=-1, keepdims=true);";
    assert_eq!(shape(&program(&format!("{heads} p @ v }}")).body), "kernel tiles[6]");
    // Sums over the rows continue from tile to tile, if there are enough matrices for all threads.
    let backward = "let dp = g @ swapaxes(v, -1, -2);
        let ds = p * (dp - sum(dp * p, axis=-1, keepdims=true));
        (ds @ k, swapaxes(ds, -1, -2) @ q, swapaxes(p, -1, -2) @ g) }";
    let few = shape(&program(&format!("{heads} {backward}")).body);
    assert!(few.contains("tiles[") && few.contains("product"), "{few}");
    let many = shape(&program(&format!("{heads} {backward}").replace("[8, 1024", "[16, 1024")).body);
    assert!(many.contains("tiles[") && !many.contains("product"), "{many}");
}

#[test]
fn only_large_arrays_between_products_are_tiled() {
    let (steps, _) = attention("attention(q, k, v)", 64);
    assert!(!steps.contains("tiles["), "{steps}");
    let layers = |result: &str| {
        let source =
            format!("fn main(x: f32[4096, 256], w: f32[256, 1024], v: f32[1024, 256]) {{ let h = x @ w; {result} }}");
        shape(&program(&source).body)
    };
    assert_eq!(layers("maximum(h, 0) @ v"), "tiles[3]");
    // The tiles of all threads would be as large as the array.
    assert_eq!(layers("tanh(h) * h"), "product kernel");
    // The result of the first product is needed as a whole, or its rows are.
    assert!(!layers("(maximum(h, 0) @ v, h)").contains("tiles["));
    assert!(!layers("cumsum(h, axis=0) @ v").contains("tiles["));
    assert!(!layers("flip(h, axis=0) @ v").contains("tiles["));
}

#[test]
fn products_read_large_operands_as_they_are_stored() {
    let body = |params: &str, product: &str| shape(&program(&format!("fn main({params}) {{ {product} }}")).body);
    assert_eq!(body("x: f32[2048, 512], y: f32[2048, 64]", "x.T @ y"), "product");
    assert_eq!(body("x: f32[16, 512, 512], y: f32[16, 512, 64]", "swapaxes(x, 1, 2) @ y"), "product");
    assert_eq!(body("x: f32[2048, 512], y: f32[64, 512]", "(x @ y.T, y.T)"), "kernel product");
    // A transpose that another statement uses is stored.
    assert_eq!(body("x: f32[2048, 512], y: f32[2048, 64]", "let t = x.T; (t @ y, t)"), "kernel product");
}
