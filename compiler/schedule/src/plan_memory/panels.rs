//! Runs neighbouring kernels that exchange rows panel by panel.
//!
//! ```text
//! m = max over each row of x; e = exp(x - m); s = sum over each row of e; y = e / s
//!     =>    for 8 rows at a time: the four kernels for these rows
//! ```
//!
//! An array that exceeds the cache is then read once instead of four times. Results stay the same: each kernel computes the same
//! for every row, and a row that one kernel writes is read by the other kernels for the same row only.
//!
//! A kernel that also reads neighbouring rows runs with a lag of as many rows:
//!
//! ```text
//! v[i] = u[i-1] + u[i] + u[i+1]; u[i] = v[i-1] + v[i] + v[i+1]
//!     =>    for 8 rows at a time: the first kernel for rows 8p up to 8p + 7, the second one for rows 8p - 1 up to 8p + 6
//! ```

use spmdc_abi::{GroupPanels, KernelStep, Step};
use spmdc_kernel::loops::{Access, Affine, Inst, Kernel};
use spmdc_kernel::machine::Machine;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Groups neighbouring kernels into panels, in loops and branches too.
pub fn group(steps: Vec<Step>, kernels: &[Kernel], machine: &Machine) -> Vec<Step> {
    let mut grouped = Vec::with_capacity(steps.len());
    let mut open = PanelGroup { kernels, machine, members: Vec::new(), posts: Vec::new() };
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
                Step::For { counter, start, end, body: group(body, kernels, machine), site }
            }
            Step::While { cond, flag, body, site } => {
                Step::While { cond: group(cond, kernels, machine), flag, body: group(body, kernels, machine), site }
            }
            Step::If { flag, then, otherwise, site } => Step::If {
                flag,
                then: group(then, kernels, machine),
                otherwise: group(otherwise, kernels, machine),
                site,
            },
            Step::GroupPanels(panels) => {
                Step::GroupPanels(GroupPanels { steps: group(panels.steps, kernels, machine), ..panels })
            }
            other @ (Step::Panels { .. }
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
    machine: &'a Machine,
    members: Vec<PanelMember>,
    /// The posted barriers, each with the number of members before it.
    posts: Vec<(usize, Step)>,
}

/// A kernel of a group.
struct PanelMember {
    step: KernelStep,
    uses: Vec<BufferUse>,
    /// The units of the range by which it stays behind.
    lag: u64,
}

/// How a kernel uses a buffer.
pub struct BufferUse {
    pub arena: u16,
    pub bytes: Range<u64>,
    pub written: bool,
    /// The rows that each unit of the range uses; None if it uses other elements.
    pub rows: Option<UsedRows>,
}

/// Unit `i` of a range uses rows `i + first` up to `i + last` and no other byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsedRows {
    /// Bytes from one row to the next.
    pub bytes: u64,
    pub first: i64,
    pub last: i64,
}

impl UsedRows {
    /// Unit `i` uses the `i`-th row.
    pub fn own(bytes: u64) -> UsedRows {
        UsedRows { bytes, first: 0, last: 0 }
    }
}

impl PanelGroup<'_> {
    /// Adds the kernel to the group; returns it if it cannot run by panels with the members.
    fn admit(&mut self, step: KernelStep) -> Option<KernelStep> {
        let kernel = &self.kernels[step.kernel as usize];
        if !kernel.range_dim || may_stop(kernel) {
            return Some(step);
        }
        let uses = uses(&step, kernel);
        let others = || self.members.iter().map(|member| &member.step);
        let is_alike = others().all(|other| other.range == step.range && other.part == step.part);
        // Devices that divide a range, or a team, divide one of all kernels. Lags say that panels have an order instead.
        let is_whole = others().all(|other| other.part.is_none() && step.part.is_none() && other.split.is_empty());
        let Some(lag) = self.lag(&uses).map(|lag| if is_alike { lag } else { lag.max(1) }) else { return Some(step) };
        if others().any(|other| other.split != step.split || other.grain != step.grain) || lag > 0 && !is_whole {
            return Some(step);
        }
        self.members.push(PanelMember { step, uses, lag });
        None
    }

    /// The lag of a kernel with these uses after the members, in units; None if it cannot run by panels with them.
    fn lag(&self, uses: &[BufferUse]) -> Option<u64> {
        let mut lag = 0;
        for member in &self.members {
            for (theirs, own) in member.uses.iter().flat_map(|theirs| uses.iter().map(move |own| (theirs, own))) {
                if theirs.conflicts(own) {
                    lag = lag.max(1);
                }
                if theirs.depends(own) {
                    lag = lag.max(member.lag.saturating_add_signed(own.behind(theirs)?));
                }
            }
        }
        let all = self.members.iter().map(|member| (member.lag, &member.uses[..])).chain([(lag, uses)]);
        (lag == 0 || bytes_between(all) <= self.machine.lagging_bytes).then_some(lag)
    }

    /// Ends the group.
    fn close(&mut self, steps: &mut Vec<Step>) {
        let (members, posts) = (std::mem::take(&mut self.members), std::mem::take(&mut self.posts));
        let most = |member: &PanelMember| self.kernels[member.step.kernel as usize].dims[0].extent.most();
        let units = members.iter().map(most).max().unwrap_or(0);
        let row = row_bytes(members.iter().flat_map(|member| &member.uses));
        let is_large = row.saturating_mul(units) > 2 * self.machine.panel_bytes;
        if members.len() > 1 && is_large && units > 1 {
            let is_lagging = members.iter().any(|member| member.lag > 0);
            let between = bytes_between(members.iter().map(|member| (member.lag, &member.uses[..])));
            let bytes =
                if is_lagging { self.machine.lagging_bytes.saturating_sub(between) } else { self.machine.panel_bytes };
            let lags = members.iter().map(|member| member.lag).collect();
            let kernels = members.into_iter().map(|member| member.step).collect();
            steps.push(Step::Panels { kernels, lags, panel: units_of(bytes, row) });
            steps.extend(posts.into_iter().map(|(_, post)| post));
            return;
        }
        let kernels = members.into_iter().map(|member| member.step);
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

/// Bytes of the rows that kernels with these lags use again after some panels: of each buffer those between the first and the last row in use
/// at a time.
fn bytes_between<'a>(members: impl Iterator<Item = (u64, &'a [BufferUse])>) -> u64 {
    let mut reach: BTreeMap<(u16, u64, u64), (i64, i64)> = BTreeMap::new();
    for (lag, uses) in members {
        for (used, rows) in uses.iter().filter_map(|used| Some((used, used.rows?))) {
            let (first, last) = reach.entry((used.arena, used.bytes.start, rows.bytes)).or_insert((i64::MAX, i64::MIN));
            *first = (*first).min(rows.first.saturating_sub_unsigned(lag));
            *last = (*last).max(rows.last.saturating_sub_unsigned(lag));
        }
    }
    reach.iter().map(|(&(_, _, bytes), (first, last))| last.abs_diff(*first).saturating_mul(bytes)).sum()
}

/// Bytes of one row of all buffers that these uses have rows of, each once.
pub fn row_bytes<'a>(uses: impl Iterator<Item = &'a BufferUse>) -> u64 {
    let rows: BTreeSet<(u16, u64, u64)> = uses.filter_map(BufferUse::rows).collect();
    rows.iter().map(|(_, _, bytes)| bytes).sum()
}

/// Units of the range in a panel of this number of bytes, if a unit takes `row`.
pub fn units_of(panel: u64, row: u64) -> u64 {
    debug_assert!(row > 0, "a panel has no rows");
    let units = (panel / row.max(1)).max(1);
    // Multiples of 64 units are whole vectors where the range itself is vectorised.
    if units >= 64 { units / 64 * 64 } else { units }
}

impl BufferUse {
    /// The arena and the beginning of the rows that units of the range use, and the bytes of one; None if they use other elements.
    pub fn rows(&self) -> Option<(u16, u64, u64)> {
        Some((self.arena, self.bytes.start, self.rows?.bytes))
    }

    /// Whether one use may depend on the other: they have bytes in common, and one writes them.
    fn depends(&self, other: &BufferUse) -> bool {
        self.arena == other.arena
            && self.bytes.start < other.bytes.end
            && other.bytes.start < self.bytes.end
            && (self.written || other.written)
    }

    /// Whether one use may depend on the other in another unit of the range.
    pub fn conflicts(&self, other: &BufferUse) -> bool {
        let is_own = self.rows.is_some_and(|rows| rows.first == rows.last);
        self.depends(other) && !(is_own && self.rows == other.rows && self.bytes.start == other.bytes.start)
    }

    /// The minimum lag of this use after an earlier use of bytes of the same arena, in units; negative if it may come before it. None if
    /// any unit may depend on any other.
    fn behind(&self, earlier: &BufferUse) -> Option<i64> {
        debug_assert_eq!(self.arena, earlier.arena, "both use one arena");
        let (own, theirs) = (self.rows?, earlier.rows?);
        let row = i64::try_from(own.bytes).ok()?;
        let distance = i64::try_from(self.bytes.start).ok()? - i64::try_from(earlier.bytes.start).ok()?;
        let is_aligned = own.bytes == theirs.bytes && distance % row == 0;
        // Unit i uses row i + last, which the earlier kernel uses up to unit i + last - first.
        is_aligned.then(|| distance / row + own.last - theirs.first)
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
            let accesses = accesses.filter(|access| access.buffer == number);
            let rows = accesses.map(|access| rows(kernel, access)).reduce(|all, rows| all?.with(rows?)).flatten();
            let scalar =
                kernel.insts.iter().any(|inst| matches!(inst, Inst::LoopInvariant { buffer, .. } if *buffer == number));
            BufferUse {
                arena: place.arena,
                bytes: place.offset..place.offset + slot.len as u64 * size,
                written: slot.written,
                rows: rows.filter(|_| !scalar).map(|rows| UsedRows { bytes: rows.bytes * size, ..rows }),
            }
        })
        .collect()
}

impl UsedRows {
    /// The rows of both, if they have the same size.
    fn with(self, other: UsedRows) -> Option<UsedRows> {
        let (first, last) = (self.first.min(other.first), self.last.max(other.last));
        (self.bytes == other.bytes).then_some(UsedRows { first, last, ..self })
    }
}

/// The rows that an access of each unit of the range uses, with elements in place of bytes; None without rows.
fn rows(kernel: &Kernel, access: &Access) -> Option<UsedRows> {
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
    (row > 0).then(|| UsedRows { bytes: row as u64, first: least.div_euclid(row), last: most.div_euclid(row) })
}
