//! The cost of barriers and collectives: microseconds for each, 8 devices on all cores, compared with a copy of the same bytes.
//!
//! `cargo bench --workspace --bench collectives`; `docs/benchmarks.md` explains the table.

use std::hint::black_box;
use std::thread::available_parallelism;
use std::time::Instant;

use spmdc_abi::mesh::DeviceMesh;
use spmdc_abi::*;
use spmdc_runtime::run::report::RunOptions;
use spmdc_runtime::run::session::Session;

const DEVICES: usize = 8;

/// A barrier of all devices.
fn barrier() -> Step {
    Step::Sync { group: AxisSet::of(0), kind: None, site: Site::default() }
}

/// A program that executes steps again and again, on a mesh of one axis.
fn program(steps: Vec<Step>, arenas: Vec<Arena>, trips: i64) -> Program {
    let mut arenas = arenas;
    let counter = Place { arena: arenas.len() as u16, offset: 0 };
    arenas.push(Arena { axes: AxisSet::of(0), bytes: 64 });
    let site = Site::default();
    let trips = Step::For { counter, start: Bound::Const(0), end: Bound::Const(trips), body: steps, site };
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
        fingerprint: 0,
        compile_ms: 0.0,
        mesh_programs: Vec::new(),
        devices: Vec::new(),
        channels: Vec::new(),
    }
}

/// The least and the median of some times.
fn least_and_median(times: impl Iterator<Item = f64>) -> (f64, f64) {
    let mut times: Vec<f64> = times.collect();
    times.sort_by(f64::total_cmp);
    (times[0], times[times.len() / 2])
}

/// Microseconds for one execution of the steps: the best of several runs, and the median.
fn measure(steps: Vec<Step>, arenas: &[Arena], trips: i64, workers: Option<usize>) -> (f64, f64) {
    // SAFETY: there are no kernels, and all collectives stand between barriers.
    let kernels = unsafe { Kernels::new(vec![]) };
    let options = RunOptions { workers, ..RunOptions::default() };
    let program = program(steps, arenas.to_vec(), trips);
    let mut session = Session::load(program, kernels, options).expect("the program is well formed");
    let mut run = || session.run(&mut std::io::sink()).expect("nothing can fail").run_ms * 1e3 / trips as f64;
    run();
    least_and_median((0..40).map(|_| run()))
}

/// Microseconds that all cores need to read and write this number of bytes in total, if each copies its part at the speed of a single core.
fn copying(bytes: u64) -> f64 {
    let cores = available_parallelism().map_or(1, usize::from);
    let part = (bytes as usize / 2 / cores).max(1);
    let (from, mut to) = (vec![1_u8; part], vec![0_u8; part]);
    let repeats = (1 << 20) / part + 1;
    let times = (0..40).map(|_| {
        let begin = Instant::now();
        (0..repeats).for_each(|_| to.copy_from_slice(black_box(&from)));
        begin.elapsed().as_secs_f64() * 1e6 / repeats as f64
    });
    least_and_median(times).0
}

fn line(name: &str, (best, median): (f64, f64), limit: Option<f64>) {
    let limit = limit.map_or(String::new(), |limit| format!("{limit:>12.3}{:>9.2}", best / limit));
    println!("{name:<40}{best:>12.3}{median:>12.3}{limit}");
}

/// Each kind of collective over an array with this number of elements.
fn collectives(elements: usize) {
    let (all, site) = (AxisSet::of(0), Site::default());
    // Enough for the start of a run, when threads wake up, not to count.
    let trips = (1 << 16) / elements.max(64) as i64 + 8;
    let bytes = (elements * 4) as u64;
    let devices = DEVICES as u64;
    let dim = |size: usize, axes: &[u8]| LayoutDim { size, axes: axes.to_vec() };
    let f32s = |dims: &[LayoutDim]| Layout { dtype: DType::F32, dims: dims.to_vec() };
    let (whole, split) = (f32s(&[dim(elements, &[])]), f32s(&[dim(elements, &[0])]));
    let (rows, columns) = (elements.min(DEVICES), (elements / DEVICES).max(1));
    let by_rows = f32s(&[dim(rows, &[0]), dim(columns, &[])]);
    let by_columns = f32s(&[dim(rows, &[]), dim(columns, &[0])]);
    let mesh = DeviceMesh::new(&[MeshAxis { name: "X".into(), size: DEVICES }]).expect("a small mesh");
    let stored = |layout: &Layout| 4 * mesh.stored_shape(layout).iter().product::<usize>() as u64;
    let block = stored(&split).max(stored(&by_rows)).max(stored(&by_columns));
    // Arena 0: a value for each device; 1: one that all share; 2 and 3: a block for each device; 4: as 0.
    let arena = |axes, bytes| Arena { axes, bytes };
    let arenas =
        [arena(all, bytes), arena(AxisSet::EMPTY, bytes), arena(all, block), arena(all, block), arena(all, bytes)];
    let place = |arena| Place { arena, offset: 0 };
    let shards = |arena, layout: &Layout| Shards { place: place(arena), layout: layout.clone() };
    let reduce = |kind, to| {
        let op = ReduceOp::Sum;
        Step::Reduce(ReduceStep {
            kind,
            op,
            group: all,
            reduce: all,
            from: shards(0, &whole),
            to,
            bytes,
            product: None,
            counts: true,
            site,
        })
    };
    let exchange =
        |kind, from, to| Step::Exchange(ExchangeStep { kind, group: all, from, to, bytes, counts: true, site });
    let source = (0..DEVICES as u32).map(|device| Some((device + 1) % DEVICES as u32)).collect();
    let permute = PermuteStep { axes: vec![0], source, from: place(0), to: place(4), bytes, site };
    // Every device's operand, or block, is read once, and what it gets is written once.
    let steps = [
        ("all_reduce, shared", reduce(CollectiveKind::AllReduce, shards(1, &whole)), devices + 1),
        ("all_reduce, a copy each", reduce(CollectiveKind::AllReduce, shards(4, &whole)), 2 * devices),
        ("reduce_scatter", reduce(CollectiveKind::ReduceScatter, shards(2, &split)), devices + 1),
        ("all_gather, shared", exchange(CollectiveKind::AllGather, shards(2, &split), shards(1, &whole)), 2),
        (
            "all_gather, a copy each",
            exchange(CollectiveKind::AllGather, shards(2, &split), shards(0, &whole)),
            devices + 1,
        ),
        ("all_to_all", exchange(CollectiveKind::AllToAll, shards(2, &by_rows), shards(3, &by_columns)), 2),
        ("collective_permute", Step::Permute(permute), 2 * devices),
    ];
    for (name, step, traffic) in &steps {
        // What is read has been written, and what is written was read.
        let steps = vec![barrier(), black_box(step.clone()), barrier()];
        let times = measure(steps, &arenas, trips, None);
        line(&format!("{name}, {elements} f32"), times, Some(copying(traffic * bytes)));
    }
}

fn main() {
    println!("{:<40}{:>12}{:>12}{:>12}{:>9}", "microseconds, 8 devices", "best", "median", "copying", "ratio");
    for workers in [Some(1), None] {
        let times = measure(vec![barrier()], &[], 2000, workers);
        line(&format!("barrier, {}", if workers.is_some() { "1 worker" } else { "all workers" }), times, None);
    }
    for elements in [1, 1 << 10, 1 << 18, 1 << 22] {
        collectives(elements);
    }
    let loads = (0..50).map(|_| {
        let start = Instant::now();
        // SAFETY: as in `measure`.
        let kernels = unsafe { Kernels::new(vec![]) };
        let program = program(vec![barrier()], vec![], 1);
        drop(Session::load(program, kernels, RunOptions::default()).expect("the program is well formed"));
        start.elapsed().as_secs_f64() * 1e6
    });
    line("load and drop", least_and_median(loads), None);
}
