//! The listening socket that a service manager passes to this process: `LISTEN_FDS`, as systemd does it.

#![allow(unsafe_code, reason = "descriptors that the environment names have no owner yet")]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// The first descriptor that is passed.
const FIRST: RawFd = 3;

static TAKEN: AtomicBool = AtomicBool::new(false);

/// Takes the socket that was passed to this process. It is not inherited by programs that are started later.
///
/// Fails unless `LISTEN_PID` names this process, `LISTEN_FDS` is 1, and the descriptor is a listening stream socket. Call
/// it once, before other descriptors are opened by number.
pub fn take_passed_socket() -> io::Result<OwnedFd> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
    check(number("LISTEN_PID"), number("LISTEN_FDS"), std::process::id()).map_err(io::Error::other)?;
    if option(FIRST, libc::SO_ACCEPTCONN)? != 1 || option(FIRST, libc::SO_TYPE)? != libc::SOCK_STREAM {
        return Err(io::Error::other(
            "the passed socket does not listen; set `Accept=no` and `ListenStream=` in its unit",
        ));
    }
    if TAKEN.swap(true, Ordering::Relaxed) {
        return Err(io::Error::other("the passed socket is in use already"));
    }
    // SAFETY: the descriptor is open, as `option` has shown; the environment says that it is for this process to own,
    // and `TAKEN` that nothing else here has taken it.
    let socket = unsafe { OwnedFd::from_raw_fd(FIRST) };
    // SAFETY: sets a flag of a descriptor that is open.
    if unsafe { libc::fcntl(socket.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(socket)
}

fn check(process: Option<u32>, sockets: Option<u32>, own: u32) -> Result<(), String> {
    match (process, sockets) {
        (None, _) | (_, None) => {
            Err("no socket was passed to this process: `LISTEN_PID` and `LISTEN_FDS` are not set by a service manager"
                .into())
        }
        (Some(process), _) if process != own => {
            Err(format!("the passed sockets are for process {process}, and this is process {own}"))
        }
        (_, Some(1)) => Ok(()),
        (_, Some(sockets)) => Err(format!("one socket is expected, and {sockets} were passed")),
    }
}

/// An option of a socket, which fails if the descriptor is not one.
fn option(socket: RawFd, name: libc::c_int) -> io::Result<libc::c_int> {
    let mut value: libc::c_int = 0;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `value` and `length` are valid for the call, and `length` is the size of `value`.
    let got = unsafe { libc::getsockopt(socket, libc::SOL_SOCKET, name, (&raw mut value).cast(), &raw mut length) };
    if got == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_for_another_process_or_several_are_refused() {
        assert_eq!(check(Some(7), Some(1), 7), Ok(()));
        for (process, sockets, expected) in [
            (None, None, "no socket was passed"),
            (Some(7), None, "no socket was passed"),
            (Some(8), Some(1), "for process 8, and this is process 7"),
            (Some(7), Some(2), "one socket is expected, and 2 were passed"),
            (Some(7), Some(0), "one socket is expected, and 0 were passed"),
        ] {
            let error = check(process, sockets, 7).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
