//! Normalised hosts, so that all spellings of a host match the same entries of a list.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// A name or an address: lower case, without brackets, port or final dot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Host(String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a host name or address")]
pub struct HostError;

/// The longest DNS name.
const LONGEST: usize = 253;

impl Host {
    pub fn parse(text: &str) -> Result<Self, HostError> {
        if let Some(inside) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
            return inside.parse::<Ipv6Addr>().map(Into::into).map_err(|_| HostError);
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(address.into());
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let whole = !name.is_empty() && name.len() <= LONGEST && name.split('.').all(|label| !label.is_empty());
        if !whole || !name.chars().all(plain) {
            return Err(HostError);
        }
        Ok(Self(name.to_ascii_lowercase()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn address(&self) -> Option<IpAddr> {
        self.0.parse().ok()
    }

    /// The host and a port, with brackets around an IPv6 address.
    pub(crate) fn with_port(&self, port: u16) -> String {
        if self.0.contains(':') { format!("[{}]:{port}", self.0) } else { format!("{}:{port}", self.0) }
    }
}

impl From<Ipv6Addr> for Host {
    fn from(address: Ipv6Addr) -> Self {
        IpAddr::from(address).into()
    }
}

impl From<IpAddr> for Host {
    fn from(address: IpAddr) -> Self {
        // An IPv4-mapped IPv6 address is the same host as the IPv4 address.
        Self(address.to_canonical().to_string())
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hosts_are_normalised() {
        for (text, expected) in [
            ("Example.COM", Some("example.com")),
            ("example.com.", Some("example.com")),
            ("a_b.c-d", Some("a_b.c-d")),
            ("127.0.0.1", Some("127.0.0.1")),
            ("[::1]", Some("::1")),
            ("::1", Some("::1")),
            ("0:0:0:0:0:0:0:1", Some("::1")),
            ("[::ffff:127.0.0.1]", Some("127.0.0.1")),
            ("127.1", Some("127.1")),
            ("", None),
            (".", None),
            ("a..b", None),
            ("a b", None),
            ("a/b", None),
            ("*.a", None),
            ("[1.2.3.4]", None),
            ("[fe80::1%eth0]", None),
            ("é.com", None),
        ] {
            assert_eq!(Host::parse(text).ok().as_ref().map(Host::as_str), expected, "{text}");
        }
        assert_eq!(Host::parse("[::1]").unwrap().with_port(80), "[::1]:80");
        assert_eq!(Host::parse("a").unwrap().with_port(80), "a:80");
    }

    proptest! {
        #[test]
        fn normalising_a_host_twice_changes_nothing(text in ".{0,40}") {
            if let Ok(host) = Host::parse(&text) {
                prop_assert_eq!(Host::parse(host.as_str()), Ok(host.clone()));
                prop_assert!(!host.as_str().contains(char::is_whitespace));
            }
        }
    }
}
