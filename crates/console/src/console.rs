//! The HTTP requests of the page.

use std::path::Path;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use serde::Deserialize;

use crate::access::{Access, AccessError};
use crate::files;
use crate::origin::{Origin, Origins};
use crate::role::Role;

/// The path of the page's websocket.
pub const SOCKET: &str = "/console/socket";

/// Where the page exchanges a link's code for a cookie, and asks for its role.
const SESSION: &str = "/console/session";
const COOKIE: &str = "loomd_console";

/// The longest time that browsers keep a cookie, in seconds.
const COOKIE_LIFE: u32 = 400 * 24 * 60 * 60;

/// Nothing but files of the page itself is loaded or run. Pictures of a conversation are data.
const CONTENT_SECURITY_POLICY: &str = "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
require-trusted-types-for 'script'; trusted-types 'none'";

/// The console of one listener. All methods block on small files.
#[derive(Clone, Debug)]
pub struct Console {
    access: Access,
    origins: Origins,
}

/// A session that was admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    pub role: Role,
    cookie: String,
}

impl Console {
    /// A console for a listener on this port, which is also reached under further origins.
    pub fn new(home: &Path, port: u16, further: Vec<Origin>) -> Self {
        Self { access: Access::new(home), origins: Origins::new(port, further) }
    }

    /// Whether a request is one of the page: everything but the websockets of other clients and the health probes.
    pub fn serves(path: &str, headers: &HeaderMap) -> bool {
        path.starts_with("/console/") || (path == "/" && !headers.contains_key(header::UPGRADE))
    }

    /// Makes a link that can be opened once; returns its path and fragment.
    pub fn create_link(&self, role: Role) -> Result<String, AccessError> {
        Ok(format!("/#{}", self.access.create_link(role)?))
    }

    /// Answers a request that is no websocket.
    pub fn respond(&self, request: &Parts, body: &[u8]) -> Response<Bytes> {
        let Some(origin) = self.origins.of(&request.headers) else {
            return plain(StatusCode::FORBIDDEN, "the console is not served for this host or origin");
        };
        match (&request.method, request.uri.path()) {
            (&Method::POST, SESSION) => self.open_session(request, origin, body),
            (&Method::GET, SESSION) => match self.session(&request.headers) {
                Ok(session) => json(StatusCode::OK, &format!(r#"{{"role":"{}"}}"#, session.role)),
                Err(refusal) => *refusal,
            },
            (&Method::GET | &Method::HEAD, path) => file(path, &request.headers),
            _ => plain(StatusCode::METHOD_NOT_ALLOWED, "expected GET"),
        }
    }

    /// Admits a websocket by its host, origin and cookie; the error is the answer.
    pub fn admit(&self, headers: &HeaderMap) -> Result<Session, Box<Response<Bytes>>> {
        if !headers.contains_key(header::ORIGIN) || self.origins.of(headers).is_none() {
            return Err(plain(StatusCode::FORBIDDEN, "the console is not served for this host or origin").into());
        }
        self.session(headers)
    }

    /// Whether a session has not been revoked. An unreadable file ends nothing.
    pub fn is_valid(&self, session: &Session) -> bool {
        !matches!(self.access.session(&session.cookie), Ok(None))
    }

    fn session(&self, headers: &HeaderMap) -> Result<Session, Box<Response<Bytes>>> {
        for cookie in cookies(headers) {
            match self.access.session(cookie) {
                Ok(Some(grant)) => return Ok(Session { role: grant.role, cookie: cookie.to_owned() }),
                Ok(None) => {}
                Err(error) => return Err(plain(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()).into()),
            }
        }
        Err(plain(StatusCode::UNAUTHORIZED, "open the console with a link: `loomd console link`").into())
    }

    fn open_session(&self, request: &Parts, origin: &Origin, body: &[u8]) -> Response<Bytes> {
        #[derive(Deserialize)]
        struct Body<'a> {
            code: &'a str,
        }
        // Browsers name the origin of every POST; another page cannot have sent this one.
        if !request.headers.contains_key(header::ORIGIN) {
            return plain(StatusCode::FORBIDDEN, "the header `Origin` is missing");
        }
        let Ok(Body { code }) = serde_json::from_slice(body) else {
            return plain(StatusCode::BAD_REQUEST, r#"expected {"code": "…"}"#);
        };
        match self.access.open_link(code) {
            Ok(Some((role, cookie))) => {
                let secure = if origin.is_secure() { "; Secure" } else { "" };
                let cookie =
                    format!("{COOKIE}={cookie}; Path=/; HttpOnly; SameSite=Strict; Max-Age={COOKIE_LIFE}{secure}");
                let mut response = json(StatusCode::OK, &format!(r#"{{"role":"{role}"}}"#));
                if let Ok(cookie) = HeaderValue::from_str(&cookie) {
                    response.headers_mut().insert(header::SET_COOKIE, cookie);
                }
                response
            }
            Ok(None) => plain(StatusCode::UNAUTHORIZED, "the link was used before, or is older than an hour"),
            Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        }
    }
}

fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let pairs = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    pairs.flat_map(|all| all.split(';')).filter_map(|pair| pair.trim().strip_prefix(COOKIE)?.strip_prefix('='))
}

fn file(path: &str, headers: &HeaderMap) -> Response<Bytes> {
    let accepts = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    let accepts_gzip = accepts.is_some_and(|all| all.split(',').any(|one| one.trim() == "gzip"));
    let path = if path == "/" { "index.html" } else { path.strip_prefix("/console/").unwrap_or_default() };
    let Some(file) = files::find(path, accepts_gzip) else { return plain(StatusCode::NOT_FOUND, "no such file") };
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    if let Some(etag) = file.etag
        && known == Some(etag)
    {
        return answer(StatusCode::NOT_MODIFIED, file.mime, Bytes::new());
    }
    let bytes = match file.bytes {
        std::borrow::Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        std::borrow::Cow::Owned(bytes) => bytes.into(),
    };
    let mut response = answer(StatusCode::OK, file.mime, bytes);
    if let Some(etag) = file.etag {
        response.headers_mut().insert(header::ETAG, HeaderValue::from_static(etag));
    }
    if file.gzip {
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    response
}

fn plain(status: StatusCode, text: &str) -> Response<Bytes> {
    answer(status, "text/plain; charset=utf-8", Bytes::copy_from_slice(text.as_bytes()))
}

fn json(status: StatusCode, text: &str) -> Response<Bytes> {
    answer(status, "application/json", Bytes::copy_from_slice(text.as_bytes()))
}

fn answer(status: StatusCode, mime: &'static str, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    for (name, value) in [
        (header::CONTENT_TYPE, mime),
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests;
