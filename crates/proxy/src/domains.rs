//! Lists of hosts: by name, by everything below a name (`*.x`), by a name and everything below it (`**.x`), or by a
//! pattern of `*`, `?` and `[…]`. The denied list takes precedence.

use std::collections::HashSet;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::host::Host;

#[derive(Clone, Debug, Default)]
pub struct Domains {
    allowed: PatternList,
    denied: PatternList,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid network domain `{pattern}`: {problem}")]
pub struct PatternError {
    pub pattern: String,
    pub problem: String,
}

/// The match of a host in the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListMatch {
    Denied,
    /// Allowed by its full name.
    ByName,
    Allowed,
    Nowhere,
}

impl Domains {
    pub fn new<'a>(
        allowed: impl IntoIterator<Item = &'a str>,
        denied: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, PatternError> {
        Ok(Self { allowed: PatternList::new(allowed)?, denied: PatternList::new(denied)? })
    }

    pub(crate) fn find(&self, host: &Host) -> ListMatch {
        if self.denied.names.contains(host.as_str()) || self.denied.patterns.is_match(host.as_str()) {
            return ListMatch::Denied;
        }
        match self.allowed.names.contains(host.as_str()) {
            true => ListMatch::ByName,
            false if self.allowed.patterns.is_match(host.as_str()) => ListMatch::Allowed,
            false => ListMatch::Nowhere,
        }
    }
}

#[derive(Clone, Debug, Default)]
struct PatternList {
    names: HashSet<String>,
    patterns: GlobSet,
}

impl PatternList {
    fn new<'a>(written: impl IntoIterator<Item = &'a str>) -> Result<Self, PatternError> {
        let mut names = HashSet::new();
        let mut patterns = GlobSetBuilder::new();
        for pattern in written {
            let wrong = |problem: String| PatternError { pattern: pattern.into(), problem };
            let text = without_port(pattern.trim()).to_ascii_lowercase();
            if let Ok(host) = Host::parse(&text) {
                names.insert(host.as_str().to_owned());
                continue;
            }
            if text.is_empty() || text.contains(['/', ':', '{', '\\', '!']) || text.contains(char::is_whitespace) {
                return Err(wrong("it must be a host, or a pattern like `*.example.com` or `**.example.com`".into()));
            }
            let text = text.strip_suffix('.').unwrap_or(&text);
            let (apex, glob) = match text.strip_prefix("**.") {
                Some(apex) => (Some(apex), format!("*.{apex}")),
                None => (None, text.to_owned()),
            };
            for glob in apex.iter().copied().chain([glob.as_str()]) {
                let glob = GlobBuilder::new(glob).literal_separator(false).build();
                patterns.add(glob.map_err(|error| wrong(error.kind().to_string()))?);
            }
        }
        let problem = |error: globset::Error| PatternError { pattern: String::new(), problem: error.to_string() };
        Ok(Self { names, patterns: patterns.build().map_err(problem)? })
    }
}

/// Removes a port, which lists ignore.
fn without_port(text: &str) -> &str {
    match text.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() && (!host.contains(':') || host.ends_with(']')) => host,
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(allowed: &[&str], denied: &[&str], expected: &[(&str, ListMatch)]) {
        let domains = Domains::new(allowed.iter().copied(), denied.iter().copied()).unwrap();
        for (host, expected) in expected {
            assert_eq!(domains.find(&Host::parse(host).unwrap()), *expected, "{host} {allowed:?} {denied:?}");
        }
    }

    use ListMatch::{Allowed, ByName, Denied, Nowhere};

    #[test]
    fn domain_patterns_match_names_and_subdomains() {
        check(
            &["*.foo.test", "**.bar.test", "baz.test", "*.Up.TEST", "trail.test.", "port.test:80"],
            &["deny.bar.test"],
            &[
                ("foo.test", Nowhere),
                ("a.foo.test", Allowed),
                ("a.b.foo.test", Allowed),
                ("xfoo.test", Nowhere),
                ("bar.test", Allowed),
                ("a.bar.test", Allowed),
                ("xbar.test", Nowhere),
                ("deny.bar.test", Denied),
                ("baz.test", ByName),
                ("BAZ.test.", ByName),
                ("x.baz.test", Nowhere),
                ("a.up.test", Allowed),
                ("trail.test", ByName),
                ("port.test", ByName),
            ],
        );
        check(
            &["*"],
            &["bad.test", "*.evil.test"],
            &[
                ("x.test", Allowed),
                ("bad.test", Denied),
                ("a.bad.test", Allowed),
                ("evil.test", Allowed),
                ("a.evil.test", Denied),
            ],
        );
        check(
            &["a?.test", "b[12].test", "c*.test"],
            &[],
            &[
                ("ab.test", Allowed),
                ("abc.test", Nowhere),
                ("b1.test", Allowed),
                ("b3.test", Nowhere),
                ("c.d.test", Allowed),
            ],
        );
        check(&["127.0.0.1", "::1", "localhost"], &["*"], &[("127.0.0.1", Denied)]);
        check(
            &["127.0.0.1", "[::1]:80"],
            &[],
            &[("::ffff:127.0.0.1", ByName), ("[::1]", ByName), ("127.1", Nowhere), ("localhost", Nowhere)],
        );
    }

    #[test]
    fn an_invalid_domain_pattern_is_refused() {
        for pattern in ["", "https://a.com/x", "a b", "[", "a{b,c}", "a/b"] {
            assert!(Domains::new([pattern], []).is_err(), "{pattern}");
            assert!(Domains::new([], [pattern]).is_err(), "{pattern}");
        }
    }

    proptest! {
        #[test]
        fn no_domain_pattern_panics(pattern in ".{0,20}", host in "[a-z.]{1,20}") {
            if let (Ok(domains), Ok(host)) = (Domains::new([pattern.as_str()], [pattern.as_str()]), Host::parse(&host)) {
                // A host on both lists is denied.
                prop_assert!(matches!(domains.find(&host), Denied | Nowhere));
            }
        }

        #[test]
        fn a_subdomain_pattern_does_not_match_the_name_itself(name in "[a-z]{1,8}(\\.[a-z]{1,8}){0,2}", below in "[a-z]{1,8}") {
            let domains = Domains::new([format!("*.{name}").as_str()], []).unwrap();
            prop_assert_eq!(domains.find(&Host::parse(&name).unwrap()), Nowhere);
            prop_assert_eq!(domains.find(&Host::parse(&format!("{below}.{name}")).unwrap()), Allowed);
            prop_assert_eq!(domains.find(&Host::parse(&format!("{below}{name}")).unwrap()), Nowhere);
        }
    }
}
