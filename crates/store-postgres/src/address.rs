//! Where a database is: a `postgres://` URL, taken apart.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use tokio_postgres::config::{Host, SslMode};

/// How long a connection may take to be made, unless the URL says otherwise.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection over the network whose other end is silent for about so long is lost.
const LOST: Duration = Duration::from_secs(15);

/// The address of a database. Shown without its password.
#[derive(Clone)]
pub struct Address {
    pub(crate) config: tokio_postgres::Config,
    /// A file of certificates that are trusted besides the system's.
    pub(crate) root_certificates: Option<PathBuf>,
}

/// An address that cannot be used. The text does not repeat the URL, which may hold a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid store address: {0}")]
pub struct BadAddress(String);

impl Address {
    /// Whether a text is the URL of a database, rather than a path.
    pub fn is_url(text: &str) -> bool {
        text.starts_with("postgres://") || text.starts_with("postgresql://")
    }

    /// Whether the URL holds a password.
    pub fn has_password(&self) -> bool {
        self.config.get_password().is_some()
    }

    /// The same address with a password.
    #[must_use]
    pub fn with_password(mut self, password: &str) -> Self {
        self.config.password(password);
        self
    }

    /// The host, port, database and user, as a password file names them.
    pub(crate) fn parts(&self) -> [String; 4] {
        let host = match self.config.get_hosts().first() {
            Some(Host::Tcp(host)) => host.clone(),
            _ => "localhost".into(),
        };
        [host, self.port().to_string(), self.database().to_owned(), self.user().to_owned()]
    }

    /// The user that the connections are made as.
    pub(crate) fn user(&self) -> &str {
        self.config.get_user().unwrap_or("postgres")
    }

    fn database(&self) -> &str {
        self.config.get_dbname().unwrap_or_else(|| self.user())
    }

    fn port(&self) -> u16 {
        self.config.get_ports().first().copied().unwrap_or(5432)
    }

    /// The name of the first host that is reached over the network.
    pub(crate) fn network_host(&self) -> Option<&str> {
        self.config.get_hosts().iter().find_map(|host| match host {
            Host::Tcp(host) => Some(host.as_str()),
            #[allow(unreachable_patterns, reason = "other platforms have no unix sockets")]
            _ => None,
        })
    }

    pub(crate) fn wants_tls(&self) -> bool {
        self.network_host().is_some() && self.config.get_ssl_mode() != SslMode::Disable
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = match self.config.get_hosts().first() {
            Some(Host::Tcp(host)) => host.clone(),
            Some(Host::Unix(path)) => path.display().to_string(),
            None => "localhost".into(),
        };
        write!(f, "postgres://{}@{host}:{}/{}", self.user(), self.port(), self.database())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Address {
    type Err = BadAddress;

    /// Besides what the client library knows, `sslmode` may be `verify-ca` or `verify-full`, which mean `require`:
    /// certificates are always verified. `sslrootcert` names a file of further trusted certificates.
    fn from_str(url: &str) -> Result<Self, BadAddress> {
        if !Self::is_url(url) {
            return Err(BadAddress("expected postgres://USER@HOST:PORT/DATABASE".into()));
        }
        let (base, query) = url.split_once('?').map_or((url, ""), |(base, query)| (base, query));
        let (mut kept, mut root_certificates) = (Vec::new(), None);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("sslrootcert", path)) => root_certificates = Some(decoded(path)?),
                Some(("sslmode", "verify-ca" | "verify-full")) => kept.push("sslmode=require"),
                _ => kept.push(pair),
            }
        }
        let url = if kept.is_empty() { base.to_owned() } else { format!("{base}?{}", kept.join("&")) };
        let mut config: tokio_postgres::Config = url.parse().map_err(|error| BadAddress(reason(&error)))?;
        if config.get_hosts().is_empty() {
            return Err(BadAddress("no host: add one, or ?host=/path/of/the/socket/folder".into()));
        }
        if config.get_user().is_none() {
            return Err(BadAddress("no user: expected postgres://USER@HOST/DATABASE".into()));
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(LOST);
        }
        config.keepalives_idle(LOST).keepalives_interval(LOST / 3).keepalives_retries(3);
        config.application_name("loomd");
        // A unix socket has no TLS.
        if !config.get_hosts().iter().any(|host| matches!(host, Host::Tcp(_))) {
            config.ssl_mode(SslMode::Disable);
        }
        Ok(Self { config, root_certificates })
    }
}

/// The library's error with its cause, in one line.
fn reason(error: &tokio_postgres::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => cause.to_string(),
        None => error.to_string(),
    }
}

/// A path out of a URL.
fn decoded(text: &str) -> Result<PathBuf, BadAddress> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, others)) = rest.split_first() {
        rest = others;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.ok_or_else(|| BadAddress("`sslrootcert` has a bad % escape".into()))?);
        rest = &rest[2..];
    }
    let text = String::from_utf8(bytes).map_err(|_| BadAddress("`sslrootcert` is not UTF-8".into()))?;
    Ok(Path::new(&text).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        let address: Address = "postgres://ann:secret@db.example:5433/work?sslmode=verify-full".parse().unwrap();
        assert_eq!(address.to_string(), "postgres://ann@db.example:5433/work");
        assert!(!format!("{address:?}").contains("secret") && address.has_password() && address.wants_tls());
        assert_eq!(address.parts(), ["db.example", "5433", "work", "ann"]);
        let socket: Address = "postgresql://ann@/work?host=/run/pg&sslrootcert=/a%20b.pem".parse().unwrap();
        assert_eq!(socket.to_string(), "postgres://ann@/run/pg:5432/work");
        assert_eq!(socket.root_certificates.as_deref(), Some(Path::new("/a b.pem")));
        assert!(!socket.wants_tls() && !socket.has_password());
    }

    #[test]
    fn a_bad_address_is_explained_without_repeating_it() {
        for (url, words) in [
            ("mysql://x", "expected postgres://"),
            ("postgres:///work", "no host"),
            ("postgres://host/work", "no user"),
            ("postgres://a:secret@host/work?nonsense=1", "nonsense"),
            ("postgres://a:secret@host:port/work", "port"),
            ("postgres://a:secret@host/work?sslrootcert=%zz", "sslrootcert"),
        ] {
            let error = url.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains(words) && !error.contains("secret"), "{url}: {error}");
        }
    }
}
