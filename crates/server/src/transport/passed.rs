//! The listener of `--listen fd://`: a socket that a service manager passes.

use std::io;
use std::os::fd::OwnedFd;

use tokio::net::{TcpListener, UnixListener};

pub(super) enum PassedListener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// Takes the passed socket. Fails without one.
pub(super) fn take() -> io::Result<PassedListener> {
    listener(loomd_exec::take_passed_socket()?)
}

fn listener(socket: OwnedFd) -> io::Result<PassedListener> {
    // Only a socket of the internet has such an address.
    let tcp = std::net::TcpListener::from(socket);
    if tcp.local_addr().is_ok() {
        tcp.set_nonblocking(true)?;
        return TcpListener::from_std(tcp).map(PassedListener::Tcp);
    }
    let unix = std::os::unix::net::UnixListener::from(OwnedFd::from(tcp));
    unix.local_addr()?;
    unix.set_nonblocking(true)?;
    UnixListener::from_std(unix).map(PassedListener::Unix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_family_of_a_socket_is_recognised() {
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = tcp.local_addr().unwrap();
        let PassedListener::Tcp(found) = listener(tcp.into()).unwrap() else { panic!("not TCP") };
        assert_eq!(found.local_addr().unwrap(), address);

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let unix = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let PassedListener::Unix(found) = listener(unix.into()).unwrap() else { panic!("not unix") };
        assert_eq!(found.local_addr().unwrap().as_pathname(), Some(path.as_path()));
    }

    #[tokio::test]
    async fn a_descriptor_that_is_no_socket_is_refused() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(listener(file.into()).is_err());
    }
}
