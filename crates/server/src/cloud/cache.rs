//! Requirements that were fetched lately, in a file of the home. The signature detects a file that was edited by hand;
//! it is no protection against an attacker.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use loomd_accounts::Member;

const VALID_FOR: SignedDuration = SignedDuration::from_mins(30);

const KEY: &[u8] = b"loomd cloud requirements cache, version 1";

#[derive(Serialize, Deserialize)]
struct Cached {
    signed_payload: Payload,
    signature: String,
}

#[derive(Serialize, Deserialize)]
struct Payload {
    cached_at: String,
    expires_at: String,
    chatgpt_user_id: Option<String>,
    account_id: String,
    contents: Option<String>,
}

/// The largest cache file that is read.
const MAX_BYTES: u64 = 4 << 20;

/// The cached requirements. Outer `None`: no usable cache; inner `None`: nothing is required.
pub(super) fn read(home: &Path, member: &Member) -> Option<Option<String>> {
    let cached: Cached = serde_json::from_slice(&loomd_regular::read(&file(home), MAX_BYTES).ok()?).ok()?;
    let signature = STANDARD.decode(&cached.signature).ok()?;
    signer(&cached.signed_payload)?.verify_slice(&signature).ok()?;
    let Payload { cached_at, expires_at, chatgpt_user_id, account_id, contents } = cached.signed_payload;
    let now = Timestamp::now();
    let is_fresh = cached_at.parse::<Timestamp>().ok()? <= now && now < expires_at.parse::<Timestamp>().ok()?;
    (is_fresh && chatgpt_user_id == member.user && account_id == member.account).then_some(contents)
}

pub(super) fn write(home: &Path, member: &Member, contents: Option<&str>) -> io::Result<()> {
    let now = Timestamp::now();
    let payload = Payload {
        cached_at: now.to_string(),
        expires_at: now.saturating_add(VALID_FOR).unwrap_or(now).to_string(),
        chatgpt_user_id: member.user.clone(),
        account_id: member.account.clone(),
        contents: contents.map(Into::into),
    };
    let Some(signer) = signer(&payload) else { return Ok(()) };
    let signature = STANDARD.encode(signer.finalize().into_bytes());
    let text = serde_json::to_vec_pretty(&Cached { signed_payload: payload, signature })?;
    let temporary = home.join(format!("cloud-requirements-cache.{}.tmp", std::process::id()));
    loomd_private::write(&temporary, text)?;
    fs::rename(&temporary, file(home))
}

fn file(home: &Path) -> PathBuf {
    home.join("cloud-requirements-cache.json")
}

fn signer(payload: &Payload) -> Option<Hmac<Sha256>> {
    let mut signer = Hmac::new_from_slice(KEY).ok()?;
    signer.update(&serde_json::to_vec(payload).ok()?);
    Some(signer)
}
