//! Runs neighbouring kernels and the reductions between them panel by panel, for all devices of a group together.
//!
//! ```text
//! m = max over each row of x, which is split over Y; e = exp(x - m); s = sum over each row of e; y = e / s
//!     =>    the devices along Y divide the rows, and for a few rows at a time:
//!           maxima on every device, all_reduce, exponentials and sums on every device, all_reduce, quotients on every device
//! ```
//!
//! Every element is computed by the same kernels and combined in the same order as before, only by another device: so the bits are the
//! same. An array that exceeds the cache is read once instead of three times, and the devices wait for each other twice.

use super::panels::{BufferUse, UsedRows, may_stop, row_bytes, units_of, uses};
use spmdc_abi::mesh::DeviceMesh;
use spmdc_abi::{Arena, AxisSet, CollectiveKind, GroupPanels, KernelStep, ReduceStep, Scalar, Shards, Site, Step};
use spmdc_kernel::loops::Kernel;
use std::collections::BTreeMap;

/// Maximum number of steps that are considered together, so that the search takes linear time.
const MAX_STEPS: usize = 32;
/// Minimum number of grains of the range for each device that divides it: their shares then differ by a third at most.
const GRAINS: u64 = 3;

/// The program around the steps.
pub struct Surroundings<'a> {
    pub kernels: &'a [Kernel],
    pub arenas: &'a [Arena],
    pub mesh: DeviceMesh,
    /// Bytes of all rows of a panel.
    pub panel: u64,
}

/// Steps from a first one on that can run by panels.
struct PanelRun {
    /// The number of steps.
    len: usize,
    panels: GroupPanels,
    /// Barriers that are posted within and awaited behind.
    posts: Vec<Step>,
    /// The collective that comes first, and its place in the source.
    first: (CollectiveKind, Site),
    /// Bytes of a row that is found in the cache again.
    saved: u64,
}

impl Surroundings<'_> {
    /// Groups steps that gain from it, in loops and branches too.
    pub fn group(&self, steps: Vec<Step>) -> Vec<Step> {
        let inner = steps.into_iter().map(|step| match step {
            Step::For { counter, start, end, body, site } => {
                Step::For { counter, start, end, body: self.group(body), site }
            }
            Step::While { cond, flag, body, site } => {
                Step::While { cond: self.group(cond), flag, body: self.group(body), site }
            }
            Step::If { flag, then, otherwise, site } => {
                Step::If { flag, then: self.group(then), otherwise: self.group(otherwise), site }
            }
            other @ (Step::Kernel(_)
            | Step::Panels { .. }
            | Step::GroupPanels(_)
            | Step::Tiles(_)
            | Step::Gemm(_)
            | Step::Library(_)
            | Step::Exchange(_)
            | Step::Reduce(_)
            | Step::Permute(_)
            | Step::Fetch(_)
            | Step::Sync { .. }
            | Step::Post { .. }
            | Step::Await { .. }
            | Step::Copy { .. }
            | Step::CheckIndex { .. }
            | Step::Print { .. }) => other,
        });
        let steps: Vec<Step> = inner.collect();
        let mut grouped: Vec<Step> = Vec::with_capacity(steps.len());
        let mut at = 0;
        while at < steps.len() {
            let Some(reduction) = steps[at..].iter().position(|step| matches!(step, Step::Reduce(_))) else { break };
            let behind = at + reduction;
            let starts = at.max(behind.saturating_sub(MAX_STEPS))..behind;
            let runs = starts.filter_map(|start| Some((start, self.run(&steps[start..], behind - start)?)));
            // Of equal ones the first, which is the longest.
            let best = runs.reduce(|best, other| if other.1.saved > best.1.saved { other } else { best });
            let Some((start, run)) = best else {
                grouped.extend_from_slice(&steps[at..=behind]);
                at = behind + 1;
                continue;
            };
            grouped.extend_from_slice(&steps[at..start]);
            let (group, (kind, site)) = (run.panels.dividing(), run.first);
            push_barrier(&mut grouped, Step::Sync { group, kind: Some(kind), site });
            grouped.push(Step::GroupPanels(run.panels));
            push_barrier(&mut grouped, Step::Sync { group, kind: Some(kind), site });
            grouped.extend(run.posts);
            debug_assert!(start + run.len > behind, "panels contain the reduction");
            at = start + run.len;
            // The barrier behind may be the same once more.
            if let Some(Step::Sync { group: next, .. }) = steps.get(at)
                && next.is_subset_of(group)
            {
                at += 1;
            }
        }
        grouped.extend_from_slice(&steps[at.min(steps.len())..]);
        grouped
    }

    /// The steps from the first one on that run by panels, if that saves anything; `reduction` is the index of the first reduction.
    fn run(&self, steps: &[Step], reduction: usize) -> Option<PanelRun> {
        debug_assert!(matches!(steps[reduction], Step::Reduce(_)), "step {reduction} is no reduction");
        let several = self.mesh.axes();
        let (Step::Kernel(first), Step::Reduce(reduce)) = (steps.first()?, &steps[reduction]) else { return None };
        let group = reduce.reduce.intersect(several);
        let split = first.split.intersect(several).minus(group);
        let dividing = group.union(split);
        debug_assert!(group.intersect(split).is_empty(), "devices of a group have memory of their own");
        let kernel = &self.kernels[first.kernel as usize];
        let (units, devices) = (kernel.dims.first()?.extent.most(), self.mesh.count(dividing.iter()) as u64);
        if group.is_empty() || units < GRAINS.saturating_mul(devices) {
            return None;
        }
        // The uses of each step, with the number of reductions before it.
        let mut members: Vec<(usize, Vec<BufferUse>)> = Vec::new();
        let (mut posted, mut reductions) = (Vec::new(), 0);
        // The numbers of steps and of uses up to the last kernel.
        let (mut len, mut used) = (0, 0);
        for (at, step) in steps.iter().enumerate().take(MAX_STEPS) {
            let uses = match step {
                Step::Kernel(kernel) => self.kernel(kernel, first, (group, split)),
                Step::Reduce(reduce) => self.reduction(reduce, &first.range, (group, split)),
                Step::Sync { group, .. } if group.intersect(several).is_subset_of(dividing) => continue,
                Step::Post { group, .. } => {
                    posted.push(*group);
                    continue;
                }
                // A barrier that is posted within.
                Step::Await { group, .. } if group.intersect(several).is_subset_of(dividing) => {
                    match posted.iter().position(|posted| posted == group) {
                        Some(at) => drop(posted.remove(at)),
                        None => break,
                    }
                    continue;
                }
                Step::Sync { .. }
                | Step::Await { .. }
                | Step::Panels { .. }
                | Step::GroupPanels(_)
                | Step::Tiles(_)
                | Step::Gemm(_)
                | Step::Library(_)
                | Step::Exchange(_)
                | Step::Permute(_)
                | Step::Fetch(_)
                | Step::Copy { .. }
                | Step::CheckIndex { .. }
                | Step::For { .. }
                | Step::While { .. }
                | Step::If { .. }
                | Step::Print { .. } => break,
            };
            let Some(uses) = uses else { break };
            if members.iter().flat_map(|(_, theirs)| theirs).any(|a| uses.iter().any(|b| a.conflicts(b))) {
                break;
            }
            members.push((reductions, uses));
            if let Step::Kernel(_) = step {
                (len, used) = (at + 1, members.len());
            }
            reductions += usize::from(matches!(step, Step::Reduce(_)));
        }
        debug_assert!(len <= steps.len() && used <= members.len(), "uses are those of steps");
        members.truncate(used);
        let saved = saved(&members);
        if saved.saturating_mul(units) <= 2 * self.panel || !self.mesh.is_equal_along(&first.range, dividing) {
            return None;
        }
        let (panels, posts) = self.panels(&steps[..len], (group, split), &members)?;
        let is_divisible = units / u64::from(panels.grain) >= GRAINS.saturating_mul(devices);
        is_divisible.then_some(PanelRun { len, panels, posts, first: (reduce.kind, reduce.site), saved })
    }

    /// The uses of a kernel's buffers, if it fits to the first one.
    fn kernel(&self, step: &KernelStep, first: &KernelStep, axes: (AxisSet, AxisSet)) -> Option<Vec<BufferUse>> {
        let kernel = &self.kernels[step.kernel as usize];
        let fits = kernel.range_dim && !may_stop(kernel) && step.part.is_none() && step.range == first.range;
        (fits && self.shares(step.split, axes)).then(|| uses(step, kernel))
    }

    /// The uses of both sides of a reduction, if each unit of the range has separate elements.
    fn reduction(
        &self,
        step: &ReduceStep,
        range: &Scalar,
        (group, split): (AxisSet, AxisSet),
    ) -> Option<Vec<BufferUse>> {
        let several = self.mesh.axes();
        let ReduceStep { from, to, .. } = step;
        let sharing = several.minus(self.arenas[to.place.arena as usize].axes);
        let fits = step.product.is_none()
            && step.reduce.intersect(several) == group
            && step.group.intersect(several) == group
            && from.layout == to.layout
            && self.shares(sharing, (group, split));
        if !fits {
            return None;
        }
        let row = self.mesh.unit_bytes(&from.layout, range)?;
        let elements: usize = self.mesh.stored_shape(&from.layout).iter().product();
        let bytes = (elements * from.layout.dtype.size()) as u64;
        let side = |side: &Shards, written| BufferUse {
            arena: side.place.arena,
            bytes: side.place.offset..side.place.offset + bytes,
            written,
            rows: Some(UsedRows::own(row)),
        };
        Some(vec![side(from, false), side(to, true)])
    }

    /// Whether devices along these axes share the memory that a step writes: the axes of `split`, and any axes of the group.
    fn shares(&self, axes: AxisSet, (group, split): (AxisSet, AxisSet)) -> bool {
        axes.intersect(self.mesh.axes()).minus(group) == split
    }

    /// The panels of these steps, and the barriers that are posted there and awaited elsewhere. None without a kernel.
    fn panels(
        &self,
        steps: &[Step],
        (group, split): (AxisSet, AxisSet),
        members: &[(usize, Vec<BufferUse>)],
    ) -> Option<(GroupPanels, Vec<Step>)> {
        let devices = self.mesh.count(group.iter()) as u64;
        let row = row_bytes(members.iter().flat_map(|(_, uses)| uses)).saturating_mul(devices);
        let panel = units_of(self.panel, row);
        let (mut inner, mut posts) = (Vec::new(), Vec::new());
        for (at, step) in steps.iter().enumerate() {
            let is_awaited = |group: AxisSet| {
                steps[at..].iter().any(|step| matches!(step, Step::Await { group: awaited, .. } if *awaited == group))
            };
            let is_left = matches!(step, Step::Post { group, .. } if !is_awaited(*group));
            if is_left { posts.push(step.clone()) } else { inner.push(step.clone()) }
        }
        debug_assert_eq!(inner.len() + posts.len(), steps.len(), "a step is left over");
        let grain = inner.iter().flat_map(Step::kernels).map(|kernel| kernel.grain).max()?;
        Some((GroupPanels { group, split, steps: inner, panel, grain }, posts))
    }
}

/// Adds a barrier unless the same devices have just waited for each other.
fn push_barrier(steps: &mut Vec<Step>, barrier: Step) {
    debug_assert!(matches!(barrier, Step::Sync { .. }), "devices wait around panels");
    let is_same = matches!(
        (steps.last(), &barrier),
        (Some(Step::Sync { group: last, .. }), Step::Sync { group, .. }) if last == group
    );
    if !is_same {
        steps.push(barrier);
    }
}

/// Bytes of the rows that steps on both sides of a reduction use.
fn saved(members: &[(usize, Vec<BufferUse>)]) -> u64 {
    let mut seen: BTreeMap<(u16, u64, u64), (usize, usize)> = BTreeMap::new();
    for (before, uses) in members {
        for row in uses.iter().filter_map(BufferUse::rows) {
            let (_, last) = seen.entry(row).or_insert((*before, *before));
            *last = *before;
        }
    }
    seen.iter().filter(|(_, (first, last))| first != last).map(|((_, _, bytes), _)| bytes).sum()
}
