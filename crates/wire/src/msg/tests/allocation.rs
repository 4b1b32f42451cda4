//! How much memory a piece of code has allocated at once, at most.
#![expect(
    unsafe_code,
    reason = "an allocator is an unsafe trait; this one only counts and hands on"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Bytes that this thread holds since the measurement began, and the most it ever held.
    static HELD: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

/// The system's allocator with a count for each thread.
struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

fn count(bytes: isize) {
    // A thread that is ending has no count any more, and nobody who asks for it.
    let _ = HELD.try_with(|held| {
        let (now, peak) = held.get();
        held.set((now + bytes, peak.max(now + bytes)));
    });
}

// SAFETY: every call goes to the system's allocator unchanged, which keeps the contract; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller keeps the contract of `dealloc`, and the memory came from the same allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Runs `code`; its result, and how many bytes it held at once, above those at the start.
pub(super) fn peak_of<T>(code: impl FnOnce() -> T) -> (T, usize) {
    HELD.set((0, 0));
    let result = code();
    (result, HELD.get().1.unsigned_abs())
}

#[test]
fn the_peak_is_seen() {
    let (_, peak) = peak_of(|| {
        drop(Vec::<u8>::with_capacity(5000));
        Vec::<u8>::with_capacity(1000)
    });
    assert_eq!(peak, 5000);
}
