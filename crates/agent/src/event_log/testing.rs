//! An event sink for tests.

use std::sync::Arc;

use loomd_protocol::{JsonValue, ServerNotification};
use parking_lot::Mutex;

use super::{EventBudget, EventLog};
use crate::approval::{Approval, ApprovalId};
use crate::event::{Event, EventKind, next_epoch};
use crate::event_sink::{Audience, EventSink, SendFuture, Subscriber};

/// What each subscriber got, in order. Broadcasts reach the clients in `everyone`.
#[derive(Default)]
pub(crate) struct Received {
    pub everyone: Vec<u64>,
    pub events: Mutex<Vec<(u64, Event)>>,
    pub withdrawn: Mutex<Vec<ApprovalId>>,
}

impl Received {
    pub fn events(&self) -> Vec<(u64, Event)> {
        self.events.lock().clone()
    }

    /// The notifications, as JSON.
    pub fn notifications(&self) -> Vec<(u64, JsonValue)> {
        let json = |event: &Event| match &event.kind {
            EventKind::Notification(notification) => {
                Some(serde_json::from_slice(&notification.encode().unwrap()).unwrap())
            }
            _ => None,
        };
        self.events.lock().iter().filter_map(|(subscriber, event)| Some((*subscriber, json(event)?))).collect()
    }
}

impl EventSink for Received {
    fn send<'a>(&'a self, to: Audience<'a>, event: &'a Event) -> SendFuture<'a> {
        let to: Vec<u64> = match to {
            Audience::Only(subscribers) => subscribers.iter().map(|subscriber| subscriber.0).collect(),
            Audience::Everyone { joining, .. } => {
                self.everyone.iter().copied().filter(|id| !joining.contains(&Subscriber(*id))).collect()
            }
        };
        Box::pin(async move {
            // Another task may run here, as when an outbound queue is full.
            tokio::task::yield_now().await;
            self.events.lock().extend(to.iter().map(|id| (*id, event.clone())));
        })
    }

    fn broadcast(&self, _: ServerNotification) -> SendFuture<'_> {
        unreachable!("an event log numbers what it sends")
    }

    fn notify<'a>(&'a self, _: &'a [Subscriber], _: ServerNotification) -> SendFuture<'a> {
        unreachable!("an event log numbers what it sends")
    }

    fn withdraw(&self, approval: &Approval) {
        self.withdrawn.lock().push(approval.id);
    }
}

pub(crate) fn log(received: &Arc<Received>, subscribers: &[u64]) -> EventLog {
    let subscribers = subscribers.iter().map(|id| Subscriber(*id)).collect();
    EventLog::new(
        Arc::clone(received) as Arc<dyn EventSink>,
        subscribers,
        next_epoch(),
        Arc::new(EventBudget::default()),
    )
}
