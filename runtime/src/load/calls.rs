//! Prepares products, calls of library functions, reads of rows, and the ends of transfers.

use super::transfers::ends;
use super::{Counted, Loader};
use crate::errors::trap::RunError;
use crate::library::gemm;
use crate::library::gemm::sums::{AddFn, Participants, PreparedSum, plan_sum};
use crate::library::matrix_product::ProductFn;
use crate::library::{self, LibraryCode};
use crate::processes::plans::Senders;
use crate::processes::reads::DeviceReads;
use crate::run::device::Action;
use crate::run::launch::Staff;
use crate::streams;
use spmdc_abi::sorted::distinct;
use spmdc_abi::{AxisSet, CollectiveKind, GemmStep, LibraryFunction, LibraryStep, Message, ReduceStep, StreamRows};

impl Loader<'_> {
    pub(crate) fn product(&mut self, step: &GemmStep, multiply: ProductFn) -> Result<(), RunError> {
        let (staff, numbers) = (self.staff, self.numbers);
        let group = step.ring.as_ref().map_or(AxisSet::EMPTY, |ring| set_of(&ring.axes));
        if let Some(ring) = &step.ring {
            self.collective((group, Counted { kind: ring.kind, bytes: ring.bytes, counts: true }), step.site, None);
        }
        let what = step.ring.as_ref().map_or("product", |ring| ring.kind.name());
        let plan = |reads: &mut DeviceReads<'_>, device: usize| {
            Ok(gemm::plan(reads, step, device, (team(staff, numbers[device]), multiply)))
        };
        let products = self.planned((group, Senders::Owners), (step.site, what), plan)?;
        debug_assert_eq!(products.len(), self.memory.devices().len(), "each device of this process has its product");
        self.emit_each(step.site, "product", products.into_iter().map(Action::Products));
        Ok(())
    }

    /// A reduction of products. In a program of one process, devices that share workers compute sums; otherwise the products come first.
    pub(crate) fn sum(&mut self, step: &ReduceStep, code: (ProductFn, AddFn)) -> Result<(), RunError> {
        let product = step.product.as_deref().ok_or_else(|| RunError::internal("a sum without a product"))?;
        match self.sums(step, product, code) {
            Some(sums) => {
                let counted = Counted { kind: step.kind, bytes: step.bytes, counts: step.counts };
                self.collective((step.group, counted), step.site, None);
                self.emit_each(step.site, "product", sums.into_iter().map(|sum| Action::Sum(sum.map(Box::new))));
                Ok(())
            }
            None => {
                self.product(product, code.0)?;
                self.sync(self.participants(step.group, step.to.place), step.site, step.kind.name())?;
                self.reduce(step)
            }
        }
    }

    /// The sums of the devices of this process: of each worker's first device in a group. None unless all of them are sums.
    fn sums(
        &self,
        step: &ReduceStep,
        product: &GemmStep,
        code: (ProductFn, AddFn),
    ) -> Option<Vec<Option<PreparedSum>>> {
        let (mesh, staff, axes) = (self.mesh, self.staff, step.reduce.intersect(self.mesh.axes()));
        let is_shared = self.own_axes(step.to.place).intersect(axes).is_empty();
        // Processes may have different numbers of workers, and they must agree on the messages.
        if !is_shared || mesh.processes() > 1 {
            return None;
        }
        let mut reads = DeviceReads::resolve(self.memory, &[], &[]);
        let mut sums = Vec::new();
        for &device in self.memory.devices() {
            let group = mesh.group(device, axes);
            let worker = |member: usize| staff.worker_of(self.numbers[member]);
            let own = worker(device);
            if group.iter().copied().filter(|&member| worker(member) == own).min() != Some(device) {
                sums.push(None);
                continue;
            }
            let workers = distinct(group.iter().map(|&member| worker(member)));
            // Devices with workers of their own have nothing to share.
            let rank = workers.binary_search(&own).ok().filter(|_| workers.len() < group.len())?;
            let participants = Participants { group: &group, share: (rank, workers.len()) };
            sums.push(Some(plan_sum(&mut reads, product, step.to.place, (device, &participants), code)?));
        }
        debug_assert!(sums.iter().any(Option::is_some), "a worker has a first device");
        Some(sums)
    }

    /// Calls of a function of this family.
    pub(crate) fn library(&mut self, step: &LibraryStep, code: &'static dyn LibraryCode) -> Result<(), RunError> {
        let (staff, numbers) = (self.staff, self.numbers);
        let group = step.owners.as_ref().map_or(AxisSet::EMPTY, |owners| set_of(&owners.axes));
        if let Some(owners) = &step.owners {
            self.collective((group, Counted { kind: owners.kind, bytes: owners.bytes, counts: true }), step.site, None);
        }
        let what = step.owners.as_ref().map_or("library function", |owners| owners.kind.name());
        let plan = |reads: &mut DeviceReads<'_>, device: usize| {
            let threads = (team(staff, numbers[device]), staff.threads());
            Ok(library::plan(reads, step, device, (threads, code)))
        };
        let calls = self.planned((group, Senders::Owners), (step.site, what), plan)?;
        debug_assert_eq!(calls.len(), self.memory.devices().len(), "each device of this process has its calls");
        self.emit_each(step.site, "library function", calls.into_iter().map(|calls| Action::Library(Box::new(calls))));
        Ok(())
    }
}

impl Loader<'_> {
    /// Reads of rows of a stream.
    pub(crate) fn read_rows(&mut self, step: &LibraryStep) -> Result<(), RunError> {
        let LibraryFunction::Rows(rows) = &step.function else { return Err(RunError::internal("no read of rows")) };
        debug_assert!((rows.param as usize) < self.params.len(), "a stream is a parameter");
        let layout = &self.params[rows.param as usize].layout;
        let rows = &StreamRows { param: rows.param + self.first_param as u32, ..rows.clone() };
        let mut reads = Vec::new();
        for &device in self.memory.devices() {
            let (read, ahead) = streams::plan(self.memory, (step, rows), layout, (device, self.out.ahead.len()));
            self.out.ahead.extend(ahead);
            reads.push(read);
        }
        debug_assert_eq!(reads.len(), self.memory.devices().len(), "each device of this process reads its rows");
        self.emit_each(step.site, "read of rows", reads.into_iter().map(|read| Action::Read(Box::new(read))));
        Ok(())
    }

    /// An end of a transfer.
    pub(crate) fn transfer(&mut self, step: &LibraryStep) -> Result<(), RunError> {
        let message = step.message().ok_or_else(|| RunError::internal("no end of a transfer"))?;
        match step.results.is_empty() {
            true => self.send(step, message),
            false => self.receive(step, message),
        }
        Ok(())
    }

    /// Copies the device's block into the messages once those before have been read, and says that they are full.
    fn send(&mut self, step: &LibraryStep, message: &Message) {
        let (memory, transfer) = (self.memory, &self.transfers[message.channel as usize]);
        debug_assert_eq!(transfer.channel.from as usize, self.part, "a part sends what it has");
        let (full, empty) = ends(message.channel);
        let bytes = self.mesh.stored_shape(&message.layout).iter().product::<usize>() * message.layout.dtype.size();
        let counted = Counted { kind: CollectiveKind::Transfer, bytes: bytes as u64, counts: true };
        let collective = self.out.collectives.len();
        self.out.collectives.push(counted);
        let (site, what) = (step.site, CollectiveKind::Transfer.name());
        self.emit(site, what, |_, _| Action::AwaitPosted { barrier: full, slot: full });
        self.emit(site, what, |_, _| Action::AwaitPosted { barrier: empty, slot: empty });
        self.emit(site, what, |_, _| Action::Count { collective });
        self.emit(site, what, |device, _| {
            let block = (step.operands[0].place, &message.layout);
            Action::Move(transfer.plan.sent(memory, block, device, &transfer.departures))
        });
        let crossing = transfer.crossing;
        self.emit(site, what, |_, _| Action::PostMessages { barrier: full, crossing, slot: full });
        self.emit(site, what, |_, _| Action::Post { barrier: empty, slot: empty });
    }

    /// Copies the device's block out of the messages once they are full, and says that it has read them.
    fn receive(&mut self, step: &LibraryStep, message: &Message) {
        let (memory, transfer) = (self.memory, &self.transfers[message.channel as usize]);
        debug_assert_eq!(transfer.channel.to as usize, self.part, "a part receives what is for it");
        let (full, empty) = ends(message.channel);
        let (site, what) = (step.site, CollectiveKind::Transfer.name());
        let crossing = transfer.crossing;
        self.emit(site, what, |_, _| Action::AwaitPosted { barrier: empty, slot: empty });
        self.emit(site, what, |_, _| match crossing {
            Some(_) => Action::Crossing { crossing },
            None => Action::Sync { barrier: full },
        });
        self.emit(site, what, |device, _| {
            Action::Move(transfer.plan.received(memory, (step, &message.layout), device, &transfer.arrivals))
        });
        self.emit(site, what, |_, _| Action::Post { barrier: empty, slot: empty });
    }
}

/// The number of threads that work for a device; 1 for one of another process.
fn team(staff: &Staff, device: usize) -> usize {
    if staff.has(device) { staff.team_of(staff.worker_of(device)) } else { 1 }
}

fn set_of(axes: &[u8]) -> AxisSet {
    axes.iter().map(|&axis| axis as usize).collect()
}
