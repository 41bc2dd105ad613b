//! Variables that keep `git` from starting what a repository or the user's environment names, for commands that
//! run unasked because they are known to change nothing.

use crate::Environment;

/// Configuration that outranks every file.
const CONFIGURATION: &[(&str, &str)] = &[
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("log.showSignature", "false"),
    ("safe.bareRepository", "explicit"),
];

const VARIABLES: &[(&str, &str)] = &[
    ("GIT_NO_LAZY_FETCH", "1"),
    // Looking must not write the index either.
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_PAGER", "cat"),
];

impl Environment {
    /// Keeps `git` from starting monitors, hooks, pagers, fetches and external diffs.
    pub fn restrain_git(&mut self) {
        self.0.remove("GIT_EXTERNAL_DIFF");
        for (name, value) in VARIABLES {
            self.set(*name, *value);
        }
        // The user's own come first, so that these count.
        let count: usize = self.get("GIT_CONFIG_COUNT").and_then(|count| count.parse().ok()).unwrap_or(0);
        for (index, (key, value)) in CONFIGURATION.iter().enumerate() {
            self.set(format!("GIT_CONFIG_KEY_{}", count + index), *key);
            self.set(format!("GIT_CONFIG_VALUE_{}", count + index), *value);
        }
        self.set("GIT_CONFIG_COUNT", (count + CONFIGURATION.len()).to_string());
    }
}
