//! Finds the arrays whose stores may bypass the caches.
//!
//! A large array has left the caches before the next kernel reads it from its beginning. To write it there first reads every line of
//! it from memory, which a store that bypasses the caches does not. Arrays that are written in place, or that another kernel of the same panel
//! uses, stay: their lines are in the cache anyway.

use spmdc_abi::{KernelStep, Step, TileMember};
use spmdc_kernel::loops::Kernel;

/// Marks the written arrays whose bytes on all devices are at least `least`.
pub fn mark(steps: &[Step], kernels: &mut [Kernel], devices: u64, least: u64) {
    for slot in kernels.iter_mut().flat_map(|kernel| &mut kernel.buffers) {
        let bytes = (slot.len as u64).saturating_mul(slot.dtype.size() as u64 * devices);
        slot.streamed = slot.written && bytes >= least;
    }
    keep(steps, kernels);
}

/// Takes the mark from arrays that a kernel itself, or another one of its panel, has in the cache.
fn keep(steps: &[Step], kernels: &mut [Kernel]) {
    for step in Step::walk(steps) {
        if let Step::GroupPanels(panels) = step {
            keep_among(panels.kernels(), kernels);
        }
        if let Step::Tiles(tiles) = step {
            // Members read from the caches again.
            for member in &tiles.members {
                if let TileMember::Kernel(part) = member {
                    kernels[part.kernel as usize].buffers.iter_mut().for_each(|slot| slot.streamed = false);
                }
            }
        }
        keep_among(step.kernels().iter(), kernels);
    }
}

/// Takes the mark from arrays whose bytes are in more than one buffer of these kernels, which run one after the other on a panel.
fn keep_among<'a>(members: impl Iterator<Item = &'a KernelStep>, kernels: &mut [Kernel]) {
    let buffers = members.flat_map(|member| (0..member.buffers.len()).map(move |number| (member, number)));
    let ranges: Vec<_> = buffers
        .map(|(member, number)| {
            let (slot, place) = (&kernels[member.kernel as usize].buffers[number], &member.buffers[number]);
            let end = place.offset + slot.len as u64 * slot.dtype.size() as u64;
            (member.kernel as usize, number, place.arena, place.offset..end)
        })
        .collect();
    for (at, (kernel, number, arena, range)) in ranges.iter().enumerate() {
        let overlaps = ranges.iter().enumerate().any(|(other, (_, _, other_arena, other_range))| {
            at != other && arena == other_arena && range.start < other_range.end && other_range.start < range.end
        });
        if overlaps {
            kernels[*kernel].buffers[*number].streamed = false;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use spmdc_abi::{AxisSet, DType, Place, Scalar, Site};
    use spmdc_kernel::loops::BufferSlot;

    fn kernel() -> Kernel {
        let slot = |written| BufferSlot { dtype: DType::F32, written, len: 1000, streamed: false };
        Kernel { buffers: vec![slot(false), slot(true)], ..Kernel::default() }
    }

    fn step(kernel: u32, offsets: [u64; 2]) -> KernelStep {
        KernelStep {
            kernel,
            buffers: offsets.map(|offset| Place { arena: 0, offset }).to_vec(),
            scalars: Vec::new(),
            range: Scalar::Const(1),
            part: None,
            split: AxisSet::default(),
            grain: 1,
            cost: 1.0,
            site: Site::default(),
            checks: Vec::new(),
        }
    }

    #[test]
    fn large_arrays_are_streamed_unless_a_panel_reads_them_again() {
        let streamed = |steps: &[Step], devices, least| -> Vec<bool> {
            let mut kernels = vec![kernel(); 2];
            mark(steps, &mut kernels, devices, least);
            kernels.iter().map(|kernel| kernel.buffers[1].streamed).collect()
        };
        let (first, second) = (step(0, [0, 4096]), step(1, [4096, 8192]));
        let alone = [Step::Kernel(first.clone()), Step::Kernel(second.clone())];
        assert_eq!(streamed(&alone, 1, 4000), [true, true]);
        assert_eq!(streamed(&alone, 1, 4001), [false, false]);
        assert_eq!(streamed(&alone, 2, 8000), [true, true]);
        let in_place = [Step::Kernel(step(0, [4096, 4096])), Step::Kernel(second.clone())];
        assert_eq!(streamed(&in_place, 1, 4000), [false, true]);
        let panels = [Step::Panels { kernels: vec![first, second], lags: vec![0; 2], panel: 1 }];
        assert_eq!(streamed(&panels, 1, 4000), [false, true]);
    }
}
