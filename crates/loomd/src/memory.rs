//! Returns freed memory to the system. The C library keeps freed memory and returns it only from the end of its heap,
//! where a small live block is mostly in the way; the memory of a long history, or of a hundred turns at once, would
//! stay resident. When a large block is freed (the end of a large answer), or many of a middle size (requests to
//! models and their answers), a thread calls `malloc_trim`, which returns every unused page.

// The allocator's trait is unsafe to implement, and the C library is called directly.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Size of a large block: the text of a large answer or its parts.
const LARGE: usize = 1 << 20;
/// Size of a middle block: mostly the buffer of a connection or the body of a request.
const MIDDLE: usize = 8 << 10;
/// Freed bytes of middle blocks after which to trim.
const TRIM_AFTER: usize = 4 << 20;
/// Kept at the end of a heap: a rollout is read in chunks of half of that.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const TOP_PAD: libc::c_int = 512 << 10;
/// Delay from a large free to the trim: the rest of an answer is mostly freed within this time.
const SETTLE: Duration = Duration::from_millis(5);
/// After this time without a large free, a second trim returns the rest.
const QUIET: Duration = Duration::from_millis(500);

/// Shortest time between two trims, as each walks all heaps.
const PAUSE: Duration = Duration::from_millis(50);

static TRIMMER: OnceLock<Thread> = OnceLock::new();

/// Bytes of middle blocks freed since the last trim.
static FREED: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, which also wakes the trimming thread after large frees.
pub struct Allocator;

// Not inlined: there are ten thousand call sites, and the program's code is most of its memory.
//
// SAFETY: every call is the system allocator's own; waking a thread neither allocates nor frees.
unsafe impl GlobalAlloc for Allocator {
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    #[inline(never)]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    #[inline(never)]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, size) }
    }

    #[inline(never)]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) };
        if layout.size() >= MIDDLE
            && should_trim(layout.size())
            && let Some(keeper) = TRIMMER.get()
        {
            keeper.unpark();
        }
    }
}

/// Counts a freed block; returns whether to trim.
fn should_trim(size: usize) -> bool {
    if size >= LARGE {
        return true;
    }
    let before = FREED.fetch_add(size, Ordering::Relaxed);
    before / TRIM_AFTER != before.wrapping_add(size) / TRIM_AFTER
}

/// Starts the trimming thread. Without it the process only stays larger.
pub fn start_trimming() {
    fix_thresholds();
    let keeper = thread::Builder::new().name("memory".into()).spawn(|| {
        loop {
            thread::park();
            loop {
                thread::sleep(SETTLE);
                trim();
                thread::sleep(PAUSE);
                let quiet = Instant::now();
                thread::park_timeout(QUIET);
                if quiet.elapsed() >= QUIET {
                    break;
                }
            }
            trim();
        }
    });
    if let Ok(keeper) = keeper {
        _ = TRIMMER.set(keeper.thread().clone());
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn trim() {
    // SAFETY: takes no pointers, and may be called by any thread at any time.
    unsafe { libc::malloc_trim(0) };
}

/// Fixes the thresholds of the C library. It would raise them to the size of freed blocks, and keep as much and twice
/// as much of later blocks at the end of a thread's heap, where trimming does not reach.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn fix_thresholds() {
    // SAFETY: takes no pointers, and no other thread has been started.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE as libc::c_int);
        libc::mallopt(libc::M_TRIM_THRESHOLD, TOP_PAD);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn trim() {}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn fix_thresholds() {}
