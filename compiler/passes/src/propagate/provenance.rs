//! The source of each axis that propagation added, for `spmdc why`.

use super::step::{Cause, Slot};
use spmdc_grammar::span::Span;
use spmdc_ir::program::Value;

/// For every value that propagation saw, the path of each of its axes back to a declaration in the program.
#[derive(Clone, Debug, Default)]
pub struct Provenance {
    slot_of: Vec<Option<usize>>,
    /// The first value of each slot.
    owners: Vec<Option<Value>>,
    causes: Vec<Vec<(u8, Cause)>>,
    /// Earlier propagations that decided the given layouts of parameters and results; the list translates the numbers of axes.
    before: Vec<(Provenance, Vec<u8>)>,
}

/// One step back: a value that has the axis, and the statement that passed it on.
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

    /// Adds the earlier propagations that decided the layouts given here; the first that knows an axis counts. They have the same
    /// values.
    pub fn behind(self, before: Vec<(Provenance, Vec<u8>)>) -> Provenance {
        Provenance { before, ..self }
    }

    /// The links from a value back to the declaration of one of its axes, which is the last link.
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
            // A cause is older than its effect, so this ends; the number of slots bounds it at any rate.
            let next = cause.filter(|_| links.len() <= self.causes.len());
            slot = next.map(|cause| cause.from);
            if let Some(owner) = slot.and_then(|slot| self.owners[slot]) {
                at = owner;
            }
        }
        links
    }
}
