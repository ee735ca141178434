//! Where propagation took each axis from, for `spmdc why`.

use super::step::{Cause, Slot};
use spmdc_grammar::span::Span;
use spmdc_ir::program::Value;

/// For every value that propagation saw, the way of each of its axes back to what the program says.
#[derive(Clone, Debug, Default)]
pub struct Provenance {
    slot_of: Vec<Option<usize>>,
    /// The first value of each slot.
    owners: Vec<Option<Value>>,
    causes: Vec<Vec<(u8, Cause)>>,
    /// Where layouts of parameters and results came from that were given, the axes there having the numbers in the list.
    before: Vec<(Provenance, Vec<u8>)>,
}

/// One step back: a value that has the axis, and the statement that handed it on; None where the program says so itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// A value that is split over the axis.
    pub value: Value,
    /// The name and place of the statement from which the value has the axis; None where the program declares it.
    pub by: Option<(&'static str, Span)>,
}

impl Provenance {
    pub(super) fn new(slots: Vec<Slot>, slot_of: Vec<Option<usize>>) -> Provenance {
        let mut owners = vec![None; slots.len()];
        for (value, slot) in slot_of.iter().enumerate().rev() {
            if let Some(slot) = slot {
                owners[*slot] = Some(Value(value as u32));
            }
        }
        Provenance { slot_of, owners, causes: slots.into_iter().map(|slot| slot.causes).collect(), before: Vec::new() }
    }

    /// What is given here came from one of those, the first that knows; values are the same.
    pub fn behind(self, before: Vec<(Provenance, Vec<u8>)>) -> Provenance {
        Provenance { before, ..self }
    }

    /// From a value back to where one of its axes was given, which is the last link.
    pub fn chain(&self, value: Value, axis: u8) -> Vec<Link> {
        let mut links = Vec::new();
        let mut at = value;
        let mut slot = self.slot_of.get(value.0 as usize).copied().flatten();
        while let Some(number) = slot {
            let cause = self.causes[number].iter().find(|(known, _)| *known == axis).map(|(_, cause)| *cause);
            let knows = |(before, axes): &&(Provenance, Vec<u8>)| {
                before.causes[number].iter().any(|(known, _)| *known == axes[axis as usize])
            };
            if let (None, Some((before, axes))) = (cause, self.before.iter().find(knows)) {
                links.extend(before.chain(at, axes[axis as usize]));
                break;
            }
            links.push(Link { value: at, by: cause.map(|cause| (cause.op, cause.span)) });
            // A cause is older than what it causes, so this ends; a program has fewer slots than this at any rate.
            let next = cause.filter(|_| links.len() <= self.causes.len());
            slot = next.map(|cause| cause.from);
            if let Some(owner) = slot.and_then(|slot| self.owners[slot]) {
                at = owner;
            }
        }
        links
    }
}
