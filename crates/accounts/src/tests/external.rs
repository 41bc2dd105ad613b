//! Tokens that clients supply.

use loomd_model::{BearerKind, ModelError};
use loomd_protocol::{ForcedLoginMethod, PlanType, RpcError};

use super::*;

/// A token for a user with this email, as a client supplies it.
fn client_token(email: &str) -> String {
    jwt(&json!({ "email": email, "https://api.openai.com/auth": { "chatgpt_plan_type": "team" } }))
}

impl Fixture {
    async fn login_with_tokens(&self, token: &str, account: &str, plan: Option<&str>) -> Result<(), AccountError> {
        let access_token = Secret::from(token.to_owned());
        let (account_id, plan) = (Some(account.into()), plan.map(Into::into));
        self.login(ExternalTokens { id_token: None, access_token, account_id, plan }).await
    }

    /// Logs in with an id token and an access token.
    async fn login_with_id_token(&self, id_token: &str, access_token: &str) -> Result<(), AccountError> {
        let [id_token, access_token] = [id_token, access_token].map(|token| Secret::from(token.to_owned()));
        self.login(ExternalTokens { id_token: Some(id_token), access_token, account_id: None, plan: None }).await
    }

    async fn login(&self, tokens: ExternalTokens) -> Result<(), AccountError> {
        let mut outcome = None;
        self.accounts.login_with_tokens(tokens, ClientId(7), |reply| outcome = Some(reply)).await;
        outcome.unwrap().map(|answer| assert_eq!(answer, LoginAccountResponse::ChatgptAuthTokens))
    }

    /// Recovers from a 401, with this response of the client.
    async fn refused(&self, answer: Result<JsonValue, RequestError>) -> Result<bool, ModelError> {
        self.host.responses.lock().push(answer);
        let bearer = self.accounts.bearer().await.unwrap().unwrap();
        self.accounts.recover(&bearer, 1).await
    }
}

#[tokio::test]
async fn client_tokens_take_precedence_over_stored_ones_until_logout() {
    let fixture = fixture(Some(json!({ "OPENAI_API_KEY": "sk" })));
    fixture.login_with_tokens(&client_token("ext@example.com"), "ws-a", None).await.unwrap();
    let updated = json!({ "authMode": "chatgptAuthTokens", "planType": "team" });
    assert_eq!(fixture.sent()[1]["params"], updated);
    let account = |plan_type| Some(Account::Chatgpt { email: "ext@example.com".into(), plan_type });
    assert_eq!(fixture.account().await, account(PlanType::Team));
    assert_eq!(fixture.on_disk(), Some(json!({ "OPENAI_API_KEY": "sk" })));
    let bearer = fixture.bearer().await;
    assert_eq!(bearer.kind, BearerKind::Chatgpt { account_id: Some("ws-a".into()) });

    fixture.login_with_tokens(&client_token("ext@example.com"), "ws-a", Some("Plus")).await.unwrap();
    assert_eq!(fixture.account().await, account(PlanType::Plus), "what the client says counts");

    fixture.accounts.logout(|reply| assert!(reply.is_ok())).await;
    assert_eq!((fixture.account().await, fixture.on_disk()), (None, None));
}

/// An id token of a member of a workspace.
fn id_token(email: &str, workspace: &str) -> String {
    let auth = json!({ "chatgpt_account_id": workspace, "chatgpt_plan_type": "business" });
    jwt(&json!({ "email": email, "https://api.openai.com/auth": auth }))
}

#[tokio::test]
async fn account_and_plan_are_taken_from_the_claims_of_the_tokens() {
    let fixture = fixture(None);
    // The access token may be opaque.
    fixture.login_with_id_token(&id_token("id@example.com", "ws-id"), "opaque").await.unwrap();
    let account = Account::Chatgpt { email: "id@example.com".into(), plan_type: PlanType::Business };
    assert_eq!(fixture.account().await, Some(account));
    let bearer = fixture.bearer().await;
    assert_eq!(
        (bearer.token.reveal(), bearer.kind),
        ("opaque", BearerKind::Chatgpt { account_id: Some("ws-id".into()) })
    );
    // What the id token does not claim, the access token does.
    let access = jwt(&json!({ "https://api.openai.com/auth": { "chatgpt_account_id": "ws-access" } }));
    fixture.login_with_id_token(&jwt(&json!({ "email": "id@example.com" })), &access).await.unwrap();
    assert_eq!(fixture.bearer().await.kind, BearerKind::Chatgpt { account_id: Some("ws-access".into()) });

    fixture.sent();
    let answer = json!({ "idToken": id_token("new@example.com", "ws-new"), "accessToken": "renewed" });
    assert_eq!(fixture.refused(Ok(answer)).await, Ok(true));
    let bearer = fixture.bearer().await;
    let renewed = BearerKind::Chatgpt { account_id: Some("ws-new".into()) };
    assert_eq!((bearer.token.reveal(), bearer.kind), ("renewed", renewed));
}

#[tokio::test]
async fn tokens_of_no_or_a_forbidden_account_are_refused_by_the_field_or_claim_that_is_missing() {
    let fixture = || fixture_with(None, |options| options.forced_workspace = Some("ws-1".into()));
    let nobody = jwt(&json!({}));
    let tokens = |id_token: Option<&str>| ExternalTokens {
        id_token: id_token.map(|token| Secret::from(token.to_owned())),
        access_token: Secret::from(nobody.clone()),
        account_id: None,
        plan: None,
    };
    for (tokens, message, refusal) in [
        (tokens(None), "Invalid request: missing field `chatgptAccountId`", true),
        (
            tokens(Some(&nobody)),
            "Invalid request: `idToken` has no claim `chatgpt_account_id`, and `chatgptAccountId` is missing",
            true,
        ),
        (tokens(Some(&id_token("e", "ws-2"))), "External auth must use workspace ws-1, but received \"ws-2\".", true),
        (tokens(Some("opaque")), "failed to set external auth: invalid ID token format", false),
    ] {
        let fixture = fixture();
        let error = fixture.login(tokens).await.unwrap_err();
        assert_eq!((error.to_string(), error.is_refusal()), (message.to_owned(), refusal));
        assert_eq!((fixture.account().await, fixture.sent()), (None, Vec::new()));
    }
}

#[tokio::test]
async fn refused_client_tokens_change_nothing() {
    let api = fixture_with(None, |options| options.forced_method = Some(ForcedLoginMethod::Api));
    let workspace = fixture_with(None, |options| options.forced_workspace = Some("ws-1".into()));
    for (fixture, token, message, refusal) in [
        (api, client_token("e"), "External ChatGPT auth is disabled. Use API key login instead.", true),
        (workspace, client_token("e"), "External auth must use workspace ws-1, but received \"ws-2\".", true),
        (fixture(None), "opaque".into(), "failed to set external auth: invalid ID token format", false),
    ] {
        let error = fixture.login_with_tokens(&token, "ws-2", None).await.unwrap_err();
        assert_eq!((error.to_string(), error.is_refusal()), (message.to_owned(), refusal));
        assert_eq!((fixture.account().await, fixture.sent()), (None, Vec::new()));
    }
}

#[tokio::test]
async fn the_client_that_supplied_tokens_is_requested_to_renew_them() {
    let fixture = fixture(None);
    fixture.login_with_tokens(&client_token("old@example.com"), "ws-a", None).await.unwrap();
    fixture.sent();
    let new = client_token("new@example.com");
    let answer = json!({ "accessToken": new, "chatgptAccountId": "ws-b", "chatgptPlanType": "plus" });
    assert_eq!(fixture.refused(Ok(answer)).await, Ok(true));
    assert_eq!(fixture.token().await, Some(new));
    let params = json!({ "reason": "unauthorized", "previousAccountId": "ws-a" });
    let asked = json!([7, { "method": "account/chatgptAuthTokens/refresh", "id": 0, "params": params }]);
    let params = json!({ "authMode": "chatgptAuthTokens", "planType": "plus" });
    assert_eq!(fixture.sent(), [asked, json!({ "method": "account/updated", "params": params })]);
    let bearer = fixture.bearer().await;
    assert_eq!(fixture.accounts.recover(&bearer, 2).await, Ok(false), "new tokens that are refused are the last");
}

#[tokio::test]
async fn a_failed_renewal_by_the_client_is_reported() {
    let error = RpcError { code: -32000, message: "refresh failed".into(), data: None };
    for (answer, message) in [
        (Err(RequestError::Rpc(error)), "auth refresh request failed: code=-32000 message=refresh failed"),
        (Err(RequestError::NoClient), "auth refresh request failed: no client is connected"),
        (Ok(json!({ "chatgptAccountId": "ws" })), "missing field `accessToken`"),
        (Ok(json!({ "accessToken": client_token("e") })), "missing field `chatgptAccountId`"),
        (Ok(json!({ "accessToken": "opaque", "chatgptAccountId": "ws" })), "invalid ID token format"),
        (
            Ok(json!({ "accessToken": client_token("e"), "chatgptAccountId": "ws-b" })),
            "external auth refresh returned workspace \"ws-b\", expected \"ws\"",
        ),
    ] {
        let fixture = fixture_with(None, |options| options.forced_workspace = Some("ws".into()));
        fixture.login_with_tokens(&client_token("e"), "ws", None).await.unwrap();
        assert_eq!(fixture.refused(answer).await, Err(ModelError::Unauthorized(message.to_owned())));
    }
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_renewal_times_out_after_ten_seconds() {
    let fixture = fixture(None);
    fixture.login_with_tokens(&client_token("e"), "ws", None).await.unwrap();
    let bearer = fixture.bearer().await;
    let message = "auth refresh request timed out after 10s";
    assert_eq!(fixture.accounts.recover(&bearer, 1).await, Err(ModelError::Unauthorized(message.to_owned())));
}

#[tokio::test]
async fn concurrent_401s_send_one_request_to_the_client() {
    let fixture = fixture(None);
    fixture.login_with_tokens(&client_token("e"), "ws", None).await.unwrap();
    fixture.sent();
    fixture.host.responses.lock().push(Err(RequestError::NoClient));
    let bearer = fixture.bearer().await;
    let recover = || fixture.accounts.recover(&bearer, 1);
    let (one, two, three) = tokio::join!(recover(), recover(), recover());
    assert!(one.is_err());
    assert_eq!((&one, &one), (&two, &three));
    assert_eq!(fixture.sent().len(), 1);
}
