//! The estimated time of a run, by the work of its steps and the bytes of its collectives.

use super::step_time::TimedProgram;
use crate::hosts::HostOptions;
use crate::totals::Collective;
use spmdc_abi::mesh::DeviceMesh;
use spmdc_abi::{Bound, CollectiveKind, Program, Step};
use spmdc_layout::cost::{Levels, of_barrier, of_combining, trips};

/// The estimated nanoseconds of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RunTime {
    /// Of a device's own work.
    pub work: f64,
    /// Of collectives.
    pub communication: f64,
}

impl RunTime {
    /// All of it: a device does not work while it communicates.
    pub fn total(self) -> f64 {
        self.work + self.communication
    }
}

/// The time of a run of a program with one mesh, on the first device of the mesh, whose blocks are the largest. Loops with unknown bounds have the assumed trip count,
/// and the longer side of a branch counts.
///
/// Devices of one host have common memory, in which they divide the work on a replicated value. Without known hosts each device has a host
/// of its own. A collective costs the bytes that a device receives, the wait for the others, and the messages between hosts.
pub fn run_time(program: &Program, collectives: &[Collective], hosts: Option<HostOptions>) -> RunTime {
    debug_assert!(program.mesh_programs.is_empty(), "the meshes of a program wait for each other");
    let levels = hosts.map_or(Levels::DEFAULT, |hosts| hosts.levels);
    let layouts = HostOptions::on_parts(hosts, program);
    let mesh = DeviceMesh::new(&program.mesh).expect("the compiler makes meshes that the runtime takes");
    let processes = hosts.map_or(mesh.devices(), |hosts| hosts.count);
    let mesh = mesh.assigned(processes).unwrap_or(mesh);
    let work = layouts.iter().map(|layouts| of_steps(&program.body, TimedProgram { program, mesh: &mesh, layouts }));
    let moved = collectives.iter().map(|each| {
        let copies = each.received as f64 * 1e9 / levels.inside.bytes_per_second as f64;
        let elements = each.received as f64 / each.dtype.size().max(1) as f64;
        let combined = match each.kind {
            CollectiveKind::ReduceScatter => elements,
            // Half of the elements are parts of the sum that another device has made.
            CollectiveKind::AllReduce => elements / 2.0,
            CollectiveKind::AllGather
            | CollectiveKind::AllToAll
            | CollectiveKind::CollectivePermute
            | CollectiveKind::Transfer => 0.0,
        };
        let inside = copies + of_combining(combined) + of_barrier(each.group_size);
        each.assumed_trips as f64 * (inside + levels.time_between(each.crossing))
    });
    RunTime { work: work.sum(), communication: moved.sum() }
}

fn of_steps(steps: &[Step], timed: TimedProgram<'_>) -> f64 {
    let of_step = |step: &Step| match step {
        Step::For { start, end, body, .. } => trips(Bound::trips(start, end)) as f64 * of_steps(body, timed),
        Step::While { cond, body, .. } => trips(None) as f64 * (of_steps(cond, timed) + of_steps(body, timed)),
        Step::If { then, otherwise, .. } => of_steps(then, timed).max(of_steps(otherwise, timed)),
        Step::Library(_)
        | Step::Kernel(_)
        | Step::Panels { .. }
        | Step::GroupPanels(_)
        | Step::Tiles(_)
        | Step::Gemm(_)
        | Step::Exchange(_)
        | Step::Reduce(_)
        | Step::Permute(_)
        | Step::Fetch(_)
        | Step::Sync { .. }
        | Step::Post { .. }
        | Step::Await { .. }
        | Step::Copy { .. }
        | Step::CheckIndex { .. }
        | Step::Print { .. } => timed.of_work(step),
    };
    steps.iter().map(of_step).sum()
}
