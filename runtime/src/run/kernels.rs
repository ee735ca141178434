//! Calls of kernels: one by one, or panel by panel, so that the rows between kernels stay in the cache: on one device, or for all devices
//! of a group.

use std::ops::Range;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::collectives::reduce::UnitReduction;
use crate::run::team::{Team, first_trap};
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

/// Orders a thread's cache-bypassing stores before all its later ones: other threads see them after the next barrier.
#[inline]
pub(crate) fn finish_stores() {
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

/// Calls of kernels that run panel by panel over their ranges.
#[derive(Debug)]
pub(crate) struct Panels {
    pub calls: Box<[KernelCall]>,
    /// For each call, its lag after the first call of a panel, in units.
    pub lags: Box<[i64]>,
    pub panel: i64,
    pub begin: i64,
    pub end: i64,
    pub sharing: Sharing,
}

/// How the threads of a team share the work of panels.
#[derive(Debug)]
pub(crate) enum Sharing {
    /// There is only one thread, or too little work.
    Alone,
    /// Each takes chunks of the range with this number of units.
    Range { chunk: i64 },
    /// Each runs the calls of a stage on all panels, after the previous stage.
    Pipeline {
        stages: Box<[Range<usize>]>,
        /// For each stage the number of panels that it has done in this run.
        done: Box<[AtomicI64]>,
    },
    /// All threads run one call after the other, as if there were no panels.
    Kernels,
}

impl Sharing {
    /// A pipeline whose stages are these ranges of calls.
    pub fn pipeline(stages: Vec<Range<usize>>) -> Sharing {
        Sharing::Pipeline { done: stages.iter().map(|_| AtomicI64::new(0)).collect(), stages: stages.into() }
    }
}

impl Panels {
    /// As [`KernelCall::run`].
    ///
    /// # Safety
    /// The kernels must accept these arguments. Consider a unit later than a kernel's own unit minus the difference of the lags. The kernel
    /// may not use an element that an earlier kernel writes for such a unit, or write an element that an earlier kernel uses for it. If the
    /// range is shared, kernels must not pass data from one part of it to another.
    pub unsafe fn run(&self, buffers: &[*mut u8], scalars: &[i64], mut team: Option<&mut Team>) -> i64 {
        debug_assert!(self.panel > 0, "panels of no rows");
        debug_assert!(
            self.lags.iter().any(|lag| *lag > 0)
                || self.calls.iter().all(|call| (call.begin, call.end) == (self.begin, self.end)),
            "the kernels of panels without lags have one range"
        );
        debug_assert_eq!(self.calls.len(), self.lags.len(), "each kernel has a lag");
        let arguments = Arguments { buffers: buffers.as_ptr(), scalars: scalars.as_ptr() };
        let all = 0..self.calls.len();
        // SAFETY: as promised by the caller.
        let run = |units, calls| unsafe { self.panels(arguments, units, calls, &Waiting::default()) };
        match (&self.sharing, team.as_deref_mut()) {
            (Sharing::Range { chunk }, Some(team)) => {
                team.run(self.begin, self.end, *chunk, &|begin, end| run(begin..end, all.clone()))
            }
            (Sharing::Pipeline { stages, done }, Some(team)) => {
                done.iter().for_each(|done| done.store(0, Ordering::Relaxed));
                // Threads take stages in their order, so the stage that one waits for has begun.
                team.run(0, stages.len() as i64, 1, &|stage, _| {
                    let stage = stage as usize;
                    let waiting =
                        Waiting { before: stage.checked_sub(1).map(|before| &done[before]), own: Some(&done[stage]) };
                    // SAFETY: as promised by the caller.
                    unsafe { self.panels(arguments, self.begin..self.end, stages[stage].clone(), &waiting) }
                })
            }
            (Sharing::Kernels, Some(_)) => self.calls.iter().fold(trap::NONE, |failed, call| {
                // SAFETY: as promised by the caller.
                first_trap(failed, unsafe { call.run(buffers, scalars, team.as_deref_mut()) })
            }),
            (Sharing::Alone, _) | (_, None) => run(self.begin..self.end, all),
        }
    }

    /// Runs some of the calls on all panels of these units.
    ///
    /// # Safety
    /// As for [`Panels::run`].
    unsafe fn panels(
        &self,
        arguments: Arguments,
        units: Range<i64>,
        calls: Range<usize>,
        waiting: &Waiting<'_>,
    ) -> i64 {
        let behind = self.lags.iter().copied().max().unwrap_or(0);
        // The checks of a call are numbered after those of the preceding calls.
        let first_check: i64 = self.calls[..calls.start].iter().map(|call| call.checks.len() as i64).sum();
        let (mut at, mut number, mut failed) = (units.start, 0, trap::NONE);
        while at < units.end + behind {
            waiting.until(number);
            let mut before = first_check;
            for (call, lag) in self.calls[calls.clone()].iter().zip(&self.lags[calls.clone()]) {
                let begin = units.start.max(call.begin).max(at - lag);
                let end = units.end.min(call.end).min(at.saturating_add(self.panel) - lag);
                if begin < end {
                    // SAFETY: as promised by the caller.
                    let code = unsafe { arguments.call(call, begin, end) };
                    if code != trap::NONE {
                        failed = first_trap(failed, code + (before << trap::VALUE_BITS));
                    }
                }
                before += call.checks.len() as i64;
            }
            number += 1;
            waiting.finished(number);
            at = at.saturating_add(self.panel);
        }
        finish_stores();
        failed
    }
}

/// The numbers of panels that two stages of a pipeline have done; without them nobody waits.
#[derive(Default)]
struct Waiting<'a> {
    before: Option<&'a AtomicI64>,
    own: Option<&'a AtomicI64>,
}

impl Waiting<'_> {
    /// Waits until the stage before has done panel `number`, counted from 0.
    fn until(&self, number: i64) {
        let Some(before) = self.before else { return };
        let mut looks = 0;
        while before.load(Ordering::Acquire) <= number {
            // The other thread may need this very processor.
            looks += 1;
            if looks < 1000 { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }

    /// Publishes that this stage has finished this number of panels.
    fn finished(&self, panels: i64) {
        if let Some(own) = self.own {
            own.store(panels, Ordering::Release);
        }
    }
}

impl Drop for Waiting<'_> {
    /// Also a stage that panics has no more panels to wait for.
    fn drop(&mut self) {
        self.finished(i64::MAX);
    }
}

/// Kernels and reductions that this device runs panel by panel for all devices of its group.
#[derive(Debug)]
pub(crate) struct PanelsOfGroup {
    pub parts: Box<[PanelsMember]>,
    /// Units of the range in a panel.
    pub panel: i64,
    /// The device's share of the range.
    pub units: Range<i64>,
    /// As in [`KernelCall::chunk`].
    pub chunk: i64,
}

/// A part of [`PanelsOfGroup`].
#[derive(Debug)]
pub(crate) enum PanelsMember {
    /// The calls of a kernel: one for each device of the group, or for the devices that do not share the written memory.
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
                        PanelsMember::Kernel(calls) => {
                            for call in calls {
                                // SAFETY: as promised by the caller.
                                let code = unsafe { arguments.call(call, at, until) };
                                if code != trap::NONE {
                                    failed = first_trap(failed, code);
                                }
                            }
                        }
                        // SAFETY: as promised by the caller; the partial values of these units have just been written.
                        PanelsMember::Combine(reduction) => unsafe { reduction.run(at..until) },
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
