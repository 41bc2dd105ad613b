//! Makes a validated policy of the `--ws-*` flags.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// `--ws-auth`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    CapabilityToken,
    SignedBearerToken,
}

/// The `--ws-*` flags as they were given.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    pub mode: Option<Mode>,
    pub token_file: Option<PathBuf>,
    pub token_sha256: Option<String>,
    pub shared_secret_file: Option<PathBuf>,
    pub issuer: Option<String>,
    pub audience: Option<String>,
    pub max_clock_skew_seconds: Option<u64>,
    pub allow_unauthenticated: bool,
}

/// The authentication that an upgrade request needs. The secrets are still in their files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Policy {
    /// None; only processes of the same user may connect.
    Open,
    /// None, for any user: `--allow-unauthenticated`.
    OpenToAll,
    CapabilityToken(Token),
    SignedBearerToken {
        secret_file: PathBuf,
        issuer: Option<String>,
        audience: Option<String>,
        skew_seconds: i64,
    },
}

impl Policy {
    /// Whether the secret is in a file, which can change.
    pub fn has_secret_file(&self) -> bool {
        matches!(self, Self::CapabilityToken(Token::File(_)) | Self::SignedBearerToken { .. })
    }
}

/// Where the capability token comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    File(PathBuf),
    /// Only its digest is known here.
    Sha256([u8; 32]),
}

#[derive(Debug, Error)]
pub enum AuthError {
    #[error("websocket auth flags require `--ws-auth capability-token` or `--ws-auth signed-bearer-token`")]
    NoMode,
    #[error("`--allow-unauthenticated` and `--ws-auth` exclude each other")]
    TwoAnswers,
    #[error("`--ws-token-file` is required when `--ws-auth capability-token` is set")]
    NoToken,
    #[error("`--ws-token-file` and `--ws-token-sha256` exclude each other")]
    TwoTokens,
    #[error("`--ws-token-sha256` must be 64 hexadecimal digits")]
    BadDigest,
    #[error(
        "`--ws-shared-secret-file`, `--ws-issuer`, `--ws-audience`, and `--ws-max-clock-skew-seconds` require `--ws-auth signed-bearer-token`"
    )]
    SignedOnly,
    #[error("`--ws-shared-secret-file` is required when `--ws-auth signed-bearer-token` is set")]
    NoSecret,
    #[error("`{0}` requires `--ws-auth capability-token`, not `signed-bearer-token`")]
    TokenOnly(&'static str),
    #[error("websocket auth clock skew must fit in a signed 64-bit integer")]
    Skew,
    #[error("failed to read websocket auth secret {}: {error}", path.display())]
    Unreadable { path: PathBuf, error: std::io::Error },
    #[error("websocket auth secret {} must not be empty", .0.display())]
    Empty(PathBuf),
    #[error("signed websocket bearer secret {} must be at least 32 bytes", .0.display())]
    Short(PathBuf),
}

impl Flags {
    /// Validates the flags. Files are not read.
    pub fn policy(&self) -> Result<Policy, AuthError> {
        let signed_only = self.shared_secret_file.is_some()
            || self.issuer.is_some()
            || self.audience.is_some()
            || self.max_clock_skew_seconds.is_some();
        match self.mode {
            None if signed_only || self.token_file.is_some() || self.token_sha256.is_some() => Err(AuthError::NoMode),
            None if self.allow_unauthenticated => Ok(Policy::OpenToAll),
            None => Ok(Policy::Open),
            Some(_) if self.allow_unauthenticated => Err(AuthError::TwoAnswers),
            Some(Mode::CapabilityToken) => {
                if signed_only {
                    return Err(AuthError::SignedOnly);
                }
                Ok(Policy::CapabilityToken(match (&self.token_file, &self.token_sha256) {
                    (Some(file), None) => Token::File(file.clone()),
                    (None, Some(digest)) => Token::Sha256(parse_digest(digest).ok_or(AuthError::BadDigest)?),
                    (None, None) => return Err(AuthError::NoToken),
                    (Some(_), Some(_)) => return Err(AuthError::TwoTokens),
                }))
            }
            Some(Mode::SignedBearerToken) => {
                if self.token_file.is_some() {
                    return Err(AuthError::TokenOnly("--ws-token-file"));
                }
                if self.token_sha256.is_some() {
                    return Err(AuthError::TokenOnly("--ws-token-sha256"));
                }
                Ok(Policy::SignedBearerToken {
                    secret_file: self.shared_secret_file.clone().ok_or(AuthError::NoSecret)?,
                    issuer: not_blank(self.issuer.as_deref()),
                    audience: not_blank(self.audience.as_deref()),
                    skew_seconds: self.max_clock_skew_seconds.unwrap_or(30).try_into().map_err(|_| AuthError::Skew)?,
                })
            }
        }
    }
}

fn not_blank(text: Option<&str>) -> Option<String> {
    text.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn parse_digest(hex: &str) -> Option<[u8; 32]> {
    let hex = hex.trim().as_bytes();
    let mut digest = [0; 32];
    if hex.len() != 64 {
        return None;
    }
    for (byte, pair) in digest.iter_mut().zip(hex.chunks_exact(2)) {
        let digit = |c: u8| char::from(c).to_digit(16);
        *byte = u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok()?;
    }
    Some(digest)
}

/// A secret from a file, without the white space around it.
pub(super) fn read_secret(path: &Path) -> Result<Vec<u8>, AuthError> {
    let text = std::fs::read_to_string(path).map_err(|error| AuthError::Unreadable { path: path.to_owned(), error })?;
    let secret = text.trim();
    if secret.is_empty() {
        return Err(AuthError::Empty(path.to_owned()));
    }
    warn_if_exposed(path);
    Ok(secret.as_bytes().to_vec())
}

fn warn_if_exposed(path: &Path) {
    use std::os::unix::fs::MetadataExt;
    if std::fs::metadata(path).is_ok_and(|metadata| metadata.mode() & 0o077 != 0) {
        tracing::warn!(path = %path.display(), "a websocket secret can be read by other users");
    }
}
