//! The clients of a simulation: each sends requests on a thread to one node at a time, without waiting for answers, and
//! knows what it was told.

use std::collections::BTreeMap;

use loomd_ownership::{Answer, Need, NodeId, RequestKey, Thread};

use super::database::Database;

/// What a client is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// It was not done.
    Refused,
    /// It may have been done.
    Unknown,
}

impl From<Answer> for Outcome {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Moved | Answer::Unavailable | Answer::Busy => Self::Refused,
            Answer::Unknown => Self::Unknown,
        }
    }
}

/// Something that a client wants done.
#[derive(Debug)]
pub struct ClientRequest {
    pub client: u64,
    pub thread: Thread,
    pub need: Need,
    pub repeatable: bool,
    pub key: RequestKey,
    /// The nodes that have the request and have not answered.
    pub waiting: Vec<NodeId>,
    pub over: Option<Outcome>,
    /// It was sent more than once under this key.
    pub resent: bool,
    /// The node that it was sent to last, with the number and the time of that.
    pub sent: Option<(NodeId, u64, u64)>,
    /// The number and the time of the answer.
    answered: (u64, u64),
    /// Whether the node that it was sent to last has run it itself.
    ran_there: bool,
    /// How often it was run under this key.
    runs: u32,
}

/// A request that was acknowledged, and sent once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Acknowledged {
    /// In which order requests were sent, and answered.
    sent: u64,
    answered: u64,
    took: u64,
    position: usize,
    ran_there: bool,
    key: RequestKey,
}

#[derive(Default)]
pub struct Clients {
    pub requests: Vec<ClientRequest>,
    by_key: BTreeMap<RequestKey, usize>,
    keys: u128,
    numbers: u64,
}

impl Clients {
    pub fn add(&mut self, client: u64, thread: Thread, need: Need, repeatable: bool) -> usize {
        let (waiting, over, sent) = (Vec::new(), None, None);
        let key = RequestKey(0);
        self.requests.push(ClientRequest {
            client,
            thread,
            need,
            repeatable,
            key,
            waiting,
            over,
            resent: false,
            sent,
            answered: (0, 0),
            ran_there: false,
            runs: 0,
        });
        let wanted = self.requests.len() - 1;
        self.renew_key(wanted);
        wanted
    }

    fn renew_key(&mut self, wanted: usize) {
        self.keys += 1;
        self.requests[wanted].key = RequestKey(self.keys);
        (self.requests[wanted].resent, self.requests[wanted].runs) = (false, 0);
        self.by_key.insert(RequestKey(self.keys), wanted);
    }

    /// A node runs a request. Returns what it needs, and whether it is repeatable.
    pub fn runs(&mut self, key: RequestKey) -> (Need, bool) {
        let wanted = &mut self.requests[self.by_key[&key]];
        wanted.runs += u32::from(wanted.key == key);
        (wanted.need, wanted.repeatable)
    }

    pub fn sent(&mut self, wanted: usize, to: NodeId, now: u64) {
        self.numbers += 1;
        let (number, wanted) = (self.numbers, &mut self.requests[wanted]);
        wanted.resent |= wanted.sent.is_some();
        wanted.sent = Some((to, number, now));
        wanted.waiting.push(to);
    }

    /// A node answers. Returns the request that is to be sent again, if any.
    pub fn answer(
        &mut self,
        node: NodeId,
        key: RequestKey,
        (outcome, ran_there): (Outcome, bool),
        now: u64,
        database: &mut Database,
    ) -> Result<Option<usize>, String> {
        let Some(index) = self.by_key.get(&key).copied() else { return Ok(None) };
        let wanted = &mut self.requests[index];
        if wanted.key != key || wanted.over.is_some() || !wanted.waiting.contains(&node) {
            return Ok(None);
        }
        wanted.waiting.retain(|waiting| *waiting != node);
        let is_stored = database.threads.get(&wanted.thread).is_some_and(|stored| stored.keys.contains_key(&key));
        match outcome {
            Outcome::Done => {
                if wanted.need == Need::Owner && !is_stored {
                    return Err(format!("{key:?} was acknowledged and is not stored"));
                }
                self.numbers += 1;
                (wanted.over, wanted.answered) = (Some(Outcome::Done), (self.numbers, now));
                wanted.ran_there = ran_there;
                Ok(None)
            }
            Outcome::Refused => {
                if !wanted.resent {
                    if is_stored {
                        return Err(format!("{key:?} was refused and is stored"));
                    }
                    database.refused.insert(key);
                    wanted.sent = None;
                    self.renew_key(index);
                }
                Ok(self.requests[index].waiting.is_empty().then_some(index))
            }
            Outcome::Unknown if wanted.repeatable => Ok(wanted.waiting.is_empty().then_some(index)),
            Outcome::Unknown => {
                wanted.over = Some(Outcome::Unknown);
                Ok(None)
            }
        }
    }

    /// What must hold at the end: every request has an end, what was acknowledged is there, and what was acknowledged in
    /// order is in order. So is what the client's own node has run, even when it was acknowledged in another order. A
    /// request waits no longer than `patience` for others that went elsewhere.
    pub fn check(&self, database: &Database, patience: u64) -> Result<(), String> {
        let mut done: BTreeMap<(u64, NodeId, Thread), Vec<Acknowledged>> = BTreeMap::new();
        for wanted in &self.requests {
            let Some(over) = wanted.over else { return Err(format!("{wanted:?} is not answered")) };
            if over != Outcome::Done || wanted.need != Need::Owner {
                continue;
            }
            let position = database.threads.get(&wanted.thread).and_then(|stored| stored.keys.get(&wanted.key));
            let Some(position) = position.copied() else {
                return Err(format!("{wanted:?} was acknowledged and is lost"));
            };
            // What was run twice may have failed the first time.
            if let (false, 1, Some((node, sent, at))) = (wanted.resent, wanted.runs, wanted.sent) {
                let ((answered, answered_at), ran_there) = (wanted.answered, wanted.ran_there);
                let acknowledged =
                    Acknowledged { sent, answered, took: answered_at - at, position, ran_there, key: wanted.key };
                done.entry((wanted.client, node, wanted.thread)).or_default().push(acknowledged);
            }
        }
        for requests in done.values_mut() {
            requests.sort_unstable();
            for (index, first) in requests.iter().enumerate() {
                let is_in_order = |second: &&Acknowledged| {
                    let counts = second.took < patience && (first.answered < second.answered || second.ran_there);
                    first.position < second.position || !counts
                };
                if let Some(second) = requests[index + 1..].iter().find(|second| !is_in_order(second)) {
                    return Err(format!("{second:?} has overtaken {first:?}"));
                }
            }
        }
        Ok(())
    }
}
