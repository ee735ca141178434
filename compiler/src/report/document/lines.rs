//! The costs of each source line.

use super::{Place, rounded};
use crate::pipeline::Compilation;
use crate::report::step_time::TimedProgram;
use crate::totals::{bytes_by_span, collectives, flops_by_span};
use serde::Serialize;
use spmdc_abi::mesh::DeviceMesh;
use spmdc_abi::{Bound, Program, Site, Step};
use spmdc_grammar::span::Span;
use spmdc_ir::program::{Module, Value};
use spmdc_layout::cost::reported_trips;
use std::collections::BTreeMap;

/// The costs of a line on one device, over the whole run.
#[derive(Debug, Default, Serialize)]
pub struct LineCost {
    /// The number of the file, and the line, from 1.
    file: usize,
    line: usize,
    operations: u64,
    /// Maximum bytes that any device receives.
    received: u64,
    /// Bytes of arrays in memory that the line's operations read and write.
    touched: u64,
    /// The estimated time in nanoseconds.
    estimate_ns: f64,
}

/// The lines that cost anything, in order.
pub fn line_costs(
    compilation: &Compilation,
    program: &Program,
    module: &Module,
    place: &dyn Fn(Span) -> Place,
) -> Vec<LineCost> {
    let mut lines: BTreeMap<(usize, usize), LineCost> = BTreeMap::new();
    for (span, operations) in flops_by_span(module) {
        let (file, line, _) = place(span);
        let cost = lines.entry((file, line)).or_default();
        cost.operations = cost.operations.saturating_add(operations);
    }
    let is_stored = |value: Value| matches!(compilation.buffer_of.get(value.0 as usize), Some(Some(_)));
    for (span, bytes) in bytes_by_span(module, &is_stored) {
        let (file, line, _) = place(span);
        let cost = lines.entry((file, line)).or_default();
        cost.touched = cost.touched.saturating_add(bytes);
    }
    for collective in collectives(module) {
        let (file, line, _) = place(collective.span);
        let received = collective.received.saturating_mul(reported_trips(collective.trips));
        let cost = lines.entry((file, line)).or_default();
        cost.received = cost.received.saturating_add(received);
    }
    let mesh = DeviceMesh::new(&program.mesh).expect("the compiler makes meshes that the runtime takes");
    let timed = TimedProgram { program, mesh: &mesh, layouts: &module.mesh };
    add_times(&program.body, timed, 1.0, &mut |site, nanoseconds| {
        lines.entry((site.file as usize, site.line as usize)).or_default().estimate_ns += nanoseconds;
    });
    lines.retain(|(_, line), cost| *line > 0 && (cost.operations > 0 || cost.received > 0 || cost.estimate_ns > 0.0));
    let named = lines.into_iter().map(|((file, line), cost)| LineCost {
        file,
        line,
        estimate_ns: rounded(cost.estimate_ns),
        ..cost
    });
    named.collect()
}

/// The estimated times of steps that run so many times.
fn add_times(steps: &[Step], timed: TimedProgram<'_>, times: f64, add: &mut dyn FnMut(Site, f64)) {
    for step in steps {
        match step {
            Step::For { start, end, body, .. } => {
                let trips = Bound::trips(start, end);
                add_times(body, timed, times * reported_trips(trips) as f64, add);
            }
            Step::While { cond, body, .. } => {
                let times = times * reported_trips(None) as f64;
                add_times(cond, timed, times, add);
                add_times(body, timed, times, add);
            }
            Step::If { then, otherwise, .. } => {
                add_times(then, timed, times, add);
                add_times(otherwise, timed, times, add);
            }
            Step::Panels { kernels, .. } => {
                kernels
                    .iter()
                    .for_each(|kernel| add(kernel.site, timed.of_step(&Step::Kernel(kernel.clone())) * times));
            }
            Step::GroupPanels(panels) => add_times(&panels.steps, timed, times, add),
            Step::Kernel(_)
            | Step::Library(_)
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
            | Step::Print { .. } => add(step.site(), timed.of_step(step) * times),
        }
    }
}
