//! System calls without a safe wrapper in a library.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::process::Pid;

/// The process that returns from a fork.
pub(super) enum Fork {
    Parent(Pid),
    Child,
}

/// Forks this process; the child gets the namespaces that the flags name.
///
/// Only for a process with a single thread, such as the helper: the child goes on with all of its memory.
pub(super) fn fork(namespaces: libc::c_int) -> io::Result<Fork> {
    // SAFETY: without a stack of its own the child continues on a copy of ours, like after `fork`. The helper has
    // one thread, so no lock is held by a thread that the child lacks.
    let pid = unsafe {
        libc::syscall(libc::SYS_clone, libc::c_long::from(namespaces | libc::SIGCHLD), 0usize, 0usize, 0usize, 0usize)
    };
    match pid {
        0 => Ok(Fork::Child),
        pid if pid < 0 => Err(io::Error::last_os_error()),
        pid => {
            let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
            pid.map(Fork::Parent).ok_or_else(|| io::Error::other("a process without a number"))
        }
    }
}

/// Ends this process without running anything on the way out.
pub(super) fn exit(code: i32) -> ! {
    // SAFETY: ends the process; nothing of it is used afterwards.
    unsafe { libc::_exit(code) }
}

const MOUNT_ATTR_RDONLY: u64 = 1;
const MOUNT_ATTR_NOSUID: u64 = 2;
const MOUNT_ATTR_NODEV: u64 = 4;
/// The attributes of every mount of a sandbox.
const HARMLESS: u64 = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// Makes a mount, and with `below` all below it, read-only, `nodev`, `nosuid` and private. An empty path means the
/// descriptor itself.
pub(super) fn make_read_only(folder: BorrowedFd, path: &CStr, below: bool) -> io::Result<()> {
    set_attributes(folder, path, MOUNT_ATTR_RDONLY | HARMLESS, below)
}

/// Makes a mount and all below it `nodev`, `nosuid` and private.
pub(super) fn make_harmless(folder: BorrowedFd, path: &CStr) -> io::Result<()> {
    set_attributes(folder, path, HARMLESS, true)
}

/// Makes a mount `nosuid`, and not `nodev`.
pub(super) fn make_nosuid(mount: BorrowedFd) -> io::Result<()> {
    set_attributes(mount, c"", MOUNT_ATTR_NOSUID, true)
}

/// Makes a mount, and all below it, private: mounts elsewhere do not propagate to it.
pub(super) fn make_private(folder: BorrowedFd, path: &CStr) -> io::Result<()> {
    set_attributes(folder, path, 0, true)
}

fn set_attributes(folder: BorrowedFd, path: &CStr, set: u64, below: bool) -> io::Result<()> {
    let attributes = MountAttributes { set, clear: 0, propagation: libc::MS_PRIVATE, user_namespace: 0 };
    let below = if below { libc::AT_RECURSIVE } else { 0 };
    let flags = below | if path.is_empty() { libc::AT_EMPTY_PATH } else { 0 };
    // SAFETY: the path ends with NUL and the structure has the layout and size that the call expects.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            folder.as_raw_fd(),
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Takes a session keyring of its own, with no keys in it. A kernel without keys has none to take.
pub(super) fn leave_keyring() {
    const KEYCTL_JOIN_SESSION_KEYRING: libc::c_int = 1;
    // SAFETY: without a name nothing is read.
    unsafe { libc::syscall(libc::SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, 0usize) };
}

/// Keeps other processes, also of the same user, from this one's memory, descriptors and folders.
pub(super) fn forbid_inspection() -> io::Result<()> {
    Ok(rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?)
}

/// Gives up every capability for good, also those that a program of root would get back.
pub(super) fn drop_capabilities() -> io::Result<()> {
    for capability in 0..64 {
        // SAFETY: takes numbers only. Those that the kernel does not know are refused.
        if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) } != 0 {
            match io::Error::last_os_error() {
                error if error.raw_os_error() == Some(libc::EINVAL) => break,
                error => return Err(error),
            }
        }
    }
    let none = rustix::thread::CapabilitySets {
        effective: rustix::thread::CapabilitySet::empty(),
        permitted: rustix::thread::CapabilitySet::empty(),
        inheritable: rustix::thread::CapabilitySet::empty(),
    };
    rustix::thread::set_capabilities(None, none)?;
    rustix::thread::set_no_new_privs(true)?;
    Ok(())
}

/// Switches on the loopback of a new network namespace.
pub(super) fn bring_loopback_up() -> io::Result<()> {
    let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)?;
    // SAFETY: plain memory, for which zero is a fine value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the request has the layout that the call reads, and its name ends with NUL.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Signals from a terminal's keyboard. They are for the command, not for those that wait for it.
const KEYBOARD: &[libc::c_int] = &[libc::SIGINT, libc::SIGQUIT, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];

pub(super) fn ignore_keyboard() {
    set_keyboard(libc::SIG_IGN);
}

pub(super) fn heed_keyboard() {
    set_keyboard(libc::SIG_DFL);
}

fn set_keyboard(disposition: libc::sighandler_t) {
    for signal in KEYBOARD.iter().chain(&[libc::SIGPIPE]) {
        // SAFETY: no handler of ours is installed: signals are ignored or treated as usual.
        unsafe { libc::signal(*signal, disposition) };
    }
}
