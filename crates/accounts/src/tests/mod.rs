//! Accounts with a scripted local issuer and backend.

mod external;
mod login;
mod refresh;
mod stored;

use std::collections::VecDeque;
use std::fs;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use loomd_config::config_toml::CliCredentialsStore;
use loomd_model::{Bearer, BoxFuture, Credentials as _, Http};
use loomd_protocol::{
    Account, GetAccountParams, GetAccountResponse, GetAuthStatusParams, GetAuthStatusResponse, JsonValue, Level,
    LoginAccountResponse, RequestId, Secret, ServerNotification, ServerRequest,
};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// An unsigned token with these claims.
pub(crate) fn jwt(claims: &JsonValue) -> String {
    format!("h.{}.s", URL_SAFE_NO_PAD.encode(claims.to_string()))
}

/// The `auth.json` of a sign-in with this access token and account.
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

/// Records notifications and requests to clients, and replies with `responses`, last first.
#[derive(Default)]
struct RecordingHost {
    sent: Mutex<Vec<JsonValue>>,
    responses: Mutex<Vec<Result<JsonValue, RequestError>>>,
}

impl Host for RecordingHost {
    fn notify(&self, notification: ServerNotification) -> BoxFuture<'_, ()> {
        self.sent.lock().push(serde_json::from_slice(&notification.encode().unwrap()).unwrap());
        Box::pin(std::future::ready(()))
    }

    fn request(
        &self,
        first: Option<ClientId>,
        request: ServerRequest,
    ) -> BoxFuture<'_, Result<JsonValue, RequestError>> {
        let encoded = request.encode(&RequestId::Integer(0)).unwrap();
        self.sent
            .lock()
            .push(json!([first.map(|client| client.0), serde_json::from_slice::<JsonValue>(&encoded).unwrap()]));
        let answer = self.responses.lock().pop();
        Box::pin(async {
            tokio::task::yield_now().await;
            match answer {
                Some(answer) => answer,
                None => std::future::pending().await,
            }
        })
    }

    fn account_changed<'a>(&'a self, _: &'a Accounts) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }
}

struct Fixture {
    home: tempfile::TempDir,
    host: Arc<RecordingHost>,
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
        issuer: "http://127.0.0.1:1".into(),
        ports: [0, 0],
        backend: "http://127.0.0.1:1".into(),
        refresh_url: None,
        requires_openai_auth: true,
    };
    change(&mut options);
    let host: Arc<RecordingHost> = Arc::default();
    Fixture { accounts: Accounts::new(options, Http::new(&|_| None), Arc::clone(&host) as Arc<dyn Host>), home, host }
}

impl Fixture {
    fn write(&self, auth: &JsonValue) {
        fs::write(self.home.path().join("auth.json"), auth.to_string()).unwrap();
    }

    fn on_disk(&self) -> Option<JsonValue> {
        Some(serde_json::from_slice(&fs::read(self.home.path().join("auth.json")).ok()?).unwrap())
    }

    async fn read(&self) -> Result<GetAccountResponse, AccountError> {
        self.accounts.read(&GetAccountParams::default(), Level::V0_118).await
    }

    async fn account(&self) -> Option<Account> {
        self.read().await.unwrap().account
    }

    async fn status(&self, include_token: Option<bool>) -> GetAuthStatusResponse {
        self.accounts.auth_status(&GetAuthStatusParams { include_token, refresh_token: None }).await
    }

    async fn bearer(&self) -> Bearer {
        self.accounts.bearer().await.unwrap().unwrap()
    }

    async fn token(&self) -> Option<String> {
        self.accounts.bearer().await.unwrap().map(|bearer| bearer.token.reveal().to_owned())
    }

    async fn login_with_key(&self, key: &str) -> Result<LoginAccountResponse, AccountError> {
        let mut outcome = None;
        self.accounts.login_with_key(Secret::from(key.to_owned()), |reply| outcome = Some(reply)).await;
        outcome.unwrap()
    }

    fn sent(&self) -> Vec<JsonValue> {
        std::mem::take(&mut *self.host.sent.lock())
    }
}

/// Answers requests with queued responses, and records the requests.
#[derive(Clone, Default)]
struct Backend(Arc<Mutex<Script>>);

#[derive(Default)]
struct Script {
    answers: VecDeque<(u16, String)>,
    requests: Vec<String>,
}

impl Backend {
    async fn start() -> (Self, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let backend = Self::default();
        let serving = backend.clone();
        tokio::spawn(async move {
            loop {
                serving.serve(listener.accept().await.unwrap().0).await;
            }
        });
        (backend, url)
    }

    fn answer(&self, status: u16, body: &JsonValue) -> &Self {
        self.0.lock().answers.push_back((status, body.to_string()));
        self
    }

    /// The request lines and bodies, one text per request.
    fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().requests)
    }

    async fn serve(&self, mut stream: TcpStream) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        stream.read_exact(&mut body).await.unwrap();
        let line = head.lines().next().unwrap().trim_end_matches(" HTTP/1.1");
        let request = format!("{line} {}", String::from_utf8(body).unwrap()).trim_end().to_owned();
        self.0.lock().requests.push(request);
        let (status, answer) = loop {
            if let Some(answer) = self.0.lock().answers.pop_front() {
                break answer;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        };
        let head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", answer.len());
        stream.write_all(format!("{head}{answer}").as_bytes()).await.unwrap();
    }
}
