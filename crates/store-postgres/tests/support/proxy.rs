//! A connection to the server through this process, which counts round trips and loses answers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Notify;

/// What happens to the next round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request does not reach the server.
    Unsent,
    /// The request is carried out, and the answer is lost.
    Unanswered,
    /// The connection is lost, and the request reaches the server when [`Proxy::deliver`] is called.
    Late,
}

pub struct Proxy {
    folder: tempfile::TempDir,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    round_trips: AtomicUsize,
    /// The fault to come, after so many round trips.
    next: Mutex<Option<(usize, Fault)>>,
    deliver: Notify,
    delivered: Notify,
}

impl Proxy {
    /// A proxy in front of the server with a unix socket.
    pub fn new(server: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).expect("a socket");
        let (state, server) = (Arc::new(State::default()), server.to_owned());
        tokio::spawn(accept(listener, server, Arc::clone(&state)));
        Self { folder, state }
    }

    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@/{database}?host={}&port=5432", self.folder.path().display())
    }

    /// How often a client has waited for the server.
    pub fn round_trips(&self) -> usize {
        self.state.round_trips.load(Ordering::SeqCst)
    }

    /// Makes the next round trip fail.
    pub fn fail_next(&self, fault: Fault) {
        self.fail_after(0, fault);
    }

    /// Makes a round trip fail, after others that do not.
    pub fn fail_after(&self, round_trips: usize, fault: Fault) {
        *self.state.next.lock() = Some((round_trips, fault));
    }

    /// Takes a fault back that has not happened; whether it has.
    pub fn stop_failing(&self) -> bool {
        self.state.next.lock().take().is_none()
    }

    /// Whether the fault has happened.
    pub fn has_failed(&self) -> bool {
        self.state.next.lock().is_none()
    }

    /// Lets a late request reach the server, and returns when it was answered.
    pub async fn deliver(&self) {
        self.state.deliver.notify_one();
        self.state.delivered.notified().await;
    }
}

impl State {
    /// The fault of this round trip, if it has one.
    fn fault(&self) -> Option<Fault> {
        let mut next = self.next.lock();
        match &mut *next {
            Some((0, fault)) => {
                let fault = *fault;
                *next = None;
                Some(fault)
            }
            Some((left, _)) => {
                *left -= 1;
                None
            }
            None => None,
        }
    }
}

async fn accept(listener: UnixListener, server: PathBuf, state: Arc<State>) {
    while let Ok((client, _)) = listener.accept().await {
        if let Ok(server) = UnixStream::connect(&server).await {
            tokio::spawn(serve(client, server, Arc::clone(&state)));
        }
    }
}

/// Passes messages on until one side is closed, or a fault happens. Those of the client up to a `Sync` make one round
/// trip.
async fn serve(mut client: UnixStream, mut server: UnixStream, state: Arc<State>) {
    let (mut requests, mut answers) = (Vec::new(), Vec::new());
    let mut has_started = false;
    loop {
        tokio::select! {
            read = client.read_buf(&mut requests) => if !matches!(read, Ok(1..)) { return },
            read = server.read_buf(&mut answers) => {
                if !matches!(read, Ok(1..)) || client.write_all(&answers).await.is_err() {
                    return;
                }
                answers.clear();
            }
        }
        while let Some((length, is_round_trip)) = round_trip(&requests, has_started) {
            let request: Vec<u8> = requests.drain(..length).collect();
            if is_round_trip && has_started {
                state.round_trips.fetch_add(1, Ordering::SeqCst);
                let fault = state.fault();
                if let Some(fault) = fault {
                    return fail(fault, client, server, &request, &state).await;
                }
            }
            has_started = true;
            if server.write_all(&request).await.is_err() {
                return;
            }
        }
    }
}

async fn fail(fault: Fault, client: UnixStream, mut server: UnixStream, request: &[u8], state: &State) {
    match fault {
        Fault::Unsent => {}
        Fault::Unanswered => {
            carry_out(&mut server, request).await;
            drop(client);
        }
        Fault::Late => {
            drop(client);
            state.deliver.notified().await;
            carry_out(&mut server, request).await;
            state.delivered.notify_one();
        }
    }
}

/// The length of the messages up to the first `Sync`, or of all that are whole; and whether there is a `Sync`.
fn round_trip(bytes: &[u8], has_started: bool) -> Option<(usize, bool)> {
    let mut end = 0;
    while let Some(length) = message(&bytes[end..], has_started || end > 0) {
        let kind = bytes[end];
        end += length;
        if !has_started {
            return Some((end, false));
        }
        if matches!(kind, b'S' | b'Q') {
            return Some((end, true));
        }
    }
    // A password or a farewell has no `Sync`.
    matches!(bytes.first(), Some(b'p' | b'X')).then_some((end, false)).filter(|(end, _)| *end > 0)
}

/// The length of the first message, when it is whole. The one that starts a connection has no kind.
fn message(bytes: &[u8], has_kind: bool) -> Option<usize> {
    let kind = usize::from(has_kind);
    let length = bytes.get(kind..kind + 4)?;
    let length = kind + u32::from_be_bytes(length.try_into().ok()?) as usize;
    (bytes.len() >= length).then_some(length)
}

/// Sends a request and reads until the server is ready for the next one.
async fn carry_out(server: &mut UnixStream, request: &[u8]) {
    server.write_all(request).await.expect("the server takes a request");
    let mut answers = Vec::new();
    loop {
        while let Some(length) = message(&answers, true) {
            if answers[0] == b'Z' {
                return;
            }
            answers.drain(..length);
        }
        if !matches!(server.read_buf(&mut answers).await, Ok(1..)) {
            return;
        }
    }
}
