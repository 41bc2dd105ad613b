//! The first message of a session, which configures it.

use serde_json::{Value, json};

/// The name of the function by which a model of version 2 delegates a request to the agent.
pub(crate) const DELEGATE: &str = "codex";

/// The sample rate of audio in both directions, unless an event states another one.
pub(crate) const SAMPLE_RATE: u32 = 24_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    V1,
    V2,
}

/// What a session of version 2 is for. Version 1 knows conversations only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Conversational,
    Transcription,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSettings {
    pub version: Version,
    pub kind: Kind,
    pub instructions: String,
}

impl SessionSettings {
    /// Returns the `session.update` message.
    pub fn update(&self) -> Value {
        let pcm = json!({ "type": "audio/pcm", "rate": SAMPLE_RATE });
        let session = match (self.version, self.kind) {
            (Version::V1, _) => json!({
                "type": "quicksilver",
                "instructions": self.instructions,
                "audio": { "input": { "format": pcm }, "output": { "voice": "fathom" } },
            }),
            (Version::V2, Kind::Transcription) => json!({
                "type": "transcription",
                "audio": { "input": { "format": pcm } },
            }),
            (Version::V2, Kind::Conversational) => json!({
                "type": "realtime",
                "instructions": self.instructions,
                "output_modalities": ["audio"],
                "audio": {
                    "input": {
                        "format": pcm,
                        "noise_reduction": { "type": "near_field" },
                        "turn_detection": { "type": "server_vad", "interrupt_response": true, "create_response": true },
                    },
                    "output": { "format": pcm, "voice": "marin" },
                },
                "tools": [delegate_tool()],
                "tool_choice": "auto",
            }),
        };
        json!({ "type": "session.update", "session": session })
    }
}

fn delegate_tool() -> Value {
    json!({
        "type": "function",
        "name": DELEGATE,
        "description": "Hands a request of the user to the coding agent, which does the work and returns its final \
            message. Prefer this over answering from memory. Also call it for work that is to be done later or after the \
            current task: the agent queues it.",
        "parameters": {
            "type": "object",
            "properties": { "prompt": { "type": "string", "description": "What the agent is asked to do." } },
            "required": ["prompt"],
            "additionalProperties": false,
        },
    })
}
