//! Signals to and from groups of processes, for the command that starts a launcher.

use std::sync::atomic::{AtomicI32, Ordering};
use std::{mem, ptr};

/// A signal that ends processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndingSignal {
    /// Of the terminal: SIGINT.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// The terminal was closed: SIGHUP.
    HangUp,
    /// SIGKILL, which cannot be handled.
    Kill,
}

impl EndingSignal {
    const NOTED: [EndingSignal; 3] = [EndingSignal::Interrupt, EndingSignal::Terminate, EndingSignal::HangUp];

    /// The number of the signal; a shell reports 128 plus this number.
    pub fn number(self) -> i32 {
        match self {
            EndingSignal::Interrupt => libc::SIGINT,
            EndingSignal::Terminate => libc::SIGTERM,
            EndingSignal::HangUp => libc::SIGHUP,
            EndingSignal::Kill => libc::SIGKILL,
        }
    }

    /// Sends the signal to all processes of a group, which is named after the process that leads it. A group that has ended is left
    /// alone.
    pub fn send_to_group(self, leader: u32) {
        let Ok(group) = i32::try_from(leader) else { return };
        debug_assert!(group > 1, "the group of a process that this one has started");
        // SAFETY: it touches no memory of this process.
        unsafe { libc::kill(-group, self.number()) };
    }
}

/// The most recent signal; 0 before the first.
static NOTED: AtomicI32 = AtomicI32::new(0);

/// From now on SIGINT, SIGTERM and SIGHUP do not end this process: [`noted_signal`] tells which has come. A signal that is ignored, as
/// SIGHUP under `nohup`, stays so.
pub fn note_signals() {
    extern "C" fn note(signal: libc::c_int) {
        NOTED.store(signal, Ordering::Relaxed);
    }
    for signal in EndingSignal::NOTED {
        // SAFETY: both structures are plain data; the handler stores a number.
        unsafe {
            let mut present: libc::sigaction = mem::zeroed();
            if libc::sigaction(signal.number(), ptr::null(), &raw mut present) != 0
                || present.sa_sigaction == libc::SIG_IGN
            {
                continue;
            }
            let mut ours: libc::sigaction = mem::zeroed();
            let handler: extern "C" fn(libc::c_int) = note;
            ours.sa_sigaction = handler as libc::sighandler_t;
            ours.sa_flags = libc::SA_RESTART;
            libc::sigaction(signal.number(), &raw const ours, ptr::null_mut());
        }
    }
}

/// Takes the signal that has come since the last call.
pub fn noted_signal() -> Option<EndingSignal> {
    let number = NOTED.swap(0, Ordering::Relaxed);
    EndingSignal::NOTED.into_iter().find(|signal| signal.number() == number)
}

/// Whether this process belongs to root.
pub fn is_root() -> bool {
    // SAFETY: it touches no memory of this process, and cannot fail.
    unsafe { libc::geteuid() == 0 }
}
