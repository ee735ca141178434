//! What meetings and collectives cost: microseconds for each, 8 devices on all cores, beside the bytes that have to be moved.
//!
//! `cargo bench -p spmdc-runtime --bench collectives`

use std::hint::black_box;
use std::time::Instant;

use spmdc_runtime::abi::*;
use spmdc_runtime::mesh::Mesh;
use spmdc_runtime::report::RunOptions;
use spmdc_runtime::session::Session;

const DEVICES: usize = 8;

/// A program that executes a step again and again, on a mesh of one axis.
fn program(step: Step, arenas: Vec<Arena>, trips: i64) -> Program {
    let mut arenas = arenas;
    let counter = Place { arena: arenas.len() as u16, offset: 0 };
    arenas.push(Arena { axes: AxisSet::of(0), bytes: 64 });
    let site = Site::default();
    let trips = Step::For { counter, start: Bound::Const(0), end: Bound::Const(trips), body: vec![step], site };
    Program {
        abi_version: ABI_VERSION,
        entry: "main".into(),
        files: vec![],
        mesh: vec![MeshAxis { name: "X".into(), size: DEVICES }],
        arenas,
        buffers: vec![],
        params: vec![],
        results: vec![],
        constants: vec![],
        body: vec![trips],
        kernels: vec![],
        compile_ms: 0.0,
    }
}

/// Microseconds for one execution of the step: the best of several runs, and the median.
fn measure(step: &Step, arenas: &[Arena], trips: i64, workers: Option<usize>) -> (f64, f64) {
    // SAFETY: there are no kernels, and all steps are single collectives, which order themselves.
    let kernels = unsafe { Kernels::new(vec![]) };
    let options = RunOptions { workers, ..RunOptions::default() };
    let program = program(step.clone(), arenas.to_vec(), trips);
    let mut session = Session::load(program, kernels, options).expect("the program is well formed");
    let mut times: Vec<f64> = (0..100)
        .map(|_| session.run(&mut std::io::sink()).expect("nothing can fail").run_ms * 1e3 / trips as f64)
        .collect();
    times.sort_by(f64::total_cmp);
    (times[0], times[times.len() / 2])
}

fn main() {
    let all = AxisSet::of(0);
    let site = Site::default();
    println!("{:<34}{:>12}{:>12}", "microseconds, 8 devices", "best", "median");
    for workers in [Some(1), None] {
        let (best, median) = measure(&Step::Sync { group: all, site }, &[], 2000, workers);
        println!("{:<34}{best:>12.3}{median:>12.3}", format!("meeting, workers: {workers:?}"));
    }
    for elements in [1usize, 1 << 10, 1 << 18, 1 << 22] {
        let trips = (1 << 18) / elements.max(256) as i64 + 1;
        let bytes = (elements * 4) as u64;
        let whole = Layout { dtype: DType::F32, dims: vec![LayoutDim { size: elements, axes: vec![] }] };
        let split = Layout { dtype: DType::F32, dims: vec![LayoutDim { size: elements, axes: vec![0] }] };
        let mesh = Mesh::new(&[MeshAxis { name: "X".into(), size: DEVICES }]).expect("a small mesh");
        let block: usize = mesh.stored_shape(&split).iter().product();
        // Arena 0: a value for each device; 1: one that all share; 2: a block for each device.
        let arenas = [
            Arena { axes: all, bytes },
            Arena { axes: AxisSet::EMPTY, bytes },
            Arena { axes: all, bytes: (block * 4) as u64 },
        ];
        let shards = |arena, layout: &Layout| Shards { place: Place { arena, offset: 0 }, layout: layout.clone() };
        let reduce = |kind, to| {
            let op = ReduceOp::Sum;
            Step::Reduce(ReduceStep { kind, op, group: all, reduce: all, from: shards(0, &whole), to, bytes, site })
        };
        let exchange = |kind, from, to| Step::Exchange(ExchangeStep { kind, group: all, from, to, bytes, site });
        let steps = [
            ("all_reduce, shared", reduce(CollectiveKind::AllReduce, shards(1, &whole))),
            ("reduce_scatter", reduce(CollectiveKind::ReduceScatter, shards(2, &split))),
            ("all_gather, shared", exchange(CollectiveKind::AllGather, shards(2, &split), shards(1, &whole))),
            ("all_gather, a copy each", exchange(CollectiveKind::AllGather, shards(2, &split), shards(0, &whole))),
        ];
        for (name, step) in &steps {
            let (best, median) = measure(black_box(step), &arenas, trips, None);
            println!("{:<34}{best:>12.3}{median:>12.3}", format!("{name}, {elements} f32"));
        }
    }
    let mut loads: Vec<f64> = (0..50)
        .map(|_| {
            let start = Instant::now();
            // SAFETY: as in `measure`.
            let kernels = unsafe { Kernels::new(vec![]) };
            let program = program(Step::Sync { group: all, site }, vec![], 1);
            drop(Session::load(program, kernels, RunOptions::default()).expect("the program is well formed"));
            start.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    loads.sort_by(f64::total_cmp);
    println!("{:<34}{:>12.3}{:>12.3}", "load and drop", loads[0], loads[loads.len() / 2]);
}
