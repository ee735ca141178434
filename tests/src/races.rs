//! Whether devices are ordered where they touch the same memory, for a whole program.
//!
//! Each device has a vector clock (Fidge 1988, Mattern 1989): for each other device, the last step of it that happened before. A barrier
//! joins the clocks of the devices of its group, each as it was when the device posted. Every access to memory is noted; of two accesses to
//! the same bytes by different devices, one of which writes, the earlier one must have happened before the later one. A loop makes two
//! trips, but one trip in the second trip of an outer loop, where only the border between two trips is new. All branches are taken one way,
//! then all the other way.
//!
//! Devices that execute one step at the same time divide its writes, which is not checked here.

use spmdc_abi::mesh::DeviceMesh;
use spmdc_abi::{AxisSet, Bound, KernelStep, Place, Program, ReduceStep, Shards, Site, Step, TileBuffer, TileMember};
use spmdc_kernel::loops::Kernel;
use std::collections::BTreeMap;
use std::ops::Range;

/// Two accesses that no barrier orders; None if all are ordered.
pub fn race(program: &Program, kernels: &[Kernel]) -> Option<String> {
    let mesh = DeviceMesh::new(&program.mesh).ok().filter(|mesh| mesh.devices() > 1)?;
    let mut sizes = BTreeMap::new();
    for buffer in &program.buffers {
        let bytes = sizes.entry(buffer.place).or_insert(buffer.bytes);
        *bytes = (*bytes).min(buffer.bytes);
    }
    let first = |axes, device| mesh.group(device, mesh.axes().minus(axes))[0];
    let sharers: Vec<Vec<usize>> = program
        .arenas
        .iter()
        .map(|arena| (0..mesh.devices()).map(|device| first(arena.axes, device)).collect())
        .collect();
    let branched = contain(&program.body, &|step| matches!(step, Step::If { .. }));
    let grouped = contain(&program.body, &|step| matches!(step, Step::GroupPanels(_)));
    for (taken, apart) in [(true, false), (false, false), (true, true), (false, true)] {
        if !taken && !branched || apart && !grouped {
            continue;
        }
        let clocks = vec![vec![0; mesh.devices()]; mesh.devices()];
        let mut watch = Watch {
            program,
            kernels,
            mesh: &mesh,
            sizes: &sizes,
            sharers: &sharers,
            taken,
            apart,
            is_second: false,
            step: 0,
            posted: BTreeMap::new(),
            clocks,
            passed: vec![0; mesh.devices()],
            seen: BTreeMap::new(),
            found: None,
            since: 0,
            before: None,
        };
        watch.steps(&program.body);
        if watch.found.is_some() {
            return watch.found;
        }
    }
    None
}

/// The accesses of one device to some bytes, and the step of the last one.
#[derive(Clone, Debug)]
struct Seen {
    bytes: Range<u64>,
    written: bool,
    device: usize,
    step: u64,
    line: u32,
}

struct Watch<'a> {
    program: &'a Program,
    kernels: &'a [Kernel],
    mesh: &'a DeviceMesh,
    /// Of what lies at a place at one time or another, the least.
    sizes: &'a BTreeMap<Place, u64>,
    /// For each arena and device, the lowest number of the devices that share its memory there.
    sharers: &'a [Vec<usize>],
    /// Which branches are taken.
    taken: bool,
    /// Whether each device runs its own part of the panels of groups, as devices of several processes do.
    apart: bool,
    /// Whether this is the second trip of a loop.
    is_second: bool,
    /// How many steps have been done.
    step: u64,
    /// For each group that has posted, the clocks of all devices then.
    posted: BTreeMap<AxisSet, Vec<Vec<u64>>>,
    /// For each device, up to which step it knows what each has done.
    clocks: Vec<Vec<u64>>,
    /// For each device, up to which step all others know what it has done.
    passed: Vec<u64>,
    /// By arena, and by the device with the lowest number of those who share it.
    seen: BTreeMap<(u16, usize), Vec<Seen>>,
    found: Option<String>,
    /// The first step of the kernel that the present one is a part of.
    since: u64,
    /// The kernel that has been called right before.
    before: Option<KernelStep>,
}

impl Watch<'_> {
    fn steps(&mut self, steps: &[Step]) {
        for step in steps {
            if self.found.is_none() {
                self.one(step);
            }
        }
    }

    /// Two trips of a loop, the second of which goes through loops inside once.
    fn trips(&mut self, trip: impl Fn(&mut Self)) {
        let is_second = self.is_second;
        trip(self);
        if !is_second {
            self.is_second = true;
            trip(self);
        }
        self.is_second = is_second;
    }

    fn one(&mut self, step: &Step) {
        self.step += 1;
        if let Step::Kernel(call) = step {
            // Each device works on the same units of all parts of a kernel.
            if !self.before.as_ref().is_some_and(|before| continues(before, call)) {
                self.since = self.step;
            }
            self.before = Some(call.clone());
        } else if !matches!(step, Step::Post { .. } | Step::Panels { .. } | Step::GroupPanels(_)) {
            (self.before, self.since) = (None, self.step);
        }
        match step {
            Step::Kernel(call) => {
                let slots = &self.kernels[call.kernel as usize].buffers;
                let uses: Vec<_> = call.buffers.iter().zip(slots).map(|(&place, slot)| (place, slot.written)).collect();
                uses.into_iter().for_each(|(place, written)| self.own(place, written, call.site));
            }
            Step::Panels { kernels, .. } => kernels.iter().for_each(|call| self.one(&Step::Kernel(call.clone()))),
            Step::GroupPanels(panels) if self.apart => self.steps(&panels.steps),
            Step::GroupPanels(panels) => {
                // Every device does a part of the work of all of its group.
                (self.before, self.since) = (None, self.step);
                for call in panels.kernels() {
                    let slots = &self.kernels[call.kernel as usize].buffers;
                    let uses: Vec<_> =
                        call.buffers.iter().zip(slots).map(|(&place, slot)| (place, slot.written)).collect();
                    for (place, written) in uses {
                        self.all(place, self.size(place), panels.dividing(), (written, call.site));
                    }
                }
                for reduction in panels.reductions() {
                    let ReduceStep { from, to, site, .. } = reduction;
                    for (side, written) in [(from, false), (to, true)] {
                        self.all(side.place, self.bytes(side), panels.dividing(), (written, *site));
                    }
                }
            }
            Step::Gemm(gemm) => {
                let ring = gemm.ring.as_ref();
                for (is_b, place) in [(false, gemm.a), (true, gemm.b)] {
                    match ring.filter(|ring| ring.is_b == is_b) {
                        Some(ring) => self.all(place, self.size(place), set(&ring.axes), (false, gemm.site)),
                        None => self.own(place, false, gemm.site),
                    }
                }
                self.own(gemm.c, true, gemm.site);
            }
            Step::Tiles(step) => {
                let mut buffers = Vec::new();
                for member in &step.members {
                    match member {
                        TileMember::Kernel(part) => {
                            let slots = &self.kernels[part.kernel as usize].buffers;
                            buffers
                                .extend(part.buffers.iter().zip(slots).map(|(buffer, slot)| (*buffer, slot.written)));
                        }
                        TileMember::Product(part) => {
                            let [a, b, c] = part.buffers;
                            buffers.extend([(a, false), (b, false), (c, true)]);
                        }
                    }
                }
                for (buffer, written) in buffers {
                    if let TileBuffer::Memory(place) = buffer {
                        self.own(place, written, step.site);
                    }
                }
                self.own(step.scratch, true, step.site);
            }
            Step::Library(step) => {
                for operand in &step.operands {
                    match &step.owners {
                        Some(owners) => {
                            self.all(operand.place, self.size(operand.place), set(&owners.axes), (false, step.site))
                        }
                        None => self.own(operand.place, false, step.site),
                    }
                }
                step.results.iter().for_each(|result| self.own(result.place, true, step.site));
            }
            Step::Exchange(step) => self.collective(step.group, &step.from, &step.to, step.site),
            Step::Reduce(step) => {
                if let Some(product) = &step.product {
                    for place in [product.a, product.b] {
                        self.all(place, self.size(place), step.group, (false, step.site));
                    }
                    self.own(product.c, true, step.site);
                }
                self.collective(step.group, &step.from, &step.to, step.site);
            }
            Step::Permute(step) => {
                self.all(step.from, step.bytes, self.with_sharers(set(&step.axes), step.to), (false, step.site));
                self.each(step.to, step.bytes, true, step.site);
            }
            Step::Fetch(step) => {
                for part in &step.parts {
                    let len = |len: fn(&spmdc_abi::FetchDim) -> usize| {
                        part.dims.iter().map(|dim| len(dim) as u64).product::<u64>() * part.dtype.size() as u64
                    };
                    let from = len(|dim| dim.from_len);
                    self.all(part.from, from, self.with_sharers(step.group, part.to), (false, step.site));
                    self.each(part.to, len(|dim| dim.to_len), true, step.site);
                }
            }
            Step::Copy { from, to, bytes, .. } => {
                self.each(*from, *bytes, false, Site::default());
                self.each(*to, *bytes, true, Site::default());
            }
            Step::CheckIndex { index, dtype, to, site, .. } => {
                self.each(*index, dtype.size() as u64, false, *site);
                self.each(*to, 8, true, *site);
            }
            Step::Sync { group, .. } => self.barrier(*group, self.now()),
            Step::Post { group, .. } => drop(self.posted.insert(*group, self.now())),
            Step::Await { group, .. } => {
                if let Some(clocks) = self.posted.remove(group) {
                    self.barrier(*group, clocks);
                }
            }
            Step::Print { values, site, .. } => {
                let everybody = self.mesh.axes();
                self.barrier(everybody, self.now());
                let owners = self.mesh.group(0, everybody);
                for value in values {
                    self.touch(0, &owners, value.place, self.size(value.place), (false, *site));
                }
                self.barrier(everybody, self.now());
            }
            Step::For { counter, start, end, body, site } => {
                for bound in [start, end] {
                    if let Bound::Memory(place, dtype) = bound {
                        self.each(*place, dtype.size() as u64, false, *site);
                    }
                }
                self.trips(|watch| {
                    watch.each(*counter, 4, true, *site);
                    watch.steps(body);
                });
            }
            Step::While { cond, flag, body, site } => {
                let test = |watch: &mut Self| {
                    watch.steps(cond);
                    watch.each(*flag, 1, false, *site);
                };
                self.trips(|watch| {
                    test(watch);
                    watch.steps(body);
                });
                test(self);
            }
            Step::If { flag, then, otherwise, site } => {
                self.each(*flag, 1, false, *site);
                self.steps(if self.taken { then } else { otherwise });
            }
        }
    }

    fn size(&self, place: Place) -> u64 {
        self.sizes.get(&place).copied().unwrap_or(1)
    }

    /// Every device reads or writes what it has at a place.
    fn own(&mut self, place: Place, written: bool, site: Site) {
        self.each(place, self.size(place), written, site);
    }

    fn each(&mut self, place: Place, bytes: u64, written: bool, site: Site) {
        (0..self.mesh.devices()).for_each(|device| self.touch(device, &[device], place, bytes, (written, site)));
    }

    /// Every device reads or writes what all of its group have at a place.
    fn all(&mut self, place: Place, bytes: u64, group: AxisSet, how: (bool, Site)) {
        let group = group.intersect(self.mesh.axes());
        for device in 0..self.mesh.devices() {
            self.touch(device, &self.mesh.group(device, group), place, bytes, how);
        }
    }

    fn with_sharers(&self, group: AxisSet, to: Place) -> AxisSet {
        group.union(self.mesh.axes().minus(self.program.arenas[to.arena as usize].axes))
    }

    fn collective(&mut self, group: AxisSet, from: &Shards, to: &Shards, site: Site) {
        let (read, written) = (self.bytes(from), self.bytes(to));
        self.all(from.place, read, self.with_sharers(group, to.place), (false, site));
        self.each(to.place, written, true, site);
    }

    /// Bytes of a device's block.
    fn bytes(&self, shards: &Shards) -> u64 {
        let elements: usize = self.mesh.stored_shape(&shards.layout).iter().product();
        (elements * shards.layout.dtype.size()) as u64
    }

    /// A device reads or writes what these have at a place.
    fn touch(&mut self, device: usize, owners: &[usize], place: Place, bytes: u64, (written, site): (bool, Site)) {
        if bytes == 0 {
            return;
        }
        let bytes = place.offset..place.offset + bytes;
        let now = Seen { bytes, written, device, step: self.step, line: site.line };
        let sharers = &self.sharers[place.arena as usize];
        for (at, owner) in owners.iter().enumerate() {
            let instance = sharers[*owner];
            if !owners[..at].iter().any(|&earlier| sharers[earlier] == instance) {
                self.see((place.arena, instance), &now);
            }
        }
    }

    /// Notes an access to the memory of an arena that some devices share.
    fn see(&mut self, memory: (u16, usize), now: &Seen) {
        let list = self.seen.entry(memory).or_default();
        // What all others know can be in nobody's way any more.
        list.retain(|other| other.step > self.passed[other.device]);
        let known = &self.clocks[now.device];
        let mut same = None;
        for (at, other) in list.iter().enumerate() {
            if other.bytes.end <= now.bytes.start || now.bytes.end <= other.bytes.start {
                continue;
            }
            if other.device == now.device {
                if other.written == now.written && other.bytes == now.bytes {
                    same = Some(at);
                }
            } else if (other.written || now.written) && other.step < self.since && known[other.device] < other.step {
                let message = format!(
                    "lines {} and {} may use bytes {:?} of arena {} at the same time, on devices {} and {}",
                    other.line, now.line, now.bytes, memory.0, other.device, now.device
                );
                self.found.get_or_insert(message);
            }
        }
        match same {
            Some(at) => list[at] = now.clone(),
            None => list.push(now.clone()),
        }
    }

    /// The clocks, and in them what each device has done itself.
    fn now(&self) -> Vec<Vec<u64>> {
        let mut clocks = self.clocks.clone();
        clocks.iter_mut().enumerate().for_each(|(device, clock)| clock[device] = self.step);
        clocks
    }

    /// Joins the clock of each device with the posted clocks of its group.
    fn barrier(&mut self, group: AxisSet, posted: Vec<Vec<u64>>) {
        let group = group.intersect(self.mesh.axes());
        for device in 0..self.mesh.devices() {
            for other in self.mesh.group(device, group) {
                for (known, new) in self.clocks[device].iter_mut().zip(&posted[other]) {
                    *known = (*known).max(*new);
                }
            }
        }
        for (device, passed) in self.passed.iter_mut().enumerate() {
            let others = self.clocks.iter().enumerate().filter(|(other, _)| *other != device);
            *passed = others.map(|(_, clock)| clock[device]).min().unwrap_or(u64::MAX);
        }
    }
}

/// Whether two calls are of parts of one kernel, one directly after the other.
fn continues(before: &KernelStep, step: &KernelStep) -> bool {
    before.part.is_some()
        && step.part.is_some()
        && (&before.buffers, &before.range, before.split, before.grain, before.site)
            == (&step.buffers, &step.range, step.split, step.grain, step.site)
}

/// Whether any of these steps, or of those in them, is of this kind.
fn contain(steps: &[Step], kind: &dyn Fn(&Step) -> bool) -> bool {
    Step::walk(steps).any(kind)
}

fn set(axes: &[u8]) -> AxisSet {
    axes.iter().map(|&axis| axis as usize).collect()
}
