//! Rules about hosts on the network. Enforced by the proxy of a command, not here.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkRule {
    pub host: String,
    pub protocol: NetworkProtocol,
    pub decision: NetworkDecision,
    pub justification: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkProtocol {
    Http,
    Https,
    Socks5Tcp,
    Socks5Udp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkDecision {
    Allow,
    Prompt,
    Deny,
}

impl NetworkProtocol {
    pub fn parse(name: &str) -> Result<Self, String> {
        match name {
            "http" => Ok(Self::Http),
            "https" | "https_connect" | "http-connect" => Ok(Self::Https),
            "socks5_tcp" => Ok(Self::Socks5Tcp),
            "socks5_udp" => Ok(Self::Socks5Udp),
            other => Err(format!(
                "invalid rule: network_rule protocol must be one of http, https, socks5_tcp, socks5_udp (got {other})"
            )),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Socks5Tcp => "socks5_tcp",
            Self::Socks5Udp => "socks5_udp",
        }
    }
}

impl NetworkDecision {
    pub fn parse(name: &str) -> Result<Self, String> {
        match name {
            "allow" => Ok(Self::Allow),
            "prompt" => Ok(Self::Prompt),
            "deny" | "forbidden" => Ok(Self::Deny),
            other => Err(format!("invalid decision: {other}")),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Prompt => "prompt",
            Self::Deny => "deny",
        }
    }
}

/// Normalises a host: lower case, without port and final dot.
pub(super) fn host(text: &str) -> Result<String, String> {
    let wrong = |what: &str| Err(format!("invalid rule: network_rule host {what}"));
    let text = text.trim();
    if text.chars().any(char::is_whitespace) {
        return wrong("cannot contain whitespace");
    }
    if text.contains('/') {
        return wrong("must be a hostname or IP literal (without scheme or path)");
    }
    if text.contains('*') {
        return wrong("must be a specific host; wildcards are not allowed");
    }
    let bare = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or(rest, |(address, _)| address),
        None => match text.split_once(':') {
            // More than one colon is an address, not a port.
            Some((host, port)) if !port.contains(':') => host,
            _ => text,
        },
    };
    let bare = bare.trim_end_matches('.').to_ascii_lowercase();
    if bare.is_empty() { wrong("cannot be empty") } else { Ok(bare) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_normalised() {
        for (text, expected) in [
            ("X.com:443", Ok("x.com")),
            ("x.com.", Ok("x.com")),
            ("[::1]:80", Ok("::1")),
            ("fe80::1", Ok("fe80::1")),
            ("", Err("invalid rule: network_rule host cannot be empty")),
            ("a b", Err("invalid rule: network_rule host cannot contain whitespace")),
            ("*.x.com", Err("invalid rule: network_rule host must be a specific host; wildcards are not allowed")),
            (
                "https://x.com",
                Err("invalid rule: network_rule host must be a hostname or IP literal (without scheme or path)"),
            ),
        ] {
            assert_eq!(host(text), expected.map(str::to_owned).map_err(str::to_owned), "{text}");
        }
    }
}
