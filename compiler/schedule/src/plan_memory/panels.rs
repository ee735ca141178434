//! Runs neighbouring kernels that exchange rows panel by panel.
//!
//! ```text
//! m = max over each row of x; e = exp(x - m); s = sum over each row of e; y = e / s
//!     =>    for 8 rows at a time: the four kernels for these rows
//! ```
//!
//! An array that exceeds the cache is then read once instead of four times. Results stay the same: each kernel computes the same
//! for every row, and a row that one kernel writes is read by the other kernels for the same row only.

use spmdc_abi::{GroupPanels, KernelStep, Step};
use spmdc_kernel::loops::{Access, Affine, Inst, Kernel};
use std::collections::BTreeSet;
use std::ops::Range;

/// Groups neighbouring kernels into panels of `panel` bytes, in loops and branches too.
pub fn group(steps: Vec<Step>, kernels: &[Kernel], panel: u64) -> Vec<Step> {
    let mut grouped = Vec::with_capacity(steps.len());
    let mut open = PanelGroup { kernels, panel, members: Vec::new(), posts: Vec::new() };
    for step in steps {
        let step = match step {
            Step::Kernel(step) => match open.admit(step) {
                None => continue,
                Some(other) => {
                    open.close(&mut grouped);
                    match open.admit(other) {
                        None => continue,
                        Some(alone) => Step::Kernel(alone),
                    }
                }
            },
            // Posting a barrier later than necessary is valid.
            post @ Step::Post { .. } if !open.members.is_empty() => {
                open.posts.push((open.members.len(), post));
                continue;
            }
            Step::For { counter, start, end, body, site } => {
                Step::For { counter, start, end, body: group(body, kernels, panel), site }
            }
            Step::While { cond, flag, body, site } => {
                Step::While { cond: group(cond, kernels, panel), flag, body: group(body, kernels, panel), site }
            }
            Step::If { flag, then, otherwise, site } => {
                Step::If { flag, then: group(then, kernels, panel), otherwise: group(otherwise, kernels, panel), site }
            }
            Step::GroupPanels(panels) => {
                Step::GroupPanels(GroupPanels { steps: group(panels.steps, kernels, panel), ..panels })
            }
            other @ (Step::Panels { .. }
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
        };
        open.close(&mut grouped);
        grouped.push(step);
    }
    open.close(&mut grouped);
    debug_assert!(open.members.is_empty() && open.posts.is_empty(), "a step is left over");
    grouped
}

/// Neighbouring kernels that may be run by panels.
struct PanelGroup<'a> {
    kernels: &'a [Kernel],
    /// Bytes of all rows of a panel.
    panel: u64,
    members: Vec<(KernelStep, Vec<BufferUse>)>,
    /// The posted barriers, each with the number of members before it.
    posts: Vec<(usize, Step)>,
}

/// How a kernel uses a buffer.
pub struct BufferUse {
    pub arena: u16,
    pub bytes: Range<u64>,
    pub written: bool,
    /// Bytes of one row, if unit `i` of the range uses the `i`-th row and no other byte.
    pub row: Option<u64>,
}

impl PanelGroup<'_> {
    /// Adds the kernel to the group; returns it if it cannot run by panels with the members.
    fn admit(&mut self, step: KernelStep) -> Option<KernelStep> {
        let kernel = &self.kernels[step.kernel as usize];
        if !kernel.range_dim || may_stop(kernel) {
            return Some(step);
        }
        let uses = uses(&step, kernel);
        let fits = self.members.iter().all(|(other, theirs)| {
            other.range == step.range
                && other.part == step.part
                && other.split == step.split
                && other.grain == step.grain
                && theirs.iter().all(|a| uses.iter().all(|b| !a.conflicts(b)))
        });
        if !fits {
            return Some(step);
        }
        self.members.push((step, uses));
        None
    }

    /// Ends the group.
    fn close(&mut self, steps: &mut Vec<Step>) {
        let (members, posts) = (std::mem::take(&mut self.members), std::mem::take(&mut self.posts));
        let Some((first, _)) = members.first() else { return };
        let units = self.kernels[first.kernel as usize].dims[0].extent.most();
        let row = row_bytes(members.iter().flat_map(|(_, uses)| uses));
        let is_large = row.saturating_mul(units) > 2 * self.panel;
        let kernels = members.into_iter().map(|(step, _)| step);
        if kernels.len() > 1 && is_large && units > 1 {
            steps.push(Step::Panels { kernels: kernels.collect(), panel: units_of(self.panel, row) });
            steps.extend(posts.into_iter().map(|(_, post)| post));
            return;
        }
        let mut posts = posts.into_iter().peekable();
        for (at, kernel) in kernels.enumerate() {
            steps.push(Step::Kernel(kernel));
            while let Some((_, post)) = posts.next_if(|(behind, _)| *behind == at + 1) {
                steps.push(post);
            }
        }
        debug_assert_eq!(posts.len(), 0, "a barrier is not posted");
    }
}

/// Bytes of one row of all buffers that these uses have rows of, each once.
pub fn row_bytes<'a>(uses: impl Iterator<Item = &'a BufferUse>) -> u64 {
    let rows: BTreeSet<(u16, u64, u64)> = uses.filter_map(BufferUse::rows).collect();
    rows.iter().map(|(_, _, bytes)| bytes).sum()
}

/// Units of the range in a panel of so many bytes, of which a unit takes `row`.
pub fn units_of(panel: u64, row: u64) -> u64 {
    debug_assert!(row > 0, "a panel has no rows");
    let units = (panel / row.max(1)).max(1);
    // Multiples of 64 units are whole vectors where the range itself is vectorised.
    if units >= 64 { units / 64 * 64 } else { units }
}

impl BufferUse {
    /// The arena and the beginning of the rows that units of the range use, and the bytes of one; None if they use other elements.
    pub fn rows(&self) -> Option<(u16, u64, u64)> {
        Some((self.arena, self.bytes.start, self.row?))
    }

    /// Whether one use may depend on the other in another unit of the range.
    pub fn conflicts(&self, other: &BufferUse) -> bool {
        let overlap = self.arena == other.arena
            && self.bytes.start < other.bytes.end
            && other.bytes.start < self.bytes.end
            && (self.written || other.written);
        overlap && (self.row.is_none() || self.row != other.row || self.bytes.start != other.bytes.start)
    }
}

/// Whether the kernel can stop the program. Errors are reported in the order of the program, which panels would change.
pub fn may_stop(kernel: &Kernel) -> bool {
    kernel.insts.iter().any(|inst| inst.check().is_some())
}

/// The uses of the buffers of a kernel, in their order.
pub fn uses(step: &KernelStep, kernel: &Kernel) -> Vec<BufferUse> {
    debug_assert_eq!(kernel.buffers.len(), step.buffers.len(), "a kernel gets as many buffers as it names");
    let slots = kernel.buffers.iter().zip(&step.buffers).enumerate();
    slots
        .map(|(number, (slot, place))| {
            let size = slot.dtype.size() as u64;
            let accesses = kernel.accesses().map(|(access, _)| access);
            let mut rows = accesses.filter(|access| access.buffer == number).map(|access| row(kernel, access));
            let first = rows.next().flatten();
            let alike = rows.all(|row| row == first);
            let scalar =
                kernel.insts.iter().any(|inst| matches!(inst, Inst::LoopInvariant { buffer, .. } if *buffer == number));
            BufferUse {
                arena: place.arena,
                bytes: place.offset..place.offset + slot.len as u64 * size,
                written: slot.written,
                row: first.filter(|_| alike && !scalar).map(|elements| elements * size),
            }
        })
        .collect()
}

/// Elements between the rows of neighbouring units of the range, if the access of each unit stays within its row.
fn row(kernel: &Kernel, access: &Access) -> Option<u64> {
    let Affine { terms, scalars, dynamic, constant } = &access.address;
    if !scalars.is_empty() || !dynamic.is_empty() {
        return None;
    }
    let (mut row, mut least, mut most) = (0, *constant, *constant);
    for &(dim, stride) in terms {
        if dim == 0 {
            row = stride;
            continue;
        }
        let length = kernel.dims[dim].extent.most();
        let reach = stride.checked_mul(i64::try_from(length.max(1) - 1).ok()?)?;
        least += reach.min(0);
        most += reach.max(0);
    }
    (least >= 0 && most < row).then_some(row as u64)
}
