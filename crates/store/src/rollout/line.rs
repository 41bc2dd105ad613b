//! One line, told apart: its time, its kind and its payload as raw JSON.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

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

pub(super) fn payload_type(payload: &str) -> Option<Cow<'_, str>> {
    // Writers put the type first; then it is found without reading the payload.
    if let Some(rest) = payload.strip_prefix("{\"type\":\"") {
        let end = memchr::memchr2(b'"', b'\\', rest.as_bytes())?;
        if rest.as_bytes()[end] == b'"' {
            return Some(Cow::Borrowed(&rest[..end]));
        }
    }
    #[derive(Deserialize)]
    struct Tag<'a> {
        #[serde(borrow, rename = "type")]
        tag: Cow<'a, str>,
    }
    serde_json::from_str::<Tag>(payload).ok().map(|tag| tag.tag)
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
