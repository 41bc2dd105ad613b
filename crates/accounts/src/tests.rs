use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use loomd_config::config_toml::CliCredentialsStore;
use loomd_model::{BearerKind, BoxFuture, Credentials as _, ModelError};
use loomd_protocol::{
    Account, AuthMode, ForcedLoginMethod, GetAccountResponse, GetAuthStatusParams, JsonValue, LoginAccountResponse,
    PlanType, RequestId, RpcError, Secret, ServerNotification, ServerRequest,
};
use serde_json::json;

use super::*;

/// A token with these claims. Nobody checks signatures.
pub(crate) fn jwt(claims: &JsonValue) -> String {
    format!("h.{}.s", URL_SAFE_NO_PAD.encode(claims.to_string()))
}

/// `auth.json` of somebody with this access token and account.
fn signed_in(access: &str, account: &str) -> JsonValue {
    let auth = json!({ "chatgpt_plan_type": "plus", "chatgpt_account_id": account });
    let id_token = jwt(&json!({ "email": "ann@example.com", "https://api.openai.com/auth": auth }));
    json!({
        "auth_mode": "chatgpt",
        "OPENAI_API_KEY": null,
        "tokens": {
            "id_token": id_token, "access_token": access, "refresh_token": "refresh-1", "account_id": account,
        },
        "last_refresh": Timestamp::now().to_string(),
    })
}

/// Keeps what clients are told and asked, and what they will answer, the last first.
#[derive(Default)]
struct Told(Mutex<Vec<JsonValue>>, Mutex<Vec<Result<JsonValue, AskError>>>);

impl Host for Told {
    fn tell(&self, news: ServerNotification) -> BoxFuture<'_, ()> {
        self.0.lock().unwrap().push(serde_json::from_slice(&news.encode().unwrap()).unwrap());
        Box::pin(std::future::ready(()))
    }

    fn ask(&self, first: Option<ClientId>, request: ServerRequest) -> BoxFuture<'_, Result<JsonValue, AskError>> {
        let asked = request.encode(&RequestId::Integer(0)).unwrap();
        self.0
            .lock()
            .unwrap()
            .push(json!([first.map(|client| client.0), serde_json::from_slice::<JsonValue>(&asked).unwrap()]));
        let answer = self.1.lock().unwrap().pop();
        Box::pin(async {
            tokio::task::yield_now().await;
            match answer {
                Some(answer) => answer,
                None => std::future::pending().await,
            }
        })
    }
}

struct Fixture {
    home: tempfile::TempDir,
    told: Arc<Told>,
    accounts: Accounts,
}

fn fixture(auth: Option<JsonValue>) -> Fixture {
    fixture_with(auth, |_| {})
}

fn fixture_with(auth: Option<JsonValue>, change: impl FnOnce(&mut Options)) -> Fixture {
    let home = tempfile::tempdir().unwrap();
    if let Some(auth) = auth {
        fs::write(home.path().join("auth.json"), auth.to_string()).unwrap();
    }
    let mut options = Options {
        home: home.path().into(),
        store: CliCredentialsStore::File,
        forced_method: None,
        forced_workspace: None,
        requires_openai_auth: true,
    };
    change(&mut options);
    let told: Arc<Told> = Arc::default();
    Fixture { accounts: Accounts::new(options, Arc::clone(&told) as Arc<dyn Host>), home, told }
}

impl Fixture {
    fn write(&self, auth: &JsonValue) {
        fs::write(self.home.path().join("auth.json"), auth.to_string()).unwrap();
    }

    fn on_disk(&self) -> Option<JsonValue> {
        Some(serde_json::from_slice(&fs::read(self.home.path().join("auth.json")).ok()?).unwrap())
    }

    fn account(&self) -> Option<Account> {
        self.accounts.read().unwrap().account
    }

    async fn token(&self) -> Option<String> {
        self.accounts.bearer().await.unwrap().map(|bearer| bearer.token.reveal().to_owned())
    }

    async fn login_with_key(&self, key: &str) -> Result<LoginAccountResponse, AccountError> {
        let mut outcome = None;
        self.accounts.login_with_key(Secret::from(key.to_owned()), |reply| outcome = Some(reply)).await;
        outcome.unwrap()
    }

    fn told(&self) -> Vec<JsonValue> {
        std::mem::take(&mut *self.told.0.lock().unwrap())
    }
}

#[test]
fn a_stored_account_is_read_with_its_email_and_plan() {
    let read = |auth| fixture(auth).accounts.read().unwrap();
    let answer = |account| GetAccountResponse { account, requires_openai_auth: true };
    assert_eq!(read(None), answer(None));
    assert_eq!(read(Some(json!({ "OPENAI_API_KEY": "sk" }))), answer(Some(Account::ApiKey)));
    let both = json!({ "OPENAI_API_KEY": "sk", "tokens": signed_in("a", "b")["tokens"] });
    assert_eq!(read(Some(both)), answer(Some(Account::ApiKey)));
    let account = Account::Chatgpt { email: "ann@example.com".into(), plan_type: PlanType::Plus };
    assert_eq!(read(Some(signed_in("a", "b"))), answer(Some(account)));
}

#[test]
fn who_needs_no_account_is_told_of_none() {
    let key = json!({ "OPENAI_API_KEY": "sk" });
    let fixture = fixture_with(Some(key), |options| options.requires_openai_auth = false);
    assert_eq!(fixture.accounts.read().unwrap(), GetAccountResponse { account: None, requires_openai_auth: false });
    let status = fixture.accounts.auth_status(&GetAuthStatusParams { include_token: Some(true), refresh_token: None });
    assert_eq!((status.auth_method, status.auth_token, status.requires_openai_auth), (None, None, Some(false)));
}

#[test]
fn an_account_without_email_cannot_be_shown() {
    let mut auth = signed_in("a", "b");
    auth["tokens"]["id_token"] = jwt(&json!({})).into();
    let error = fixture(Some(auth)).accounts.read().unwrap_err();
    assert_eq!(error.to_string(), "email and plan type are required for chatgpt authentication");
    assert!(error.is_refusal());
}

#[test]
fn broken_credentials_are_as_good_as_none() {
    let mut no_jwt = signed_in("a", "b");
    no_jwt["tokens"]["id_token"] = "opaque".into();
    let mut no_time = signed_in("a", "b");
    no_time["last_refresh"] = "yesterday".into();
    let no_key = json!({ "auth_mode": "apikey", "OPENAI_API_KEY": null });
    for auth in [json!([]), json!({}), no_key, no_jwt, no_time, json!({ "auth_mode": "other" })] {
        assert_eq!(fixture(Some(auth.clone())).account(), None, "{auth}");
    }
}

#[test]
fn credentials_that_the_configuration_forbids_do_not_count() {
    let check = |auth: JsonValue, change: fn(&mut Options), expected: bool| {
        assert_eq!(fixture_with(Some(auth.clone()), change).account().is_some(), expected, "{auth}");
    };
    let key = || json!({ "OPENAI_API_KEY": "sk" });
    check(key(), |options| options.forced_method = Some(ForcedLoginMethod::Chatgpt), false);
    check(key(), |options| options.forced_workspace = Some("ws".into()), true);
    check(signed_in("a", "ws"), |options| options.forced_method = Some(ForcedLoginMethod::Api), false);
    check(signed_in("a", "ws"), |options| options.forced_workspace = Some("ws".into()), true);
    check(signed_in("a", "other"), |options| options.forced_workspace = Some("ws".into()), false);
}

#[test]
fn the_token_is_shown_only_on_request() {
    let keyed = fixture(Some(json!({ "OPENAI_API_KEY": "sk" })));
    let status =
        |include_token| keyed.accounts.auth_status(&GetAuthStatusParams { include_token, refresh_token: None });
    for (asked, token) in [(None, None), (Some(false), None), (Some(true), Some("sk"))] {
        let found = status(asked);
        assert_eq!((found.auth_method, found.auth_token.as_ref().map(Secret::reveal)), (Some(AuthMode::Apikey), token));
    }
    let empty = fixture(Some(json!({ "OPENAI_API_KEY": "" })));
    assert_eq!(empty.accounts.auth_status(&GetAuthStatusParams::default()).auth_method, None);
}

#[tokio::test]
async fn tokens_that_were_never_refreshed_cannot_be_used() {
    let mut auth = signed_in("a", "b");
    auth["last_refresh"] = JsonValue::Null;
    let fixture = fixture(Some(auth));
    assert!(fixture.account().is_some());
    assert_eq!(
        fixture.accounts.bearer().await,
        Err(ModelError::Credentials("Token data is not available.".to_owned()))
    );
    assert_eq!(fixture.accounts.auth_status(&GetAuthStatusParams::default()).auth_method, None);
}

#[tokio::test]
async fn a_key_replaces_a_sign_in_and_everybody_is_told_after_the_answer() {
    let fixture = fixture(Some(signed_in("access-1", "acct")));
    assert_eq!(fixture.token().await.as_deref(), Some("access-1"));
    let told = Arc::clone(&fixture.told);
    let answered = |reply: Result<_, AccountError>| {
        assert_eq!(reply.unwrap(), LoginAccountResponse::ApiKey);
        assert!(told.0.lock().unwrap().is_empty(), "the answer comes first");
    };
    fixture.accounts.login_with_key(Secret::from(" sk-new\n".to_owned()), answered).await;
    assert_eq!(
        fixture.told(),
        [
            json!({ "method": "account/login/completed", "params": { "loginId": null, "success": true, "error": null } }),
            json!({ "method": "account/updated", "params": { "authMode": "apikey", "planType": null } }),
        ]
    );
    assert_eq!(fixture.on_disk(), Some(json!({ "auth_mode": "apikey", "OPENAI_API_KEY": "sk-new" })));
    assert_eq!(fixture.token().await.as_deref(), Some("sk-new"), "the next call uses it");
}

#[tokio::test]
async fn keys_that_are_not_wanted_change_nothing() {
    let forced = fixture_with(None, |options| options.forced_method = Some(ForcedLoginMethod::Chatgpt));
    let external = json!({ "auth_mode": "chatgptAuthTokens", "tokens": signed_in("a", "b")["tokens"] });
    for (fixture, key, message) in [
        (forced, "sk", "API key login is disabled. Use ChatGPT login instead."),
        (fixture(None), " ", "API key must not be empty"),
        (
            fixture(Some(external)),
            "sk",
            "External auth is active. Use account/login/start (chatgptAuthTokens) to update it or account/logout to clear it.",
        ),
    ] {
        let before = fixture.on_disk();
        let error = fixture.login_with_key(key).await.unwrap_err();
        assert_eq!((error.to_string(), error.is_refusal()), (message.to_owned(), true));
        assert_eq!((fixture.on_disk(), fixture.told()), (before, Vec::new()));
    }
}

#[tokio::test]
async fn a_key_that_cannot_be_saved_is_an_error() {
    let fixture = fixture_with(None, |options| options.store = CliCredentialsStore::Keyring);
    let error = fixture.login_with_key("sk").await.unwrap_err();
    let message = "failed to save api key: failed to write OAuth tokens to keyring: there is no keyring";
    assert_eq!((error.to_string(), error.is_refusal()), (message.to_owned(), false));
    assert_eq!(fixture.account(), None);
}

#[tokio::test]
async fn a_logout_is_told_also_when_nobody_was_signed_in() {
    for auth in [None, Some(json!({ "OPENAI_API_KEY": "sk" }))] {
        let fixture = fixture(auth);
        fixture.accounts.logout(|reply| assert!(reply.is_ok())).await;
        let updated = json!({ "method": "account/updated", "params": { "authMode": null, "planType": null } });
        assert_eq!(fixture.told(), [updated]);
        assert_eq!((fixture.account(), fixture.on_disk(), fixture.token().await), (None, None, None));
    }
}

#[tokio::test]
async fn after_a_refusal_a_newer_token_of_the_same_account_is_taken() {
    let fixture = fixture(Some(signed_in("old", "acct")));
    let old = fixture.accounts.bearer().await.unwrap().unwrap();
    assert_eq!(old.kind, BearerKind::Chatgpt { account_id: Some("acct".into()) });
    fixture.write(&signed_in("new", "acct"));
    assert_eq!(fixture.token().await.as_deref(), Some("old"), "it is read once");
    assert_eq!(fixture.accounts.recover(&old, 1).await, Ok(true));
    assert_eq!(fixture.token().await.as_deref(), Some("new"));
    assert_eq!(fixture.accounts.recover(&old, 2).await, Ok(true), "it was replaced meanwhile");
    let new = fixture.accounts.bearer().await.unwrap().unwrap();
    fixture.write(&signed_in("theirs", "other"));
    assert_eq!(fixture.accounts.recover(&new, 1).await, Ok(true));
    assert_eq!(fixture.token().await.as_deref(), Some("new"));
    assert_eq!(fixture.accounts.recover(&new, 2).await, Ok(false));
}

#[tokio::test]
async fn a_refused_key_does_not_get_better() {
    let fixture = fixture(Some(json!({ "OPENAI_API_KEY": "sk" })));
    let key = fixture.accounts.bearer().await.unwrap().unwrap();
    assert_eq!(fixture.accounts.recover(&key, 1).await, Ok(false));
}

/// A token as a client of this email brings it.
fn brought(email: &str) -> String {
    jwt(&json!({ "email": email, "https://api.openai.com/auth": { "chatgpt_plan_type": "team" } }))
}

impl Fixture {
    async fn login_with_tokens(&self, token: &str, account: &str, plan: Option<&str>) -> Result<(), AccountError> {
        let tokens = ExternalTokens {
            access_token: Secret::from(token.to_owned()),
            account_id: account.into(),
            plan: plan.map(Into::into),
        };
        let mut outcome = None;
        self.accounts.login_with_tokens(tokens, ClientId(7), |reply| outcome = Some(reply)).await;
        outcome.unwrap().map(|answer| assert_eq!(answer, LoginAccountResponse::ChatgptAuthTokens))
    }

    /// What becomes of a call whose bearer is refused, when the client answers like this.
    async fn refused(&self, answer: Result<JsonValue, AskError>) -> Result<bool, ModelError> {
        self.told.1.lock().unwrap().push(answer);
        let bearer = self.accounts.bearer().await.unwrap().unwrap();
        self.accounts.recover(&bearer, 1).await
    }
}

#[tokio::test]
async fn tokens_of_a_client_hide_what_is_on_disk_until_the_logout() {
    let fixture = fixture(Some(json!({ "OPENAI_API_KEY": "sk" })));
    fixture.login_with_tokens(&brought("ext@example.com"), "ws-a", None).await.unwrap();
    let updated = json!({ "authMode": "chatgptAuthTokens", "planType": "team" });
    assert_eq!(fixture.told()[1]["params"], updated);
    let account = |plan_type| Some(Account::Chatgpt { email: "ext@example.com".into(), plan_type });
    assert_eq!(fixture.account(), account(PlanType::Team));
    assert_eq!(fixture.on_disk(), Some(json!({ "OPENAI_API_KEY": "sk" })));
    let bearer = fixture.accounts.bearer().await.unwrap().unwrap();
    assert_eq!(bearer.kind, BearerKind::Chatgpt { account_id: Some("ws-a".into()) });

    fixture.login_with_tokens(&brought("ext@example.com"), "ws-a", Some("Plus")).await.unwrap();
    assert_eq!(fixture.account(), account(PlanType::Plus), "what the client says counts");

    fixture.accounts.logout(|reply| assert!(reply.is_ok())).await;
    assert_eq!((fixture.account(), fixture.on_disk()), (None, None));
}

#[tokio::test]
async fn tokens_that_are_not_wanted_change_nothing() {
    let api = fixture_with(None, |options| options.forced_method = Some(ForcedLoginMethod::Api));
    let workspace = fixture_with(None, |options| options.forced_workspace = Some("ws-1".into()));
    for (fixture, token, message, refusal) in [
        (api, brought("e"), "External ChatGPT auth is disabled. Use API key login instead.", true),
        (workspace, brought("e"), "External auth must use workspace ws-1, but received \"ws-2\".", true),
        (fixture(None), "opaque".into(), "failed to set external auth: invalid ID token format", false),
    ] {
        let error = fixture.login_with_tokens(&token, "ws-2", None).await.unwrap_err();
        assert_eq!((error.to_string(), error.is_refusal()), (message.to_owned(), refusal));
        assert_eq!((fixture.account(), fixture.told()), (None, Vec::new()));
    }
}

#[tokio::test]
async fn the_client_that_brought_the_tokens_is_asked_for_new_ones() {
    let fixture = fixture(None);
    fixture.login_with_tokens(&brought("old@example.com"), "ws-a", None).await.unwrap();
    fixture.told();
    let new = brought("new@example.com");
    let answer = json!({ "accessToken": new, "chatgptAccountId": "ws-b", "chatgptPlanType": "plus" });
    assert_eq!(fixture.refused(Ok(answer)).await, Ok(true));
    assert_eq!(fixture.token().await, Some(new));
    let params = json!({ "reason": "unauthorized", "previousAccountId": "ws-a" });
    let asked = json!([7, { "method": "account/chatgptAuthTokens/refresh", "id": 0, "params": params }]);
    let params = json!({ "authMode": "chatgptAuthTokens", "planType": "plus" });
    assert_eq!(fixture.told(), [asked, json!({ "method": "account/updated", "params": params })]);
    let bearer = fixture.accounts.bearer().await.unwrap().unwrap();
    assert_eq!(fixture.accounts.recover(&bearer, 2).await, Ok(false), "new tokens that are refused are the last");
}

#[tokio::test]
async fn what_a_client_fails_to_bring_is_told() {
    let error = RpcError { code: -32000, message: "refresh failed".into(), data: None };
    for (answer, message) in [
        (Err(AskError::Refused(error)), "auth refresh request failed: code=-32000 message=refresh failed"),
        (Err(AskError::Nobody), "auth refresh request failed: no client is connected"),
        (Ok(json!({ "chatgptAccountId": "ws" })), "missing field `accessToken`"),
        (Ok(json!({ "accessToken": "opaque", "chatgptAccountId": "ws" })), "invalid ID token format"),
        (
            Ok(json!({ "accessToken": brought("e"), "chatgptAccountId": "ws-b" })),
            "external auth refresh returned workspace \"ws-b\", expected \"ws\"",
        ),
    ] {
        let fixture = fixture_with(None, |options| options.forced_workspace = Some("ws".into()));
        fixture.login_with_tokens(&brought("e"), "ws", None).await.unwrap();
        assert_eq!(fixture.refused(answer).await, Err(ModelError::Unauthorized(message.to_owned())));
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_says_nothing_is_waited_for_ten_seconds() {
    let fixture = fixture(None);
    fixture.login_with_tokens(&brought("e"), "ws", None).await.unwrap();
    let bearer = fixture.accounts.bearer().await.unwrap().unwrap();
    let message = "auth refresh request timed out after 10s";
    assert_eq!(fixture.accounts.recover(&bearer, 1).await, Err(ModelError::Unauthorized(message.to_owned())));
}

#[tokio::test]
async fn calls_that_are_refused_together_ask_the_client_once() {
    let fixture = fixture(None);
    fixture.login_with_tokens(&brought("e"), "ws", None).await.unwrap();
    fixture.told();
    fixture.told.1.lock().unwrap().push(Err(AskError::Nobody));
    let bearer = fixture.accounts.bearer().await.unwrap().unwrap();
    let recover = || fixture.accounts.recover(&bearer, 1);
    let (one, two, three) = tokio::join!(recover(), recover(), recover());
    assert!(one.is_err());
    assert_eq!((&one, &one), (&two, &three));
    assert_eq!(fixture.told().len(), 1);
}
