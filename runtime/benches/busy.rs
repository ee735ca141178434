//! The cost of small collectives while another process keeps a core busy, compared with their cost on idle cores.
//!
//! `cargo bench --workspace --bench busy`. Fails if the busy process makes them more than three times as slow. Both are measured in turns,
//! so that other load on the machine affects both. Short runs are shown but cannot fail: the first worker waits once in each run until the
//! system has given every other thread a processor.

use std::process::{Child, Command, Stdio};
use std::thread::{available_parallelism, sleep};
use std::time::Duration;

use spmdc_abi::*;
use spmdc_runtime::run::report::RunOptions;
use spmdc_runtime::run::session::Session;

/// How much slower the busy process may make it.
const MOST: f64 = 3.0;

const ROUNDS: usize = 15;

/// A process that uses all of the time it gets. It is gone when this is dropped.
struct Busy(Child);

impl Busy {
    fn start() -> Busy {
        let command = std::env::current_exe().expect("this program has a file");
        let process = Command::new(command).arg("--spin").stdout(Stdio::null()).spawn();
        let busy = Busy(process.expect("a process can be started"));
        sleep(Duration::from_millis(50));
        busy
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// This number of all-reduces of one number over this number of devices.
fn session(devices: usize, trips: i64, workers: Option<usize>) -> Session {
    let (all, site) = (AxisSet::of(0), Site::default());
    let dim = LayoutDim { size: 1, axes: Vec::new() };
    let layout = Layout { dtype: DType::F32, dims: vec![dim] };
    let shards = |arena| Shards { place: Place { arena, offset: 0 }, layout: layout.clone() };
    let barrier = || Step::Sync { group: all, kind: None, site };
    let reduce = Step::Reduce(ReduceStep {
        kind: CollectiveKind::AllReduce,
        op: ReduceOp::Sum,
        group: all,
        reduce: all,
        from: shards(0),
        to: shards(1),
        bytes: 4,
        product: None,
        counts: true,
        site,
    });
    let arena = |axes| Arena { axes, bytes: 64 };
    let counter = Place { arena: 2, offset: 0 };
    let body = vec![barrier(), reduce, barrier()];
    let program = Program {
        abi_version: ABI_VERSION,
        entry: "main".into(),
        files: vec![],
        mesh: vec![MeshAxis { name: "X".into(), size: devices }],
        arenas: vec![arena(all), arena(AxisSet::EMPTY), arena(all)],
        buffers: vec![],
        params: vec![],
        results: vec![],
        constants: vec![],
        body: vec![Step::For { counter, start: Bound::Const(0), end: Bound::Const(trips), body, site }],
        kernels: vec![],
        fingerprint: 0,
        compile_ms: 0.0,
        mesh_programs: Vec::new(),
        devices: Vec::new(),
        channels: Vec::new(),
    };
    // SAFETY: there are no kernels, and every collective stands between barriers.
    let kernels = unsafe { Kernels::new(vec![]) };
    Session::load(program, kernels, RunOptions { workers, ..RunOptions::default() }).expect("it is well formed")
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    if std::env::args().any(|word| word == "--spin") {
        // Ends by itself if nobody ends it.
        let begin = std::time::Instant::now();
        while begin.elapsed() < Duration::from_secs(60) {
            (0..1 << 20).for_each(|_| std::hint::spin_loop());
        }
        return;
    }
    let cores = available_parallelism().map_or(1, usize::from);
    println!("milliseconds, {cores} cores, median of {ROUNDS}");
    println!("{:<44}{:>10}{:>10}{:>10}{:>8}", "all-reduces of one number", "1 worker", "idle", "busy", "ratio");
    let mut is_slow = false;
    for (devices, trips, is_held) in
        [(8, 20_000, true), (2, 50_000, true), (32, 5000, true), (8, 4000, false), (8, 200, false)]
    {
        let (mut lone, mut all) = (session(devices, trips, Some(1)), session(devices, trips, None));
        let run = |session: &mut Session| session.run(&mut std::io::sink()).expect("nothing can fail").run_ms;
        run(&mut lone);
        run(&mut all);
        let mut times: [Vec<f64>; 3] = Default::default();
        for _ in 0..ROUNDS {
            // Several runs each, of which the scheduler treats the first differently.
            times[0].push(run(&mut lone));
            times[1].extend((0..5).map(|_| run(&mut all)));
            let busy = Busy::start();
            times[2].extend((0..5).map(|_| run(&mut all)));
            drop(busy);
        }
        let [lone, idle, busy] = times.map(|mut times| median(&mut times));
        let name = format!("{trips} over {devices} devices");
        println!("{name:<44}{lone:>10.3}{idle:>10.3}{busy:>10.3}{:>8.2}", busy / idle);
        is_slow |= is_held && busy > MOST * idle;
    }
    if is_slow {
        eprintln!("a busy process makes small collectives more than {MOST} times as slow");
        std::process::exit(1);
    }
}
