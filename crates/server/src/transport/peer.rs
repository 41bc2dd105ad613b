//! The process at the other end of a connection, as the kernel reports it, and whether a listener serves it. Credentials
//! that clients send are checked by [`Guard`](crate::auth::Guard).

mod sockets;

use std::net::SocketAddr;

use loomd_exec::SocketHolder;
use tokio::net::{TcpStream, UnixStream};
use tracing::debug;

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    Tcp {
        local: SocketAddr,
        remote: SocketAddr,
    },
    Unix {
        /// When it connected; `None` when it is in another PID namespace, where no sandbox of this server is.
        process: Option<u32>,
        user: u32,
    },
    /// A connection that the caller of `serve_on` vouches for.
    Trusted,
    /// A connection that has ended already.
    Gone,
}

impl Peer {
    pub fn of_tcp(stream: &TcpStream) -> Self {
        match (stream.local_addr(), stream.peer_addr()) {
            (Ok(local), Ok(remote)) => Self::Tcp { local: canonical(local), remote: canonical(remote) },
            _ => Self::Gone,
        }
    }

    pub fn of_unix(stream: &UnixStream) -> Self {
        match stream.peer_cred() {
            Ok(peer) => {
                let process = peer.pid().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid != 0);
                Self::Unix { process, user: peer.uid() }
            }
            Err(_) => Self::Gone,
        }
    }
}

/// An IPv4 address as such, also on a listener for both kinds.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Which peers a listener serves. None ever serves a process in a sandbox of this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// Processes of our own user and of root: there is no authentication.
    SameUser,
    /// Any client that authenticates.
    Authenticated,
    /// Any client.
    Anyone,
}

const OTHER_USER: &str = "the client belongs to another user; use `--ws-auth`, or `--allow-unauthenticated`";
const UNKNOWN_USER: &str = "it is unknown whose client this is; use `--ws-auth`, or `--allow-unauthenticated`";
const SANDBOXED: &str = "the client runs in a sandbox of this server";
const UNKNOWN_PROCESS: &str = "it is unknown whether the client runs in a sandbox of this server";
const GONE: &str = "the client is gone";

impl Admission {
    /// Whether a peer is served; the error is the body of a 403. Blocks.
    pub fn check(self, peer: Peer) -> Result<(), &'static str> {
        match peer {
            Peer::Trusted => Ok(()),
            Peer::Gone => Err(GONE),
            Peer::Unix { user, .. } if self == Self::SameUser && !is_own_or_root(user) => Err(OTHER_USER),
            Peer::Unix { process: None, .. } => Ok(()),
            Peer::Unix { process: Some(pid), .. } => match loomd_exec::is_in_own_sandbox(pid) {
                Ok(false) => Ok(()),
                Ok(true) => Err(SANDBOXED),
                Err(_) => Err(UNKNOWN_PROCESS),
            },
            Peer::Tcp { local, remote } => self.check_tcp(local, remote),
        }
    }

    fn check_tcp(self, local: SocketAddr, remote: SocketAddr) -> Result<(), &'static str> {
        let own = rustix::process::geteuid().as_raw();
        let socket = match sockets::other_end(local, remote) {
            Ok(Some(socket)) => socket,
            // From another machine or network namespace, where no sandbox of ours is.
            Ok(None) if self != Self::SameUser => return Ok(()),
            Ok(None) => return Err(UNKNOWN_USER),
            Err(error) => {
                debug!(%error, "the sockets of this machine cannot be listed");
                return if self == Self::SameUser { Err(UNKNOWN_USER) } else { Ok(()) };
            }
        };
        // A client that sends a request and closes its socket would still have it carried out.
        let Some(inode) = socket.inode else { return Err(GONE) };
        if self == Self::SameUser && !is_own_or_root(socket.user) {
            return Err(OTHER_USER);
        }
        match loomd_exec::socket_holder(inode) {
            SocketHolder::OwnSandbox => Err(SANDBOXED),
            // Our sandboxes run as our user. What other users have open may be out of our sight.
            SocketHolder::Unknown if socket.user == own && self != Self::Authenticated => Err(UNKNOWN_PROCESS),
            SocketHolder::Unknown | SocketHolder::Other => Ok(()),
        }
    }
}

const ROOT: u32 = 0;

fn is_own_or_root(user: u32) -> bool {
    user == rustix::process::geteuid().as_raw() || user == ROOT
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (client, listener.accept().await.unwrap().0)
    }

    #[tokio::test]
    async fn a_client_of_the_same_user_is_served_until_it_closes_its_end() {
        let (client, accepted) = pair().await;
        let peer = Peer::of_tcp(&accepted);
        for admission in [Admission::SameUser, Admission::Authenticated, Admission::Anyone] {
            assert_eq!(admission.check(peer), Ok(()));
        }
        drop(client);
        for admission in [Admission::SameUser, Admission::Authenticated, Admission::Anyone] {
            assert!(admission.check(peer).is_err(), "{admission:?}");
        }
    }

    #[test]
    fn another_user_on_a_unix_socket_is_refused_where_only_the_same_user_is_served() {
        let own = rustix::process::geteuid().as_raw();
        let check = |admission: Admission, user| admission.check(Peer::Unix { process: None, user });
        assert_eq!([own, ROOT].map(|user| check(Admission::SameUser, user)), [Ok(()); 2]);
        assert_eq!(check(Admission::SameUser, own + 1), Err(OTHER_USER));
        assert_eq!([Admission::Authenticated, Admission::Anyone].map(|all| check(all, own + 1)), [Ok(()); 2]);
    }

    #[test]
    fn a_remote_socket_is_refused_where_only_the_same_user_is_served() {
        let [local, remote] = ["127.0.0.1:1", "127.0.0.1:2"].map(|address| address.parse().unwrap());
        let peer = Peer::Tcp { local, remote };
        assert_eq!(Admission::SameUser.check(peer), Err(UNKNOWN_USER));
        assert_eq!([Admission::Authenticated, Admission::Anyone].map(|admission| admission.check(peer)), [Ok(()); 2]);
    }
}
