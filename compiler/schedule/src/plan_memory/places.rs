//! The places of a schedule's values, for a choice between schedules.

use super::lifetimes::Lifetimes;
use super::storage::Storage;
use crate::order::Schedule;
use spmdc_ir::program::{Module, Value};

/// The places of a schedule's values, for a choice between schedules.
pub struct PlannedPlaces<'a> {
    module: &'a Module,
    schedule: &'a Schedule,
    storage: Storage,
}

impl<'a> PlannedPlaces<'a> {
    /// Plans the memory of a schedule.
    pub fn of(module: &'a Module, schedule: &'a Schedule) -> PlannedPlaces<'a> {
        let lifetimes = Lifetimes::new(&module.func, schedule, &module.mesh);
        let storage = Storage::new(schedule, &lifetimes, &module.mesh);
        PlannedPlaces { module, schedule, storage }
    }

    /// The bytes that these copies move on each device: source and target of the others are one.
    pub fn copied(&self, copies: &[(Value, Value)]) -> u64 {
        let moved = copies.iter().filter(|(from, to)| self.storage.place(*from) != self.storage.place(*to));
        moved.map(|(_, to)| self.schedule.types[to.0 as usize].block_bytes(&self.module.mesh) as u64).sum()
    }

    /// The bytes of all devices.
    pub fn bytes(&self) -> u64 {
        let arenas = self.storage.arenas.iter();
        arenas.map(|arena| arena.bytes * self.module.mesh.size_of_set(arena.axes) as u64).sum()
    }
}
