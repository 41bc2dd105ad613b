//! Variables that keep `git` from starting programs that a repository or the user's environment names, for commands
//! that need no approval because they are known to be read-only.

use std::collections::BTreeMap;

/// Configuration that takes precedence over every file.
const CONFIGURATION: &[(&str, &str)] = &[
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("log.showSignature", "false"),
    ("safe.bareRepository", "explicit"),
];

const VARIABLES: &[(&str, &str)] = &[
    ("GIT_NO_LAZY_FETCH", "1"),
    // Reading must not write the index.
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_PAGER", "cat"),
];

/// Changes the variables of a command so that `git` starts no monitor, hook, pager, fetch or external diff.
pub fn restrain_git(env: &mut BTreeMap<String, String>) {
    env.remove("GIT_EXTERNAL_DIFF");
    for (name, value) in VARIABLES {
        env.insert((*name).into(), (*value).into());
    }
    // Entries of the user come first: of several values git uses the last.
    let count: usize = env.get("GIT_CONFIG_COUNT").and_then(|count| count.parse().ok()).unwrap_or(0);
    for (index, (key, value)) in CONFIGURATION.iter().enumerate() {
        env.insert(format!("GIT_CONFIG_KEY_{}", count + index), (*key).into());
        env.insert(format!("GIT_CONFIG_VALUE_{}", count + index), (*value).into());
    }
    env.insert("GIT_CONFIG_COUNT".into(), (count + CONFIGURATION.len()).to_string());
}
