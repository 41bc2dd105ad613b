//! Memory that large answers took goes back to the system. The C library keeps what is freed, and returns
//! it only from the end of its heap, where something small mostly stands in the way; a history of thousands
//! of turns would stay resident for good, and so would what a hundred turns at once took. So when a large
//! block is freed, which is the end of a large answer, or many of a middle size, which are requests to models
//! and what was made of their answers, a thread that otherwise sleeps asks the library to return every page
//! that is not in use.

// The allocator's trait is unsafe to implement, and the C library is called directly.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// A block of this size is the text of a large answer or what it was made from.
const LARGE: usize = 1 << 20;
/// A block of this size is mostly the buffer of a connection or the body of a request.
const MIDDLE: usize = 8 << 10;
/// When so much of that size was freed, it is worth returning.
const TRIM_AFTER: usize = 4 << 20;
/// Kept at the end of a heap: a rollout is read in pieces of half of that.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const TOP_PAD: libc::c_int = 512 << 10;
/// The rest of what belongs to the block is freed within this time, mostly.
const SETTLE: Duration = Duration::from_millis(5);
/// When nothing large was freed for this long, the rest is freed for certain.
const QUIET: Duration = Duration::from_millis(500);

/// Looking through all heaps takes time, so it is not done more often than this.
const PAUSE: Duration = Duration::from_millis(50);

static TRIMMER: OnceLock<Thread> = OnceLock::new();

/// How much of a middle size was freed.
static FREED: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, which also notices the end of large blocks.
pub struct Allocator;

// Not inlined: there are ten thousand places that allocate, and the program's text is most of its memory.
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

/// Whether, with a block of this size, enough has been freed.
fn should_trim(size: usize) -> bool {
    if size >= LARGE {
        return true;
    }
    let before = FREED.fetch_add(size, Ordering::Relaxed);
    before / TRIM_AFTER != before.wrapping_add(size) / TRIM_AFTER
}

/// Begins to return memory. Without the thread the process is as good, only larger.
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

/// The library raises its thresholds to the size of what is freed, and would keep as much and twice as much
/// of later blocks: at the end of a thread's heap, where trimming does not reach. Setting them ends that.
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
