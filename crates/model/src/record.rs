//! Records the responses of a provider as a scenario that the rehearsal can replay. Secrets are removed first: the
//! provider's credentials, and text that looks like a key.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll};

use loomd_protocol::{JsonValue, Secret};
use parking_lot::Mutex;
use serde_json::json;

use crate::event::EventSource;
use crate::{Events, ModelError, ModelEvent, Request, event_json};

/// The replacement of a secret.
const REMOVED: &str = "[removed]";

/// Shorter secrets would match ordinary words.
const MIN_SECRET: usize = 8;

/// Prefixes of keys.
const KEY_STARTS: &[&str] = &["sk-", "sk_", "gsk_", "xai-", "AIza", "ghp_", "github_pat_", "xoxb-", "Bearer ", "eyJ"];

/// A file to which all sessions of a provider append their responses.
pub(crate) struct Recorder {
    path: PathBuf,
    secrets: Vec<Secret>,
    file: Mutex<Option<File>>,
}

impl Recorder {
    /// The file is created by the first write.
    pub fn new(path: PathBuf, secrets: Vec<Secret>) -> Arc<Self> {
        let long = |secret: &Secret| secret.reveal().len() >= MIN_SECRET;
        Arc::new(Self { path, secrets: secrets.into_iter().filter(long).collect(), file: Mutex::default() })
    }

    /// Wraps a stream of events: they are written when the wrapper is dropped.
    pub fn record(self: &Arc<Self>, request: &Request, events: Events) -> Events {
        Events::new(RecordingEvents { events, record: ResponseRecord::new(request), recorder: Arc::clone(self) })
    }

    /// Records a call that failed before its stream began.
    pub fn record_refusal(&self, request: &Request, error: &ModelError) {
        let mut record = ResponseRecord::new(request);
        record.lines.push(event_json::encode(&Err(error.clone())));
        self.write(&record);
    }

    /// Appends a response in one write, so that responses of other threads do not interleave with it. Failures are only
    /// logged.
    fn write(&self, record: &ResponseRecord) {
        let mut text = String::new();
        for line in &record.lines {
            let mut line = line.clone();
            self.redact(&mut line);
            text += &format!("{line}\n");
        }
        let mut file = self.file.lock();
        if file.is_none() {
            *file = open(&self.path).inspect_err(|error| tracing::warn!(%error, "recording not written")).ok();
        }
        if let Some(file) = &mut *file
            && let Err(error) = file.write_all(text.as_bytes())
        {
            tracing::warn!(%error, "recording not written");
        }
    }

    fn redact(&self, value: &mut JsonValue) {
        match value {
            JsonValue::String(text) => self.redact_text(text),
            JsonValue::Array(values) => values.iter_mut().for_each(|value| self.redact(value)),
            JsonValue::Object(members) => members.values_mut().for_each(|value| self.redact(value)),
            _ => {}
        }
    }

    fn redact_text(&self, text: &mut String) {
        for secret in &self.secrets {
            if text.contains(secret.reveal()) {
                *text = text.replace(secret.reveal(), REMOVED);
            }
        }
        for start in KEY_STARTS {
            if text.contains(start) {
                *text = without_keys(text, start);
            }
        }
    }
}

/// Removes keys with this prefix from a text.
fn without_keys(text: &str, start: &str) -> String {
    /// Shorter than any key.
    const MIN_KEY: usize = 16;
    let in_key = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_' | '.' | '=');
    let (mut clean, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(start) {
        let key = &rest[at + start.len()..];
        let end = key.find(|char| !in_key(char)).unwrap_or(key.len());
        clean.push_str(&rest[..at]);
        let boundary = !clean.ends_with(|char: char| char.is_ascii_alphanumeric());
        if boundary && end >= MIN_KEY {
            clean.push_str(REMOVED);
        } else {
            clean.push_str(start);
            clean.push_str(&key[..end]);
        }
        rest = &key[end..];
    }
    clean + rest
}

/// Readable by the owner only: it holds conversations.
fn open(path: &Path) -> std::io::Result<File> {
    loomd_private::options().append(true).create(true).open(path)
}

/// The lines of one response.
struct ResponseRecord {
    lines: Vec<JsonValue>,
}

impl ResponseRecord {
    fn new(request: &Request) -> Self {
        let about = json!({
            "thread": request.headers.session_id, "model": request.model, "input_items": request.input.len(),
        });
        Self { lines: vec![json!({ "answer": about })] }
    }
}

struct RecordingEvents {
    events: Events,
    record: ResponseRecord,
    recorder: Arc<Recorder>,
}

impl RecordingEvents {
    fn push(&mut self, event: Result<ModelEvent, ModelError>) -> Result<ModelEvent, ModelError> {
        self.record.lines.push(event_json::encode(&event));
        event
    }
}

impl EventSource for RecordingEvents {
    fn buffered(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        let event = self.events.try_next_ready()?;
        Some(self.push(event))
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<ModelEvent, ModelError>>> {
        self.events.poll_next(cx).map(|event| event.map(|event| self.push(event)))
    }
}

/// Written however the stream ended.
impl Drop for RecordingEvents {
    fn drop(&mut self) {
        self.recorder.write(&self.record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_keys_are_redacted_in_any_text() {
        let recorder = Recorder::new(
            "/nowhere".into(),
            ["topsecret-1234", "short"].map(|text| Secret::from(text.to_owned())).to_vec(),
        );
        for (text, clean) in [
            ("use topsecret-1234 here", "use [removed] here"),
            ("short stays", "short stays"),
            ("sk-ant-api03-abcdefghijklmnop, and", "[removed], and"),
            ("task-sk-force", "task-sk-force"),
            ("Authorization: Bearer abcdefghijklmnopqrstuvwxyz", "Authorization: [removed]"),
            ("sk-12", "sk-12"),
            ("two: ghp_0123456789abcdefABCDEF ghp_0123456789abcdefABCDEF.", "two: [removed] [removed]"),
        ] {
            let mut value = json!({ "a": [text] });
            recorder.redact(&mut value);
            assert_eq!(value, json!({ "a": [clean] }));
        }
    }
}
