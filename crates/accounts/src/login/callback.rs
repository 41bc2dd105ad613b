//! The callback server of one browser login, on the loopback interface. Only requests with the login's state affect it,
//! except that a local program (not a web page) may cancel it to free the port.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{HeaderName, HeaderValue, LOCATION, ORIGIN};
use hyper::{HeaderMap, Request, StatusCode};
use loomd_oauth::callback::{Page, html, plain};
use loomd_oauth::{LoginSecrets, field};
use tokio::net::TcpListener;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{Failure, credentials, page, success};
use crate::Accounts;
use crate::auth_json::AuthJson;

/// How long the server keeps serving `/success`, for a slow browser.
const LINGER: Duration = Duration::from_secs(2);

pub(super) struct Callback {
    accounts: Accounts,
    login_id: String,
    secrets: LoginSecrets,
    redirect_uri: String,
    /// A code has arrived; it can be exchanged only once.
    has_code: AtomicBool,
    signed_in: AtomicBool,
    finished: CancellationToken,
}

impl Callback {
    pub fn new(accounts: Accounts, login_id: String, secrets: LoginSecrets, redirect_uri: String) -> Arc<Self> {
        let (has_code, signed_in, finished) = Default::default();
        Arc::new(Self { accounts, login_id, secrets, redirect_uri, has_code, signed_in, finished })
    }

    /// Serves until the login has ended.
    pub async fn serve(self: Arc<Self>, listener: &TcpListener) {
        let stop = self.finished.clone();
        let answer = move |request: Request<Incoming>| {
            let callback = Arc::clone(&self);
            async move { callback.answer(&request).await }
        };
        loomd_oauth::callback::serve(listener, &stop, answer).await;
    }

    async fn answer(self: &Arc<Self>, request: &Request<Incoming>) -> Page {
        match request.uri().path() {
            "/auth/callback" => self.callback(request.uri().query().unwrap_or_default()).await,
            "/success" if self.signed_in.load(Ordering::Acquire) => {
                self.finished.cancel();
                html(page::signed_in())
            }
            "/cancel" if !is_from_web_page(request.headers()) => {
                _ = self.finish(Err(Failure::new("login_cancelled", "Login cancelled"))).await;
                plain(StatusCode::OK, "Login cancelled")
            }
            _ => plain(StatusCode::NOT_FOUND, "Not Found"),
        }
    }

    async fn callback(self: &Arc<Self>, query: &str) -> Page {
        let field = |name: &str| field(query, name);
        if field("state").as_deref() != Some(&self.secrets.state) {
            return plain(StatusCode::BAD_REQUEST, "State mismatch");
        }
        if self.has_code.swap(true, Ordering::AcqRel) {
            return plain(StatusCode::BAD_REQUEST, "This sign-in is already in progress");
        }
        let outcome = match (field("error"), field("code").filter(|code| !code.is_empty())) {
            (Some(error), _) => Err(authorization_error(error, field("error_description"))),
            (None, Some(code)) => self.exchange(&code).await,
            (None, None) => {
                let message = "Missing authorization code. Sign-in could not be completed.";
                Err(Failure::new("missing_authorization_code", message))
            }
        };
        let described = outcome.as_ref().map(|file| success::query(file, &self.accounts.0.options.issuer));
        let described = described.unwrap_or_default();
        match self.finish(outcome).await {
            Ok(()) => redirect(&format!("{}?{described}", self.redirect_uri.replace("/auth/callback", "/success"))),
            Err(failure) => html(page::failed(&failure)),
        }
    }

    async fn exchange(&self, code: &str) -> Result<AuthJson, Failure> {
        let issuer = &self.accounts.0.issuer;
        let exchanged = issuer.exchange(code, &self.redirect_uri, &self.secrets.verifier).await;
        let granted =
            exchanged.map_err(|why| Failure::new("token_exchange_failed", format!("Token exchange failed: {why}")))?;
        self.accounts.check_workspace(&granted)?;
        let api_key = issuer.api_key(&granted.id_token).await;
        credentials(granted, api_key)
    }

    /// Ends the login, even if the browser disconnects meanwhile.
    async fn finish(self: &Arc<Self>, outcome: Result<AuthJson, Failure>) -> Result<(), Failure> {
        let callback = Arc::clone(self);
        let finished = tokio::spawn(async move {
            let finished = callback.accounts.finish(&callback.login_id, outcome).await;
            if finished.is_ok() {
                callback.signed_in.store(true, Ordering::Release);
                let finished = callback.finished.clone();
                tokio::spawn(async move {
                    sleep(LINGER).await;
                    finished.cancel();
                });
            } else {
                callback.finished.cancel();
            }
            finished
        });
        finished.await.unwrap_or_else(|_| Err(Failure::not_saved()))
    }
}

/// The failure that the issuer reports in the redirect.
fn authorization_error(error: String, description: Option<String>) -> Failure {
    let description = description.filter(|text| !text.trim().is_empty());
    let entitlement = |text: &String| text.to_ascii_lowercase().contains("missing_codex_entitlement");
    if error == "access_denied" && description.as_ref().is_some_and(entitlement) {
        let message =
            "Codex is not enabled for your workspace. Contact your workspace administrator to request access to Codex.";
        return Failure::new(&error, message);
    }
    Failure::new(&error, format!("Sign-in failed: {}", description.as_ref().unwrap_or(&error)))
}

/// Whether a web page made the request: browsers then send `Origin` or `Sec-Fetch-Site`.
fn is_from_web_page(headers: &HeaderMap) -> bool {
    headers.contains_key(ORIGIN) || headers.contains_key(HeaderName::from_static("sec-fetch-site"))
}

fn redirect(to: &str) -> Page {
    let mut response = plain(StatusCode::FOUND, "");
    if let Ok(to) = HeaderValue::from_str(to) {
        response.headers_mut().insert(LOCATION, to);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_issuers_error_is_reported() {
        let check = |error: &str, description: Option<&str>, message: &str| {
            assert_eq!(authorization_error(error.into(), description.map(Into::into)), Failure::new(error, message));
        };
        check("access_denied", Some("No entry"), "Sign-in failed: No entry");
        check("access_denied", Some(" "), "Sign-in failed: access_denied");
        check("server_error", None, "Sign-in failed: server_error");
        let entitlement =
            "Codex is not enabled for your workspace. Contact your workspace administrator to request access to Codex.";
        check("access_denied", Some("x MISSING_codex_entitlement y"), entitlement);
    }
}
