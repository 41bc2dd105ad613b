//! The owners of TCP sockets of this machine. The kernel is queried for one socket (`sock_diag`); where it does not
//! support such queries, its list of all sockets is read.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with};

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Socket {
    pub user: u32,
    /// `None` when no process has it open any more.
    pub inode: Option<u64>,
}

/// The other end of one of our connections. `None` when it is not on this machine, or in another network namespace.
pub(super) fn other_end(local: SocketAddr, remote: SocketAddr) -> io::Result<Option<Socket>> {
    match query(remote, local) {
        Ok(Some(socket)) => Ok(Some(socket)),
        // Our own end must be known to a kernel that answers.
        Ok(None) if matches!(query(local, remote), Ok(Some(_))) => Ok(None),
        _ => look_up(remote, local),
    }
}

/// The netlink message that queries a socket by its addresses, and the offsets of the fields in the answer.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const NLMSG_ERROR: u16 = 2;
const HEADER: usize = 16;
const USER: usize = HEADER + 64;
const INODE: usize = USER + 4;
const ENOENT: i32 = 2;
const TCP: u8 = 6;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;

/// Queries the kernel for the socket whose own address is `from`.
fn query(from: SocketAddr, to: SocketAddr) -> io::Result<Option<Socket>> {
    let mut request = Vec::with_capacity(72);
    request.extend(72_u32.to_ne_bytes());
    request.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    request.extend(NLM_F_REQUEST.to_ne_bytes());
    request.extend([0; 8]);
    request.extend([if from.is_ipv4() { AF_INET } else { AF_INET6 }, TCP, 0, 0]);
    request.extend(u32::MAX.to_ne_bytes());
    request.extend(from.port().to_be_bytes());
    request.extend(to.port().to_be_bytes());
    request.extend(padded(from.ip()));
    request.extend(padded(to.ip()));
    // Any interface, any cookie.
    request.extend(0_u32.to_ne_bytes());
    request.extend([0xff; 8]);

    let socket =
        socket_with(AddressFamily::NETLINK, SocketType::DGRAM, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG))?;
    send(&socket, &request, SendFlags::empty())?;
    let mut answer = [0; 1024];
    let (length, _) = recv(&socket, &mut answer[..], RecvFlags::empty())?;
    let answer = answer.get(..length).unwrap_or_default();
    let number = |at: usize| Some(u32::from_ne_bytes(answer.get(at..at + 4)?.try_into().ok()?));
    let kind = answer.get(4..6).and_then(|kind| Some(u16::from_ne_bytes(kind.try_into().ok()?)));
    match (kind, number(HEADER), number(USER), number(INODE)) {
        (Some(SOCK_DIAG_BY_FAMILY), _, Some(user), Some(inode)) => {
            Ok(Some(Socket { user, inode: (inode != 0).then_some(inode.into()) }))
        }
        (Some(NLMSG_ERROR), Some(error), _, _) => match error.cast_signed().wrapping_neg() {
            ENOENT => Ok(None),
            error => Err(io::Error::from_raw_os_error(error)),
        },
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// The octets of an address in a field for either kind.
fn padded(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => {
            let mut padded = [0; 16];
            padded[..4].copy_from_slice(&address.octets());
            padded
        }
        IpAddr::V6(address) => address.octets(),
    }
}

/// Looks for the socket whose own address is `from` in the kernel's lists.
fn look_up(from: SocketAddr, to: SocketAddr) -> io::Result<Option<Socket>> {
    if from.is_ipv4()
        && let Some(socket) = find(&fs::read_to_string("/proc/self/net/tcp")?, from, to)
    {
        return Ok(Some(socket));
    }
    // A socket for both kinds of addresses has IPv4 addresses in another form. Not every machine has this list.
    let mapped = |address: SocketAddr| match address.ip() {
        IpAddr::V4(ip) => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        IpAddr::V6(_) => address,
    };
    match fs::read_to_string("/proc/self/net/tcp6") {
        Ok(list) => Ok(find(&list, mapped(from), mapped(to))),
        Err(error) if error.kind() == io::ErrorKind::NotFound && from.is_ipv4() => Ok(None),
        Err(error) => Err(error),
    }
}

fn find(list: &str, from: SocketAddr, to: SocketAddr) -> Option<Socket> {
    let (from, to) = (listed(from), listed(to));
    list.lines().skip(1).find_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        if words.get(1)? != &from || words.get(2)? != &to {
            return None;
        }
        let inode: u64 = words.get(9)?.parse().ok()?;
        Some(Socket { user: words.get(7)?.parse().ok()?, inode: (inode != 0).then_some(inode) })
    })
}

/// An address as the lists have it: words of the machine's own byte order.
fn listed(address: SocketAddr) -> String {
    let octets = match address.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let words = octets.chunks_exact(4).map(|word| {
        let word = word.try_into().map(u32::from_ne_bytes).unwrap_or_default();
        format!("{word:08X}")
    });
    format!("{}:{:04X}", words.collect::<String>(), address.port())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn sock_diag_and_procfs_agree_on_the_owner_of_a_socket() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                eprintln!("skipped: {address} cannot be had here");
                continue;
            };
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (accepted, remote) = listener.accept().unwrap();
            let local = accepted.local_addr().unwrap();
            let user = rustix::process::geteuid().as_raw();
            let inode =
                fs::metadata(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&client))).unwrap().ino();
            let expected = Some(Socket { user, inode: Some(inode) });
            assert_eq!(other_end(local, remote).unwrap(), expected);
            assert_eq!(look_up(remote, local).unwrap(), expected);
            match query(remote, local) {
                Ok(found) => assert_eq!(found, expected),
                Err(error) => eprintln!("skipped: the kernel does not answer here: {error}"),
            }
            drop(client);
            assert_eq!(other_end(local, remote).unwrap().and_then(|socket| socket.inode), None);
        }
    }

    #[test]
    fn a_remote_address_has_no_local_socket() {
        let [local, remote] = ["127.0.0.1:9", "192.0.2.1:4500"].map(|address| address.parse().unwrap());
        assert_eq!(other_end(local, remote).unwrap(), None);
    }

    #[test]
    fn an_ipv4_client_of_a_socket_for_both_kinds_is_found() {
        let list = "  sl  local_address  remote_address ...\n   0: 0000000000000000FFFF00000100007F:1F90 \
                    0000000000000000FFFF00000100007F:0050 01 00000000:00000000 00:00000000 00000000  1000 0 77 1 0\n";
        if cfg!(target_endian = "little") {
            let [from, to] =
                ["[::ffff:127.0.0.1]:8080", "[::ffff:127.0.0.1]:80"].map(|address| address.parse().unwrap());
            assert_eq!(find(list, from, to), Some(Socket { user: 1000, inode: Some(77) }));
            assert_eq!(find(list, to, from), None);
        }
    }
}
