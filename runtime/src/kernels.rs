//! Calls of kernels: one by one, or panel by panel, so that the rows between kernels stay in the cache: on one device, or for all devices
//! of a group.

use std::ops::Range;

use crate::collectives::reduce::UnitReduction;
use crate::team::{Team, first_trap};
use spmdc_abi::{Check, KernelFn, trap};

/// A call of a kernel for `begin..end` of its range.
#[derive(Debug)]
pub(crate) struct KernelCall {
    pub function: KernelFn,
    /// The index of the first argument in the device's lists.
    pub buffers: usize,
    pub scalars: usize,
    pub begin: i64,
    pub end: i64,
    /// Units of the range that a thread takes at a time; 0 if the call is too short for a team.
    pub chunk: i64,
    /// Its checks, by their numbers in trap codes.
    pub checks: Box<[Check]>,
}

impl KernelCall {
    /// Calls the kernel, in parts if there is a team and the call is long enough.
    ///
    /// # Safety
    /// The kernel must accept these arguments.
    pub unsafe fn run(&self, buffers: &[*mut u8], scalars: &[i64], team: Option<&mut Team>) -> i64 {
        if self.begin >= self.end {
            return trap::NONE;
        }
        debug_assert!(
            self.buffers <= buffers.len() && self.scalars <= scalars.len(),
            "a kernel's arguments lie in its device's lists"
        );
        debug_assert!(self.chunk >= 0, "a chunk of {}", self.chunk);
        let arguments = Arguments { buffers: buffers.as_ptr(), scalars: scalars.as_ptr() };
        let call = |begin, end| {
            // SAFETY: as promised by the caller.
            let code = unsafe { arguments.call(self, begin, end) };
            finish_stores();
            code
        };
        match team {
            Some(team) if self.chunk > 0 => team.run(self.begin, self.end, self.chunk, &call),
            _ => call(self.begin, self.end),
        }
    }
}

/// Orders a thread's stores past the caches before all its later ones: other threads see them behind the next barrier.
#[inline]
fn finish_stores() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this kind has the instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// The arguments of a device's kernels, shared by the threads that run parts of a range.
#[derive(Clone, Copy)]
struct Arguments {
    buffers: *const *mut u8,
    scalars: *const i64,
}

// SAFETY: kernels only read the two lists, and by definition parts of a kernel's range write different elements.
unsafe impl Sync for Arguments {}

impl Arguments {
    /// # Safety
    /// The kernel must accept its arguments, which were laid out in these lists when the call was prepared.
    unsafe fn call(&self, call: &KernelCall, begin: i64, end: i64) -> i64 {
        // SAFETY: as promised by the caller.
        unsafe { (call.function)(self.buffers.add(call.buffers), self.scalars.add(call.scalars), begin, end) }
    }
}

/// Calls of kernels that run panel by panel over their common range.
#[derive(Debug)]
pub(crate) struct Panels {
    pub calls: Box<[KernelCall]>,
    pub panel: i64,
    pub begin: i64,
    pub end: i64,
    /// As in [`KernelCall::chunk`].
    pub chunk: i64,
}

impl Panels {
    /// As [`KernelCall::run`].
    ///
    /// # Safety
    /// The kernels must accept these arguments, and pass nothing from one panel to another.
    pub unsafe fn run(&self, buffers: &[*mut u8], scalars: &[i64], team: Option<&mut Team>) -> i64 {
        debug_assert!(self.panel > 0, "panels of no rows");
        debug_assert!(
            self.calls.iter().all(|call| (call.begin, call.end) == (self.begin, self.end)),
            "the kernels of panels have one range"
        );
        let arguments = Arguments { buffers: buffers.as_ptr(), scalars: scalars.as_ptr() };
        let run = |begin: i64, end: i64| {
            let (mut at, mut failed) = (begin, trap::NONE);
            while at < end {
                let until = end.min(at + self.panel);
                // The checks of a call are numbered after those of the preceding calls.
                let mut before = 0;
                for call in &self.calls {
                    // SAFETY: as promised by the caller.
                    let code = unsafe { arguments.call(call, at, until) };
                    if code != trap::NONE {
                        failed = first_trap(failed, code + (before << trap::VALUE_BITS));
                    }
                    before += call.checks.len() as i64;
                }
                at = until;
            }
            finish_stores();
            failed
        };
        match team {
            Some(team) if self.chunk > 0 => team.run(self.begin, self.end, self.chunk, &run),
            _ => run(self.begin, self.end),
        }
    }
}

/// Kernels and reductions that this device runs panel by panel for all devices of its group.
#[derive(Debug)]
pub(crate) struct PanelsOfGroup {
    pub parts: Box<[PartOfPanels]>,
    /// Units of the range in a panel.
    pub panel: i64,
    /// The device's share of the range.
    pub units: Range<i64>,
    /// As in [`KernelCall::chunk`].
    pub chunk: i64,
}

/// A part of [`PanelsOfGroup`].
#[derive(Debug)]
pub(crate) enum PartOfPanels {
    /// The calls of a kernel: one for each device of the group, or for those that do not share the written memory.
    Kernel(Box<[KernelCall]>),
    Combine(UnitReduction),
}

impl PanelsOfGroup {
    /// As [`KernelCall::run`].
    ///
    /// # Safety
    /// The kernels must accept these arguments, and pass nothing from one panel to another. No other device may use the memory of the
    /// group meanwhile, except for other units of the range.
    pub unsafe fn run(&self, buffers: &[*mut u8], scalars: &[i64], team: Option<&mut Team>) -> i64 {
        debug_assert!(self.panel > 0, "panels of no rows");
        let arguments = Arguments { buffers: buffers.as_ptr(), scalars: scalars.as_ptr() };
        let run = |begin: i64, end: i64| {
            let (mut at, mut failed) = (begin, trap::NONE);
            while at < end {
                let until = end.min(at + self.panel);
                for part in &self.parts {
                    match part {
                        PartOfPanels::Kernel(calls) => {
                            for call in calls {
                                // SAFETY: as promised by the caller.
                                let code = unsafe { arguments.call(call, at, until) };
                                if code != trap::NONE {
                                    failed = first_trap(failed, code);
                                }
                            }
                        }
                        // SAFETY: as promised by the caller; the partial values of these units have just been written.
                        PartOfPanels::Combine(reduction) => unsafe { reduction.run(at..until) },
                    }
                }
                at = until;
            }
            finish_stores();
            failed
        };
        match team {
            Some(team) if self.chunk > 0 => team.run(self.units.start, self.units.end, self.chunk, &run),
            _ => run(self.units.start, self.units.end),
        }
    }
}
