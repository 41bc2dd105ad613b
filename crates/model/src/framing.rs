//! What the body of a successful answer is made of: server-sent events, or, against what was asked for, one JSON
//! value or a page. The first bytes tell, because servers are careless about content types.

use crate::refusal::html;
use crate::sse::{MAX_EVENT, SseParser, TooLong};

/// How much of a body that nobody understands is shown.
const SHOWN: usize = 200;

/// The start of a line of a stream of events.
const FIELDS: [&[u8]; 5] = [b"data", b"event", b"id", b"retry", b":"];

pub(crate) struct Framing {
    body: BodyKind,
    /// The beginning of the body, until the first event.
    head: Vec<u8>,
}

enum BodyKind {
    /// Nothing but white space so far.
    Unknown,
    Events {
        parser: SseParser,
        /// There was one.
        any: bool,
    },
    Whole(Vec<u8>),
}

/// What is left at the end of a body.
#[derive(Debug, PartialEq)]
pub(crate) enum Remainder {
    Nothing,
    /// The data of an event that the end has cut short of its empty line.
    Event(String),
    /// The body is one value in place of a stream of events.
    Whole(String),
    /// The body is text that has no events; its beginning.
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

    /// The data of the next event that is complete.
    pub fn next(&mut self) -> Option<Result<&[u8], TooLong>> {
        match &mut self.body {
            BodyKind::Unknown => (self.head.len() > MAX_EVENT).then_some(Err(TooLong)),
            BodyKind::Whole(whole) => (whole.len() > MAX_EVENT).then_some(Err(TooLong)),
            BodyKind::Events { parser, any } => parser.next().inspect(|_| *any = true),
        }
    }

    /// Takes what is left when the body has ended.
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

/// Without white space and a byte order mark at its start.
fn text(body: &[u8]) -> &[u8] {
    let body = body.trim_ascii_start();
    body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body).trim_ascii_start()
}

/// Whether the beginning of a body without events is one of a stream all the same.
fn is_stream(head: &[u8]) -> bool {
    let head = text(head);
    head.is_empty() || FIELDS.iter().any(|field| head.starts_with(field) || field.starts_with(head))
}

/// What a body is that is not understood, in words.
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
    fn the_first_bytes_tell_events_from_whole_bodies() {
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
    fn a_whole_body_has_the_bound_of_an_event() {
        let mut framing = Framing::default();
        framing.push(b"{");
        framing.push(&vec![b' '; MAX_EVENT]);
        assert_eq!(framing.next(), Some(Err(TooLong)));
    }

    #[test]
    fn bodies_are_described_by_what_they_are() {
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
