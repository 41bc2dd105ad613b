//! Signing in, and new tokens.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use loomd_adapter::{Auth, FailureKind, Limits, Phase, Session, Text, TokenError, TokenRequest, Tokens};
use serde_json::json;

use crate::mock::{mock, opened, prompt};

#[tokio::test]
async fn an_api_key_signs_in_before_the_thread_starts() {
    let (adapter, mut accepted) = mock();
    let adapter = adapter.auth(Auth::api_key("sk-1"));
    let (prompt, mut session) = (prompt(), Session::new());
    let playing = async {
        let mut mock = accepted.recv().await.unwrap();
        mock.handshake().await;
        let login = mock.answer("account/login/start", json!({ "type": "apiKey" })).await;
        assert_eq!(login, json!({ "type": "apiKey", "apiKey": "sk-1" }));
        mock.answer("thread/start", opened("t")).await;
        mock.turn_start().await;
        mock.finish("ok").await;
    };
    let (response, ()) = tokio::join!(adapter.evaluate::<Text>(&prompt, &mut session, Limits::none()), playing);
    response.unwrap();
}

#[tokio::test]
async fn a_token_source_signs_in_and_renews_tokens() {
    let (adapter, mut accepted) = mock();
    let adapter = adapter.auth(Auth::tokens(|request| async move {
        match request {
            TokenRequest::Login => Ok(Tokens::new("first", "account")),
            TokenRequest::Refresh { previous_account_id } if previous_account_id.as_deref() == Some("account") => {
                Ok(Tokens { plan: Some("plus".into()), ..Tokens::new("second", "account") })
            }
            _ => Err(TokenError::new("signed out")),
        }
    }));
    let (prompt, mut session) = (prompt(), Session::new());
    let playing = async {
        let mut mock = accepted.recv().await.unwrap();
        mock.handshake().await;
        let login = mock.answer("account/login/start", json!({ "type": "chatgptAuthTokens" })).await;
        let tokens = json!({ "type": "chatgptAuthTokens", "accessToken": "first", "chatgptAccountId": "account" });
        assert_eq!(login, tokens);
        mock.answer("thread/start", opened("t")).await;
        mock.turn_start().await;
        let request = json!({ "reason": "unauthorized", "previousAccountId": "account" });
        let renewed = mock.ask("account/chatgptAuthTokens/refresh", request).await;
        let tokens = json!({ "accessToken": "second", "chatgptAccountId": "account", "chatgptPlanType": "plus" });
        assert_eq!(renewed["result"], tokens);
        let refused = mock.ask("account/chatgptAuthTokens/refresh", json!({ "reason": "unauthorized" })).await;
        assert_eq!(refused["error"]["message"], "cannot get tokens: signed out");
        mock.finish("ok").await;
    };
    let (response, ()) = tokio::join!(adapter.evaluate::<Text>(&prompt, &mut session, Limits::none()), playing);
    response.unwrap();
}

#[test]
fn granted_tokens_have_the_account_and_plan_of_the_id_token() {
    let token = |claims: serde_json::Value| format!("h.{}.s", URL_SAFE_NO_PAD.encode(claims.to_string()));
    let auth = json!({ "chatgpt_account_id": "account", "chatgpt_plan_type": "team" });
    let granted = Tokens::granted(&token(json!({ "https://api.openai.com/auth": auth })), "access");
    assert_eq!(granted, Ok(Tokens { plan: Some("team".into()), ..Tokens::new("access", "account") }));
    for (id_token, reason) in [
        (token(json!({ "email": "e" })), "the id token has no claim `chatgpt_account_id`"),
        ("opaque".into(), "the id token is not a JSON Web Token"),
        ("a.!.c".into(), "the id token is not a JSON Web Token"),
    ] {
        assert_eq!(Tokens::granted(&id_token, "access"), Err(TokenError::new(reason)), "{id_token}");
    }
}

#[tokio::test]
async fn a_refused_sign_in_fails_in_the_request_phase_without_the_key() {
    let (adapter, mut accepted) = mock();
    let adapter = adapter.auth(Auth::api_key("sk-secret"));
    let (prompt, mut session) = (prompt(), Session::new());
    let playing = async {
        let mut mock = accepted.recv().await.unwrap();
        mock.handshake().await;
        mock.refuse("account/login/start", "API key login is disabled").await;
        mock.left().await;
    };
    let (response, ()) = tokio::join!(adapter.evaluate::<Text>(&prompt, &mut session, Limits::none()), playing);
    let error = response.unwrap_err();
    let failure = error.failure().unwrap();
    assert_eq!((failure.phase, failure.kind), (Phase::Request, FailureKind::Login));
    assert!(failure.message.contains("API key login is disabled"), "{failure}");
    assert!(!format!("{failure:?} {:?}", Auth::api_key("sk-secret")).contains("sk-secret"));
}

#[tokio::test]
async fn a_token_source_that_fails_ends_the_evaluation() {
    let (adapter, mut accepted) = mock();
    let adapter = adapter.auth(Auth::tokens(|_| async { Err::<Tokens, _>(TokenError::new("no vault")) }));
    let (prompt, mut session) = (prompt(), Session::new());
    let playing = async {
        let mut mock = accepted.recv().await.unwrap();
        mock.handshake().await;
        mock.left().await;
    };
    let (response, ()) = tokio::join!(adapter.evaluate::<Text>(&prompt, &mut session, Limits::none()), playing);
    assert_eq!(response.unwrap_err().to_string(), "request: cannot get tokens: no vault");
}
