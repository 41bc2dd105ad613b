//! What is wrong with the database, in one line that says what to do.

use std::error::Error as _;
use std::io::ErrorKind;

use deadpool_postgres::{HookError, TimeoutType};
use loomd_store::{Error, Failure};
use tokio_postgres::error::SqlState;

use crate::Address;

/// The oldest server that is supported, as `server_version_num` spells it.
const OLDEST: i32 = 130_000;

/// Makes errors that name the database.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    name: String,
    user: String,
}

impl Place {
    pub fn new(address: &Address) -> Self {
        Self { name: address.to_string(), user: address.user().to_owned() }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn error(&self, failure: Failure, reason: impl Into<String>) -> Error {
        Error::Storage { place: self.name.clone(), failure, reason: reason.into() }
    }

    /// An error of the client library.
    pub fn query(&self, error: &tokio_postgres::Error) -> Error {
        let (failure, reason) = explain(error, &self.user);
        self.error(failure, reason)
    }

    /// An error of the pool.
    pub fn pool(&self, error: &deadpool_postgres::PoolError) -> Error {
        match error {
            deadpool_postgres::PoolError::Backend(error)
            | deadpool_postgres::PoolError::PostCreateHook(HookError::Backend(error)) => self.query(error),
            deadpool_postgres::PoolError::PostCreateHook(HookError::Message(reason)) => {
                self.error(Failure::Unreachable, reason.clone())
            }
            deadpool_postgres::PoolError::Timeout(TimeoutType::Create | TimeoutType::Recycle) => {
                self.error(Failure::Unreachable, "the server does not answer")
            }
            deadpool_postgres::PoolError::Timeout(TimeoutType::Wait) => {
                // Nothing was sent: it may be tried again.
                self.error(Failure::Unreachable, "no free connection: all are in use, or the server does not answer")
            }
            other => self.error(Failure::Other, other.to_string()),
        }
    }

    /// A value in the database that this program did not write.
    pub fn corrupt(&self, what: &str, reason: impl std::fmt::Display) -> Error {
        self.error(Failure::Other, format!("unreadable {what}: {reason}"))
    }
}

/// Whether the connection was lost or not made, so that what was sent, if anything was, may have been done or not.
/// A server that shuts down may say so after it has committed.
pub(crate) fn is_lost(error: &tokio_postgres::Error) -> bool {
    if let Some(code) = error.code() {
        let shutdown = [
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::TOO_MANY_CONNECTIONS,
        ];
        return code.code().starts_with("08") || shutdown.contains(code);
    }
    match io_kind(error) {
        // No socket in the file system: the server is away.
        Some(ErrorKind::NotFound | ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset) => true,
        Some(ErrorKind::ConnectionAborted | ErrorKind::NotConnected | ErrorKind::BrokenPipe) => true,
        Some(ErrorKind::UnexpectedEof | ErrorKind::TimedOut | ErrorKind::Interrupted) => true,
        Some(ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable | ErrorKind::NetworkDown) => true,
        Some(_) => error.source().is_some_and(|cause| is_lookup(&cause.to_string())),
        None => error.is_closed() || error.to_string().starts_with("timeout"),
    }
}

fn io_kind(error: &tokio_postgres::Error) -> Option<ErrorKind> {
    error.source().and_then(|cause| cause.downcast_ref::<std::io::Error>()).map(std::io::Error::kind)
}

/// Whether the name of the host was not found; it has no kind of its own.
fn is_lookup(cause: &str) -> bool {
    cause.contains("lookup address")
}

fn explain(error: &tokio_postgres::Error, user: &str) -> (Failure, String) {
    let (failure, reason) = described(error, user);
    (if is_lost(error) { Failure::Unreachable } else { failure }, reason)
}

fn described(error: &tokio_postgres::Error, user: &str) -> (Failure, String) {
    let Some(server) = error.as_db_error() else {
        let (cause, kind) = (error.source().map(ToString::to_string), io_kind(error));
        let text = match cause {
            Some(cause) if cause.contains("does not support TLS") => {
                "the server does not offer TLS: configure it there, or use sslmode=disable".into()
            }
            Some(cause) if cause.contains("invalid peer certificate") => {
                format!("the server's certificate is not trusted ({cause}): name its authority with sslrootcert=FILE")
            }
            Some(cause) if cause.contains("password missing") => {
                format!("the server asks for a password of user \"{user}\": set PGPASSWORD or PGPASSFILE")
            }
            Some(cause) if is_lookup(&cause) => format!("unknown host: {cause}"),
            Some(cause) if kind == Some(ErrorKind::ConnectionRefused) => format!("no server listens there: {cause}"),
            Some(cause) if kind == Some(ErrorKind::NotFound) => format!("no server listens there: {cause}"),
            Some(cause) => format!("{error}: {cause}"),
            None if error.to_string().starts_with("timeout") => "the server does not answer".into(),
            None => error.to_string(),
        };
        return (Failure::Other, one_line(&text));
    };
    let message = server.message();
    let code = server.code();
    let (failure, text) = if *code == SqlState::INVALID_PASSWORD {
        (Failure::Denied, format!("wrong password for user \"{user}\""))
    } else if *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION && message.contains("no encryption") {
        (Failure::Denied, format!("the server requires TLS for user \"{user}\": use sslmode=require"))
    } else if *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION {
        (Failure::Denied, format!("the server refuses user \"{user}\": {message}"))
    } else if *code == SqlState::INSUFFICIENT_PRIVILEGE {
        (Failure::Denied, format!("user \"{user}\" lacks rights: {message}"))
    } else if *code == SqlState::INVALID_CATALOG_NAME {
        (Failure::Missing, format!("{message}: create it first"))
    } else if *code == SqlState::DISK_FULL {
        (Failure::Full, message.to_owned())
    } else if *code == SqlState::READ_ONLY_SQL_TRANSACTION {
        (Failure::Denied, format!("the server is read-only, perhaps a standby: {message}"))
    } else {
        (Failure::Other, format!("{message} ({})", code.code()))
    };
    (failure, one_line(&text))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Refuses servers that are too old. `number` and `name` are the server's version.
pub(crate) fn check_version(number: i32, name: &str) -> Result<(), String> {
    if number >= OLDEST { Ok(()) } else { Err(format!("PostgreSQL {name} is too old: 13 or newer is needed")) }
}

/// Refuses a schema that a newer program made.
pub(crate) fn check_schema(found: i32, known: i32) -> Result<(), String> {
    if found <= known {
        Ok(())
    } else {
        Err(format!("the schema has version {found}, and this program knows version {known}: use a newer loomd"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_server_is_refused_by_its_version() {
        assert_eq!(check_version(130_000, "13.0"), Ok(()));
        let refused = check_version(120_022, "12.22 (Debian)").unwrap_err();
        assert_eq!(refused, "PostgreSQL 12.22 (Debian) is too old: 13 or newer is needed");
    }

    #[test]
    fn a_newer_schema_is_refused() {
        assert_eq!(check_schema(1, 1), Ok(()));
        assert_eq!(
            check_schema(9, 1).unwrap_err(),
            "the schema has version 9, and this program knows version 1: use a newer loomd"
        );
    }
}
