use std::time::Duration;

use loomd_protocol::McpAuthStatus;
use serde_json::json;

use super::*;
use crate::tokens::now;

#[tokio::test]
async fn a_token_is_refreshed_only_when_it_is_about_to_expire() {
    let (fixture, issuer) = (Fixture::new(), Issuer::start().await);
    let server = configured(&format!("{}/mcp", issuer.base), r#"{"oauth_resource":"res"}"#);
    for expires in [json!(null), json!(now() + 60_000)] {
        fixture.store(&server, json!({ "expires_at": expires }));
        assert_eq!(fixture.bearer(&server).await.unwrap().as_deref(), Some("token-0"));
    }
    assert_eq!(issuer.lines(), [""; 0]);
    fixture.store(&server, json!({ "expires_at": now() + 20_000, "unknown": 1 }));
    assert_eq!(fixture.bearer(&server).await.unwrap().as_deref(), Some("token-1"));
    let requests = issuer.requests();
    let refresh = requests.last().unwrap();
    for (name, value) in [
        ("grant_type", "refresh_token"),
        ("refresh_token", "refresh-0"),
        ("client_id", "client-0"),
        ("resource", "res"),
    ] {
        assert_eq!(form(refresh, name).as_deref(), Some(value));
    }
    let entry = &fixture.stored()[server.key()];
    assert_eq!((&entry["access_token"], &entry["refresh_token"]), (&json!("token-1"), &json!("refresh-1")));
    assert!(entry["expires_at"].as_u64().unwrap() > now() + 3_500_000);
}

#[tokio::test]
async fn a_refresh_token_is_spent_once_by_all_threads_and_processes() {
    let (fixture, issuer) = (Fixture::new(), Issuer::start().await);
    let server = server(&format!("{}/mcp", issuer.base));
    fixture.store(&server, json!({ "expires_at": 1000 }));
    let other = fixture.other();
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..20 {
        let (oauth, server) = (if number % 2 == 0 { fixture.oauth.clone() } else { other.clone() }, server.clone());
        calls.spawn(async move { oauth.bearer(&server).await.unwrap().unwrap().reveal().to_owned() });
    }
    assert_eq!(calls.join_all().await, ["token-1"; 20]);
    assert_eq!(issuer.lines().iter().filter(|line| *line == "POST /token").count(), 1);
}

#[tokio::test]
async fn a_refused_login_is_reported_and_not_tried_again_until_there_is_another() {
    let (fixture, issuer) = (Fixture::new(), Issuer::start().await);
    let server = server(&format!("{}/mcp", issuer.base));
    fixture.store(&server, json!({ "expires_at": 1000 }));
    issuer.set("POST /token", 400, json!({ "error": "invalid_grant" }));
    assert_eq!(fixture.oauth.status(&server).await, McpAuthStatus::OAuth);
    for _ in 0..3 {
        let error = fixture.bearer(&server).await.unwrap_err();
        assert_eq!(
            error,
            "the stored login is no longer accepted: the token endpoint answered HTTP 400 Bad Request: invalid_grant"
        );
    }
    assert_eq!(issuer.lines().iter().filter(|line| *line == "POST /token").count(), 1);
    assert_eq!(fixture.oauth.status(&server).await, McpAuthStatus::NotLoggedIn);
    fixture.store(&server, json!({ "expires_at": 1000, "refresh_token": "refresh-9" }));
    issuer.grant(3, json!({}));
    assert_eq!(fixture.bearer(&server).await.unwrap().as_deref(), Some("token-3"));
    assert_eq!(fixture.oauth.status(&server).await, McpAuthStatus::OAuth);
}

#[tokio::test]
async fn a_token_is_used_until_it_expires_when_it_cannot_be_refreshed() {
    let (fixture, issuer) = (Fixture::new(), Issuer::start().await);
    let server = server(&format!("{}/mcp", issuer.base));
    issuer.set("POST /token", 503, json!("down"));
    fixture.store(&server, json!({ "expires_at": now() + 20_000 }));
    assert_eq!(fixture.bearer(&server).await.unwrap().as_deref(), Some("token-0"));
    fixture.store(&server, json!({ "expires_at": 1000 }));
    let error = fixture.bearer(&server).await.unwrap_err();
    assert!(error.starts_with("failed to refresh the OAuth token: the token endpoint answered HTTP 503"), "{error}");
    issuer.grant(2, json!({}));
    assert_eq!(fixture.bearer(&server).await.unwrap().as_deref(), Some("token-2"), "a failure is no refusal");
    fixture.store(&server, json!({ "expires_at": 1000, "refresh_token": null }));
    assert_eq!(fixture.bearer(&server).await.unwrap().as_deref(), Some("token-0"), "the server decides");
}

#[tokio::test]
async fn a_rejected_token_is_replaced_by_a_newer_one_or_refreshed() {
    let (fixture, issuer) = (Fixture::new(), Issuer::start().await);
    let server = server(&format!("{}/mcp", issuer.base));
    assert!(!fixture.oauth.recover(&server).await);
    fixture.store(&server, json!({}));
    assert_eq!(fixture.bearer(&server).await.unwrap().as_deref(), Some("token-0"));
    assert!(fixture.oauth.recover(&server).await);
    assert_eq!(fixture.bearer(&server).await.unwrap().as_deref(), Some("token-1"));
    assert_eq!(issuer.lines().last().unwrap(), "POST /token");
    fixture.store(&server, json!({ "access_token": "token-9" }));
    assert!(fixture.oauth.recover(&server).await, "another program has logged in");
    assert_eq!(issuer.lines(), [""; 0]);
    fixture.store(&server, json!({ "access_token": "token-9", "refresh_token": null }));
    assert_eq!(fixture.bearer(&server).await.unwrap().as_deref(), Some("token-9"));
    assert!(!fixture.oauth.recover(&server).await);
}

#[tokio::test]
async fn a_refresh_outlives_the_request_that_wanted_it() {
    let (fixture, issuer) = (Fixture::new(), Issuer::start().await);
    let server = server(&format!("{}/mcp", issuer.base));
    fixture.store(&server, json!({ "expires_at": 1000 }));
    _ = tokio::time::timeout(Duration::from_millis(1), fixture.oauth.bearer(&server)).await;
    assert_eq!(fixture.bearer(&server).await.unwrap().as_deref(), Some("token-1"));
    let spent = issuer.lines().iter().filter(|line| *line == "POST /token").count();
    assert_eq!(spent, 1);
}

#[tokio::test]
async fn refreshed_tokens_are_used_even_if_they_cannot_be_stored() {
    let (fixture, issuer) = (Fixture::new(), Issuer::start().await);
    let server = server(&format!("{}/mcp", issuer.base));
    fixture.store(&server, json!({ "expires_at": 1000 }));
    // The lock of writers cannot be taken where a file is in the place of its folder.
    std::fs::write(fixture.home.path().join("loomd"), "").unwrap();
    for _ in 0..2 {
        assert_eq!(fixture.bearer(&server).await.unwrap().as_deref(), Some("token-1"));
    }
    assert_eq!(issuer.lines().iter().filter(|line| *line == "POST /token").count(), 1);
    assert_eq!(fixture.stored()[server.key()]["access_token"], "token-0");
}
