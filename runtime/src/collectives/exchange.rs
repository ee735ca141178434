//! Moving blocks until an array lies as its new layout says: all_gather, all_to_all, a plain slice, and every mixture.
//!
//! Cost: two meetings; each device reads the bytes of its block that lie elsewhere, once. Where the target is shared, a device
//! writes only what it holds itself: an all_gather into shared memory copies every byte once in all.

use super::{Move, Sides};
use crate::abi::{AxisSet, ExchangeStep};
use crate::memory::Memory;
use crate::trap::RunError;

/// What the device copies, given all the devices that take part (`group`). What already is in place is left out.
pub(crate) fn plan(memory: &Memory, step: &ExchangeStep, group: AxisSet, device: usize) -> Result<Vec<Move>, RunError> {
    let sides = Sides::new(memory, device, group, &step.from, &step.to);
    let to = memory.address(step.to.place, device);
    let pieces = sides.pieces(group, step.site)?;
    let moves = pieces.iter().map(|piece| {
        let from = memory.address(step.from.place, piece.owner);
        Move::new(from, to, sides.rows(piece))
    });
    Ok(moves.filter(|planned| !planned.is_identity()).collect())
}
