//! What a session says on the wire, and what the wire says to it. [`Dialect`] holds the little state that this needs;
//! `v1` and `v2` read events of their versions.

mod v1;
mod v2;

use std::collections::VecDeque;

use loomd_protocol::ThreadRealtimeAudioChunk;
use serde_json::{Value, json};

use crate::playback::Playback;
use crate::session_update::Version;
use crate::transcript::{Role, Transcript, lines};

/// How many calls of the delegation function are remembered, so that one that is announced twice runs once.
const MAX_CALLS: usize = 64;

/// The beginning of the error of version 2 that asks to wait for the response in progress.
const ALREADY_RESPONDING: &str = "Conversation already has an active response in progress:";

/// What a session has to send.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A message of the user.
    Text(String),
    /// 16 bit PCM in base64.
    Audio(String),
    /// A message of the agent that works on the current handoff.
    AgentMessage(String),
    /// The agent is done with the current handoff; the error when it failed.
    HandoffDone { error: Option<String> },
}

impl Input {
    /// The bytes of its text.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Text(text) | Self::Audio(text) | Self::AgentMessage(text) => text.len(),
            Self::HandoffDone { error } => error.as_ref().map_or(0, String::len),
        }
    }
}

/// What a session reports.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The connection is open and the session is configured.
    Started,
    Audio(ThreadRealtimeAudioChunk),
    Transcript {
        role: &'static str,
        text: String,
    },
    Item(Value),
    /// What a response used, as the provider reports it at its end.
    Usage(Usage),
    /// The model hands a request to the agent. `text` is `None` when it says nothing.
    Handoff {
        item: Value,
        text: Option<String>,
    },
    /// The session could not be opened. Nothing follows.
    NotStarted(String),
    /// The session is over. Nothing follows.
    Closed(Closing),
}

/// Tokens of one response. Cached tokens are part of the input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub input: i64,
    pub cached_input: i64,
    pub output: i64,
}

impl Usage {
    /// The usage in the end of a response; `None` when there is none.
    fn of(event: &Value) -> Option<Self> {
        let usage = event.pointer("/response/usage").filter(|_| event["type"] == "response.done")?;
        let count = |path: &str| usage.pointer(path).and_then(Value::as_i64);
        Some(Self {
            input: count("/input_tokens")?,
            cached_input: count("/input_token_details/cached_tokens").unwrap_or_default(),
            output: count("/output_tokens")?,
        })
    }
}

/// Why a session ended by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Closing {
    /// The other side closed the connection, or it broke.
    Transport,
    Error(String),
}

/// What follows from a message of the other side: what to report, then what to send.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    pub events: Vec<Event>,
    pub messages: Vec<Value>,
}

/// A message of the other side, as both versions understand it.
#[derive(Debug, PartialEq)]
enum Received {
    Audio(ThreadRealtimeAudioChunk),
    Transcript(Role, String),
    Item(Value),
    ResponseCreated(Value),
    /// The response is over: finished, or cancelled.
    ResponseOver(Value),
    SpeechStarted(Value),
    /// A request for the agent. `ends_response`: it came with the end of its response.
    Handoff {
        id: String,
        item_id: String,
        input: String,
        ends_response: bool,
    },
    Error(String),
}

/// The facts of a piece of audio that its length follows from.
pub(crate) struct AudioFacts<'a> {
    pub data: &'a str,
    pub sample_rate: u32,
    pub num_channels: u16,
    pub samples_per_channel: Option<u32>,
}

/// The state of a session.
#[derive(Debug)]
pub struct Dialect {
    version: Version,
    transcript: Transcript,
    handoff: Option<Handoff>,
    /// A response is in progress; version 2 refuses a second one.
    responding: bool,
    /// A response is to be requested when the one in progress is over.
    wants_response: bool,
    playing: Option<Playback>,
    /// Calls of the delegation function that were handed over.
    calls: VecDeque<String>,
}

#[derive(Debug)]
struct Handoff {
    id: String,
    /// The last message of the agent.
    last: Option<String>,
}

impl Dialect {
    pub fn new(version: Version) -> Self {
        Self {
            version,
            transcript: Transcript::default(),
            handoff: None,
            responding: false,
            wants_response: false,
            playing: None,
            calls: VecDeque::new(),
        }
    }

    /// Returns the messages for an input.
    pub fn send(&mut self, input: Input) -> Vec<Value> {
        match input {
            Input::Text(text) => {
                let kind = if self.version == Version::V1 { "text" } else { "input_text" };
                let content = json!([{ "type": kind, "text": text }]);
                let message = json!({ "type": "message", "role": "user", "content": content });
                let mut messages = vec![json!({ "type": "conversation.item.create", "item": message })];
                messages.extend(self.request_response());
                messages
            }
            Input::Audio(audio) => vec![json!({ "type": "input_audio_buffer.append", "audio": audio })],
            Input::AgentMessage(text) => match (&mut self.handoff, self.version) {
                (Some(handoff), Version::V1) => {
                    let message = append(&handoff.id, final_message(&text));
                    handoff.last = Some(text);
                    vec![message]
                }
                (Some(handoff), Version::V2) => {
                    handoff.last = Some(text);
                    Vec::new()
                }
                (None, _) => Vec::new(),
            },
            Input::HandoffDone { error } => self.handoff_done(error),
        }
    }

    /// Reads a message of the other side. One that is not understood has no effect.
    pub fn receive(&mut self, message: &str) -> Step {
        let Ok(event) = serde_json::from_str::<Value>(message) else { return Step::default() };
        let usage = Usage::of(&event);
        let received = match self.version {
            Version::V1 => v1::read(&event),
            Version::V2 => v2::read(event, &self.calls),
        };
        let mut step = received.map(|received| self.step(received)).unwrap_or_default();
        step.events.extend(usage.map(Event::Usage));
        step
    }

    fn step(&mut self, received: Received) -> Step {
        let mut step = Step::default();
        match received {
            Received::Audio(audio) => {
                if self.version == Version::V2
                    && let Some(item_id) = &audio.item_id
                {
                    let ThreadRealtimeAudioChunk { ref data, sample_rate, num_channels, samples_per_channel, .. } =
                        audio;
                    let facts = AudioFacts { data, sample_rate, num_channels, samples_per_channel };
                    Playback::add(&mut self.playing, item_id, &facts);
                }
                step.events.push(Event::Audio(audio));
            }
            Received::Transcript(role, text) => {
                if self.version == Version::V1 {
                    self.transcript.push(role, &text);
                }
                step.events.push(Event::Transcript { role: role.name(), text });
            }
            Received::Item(item) => step.events.push(Event::Item(item)),
            Received::ResponseCreated(item) => {
                self.responding = true;
                step.events.push(Event::Item(item));
            }
            Received::ResponseOver(item) => {
                step.events.push(Event::Item(item));
                step.messages.extend(self.response_over());
            }
            Received::SpeechStarted(item) => {
                step.events.push(Event::Item(item));
                // The user talks over the model: it must not believe that the rest was heard.
                step.messages.extend(self.playing.take().map(|playing| {
                    let (item_id, audio_end_ms) = (&playing.item_id, playing.milliseconds());
                    json!({
                        "type": "conversation.item.truncate",
                        "item_id": item_id,
                        "content_index": 0,
                        "audio_end_ms": audio_end_ms,
                    })
                }));
            }
            Received::Handoff { id, item_id, input, ends_response } => {
                if self.version == Version::V2 {
                    if self.calls.len() == MAX_CALLS {
                        self.calls.pop_front();
                    }
                    self.calls.push_back(id.clone());
                }
                step.events.push(self.handoff(id, item_id, input));
                if ends_response {
                    step.messages.extend(self.response_over());
                }
            }
            Received::Error(message) if self.version == Version::V2 && message.starts_with(ALREADY_RESPONDING) => {
                (self.responding, self.wants_response) = (true, true);
            }
            Received::Error(message) => step.events.push(Event::Closed(Closing::Error(message))),
        }
        step
    }

    fn handoff(&mut self, id: String, item_id: String, input: String) -> Event {
        let said = self.transcript.take();
        let text = if said.is_empty() { input.clone() } else { lines(&said) };
        let item = json!({
            "type": "handoff_request",
            "handoff_id": id,
            "item_id": item_id,
            "input_transcript": input,
            "active_transcript": said,
        });
        self.handoff = Some(Handoff { id, last: None });
        Event::Handoff { item, text: Some(text).filter(|text| !text.trim().is_empty()) }
    }

    fn handoff_done(&mut self, error: Option<String>) -> Vec<Value> {
        let Some(handoff) = self.handoff.take() else { return Vec::new() };
        let output = match (error, handoff.last) {
            (Some(error), _) => format!("\"Agent Error\":\n\n{error}"),
            (None, _) if self.version == Version::V1 => return Vec::new(),
            (None, Some(last)) => final_message(&last),
            (None, None) => final_message("The agent finished without a message."),
        };
        if self.version == Version::V1 {
            return vec![append(&handoff.id, output)];
        }
        let item = json!({ "type": "function_call_output", "call_id": handoff.id, "output": output });
        let mut messages = vec![json!({ "type": "conversation.item.create", "item": item })];
        messages.extend(self.request_response());
        messages
    }

    /// Requests a response, now or when the one in progress is over. Version 1 responds by itself.
    fn request_response(&mut self) -> Option<Value> {
        if self.version == Version::V1 {
            return None;
        }
        self.wants_response = self.responding;
        (!self.responding).then(response_create)
    }

    fn response_over(&mut self) -> Option<Value> {
        self.responding = false;
        self.playing = None;
        std::mem::take(&mut self.wants_response).then(response_create)
    }
}

fn response_create() -> Value {
    json!({ "type": "response.create" })
}

fn append(handoff_id: &str, output_text: String) -> Value {
    json!({ "type": "conversation.handoff.append", "handoff_id": handoff_id, "output_text": output_text })
}

fn final_message(text: &str) -> String {
    format!("\"Agent Final Message\":\n\n{text}")
}

/// The message of an `error` event; `None` when it has none.
fn error_message(event: &Value) -> Option<String> {
    let error = event.get("error");
    let message = error.and_then(|error| error.get("message")).or_else(|| event.get("message"));
    match message.and_then(Value::as_str) {
        Some(message) => Some(message.to_owned()),
        None => error.map(Value::to_string),
    }
}

fn text(event: &Value, name: &str) -> Option<String> {
    event.get(name)?.as_str().map(Into::into)
}

fn number<T: TryFrom<u64>>(event: &Value, name: &str) -> Option<T> {
    event.get(name)?.as_u64()?.try_into().ok()
}

#[cfg(test)]
mod tests;
