//! Memory of the command: the compiler makes many small objects, and programs use few large arrays.

use mimalloc::MiMalloc;
use std::alloc::{GlobalAlloc, Layout, System};

/// Bytes from which the system's allocator is used: it maps large blocks one by one and returns them at once.
const LARGE: usize = 1 << 20;

/// An allocator for small blocks, and the system's for large ones.
pub struct BySize;

fn is_large(size: usize) -> bool {
    size >= LARGE
}

// SAFETY: both allocators are sound, and the size of a block, which its layout always tells, decides which one has it.
unsafe impl GlobalAlloc for BySize {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as promised by the caller.
        unsafe { if is_large(layout.size()) { System.alloc(layout) } else { MiMalloc.alloc(layout) } }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as promised by the caller.
        unsafe { if is_large(layout.size()) { System.alloc_zeroed(layout) } else { MiMalloc.alloc_zeroed(layout) } }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as promised by the caller; a block that changes its allocator is copied as far as both reach.
        unsafe {
            match (is_large(layout.size()), is_large(size)) {
                (true, true) => System.realloc(pointer, layout, size),
                (false, false) => MiMalloc.realloc(pointer, layout, size),
                (true, false) | (false, true) => {
                    let new = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
                    if !new.is_null() {
                        new.copy_from_nonoverlapping(pointer, layout.size().min(size));
                        self.dealloc(pointer, layout);
                    }
                    new
                }
            }
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as promised by the caller.
        unsafe {
            if is_large(layout.size()) { System.dealloc(pointer, layout) } else { MiMalloc.dealloc(pointer, layout) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LARGE;

    /// A block that grows beyond the limit, and shrinks again, moves between both allocators with its contents.
    #[test]
    fn contents_survive_a_change_of_the_allocator() {
        let mut numbers: Vec<u32> = (0..1000).collect();
        numbers.reserve_exact(LARGE);
        assert!(numbers.iter().copied().eq(0..1000));
        numbers.shrink_to_fit();
        assert!(numbers.iter().copied().eq(0..1000));
    }
}
