//! Decides whether a command is allowed, needs an approval or is refused: by rules first, then by the lists of
//! known-safe and dangerous commands, then by the approval policy. Requests no approval and runs nothing; only
//! [`Trust`] reads files.

use loomd_protocol::{AskForApproval, SandboxPolicy};

use crate::quote::join;
use crate::rules::{PrefixRule, RuleDecision, RuleMatch, Rules};
use crate::safety::{WorkingFolders, deletes, looks_only};
use crate::script::{Script, base_name, script_of};
use crate::suspects::{suspects, suspects_of};
use crate::trust::{Origin, Trust};
use crate::word::Word;

/// A command to decide about, with everything the decision depends on.
#[derive(Clone, Copy, Debug)]
pub struct DecisionRequest<'a> {
    pub command: &'a [String],
    pub approval: &'a AskForApproval,
    pub sandbox: &'a SandboxPolicy,
    /// Whether the call requests more than the sandbox grants.
    pub escalated: bool,
    pub rules: &'a Rules,
    /// Decides which programs sandboxed commands cannot have replaced.
    pub trust: Trust<'a>,
    /// The rule that the model proposes.
    pub prefix_rule: Option<&'a [String]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    Allow {
        /// Rules allow every command of it, so it needs no sandbox.
        unsandboxed: bool,
        /// It needs no approval under any policy because parts of it are known to be read-only.
        known_safe: bool,
        /// The rule to propose if the sandbox stops it.
        amendment: Option<Vec<String>>,
    },
    Ask {
        /// The justification of the rule that matches.
        reason: Option<String>,
        /// The rule that would make the approval unnecessary.
        amendment: Option<Vec<String>>,
    },
    Forbid {
        reason: String,
    },
}

/// A command of the script, with the decision about it.
struct DecidedCommand<'a> {
    words: Vec<Word>,
    matches: Vec<RuleMatch<'a>>,
    decision: RuleDecision,
    by_rule: bool,
    /// Whether a rule allows it, and its program cannot be replaced by a sandboxed command.
    freed: bool,
    known_safe: bool,
}

pub fn decide(question: DecisionRequest) -> Decision {
    let SplitScript { commands, amendable, unseen } = split(question.command, &question.trust);
    let parts: Vec<_> = commands.iter().map(|command| judge(question, command, amendable)).collect();
    let strictest = parts.iter().map(|part| part.decision).max().unwrap_or(RuleDecision::Prompt);
    let vouched = parts.iter().all(|part| part.by_rule || part.known_safe);
    let shell = question.command.first().map(|program| question.trust.origin(program));
    let unsandboxed = !unseen && parts.iter().all(|part| part.freed) && shell == Some(Origin::Fixed);
    // Rules that allow some commands of an escalated script do not allow the rest without the sandbox.
    let partly = wants_out(question) && !unsandboxed && vouched && parts.iter().any(|part| part.by_rule);
    match strictest {
        RuleDecision::Forbidden => Decision::Forbid { reason: forbidden_reason(question.command, &parts) },
        RuleDecision::Allow if !partly => Decision::Allow {
            unsandboxed,
            known_safe: vouched && parts.iter().any(|part| part.known_safe && !part.by_rule),
            amendment: amendment(question, &parts, amendable, RuleDecision::Allow),
        },
        RuleDecision::Prompt | RuleDecision::Allow => {
            let rule = parts.iter().any(|part| part.by_rule && part.decision == RuleDecision::Prompt);
            if let Some(refusal) = cannot_ask(question.approval, rule) {
                return Decision::Forbid { reason: refusal.into() };
            }
            let amendment = if rule { None } else { amendment(question, &parts, amendable, RuleDecision::Prompt) };
            Decision::Ask { reason: prompt_reason(question.command, &parts), amendment }
        }
    }
}

/// Whether the command needs an approval to run without the sandbox.
fn wants_out(question: DecisionRequest) -> bool {
    question.escalated && !is_open(question.sandbox) && matches!(question.approval, AskForApproval::OnRequest)
}

/// Whether the policy is one that the server does not enforce itself.
fn is_open(sandbox: &SandboxPolicy) -> bool {
    matches!(sandbox, SandboxPolicy::DangerFullAccess | SandboxPolicy::ExternalSandbox { .. })
}

/// The error for a command that requests more than its sandbox grants under a policy without such approvals; `None`
/// when an approval can be requested. `verb` is "should not" or "cannot".
pub fn refuse_escalation(approval: &AskForApproval, verb: &str) -> Option<String> {
    let name = match approval {
        AskForApproval::OnRequest => return None,
        AskForApproval::Never => "Never".to_owned(),
        AskForApproval::OnFailure => "OnFailure".to_owned(),
        AskForApproval::Untrusted => "UnlessTrusted".to_owned(),
        AskForApproval::Granular { sandbox_approval, rules, skill_approval, request_permissions, mcp_elicitations } => {
            format!(
                "Granular(GranularApprovalConfig {{ sandbox_approval: {sandbox_approval}, rules: {rules}, skill_approval: {skill_approval}, request_permissions: {request_permissions}, mcp_elicitations: {mcp_elicitations} }})"
            )
        }
    };
    Some(format!(
        "approval policy is {name}; reject command — you {verb} ask for escalated permissions if the approval policy is {name}"
    ))
}

/// The key of an approval for the session: the words of a single plain command, else the flag and text of the script.
/// Words that a shell expands differ from the same words quoted.
pub fn approval_key(command: &[String], trust: &Trust) -> Vec<String> {
    let Some(script) = script_of(command, trust) else { return command.to_vec() };
    match Script::parse(script) {
        Script::Plain(commands) if commands.len() == 1 && !expands(&commands[0]) => texts(&commands[0]),
        _ => vec![command[1].clone(), script.to_owned()],
    }
}

fn expands(words: &[Word]) -> bool {
    words.iter().any(Word::expands)
}

fn texts(words: &[Word]) -> Vec<String> {
    words.iter().map(Word::text).collect()
}

/// A command of the script, before the decision about it.
struct CandidateCommand {
    words: Vec<Word>,
    /// The command in every reading of a shell.
    suspects: Vec<Vec<Word>>,
    /// The folders in which it may run.
    folders: WorkingFolders,
}

struct SplitScript {
    commands: Vec<CandidateCommand>,
    /// Whether a rule about the words of a command would describe what it does.
    amendable: bool,
    /// Whether the script has effects that are not in its words, such as a redirection to a file.
    unseen: bool,
}

fn split(command: &[String], trust: &Trust) -> SplitScript {
    let mut folders = WorkingFolders::new(trust.cwd);
    let whole = |words: Vec<Word>| {
        vec![CandidateCommand { words, suspects: suspects(command), folders: WorkingFolders::new(trust.cwd) }]
    };
    match script_of(command, trust).map(Script::parse) {
        Some(Script::Plain(commands)) => {
            let judged = |words: Vec<Word>| {
                let here = folders.clone();
                folders.follow(&words);
                CandidateCommand { suspects: suspects_of(&words), words, folders: here }
            };
            SplitScript { commands: commands.into_iter().map(judged).collect(), amendable: true, unseen: false }
        }
        Some(Script::Heredoc(heredoc)) => {
            SplitScript { commands: whole(heredoc.words), amendable: false, unseen: heredoc.redirected }
        }
        Some(Script::Opaque) | None => {
            let words = command.iter().map(|word| Word::literal(word)).collect();
            SplitScript { commands: whole(words), amendable: true, unseen: false }
        }
    }
}

fn judge<'a>(question: DecisionRequest<'a>, command: &CandidateCommand, visible: bool) -> DecidedCommand<'a> {
    let known_safe = visible && looks_only(&command.words, &question.trust, &command.folders);
    let restricting = question.rules.restricting(&command.suspects);
    let mut allowing = question.rules.allowing(&command.words, &question.trust);
    if wants_out(question) {
        // A program that a sandboxed command could replace keeps its sandbox.
        allowing.retain(|found| found.fixed);
    }
    let ruled = restricting.iter().chain(&allowing).map(|found| found.rule.decision).max();
    DecidedCommand {
        words: command.words.clone(),
        decision: ruled.unwrap_or_else(|| by_policy(question, &command.suspects, known_safe)),
        by_rule: ruled.is_some(),
        freed: restricting.is_empty() && allowing.iter().any(|found| found.fixed),
        matches: restricting.into_iter().chain(allowing).collect(),
        known_safe,
    }
}

/// The decision about a command that no rule matches.
fn by_policy(question: DecisionRequest, suspects: &[Vec<Word>], known_safe: bool) -> RuleDecision {
    let open = is_open(question.sandbox);
    if known_safe {
        return RuleDecision::Allow;
    }
    if deletes(suspects) {
        return match question.approval {
            AskForApproval::Never if open => RuleDecision::Allow,
            AskForApproval::Never => RuleDecision::Forbidden,
            _ => RuleDecision::Prompt,
        };
    }
    match question.approval {
        AskForApproval::Untrusted => RuleDecision::Prompt,
        AskForApproval::OnRequest if question.escalated && !open => RuleDecision::Prompt,
        AskForApproval::Never => RuleDecision::Allow,
        // The file that could not be read may have a rule that prompts or forbids.
        _ if question.rules.incomplete => RuleDecision::Prompt,
        _ => RuleDecision::Allow,
    }
}

/// The reason why a required approval cannot be requested.
fn cannot_ask(approval: &AskForApproval, rule: bool) -> Option<&'static str> {
    match approval {
        AskForApproval::Never => Some("approval required by policy, but AskForApproval is set to Never"),
        AskForApproval::Granular { rules: false, .. } if rule => {
            Some("approval required by policy rule, but AskForApproval::Granular.rules is false")
        }
        AskForApproval::Granular { sandbox_approval: false, .. } if !rule => {
            Some("approval required by policy, but AskForApproval::Granular.sandbox_approval is false")
        }
        _ => None,
    }
}

/// The rule with the most words among those of a decision.
fn most_specific<'a, 'b>(parts: &'b [DecidedCommand<'a>], decision: RuleDecision) -> Option<&'b RuleMatch<'a>> {
    let matches = parts.iter().flat_map(|part| &part.matches).filter(|found| found.rule.decision == decision);
    // Of several with the same length, the first.
    matches.reduce(|best, found| if found.rule.pattern.len() > best.rule.pattern.len() { found } else { best })
}

fn forbidden_reason(command: &[String], parts: &[DecidedCommand]) -> String {
    let why = match most_specific(parts, RuleDecision::Forbidden) {
        Some(RuleMatch { rule: PrefixRule { justification: Some(why), .. }, .. }) => why.clone(),
        Some(found) => format!("policy forbids commands starting with `{}`", found.prefix()),
        None => "blocked by policy".into(),
    };
    format!("`{}` rejected: {why}", join(command))
}

fn prompt_reason(command: &[String], parts: &[DecidedCommand]) -> Option<String> {
    let found = most_specific(parts, RuleDecision::Prompt)?;
    let command = join(command);
    Some(match &found.rule.justification {
        Some(why) => format!("`{command}` requires approval: {why}"),
        None => format!("`{command}` requires approval by policy"),
    })
}

/// The rule to propose: the model's if it is suitable, else one about the first command that no rule allows.
fn amendment(
    question: DecisionRequest,
    parts: &[DecidedCommand],
    amendable: bool,
    decision: RuleDecision,
) -> Option<Vec<String>> {
    let ruled = parts.iter().any(|part| part.by_rule);
    if let Some(words) = question.prefix_rule.filter(|words| !ruled && fit(words, parts, &question.trust)) {
        return Some(words.to_vec());
    }
    let first = parts.iter().find(|part| !part.by_rule && !part.known_safe && part.decision == decision)?;
    // A rule is about the words that a program gets, which are not known if they expand.
    (amendable && !expands(&first.words)).then(|| texts(&first.words))
}

/// Whether a proposed rule is specific enough and would allow the script.
fn fit(words: &[String], parts: &[DecidedCommand], trust: &Trust) -> bool {
    let mut rules = Rules::default();
    rules.add(PrefixRule::allow(words));
    let open =
        |part: &DecidedCommand| !rules.allowing(&part.words, trust).is_empty() || part.decision == RuleDecision::Allow;
    !words.is_empty() && !says_too_little(words) && parts.iter().all(open)
}

/// Whether a prefix would allow arbitrary commands.
fn says_too_little(words: &[String]) -> bool {
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    if let Some(program) = words.first_mut() {
        *program = base_name(program);
    }
    matches!(
        words[..],
        ["python" | "python3"]
            | ["python" | "python3", "-" | "-c"]
            | ["py" | "pythonw" | "pyw" | "pypy" | "pypy3"]
            | ["py", "-3"]
            | ["node" | "perl" | "ruby" | "php" | "lua" | "osascript"]
            | ["node" | "perl" | "ruby" | "lua", "-e"]
            | ["php", "-r"]
            | ["bash" | "sh" | "zsh"]
            | ["bash" | "sh" | "zsh", "-lc" | "-c"]
            | ["pwsh" | "powershell" | "powershell.exe" | "pwsh.exe"]
            | ["pwsh" | "powershell" | "powershell.exe" | "pwsh.exe", "-Command" | "-c"]
            | ["git" | "env" | "sudo"]
    )
}
