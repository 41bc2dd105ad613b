//! Accepts connections, and holds the state that they share.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::gate::{ConnectError, Decider, Request, Resolver, SystemResolver, open};
use crate::{Policy, http, socks};

/// The most connections at a time; further ones wait to be accepted.
const CONNECTIONS: usize = 256;
/// The pause after a failed accept, as when descriptors have run out.
const PAUSE: Duration = Duration::from_millis(50);

/// A proxy for one group of programs.
pub struct Proxy(Arc<ProxyState>);

pub(crate) struct ProxyState {
    policy: Policy,
    decider: Arc<dyn Decider>,
    resolver: Box<dyn Resolver>,
    room: Arc<Semaphore>,
}

impl Proxy {
    pub fn new(policy: Policy, decider: Arc<dyn Decider>) -> Self {
        Self::with_resolver(policy, decider, SystemResolver)
    }

    pub fn with_resolver(policy: Policy, decider: Arc<dyn Decider>, resolver: impl Resolver + 'static) -> Self {
        let room = Arc::new(Semaphore::new(CONNECTIONS));
        Self(Arc::new(ProxyState { policy, decider, resolver: Box::new(resolver), room }))
    }

    /// Serves every connection to the listeners. Never returns; dropping the future closes every connection.
    pub async fn serve(&self, http: TcpListener, socks: Option<TcpListener>) {
        let end = CancellationToken::new();
        let _ends_all = end.clone().drop_guard();
        tokio::join!(accept(&http, &self.0, &end, |stream, line| Box::pin(http::serve(stream, line))), async {
            match &socks {
                Some(socks) => accept(socks, &self.0, &end, |stream, line| Box::pin(socks::serve(stream, line))).await,
                None => pending().await,
            }
        });
    }
}

/// The state of one client connection. Holds a permit, so the connection counts until the last clone is dropped.
#[derive(Clone)]
pub(crate) struct ClientConnection {
    shared: Arc<ProxyState>,
    end: CancellationToken,
    _room: Arc<OwnedSemaphorePermit>,
}

impl ClientConnection {
    pub async fn open(&self, request: &Request) -> Result<TcpStream, ConnectError> {
        open(&self.shared.policy, &*self.shared.decider, &*self.shared.resolver, request).await
    }

    /// Spawns a task that ends with the proxy.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let line = self.clone();
        tokio::spawn(async move {
            line.end.run_until_cancelled(work).await;
        });
    }
}

type ServeFuture = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

async fn accept(
    listener: &TcpListener,
    shared: &Arc<ProxyState>,
    end: &CancellationToken,
    serve: fn(TcpStream, ClientConnection) -> ServeFuture,
) {
    loop {
        let Ok(room) = Arc::clone(&shared.room).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let line = ClientConnection { shared: Arc::clone(shared), end: end.clone(), _room: Arc::new(room) };
                let served = serve(stream, line.clone());
                line.spawn(served);
            }
            Err(_) => sleep(PAUSE).await,
        }
    }
}
