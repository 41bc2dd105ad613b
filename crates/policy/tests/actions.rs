//! Command lines and the actions that were recorded for them.

use loomd_policy::{command_actions, join};
use loomd_protocol::CommandAction;
use serde::Deserialize;

/// A script or an argument list, with the actions that the reference reports for it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Recorded {
    Script(String, Vec<CommandAction>),
    Words(Vec<String>, Vec<CommandAction>),
}

#[test]
fn recorded_commands_have_the_recorded_actions() {
    let mut wrong = Vec::new();
    for line in include_str!("data/actions.jsonl").lines() {
        let (argv, expected) = match serde_json::from_str(line).unwrap() {
            Recorded::Script(script, actions) => (vec!["/bin/bash".into(), "-lc".into(), script], actions),
            Recorded::Words(argv, actions) => (argv, actions),
        };
        let actions = command_actions(&argv);
        if actions != expected {
            wrong.push(format!("{argv:?}\n  expected {expected:?}\n  got      {actions:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Escapes are removed as in a shell, unlike in the reference.
#[test]
fn the_path_of_a_read_action_has_no_escapes() {
    for (script, path) in [(r"cat a\ b", "a b"), (r#"cat "a\"b""#, "a\"b"), (r"cat \$x", "$x"), ("cat x;", "x")] {
        let argv = ["bash", "-c", script].map(str::to_owned);
        let read = CommandAction::Read { command: join(&["cat", path]), name: path.into(), path: path.into() };
        assert_eq!(command_actions(&argv), [read], "{script}");
    }
}
