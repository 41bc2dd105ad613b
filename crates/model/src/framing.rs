//! Splits the body of a successful response into server-sent events, or recognises that it is one JSON value or an HTML
//! page instead. Decides by the first bytes, because content types are unreliable.

use crate::refusal::html;
use crate::sse::{MAX_EVENT, SseParser, TooLong};

/// How much of an unexpected body an error shows.
const SHOWN: usize = 200;

/// The field names that start a line of an event stream.
const FIELDS: [&[u8]; 5] = [b"data", b"event", b"id", b"retry", b":"];

pub(crate) struct Framing {
    body: BodyKind,
    /// The first bytes of the body, until the first event.
    head: Vec<u8>,
}

enum BodyKind {
    /// Only white space so far.
    Unknown,
    Events {
        parser: SseParser,
        /// Whether an event was found.
        any: bool,
    },
    Whole(Vec<u8>),
}

/// What is left at the end of a body.
#[derive(Debug, PartialEq)]
pub(crate) enum Remainder {
    Nothing,
    /// The data of a last event that lacks its empty line.
    Event(String),
    /// The whole body, which is one value and not an event stream.
    Whole(String),
    /// The first bytes of a text body without events.
    Text(String),
}

impl Default for Framing {
    fn default() -> Self {
        Self { body: BodyKind::Unknown, head: Vec::new() }
    }
}

impl Framing {
    pub fn push(&mut self, bytes: &[u8]) {
        match &mut self.body {
            BodyKind::Events { parser, any } => {
                parser.push(bytes);
                if !*any {
                    let room = SHOWN.saturating_sub(self.head.len()).min(bytes.len());
                    self.head.extend_from_slice(&bytes[..room]);
                }
            }
            BodyKind::Whole(whole) => whole.extend_from_slice(bytes),
            BodyKind::Unknown => {
                self.head.extend_from_slice(bytes);
                match text(&self.head).first() {
                    None => {}
                    Some(b'{' | b'[' | b'<') => self.body = BodyKind::Whole(std::mem::take(&mut self.head)),
                    Some(_) => {
                        let mut parser = SseParser::default();
                        parser.push(&self.head);
                        self.head.truncate(SHOWN);
                        self.body = BodyKind::Events { parser, any: false };
                    }
                }
            }
        }
    }

    /// Returns the data of the next complete event.
    pub fn next(&mut self) -> Option<Result<&[u8], TooLong>> {
        match &mut self.body {
            BodyKind::Unknown => (self.head.len() > MAX_EVENT).then_some(Err(TooLong)),
            BodyKind::Whole(whole) => (whole.len() > MAX_EVENT).then_some(Err(TooLong)),
            BodyKind::Events { parser, any } => parser.next().inspect(|_| *any = true),
        }
    }

    /// Takes the remainder at the end of the body.
    pub fn finish(&mut self) -> Remainder {
        let owned = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let head = std::mem::take(&mut self.head);
        match std::mem::replace(&mut self.body, BodyKind::Unknown) {
            BodyKind::Unknown => Remainder::Nothing,
            BodyKind::Whole(whole) => Remainder::Whole(owned(&whole)),
            BodyKind::Events { mut parser, any } => match parser.finish() {
                Some(data) => Remainder::Event(owned(data)),
                None if any || is_stream(&head) => Remainder::Nothing,
                None => Remainder::Text(owned(&head)),
            },
        }
    }
}

/// Strips leading white space and a byte order mark.
fn text(body: &[u8]) -> &[u8] {
    let body = body.trim_ascii_start();
    body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body).trim_ascii_start()
}

/// Whether a body without events starts like an event stream.
fn is_stream(head: &[u8]) -> bool {
    let head = text(head);
    head.is_empty() || FIELDS.iter().any(|field| head.starts_with(field) || field.starts_with(head))
}

/// Describes an unexpected body for an error message.
pub(crate) fn describe(body: &str) -> String {
    if let Some(page) = html(body) {
        return page;
    }
    let body = body.trim();
    let shown = &body[..body.floor_char_boundary(SHOWN)];
    let more = if shown.len() < body.len() { "..." } else { "" };
    let kind = if body.starts_with(['{', '[']) { "JSON" } else { "text" };
    format!("{kind} ({shown}{more})")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, events: &[&str], rest: Remainder) {
        for size in [1, 3, body.len().max(1)] {
            let mut framing = Framing::default();
            let mut found = Vec::new();
            for piece in body.as_bytes().chunks(size) {
                framing.push(piece);
                while let Some(data) = framing.next() {
                    found.push(String::from_utf8_lossy(data.unwrap()).into_owned());
                }
            }
            assert_eq!(found, events, "{body:?} in pieces of {size}");
            assert_eq!(framing.finish(), rest, "{body:?} in pieces of {size}");
        }
    }

    #[test]
    fn the_first_bytes_distinguish_event_streams_from_other_bodies() {
        check("data: a\n\ndata: b", &["a"], Remainder::Event("b".into()));
        check("\u{feff}data: a\n\n", &["a"], Remainder::Nothing);
        check("\n\n: hello\n\n", &[], Remainder::Nothing);
        check("event: x\n\n", &[], Remainder::Nothing);
        check("data: a\n\nthe end", &["a"], Remainder::Nothing);
        check("", &[], Remainder::Nothing);
        check(" \n{\"a\":1}", &[], Remainder::Whole(" \n{\"a\":1}".into()));
        check("[1]", &[], Remainder::Whole("[1]".into()));
        check("<html></html>", &[], Remainder::Whole("<html></html>".into()));
        check("come back later", &[], Remainder::Text("come back later".into()));
    }

    #[test]
    fn a_body_that_is_no_stream_is_bounded_like_an_event() {
        let mut framing = Framing::default();
        framing.push(b"{");
        framing.push(&vec![b' '; MAX_EVENT]);
        assert_eq!(framing.next(), Some(Err(TooLong)));
    }

    #[test]
    fn unexpected_bodies_are_described_by_kind() {
        for (body, words) in [
            ("<!DOCTYPE html><html><head><title> Sign in </title>", "an HTML page titled \"Sign in\""),
            ("\n<HTML>", "an HTML page"),
            ("{\"a\":1}", "JSON ({\"a\":1})"),
            ("later", "text (later)"),
        ] {
            assert_eq!(describe(body), words);
        }
        assert_eq!(describe(&"ä".repeat(150)), format!("text ({}...)", "ä".repeat(100)));
    }
}
