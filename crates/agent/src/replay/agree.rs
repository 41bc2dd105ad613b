//! Checks the two copies of a tool's output in a rollout, as an item of the conversation and as an event, against each
//! other.

use loomd_protocol::{DynamicToolCallOutputContentItem, FunctionCallOutputBody, FunctionCallOutputContentItem};
use loomd_store::rollout::{EndStatus, Event};

use super::steps::CallOutcome;

/// Marks a truncated text.
const CUT: &str = "truncated…";

/// The starts of outputs of calls that had not ended.
const UNFINISHED: [&str; 2] = ["aborted", "Process running with session ID"];

/// Returns the output in the conversation and that of an event if the first does not contain the second.
pub(super) fn disagreement(outcome: &CallOutcome) -> Option<(String, String)> {
    let told = text(outcome.output.as_ref()?);
    if told.contains(CUT) || UNFINISHED.iter().any(|mark| told.contains(mark)) {
        return None;
    }
    outcome
        .events
        .iter()
        .flat_map(shown)
        .find(|shown| !shown.contains(CUT) && !told.contains(shown.as_str()))
        .map(|shown| (told, shown))
}

/// The texts of an event.
fn shown(event: &Event) -> Vec<String> {
    match event {
        Event::ExecCommandEnd(end) if end.status != EndStatus::Declined && end.exit_code != -1 => {
            vec![end.aggregated_output.trim_end().to_owned(), end.exit_code.to_string()]
        }
        Event::PatchApplyEnd(end) if end.status != EndStatus::Declined => {
            vec![end.stdout.trim_end().to_owned(), end.stderr.trim_end().to_owned()]
        }
        Event::DynamicToolCallResponse(response) => response
            .content_items
            .iter()
            .map(|item| match item {
                DynamicToolCallOutputContentItem::InputText { text } => text.clone(),
                DynamicToolCallOutputContentItem::InputImage { image_url } => image_url.clone(),
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// The text of an output. Some tools put it into JSON.
fn text(output: &FunctionCallOutputBody) -> String {
    match output {
        FunctionCallOutputBody::Text(text) => match serde_json::from_str::<serde_json::Value>(text) {
            Ok(value) if value["output"].is_string() => {
                format!("{}\n{}", value["metadata"]["exit_code"], value["output"].as_str().unwrap_or_default())
            }
            _ => text.clone(),
        },
        FunctionCallOutputBody::Items(items) => items
            .iter()
            .map(|item| match item {
                FunctionCallOutputContentItem::InputText { text } => text.as_str(),
                FunctionCallOutputContentItem::InputImage { image_url, .. } => image_url.as_str(),
            })
            .collect::<Vec<_>>()
            .join("\n"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn end(output: &str, exit_code: i32, status: &str) -> Event {
        let end = json!({
            "type": "exec_command_end", "call_id": "c", "turn_id": "t", "command": ["echo"], "cwd": "/", "parsed_cmd": [],
            "source": "agent", "stdout": "", "stderr": "", "aggregated_output": output, "exit_code": exit_code,
            "duration": { "secs": 0, "nanos": 0 }, "formatted_output": "", "status": status,
        });
        Event::decode(&end.to_string()).expect("an event")
    }

    #[test]
    fn an_event_whose_output_is_not_in_the_conversation_disagrees() {
        for (told, event, agrees) in [
            ("Exit code: 0\nWall time: 0 seconds\nOutput:\nhi\n", end("hi\n", 0, "completed"), true),
            ("Exit code: 0\nWall time: 0 seconds\nOutput:\nho\n", end("hi\n", 0, "completed"), false),
            ("Exit code: 1\nOutput:\nhi\n", end("hi\n", 3, "failed"), false),
            (r#"{"output":"hi\n","metadata":{"exit_code":3}}"#, end("hi\n", 3, "failed"), true),
            (r#"{"output":"hi\n","metadata":{"exit_code":3}}"#, end("ho\n", 3, "failed"), false),
            ("aborted by user after 0.4s", end("so far", 130, "failed"), true),
            ("Exit code: 0\nOutput:\na…9 tokens truncated…z", end("abc", 0, "completed"), true),
            ("rejected by user", end("no", -1, "declined"), true),
        ] {
            let output = Some(FunctionCallOutputBody::Text(told.into()));
            let outcome = CallOutcome { events: vec![event], output, notes: Vec::new() };
            assert_eq!(disagreement(&outcome).is_none(), agrees, "{told}");
        }
    }
}
