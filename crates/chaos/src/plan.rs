//! What the model does in a turn. The text of a user message is its plan, so a call is answered by its contents alone,
//! whichever node makes it and however often. Every text and every call id is unique in a run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fastrand::Rng;
use loomd_testkit::model::{self, RecordedRequest, Reply};
use serde_json::{Value, json};

/// How messages of users begin that are plans.
const PLAN: &str = "plan ";

/// The longest pauses in the stream of a model, and of a command.
const MAX_PAUSE_MS: u64 = 40;
const MAX_COMMAND_MS: u64 = 120;

/// The text of a user message: a key, and a letter for each step before the last message. `c` is a command, `s` a
/// message and a command.
pub fn text(key: &str, steps: &str) -> String {
    format!("{PLAN}{key} {steps}.")
}

/// Some steps.
pub fn steps(random: &mut Rng) -> String {
    (0..random.usize(0..3)).map(|_| if random.bool() { 'c' } else { 's' }).collect()
}

/// Whether a text of the model is whole: a turn that is interrupted, or taken over, may leave the beginning of one.
pub fn is_whole(text: &str) -> bool {
    text.ends_with('.')
}

/// Answers model calls by the plans in them. Commands write their call's id to a file in the work folder.
pub struct Planner {
    pub seed: u64,
    pub runs: PathBuf,
    /// Without pauses and commands' sleep, for measurements.
    pub quick: bool,
}

impl Planner {
    pub fn new(seed: u64, work: &Path) -> Self {
        Self { seed, runs: work.join("runs"), quick: false }
    }

    pub fn answer(&self, request: &RecordedRequest) -> Reply {
        let plans = request.user_texts().into_iter().rev();
        let Some(plan) = plans.filter_map(|text| text.strip_prefix(PLAN)?.strip_suffix('.')).next() else {
            return model::message("no plan.");
        };
        let (key, steps) = plan.split_once(' ').unwrap_or((plan, ""));
        let input = request.body["input"].as_array().map_or(&[][..], Vec::as_slice);
        let is_output = |item: &&Value| {
            let id = item["call_id"].as_str().and_then(|id| id.strip_prefix("call_")?.rsplit_once('_'));
            item["type"] == "function_call_output" && id.is_some_and(|(of, _)| of == key)
        };
        let step = input.iter().filter(is_output).count();
        let texts: Vec<&str> = input.iter().filter_map(assistant_text).collect();
        let mut random = Rng::with_seed(self.seed ^ hash(key) ^ step as u64);
        match steps.as_bytes().get(step) {
            Some(letter) => {
                let call = format!("call_{key}_{step}");
                let command = model::function_call("shell_command", self.command(&call, &mut random), &call);
                let said = format!("{key}/{step} says this much and then runs it.");
                if *letter == b's' && !texts.contains(&said.as_str()) {
                    self.stream(&format!("msg_{key}_{step}"), &said, &mut random).then(command)
                } else {
                    command
                }
            }
            None => {
                // A call whose end was lost is made again with what had arrived.
                let again = texts.iter().filter(|text| text.starts_with(&format!("{key}/end"))).count();
                let said = format!("{key}/end{again} is all there is to say about it.");
                self.stream(&format!("msg_{key}_end{again}"), &said, &mut random)
            }
        }
    }

    fn command(&self, call: &str, random: &mut Rng) -> Value {
        let sleep = if self.quick { 0 } else { random.u64(0..MAX_COMMAND_MS) };
        let script = format!("echo {call} >> {}; sleep 0.{sleep:03}; echo done", self.runs.display());
        json!({ "command": script, "login": false })
    }

    fn stream(&self, id: &str, text: &str, random: &mut Rng) -> Reply {
        let item = |content: Value| json!({ "type": "message", "role": "assistant", "id": id, "content": content });
        let mut reply = model::added(item(json!([])));
        for word in text.split_inclusive(' ') {
            if !self.quick {
                reply = reply.pause(Duration::from_millis(random.u64(0..MAX_PAUSE_MS)));
            }
            reply = reply.then(model::text_delta(word));
        }
        reply.then(model::done(item(json!([{ "type": "output_text", "text": text }]))))
    }
}

fn assistant_text(item: &Value) -> Option<&str> {
    let is_message = item["type"] == "message" && item["role"] == "assistant";
    if is_message { item["content"][0]["text"].as_str() } else { None }
}

/// FNV-1a: the same in every build.
pub fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
