//! The event sink: sends the events of threads to connections. Each event is serialised once for all of them.

use std::sync::Arc;

use loomd_agent::{Approval, Audience, Event, EventId, EventKind, EventSink, SendFuture, Subscriber};
use loomd_protocol::{RequestId, ServerNotification, ServerRequestResolvedNotification};

use crate::connections::{ConnectionId, Connections};
use crate::nodes::LiveUntil;
use crate::outbound::Notification;
use crate::server_requests::ServerRequests;

/// The event sink of the agent: all connections and the open server requests.
pub(crate) struct ConnectionEventSink {
    pub connections: Arc<Connections>,
    pub server_requests: Arc<ServerRequests>,
    /// Until when events may be sent, where several nodes share the threads.
    pub live: Option<Arc<LiveUntil>>,
}

impl ConnectionEventSink {
    async fn send(&self, to: Audience<'_>, notification: &Notification) {
        match to {
            Audience::Everyone { subscribers, joining } => {
                let subscribed = subscribers.iter().map(|subscriber| ConnectionId(subscriber.0));
                self.connections.send_to(subscribed, notification).await;
                let left_out = |id| is_among(id, joining) || is_among(id, subscribers);
                self.connections.broadcast_but(left_out, &notification.without_id()).await;
            }
            Audience::Only(subscribers) => {
                let ids = subscribers.iter().map(|subscriber| ConnectionId(subscriber.0));
                self.connections.send_to(ids, notification).await;
            }
        }
    }

    fn request(&self, to: Audience<'_>, approval: &Arc<Approval>, event_id: EventId) {
        let to: Vec<ConnectionId> = match to {
            Audience::Everyone { joining, .. } => {
                self.connections.ids().into_iter().filter(|id| !is_among(*id, joining)).collect()
            }
            Audience::Only(subscribers) => subscribers.iter().map(|subscriber| ConnectionId(subscriber.0)).collect(),
        };
        if let Some(request) = self.server_requests.open_approval(approval, &to) {
            self.connections.request_event(&to, &request, event_id, true);
        } else if let Some(request) = self.server_requests.closed_approval(approval) {
            self.connections.request_event(&to, &request, event_id, false);
        }
    }
}

fn is_among(id: ConnectionId, subscribers: &[Subscriber]) -> bool {
    subscribers.contains(&Subscriber(id.0))
}

impl EventSink for ConnectionEventSink {
    fn send<'a>(&'a self, to: Audience<'a>, event: &'a Event) -> SendFuture<'a> {
        Box::pin(async move {
            if self.live.as_ref().is_some_and(|live| !live.is_live()) {
                return;
            }
            match &event.kind {
                EventKind::Notification(notification) => {
                    self.send(to, &Notification::of_event(Arc::clone(notification), event)).await;
                }
                EventKind::ApprovalRequested(approval) => self.request(to, approval, event.id),
                EventKind::ApprovalResolved(approval) => {
                    let Some(id) = approval.sent_as.get() else { return };
                    let resolved = ServerRequestResolvedNotification {
                        thread_id: approval.request.thread_id().into(),
                        request_id: RequestId::Integer(*id),
                    };
                    let resolved = Arc::new(ServerNotification::ServerRequestResolved(resolved));
                    self.send(to, &Notification::of_event(resolved, event)).await;
                }
            }
        })
    }

    fn broadcast(&self, notification: ServerNotification) -> SendFuture<'_> {
        let everyone = Audience::Everyone { subscribers: &[], joining: &[] };
        Box::pin(async move { self.send(everyone, &Notification::new(notification)).await })
    }

    fn notify<'a>(&'a self, to: &'a [Subscriber], notification: ServerNotification) -> SendFuture<'a> {
        Box::pin(async move { self.send(Audience::Only(to), &Notification::new(notification)).await })
    }

    fn withdraw(&self, approval: &Approval) {
        self.server_requests.withdraw(approval);
    }
}
