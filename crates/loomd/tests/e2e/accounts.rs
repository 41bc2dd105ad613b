//! Who is signed in, as all clients of a server see it and as its model calls show it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use loomd_protocol::InitializeCapabilities;
use loomd_testkit::model::{message, unauthorized};
use loomd_testkit::{Home, ScriptedModel};
use serde_json::json;

use crate::common::launch;

/// A provider that asks for the account.
fn home(model: &ScriptedModel) -> Home {
    Home::new(model).with("[model_providers.scripted]\nrequires_openai_auth = true")
}

fn sent(model: &ScriptedModel) -> Vec<Option<String>> {
    model.calls().iter().map(|call| call.header("authorization").map(str::to_owned)).collect()
}

#[tokio::test]
async fn a_login_and_a_logout_reach_running_threads_and_every_client() {
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
    one.request("account/login/start", login).await.expect("a key is all that it takes");
    assert_eq!(two.notification("account/updated").await["authMode"], json!("apikey"));
    let read = two.request("account/read", json!({})).await;
    assert_eq!(read, Ok(json!({ "account": { "type": "apiKey" }, "requiresOpenaiAuth": true })));
    one.run_turn(&thread, "hi").await;
    two.forget();
    one.request("account/logout", json!({})).await.expect("anybody may log out");
    assert_eq!(two.notification("account/updated").await["authMode"], json!(null));
    one.run_turn(&thread, "hi").await;
    assert_eq!(sent(&model), [None, Some("Bearer sk-1".to_owned()), None]);
    assert!(!home.path().join("auth.json").exists());
}

#[tokio::test]
async fn the_client_that_brought_tokens_is_asked_for_new_ones() {
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
