//! [`Reply`]: the response to one model call, as a list of steps.

use std::time::Duration;

use loomd_protocol::JsonValue;

use crate::Gate;

/// The response to one model call. `response.created` and `response.completed` are added if missing.
#[derive(Clone, Debug)]
pub struct Reply {
    pub(super) after: Vec<Gate>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Body,
    pub(super) drip: bool,
    pub(super) unfinished: bool,
    /// Whether it is the stream of another API, to which no events are added.
    pub(super) raw: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Body {
    /// A stream of events, in chunks.
    Stream(Vec<Step>),
    /// A whole body.
    Whole { status: u16, content_type: &'static str, body: Vec<u8> },
    /// Bytes that are no HTTP, or none; then the connection is closed.
    Bytes(Vec<u8>),
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    Event(JsonValue),
    Half(JsonValue),
    Bytes(Vec<u8>),
    Wait(Gate),
    Pause(Duration),
    Close,
}

impl Reply {
    /// An empty stream.
    #[allow(clippy::new_without_default, reason = "an empty stream is made explicitly")]
    pub fn new() -> Self {
        Self::of(Body::Stream(Vec::new()))
    }

    /// A stream of one event.
    pub fn event(event: JsonValue) -> Self {
        Self::new().step(Step::Event(event))
    }

    /// A stream of exactly these bytes, in the format of another API.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self { raw: true, ..Self::new().bytes(bytes) }
    }

    pub(super) fn of(body: Body) -> Self {
        Self { after: Vec::new(), headers: Vec::new(), body, drip: false, unfinished: false, raw: false }
    }

    /// Appends the events of another reply.
    pub fn then(mut self, next: Self) -> Self {
        let Body::Stream(steps) = next.body else { panic!("only streams can follow a stream: {next:?}") };
        self.after.extend(next.after);
        self.headers.extend(next.headers);
        self.drip |= next.drip;
        self.unfinished |= next.unfinished;
        self.raw |= next.raw;
        steps.into_iter().fold(self, Self::step)
    }

    /// Waits for the gate before the response.
    pub fn after(mut self, gate: &Gate) -> Self {
        self.after.push(gate.clone());
        self
    }

    /// Waits for the gate at this point of the stream, after the headers.
    pub fn wait(self, gate: &Gate) -> Self {
        self.step(Step::Wait(gate.clone()))
    }

    /// Pauses at this point of the stream, as a model does. For runs of random length; a test waits for a gate.
    pub fn pause(self, time: Duration) -> Self {
        self.step(Step::Pause(time))
    }

    /// Adds bytes to the stream, which need be no events.
    pub fn bytes(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.step(Step::Bytes(bytes.into()))
    }

    /// Adds the first half of an event.
    pub fn half(self, event: JsonValue) -> Self {
        self.step(Step::Half(event))
    }

    /// Closes the connection at this point of the stream.
    pub fn close(self) -> Self {
        self.step(Step::Close)
    }

    /// Ends the stream properly, but without `response.completed`.
    pub fn unfinished(mut self) -> Self {
        self.unfinished = true;
        self
    }

    /// Sends every byte in a chunk of its own.
    pub fn drip(mut self) -> Self {
        self.drip = true;
        self
    }

    /// Adds a response header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    fn step(mut self, step: Step) -> Self {
        let Body::Stream(steps) = &mut self.body else { panic!("only a stream has steps: {self:?}") };
        steps.push(step);
        self
    }
}
