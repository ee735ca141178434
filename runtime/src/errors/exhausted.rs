//! The error of a process that gets no more memory: most code cannot continue then, and the standard library ends the process by a signal.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether an allocation has failed.
static HAS_FAILED: AtomicBool = AtomicBool::new(false);

/// The last words, in the form of other errors.
const MESSAGE: &[u8] = b"error[E0803]: out of memory\n";

/// The exit status of an error while running.
const STATUS: libc::c_int = 3;

/// An allocator, the system's if no other is given, with a record of whether memory is exhausted.
pub struct NotingAllocator<A = System>(pub A);

fn noted(pointer: *mut u8) -> *mut u8 {
    if pointer.is_null() {
        HAS_FAILED.store(true, Ordering::Relaxed);
    }
    pointer
}

// SAFETY: the other allocator does everything.
unsafe impl<A: GlobalAlloc> GlobalAlloc for NotingAllocator<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as promised by the caller.
        noted(unsafe { self.0.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as promised by the caller.
        noted(unsafe { self.0.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as promised by the caller.
        noted(unsafe { self.0.realloc(pointer, layout, size) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as promised by the caller.
        unsafe { self.0.dealloc(pointer, layout) }
    }
}

/// From now on this process ends with status 3 and a message, where the standard library would abort it for want of memory.
pub fn end_with_status() {
    // SAFETY: the handler calls only async-signal-safe functions.
    unsafe {
        let handler: extern "C" fn(libc::c_int) = end;
        libc::signal(libc::SIGABRT, handler as libc::sighandler_t);
    }
}

extern "C" fn end(signal: libc::c_int) {
    // SAFETY: all of these are async-signal-safe.
    unsafe {
        if HAS_FAILED.load(Ordering::Relaxed) {
            libc::write(libc::STDERR_FILENO, MESSAGE.as_ptr().cast(), MESSAGE.len());
            libc::_exit(STATUS);
        }
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}
