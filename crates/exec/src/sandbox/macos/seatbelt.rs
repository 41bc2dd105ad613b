//! Confinement on macOS: the profile that `sandbox-exec` enforces. Everything is denied except what is named,
//! and of rules that match the last counts. Paths are parameters, so that nothing in them can be taken for rules.

use std::path::Path;

use crate::sandbox::Sandbox;
use crate::sandbox::layers::Layer;

/// The full path, so that `PATH` is not searched.
pub(super) const PROGRAM: &str = "/usr/bin/sandbox-exec";

/// Rules that programs need to run at all. None allows the network or access to files.
const BASE: &str = "(version 1)
(deny default)
(allow process-exec process-fork)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
(allow sysctl-read)
(allow pseudo-tty)
(allow ipc-posix-sem)
(allow mach-lookup (global-name \"com.apple.system.opendirectoryd.libinfo\"))
(allow file-ioctl (regex #\"^/dev/tty\"))
(allow file-write* (literal \"/dev/null\") (literal \"/dev/zero\") (literal \"/dev/tty\"))
(allow file-read* file-write* (regex #\"^/dev/ttys[0-9]+$\"))
";

/// Rules for the files that programs of the system have to read to start.
const ESSENTIALS: &str = "(allow file-read* (literal \"/\") (subpath \"/usr/lib\") (subpath \"/System\") \
                          (subpath \"/private/var/db/dyld\") (literal \"/dev/null\") (literal \"/dev/urandom\"))\n";

/// Rules for the network. The only unix socket is that of the DNS resolver.
const NETWORK: &str = "(allow network-outbound (remote ip) (literal \"/private/var/run/mDNSResponder\"))
(allow network-inbound (local ip))
(allow system-socket)
(allow mach-lookup (global-name \"com.apple.SystemConfiguration.configd\") (global-name \"com.apple.trustd.agent\"))
";

/// The words that go before those of a command to run it in a sandbox; `None` when a path is no text.
pub(super) fn words(sandbox: &Sandbox) -> Option<Vec<String>> {
    let mut text = Profile { rules: BASE.into(), parameters: Vec::new() };
    match &sandbox.readable {
        None => text.rules += "(allow file-read*)\n",
        Some(roots) => {
            text.rules += ESSENTIALS;
            for root in roots {
                text.rule("allow file-read*", &root.path)?;
            }
        }
    }
    // Outer roots come first, each with what is protected in it, so that an inner root takes precedence.
    for layer in sandbox.overlay() {
        match layer {
            Layer::Writable(root) => text.rule("allow file-read* file-write*", &root.path)?,
            Layer::Protected(path) => text.rule("deny file-write*", path)?,
            Layer::Concealed(concealed) => {
                text.rule("deny file-write*", &concealed.folder)?;
                for name in &concealed.names {
                    text.rule("deny file-read*", &concealed.folder.join(name))?;
                }
            }
            Layer::ReadOnly(path) => {
                text.rule("allow file-read*", path)?;
                text.rule("deny file-write*", path)?;
            }
            Layer::Closed(path) => text.rule("deny file-read* file-write*", path)?,
            Layer::Pinned(path) => text.literal("deny file-write-unlink", path)?,
        }
    }
    if sandbox.network {
        text.rules += NETWORK;
    }
    if sandbox.network && sandbox.unix_sockets {
        text.rules += "(allow network-outbound (remote unix-socket))\n";
    }
    let mut words = vec![PROGRAM.to_owned(), "-p".into(), text.rules];
    words.extend(text.parameters.into_iter().enumerate().map(|(number, path)| format!("-DPATH{number}={path}")));
    words.push("--".into());
    Some(words)
}

struct Profile {
    rules: String,
    parameters: Vec<String>,
}

impl Profile {
    /// Adds a rule about a path and everything in it. `None` for a path that is not UTF-8.
    fn rule(&mut self, effect: &str, path: &Path) -> Option<()> {
        self.add(effect, "subpath", path)
    }

    /// Adds a rule about a path alone.
    fn literal(&mut self, effect: &str, path: &Path) -> Option<()> {
        self.add(effect, "literal", path)
    }

    fn add(&mut self, effect: &str, extent: &str, path: &Path) -> Option<()> {
        let number = self.parameters.len();
        self.parameters.push(path.to_str()?.to_owned());
        self.rules += &format!("({effect} ({extent} (param \"PATH{number}\")))\n");
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::{Exception, ReadableRoot, WritableRoot};

    fn check(sandbox: &Sandbox, rules: &str, parameters: &[&str]) {
        let words = words(sandbox).unwrap();
        let profile = words[2].strip_prefix(BASE).unwrap();
        assert_eq!((words[0].as_str(), words[1].as_str(), profile), (PROGRAM, "-p", rules));
        assert_eq!(words[3..words.len() - 1], *parameters);
        assert_eq!(words.last().unwrap(), "--");
    }

    #[test]
    fn a_sandbox_is_translated_to_a_seatbelt_profile() {
        let mut sandbox = Sandbox::new_read_only(false);
        check(&sandbox, "(allow file-read*)\n", &[]);
        let inner = WritableRoot { path: "/w/in".into(), identity: None, protected: vec![], absent: vec![] };
        let outer = WritableRoot {
            path: "/w".into(),
            identity: None,
            protected: vec!["/w/.git".into()],
            absent: vec!["/w/.codex".into()],
        };
        sandbox.writable = vec![outer, inner];
        let writes = "(allow file-read* file-write* (subpath (param \"PATH0\")))\n\
                      (deny file-write* (subpath (param \"PATH1\")))\n\
                      (deny file-write* (subpath (param \"PATH2\")))\n\
                      (allow file-read* file-write* (subpath (param \"PATH3\")))\n";
        let paths = ["-DPATH0=/w", "-DPATH1=/w/.git", "-DPATH2=/w/.codex", "-DPATH3=/w/in"];
        check(&sandbox, &format!("(allow file-read*)\n{writes}"), &paths);
        sandbox.exceptions = vec![Exception { path: "/w/in/no".into(), identity: None, readable: false }];
        let closed = "(deny file-read* file-write* (subpath (param \"PATH4\")))\n";
        let more = [&paths[..], &["-DPATH4=/w/in/no"]].concat();
        check(&sandbox, &format!("(allow file-read*)\n{writes}{closed}"), &more);
        sandbox.exceptions.clear();
        sandbox.network = true;
        check(&sandbox, &format!("(allow file-read*)\n{writes}{NETWORK}"), &paths);
        sandbox.writable.clear();
        let root = ReadableRoot { name: "/bin".into(), path: "/usr/bin".into(), identity: None };
        sandbox.readable = Some(vec![root]);
        let reads = "(allow file-read* (subpath (param \"PATH0\")))\n";
        check(&sandbox, &format!("{ESSENTIALS}{reads}{NETWORK}"), &["-DPATH0=/usr/bin"]);
    }

    #[test]
    fn a_path_cannot_inject_a_seatbelt_rule() {
        let path = "/w\")) (allow default) (deny file-read* (subpath \"";
        let root = WritableRoot { path: path.into(), identity: None, protected: vec![], absent: vec![] };
        let sandbox = Sandbox { writable: vec![root], ..Sandbox::new_read_only(false) };
        let words = words(&sandbox).unwrap();
        assert!(!words[2].contains("allow default"));
        assert_eq!(words[3], format!("-DPATH0={path}"));
    }

    #[test]
    fn a_seatbelt_profile_denies_by_default_and_has_balanced_brackets() {
        let sandbox = Sandbox { readable: Some(vec![]), ..Sandbox::new_read_only(true) };
        let profile = &words(&sandbox).unwrap()[2];
        assert!(profile.starts_with("(version 1)\n(deny default)\n"));
        assert_eq!(profile.matches('(').count(), profile.matches(')').count());
    }
}
