//! Any text as a shell script: taking it apart, saying what it does and whether it is safe never panics, nothing
//! is both known to be safe and dangerous, and a rule that forbids a command is never passed by a script that is
//! read as running it.

use std::path::Path;

use loomd_policy::rules::{PrefixRule, RuleDecision, Rules};
use loomd_policy::{Decision, DecisionRequest, Script, Trust, decide};
use loomd_protocol::{AskForApproval, SandboxPolicy};

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let argv = ["bash", "-lc", text].map(str::to_owned);
    let trust = Trust { search: "/bin", cwd: Path::new("/"), login_shell: None, can_write: &|_| false };
    assert!(!loomd_policy::command_actions(&argv).iter().any(|action| format!("{action:?}").is_empty()));
    assert!(!(loomd_policy::is_known_safe(&argv, &trust) && loomd_policy::is_dangerous(&argv)));
    let _ = loomd_policy::join(&argv);
    let commands = match Script::parse(text) {
        Script::Plain(commands) => commands,
        Script::Heredoc(heredoc) => vec![heredoc.words],
        Script::Opaque => Vec::new(),
    };
    for words in commands {
        let known = words.iter().take_while(|word| !word.expands()).take(3);
        let pattern = known.map(|word| vec![word.text()]).collect();
        let mut rules = Rules::default();
        rules.add(PrefixRule { pattern, decision: RuleDecision::Forbidden, justification: None });
        let decision = decide(DecisionRequest {
            command: &argv,
            approval: &AskForApproval::OnRequest,
            sandbox: &SandboxPolicy::DangerFullAccess,
            escalated: false,
            rules: &rules,
            trust,
            prefix_rule: None,
        });
        assert!(matches!(decision, Decision::Forbid { .. }), "{decision:?}");
    }
}
