//! The environment of a command: the user's policy, applied in a fixed order, and the variables that are always set.

use std::collections::BTreeSet;

use loomd_config::config_toml::{Inherit, ShellEnvironmentPolicy};

use crate::Environment;

/// The command whose environment is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EnvironmentRequest<'a> {
    /// Absent for commands that belong to no thread.
    pub thread_id: Option<&'a str>,
    /// Whether the sandbox keeps the command from the network.
    pub network_disabled: bool,
    /// Whether the command runs in a session whose output a model reads. Pagers and colours are then turned off.
    pub session: bool,
    /// Variables with credentials of the server, which a sandboxed command only gets if the policy sets them.
    pub withheld: Option<&'a BTreeSet<String>>,
}

pub const THREAD_ID: &str = "CODEX_THREAD_ID";
pub const NETWORK_DISABLED: &str = "CODEX_SANDBOX_NETWORK_DISABLED";

/// The names that `inherit = "core"` keeps.
const CORE: &[&str] = &["HOME", "LOGNAME", "PATH", "SHELL", "USER", "USERNAME", "TMPDIR", "TEMP", "TMP"];
/// Patterns of names that are excluded as secrets.
const SECRETS: &[&str] = &["*KEY*", "*SECRET*", "*TOKEN*"];

/// Forced on commands of a session.
pub const SESSION: &[(&str, &str)] = &[
    ("NO_COLOR", "1"),
    ("TERM", "dumb"),
    ("LANG", "C.UTF-8"),
    ("LC_CTYPE", "C.UTF-8"),
    ("LC_ALL", "C.UTF-8"),
    ("COLORTERM", ""),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GH_PAGER", "cat"),
    ("CODEX_CI", "1"),
];

/// The environment of a command, starting from the server's.
pub fn environment(server: &Environment, policy: &ShellEnvironmentPolicy, request: EnvironmentRequest) -> Environment {
    let mut env = server.clone();
    match policy.inherit.unwrap_or_default() {
        Inherit::All => {}
        Inherit::Core => env.0.retain(|name, _| CORE.iter().any(|core| core == name)),
        Inherit::None => env.0.clear(),
    }
    env.0.retain(|name, _| !is_excluded(policy, name));
    if let Some(withheld) = request.withheld {
        env.0.retain(|name, _| !withheld.contains(name));
    }
    for (name, value) in policy.set.iter().flatten() {
        env.set(name, value);
    }
    env.0.retain(|name, _| is_included(policy, name));
    if let Some(id) = request.thread_id {
        env.set(THREAD_ID, id);
    }
    if request.network_disabled {
        env.set(NETWORK_DISABLED, "1");
    }
    if request.session {
        for (name, value) in SESSION {
            env.set(*name, *value);
        }
    }
    env
}

/// Whether a command may have a variable of this name from another source than the server's environment and the policy:
/// not one that the policy excludes or does not include.
pub(crate) fn permits(policy: &ShellEnvironmentPolicy, name: &str) -> bool {
    let set = policy.set.as_ref().is_some_and(|set| set.contains_key(name));
    (set || !is_excluded(policy, name)) && is_included(policy, name)
}

fn is_excluded(policy: &ShellEnvironmentPolicy, name: &str) -> bool {
    let secret = policy.ignore_default_excludes == Some(false) && SECRETS.iter().any(|secret| matches(secret, name));
    secret || policy.exclude.iter().flatten().any(|pattern| matches(pattern, name))
}

fn is_included(policy: &ShellEnvironmentPolicy, name: &str) -> bool {
    let only = policy.include_only.as_ref().filter(|only| !only.is_empty());
    only.is_none_or(|only| only.iter().any(|pattern| matches(pattern, name)))
}

/// Whether a name matches a pattern of `*` and `?`, ignoring case.
fn matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.to_lowercase().chars().collect();
    let name: Vec<char> = name.to_lowercase().chars().collect();
    let (mut p, mut n) = (0, 0);
    // Where to continue when the last star has to match one more character.
    let mut retry = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                retry = Some((p + 1, n + 1));
                p += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match retry {
                Some((after, next)) => {
                    (p, n) = (after, next);
                    retry = Some((after, next + 1));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SERVER: &[(&str, &str)] =
        &[("HOME", "/h"), ("PATH", "/bin"), ("AAA", "1"), ("MY_KEY", "k"), ("my_token", "t"), ("OTHER", "o")];

    fn check(policy: &str, request: EnvironmentRequest, expected: &[&str]) {
        let policy: ShellEnvironmentPolicy = toml::from_str(policy).unwrap();
        let env = environment(&SERVER.iter().copied().collect(), &policy, request);
        let pairs: Vec<_> = env.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(pairs, expected, "{policy:?}");
    }

    #[test]
    fn the_policy_is_applied_in_order() {
        let all = ["AAA=1", "HOME=/h", "MY_KEY=k", "OTHER=o", "PATH=/bin", "my_token=t"];
        let plain = EnvironmentRequest::default();
        check("", plain, &all);
        check("inherit = 'all'\nignore_default_excludes = true", plain, &all);
        check("inherit = 'core'", plain, &["HOME=/h", "PATH=/bin"]);
        check("inherit = 'none'", plain, &[]);
        check("ignore_default_excludes = false", plain, &["AAA=1", "HOME=/h", "OTHER=o", "PATH=/bin"]);
        check("exclude = ['my_*', '?AA']", plain, &["HOME=/h", "OTHER=o", "PATH=/bin"]);
        check("inherit = 'none'\nexclude = ['*']\nset = { NEW = 'n' }", plain, &["NEW=n"]);
        check("inherit = 'none'\nignore_default_excludes = false\nset = { A_KEY = 'n' }", plain, &["A_KEY=n"]);
        check("include_only = ['path', 'a*']\nset = { NEW = 'n', AAA = '2' }", plain, &["AAA=2", "PATH=/bin"]);
        check("include_only = []", plain, &all);
    }

    #[test]
    fn variables_of_the_server_are_set_whatever_the_policy_excludes() {
        let thread =
            EnvironmentRequest { thread_id: Some("T"), network_disabled: true, ..EnvironmentRequest::default() };
        let expected = ["AAA=1", "CODEX_SANDBOX_NETWORK_DISABLED=1", "CODEX_THREAD_ID=T"];
        check("include_only = ['AAA']", thread, &expected);
        let session = EnvironmentRequest { session: true, ..EnvironmentRequest::default() };
        let expected = [
            "CODEX_CI=1",
            "COLORTERM=",
            "GH_PAGER=cat",
            "GIT_PAGER=cat",
            "LANG=C.UTF-8",
            "LC_ALL=C.UTF-8",
            "LC_CTYPE=C.UTF-8",
            "NO_COLOR=1",
            "PAGER=cat",
            "TERM=dumb",
        ];
        check("inherit = 'none'\nset = { TERM = 'xterm' }", session, &expected);
    }

    #[test]
    fn credentials_are_withheld_unless_the_policy_sets_them() {
        let withheld = ["MY_KEY", "OTHER"].map(str::to_owned).into();
        let sandboxed = EnvironmentRequest { withheld: Some(&withheld), ..EnvironmentRequest::default() };
        check("", sandboxed, &["AAA=1", "HOME=/h", "PATH=/bin", "my_token=t"]);
        check("inherit = 'none'\nset = { MY_KEY = 'mine' }", sandboxed, &["MY_KEY=mine"]);
    }

    #[test]
    fn a_variable_pattern_matches_star_and_question_mark() {
        for (pattern, name, expected) in [
            ("", "", true),
            ("", "A", false),
            ("*", "", true),
            ("A*", "abc", true),
            ("*C", "abC", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("?", "", false),
            ("a?c", "ABC", true),
            ("[a]", "a", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    proptest! {
        #[test]
        fn a_pattern_with_a_star_for_part_of_a_name_matches_it(name in "[A-Z_]{0,12}", from in 0usize..12, to in 0usize..12) {
            let from = from.min(name.len());
            let to = to.clamp(from, name.len());
            let pattern = format!("{}*{}", &name[..from], &name[to..]);
            prop_assert!(matches(&pattern, &name), "{} {}", pattern, name);
        }
    }
}
