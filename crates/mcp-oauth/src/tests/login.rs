use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::time::Duration;

use loomd_protocol::McpAuthStatus;
use loomd_testkit::WELL_KNOWN;
use serde_json::json;

use super::*;
use crate::{CallbackSettings, Login, OauthError};

async fn login(fixture: &Fixture, server: &OauthServer) -> Result<Login, OauthError> {
    fixture.oauth.login(server, None, None, &CallbackSettings::default()).await
}

/// The redirect of a user who agrees.
fn agreed(login: &Login) -> String {
    let field = |name| query(&login.authorization_url, name).unwrap();
    format!("{}?code=code-1&state={}", field("redirect_uri"), field("state"))
}

fn failure(outcome: Result<(), OauthError>) -> String {
    outcome.unwrap_err().to_string()
}

#[tokio::test]
async fn a_login_stores_the_tokens_before_the_browser_is_told() {
    let (fixture, issuer) = (Fixture::new(), Issuer::start().await);
    let server = configured(&format!("{}/mcp", issuer.base), r#"{"oauth_resource":"https://res/x"}"#);
    assert_eq!(fixture.oauth.status(&server).await, McpAuthStatus::NotLoggedIn);
    issuer.requests();
    let login = login(&fixture, &server).await.unwrap();
    let url = login.authorization_url.clone();
    assert!(url.starts_with(&format!("{}/authorize?response_type=code&client_id=client-1&", issuer.base)), "{url}");
    for (name, value) in [("scope", "alpha beta"), ("code_challenge_method", "S256"), ("resource", "https://res/x")] {
        assert_eq!(query(&url, name).as_deref(), Some(value), "{url}");
    }
    let requests = issuer.requests();
    let registration: JsonValue = serde_json::from_str(&requests.last().unwrap().body).unwrap();
    assert_eq!(registration["redirect_uris"], json!([query(&url, "redirect_uri").unwrap()]));
    let (redirect, completed) = (agreed(&login), tokio::spawn(login.completed()));
    let page = browse(&redirect).await;
    assert_eq!(page, (200, "Authentication complete. You may close this window.".into()));
    let entry = fixture.stored()[server.key()].clone();
    assert_eq!(entry["access_token"], "token-1");
    assert_eq!(entry["refresh_token"], "refresh-1");
    completed.await.unwrap().unwrap();
    let [exchange] = &issuer.requests()[..] else { panic!() };
    assert_eq!(exchange.line, "POST /token");
    for (name, value) in [("grant_type", "authorization_code"), ("code", "code-1"), ("client_id", "client-1")] {
        assert_eq!(form(exchange, name).as_deref(), Some(value));
    }
    assert_eq!(form(exchange, "resource").as_deref(), Some("https://res/x"));
    let file = fixture.home.path().join(".credentials.json");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fixture.oauth.status(&server).await, McpAuthStatus::OAuth);
    assert_eq!(fixture.bearer(&server).await.unwrap().as_deref(), Some("token-1"));
    assert!(fixture.oauth.logout(&server).await.unwrap());
    assert!(!fixture.oauth.logout(&server).await.unwrap());
    assert!(!file.exists());
    assert_eq!(fixture.bearer(&server).await.unwrap(), None);
}

#[tokio::test]
async fn scopes_of_the_request_win_over_configured_and_supported_ones() {
    let (fixture, issuer) = (Fixture::new(), Issuer::start().await);
    let url = format!("{}/mcp", issuer.base);
    for (settings, given, expected) in [
        ("{}", Some(vec!["z", "y"]), Some("z y")),
        ("{}", Some(vec![]), None),
        (r#"{"scopes":["conf"]}"#, None, Some("conf")),
        (r#"{"scopes":["conf"]}"#, Some(vec!["own"]), Some("own")),
        ("{}", None, Some("alpha beta")),
    ] {
        let scopes = given.clone().map(|given| given.into_iter().map(str::to_owned).collect());
        let server = configured(&url, settings);
        let login = fixture.oauth.login(&server, scopes, None, &CallbackSettings::default()).await.unwrap();
        assert_eq!(query(&login.authorization_url, "scope").as_deref(), expected, "{settings} {given:?}");
    }
}

#[tokio::test]
async fn a_failed_exchange_shows_no_success_page_and_stores_nothing() {
    let (fixture, issuer) = (Fixture::new(), Issuer::start().await);
    let server = server(&format!("{}/mcp", issuer.base));
    issuer.set("POST /token", 400, json!({ "error": "invalid_grant", "error_description": "used before" }));
    let login = login(&fixture, &server).await.unwrap();
    let (redirect, completed) = (agreed(&login), tokio::spawn(login.completed()));
    let (status, text) = browse(&redirect).await;
    assert_eq!(status, 400);
    assert!(text.starts_with("Authentication failed: ") && text.ends_with("invalid_grant: used before"), "{text}");
    assert_eq!(failure(completed.await.unwrap()), "failed to handle OAuth callback");
    assert_eq!(fixture.stored(), JsonValue::Null);
}

#[tokio::test]
async fn a_wrong_state_ends_the_login_without_an_exchange() {
    let (fixture, issuer) = (Fixture::new(), Issuer::start().await);
    let server = server(&format!("{}/mcp", issuer.base));
    let login = login(&fixture, &server).await.unwrap();
    issuer.requests();
    let redirect = query(&login.authorization_url, "redirect_uri").unwrap();
    let completed = tokio::spawn(login.completed());
    assert_eq!(browse(&format!("{redirect}?code=code-1&state=guessed")).await.0, 400);
    assert_eq!(failure(completed.await.unwrap()), "failed to handle OAuth callback");
    assert_eq!(issuer.lines(), [""; 0]);
}

#[tokio::test]
async fn other_requests_to_the_callback_server_leave_the_login_open() {
    let (fixture, issuer) = (Fixture::new(), Issuer::start().await);
    let server = server(&format!("{}/mcp", issuer.base));
    let login = login(&fixture, &server).await.unwrap();
    let base = query(&login.authorization_url, "redirect_uri").unwrap();
    let (redirect, completed) = (agreed(&login), tokio::spawn(login.completed()));
    let invalid = (400, "Invalid OAuth callback".to_owned());
    for url in [base.replace("/callback", "/other"), base.clone(), format!("{base}?code=a"), format!("{base}?state=a")]
    {
        assert_eq!(browse(&url).await, invalid, "{url}");
    }
    let embedded = browse_with(&format!("{base}?code=a&state=b"), "Sec-Fetch-Mode: no-cors\r\n").await;
    assert_eq!(embedded, invalid, "a web page can embed the URL, and must not end the login");
    assert_eq!(browse_with(&redirect, "Sec-Fetch-Mode: navigate\r\n").await.0, 200);
    completed.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_denied_login_reports_what_the_provider_said() {
    let (fixture, issuer) = (Fixture::new(), Issuer::start().await);
    let server = server(&format!("{}/mcp", issuer.base));
    let login = login(&fixture, &server).await.unwrap();
    let redirect = query(&login.authorization_url, "redirect_uri").unwrap();
    let completed = tokio::spawn(login.completed());
    let text = "OAuth provider returned `access_denied`: no way".to_owned();
    let page = browse(&format!("{redirect}?error=access_denied&error_description=no+way")).await;
    assert_eq!(page, (400, text.clone()));
    assert_eq!(failure(completed.await.unwrap()), text);
}

#[tokio::test]
async fn a_login_times_out_and_closes_its_port() {
    let (fixture, issuer) = (Fixture::new(), Issuer::start().await);
    let server = server(&format!("{}/mcp", issuer.base));
    let login = fixture.oauth.login(&server, None, Some(Duration::ZERO), &CallbackSettings::default()).await.unwrap();
    let redirect = query(&login.authorization_url, "redirect_uri").unwrap();
    assert_eq!(failure(login.completed().await), "timed out waiting for OAuth callback");
    let address = redirect.strip_prefix("http://").unwrap().split('/').next().unwrap();
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn logins_that_wait_for_a_browser_are_bounded_and_free_their_place_when_dropped() {
    let (fixture, issuer) = (Fixture::new(), Issuer::start().await);
    let server = server(&format!("{}/mcp", issuer.base));
    let mut logins = Vec::new();
    for _ in 0..crate::MAX_LOGINS {
        logins.push(login(&fixture, &server).await.unwrap());
    }
    assert_eq!(
        login(&fixture, &server).await.err().unwrap().to_string(),
        "too many OAuth logins are waiting for a browser"
    );
    logins.pop();
    assert!(login(&fixture, &server).await.is_ok());
}

#[tokio::test]
async fn the_authorization_server_is_found_at_every_documented_place() {
    for (place, path) in [
        (WELL_KNOWN.to_owned(), "/"),
        (WELL_KNOWN.to_owned(), "/a/b"),
        (format!("{WELL_KNOWN}/a/b"), "/a/b"),
        (format!("/a/b{WELL_KNOWN}"), "/a/b/"),
    ] {
        let (fixture, issuer) = (Fixture::new(), Issuer::at(&place).await);
        let server = server(&format!("{}{path}", issuer.base));
        assert_eq!(fixture.oauth.status(&server).await, McpAuthStatus::NotLoggedIn, "{place}");
        assert!(login(&fixture, &server).await.is_ok(), "{place}");
    }
}

#[tokio::test]
async fn the_authorization_server_that_resource_metadata_names_is_used_without_the_configured_headers() {
    for place in [format!("{WELL_KNOWN}/as"), "/.well-known/openid-configuration/as".to_owned()] {
        let (fixture, issuer, mcp) = (Fixture::new(), Issuer::at(&place).await, Issuer::bare().await);
        mcp.set(
            "GET /.well-known/oauth-protected-resource/mcp",
            200,
            json!({ "authorization_servers": [format!("{}/as", issuer.base)] }),
        );
        let server = configured(&format!("{}/mcp", mcp.base), r#"{"http_headers":{"X-Key":"secret-key"}}"#);
        let login = login(&fixture, &server).await.unwrap();
        assert!(login.authorization_url.starts_with(&format!("{}/authorize?", issuer.base)));
        assert!(mcp.requests().iter().all(|request| request.head.contains("x-key: secret-key")));
        assert!(issuer.requests().iter().all(|request| !request.head.contains("secret-key")));
    }
}

#[tokio::test]
async fn a_redirect_of_the_metadata_is_followed_without_the_configured_headers() {
    let (fixture, issuer, mcp) = (Fixture::new(), Issuer::start().await, Issuer::bare().await);
    mcp.set(&format!("GET {WELL_KNOWN}"), 302, format!("{}{WELL_KNOWN}", issuer.base).into());
    let server = configured(&format!("{}/", mcp.base), r#"{"http_headers":{"X-Key":"secret-key"}}"#);
    assert_eq!(fixture.oauth.status(&server).await, McpAuthStatus::NotLoggedIn);
    assert!(!issuer.requests()[0].head.contains("secret-key"));
    mcp.set(&format!("GET {WELL_KNOWN}"), 302, WELL_KNOWN.into());
    assert_eq!(fixture.oauth.status(&server).await, McpAuthStatus::Unsupported, "a loop of redirects ends");
}

#[tokio::test]
async fn servers_that_cannot_be_logged_in_to_say_why() {
    let fixture = Fixture::new();
    let attempt = async |url: String| login(&fixture, &server(&url)).await.err().unwrap().to_string();
    let bare = Issuer::bare().await;
    assert_eq!(attempt(format!("{}/mcp", bare.base)).await, "No authorization support detected");
    assert_eq!(fixture.oauth.status(&server(&bare.base)).await, McpAuthStatus::Unsupported);
    let issuer = Issuer::start().await;
    let place = format!("GET {WELL_KNOWN}");
    let with = |name: &str, value: JsonValue| {
        let mut metadata = issuer.metadata();
        metadata[name] = value;
        issuer.set(&place, 200, metadata);
    };
    let url = format!("{}/mcp", issuer.base);
    with("registration_endpoint", JsonValue::Null);
    assert_eq!(attempt(url.clone()).await, "the authorization server does not support dynamic client registration");
    with("authorization_endpoint", "file:///etc/passwd".into());
    assert_eq!(
        attempt(url.clone()).await,
        "`authorization_endpoint` of the authorization server is not an acceptable URL: file:///etc/passwd"
    );
    with("token_endpoint", JsonValue::Null);
    assert_eq!(attempt(url.clone()).await, "No authorization support detected");
    issuer.set(&place, 200, issuer.metadata());
    issuer.set("POST /register", 400, json!({ "error": "invalid_client_metadata", "error_description": "no" }));
    let refused = attempt(url.clone()).await;
    assert_eq!(refused, "client registration failed: HTTP 400 Bad Request: invalid_client_metadata: no");
    issuer.set("POST /register", 200, json!([]));
    assert_eq!(attempt(url).await, "client registration failed: the response has no client id");
    assert!(attempt("http://127.0.0.1:1/mcp".into()).await.contains("127.0.0.1:1"));
    assert_eq!(attempt("not a url".into()).await, "invalid URL: not a url");
    assert_eq!(attempt("/mcp".into()).await, "the URL has no host: /mcp");
}

#[tokio::test]
async fn a_registered_secret_is_sent_as_the_server_wants_it_and_kept_for_refreshes() {
    for (method, in_form) in [("client_secret_basic", false), ("client_secret_post", true)] {
        let (fixture, issuer) = (Fixture::new(), Issuer::start().await);
        let server = server(&format!("{}/mcp", issuer.base));
        let client = json!({ "client_id": "c:1", "client_secret": "s3", "token_endpoint_auth_method": method });
        issuer.set("POST /register", 201, client);
        issuer.grant(1, json!({ "expires_in": 1, "refresh_token": "refresh-1", "scope": "q r" }));
        let login = login(&fixture, &server).await.unwrap();
        let (redirect, completed) = (agreed(&login), tokio::spawn(login.completed()));
        assert_eq!(browse(&redirect).await.0, 200);
        completed.await.unwrap().unwrap();
        assert_eq!(fixture.stored()[server.key()]["scopes"], json!(["q", "r"]));
        issuer.grant(2, json!({ "expires_in": 3600 }));
        assert_eq!(fixture.bearer(&server).await.unwrap().as_deref(), Some("token-2"));
        let tokens = issuer.requests().into_iter().filter(|request| request.line == "POST /token");
        let sent: Vec<_> = tokens
            .map(|request| (form(&request, "client_secret").is_some(), request.head.contains("authorization: basic")))
            .collect();
        assert_eq!(sent, [(in_form, !in_form); 2], "{method}");
    }
}

#[tokio::test]
async fn a_credentials_file_that_is_malformed_or_a_link_is_left_alone() {
    let (fixture, issuer) = (Fixture::new(), Issuer::start().await);
    let server = server(&format!("{}/mcp", issuer.base));
    let file = fixture.home.path().join(".credentials.json");
    let attempt = async || {
        let login = login(&fixture, &server).await.unwrap();
        let (redirect, completed) = (agreed(&login), tokio::spawn(login.completed()));
        assert_eq!(browse(&redirect).await.0, 500);
        failure(completed.await.unwrap())
    };
    std::fs::write(&file, "garbage{").unwrap();
    assert_eq!(attempt().await, format!("failed to parse credentials file at {}", file.display()));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "garbage{");
    assert_eq!(fixture.oauth.status(&server).await, McpAuthStatus::NotLoggedIn);
    std::fs::remove_file(&file).unwrap();
    let elsewhere = fixture.home.path().join("elsewhere");
    std::fs::write(&elsewhere, "{}").unwrap();
    symlink(&elsewhere, &file).unwrap();
    assert!(attempt().await.starts_with(&format!("failed to read credentials file at {}: ", file.display())));
    assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), "{}");
}
