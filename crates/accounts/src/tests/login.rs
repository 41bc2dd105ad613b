//! Sign-ins with ChatGPT, in a browser and with a device code.

use loomd_protocol::{CancelLoginAccountStatus, ForcedLoginMethod};

use super::*;

/// A signed-out fixture with this issuer.
async fn with_issuer(change: impl FnOnce(&mut Options)) -> (Fixture, Backend) {
    let (issuer, url) = Backend::start().await;
    let fixture = fixture_with(None, |options| {
        options.issuer = url;
        change(options);
    });
    (fixture, issuer)
}

fn tokens(account: &str) -> JsonValue {
    let mut tokens = signed_in("access-1", account)["tokens"].clone();
    tokens.as_object_mut().unwrap().remove("account_id");
    tokens
}

fn completed(id: &str, error: Option<&str>) -> JsonValue {
    let params = json!({ "loginId": id, "success": error.is_none(), "error": error });
    json!({ "method": "account/login/completed", "params": params })
}

fn updated() -> JsonValue {
    json!({ "method": "account/updated", "params": { "authMode": "chatgpt", "planType": "plus" } })
}

impl Fixture {
    /// The login id, and the URL that the user opens.
    async fn in_browser(&self) -> Result<(String, String), AccountError> {
        let mut outcome = None;
        self.accounts.login_in_browser("my client", |reply| outcome = Some(reply)).await;
        outcome.unwrap().map(|answer| match answer {
            LoginAccountResponse::Chatgpt { login_id, auth_url } => (login_id, auth_url),
            other => panic!("{other:?}"),
        })
    }

    async fn with_code(&self) -> Result<(String, String), AccountError> {
        let mut outcome = None;
        self.accounts.login_with_device_code(|reply| outcome = Some(reply)).await;
        outcome.unwrap().map(|answer| match answer {
            LoginAccountResponse::ChatgptDeviceCode { login_id, user_code, verification_url } => {
                assert!(verification_url.ends_with("/codex/device"), "{verification_url}");
                (login_id, user_code)
            }
            other => panic!("{other:?}"),
        })
    }

    async fn cancel(&self, id: &str) -> Result<CancelLoginAccountStatus, AccountError> {
        let mut outcome = None;
        self.accounts.cancel(id, |reply| outcome = Some(reply)).await;
        outcome.unwrap().map(|answer| answer.status)
    }

    /// Waits for this many messages.
    async fn wait_for_sent(&self, count: usize) -> Vec<JsonValue> {
        while self.host.sent.lock().len() < count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        self.sent()
    }
}

/// The raw value of a field of a URL.
fn field<'a>(url: &'a str, name: &str) -> &'a str {
    url.split(['?', '&']).find_map(|field| field.strip_prefix(name)?.strip_prefix('=')).unwrap()
}

/// Sends a GET request to the callback server of `auth_url`.
async fn get(auth_url: &str, path: &str, header: &str) -> String {
    let port = field(auth_url, "redirect_uri").split("%3A").nth(2).unwrap().split("%2F").next().unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", port.parse().unwrap())).await.unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{header}\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

async fn deliver(auth_url: &str, fields: &str) -> String {
    get(auth_url, &format!("/auth/callback?state={}&{fields}", field(auth_url, "state")), "").await
}

#[tokio::test]
async fn a_browser_login_stores_tokens_and_key() {
    let (fixture, issuer) = with_issuer(|options| options.forced_workspace = Some("acct".into())).await;
    let (id, url) = fixture.in_browser().await.unwrap();
    let port = field(&url, "redirect_uri").split("%3A").nth(2).unwrap().trim_end_matches("%2Fauth%2Fcallback");
    let expected = format!(
        "{}/oauth/authorize?response_type=code&client_id=app_EMoamEEZ73f0CkXaXp7hrann\
         &redirect_uri=http%3A%2F%2Flocalhost%3A{port}%2Fauth%2Fcallback\
         &scope=openid%20profile%20email%20offline_access%20api.connectors.read%20api.connectors.invoke\
         &code_challenge={}&code_challenge_method=S256&id_token_add_organizations=true\
         &codex_cli_simplified_flow=true&state={}&originator=my%20client&allowed_workspace_id=acct",
        fixture.accounts.0.options.issuer,
        field(&url, "code_challenge"),
        field(&url, "state"),
    );
    assert_eq!(url, expected);
    assert_eq!((field(&url, "code_challenge").len(), field(&url, "state").len()), (43, 43));

    issuer.answer(200, &tokens("acct")).answer(200, &json!({ "access_token": "sk-made" }));
    let answer = deliver(&url, "code=the%20code").await;
    assert!(answer.starts_with("HTTP/1.1 302 "), "{answer}");
    let described = "needs_setup=false&org_id=&project_id=&plan_type=\
                     &platform_url=https%3A%2F%2Fplatform.api.openai.org";
    assert!(answer.contains(&format!("location: http://localhost:{port}/success?{described}\r\n")), "{answer}");
    assert_eq!(fixture.sent(), [completed(&id, None), updated()]);
    let [exchange, key] = &issuer.requests()[..] else { panic!("two requests") };
    let start = "POST /oauth/token grant_type=authorization_code&code=the%20code&redirect_uri=http%3A%2F%2Flocalhost";
    assert!(exchange.starts_with(start), "{exchange}");
    assert!(key.contains("requested_token=openai-api-key"), "{key}");
    let disk = fixture.on_disk().unwrap();
    let mut kept = tokens("acct");
    kept["account_id"] = "acct".into();
    assert_eq!((&disk["OPENAI_API_KEY"], &disk["tokens"]), (&json!("sk-made"), &kept));
    assert_eq!(fixture.token().await.as_deref(), Some("access-1"));
    let page = get(&url, "/success", "").await;
    assert!(page.starts_with("HTTP/1.1 200 ") && page.contains("text/html"), "{page}");
}

#[tokio::test]
async fn requests_without_the_state_do_not_affect_a_login() {
    let (fixture, issuer) = with_issuer(|_| {}).await;
    let (id, url) = fixture.in_browser().await.unwrap();
    for (path, header, status) in [
        ("/auth/callback?code=c", "", "400"),
        ("/auth/callback?code=c&state=forged", "", "400"),
        ("/success", "", "404"),
        ("/cancel", "origin: http://page\r\n", "404"),
        ("/cancel", "sec-fetch-site: cross-site\r\n", "404"),
        ("/", "", "404"),
    ] {
        let answer = get(&url, path, header).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{path}: {answer}");
    }
    assert_eq!((fixture.sent(), issuer.requests()), (vec![], vec![]));
    assert!(get(&url, "/cancel", "").await.ends_with("Login cancelled"));
    assert_eq!(fixture.sent(), [completed(&id, Some("Login server error: Login cancelled"))]);
}

#[tokio::test]
async fn a_failed_browser_login_reports_the_cause() {
    let refused = json!({ "error": "invalid_grant", "error_description": "code is stale" });
    for (fields, answer, workspace, message) in [
        ("error=access_denied&error_description=No+entry", None, None, "Sign-in failed: No entry"),
        ("code=", None, None, "Missing authorization code. Sign-in could not be completed."),
        (
            "code=c",
            Some((400, refused)),
            None,
            "Token exchange failed: token endpoint returned status 400 Bad Request: code is stale",
        ),
        ("code=c", Some((200, json!({}))), None, "Token exchange failed: error decoding response body"),
        ("code=c", Some((200, tokens("other"))), Some("ws"), "Login is restricted to workspace id ws."),
    ] {
        let (fixture, issuer) = with_issuer(|options| options.forced_workspace = workspace.map(Into::into)).await;
        let (id, url) = fixture.in_browser().await.unwrap();
        if let Some((status, body)) = &answer {
            issuer.answer(*status, body);
        }
        let page = deliver(&url, fields).await;
        assert!(page.starts_with("HTTP/1.1 200 ") && page.contains(message), "{page}");
        let error = format!("Login server error: {message}");
        assert_eq!(fixture.sent(), [completed(&id, Some(&error))]);
        assert_eq!((fixture.on_disk(), fixture.account().await), (None, None));
    }
}

#[tokio::test]
async fn a_replaced_device_login_ends_as_not_completed() {
    let (fixture, issuer) = with_issuer(|_| {}).await;
    issuer.answer(200, &json!({ "device_auth_id": "d", "usercode": "CODE", "interval": "60" })).answer(403, &json!({}));
    let (device, _) = fixture.with_code().await.unwrap();
    fixture.in_browser().await.unwrap();
    assert_eq!(fixture.sent(), [completed(&device, Some("Login was not completed"))]);
}

#[tokio::test]
async fn every_other_change_ends_the_pending_login() {
    let (fixture, issuer) = with_issuer(|_| {}).await;
    let (first, _) = fixture.in_browser().await.unwrap();
    let (second, _) = fixture.in_browser().await.unwrap();
    assert_eq!(fixture.sent(), [completed(&first, Some("Login server error: Login cancelled"))]);
    assert_eq!(fixture.cancel(&first).await.unwrap(), CancelLoginAccountStatus::NotFound);

    issuer.answer(200, &json!({ "device_auth_id": "d", "usercode": "CODE", "interval": "60" })).answer(403, &json!({}));
    let (third, code) = fixture.with_code().await.unwrap();
    assert_eq!(code, "CODE");
    let abandoned = Some("Login server error: Login was not completed");
    assert_eq!(fixture.sent(), [completed(&second, abandoned)]);

    fixture.login_with_key("sk").await.unwrap();
    assert_eq!(fixture.sent()[0], completed(&third, Some("Login was not completed")));

    let (fourth, _) = fixture.in_browser().await.unwrap();
    fixture.accounts.logout(|reply| assert!(reply.is_ok())).await;
    assert_eq!(fixture.sent()[0], completed(&fourth, abandoned));

    let (fifth, _) = fixture.in_browser().await.unwrap();
    assert_eq!(fixture.cancel(&fifth).await.unwrap(), CancelLoginAccountStatus::Canceled);
    assert_eq!(fixture.sent(), [completed(&fifth, abandoned)]);
    assert_eq!(fixture.cancel("zzz").await.unwrap_err().to_string(), "invalid login id: zzz");
}

#[tokio::test]
async fn a_device_code_login_stores_tokens() {
    let (fixture, issuer) = with_issuer(|_| {}).await;
    let grant = json!({ "authorization_code": "auth-code", "code_challenge": "c", "code_verifier": "verifier" });
    issuer
        .answer(200, &json!({ "device_auth_id": "device-1", "user_code": "CODE-1", "interval": 0 }))
        .answer(200, &grant)
        .answer(200, &tokens("acct"));
    let (id, code) = fixture.with_code().await.unwrap();
    assert_eq!(code, "CODE-1");
    assert_eq!(fixture.wait_for_sent(2).await, [completed(&id, None), updated()]);
    let callback = fixture.accounts.0.options.issuer.replace(':', "%3A").replace('/', "%2F");
    assert_eq!(
        issuer.requests(),
        [
            r#"POST /api/accounts/deviceauth/usercode {"client_id":"app_EMoamEEZ73f0CkXaXp7hrann"}"#.to_owned(),
            r#"POST /api/accounts/deviceauth/token {"device_auth_id":"device-1","user_code":"CODE-1"}"#.to_owned(),
            format!(
                "POST /oauth/token grant_type=authorization_code&code=auth-code\
                 &redirect_uri={callback}%2Fdeviceauth%2Fcallback\
                 &client_id=app_EMoamEEZ73f0CkXaXp7hrann&code_verifier=verifier"
            ),
        ]
    );
    assert_eq!(fixture.on_disk().unwrap()["OPENAI_API_KEY"], JsonValue::Null);
    assert_eq!(fixture.token().await.as_deref(), Some("access-1"));
}

#[tokio::test]
async fn a_refused_device_code_request_is_reported() {
    for (status, body, message, refusal) in [
        (
            404,
            json!({}),
            "device code login is not enabled for this Codex server. Use the browser login or verify the server URL.",
            true,
        ),
        (
            503,
            json!({}),
            "failed to request device code: device code request failed with status 503 Service Unavailable",
            false,
        ),
        (
            200,
            json!({ "user_code": "x" }),
            "failed to request device code: missing field `device_auth_id` at line 1 column 17",
            false,
        ),
    ] {
        let (fixture, issuer) = with_issuer(|_| {}).await;
        issuer.answer(status, &body);
        let error = fixture.with_code().await.unwrap_err();
        assert_eq!((error.to_string(), error.is_refusal()), (message.to_owned(), refusal));
    }
}

#[tokio::test]
async fn a_failed_device_login_reports_the_cause() {
    let grant = json!({ "authorization_code": "a", "code_verifier": "v" });
    let refused = json!({ "error": { "code": "bad", "message": "no such code" } });
    for (answers, message) in [
        (vec![(500, json!({}))], "device auth failed with status 500 Internal Server Error"),
        (
            vec![(200, grant), (400, refused)],
            "device code exchange failed: token endpoint returned status 400 Bad Request: no such code",
        ),
    ] {
        let (fixture, issuer) = with_issuer(|_| {}).await;
        issuer.answer(200, &json!({ "device_auth_id": "d", "user_code": "c" }));
        for (status, body) in &answers {
            issuer.answer(*status, body);
        }
        let (id, _) = fixture.with_code().await.unwrap();
        assert_eq!(fixture.wait_for_sent(1).await, [completed(&id, Some(message))]);
        assert_eq!(fixture.on_disk(), None);
    }
}

#[tokio::test]
async fn chatgpt_logins_are_refused_where_api_keys_are_forced() {
    let fixture = fixture_with(None, |options| options.forced_method = Some(ForcedLoginMethod::Api));
    for error in [fixture.in_browser().await.unwrap_err(), fixture.with_code().await.unwrap_err()] {
        let message = "ChatGPT login is disabled. Use API key login instead.";
        assert_eq!((error.to_string(), error.is_refusal()), (message.to_owned(), true));
    }
}
