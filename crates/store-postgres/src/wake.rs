//! Wake-ups: which threads other processes have changed. They come over a connection of their own, are coalesced, and
//! are sent outside of the statements that write. A wake-up may be lost, with the connection or in a crowd; subscribers
//! look by themselves every second.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use loomd_store::{Result, ThreadId};
use parking_lot::Mutex;
use tokio::sync::{broadcast, mpsc};
use tokio_postgres::AsyncMessage;

use crate::database::Database;

const CHANNEL: &str = "loomd_thread";
/// How long changes are collected before they are sent.
const COALESCE: Duration = Duration::from_millis(20);
/// Ids of one notification, whose payload has at most 8000 bytes.
const IDS: usize = 200;
/// Changes that wait to be sent, and wake-ups that wait to be read. More are lost.
const CAPACITY: usize = 1024;
/// How long to wait before connecting again.
const RECONNECT: Duration = Duration::from_secs(1);
/// How often subscribers look by themselves.
const POLL: Duration = Duration::from_secs(1);

/// Sends and receives wake-ups, from the first subscription on.
pub(crate) struct Wake {
    database: Arc<Database>,
    /// Whether changes are announced before anyone here has subscribed.
    announces: AtomicBool,
    running: Mutex<Option<Running>>,
}

struct Running {
    changes: mpsc::Sender<ThreadId>,
    wakeups: broadcast::Sender<ThreadId>,
}

/// The changes of threads by any process, this one included.
pub struct Wakeups(broadcast::Receiver<ThreadId>);

impl Wakeups {
    /// The next thread that was changed, or `None` when it is time to look at all that matter: a second has passed
    /// without a wake-up, or some were lost. Cancel-safe.
    pub async fn next(&mut self) -> Option<ThreadId> {
        match tokio::time::timeout(POLL, self.0.recv()).await {
            Ok(Ok(thread)) => Some(thread),
            Ok(Err(broadcast::error::RecvError::Lagged(_))) | Err(_) => None,
            Ok(Err(broadcast::error::RecvError::Closed)) => {
                tokio::time::sleep(POLL).await;
                None
            }
        }
    }
}

impl Wake {
    pub fn new(database: Arc<Database>) -> Self {
        Self { database, announces: AtomicBool::new(false), running: Mutex::new(None) }
    }

    /// Announces changes from now on, also before anyone here has subscribed.
    pub fn announce(&self) {
        self.announces.store(true, Ordering::Relaxed);
    }

    pub fn subscribe(&self) -> Wakeups {
        let mut running = self.running.lock();
        Wakeups(running.get_or_insert_with(|| self.start()).wakeups.subscribe())
    }

    /// Announces a change that is committed. Never waits.
    pub fn changed(&self, thread: ThreadId) {
        let mut running = self.running.lock();
        if running.is_none() && self.announces.load(Ordering::Relaxed) {
            *running = Some(self.start());
        }
        if let Some(running) = &*running {
            // A change that does not fit is found by the others' own look.
            let _ = running.changes.try_send(thread);
        }
    }

    fn start(&self) -> Running {
        let (changes, waiting) = mpsc::channel(CAPACITY);
        let (wakeups, _) = broadcast::channel(CAPACITY);
        let running = Running { changes, wakeups: wakeups.clone() };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(serve(Arc::clone(&self.database), waiting, wakeups))),
            Err(_) => tracing::warn!("no wake-ups: they were asked for outside of a runtime"),
        }
        running
    }
}

/// Keeps the connection until the store is gone.
async fn serve(database: Arc<Database>, mut changes: mpsc::Receiver<ThreadId>, wakeups: broadcast::Sender<ThreadId>) {
    loop {
        match connected(&database, &mut changes, &wakeups).await {
            Ok(()) => return,
            Err(error) => tracing::warn!(%error, "no wake-ups until the database is connected again"),
        }
        tokio::time::sleep(RECONNECT).await;
        if changes.is_closed() {
            return;
        }
    }
}

/// Returns when the store is gone; fails when the connection is lost.
async fn connected(
    database: &Database,
    changes: &mut mpsc::Receiver<ThreadId>,
    wakeups: &broadcast::Sender<ThreadId>,
) -> Result<()> {
    let (client, mut connection) = database.connect().await?;
    let wakeups = wakeups.clone();
    let mut messages = tokio::spawn(async move {
        let mut messages = futures_util::stream::poll_fn(move |cx| connection.poll_message(cx));
        while let Some(message) = futures_util::StreamExt::next(&mut messages).await {
            match message {
                Ok(AsyncMessage::Notification(note)) if note.channel() == CHANNEL => {
                    for thread in note.payload().split(',').filter_map(|id| id.parse().ok()) {
                        // Fails when nobody is subscribed.
                        let _ = wakeups.send(thread);
                    }
                }
                Ok(_) => {}
                Err(error) => return Some(error),
            }
        }
        None
    });
    let failed = |error: tokio_postgres::Error| database.place.query(&error);
    client.batch_execute(&format!("LISTEN {CHANNEL}")).await.map_err(failed)?;
    loop {
        let first = tokio::select! {
            first = changes.recv() => first,
            ended = &mut messages => {
                let error = ended.ok().flatten();
                return Err(match error {
                    Some(error) => failed(error),
                    None => database.place.error(loomd_store::Failure::Other, "the connection was closed"),
                });
            }
        };
        let Some(first) = first else { return Ok(()) };
        tokio::time::sleep(COALESCE).await;
        let mut changed = HashSet::from([first]);
        while let Ok(thread) = changes.try_recv() {
            changed.insert(thread);
        }
        let ids: Vec<String> = changed.iter().map(ToString::to_string).collect();
        for ids in ids.chunks(IDS) {
            client.execute("SELECT pg_notify($1, $2)", &[&CHANNEL, &ids.join(",")]).await.map_err(failed)?;
        }
    }
}
