//! The head of a thread's records: its session metadata and its first user message, from as few lines as that takes.

use std::io::{self, BufRead, BufReader, Read};

use crate::rollout::{Event, Line, LineHeader, Record, SessionMeta, UserMessage};

/// Lines looked at for the session_meta, as the reference does.
const META_LINES: usize = 10;
/// Further lines looked at for the first user message once the session_meta is known.
const MESSAGE_LINES: usize = 200;
/// A message may carry images as text; beyond this the thread has no preview.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// Most heads fit in one read.
const BUFFER: usize = 16 * 1024;

/// What the first lines of a rollout hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Head {
    /// The session metadata, with instructions and tools.
    pub meta: Option<Box<SessionMeta>>,
    /// The text of the first user message, cut and trimmed; `[Image]` for one that is only an image. The objective of a
    /// goal that was set before. `None` when there is neither yet, or only blank messages.
    pub preview: Option<String>,
    /// Whether the file holds nothing but white space, as far as it was read.
    pub blank: bool,
}

/// The head of the records in a file.
pub fn read(records: impl Read) -> io::Result<Head> {
    read_from(records, |head| head.meta.is_some() && head.preview.is_some())
}

/// Only the session metadata of the records in a file.
pub(crate) fn read_meta(records: impl Read) -> io::Result<Option<Box<SessionMeta>>> {
    Ok(read_from(records, |head| head.meta.is_some())?.meta)
}

/// What lists and lookups need of the session metadata: the long parts stay in the records.
pub fn slim(mut meta: SessionMeta) -> SessionMeta {
    meta.base_instructions = None;
    meta.dynamic_tools = None;
    meta.preview = None;
    meta
}

fn read_from(file: impl Read, enough: fn(&Head) -> bool) -> io::Result<Head> {
    let mut reader = BufReader::with_capacity(BUFFER, file.take(MAX_BYTES));
    let mut head = Head { blank: true, ..Head::default() };
    let mut line = Vec::new();
    let mut seen = 0;
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            return Ok(head);
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        head.blank = false;
        seen += 1;
        head.add(&line);
        if enough(&head) || seen >= if head.meta.is_some() { META_LINES + MESSAGE_LINES } else { META_LINES } {
            return Ok(head);
        }
    }
}

impl Head {
    fn add(&mut self, line: &[u8]) {
        if LineHeader::parse(line).is_some_and(|header| !self.wants(header.kind, header.payload_type())) {
            return;
        }
        let Some(line) = Line::parse(line) else { return };
        if !self.wants(&line.kind, line.payload_type().as_deref()) {
            return;
        }
        match line.decode() {
            Some(Record::SessionMeta(meta)) => {
                self.preview = meta.preview.clone().or(self.preview.take());
                self.meta = Some(meta);
            }
            // A blank message is no first message.
            Some(Record::EventMsg(Event::UserMessage(message))) => self.preview = preview(&message),
            Some(Record::EventMsg(Event::ThreadGoalUpdated(updated))) => self.preview = Some(updated.goal.objective),
            _ => {}
        }
    }

    /// Whether a line can add something to the head.
    fn wants(&self, kind: &str, payload_type: Option<&str>) -> bool {
        match kind {
            "session_meta" => self.meta.is_none(),
            "event_msg" => {
                self.preview.is_none() && matches!(payload_type, Some("user_message" | "thread_goal_updated"))
            }
            _ => false,
        }
    }
}

/// Editors put context before what the user typed; it ends with this heading.
const REQUEST_HEADING: &str = "## My request for Codex:";

/// The text that stands for a thread in a list: that of its first user message. `None` for a blank message.
pub fn preview(message: &UserMessage) -> Option<String> {
    let text = match message.message.find(REQUEST_HEADING) {
        Some(at) => &message.message[at + REQUEST_HEADING.len()..],
        None => &message.message,
    };
    match text.trim() {
        "" if message.has_image() => Some("[Image]".into()),
        "" => None,
        text => Some(text.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const META: &str = r#"{"timestamp":"x","type":"session_meta","payload":{"id":"54cbd9a4-eb27-4019-a111-baa1c7c1e4e6","timestamp":"2025-03-04T05:06:07.000Z","cwd":"/","originator":"o","cli_version":"1"}}"#;

    const WHOLE: fn(&Head) -> bool = |head| head.meta.is_some() && head.preview.is_some();

    fn user(text: &str) -> String {
        format!(r#"{{"timestamp":"x","type":"event_msg","payload":{{"type":"user_message","message":{text:?}}}}}"#)
    }

    fn check(lines: &[&str], found: bool, preview: Option<&str>) {
        let head = read_from(lines.join("\n").as_bytes(), WHOLE).unwrap();
        assert_eq!((head.meta.is_some(), head.preview.as_deref()), (found, preview), "{lines:?}");
    }

    #[test]
    fn the_first_message_is_the_preview() {
        let (one, two) = (user(" one "), user("two"));
        let context = user("# Context\n## My request for Codex:\nrename it ");
        let image = user("").replace("}}", r#","images":["u"]}}"#);
        check(&[META, &one, &two], true, Some("one"));
        check(&["{broken", "", META, "[]", &one], true, Some("one"));
        check(&[META, &context], true, Some("rename it"));
        check(&[META, &image], true, Some("[Image]"));
        check(&[META, &user(" ")], true, None);
        check(&[META, &user(" "), &two], true, Some("two"));
        check(&[&one, META, &two], true, Some("one"));
        let goal = r#"{"timestamp":"x","type":"event_msg","payload":{"type":"thread_goal_updated","threadId":"t","goal":{"threadId":"t","objective":"ship it","status":"paused","tokenBudget":null,"tokensUsed":0,"timeUsedSeconds":0,"createdAt":0,"updatedAt":0}}}"#;
        check(&[META, goal, &one], true, Some("ship it"));
        check(&[META, &one, goal], true, Some("one"));
        check(&[META], true, None);
        check(&[&one], false, Some("one"));
        check(&[], false, None);
    }

    #[test]
    fn a_message_after_the_first_lines_is_no_preview() {
        let other = r#"{"timestamp":"x","type":"future","payload":{}}"#;
        let far = [vec![META], vec![other; 208], vec![]].concat();
        check(&[far.clone(), vec![&user("in reach")]].concat(), true, Some("in reach"));
        check(&[far, vec![other], vec![&user("too far")]].concat(), true, None);
        check(&[vec![other; 10], vec![META]].concat(), false, None);
    }

    #[test]
    fn a_file_of_white_space_is_blank() {
        assert!(read_from(&b" \n\n"[..], WHOLE).unwrap().blank);
        assert!(!read_from(&b"\xff\n"[..], WHOLE).unwrap().blank);
    }
}
