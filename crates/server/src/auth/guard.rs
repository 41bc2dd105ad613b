//! The check at the door of each websocket.

use std::sync::{PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::http::header::{AUTHORIZATION, HeaderMap};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::jwt;
use super::policy::{AuthError, Policy, Token, read_secret};

/// The shortest key for signed tokens.
const MIN_KEY: usize = 32;

/// A policy with its secret at hand.
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
    pub fn new(policy: Policy) -> Result<Self, AuthError> {
        let secret = RwLock::new(load(&policy)?);
        Ok(Self { policy, secret })
    }

    /// Reads the secret again, so that it can be changed without a restart. On an error the old one stays.
    pub fn reload(&self) -> Result<(), AuthError> {
        let secret = load(&self.policy)?;
        *self.secret.write().unwrap_or_else(PoisonError::into_inner) = secret;
        Ok(())
    }

    /// Whether the headers of an upgrade request open the door; the error is the body of a 401.
    pub fn check(&self, headers: &HeaderMap) -> Result<(), &'static str> {
        let secret = self.secret.read().unwrap_or_else(PoisonError::into_inner);
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
        Policy::Open => Secret::None,
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
