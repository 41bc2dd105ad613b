//! The credentials of `auth.json` as they stand there: a key, or the tokens of a sign-in with ChatGPT. Tokens
//! are not refreshed here.

use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use loomd_config::Secret;
use serde::Deserialize;

use super::{Bearer, BearerKind, BoxFuture, Credentials};
use crate::ModelError;

/// Read when it is first needed, and again after a refusal.
pub struct AuthFile {
    path: PathBuf,
    read: Mutex<Option<Stored>>,
}

#[derive(Clone, Debug, PartialEq)]
enum Stored {
    SignedOut,
    Bearer(Bearer),
    /// Signed in, but without all that it takes to use it.
    Unusable,
}

#[derive(Deserialize)]
struct File {
    auth_mode: Option<String>,
    #[serde(rename = "OPENAI_API_KEY")]
    key: Option<Secret>,
    tokens: Option<Tokens>,
    last_refresh: Option<String>,
}

#[derive(Deserialize)]
struct Tokens {
    id_token: Secret,
    access_token: Secret,
    #[serde(rename = "refresh_token")]
    _refresh_token: Secret,
    account_id: Option<String>,
}

impl AuthFile {
    pub fn new(path: PathBuf) -> Self {
        Self { path, read: Mutex::new(None) }
    }

    fn stored(&self) -> Stored {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.get_or_insert_with(|| self.load()).clone()
    }

    /// A file that cannot be understood means that nobody is signed in.
    fn load(&self) -> Stored {
        let file = fs::read(&self.path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        file.and_then(File::stored).unwrap_or(Stored::SignedOut)
    }

    /// Takes over what another program wrote, if it is for the same account. True for a sign-in.
    fn reload(&self, refused: &Bearer) -> bool {
        let BearerKind::Chatgpt { account_id } = &refused.kind else { return false };
        let found = self.load();
        if let Stored::Bearer(Bearer { kind: BearerKind::Chatgpt { account_id: now }, .. }) = &found
            && now == account_id
        {
            *self.read.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        }
        true
    }
}

impl File {
    fn stored(self) -> Option<Stored> {
        let by_key = match self.auth_mode.as_deref() {
            Some(mode) => mode == "apikey",
            None => self.key.is_some(),
        };
        if by_key {
            return self.key.map(|key| Stored::Bearer(Bearer::key(key)));
        }
        let tokens = self.tokens.filter(|tokens| is_jwt(tokens.id_token.reveal()))?;
        if self.last_refresh.is_none() {
            return Some(Stored::Unusable);
        }
        let kind = BearerKind::Chatgpt { account_id: tokens.account_id };
        Some(Stored::Bearer(Bearer { token: tokens.access_token, kind }))
    }
}

/// By its shape; nobody here can check a signature.
fn is_jwt(token: &str) -> bool {
    let mut parts = 0;
    token.split('.').all(|part| {
        parts += 1;
        !part.is_empty()
    }) && parts == 3
}

impl Credentials for AuthFile {
    fn bearer(&self) -> BoxFuture<'_, Result<Option<Bearer>, ModelError>> {
        Box::pin(std::future::ready(match self.stored() {
            Stored::SignedOut => Ok(None),
            Stored::Bearer(bearer) => Ok(Some(bearer)),
            Stored::Unusable => Err(ModelError::Credentials("Token data is not available.".into())),
        }))
    }

    fn recover<'a>(&'a self, refused: &'a Bearer, refusals: u32) -> BoxFuture<'a, Result<bool, ModelError>> {
        Box::pin(std::future::ready(Ok(refusals == 1 && self.reload(refused))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKENS: &str =
        r#""tokens":{"id_token":"a.b.c","access_token":"at","refresh_token":"rt","account_id":"acct"}"#;

    fn check(file: &str, expected: Stored) {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("auth.json");
        fs::write(&path, file).unwrap();
        assert_eq!(AuthFile::new(path).stored(), expected, "{file}");
    }

    fn key(token: &str) -> Stored {
        Stored::Bearer(Bearer::key(Secret::from(token.to_owned())))
    }

    fn chatgpt(token: &str) -> Bearer {
        let kind = BearerKind::Chatgpt { account_id: Some("acct".into()) };
        Bearer { token: Secret::from(token.to_owned()), kind }
    }

    #[test]
    fn the_mode_decides_between_key_and_tokens() {
        let refreshed = r#""last_refresh":"2026-01-01T00:00:00Z""#;
        check(r#"{"auth_mode":"apikey","OPENAI_API_KEY":"sk"}"#, key("sk"));
        check(r#"{"OPENAI_API_KEY":"sk"}"#, key("sk"));
        check(&format!(r#"{{"OPENAI_API_KEY":"sk",{TOKENS},{refreshed}}}"#), key("sk"));
        let both = format!(r#"{{"auth_mode":"chatgpt","OPENAI_API_KEY":"sk",{TOKENS},{refreshed}}}"#);
        check(&both, Stored::Bearer(chatgpt("at")));
        check(&format!(r#"{{"OPENAI_API_KEY":null,{TOKENS},{refreshed}}}"#), Stored::Bearer(chatgpt("at")));
        check(&format!(r#"{{{TOKENS}}}"#), Stored::Unusable);
    }

    #[test]
    fn a_broken_file_is_as_good_as_none() {
        for file in ["", "{}", "[]", r#"{"auth_mode":"apikey","OPENAI_API_KEY":null}"#] {
            check(file, Stored::SignedOut);
        }
        check(&format!("{{{}}}", TOKENS.replace("a.b.c", "abc")), Stored::SignedOut);
        assert_eq!(AuthFile::new("/nowhere".into()).stored(), Stored::SignedOut);
    }

    #[tokio::test]
    async fn after_a_refusal_a_newer_token_of_the_same_account_is_taken() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("auth.json");
        let write = |account: &str, token: &str| {
            let tokens = TOKENS.replace("acct", account).replace("\"at\"", &format!("\"{token}\""));
            fs::write(&path, format!(r#"{{"auth_mode":"chatgpt",{tokens},"last_refresh":"2026-01-01T00:00:00Z"}}"#))
                .unwrap();
        };
        write("acct", "old");
        let file = AuthFile::new(path.clone());
        assert_eq!(file.bearer().await, Ok(Some(chatgpt("old"))));
        write("acct", "new");
        assert_eq!(file.bearer().await, Ok(Some(chatgpt("old"))), "it is read once");
        assert_eq!(file.recover(&chatgpt("old"), 1).await, Ok(true));
        assert_eq!(file.bearer().await, Ok(Some(chatgpt("new"))));
        write("other", "theirs");
        assert_eq!(file.recover(&chatgpt("new"), 1).await, Ok(true));
        assert_eq!(file.bearer().await, Ok(Some(chatgpt("new"))));
        assert_eq!(file.recover(&chatgpt("new"), 2).await, Ok(false));
        let key = Bearer::key(Secret::from("sk".to_owned()));
        assert_eq!(file.recover(&key, 1).await, Ok(false), "a key does not get better");
    }
}
