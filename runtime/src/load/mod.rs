//! Turns a checked program into the operations of every device: steps are flattened, addresses and numbers resolved, collectives
//! planned. Afterwards a run allocates no memory.
//!
//! ```text
//! for i in 0..n { kernel; sync; all_reduce }     0 For, else to 6
//!                                             1 Kernel
//!                                             2 Sync   3 Count   4 Combine
//!                                             5 Next, back to 1
//!                                             6 End
//! ```

mod calls;
mod control;
mod messages;
mod panels;
mod texts;
mod tiles;
mod transfers;

use std::collections::BTreeMap;

use self::transfers::{LoadedTransfer, TransferEnd, ends};
use crate::check::overlap;
use crate::collectives::{exchange, fetch, permute};
use crate::components::{Components, ProgramCode};
use crate::errors::trap::RunError;
use crate::processes::plans::{MessagePlans, Senders};
use crate::processes::reads::DeviceReads;
use crate::run::barrier::Barrier;
use crate::run::device::{Action, Device, IndexCheck};
use crate::run::kernels::KernelCall;
use crate::run::launch::Staff;
use crate::run::memory::{Mapping, Memory};
use crate::run::report::RunOptions;
use crate::run::shared::{Outline, PreparedText};
use crate::run::team::WORTH_SHARING;
use crate::streams::AheadSlot;
use spmdc_abi::CollectiveKind;
use spmdc_abi::mesh::{DeviceMesh, share};
use spmdc_abi::sorted::order;
use spmdc_abi::{
    AxisSet, Binding, Channel, Component, DType, ExchangeStep, FetchStep, GemmStep, KernelFn, KernelStep, LibraryStep,
    MeshAxis, PermuteStep, Place, PrintValue, Program, ReduceStep, Site, Step, TextPurpose, TileStep,
};

/// A program prepared for all devices.
pub(crate) struct Loaded {
    pub devices: Vec<Device>,
    pub barriers: Vec<Barrier>,
    pub prints: Vec<Box<dyn PreparedText>>,
    /// Where rows of streams are read ahead.
    pub ahead: Vec<AheadSlot>,
    /// The outline of each part.
    pub outlines: Vec<Outline>,
    /// For each collective, or uncounted part of one: its kind, and the bytes of one device's operand.
    pub collectives: Vec<Counted>,
    pub messages: MessagePlans,
    /// The memory of transfers between devices of this process.
    pub mailboxes: Vec<Mapping>,
}

/// Turns a step of a component into operations.
pub(crate) type LoadFn<S> = fn(&mut Loader<'_>, &S) -> Result<(), RunError>;

/// The component of products.
#[derive(Clone, Copy)]
pub(crate) struct ProductCode {
    pub product: LoadFn<GemmStep>,
    pub tiles: LoadFn<TileStep>,
    /// A reduction with its product.
    pub sum: LoadFn<ReduceStep>,
}

/// A [`Step::Print`].
pub(crate) struct PrintedText<'a> {
    pub text: &'a str,
    pub values: &'a [PrintValue],
    pub purpose: &'a TextPurpose,
    pub site: Site,
}

/// The component of texts: turns one into operations.
pub(crate) type PrintFn = fn(&mut Loader<'_>, &PrintedText<'_>) -> Result<(), RunError>;

/// The figures that each execution of a collective, or of a part of one, adds to the report.
pub(crate) struct Counted {
    pub kind: CollectiveKind,
    /// Bytes of one device's operand.
    pub bytes: u64,
    /// Whether it counts as a collective; further parts of one collective do not.
    pub counts: bool,
}

/// A program that runs on the devices of one mesh: a part of the program that is loaded, or all of it.
pub(crate) struct PlacedProgram<'a> {
    pub program: &'a Program,
    pub memory: &'a Memory,
    /// The number of each of its devices among the devices of all parts.
    pub numbers: Vec<usize>,
}

/// Prepares a program that has been checked: its parts, or the only one.
pub(crate) fn load(
    parts: &[PlacedProgram<'_>],
    channels: &[Channel],
    code: &ProgramCode,
    staff: &Staff,
    options: &RunOptions,
) -> Result<Loaded, RunError> {
    let mut out = Loaded {
        devices: Vec::new(),
        barriers: Vec::new(),
        prints: Vec::new(),
        ahead: Vec::new(),
        outlines: Vec::new(),
        collectives: Vec::new(),
        messages: MessagePlans::default(),
        mailboxes: Vec::new(),
    };
    let end = |part: u32| {
        let PlacedProgram { memory, numbers, .. } = &parts[part as usize];
        TransferEnd { memory, numbers }
    };
    let mut transfers = Vec::new();
    for channel in channels {
        let between = (end(channel.from), end(channel.to));
        transfers.push(LoadedTransfer::new(channel, between, staff, &mut out.barriers, &mut out.messages)?);
    }
    let mut devices = Vec::new();
    let mut first_param = 0;
    for (part, mesh_program) in parts.iter().enumerate() {
        let PlacedProgram { program, memory, numbers } = mesh_program;
        out.messages.begin_part();
        let mesh = memory.mesh();
        debug_assert_eq!(numbers.len(), mesh.devices(), "each device of a part has a number");
        out.devices = memory.devices().iter().map(|&place| Device::new(numbers[place], part, place)).collect();
        let mut loader = Loader {
            mesh,
            axes: &program.mesh,
            params: &program.params,
            memory,
            kernels: code.kernels.functions(),
            components: &code.components,
            staff,
            numbers,
            part,
            transfers: &transfers,
            first_param,
            outline: Outline::default(),
            groups: BTreeMap::new(),
            counters: 0,
            options,
            in_known_loop: false,
            varying: AxisSet::EMPTY,
            out,
        };
        loader.steps(&program.body)?;
        loader.last_transfers();
        loader.emit(Site::default(), "program", |_, _| Action::End);
        let groups = loader.groups.len();
        out = loader.out;
        out.outlines.push(loader.outline);
        debug_assert!(
            out.devices.iter().all(|device| matches!(device.actions.last(), Some(Action::End))),
            "a device's operations end"
        );
        for device in &mut out.devices {
            device.posted = vec![None; 2 * transfers.len() + groups];
        }
        devices.append(&mut out.devices);
        first_param += program.params.len();
    }
    let numbers: Vec<u64> = devices.iter().map(|device: &Device| device.number as u64).collect();
    let mut unsorted: Vec<Option<Device>> = devices.into_iter().map(Some).collect();
    let mut devices: Vec<Device> = order(&numbers).into_iter().filter_map(|at| unsorted[at].take()).collect();
    let first = devices.first().map_or(0, |device| device.number);
    debug_assert!(
        devices.iter().zip(first..).all(|(device, number)| device.number == number),
        "devices are numbered in order"
    );
    for (index, barrier) in out.barriers.iter().enumerate() {
        barrier.members.iter().for_each(|&member| devices[member - first].barriers.push(index));
    }
    for device in &mut devices {
        device.counts = vec![0; out.collectives.len()];
    }
    out.devices = devices;
    out.mailboxes = transfers.into_iter().map(|transfer| transfer.mailbox).collect();
    Ok(out)
}

/// Turns the steps of a mesh into operations.
pub(crate) struct Loader<'a> {
    mesh: &'a DeviceMesh,
    /// The axes with their names, for printed text.
    axes: &'a [MeshAxis],
    params: &'a [Binding],
    memory: &'a Memory,
    kernels: &'a [KernelFn],
    components: &'a Components,
    staff: &'a Staff,
    /// The number of each device of this part among all devices.
    numbers: &'a [usize],
    part: usize,
    transfers: &'a [LoadedTransfer<'a>],
    /// The number of parameters of the parts before.
    first_param: usize,
    outline: Outline,
    /// For each set of axes along which devices wait for each other, its number and the index of its first barrier; the barriers of
    /// the other groups follow.
    groups: BTreeMap<AxisSet, (usize, usize)>,
    counters: usize,
    options: &'a RunOptions,
    /// Whether the step is in a loop with known trips.
    in_known_loop: bool,
    /// Axes along which devices may be in different loops and branches.
    varying: AxisSet,
    out: Loaded,
}

impl<'a> Loader<'a> {
    fn steps(&mut self, steps: &[Step]) -> Result<(), RunError> {
        steps.iter().try_for_each(|step| self.step(step))
    }

    fn step(&mut self, step: &Step) -> Result<(), RunError> {
        match step {
            Step::Kernel(step) => {
                self.kernel(step);
                Ok(())
            }
            Step::Panels { kernels, lags, panel } => {
                self.panels(kernels, lags, *panel as i64);
                Ok(())
            }
            Step::GroupPanels(panels) => self.group_panels(panels),
            Step::Gemm(step) => (self.components.code::<ProductCode>(step.component())?.product)(self, step),
            Step::Tiles(step) => (self.components.code::<ProductCode>(step.component())?.tiles)(self, step),
            Step::Library(step) => self.components.code::<LoadFn<LibraryStep>>(step.component())?(self, step),
            Step::Exchange(step) => self.exchange(step),
            Step::Reduce(step) => match &step.product {
                Some(product) => (self.components.code::<ProductCode>(product.component())?.sum)(self, step),
                None => self.reduce(step),
            },
            Step::Permute(step) => self.permute(step),
            Step::Fetch(step) => self.fetch(step),
            Step::Sync { group, kind, site } => self.sync(*group, *site, name_of(*kind)),
            Step::Post { group, site } => {
                self.post(*group, *site);
                Ok(())
            }
            Step::Await { group, kind, site } => self.await_posted(*group, *site, name_of(*kind)),
            Step::Copy { from, to, bytes, split } => {
                self.copy((*from, *to), *bytes, *split);
                Ok(())
            }
            Step::CheckIndex { index, dtype, extent, len, to, site } => {
                self.check_index((*index, *dtype), (*extent, *len), *to, *site);
                Ok(())
            }
            Step::For { counter, start, end, body, site } => self.for_loop(*counter, (start, end), body, *site),
            Step::While { cond, flag, body, site } => self.while_loop((cond, *flag), body, *site),
            Step::If { flag, then, otherwise, site } => self.branch(*flag, (then, otherwise), *site),
            Step::Print { text, values, purpose, site } => {
                let prints = self.components.code::<PrintFn>(Component::Prints)?;
                prints(self, &PrintedText { text, values, purpose, site: *site })
            }
        }
    }

    /// Arrives at a barrier.
    fn post(&mut self, group: AxisSet, site: Site) {
        // Where barriers are of several processes, all of the barrier happens where it is awaited.
        if self.mesh.has_boxes() {
            self.at_barrier(group, site, "barrier", |barrier, slot| Action::Post { barrier, slot });
        }
    }

    /// Waits at a barrier that was posted.
    fn await_posted(&mut self, group: AxisSet, site: Site, what: &'static str) -> Result<(), RunError> {
        if !self.mesh.has_boxes() {
            return self.sync(group, site, what);
        }
        self.at_barrier(group, site, what, |barrier, slot| Action::Await { barrier, slot });
        Ok(())
    }

    /// A copy of bytes, which the devices along `split` divide by whole cache lines.
    fn copy(&mut self, (from, to): (Place, Place), bytes: u64, split: AxisSet) {
        let (memory, mesh) = (self.memory, self.mesh);
        self.emit(Site::default(), "copy", |device, _| {
            let lines = bytes.div_ceil(64) as i64;
            let (rank, count) = mesh.rank(device, split);
            let part = share(lines, rank, count);
            let cut = |line: i64| (line as u64 * 64).min(bytes) as usize;
            let (begin, end) = (cut(part.start), cut(part.end));
            debug_assert!(begin <= end && end as u64 <= bytes, "a copy of {begin}..{end} of {bytes} bytes");
            Action::Copy {
                from: memory.address(from, device).wrapping_add(begin),
                to: memory.address(to, device).wrapping_add(begin),
                bytes: if from == to { 0 } else { end - begin },
            }
        });
    }

    fn check_index(&mut self, (index, dtype): (Place, DType), (extent, len): (i64, i64), to: Place, site: Site) {
        let memory = self.memory;
        self.emit(site, "index", |device, _| {
            let (index, to) = (memory.address(index, device), memory.address(to, device).cast());
            Action::CheckIndex(Box::new(IndexCheck { index, dtype, extent, len, to }))
        });
    }

    /// The place of the device that prints: the one with the lowest number.
    fn first(&self) -> usize {
        let first = (0..self.numbers.len()).min_by_key(|&place| self.numbers[place]);
        first.expect("a mesh has a device")
    }

    /// Appends an operation to the list of every device.
    fn emit(&mut self, site: Site, what: &'static str, mut action: impl FnMut(usize, &mut Device) -> Action) {
        self.emit_with(site, what, &mut action);
    }

    fn emit_with(&mut self, site: Site, what: &'static str, action: &mut dyn FnMut(usize, &mut Device) -> Action) {
        debug_assert!(
            self.out.devices.iter().all(|device| device.actions.len() == self.outline.len()),
            "an operation is the same step on all devices"
        );
        self.outline.push(site, what);
        for device in &mut self.out.devices {
            let action = action(device.place, device);
            device.actions.push(action);
        }
    }

    fn sync(&mut self, group: AxisSet, site: Site, what: &'static str) -> Result<(), RunError> {
        if self.mesh.has_boxes() {
            self.at_barrier(group, site, what, |barrier, _| Action::Sync { barrier });
            return Ok(());
        }
        // Two devices of this process may wait for each other by way of one in another process.
        self.planned((group, Senders::AllToAll), (site, what), |_, _| Ok(())).map(drop)
    }

    /// The axes along which devices have separate memory for a place.
    fn own_axes(&self, place: Place) -> AxisSet {
        self.memory.axes(place.arena).intersect(self.mesh.axes())
    }

    /// Emits an action at each device's barrier along these axes; `action` gets the barrier and the number of the set of axes.
    fn at_barrier(&mut self, group: AxisSet, site: Site, what: &'static str, action: impl Fn(usize, usize) -> Action) {
        let group = group.intersect(self.mesh.axes());
        if group.is_empty() {
            return;
        }
        let mesh = self.mesh;
        let others = mesh.axes().minus(group);
        let (slot, first) = match self.groups.get(&group) {
            Some(&known) => known,
            None => {
                let first = self.out.barriers.len();
                for instance in 0..mesh.count(others.iter()) {
                    let members = mesh.group(mesh.at(0, others.iter().collect::<Vec<_>>(), instance), group);
                    // A barrier of devices in other processes alone takes a number, which is that of the group.
                    self.out.barriers.push(self.barrier(members));
                }
                debug_assert_eq!(
                    mesh.count(others.iter()) * mesh.count(group.iter()),
                    mesh.devices(),
                    "every device is in one group"
                );
                let slot = 2 * self.transfers.len() + self.groups.len();
                self.groups.insert(group, (slot, first));
                (slot, first)
            }
        };
        self.emit(site, what, |device, _| action(first + mesh.linear(device, others.iter()), slot));
    }

    /// The barrier of the given devices that are in this process.
    fn barrier(&self, mut members: Vec<usize>) -> Barrier {
        members.retain(|&member| self.mesh.process(member) == self.memory.process());
        members.iter_mut().for_each(|member| *member = self.numbers[*member]);
        members.sort_unstable();
        let mut workers: Vec<usize> = members.iter().map(|&member| self.staff.worker_of(member)).collect();
        debug_assert!(workers.is_sorted(), "neighbouring devices have neighbouring workers");
        workers.dedup();
        Barrier::new(members.into(), workers.into())
    }

    /// The axes along which devices wait for each other before a collective: the axes of its group, and the axes along which devices share
    /// the memory that it fills.
    fn participants(&self, group: AxisSet, to: Place) -> AxisSet {
        group.intersect(self.mesh.axes()).union(self.mesh.axes().minus(self.memory.axes(to.arena)))
    }

    /// Emits a collective: it is counted if several devices take part, and every device does its part.
    fn collective(&mut self, (group, counted): (AxisSet, Counted), site: Site, work: Option<Vec<Action>>) {
        let several = self.mesh.count(group.intersect(self.mesh.axes()).iter()) > 1;
        let counted = Counted { counts: counted.counts && several, ..counted };
        let (kind, collective) = (counted.kind, self.out.collectives.len());
        self.out.collectives.push(counted);
        self.emit(site, kind.name(), |_, _| Action::Count { collective });
        if let Some(work) = work {
            self.emit_each(site, kind.name(), work.into_iter());
        }
    }

    fn exchange(&mut self, step: &ExchangeStep) -> Result<(), RunError> {
        let group = self.participants(step.group, step.to.place);
        let at = (step.site, step.kind.name());
        let plan = |reads: &mut DeviceReads<'_>, device| {
            let before = reads.landed();
            let moves = exchange::plan(reads, step, group, device)?;
            Ok((moves, reads.landed() > before))
        };
        let (moves, landed): (Vec<_>, Vec<bool>) =
            self.planned((group, Senders::Owners), at, plan)?.into_iter().unzip();
        // Whether there is anything to move must not depend on the process.
        let any = self.mesh.processes() > 1 || moves.iter().any(|moves| !moves.is_empty());
        let bytes = |shards: &spmdc_abi::Shards| {
            let elements: usize = self.mesh.stored_shape(&shards.layout).iter().product();
            (elements * shards.layout.dtype.size()) as u64
        };
        let moved = landed.contains(&true) || moves.iter().any(|moves| !moves.is_empty());
        if moved && overlap(step.from.place, step.to.place, bytes(&step.from), bytes(&step.to)) {
            return Err(RunError::internal("malformed program: an exchange overwrites its operand").at(step.site));
        }
        let work = any.then(|| moves.into_iter().map(|moves| Action::Move(moves.into())).collect());
        let counted = Counted { kind: step.kind, bytes: step.bytes, counts: step.counts };
        self.collective((step.group, counted), step.site, work);
        Ok(())
    }

    fn permute(&mut self, step: &PermuteStep) -> Result<(), RunError> {
        let axes: AxisSet = step.axes.iter().map(|&axis| axis as usize).collect();
        let group = self.participants(axes, step.to);
        let kind = CollectiveKind::CollectivePermute;
        let plan = |reads: &mut DeviceReads<'_>, device| permute::plan(reads, step, group, device);
        let plans = self.planned((group, Senders::Owners), (step.site, kind.name()), plan)?;
        let work = plans.into_iter().map(|plan| Action::Receive(Box::new(plan))).collect();
        self.collective((axes, Counted { kind, bytes: step.bytes, counts: true }), step.site, Some(work));
        Ok(())
    }

    fn fetch(&mut self, step: &FetchStep) -> Result<(), RunError> {
        let group =
            step.parts.iter().fold(step.group, |group, part| group.union(self.participants(step.group, part.to)));
        let plan = |reads: &mut DeviceReads<'_>, device| fetch::plan(reads, step, group, device);
        let moves = self.planned((group, Senders::Owners), (step.site, step.kind.name()), plan)?;
        let work = moves.into_iter().map(|moves| Action::Move(moves.into())).collect();
        let counted = Counted { kind: step.kind, bytes: step.bytes, counts: true };
        self.collective((step.group, counted), step.site, Some(work));
        Ok(())
    }

    fn kernel(&mut self, step: &KernelStep) {
        let (maker, function) = (self.call_maker(), self.kernels[step.kernel as usize]);
        self.emit(step.site, "kernel", |device, out| Action::Kernel(maker.call(step, function, device, out)));
    }

    fn call_maker(&self) -> CallMaker<'a> {
        CallMaker { memory: self.memory, mesh: self.mesh, staff: self.staff, numbers: self.numbers }
    }

    /// At the end, waits until the last value of each transfer has been sent and read.
    fn last_transfers(&mut self) {
        for (number, LoadedTransfer { channel, .. }) in self.transfers.iter().enumerate() {
            if [channel.from, channel.to].contains(&(self.part as u32)) {
                let (full, empty) = ends(number as u32);
                for barrier in [full, empty] {
                    let what = CollectiveKind::Transfer.name();
                    self.emit(channel.site, what, |_, _| Action::AwaitPosted { barrier, slot: barrier });
                }
            }
        }
    }

    /// Emits an operation, given for each device of this process.
    fn emit_each(&mut self, site: Site, what: &'static str, ops: impl ExactSizeIterator<Item = Action>) {
        debug_assert_eq!(ops.len(), self.out.devices.len(), "there is an operation for each device");
        let mut ops = ops;
        self.emit(site, what, |_, _| ops.next().expect("there is an operation for each device"));
    }
}

/// The name, for messages, of the operation for which a device waits at a barrier.
fn name_of(kind: Option<CollectiveKind>) -> &'static str {
    kind.map_or("barrier", CollectiveKind::name)
}

/// Prepares calls of kernels.
struct CallMaker<'a> {
    memory: &'a Memory,
    mesh: &'a DeviceMesh,
    staff: &'a Staff,
    numbers: &'a [usize],
}

impl CallMaker<'_> {
    fn team(&self, device: usize) -> i64 {
        self.staff.team_of(self.staff.worker_of(self.numbers[device])) as i64
    }

    /// The number of threads that may help with a long step: the team, or if a worker has no helpers, the workers that wait.
    fn threads(&self, device: usize) -> i64 {
        match self.team(device) {
            1 => self.staff.threads() as i64,
            team => team,
        }
    }

    fn call(&self, step: &KernelStep, function: KernelFn, device: usize, out: &mut Device) -> KernelCall {
        let (memory, mesh) = (self.memory, self.mesh);
        let (buffers, scalars) = (out.buffers.len(), out.scalars.len());
        out.buffers.extend(step.buffers.iter().map(|&place| memory.address(place, device)));
        out.scalars.extend(step.scalars.iter().map(|scalar| mesh.resolve(scalar, device)));
        let units = mesh.units(step, device);
        debug_assert!(units.start >= 0 && units.start <= units.end, "a share of {units:?}");
        let (begin, end) = (units.start, units.end);
        let chunk = chunk(end - begin, i64::from(step.grain), step.cost, self.threads(device));
        KernelCall { function, buffers, scalars, begin, end, chunk, checks: step.checks.clone().into() }
    }
}

/// Units of a kernel's range that a thread of the team takes at a time, a multiple of the grain; 0 if the range takes too little
/// time to be shared.
fn chunk(range: i64, grain: i64, cost: f32, team: i64) -> i64 {
    debug_assert!(grain > 0 && team > 0, "grains of {grain} for {team} threads");
    let cost = if cost.is_finite() { cost.max(1e-3) as f64 } else { 0.0 };
    if team == 1 || range <= grain || cost * range as f64 <= WORTH_SHARING {
        return 0;
    }
    let worthwhile = (WORTH_SHARING / 2.0 / cost) as i64;
    let chunk = worthwhile.max(range / (8 * team)).clamp(1, (range / team).max(1));
    // Whole cache lines and vectors if the range is long.
    let grain = if chunk >= 256 { grain.max(64) } else { grain };
    (chunk + grain - 1) / grain * grain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_kernels_are_shared() {
        assert_eq!(chunk(1000, 1, 1.0, 4), 0);
        assert_eq!(chunk(1_000_000, 1, 1.0, 1), 0);
        assert_eq!(chunk(1, 1, 1e9, 4), 0);
        assert_eq!(chunk(1_000_000, 1, f32::NAN, 4), 0);
        assert_eq!(chunk(4, 1, 1e6, 2), 1);
        // A grain is not cut.
        assert_eq!((chunk(64, 32, 1e6, 2), chunk(64, 16, 1e6, 2), chunk(32, 32, 1e6, 2)), (32, 16, 0));
        assert_eq!((chunk(1000, 16, 1e6, 2), chunk(10_000, 16, 1e6, 2)), (64, 640));
        let chunk = chunk(1_000_000, 1, 1.0, 2);
        assert!((50_000..=70_000).contains(&chunk), "{chunk}");
    }
}
