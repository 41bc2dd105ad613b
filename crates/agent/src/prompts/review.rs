//! Texts of reviews: the reviewer's instructions and prompt, the hint for clients, and the message with the result.

use loomd_protocol::ReviewTarget;

/// The `instructions` of the reviewer.
pub const REVIEW_INSTRUCTIONS: &str = super::trimmed(include_str!("../../prompts/review.md"));

/// The instructions of a custom review for which the client sends none.
pub const REVIEW_LATEST: &str =
    "Review the latest changes: the uncommitted ones or, if there are none, those of the last commit.";

/// The characters of an abbreviated commit id.
const SHORT_SHA: usize = 7;

/// One line for clients about the target of a review.
pub fn review_hint(target: &ReviewTarget) -> String {
    match target {
        ReviewTarget::UncommittedChanges => "current changes".into(),
        ReviewTarget::BaseBranch { branch } => format!("changes against '{}'", base(branch)),
        ReviewTarget::Commit { sha, title } => {
            let short: String = sha.chars().take(SHORT_SHA).collect();
            match title {
                Some(title) => format!("commit {short}: {title}"),
                None => format!("commit {short}"),
            }
        }
        ReviewTarget::Custom { instructions } => custom(instructions),
    }
}

/// The base branch of a target, which is chosen before a review starts.
fn base(branch: &Option<String>) -> &str {
    branch.as_deref().unwrap_or("the default branch")
}

fn custom(instructions: &Option<String>) -> String {
    instructions.as_deref().unwrap_or(REVIEW_LATEST).trim().into()
}

/// The user message for the reviewer. `merge_base` is that of a base branch; `None` when git found none.
pub fn review_prompt(target: &ReviewTarget, merge_base: Option<&str>) -> String {
    match (target, merge_base) {
        (ReviewTarget::UncommittedChanges, _) => {
            "Review what has been changed in this repository since its last commit: staged, unstaged and untracked \
             files. Report your findings by priority."
                .into()
        }
        (ReviewTarget::BaseBranch { branch }, Some(sha)) => format!(
            "Review what this branch adds to '{}'. The two parted at commit {sha}; `git diff {sha}` shows the change. \
             Report your findings by priority.",
            base(branch)
        ),
        (ReviewTarget::BaseBranch { branch }, None) => format!(
            "Review what this branch adds to '{}'. First find the commit where the two parted, with `git merge-base` of \
             HEAD and that branch, or the remote branch that it follows; then diff against it. Report your findings by \
             priority.",
            base(branch)
        ),
        (ReviewTarget::Commit { sha, title: Some(title) }, _) => {
            format!("Review the change made by commit {sha} (\"{title}\"). Report your findings by priority.")
        }
        (ReviewTarget::Commit { sha, title: None }, _) => {
            format!("Review the change made by commit {sha}. Report your findings by priority.")
        }
        (ReviewTarget::Custom { instructions }, _) => custom(instructions),
    }
}

/// How a review ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewOutcome<'a> {
    /// With the text of the result.
    Finished(&'a str),
    Interrupted,
}

/// The user message with the result of a review, for the conversation of the thread.
pub fn review_report(outcome: ReviewOutcome<'_>) -> String {
    let (context, results) = match outcome {
        ReviewOutcome::Finished(results) => (
            "The user had a reviewer look at changes. Below is what came out. The user may now ask about it, or want \
             some of it fixed.",
            results,
        ),
        ReviewOutcome::Interrupted => (
            "The user had a reviewer look at changes, but the review did not finish. There is no result to work from.",
            "None.",
        ),
    };
    format!(
        "<user_action>\n  <context>{context}</context>\n  <action>review</action>\n  <results>\n  {results}\n  \
         </results>\n</user_action>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(target: ReviewTarget, merge_base: Option<&str>, hint: &str, mentions: &[&str]) {
        assert_eq!(review_hint(&target), hint);
        let prompt = review_prompt(&target, merge_base);
        for mentioned in mentions {
            assert!(prompt.contains(mentioned), "{mentioned} in {prompt}");
        }
    }

    #[test]
    fn every_target_has_a_hint_and_a_prompt() {
        check(ReviewTarget::UncommittedChanges, None, "current changes", &["staged", "unstaged", "untracked"]);
        let branch = || ReviewTarget::BaseBranch { branch: Some("main".into()) };
        check(branch(), Some("0123abcd"), "changes against 'main'", &["'main'", "git diff 0123abcd"]);
        check(branch(), None, "changes against 'main'", &["'main'", "git merge-base"]);
        let commit = |title: Option<&str>| ReviewTarget::Commit {
            sha: "abcdef0123456789".into(),
            title: title.map(str::to_owned),
        };
        check(commit(None), None, "commit abcdef0", &["commit abcdef0123456789."]);
        check(commit(Some("Fix")), None, "commit abcdef0: Fix", &["commit abcdef0123456789 (\"Fix\")"]);
    }

    #[test]
    fn custom_instructions_are_the_prompt() {
        let target = ReviewTarget::Custom { instructions: Some(" look at x\n".into()) };
        assert_eq!((review_hint(&target), review_prompt(&target, None)), ("look at x".into(), "look at x".into()));
    }

    #[test]
    fn the_review_instructions_name_every_field_that_is_parsed() {
        let json = &REVIEW_INSTRUCTIONS[REVIEW_INSTRUCTIONS.find("\n{\n").unwrap()..];
        let json = &json[..json.rfind("\n}\n").unwrap() + 3];
        let shape: serde_json::Value = serde_json::from_str(json).unwrap();
        let keys = |value: &serde_json::Value| -> Vec<_> { value.as_object().unwrap().keys().cloned().collect() };
        assert_eq!(
            keys(&shape),
            ["findings", "overall_correctness", "overall_explanation", "overall_confidence_score"]
        );
        let finding = &shape["findings"][0];
        assert_eq!(keys(finding), ["title", "body", "confidence_score", "priority", "code_location"]);
        assert_eq!(keys(&finding["code_location"]), ["absolute_file_path", "line_range"]);
    }

    #[test]
    fn the_report_distinguishes_finished_and_interrupted_reviews() {
        let report = review_report(ReviewOutcome::Finished("All good."));
        assert!(report.starts_with("<user_action>\n  <context>"), "{report}");
        assert!(
            report.ends_with("  <action>review</action>\n  <results>\n  All good.\n  </results>\n</user_action>"),
            "{report}"
        );
        assert!(review_report(ReviewOutcome::Interrupted).contains("  None.\n"));
    }
}
