//! Links and the sessions that they become, in one private file of the home. Every process of the home reads and changes
//! it under a lock, so a link can be made and a session revoked while a server runs. Secrets are stored as digests.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use thiserror::Error;

use crate::role::Role;

const FILE: &str = "loomd-console.json";
const LOCK: &str = "loomd-console.lock";

/// How long a link can be opened, in seconds.
const LINK_LIFE: u64 = 60 * 60;

/// More sessions than this are refused until some are revoked.
const MAX_GRANTS: usize = 256;

#[derive(Debug, Error)]
pub enum AccessError {
    #[error("cannot access {path}: {error}")]
    File { path: PathBuf, error: io::Error },
    #[error("invalid {path}: {error}; delete it to revoke all sessions of the console")]
    Invalid { path: PathBuf, error: serde_json::Error },
    #[error("no random numbers: {0}")]
    Random(getrandom::Error),
    #[error("too many sessions of the console; revoke some with `loomd console revoke ID`")]
    TooMany,
    #[error("no link or session of the console has the id `{0}`; `loomd console links` lists them")]
    Unknown(String),
}

/// A link that was not opened yet, or the session that it became.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    pub id: String,
    pub role: Role,
    /// Seconds since the epoch.
    pub created_at: u64,
    pub opened_at: Option<u64>,
    /// The SHA-256, in hex, of the link's code or of the session's secret.
    digest: String,
}

#[derive(Default, Serialize, Deserialize)]
struct Grants {
    grants: Vec<Grant>,
}

/// The links and sessions of a home.
#[derive(Clone, Debug)]
pub struct Access {
    home: PathBuf,
}

impl Access {
    pub fn new(home: impl AsRef<Path>) -> Self {
        Self { home: home.as_ref().to_owned() }
    }

    /// Makes a link; returns the code that its address ends with. It can be opened once, within an hour.
    pub fn create_link(&self, role: Role) -> Result<String, AccessError> {
        let (id, code) = (random(6)?, random(24)?);
        let grant = Grant { id, role, created_at: now(), opened_at: None, digest: digest(&code) };
        self.change(|grants| {
            grants.retain(|grant| grant.opened_at.is_some() || !is_expired(grant));
            if grants.len() >= MAX_GRANTS {
                return Err(AccessError::TooMany);
            }
            grants.push(grant);
            Ok(code)
        })
    }

    /// Opens a link: returns its session's role and cookie value. `None` for a code that is unknown, expired or used.
    pub fn open_link(&self, code: &str) -> Result<Option<(Role, String)>, AccessError> {
        let (presented, secret) = (digest(code), random(32)?);
        self.change(|grants| {
            let unopened = |grant: &&mut Grant| grant.opened_at.is_none() && !is_expired(grant);
            let found = grants.iter_mut().filter(unopened).find(|grant| is_same(&grant.digest, &presented));
            Ok(found.map(|grant| {
                grant.opened_at = Some(now());
                grant.digest = digest(&secret);
                (grant.role, format!("{}.{secret}", grant.id))
            }))
        })
    }

    /// Returns the session of a cookie value; `None` if there is none, or it was revoked.
    pub fn session(&self, cookie: &str) -> Result<Option<Grant>, AccessError> {
        let Some((id, secret)) = cookie.split_once('.') else { return Ok(None) };
        let presented = digest(secret);
        let of_cookie =
            |grant: &Grant| grant.opened_at.is_some() && grant.id == id && is_same(&grant.digest, &presented);
        Ok(self.read()?.grants.into_iter().find(of_cookie))
    }

    /// All sessions, and the links that can still be opened.
    pub fn list(&self) -> Result<Vec<Grant>, AccessError> {
        let mut all = self.read()?.grants;
        all.retain(|grant| grant.opened_at.is_some() || !is_expired(grant));
        Ok(all)
    }

    pub fn revoke(&self, id: &str) -> Result<(), AccessError> {
        self.change(|grants| {
            let before = grants.len();
            grants.retain(|grant| grant.id != id);
            if grants.len() == before { Err(AccessError::Unknown(id.to_owned())) } else { Ok(()) }
        })
    }

    pub fn revoke_all(&self) -> Result<usize, AccessError> {
        self.change(|grants| Ok(std::mem::take(grants).len()))
    }

    fn read(&self) -> Result<Grants, AccessError> {
        let path = self.home.join(FILE);
        match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| AccessError::Invalid { path, error }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Grants::default()),
            Err(error) => Err(AccessError::File { path, error }),
        }
    }

    /// Reads, changes and replaces the file under the lock. On an error it stays as it is.
    fn change<T>(&self, change: impl FnOnce(&mut Vec<Grant>) -> Result<T, AccessError>) -> Result<T, AccessError> {
        let _locked = lock(&self.home.join(LOCK))?;
        let mut all = self.read()?;
        let changed = change(&mut all.grants)?;
        let path = self.home.join(FILE);
        let text = serde_json::to_vec(&all).map_err(|error| AccessError::Invalid { path: path.clone(), error })?;
        loomd_private::replace(&path, text).map_err(|error| AccessError::File { path, error })?;
        Ok(changed)
    }
}

/// Held until the file is dropped.
fn lock(path: &Path) -> Result<File, AccessError> {
    let failed = |error| AccessError::File { path: path.to_owned(), error };
    if let Some(home) = path.parent() {
        loomd_private::create_dir_all(home).map_err(failed)?;
    }
    let file = loomd_private::options().create(true).truncate(false).write(true).open(path).map_err(failed)?;
    file.lock().map_err(failed)?;
    Ok(file)
}

fn is_expired(grant: &Grant) -> bool {
    now() > grant.created_at.saturating_add(LINK_LIFE)
}

fn random(bytes: usize) -> Result<String, AccessError> {
    let mut buffer = vec![0; bytes];
    getrandom::fill(&mut buffer).map_err(AccessError::Random)?;
    Ok(URL_SAFE_NO_PAD.encode(buffer))
}

fn digest(secret: &str) -> String {
    Sha256::digest(secret).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn is_same(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_opens_once_and_its_session_stays_until_it_is_revoked() {
        let home = tempfile::tempdir().unwrap();
        let access = Access::new(home.path());
        let code = access.create_link(Role::Approve).unwrap();
        assert_eq!(access.open_link("guess").unwrap(), None);
        let (role, cookie) = access.open_link(&code).unwrap().unwrap();
        assert_eq!(role, Role::Approve);
        assert_eq!(access.open_link(&code).unwrap(), None, "a second time");
        // As another process would.
        let access = Access::new(home.path());
        let session = access.session(&cookie).unwrap().unwrap();
        assert_eq!(session.role, Role::Approve);
        for wrong in ["", "x", &format!("{}.guess", session.id), &format!("{}.{code}", session.id)] {
            assert_eq!(access.session(wrong).unwrap(), None, "{wrong}");
        }
        access.revoke(&session.id).unwrap();
        assert_eq!(access.session(&cookie).unwrap(), None);
        assert!(matches!(access.revoke(&session.id), Err(AccessError::Unknown(_))));
    }

    #[test]
    fn a_link_that_was_not_opened_is_no_session() {
        let home = tempfile::tempdir().unwrap();
        let access = Access::new(home.path());
        let code = access.create_link(Role::Drive).unwrap();
        let id = access.list().unwrap()[0].id.clone();
        assert_eq!(access.session(&format!("{id}.{code}")).unwrap(), None);
    }

    #[test]
    fn an_old_link_cannot_be_opened() {
        let home = tempfile::tempdir().unwrap();
        let access = Access::new(home.path());
        let code = access.create_link(Role::Drive).unwrap();
        access
            .change(|grants| {
                grants[0].created_at -= LINK_LIFE + 1;
                Ok(())
            })
            .unwrap();
        assert_eq!(access.open_link(&code).unwrap(), None);
        assert_eq!(access.list().unwrap(), []);
    }

    #[test]
    fn the_file_holds_no_secret_and_only_its_owner_reads_it() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let access = Access::new(home.path());
        let code = access.create_link(Role::Drive).unwrap();
        let (_, cookie) = access.open_link(&code).unwrap().unwrap();
        let path = home.path().join(FILE);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains(&code) && !text.contains(cookie.split_once('.').unwrap().1), "{text}");
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn an_invalid_file_is_reported_and_kept() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join(FILE), "{").unwrap();
        let access = Access::new(home.path());
        assert!(matches!(access.create_link(Role::View), Err(AccessError::Invalid { .. })));
        assert_eq!(std::fs::read(home.path().join(FILE)).unwrap(), b"{");
    }
}
