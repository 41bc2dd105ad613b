use std::sync::Mutex;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use loomd_accounts::Options;
use loomd_config::{LoadRequest, Overrides, load};
use loomd_model::Http;
use loomd_protocol::AbsolutePathBuf;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// A home with a signed-in account of this plan.
fn home(plan: &str) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let auth = json!({"chatgpt_plan_type": plan, "chatgpt_user_id": "user-1"});
    let claims = json!({"https://api.openai.com/auth": auth}).to_string();
    let auth = json!({
        "auth_mode": "chatgpt",
        "OPENAI_API_KEY": null,
        "tokens": {
            "id_token": format!("h.{}.s", URL_SAFE_NO_PAD.encode(claims)),
            "access_token": "access-1",
            "refresh_token": "r",
            "account_id": "acct-1",
        },
        "last_refresh": jiff::Timestamp::now().to_string(),
    });
    std::fs::write(home.path().join("auth.json"), auth.to_string()).unwrap();
    home
}

/// Answers each request with the next of these; keeps the requests.
async fn backend(answers: Vec<(u16, String)>) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let requests: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&requests);
    tokio::spawn(async move {
        for (status, body) in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                request.push(stream.read_u8().await.unwrap());
            }
            seen.lock().unwrap().push(String::from_utf8(request).unwrap());
            let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (url, requests)
}

fn cloud(home: &tempfile::TempDir, url: &str) -> Cloud {
    std::fs::write(home.path().join("config.toml"), format!("chatgpt_base_url = '{url}'")).unwrap();
    let path = AbsolutePathBuf::new(home.path()).unwrap();
    let loaded = load(&LoadRequest::new(&path, &Overrides::default())).unwrap();
    let refresh_url = |_: &str| Some(format!("{url}/oauth/token"));
    let options = Options::new(&path, &loaded, &refresh_url);
    Cloud::new(&path, &Accounts::new(options, Http::new(&|_| None), Arc::new(())))
}

async fn loaded(cloud: &Cloud) -> Result<Option<String>, CloudError> {
    cloud.load(cloud.accounts.member().as_ref()).await
}

fn contents(text: &str) -> (u16, String) {
    (200, json!({ "contents": text }).to_string())
}

#[tokio::test]
async fn requirements_are_fetched_for_the_member_and_kept() {
    let home = home("enterprise");
    let (url, requests) = backend(vec![contents("enforce_residency = 'us'")]).await;
    let cloud = cloud(&home, &format!("{url}/backend-api/"));
    for _ in 0..2 {
        assert_eq!(loaded(&cloud).await.unwrap().as_deref(), Some("enforce_residency = 'us'"));
    }
    let requests = requests.lock().unwrap();
    assert_eq!(requests.len(), 1);
    assert!(requests[0].starts_with("GET /backend-api/wham/config/requirements HTTP/1.1\r\n"), "{}", requests[0]);
    for header in ["authorization: Bearer access-1\r\n", "chatgpt-account-id: acct-1\r\n"] {
        assert!(requests[0].contains(header), "{}", requests[0]);
    }
}

#[tokio::test]
async fn no_request_is_made_for_an_account_without_an_organisation() {
    let home = home("plus");
    assert_eq!(loaded(&cloud(&home, "http://127.0.0.1:1")).await, Ok(None));
}

#[tokio::test]
async fn a_failed_request_is_retried_and_a_refused_one_is_not() {
    let home = home("business");
    let (url, _) = backend(vec![(500, String::new()), contents("")]).await;
    assert_eq!(loaded(&cloud(&home, &url)).await, Ok(Some(String::new())));

    let home = self::home("business");
    let expired = json!({ "error": { "code": "refresh_token_expired" } }).to_string();
    let (url, requests) = backend(vec![(401, String::new()), (401, String::new()), (401, expired)]).await;
    let error = loaded(&cloud(&home, &url)).await.unwrap_err();
    assert_eq!((error.code, error.status), ("Auth", Some(401)));
    assert!(error.detail.contains("refresh token has expired"), "{}", error.detail);
    let asked: Vec<_> = requests.lock().unwrap().iter().map(|it| it.lines().next().unwrap().to_owned()).collect();
    let get = "GET /api/codex/config/requirements HTTP/1.1";
    assert_eq!(asked, [get, get, "POST /oauth/token HTTP/1.1"]);
}

#[tokio::test]
async fn a_cached_file_of_another_member_or_an_edited_one_is_ignored() {
    let home = home("enterprise");
    let member = cloud(&home, "http://127.0.0.1:1").accounts.member().unwrap();
    cache::write(home.path(), &member, Some("a = 1")).unwrap();
    assert_eq!(cache::read(home.path(), &member), Some(Some("a = 1".into())));
    let other = Member { account: "acct-2".into(), ..member.clone() };
    assert_eq!(cache::read(home.path(), &other), None);
    let file = home.path().join("cloud-requirements-cache.json");
    let edited = std::fs::read_to_string(&file).unwrap().replace("a = 1", "a = 2");
    std::fs::write(&file, edited).unwrap();
    assert_eq!(cache::read(home.path(), &member), None);
}

#[tokio::test]
async fn requirements_that_do_not_parse_are_not_cached() {
    let home = home("enterprise");
    let (url, _) = backend(vec![contents("allowed_approval_policies = 'x'")]).await;
    assert!(loaded(&cloud(&home, &url)).await.unwrap().is_some());
    assert!(!home.path().join("cloud-requirements-cache.json").exists());
}
