//! One line: its time, its kind and its payload as raw JSON.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::event::Event;
use super::record::Record;

/// A line of a rollout whose payload has not been decoded yet. Borrows from the line's bytes.
#[derive(Clone, Debug, Deserialize)]
pub struct Line<'a> {
    /// When it was written, RFC 3339 with milliseconds.
    #[serde(borrow, default)]
    pub timestamp: Cow<'a, str>,
    /// `session_meta`, `event_msg`, ..., or a kind that this release does not know.
    #[serde(borrow, rename = "type")]
    pub kind: Cow<'a, str>,
    /// The payload as it stands in the file.
    #[serde(borrow)]
    pub payload: &'a RawValue,
}

impl<'a> Line<'a> {
    /// `None` for a blank, torn or otherwise unreadable line.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        // Most of what is skipped is blank or torn; this spares the parser's error.
        if !line.trim_ascii_start().starts_with(b"{") {
            return None;
        }
        serde_json::from_slice(line).ok()
    }

    /// The payload's own `type` (of an event or a response item), read without decoding the rest.
    pub fn payload_type(&self) -> Option<Cow<'a, str>> {
        payload_type(self.payload.get())
    }

    /// `None` when the kind, the event type or the shape of the payload is unknown.
    pub fn decode(&self) -> Option<Record> {
        Record::decode(&self.kind, self.payload)
    }
}

/// The kind and the payload of a line, found by its first bytes. Nothing else of the line has been parsed, so that lines
/// that are skipped cost next to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineHeader<'a> {
    /// The kind, as in [`Line`].
    pub kind: &'a str,
    /// Everything between `"payload":` and the end of the line's object.
    pub payload: &'a [u8],
}

impl<'a> LineHeader<'a> {
    /// `None` for a line that is laid out in another way; [`Line::parse`] reads those.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let mut rest = Prefix(line);
        rest.eat(b"{")?;
        rest.member("timestamp")?;
        rest.string()?;
        rest.eat(b",")?;
        rest.member("type")?;
        let kind = rest.string()?;
        rest.eat(b",")?;
        rest.member("payload")?;
        Some(Self { kind, payload: rest.0.trim_ascii_end().strip_suffix(b"}")? })
    }

    /// The payload's own `type`, when it comes first.
    pub fn payload_type(&self) -> Option<&'a str> {
        first_type(self.payload)
    }

    /// The event of an `event_msg`. `None` also for an event that only [`Line::parse`] can decode.
    pub fn event(&self) -> Option<Event> {
        Event::decode(std::str::from_utf8(self.payload).ok()?)
    }
}

/// What is left of a text that is taken from the front, token by token.
struct Prefix<'a>(&'a [u8]);

impl<'a> Prefix<'a> {
    fn eat(&mut self, token: &[u8]) -> Option<()> {
        self.0 = self.0.trim_ascii_start().strip_prefix(token)?;
        Some(())
    }

    fn member(&mut self, name: &str) -> Option<()> {
        (self.string()? == name).then(|| self.eat(b":"))?
    }

    /// A string without escapes.
    fn string(&mut self) -> Option<&'a str> {
        self.eat(b"\"")?;
        let end = memchr::memchr2(b'"', b'\\', self.0).filter(|end| self.0[*end] == b'"')?;
        let (text, rest) = self.0.split_at(end);
        self.0 = &rest[1..];
        std::str::from_utf8(text).ok()
    }
}

/// The `type` of an object that begins with it.
fn first_type(object: &[u8]) -> Option<&str> {
    let mut rest = Prefix(object);
    rest.eat(b"{")?;
    rest.member("type")?;
    rest.string()
}

pub(super) fn payload_type(payload: &str) -> Option<Cow<'_, str>> {
    // Writers put the type first; then it is found without reading the payload.
    if let Some(tag) = first_type(payload.as_bytes()) {
        return Some(Cow::Borrowed(tag));
    }
    #[derive(Deserialize)]
    struct TypeMember<'a> {
        #[serde(borrow, rename = "type")]
        tag: Cow<'a, str>,
    }
    serde_json::from_str::<TypeMember>(payload).ok().map(|tag| tag.tag)
}

/// Appends a copy of a line with a new time: kind and payload stay as they are, known or not.
pub fn copy_line(out: &mut Vec<u8>, timestamp: &str, line: &Line) {
    put_envelope(out, timestamp, &line.kind);
    // White space between tokens may hold line breaks when the line was not read from a rollout.
    out.extend(line.payload.get().bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }));
    out.extend_from_slice(b"}\n");
}

pub(super) fn put_envelope(out: &mut Vec<u8>, timestamp: &str, kind: &str) {
    out.extend_from_slice(b"{\"timestamp\":");
    put_string(out, timestamp);
    out.extend_from_slice(b",\"type\":");
    put_string(out, kind);
    out.extend_from_slice(b",\"payload\":");
}

fn put_string(out: &mut Vec<u8>, text: &str) {
    // A string into memory cannot fail to be written.
    let _ = text.serialize(&mut serde_json::Serializer::new(&mut *out));
}

/// The time as lines carry it: `2026-11-15T06:42:54.420Z`.
pub fn now() -> String {
    format!("{:.3}", Timestamp::now())
}

/// The lines of `bytes` with the offset at which each begins. The last one may lack its line break.
pub fn whole_lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = bytes.get(start..).filter(|rest| !rest.is_empty())?;
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let offset = start;
        start += end + 1;
        Some((offset, &rest[..end]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_holds_what_parsing_gives_and_is_none_for_other_layouts() {
        let payload = br#"{"type":"user_message","message":"hi"}"#;
        for (before, after) in [
            (r#"{"timestamp":"x","type":"event_msg","payload":"#, "}"),
            ("  { \"timestamp\" : \"x\" , \"type\" : \"event_msg\" ,\t\"payload\":", " } \r"),
        ] {
            let line = [before.as_bytes(), payload, after.as_bytes()].concat();
            let header = LineHeader::parse(&line).unwrap();
            let parsed = Line::parse(&line).unwrap();
            assert_eq!((header.kind, header.payload_type()), ("event_msg", Some("user_message")));
            assert_eq!(header.event().map(Record::EventMsg), parsed.decode());
            assert!(header.event().is_some());
        }
        for other in [
            r#"{"type":"event_msg","timestamp":"x","payload":{}}"#,
            r#"{"timestamp":"x\"","type":"event_msg","payload":{}}"#,
            r#"{"timestamp":"x","type":"event_msg","#,
            r#"{"timestamp":"x","type":"event_msg","payload":{"#,
            "",
        ] {
            assert_eq!(LineHeader::parse(other.as_bytes()), None, "{other}");
        }
        let more = br#"{"timestamp":"x","type":"event_msg","payload":{"type":"context_compacted"},"more":1}"#;
        assert!(LineHeader::parse(more).unwrap().event().is_none() && Line::parse(more).unwrap().decode().is_some());
    }
}
