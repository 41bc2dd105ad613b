//! Events of version 2.

use std::collections::VecDeque;

use loomd_protocol::ThreadRealtimeAudioChunk;
use serde_json::{Value, json};

use super::{Received, error_message, number, text};
use crate::session_update::{DELEGATE, SAMPLE_RATE};
use crate::transcript::Role;

/// The arguments that may hold the request of a delegation, in the order in which they count.
const ARGUMENTS: [&str; 5] = ["input_transcript", "input", "text", "prompt", "query"];

/// Returns `None` for an event that is unknown or lacks a member. `calls` are delegations that were read before: the
/// wire announces each twice, as an item and with its response.
pub(super) fn read(event: Value, calls: &VecDeque<String>) -> Option<Received> {
    Some(match event.get("type")?.as_str()? {
        "response.output_audio.delta" | "response.audio.delta" => Received::Audio(ThreadRealtimeAudioChunk {
            data: text(&event, "delta")?,
            sample_rate: number(&event, "sample_rate").unwrap_or(SAMPLE_RATE),
            num_channels: number(&event, "channels").or_else(|| number(&event, "num_channels")).unwrap_or(1),
            samples_per_channel: number(&event, "samples_per_channel"),
            item_id: text(&event, "item_id"),
        }),
        "conversation.item.input_audio_transcription.delta" => Received::Transcript(Role::User, text(&event, "delta")?),
        "conversation.item.input_audio_transcription.completed" => {
            Received::Transcript(Role::User, text(&event, "transcript")?)
        }
        "response.output_text.delta" | "response.output_audio_transcript.delta" => {
            Received::Transcript(Role::Assistant, text(&event, "delta")?)
        }
        "conversation.item.added" => Received::Item(event.get("item")?.clone()),
        "conversation.item.done" => handoff(event.get("item")?, calls, false)?,
        "response.created" => Received::ResponseCreated(event),
        "response.done" => {
            let output = event.pointer("/response/output").and_then(Value::as_array);
            match output.into_iter().flatten().find_map(|item| handoff(item, calls, true)) {
                Some(handoff) => handoff,
                None => Received::ResponseOver(event),
            }
        }
        "response.cancelled" => {
            let nested = event.get("response").and_then(|response| text(response, "id"));
            let id = nested.or_else(|| text(&event, "response_id"));
            Received::ResponseOver(json!({ "type": "response.cancelled", "response_id": id }))
        }
        kind @ "input_audio_buffer.speech_started" => {
            Received::SpeechStarted(json!({ "type": kind, "item_id": event.get("item_id") }))
        }
        "error" => Received::Error(error_message(&event)?),
        _ => return None,
    })
}

/// The delegation in an item that is a new call of the delegation function.
fn handoff(item: &Value, calls: &VecDeque<String>, ends_response: bool) -> Option<Received> {
    let named = |name: &str| item.get(name).and_then(Value::as_str);
    if named("type") != Some("function_call") || named("name") != Some(DELEGATE) {
        return None;
    }
    let id = named("call_id").or(named("id"))?;
    if calls.iter().any(|call| call == id) {
        return None;
    }
    Some(Received::Handoff {
        id: id.into(),
        item_id: named("id").unwrap_or(id).into(),
        input: request(named("arguments").unwrap_or_default()),
        ends_response,
    })
}

/// The request in the arguments of a delegation; the arguments as they stand when none holds one.
fn request(arguments: &str) -> String {
    let parsed: Option<Value> = serde_json::from_str(arguments).ok();
    let named = |name: &&str| parsed.as_ref()?.get(*name)?.as_str().map(str::trim).filter(|text| !text.is_empty());
    ARGUMENTS.iter().find_map(named).unwrap_or(arguments).to_owned()
}
