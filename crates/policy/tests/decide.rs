//! Decisions about commands: allowed, with an approval, or refused.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::path::Path;

use loomd_policy::rules::{Rules, load};
use loomd_policy::{Decision, DecisionRequest, Trust, approval_key, decide, refuse_escalation};
use loomd_protocol::{AskForApproval, SandboxPolicy};

const RULES: &str = r#"
prefix_rule(pattern=["touch", "ok"], decision="allow")
prefix_rule(pattern=["mk"], decision="prompt", justification="why")
prefix_rule(pattern=["mk", "a"], decision="prompt")
prefix_rule(pattern=["no"], decision="forbidden")
prefix_rule(pattern=["no", "x"], decision="forbidden", justification="use y")
"#;

fn rules(text: &str) -> Rules {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("rules")).unwrap();
    std::fs::write(home.path().join("rules/a.rules"), text).unwrap();
    load(&[home.path()]).unwrap().rules
}

fn read_only() -> SandboxPolicy {
    SandboxPolicy::ReadOnly { access: Default::default(), network_access: false }
}

fn granular(sandbox_approval: bool, rules: bool) -> AskForApproval {
    AskForApproval::Granular {
        sandbox_approval,
        rules,
        skill_approval: false,
        request_permissions: false,
        mcp_elicitations: false,
    }
}

fn words(text: &[&str]) -> Option<Vec<String>> {
    (!text.is_empty()).then(|| text.iter().map(ToString::to_string).collect())
}

fn allow(unsandboxed: bool, amendment: &[&str]) -> Decision {
    Decision::Allow { unsandboxed, known_safe: false, amendment: words(amendment) }
}

/// The decision about a command that is known to be read-only.
fn safe() -> Decision {
    Decision::Allow { unsandboxed: false, known_safe: true, amendment: None }
}

/// Trust where sandboxed commands can write everything below `/workspace`.
fn trust(search: &str) -> Trust<'_> {
    let cwd = Path::new("/workspace");
    Trust { search, cwd, login_shell: None, can_write: &|path| path.starts_with("/workspace") }
}

fn ask(reason: Option<&str>, amendment: &[&str]) -> Decision {
    Decision::Ask { reason: reason.map(str::to_owned), amendment: words(amendment) }
}

fn forbid(reason: &str) -> Decision {
    Decision::Forbid { reason: reason.into() }
}

struct Case<'a> {
    approval: AskForApproval,
    sandbox: SandboxPolicy,
    escalated: bool,
    prefix_rule: &'a [&'a str],
    rules: &'a str,
    search: &'a str,
}

impl Default for Case<'_> {
    fn default() -> Self {
        let (approval, sandbox) = (AskForApproval::OnRequest, read_only());
        Self { approval, sandbox, escalated: false, prefix_rule: &[], rules: RULES, search: "/usr/bin:/bin" }
    }
}

impl Case<'_> {
    #[track_caller]
    fn check(&self, script: &str, expected: Decision) {
        self.check_argv(&["bash", "-lc", script], expected);
    }

    #[track_caller]
    fn check_argv(&self, command: &[&str], expected: Decision) {
        let command: Vec<_> = command.iter().map(ToString::to_string).collect();
        let prefix_rule = words(self.prefix_rule);
        let decision = decide(DecisionRequest {
            command: &command,
            approval: &self.approval,
            sandbox: &self.sandbox,
            escalated: self.escalated,
            rules: &rules(self.rules),
            trust: trust(self.search),
            prefix_rule: prefix_rule.as_deref(),
        });
        assert_eq!(decision, expected, "{command:?} under {:?}", self.approval);
    }
}

#[test]
fn without_rules_the_policy_decides() {
    use AskForApproval::*;
    let full = SandboxPolicy::DangerFullAccess;
    let blocked = "`bash -lc 'rm -rf x'` rejected: blocked by policy";
    for (approval, sandbox, plain, dangerous) in [
        (Untrusted, read_only(), ask(None, &["zz", "a"]), ask(None, &["rm", "-rf", "x"])),
        (OnFailure, read_only(), allow(false, &["zz", "a"]), ask(None, &["rm", "-rf", "x"])),
        (OnRequest, read_only(), allow(false, &["zz", "a"]), ask(None, &["rm", "-rf", "x"])),
        (granular(true, true), read_only(), allow(false, &["zz", "a"]), ask(None, &["rm", "-rf", "x"])),
        (Never, read_only(), allow(false, &["zz", "a"]), forbid(blocked)),
        (Untrusted, full.clone(), ask(None, &["zz", "a"]), ask(None, &["rm", "-rf", "x"])),
        (OnRequest, full.clone(), allow(false, &["zz", "a"]), ask(None, &["rm", "-rf", "x"])),
        (Never, full, allow(false, &["zz", "a"]), allow(false, &["rm", "-rf", "x"])),
    ] {
        let case = Case { approval, sandbox, ..Case::default() };
        case.check("ls && cat a", safe());
        case.check("ls; zz a", plain);
        case.check("rm -rf x", dangerous);
    }
}

#[test]
fn an_escalated_command_needs_an_approval() {
    let case = Case { escalated: true, ..Case::default() };
    case.check("zz a", ask(None, &["zz", "a"]));
    case.check("ls", safe());
    case.check("touch ok", allow(true, &[]));
    Case { sandbox: SandboxPolicy::DangerFullAccess, escalated: true, ..Case::default() }
        .check("zz a", allow(false, &["zz", "a"]));
}

#[test]
fn the_strictest_matching_rule_decides() {
    let why = Some("`bash -lc 'mk x'` requires approval: why");
    let case = Case::default();
    case.check("touch ok", allow(true, &[]));
    case.check("mk x", ask(why, &[]));
    case.check("mk a", ask(Some("`bash -lc 'mk a'` requires approval by policy"), &[]));
    case.check(
        "touch ok; mk x; rm -rf y",
        ask(Some("`bash -lc 'touch ok; mk x; rm -rf y'` requires approval: why"), &[]),
    );
    case.check("no z", forbid("`bash -lc 'no z'` rejected: policy forbids commands starting with `no`"));
    case.check("mk x; no x", forbid("`bash -lc 'mk x; no x'` rejected: use y"));
    Case { approval: AskForApproval::Untrusted, ..Case::default() }
        .check("mk x; zz", ask(Some("`bash -lc 'mk x; zz'` requires approval: why"), &[]));
}

#[test]
fn an_allow_rule_for_one_command_does_not_allow_the_rest_of_the_script() {
    let case = Case::default();
    case.check("touch ok; zz", allow(false, &["zz"]));
    case.check("ls; touch ok f", safe());
    case.check("touch ok; touch ok f", allow(true, &[]));
    case.check("touch ok <<EOF\nx\nEOF", allow(true, &[]));
    case.check("touch ok > f <<EOF\nx\nEOF", allow(false, &[]));
}

#[test]
fn a_command_that_needs_an_approval_is_refused_under_policy_never() {
    let never = "approval required by policy, but AskForApproval is set to Never";
    Case { approval: AskForApproval::Never, ..Case::default() }.check("mk x", forbid(never));
    let rules = "approval required by policy rule, but AskForApproval::Granular.rules is false";
    Case { approval: granular(true, false), ..Case::default() }.check("mk x", forbid(rules));
    let sandbox = "approval required by policy, but AskForApproval::Granular.sandbox_approval is false";
    let case = Case { approval: granular(false, true), ..Case::default() };
    case.check("rm -rf x", forbid(sandbox));
    case.check("mk x", ask(Some("`bash -lc 'mk x'` requires approval: why"), &[]));
}

#[test]
fn an_approval_proposes_a_prefix_rule() {
    let untrusted = |prefix_rule| Case { approval: AskForApproval::Untrusted, prefix_rule, ..Case::default() };
    let plain = untrusted(&[]);
    plain.check("ls; zz a; yy b", ask(None, &["zz", "a"]));
    plain.check("zz > f", ask(None, &["bash", "-lc", "zz > f"]));
    plain.check("cat <<EOF\nx\nEOF", ask(None, &[]));
    untrusted(&["zz"]).check("zz a; ls", ask(None, &["zz"]));
    untrusted(&["zz"]).check("zz a; yy", ask(None, &["zz", "a"]));
    untrusted(&["yy"]).check("zz a", ask(None, &["zz", "a"]));
    untrusted(&["cat"]).check("cat <<EOF > f\nx\nEOF", ask(None, &["cat"]));
    untrusted(&["python3", "-c"]).check("python3 -c x", ask(None, &["python3", "-c", "x"]));
    untrusted(&["zz"]).check("zz; mk x", ask(Some("`bash -lc 'zz; mk x'` requires approval: why"), &[]));
}

#[test]
fn an_unreadable_rules_file_makes_unmatched_commands_need_an_approval() {
    let case = Case { rules: "nonsense(", ..Case::default() };
    case.check("ls", safe());
    case.check("zz", ask(None, &["zz"]));
    Case { approval: AskForApproval::Never, rules: "nonsense(", ..Case::default() }.check("zz", allow(false, &["zz"]));
}

#[test]
fn escalation_is_refused_when_approvals_are_never_requested() {
    assert_eq!(refuse_escalation(&AskForApproval::OnRequest, "should not"), None);
    assert_eq!(
        refuse_escalation(&AskForApproval::Never, "should not").unwrap(),
        "approval policy is Never; reject command — you should not ask for escalated permissions if the approval policy is Never"
    );
    let granular = refuse_escalation(&granular(true, false), "cannot").unwrap();
    assert!(granular.starts_with(
            "approval policy is Granular(GranularApprovalConfig { sandbox_approval: true, rules: false, skill_approval: false, request_permissions: false, mcp_elicitations: false }); reject command — you cannot ask"
        ));
}

#[test]
fn the_approval_key_is_the_command_that_runs() {
    let key = |argv: &[&str]| approval_key(&argv.iter().map(ToString::to_string).collect::<Vec<_>>(), &trust("/bin"));
    assert_eq!(key(&["bash", "-lc", "touch 'a b'"]), ["touch", "a b"]);
    assert_eq!(key(&["/bin/sh", "-c", "touch a; ls"]), ["-c", "touch a; ls"]);
    assert_eq!(key(&["touch", "a"]), ["touch", "a"]);
    assert_eq!(key(&["bash", "-c", "touch '*'"]), ["touch", "*"]);
    assert_eq!(key(&["bash", "-c", "touch *"]), ["-c", "touch *"]);
    assert_eq!(key(&["./bash", "-c", "touch a"]), ["./bash", "-c", "touch a"]);
}

const MYTOOL: &str = r#"
prefix_rule(pattern=["mytool", "status"], decision="allow")
prefix_rule(pattern=["other"], decision="allow")
prefix_rule(pattern=["./local"], decision="allow")
host_executable(name="other", paths=["/opt/other/bin/other"])
"#;

#[test]
fn a_rule_about_a_name_does_not_allow_a_program_in_the_workspace() {
    let case = Case { approval: AskForApproval::Untrusted, rules: MYTOOL, ..Case::default() };
    case.check_argv(&["mytool", "status"], allow(true, &[]));
    case.check_argv(&["/usr/bin/mytool", "status"], allow(true, &[]));
    case.check_argv(&["/opt/other/bin/other"], allow(true, &[]));
    for program in ["/workspace/mytool", "./mytool", "/opt/mytool", "/usr/bin/../../workspace/mytool"] {
        case.check_argv(&[program, "status"], ask(None, &[program, "status"]));
    }
    for program in ["/usr/bin/other", "/workspace/other"] {
        case.check_argv(&[program], ask(None, &[program]));
    }
}

#[test]
fn an_allow_rule_keeps_the_sandbox_when_a_workspace_folder_is_in_path() {
    let search = "/workspace/bin:/usr/bin";
    let rules = "prefix_rule(['ls', '-x'])\nprefix_rule(['mytool', 'status'])";
    let case = Case { approval: AskForApproval::Untrusted, rules, search, ..Case::default() };
    case.check_argv(&["/usr/bin/ls", "-x"], allow(true, &[]));
    // `ls` is the system's as long as the workspace has none.
    case.check_argv(&["ls", "-x"], allow(false, &[]));
    case.check_argv(&["mytool", "status"], allow(false, &[]));
    case.check("/usr/bin/ls -x", allow(false, &[]));
    case.check_argv(&["/bin/bash", "-lc", "/usr/bin/ls -x"], allow(true, &[]));
    let planted = tempfile::tempdir().unwrap();
    std::fs::write(planted.path().join("ls"), "").unwrap();
    let path = planted.path().canonicalize().unwrap();
    let can_write = |file: &Path| file.starts_with(&path);
    let (command, rules) = (["ls".to_owned(), "-x".to_owned()], self::rules(rules));
    let decision = decide(DecisionRequest {
        command: &command,
        approval: &AskForApproval::Untrusted,
        sandbox: &read_only(),
        escalated: false,
        rules: &rules,
        trust: Trust { search: path.to_str().unwrap(), can_write: &can_write, ..trust("") },
        prefix_rule: None,
    });
    assert_eq!(decision, ask(None, &["ls", "-x"]));
}

/// The program may be another one by the time that the rule is used again.
#[test]
fn an_allow_rule_for_a_workspace_program_skips_the_approval_but_not_the_sandbox() {
    let case = Case { approval: AskForApproval::Untrusted, rules: MYTOOL, ..Case::default() };
    case.check_argv(&["./local", "x"], allow(false, &[]));
    Case { escalated: true, rules: MYTOOL, ..Case::default() }
        .check_argv(&["./local", "x"], ask(None, &["./local", "x"]));
}

#[test]
fn an_allow_rule_for_one_command_keeps_the_script_in_the_sandbox() {
    let case = Case { escalated: true, ..Case::default() };
    case.check("cd x && touch ok", ask(None, &[]));
    case.check("touch ok && touch ok", allow(true, &[]));
}

#[test]
fn a_shell_in_the_workspace_is_not_trusted_to_run_a_safe_script() {
    let case = Case { approval: AskForApproval::Untrusted, ..Case::default() };
    for shell in ["./bash", "/workspace/bash", "bin/sh", "/tmp/zsh"] {
        case.check_argv(&[shell, "-c", "ls"], ask(None, &[shell, "-c", "ls"]));
        case.check_argv(&[shell, "-c", "touch ok"], ask(None, &[shell, "-c", "touch ok"]));
        let forbidden = forbid(&format!("`{shell} -c 'no z'` rejected: policy forbids commands starting with `no`"));
        case.check_argv(&[shell, "-c", "no z"], forbidden);
    }
    case.check_argv(&["/bin/bash", "-c", "ls"], safe());
}

const PUSH: &str = r#"
prefix_rule(pattern=["git", "push"], decision="forbidden", justification="never")
prefix_rule(pattern=["git", "commit"], decision="prompt")
prefix_rule(pattern=["curl"], decision="forbidden")
prefix_rule(pattern=["git", "add"], decision="allow")
"#;

#[test]
fn a_forbid_rule_matches_through_quotes_expansions_and_paths() {
    for script in [
        "git push",
        "/workspace/git push",
        "./git push",
        "git {push,origin}",
        "{git,push,origin}",
        "git pus{h,}",
        "git {p,}ush",
        "git pu{s..s}h",
        "git p*",
        "git pus[h]",
        "gi? push",
        "g''it push",
        "git pu\\sh",
        "\\git push",
        "$'git' push",
        "git $'p\\x75sh'",
        "git $'\\160ush'",
        "git $x",
        "$git push",
        "git $empty push",
        "$empty git push",
        "git pu$x",
        "A=1 git push",
        "git push > log",
        "git push 2>&1 | tail",
        ">log git push",
        "if true; then git push; fi",
        "for x in a b; do git push $x; done",
        "(git push)",
        "{ git push; }",
        "! git push",
        "echo $(git push)",
        "echo `git push`",
        "echo \"$(git push)\"",
        "cat <(git push)",
        "cat <<EOF\n$(git push)\nEOF",
        "bash <<EOF\ngit push\nEOF",
        "cat <<EOF\nx\nEOF\ngit push",
        "env A=1 git push",
        "sudo -n git push",
        "command git push",
        "bash -c 'git push'",
        "eval git push",
        "true & git push",
        "f() { git push; }; f",
        "git # c\ngit push",
    ] {
        for approval in [AskForApproval::OnRequest, AskForApproval::Never] {
            let command = loomd_policy::join(&["bash", "-lc", script]);
            let expected = forbid(&format!("`{command}` rejected: never"));
            Case { approval, rules: PUSH, ..Case::default() }.check(script, expected);
        }
    }
}

#[test]
fn a_forbid_rule_does_not_match_other_commands() {
    for script in [
        "git log *.rs",
        "git status {a,b}",
        "git log $x",
        "$cmd x",
        "\"$cmd\" origin",
        "ls *",
        "echo git push",
        "echo 'git push' > f",
        "cat > f <<'EOF'\ngit push\nEOF",
        "# git push\nzz",
        "zz push git",
        "[ -f push ]",
        "for git in push; do zz; done",
    ] {
        let command = ["/bin/bash".to_owned(), "-lc".to_owned(), script.to_owned()];
        let rules = rules(PUSH);
        let decision = decide(DecisionRequest {
            command: &command,
            approval: &AskForApproval::OnRequest,
            sandbox: &read_only(),
            escalated: false,
            rules: &rules,
            trust: trust("/bin"),
            prefix_rule: None,
        });
        assert!(matches!(decision, Decision::Allow { unsandboxed: false, .. }), "{script:?}: {decision:?}");
    }
}

#[test]
fn an_allow_rule_matches_only_literal_words() {
    let case = Case { approval: AskForApproval::Untrusted, rules: PUSH, ..Case::default() };
    case.check("git add *.rs {a,b} ~/x", allow(true, &[]));
    case.check("git 'add' x", allow(true, &[]));
    for script in ["git {add,x}", "git ad?", "git a{d,}d"] {
        case.check(script, ask(None, &[]));
    }
}

#[test]
fn no_rule_is_proposed_for_words_that_expand() {
    let case = Case { approval: AskForApproval::Untrusted, ..Case::default() };
    case.check("zz *.rs", ask(None, &[]));
    case.check("zz '*.rs'", ask(None, &["zz", "*.rs"]));
    case.check("zz {a,b}", ask(None, &[]));
    let case = Case { approval: AskForApproval::Untrusted, prefix_rule: &["zz", "*.rs"], ..Case::default() };
    case.check("zz *.rs", ask(None, &[]));
    case.check("zz '*.rs' a", ask(None, &["zz", "*.rs"]));
}

#[test]
fn dangerous_commands_are_detected_in_every_spelling() {
    for script in [
        "/bin/r[m] -rf x",
        "r''m -rf x",
        "\\rm -rf x",
        "$'rm' -rf x",
        "rm -{r,f} x",
        "rm -r{f,} x",
        "{rm,-rf,x}",
        "rm -rf $x",
        "rm -rf x > y",
        "/???/?? -rf x",
        "rm *",
        "$SUDO rm -rf x",
        "x=$(rm -rf y)",
    ] {
        let command = loomd_policy::join(&["bash", "-lc", script]);
        let expected = forbid(&format!("`{command}` rejected: blocked by policy"));
        Case { approval: AskForApproval::Never, rules: "", ..Case::default() }.check(script, expected);
    }
    for script in ["rm *.o", "rm $x", "rm \"$x\" a", "echo rm -rf x > y", "$x -rf y", "cat > f <<'EOF'\nrm -rf x\nEOF"]
    {
        let command = ["bash", "-lc", script].map(str::to_owned);
        assert!(!loomd_policy::is_dangerous(&command), "{script:?}");
    }
}
