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
pub struct Wish {
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
    pub wishes: Vec<Wish>,
    by_key: BTreeMap<RequestKey, usize>,
    keys: u128,
    numbers: u64,
}

impl Clients {
    pub fn add(&mut self, client: u64, thread: Thread, need: Need, repeatable: bool) -> usize {
        let (waiting, over, sent) = (Vec::new(), None, None);
        let key = RequestKey(0);
        self.wishes.push(Wish {
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
        let wish = self.wishes.len() - 1;
        self.renew_key(wish);
        wish
    }

    fn renew_key(&mut self, wish: usize) {
        self.keys += 1;
        self.wishes[wish].key = RequestKey(self.keys);
        (self.wishes[wish].resent, self.wishes[wish].runs) = (false, 0);
        self.by_key.insert(RequestKey(self.keys), wish);
    }

    /// A node runs a request. Returns what it needs, and whether it is repeatable.
    pub fn runs(&mut self, key: RequestKey) -> (Need, bool) {
        let wish = &mut self.wishes[self.by_key[&key]];
        wish.runs += u32::from(wish.key == key);
        (wish.need, wish.repeatable)
    }

    pub fn sent(&mut self, wish: usize, to: NodeId, now: u64) {
        self.numbers += 1;
        let (number, wish) = (self.numbers, &mut self.wishes[wish]);
        wish.resent |= wish.sent.is_some();
        wish.sent = Some((to, number, now));
        wish.waiting.push(to);
    }

    /// A node answers. Returns the wish that is to be sent again, if any.
    pub fn answer(
        &mut self,
        node: NodeId,
        key: RequestKey,
        (outcome, ran_there): (Outcome, bool),
        now: u64,
        database: &mut Database,
    ) -> Result<Option<usize>, String> {
        let Some(index) = self.by_key.get(&key).copied() else { return Ok(None) };
        let wish = &mut self.wishes[index];
        if wish.key != key || wish.over.is_some() || !wish.waiting.contains(&node) {
            return Ok(None);
        }
        wish.waiting.retain(|waiting| *waiting != node);
        let is_stored = database.threads.get(&wish.thread).is_some_and(|stored| stored.keys.contains_key(&key));
        match outcome {
            Outcome::Done => {
                if wish.need == Need::Owner && !is_stored {
                    return Err(format!("{key:?} was acknowledged and is not stored"));
                }
                self.numbers += 1;
                (wish.over, wish.answered) = (Some(Outcome::Done), (self.numbers, now));
                wish.ran_there = ran_there;
                Ok(None)
            }
            Outcome::Refused => {
                if !wish.resent {
                    if is_stored {
                        return Err(format!("{key:?} was refused and is stored"));
                    }
                    database.refused.insert(key);
                    wish.sent = None;
                    self.renew_key(index);
                }
                Ok(self.wishes[index].waiting.is_empty().then_some(index))
            }
            Outcome::Unknown if wish.repeatable => Ok(wish.waiting.is_empty().then_some(index)),
            Outcome::Unknown => {
                wish.over = Some(Outcome::Unknown);
                Ok(None)
            }
        }
    }

    /// What must hold at the end: every wish has an end, what was acknowledged is there, and what was acknowledged in
    /// order is in order. So is what the client's own node has run, even when it was acknowledged in another order. A
    /// request waits no longer than `patience` for others that went elsewhere.
    pub fn check(&self, database: &Database, patience: u64) -> Result<(), String> {
        let mut done: BTreeMap<(u64, NodeId, Thread), Vec<Acknowledged>> = BTreeMap::new();
        for wish in &self.wishes {
            let Some(over) = wish.over else { return Err(format!("{wish:?} is not answered")) };
            if over != Outcome::Done || wish.need != Need::Owner {
                continue;
            }
            let position = database.threads.get(&wish.thread).and_then(|stored| stored.keys.get(&wish.key));
            let Some(position) = position.copied() else {
                return Err(format!("{wish:?} was acknowledged and is lost"));
            };
            // What was run twice may have failed the first time.
            if let (false, 1, Some((node, sent, at))) = (wish.resent, wish.runs, wish.sent) {
                let ((answered, answered_at), ran_there) = (wish.answered, wish.ran_there);
                let acknowledged =
                    Acknowledged { sent, answered, took: answered_at - at, position, ran_there, key: wish.key };
                done.entry((wish.client, node, wish.thread)).or_default().push(acknowledged);
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
