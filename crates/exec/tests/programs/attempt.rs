//! Attempts to leave a sandbox that no common program makes. Prints "escaped" when one succeeds.
#![allow(unsafe_code, reason = "each is one bare system call")]

use std::ffi::{CString, c_int, c_long};
use std::io;
use std::mem::{size_of, zeroed};

const AF_ALG: c_int = 38;
const AF_TIPC: c_int = 30;

pub fn attempt(arguments: &[String]) -> io::Result<()> {
    let words: Vec<_> = arguments.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["socket", kind] => socket(kind),
        ["socket-32"] => socket_32(),
        ["sendmsg", path] => send_to(path, false),
        ["pair-sendmsg", path] => send_to(path, true),
        ["receive", path] => return std::os::unix::net::UnixStream::connect(path).map(drop),
        ["io-uring"] => io_uring(),
        ["keyring"] => keyring(),
        ["exchange", one, other] => exchange(one, other),
        ["processes", count] => processes(count.parse().unwrap_or(0)),
        ["bpf"] => bpf(),
        ["open-tree"] => open_tree(),
        ["fsopen"] => fsopen(),
        ["ptrace", pid] => trace(libc::PTRACE_SEIZE, pid.parse().unwrap_or(0)),
        ["ptrace-me"] => trace(libc::PTRACE_TRACEME, 0),
        ["pidfd-kill", pid] => kill_by_descriptor(pid.parse().unwrap_or(0)),
        _ => return Err(io::ErrorKind::InvalidInput.into()),
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    println!("escaped");
    Ok(())
}

fn socket(kind: &str) -> c_long {
    let (family, socket_type, protocol) = match kind {
        "netlink" => (libc::AF_NETLINK, libc::SOCK_RAW, 0),
        "packet" => (libc::AF_PACKET, libc::SOCK_RAW, 0),
        "raw" => (libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP),
        "vsock" => (libc::AF_VSOCK, libc::SOCK_STREAM, 0),
        "alg" => (AF_ALG, libc::SOCK_SEQPACKET, 0),
        _ => (AF_TIPC, libc::SOCK_STREAM, 0),
    };
    // SAFETY: takes numbers only.
    unsafe { libc::socket(family, socket_type, protocol).into() }
}

/// The call that programs of 32 bits make, with numbers of its own.
#[cfg(target_arch = "x86_64")]
fn socket_32() -> c_long {
    let mut result: i32 = 359;
    // SAFETY: the call takes numbers only and changes nothing but its result. `rbx` is not for us to name.
    unsafe {
        std::arch::asm!(
            "xchg rbx, {family}", "int 0x80", "xchg rbx, {family}",
            family = inout(reg) libc::AF_INET as u64 => _,
            inout("eax") result, in("ecx") libc::SOCK_STREAM, in("edx") 0,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    result.into()
}

#[cfg(not(target_arch = "x86_64"))]
fn socket_32() -> c_long {
    -1
}

/// A datagram whose address is only in the message.
fn send_to(path: &str, pair: bool) -> c_long {
    // SAFETY: the structures are plain memory, filled in below; every pointer in the message is to a variable
    // that lives until the call has returned.
    unsafe {
        let mut ends = [0; 2];
        let fd = if pair {
            let made = libc::socketpair(libc::AF_UNIX, libc::SOCK_DGRAM, 0, ends.as_mut_ptr());
            if made < 0 { made } else { ends[0] }
        } else {
            libc::socket(libc::AF_UNIX, libc::SOCK_DGRAM, 0)
        };
        if fd < 0 {
            return fd.into();
        }
        let mut address: libc::sockaddr_un = zeroed();
        address.sun_family = libc::AF_UNIX as libc::sa_family_t;
        for (to, from) in address.sun_path.iter_mut().zip(path.bytes()) {
            *to = from as libc::c_char;
        }
        let mut byte = *b"x";
        let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
        let mut message: libc::msghdr = zeroed();
        message.msg_name = (&raw mut address).cast();
        message.msg_namelen = size_of::<libc::sockaddr_un>() as libc::socklen_t;
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        libc::sendmsg(fd, &message, 0) as c_long
    }
}

fn io_uring() -> c_long {
    let mut parameters = [0u32; 30];
    // SAFETY: the kernel fills in a structure of this size.
    unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) }
}

/// The number of the session's keyring.
fn keyring() -> c_long {
    const GET_KEYRING_ID: c_int = 0;
    const SESSION: c_int = -3;
    // SAFETY: takes numbers only.
    unsafe { libc::syscall(libc::SYS_keyctl, GET_KEYRING_ID, SESSION, 0) }
}

/// Exchanges two entries of the working directory.
fn exchange(one: &str, other: &str) -> c_long {
    let (Ok(one), Ok(other)) = (CString::new(one), CString::new(other)) else { return -1 };
    // SAFETY: both paths end with NUL.
    unsafe {
        libc::syscall(
            libc::SYS_renameat2,
            libc::AT_FDCWD,
            one.as_ptr(),
            libc::AT_FDCWD,
            other.as_ptr(),
            libc::RENAME_EXCHANGE,
        )
    }
}

/// So many processes at once.
fn processes(count: usize) -> c_long {
    let mut children = Vec::new();
    let mut failed = 0;
    for _ in 0..count {
        // SAFETY: the child only waits to be killed.
        match unsafe { libc::fork() } {
            0 => loop {
                // SAFETY: takes nothing.
                unsafe { libc::pause() };
            },
            child if child < 0 => {
                failed = -1;
                break;
            }
            child => children.push(child),
        }
    }
    for child in children {
        // SAFETY: these are our own children.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
    }
    failed
}

fn bpf() -> c_long {
    const MAP_CREATE: c_int = 0;
    // An array of one number.
    let attributes = [2u32, 4, 4, 1];
    // SAFETY: the kernel reads a structure of this size.
    unsafe { libc::syscall(libc::SYS_bpf, MAP_CREATE, attributes.as_ptr(), size_of_val(&attributes)) }
}

fn open_tree() -> c_long {
    const CLONE: c_int = 1;
    // SAFETY: the path ends with NUL.
    unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, c"/".as_ptr(), CLONE) }
}

fn fsopen() -> c_long {
    // SAFETY: the name ends with NUL.
    unsafe { libc::syscall(libc::SYS_fsopen, c"tmpfs".as_ptr(), 0) }
}

fn trace(request: libc::c_uint, pid: libc::pid_t) -> c_long {
    // SAFETY: neither request reads or writes memory of ours.
    unsafe { libc::ptrace(request, pid, 0, 0) }
}

fn kill_by_descriptor(pid: libc::pid_t) -> c_long {
    // SAFETY: takes numbers, and a pointer that may be null.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        if fd < 0 { fd } else { libc::syscall(libc::SYS_pidfd_send_signal, fd, libc::SIGKILL, 0usize, 0) }
    }
}
