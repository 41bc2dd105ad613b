//! Refreshing the tokens of a sign-in.

use jiff::SignedDuration;
use loomd_model::{BearerKind, ModelError};
use loomd_protocol::PlanType;

use super::*;

const OTHER_ACCOUNT: &str = "Your access token could not be refreshed because you have since logged out or signed in to another account. Please sign in again.";

/// A signed-in fixture with this issuer.
async fn with_issuer(auth: JsonValue) -> (Fixture, Backend) {
    let (issuer, url) = Backend::start().await;
    (fixture_with(Some(auth), |options| options.issuer = url), issuer)
}

impl Fixture {
    async fn read_refreshed(&self) -> Option<Account> {
        self.accounts.read(&GetAccountParams { refresh_token: true }, Level::V0_118).await.unwrap().account
    }
}

#[tokio::test]
async fn a_requested_refresh_is_stored_and_notified() {
    let (fixture, issuer) = with_issuer(signed_in("access-1", "acct")).await;
    fixture.write(&{
        let mut auth = signed_in("access-1", "acct");
        auth["newer"] = json!("kept");
        auth
    });
    let plan = json!({ "chatgpt_plan_type": "pro" });
    let id_token = jwt(&json!({ "email": "new@example.com", "https://api.openai.com/auth": plan }));
    issuer.answer(200, &json!({ "id_token": id_token, "access_token": "access-2", "refresh_token": "refresh-2" }));
    let account = Account::Chatgpt { email: "new@example.com".into(), plan_type: PlanType::Pro };
    assert_eq!(fixture.read_refreshed().await, Some(account));
    let asked = json!({
        "client_id": "app_EMoamEEZ73f0CkXaXp7hrann", "grant_type": "refresh_token", "refresh_token": "refresh-1",
    });
    assert_eq!(issuer.requests(), [format!("POST /oauth/token {asked}")]);
    let disk = fixture.on_disk().unwrap();
    let tokens = json!({
        "id_token": id_token, "access_token": "access-2", "refresh_token": "refresh-2", "account_id": "acct",
    });
    assert_eq!((&disk["tokens"], &disk["newer"]), (&tokens, &json!("kept")));
    let params = json!({ "authMode": "chatgpt", "planType": "pro" });
    assert_eq!(fixture.sent(), [json!({ "method": "account/updated", "params": params })]);
}

#[tokio::test]
async fn tokens_missing_from_a_refresh_keep_their_value() {
    let before = signed_in("access-1", "acct");
    let (fixture, issuer) = with_issuer(before.clone()).await;
    issuer.answer(200, &json!({ "access_token": "access-2", "id_token": "no-jwt" }));
    fixture.read_refreshed().await;
    let mut tokens = before["tokens"].clone();
    tokens["access_token"] = "access-2".into();
    assert_eq!(fixture.on_disk().unwrap()["tokens"], tokens);
    assert_eq!((fixture.token().await.as_deref(), fixture.sent()), (Some("access-2"), Vec::new()));
}

#[tokio::test]
async fn a_failed_refresh_keeps_the_account_and_a_refused_token_is_not_retried() {
    let (fixture, issuer) = with_issuer(signed_in("access-1", "acct")).await;
    issuer.answer(500, &json!({ "error": { "message": "down" } }));
    assert!(fixture.read_refreshed().await.is_some());
    assert_eq!(fixture.status(Some(true)).await.auth_token.unwrap().reveal(), "access-1");
    issuer.answer(401, &json!({ "error": { "code": "refresh_token_reused" } }));
    for _ in 0..3 {
        assert!(fixture.read_refreshed().await.is_some());
    }
    assert_eq!(issuer.requests().len(), 2);
    assert_eq!(fixture.status(Some(true)).await.auth_token, None);

    fixture.write(&signed_in("access-2", "acct"));
    fixture.read_refreshed().await;
    assert_eq!(fixture.status(Some(true)).await.auth_token.unwrap().reveal(), "access-2");
}

#[tokio::test]
async fn a_requested_refresh_adopts_credentials_of_other_programs() {
    let fixture = fixture(Some(signed_in("access-1", "acct")));
    assert!(fixture.account().await.is_some());
    fixture.write(&json!({ "OPENAI_API_KEY": "sk" }));
    assert!(matches!(fixture.account().await, Some(Account::Chatgpt { .. })));
    assert_eq!(fixture.read_refreshed().await, Some(Account::ApiKey));
    let params = json!({ "authMode": "apikey", "planType": null });
    assert_eq!(fixture.sent(), [json!({ "method": "account/updated", "params": params })]);
}

#[tokio::test]
async fn stale_tokens_are_refreshed_before_they_are_used() {
    let now = Timestamp::now();
    let aged = |days: i64, access: &str| {
        let mut auth = signed_in(access, "acct");
        auth["last_refresh"] = (now - SignedDuration::from_hours(24 * days)).to_string().into();
        auth
    };
    let expiring = |seconds: i64| jwt(&json!({ "exp": now.as_second() + seconds }));
    for (auth, refreshed) in [
        (aged(9, "opaque"), true),
        (aged(7, "opaque"), false),
        (aged(9, &expiring(600)), false),
        (aged(0, &expiring(-60)), true),
    ] {
        let old = auth["tokens"]["access_token"].as_str().unwrap().to_owned();
        let (fixture, issuer) = with_issuer(auth).await;
        issuer.answer(200, &json!({ "access_token": "access-2" }));
        let expected = if refreshed { "access-2".to_owned() } else { old };
        assert_eq!(fixture.token().await, Some(expected));
    }
}

#[tokio::test]
async fn stale_tokens_are_used_when_they_cannot_be_refreshed() {
    let (fixture, issuer) = with_issuer(signed_in(&jwt(&json!({ "exp": 1 })), "acct")).await;
    issuer.answer(401, &json!({}));
    let old = fixture.token().await;
    assert_eq!(fixture.token().await, old);
    assert_eq!(issuer.requests().len(), 1, "the refusal is remembered");
}

#[tokio::test]
async fn recovery_reads_the_file_then_refreshes_then_gives_up() {
    let (fixture, issuer) = with_issuer(signed_in("access-1", "acct")).await;
    let old = fixture.bearer().await;
    assert_eq!(old.kind, BearerKind::Chatgpt { account_id: Some("acct".into()) });
    assert_eq!(fixture.accounts.recover(&old, 1).await, Ok(true));
    assert_eq!(issuer.requests(), Vec::<String>::new());

    issuer.answer(200, &json!({ "access_token": "access-2" }));
    assert_eq!(fixture.accounts.recover(&old, 2).await, Ok(true));
    let new = fixture.bearer().await;
    assert_eq!(new.token.reveal(), "access-2");
    assert_eq!(fixture.accounts.recover(&new, 3).await, Ok(false));
    assert_eq!(fixture.accounts.recover(&old, 3).await, Ok(true), "it was replaced meanwhile");
}

#[tokio::test]
async fn recovery_adopts_stored_tokens_of_the_same_account_only() {
    let (fixture, issuer) = with_issuer(signed_in("access-1", "acct")).await;
    let old = fixture.bearer().await;
    fixture.write(&signed_in("access-2", "acct"));
    assert_eq!(fixture.token().await.as_deref(), Some("access-1"), "it is read once");
    assert_eq!(fixture.accounts.recover(&old, 1).await, Ok(true));
    let new = fixture.bearer().await;
    assert_eq!(new.token.reveal(), "access-2");

    for auth in [signed_in("theirs", "other"), json!({ "OPENAI_API_KEY": "sk" }), json!({})] {
        fixture.write(&auth);
        for refusals in [1, 2] {
            let refused = fixture.accounts.recover(&new, refusals).await;
            assert_eq!(refused, Err(ModelError::Unauthorized(OTHER_ACCOUNT.to_owned())));
        }
    }
    assert_eq!(issuer.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn a_failed_recovery_reports_the_cause() {
    let (fixture, issuer) = with_issuer(signed_in("access-1", "acct")).await;
    let old = fixture.bearer().await;
    issuer.answer(503, &json!({ "error": { "message": "down" } }));
    let down = "Failed to refresh token: 503 Service Unavailable: down";
    assert_eq!(fixture.accounts.recover(&old, 2).await, Err(ModelError::Credentials(down.to_owned())));
    issuer.answer(401, &json!({ "error": { "code": "refresh_token_expired" } }));
    let dead = "Your access token could not be refreshed because your refresh token has expired. Please log out and sign in again.";
    let recover = || fixture.accounts.recover(&old, 2);
    let (one, two) = tokio::join!(recover(), recover());
    let expected = Err(ModelError::Unauthorized(dead.to_owned()));
    assert_eq!((&one, &two), (&expected, &expected));
    assert_eq!(issuer.requests().len(), 2);
}

#[tokio::test]
async fn a_logout_during_a_refresh_is_not_undone() {
    let (fixture, issuer) = with_issuer(signed_in("access-1", "acct")).await;
    let accounts = fixture.accounts.clone();
    let refresh = tokio::spawn(async move { accounts.renew(accounts.current()).await });
    while issuer.requests().is_empty() {
        tokio::task::yield_now().await;
    }
    fixture.accounts.logout(|reply| assert!(reply.is_ok())).await;
    issuer.answer(200, &json!({ "access_token": "access-2" }));
    assert_eq!(refresh.await.unwrap(), Ok(()));
    assert_eq!((fixture.on_disk(), fixture.account().await), (None, None));
}
