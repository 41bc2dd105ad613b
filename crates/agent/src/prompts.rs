//! Texts for the model: base instructions, modes, reviews, compaction, and notes about what happened between turns. The
//! longer ones are in `prompts/*.md`. The tags around them are fixed, because other programs search for them. Callers
//! decide when a text is sent.

mod environment;
mod extensions;
mod permissions;
mod review;

use loomd_protocol::{ModeKind, Personality};
use serde::Serialize;

pub use environment::{Environment, ManagedNetwork};
pub use extensions::{ListedSkill, MentionedPlugin, plugin_message, plugins_section, skill_message, skills_section};
pub use permissions::Permissions;
pub use review::{REVIEW_INSTRUCTIONS, REVIEW_LATEST, ReviewOutcome, review_hint, review_prompt, review_report};

/// The prompt for a summary that replaces the conversation.
pub const COMPACTION_PROMPT: &str = trimmed(include_str!("../prompts/compaction.md"));

/// The text before a summary in the conversation, followed by a line break.
pub const SUMMARY_PREAMBLE: &str = trimmed(include_str!("../prompts/summary_preamble.md"));

/// The instructions of the reviewer that decides about actions in place of the user.
pub const GUARDIAN_INSTRUCTIONS: &str = trimmed(include_str!("../prompts/guardian.md"));

/// The note that the user interrupted a turn.
pub const TURN_ABORTED: &str = "<turn_aborted>\n\
    The user stopped the turn above on purpose. What was running was cancelled, so commands and edits may have taken \
    effect only in part: look at the state of things before you repeat any of them. Terminals in the background may \
    still be running.\n\
    </turn_aborted>";

/// Tells the model what apps are.
pub const APPS: &str = trimmed(include_str!("../prompts/apps.md"));

const BASE: &str = trimmed(include_str!("../prompts/base.md"));
const FRIENDLY: &str = trimmed(include_str!("../prompts/personality_friendly.md"));
const PRAGMATIC: &str = trimmed(include_str!("../prompts/personality_pragmatic.md"));
const PLAN: &str = trimmed(include_str!("../prompts/mode_plan.md"));
const DEFAULT: &str = trimmed(include_str!("../prompts/mode_default.md"));
const REALTIME_STARTED: &str = trimmed(include_str!("../prompts/realtime_started.md"));
const REALTIME_ENDED: &str = trimmed(include_str!("../prompts/realtime_ended.md"));

/// The `instructions` for a model whose catalogue entry has none.
pub fn base_instructions(personality: Personality) -> String {
    let section = manner(personality).map_or_else(String::new, |text| format!("# Manner\n\n{text}\n\n"));
    BASE.replacen("{personality}\n\n", &section, 1)
}

/// The developer section for a personality that is not part of the base instructions; `None` for `none`.
pub fn personality_section(personality: Personality) -> Option<String> {
    let text = manner(personality)?;
    Some(format!(
        "<personality_spec>\nThe user chose how you should sound. From now on, and instead of earlier wishes of this \
         kind:\n\n{text}\n</personality_spec>"
    ))
}

fn manner(personality: Personality) -> Option<&'static str> {
    match personality {
        Personality::None => None,
        Personality::Friendly => Some(FRIENDLY),
        Personality::Pragmatic => Some(PRAGMATIC),
    }
}

/// The developer section of a collaboration mode. The client's instructions replace the built-in ones, and empty ones
/// leave the section out. `may_ask`: whether `request_user_input` can be called in the default mode.
pub fn collaboration_section(mode: ModeKind, given: Option<&str>, may_ask: bool) -> Option<String> {
    let text = match (given, mode) {
        (Some(given), _) => given.to_owned(),
        (None, ModeKind::Plan) => PLAN.to_owned(),
        (None, ModeKind::Default) => {
            let ask = if may_ask {
                "`request_user_input` works in this mode for questions with a few clear options."
            } else {
                "`request_user_input` does not work in this mode."
            };
            DEFAULT.replacen("{ask}", ask, 1)
        }
    };
    (!text.is_empty()).then(|| format!("<collaboration_mode>{text}</collaboration_mode>"))
}

/// The developer section when a realtime session is open. `own` are configured instructions instead of the built-in
/// ones.
pub fn realtime_started(own: Option<&str>) -> String {
    format!("<realtime_conversation>\n{}\n</realtime_conversation>", own.unwrap_or(REALTIME_STARTED))
}

/// The developer section when the realtime session has ended.
pub fn realtime_ended() -> String {
    format!("<realtime_conversation>\n{REALTIME_ENDED}\n</realtime_conversation>")
}

/// A summary as a user message of the conversation.
pub fn summary_message(summary: &str) -> String {
    format!("{SUMMARY_PREAMBLE}\n{summary}")
}

/// Whether the text of a user message is that of [`summary_message`].
pub fn is_summary(text: &str) -> bool {
    text.strip_prefix(SUMMARY_PREAMBLE).is_some_and(|rest| rest.starts_with('\n'))
}

/// The note about a command that the user ran, with its output.
pub fn user_shell_command(command: &str, exit_code: i32, seconds: f64, output: &str) -> String {
    format!(
        "<user_shell_command>\n<command>\n{command}\n</command>\n<result>\nExit code: {exit_code}\nDuration: \
         {seconds:.4} seconds\nOutput:\n{output}\n</result>\n</user_shell_command>"
    )
}

/// The note for a parent about the final status of a child agent, which is the one that `wait_agent` returns.
pub fn subagent_notification(agent_id: &str, status: &impl Serialize) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Notification<'a, S> {
        agent_path: &'a str,
        status: &'a S,
    }
    let json = serde_json::to_string(&Notification { agent_path: agent_id, status })?;
    Ok(format!("<subagent_notification>\n{json}\n</subagent_notification>"))
}

/// Tells the model that the user allows an action that the reviewer had denied.
pub fn approved_denial(action: &serde_json::Value) -> String {
    format!(
        "The user has looked at an action that the reviewer denied, and allows exactly this one. Try it again if it is \
         still needed; nothing else is allowed by this:\n{action}"
    )
}

/// The instructions of the reviewer for newer clients, whose verdict is an outcome instead of a score.
pub fn guardian_instructions() -> String {
    let judging = GUARDIAN_INSTRUCTIONS.rsplit_once("\n\n").map_or(GUARDIAN_INSTRUCTIONS, |(judging, _)| judging);
    format!(
        "{judging}\n\nWhere the harm would be beyond repair, the risk is critical. Say also how clearly the user asked for \
         the action. An action that the user allowed after a denial is authorized, though you may still deny it.\n\nAnswer \
         with one JSON object and nothing else: `outcome` (`allow` or `deny`), `risk_level` (`low`, `medium`, `high` or \
         `critical`), `user_authorization` (`unknown`, `low`, `medium` or `high`), and `rationale` (one or two sentences)."
    )
}

/// The warning that another model answered than the one of the request.
pub fn rerouted(asked: &str, answered: &str) -> String {
    format!("Warning: a request for the model {asked} was answered by {answered}, as the provider decided.")
}

/// The model that answered, if `text` is one of [`rerouted`].
pub fn rerouted_to(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("Warning: a request for the model ")?.strip_suffix(", as the provider decided.")?;
    rest.split_once(" was answered by ").map(|(_, answered)| answered)
}

/// The text of a file without the line break at its end.
const fn trimmed(text: &str) -> &str {
    text.trim_ascii_end()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PERSONALITIES: [Personality; 3] = [Personality::None, Personality::Friendly, Personality::Pragmatic];

    #[test]
    fn base_instructions_contain_one_personality_and_no_placeholder() {
        for personality in PERSONALITIES {
            let text = base_instructions(personality);
            let found: Vec<_> = [FRIENDLY, PRAGMATIC].iter().map(|manner| text.contains(manner)).collect();
            let expected = [personality == Personality::Friendly, personality == Personality::Pragmatic];
            assert_eq!(found, expected, "{personality:?}");
            assert!(!text.contains("{personality}") && !text.contains("\n\n\n"), "{personality:?}");
        }
    }

    #[test]
    fn the_personality_none_has_no_section() {
        let wrapped = PERSONALITIES.map(|personality| {
            let section = personality_section(personality)?;
            Some(section.starts_with("<personality_spec>") && section.ends_with("</personality_spec>"))
        });
        assert_eq!(wrapped, [None, Some(true), Some(true)]);
    }

    #[test]
    fn given_mode_instructions_replace_the_built_in_ones() {
        let section = |mode, given| collaboration_section(mode, given, false);
        assert_eq!(
            section(ModeKind::Default, Some("RULES")).as_deref(),
            Some("<collaboration_mode>RULES</collaboration_mode>")
        );
        assert_eq!(section(ModeKind::Plan, Some("")), None);
        let plan = section(ModeKind::Plan, None).unwrap();
        for needed in ["\n<proposed_plan>\n", "\n</proposed_plan>\n", "`request_user_input`", "`update_plan`"] {
            assert!(plan.contains(needed), "{needed}");
        }
    }

    #[test]
    fn default_mode_mentions_request_user_input_where_it_can_be_called() {
        let [no, yes] = [false, true].map(|may_ask| collaboration_section(ModeKind::Default, None, may_ask).unwrap());
        assert!(no.contains("`request_user_input` does not work"), "{no}");
        assert!(yes.contains("`request_user_input` works"), "{yes}");
    }

    #[test]
    fn only_text_with_the_preamble_is_a_summary() {
        let message = summary_message("THE SUMMARY");
        assert!(message.ends_with("\nTHE SUMMARY"));
        assert_eq!([&message, "THE SUMMARY", SUMMARY_PREAMBLE].map(is_summary), [true, false, false]);
    }

    #[test]
    fn notes_are_wrapped_in_their_tags() {
        assert_eq!(
            user_shell_command("ls", 4, 0.024_13, "out\nerr\n"),
            "<user_shell_command>\n<command>\nls\n</command>\n<result>\nExit code: 4\nDuration: 0.0241 seconds\nOutput:\n\
             out\nerr\n\n</result>\n</user_shell_command>"
        );
        assert_eq!(
            subagent_notification("a1", &json!({"completed": "done"})).unwrap(),
            "<subagent_notification>\n{\"agent_path\":\"a1\",\"status\":{\"completed\":\"done\"}}\n</subagent_notification>"
        );
        assert!(TURN_ABORTED.starts_with("<turn_aborted>\n") && TURN_ABORTED.ends_with("\n</turn_aborted>"));
    }
}
