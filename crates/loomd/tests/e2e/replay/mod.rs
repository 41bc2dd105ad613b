//! Recordings played by the rehearsal model, and stored threads replayed.

mod recorded;
mod stored;

use loomd_testkit::model::{
    Reply, Usage, added, completed, error, function_call, message, reasoning, streamed, text_delta,
};
use loomd_testkit::{Home, ScriptedModel};
use serde_json::json;

/// A home whose only provider is the scripted model, named like the rehearsal provider, as the played thread has that
/// name.
fn home(model: &ScriptedModel) -> Home {
    let home = Home::empty();
    configure(&home, &format!("base_url = \"{}\"", model.base_url()));
    home
}

fn configure(home: &Home, provider: &str) {
    home.write(
        "config.toml",
        &format!(
            "model = \"gpt-5.1-codex\"\nmodel_provider = \"rehearsal\"\napproval_policy = \"never\"\n\
             sandbox_mode = \"danger-full-access\"\n[model_providers.rehearsal]\nname = \"Rehearsal\"\n\
             wire_api = \"responses\"\nrequest_max_retries = 0\nstream_max_retries = 2\n{provider}\n"
        ),
    );
}

/// The model's replies in a turn, with a period of ten turns.
fn answers(turn: usize) -> Vec<Reply> {
    let call =
        |name: &str, arguments: serde_json::Value| function_call(name, arguments, &format!("call_{turn}_{name}"));
    let shell = |script: &str| call("shell_command", json!({ "command": script, "login": false }));
    let took = |input: u64| completed(Usage { input, cached: input / 2, output: 40, reasoning: 8 });
    match turn % 10 {
        0 => vec![streamed(&["Several ", "pieces, ", &format!("turn {turn}.")])],
        1 => vec![reasoning(&["Why", "not"], &["because"]).then(streamed(&["Thought ", "over."]))],
        2 => vec![shell(&format!("echo {turn}")), message("It prints.")],
        3 => {
            let patch = format!("*** Begin Patch\n*** Add File: note-{turn}.txt\n+turn {turn}\n*** End Patch");
            vec![call("apply_patch", json!({ "input": patch })), streamed(&["Written", "."])]
        }
        4 => {
            let step = |step: &str, status: &str| json!({ "step": step, "status": status });
            let plan = json!({ "plan": [step("Look", "completed"), step("Change", "in_progress")] });
            vec![call("update_plan", plan), message("That is the plan.")]
        }
        5 => {
            let begun =
                added(json!({ "type": "message", "role": "assistant", "id": format!("msg_{turn}"), "content": [] }));
            vec![begun.then(text_delta("Half a")).close(), streamed(&["A whole ", "answer."])]
        }
        6 => vec![message("That took a lot.").then(took(1000 + turn as u64))],
        7 => vec![shell("echo oh >&2; exit 3"), message("It failed.")],
        8 => vec![
            message("First this.").then(shell("printf one")),
            call("view_image", json!({ "path": "no-such.png" })),
            message("Nothing there.").then(took(2000)),
        ],
        _ => vec![error(400, "bad", "that makes no sense")],
    }
}
