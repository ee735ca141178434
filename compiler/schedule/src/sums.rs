//! Makes products part of the reductions that sum them over devices.
//!
//! ```text
//! g = all_reduce(x^T d), where x and d are split along the rows: each device has a product of its own rows
//!     =>    one step, in which a worker computes some rows of g for all devices, one after the other
//! ```
//!
//! Every device has a whole matrix of partial sums, so on `n` devices the products write `n` times the bytes of the result, and the reduction
//! reads as many. In one step the partial sums of a few rows stay in the cache. The elements have the same bits: the runtime adds the same
//! partial sums in the same order. It decides when a program is loaded; if devices are in different processes, or each has its own
//! worker, the product and the reduction run one after the other.

use crate::order::{Schedule, Task};
use crate::plan_memory::lifetimes::name_classes;
use crate::plan_memory::time::length;
use crate::uses::{Uses, any_list};
use spmdc_abi::ReduceOp;
use spmdc_ir::lower::work::{Product, Work};
use spmdc_ir::program::Func;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{AxisSet, DType, Type};

/// Maximum number of tasks between a product and its reduction: the operands live until then.
const MAX_DISTANCE: usize = 8;

/// Maximum length of the contracted dimension on a device. The partial sums of longer ones take little time beside the product.
const MAX_DEPTH: f64 = 512.0;

/// Joins products with their reductions, in loops and branches too.
pub fn join_sums(schedule: Schedule, func: &Func, mesh: &Mesh) -> Schedule {
    let has_sums = |tasks: &[Task]| tasks.iter().any(|task| matches!(task, Task::Work(Work::Reduce { .. })));
    if !any_list(&schedule.tasks, &has_sums) {
        return schedule;
    }
    let classes = name_classes(&schedule);
    let uses = Uses::new(&schedule, func, &classes);
    let Schedule { tasks, types, constants } = schedule;
    let joiner = Joiner { mesh, classes, uses, types: &types, several: mesh.several() };
    let tasks = joiner.list(tasks);
    Schedule { tasks, types, constants }
}

struct Joiner<'a> {
    mesh: &'a Mesh,
    /// For each value its class: values of one class have the same bytes.
    classes: Vec<usize>,
    uses: Uses,
    types: &'a [Type],
    several: AxisSet,
}

impl Joiner<'_> {
    fn list(&self, tasks: Vec<Task>) -> Vec<Task> {
        let mut done: Vec<Option<Task>> = Vec::with_capacity(tasks.len());
        for mut task in tasks {
            if let Task::Work(work @ Work::Reduce { .. }) = &mut task {
                self.join(work, &mut done);
            }
            done.push(Some(task.map_blocks(&mut |inner| self.list(inner))));
        }
        done.into_iter().flatten().collect()
    }

    /// Takes the product of a reduction from the tasks before it.
    fn join(&self, reduction: &mut Work, before: &mut [Option<Task>]) {
        let Work::Reduce { op, group, reduce, from, to, product: joined, .. } = reduction else { return };
        let is_whole = *op == ReduceOp::Sum
            && !reduce.intersect(self.several).is_empty()
            && reduce.intersect(self.several) == group.intersect(self.several)
            && from.layout == to.layout;
        if !is_whole {
            return;
        }
        let known = before.iter().rev().take(MAX_DISTANCE).position(|task| match task {
            Some(Task::Work(Work::Product { product, .. })) => product.c == from.value && self.fits(product),
            Some(_) | None => false,
        });
        let Some(distance) = known else { return };
        let at = before.len() - 1 - distance;
        if let Some(Task::Work(Work::Product { product, .. })) = before[at].take() {
            debug_assert!(joined.is_none(), "a reduction has one product");
            *joined = Some(Box::new(product));
        }
    }

    /// Whether a product is large, and has a single use.
    fn fits(&self, product: &Product) -> bool {
        let class = self.classes[product.c.0 as usize];
        let bytes = self.types[product.c.0 as usize].block_bytes(self.mesh) as u64;
        matches!(product.dtype, DType::F32 | DType::F64)
            && (self.uses.of[class], self.uses.writes[class]) == (2, 1)
            && bytes >= self.mesh.machine.summed_bytes
            && product.ring.is_none()
            && product.contracted.is_empty()
            && length(&product.k.extent, self.mesh) <= MAX_DEPTH
    }
}
