//! The authentication of each websocket upgrade.

use std::time::{SystemTime, UNIX_EPOCH};

use axum::http::header::{AUTHORIZATION, HeaderMap};
use parking_lot::RwLock;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::jwt;
use super::policy::{AuthError, Policy, Token, read_secret};

/// The shortest key for signed tokens.
const MIN_KEY: usize = 32;

/// A policy together with the secret it compares with.
pub struct Guard {
    policy: Policy,
    secret: RwLock<Secret>,
}

/// What a presented token is compared with. Has no Debug on purpose.
enum Secret {
    None,
    Digest([u8; 32]),
    Key(Vec<u8>),
}

impl Guard {
    /// Accepts any client.
    pub fn open() -> Self {
        Self { policy: Policy::Open, secret: RwLock::new(Secret::None) }
    }

    pub fn new(policy: Policy) -> Result<Self, AuthError> {
        let secret = RwLock::new(load(&policy)?);
        Ok(Self { policy, secret })
    }

    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Whether there is a file to read again.
    pub fn has_secret_file(&self) -> bool {
        self.policy.has_secret_file()
    }

    /// Reads the secret again, so that it can be changed without a restart. On an error the old one stays.
    pub fn reload(&self) -> Result<(), AuthError> {
        let secret = load(&self.policy)?;
        *self.secret.write() = secret;
        Ok(())
    }

    /// Returns whether the headers of an upgrade request are accepted; the error is the body of a 401.
    pub fn check(&self, headers: &HeaderMap) -> Result<(), &'static str> {
        let secret = self.secret.read();
        match &*secret {
            Secret::None => Ok(()),
            Secret::Digest(expected) => {
                let presented: [u8; 32] = Sha256::digest(bearer(headers)?).into();
                if bool::from(presented.ct_eq(expected)) { Ok(()) } else { Err("invalid websocket bearer token") }
            }
            Secret::Key(key) => {
                let claims = jwt::verify(bearer(headers)?, key).ok_or("invalid websocket jwt")?;
                self.check_claims(&claims, now())
            }
        }
    }

    fn check_claims(&self, claims: &jwt::Claims, now: i64) -> Result<(), &'static str> {
        let Policy::SignedBearerToken { issuer, audience, skew_seconds, .. } = &self.policy else { return Ok(()) };
        if now > claims.exp.saturating_add(*skew_seconds) {
            return Err("expired websocket jwt");
        }
        if claims.nbf.is_some_and(|nbf| now < nbf.saturating_sub(*skew_seconds)) {
            return Err("websocket jwt is not valid yet");
        }
        if issuer.is_some() && claims.iss != *issuer {
            return Err("websocket jwt issuer mismatch");
        }
        match (audience, &claims.aud) {
            (Some(expected), Some(audience)) if !audience.contains(expected) => Err("websocket jwt audience mismatch"),
            (Some(_), None) => Err("websocket jwt audience mismatch"),
            _ => Ok(()),
        }
    }
}

fn load(policy: &Policy) -> Result<Secret, AuthError> {
    Ok(match policy {
        Policy::Open | Policy::OpenToAll => Secret::None,
        Policy::CapabilityToken(Token::Sha256(digest)) => Secret::Digest(*digest),
        Policy::CapabilityToken(Token::File(file)) => Secret::Digest(Sha256::digest(read_secret(file)?).into()),
        Policy::SignedBearerToken { secret_file, .. } => {
            let key = read_secret(secret_file)?;
            if key.len() < MIN_KEY {
                return Err(AuthError::Short(secret_file.clone()));
            }
            Secret::Key(key)
        }
    })
}

/// The token of `Authorization: Bearer TOKEN`.
fn bearer(headers: &HeaderMap) -> Result<&str, &'static str> {
    const MALFORMED: &str = "invalid authorization header";
    let header = headers.get(AUTHORIZATION).ok_or("missing websocket bearer token")?;
    let (scheme, token) = header.to_str().map_err(|_| MALFORMED)?.split_once(' ').ok_or(MALFORMED)?;
    let token = token.trim();
    if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() {
        return Err(MALFORMED);
    }
    Ok(token)
}

fn now() -> i64 {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs());
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use axum::http::HeaderValue;

    use super::*;
    use crate::auth::{Flags, Mode};

    const NOW: i64 = 1_000_000;

    fn headers(authorization: &str) -> HeaderMap {
        HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_bytes(authorization.as_bytes()).unwrap())])
    }

    fn token_guard(file: &Path) -> Guard {
        Guard::new(Policy::CapabilityToken(Token::File(file.to_owned()))).unwrap()
    }

    #[test]
    fn only_the_capability_token_is_accepted() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        fs::write(&file, "  s3cret \n").unwrap();
        let guard = token_guard(&file);
        assert_eq!(guard.check(&HeaderMap::new()), Err("missing websocket bearer token"));
        for (header, outcome) in [
            ("Bearer s3cret", Ok(())),
            ("bEARER   s3cret ", Ok(())),
            ("Bearer S3CRET", Err("invalid websocket bearer token")),
            ("Bearer s3cret2", Err("invalid websocket bearer token")),
            ("Bearer", Err("invalid authorization header")),
            ("Bearer  ", Err("invalid authorization header")),
            ("Basic s3cret", Err("invalid authorization header")),
            ("s3cret", Err("invalid authorization header")),
            ("Bearer s3crét", Err("invalid authorization header")),
        ] {
            assert_eq!(guard.check(&headers(header)), outcome, "{header}");
        }
        fs::write(&file, "changed").unwrap();
        assert_eq!(guard.check(&headers("Bearer s3cret")), Ok(()));
        guard.reload().unwrap();
        assert_eq!(guard.check(&headers("Bearer s3cret")), Err("invalid websocket bearer token"));
        assert_eq!(guard.check(&headers("Bearer changed")), Ok(()));
        fs::write(&file, " ").unwrap();
        guard.reload().unwrap_err();
        assert_eq!(guard.check(&headers("Bearer changed")), Ok(()));
    }

    #[test]
    fn a_token_is_accepted_by_its_digest() {
        let flags = Flags {
            mode: Some(Mode::CapabilityToken),
            token_sha256: Some("2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b".into()),
            ..Flags::default()
        };
        let guard = Guard::new(flags.policy().unwrap()).unwrap();
        assert_eq!(guard.check(&headers("Bearer secret")), Ok(()));
        assert_eq!(guard.check(&headers("Bearer other")), Err("invalid websocket bearer token"));
    }

    #[test]
    fn a_token_with_several_bad_claims_is_refused_for_the_first() {
        let policy = Policy::SignedBearerToken {
            secret_file: "unused".into(),
            issuer: Some("me".into()),
            audience: Some("you".into()),
            skew_seconds: 10,
        };
        let guard = Guard { policy, secret: RwLock::new(Secret::None) };
        for (claims, outcome) in [
            (r#"{"exp":1000000,"iss":"me","aud":"you"}"#, Ok(())),
            (r#"{"exp":999990,"iss":"me","aud":["x","you"]}"#, Ok(())),
            (r#"{"exp":9223372036854775807,"iss":"me","aud":"you"}"#, Ok(())),
            (r#"{"exp":999989,"iss":"x"}"#, Err("expired websocket jwt")),
            (r#"{"exp":1000000,"nbf":1000010,"iss":"me","aud":"you"}"#, Ok(())),
            (r#"{"exp":1000000,"nbf":1000011,"iss":"x"}"#, Err("websocket jwt is not valid yet")),
            (r#"{"exp":1000000,"nbf":-9223372036854775808,"iss":"x"}"#, Err("websocket jwt issuer mismatch")),
            (r#"{"exp":1000000}"#, Err("websocket jwt issuer mismatch")),
            (r#"{"exp":1000000,"iss":"me"}"#, Err("websocket jwt audience mismatch")),
            (r#"{"exp":1000000,"iss":"me","aud":[]}"#, Err("websocket jwt audience mismatch")),
        ] {
            let claims = serde_json::from_str(claims).unwrap();
            assert_eq!(guard.check_claims(&claims, NOW), outcome, "{claims:?}");
        }
    }
}
