//! The messages in the lines of a rollout.

use crate::rollout::{Event, Line, LineHeader, Record};
use crate::search::{MessageFilter, Snippet, Term};

/// Looks for a term in the messages of a rollout, line by line. Turns that were rolled back do not count.
pub struct MessageTexts<'a> {
    term: &'a Term,
    /// For each turn the first hit in it.
    turns: Vec<Option<String>>,
    /// Whether a record began the last turn: messages do not begin another one then.
    explicit: bool,
}

/// What a line means for a search.
enum Searched {
    TurnStarted,
    TurnEnded,
    UserMessage(String),
    AgentMessage(String),
    RolledBack(u32),
}

impl<'a> MessageTexts<'a> {
    pub fn new(term: &'a Term) -> Self {
        Self { term, turns: Vec::new(), explicit: false }
    }

    /// Takes the next line of the rollout. Malformed lines are skipped.
    pub fn push(&mut self, line: &[u8]) {
        self.push_filtered(line, None);
    }

    /// The same, and adds the line's message to a filter.
    pub fn push_filtered(&mut self, line: &[u8], filter: Option<&mut MessageFilter>) {
        let searched = searched(line);
        if let (Some(filter), Some(Searched::UserMessage(text) | Searched::AgentMessage(text))) = (filter, &searched) {
            filter.add(text);
        }
        match searched {
            None => {}
            Some(Searched::TurnStarted) => {
                self.turns.push(None);
                self.explicit = true;
            }
            Some(Searched::TurnEnded) => self.explicit = false,
            Some(Searched::UserMessage(text)) => {
                if !self.explicit {
                    self.turns.push(None);
                }
                self.look(&text);
            }
            Some(Searched::AgentMessage(text)) => self.look(&text),
            Some(Searched::RolledBack(turns)) => {
                let left = self.turns.len().saturating_sub(turns as usize);
                self.turns.truncate(left);
            }
        }
    }

    fn look(&mut self, text: &str) {
        if self.turns.is_empty() {
            self.turns.push(None);
        }
        if let Some(first @ None) = self.turns.last_mut()
            && let Some(hit) = self.term.find(text).next()
        {
            *first = Some(Snippet::in_one_line(text, hit));
        }
    }

    /// The first hit in one line.
    pub fn first(self) -> Option<String> {
        self.turns.into_iter().flatten().next()
    }
}

/// Most lines of a rollout are not decoded.
fn searched(line: &[u8]) -> Option<Searched> {
    let event = match LineHeader::parse(line) {
        Some(header) if header.kind != "event_msg" || !header.payload_type().is_none_or(is_searched) => return None,
        Some(header) => header.event(),
        None => None,
    };
    let event = match event {
        Some(event) => event,
        None => match Line::parse(line)?.decode()? {
            Record::EventMsg(event) => event,
            _ => return None,
        },
    };
    Some(match event {
        Event::TaskStarted(_) => Searched::TurnStarted,
        Event::TaskComplete(_) | Event::TurnAborted(_) => Searched::TurnEnded,
        Event::UserMessage(message) => Searched::UserMessage(message.message),
        Event::AgentMessage(message) => Searched::AgentMessage(message.message),
        Event::ThreadRolledBack(rolled_back) => Searched::RolledBack(rolled_back.num_turns),
        _ => return None,
    })
}

fn is_searched(payload_type: &str) -> bool {
    matches!(
        payload_type,
        "task_started"
            | "turn_started"
            | "task_complete"
            | "turn_complete"
            | "turn_aborted"
            | "user_message"
            | "agent_message"
            | "thread_rolled_back"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn first(term: &str, events: &[serde_json::Value]) -> Option<String> {
        let term = Term::new(term);
        let mut texts = MessageTexts::new(&term);
        for event in events {
            texts.push(json!({ "timestamp": "x", "type": "event_msg", "payload": event }).to_string().as_bytes());
        }
        texts.first()
    }

    #[test]
    fn messages_of_users_and_agents_are_searched_and_nothing_else() {
        let events = [
            json!({ "type": "task_started", "turn_id": "1" }),
            json!({ "type": "agent_reasoning", "text": "a needle in thoughts" }),
            json!({ "type": "user_message", "message": "where" }),
            json!({ "type": "agent_message", "message": "a needle\n in hay" }),
        ];
        assert_eq!(first("needle", &events).as_deref(), Some("a needle in hay"));
        assert_eq!(first("WHERE", &events).as_deref(), Some("where"));
        assert_eq!(first("thoughts", &events), None);
    }

    #[test]
    fn turns_that_were_rolled_back_are_not_found() {
        let turn = |text: &str| {
            [
                json!({ "type": "task_started", "turn_id": text }),
                json!({ "type": "user_message", "message": text }),
                json!({ "type": "user_message", "message": format!("steered {text}") }),
                json!({ "type": "task_complete", "turn_id": text }),
            ]
        };
        let mut events = [turn("one"), turn("two")].concat();
        events.push(json!({ "type": "thread_rolled_back", "num_turns": 1 }));
        assert_eq!(first("two", &events), None);
        assert_eq!(first("one", &events).as_deref(), Some("one"));
        // Older files have no record of a turn's start.
        let old = [
            json!({ "type": "user_message", "message": "one" }),
            json!({ "type": "user_message", "message": "two" }),
            json!({ "type": "thread_rolled_back", "num_turns": 1 }),
        ];
        assert_eq!(first("two", &old), None);
        assert_eq!(first("one", &old).as_deref(), Some("one"));
    }
}
