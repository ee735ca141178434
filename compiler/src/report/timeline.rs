//! The timeline of a program with several meshes: its schedule, simulated with the times of the cost model.
//!
//! Each mesh runs its own steps in order. A receive waits for its send, and a send waits until the value before it in the same transfer
//! has been received. Meshes with common devices take turns. Of all steps that can begin, the one that can begin first does. Both sides of
//! a branch count, and loops with unknown bounds as one trip, as in the other figures of `plan`.
//!
//! Loops of many trips are simulated for their first trips only; further trips take as long as the later ones of these.

use super::step_time::{TimedProgram, dims_of, sizes_of};
use crate::hosts::HostOptions;
use spmdc_abi::mesh::DeviceMesh;
use spmdc_abi::{Bound, Channel, LibraryFunction, Message, Program, Site, Step};
use spmdc_layout::cost::{of_barrier, of_copy, reported_trips};
use spmdc_layout::crossings;
use spmdc_layout::mesh::Mesh;
use std::collections::{BTreeMap, BTreeSet};

/// The name of the mesh of one device that prints for programs of several meshes.
pub use spmdc_passes::project::OUTPUT;

/// Maximum number of simulated steps of all meshes together.
const MAX_EVENTS: u64 = 100_000;

/// Minimum number of simulated trips of a loop.
const FEWEST_TRIPS: u64 = 8;

/// The work of the meshes of a program over time. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    /// The time at which the last mesh ends.
    pub total: f64,
    /// The meshes, in the order of their programs.
    pub meshes: Vec<MeshTimeline>,
    /// The loops in which values move between meshes, in the order in which the meshes reach them.
    pub loops: Vec<PipelinedLoop>,
    /// The number of trips of each loop that were simulated, if some loop has more.
    pub simulated_trips: Option<u64>,
}

/// The work of one mesh.
#[derive(Clone, Debug, PartialEq)]
pub struct MeshTimeline {
    /// The name of the mesh.
    pub mesh: String,
    /// The number of its devices.
    pub devices: usize,
    /// The time for which it does not wait.
    pub busy: f64,
    /// The simulated times in which it works, in order.
    pub spans: Vec<BusySpan>,
}

/// A time in which a mesh works without waiting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BusySpan {
    /// Its beginning.
    pub begin: f64,
    /// Its end.
    pub end: f64,
    /// The trip of the outermost loop with transfers, from 0; None outside of such loops.
    pub trip: Option<u64>,
}

/// A loop that several meshes run side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct PipelinedLoop {
    /// The loop in the source.
    pub site: Site,
    /// Its trip count.
    pub trips: u64,
    /// From the beginning of the first trip to the end of the last one, on all meshes.
    pub time: f64,
    /// The mesh that works longest in a trip.
    pub slowest: String,
    /// The time for which that mesh works in a trip, on average.
    pub slowest_trip: f64,
    /// The time that the loop would take if one mesh worked at a time: their work, and the notice of each transfer.
    pub in_turns: f64,
}

impl Timeline {
    /// The part of the whole time for which a mesh waits.
    pub fn idle_share(&self, mesh: &MeshTimeline) -> f64 {
        if self.total > 0.0 { (1.0 - mesh.busy / self.total).max(0.0) } else { 0.0 }
    }
}

impl PipelinedLoop {
    /// The time of the loop, in trips of the slowest mesh.
    pub fn rounds(&self) -> f64 {
        self.time / self.slowest_trip
    }

    /// The rounds that the loop would take if one mesh worked at a time.
    pub fn rounds_in_turns(&self) -> f64 {
        self.in_turns / self.slowest_trip
    }
}

/// The simulated timeline, with the messages between these hosts if they are known. None for a program that uses one mesh, and if two
/// meshes do not know the same trip counts, so that a send has no receive.
pub fn timeline(program: &Program, hosts: Option<HostOptions>) -> Option<Timeline> {
    if program.mesh_programs.len() < 2 {
        return None;
    }
    let layouts = HostOptions::on_parts(hosts, program);
    let parts = || program.mesh_programs.iter().zip(&layouts);
    let tasks: Vec<Vec<TimedStep>> = parts().map(|(part, layouts)| tasks_of(&part.program, layouts)).collect();
    let meshes: Vec<(&str, &[u32])> =
        program.mesh_programs.iter().map(|part| (part.name.as_str(), part.devices.as_slice())).collect();
    let ways: Vec<ChannelTime> = program.channels.iter().map(|channel| ChannelTime::of(channel, &layouts)).collect();
    simulated(&meshes, &tasks, &ways, limit_of(&tasks))
}

/// The nanoseconds that pass between two meshes at a transfer, while neither of them works for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChannelTime {
    /// From the end of the send to the time at which the value is complete.
    pub value: f64,
    /// From the end of the receive to the time at which the sender knows of it.
    pub notice: f64,
}

impl ChannelTime {
    fn of(channel: &Channel, layouts: &[Mesh]) -> ChannelTime {
        let [from, to] = [channel.from, channel.to].map(|part| &layouts[part as usize]);
        let (sent, received) = (dims_of(&channel.sent), dims_of(&channel.received));
        let elements = crossings::transferred(&sizes_of(&channel.received), (&sent, from), (&received, to));
        let bytes = elements * channel.received.dtype.size() as u64;
        let levels = to.hosts.as_ref().map(|hosts| hosts.levels);
        let message = |bytes: u64| levels.map_or(0.0, |levels| levels.time_between(bytes));
        ChannelTime { value: of_barrier(2) + message(bytes), notice: of_barrier(2) + message(bytes.min(1)) }
    }
}

/// The timeline of these tasks of meshes, given by their names and devices, if this number of trips of each loop is simulated.
pub fn simulated(
    meshes: &[(&str, &[u32])],
    tasks: &[Vec<TimedStep>],
    channels: &[ChannelTime],
    limit: u64,
) -> Option<Timeline> {
    let mut simulation = Simulation::new(meshes, tasks, channels, limit);
    simulation.run()?;
    let most = tasks.iter().flatten().map(TimedStep::longest_loop).max().unwrap_or(0);
    let shown = |(run, (name, devices)): (&MeshRun<'_>, &(&str, &[u32]))| MeshTimeline {
        mesh: name.to_string(),
        devices: devices.len(),
        busy: run.busy,
        spans: run.spans.clone(),
    };
    Some(Timeline {
        total: simulation.meshes.iter().map(|run| run.clock).fold(0.0, f64::max),
        loops: simulation.loops(meshes),
        meshes: simulation.meshes.iter().zip(meshes).map(shown).collect(),
        simulated_trips: (most > limit).then_some(limit),
    })
}

/// A step of a mesh, as far as its time matters.
#[derive(Clone, Debug, PartialEq)]
pub enum TimedStep {
    /// Steps without transfers, with their time.
    Work(f64),
    /// The send of a transfer.
    Send {
        /// The position of the transfer.
        channel: usize,
        /// The time for which the mesh works.
        time: f64,
    },
    /// The receive of a transfer.
    Receive {
        /// The position of the transfer.
        channel: usize,
        /// The time for which the mesh works.
        time: f64,
    },
    /// A loop with transfers.
    Loop {
        /// The loop in the source.
        site: Site,
        /// Its trip count.
        trips: u64,
        /// The steps of a trip.
        body: Vec<TimedStep>,
    },
}

impl TimedStep {
    /// The number of leaves that are run if each loop runs for at most this number of trips.
    pub fn events(&self, limit: u64) -> u64 {
        match self {
            TimedStep::Work(_) | TimedStep::Send { .. } | TimedStep::Receive { .. } => 1,
            TimedStep::Loop { trips, body, .. } => {
                let once = body.iter().map(|task| task.events(limit)).fold(0, u64::saturating_add);
                once.saturating_mul((*trips).min(limit))
            }
        }
    }

    fn longest_loop(&self) -> u64 {
        match self {
            TimedStep::Work(_) | TimedStep::Send { .. } | TimedStep::Receive { .. } => 0,
            TimedStep::Loop { trips, body, .. } => body.iter().map(TimedStep::longest_loop).fold(*trips, u64::max),
        }
    }
}

/// The number of trips of each loop that are simulated. It is the same for all loops, so that all meshes agree.
pub fn limit_of(tasks: &[Vec<TimedStep>]) -> u64 {
    let events = |limit: u64| tasks.iter().flatten().map(|task| task.events(limit)).fold(0, u64::saturating_add);
    let mut limit = tasks.iter().flatten().map(TimedStep::longest_loop).max().unwrap_or(0).max(1);
    while limit > FEWEST_TRIPS && events(limit) > MAX_EVENTS {
        limit = (limit / 2).max(FEWEST_TRIPS);
    }
    limit
}

/// The tasks of the program of one mesh.
fn tasks_of(program: &Program, layouts: &Mesh) -> Vec<TimedStep> {
    let mesh = DeviceMesh::new(&program.mesh).expect("the compiler makes meshes that the runtime takes");
    let mut tasks = Vec::new();
    add_steps(&program.body, TimedProgram { program, mesh: &mesh, layouts }, &mut tasks);
    tasks
}

fn add_steps(steps: &[Step], timed: TimedProgram<'_>, out: &mut Vec<TimedStep>) {
    for step in steps {
        match step {
            Step::For { start, end, body, site, .. } => {
                let mut inner = Vec::new();
                add_steps(body, timed, &mut inner);
                add_loop(*site, reported_trips(Bound::trips(start, end)), inner, out);
            }
            Step::While { cond, body, site, .. } => {
                let mut inner = Vec::new();
                add_steps(cond, timed, &mut inner);
                add_steps(body, timed, &mut inner);
                add_loop(*site, reported_trips(None), inner, out);
            }
            Step::If { then, otherwise, .. } => {
                add_steps(then, timed, out);
                add_steps(otherwise, timed, out);
            }
            Step::Library(library) => match library.message() {
                Some(message) => {
                    let (channel, time) = end_of_transfer(message, timed);
                    let sends = matches!(library.function, LibraryFunction::Send(_));
                    out.push(if sends {
                        TimedStep::Send { channel, time }
                    } else {
                        TimedStep::Receive { channel, time }
                    });
                }
                None => add_work(timed.of_step(step), out),
            },
            Step::Kernel(_)
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
            | Step::Print { .. } => add_work(timed.of_step(step), out),
        }
    }
}

/// The number of a transfer, and the time of copying the device's block.
fn end_of_transfer(message: &Message, timed: TimedProgram<'_>) -> (usize, f64) {
    let elements: usize = timed.mesh.stored_shape(&message.layout).iter().product();
    (message.channel as usize, of_copy((elements * message.layout.dtype.size()) as u64))
}

/// Adds work, to the work before it if there is nothing between.
pub fn add_work(time: f64, out: &mut Vec<TimedStep>) {
    match out.last_mut() {
        Some(TimedStep::Work(before)) => *before += time,
        Some(TimedStep::Send { .. } | TimedStep::Receive { .. } | TimedStep::Loop { .. }) | None if time > 0.0 => {
            out.push(TimedStep::Work(time));
        }
        Some(TimedStep::Send { .. } | TimedStep::Receive { .. } | TimedStep::Loop { .. }) | None => {}
    }
}

/// Adds a loop; one without transfers is work.
pub fn add_loop(site: Site, trips: u64, body: Vec<TimedStep>, out: &mut Vec<TimedStep>) {
    match body.as_slice() {
        [] => {}
        [TimedStep::Work(time)] => add_work(time * trips as f64, out),
        _ => out.push(TimedStep::Loop { site, trips, body }),
    }
}

/// The state of a transfer.
#[derive(Clone, Copy, Debug, Default)]
struct Mailbox {
    sent: u64,
    received: u64,
    /// When the receiver knows that the last value is complete.
    full: f64,
    /// When the sender knows that the last value has been received.
    empty: f64,
}

/// A list of tasks that a mesh is in, with its loop if it is the body of one.
struct TaskFrame<'a> {
    tasks: &'a [TimedStep],
    next: usize,
    running: Option<RunningLoop>,
}

/// A loop that a mesh is in.
struct RunningLoop {
    trips: u64,
    simulated: u64,
    done: u64,
    /// Clock, busy time and time on the way in the middle of the simulated trips.
    middle: (f64, f64, f64),
    /// Its record, in its first execution.
    record: Option<Site>,
}

/// The work of a mesh in the first execution of a loop.
#[derive(Clone, Debug)]
struct LoopRecord {
    /// Its trips, or the most of loops of the same statement, as of a reverse, or of a loop that is cut.
    trips: u64,
    /// The trips of the loops around it.
    around: Vec<u64>,
    end: f64,
    /// The busy time of the mesh before the loop, and then that in the loop.
    busy: f64,
    /// Likewise the time for which the values that the mesh sent were on the way.
    on_the_way: f64,
    /// When it had sent its first value, less the time for which it had worked in the loop until then.
    begin: Option<f64>,
    is_over: bool,
}

/// The state of a mesh.
struct MeshRun<'a> {
    clock: f64,
    busy: f64,
    /// The time for which the values that it sent were on the way, estimated for trips that are not simulated.
    on_the_way: f64,
    spans: Vec<BusySpan>,
    frames: Vec<TaskFrame<'a>>,
    records: BTreeMap<Site, LoopRecord>,
    /// The devices that it has in common with other meshes.
    shared: Vec<u32>,
}

struct Simulation<'a> {
    limit: u64,
    channels: &'a [ChannelTime],
    mailboxes: Vec<Mailbox>,
    meshes: Vec<MeshRun<'a>>,
    /// When devices that several meshes have are free.
    free: BTreeMap<u32, f64>,
}

impl<'a> Simulation<'a> {
    fn new(
        meshes: &[(&str, &[u32])],
        tasks: &'a [Vec<TimedStep>],
        channels: &'a [ChannelTime],
        limit: u64,
    ) -> Simulation<'a> {
        let mut times_used: BTreeMap<u32, usize> = BTreeMap::new();
        for device in meshes.iter().flat_map(|(_, devices)| *devices) {
            *times_used.entry(*device).or_default() += 1;
        }
        let is_shared = |device: &u32| times_used.get(device).is_some_and(|&times| times > 1);
        let meshes = meshes.iter().zip(tasks).map(|((_, devices), tasks)| MeshRun {
            clock: 0.0,
            busy: 0.0,
            on_the_way: 0.0,
            spans: Vec::new(),
            frames: vec![TaskFrame { tasks, next: 0, running: None }],
            records: BTreeMap::new(),
            shared: devices.iter().copied().filter(is_shared).collect(),
        });
        let mailboxes = vec![Mailbox::default(); channels.len()];
        Simulation { limit, channels, mailboxes, meshes: meshes.collect(), free: BTreeMap::new() }
    }

    /// Runs all meshes to their ends; None if some wait forever.
    fn run(&mut self) -> Option<()> {
        let mut next: Vec<Option<&'a TimedStep>> = self.meshes.iter_mut().map(|mesh| mesh.next(self.limit)).collect();
        while next.iter().any(Option::is_some) {
            let ready = next.iter().enumerate().filter_map(|(at, task)| Some((at, self.ready(at, (*task)?)?)));
            let (at, begin) = ready.min_by(|a, b| a.1.total_cmp(&b.1))?;
            if let Some(task) = next[at] {
                self.perform(at, task, begin);
            }
            next[at] = self.meshes[at].next(self.limit);
        }
        Some(())
    }

    /// When a mesh can begin a task; None as long as it waits for another mesh.
    fn ready(&self, mesh: usize, task: &TimedStep) -> Option<f64> {
        let run = &self.meshes[mesh];
        let free = run.shared.iter().filter_map(|device| self.free.get(device)).fold(run.clock, |a, &b| a.max(b));
        match task {
            TimedStep::Work(_) | TimedStep::Loop { .. } => Some(free),
            TimedStep::Send { channel, .. } => {
                let Mailbox { sent, received, empty, .. } = self.mailboxes[*channel];
                (received == sent).then_some(free.max(empty))
            }
            TimedStep::Receive { channel, .. } => {
                let Mailbox { sent, received, full, .. } = self.mailboxes[*channel];
                (sent > received).then_some(free.max(full))
            }
        }
    }

    fn perform(&mut self, mesh: usize, task: &TimedStep, begin: f64) {
        let time = match task {
            TimedStep::Work(time) | TimedStep::Send { time, .. } | TimedStep::Receive { time, .. } => *time,
            TimedStep::Loop { .. } => 0.0,
        };
        let (run, end) = (&mut self.meshes[mesh], begin + time);
        run.work(begin, end);
        for &device in &run.shared {
            self.free.insert(device, end);
        }
        match task {
            TimedStep::Work(_) | TimedStep::Loop { .. } => {}
            TimedStep::Send { channel, .. } => {
                let mailbox = &mut self.mailboxes[*channel];
                (mailbox.sent, mailbox.full) = (mailbox.sent + 1, end + self.channels[*channel].value);
                run.has_sent(self.channels[*channel].value);
            }
            TimedStep::Receive { channel, .. } => {
                let mailbox = &mut self.mailboxes[*channel];
                (mailbox.received, mailbox.empty) = (mailbox.received + 1, end + self.channels[*channel].notice);
            }
        }
    }

    /// The loops that several meshes run.
    fn loops(&self, meshes: &[(&str, &[u32])]) -> Vec<PipelinedLoop> {
        let mut found: Vec<(f64, PipelinedLoop)> = Vec::new();
        let sites: BTreeSet<Site> = self.meshes.iter().flat_map(|run| run.records.keys().copied()).collect();
        for site in sites {
            let records = self.meshes.iter().zip(meshes);
            let records = records.filter_map(|(run, (name, _))| Some((run.records.get(&site)?, *name)));
            let records: Vec<(&LoopRecord, &str)> = records.filter(|(record, _)| record.trips > 1).collect();
            let begin = records.iter().filter_map(|(record, _)| record.begin).reduce(f64::min);
            // A mesh that works ahead begins some trips before its longest loop, and ends as many after it; one that answers does not.
            let trips = records.iter().map(|(record, _)| record.trips).max().unwrap_or(0);
            let trip = |record: &LoopRecord| record.busy / trips as f64;
            let slowest = records.iter().max_by(|a, b| trip(a.0).total_cmp(&trip(b.0)));
            let (Some(begin), Some((record, name)), true) = (begin, slowest, records.len() > 1) else { continue };
            let end = records.iter().map(|(record, _)| record.end).fold(begin, f64::max);
            let shown = PipelinedLoop {
                site,
                trips,
                time: end - begin,
                slowest: name.to_string(),
                slowest_trip: trip(record),
                in_turns: records.iter().map(|(record, _)| record.busy + record.on_the_way).sum(),
            };
            if shown.slowest_trip > 0.0 {
                found.push((begin, shown));
            }
        }
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        found.into_iter().map(|(_, shown)| shown).collect()
    }
}

impl<'a> MeshRun<'a> {
    /// Enters and leaves loops until a task comes that takes time; None at the end.
    fn next(&mut self, limit: u64) -> Option<&'a TimedStep> {
        loop {
            let frame = self.frames.last_mut()?;
            let tasks: &'a [TimedStep] = frame.tasks;
            match tasks.get(frame.next) {
                Some(TimedStep::Loop { site, trips, body }) => {
                    frame.next += 1;
                    self.enter(*site, *trips, limit, body);
                }
                Some(task @ (TimedStep::Work(_) | TimedStep::Send { .. } | TimedStep::Receive { .. })) => {
                    frame.next += 1;
                    return Some(task);
                }
                None => self.end_of_trip(),
            }
        }
    }

    fn enter(&mut self, site: Site, trips: u64, limit: u64, body: &'a [TimedStep]) {
        if trips == 0 {
            return;
        }
        let around: Vec<u64> =
            self.frames.iter().filter_map(|frame| frame.running.as_ref()).map(|running| running.done).collect();
        let is_first = match self.records.get_mut(&site) {
            None => {
                let (end, busy, on_the_way) = (self.clock, self.busy, self.on_the_way);
                self.records
                    .insert(site, LoopRecord { trips, around, end, busy, on_the_way, begin: None, is_over: false });
                true
            }
            Some(record) if record.is_over && record.around == around => {
                record.busy = self.busy - record.busy;
                record.on_the_way = self.on_the_way - record.on_the_way;
                (record.trips, record.is_over) = (record.trips.max(trips), false);
                true
            }
            Some(_) => false,
        };
        let running = RunningLoop {
            trips,
            simulated: trips.min(limit),
            done: 0,
            middle: (self.clock, self.busy, self.on_the_way),
            record: is_first.then_some(site),
        };
        self.frames.push(TaskFrame { tasks: body, next: 0, running: Some(running) });
    }

    /// Begins the next trip of the innermost loop, or leaves it.
    fn end_of_trip(&mut self) {
        let now = (self.clock, self.busy, self.on_the_way);
        let Some(frame) = self.frames.last_mut() else { return };
        if let Some(running) = &mut frame.running {
            running.done += 1;
            if running.done == running.simulated / 2 {
                running.middle = now;
            }
            if running.done < running.simulated {
                frame.next = 0;
                return;
            }
        }
        if let Some(running) = self.frames.pop().and_then(|frame| frame.running) {
            self.leave(&running);
        }
    }

    /// Adds the time of the trips that are not simulated, and completes the record of the loop.
    fn leave(&mut self, running: &RunningLoop) {
        let RunningLoop { trips, simulated, middle: (clock, busy, on_the_way), record, .. } = running;
        if trips > simulated {
            let times = (trips - simulated) as f64 / (simulated - simulated / 2) as f64;
            self.clock += (self.clock - clock) * times;
            self.busy += (self.busy - busy) * times;
            self.on_the_way += (self.on_the_way - on_the_way) * times;
        }
        if let Some(record) = record.and_then(|site| self.records.get_mut(&site)) {
            (record.end, record.is_over) = (self.clock, true);
            record.busy = self.busy - record.busy;
            record.on_the_way = self.on_the_way - record.on_the_way;
        }
    }

    fn work(&mut self, begin: f64, end: f64) {
        debug_assert!(begin >= self.clock, "a mesh does one thing at a time");
        let trip = self.frames.iter().find_map(|frame| frame.running.as_ref()).map(|running| running.done);
        match self.spans.last_mut() {
            Some(last) if last.end >= begin && last.trip == trip => last.end = end,
            Some(_) | None if end > begin => self.spans.push(BusySpan { begin, end, trip }),
            Some(_) | None => {}
        }
        self.busy += end - begin;
        self.clock = end;
    }

    /// Records a value that the mesh sends, which is on the way for so long, and the beginning of the loops in which it is the first one.
    fn has_sent(&mut self, on_the_way: f64) {
        self.on_the_way += on_the_way;
        for record in self.records.values_mut().filter(|record| !record.is_over) {
            record.begin.get_or_insert(self.clock - (self.busy - record.busy));
        }
    }
}
