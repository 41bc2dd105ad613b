//! [`Link`]: a network link of a node that a test can cut. It passes connections on to a target, as they are.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::task::JoinSet;

use crate::Stream;
use crate::task::Task;
use crate::watched_value::WatchedValue;

/// Concurrent connections of a link; further ones wait.
const MAX_CONNECTIONS: usize = 512;

/// Passes connections on while it is open. Ends with all of its connections when dropped.
pub struct Link {
    address: Address,
    state: Arc<WatchedValue<State>>,
    _listener: Task,
}

#[derive(Clone, Debug)]
enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

#[derive(Default)]
struct State {
    condition: Condition,
    target: Option<Address>,
    /// Counts the times at which all connections were closed.
    closed: u64,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Condition {
    #[default]
    Open,
    /// Nothing arrives; connections stay, and what was sent arrives later.
    Silent,
    /// New connections are closed at once.
    Closed,
}

impl Link {
    /// A link on a loopback port, without a target yet.
    pub async fn tcp() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback port is free");
        let address = Address::Tcp(listener.local_addr().expect("a bound listener has an address"));
        let state = Arc::new(WatchedValue::<State>::default());
        let passing = Arc::clone(&state);
        let listener = Task::spawn(accept(passing, async move || {
            let (stream, _) = listener.accept().await.ok()?;
            let _ = stream.set_nodelay(true);
            Some(Box::new(stream) as Box<dyn Stream>)
        }));
        Self { address, state, _listener: listener }
    }

    /// A link on a unix socket to another one.
    pub fn unix(path: &Path, target: &Path) -> Self {
        let listener = UnixListener::bind(path).unwrap_or_else(|error| panic!("cannot listen at {path:?}: {error}"));
        let state =
            Arc::new(WatchedValue::new(State { target: Some(Address::Unix(target.into())), ..State::default() }));
        let passing = Arc::clone(&state);
        let listener = Task::spawn(accept(passing, async move || {
            Some(Box::new(listener.accept().await.ok()?.0) as Box<dyn Stream>)
        }));
        Self { address: Address::Unix(path.into()), state, _listener: listener }
    }

    /// The port of a link over TCP.
    pub fn port(&self) -> u16 {
        match &self.address {
            Address::Tcp(address) => address.port(),
            Address::Unix(path) => panic!("a unix socket has no port: {}", path.display()),
        }
    }

    /// Passes new connections on to a port of this machine, which need not be open yet.
    pub fn lead_to(&self, port: u16) {
        self.state.update(|state| state.target = Some(Address::Tcp(SocketAddr::from(([127, 0, 0, 1], port)))));
    }

    /// Lets nothing through, in either direction, and keeps the connections: what is sent arrives after
    /// [`heal`](Self::heal).
    pub fn silence(&self) {
        self.state.update(|state| state.condition = Condition::Silent);
    }

    /// Closes all connections, and new ones at once.
    pub fn cut(&self) {
        self.state.update(|state| {
            state.condition = Condition::Closed;
            state.closed += 1;
        });
    }

    /// Passes everything on again.
    pub fn heal(&self) {
        self.state.update(|state| state.condition = Condition::Open);
    }
}

async fn accept(state: Arc<WatchedValue<State>>, mut next: impl AsyncFnMut() -> Option<Box<dyn Stream>>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = connections.join_next() => {}
            accepted = next(), if connections.len() < MAX_CONNECTIONS => {
                if let Some(stream) = accepted {
                    connections.spawn(serve(stream, Arc::clone(&state)));
                }
            }
        }
    }
}

async fn serve(stream: Box<dyn Stream>, state: Arc<WatchedValue<State>>) {
    let began = state.read(|state| (state.condition != Condition::Closed).then_some(state.closed));
    let Some(began) = began else { return };
    let passed = async {
        open(&state).await;
        let Some(target) = state.read(|state| state.target.clone()) else { return };
        let Ok(other) = connect(&target).await else { return };
        let (from, to) = (tokio::io::split(stream), tokio::io::split(other));
        tokio::join!(pass(from.0, to.1, &state), pass(to.0, from.1, &state));
    };
    tokio::select! {
        () = passed => {}
        () = state.until(|state| (state.closed != began).then_some(())) => {}
    }
}

async fn connect(target: &Address) -> std::io::Result<Box<dyn Stream>> {
    Ok(match target {
        Address::Tcp(address) => {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            Box::new(stream)
        }
        Address::Unix(path) => Box::new(UnixStream::connect(path).await?),
    })
}

async fn open(state: &WatchedValue<State>) {
    state.until(|state| (state.condition == Condition::Open).then_some(())).await;
}

/// Passes bytes on in one direction, until either end closes.
async fn pass(mut from: ReadHalf<Box<dyn Stream>>, mut to: WriteHalf<Box<dyn Stream>>, state: &WatchedValue<State>) {
    let mut bytes = vec![0; 16 << 10];
    while let Ok(length @ 1..) = from.read(&mut bytes).await {
        open(state).await;
        if to.write_all(&bytes[..length]).await.is_err() {
            return;
        }
    }
    open(state).await;
    let _ = to.shutdown().await;
}
