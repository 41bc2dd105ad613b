//! The SOCKS5 proxy: `CONNECT` by name or address, without authentication. `BIND` and `UDP ASSOCIATE` are not
//! supported, because only outgoing connections can be decided by their destination.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::gate::{ConnectError, Protocol, Request};
use crate::host::Host;
use crate::serve::ClientConnection;

/// How long a client may take for its request.
const HANDSHAKE: Duration = Duration::from_secs(30);

const VERSION: u8 = 5;
const NO_PASSWORD: u8 = 0;
const NO_WAY: u8 = 0xff;
const CONNECT: u8 = 1;

/// The reply codes of the protocol.
#[derive(Clone, Copy)]
enum Reply {
    Done = 0,
    NotAllowed = 2,
    Unreachable = 4,
    Refused = 5,
    UnknownCommand = 7,
    UnknownAddress = 8,
}

pub(crate) async fn serve(mut stream: TcpStream, line: ClientConnection) {
    // An error of the client's connection only ends that connection.
    let _ = talk(&mut stream, &line).await;
}

async fn talk(stream: &mut TcpStream, line: &ClientConnection) -> io::Result<()> {
    let asked = timeout(HANDSHAKE, ask(stream)).await.map_err(|_| io::ErrorKind::TimedOut)??;
    let wanted = match asked {
        Ok(wanted) => wanted,
        Err(reply) => return say(stream, reply).await,
    };
    match line.open(&wanted).await {
        Ok(mut upstream) => {
            say(stream, Reply::Done).await?;
            copy_bidirectional(stream, &mut upstream).await.map(drop)
        }
        Err(ConnectError::Blocked(_)) => say(stream, Reply::NotAllowed).await,
        Err(ConnectError::Unreachable(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
            say(stream, Reply::Refused).await
        }
        Err(ConnectError::Unreachable(_)) => say(stream, Reply::Unreachable).await,
    }
}

/// Reads the request of the client. The inner error is the reply to an invalid one.
async fn ask(stream: &mut TcpStream) -> io::Result<Result<Request, Reply>> {
    let broken = || io::Error::from(io::ErrorKind::InvalidData);
    let [version, count] = read(stream).await?;
    if version != VERSION {
        return Err(broken());
    }
    let mut ways = vec![0; usize::from(count)];
    stream.read_exact(&mut ways).await?;
    if !ways.contains(&NO_PASSWORD) {
        stream.write_all(&[VERSION, NO_WAY]).await?;
        return Err(broken());
    }
    stream.write_all(&[VERSION, NO_PASSWORD]).await?;
    let [version, command, _, kind] = read(stream).await?;
    if version != VERSION {
        return Err(broken());
    }
    let host = match kind {
        1 => Ok(Host::from(std::net::IpAddr::from(Ipv4Addr::from(read::<4>(stream).await?)))),
        3 => {
            let [length] = read(stream).await?;
            let mut name = vec![0; usize::from(length)];
            stream.read_exact(&mut name).await?;
            let name = str::from_utf8(&name).ok().and_then(|name| Host::parse(name).ok());
            name.ok_or(Reply::Unreachable)
        }
        4 => Ok(Host::from(Ipv6Addr::from(read::<16>(stream).await?))),
        _ => return Ok(Err(Reply::UnknownAddress)),
    };
    let port = u16::from_be_bytes(read(stream).await?);
    Ok(match host {
        _ if command != CONNECT => Err(Reply::UnknownCommand),
        Ok(host) => Ok(Request { protocol: Protocol::Socks5Tcp, host, port, method: None }),
        Err(reply) => Err(reply),
    })
}

async fn read<const N: usize>(stream: &mut TcpStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

/// Sends a reply, with zeros as the bound address.
async fn say(stream: &mut TcpStream, reply: Reply) -> io::Result<()> {
    stream.write_all(&[VERSION, reply as u8, 0, 1, 0, 0, 0, 0, 0, 0]).await
}
