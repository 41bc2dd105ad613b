//! Stored credentials, logins with an API key, logouts.

use loomd_model::ModelError;
use loomd_protocol::{AuthMode, ForcedLoginMethod, PlanType};

use super::*;

#[tokio::test]
async fn a_stored_account_is_read_with_its_email_and_plan() {
    let both = json!({ "OPENAI_API_KEY": "sk", "tokens": signed_in("a", "b")["tokens"] });
    let chatgpt = Account::Chatgpt { email: "ann@example.com".into(), plan_type: PlanType::Plus };
    for (auth, account) in [
        (None, None),
        (Some(json!({ "OPENAI_API_KEY": "sk" })), Some(Account::ApiKey)),
        (Some(both), Some(Account::ApiKey)),
        (Some(signed_in("a", "b")), Some(chatgpt)),
    ] {
        let answer = GetAccountResponse { account, requires_openai_auth: true };
        assert_eq!(fixture(auth.clone()).read().await.unwrap(), answer, "{auth:?}");
    }
}

#[tokio::test]
async fn no_account_is_returned_where_none_is_required() {
    let key = json!({ "OPENAI_API_KEY": "sk" });
    let fixture = fixture_with(Some(key), |options| options.requires_openai_auth = false);
    assert_eq!(fixture.read().await.unwrap(), GetAccountResponse { account: None, requires_openai_auth: false });
    let status = fixture.status(Some(true)).await;
    assert_eq!((status.auth_method, status.auth_token, status.requires_openai_auth), (None, None, Some(false)));
}

#[tokio::test]
async fn an_account_without_email_is_an_error_in_the_older_release() {
    let mut auth = signed_in("a", "b");
    auth["tokens"]["id_token"] = jwt(&json!({})).into();
    let fixture = fixture(Some(auth));
    let error = fixture.read().await.unwrap_err();
    assert_eq!(error.to_string(), "email and plan type are required for chatgpt authentication");
    assert!(error.is_refusal());
    let newer = fixture.accounts.read(&GetAccountParams::default(), Level::V0_166).await.unwrap();
    let shown = Level::V0_166.encode(|| serde_json::to_value(&newer).unwrap());
    assert_eq!(shown["account"]["email"], serde_json::Value::Null);
    assert_eq!(serde_json::from_value::<GetAccountResponse>(shown).unwrap(), newer);
}

#[tokio::test]
async fn malformed_credentials_count_as_none() {
    let mut no_jwt = signed_in("a", "b");
    no_jwt["tokens"]["id_token"] = "opaque".into();
    let mut no_time = signed_in("a", "b");
    no_time["last_refresh"] = "yesterday".into();
    let no_key = json!({ "auth_mode": "apikey", "OPENAI_API_KEY": null });
    for auth in [json!([]), json!({}), no_key, no_jwt, no_time, json!({ "auth_mode": "other" })] {
        assert_eq!(fixture(Some(auth.clone())).account().await, None, "{auth}");
    }
}

#[tokio::test]
async fn forbidden_credentials_count_as_none() {
    let check = async |auth: JsonValue, change: fn(&mut Options), expected: bool| {
        assert_eq!(fixture_with(Some(auth.clone()), change).account().await.is_some(), expected, "{auth}");
    };
    let key = || json!({ "OPENAI_API_KEY": "sk" });
    check(key(), |options| options.forced_method = Some(ForcedLoginMethod::Chatgpt), false).await;
    check(key(), |options| options.forced_workspace = Some("ws".into()), true).await;
    check(signed_in("a", "ws"), |options| options.forced_method = Some(ForcedLoginMethod::Api), false).await;
    check(signed_in("a", "ws"), |options| options.forced_workspace = Some("ws".into()), true).await;
    check(signed_in("a", "other"), |options| options.forced_workspace = Some("ws".into()), false).await;
}

#[tokio::test]
async fn the_token_is_returned_only_on_request() {
    let keyed = fixture(Some(json!({ "OPENAI_API_KEY": "sk" })));
    for (asked, token) in [(None, None), (Some(false), None), (Some(true), Some("sk"))] {
        let found = keyed.status(asked).await;
        assert_eq!((found.auth_method, found.auth_token.as_ref().map(Secret::reveal)), (Some(AuthMode::Apikey), token));
    }
    let empty = fixture(Some(json!({ "OPENAI_API_KEY": "" })));
    assert_eq!(empty.status(None).await.auth_method, None);
}

#[tokio::test]
async fn tokens_that_were_never_refreshed_cannot_be_used() {
    let mut auth = signed_in("a", "b");
    auth["last_refresh"] = JsonValue::Null;
    let fixture = fixture(Some(auth));
    assert!(fixture.account().await.is_some());
    assert_eq!(
        fixture.accounts.bearer().await,
        Err(ModelError::Credentials("Token data is not available.".to_owned()))
    );
    assert_eq!(fixture.status(None).await.auth_method, None);
}

#[tokio::test]
async fn a_key_replaces_a_sign_in_and_notifications_follow_the_reply() {
    let fixture = fixture(Some(signed_in("access-1", "acct")));
    assert_eq!(fixture.token().await.as_deref(), Some("access-1"));
    let host = Arc::clone(&fixture.host);
    let answered = |reply: Result<_, AccountError>| {
        assert_eq!(reply.unwrap(), LoginAccountResponse::ApiKey);
        assert!(host.sent.lock().is_empty(), "the reply comes first");
    };
    fixture.accounts.login_with_key(Secret::from(" sk-new\n".to_owned()), answered).await;
    assert_eq!(
        fixture.sent(),
        [
            json!({ "method": "account/login/completed", "params": { "loginId": null, "success": true, "error": null } }),
            json!({ "method": "account/updated", "params": { "authMode": "apikey", "planType": null } }),
        ]
    );
    assert_eq!(fixture.on_disk(), Some(json!({ "auth_mode": "apikey", "OPENAI_API_KEY": "sk-new" })));
    assert_eq!(fixture.token().await.as_deref(), Some("sk-new"), "the next call uses it");
}

#[tokio::test]
async fn refused_keys_change_nothing() {
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
        assert_eq!((fixture.on_disk(), fixture.sent()), (before, Vec::new()));
    }
}

#[tokio::test]
async fn a_key_that_cannot_be_saved_is_an_error() {
    let fixture = fixture_with(None, |options| options.store = CliCredentialsStore::Keyring);
    let error = fixture.login_with_key("sk").await.unwrap_err();
    let message = "failed to save api key: failed to write OAuth tokens to keyring: there is no keyring";
    assert_eq!((error.to_string(), error.is_refusal()), (message.to_owned(), false));
    assert_eq!(fixture.account().await, None);
}

#[tokio::test]
async fn a_logout_notifies_even_when_signed_out() {
    for auth in [None, Some(json!({ "OPENAI_API_KEY": "sk" }))] {
        let fixture = fixture(auth);
        fixture.accounts.logout(|reply| assert!(reply.is_ok())).await;
        let updated = json!({ "method": "account/updated", "params": { "authMode": null, "planType": null } });
        assert_eq!(fixture.sent(), [updated]);
        assert_eq!((fixture.account().await, fixture.on_disk(), fixture.token().await), (None, None, None));
    }
}

#[tokio::test]
async fn a_refused_key_is_not_retried() {
    let fixture = fixture(Some(json!({ "OPENAI_API_KEY": "sk" })));
    let key = fixture.bearer().await;
    assert_eq!(fixture.accounts.recover(&key, 1).await, Ok(false));
}
