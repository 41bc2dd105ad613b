//! The start of a server, as the subscribers of a thread see it.

use std::sync::Arc;

use loomd_apps::ToolsCache;
use loomd_mcp::{Listing, Server, StartError};
use loomd_protocol::{
    JsonValue, McpServerStartupFailureReason, McpServerStartupState, McpServerStatusUpdatedNotification,
    ServerNotification,
};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::thread_server::Startup;
use crate::event_log::EventLog;

/// Starts a server in a task of its own and publishes how that goes. The task ends when the handle is dropped; a start
/// that other threads wait for goes on. With a cache, its tools are there until the server has started. A server that wants
/// to know it is told `sandbox_state`.
pub(super) fn start(
    server: Arc<Server>,
    thread_id: String,
    events: Arc<EventLog>,
    cache: Option<ToolsCache>,
    sandbox_state: JsonValue,
) -> (watch::Receiver<Startup>, AbortOnDropHandle<()>) {
    let (state, startup) = watch::channel(Startup::Starting);
    let work = async move {
        let name = server.name();
        let publish = |status, error: Option<&StartError>| {
            let updated = McpServerStatusUpdatedNotification {
                name: name.into(),
                status,
                error: error.map(|error| error.message(name)),
                thread_id: Some(thread_id.clone()),
                failure_reason: error
                    .filter(|error| matches!(error, StartError::NotLoggedIn))
                    .map(|_| McpServerStartupFailureReason::ReauthenticationRequired),
            };
            events.publish(ServerNotification::McpServerStartupStatusUpdated(updated))
        };
        publish(McpServerStartupState::Starting, None).await;
        let cache = cache.map(Arc::new);
        let starting = server.start();
        tokio::pin!(starting);
        let started = tokio::select! {
            biased;
            started = &mut starting => started,
            Some(listing) = cached(cache.clone()) => {
                state.send_replace(Startup::Cached(Arc::new(listing)));
                starting.await
            }
        };
        match started {
            Ok(listing) => {
                if let Some(cache) = cache {
                    keep(cache, listing);
                }
                if let Err(error) = server.send_sandbox_state(&sandbox_state).await {
                    tracing::warn!(server = name, %error, "an MCP server did not take the sandbox state");
                }
                // Before it is published: a turn that follows the notification finds the tools.
                state.send_replace(Startup::Ready);
                publish(McpServerStartupState::Ready, None).await;
            }
            Err(error) => {
                state.send_replace(Startup::Failed(error.clone()));
                publish(McpServerStartupState::Failed, Some(&error)).await;
            }
        }
    };
    (startup, AbortOnDropHandle::new(tokio::spawn(work)))
}

/// The tools of a cache; never resolves to a listing when there are none.
async fn cached(cache: Option<Arc<ToolsCache>>) -> Option<Listing> {
    let cache = cache?;
    let tools = tokio::task::spawn_blocking(move || cache.load()).await.ok()??;
    Some(Listing { tools, ..Listing::default() })
}

/// Writes the tools to a cache, beside other work.
pub(super) fn keep(cache: Arc<ToolsCache>, listing: Arc<Listing>) {
    tokio::task::spawn_blocking(move || {
        if let Err(error) = cache.store(&listing.tools) {
            tracing::warn!(%error, "the tools of apps could not be cached");
        }
    });
}

/// The text about required servers that did not start.
pub(super) fn required_failed(failures: &[(String, StartError)]) -> String {
    let failures: Vec<_> = failures.iter().map(|(name, error)| format!("{name}: {error}")).collect();
    format!(
        "error creating thread: Fatal error: Failed to initialize session: required MCP servers failed to initialize: {}",
        failures.join("; ")
    )
}
