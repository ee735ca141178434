//! Checks kernels that run panel by panel, each some units of the range behind.

use super::accesses::{Accesses, UsedUnit};
use super::shadow::Spot;
use super::units::Units;
use super::{Replay, Stopped, fault};
use std::collections::BTreeMap;

/// For each arena and instance, when its units have been used last; 0 for never.
type LastUses = BTreeMap<(usize, usize), Units<u64>>;

/// The time in which a kernel with a lag runs for a unit, in units of the first kernel, counted from 1. Whatever the panels are, of two uses
/// the one with the earlier time comes first, and of two at the same time the one of the earlier kernel.
fn time(unit: i64, lag: u64) -> u64 {
    debug_assert!(unit >= 0, "a range begins at 0");
    unit as u64 + lag + 1
}

/// Checks that kernels may run with these lags: no unit of a kernel comes before a unit of an earlier kernel that uses the same bytes, if one
/// of both writes them.
pub fn run_with_lags(kernels: &[Accesses<'_>], lags: &[u64], replay: &mut Replay<'_>) -> Result<(), Stopped> {
    let (mut read, mut written) = (LastUses::new(), LastUses::new());
    for (kernel, &lag) in kernels.iter().zip(lags) {
        let units = kernel.of_units(replay)?;
        for used in &units {
            let time = time(used.unit, lag);
            let is_early = |spot: &Spot, uses: &LastUses| latest(replay, uses, spot) > time;
            if let Some(spot) = used.read.iter().find(|spot| is_early(spot, &written)) {
                return fault(format!("a panel reads byte {} before an earlier kernel writes it", spot.at));
            }
            if let Some(spot) = used.written.iter().find(|spot| is_early(spot, &written) || is_early(spot, &read)) {
                return fault(format!("a panel writes byte {} before an earlier kernel uses it", spot.at));
            }
        }
        for UsedUnit { unit, read: own, written: made } in &units {
            own.iter().for_each(|spot| record(replay, &mut read, spot, time(*unit, lag)));
            made.iter().for_each(|spot| record(replay, &mut written, spot, time(*unit, lag)));
        }
    }
    Ok(())
}

/// The time of the latest use of a byte of the spot.
fn latest(replay: &Replay<'_>, uses: &LastUses, spot: &Spot) -> u64 {
    let Some((instance, range)) = replay.shadow.units_of(spot) else { return 0 };
    uses.get(&instance).and_then(|units| units.runs(range).map(|(_, time)| time).max()).unwrap_or(0)
}

/// Records a use of the spot.
fn record(replay: &Replay<'_>, uses: &mut LastUses, spot: &Spot, time: u64) {
    let Some((instance, range)) = replay.shadow.units_of(spot) else { return };
    let units = uses.entry(instance).or_insert_with(|| Units::new(replay.shadow.len(instance)));
    let mut at = range.start;
    for (count, known) in units.runs(range).collect::<Vec<_>>() {
        if known < time {
            units.fill(at..at + count, time);
        }
        at += count;
    }
}
