//! Shadow memory: the memory of all devices, with the names of the values in it instead of its contents.
//!
//! Its unit is the size of the smallest elements of the program.

use super::units::{SetId, Units};
use spmdc_abi::mesh::DeviceMesh;
use spmdc_abi::{Arena, AxisSet, Place};
use std::collections::BTreeMap;

/// A name: the number of a class of values with the same bytes.
pub type Name = u32;

/// The set of names in each unit: empty before the first write, several names after a copy that costs nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct ShadowMemory {
    /// By arena, by instance.
    units: Vec<Vec<Units<SetId>>>,
}

/// The last write of a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct WriteMark {
    step: u32,
    device: u32,
    /// The number of the point of the kernel's loops that wrote it.
    point: u64,
}

/// Shadow memory with the writes of the present step.
pub struct Shadow {
    pub memory: ShadowMemory,
    /// By arena, by instance.
    marks: Vec<Vec<Units<WriteMark>>>,
    unit: u64,
    step: u32,
    /// By arena and device, the instance that the device sees.
    instances: Vec<Vec<usize>>,
    sets: Vec<Vec<Name>>,
    ids: BTreeMap<Vec<Name>, SetId>,
    /// By name, the set of this name alone; the empty set if it is not known yet.
    alone: Vec<SetId>,
}

/// The bytes of a value on a device.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    pub place: Place,
    pub device: usize,
    /// In bytes from the start of the value's buffer.
    pub at: u64,
    pub len: u64,
}

/// The axes along which devices have an instance of an arena each.
fn axes(arena: &Arena, mesh: &DeviceMesh) -> AxisSet {
    arena.axes.intersect(mesh.axes())
}

fn count(arena: &Arena, mesh: &DeviceMesh) -> usize {
    mesh.count(axes(arena, mesh).iter())
}

/// The number of units of the memory of all devices, at most `u64::MAX`.
pub fn units(arenas: &[Arena], mesh: &DeviceMesh, unit: u64) -> u64 {
    let units = arenas.iter().map(|arena| arena.bytes.div_ceil(unit).saturating_mul(count(arena, mesh) as u64));
    units.fold(0, u64::saturating_add)
}

impl ShadowMemory {
    /// The number of units.
    pub fn len(&self) -> usize {
        self.units.iter().flatten().map(Units::len).sum()
    }
}

impl Shadow {
    pub fn new(arenas: &[Arena], mesh: &DeviceMesh, unit: u64) -> Shadow {
        fn empty<T: Copy + Default + PartialEq>(arenas: &[Arena], mesh: &DeviceMesh, unit: u64) -> Vec<Vec<Units<T>>> {
            let of_arena = |arena: &Arena| vec![Units::new(arena.bytes.div_ceil(unit) as usize); count(arena, mesh)];
            arenas.iter().map(of_arena).collect()
        }
        Shadow {
            memory: ShadowMemory { units: empty(arenas, mesh, unit) },
            marks: empty(arenas, mesh, unit),
            unit,
            step: 0,
            instances: arenas
                .iter()
                .map(|arena| (0..mesh.devices()).map(|device| mesh.linear(device, axes(arena, mesh).iter())).collect())
                .collect(),
            sets: vec![Vec::new()],
            ids: BTreeMap::from([(Vec::new(), 0)]),
            alone: Vec::new(),
        }
    }

    /// Begins the next step, which all devices execute at the same time.
    pub fn next_step(&mut self) {
        self.step += 1;
    }

    fn set(&mut self, names: Vec<Name>) -> SetId {
        let next = self.sets.len() as SetId;
        let id = *self.ids.entry(names.clone()).or_insert(next);
        if id == next {
            self.sets.push(names);
        }
        id
    }

    /// The set of one name.
    fn alone(&mut self, name: Name) -> SetId {
        let at = name as usize;
        if at >= self.alone.len() {
            self.alone.resize(at + 1, 0);
        }
        if self.alone[at] == 0 {
            self.alone[at] = self.set(vec![name]);
        }
        self.alone[at]
    }

    /// The arena and instance of a spot, with its units; None if it is not in memory.
    pub fn units_of(&self, spot: &Spot) -> Option<((usize, usize), std::ops::Range<usize>)> {
        Some((self.instance(spot), self.range(spot)?))
    }

    /// The number of units of an instance of an arena.
    pub fn len(&self, (arena, instance): (usize, usize)) -> usize {
        self.memory.units[arena][instance].len()
    }

    fn instance(&self, spot: &Spot) -> (usize, usize) {
        let arena = spot.place.arena as usize;
        (arena, self.instances[arena][spot.device])
    }

    /// The units of the spot; None if it is not in memory.
    fn range(&self, spot: &Spot) -> Option<std::ops::Range<usize>> {
        let (arena, instance) = self.instance(spot);
        let start = spot.place.offset.checked_add(spot.at)?;
        let (start, end) = (start / self.unit, start.checked_add(spot.len)?.div_ceil(self.unit));
        (end <= self.memory.units[arena][instance].len() as u64).then_some(start as usize..end as usize)
    }

    /// Whether the value is in all units of the spot.
    pub fn holds(&self, spot: &Spot, name: Name) -> bool {
        let (arena, instance) = self.instance(spot);
        let Some(range) = self.range(spot) else { return false };
        let mut last = None;
        self.memory.units[arena][instance].runs(range).all(|(_, set)| {
            last == Some(set) || (self.sets[set as usize].contains(&name) && last.replace(set) != Some(set))
        })
    }

    /// For each unit of the spot, whether the value is there.
    pub fn known(&self, spot: &Spot, name: Name) -> Vec<bool> {
        let (arena, instance) = self.instance(spot);
        let Some(range) = self.range(spot) else { return Vec::new() };
        let named: Vec<bool> = self.sets.iter().map(|set| set.contains(&name)).collect();
        let runs = self.memory.units[arena][instance].runs(range);
        runs.flat_map(|(count, set)| std::iter::repeat_n(named[set as usize], count)).collect()
    }

    /// The first byte of the spot without the value, and the names of the values there.
    pub fn other(&self, spot: &Spot, name: Name) -> (u64, &[Name]) {
        let at = self.known(spot, name).iter().position(|&known| !known).unwrap_or(0);
        let (arena, instance) = self.instance(spot);
        let rest = self.range(spot).map(|range| (range.start + at).min(range.end)..range.end);
        let set = rest.and_then(|rest| self.memory.units[arena][instance].runs(rest).next());
        (spot.at + at as u64 * self.unit, set.map_or(&[], |(_, set)| &self.sets[set as usize]))
    }

    /// Writes the value to the spot, which then holds no other name.
    pub fn write(&mut self, spot: &Spot, name: Name) {
        let only = self.alone(name);
        self.fill(spot, only);
    }

    /// As [`Shadow::write`] for units that are known; the other units get no name.
    pub fn write_known(&mut self, spot: &Spot, name: Name, known: &[bool]) {
        let only = self.alone(name);
        let (arena, instance) = self.instance(spot);
        if let Some(range) = self.range(spot) {
            debug_assert_eq!(range.len(), known.len(), "each unit is known or not");
            self.memory.units[arena][instance].replace(range, |at, _| if known[at] { only } else { 0 });
        }
    }

    fn fill(&mut self, spot: &Spot, set: SetId) {
        let (arena, instance) = self.instance(spot);
        if let Some(range) = self.range(spot) {
            self.memory.units[arena][instance].fill(range, set);
        }
    }

    /// Records that this device writes there in this step, at this point of its loops; false if another device has done so.
    pub fn mark(&mut self, spot: &Spot, point: u64) -> bool {
        self.mark_by(spot, spot.device, point)
    }

    fn mark_by(&mut self, spot: &Spot, writer: usize, point: u64) -> bool {
        let (arena, instance) = self.instance(spot);
        let Some(range) = self.range(spot) else { return true };
        let mark = WriteMark { step: self.step, device: writer as u32, point };
        let marks = &mut self.marks[arena][instance];
        let is_free =
            marks.runs(range.clone()).all(|(_, known)| known.step != mark.step || known.device == mark.device);
        marks.fill(range, mark);
        is_free
    }

    /// As [`Shadow::mark`] for memory that any device writes, but false also if it has written there at another point.
    pub fn claim(&mut self, spot: &Spot, writer: usize, point: u64) -> bool {
        self.is_undisturbed(spot, writer, point) && self.mark_by(spot, writer, point)
    }

    /// Whether no device writes there in this step, except for this one at this very point of its loops.
    pub fn is_undisturbed(&self, spot: &Spot, writer: usize, point: u64) -> bool {
        let (arena, instance) = self.instance(spot);
        let Some(range) = self.range(spot) else { return true };
        let is_own = |mark: WriteMark| (mark.device, mark.point) == (writer as u32, point);
        self.marks[arena][instance].runs(range).all(|(_, mark)| mark.step != self.step || is_own(mark))
    }

    /// Gives the units of these bytes that have the name `from` the name `to` as well.
    pub fn rename(&mut self, place: Place, len: u64, from: Name, to: Name) {
        let arena = place.arena as usize;
        let range = (place.offset / self.unit) as usize..(place.offset + len).div_ceil(self.unit) as usize;
        let mut units = std::mem::take(&mut self.memory.units[arena]);
        for instance in &mut units {
            instance.map(range.clone(), |set| self.renamed(set, from, to));
        }
        self.memory.units[arena] = units;
    }

    fn renamed(&mut self, set: SetId, from: Name, to: Name) -> SetId {
        let names = &self.sets[set as usize];
        if !names.contains(&from) || names.contains(&to) {
            return set;
        }
        let mut names = names.clone();
        names.push(to);
        names.sort_unstable();
        self.set(names)
    }

    /// Removes these names from all units: a loop computes their values again in each trip.
    pub fn kill(&mut self, names: &[Name]) {
        let ids: Vec<SetId> = (0..self.sets.len())
            .map(|id| {
                let set = &self.sets[id];
                if !set.iter().any(|name| names.contains(name)) {
                    return id as SetId;
                }
                self.set(set.iter().copied().filter(|name| !names.contains(name)).collect())
            })
            .collect();
        for instance in self.memory.units.iter_mut().flatten() {
            instance.map(0..instance.len(), |set| ids[set as usize]);
        }
    }

    /// Keeps the names that each unit has on both of two paths to a step.
    pub fn join(&mut self, other: &ShadowMemory) {
        let mut memory = std::mem::replace(&mut self.memory, ShadowMemory { units: Vec::new() });
        let mut known: BTreeMap<(SetId, SetId), SetId> = BTreeMap::new();
        // Neighbours mostly have the same names.
        let mut last = ((0, 0), 0);
        for (ours, theirs) in memory.units.iter_mut().flatten().zip(other.units.iter().flatten()) {
            ours.join(theirs, |one, other| {
                if (one, other) != last.0 {
                    let common = *known.entry((one, other)).or_insert_with(|| self.common((one, other)));
                    last = ((one, other), common);
                }
                last.1
            });
        }
        self.memory = memory;
    }

    /// The names in both of two sets.
    fn common(&mut self, (a, b): (SetId, SetId)) -> SetId {
        let (a, b) = (&self.sets[a as usize], &self.sets[b as usize]);
        self.set(a.iter().copied().filter(|name| b.contains(name)).collect())
    }
}
