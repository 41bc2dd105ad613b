//! [`History`]: everything that clients were told, in the order in which each connection was told it, and every fault.

use std::fmt::Write;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::Value;

use crate::plan;

/// A connection of a client, numbered over all clients.
pub type ConnectionId = usize;

pub struct History {
    began: Instant,
    entries: Mutex<Vec<Entry>>,
}

#[derive(Clone, Debug)]
pub struct Entry {
    pub at: Duration,
    pub what: What,
}

#[derive(Clone, Debug)]
pub enum What {
    /// Something that was done to nodes, the database or the network.
    Fault(String),
    /// A thread was shown as it was right after an event. Events before this on the connection do not count.
    Shown {
        connection: ConnectionId,
        thread: String,
        after: u128,
        items: Option<Vec<Label>>,
    },
    Event(Seen),
    /// `turn/start` was answered.
    Started {
        thread: String,
        key: String,
        text: String,
        turn: String,
    },
    /// A request was refused, or its answer never came.
    Failed {
        thread: Option<String>,
        method: String,
        reason: String,
    },
}

/// A notification or a server request about a thread, as one connection received it. What is sent in place of events
/// that were missed, when a thread has moved to another node, has no event id.
#[derive(Clone, Debug)]
pub struct Seen {
    pub connection: ConnectionId,
    pub thread: String,
    pub event: Option<u128>,
    pub method: String,
    /// Open server requests are sent again with the ids that they had.
    pub is_request: bool,
    pub turn: Option<String>,
    pub item: Option<Label>,
    pub status: Option<String>,
}

/// An item: what it is, and the text or the id that is its own in the whole run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label {
    pub kind: String,
    pub name: String,
}

impl Label {
    pub fn of(item: &Value) -> Option<Self> {
        let kind = item["type"].as_str()?.to_owned();
        let name = match kind.as_str() {
            "agentMessage" => item["text"].as_str(),
            "userMessage" => item["content"][0]["text"].as_str(),
            _ => item["id"].as_str(),
        };
        Some(Self { kind, name: name.unwrap_or_default().to_owned() })
    }

    /// Whether the item is stored once it has completed: the beginning of a message is not.
    pub fn is_lasting(&self) -> bool {
        self.kind != "agentMessage" || plan::is_whole(&self.name)
    }
}

impl History {
    pub fn new() -> Self {
        Self { began: Instant::now(), entries: Mutex::new(Vec::new()) }
    }

    pub fn add(&self, what: What) {
        // Under the lock, so that times rise.
        let mut entries = self.entries.lock();
        entries.push(Entry { at: self.began.elapsed(), what });
    }

    pub fn fault(&self, text: impl Into<String>) {
        self.add(What::Fault(text.into()));
    }

    /// Adds a notification or a server request, if it is about a thread.
    pub fn received(&self, connection: ConnectionId, message: &Value) {
        let params = &message["params"];
        let thread = params["threadId"].as_str().or(params["thread"]["id"].as_str());
        let event = message["eventId"].as_str().and_then(|id| id.parse().ok());
        let (Some(thread), Some(method)) = (thread, message["method"].as_str()) else { return };
        let turn = params["turnId"].as_str().or(params["turn"]["id"].as_str());
        self.add(What::Event(Seen {
            connection,
            thread: thread.to_owned(),
            event,
            method: method.to_owned(),
            is_request: message.get("id").is_some(),
            turn: turn.map(str::to_owned),
            item: Label::of(&params["item"]),
            status: params["turn"]["status"].as_str().or(params["item"]["status"].as_str()).map(str::to_owned),
        }));
    }

    pub fn entries(&self) -> Vec<Entry> {
        self.entries.lock().clone()
    }

    /// The entries about a thread, and all faults, for people.
    pub fn of_thread(&self, wanted: &str) -> String {
        let mut text = String::new();
        for Entry { at, what } in &*self.entries.lock() {
            let line = match what {
                What::Fault(fault) => format!("     ** {fault}"),
                What::Shown { connection, thread, after, items } if thread == wanted => {
                    let items = items.as_ref().map_or(0, Vec::len);
                    format!("[{connection:3}] shown as after {after} ({items} items)")
                }
                What::Event(seen) if seen.thread == wanted && !seen.method.ends_with("/delta") => {
                    let Seen { connection, event, method, item, status, .. } = seen;
                    let item = item.as_ref().map_or("", |item| &item.name);
                    let event = event.map_or_else(|| "-".to_owned(), |event| event.to_string());
                    format!("[{connection:3}] {event} {method} {} {item}", status.as_deref().unwrap_or_default())
                }
                What::Started { thread, key, turn, .. } if thread == wanted => {
                    format!("      turn/start {key}: {turn}")
                }
                What::Failed { thread: Some(thread), method, reason } if thread == wanted => {
                    format!("      {method} failed: {reason}")
                }
                _ => continue,
            };
            _ = writeln!(text, "{:9.3} {line}", at.as_secs_f64());
        }
        text
    }
}
