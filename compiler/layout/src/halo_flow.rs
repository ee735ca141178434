//! The elements that move when devices fetch the halos of windows.
//!
//! A device takes boxes: along each dimension some runs of its owners' blocks. If the dimensions of a fetch are split over different axes,
//! the elements that a device takes and provides are a product over the dimensions. Then no box is visited: a fetch on a mesh of `n` by `n`
//! devices costs `n` steps for each dimension and `n * n` products. Otherwise all boxes are listed.

use super::crossings;
use super::mesh::Mesh;
use spmdc_abi::AxisSet;
use spmdc_abi::{FetchDim, FetchRun};
use std::collections::BTreeMap;

/// The elements that the fetches of some halos move.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HaloFlow {
    /// The axes along which devices fetch from each other.
    pub group: AxisSet,
    /// The elements of the device that provides, or receives, most.
    pub provided: usize,
    /// Maximum number of elements received by any device.
    pub received: usize,
    /// The number of elements received by all devices.
    pub total: usize,
    /// Maximum number of elements received by any host from others; 0 if no hosts are known.
    pub crossing: usize,
    /// The shape of the elements that the device provides which provides most; flat if they form no box.
    pub shape: Vec<usize>,
}

/// The flow of the fetches of halos.
pub fn flow(fetches: &[Vec<FetchDim>], mesh: &Mesh) -> HaloFlow {
    let lines: Option<Vec<Vec<FetchLine>>> = fetches.iter().map(|dims| lines(dims, mesh)).collect();
    match lines.filter(|_| mesh.hosts.is_none()) {
        Some(lines) => multiplied(&lines, mesh),
        // What crosses between hosts depends on the boxes.
        None => flow_of_boxes(fetches, mesh),
    }
}

/// The axes along which runs or their owners differ.
fn axes_of<'a>(dims: impl Iterator<Item = &'a FetchDim>) -> Vec<u8> {
    let all: AxisSet = dims.flat_map(|dim| dim.axes.iter().chain(&dim.owners)).map(|&axis| axis as usize).collect();
    all.iter().map(|axis| axis as u8).collect()
}

/// A dimension of a fetch.
struct FetchLine {
    /// The axes along which its runs or their owners differ.
    axes: Vec<u8>,
    /// For each position along these axes, the elements that a device takes and provides.
    at: Vec<TakenAndGiven>,
    /// The axes along which a device and an owner of its runs differ.
    group: AxisSet,
}

/// The elements that a device takes and provides along one dimension.
#[derive(Clone, Debug, Default)]
struct TakenAndGiven {
    /// Elements that it takes, from itself too.
    taken: usize,
    /// Elements that it takes from itself.
    own: usize,
    /// The distinct runs that devices take from it.
    given: Vec<GivenRun>,
}

#[derive(Clone, Debug)]
struct GivenRun {
    /// The run in the block of its owner.
    run: FetchRun,
    /// Whether no other device takes it.
    is_own: bool,
}

/// Elements, and the number of runs or boxes that have them.
#[derive(Clone, Copy, PartialEq)]
struct GivenBoxes {
    elements: usize,
    count: usize,
}

impl TakenAndGiven {
    /// All provided elements, or the elements that the device takes from itself.
    fn given(&self, only_own: bool) -> GivenBoxes {
        let runs = || self.given.iter().filter(|given| given.is_own || !only_own);
        GivenBoxes { elements: runs().map(|given| given.run.len).sum(), count: runs().count() }
    }
}

/// The dimensions of a fetch; None if two of them depend on one axis.
fn lines(dims: &[FetchDim], mesh: &Mesh) -> Option<Vec<FetchLine>> {
    let mut used = AxisSet::EMPTY;
    let line = |dim: &FetchDim| {
        let axes = axes_of(std::iter::once(dim));
        let own: AxisSet = axes.iter().map(|&axis| axis as usize).collect();
        let is_apart = used.intersect(own).is_empty();
        used = used.union(own);
        is_apart.then(|| line_of(dim, axes, mesh))
    };
    dims.iter().map(line).collect()
}

fn line_of(dim: &FetchDim, axes: Vec<u8>, mesh: &Mesh) -> FetchLine {
    let mut at = vec![TakenAndGiven::default(); mesh.size_of(&axes)];
    let mut group = AxisSet::EMPTY;
    for device in 0..at.len() {
        let here = mesh.positions(&axes, device);
        for run in &dim.runs[mesh.position(&dim.axes, &here)] {
            let mut owner = here.clone();
            mesh.set_position(&dim.owners, run.owner as usize, &mut owner);
            group = group.union((0..here.len()).filter(|&axis| owner[axis] != here[axis]).collect());
            let is_own = owner == here;
            at[device].taken += run.len;
            at[device].own += if is_own { run.len } else { 0 };
            let run = FetchRun { owner: 0, to: 0, ..*run };
            let given = &mut at[mesh.position(&axes, &owner)].given;
            match given.iter_mut().find(|given| given.run == run) {
                Some(given) => given.is_own &= is_own,
                None => given.push(GivenRun { run, is_own }),
            }
        }
    }
    FetchLine { axes, at, group }
}

/// The flow of fetches whose dimensions depend on different axes.
fn multiplied(fetches: &[Vec<FetchLine>], mesh: &Mesh) -> HaloFlow {
    let all: AxisSet = fetches.iter().flatten().flat_map(|line| &line.axes).map(|&axis| axis as usize).collect();
    let axes: Vec<u8> = all.iter().map(|axis| axis as u8).collect();
    let mut flow = HaloFlow::default();
    for lines in fetches.iter().filter(|lines| lines.iter().all(|line| line.at.iter().any(|at| at.taken > 0))) {
        flow.group = lines.iter().fold(flow.group, |group, line| group.union(line.group));
    }
    for device in 0..mesh.size_of(&axes) {
        let here = mesh.positions(&axes, device);
        let position = |line: &'_ FetchLine| mesh.position(&line.axes, &here);
        let of = |lines: &Vec<FetchLine>, what: fn(&TakenAndGiven) -> usize| -> usize {
            lines.iter().map(|line| what(&line.at[position(line)])).product()
        };
        let received: usize = fetches.iter().map(|lines| of(lines, |at| at.taken) - of(lines, |at| at.own)).sum();
        flow.received = flow.received.max(received);
        flow.total += received * (mesh.device_count() / mesh.size_of(&axes));
        let given = |lines: &Vec<FetchLine>, only_own: bool| {
            let none = GivenBoxes { elements: 1, count: 1 };
            lines.iter().map(|line| line.at[position(line)].given(only_own)).fold(none, |all, given| GivenBoxes {
                elements: all.elements * given.elements,
                count: all.count * given.count,
            })
        };
        let to_others: Vec<GivenBoxes> = fetches
            .iter()
            .map(|lines| {
                let (all, own) = (given(lines, false), given(lines, true));
                GivenBoxes { elements: all.elements - own.elements, count: all.count - own.count }
            })
            .collect();
        let provided: usize = to_others.iter().map(|given| given.elements).sum();
        if provided > flow.provided {
            flow.provided = provided;
            let is_box = to_others.iter().map(|given| given.count).sum::<usize>() == 1;
            let lines = fetches.iter().zip(&to_others).find(|(_, given)| given.count == 1).map(|(lines, _)| lines);
            flow.shape = match lines.filter(|_| is_box) {
                Some(lines) => {
                    lines.iter().map(|line| sent(&line.at[position(line)], given(lines, true).count)).collect()
                }
                None => vec![provided],
            };
        }
    }
    flow
}

/// The length along a dimension of the only box that others take, where the device takes `own` boxes that nobody else takes.
fn sent(at: &TakenAndGiven, own: usize) -> usize {
    let (all, alone) = (at.given(false), at.given(true));
    if own > 0 && all.count != alone.count { all.elements - alone.elements } else { all.elements }
}

/// A box that a device takes: the position of its owner, the number of the fetch, and the runs of the box.
type TakenBox = (usize, (usize, Vec<FetchRun>));

/// The flow, by the boxes of all devices.
pub fn flow_of_boxes(fetches: &[Vec<FetchDim>], mesh: &Mesh) -> HaloFlow {
    let axes = axes_of(fetches.iter().flatten());
    let mut flow = HaloFlow::default();
    // For each device, the boxes that others take from it; a box that several devices take counts once.
    let mut provided: BTreeMap<usize, Vec<(usize, Vec<FetchRun>)>> = BTreeMap::new();
    // For each device, the boxes that it takes, with their owners.
    let mut taken: Vec<Vec<TakenBox>> = Vec::new();
    for device in 0..mesh.size_of(&axes) {
        let at = mesh.positions(&axes, device);
        let mut received = 0;
        taken.push(Vec::new());
        for (number, dims) in fetches.iter().enumerate() {
            let mut boxes: Vec<(Vec<usize>, Vec<FetchRun>)> = vec![(at.clone(), Vec::new())];
            for dim in dims {
                let runs = &dim.runs[mesh.position(&dim.axes, &at)];
                let longer = boxes.iter().flat_map(|(owner, known)| {
                    runs.iter().map(|run| {
                        let mut owner = owner.clone();
                        mesh.set_position(&dim.owners, run.owner as usize, &mut owner);
                        (owner, [known.as_slice(), &[FetchRun { owner: 0, to: 0, ..*run }]].concat())
                    })
                });
                boxes = longer.collect();
            }
            for (owner, runs) in boxes.into_iter().filter(|(owner, _)| *owner != at) {
                received += runs.iter().map(|run| run.len).product::<usize>();
                let differing = (0..at.len()).filter(|&axis| owner[axis] != at[axis]);
                flow.group = flow.group.union(differing.collect());
                let place = mesh.position(&axes, &owner);
                if mesh.hosts.is_some() {
                    taken[device].push((place, (number, runs.clone())));
                }
                let boxes = provided.entry(place).or_default();
                if !boxes.contains(&(number, runs.clone())) {
                    boxes.push((number, runs));
                }
            }
        }
        flow.received = flow.received.max(received);
        flow.total += received * (mesh.device_count() / mesh.size_of(&axes));
    }
    let elements = |(_, runs): &(usize, Vec<FetchRun>)| runs.iter().map(|run| run.len).product::<usize>();
    flow.crossing = crossings::taken(&axes, &taken, &elements, mesh);
    for boxes in provided.values() {
        let shape = |runs: &[FetchRun]| runs.iter().map(|run| run.len).collect::<Vec<usize>>();
        let elements: usize = boxes.iter().map(|(_, runs)| shape(runs).iter().product::<usize>()).sum();
        if elements > flow.provided {
            flow.provided = elements;
            flow.shape = if let [(_, runs)] = boxes.as_slice() { shape(runs) } else { vec![elements] };
        }
    }
    flow
}
