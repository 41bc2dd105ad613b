//! The secret that nodes authenticate to each other with.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use thiserror::Error;

/// The shortest secret.
const SHORTEST: usize = 16;

/// The longest file that is read.
const LONGEST: u64 = 4096;

/// A secret that all nodes have. Has no Debug on purpose.
#[derive(Clone)]
pub struct NodeToken(String);

/// Why a file has no secret.
#[derive(Debug, Error)]
pub enum BadToken {
    #[error("failed to read the node token {}: {error}", path.display())]
    Unreadable { path: PathBuf, error: std::io::Error },
    #[error("the node token {} must be readable by its owner only (chmod 600)", .0.display())]
    Exposed(PathBuf),
    #[error("the node token {} must have at least {SHORTEST} printable ASCII characters and no spaces", .0.display())]
    Unusable(PathBuf),
}

impl NodeToken {
    /// The secret in a file, without the white space around it.
    pub fn read(path: &Path) -> Result<Self, BadToken> {
        use std::os::unix::fs::MetadataExt;
        let unreadable = |error| BadToken::Unreadable { path: path.to_owned(), error };
        let bytes = loomd_regular::read(path, LONGEST).map_err(unreadable)?;
        if std::fs::metadata(path).map_err(unreadable)?.mode() & 0o077 != 0 {
            return Err(BadToken::Exposed(path.to_owned()));
        }
        let token = String::from_utf8_lossy(&bytes).trim().to_owned();
        if token.len() < SHORTEST || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(BadToken::Unusable(path.to_owned()));
        }
        Ok(Self(token))
    }

    /// As it is sent.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether another node has the same secret.
    pub(crate) fn is(&self, presented: &str) -> bool {
        let digest = |text: &str| Sha256::digest(text.as_bytes());
        digest(&self.0).ct_eq(&digest(presented)).into()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_token_that_others_can_read_or_guess_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let read = |text: &str, mode| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            NodeToken::read(&path)
        };
        assert!(read("0123456789abcdef\n", 0o600).is_ok_and(|token| token.is("0123456789abcdef") && !token.is("0")));
        assert!(matches!(read("0123456789abcdef", 0o640), Err(BadToken::Exposed(_))));
        assert!(matches!(read("short", 0o600), Err(BadToken::Unusable(_))));
        assert!(matches!(read("0123456789 abcdef", 0o600), Err(BadToken::Unusable(_))));
        assert!(matches!(NodeToken::read(&folder.path().join("none")), Err(BadToken::Unreadable { .. })));
    }
}
