//! Verifies compact JWS with HS256, and decodes the claims that are checked.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use serde::Deserialize;
use sha2::Sha256;

#[derive(Debug, Deserialize)]
pub(super) struct Claims {
    pub exp: i64,
    pub nbf: Option<i64>,
    pub iss: Option<String>,
    pub aud: Option<Audience>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Audience {
    One(String),
    Many(Vec<String>),
}

impl Audience {
    pub fn contains(&self, name: &str) -> bool {
        match self {
            Self::One(audience) => audience == name,
            Self::Many(audiences) => audiences.iter().any(|audience| audience == name),
        }
    }
}

/// The claims of a token that was signed with `key`; `None` for anything else.
pub(super) fn verify(token: &str, key: &[u8]) -> Option<Claims> {
    #[derive(Deserialize)]
    struct Header {
        alg: String,
    }

    let (signed, signature) = token.rsplit_once('.')?;
    let (header, claims) = signed.split_once('.')?;
    let header: Header = decode(header)?;
    if header.alg != "HS256" {
        return None;
    }
    let mut mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
    mac.update(signed.as_bytes());
    mac.verify_slice(&URL_SAFE_NO_PAD.decode(signature).ok()?).ok()?;
    decode(claims)
}

fn decode<T: for<'de> Deserialize<'de>>(part: &str) -> Option<T> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}
