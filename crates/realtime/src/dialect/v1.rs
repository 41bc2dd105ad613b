//! Events of version 1.

use loomd_protocol::ThreadRealtimeAudioChunk;
use serde_json::Value;

use super::{Received, error_message, number, text};
use crate::transcript::Role;

/// Returns `None` for an event that is unknown or lacks a member.
pub(super) fn read(event: &Value) -> Option<Received> {
    Some(match event.get("type")?.as_str()? {
        "conversation.output_audio.delta" => Received::Audio(ThreadRealtimeAudioChunk {
            data: text(event, "delta").or_else(|| text(event, "data"))?,
            sample_rate: number(event, "sample_rate")?,
            num_channels: number(event, "channels").or_else(|| number(event, "num_channels"))?,
            samples_per_channel: number(event, "samples_per_channel"),
            item_id: text(event, "item_id"),
        }),
        "conversation.input_transcript.delta" => Received::Transcript(Role::User, text(event, "delta")?),
        "conversation.output_transcript.delta" => Received::Transcript(Role::Assistant, text(event, "delta")?),
        "conversation.item.added" => Received::Item(event.get("item")?.clone()),
        "conversation.handoff.requested" => Received::Handoff {
            id: text(event, "handoff_id")?,
            item_id: text(event, "item_id")?,
            input: text(event, "input_transcript")?,
            ends_response: false,
        },
        "error" => Received::Error(error_message(event)?),
        _ => return None,
    })
}
