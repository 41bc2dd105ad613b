//! Whether commands run, are asked about or refused.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use loomd_exec::rules::{Rules, load};
use loomd_exec::{Decision, Question, approval_key, decide, refuse_escalation};
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
    Decision::Allow { unsandboxed, amendment: words(amendment) }
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
}

impl Default for Case<'_> {
    fn default() -> Self {
        let (approval, sandbox) = (AskForApproval::OnRequest, read_only());
        Self { approval, sandbox, escalated: false, prefix_rule: &[], rules: RULES }
    }
}

impl Case<'_> {
    #[track_caller]
    fn check(&self, script: &str, expected: Decision) {
        let command = ["bash", "-lc", script].map(str::to_owned);
        let prefix_rule = words(self.prefix_rule);
        let decision = decide(Question {
            command: &command,
            approval: &self.approval,
            sandbox: &self.sandbox,
            escalated: self.escalated,
            rules: &rules(self.rules),
            prefix_rule: prefix_rule.as_deref(),
        });
        assert_eq!(decision, expected, "{script:?} under {:?}", self.approval);
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
        case.check("ls && cat a", allow(false, &[]));
        case.check("ls; zz a", plain);
        case.check("rm -rf x", dangerous);
    }
}

#[test]
fn wanting_more_than_the_sandbox_is_asked_about() {
    let case = Case { escalated: true, ..Case::default() };
    case.check("zz a", ask(None, &["zz", "a"]));
    case.check("ls", allow(false, &[]));
    case.check("touch ok", allow(true, &[]));
    Case { sandbox: SandboxPolicy::DangerFullAccess, escalated: true, ..Case::default() }
        .check("zz a", allow(false, &["zz", "a"]));
}

#[test]
fn rules_come_first_and_the_strictest_counts() {
    let why = Some("`bash -lc 'mk x'` requires approval: why");
    let case = Case::default();
    case.check("touch ok", allow(true, &[]));
    case.check("ls; touch ok f", allow(true, &[]));
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
fn a_rule_about_one_part_does_not_free_the_others() {
    let case = Case::default();
    case.check("touch ok; zz", allow(false, &["zz"]));
    case.check("touch ok <<EOF\nx\nEOF", allow(true, &[]));
    case.check("touch ok > f <<EOF\nx\nEOF", allow(false, &[]));
}

#[test]
fn who_cannot_be_asked_is_refused() {
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
fn a_rule_is_proposed() {
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
fn a_broken_file_makes_us_ask() {
    let case = Case { rules: "nonsense(", ..Case::default() };
    case.check("ls", allow(false, &[]));
    case.check("zz", ask(None, &["zz"]));
    Case { approval: AskForApproval::Never, rules: "nonsense(", ..Case::default() }.check("zz", allow(false, &["zz"]));
}

#[test]
fn escalation_is_refused_where_nobody_is_asked() {
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
fn approvals_are_remembered_by_what_runs() {
    let key = |argv: &[&str]| approval_key(&argv.iter().map(ToString::to_string).collect::<Vec<_>>());
    assert_eq!(key(&["bash", "-lc", "touch 'a b'"]), ["touch", "a b"]);
    assert_eq!(key(&["/bin/sh", "-c", "touch a; ls"]), ["-c", "touch a; ls"]);
    assert_eq!(key(&["touch", "a"]), ["touch", "a"]);
}
