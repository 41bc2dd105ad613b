//! Supervises a connection: after its end, either the client is disconnected or the next connection is made and the
//! open threads are resumed on it.

use std::iter::once;
use std::sync::{Arc, Weak};
use std::time::Duration;

use loomd_protocol::{Call, call};
use serde_json::json;
use tokio::time::sleep;
use tracing::{info, warn};

use crate::client::{ConnectionState, Shared, handshake, within};
use crate::error::Error;
use crate::event::{Event, EventKind};
use crate::link::Link;
use crate::transport::Disconnect;

/// Makes a connection the client's current one, and spawns a task that reacts to its end.
pub(crate) fn supervise(shared: &Arc<Shared>, link: Link) {
    let (ended, hub) = (link.ended(), Arc::clone(&shared.hub));
    // If the client was closed meanwhile, this drops the link, which closes the connection.
    shared.enter(ConnectionState::Up(Arc::new(link)));
    // The task holds no strong reference, so that dropping the last client closes the connection.
    let client = Arc::downgrade(shared);
    tokio::spawn(async move {
        let ended = ended.await;
        match reconnect(&client, &ended).await {
            Some((shared, link)) => supervise(&shared, link),
            None => hub.finish(|| {
                let lost = client.upgrade().is_some_and(|shared| !shared.is_closed());
                lost.then(|| Error::Disconnected(Arc::clone(&ended)))
            }),
        }
    });
}

/// Makes the next connection and resumes the open threads. `None` if the client is closed, dropped or out of
/// attempts.
async fn reconnect(client: &Weak<Shared>, ended: &Arc<Disconnect>) -> Option<(Arc<Shared>, Link)> {
    let backoff = {
        let shared = client.upgrade()?;
        let Some(backoff) = shared.options.reconnect else {
            shared.enter(ConnectionState::Over(Arc::clone(ended)));
            return None;
        };
        if !shared.enter(ConnectionState::Down) {
            return None;
        }
        info!(%ended, "connection lost, reconnecting");
        shared.hub.publish(&Event::of_connection(EventKind::Lost(Arc::clone(ended))), 0);
        backoff
    };
    for pause in once(Duration::ZERO).chain(backoff.pauses()) {
        sleep(pause).await;
        let shared = client.upgrade()?;
        if shared.is_closed() {
            return None;
        }
        // The server may send events of these threads before they are resumed.
        shared.hub.resuming(shared.open_threads());
        let connected = async {
            let (link, _) = handshake(&shared.endpoint, &shared.options, &shared.hub).await?;
            resume(&shared, &link).await?;
            Ok::<_, Error>(link)
        };
        match connected.await {
            Ok(link) => {
                shared.hub.publish(&Event::of_connection(EventKind::Reconnected), 0);
                return Some((shared, link));
            }
            Err(error) => warn!(%error, "cannot reconnect"),
        }
    }
    client.upgrade()?.enter(ConnectionState::Over(Arc::clone(ended)));
    None
}

/// Resumes every open thread. The receiver publishes each result, in order with the events that follow it.
async fn resume(shared: &Shared, link: &Link) -> Result<(), Error> {
    let method = call::ThreadResume::METHOD;
    for thread_id in shared.open_threads() {
        let mut params = json!({ "threadId": thread_id });
        if let Some(last) = shared.hub.last_event(&thread_id) {
            params["afterEvent"] = last.to_string().into();
        }
        match within(method, shared.options.request_timeout, link.request(method, &params)).await {
            Ok(Some(_)) => {}
            Ok(None) => return Err(link.lost().await),
            Err(Error::Rpc { error, .. }) => {
                shared.untrack(&thread_id);
                shared.hub.not_resumed(&thread_id);
                shared.hub.publish(&Event::of_thread(thread_id, EventKind::NotResumed(error)), 0);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
