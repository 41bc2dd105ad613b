//! The event sink: sends the events of threads to connections. Each event is serialised once for all of them.

use std::sync::Arc;

use loomd_agent::{Approval, Audience, Event, EventKind, EventSink, SendFuture, Subscriber};
use loomd_protocol::{RequestId, ServerNotification, ServerRequestResolvedNotification};

use crate::connections::{ConnectionId, Connections};
use crate::outbound::Notification;
use crate::server_requests::ServerRequests;

/// The event sink of the agent: all connections and the open server requests.
pub(crate) struct ConnectionEventSink {
    pub connections: Arc<Connections>,
    pub server_requests: Arc<ServerRequests>,
}

impl ConnectionEventSink {
    async fn notify(&self, to: Audience<'_>, notification: Arc<ServerNotification>) {
        let notification = Notification::new(notification);
        match to {
            Audience::EveryoneBut(joining) => {
                self.connections.broadcast_but(|id| is_among(id, joining), &notification).await;
            }
            Audience::Only(subscribers) => {
                let ids = subscribers.iter().map(|subscriber| ConnectionId(subscriber.0));
                self.connections.send_to(ids, &notification).await;
            }
        }
    }

    fn request(&self, to: Audience<'_>, approval: &Arc<Approval>) {
        let to: Vec<ConnectionId> = match to {
            Audience::EveryoneBut(joining) => {
                self.connections.ids().into_iter().filter(|id| !is_among(*id, joining)).collect()
            }
            Audience::Only(subscribers) => subscribers.iter().map(|subscriber| ConnectionId(subscriber.0)).collect(),
        };
        if let Some(request) = self.server_requests.open_approval(approval, &to) {
            self.connections.request(&to, &request);
        }
    }
}

fn is_among(id: ConnectionId, subscribers: &[Subscriber]) -> bool {
    subscribers.contains(&Subscriber(id.0))
}

impl EventSink for ConnectionEventSink {
    fn send<'a>(&'a self, to: Audience<'a>, event: &'a Event) -> SendFuture<'a> {
        Box::pin(async move {
            match &event.kind {
                EventKind::Notification(notification) => self.notify(to, Arc::clone(notification)).await,
                EventKind::ApprovalRequested(approval) => self.request(to, approval),
                EventKind::ApprovalResolved(approval) => {
                    let Some(id) = approval.sent_as.get() else { return };
                    let resolved = ServerRequestResolvedNotification {
                        thread_id: approval.request.thread_id().into(),
                        request_id: RequestId::Integer(*id),
                    };
                    self.notify(to, Arc::new(ServerNotification::ServerRequestResolved(resolved))).await;
                }
            }
        })
    }

    fn broadcast(&self, notification: ServerNotification) -> SendFuture<'_> {
        Box::pin(self.notify(Audience::EveryoneBut(&[]), Arc::new(notification)))
    }

    fn notify<'a>(&'a self, to: &'a [Subscriber], notification: ServerNotification) -> SendFuture<'a> {
        Box::pin(self.notify(Audience::Only(to), Arc::new(notification)))
    }

    fn withdraw(&self, approval: &Approval) {
        self.server_requests.withdraw(approval);
    }
}
