//! Accounts: what all clients of a server see, and what model calls send.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use loomd_protocol::InitializeCapabilities;
use loomd_testkit::model::{message, unauthorized};
use loomd_testkit::{Home, ScriptedModel};
use serde_json::json;

use crate::common::launch;

/// A provider that uses the account's credentials.
fn home(model: &ScriptedModel) -> Home {
    Home::new(model).with("[model_providers.scripted]\nrequires_openai_auth = true")
}

fn sent(model: &ScriptedModel) -> Vec<Option<String>> {
    model.calls().iter().map(|call| call.header("authorization").map(str::to_owned)).collect()
}

#[tokio::test]
async fn login_and_logout_reach_running_threads_and_all_clients() {
    let model = ScriptedModel::start().await;
    let home = home(&model);
    let server = launch().websocket(&home).await;
    let (one, two) = (server.connect().await, server.connect().await);
    one.initialize().await;
    two.initialize().await;
    let thread = one.start_thread(Default::default()).await.id;
    model.reply(message("signed out")).reply(message("signed in")).reply(message("signed out"));
    one.run_turn(&thread, "hi").await;
    let login = json!({ "type": "apiKey", "apiKey": "sk-1" });
    one.request("account/login/start", login).await.expect("a key suffices");
    assert_eq!(two.notification("account/updated").await["authMode"], json!("apikey"));
    let read = two.request("account/read", json!({})).await;
    assert_eq!(read, Ok(json!({ "account": { "type": "apiKey" }, "requiresOpenaiAuth": true })));
    one.run_turn(&thread, "hi").await;
    two.clear();
    one.request("account/logout", json!({})).await.expect("any client may log out");
    assert_eq!(two.notification("account/updated").await["authMode"], json!(null));
    one.run_turn(&thread, "hi").await;
    assert_eq!(sent(&model), [None, Some("Bearer sk-1".to_owned()), None]);
    assert!(!home.path().join("auth.json").exists());
}

#[tokio::test]
async fn tokens_without_an_account_id_sign_in_to_the_account_of_their_claims() {
    let model = ScriptedModel::start().await;
    let home = home(&model);
    let server = launch().stdio(&home);
    server.initialize_with(InitializeCapabilities { experimental_api: true, ..Default::default() }).await;
    let token = |email: &str, account: &str| {
        let auth = json!({ "chatgpt_account_id": account, "chatgpt_plan_type": "team" });
        let claims = json!({ "email": email, "https://api.openai.com/auth": auth });
        format!("h.{}.s", URL_SAFE_NO_PAD.encode(claims.to_string()))
    };
    let login = json!({ "type": "chatgptAuthTokens", "idToken": token("a@b", "ws-1"), "accessToken": "access-1" });
    server.request("account/login/start", login).await.expect("the claims name the account");
    let account = json!({ "type": "chatgpt", "email": "a@b", "planType": "team" });
    assert_eq!(server.request("account/read", json!({})).await.unwrap()["account"], account);
    model.reply(unauthorized()).reply(message("done"));
    let thread = server.start_thread(Default::default()).await.id;
    server.start_turn(&thread, "hi").await;
    let (id, params) = server.server_request("account/chatgptAuthTokens/refresh").await;
    assert_eq!(params["previousAccountId"], "ws-1");
    server.respond(&id, json!({ "idToken": token("a@b", "ws-2"), "accessToken": "access-2" })).await;
    server.turn_completed(&thread).await;
    let sent: Vec<_> = model.calls().iter().map(|call| call.header("chatgpt-account-id").map(str::to_owned)).collect();
    assert_eq!(sent, [Some("ws-1".to_owned()), Some("ws-2".to_owned())]);
}

#[tokio::test]
async fn the_client_that_supplied_tokens_is_requested_to_refresh_them() {
    let model = ScriptedModel::start().await;
    let home = home(&model);
    let server = launch().websocket(&home).await;
    let (owner, other) = (server.connect().await, server.connect().await);
    let experimental = InitializeCapabilities { experimental_api: true, ..Default::default() };
    owner.initialize_with(experimental).await;
    other.initialize().await;
    let token = |email: &str| format!("h.{}.s", URL_SAFE_NO_PAD.encode(json!({ "email": email }).to_string()));
    let tokens =
        |email: &str| json!({ "type": "chatgptAuthTokens", "accessToken": token(email), "chatgptAccountId": "ws" });
    owner.request("account/login/start", tokens("old")).await.expect("tokens are taken");
    model.reply(unauthorized()).reply(message("done"));
    let thread = other.start_thread(Default::default()).await.id;
    other.start_turn(&thread, "hi").await;
    let (id, _) = owner.server_request("account/chatgptAuthTokens/refresh").await;
    owner.respond(&id, tokens("new")).await;
    other.turn_completed(&thread).await;
    assert_eq!(sent(&model), ["old", "new"].map(|email| Some(format!("Bearer {}", token(email)))));
    assert!(!other.methods().contains(&"account/chatgptAuthTokens/refresh".to_owned()));
}
