//! Whether a request is allowed, and the connection to its host. The domain lists decide first, then the
//! [`Decider`]. A name is looked up only after it is allowed, because a DNS query leaves the machine.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use crate::domains::ListMatch;
use crate::host::Host;
use crate::local::{is_local, is_local_host};
use crate::{Mode, Policy};

/// The timeout of a DNS lookup.
const LOOKUP: Duration = Duration::from_secs(15);
/// The timeout of connecting to a host, for all its addresses together.
const CONNECT: Duration = Duration::from_secs(30);

/// A request of a program to reach a host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    pub protocol: Protocol,
    pub host: Host,
    pub port: u16,
    /// The HTTP method, where it is known.
    pub method: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    Http,
    /// A `CONNECT` tunnel, as HTTPS uses it.
    Https,
    Socks5Tcp,
}

impl Protocol {
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Socks5Tcp => "socks5-tcp",
        }
    }
}

/// Why a request is blocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockReason {
    /// The host is denied by a list or a decision.
    Denied,
    /// The host is in no list, and was not allowed by a decision.
    NotAllowed,
    /// The address is of this machine or a private network.
    Local,
    /// The HTTP method is not allowed in limited mode.
    Method,
    /// A tunnel hides its requests, so limited mode has none.
    Tunnel,
}

pub type DecisionFuture<'a> = Pin<Box<dyn Future<Output = Result<(), BlockReason>> + Send + 'a>>;
pub type ResolveFuture<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'a>>;

/// Decides about hosts that are in no list. The decision may wait for an approval.
pub trait Decider: Send + Sync {
    fn decide<'a>(&'a self, request: &'a Request) -> DecisionFuture<'a>;

    /// Called for every request that is blocked, by a list or by a decision.
    fn blocked(&self, _request: &Request, _why: BlockReason) {}
}

/// Finds the addresses of a host.
pub trait Resolver: Send + Sync {
    fn resolve<'a>(&'a self, host: &'a Host, port: u16) -> ResolveFuture<'a>;
}

pub(crate) struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a Host, port: u16) -> ResolveFuture<'a> {
        Box::pin(async move { Ok(lookup_host((host.as_str(), port)).await?.collect()) })
    }
}

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum ConnectError {
    Blocked(BlockReason),
    Unreachable(io::Error),
}

/// Connects to the host of a request, if it is allowed.
pub(crate) async fn open(
    policy: &Policy,
    decider: &dyn Decider,
    resolver: &dyn Resolver,
    request: &Request,
) -> Result<TcpStream, ConnectError> {
    let opened = async {
        let trusted = admit(policy, decider, request).await.map_err(ConnectError::Blocked)?;
        let found = timeout(LOOKUP, resolver.resolve(&request.host, request.port)).await;
        let found = found.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())).map_err(ConnectError::Unreachable)?;
        if !trusted && found.iter().any(|address| is_local(address.ip())) {
            return Err(ConnectError::Blocked(BlockReason::Local));
        }
        let connected = timeout(CONNECT, TcpStream::connect(&found[..])).await;
        connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())).map_err(ConnectError::Unreachable)
    };
    let opened = opened.await;
    if let Err(ConnectError::Blocked(why)) = opened {
        decider.blocked(request, why);
    }
    opened
}

/// Whether a request is allowed; the value is whether local addresses are allowed for its host.
async fn admit(policy: &Policy, decider: &dyn Decider, request: &Request) -> Result<bool, BlockReason> {
    let host = &request.host;
    let listed = policy.domains.find(host);
    if listed == ListMatch::Denied {
        return Err(BlockReason::Denied);
    }
    let trusted = policy.allow_local || (listed == ListMatch::ByName && is_local_host(host));
    if !trusted && is_local_host(host) {
        return Err(BlockReason::Local);
    }
    if policy.mode == Mode::Limited {
        let method = request.method.as_deref().filter(|_| request.protocol == Protocol::Http);
        match (request.protocol, method) {
            (_, Some("GET" | "HEAD" | "OPTIONS")) => {}
            (Protocol::Https, _) => return Err(BlockReason::Tunnel),
            _ => return Err(BlockReason::Method),
        }
    }
    if listed == ListMatch::Nowhere {
        decider.decide(request).await?;
    }
    Ok(trusted)
}
