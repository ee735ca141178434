//! Large results in memory of their own. Without a copy, the pages of a result leave the memory of the program, and new ones take their
//! place.

use std::ptr;

use crate::run::memory::{HUGE_PAGE, Memory};
use spmdc_abi::Place;

/// Minimum bytes of such a result (1 MiB): below, a copy into memory of the allocator is as fast.
const LEAST: usize = 1 << 20;
/// A multiple of the page size of every system.
const PAGE: usize = 64 << 10;

/// An array in memory of its own, which is returned to the system when this value is dropped.
#[derive(Debug)]
pub struct ArrayPages {
    base: *mut u8,
    mapped: usize,
    /// The array's first byte in the mapping, and its bytes.
    start: usize,
    bytes: usize,
    is_moved: bool,
}

// SAFETY: the memory belongs to this value alone.
unsafe impl Send for ArrayPages {}
// SAFETY: as above; shared references only give the address, or read.
unsafe impl Sync for ArrayPages {}

impl ArrayPages {
    /// The address of the array.
    pub fn as_ptr(&self) -> *mut u8 {
        self.base.wrapping_add(self.start)
    }

    /// Whether these are the pages into which the program wrote the array, and not a copy.
    pub fn is_moved(&self) -> bool {
        self.is_moved
    }

    /// The bytes of the array.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the array lies within the mapping, which is initialized.
        unsafe { std::slice::from_raw_parts(self.as_ptr(), self.bytes) }
    }

    /// Room for a large array, which is zeros; None for a small one, or if memory is exhausted.
    pub(crate) fn new(bytes: usize) -> Option<ArrayPages> {
        if bytes < LEAST {
            return None;
        }
        let mapped = bytes.checked_next_multiple_of(PAGE)?;
        let base = reserve(mapped, 0)?;
        // SAFETY: the advice changes no contents.
        #[cfg(target_os = "linux")]
        unsafe {
            libc::madvise(base.cast(), mapped, libc::MADV_HUGEPAGE);
        }
        Some(ArrayPages { base, mapped, start: 0, bytes, is_moved: false })
    }

    /// Moves the array at a place on a device out of the memory of a program, which has zeros there afterwards. None if the array is
    /// small, or if the system cannot move pages.
    ///
    /// # Safety
    /// The array must lie within its arena, and no device may be running.
    pub(crate) unsafe fn take(memory: &Memory, place: Place, device: usize, bytes: usize) -> Option<ArrayPages> {
        let from = memory.address(place, device);
        let start = from.addr() % PAGE;
        let head = (PAGE - start) % PAGE;
        let inner = bytes.checked_sub(head)? / PAGE * PAGE;
        if inner < LEAST {
            return None;
        }
        let tail = bytes - head - inner;
        let mapped = (start + bytes).next_multiple_of(PAGE);
        let pages = ArrayPages { base: reserve(mapped, from.addr() - start)?, mapped, start, bytes, is_moved: true };
        let to = pages.as_ptr();
        // SAFETY: source and target are whole pages of private mappings; the target is the new mapping, which nothing uses. The edges are
        // within both.
        unsafe {
            if !move_pages(from.add(head), to.add(head), inner) {
                return None;
            }
            to.copy_from_nonoverlapping(from, head);
            to.add(head + inner).copy_from_nonoverlapping(from.add(head + inner), tail);
        }
        Some(pages)
    }
}

impl Drop for ArrayPages {
    fn drop(&mut self) {
        // SAFETY: `reserve` made the mapping with this size, and no code uses it any more.
        unsafe { libc::munmap(self.base.cast(), self.mapped) };
    }
}

/// New memory whose address is that of `like` in its huge page, so that huge pages move as a whole.
fn reserve(bytes: usize, like: usize) -> Option<*mut u8> {
    let whole = bytes.checked_add(HUGE_PAGE)?;
    let (protection, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new private mapping at an address that the system chooses touches no existing memory.
    let start = unsafe { libc::mmap(ptr::null_mut(), whole, protection, kind, -1, 0) };
    if start == libc::MAP_FAILED {
        return None;
    }
    let start = start.cast::<u8>();
    let before = like.wrapping_sub(start.addr()) % HUGE_PAGE;
    debug_assert!(before.is_multiple_of(4096), "whole pages are given back");
    // SAFETY: `before < HUGE_PAGE`, and all sizes are multiples of the page size; so the returned bytes belong to this mapping, and nothing
    // points into them.
    unsafe {
        let base = start.add(before);
        if before > 0 {
            libc::munmap(start.cast(), before);
        }
        libc::munmap(base.add(bytes).cast(), HUGE_PAGE - before);
        Some(base)
    }
}

/// Moves pages, and leaves zeros. False if the system cannot.
///
/// # Safety
/// Both ranges must be whole pages of private anonymous mappings, and nothing may use the target.
unsafe fn move_pages(from: *mut u8, to: *mut u8, bytes: usize) -> bool {
    #[cfg(target_os = "linux")]
    {
        // The source stays mapped all the time, so that no other thread can map its range.
        let how = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;
        // SAFETY: as promised by the caller.
        let moved = unsafe { libc::mremap(from.cast(), bytes, bytes, how, to.cast::<libc::c_void>()) };
        moved == to.cast()
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (from, to, bytes);
        false
    }
}
