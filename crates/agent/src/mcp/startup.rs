//! The start of a server, as the subscribers of a thread see it.

use std::sync::Arc;

use loomd_mcp::{Server, StartError};
use loomd_protocol::{McpServerStartupState, McpServerStatusUpdatedNotification, ServerNotification};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::thread_server::Startup;
use crate::event_log::EventLog;

/// Starts a server in a task of its own and publishes how that goes. The task ends when the handle is dropped; a start
/// that other threads wait for goes on.
pub(super) fn start(server: Arc<Server>, events: Arc<EventLog>) -> (watch::Receiver<Startup>, AbortOnDropHandle<()>) {
    let (state, startup) = watch::channel(Startup::Starting);
    let work = async move {
        let name = server.name();
        publish(&events, name, McpServerStartupState::Starting, None).await;
        match server.start().await {
            Ok(_) => {
                // Before it is published: a turn that follows the notification finds the tools.
                state.send_replace(Startup::Ready);
                publish(&events, name, McpServerStartupState::Ready, None).await;
            }
            Err(error) => {
                let message = error.message(name);
                state.send_replace(Startup::Failed);
                publish(&events, name, McpServerStartupState::Failed, Some(message)).await;
            }
        }
    };
    (startup, AbortOnDropHandle::new(tokio::spawn(work)))
}

async fn publish(events: &EventLog, name: &str, status: McpServerStartupState, error: Option<String>) {
    let updated = McpServerStatusUpdatedNotification { name: name.into(), status, error };
    events.publish(ServerNotification::McpServerStartupStatusUpdated(updated)).await;
}

/// The text about required servers that did not start.
pub(super) fn required_failed(failures: &[(String, StartError)]) -> String {
    let failures: Vec<_> =
        failures.iter().map(|(name, error)| format!("{name}: MCP startup failed: {error}")).collect();
    format!(
        "error creating thread: Fatal error: Failed to initialize session: required MCP servers failed to initialize: {}",
        failures.join("; ")
    )
}
